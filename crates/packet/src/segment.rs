//! Cutting a super-segment into the frames it stands for, and finishing checksums that were left to the wire.
//!
//! Each piece gets the header that the sender's network card would have given it: lengths, IPv4 identification, TCP
//! sequence number and flags, checksums. The layout of the headers is looked up once a cut, the payload copied
//! once.

use crate::big_endian::{array, get_u16, put_u16};
use crate::checksum;
use crate::extract::Layout;
use crate::frame::{Checksum, Frame, Framing, Offload, Segmentation};

const FIN_AND_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

impl Offload {
    /// The offload of a super-segment `bytes`, its header's length read from the headers themselves: the length that
    /// `virtio_net_hdr` tells is a hint that may cover payload. `None` when the headers are not of that kind.
    #[must_use]
    pub fn of_headers(bytes: &[u8], kind: Segmentation, segment: u16, ecn: bool) -> Option<Self> {
        let layout = Layout::of(bytes);
        let (l3, l4) = (layout.l3()?, layout.l4()?);
        let header = header_end(bytes, kind, layout.protocol(), l3, l4)?;
        let header = u16::try_from(header).ok().filter(|_| segment > 0 && header <= bytes.len())?;
        Some(Self { kind, segment, header, ecn })
    }
}

/// Returns the offset of the end of the transport header, if it is one of that kind.
fn header_end(bytes: &[u8], kind: Segmentation, protocol: u8, l3: usize, l4: usize) -> Option<usize> {
    match (kind, bytes[l3] >> 4, protocol) {
        (Segmentation::Tcp4, 4, 6) | (Segmentation::Tcp6, 6, 6) => Some(l4 + usize::from(bytes[l4 + 12] >> 4) * 4),
        (Segmentation::Udp, 4 | 6, 17) => Some(l4 + 8),
        _ => None,
    }
}

/// The position of a piece in its train.
#[derive(Clone, Copy)]
struct Position {
    /// Frames of the train before this piece.
    index: u64,
    /// `true` if it ends the train.
    last: bool,
}

/// The state that all cuts of one super-segment share.
#[derive(Clone, Copy, Debug)]
struct Cutter {
    offload: Offload,
    l3: usize,
    l4: usize,
    /// Offset of the transport checksum from the transport header.
    checksum_offset: u16,
    /// The checksum is to be computed to the end: it was complete before.
    finish: bool,
    /// The sender uses no checksum (UDP).
    unsummed: bool,
}

impl Cutter {
    /// `None` when the headers are not what the offload claims.
    fn new(frame: &Frame) -> Option<Self> {
        let offload = frame.offload?;
        let layout = Layout::of(frame.bytes.get(..usize::from(offload.header))?);
        let (l3, l4) = (layout.l3()?, layout.l4()?);
        let protocol = layout.protocol();
        let header = header_end(&frame.bytes, offload.kind, protocol, l3, l4)?;
        let checksum_offset = if protocol == 17 { 6 } else { 16 };
        let partial_fits = match frame.checksum {
            Checksum::Complete => true,
            Checksum::Partial { start, offset } => usize::from(start) == l4 && offset == checksum_offset,
        };
        if offload.segment == 0 || header != usize::from(offload.header) || header < l4 + 8 || !partial_fits {
            return None;
        }
        let field = l4 + usize::from(checksum_offset);
        let finish = frame.checksum == Checksum::Complete;
        let unsummed = finish && protocol == 17 && frame.bytes[field..field + 2] == [0, 0];
        Some(Self { offload, l3, l4, checksum_offset, finish, unsummed })
    }

    /// Turns the train's header at the front of `piece` into the piece's own.
    #[allow(clippy::cast_possible_truncation)]
    fn dress(&self, piece: &mut Frame, position: Position) {
        let length = piece.length();
        piece.offload = Some(self.offload);
        if piece.frames() == 1 {
            piece.offload = None;
        }
        let ip_length = length - self.l3 as u64;
        let bytes = &mut piece.bytes;
        if bytes[self.l3] >> 4 == 4 {
            let identification = get_u16(bytes, self.l3 + 4).wrapping_add(position.index as u16);
            put_u16(bytes, self.l3 + 4, identification);
        }
        tell_length(bytes, self.l3, ip_length);
        if self.offload.kind == Segmentation::Udp {
            put_u16(bytes, self.l4 + 4, u16::try_from(length - self.l4 as u64).unwrap_or(0));
        } else {
            let advance = (position.index as u32).wrapping_mul(u32::from(self.offload.segment));
            let sequence = &mut bytes[self.l4 + 4..self.l4 + 8];
            let next = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]).wrapping_add(advance);
            sequence.copy_from_slice(&next.to_be_bytes());
            if !position.last {
                bytes[self.l4 + 13] &= !FIN_AND_PSH;
            }
            // RFC 3168, 6.1.2: CWR tells of one reduction and is set on the first new segment after it.
            if position.index > 0 && self.offload.ecn {
                bytes[self.l4 + 13] &= !CWR;
            }
        }
        if self.unsummed {
            return;
        }
        let pseudo_header = pseudo_header(bytes, self.l3, self.l4, length);
        put_u16(bytes, self.l4 + usize::from(self.checksum_offset), pseudo_header);
        piece.checksum = Checksum::Partial { start: self.l4 as u16, offset: self.checksum_offset };
        if self.finish {
            piece.finish_checksum();
        }
    }
}

/// Writes the length of the packet at `l3`, with all that follows from it there.
fn tell_length(bytes: &mut [u8], l3: usize, ip_length: u64) {
    if bytes[l3] >> 4 == 4 {
        // A total length of 0 stands for one that does not fit, as Linux has it.
        put_u16(bytes, l3 + 2, u16::try_from(ip_length).unwrap_or(0));
        put_u16(bytes, l3 + 10, 0);
        let header_end = l3 + usize::from(bytes[l3] & 0x0f) * 4;
        let header_checksum = checksum::checksum(&bytes[l3..header_end]);
        put_u16(bytes, l3 + 10, header_checksum);
    } else {
        put_u16(bytes, l3 + 4, u16::try_from(ip_length - 40).unwrap_or(0));
    }
}

/// Finishes the headers `bytes` of a TCP super-segment of `length` bytes in all: lengths, the checksum of IPv4, and
/// the pseudo-header's sum. `places` are the offsets of the network header and of the transport header, and that of
/// the checksum from the latter.
pub(crate) fn finish_headers(bytes: &mut [u8], places: (usize, usize, u16), length: u64) {
    let (l3, l4, checksum_offset) = places;
    tell_length(bytes, l3, length - l3 as u64);
    let sum = pseudo_header(bytes, l3, l4, length);
    put_u16(bytes, l4 + usize::from(checksum_offset), sum);
}

/// The sum of the pseudo-header of a TCP or UDP frame of `length` bytes in all.
#[allow(clippy::cast_possible_truncation)]
fn pseudo_header(bytes: &[u8], l3: usize, l4: usize, length: u64) -> u16 {
    let transport_length = (length - l4 as u64) as u32;
    if bytes[l3] >> 4 == 4 {
        let (source, destination) = (array(bytes, l3 + 12), array(bytes, l3 + 16));
        return checksum::pseudo_header_v4(source, destination, bytes[l3 + 9], transport_length);
    }
    let protocol =
        crate::extract::extension_headers(&bytes[..l4], l3 + 40, bytes[l3 + 6]).map_or(0, |found| found.protocol);
    checksum::pseudo_header_v6(&array(bytes, l3 + 8), &array(bytes, l3 + 24), protocol, transport_length)
}

impl Frame {
    /// Returns `true` if the headers are those that `offload` claims, so that the train can be cut. True without an
    /// offload. A frame from outside for which this is false should be dropped where it enters.
    #[must_use]
    pub fn offload_is_sound(&self) -> bool {
        self.offload.is_none() || Cutter::new(self).is_some()
    }

    /// Takes the first `frames` frames off the train; they are returned as a frame or train, the rest stays here.
    ///
    /// `None`, and nothing changes, when that is none of the train or all of it, or when the train cannot be cut
    /// ([`Frame::offload_is_sound`]). Copies what stays; to take a train apart wholly, use [`Frame::into_frames`].
    pub fn split_front(&mut self, frames: u64) -> Option<Box<Frame>> {
        if frames == 0 || frames >= self.frames() {
            return None;
        }
        let cutter = Cutter::new(self)?;
        let header = usize::from(cutter.offload.header);
        let front_payload = frames.checked_mul(u64::from(cutter.offload.segment))?;
        let stored = self.bytes.len() - header;
        let front_stored = usize::try_from(front_payload).map_or(stored, |payload| payload.min(stored));
        let front_elided = u32::try_from(front_payload - front_stored as u64).ok()?;

        let mut rest = Vec::with_capacity(header + stored - front_stored);
        rest.extend_from_slice(&self.bytes[..header]);
        rest.extend_from_slice(&self.bytes[header + front_stored..]);
        let front_bytes = std::mem::replace(&mut self.bytes, rest);
        let mut front = Box::new(self.like_this(front_bytes));
        front.bytes.truncate(header + front_stored);
        front.elided = front_elided;
        self.elided -= front_elided;
        cutter.dress(&mut front, Position { index: 0, last: false });
        cutter.dress(self, Position { index: frames, last: true });
        Some(front)
    }

    /// Takes the train apart into its frames, each copied once. A frame that is no train, or cannot be cut, is
    /// given back as it is.
    #[must_use]
    pub fn into_frames(self: Box<Self>) -> Frames {
        Frames { left: Train::of(self).map_err(Some) }
    }

    /// Computes a [`Checksum::Partial`] checksum. Elided payload counts as zeros. Does nothing to a complete one; a
    /// place outside of the stored bytes is forgotten.
    pub fn finish_checksum(&mut self) {
        let Checksum::Partial { start, offset } = self.checksum else { return };
        self.checksum = Checksum::Complete;
        let field = usize::from(start) + usize::from(offset);
        if field + 2 > self.bytes.len() {
            return;
        }
        let mut result = checksum::checksum(&self.bytes[usize::from(start)..]);
        // RFC 768: "If the computed checksum is zero, it is transmitted as all ones". An offset of 6 is UDP's.
        if result == 0 && offset == 6 {
            result = 0xffff;
        }
        put_u16(&mut self.bytes, field, result);
    }

    /// A frame that has all of this one but the bytes.
    fn like_this(&self, bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            elided: self.elided,
            offload: self.offload,
            checksum: self.checksum,
            queue: self.queue,
            hops: self.hops,
            fragment: None,
        }
    }
}

/// A super-segment that leaves by its front, some frames at a time. The bytes of each frame are copied once,
/// however many are left behind it.
#[derive(Debug)]
pub struct Train {
    whole: Box<Frame>,
    cutter: Cutter,
    next: u64,
    count: u64,
}

impl Train {
    /// Takes `frame` over.
    ///
    /// # Errors
    /// Gives `frame` back when it is a single one, or cannot be cut ([`Frame::offload_is_sound`]).
    pub fn of(frame: Box<Frame>) -> Result<Self, Box<Frame>> {
        let count = frame.frames();
        match Cutter::new(&frame).filter(|_| count > 1) {
            Some(cutter) => Ok(Self { whole: frame, cutter, next: 0, count }),
            None => Err(frame),
        }
    }

    /// Frames that are left.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.count - self.next
    }

    /// Bytes at the link layer of what is left; see [`Frame::link_bytes`].
    #[must_use]
    pub fn link_bytes(&self) -> u64 {
        self.whole.link_bytes() - self.next * (self.header() + self.segment())
    }

    /// Bytes that what is left occupies on a wire with `framing`.
    #[must_use]
    pub fn wire_bytes(&self, framing: Framing) -> u64 {
        self.whole.wire_bytes(framing) - self.next * framing.wire_bytes(self.header() + self.segment())
    }

    /// Takes the first `frames` of what is left, all of it at most, into `blank`, whose content is lost but whose
    /// buffer is used. `None` when nothing is left, or nothing is asked for.
    #[allow(clippy::cast_possible_truncation)]
    pub fn take_front(&mut self, frames: u64, mut blank: Box<Frame>) -> Option<Box<Frame>> {
        let frames = frames.min(self.frames());
        if frames == 0 {
            return None;
        }
        let whole = &*self.whole;
        let (header, segment) = (self.cutter.offload.header as usize, self.segment());
        let before = self.next * segment;
        let payload = (frames * segment).min(whole.length() - header as u64 - before);
        let stored = &whole.bytes[header..];
        let from = usize::try_from(before).map_or(stored.len(), |at| at.min(stored.len()));
        let to = usize::try_from(before + payload).map_or(stored.len(), |at| at.min(stored.len()));
        let mut bytes = std::mem::take(&mut blank.bytes);
        bytes.clear();
        bytes.reserve(header + to - from);
        bytes.extend_from_slice(&whole.bytes[..header]);
        bytes.extend_from_slice(&stored[from..to]);
        *blank = whole.like_this(bytes);
        blank.elided = (payload - (to - from) as u64) as u32;
        let position = Position { index: self.next, last: self.next + frames == self.count };
        self.cutter.dress(&mut blank, position);
        self.next += frames;
        Some(blank)
    }

    /// The frame that it was made of, as it was.
    #[must_use]
    pub fn into_whole(self) -> Box<Frame> {
        self.whole
    }

    fn header(&self) -> u64 {
        u64::from(self.cutter.offload.header)
    }

    fn segment(&self) -> u64 {
        u64::from(self.cutter.offload.segment)
    }
}

/// The frames of a train, in order. See [`Frame::into_frames`].
pub struct Frames {
    left: Result<Train, Option<Box<Frame>>>,
}

impl Iterator for Frames {
    type Item = Box<Frame>;

    fn next(&mut self) -> Option<Box<Frame>> {
        match &mut self.left {
            Ok(train) => train.take_front(1, Box::default()),
            Err(single) => single.take(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.left {
            Ok(train) => usize::try_from(train.frames()).unwrap_or(usize::MAX),
            Err(single) => usize::from(single.is_some()),
        };
        (left, Some(left))
    }
}
