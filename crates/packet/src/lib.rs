//! Frames and the headers in them. No I/O, no clock.

mod frame;

pub use frame::{Checksum, Frame, Framing, Offload, Segmentation};
