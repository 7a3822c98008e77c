//! The results of a capture, as tables and notes.

use crate::analysis::{Analysis, AnalyzeError, FileEnd, RtpPackets, Whole, LONGEST_FRAME};
use crate::conversations;
use crate::decode::address;
use crate::reader::Ending;
use crate::rtp::Stream;
use crate::table::{Table, MISSING};
use crate::tcp::Connection;

/// The results of a capture.
#[derive(Clone, Debug)]
pub struct Report {
    /// One row: the file as a whole.
    pub capture: Table,
    /// A row for each pair of ports and protocol.
    pub conversations: Table,
    /// A row for each pair of addresses.
    pub host_pairs: Table,
    /// A row for each interval.
    pub throughput: Table,
    /// A row for each RTP stream.
    pub rtp_streams: Table,
    /// A row for each packet of RTP, when asked for.
    pub rtp_packets: Table,
    /// A row for each direction of a TCP connection.
    pub tcp: Table,
    /// A row for each of the first packets, when asked for.
    pub packet_list: Table,
    /// Remarks that the reader must know to judge the numbers.
    pub notes: Vec<String>,
}

impl Analysis {
    /// The tables of everything that was read.
    pub(crate) fn report(self, files: &[FileEnd]) -> Result<Report, AnalyzeError> {
        let whole = &self.whole;
        if whole.packets > 0 && whole.other_link == whole.packets {
            return Err(AnalyzeError::LinkType { packets: whole.packets, link: whole.last_link });
        }
        let mut notes = Vec::new();
        for (number, file) in (1..).zip(files) {
            let place = if files.len() > 1 { format!("file {number}: ") } else { String::new() };
            if file.ending != Ending::Whole {
                notes.push(format!("{place}{}", file.ending));
            }
            notes.extend(file.remarks.iter().map(|remark| format!("{place}{remark}")));
        }
        let ending = files.iter().map(|file| &file.ending).find(|ending| **ending != Ending::Whole);
        let form = files.first().map_or("", |file| file.form);
        notes.extend(self.remarks());
        let rtp_streams = self.rtp_table();
        let rtp_packets = rtp_packet_table(self.rtp_packets.as_ref());
        let tcp = self.tcp_table();
        let packet_list = self.packet_list.table(self.whole.first_ns);
        let capture = self.whole.table(form, ending.unwrap_or(&Ending::Whole));
        let (throughput, gaps) = self.throughput.table();
        if gaps {
            notes.push(
                "the capture has gaps of more intervals than are filled: intervals without packets are left out"
                    .to_owned(),
            );
        }
        Ok(Report {
            capture,
            conversations: conversations::table(&self.conversations.all, true),
            host_pairs: conversations::table(&self.pairs.all, false),
            throughput,
            rtp_streams,
            rtp_packets,
            tcp,
            packet_list,
            notes,
        })
    }

    /// What was passed over, each with how many there were.
    fn passed_over(&self) -> [(u64, String); 10] {
        let whole = &self.whole;
        let kept = self.conversations.all.len();
        [
            (
                whole.other_link,
                format!("packets have a link type that is not looked into ({}); they are in no table", whole.last_link),
            ),
            (
                whole.without_time,
                "packets have no time stamp that can be told: counted, but in no interval, stream or connection"
                    .to_owned(),
            ),
            (
                whole.cut_headers,
                "packets were kept too short for their transport header: their conversations have no ports".to_owned(),
            ),
            (
                whole.super_segments,
                format!(
                    "packets are longer than {LONGEST_FRAME} bytes: super-segments of a kernel, cut into frames after \
                 the capture; counts of packets and bytes on the wire are too low"
                ),
            ),
            (
                whole.not_ethernet,
                "packets are of a link layer that is not Ethernet: what they took on the wire is \
                not known, bytes of the link are shown"
                    .to_owned(),
            ),
            (
                self.conversations.not_kept,
                format!("packets are of conversations beyond the first {kept}; they are in no table of conversations"),
            ),
            (self.finder.not_kept, "packets of RTP are of streams beyond those that are kept".to_owned()),
            (
                self.fragments.never_whole(),
                "datagrams of which not every fragment was seen: counted, but not looked into for RTP".to_owned(),
            ),
            (
                self.throughput.not_kept,
                "packets are in intervals beyond those that are kept: choose a longer interval".to_owned(),
            ),
            (
                self.rtp_packets.as_ref().map_or(0, |rows| rows.not_kept),
                "packets of RTP are beyond those whose own numbers are kept".to_owned(),
            ),
        ]
    }

    fn remarks(&self) -> Vec<String> {
        let whole = &self.whole;
        let mut remarks: Vec<String> = self
            .passed_over()
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, text)| format!("{count} {text}"))
            .collect();
        if whole.steps_back > 0 {
            remarks.push(format!(
                "time steps back {} times, first at packet {}, by at most {} s: times between packets are not \
                 reliable there",
                whole.steps_back,
                whole.first_step,
                whole.longest_step_ns as f64 / 1e9
            ));
        }
        remarks
    }

    fn rtp_table(&self) -> Table {
        let streams = &self.finder.streams;
        let of = |stream: &Stream| &self.conversations.all[stream.conversation];
        let end = |stream: &Stream, receiver: bool| {
            let conversation = of(stream);
            let end = if (stream.direction == 0) == receiver { conversation.b } else { conversation.a };
            (address(conversation.v6, end.0).to_string(), i64::from(end.1))
        };
        let mut table = Table::default();
        table.text("source_address", streams.iter().map(|one| end(one, false).0));
        table.whole("source_port", streams.iter().map(|one| end(one, false).1));
        table.text("destination_address", streams.iter().map(|one| end(one, true).0));
        table.whole("destination_port", streams.iter().map(|one| end(one, true).1));
        table.text("ssrc", streams.iter().map(|one| format!("0x{:08X}", one.source)));
        table.text("payload", streams.iter().map(Stream::payload_names));
        table.whole("clock_rate_hz", streams.iter().map(|one| one.clock_rate.map_or(MISSING, i64::from)));
        table.count("packets", streams.iter().map(|one| one.packets));
        table.whole("expected", streams.iter().map(Stream::expected));
        table.whole("lost", streams.iter().map(Stream::lost));
        table.count("duplicates", streams.iter().map(|one| one.duplicates));
        table.count("late", streams.iter().map(|one| one.late));
        table.count("sequence_errors", streams.iter().map(|one| one.sequence_errors));
        table.count("wrong_timestamps", streams.iter().map(|one| one.wrong_timestamps));
        table.whole("start_ns", streams.iter().map(|one| one.first_ns));
        table.whole("duration_ns", streams.iter().map(|one| one.last_ns.saturating_sub(one.first_ns)));
        // Of a single packet, and where only packets with the marker followed, there is no interval to speak of.
        let measured = |value: f64, one: &Stream| if one.delta.least.is_nan() { f64::NAN } else { value };
        table.real("min_delta_ms", streams.iter().map(|one| one.delta.least));
        table.real("mean_delta_ms", streams.iter().map(|one| measured(one.delta.mean, one)));
        table.real("max_delta_ms", streams.iter().map(|one| one.delta.most));
        let jittered = |value: f64, one: &Stream| if one.jitter.least.is_nan() { f64::NAN } else { value };
        table.real("min_jitter_ms", streams.iter().map(|one| one.jitter.least));
        table.real("mean_jitter_ms", streams.iter().map(|one| jittered(one.jitter.mean, one)));
        table.real("max_jitter_ms", streams.iter().map(|one| one.jitter.most));
        table.real(
            "max_skew_ms",
            streams.iter().map(|one| if one.clock_rate.is_some() { one.max_skew_ms } else { f64::NAN }),
        );
        table.real("mean_bandwidth_kbps", streams.iter().map(Stream::mean_bandwidth_kbps));
        table.real("max_bandwidth_kbps", streams.iter().map(|one| one.max_bandwidth_kbps));
        table.count("first_packet", streams.iter().map(|one| one.first_packet));
        table.text("notes", streams.iter().map(|one| one.remarks().join("; ")));
        table
    }

    fn tcp_table(&self) -> Table {
        let rows: Vec<(&Connection, usize)> =
            self.connections.iter().flat_map(|connection| [(connection, 0), (connection, 1)]).collect();
        let end = |&(connection, direction): &(&Connection, usize)| {
            let conversation = &self.conversations.all[connection.conversation];
            let end = if direction == 0 { conversation.a } else { conversation.b };
            (address(conversation.v6, end.0).to_string(), i64::from(end.1))
        };
        let other = |&(connection, direction): &(&Connection, usize)| end(&(connection, 1 - direction));
        let of = |row: &(&Connection, usize)| &self.conversations.all[row.0.conversation];
        let milliseconds = |ns: i64| if ns == MISSING { f64::NAN } else { ns as f64 / 1e6 };
        let mut table = Table::default();
        table.count("conversation", rows.iter().map(|row| row.0.conversation as u64));
        table.text("source_address", rows.iter().map(|row| end(row).0));
        table.whole("source_port", rows.iter().map(|row| end(row).1));
        table.text("destination_address", rows.iter().map(|row| other(row).0));
        table.whole("destination_port", rows.iter().map(|row| other(row).1));
        table.count("packets", rows.iter().map(|row| of(row).packets[row.1]));
        table.count("payload_bytes", rows.iter().map(|row| of(row).payload[row.1]));
        table.real("syn_to_synack_ms", rows.iter().map(|row| milliseconds(row.0.handshake_ns().0)));
        table.real("synack_to_ack_ms", rows.iter().map(|row| milliseconds(row.0.handshake_ns().1)));
        let trips = |row: &(&Connection, usize)| row.0.round_trips(row.1);
        let some = |row: &(&Connection, usize), ns: i64| if trips(row).count > 0 { ns as f64 / 1e6 } else { f64::NAN };
        table.count("round_trips", rows.iter().map(|row| trips(row).count));
        table.real("min_round_trip_ms", rows.iter().map(|row| some(row, trips(row).least)));
        table.real("mean_round_trip_ms", rows.iter().map(|row| trips(row).mean() / 1e6));
        table.real("max_round_trip_ms", rows.iter().map(|row| some(row, trips(row).most)));
        let counts = |row: &(&Connection, usize)| row.0.counts(row.1);
        table.count("retransmissions", rows.iter().map(|row| counts(row).retransmissions));
        table.count("fast_retransmissions", rows.iter().map(|row| counts(row).fast_retransmissions));
        table.count("spurious_retransmissions", rows.iter().map(|row| counts(row).spurious_retransmissions));
        table.count("out_of_order", rows.iter().map(|row| counts(row).out_of_order));
        table.count("gaps", rows.iter().map(|row| counts(row).gaps));
        table.count("duplicate_acks", rows.iter().map(|row| counts(row).duplicate_acks));
        table.count("zero_windows", rows.iter().map(|row| counts(row).zero_windows));
        table.count("keep_alives", rows.iter().map(|row| counts(row).keep_alives));
        table.text("notes", rows.iter().map(|row| row.0.remarks().join("; ")));
        table
    }
}

fn rtp_packet_table(kept: Option<&RtpPackets>) -> Table {
    let mut table = Table::default();
    let Some(RtpPackets { rows, .. }) = kept else { return table };
    table.count("stream", rows.iter().map(|row| u64::from(row.0)));
    table.count("packet", rows.iter().map(|row| row.1));
    table.whole("time_ns", rows.iter().map(|row| row.2));
    table.whole("sequence", rows.iter().map(|row| i64::from(row.3)));
    table.real("delta_ms", rows.iter().map(|row| row.5.delta_ms));
    table.real("jitter_ms", rows.iter().map(|row| row.5.jitter_ms));
    table.real("skew_ms", rows.iter().map(|row| row.5.skew_ms));
    table.real("bandwidth_kbps", rows.iter().map(|row| row.5.bandwidth_kbps));
    table.whole("marker", rows.iter().map(|row| i64::from(row.4)));
    table.whole("sequence_error", rows.iter().map(|row| i64::from(row.5.sequence_error)));
    table
}

impl Whole {
    fn table(&self, form: &str, ending: &Ending) -> Table {
        use std::iter::once;
        let mut table = Table::default();
        table.text("form", once(form.to_owned()));
        table.count("packets", once(self.packets));
        table.count("bytes", once(self.bytes));
        table.whole("start_ns", once(self.first_ns.unwrap_or(MISSING)));
        table.whole("duration_ns", once(self.first_ns.map_or(MISSING, |first| self.last_ns.saturating_sub(first))));
        table.count("not_ip_packets", once(self.not_ip));
        table.count("steps_back", once(self.steps_back));
        table.whole("whole", once(i64::from(*ending == Ending::Whole)));
        table
    }
}
