//! A lab as both clocks show it: what it was described as, the fabric that was built of it, and the requests that it answers.

mod app_requests;
mod assemble;
pub mod capture;
mod error;
mod model_apps;
pub mod network;
pub mod outside;
pub mod requests;
pub mod tunnel_end;
mod virtual_capture;
mod virtual_control;
mod virtual_lab;

pub use app_requests::{app_number, app_numbers, optional_number, reported_apps, unknown_host, AppStart};
pub use assemble::{assemble, queue, Bodies, Names, RunningNetwork};
pub use error::LabError;
pub use model_apps::ModelApps;
pub use virtual_control::ControlMessage;
pub use virtual_lab::VirtualLab;
