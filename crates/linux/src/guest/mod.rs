//! A guest kernel in virtual time: User Mode Linux, whose clock is ours and whose network cards are ports of the
//! fabric. All real hosts of a lab on the virtual clock live in it.
//!
//! [`Machine`] is the guest as the lab drives it (`twinnet_lab::guest`). Its kernel is a separate program, which speaks
//! with us by the time-travel protocol (`calendar`) and by vhost-user (`port`, `rings`). `first_process` runs inside of
//! it, and is told by a network card of its own (`channel`) which programs to start.

mod calendar;
mod channel;
mod first_process;
mod kernel;
mod machine;
mod placement;
mod port;
mod rings;
mod silence;
mod wall;

pub use first_process::run as run_first_process;
pub use kernel::GuestSettings;
pub use machine::Machine;
