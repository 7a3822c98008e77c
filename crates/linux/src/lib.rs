//! Where the fabric meets the kernel: namespaces, interfaces, processes, sockets, the real-time loop.
//!
//! This crate and `python` are the only ones that may hold `unsafe`, do I/O or read a clock.

pub mod agent;
mod aside;
pub mod back_pressure;
pub mod capture;
pub mod clock;
pub mod control;
mod controllers;
pub mod device;
pub mod doctor;
pub mod fidelity;
pub mod ingress;
pub mod interface;
pub mod lab_process;
mod model_apps;
pub mod namespace;
pub mod netlink;
pub mod open_vswitch;
mod pacing;
pub mod programs;
pub mod real_interface;
pub mod realtime;
mod requests;
pub mod scheduling;
pub mod service;
mod tunnels;
mod vlan_tag;
mod wakefulness;
