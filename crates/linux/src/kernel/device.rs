//! Frames to and from a host's interface: a TAP device, or a packet socket on a veth pair, both with `virtio_net_hdr`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use twinnet_packet::{Checksum, Coalesced, Frame, Offload, Segmentation};

use crate::kernel::interface::{InterfaceKind, VNET_HEADER_BYTES};
use crate::kernel::vlan_tag;

/// Longest super-segment that the kernel hands over, with room for headers.
const LARGEST: usize = 65_536 + 256;
/// Frames up to this length are moved into a buffer of their own size, so that the large one can be used again at once.
const SMALL: usize = 2048;
/// Buffers kept for use again; more are given back to the allocator.
const KEPT: usize = 1024;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// `struct virtio_net_hdr` in the machine's own byte order, as TAP and packet sockets use it by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct VirtioNetHeader {
    flags: u8,
    gso_type: u8,
    hdr_len: u16,
    gso_size: u16,
    csum_start: u16,
    csum_offset: u16,
}

impl VirtioNetHeader {
    /// Its bytes, in the machine's own order.
    pub(crate) fn to_bytes(self) -> [u8; VNET_HEADER_BYTES] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        for (at, field) in [self.hdr_len, self.gso_size, self.csum_start, self.csum_offset].into_iter().enumerate() {
            bytes[2 + 2 * at..4 + 2 * at].copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }

    /// The header that `bytes` hold.
    pub(crate) fn of_bytes(bytes: [u8; VNET_HEADER_BYTES]) -> Self {
        let field = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: field(2),
            gso_size: field(4),
            csum_start: field(6),
            csum_offset: field(8),
        }
    }
}

const _: () = assert!(std::mem::size_of::<VirtioNetHeader>() == VNET_HEADER_BYTES);

/// Frames and buffers for use again: the loop allocates nothing per frame in the steady state.
#[derive(Default)]
pub struct Pool {
    // Boxes are what is kept: handing one out costs no allocation.
    #[allow(clippy::vec_box)]
    frames: Vec<Box<Frame>>,
    large: Vec<Vec<u8>>,
}

impl Pool {
    /// Takes back a frame that is no longer needed.
    pub fn recycle(&mut self, mut frame: Box<Frame>) {
        if frame.bytes.capacity() >= LARGEST {
            if self.large.len() < KEPT / 4 {
                self.large.push(std::mem::take(&mut frame.bytes));
            }
        } else if self.frames.len() < KEPT && frame.bytes.capacity() >= SMALL {
            self.frames.push(frame);
        }
    }

    /// A frame with room for one of ordinary size.
    pub fn blank(&mut self) -> Box<Frame> {
        self.frames.pop().unwrap_or_else(|| Box::new(Frame::new(Vec::with_capacity(SMALL))))
    }

    fn small(&mut self, bytes: &[u8]) -> Box<Frame> {
        let mut frame = self.frames.pop().unwrap_or_default();
        let mut buffer = std::mem::take(&mut frame.bytes);
        buffer.clear();
        buffer.reserve_exact(SMALL);
        buffer.extend_from_slice(bytes);
        *frame = Frame::new(buffer);
        frame
    }

    fn large(&mut self) -> Vec<u8> {
        self.large.pop().unwrap_or_else(|| Vec::with_capacity(LARGEST))
    }
}

/// The interface of one host as the fabric holds it.
pub struct Device {
    writer: Writer,
    kind: InterfaceKind,
    buffer: Vec<u8>,
}

/// The side of an interface that frames for its host are handed to; any thread may hold one.
#[derive(Clone, Debug)]
pub struct Writer {
    descriptor: Arc<OwnedFd>,
    whole_frames: bool,
}

impl Device {
    /// Takes over `descriptor`: non-blocking, with a `virtio_net_hdr` of [`VNET_HEADER_BYTES`] before each frame.
    /// With `whole_frames` what is written is cut into frames with complete checksums, for a reader that knows
    /// nothing of offloads.
    #[must_use]
    pub fn new(descriptor: OwnedFd, kind: InterfaceKind, whole_frames: bool) -> Self {
        Self { writer: Writer::new(Arc::new(descriptor), whole_frames), kind, buffer: Vec::new() }
    }

    /// Returns the writer to it.
    #[must_use]
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The descriptor, for waiting on it.
    #[must_use]
    pub fn raw(&self) -> RawFd {
        self.writer.descriptor.as_raw_fd()
    }

    /// The next frame that the host sent; `None` when there is none now.
    ///
    /// # Errors
    /// The error of the kernel when the interface is gone or broken.
    pub fn read(&mut self, pool: &mut Pool) -> io::Result<Option<Box<Frame>>> {
        if self.buffer.capacity() < LARGEST {
            self.buffer = pool.large();
        }
        let mut header = VirtioNetHeader::default();
        let mut parts = [
            libc::iovec { iov_base: (&raw mut header).cast(), iov_len: VNET_HEADER_BYTES },
            libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.capacity() },
        ];
        let (length, tag) = match self.kind {
            // SAFETY: both parts point to writable memory of the length given, which outlives the call.
            InterfaceKind::Tap => (unsafe { libc::readv(self.raw(), parts.as_ptr(), 2) }, None),
            // SAFETY: as above.
            InterfaceKind::Packet => unsafe { vlan_tag::receive(self.raw(), &mut parts) },
        };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        };
        let length = length.saturating_sub(VNET_HEADER_BYTES);
        // SAFETY: the kernel has written `length` bytes, which is at most the capacity.
        unsafe { self.buffer.set_len(length) };
        if let Some(tag) = tag {
            tag.put_back(&mut self.buffer);
            header.csum_start = header.csum_start.saturating_add(vlan_tag::BYTES);
        }
        let length = self.buffer.len();
        let mut frame = if length <= SMALL {
            pool.small(&self.buffer)
        } else {
            let mut frame = pool.frames.pop().unwrap_or_default();
            *frame = Frame::new(std::mem::take(&mut self.buffer));
            frame
        };
        apply(&header, &mut frame);
        if frame.offload_is_sound() {
            return Ok(Some(frame));
        }
        // A super-segment whose headers are not what it claims cannot be taken apart: as good as no frame.
        pool.recycle(frame);
        Ok(None)
    }
}

impl Writer {
    /// Writes to `descriptor` as [`Device::new`] tells.
    #[must_use]
    pub fn new(descriptor: Arc<OwnedFd>, whole_frames: bool) -> Self {
        Self { descriptor, whole_frames }
    }

    /// Hands `frame` to the host.
    ///
    /// # Errors
    /// The error of the kernel: `WouldBlock` when the interface takes no more now, `InvalidInput` for what it refuses.
    pub fn write(&self, frame: &Frame) -> io::Result<()> {
        if self.whole_frames && (frame.frames() > 1 || frame.checksum != Checksum::Complete) {
            for mut piece in Box::new(frame.clone()).into_frames() {
                piece.finish_checksum();
                self.write_as_it_is(&piece)?;
            }
            return Ok(());
        }
        self.write_as_it_is(frame)
    }

    /// Hands `frames` to the host as the super-segment that `joined` has made of them. Only where [`Writer::joins`]
    /// permits it.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn write_joined<'a>(&self, joined: Coalesced, frames: impl Iterator<Item = &'a Frame>) -> io::Result<()> {
        let headers = joined.finish();
        let told = describe(&headers);
        let mut parts = Vec::with_capacity(20);
        parts.push(part((&raw const told).cast(), VNET_HEADER_BYTES));
        parts.push(part(headers.bytes.as_ptr(), headers.bytes.len()));
        for frame in frames {
            let payload = frame.bytes.get(headers.bytes.len()..).unwrap_or_default();
            parts.push(part(payload.as_ptr(), payload.len()));
        }
        self.write_parts(&parts)
    }

    /// Returns `true` if frames may be joined for this host.
    #[must_use]
    pub fn joins(&self) -> bool {
        !self.whole_frames
    }

    fn write_as_it_is(&self, frame: &Frame) -> io::Result<()> {
        static ZEROS: [u8; LARGEST] = [0; LARGEST];
        let header = describe(frame);
        let filler = &ZEROS[..(frame.elided as usize).min(LARGEST)];
        let parts = [
            part((&raw const header).cast(), VNET_HEADER_BYTES),
            part(frame.bytes.as_ptr(), frame.bytes.len()),
            part(filler.as_ptr(), filler.len()),
        ];
        self.write_parts(if filler.is_empty() { &parts[..2] } else { &parts })
    }

    /// Writes `parts` as one frame. They must point to memory that outlives the call.
    fn write_parts(&self, parts: &[libc::iovec]) -> io::Result<()> {
        let count = libc::c_int::try_from(parts.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the parts point to readable memory of the length given, as the callers in this file see to; the
        // kernel does not write to it.
        let written = unsafe { libc::writev(self.descriptor.as_raw_fd(), parts.as_ptr(), count) };
        if written < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// One piece of what is written.
fn part(at: *const u8, length: usize) -> libc::iovec {
    libc::iovec { iov_base: at.cast_mut().cast(), iov_len: length }
}

/// Puts what the kernel told about a frame into it. A header that does not fit the frame is ignored: a host may
/// write anything.
pub(crate) fn apply(header: &VirtioNetHeader, frame: &mut Frame) {
    let length = frame.bytes.len();
    if header.flags & NEEDS_CSUM != 0 {
        let field = usize::from(header.csum_start) + usize::from(header.csum_offset) + 2;
        if field <= length {
            frame.checksum = Checksum::Partial { start: header.csum_start, offset: header.csum_offset };
        }
    }
    let kind = match header.gso_type & !GSO_ECN {
        GSO_TCPV4 => Segmentation::Tcp4,
        GSO_TCPV6 => Segmentation::Tcp6,
        GSO_UDP_L4 => Segmentation::Udp,
        _ => return,
    };
    // The header's length is read from the headers: what the kernel tells of it is a hint that may cover payload.
    let ecn = header.gso_type & GSO_ECN != 0;
    frame.offload = Offload::of_headers(&frame.bytes, kind, header.gso_size, ecn);
}

/// Returns what the kernel is to be told about `frame`.
pub(crate) fn describe(frame: &Frame) -> VirtioNetHeader {
    let mut header = VirtioNetHeader::default();
    if let Checksum::Partial { start, offset } = frame.checksum {
        header.flags = NEEDS_CSUM;
        header.csum_start = start;
        header.csum_offset = offset;
    }
    if let Some(offload) = frame.offload.filter(|_| frame.frames() > 1) {
        header.gso_type = match offload.kind {
            Segmentation::Tcp4 => GSO_TCPV4,
            Segmentation::Tcp6 => GSO_TCPV6,
            Segmentation::Udp => GSO_UDP_L4,
        } | if offload.ecn { GSO_ECN } else { GSO_NONE };
        header.gso_size = offload.segment;
        header.hdr_len = offload.header;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_super_segment() -> Frame {
        let mut bytes = vec![0_u8; 14 + 20 + 20 + 3000];
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        bytes[14] = 0x45;
        bytes[16..18].copy_from_slice(&3040_u16.to_be_bytes());
        bytes[23] = 6;
        bytes[14 + 20 + 12] = 5 << 4;
        let mut frame = Frame::new(bytes);
        let header = VirtioNetHeader {
            flags: NEEDS_CSUM,
            gso_type: GSO_TCPV4,
            hdr_len: 54,
            gso_size: 1448,
            csum_start: 34,
            csum_offset: 16,
        };
        apply(&header, &mut frame);
        frame
    }

    #[test]
    fn a_super_segment_survives_the_way_in_and_out() {
        let frame = tcp_super_segment();
        assert_eq!(frame.frames(), 3);
        let told = describe(&frame);
        assert_eq!((told.gso_type, told.gso_size, told.hdr_len), (GSO_TCPV4, 1448, 54));
        assert_eq!((told.flags, told.csum_start, told.csum_offset), (NEEDS_CSUM, 34, 16));
    }

    #[test]
    fn a_header_that_points_outside_the_frame_is_ignored() {
        let mut frame = Frame::new(vec![0; 60]);
        let header = VirtioNetHeader {
            flags: NEEDS_CSUM,
            gso_type: GSO_TCPV4,
            gso_size: 1,
            csum_start: 59,
            csum_offset: 16,
            ..Default::default()
        };
        apply(&header, &mut frame);
        assert_eq!((frame.checksum, frame.offload), (Checksum::Complete, None));
    }

    #[test]
    fn a_large_buffer_is_used_again() {
        let mut pool = Pool::default();
        let buffer = pool.large();
        let address = buffer.as_ptr();
        pool.recycle(Box::new(Frame::new(buffer)));
        let again = pool.large();
        assert_eq!(again.as_ptr(), address);
    }
}
