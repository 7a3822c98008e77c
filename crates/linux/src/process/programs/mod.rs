//! Programs that hosts run.
//!
//! Three processes stand behind a program. The *keeper* is a part of the lab process: it takes requests and knows
//! all jobs. The *zygote* has one thread and makes, when a host runs its first program, that host's *first
//! process*, which starts the host's programs and tells the keeper how they ended.
//!
//! When a host's first process is killed, the kernel ends the host's programs, their waits are answered with
//! `HostEnded`, and the next program starts the host anew. When the zygote is killed, no program could be started
//! any more in hosts that have run none: all waits are answered with `ProgramsEnded` and the lab ends.

pub mod apart;
mod held_up;
pub(crate) mod host;
pub mod image;
mod jobs;
mod keeper;
pub mod kernel_files;
mod loader;
pub(crate) mod names_of_hosts;
pub(crate) mod orders;
mod program;
pub mod zygote;

pub use keeper::Keeper;
pub(crate) use orders::{Notice, Outcome};
