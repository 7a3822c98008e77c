//! Time, rates and sizes: exact integers inside, text with a unit outside. Named random streams.
//!
//! Time is counted in picoseconds, so that the serialisation time of a frame is exact at every common line rate
//! (one bit at 100 Gbit/s is 10 ps). A [`Time`] is a moment on the lab's clock, a [`Duration`] the distance between
//! two.

mod brought;
mod log_buckets;
mod parse;
mod rate;
mod size;
mod time;

pub mod impossible;
pub mod random;

pub use brought::Brought;
pub use log_buckets::LogBuckets;
pub use parse::ParseError;
pub use rate::Rate;
pub use size::Size;
pub use time::{Duration, Time};
