//! The frame: real header bytes, a payload that may be elided, and the train of frames it may stand for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::carried::Fragment;
use crate::extract::is_vlan_type;

/// What a link charges for a frame beyond the bytes that a capture shows (Ethernet header to payload, without FCS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// IEEE 802.3: preamble and start delimiter 8, FCS 4, inter-frame gap 12; frames shorter than 64 bytes with FCS
    /// are padded.
    #[default]
    Ethernet,
    /// HDLC on a serial line: the 14-byte Ethernet header is replaced by address 1, control 1, protocol 2; FCS 2;
    /// one closing flag.
    Hdlc,
    /// Nothing: the bytes of the frame alone.
    None,
}

impl Framing {
    /// Bytes on the wire for one frame of `length` bytes (Ethernet header included, FCS not).
    #[must_use]
    pub const fn wire_bytes(self, length: u64) -> u64 {
        match self {
            Self::Ethernet => (if length < 60 { 60 } else { length }) + 24,
            Self::Hdlc => length.saturating_sub(14) + 4 + 2 + 1,
            Self::None => length,
        }
    }

    /// Bytes at the end of [`Framing::wire_bytes`] that only keep frames apart: the frame has arrived before they
    /// are over.
    #[must_use]
    pub const fn gap_bytes(self) -> u64 {
        match self {
            Self::Ethernet => 12,
            Self::Hdlc | Self::None => 0,
        }
    }
}

/// The state of the transport header's checksum, as `virtio_net_hdr` tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The bytes hold what they should (or the sender meant them so).
    #[default]
    Complete,
    /// The checksum field holds the pseudo-header's sum; the rest is to be added from `start` on.
    Partial {
        /// Offset of the first byte to sum, from the start of the frame.
        start: u16,
        /// Offset of the checksum field from `start`.
        offset: u16,
    },
}

/// The way a super-segment is cut into the frames it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP datagrams of equal size over IPv4 or IPv6 (`UDP_SEGMENT`).
    Udp,
}

/// A super-segment: one header, `segment` payload bytes a frame, the last one shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// The protocol whose rules cut it.
    pub kind: Segmentation,
    /// Payload bytes of each frame but the last.
    pub segment: u16,
    /// Bytes of headers that every frame repeats, from the Ethernet header to the end of the transport header.
    pub header: u16,
    /// TCP: the congestion-window-reduced flag belongs to the first frame only (`VIRTIO_NET_HDR_GSO_ECN`).
    pub ecn: bool,
}

/// The amounts that a frame, or a train, adds to what counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Frames; see [`Frame::frames`].
    pub frames: u64,
    /// Their bytes at the link layer; see [`Frame::link_bytes`].
    pub link_bytes: u64,
    /// Their bytes on the wire; see [`Frame::wire_bytes`].
    pub wire_bytes: u64,
}

/// One Ethernet frame, or the train of frames that a super-segment stands for.
///
/// `bytes` begins with the Ethernet destination and ends where the real bytes end; `elided` more payload bytes
/// follow in meaning only. Queues and links move frames by `Box<Frame>`, so the size of this type costs nothing on
/// the way.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The real bytes, from the Ethernet header on, without FCS.
    pub bytes: Vec<u8>,
    /// Payload bytes that follow but are not stored.
    pub elided: u32,
    /// Set when this stands for several frames.
    pub offload: Option<Offload>,
    /// State of the transport checksum.
    pub checksum: Checksum,
    /// The queue of the next output port that a switch has chosen (OpenFlow `set_queue`); 0 is the default queue.
    pub queue: u32,
    /// Switches passed so far; the fabric drops a frame that passed too many (a loop).
    pub hops: u16,
    /// Set when this is an outer frame of a tunnel: what it carries.
    pub fragment: Option<Fragment>,
}

impl Frame {
    /// A frame of `bytes`, complete.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Length of what is stored and elided together: of one frame, or of the super-segment with its single header.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64 + u64::from(self.elided)
    }

    /// The outermost VLAN tag's priority and identifier; `None` without a tag.
    #[must_use]
    pub fn vlan_control(&self) -> Option<u16> {
        let &[kind, kind_low, high, low, _, _] = self.bytes.get(12..18)? else { return None };
        is_vlan_type(u16::from_be_bytes([kind, kind_low])).then_some(u16::from_be_bytes([high, low]))
    }

    /// Returns `true` if this is a TCP segment over IPv4 or over IPv6 without extension headers, tagged or not.
    #[must_use]
    #[inline]
    pub fn carries_tcp(&self) -> bool {
        const TCP: u8 = 6;
        let mut at = 12;
        loop {
            let Some(kind) = self.bytes.get(at..at + 2) else { return false };
            let protocol = match [kind[0], kind[1]] {
                // IEEE 802.1Q and 802.1ad: the type of what is tagged follows the tag.
                [0x81, 0x00] | [0x88, 0xa8] => {
                    at += 4;
                    continue;
                }
                [0x08, 0x00] => self.bytes.get(at + 11),
                [0x86, 0xdd] => self.bytes.get(at + 8),
                _ => None,
            };
            return protocol == Some(&TCP);
        }
    }

    /// Frames that this stands for; 1 without segmentation.
    #[must_use]
    #[inline]
    pub fn frames(&self) -> u64 {
        match self.offload {
            Some(offload) if offload.segment > 0 => {
                let payload = self.length().saturating_sub(u64::from(offload.header));
                if payload <= u64::from(offload.segment) {
                    return 1;
                }
                payload.div_ceil(u64::from(offload.segment))
            }
            _ => 1,
        }
    }

    /// Bytes of all frames of the train at the link layer: Ethernet headers included, FCS and framing not.
    #[must_use]
    pub fn link_bytes(&self) -> u64 {
        let repeated = self.offload.map_or(0, |offload| u64::from(offload.header));
        self.length() + (self.frames() - 1) * repeated
    }

    /// Bytes that the train occupies on a wire with `framing`.
    #[must_use]
    pub fn wire_bytes(&self, framing: Framing) -> u64 {
        self.extent(framing).wire_bytes
    }

    /// All three amounts at once: the number of frames of a train costs a division.
    #[must_use]
    #[inline]
    pub fn extent(&self, framing: Framing) -> Extent {
        let length = self.length();
        let single = Extent { frames: 1, link_bytes: length, wire_bytes: framing.wire_bytes(length) };
        let Some(offload) = self.offload else { return single };
        let frames = self.frames();
        if frames == 1 {
            return single;
        }
        let (header, segment) = (u64::from(offload.header), u64::from(offload.segment));
        let last = length - (frames - 1) * segment;
        Extent {
            frames,
            link_bytes: length + (frames - 1) * header,
            wire_bytes: framing.wire_bytes(header + segment) * (frames - 1) + framing.wire_bytes(last),
        }
    }
}
