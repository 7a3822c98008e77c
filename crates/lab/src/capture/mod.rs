//! Captures of ports, on both clocks: what is asked for, how frames become blocks of a file, and how files follow
//! each other.
//!
//! The recorder stands where frames pass and gathers blocks; the writer puts them into files, on the wall clock in
//! a thread of its own. A capture never disturbs the run: what cannot be written is counted.

mod recorder;
mod running;
mod settings;
mod writer;

pub use recorder::{Batch, Recorder};
pub use running::RunningCaptures;
pub use settings::CaptureSettings;
pub use writer::{CaptureFile, CaptureStore, CaptureWriter, NoFiles};
