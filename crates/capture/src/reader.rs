//! A capture file of any form, record by record.

use std::fmt;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use crate::link::{LinkType, SUPPORTED};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::source::Source;

/// The longest record that is believed; longer ones mean that the file is damaged.
pub(crate) const LONGEST_RECORD: u32 = 16 << 20;

/// Why a capture cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The bytes are no capture. Remedy: give a capture file, or convert it (`editcap`).
    #[error("it begins with {0}, which is no capture; pcap and pcapng are read, plain or compressed with gzip")]
    NoCapture(String),
    /// It ends within its first header. Remedy: capture anew.
    #[error("it is empty or cut off within its first header ({0} bytes)")]
    TooShort(usize),
    /// Packets of a kind that is not looked into. Remedy: capture on another interface.
    #[error("its link type {0} is not looked into; known are {SUPPORTED}")]
    LinkType(u32),
    /// The input cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One captured packet.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Counted from 1 through the file.
    pub number: u64,
    /// Nanoseconds since 1970; `None` where the file gives no time, or one beyond the years 1677 to 2262.
    pub time_ns: Option<i64>,
    /// Its link layer; `Err` with the number of one that is not looked into.
    pub link: Result<LinkType, u32>,
    /// Bytes that it had on the link.
    pub original_length: u32,
    /// The bytes that were kept.
    pub bytes: &'a [u8],
}

/// The end of the reading of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At the end of the last record.
    Whole,
    /// The file ends within the packet of this number.
    CutOff {
        /// Counted from 1.
        packet: u64,
    },
    /// The contents at this place cannot be; nothing after it was read.
    Damaged {
        /// Packets read before.
        packets: u64,
        /// In bytes, uncompressed.
        offset: u64,
        /// The fault.
        reason: String,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => write!(f, "read to its end"),
            Self::CutOff { packet } => {
                write!(f, "the file is cut off in packet {packet}; the numbers are those of the packets before it")
            }
            Self::Damaged { packets, offset, reason } => write!(
                f,
                "the file is damaged at byte {offset}, after packet {packets}: {reason}; the numbers are those of \
                 the packets before it"
            ),
        }
    }
}

enum Form {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A capture that is being read.
pub struct Reader {
    source: Source,
    form: Form,
    compressed: bool,
    packets: u64,
    ending: Option<Ending>,
}

/// The thing that a form of file finds at its place.
pub(crate) enum Found {
    /// A packet whose `length` bytes were consumed last, but for `after` bytes behind them.
    Packet { time_ns: Option<i64>, link: u32, original_length: u32, length: usize, after: usize },
    /// The end, between records.
    End,
    /// The end, within a record.
    CutOff,
    /// Something that cannot be.
    Damaged(String),
}

impl Reader {
    /// Begins to read `input`: pcap or pcapng, either perhaps compressed with gzip.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn new(input: Box<dyn Read + Send>) -> Result<Self, OpenError> {
        let mut source = Source::new(input)?;
        let compressed = source.need(2)? && source.window()[..2] == [0x1f, 0x8b];
        if compressed {
            source = Source::new(Box::new(MultiGzDecoder::new(Unread(source))))?;
        }
        if !source.need(4)? {
            let length = source.window().len();
            return match source.damage() {
                Some(damage) => Err(OpenError::NoCapture(format!("gzip, but {damage}"))),
                None => Err(OpenError::TooShort(length)),
            };
        }
        let window = source.window();
        let magic = u32::from_be_bytes([window[0], window[1], window[2], window[3]]);
        let form = if magic == 0x0a0d_0d0a {
            Form::Pcapng(Pcapng::default())
        } else {
            Form::Pcap(Pcap::begin(&mut source, magic)?)
        };
        Ok(Self { source, form, compressed, packets: 0, ending: None })
    }

    /// The next packet; `None` at the end, of which [`Reader::ending`] tells.
    ///
    /// # Errors
    /// The input cannot be read.
    #[inline]
    pub fn next_record(&mut self) -> io::Result<Option<Record<'_>>> {
        if self.ending.is_some() {
            return Ok(None);
        }
        let found = match &mut self.form {
            Form::Pcap(pcap) => pcap.next_packet(&mut self.source)?,
            Form::Pcapng(pcapng) => pcapng.next_packet(&mut self.source)?,
        };
        let Found::Packet { time_ns, link, original_length, length, after } = found else {
            self.end(found);
            return Ok(None);
        };
        self.packets += 1;
        let bytes = &self.source.consumed(length + after)[..length];
        let link = LinkType::of(link).ok_or(link);
        Ok(Some(Record { number: self.packets, time_ns, link, original_length, bytes }))
    }

    #[cold]
    fn end(&mut self, found: Found) {
        let (packets, offset) = (self.packets, self.source.offset());
        let damage = self.source.damage().map(ToOwned::to_owned);
        self.ending = Some(match (found, damage) {
            (Found::Damaged(reason), _) | (_, Some(reason)) => Ending::Damaged { packets, offset, reason },
            (Found::CutOff, None) => Ending::CutOff { packet: packets + 1 },
            _ => Ending::Whole,
        });
    }

    /// Returns how reading ended, once it has.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// The form of the file, in a word.
    #[must_use]
    pub fn form(&self) -> &'static str {
        match (&self.form, self.compressed) {
            (Form::Pcap(_), false) => "pcap",
            (Form::Pcap(_), true) => "pcap, gzip",
            (Form::Pcapng(_), false) => "pcapng",
            (Form::Pcapng(_), true) => "pcapng, gzip",
        }
    }

    /// Returns what the file itself tells that a reader of numbers must know, such as packets that the capture lost.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        match &self.form {
            Form::Pcap(pcap) => pcap.remarks(),
            Form::Pcapng(pcapng) => pcapng.remarks(),
        }
    }
}

/// The data that a source has read ahead, and what follows.
struct Unread(Source);

impl Read for Unread {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.need(1)?;
        let count = self.0.window().len().min(into.len());
        into[..count].copy_from_slice(&self.0.window()[..count]);
        self.0.consume(count);
        Ok(count)
    }
}
