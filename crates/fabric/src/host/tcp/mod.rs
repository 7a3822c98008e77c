//! TCP as a state machine without I/O, comparable with Linux's.
//!
//! A [`Connection`] is handed segments and the time; it gives segments to send when it is asked ([`Connection::poll_send`]), and tells
//! by [`Connection::take_signals`] what its socket's owner must know. Congestion windows are counted in segments, as Linux counts them.
//! What Linux does beyond the RFCs (its defaults, its proportional rate reduction, its TCP small queues) is done as Linux does it, so
//! that a model host and a real one can be compared.

pub mod congestion;
mod connection;
mod segment;

pub use connection::{Connection, Failure, Signals, TcpConfig, TcpInfo};
pub use segment::{Outgoing, Segment};
