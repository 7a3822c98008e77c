//! A lab as both clocks show it: what it was described as, the fabric that was built of it, and the requests that it answers.

mod assemble;
mod error;
mod model_apps;
pub mod network;
pub mod requests;
mod virtual_capture;
mod virtual_lab;

pub use assemble::{assemble, queue, Bodies, Names, RunningNetwork};
pub use error::LabError;
pub use model_apps::{app_numbers, optional_number, AppStart, ModelApps};
pub use virtual_lab::{OpenFile, VirtualLab};
