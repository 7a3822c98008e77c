//! HTTP/1.1: a server and a client, and the syntax between them.

pub(crate) mod chunked;
pub(crate) mod client;
pub(crate) mod head;
pub(crate) mod server;
