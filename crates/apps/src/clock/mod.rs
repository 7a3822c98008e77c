//! The comparison of two clocks: a client, a server, and their messages.

pub(crate) mod client;
pub(crate) mod message;
pub(crate) mod server;
