//! Where the fabric meets the kernel: namespaces, interfaces, processes, sockets, the real-time loop.
//!
//! This crate and `python` are the only ones that may hold `unsafe`, do I/O or read a clock.

pub mod clock;
pub mod control;
pub mod doctor;
pub mod interface;
pub mod lab_process;
pub mod namespace;
pub mod netlink;
pub mod network;
pub mod programs;
pub mod service;
