//! HTTP/1.1: a server, a client, a viewer of video in segments, and the syntax between them.

pub(crate) mod chunked;
pub(crate) mod client;
mod connection;
pub(crate) mod head;
mod playback;
pub(crate) mod server;
pub(crate) mod video;
