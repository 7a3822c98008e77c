//! UDP headers (RFC 768).

use std::fmt;

use crate::big_endian::{get_u16, put_u16};
use crate::checksum;
use crate::malformed::{need, Malformed};

mod field {
    pub const SOURCE_PORT: usize = 0;
    pub const DESTINATION_PORT: usize = 2;
    pub const LENGTH: usize = 4;
    pub const CHECKSUM: usize = 6;
}

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;
/// The protocol number of UDP.
pub const PROTOCOL: u8 = 17;

/// A view of bytes as a UDP datagram. The payload may be elided.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when the header is there in full.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::Field`] for a length below 8 (other than 0, of a super-segment).
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), HEADER_LENGTH)?;
        let length = get_u16(bytes.as_ref(), field::LENGTH);
        if (1..8).contains(&length) {
            return Err(Malformed::Field { field: "length", value: length.into() });
        }
        Ok(Self(bytes))
    }

    /// Port it comes from.
    pub fn source_port(&self) -> u16 {
        get_u16(self.0.as_ref(), field::SOURCE_PORT)
    }

    /// Port it goes to.
    pub fn destination_port(&self) -> u16 {
        get_u16(self.0.as_ref(), field::DESTINATION_PORT)
    }

    /// Bytes of header and payload; 0 in a super-segment that is too long to say.
    pub fn length(&self) -> u16 {
        get_u16(self.0.as_ref(), field::LENGTH)
    }

    /// The checksum; 0 means that the sender used none.
    pub fn checksum(&self) -> u16 {
        get_u16(self.0.as_ref(), field::CHECKSUM)
    }

    /// Returns `true` if the checksum verifies, given the sum of the pseudo-header, or was not used. Elided payload
    /// counts as zeros.
    pub fn verify_checksum(&self, pseudo_header: u16) -> bool {
        let bytes = &self.0.as_ref()[..self.end()];
        self.checksum() == 0 || checksum::add(pseudo_header, checksum::sum(bytes)) == 0xffff
    }

    /// The stored part of the payload.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER_LENGTH..self.end()]
    }

    fn end(&self) -> usize {
        let stored = self.0.as_ref().len();
        match usize::from(self.length()) {
            0 => stored,
            length => length.min(stored),
        }
    }
}

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Port it comes from.
    pub source_port: u16,
    /// Port it goes to.
    pub destination_port: u16,
}

impl Repr {
    /// The header that a view shows.
    ///
    /// # Errors
    /// [`Malformed::Checksum`]; [`Malformed::Field`] for destination port 0.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>, pseudo_header: u16) -> Result<Self, Malformed> {
        if !packet.verify_checksum(pseudo_header) {
            return Err(Malformed::Checksum);
        }
        if packet.destination_port() == 0 {
            return Err(Malformed::Field { field: "destination port", value: 0 });
        }
        Ok(Self { source_port: packet.source_port(), destination_port: packet.destination_port() })
    }

    /// Writes the header before the payload that `bytes` holds from [`HEADER_LENGTH`] on; `elided` more bytes
    /// (zeros) follow in meaning. The checksum is computed from the sum of the pseudo-header.
    pub fn emit(&self, bytes: &mut [u8], elided: u16, pseudo_header: u16) {
        let stored = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        put_u16(bytes, field::SOURCE_PORT, self.source_port);
        put_u16(bytes, field::DESTINATION_PORT, self.destination_port);
        put_u16(bytes, field::LENGTH, stored.saturating_add(elided));
        put_u16(bytes, field::CHECKSUM, 0);
        let sum = !checksum::add(pseudo_header, checksum::sum(bytes));
        // "If the computed checksum is zero, it is transmitted as all ones."
        put_u16(bytes, field::CHECKSUM, if sum == 0 { 0xffff } else { sum });
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UDP {} > {}", self.source_port, self.destination_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 12] = [0x9c, 0x40, 0x13, 0x8b, 0, 12, 0x38, 0x00, 1, 2, 3, 4];

    fn pseudo_header() -> u16 {
        checksum::pseudo_header_v4([10, 0, 0, 1], [10, 0, 0, 4], PROTOCOL, 12)
    }

    #[test]
    fn deconstruct_and_construct() {
        let packet = Packet::new_checked(&BYTES).unwrap();
        assert_eq!(packet.payload(), [1, 2, 3, 4]);
        let mut bytes = BYTES;
        let repr = Repr { source_port: 40000, destination_port: 5003 };
        bytes[..8].fill(0);
        repr.emit(&mut bytes, 0, pseudo_header());
        assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap(), pseudo_header()), Ok(repr));
        assert_eq!(bytes, BYTES);
        assert_eq!(repr.to_string(), "UDP 40000 > 5003");
    }

    #[test]
    fn a_checksum_of_zero_is_not_checked_and_a_wrong_one_is_told() {
        let mut bytes = BYTES;
        bytes[6..8].fill(0);
        assert!(Repr::parse(&Packet::new_checked(&bytes).unwrap(), pseudo_header()).is_ok());
        bytes[7] = 1;
        assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap(), pseudo_header()), Err(Malformed::Checksum));
    }

    #[test]
    fn impossible_lengths() {
        assert!(Packet::new_checked(&BYTES[..7]).is_err());
        let mut bytes = BYTES;
        bytes[5] = 7;
        assert!(matches!(Packet::new_checked(&bytes), Err(Malformed::Field { field: "length", value: 7 })));
    }
}
