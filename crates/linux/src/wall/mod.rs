//! The lab on the wall clock: the real-time loop, what it serves, and how closely it keeps its schedule.

mod aside;
mod busy_lines;
pub mod capture;
pub mod clock;
mod controllers;
mod delivery;
mod evidence;
pub mod fidelity;
mod held;
mod inelastic;
pub mod ingress;
pub(crate) mod model_apps;
mod moving_off;
mod pace;
pub mod parts;
pub mod pauses;
mod programs;
pub mod realtime;
mod requests;
pub mod scheduling;
mod shown;
mod spinning;
mod traffic;
mod tunnels;
pub(crate) mod wakefulness;
