//! Traffic programs as state machines without I/O.
//!
//! An [`App`] is told what happened and when; it acts through a [`Host`]. The same app runs in a model host on either
//! clock and on real sockets in a namespace: an app never reads a clock, opens a socket or sleeps.

mod host;

pub use host::{App, Chunk, Event, Host, HostError, SocketId};
