//! The meeting of the fabric and the kernel: namespaces, interfaces, processes, sockets, the real-time loop.
//!
//! This crate and `python` are the only ones that may hold `unsafe`, do I/O or read a clock.

pub mod agent;
pub mod diagnostics;
pub mod doctor;
pub mod guest;
pub mod kernel;
pub mod outward;
pub mod process;
pub mod service;
pub mod wall;
