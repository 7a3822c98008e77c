//! Frames of one TCP connection that follow each other, put together into one super-segment.
//!
//! This is what the receive offload of a network card or of Linux (GRO) does with frames that it finds waiting
//! together: the host's stack then takes them in one step. Frames are joined under the rules of Linux's
//! `tcp_gro_receive`: same connection, the next sequence number, the same acknowledgement, window, options and
//! congestion mark; all of one size but the last; and nothing follows a frame with PSH.

use crate::big_endian::get_u16;
use crate::extract::Layout;
use crate::frame::{Checksum, Frame, Offload, Segmentation};
use crate::segment::finish_headers;

const ACK: u8 = 0x10;
const PSH: u8 = 0x08;
/// The greatest length that the length fields of IPv4 can tell.
const LONGEST_PACKET: usize = 65_535;
/// Frames that one super-segment is made of at most: the kernel's buffers have room for so many pieces.
const MOST_FRAMES: usize = 16;
const CHECKSUM_OFFSET: u16 = 16;

/// A super-segment in the making.
#[derive(Debug)]
pub struct Coalesced {
    kind: Segmentation,
    l3: usize,
    l4: usize,
    /// The headers of the first frame, with the flags of the last.
    header: Vec<u8>,
    /// Payload bytes of each frame but the last.
    segment: usize,
    payload: usize,
    frames: usize,
    next_sequence: u32,
    /// The last frame is shorter than the others or has PSH.
    closed: bool,
}

/// The places of the parts of a data segment.
struct Places {
    kind: Segmentation,
    l3: usize,
    l4: usize,
    header: usize,
}

/// `None` for whatever is not joined: anything but a single data segment whose checksum is left to the wire.
fn places(frame: &Frame) -> Option<Places> {
    let bytes = &frame.bytes;
    let Checksum::Partial { start, offset: CHECKSUM_OFFSET } = frame.checksum else { return None };
    if frame.frames() != 1 || frame.elided > 0 || frame.fragment.is_some() {
        return None;
    }
    let layout = Layout::of(bytes);
    let (l3, l4) = (layout.l3()?, layout.l4()?);
    if layout.protocol() != 6 || l4 != usize::from(start) || bytes.len() < l4 + 20 {
        return None;
    }
    let (kind, length) = match bytes[l3] >> 4 {
        // Without options: those may differ, and are rare.
        4 if l4 == l3 + 20 => (Segmentation::Tcp4, usize::from(get_u16(bytes, l3 + 2))),
        6 if l4 == l3 + 40 => (Segmentation::Tcp6, usize::from(get_u16(bytes, l3 + 4)) + 40),
        _ => return None,
    };
    let header = l4 + usize::from(bytes[l4 + 12] >> 4) * 4;
    let flags = bytes[l4 + 13];
    // A frame with padding, without payload, or one that opens, closes or tells of congestion stays alone.
    let joins = length == bytes.len() - l3 && header >= l4 + 20 && header < bytes.len() && flags & !PSH == ACK;
    joins.then_some(Places { kind, l3, l4, header })
}

impl Coalesced {
    /// Begins with `first`; `None` when it is none that others can be joined to.
    #[must_use]
    pub fn begin(first: &Frame) -> Option<Self> {
        let Places { kind, l3, l4, header } = places(first)?;
        let segment = first.bytes.len() - header;
        if first.bytes[l4 + 13] & PSH != 0 {
            return None;
        }
        Some(Self {
            kind,
            l3,
            l4,
            next_sequence: sequence(&first.bytes, l4).wrapping_add(u32::try_from(segment).ok()?),
            header: first.bytes[..header].to_vec(),
            segment,
            payload: segment,
            frames: 1,
            closed: false,
        })
    }

    /// Joins `next` to what is there; returns whether it could be.
    pub fn join(&mut self, next: &Frame) -> bool {
        if self.closed || self.frames >= MOST_FRAMES || next.bytes.len() <= self.header.len() {
            return false;
        }
        let payload = next.bytes.len() - self.header.len();
        let fits = self.header.len() - self.l3 + self.payload + payload <= LONGEST_PACKET;
        if payload > self.segment || !fits || sequence(&next.bytes, self.l4) != self.next_sequence {
            return false;
        }
        let same_places = places(next).is_some_and(|at| {
            at.kind == self.kind && (at.l3, at.l4, at.header) == (self.l3, self.l4, self.header.len())
        });
        if !same_places || !self.has_header_of(&next.bytes) {
            return false;
        }
        let flags = next.bytes[self.l4 + 13];
        self.header[self.l4 + 13] = flags;
        self.closed = payload < self.segment || flags & PSH != 0;
        self.payload += payload;
        self.frames += 1;
        // A frame is shorter than 64 KB.
        self.next_sequence = self.next_sequence.wrapping_add(u32::try_from(payload).unwrap_or(0));
        true
    }

    /// Frames that were joined.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The super-segment without its payload, which is elided: that of all frames follows, each from the length of
    /// these headers on. The checksum is left to the wire, as it was.
    #[must_use]
    pub fn finish(mut self) -> Frame {
        let length = (self.header.len() + self.payload) as u64;
        finish_headers(&mut self.header, (self.l3, self.l4, CHECKSUM_OFFSET), length);
        // All are below 64 KB: a packet is that short.
        let narrow = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
        let offload =
            Offload { kind: self.kind, segment: narrow(self.segment), header: narrow(self.header.len()), ecn: false };
        Frame {
            elided: u32::from(narrow(self.payload)),
            offload: Some(offload),
            checksum: Checksum::Partial { start: narrow(self.l4), offset: CHECKSUM_OFFSET },
            ..Frame::new(self.header)
        }
    }

    /// Returns `true` if all that frames of one super-segment have in common is the same in the headers of `bytes`.
    fn has_header_of(&self, bytes: &[u8]) -> bool {
        let (l3, l4) = (self.l3, self.l4);
        let same = |from: usize, to: usize| self.header[from..to] == bytes[from..to];
        let network = match self.kind {
            // All but total length, identification and checksum.
            Segmentation::Tcp4 => same(l3, l3 + 2) && same(l3 + 6, l3 + 10) && same(l3 + 12, l4),
            _ => same(l3, l3 + 4) && same(l3 + 6, l4),
        };
        // All but sequence number, flags (both are plain data) and checksum.
        same(0, l3)
            && network
            && same(l4, l4 + 4)
            && same(l4 + 8, l4 + 13)
            && same(l4 + 14, l4 + 16)
            && same(l4 + 18, self.header.len())
    }
}

fn sequence(bytes: &[u8], l4: usize) -> u32 {
    u32::from(get_u16(bytes, l4 + 4)) << 16 | u32::from(get_u16(bytes, l4 + 6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::big_endian::put_u16;

    /// A segment of `payload` bytes at `sequence` with `flags`.
    fn segment(sequence: u32, payload: usize, flags: u8) -> Frame {
        let mut bytes = vec![0_u8; 14 + 20 + 32 + payload];
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        bytes[14] = 0x45;
        let length = u16::try_from(bytes.len() - 14).unwrap();
        put_u16(&mut bytes, 16, length);
        bytes[22] = 64;
        bytes[23] = 6;
        bytes[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        bytes[34..38].copy_from_slice(&[0x9c, 0x40, 0x14, 0x51]);
        bytes[38..42].copy_from_slice(&sequence.to_be_bytes());
        bytes[46] = 8 << 4;
        bytes[47] = flags;
        bytes[48..50].copy_from_slice(&[1, 0]);
        let checksum = Checksum::Partial { start: 34, offset: CHECKSUM_OFFSET };
        let mut frame = Frame { checksum, ..Frame::new(bytes) };
        finish_headers(&mut frame.bytes, (14, 34, CHECKSUM_OFFSET), (66 + payload) as u64);
        frame
    }

    #[test]
    fn frames_that_were_cut_from_a_super_segment_come_together_to_what_it_was() {
        let mut bytes = segment(7, 3 * 100 + 40, ACK | PSH).bytes;
        for (place, byte) in bytes[66..].iter_mut().enumerate() {
            *byte = u8::try_from(place % 251).unwrap();
        }
        let offload = Offload { kind: Segmentation::Tcp4, segment: 100, header: 66, ecn: false };
        let checksum = Checksum::Partial { start: 34, offset: CHECKSUM_OFFSET };
        let whole = Frame { offload: Some(offload), checksum, ..Frame::new(bytes) };
        let cut: Vec<_> = Box::new(whole.clone()).into_frames().collect();
        let mut joined = Coalesced::begin(&cut[0]).unwrap();
        assert!(cut[1..].iter().all(|frame| joined.join(frame)));
        assert_eq!(joined.frames(), 4);
        let mut finished = joined.finish();
        assert_eq!((finished.frames(), finished.length()), (4, whole.length()));
        assert_eq!((finished.offload, finished.checksum), (whole.offload, whole.checksum));
        cut.iter().for_each(|frame| finished.bytes.extend_from_slice(&frame.bytes[66..]));
        assert_eq!(finished.bytes, whole.bytes);
    }

    #[test]
    fn what_does_not_follow_is_not_joined() {
        let first = segment(1000, 100, ACK);
        let begin = || Coalesced::begin(&first).unwrap();
        assert!(begin().join(&segment(1100, 100, ACK)));
        assert!(!begin().join(&segment(1101, 100, ACK)), "a gap");
        assert!(!begin().join(&segment(1000, 100, ACK)), "the same again");
        assert!(!begin().join(&segment(1100, 101, ACK)), "longer than the first");
        assert!(!begin().join(&segment(1100, 0, ACK)), "an acknowledgement alone");
        assert!(!begin().join(&segment(1100, 100, ACK | 0x01)), "FIN");
        assert!(!begin().join(&segment(1100, 100, ACK | 0x80)), "CWR");
        for place in [15, 22, 29, 35, 45, 49, 53, 58] {
            let mut other = segment(1100, 100, ACK);
            other.bytes[place] ^= 1;
            assert!(
                !begin().join(&other),
                "byte {place} differs: class, lifetime, address, port, acknowledgement, window, urgent pointer, options"
            );
        }
        let mut complete = segment(1100, 100, ACK);
        complete.finish_checksum();
        assert!(!begin().join(&complete), "a checksum that may be wrong is for the host to see");
    }

    #[test]
    fn a_short_frame_or_one_with_psh_ends_it() {
        for last in [segment(1100, 99, ACK), segment(1100, 100, ACK | PSH)] {
            let mut joined = Coalesced::begin(&segment(1000, 100, ACK)).unwrap();
            assert!(joined.join(&last));
            let next = 1100 + u32::try_from(last.bytes.len() - 66).unwrap();
            assert!(!joined.join(&segment(next, 50, ACK)));
        }
        assert!(Coalesced::begin(&segment(1000, 100, ACK | PSH)).is_none());
        assert!(Coalesced::begin(&segment(1000, 100, ACK | 0x02)).is_none());
        assert!(Coalesced::begin(&Frame::new(vec![0; 60])).is_none());
    }

    #[test]
    fn it_grows_no_longer_than_the_kernel_takes_it() {
        let mut joined = Coalesced::begin(&segment(0, 1448, ACK)).unwrap();
        let joins = (1..40_u32).take_while(|n| joined.join(&segment(n * 1448, 1448, ACK))).count();
        assert_eq!(joins, MOST_FRAMES - 1);
        let mut long = Coalesced::begin(&segment(0, 30_000, ACK)).unwrap();
        assert!(long.join(&segment(30_000, 30_000, ACK)));
        assert!(!long.join(&segment(60_000, 30_000, ACK)));
    }
}
