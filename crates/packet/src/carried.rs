//! A frame on its way through a tunnel: what the outer frames that carry it share, and how it comes out again.
//!
//! The tunnel's entry cuts the packet that carries a frame into fragments ([`Frame::fragment`]); each goes its own
//! way through queues and over the line. The frame comes out with the last fragment to arrive, and not at all when
//! one is missing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use twinnet_units::{Duration, Time};

use crate::frame::Frame;

/// The time that a fragment waits for the others: what Linux has as `ipfrag_time`, within the bounds of RFC 1122 3.3.2.
const LONGEST_REASSEMBLY: Duration = Duration::from_secs(30);

/// The outcome of the carried frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// All of its fragments are on their way.
    Travelling,
    /// A fragment was refused before it left: the frame was never sent whole.
    Refused,
    /// A fragment was lost after it had left.
    Lost,
}

#[derive(Debug)]
struct State {
    /// The carried frame, until it comes out.
    inner: Option<Box<Frame>>,
    /// One bit for each fragment that has arrived.
    arrived: Vec<u64>,
    missing: u32,
    first_arrival: Option<Time>,
    fate: Fate,
    /// A fragment was marked as having met congestion.
    congested: bool,
}

/// The packet that carries a frame.
#[derive(Debug)]
struct Packet {
    fragments: u32,
    /// Bytes of the frame, for counters.
    inner_bytes: u64,
    state: Mutex<State>,
}

impl Packet {
    fn new(inner: Box<Frame>, fragments: u32) -> Arc<Self> {
        let inner_bytes = inner.link_bytes();
        let state = State {
            inner: Some(inner),
            arrived: vec![0; fragments.div_ceil(64) as usize],
            missing: fragments,
            first_arrival: None,
            fate: Fate::Travelling,
            congested: false,
        };
        Arc::new(Self { fragments, inner_bytes, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One fragment of the packet that carries a frame; an outer frame has it.
#[derive(Clone, Debug)]
pub struct Fragment {
    packet: Arc<Packet>,
    index: u32,
    /// The offset of its bytes in the carried frame; negative for headers of the tunnel.
    offset: i64,
    /// Bytes at its front that are not the carried frame's: the link's header and the IP header.
    header: u32,
}

/// The position of a fragment's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The offset of the bytes in the carried frame, which the tunnel's own headers precede.
    pub offset: i64,
    /// Bytes of the outer frame before them.
    pub header: u32,
}

impl Fragment {
    /// The fragments of a packet that carries `inner`, one for each of `pieces`.
    pub fn all(inner: Box<Frame>, pieces: &[Piece]) -> impl Iterator<Item = Self> + '_ {
        let packet = Packet::new(inner, u32::try_from(pieces.len()).unwrap_or(u32::MAX));
        (0_u32..).zip(pieces).map(move |(index, piece)| Self {
            packet: Arc::clone(&packet),
            index,
            offset: piece.offset,
            header: piece.header,
        })
    }

    /// Returns what this fragment adds to the counters of frames and of their bytes once its last bit has left: the
    /// last one tells of the whole frame, unless a part of it was refused before.
    #[must_use]
    pub fn leaving(&self) -> (u64, u64) {
        if self.index + 1 == self.packet.fragments && self.packet.state().fate != Fate::Refused {
            return (1, self.packet.inner_bytes);
        }
        (0, 0)
    }

    /// A copy of the carried frame, when this is the fragment with which it has left.
    #[must_use]
    pub fn departed(&self) -> Option<Box<Frame>> {
        if self.leaving().0 == 0 {
            return None;
        }
        self.packet.state().inner.clone()
    }

    /// The fragment is given up before it has left. Returns the frames that this costs: 1, or 0 when the frame is
    /// lost already.
    #[must_use]
    pub fn refuse(&self) -> u64 {
        self.give_up(Fate::Refused)
    }

    /// The fragment is lost after it has left. Returns the frames that this costs: 1, or 0 when the frame is lost
    /// already.
    #[must_use]
    pub fn lose(&self) -> u64 {
        self.give_up(Fate::Lost)
    }

    fn give_up(&self, fate: Fate) -> u64 {
        let mut state = self.packet.state();
        let costs = u64::from(state.fate == Fate::Travelling);
        if costs == 1 {
            state.fate = fate;
        }
        costs
    }

    /// Returns `true` if the fragment is the whole packet.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.packet.fragments == 1
    }

    /// A fragment that arrives beside this one, as a line makes it that carries a frame twice.
    #[must_use]
    pub fn twin(&self) -> Self {
        let mut twin = self.clone();
        if self.is_whole() {
            if let Some(inner) = self.packet.state().inner.clone() {
                twin.packet = Packet::new(inner, 1);
            }
        }
        twin
    }

    /// Turns the bit of number `bit` of the outer frame where it is the carried frame's; returns whether it is. A
    /// fault in the headers around it keeps the fragment from its receiver.
    #[must_use]
    pub fn turn_bit(&self, bit: u64) -> bool {
        let at = i64::try_from(bit / 8).unwrap_or(i64::MAX).saturating_sub(i64::from(self.header));
        let Some(at) = at.checked_add(self.offset).and_then(|at| u64::try_from(at).ok()) else { return false };
        if bit / 8 < u64::from(self.header) {
            return false;
        }
        if let Some(inner) = &mut self.packet.state().inner {
            inner.finish_checksum();
            inner.turn_bit(at * 8 + bit % 8);
        }
        true
    }

    /// The fragment arrives at `now`, `congested` when it was marked so. The frame comes out when it was the last
    /// one missing, with whether any fragment was marked (RFC 3168 5.3).
    #[must_use]
    pub fn arrive(&self, now: Time, congested: bool) -> Option<(Box<Frame>, bool)> {
        let mut state = self.packet.state();
        let (word, bit) = ((self.index / 64) as usize, 1_u64 << (self.index % 64));
        let arrived = state.arrived.get_mut(word)?;
        if *arrived & bit != 0 {
            return None;
        }
        *arrived |= bit;
        state.missing -= 1;
        state.congested |= congested;
        let first = *state.first_arrival.get_or_insert(now);
        if now > first + LONGEST_REASSEMBLY {
            state.inner = None;
        }
        if state.missing > 0 {
            return None;
        }
        let congested = state.congested;
        state.inner.take().map(|inner| (inner, congested))
    }
}

impl Frame {
    /// Frames that are lost when this is given up before it has left its port.
    #[must_use]
    pub fn refuse(&self) -> u64 {
        self.fragment.as_ref().map_or_else(|| self.frames(), Fragment::refuse)
    }

    /// Frames that are lost when this is lost on the line.
    #[must_use]
    pub fn lose(&self) -> u64 {
        self.fragment.as_ref().map_or_else(|| self.frames(), Fragment::lose)
    }

    /// Turns one bit, the one of number `bit`. A byte that was elided, a zero, is stored from then on with those
    /// before it: its receiver must find that it is wrong.
    pub fn turn_bit(&mut self, bit: u64) {
        let missing = (bit / 8 + 1).saturating_sub(self.bytes.len() as u64).min(self.elided.into());
        self.bytes.resize(self.bytes.len() + usize::try_from(missing).unwrap_or(0), 0);
        self.elided -= u32::try_from(missing).unwrap_or(0);
        if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|at| self.bytes.get_mut(at)) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(pieces: usize) -> Vec<Fragment> {
        let pieces: Vec<Piece> =
            (0_u8..).take(pieces).map(|at| Piece { offset: i64::from(at) * 8, header: 34 }).collect();
        Fragment::all(Box::new(Frame::new(vec![7; 100])), &pieces).collect()
    }

    #[test]
    fn a_frame_comes_out_with_the_last_of_its_fragments_whatever_their_order() {
        let fragments = carried(3);
        assert!(fragments[2].arrive(Time::from_ns(1), false).is_none());
        assert!(fragments[0].arrive(Time::from_ns(2), true).is_none());
        assert!(fragments[0].arrive(Time::from_ns(3), false).is_none(), "the same again");
        let (frame, congested) = fragments[1].arrive(Time::from_ns(4), false).unwrap();
        assert_eq!((frame.bytes.len(), congested), (100, true));
    }

    #[test]
    fn a_frame_whose_fragments_took_too_long_does_not_come_out() {
        let fragments = carried(2);
        assert!(fragments[0].arrive(Time::ZERO, false).is_none());
        assert!(fragments[1].arrive(Time::ZERO + Duration::from_secs(31), false).is_none());
    }

    #[test]
    fn a_frame_is_counted_once_however_many_fragments_are_lost() {
        let fragments = carried(3);
        assert_eq!((fragments[0].refuse(), fragments[1].refuse(), fragments[2].lose()), (1, 0, 0));
        assert_eq!(fragments[2].leaving(), (0, 0), "a part of it never left");
        let fragments = carried(2);
        assert_eq!((fragments[0].lose(), fragments[1].leaving()), (1, (1, 100)));
    }

    #[test]
    fn a_turned_bit_is_the_carried_frames_behind_the_headers_alone() {
        let fragments = carried(2);
        assert!(!fragments[0].turn_bit(33 * 8));
        assert!(fragments[1].turn_bit(34 * 8 + 2));
        let frame = fragments[1].departed().unwrap();
        assert_eq!((frame.bytes[7], frame.bytes[8]), (7, 3));
    }

    #[test]
    fn the_twin_of_a_whole_packet_brings_the_frame_a_second_time_and_that_of_a_part_does_not() {
        let whole = carried(1).remove(0);
        let twin = whole.twin();
        assert!(whole.arrive(Time::ZERO, false).is_some() && twin.arrive(Time::ZERO, false).is_some());
        let parts = carried(2);
        let twin = parts[0].twin();
        assert!(parts[0].arrive(Time::ZERO, false).is_none() && twin.arrive(Time::ZERO, false).is_none());
        assert!(parts[1].arrive(Time::ZERO, false).is_some());
    }
}
