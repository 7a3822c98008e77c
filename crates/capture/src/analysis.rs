//! One capture from begin to end: every table, in one pass.

use std::io::{self, Read};

use crate::conversations::{self, Conversations, Place};
use crate::decode::{decode, Layer, Transport, UDP};
use crate::fragments::Fragments;
use crate::link::{LinkType, SUPPORTED};
use crate::packet_list::PacketList;
use crate::reader::{Ending, OpenError, Reader, Record};
use crate::report::Report;
use crate::rtp::{Arrival, Measured};
use crate::rtp_finder::Finder;
use crate::tcp::{Connection, Segment};
use crate::throughput::Throughput;
use twinnet_packet::rtp::Header;

/// Packets after which the caller is asked whether to go on.
const BETWEEN_QUESTIONS: u64 = 1 << 19;
/// Packets of RTP whose own numbers are kept.
const MOST_RTP_PACKETS: usize = 20_000_000;
/// Longer frames are no frames of a link but the kernel's, before it cuts them.
pub(crate) const LONGEST_FRAME: u32 = 9_216;

/// The options of the analysis of a capture.
#[derive(Clone, Debug)]
pub struct Options {
    /// Ports whose UDP payload is taken for RTP from the first packet on.
    pub rtp_ports: Vec<u16>,
    /// `true` if RTP is looked for on other ports too.
    pub find_rtp: bool,
    /// Clock rates in hertz of payload types, before those of RFC 3551.
    pub clock_rates: Vec<(u8, u32)>,
    /// Length of an interval of the throughput.
    pub interval_ns: i64,
    /// `true` if the numbers of every RTP packet are kept.
    pub every_packet: bool,
    /// The most conversations that are kept apart.
    pub most_conversations: usize,
    /// The most packets that are listed one by one, from the first on.
    pub most_packets: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rtp_ports: Vec::new(),
            find_rtp: true,
            clock_rates: Vec::new(),
            interval_ns: 1_000_000_000,
            every_packet: false,
            most_conversations: conversations::MOST,
            most_packets: 0,
        }
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    /// It cannot be read as a capture.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Reading failed.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// None of its packets can be looked into. Remedy: capture on another interface.
    #[error("all of its {packets} packets have link type {link}, which is not looked into; known are {SUPPORTED}")]
    LinkType {
        /// Packets in the file.
        packets: u64,
        /// Number of the link type.
        link: u32,
    },
    /// The caller did not want to go on.
    #[error("interrupted")]
    Interrupted,
}

/// Reads a capture to its end. `go_on` is asked now and then, with the packets read so far.
///
/// # Errors
/// See [`AnalyzeError`]. A file that is cut off or damaged is no error: the report says so.
pub fn analyze(
    input: Box<dyn Read + Send>,
    options: &Options,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, AnalyzeError> {
    let mut analysis = Analysis::new(options);
    let end = analysis.add_file(input, go_on)?;
    analysis.report(&[end])
}

/// Reads captures that follow each other in time, such as the files of a ring, as one.
///
/// # Errors
/// The index of the capture that has none, and why. A file that is cut off or damaged is no error: the report says so.
pub fn analyze_joined(
    inputs: impl Iterator<Item = io::Result<Box<dyn Read + Send>>>,
    options: &Options,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, (usize, AnalyzeError)> {
    let mut analysis = Analysis::new(options);
    let mut ends = Vec::new();
    for (index, input) in inputs.enumerate() {
        let input = input.map_err(|error| (index, error.into()))?;
        ends.push(analysis.add_file(input, go_on).map_err(|error| (index, error))?);
    }
    analysis.report(&ends).map_err(|error| (0, error))
}

/// The state of a file that was read to its end.
pub(crate) struct FileEnd {
    pub(crate) form: &'static str,
    pub(crate) ending: Ending,
    pub(crate) remarks: Vec<String>,
}

/// Numbers of each packet of RTP.
#[derive(Default)]
pub(crate) struct RtpPackets {
    pub(crate) rows: Vec<(u32, u64, i64, u16, bool, Measured)>,
    pub(crate) not_kept: u64,
}

impl RtpPackets {
    fn add(&mut self, stream: usize, header: &Header, arrival: &Arrival, measured: Measured) {
        if self.rows.len() < MOST_RTP_PACKETS {
            let row = (stream as u32, arrival.number, arrival.time_ns, header.sequence, header.marker, measured);
            self.rows.push(row);
        } else {
            self.not_kept += 1;
        }
    }
}

/// Counts of the file as a whole.
#[derive(Default)]
pub(crate) struct Whole {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) not_ip: u64,
    pub(crate) other_link: u64,
    pub(crate) last_link: u32,
    pub(crate) not_ethernet: u64,
    pub(crate) without_time: u64,
    pub(crate) super_segments: u64,
    pub(crate) cut_headers: u64,
    pub(crate) first_ns: Option<i64>,
    pub(crate) last_ns: i64,
    previous_ns: i64,
    pub(crate) steps_back: u64,
    pub(crate) longest_step_ns: i64,
    pub(crate) first_step: u64,
}

/// The state of a capture that is being read.
pub(crate) struct Analysis {
    pub(crate) whole: Whole,
    pub(crate) conversations: Conversations,
    pub(crate) pairs: Conversations,
    pub(crate) fragments: Fragments,
    pub(crate) throughput: Throughput,
    pub(crate) finder: Finder,
    pub(crate) connections: Vec<Connection>,
    pub(crate) rtp_packets: Option<RtpPackets>,
    pub(crate) packet_list: PacketList,
}

impl Analysis {
    fn new(options: &Options) -> Self {
        Self {
            whole: Whole::default(),
            conversations: Conversations::new(options.most_conversations),
            pairs: Conversations::new(options.most_conversations),
            fragments: Fragments::default(),
            throughput: Throughput::new(options.interval_ns.max(1)),
            finder: Finder::new(options.rtp_ports.clone(), options.find_rtp, &options.clock_rates),
            connections: Vec::new(),
            rtp_packets: options.every_packet.then(RtpPackets::default),
            packet_list: PacketList::new(options.most_packets),
        }
    }

    /// Adds the packets of a capture, read to its end.
    fn add_file(
        &mut self,
        input: Box<dyn Read + Send>,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<FileEnd, AnalyzeError> {
        let before = self.whole.packets;
        let mut reader = Reader::new(input)?;
        while let Some(mut record) = reader.next_record()? {
            record.number += before;
            self.add(&record);
            if record.number % BETWEEN_QUESTIONS == 0 && !go_on(record.number) {
                return Err(AnalyzeError::Interrupted);
            }
        }
        let ending = reader.ending().cloned().unwrap_or(Ending::Whole);
        Ok(FileEnd { form: reader.form(), ending, remarks: reader.remarks() })
    }

    fn add(&mut self, record: &Record<'_>) {
        self.whole.add(record);
        self.packet_list.add(record);
        let link = match record.link {
            Ok(link) => link,
            Err(number) => {
                self.whole.other_link += 1;
                self.whole.last_link = number;
                return;
            }
        };
        let mut outer_length = 0;
        let mut carried = 0;
        let found = decode(link, record.bytes, |layer| {
            if outer_length == 0 {
                outer_length = layer.length;
            }
            carried = self.count(record, layer);
        });
        if !found {
            self.whole.not_ip += 1;
        }
        let length = record.original_length;
        if let Some(time) = record.time_ns {
            let wire = if link == LinkType::Ethernet { length.max(60).saturating_add(24) } else { length };
            self.throughput.count(time, [wire, length, outer_length, carried]);
        }
        self.whole.not_ethernet += u64::from(link != LinkType::Ethernet);
    }

    /// Counts one network packet for its conversation, and follows what it carries. Gives its payload's bytes.
    #[inline]
    fn count(&mut self, record: &Record<'_>, layer: &Layer<'_>) -> u32 {
        let placed = layer.fragment.is_some().then(|| self.fragments.place(layer));
        let ports = match &placed {
            Some(placed) => placed.head.map_or((0, 0), |head| head.ports),
            None => layer.transport.ports(),
        };
        let carried = match layer.transport {
            Transport::None if layer.fragment.is_some() => layer.payload_length,
            Transport::None => {
                if matches!(layer.protocol, 6 | 17) {
                    self.whole.cut_headers += 1;
                }
                0
            }
            Transport::Udp { payload, .. } => payload.min(layer.payload_length.saturating_sub(8)),
            Transport::Tcp { payload, .. } => payload,
        };
        let Some(mut place) = self.conversations.place(layer, layer.protocol, ports) else { return carried };
        let time = record.time_ns;
        if let (Transport::Tcp { .. }, None, Some(time_ns)) = (layer.transport, layer.fragment, time) {
            place = self.follow_tcp(place, layer, time_ns);
        }
        let length = record.original_length;
        self.conversations.all[place.0].count(place.1, length, carried, time);
        self.count_pair(place, layer, length, carried, time);
        if layer.protocol == UDP {
            if let Some(time_ns) = time {
                let number = record.number;
                match (placed, layer.transport) {
                    (None, Transport::Udp { payload, .. }) => {
                        let begin = layer.payload.get(8..).unwrap_or(&[]);
                        self.follow_rtp(place, begin, payload, layer.v6, number, time_ns);
                    }
                    (Some(placed), _) if placed.completes => {
                        if let Some(head) = placed.head {
                            let begin = &head.begin[..usize::from(head.kept)];
                            self.follow_rtp(place, begin, head.payload, layer.v6, number, time_ns);
                        }
                    }
                    _ => {}
                }
            }
        }
        carried
    }

    #[inline]
    fn count_pair(&mut self, place: Place, layer: &Layer<'_>, length: u32, carried: u32, time: Option<i64>) {
        let conversation = &mut self.conversations.all[place.0];
        if conversation.pair == u32::MAX {
            match self.pairs.place(layer, 0, (0, 0)) {
                Some((pair, _)) => conversation.pair = pair as u32,
                None => return,
            }
        }
        let pair = &mut self.pairs.all[conversation.pair as usize];
        let direction = usize::from(pair.a.0 != layer.source);
        pair.count(direction, length, carried, time);
    }

    fn follow_tcp(&mut self, place: Place, layer: &Layer<'_>, time_ns: i64) -> Place {
        let Transport::Tcp { sequence, acknowledgement, flags, window, payload, .. } = layer.transport else {
            return place;
        };
        let segment = Segment { sequence, acknowledgement, flags, window, payload, time_ns };
        let mut place = place;
        let known = self.conversations.all[place.0].tcp;
        if known != u32::MAX && self.connections[known as usize].is_renewed_by(place.1, &segment) {
            place = self.conversations.renew(place).unwrap_or(place);
        }
        let conversation = &mut self.conversations.all[place.0];
        if conversation.tcp == u32::MAX {
            conversation.tcp = self.connections.len() as u32;
            self.connections.push(Connection::new(place.0));
        }
        self.connections[conversation.tcp as usize].add(place.1, &segment);
        place
    }

    #[inline]
    fn follow_rtp(&mut self, place: Place, begin: &[u8], payload: u32, v6: bool, number: u64, time_ns: i64) {
        let headers = if v6 { 48 } else { 28 };
        let arrival = Arrival { number, time_ns, bytes: payload.saturating_add(headers) };
        let rows = &mut self.rtp_packets;
        let conversation = &mut self.conversations.all[place.0];
        self.finder.add(conversation, place, begin, payload, arrival, |stream, header, arrival, measured| {
            if let Some(rows) = rows {
                rows.add(stream, header, arrival, measured);
            }
        });
    }
}

impl Whole {
    #[inline]
    fn add(&mut self, record: &Record<'_>) {
        self.packets += 1;
        self.bytes += u64::from(record.original_length);
        self.super_segments += u64::from(record.original_length > LONGEST_FRAME);
        let Some(time) = record.time_ns else {
            self.without_time += 1;
            return;
        };
        let Some(first) = self.first_ns else {
            self.first_ns = Some(time);
            (self.last_ns, self.previous_ns) = (time, time);
            return;
        };
        if time < self.previous_ns {
            if self.steps_back == 0 {
                self.first_step = record.number;
            }
            self.steps_back += 1;
            self.longest_step_ns = self.longest_step_ns.max(self.previous_ns.saturating_sub(time));
        }
        self.previous_ns = time;
        self.first_ns = Some(first.min(time));
        self.last_ns = self.last_ns.max(time);
    }
}
