//! Segmentation offload: segments of one connection that leave together go to the interface as one super-segment.
//!
//! What Linux's TCP hands to a network card, which cuts it into the same segments. On the lines it is a train of
//! frames. The peer takes in what arrives of it in one step, as Linux does (GRO).

use twinnet_packet::{Checksum, Frame, Offload, Segmentation};

use super::interface::Charge;
use super::path::{Path, ECT_0, L3};
use super::stack::{Stack, Turn};
use super::tcp::Outgoing;

/// Offsets in a TCP header: sequence number, flags, checksum.
const SEQUENCE: std::ops::Range<usize> = 4..8;
const FLAGS: usize = 13;
const CHECKSUM: std::ops::Range<usize> = 16..18;
/// Bits of the flags.
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;
/// What the length field of IPv4 can tell, and so the longest super-segment that is handed to an interface.
const LONGEST_PACKET: u64 = 65_535;

/// One segment of a connection, or several that follow each other, whose headers are not yet finished.
#[derive(Debug)]
pub(super) struct SuperSegment {
    frame: Box<Frame>,
    /// Where the TCP header begins and ends.
    start: usize,
    end: usize,
    identification: u16,
    traffic_class: u8,
    charge: Charge,
    /// Payload bytes of the first segment; all but the last have as many.
    segment: u32,
    next_sequence: u32,
    /// Whether another may follow.
    open: bool,
}

impl SuperSegment {
    /// Begins with the segment `outgoing` of the connection `socket`, whose TCP header is at `start` of `frame`.
    /// `services` is its code point in its place in the traffic class.
    pub(super) fn new(
        mut frame: Box<Frame>,
        start: usize,
        outgoing: &Outgoing,
        socket: u32,
        identification: u16,
        services: u8,
    ) -> Self {
        frame.elided = outgoing.elided;
        let charge = match outgoing.payload {
            0 => Charge::NONE,
            bytes => Charge { socket, bytes },
        };
        let header = frame.bytes.get(start..).unwrap_or_default();
        let sequence = header.get(SEQUENCE).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        Self {
            start,
            end: (frame.length() - u64::from(outgoing.payload)) as usize,
            identification,
            traffic_class: services | if outgoing.ecn_capable { ECT_0 } else { 0 },
            charge,
            segment: outgoing.payload,
            next_sequence: sequence.wrapping_add(outgoing.payload),
            open: outgoing.payload > 0 && header.get(FLAGS) == Some(&ACK),
            frame,
        }
    }

    /// Appends `next`, or gives it back: it is joined under the rules by which a network card cuts (the same headers
    /// but for the sequence number, which follows; plain data of one size; PSH, or less data, only in the last).
    pub(super) fn join(&mut self, next: Self) -> Result<(), Self> {
        if !self.is_followed_by(&next) {
            return Err(next);
        }
        self.open = next.open && next.segment == self.segment;
        self.next_sequence = next.next_sequence;
        self.charge.bytes += next.charge.bytes;
        let flags = next.frame.bytes.get(next.start + FLAGS).copied();
        if let (Some(flags), Some(place)) = (flags, self.frame.bytes.get_mut(self.start + FLAGS)) {
            *place = flags;
        }
        self.frame.bytes.extend_from_slice(next.frame.bytes.get(next.end..).unwrap_or_default());
        self.frame.elided += next.frame.elided;
        if self.frame.offload.is_none() {
            let kind = if next.start > L3 + 20 { Segmentation::Tcp6 } else { Segmentation::Tcp4 };
            let (segment, header) = (self.segment as u16, self.end as u16);
            self.frame.offload = Some(Offload { kind, segment, header, ecn: false });
        }
        Ok(())
    }

    fn is_followed_by(&self, next: &Self) -> bool {
        let flags = next.frame.bytes.get(next.start + FLAGS).copied().unwrap_or_default();
        let plain = flags & !PSH == ACK;
        let longest = self.frame.length() - L3 as u64 + u64::from(next.segment);
        // Real bytes cannot follow elided ones.
        let orderly = self.frame.elided == 0 || next.frame.bytes.len() == next.end;
        self.open
            && plain
            && orderly
            && next.segment > 0
            && next.segment <= self.segment
            && longest <= LONGEST_PACKET
            && (self.start, self.end) == (next.start, next.end)
            && self.traffic_class == next.traffic_class
            && self.charge.socket == next.charge.socket
            && self.next_sequence == next.sequence()
            && self.has_header_of(next)
    }

    fn sequence(&self) -> u32 {
        self.next_sequence.wrapping_sub(self.segment)
    }

    /// All but sequence number and flags; checksums are not computed yet.
    fn has_header_of(&self, next: &Self) -> bool {
        let same = |from: usize, to: usize| self.frame.bytes.get(from..to) == next.frame.bytes.get(from..to);
        let start = self.start;
        same(0, start + SEQUENCE.start) && same(start + SEQUENCE.end, start + FLAGS) && same(start + FLAGS + 1, self.end)
    }

    /// Finishes the headers.
    fn sealed(mut self, path: &Path) -> (Box<Frame>, Charge) {
        let length = self.frame.length() - self.start as u64;
        let field = self.start + CHECKSUM.start..self.start + CHECKSUM.end;
        if let Some(checksum) = self.frame.bytes.get_mut(field) {
            checksum.copy_from_slice(&path.pseudo_header(length as u32).to_be_bytes());
        }
        self.frame.checksum = Checksum::Partial { start: self.start as u16, offset: CHECKSUM.start as u16 };
        path.seal(&mut self.frame.bytes, length as u16, self.identification, true, self.traffic_class);
        (self.frame, self.charge)
    }
}

impl Stack {
    /// Hands what was put together, if anything, to its interface; without a path it is lost.
    pub(super) fn transmit_super_segment(
        &mut self,
        waiting: Option<SuperSegment>,
        path: Option<&Path>,
        turn: &mut Turn<'_>,
    ) {
        let Some(waiting) = waiting else { return };
        let Some(path) = path else {
            self.counters.unreachable += 1;
            self.credit(waiting.charge);
            return turn.pool.recycle(waiting.frame);
        };
        let (frame, charge) = waiting.sealed(path);
        self.transmit(frame, path, charge, turn);
    }
}
