//! The classic form of captures (draft-ietf-opsawg-pcap): both byte orders, micro- and nanoseconds.

use std::io;

use crate::link::LinkType;
use crate::reader::{Found, OpenError, LONGEST_RECORD};
use crate::source::Source;

mod field {
    pub const LINK_TYPE: usize = 20;
    pub const SECONDS: usize = 0;
    pub const FRACTION: usize = 4;
    pub const CAPTURED: usize = 8;
    pub const ORIGINAL: usize = 12;
}

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// The contents of the file's header.
pub(crate) struct Pcap {
    little_endian: bool,
    nanoseconds_per_fraction: i64,
    /// Bytes of a record's header: Alexey Kuznetsov's form has eight more.
    record_header: usize,
    link: u32,
    /// Packets whose fraction of a second was a second and more.
    carried: u64,
}

impl Pcap {
    /// Reads the file's header, which begins with `magic`, taken as big-endian.
    pub(crate) fn begin(source: &mut Source, magic: u32) -> Result<Self, OpenError> {
        let (little_endian, nanoseconds_per_fraction, record_header) = match magic {
            0xa1b2_c3d4 => (false, 1000, RECORD_HEADER),
            0xd4c3_b2a1 => (true, 1000, RECORD_HEADER),
            0xa1b2_3c4d => (false, 1, RECORD_HEADER),
            0x4d3c_b2a1 => (true, 1, RECORD_HEADER),
            0xa1b2_cd34 => (false, 1000, RECORD_HEADER + 8),
            0x34cd_b2a1 => (true, 1000, RECORD_HEADER + 8),
            _ => return Err(OpenError::NoCapture(format!("the bytes {magic:08x}"))),
        };
        if !source.need(FILE_HEADER)? {
            return Err(OpenError::TooShort(source.window().len()));
        }
        let mut pcap = Self { little_endian, nanoseconds_per_fraction, record_header, link: 0, carried: 0 };
        // The upper bits tell of a frame check sequence, not of the link.
        pcap.link = pcap.word(source.window(), field::LINK_TYPE) & 0x03ff_ffff;
        source.consume(FILE_HEADER);
        if LinkType::of(pcap.link).is_none() {
            return Err(OpenError::LinkType(pcap.link));
        }
        Ok(pcap)
    }

    #[inline]
    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.little_endian {
            u32::from_le_bytes(four)
        } else {
            u32::from_be_bytes(four)
        }
    }

    /// What a reader of numbers must know of the file.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let told = |count| {
            let packets = if count == 1 { "packet has" } else { "packets have" };
            format!("{count} {packets} a time stamp whose fraction is a second or more; it is added to the seconds")
        };
        (self.carried > 0).then(|| told(self.carried)).into_iter().collect()
    }

    #[inline]
    pub(crate) fn next_packet(&mut self, source: &mut Source) -> io::Result<Found> {
        if !source.need(self.record_header)? {
            return Ok(if source.window().is_empty() { Found::End } else { Found::CutOff });
        }
        let header = &source.window()[..self.record_header];
        let (seconds, fraction) = (self.word(header, field::SECONDS), self.word(header, field::FRACTION));
        let (captured, original) = (self.word(header, field::CAPTURED), self.word(header, field::ORIGINAL));
        if captured > LONGEST_RECORD {
            return Ok(Found::Damaged(format!(
                "a packet claims {captured} captured bytes, more than {LONGEST_RECORD}"
            )));
        }
        let fraction_ns = i64::from(fraction) * self.nanoseconds_per_fraction;
        // Programs that round write a whole second; two are none's.
        if fraction_ns >= 2_000_000_000 {
            return Ok(Found::Damaged(format!("a time stamp has the fraction {fraction}, two seconds or more")));
        }
        let length = captured as usize;
        if !source.need(self.record_header + length)? {
            return Ok(Found::CutOff);
        }
        source.consume(self.record_header + length);
        self.carried += u64::from(fraction_ns >= 1_000_000_000);
        Ok(Found::Packet {
            time_ns: Some(i64::from(seconds) * 1_000_000_000 + fraction_ns),
            link: self.link,
            original_length: original.max(captured),
            length,
            after: 0,
        })
    }
}
