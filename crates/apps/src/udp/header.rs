//! The header of our UDP datagrams. Big endian:
//!
//! ```text
//!  0               4               8                              16
//! +---------------+---------------+-------------------------------+- - - -
//! | sequence      | flow          | send time, ns, lab's clock    | padding
//! +---------------+---------------+-------------------------------+- - - -
//! ```
//!
//! The sequence number begins at 0 and wraps. A payload of 8 to 15 bytes has no send time: the sink then counts,
//! and tells no delay. A shorter payload cannot be one of ours.

use std::ops::Range;

/// The offsets of the fields.
mod field {
    use std::ops::Range;
    pub const SEQUENCE: Range<usize> = 0..4;
    pub const FLOW: Range<usize> = 4..8;
    pub const SENT: Range<usize> = 8..16;
}

/// Bytes of a header with a send time.
pub const FULL_LENGTH: usize = field::SENT.end;
/// Bytes of a header without: the least payload.
pub const LEAST_LENGTH: usize = field::FLOW.end;

/// The time when a datagram was sent, in nanoseconds on the lab's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub u64);

/// The header's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the datagram in its flow, modulo 2^32.
    pub sequence: u32,
    /// The flow's number.
    pub flow: u32,
    /// The time when it was sent; absent in datagrams too short for it.
    pub sent: Option<Stamp>,
}

impl Header {
    /// Reads the header of a payload; `None` when it is too short to be ours.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let number = |range: Range<usize>| Some(u32::from_be_bytes(payload.get(range)?.try_into().ok()?));
        let sent = payload.get(field::SENT).and_then(|bytes| bytes.try_into().ok());
        Some(Self {
            sequence: number(field::SEQUENCE)?,
            flow: number(field::FLOW)?,
            sent: sent.map(|bytes| Stamp(u64::from_be_bytes(bytes))),
        })
    }

    /// Bytes that [`Header::emit`] fills.
    #[must_use]
    pub const fn length(&self) -> usize {
        if self.sent.is_some() {
            FULL_LENGTH
        } else {
            LEAST_LENGTH
        }
    }

    /// The header as bytes; the first [`Header::length`] of them count.
    #[must_use]
    pub fn emit(&self) -> [u8; FULL_LENGTH] {
        let mut bytes = [0; FULL_LENGTH];
        bytes[field::SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[field::FLOW].copy_from_slice(&self.flow.to_be_bytes());
        if let Some(Stamp(ns)) = self.sent {
            bytes[field::SENT].copy_from_slice(&ns.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: [u8; 16] = [0, 0, 1, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0x00];
    const HEADER: Header = Header { sequence: 258, flow: 7, sent: Some(Stamp(1_000_000_000)) };

    #[test]
    fn a_header_is_read_from_bytes_and_written_to_the_same() {
        assert_eq!(Header::parse(&BYTES), Some(HEADER));
        assert_eq!(HEADER.emit(), BYTES);
    }

    #[test]
    fn short_payloads_have_no_send_time_and_shorter_ones_no_header() {
        assert_eq!(Header::parse(&BYTES[..15]), Some(Header { sent: None, ..HEADER }));
        assert_eq!(Header::parse(&BYTES[..7]), None);
        assert_eq!(Header::parse(&[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_and_written_back_alike(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            match Header::parse(&bytes) {
                Some(header) => prop_assert_eq!(&header.emit()[..header.length()], &bytes[..header.length()]),
                None => prop_assert!(bytes.len() < LEAST_LENGTH),
            }
        }
    }
}
