//! A segment as it comes in and as it goes out.

use twinnet_packet::tcp::{Flags, Options};

/// A segment that arrived, its header read.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Sequence number of its first byte (or of its SYN).
    pub sequence: u32,
    /// Acknowledgement number; counts when [`Flags::ACK`] is set.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: Flags,
    /// Receive window as it stands in the header, unscaled.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// The real bytes of the payload; `elided` more follow.
    pub payload: &'a [u8],
    /// Payload bytes that are not stored.
    pub elided: u32,
    /// `true` if its packet carried the mark "congestion experienced" (RFC 3168).
    pub congestion_experienced: bool,
}

impl Segment<'_> {
    /// Payload bytes, stored and elided.
    #[must_use]
    pub fn payload_length(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX).saturating_add(self.elided)
    }
}

/// The segment that [`super::Connection::poll_send`] has written: a TCP header (its checksum 0) and the real bytes of
/// the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Payload bytes that follow but are not stored.
    pub elided: u32,
    /// `true` if the packet is to be marked as ECN-capable, ECT(0).
    pub ecn_capable: bool,
    /// Payload bytes, stored and elided: what counts against TCP small queues until the interface has sent it.
    pub payload: u32,
}
