//! The scoreboard: every segment that was sent and is not acknowledged, and what is known of it (RFC 6675, 3).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use twinnet_units::{impossible, Time};

use super::delivery_rate::Stamp;

/// SACK blocks that one segment carries.
const BLOCKS: usize = twinnet_packet::tcp::SACK_BLOCKS;

/// The peer has it, out of order.
const SACKED: u8 = 1;
/// Thought lost.
const LOST: u8 = 2;
/// Sent again, and that transmission is not known to be lost.
const RESENT: u8 = 4;
/// Sent again at some time.
const EVER_RESENT: u8 = 8;
/// It ends the stream.
const FIN: u8 = 16;

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its first sequence number.
    pub start: u64,
    /// Sequence numbers that it takes: its payload, and one for a FIN.
    pub length: u32,
    marks: u8,
    /// The number of the transmission of the connection, the last time that it was sent: later ones have higher
    /// numbers.
    pub serial: u64,
    /// The time when it was last sent.
    pub sent_at: Time,
    /// The values that the estimate of the delivery rate needs.
    pub stamp: Stamp,
}

impl Sent {
    /// The number after its last.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// Returns `true` if it was sent more than once.
    pub fn was_retransmitted(&self) -> bool {
        self.marks & EVER_RESENT != 0
    }

    /// Returns `true` if a retransmission of it is in flight.
    pub fn is_resent(&self) -> bool {
        self.marks & RESENT != 0
    }

    /// Returns `true` if the peer has it.
    pub fn is_sacked(&self) -> bool {
        self.marks & SACKED != 0
    }

    /// Returns `true` if it is thought lost.
    pub fn is_lost(&self) -> bool {
        self.marks & LOST != 0
    }

    /// Returns `true` if it ends the stream.
    pub fn has_fin(&self) -> bool {
        self.marks & FIN != 0
    }

    /// Its payload.
    pub fn payload(&self) -> u32 {
        self.length - u32::from(self.has_fin())
    }
}

/// The scoreboard.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    /// In the order of their sequence numbers, without gaps.
    segments: VecDeque<Sent>,
    /// Transmissions in the order of time, by number and sequence. Those that were answered, marked lost or
    /// repeated stay until they come to the front.
    by_time: VecDeque<(u64, u64)>,
    /// The sequence numbers of segments marked lost, lowest first. Those that are no longer to be sent again stay until
    /// they come to the top.
    lost_from: BinaryHeap<Reverse<u64>>,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Segments found lost so far.
    lost_total: u64,
    serial: u64,
    highest_sacked: u64,
    /// Blocks that have been taken in, so that a block that has grown costs only its growth.
    known: [Option<(u64, u64)>; BLOCKS],
}

impl Scoreboard {
    /// Segments that are not cumulatively acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Segments that the peer has out of order; estimated by duplicate acknowledgements where it does not tell.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments thought lost, those sent again included.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments sent again and not known to be lost again.
    pub fn resent(&self) -> u32 {
        self.resent
    }

    /// Segments found lost so far.
    pub fn lost_total(&self) -> u64 {
        self.lost_total
    }

    /// Segments in flight (RFC 6675's pipe).
    pub fn in_flight(&self) -> u32 {
        (self.outstanding() + self.resent).saturating_sub(self.sacked + self.lost)
    }

    /// The number after the highest that the peer has told to have, or 0.
    pub fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    /// The oldest segment.
    pub fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// The segment at `index`.
    pub fn get(&self, index: usize) -> Option<&Sent> {
        self.segments.get(index)
    }

    /// The index of the newest segment.
    pub fn last_index(&self) -> Option<usize> {
        self.segments.len().checked_sub(1)
    }

    /// The index of the segment that `sequence` lies in.
    fn index_of(&self, sequence: u64) -> Option<usize> {
        let after = self.segments.partition_point(|segment| segment.start <= sequence);
        let index = after.checked_sub(1)?;
        (sequence < self.segments[index].end()).then_some(index)
    }

    /// A new segment was sent.
    pub fn push(&mut self, start: u64, length: u32, fin: bool, stamp: Stamp, now: Time) {
        self.serial += 1;
        self.by_time.push_back((self.serial, start));
        let marks = if fin { FIN } else { 0 };
        self.segments.push_back(Sent { start, length, marks, serial: self.serial, sent_at: now, stamp });
    }

    /// The segment at `index` was sent again; `as_probe` when it was not thought lost.
    pub fn resend(&mut self, index: usize, as_probe: bool, stamp: Stamp, now: Time) {
        let Some(segment) = self.segments.get_mut(index) else {
            return impossible!("a segment is sent again that is not kept");
        };
        self.serial += 1;
        segment.serial = self.serial;
        segment.sent_at = now;
        segment.stamp = stamp;
        segment.marks |= EVER_RESENT;
        if !as_probe && segment.marks & RESENT == 0 {
            segment.marks |= RESENT;
            self.resent += 1;
        }
        self.by_time.push_back((self.serial, segment.start));
        self.settle();
    }

    /// Divides the segment at `index` after `length` sequence numbers, for the path has got narrower.
    pub fn split(&mut self, index: usize, length: u32) {
        let Some(segment) = self.segments.get_mut(index).filter(|segment| length > 0 && length < segment.length) else {
            return;
        };
        let mut rest = *segment;
        rest.start += u64::from(length);
        rest.length -= length;
        segment.length = length;
        segment.marks &= !FIN;
        self.sacked += u32::from(rest.is_sacked());
        self.resent += u32::from(rest.is_resent());
        self.lost += u32::from(rest.is_lost());
        if rest.is_lost() {
            self.lost_from.push(Reverse(rest.start));
        }
        self.segments.insert(index + 1, rest);
        // In the order of time it stands beside its front part: with a place of its own it could be sent before it.
        let place = self.by_time.partition_point(|(serial, _)| *serial <= rest.serial);
        self.by_time.insert(place, (rest.serial, rest.start));
    }

    /// Takes the first segment off, if all of it lies before `acknowledged`; cuts off its front if a part does.
    pub fn pop_acknowledged(&mut self, acknowledged: u64) -> Option<Sent> {
        let front = self.segments.front_mut()?;
        if front.end() > acknowledged {
            if acknowledged > front.start {
                let cut = (acknowledged - front.start) as u32;
                // Entries by the old start would no longer be found; they are found by any number inside the segment.
                front.start = acknowledged;
                front.length -= cut;
                let (serial, start, lost) = (front.serial, front.start, front.is_lost() && !front.is_resent());
                if lost {
                    self.lost_from.push(Reverse(start));
                }
                let place = self.by_time.partition_point(|(other, _)| *other < serial);
                self.by_time.insert(place, (serial, start));
            }
            return None;
        }
        let segment = self.segments.pop_front()?;
        self.sacked -= u32::from(segment.is_sacked());
        self.lost -= u32::from(segment.is_lost());
        self.resent -= u32::from(segment.is_resent());
        Some(segment)
    }

    /// Takes in a SACK block: `told` hears of each segment that it newly says the peer to have, as it was before,
    /// and of the highest number that it had before.
    pub fn select(&mut self, block: (u64, u64), mut told: impl FnMut(&Sent, u64)) {
        let mut at = block.0;
        let known = self.known;
        while at < block.1 {
            if let Some(covered) = known.iter().flatten().find(|known| known.0 <= at && at < known.1) {
                at = covered.1;
                continue;
            }
            let until = known.iter().flatten().map(|known| known.0).filter(|start| *start > at).min();
            let until = until.unwrap_or(u64::MAX).min(block.1);
            self.select_unknown(at, until, block, &mut told);
            at = until;
        }
    }

    /// Marks the segments that begin or end between `from` and `to` and lie within `block`.
    fn select_unknown(&mut self, from: u64, to: u64, block: (u64, u64), told: &mut impl FnMut(&Sent, u64)) {
        let first = self.segments.partition_point(|segment| segment.end() <= from);
        for segment in self.segments.range_mut(first..) {
            if segment.start >= to || segment.end() > block.1 {
                break;
            }
            if segment.start < block.0 || segment.is_sacked() {
                continue;
            }
            told(segment, self.highest_sacked);
            self.sacked += 1;
            self.lost -= u32::from(segment.is_lost());
            self.resent -= u32::from(segment.is_resent());
            segment.marks = segment.marks & !(LOST | RESENT) | SACKED;
            self.highest_sacked = self.highest_sacked.max(segment.end());
        }
    }

    /// Remembers the blocks of the segment whose blocks were just taken in.
    pub fn know(&mut self, blocks: [Option<(u64, u64)>; BLOCKS]) {
        self.known = blocks;
    }

    /// Returns `true` if the segment that `sequence` lies in is outstanding and was sent again.
    pub fn was_resent(&self, sequence: u64) -> bool {
        self.index_of(sequence).is_some_and(|index| self.segments[index].was_retransmitted())
    }

    /// The transmission that was sent first among those whose fate is open.
    pub fn oldest_transmission(&mut self) -> Option<(usize, Sent)> {
        while let Some(&(serial, start)) = self.by_time.front() {
            if let Some(index) = self.index_of(start) {
                let segment = self.segments[index];
                let open = !segment.is_sacked() && (!segment.is_lost() || segment.is_resent());
                if segment.serial == serial && segment.start == start && open {
                    return Some((index, segment));
                }
            }
            self.by_time.pop_front();
        }
        None
    }

    /// The segment at `index`, or its retransmission, is thought lost.
    pub fn mark_lost(&mut self, index: usize) {
        let Some(segment) = self.segments.get_mut(index) else {
            return impossible!("a segment is lost that is not kept");
        };
        if segment.is_sacked() || segment.is_lost() && !segment.is_resent() {
            return;
        }
        if segment.is_resent() {
            segment.marks &= !RESENT;
            self.resent -= 1;
        }
        if !segment.is_lost() {
            segment.marks |= LOST;
            self.lost += 1;
        }
        self.lost_total += 1;
        self.lost_from.push(Reverse(segment.start));
    }

    /// Marks every segment lost for which `spared` does not speak.
    pub fn mark_all_lost(&mut self, mut spared: impl FnMut(&Sent) -> bool) {
        for index in 0..self.segments.len() {
            if !spared(&self.segments[index]) {
                self.mark_lost(index);
            }
        }
    }

    /// Takes the marks of loss back.
    pub fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            segment.marks &= !LOST;
        }
        self.lost = 0;
        self.lost_from.clear();
        self.order_by_time();
    }

    /// The peer has thrown away what it had out of order (RFC 2018, 8).
    pub fn forget_selections(&mut self) {
        for segment in &mut self.segments {
            segment.marks &= !SACKED;
        }
        self.sacked = 0;
        self.known = [None; BLOCKS];
        self.order_by_time();
    }

    /// Puts every open transmission into the order of time again, after the fate of some has become open again.
    fn order_by_time(&mut self) {
        self.by_time.clear();
        let open = self.segments.iter().filter(|segment| !segment.is_sacked());
        self.by_time.extend(open.map(|segment| (segment.serial, segment.start)));
        self.by_time.make_contiguous().sort_unstable();
    }

    /// Sets the count of segments that the peer has, where it does not tell which.
    pub fn set_estimated_sacked(&mut self, count: u32) {
        self.sacked = count;
    }

    /// Brings the lowest segment to be sent again to the top. Called when marks have changed, so that looking is cheap.
    pub fn settle(&mut self) {
        while let Some(&Reverse(start)) = self.lost_from.peek() {
            let waits = self.index_of(start).is_some_and(|index| {
                let segment = &self.segments[index];
                segment.start == start && segment.is_lost() && !segment.is_resent()
            });
            if waits {
                return;
            }
            self.lost_from.pop();
        }
    }

    /// Returns the place where the lowest segment begins that is lost and not sent again.
    pub fn next_lost(&self) -> Option<usize> {
        let Reverse(start) = self.lost_from.peek()?;
        self.index_of(*start)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Self { serial: self.serial, lost_total: self.lost_total, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::delivery_rate::DeliveryRate;

    const SEGMENT: u64 = 100;

    /// Segments of 100 bytes from 0 on, sent one by one.
    fn scoreboard(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for number in 0..count {
            let now = Time::from_ns(number);
            let stamp = DeliveryRate::default().sending(false, now);
            board.push(number * SEGMENT, SEGMENT as u32, false, stamp, now);
        }
        board
    }

    fn starts_selected(board: &mut Scoreboard, block: (u64, u64)) -> Vec<u64> {
        let mut starts = Vec::new();
        board.select(block, |segment, _| starts.push(segment.start));
        board.know([Some(block), None, None]);
        starts
    }

    #[test]
    fn a_segment_takes_64_bytes() {
        assert_eq!(std::mem::size_of::<Sent>(), 64);
    }

    #[test]
    fn a_block_that_grows_tells_only_its_growth_and_never_half_a_segment() {
        let mut board = scoreboard(10);
        assert_eq!(starts_selected(&mut board, (200, 350)), [200]);
        assert_eq!(starts_selected(&mut board, (200, 500)), [300, 400]);
        assert_eq!(starts_selected(&mut board, (100, 500)), [100]);
        assert_eq!((board.sacked(), board.in_flight(), board.highest_sacked()), (4, 6, 500));
    }

    #[test]
    fn lost_segments_are_sent_again_lowest_first_and_can_be_lost_again() {
        let mut board = scoreboard(5);
        let stamp = board.get(0).unwrap().stamp;
        board.mark_lost(3);
        board.mark_lost(1);
        board.settle();
        assert_eq!((board.next_lost(), board.in_flight()), (Some(1), 3));
        board.resend(1, false, stamp, Time::from_ns(10));
        assert_eq!((board.next_lost(), board.in_flight()), (Some(3), 4));
        board.mark_lost(1);
        board.settle();
        assert_eq!((board.next_lost(), board.in_flight(), board.lost_total()), (Some(1), 3, 3));
        assert_eq!(board.oldest_transmission().unwrap().1.start, 0);
        board.unmark_lost();
        assert_eq!((board.next_lost(), board.in_flight()), (None, 5));
    }

    #[test]
    fn a_segment_is_divided_and_cut_without_losing_count() {
        let mut board = scoreboard(3);
        board.mark_lost(0);
        board.split(0, 40);
        assert_eq!((board.outstanding(), board.lost(), board.in_flight()), (4, 2, 2));
        assert!(board.pop_acknowledged(60).is_some());
        assert!(board.pop_acknowledged(60).is_none());
        board.settle();
        assert_eq!((board.first().unwrap().start, board.first().unwrap().length), (60, 40));
        assert_eq!((board.next_lost(), board.lost()), (Some(0), 1));
        while board.pop_acknowledged(300).is_some() {}
        assert_eq!((board.outstanding(), board.lost(), board.in_flight()), (0, 0, 0));
    }
}
