//! One TCP connection as seen from where the capture stood: round trips, retransmissions, reordering, duplicate
//! acknowledgements, windows.
//!
//! The kinds of segments follow Wireshark's sequence analysis, so that the counts can be compared.

use std::collections::VecDeque;

use crate::table::MISSING;

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// Segments in flight whose acknowledgement is awaited.
const MOST_AWAITED: usize = 4096;
/// A segment that comes this soon after the one that it should precede is out of order, not sent again, where no
/// round trip is known.
const REORDERING_NS: i64 = 3_000_000;
/// A segment that answers duplicate acknowledgements within this was retransmitted fast.
const FAST_NS: i64 = 20_000_000;

/// The fields of a segment that matter here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) payload: u32,
    pub(crate) time_ns: i64,
}

/// Round trips in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrips {
    pub(crate) count: u64,
    pub(crate) least: i64,
    pub(crate) most: i64,
    sum: i128,
}

impl RoundTrips {
    fn add(&mut self, time: i64) {
        self.least = if self.count == 0 { time } else { self.least.min(time) };
        self.most = self.most.max(time);
        self.sum += i128::from(time);
        self.count += 1;
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.count == 0 {
            f64::NAN
        } else {
            self.sum as f64 / self.count as f64
        }
    }
}

/// The counters of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) retransmissions: u64,
    pub(crate) fast_retransmissions: u64,
    pub(crate) spurious_retransmissions: u64,
    pub(crate) out_of_order: u64,
    pub(crate) gaps: u64,
    pub(crate) duplicate_acks: u64,
    pub(crate) zero_windows: u64,
    pub(crate) keep_alives: u64,
}

/// The data that one end has sent.
#[derive(Clone, Debug, Default)]
struct Side {
    first: Option<u32>,
    next: Option<u32>,
    next_ns: i64,
    acknowledged: Option<u32>,
    acknowledged_ns: i64,
    window: Option<u16>,
    duplicates: u32,
    keep_alive: bool,
    zero_window_probe: bool,
    over: bool,
    awaited: VecDeque<(u32, i64)>,
    counts: Counts,
    round_trips: RoundTrips,
}

/// A connection; sides as in its conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    pub(crate) conversation: usize,
    sides: [Side; 2],
    syn: Option<(usize, i64)>,
    syn_ack_ns: Option<i64>,
    syn_repeated: bool,
    handshake: Option<(i64, i64)>,
    pub(crate) steps_back: u64,
    last_ns: Option<i64>,
}

/// Returns `true` if `a` comes after `b`, with wrapping.
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Connection {
    pub(crate) fn new(conversation: usize) -> Self {
        Self { conversation, ..Self::default() }
    }

    /// Returns `true` if a segment begins another connection on the same ports.
    pub(crate) fn is_renewed_by(&self, direction: usize, segment: &Segment) -> bool {
        segment.flags & (SYN | ACK) == SYN
            && self.sides[direction]
                .first
                .is_some_and(|first| first != segment.sequence || self.sides[0].over || self.sides[1].over)
    }

    /// Takes in a segment sent by side `direction`.
    pub(crate) fn add(&mut self, direction: usize, segment: &Segment) {
        if self.last_ns.is_some_and(|last| segment.time_ns < last) {
            self.steps_back += 1;
        }
        self.last_ns = Some(segment.time_ns);
        self.follow_handshake(direction, segment);
        let first_round_trip = self.handshake.map(|(there, back)| there.saturating_add(back));
        let [low, high] = &mut self.sides;
        let (own, other) = if direction == 0 { (low, high) } else { (high, low) };
        let had_probe = own.zero_window_probe;
        let (keep_alive, probe) = (own.is_keep_alive(segment), own.is_probe(other, segment));
        own.classify_ack(other, segment, keep_alive, probe);
        if !keep_alive {
            own.classify_data(other, segment, first_round_trip.unwrap_or(REORDERING_NS), had_probe);
        }
        own.advance(segment, probe);
        (own.keep_alive, own.zero_window_probe) = (keep_alive, probe);
        if segment.flags & ACK != 0 {
            other.take_acknowledgement(segment);
        }
        own.over |= segment.flags & (FIN | RST) != 0;
    }

    fn follow_handshake(&mut self, direction: usize, segment: &Segment) {
        match (segment.flags & (SYN | ACK | RST), self.syn) {
            (SYN, None) => self.syn = Some((direction, segment.time_ns)),
            // Which of two was answered cannot be told (Karn and Partridge 1987).
            (SYN, Some(_)) => self.syn_repeated = true,
            (flags, Some((side, _))) if flags == SYN | ACK && side != direction => {
                self.syn_repeated |= self.syn_ack_ns.is_some();
                self.syn_ack_ns = Some(segment.time_ns);
            }
            (ACK, Some((side, syn_ns))) if side == direction && self.handshake.is_none() && !self.syn_repeated => {
                if let Some(syn_ack_ns) = self.syn_ack_ns {
                    self.handshake =
                        Some((syn_ack_ns.saturating_sub(syn_ns), segment.time_ns.saturating_sub(syn_ack_ns)));
                }
            }
            _ => {}
        }
    }

    /// From SYN to SYN/ACK and from there to its acknowledgement, in nanoseconds.
    pub(crate) fn handshake_ns(&self) -> (i64, i64) {
        self.handshake.unwrap_or((MISSING, MISSING))
    }

    pub(crate) fn counts(&self, direction: usize) -> Counts {
        self.sides[direction].counts
    }

    pub(crate) fn round_trips(&self, direction: usize) -> RoundTrips {
        self.sides[direction].round_trips
    }

    /// Returns what a reader of the numbers must know.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.syn.is_none() {
            remarks.push("the capture begins after the handshake: no round trip of it".to_owned());
        } else if self.syn_repeated {
            remarks.push("the handshake was repeated: which try was answered cannot be told".to_owned());
        }
        if self.sides.iter().any(|side| side.next.is_none()) {
            remarks.push("only one direction was captured".to_owned());
        }
        if self.steps_back > 0 {
            remarks.push(format!(
                "the capture's clock steps back {} times: round trips are not reliable",
                self.steps_back
            ));
        }
        remarks
    }
}

impl Side {
    fn is_control(segment: &Segment) -> bool {
        segment.flags & (SYN | FIN | RST) != 0
    }

    fn is_keep_alive(&self, segment: &Segment) -> bool {
        segment.payload <= 1
            && !Self::is_control(segment)
            && self.next.is_some_and(|next| next.wrapping_sub(1) == segment.sequence)
    }

    fn is_probe(&self, other: &Self, segment: &Segment) -> bool {
        segment.payload == 1 && self.next == Some(segment.sequence) && other.window == Some(0)
    }

    /// Counts what the segment says as an acknowledgement.
    fn classify_ack(&mut self, other: &Self, segment: &Segment, keep_alive: bool, probe: bool) {
        if probe {
            return;
        }
        if segment.window == 0 && !Self::is_control(segment) {
            self.counts.zero_windows += 1;
        }
        if keep_alive {
            self.counts.keep_alives += 1;
        }
        let beyond = self.next.is_some_and(|next| after(segment.sequence, next));
        if beyond && segment.flags & RST == 0 {
            self.counts.gaps += 1;
        }
        let repeats = segment.payload == 0
            && !Self::is_control(segment)
            && self.window == Some(segment.window)
            && self.next == Some(segment.sequence)
            && self.acknowledged == Some(segment.acknowledgement);
        let answers_probe = other.keep_alive || segment.window == 0;
        if repeats && !answers_probe {
            self.counts.duplicate_acks += 1;
            self.duplicates += 1;
        }
    }

    /// Counts data that does not go on where the data before it ended.
    fn classify_data(&mut self, other: &Self, segment: &Segment, reordering_ns: i64, had_probe: bool) {
        let control = segment.flags & (SYN | FIN) != 0;
        let Some(next) = self.next else { return };
        if segment.payload == 0 && !control {
            return;
        }
        let probed = segment.payload > 1 && next.wrapping_sub(1) == segment.sequence && had_probe;
        let behind = after(next, segment.sequence) && !probed;
        let end = segment.sequence.wrapping_add(segment.payload).wrapping_add(u32::from(control));
        if segment.payload > 0
            && other.acknowledged.is_some_and(|seen| !after(segment.sequence.wrapping_add(segment.payload), seen))
        {
            self.counts.spurious_retransmissions += 1;
        } else if behind {
            let answers = other.duplicates >= 2 && other.acknowledged == Some(segment.sequence);
            if answers && segment.time_ns.saturating_sub(other.acknowledged_ns) < FAST_NS {
                self.counts.fast_retransmissions += 1;
            } else if segment.time_ns.saturating_sub(self.next_ns) < reordering_ns && end != next {
                self.counts.out_of_order += 1;
                return;
            } else {
                self.counts.retransmissions += 1;
            }
        } else {
            return;
        }
        // Which copy an acknowledgement answers cannot be told (Karn and Partridge 1987).
        self.awaited.retain(|&(until, _)| !after(until, segment.sequence));
    }

    fn advance(&mut self, segment: &Segment, probe: bool) {
        self.first.get_or_insert(segment.sequence);
        let control = segment.flags & (SYN | FIN) != 0;
        let end = segment.sequence.wrapping_add(segment.payload).wrapping_add(u32::from(control));
        let advances = self.next.is_none_or(|next| after(end, next));
        if advances && !probe {
            if self.next.is_none_or(|next| !after(next, segment.sequence))
                && (segment.payload > 0 || control)
                && self.awaited.len() < MOST_AWAITED
            {
                self.awaited.push_back((end, segment.time_ns));
            }
            self.next = Some(end);
            self.next_ns = segment.time_ns;
        }
        if segment.flags & ACK != 0 {
            if self.acknowledged != Some(segment.acknowledgement) {
                self.duplicates = 0;
            }
            self.acknowledged = Some(segment.acknowledgement);
            self.acknowledged_ns = segment.time_ns;
        }
        self.window = Some(segment.window);
    }

    /// The other end acknowledges what this one has sent.
    fn take_acknowledgement(&mut self, segment: &Segment) {
        while let Some(&(until, sent_ns)) = self.awaited.front() {
            if after(until, segment.acknowledgement) {
                break;
            }
            self.awaited.pop_front();
            if until == segment.acknowledgement {
                self.round_trips.add(segment.time_ns.saturating_sub(sent_ns));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn segment(flags: u8, sequence: u32, acknowledgement: u32, payload: u32, time_ms: i64) -> Segment {
        Segment { sequence, acknowledgement, flags, window: 500, payload, time_ns: time_ms * MS }
    }

    fn opened() -> Connection {
        let mut connection = Connection::new(0);
        connection.add(0, &segment(SYN, u32::MAX, 0, 0, 0));
        connection.add(1, &segment(SYN | ACK, 70, 0, 0, 9));
        connection.add(0, &segment(ACK, 0, 71, 0, 10));
        connection
    }

    #[test]
    fn the_handshake_and_data_give_round_trips_across_the_wrap() {
        let mut connection = opened();
        assert_eq!(connection.handshake_ns(), (9 * MS, MS));
        connection.add(0, &segment(ACK, 0, 71, 100, 20));
        connection.add(1, &segment(ACK, 71, 100, 0, 32));
        let trips = connection.round_trips(0);
        // The SYN's own round trip is one of them.
        assert_eq!((trips.count, trips.least, trips.most), (2, 9 * MS, 12 * MS));
        assert!(connection.remarks().is_empty());
    }

    #[test]
    fn a_loss_shows_as_duplicate_acknowledgements_and_a_fast_retransmission() {
        let mut connection = opened();
        connection.add(0, &segment(ACK, 0, 71, 100, 20));
        for (index, time) in (2..5).zip(21..) {
            connection.add(0, &segment(ACK, index * 100, 71, 100, time));
        }
        connection.add(1, &segment(ACK, 71, 100, 0, 30));
        for time in 31..34 {
            connection.add(1, &segment(ACK, 71, 100, 0, time));
        }
        connection.add(0, &segment(ACK, 100, 71, 100, 40));
        let (data, answers) = (connection.counts(0), connection.counts(1));
        assert_eq!((data.gaps, data.fast_retransmissions, data.retransmissions, data.out_of_order), (1, 1, 0, 0));
        assert_eq!(answers.duplicate_acks, 3);
    }

    #[test]
    fn late_data_is_told_from_data_sent_again() {
        let mut connection = opened();
        connection.add(0, &segment(ACK, 100, 71, 100, 20));
        connection.add(0, &segment(ACK, 0, 71, 100, 21));
        connection.add(0, &segment(ACK, 200, 71, 100, 22));
        connection.add(0, &segment(ACK, 200, 71, 100, 400));
        let counts = connection.counts(0);
        assert_eq!((counts.gaps, counts.out_of_order, counts.retransmissions), (1, 1, 1));
        connection.add(1, &segment(ACK, 71, 300, 0, 410));
        assert_eq!(connection.round_trips(0).count, 1, "only that of the SYN: an answer to two copies says nothing");
    }

    #[test]
    fn a_closed_window_and_keep_alives_are_no_losses() {
        let mut connection = opened();
        connection.add(0, &segment(ACK, 0, 71, 100, 20));
        connection.add(1, &Segment { window: 0, ..segment(ACK, 71, 100, 0, 21) });
        connection.add(0, &segment(ACK, 99, 71, 0, 500));
        connection.add(1, &Segment { window: 0, ..segment(ACK, 71, 100, 0, 501) });
        let (data, answers) = (connection.counts(0), connection.counts(1));
        assert_eq!(
            (data.keep_alives, data.retransmissions, answers.duplicate_acks, answers.zero_windows),
            (1, 0, 0, 2)
        );
    }

    #[test]
    fn used_ports_are_known_by_another_syn() {
        let connection = opened();
        assert!(!connection.is_renewed_by(0, &segment(SYN, u32::MAX, 0, 0, 50)));
        assert!(connection.is_renewed_by(0, &segment(SYN, 5, 0, 0, 50)));
        assert!(!connection.is_renewed_by(1, &segment(SYN | ACK, 9, 0, 0, 50)));
    }
}
