//! A lab as both clocks show it: what it was described as, the fabric that was built of it, and the requests that
//! it answers.

mod assemble;
pub mod capture;
mod described;
mod error;
pub mod guest;
mod model_apps;
pub mod network;
pub mod outside;
pub mod partition;
pub mod protocol;
pub mod requests;
mod trace_file;
pub mod tunnel_end;
mod virtual_capture;
mod virtual_control;
mod virtual_lab;
mod virtual_time;
pub mod vocabulary;

pub use assemble::{assemble, assemble_part, Bodies, Names, RunningNetwork};
pub use error::{ErrorName, LabError};
pub use model_apps::{unknown_host, ModelApps};
pub use virtual_control::ControlMessage;
pub use virtual_lab::VirtualLab;
