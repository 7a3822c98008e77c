//! SCTP common headers (RFC 9260, 3.1): as much as a flow table looks at.

use std::fmt;

use crate::big_endian::{array, get_u16, get_u32, put_u16, put_u32};
use crate::checksum;
use crate::malformed::{need, Malformed};

mod field {
    pub const SOURCE_PORT: usize = 0;
    pub const DESTINATION_PORT: usize = 2;
    pub const VERIFICATION_TAG: usize = 4;
    pub const CHECKSUM: usize = 8;
}

/// Bytes of the common header.
pub const HEADER_LENGTH: usize = 12;
/// The protocol number of SCTP.
pub const PROTOCOL: u8 = 132;

/// An SCTP common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Port it comes from.
    pub source_port: u16,
    /// Port it goes to.
    pub destination_port: u16,
    /// Verification tag of the association.
    pub verification_tag: u32,
}

impl Repr {
    /// Reads the header of the packet `bytes`, which is there in full.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::Checksum`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        need(bytes, HEADER_LENGTH)?;
        if u32::from_le_bytes(array(bytes, field::CHECKSUM)) != computed(bytes) {
            return Err(Malformed::Checksum);
        }
        Ok(Self {
            source_port: get_u16(bytes, field::SOURCE_PORT),
            destination_port: get_u16(bytes, field::DESTINATION_PORT),
            verification_tag: get_u32(bytes, field::VERIFICATION_TAG),
        })
    }

    /// Writes the header before the chunks that `bytes` holds from [`HEADER_LENGTH`] on.
    pub fn emit(&self, bytes: &mut [u8]) {
        put_u16(bytes, field::SOURCE_PORT, self.source_port);
        put_u16(bytes, field::DESTINATION_PORT, self.destination_port);
        put_u32(bytes, field::VERIFICATION_TAG, self.verification_tag);
        let crc = computed(bytes);
        bytes[field::CHECKSUM..HEADER_LENGTH].copy_from_slice(&crc.to_le_bytes());
    }
}

fn computed(bytes: &[u8]) -> u32 {
    checksum::crc32c(&[&bytes[..field::CHECKSUM], &[0; 4], &bytes[HEADER_LENGTH..]], 0)
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SCTP {} > {}", self.source_port, self.destination_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deconstruct_and_construct() {
        let mut bytes = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        let repr = Repr { source_port: 40000, destination_port: 5003, verification_tag: 7 };
        repr.emit(&mut bytes);
        assert_eq!(&bytes[..8], &[0x9c, 0x40, 0x13, 0x8b, 0, 0, 0, 7]);
        assert_eq!(Repr::parse(&bytes), Ok(repr));
        assert_eq!(repr.to_string(), "SCTP 40000 > 5003");
        bytes[15] ^= 1;
        assert_eq!(Repr::parse(&bytes), Err(Malformed::Checksum));
        assert!(matches!(Repr::parse(&bytes[..11]), Err(Malformed::Truncated { given: 11, needed: 12 })));
    }
}
