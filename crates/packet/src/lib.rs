//! Frames and the headers in them. No I/O, no clock.
//!
//! A protocol is a file: a checked view of bytes (`Packet`), what they say (`Repr`), and how it is written back.
//! What switches need of all protocols at once is the [`FlowKey`]; what they change in place is a [`Rewrite`]. Left
//! out: reassembly of fragments, IPv4 options, IGMP, SCTP chunks, the payload of MPLS.
//!
//! A frame has the bytes of its headers; its payload may be a length alone:
//!
//! ```
//! use twinnet_packet::{Frame, Framing};
//!
//! let mut frame = Frame::new(vec![0; 54]);
//! frame.elided = 1460;
//! assert_eq!(frame.length(), 1514);
//! // On Ethernet it costs preamble 8, check sequence 4 and gap 12 more (IEEE 802.3).
//! assert_eq!(frame.wire_bytes(Framing::Ethernet), 1538);
//! ```

mod address;
mod big_endian;
mod carried;
mod coalesce;
mod extract;
mod flow_key;
mod frame;
mod glance;
mod malformed;
mod pool;
mod rewrite;
mod segment;
mod tags;

pub mod arp;
pub mod checksum;
pub mod ethernet;
pub mod gre;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod mpls;
pub mod pcapng;
pub mod rtp;
pub mod sctp;
pub mod tcp;
pub mod udp;
pub mod vlan;
pub mod vxlan;

pub use address::{MacAddress, Prefix};
pub use carried::{Fragment, Piece};
pub use coalesce::Coalesced;
pub use extract::{Layout, ETH_TYPE_NONE};
pub use flow_key::{mac_of, mac_value, mix, Field, FlowKey, FLOW_KEY_WORDS};
pub use frame::{Checksum, Extent, Frame, Framing, Offload, Segmentation};
pub use glance::Glance;
pub use malformed::Malformed;
pub use pool::FramePool;
pub use rewrite::Rewrite;
pub use segment::{Frames, Train};
