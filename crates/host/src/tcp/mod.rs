//! TCP as a state machine without I/O, comparable with Linux's.
//!
//! A [`Connection`] is handed segments and the time; it gives segments to send when it is asked
//! ([`Connection::poll_send`]), and tells by [`Connection::take_signals`] what its socket's owner must know.
//! Congestion windows are counted in segments, as Linux counts them. What Linux does beyond the RFCs (its defaults,
//! its proportional rate reduction, its TCP small queues) is done as Linux does it, so that a model host and a real
//! one can be compared.

mod acknowledge;
mod arrival;
mod closing;
mod config;
pub mod congestion;
mod connection;
mod delayed_ack;
mod delivery_rate;
mod handshake;
mod rack;
mod receive_buffer;
mod recovery;
mod reduction;
mod round_trip;
mod segment;
mod send_buffer;
mod sent;
mod sequence;
mod tail_loss;
#[cfg(test)]
mod tests;
mod timers;
mod transmit;
mod undo;
mod window;
mod without_sack;

pub use config::{Ecn, Failure, Signals, TcpConfig, TcpInfo};
pub use connection::Connection;
pub use segment::{Outgoing, Segment};
pub use transmit::Planned;
