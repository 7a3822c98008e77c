//! Messages by which two machines compare their clocks. Big endian:
//!
//! ```text
//!  0                8         12         16            24           32           40            48
//! +----------------+---------+----------+-------------+------------+------------+-------------+
//! | "twinclk", 1   | kind    | sequence | machine     | first      | second     | third       |
//! +----------------+---------+----------+-------------+------------+------------+-------------+
//! ```
//!
//! A request carries when it was sent; a reply repeats that and tells when the request arrived and when the reply
//! was sent (as RFC 5905, section 8). Who asked tells in the end what was found: the asker's offset against the
//! other and its bound; and which flows of datagrams it sent by that clock, how many of each: what a receiver
//! cannot know by itself.

use std::ops::Range;

const MAGIC: [u8; 8] = *b"twinclk\x01";

/// Bytes of a message.
pub const LENGTH: usize = 48;

mod field {
    use std::ops::Range;
    pub const MAGIC: Range<usize> = 0..8;
    pub const KIND: Range<usize> = 8..12;
    pub const SEQUENCE: Range<usize> = 12..16;
    pub const MACHINE: Range<usize> = 16..24;
    pub const FIRST: Range<usize> = 24..32;
    pub const SECOND: Range<usize> = 32..40;
    pub const THIRD: Range<usize> = 40..48;
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `first`: when it was sent.
    Request,
    /// `first` of the request, when that arrived, when this was sent.
    Reply,
    /// The receiver's clock less the asker's (two's complement), and the bound of the error.
    Found,
    /// A flow (`sequence` is its number): the port that it comes from times 2^16 and the port that it goes to; the
    /// datagrams sent, or all ones while it lasts.
    Sent,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its kind.
    pub kind: Kind,
    /// Number of the request, or of the flow.
    pub sequence: u32,
    /// Whose clock the sender has: equal numbers are one clock.
    pub machine: u64,
    /// Three times in nanoseconds, as the kind says.
    pub times: [u64; 3],
}

impl Message {
    /// Reads a message; `None` when it is none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let whole: &[u8; LENGTH] = bytes.get(..LENGTH)?.try_into().ok()?;
        let number = |range: Range<usize>| whole[range].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        if whole[field::MAGIC] != MAGIC {
            return None;
        }
        let kind = match number(field::KIND) {
            1 => Kind::Request,
            2 => Kind::Reply,
            3 => Kind::Found,
            4 => Kind::Sent,
            _ => return None,
        };
        let sequence = u32::try_from(number(field::SEQUENCE)).ok()?;
        let times = [number(field::FIRST), number(field::SECOND), number(field::THIRD)];
        Some(Self { kind, sequence, machine: number(field::MACHINE), times })
    }

    /// The message as bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[field::MAGIC].copy_from_slice(&MAGIC);
        let kind: u32 = match self.kind {
            Kind::Request => 1,
            Kind::Reply => 2,
            Kind::Found => 3,
            Kind::Sent => 4,
        };
        bytes[field::KIND].copy_from_slice(&kind.to_be_bytes());
        bytes[field::SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[field::MACHINE].copy_from_slice(&self.machine.to_be_bytes());
        for (range, time) in [field::FIRST, field::SECOND, field::THIRD].into_iter().zip(self.times) {
            bytes[range].copy_from_slice(&time.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_message_is_not_read() {
        let message = Message { kind: Kind::Found, sequence: 7, machine: 1 << 63, times: [u64::MAX, 2, 3] };
        let bytes = message.emit();
        assert_eq!(Message::parse(&bytes), Some(message));
        assert_eq!(Message::parse(&bytes[..47]), None);
        assert_eq!(Message::parse(&[0; 48]), None);
        let mut unknown = bytes;
        unknown[11] = 5;
        assert_eq!(Message::parse(&unknown), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_and_written_back_alike(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut ours = bytes;
            if ours.len() >= 8 {
                ours[..8].copy_from_slice(&MAGIC);
            }
            if let Some(message) = Message::parse(&ours) {
                prop_assert_eq!(&message.emit()[..], &ours[..LENGTH]);
            }
        }
    }
}
