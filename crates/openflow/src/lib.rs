//! OpenFlow 1.3.5 and 1.0.2 messages: decode, encode. No I/O, no state beyond the [`Framer`]'s buffer.
//!
//! [`Framer`] splits a byte stream into messages, [`v13::Message::decode`] and [`v10::Message::decode`] read one,
//! `encode` writes one. A message that a switch must refuse is a [`DecodeError`] with the error's type and code and
//! the transaction that it answers. Numbers without a name in the specifications are kept where an answer is not an
//! error, and experimenters' parts stay bytes, but for Nicira's ([`nicira`]).
//!
//! Left out: what depends on a switch (whether a port, table or group exists, what it supports), versions 1.1, 1.2,
//! 1.4 and 1.5, and the Nicira extensions that the reference page lists.

mod error;
mod framer;
mod header;
mod layout;
mod packet_out;
mod parted;
mod ports;
mod verbatim;
mod wire;

#[cfg(any(test, feature = "arbitrary"))]
mod arbitrary_parts;
#[cfg(test)]
mod round_trip;

pub mod nicira;
pub mod oxm;
pub mod v10;
pub mod v13;

pub use error::{DecodeError, Fault, Refusal, TextTooLong, TooLong};
pub use framer::{Framer, FramingError, FRAMER_BYTES};
pub use header::{Header, HEADER_BYTES};
pub use verbatim::Verbatim;
pub use wire::Text;

/// An Ethernet address.
pub type MacAddress = [u8; 6];

/// Bytes that a message has at most: its length field has 16 bits.
pub const MAXIMUM_MESSAGE_BYTES: usize = 65535;

/// `OFP_NO_BUFFER`: the message carries the whole frame.
pub const NO_BUFFER: u32 = u32::MAX;
