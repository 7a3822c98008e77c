//! The network in motion: links, queue disciplines and switches.
//!
//! The fabric does no I/O, reads no clock and starts no threads: it is told what time it is and which frames came in.

pub mod impair;
pub mod queue;
pub mod switch;
