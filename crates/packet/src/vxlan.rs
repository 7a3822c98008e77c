//! Virtual extensible LAN headers (RFC 7348).

use std::fmt;

use crate::big_endian::{get_u32, put_u32};
use crate::malformed::{need, Malformed};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;
/// The UDP port that IANA gave to VXLAN.
pub const PORT: u16 = 4789;
/// The highest network identifier: it has 24 bits.
pub const HIGHEST_VNI: u32 = 0x00ff_ffff;

/// The flag I: the network identifier is valid.
const VNI_PRESENT: u32 = 0x0800_0000;

/// A VXLAN header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The network identifier, 24 bits.
    pub vni: u32,
}

impl Repr {
    /// The header at the front of `datagram`, and the frame behind it. Reserved bits are "ignored on receipt" (RFC
    /// 7348 5).
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::Field`] when the flag I, which "MUST be set to 1 for a valid VNI", is
    /// not.
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        need(datagram, HEADER_LENGTH)?;
        let flags = get_u32(datagram, 0);
        if flags & VNI_PRESENT == 0 {
            return Err(Malformed::Field { field: "flags", value: flags >> 24 });
        }
        Ok((Self { vni: get_u32(datagram, 4) >> 8 }, &datagram[HEADER_LENGTH..]))
    }

    /// Writes the header at the front of `datagram`.
    ///
    /// # Panics
    /// When `datagram` is shorter than [`HEADER_LENGTH`].
    pub fn emit(&self, datagram: &mut [u8]) {
        put_u32(datagram, 0, VNI_PRESENT);
        put_u32(datagram, 4, (self.vni & HIGHEST_VNI) << 8);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VXLAN vni={}", self.vni)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u8; 10] = [0x08, 0, 0, 0, 0, 0, 42, 0, 0xaa, 0xbb];

    #[test]
    fn a_header_is_taken_apart_and_put_together() {
        let (repr, frame) = Repr::parse(&HEADER).unwrap();
        assert_eq!((repr, frame), (Repr { vni: 42 }, &HEADER[8..]));
        let mut again = HEADER;
        again[..8].fill(0xff);
        repr.emit(&mut again);
        assert_eq!(again, HEADER);
    }

    #[test]
    fn a_short_one_and_one_without_an_identifier_are_refused() {
        for length in 0..8 {
            assert!(matches!(Repr::parse(&HEADER[..length]), Err(Malformed::Truncated { .. })));
        }
        let mut wrong = HEADER;
        wrong[0] = 0;
        assert!(matches!(Repr::parse(&wrong), Err(Malformed::Field { field: "flags", .. })));
    }
}
