//! Frames and the headers in them. No I/O, no clock.

pub mod checksum;
mod extract;
mod flow_key;
mod frame;
mod rewrite;
mod segment;

pub use extract::{Layout, ETH_TYPE_NONE};
pub use flow_key::{mac_of, mac_value, mix, Field, FlowKey, FLOW_KEY_WORDS};
pub use frame::{Checksum, Frame, Framing, Offload, Segmentation};
pub use rewrite::Rewrite;
pub use segment::Frames;
