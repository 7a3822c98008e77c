//! The network in motion: links, queue disciplines and switches.
//!
//! The fabric does no I/O, reads no clock and starts no threads: it is told what time it is and which frames came in.

mod engine;
mod event;
mod heap;
mod line;
pub mod theory;
mod tree;
mod tunnel;

pub use engine::{
    BuildError, Coalescing, ControlOutput, DirectionChange, Fabric, LinkId, NodeId, PortCounters, PortId, Samples, Way,
    World, DEFAULT_QUEUE_FRAMES, HOP_LIMIT, MOST_SAMPLES,
};
pub use line::{catch_up, wire_bytes, DirectionConfig, DirectionCounters, LineRecord, LONGEST_TRAIN};
pub use tunnel::{TunnelConfig, TunnelError};
