//! Tunnelled links: frames that cross an IPv4 underlay inside of other frames.

mod config;
mod entry;

pub use config::{TunnelConfig, TunnelError};
pub(crate) use entry::Entry;
