//! A lab as both clocks show it: what it was described as, the fabric that was built of it, and the requests that it answers.

mod assemble;
mod error;
pub mod network;
pub mod requests;

pub use assemble::{assemble, queue, Bodies, Names, RunningNetwork};
pub use error::LabError;
