//! One RTP stream, measured as Wireshark's stream analysis measures it, so that the numbers can be compared.
//!
//! Some of Wireshark's numbers depend on the order in which late packets come, ours do not: see
//! docs/reference/capture-columns.md.

use std::collections::VecDeque;

use crate::rtp_payload::{payload_name, static_clock_rate};
use twinnet_packet::rtp::Header;

/// Sequence numbers back in which a packet seen twice is known as such.
const WINDOW: i64 = 1024;
/// A jump of sequence numbers beyond this is no ordinary loss (RFC 3550, `MAX_DROPOUT`).
const JUMP: i64 = 3000;
/// Packets of the last second that are held for the bandwidth.
const MOST_HELD: usize = 1 << 18;
const SECOND_NS: i64 = 1_000_000_000;
const COMFORT_NOISE: [u8; 2] = [13, 19];

/// The known facts of a packet beside its RTP header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    pub(crate) time_ns: i64,
    /// IP header, UDP header and RTP, as Wireshark counts them: 28 (IPv6: 48) bytes and the payload of UDP.
    pub(crate) bytes: u32,
}

/// Running minimum, maximum and Wireshark's mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) least: f64,
    pub(crate) mean: f64,
    pub(crate) most: f64,
}

impl Extent {
    const NONE: Self = Self { least: f64::NAN, mean: 0.0, most: f64::NAN };

    /// Takes in a value, `before` values having gone before it, skipped ones too: those count as the mean.
    fn add(&mut self, value: f64, before: f64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.mean = (self.mean * (before - 1.0) + value) / before;
    }
}

/// One packet's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) delta_ms: f64,
    pub(crate) jitter_ms: f64,
    pub(crate) skew_ms: f64,
    pub(crate) bandwidth_kbps: f64,
    pub(crate) sequence_error: bool,
}

/// A stream: one synchronisation source from one port to another.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) conversation: usize,
    pub(crate) direction: usize,
    pub(crate) source: u32,
    pub(crate) payload_types: Vec<u8>,
    pub(crate) clock_rate: Option<u32>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) first_packet: u64,
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    pub(crate) duplicates: u64,
    pub(crate) late: u64,
    pub(crate) sequence_errors: u64,
    pub(crate) wrong_timestamps: u64,
    pub(crate) delta: Extent,
    pub(crate) jitter: Extent,
    pub(crate) max_skew_ms: f64,
    pub(crate) max_bandwidth_kbps: f64,
    pub(crate) jumps: u64,
    pub(crate) steps_back: u64,
    pub(crate) cut_bandwidth: bool,
    rate_changed: bool,
    lowest: i64,
    highest: i64,
    expected_next: u16,
    seen: [u64; (WINDOW / 64) as usize],
    first_timestamp: i64,
    timestamp: i64,
    latest_timestamp: i64,
    previous_ns: i64,
    payload_type: u8,
    current_jitter_ms: f64,
    held: VecDeque<(i64, u32)>,
    held_bytes: u64,
}

impl Stream {
    /// A stream that begins with a packet.
    pub(crate) fn begin(place: (usize, usize), header: &Header, arrival: &Arrival, rates: &[Option<u32>; 128]) -> Self {
        let sequence = i64::from(header.sequence);
        let mut stream = Self {
            conversation: place.0,
            direction: place.1,
            source: header.source,
            payload_types: vec![header.payload_type],
            clock_rate: clock_rate(header.payload_type, rates),
            packets: 1,
            bytes: u64::from(arrival.bytes),
            first_packet: arrival.number,
            first_ns: arrival.time_ns,
            last_ns: arrival.time_ns,
            duplicates: 0,
            late: 0,
            sequence_errors: 0,
            wrong_timestamps: 0,
            delta: Extent::NONE,
            jitter: Extent::NONE,
            max_skew_ms: 0.0,
            max_bandwidth_kbps: 0.0,
            jumps: 0,
            steps_back: 0,
            cut_bandwidth: false,
            rate_changed: false,
            lowest: sequence,
            highest: sequence,
            expected_next: header.sequence.wrapping_add(1),
            seen: [0; (WINDOW / 64) as usize],
            first_timestamp: i64::from(header.timestamp),
            timestamp: i64::from(header.timestamp),
            latest_timestamp: i64::from(header.timestamp),
            previous_ns: arrival.time_ns,
            payload_type: header.payload_type,
            current_jitter_ms: 0.0,
            held: VecDeque::new(),
            held_bytes: 0,
        };
        stream.mark(sequence);
        stream.max_bandwidth_kbps = stream.bandwidth(arrival);
        stream
    }

    /// Returns what the first packet shows.
    pub(crate) fn first_measured(&self) -> Measured {
        let jitter_ms = if self.clock_rate.is_some() { 0.0 } else { f64::NAN };
        Measured {
            delta_ms: 0.0,
            jitter_ms,
            skew_ms: jitter_ms,
            bandwidth_kbps: self.max_bandwidth_kbps,
            sequence_error: false,
        }
    }

    /// Takes in the next packet.
    pub(crate) fn add(&mut self, header: &Header, arrival: &Arrival, rates: &[Option<u32>; 128]) -> Measured {
        // A wrapped time stamp goes on where the one before it ended.
        self.latest_timestamp += i64::from(header.timestamp.wrapping_sub(self.latest_timestamp as u32) as i32);
        let timestamp = self.latest_timestamp;
        // As in Wireshark 4.0, and in RFC 3550: late packets count in the order in which they arrive, those from
        // before the first do not.
        let in_time = timestamp >= self.first_timestamp;
        let sequence_error = self.sequence(header.sequence, in_time);
        let follows_noise = COMFORT_NOISE.contains(&self.payload_type);
        if header.payload_type != self.payload_type {
            self.change_payload(header.payload_type, rates);
        }
        let before = self.packets as f64;
        let delta_ms = milliseconds(arrival.time_ns, self.previous_ns);
        if arrival.time_ns < self.last_ns {
            self.steps_back += 1;
        }
        let skew_ms = if in_time { self.jitter_and_skew(timestamp, delta_ms, arrival.time_ns) } else { f64::NAN };
        let bandwidth_kbps = self.bandwidth(arrival);
        self.max_bandwidth_kbps = self.max_bandwidth_kbps.max(bandwidth_kbps);
        let noise = follows_noise || COMFORT_NOISE.contains(&header.payload_type);
        if !header.marker && !noise && in_time {
            self.delta.add(delta_ms, before);
            if self.clock_rate.is_some() {
                self.jitter.add(self.current_jitter_ms, before);
            }
        }
        self.wrong_timestamps += u64::from(timestamp < self.timestamp);
        if in_time {
            self.previous_ns = arrival.time_ns;
            self.timestamp = timestamp;
        }
        self.packets += 1;
        self.bytes += u64::from(arrival.bytes);
        self.first_ns = self.first_ns.min(arrival.time_ns);
        self.last_ns = self.last_ns.max(arrival.time_ns);
        let jitter_ms = if self.clock_rate.is_some() { self.current_jitter_ms } else { f64::NAN };
        Measured { delta_ms, jitter_ms, skew_ms, bandwidth_kbps, sequence_error }
    }

    /// Follows the sequence numbers; says whether this one is not the next.
    fn sequence(&mut self, sequence: u16, in_time: bool) -> bool {
        let step = i64::from(sequence.wrapping_sub(self.highest as u16) as i16);
        let extended = self.highest + step;
        if step.abs() > JUMP {
            self.jumps += 1;
        }
        if step > 0 {
            for passed in (self.highest + 1..=extended).rev().take(WINDOW as usize) {
                self.unmark(passed);
            }
            self.highest = extended;
            self.mark(extended);
        } else if step > -WINDOW && self.is_marked(extended) {
            self.duplicates += 1;
        } else {
            self.late += 1;
            self.mark(extended);
        }
        self.lowest = self.lowest.min(extended);
        // Wireshark's rule: ahead of the expected number means loss, and the count goes on from there; behind it
        // means late or twice.
        let ahead = sequence.wrapping_sub(self.expected_next);
        let error = if ahead == 0 {
            false
        } else if ahead < 0x8000 {
            in_time
        } else {
            true
        };
        if in_time && ahead < 0x8000 {
            self.expected_next = sequence.wrapping_add(1);
        }
        self.sequence_errors += u64::from(error);
        error
    }

    fn slot(extended: i64) -> (usize, u64) {
        let bit = extended.rem_euclid(WINDOW) as usize;
        (bit / 64, 1 << (bit % 64))
    }

    fn mark(&mut self, extended: i64) {
        let (word, bit) = Self::slot(extended);
        self.seen[word] |= bit;
    }

    fn unmark(&mut self, extended: i64) {
        let (word, bit) = Self::slot(extended);
        self.seen[word] &= !bit;
    }

    fn is_marked(&self, extended: i64) -> bool {
        let (word, bit) = Self::slot(extended);
        self.seen[word] & bit != 0
    }

    fn change_payload(&mut self, payload_type: u8, rates: &[Option<u32>; 128]) {
        self.payload_type = payload_type;
        if !self.payload_types.contains(&payload_type) {
            self.payload_types.push(payload_type);
        }
        let rate = clock_rate(payload_type, rates);
        self.rate_changed |= rate.is_some() && self.clock_rate.is_some() && rate != self.clock_rate;
        self.clock_rate = rate.or(self.clock_rate);
    }

    /// RFC 3550, section 6.4.1 (jitter) and what Wireshark calls skew: how far the media clock is ahead of the
    /// arrivals.
    fn jitter_and_skew(&mut self, timestamp: i64, delta_ms: f64, time_ns: i64) -> f64 {
        let Some(rate) = self.clock_rate else { return f64::NAN };
        let per_ms = f64::from(rate) / 1000.0;
        let difference = (delta_ms - (timestamp - self.timestamp) as f64 / per_ms).abs();
        self.current_jitter_ms = (15.0 * self.current_jitter_ms + difference) / 16.0;
        let skew = (timestamp - self.first_timestamp) as f64 / per_ms - milliseconds(time_ns, self.first_ns);
        if skew.abs() > self.max_skew_ms.abs() {
            self.max_skew_ms = skew;
        }
        skew
    }

    /// Kilobits at the IP layer in the second that ends now.
    fn bandwidth(&mut self, arrival: &Arrival) -> f64 {
        while self.held.front().is_some_and(|&(time, _)| time.saturating_add(SECOND_NS) < arrival.time_ns) {
            let (_, bytes) = self.held.pop_front().unwrap_or_default();
            self.held_bytes -= u64::from(bytes);
        }
        if self.held.len() >= MOST_HELD {
            let (_, bytes) = self.held.pop_front().unwrap_or_default();
            self.held_bytes -= u64::from(bytes);
            self.cut_bandwidth = true;
        }
        self.held.push_back((arrival.time_ns, arrival.bytes));
        self.held_bytes += u64::from(arrival.bytes);
        self.held_bytes as f64 * 8.0 / 1000.0
    }

    /// Packets that should be there, from the lowest to the highest sequence number.
    pub(crate) fn expected(&self) -> i64 {
        self.highest - self.lowest + 1
    }

    /// Packets that are missing of those.
    pub(crate) fn lost(&self) -> i64 {
        self.expected() - (self.packets - self.duplicates) as i64
    }

    /// Mean rate at the IP layer over the stream's time, in kbit/s.
    pub(crate) fn mean_bandwidth_kbps(&self) -> f64 {
        let duration_ns = self.last_ns.saturating_sub(self.first_ns);
        if duration_ns > 0 {
            self.bytes as f64 * 8e6 / duration_ns as f64
        } else {
            f64::NAN
        }
    }

    /// Names of the payload types, in the order they came.
    pub(crate) fn payload_names(&self) -> String {
        self.payload_types.iter().map(|&one| payload_name(one)).collect::<Vec<_>>().join(", ")
    }

    /// Returns what a reader of the numbers must know.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.clock_rate.is_none() {
            let payload = self.payload_types[0];
            remarks.push(format!(
                "payload type {payload} has no clock rate of its own: no jitter and skew; give it with --clock-rate \
                 {payload}=HERTZ"
            ));
        }
        if self.rate_changed {
            remarks.push("the clock rate changes with the payload type: jitter and skew are not reliable".to_owned());
        }
        if self.jumps > 0 {
            remarks.push(format!(
                "the sequence number jumps by more than {JUMP}, {} times: the sender began anew, or a long gap; all \
                 of it counts as lost",
                self.jumps
            ));
        }
        if self.lost() < 0 {
            remarks.push("packets came twice, further apart than can be told: fewer are lost than none".to_owned());
        }
        if self.steps_back > 0 {
            remarks.push(format!(
                "the capture's clock steps back {} times: delta, jitter and skew are not reliable",
                self.steps_back
            ));
        }
        if self.cut_bandwidth {
            remarks.push(format!("more than {MOST_HELD} packets in a second: the bandwidth counts only so many"));
        }
        remarks
    }
}

fn clock_rate(payload_type: u8, rates: &[Option<u32>; 128]) -> Option<u32> {
    rates[usize::from(payload_type & 0x7f)].or_else(|| static_clock_rate(payload_type))
}

fn milliseconds(later_ns: i64, earlier_ns: i64) -> f64 {
    later_ns.saturating_sub(earlier_ns) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [Option<u32>; 128] = [None; 128];

    fn header(sequence: u16, timestamp: u32) -> Header {
        Header { payload_type: 33, sequence, timestamp, source: 1, ..Header::default() }
    }

    fn stream(packets: &[(u16, u32, i64)]) -> Stream {
        let arrival = |&(_, _, time_us): &(u16, u32, i64)| Arrival { number: 1, time_ns: time_us * 1000, bytes: 1000 };
        let first = &packets[0];
        let mut stream = Stream::begin((0, 0), &header(first.0, first.1), &arrival(first), &RATES);
        for packet in &packets[1..] {
            stream.add(&header(packet.0, packet.1), &arrival(packet), &RATES);
        }
        stream
    }

    #[test]
    fn jitter_follows_the_rfc() {
        // 10 ms apart by the media clock, 10 and 14 ms by arrival.
        let one = stream(&[(1, 0, 0), (2, 900, 10_000), (3, 1800, 24_000)]);
        assert!((one.jitter.most - 4.0 / 16.0).abs() < 1e-12);
        assert!((one.delta.most - 14.0).abs() < 1e-12 && (one.delta.mean - 12.0).abs() < 1e-12);
        assert!((one.max_skew_ms + 4.0).abs() < 1e-12);
        assert_eq!((one.lost(), one.sequence_errors), (0, 0));
    }

    #[test]
    fn sequence_numbers_and_time_stamps_wrap() {
        let one = stream(&[(65_534, u32::MAX - 899, 0), (65_535, 0, 10_000), (0, 900, 20_000), (2, 2700, 40_000)]);
        assert_eq!((one.expected(), one.lost(), one.sequence_errors, one.wrong_timestamps), (5, 1, 1, 0));
        assert!(one.jitter.most < 1e-9);
    }

    #[test]
    fn duplicates_and_late_packets_do_not_hide_losses() {
        let one = stream(&[
            (10, 0, 0),
            (11, 900, 10_000),
            (11, 900, 10_100),
            (13, 2700, 30_000),
            (12, 1800, 30_500),
            (15, 4500, 50_000),
        ]);
        assert_eq!((one.expected(), one.lost(), one.duplicates, one.late), (6, 1, 1, 1));
        assert_eq!((one.sequence_errors, one.wrong_timestamps), (4, 1));
    }

    #[test]
    fn the_bandwidth_is_that_of_the_last_second() {
        let packets: Vec<_> = (0..30).map(|index| (index as u16, index * 9000, i64::from(index) * 100_000)).collect();
        // A packet exactly a second old still counts, as in Wireshark: eleven packets.
        assert!((stream(&packets).max_bandwidth_kbps - 11.0 * 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_loss_leaves_no_old_marks() {
        let one = stream(&[(0, 0, 0), (1, 1, 1), (2000, 2, 2), (1999, 3, 3), (1025, 4, 4)]);
        assert_eq!((one.duplicates, one.late, one.lost()), (0, 2, 2001 - 5));
    }
}
