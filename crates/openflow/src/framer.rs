//! A byte stream, split into whole messages. Sans I/O: the caller pushes what arrived and takes the messages out.

use thiserror::Error;

use crate::{HEADER_BYTES, MAXIMUM_MESSAGE_BYTES};

/// Bytes that a [`Framer`] holds at most: one whole message of the greatest length and the beginning of the next.
pub const FRAMER_BYTES: usize = 2 * MAXIMUM_MESSAGE_BYTES;

/// Why a stream cannot be split any further, or a message in it not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FramingError {
    /// The header states fewer bytes than it has itself, so that the next message's beginning is unknown: close the
    /// connection.
    #[error("the header states a length of {length} bytes; allowed is 8 to 65535: close the connection")]
    ShortLength {
        /// Version in the header.
        version: u8,
        /// Transaction, for the error that may be sent before closing.
        xid: u32,
        /// The length.
        length: u16,
    },
    /// The message is of a version that was not agreed on. It is passed over; answer with `OFPBRC_BAD_VERSION` and
    /// go on.
    #[error("the message is of version {version}; allowed is the agreed version {agreed} (0: any but 0)")]
    Version {
        /// Version in the header.
        version: u8,
        /// Transaction, for the answer.
        xid: u32,
        /// The version that was agreed on; 0 while there is none.
        agreed: u8,
    },
}

/// Splits a byte stream into messages. It holds at most [`FRAMER_BYTES`], and grows by the bytes that came, not by
/// the lengths that they state.
#[derive(Debug, Default)]
pub struct Framer {
    buffer: Vec<u8>,
    start: usize,
    agreed: u8,
}

impl Framer {
    /// An empty one that takes every version but 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on only messages of `version` are taken, and hellos.
    pub const fn agree(&mut self, version: u8) {
        self.agreed = version;
    }

    /// Takes as many of `bytes` as there is room for, and says how many: push the rest after taking messages out.
    /// When every message was taken out, at least [`MAXIMUM_MESSAGE_BYTES`] are taken.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let taken = bytes.len().min(FRAMER_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Bytes that are waiting for the rest of their message, or to be taken out.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The next whole message, `None` until more is pushed.
    ///
    /// # Errors
    /// When the header's length is impossible (again at every call), or the version is not the agreed one (once:
    /// the message is passed over).
    pub fn next_message(&mut self) -> Result<Option<&[u8]>, FramingError> {
        let pending = &self.buffer[self.start..];
        let Some([version, kind, high, low, xid @ ..]) = pending.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let (version, xid, length) = (*version, u32::from_be_bytes(*xid), u16::from_be_bytes([*high, *low]));
        let bytes = usize::from(length);
        if bytes < HEADER_BYTES {
            return Err(FramingError::ShortLength { version, xid, length });
        }
        if pending.len() < bytes {
            return Ok(None);
        }
        let is_hello = *kind == 0;
        let message = self.start..self.start + bytes;
        self.start = message.end;
        if version == 0 || (self.agreed != 0 && version != self.agreed && !is_hello) {
            return Err(FramingError::Version { version, xid, agreed: self.agreed });
        }
        Ok(Some(&self.buffer[message]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 1];

    #[test]
    fn messages_come_out_whole_however_they_were_cut() {
        let mut framer = Framer::new();
        let stream = [&BARRIER[..], &[4, 2, 0, 10, 0, 0, 0, 2, 7, 8]].concat();
        let mut messages = Vec::new();
        for byte in stream {
            assert_eq!(framer.push(&[byte]), 1);
            while let Some(message) = framer.next_message().expect("the stream is right") {
                messages.push(message.to_vec());
            }
        }
        assert_eq!(messages, [BARRIER.to_vec(), vec![4, 2, 0, 10, 0, 0, 0, 2, 7, 8]]);
        assert_eq!(framer.pending(), 0);
    }

    #[test]
    fn a_length_below_the_header_is_refused_for_good() {
        let mut framer = Framer::new();
        framer.push(&[4, 20, 0, 7, 0, 0, 0, 9]);
        let error = FramingError::ShortLength { version: 4, xid: 9, length: 7 };
        assert_eq!(framer.next_message(), Err(error));
        assert_eq!(framer.next_message(), Err(error));
    }

    #[test]
    fn a_message_of_another_version_is_passed_over_but_a_hello_is_not() {
        let mut framer = Framer::new();
        framer.agree(4);
        framer.push(&[1, 18, 0, 8, 0, 0, 0, 5, 6, 0, 0, 8, 0, 0, 0, 6]);
        framer.push(&BARRIER);
        assert_eq!(framer.next_message(), Err(FramingError::Version { version: 1, xid: 5, agreed: 4 }));
        assert_eq!(framer.next_message(), Ok(Some(&[6, 0, 0, 8, 0, 0, 0, 6][..])));
        assert_eq!(framer.next_message(), Ok(Some(&BARRIER[..])));
    }

    #[test]
    fn a_flood_is_taken_up_to_the_bound() {
        let mut framer = Framer::new();
        assert_eq!(framer.push(&vec![0xff; 10 * FRAMER_BYTES]), FRAMER_BYTES);
        assert_eq!(framer.push(&[0]), 0);
    }

    #[test]
    fn the_longest_message_always_fits_after_the_others_were_taken() {
        let mut framer = Framer::new();
        let longest = [&[4, 2, 0xff, 0xff, 0, 0, 0, 1][..], &[0; MAXIMUM_MESSAGE_BYTES - 8]].concat();
        framer.push(&longest[..MAXIMUM_MESSAGE_BYTES - 1]);
        assert_eq!(framer.next_message(), Ok(None));
        framer.push(&longest[MAXIMUM_MESSAGE_BYTES - 1..]);
        assert_eq!(framer.next_message(), Ok(Some(&longest[..])));
    }
}
