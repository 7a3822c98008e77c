//! Generic routing encapsulation (RFC 2784) with key and sequence number (RFC 2890).

use std::fmt;

use crate::big_endian::{get_u16, get_u32, put_u16, put_u32};
use crate::checksum;
use crate::malformed::{need, Malformed};

mod field {
    pub const FLAGS: usize = 0;
    pub const PROTOCOL: usize = 2;
    pub const OPTIONS: usize = 4;
}

/// The protocol number of GRE.
pub const PROTOCOL: u8 = 47;
/// The protocol type of what GRE carries here: Ethernet frames ("transparent Ethernet bridging").
pub const TRANSPARENT_ETHERNET: u16 = 0x6558;
/// Bytes of the longest header: checksum, key and sequence number.
pub const LONGEST_HEADER: usize = 16;

const CHECKSUM_PRESENT: u16 = 0x8000;
const ROUTING_PRESENT: u16 = 0x4000;
const KEY_PRESENT: u16 = 0x2000;
const SEQUENCE_PRESENT: u16 = 0x1000;
/// Bits 1 and 4 to 12 were something else in RFC 1701.
const RESERVED: u16 = ROUTING_PRESENT | 0x0ff8;
const VERSION: u16 = 0x0007;

/// A GRE header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// EtherType of what follows.
    pub protocol: u16,
    /// The key that tells several tunnels between the same two apart.
    pub key: Option<u32>,
    /// Number of the packet in its tunnel.
    pub sequence: Option<u32>,
    /// `true` if a checksum over header and payload is present.
    pub checksum: bool,
}

impl Repr {
    /// A header that carries Ethernet frames.
    #[must_use]
    pub const fn ethernet(key: Option<u32>, checksum: bool) -> Self {
        Self { protocol: TRANSPARENT_ETHERNET, key, sequence: None, checksum }
    }

    /// The header at the front of `packet`, and the payload behind it.
    ///
    /// # Errors
    /// Those of [`Repr::parse_unverified`], and [`Malformed::Checksum`].
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (repr, payload) = Self::parse_unverified(packet)?;
        if repr.checksum && checksum::sum(packet) != 0xffff {
            return Err(Malformed::Checksum);
        }
        Ok((repr, payload))
    }

    /// As [`Repr::parse`], for a packet that may be cut off, so that its checksum tells nothing.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::Field`] for bits that are reserved ("a receiver MUST discard a packet
    /// where any of the bits 1-5 are non-zero", RFC 2784 2.3) or another version.
    pub fn parse_unverified(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        need(packet, field::OPTIONS)?;
        let flags = get_u16(packet, field::FLAGS);
        if flags & RESERVED != 0 {
            return Err(Malformed::Field { field: "reserved", value: (flags & RESERVED).into() });
        }
        if flags & VERSION != 0 {
            return Err(Malformed::Field { field: "version", value: (flags & VERSION).into() });
        }
        let present = |bit: u16| flags & bit != 0;
        let options = [CHECKSUM_PRESENT, KEY_PRESENT, SEQUENCE_PRESENT];
        let length = field::OPTIONS + 4 * options.into_iter().filter(|bit| present(*bit)).count();
        need(packet, length)?;
        let mut at = field::OPTIONS + if present(CHECKSUM_PRESENT) { 4 } else { 0 };
        let mut option = |bit: u16| {
            present(bit).then(|| {
                let value = get_u32(packet, at);
                at += 4;
                value
            })
        };
        let (key, sequence) = (option(KEY_PRESENT), option(SEQUENCE_PRESENT));
        let protocol = get_u16(packet, field::PROTOCOL);
        Ok((Self { protocol, key, sequence, checksum: present(CHECKSUM_PRESENT) }, &packet[length..]))
    }

    /// Bytes of the header.
    #[must_use]
    pub fn length(&self) -> usize {
        let options = [self.checksum, self.key.is_some(), self.sequence.is_some()];
        field::OPTIONS + 4 * options.into_iter().filter(|present| *present).count()
    }

    /// Writes the header at the front of `packet`, whose payload stands behind it already.
    ///
    /// # Panics
    /// When `packet` is shorter than [`Repr::length`].
    pub fn emit(&self, packet: &mut [u8]) {
        let flag = |present: bool, bit: u16| if present { bit } else { 0 };
        let flags = flag(self.checksum, CHECKSUM_PRESENT)
            | flag(self.key.is_some(), KEY_PRESENT)
            | flag(self.sequence.is_some(), SEQUENCE_PRESENT);
        put_u16(packet, field::FLAGS, flags);
        put_u16(packet, field::PROTOCOL, self.protocol);
        let mut at = field::OPTIONS;
        if self.checksum {
            put_u32(packet, at, 0);
            at += 4;
        }
        for option in [self.key, self.sequence].into_iter().flatten() {
            put_u32(packet, at, option);
            at += 4;
        }
        if self.checksum {
            let sum = checksum::checksum(packet);
            put_u16(packet, field::OPTIONS, sum);
        }
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GRE proto={:#06x}", self.protocol)?;
        if let Some(key) = self.key {
            write!(f, " key={key}")?;
        }
        if let Some(sequence) = self.sequence {
            write!(f, " seq={sequence}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key 5 and an Ethernet frame's first bytes, as Linux's `gretap` sends them.
    const KEYED: [u8; 12] = [0x20, 0x00, 0x65, 0x58, 0, 0, 0, 5, 0xde, 0xad, 0xbe, 0xef];

    #[test]
    fn a_header_is_taken_apart_and_put_together() {
        let (repr, payload) = Repr::parse(&KEYED).unwrap();
        assert_eq!(repr, Repr::ethernet(Some(5), false));
        assert_eq!((payload, repr.length(), repr.to_string().as_str()), (&KEYED[8..], 8, "GRE proto=0x6558 key=5"));
        let mut again = [0; 12];
        again[8..].copy_from_slice(payload);
        repr.emit(&mut again);
        assert_eq!(again, KEYED);
    }

    #[test]
    fn every_set_of_options_comes_back_and_a_turned_bit_breaks_the_checksum() {
        for (key, sequence, checksum) in [(None, None, true), (Some(7), Some(9), true), (None, Some(1), false)] {
            let repr = Repr { protocol: TRANSPARENT_ETHERNET, key, sequence, checksum };
            let mut packet = vec![0x5a; repr.length() + 7];
            repr.emit(&mut packet);
            let (read, payload) = Repr::parse(&packet).unwrap();
            assert_eq!((read, payload.len()), (repr, 7));
            if checksum {
                *packet.last_mut().unwrap() ^= 1;
                assert_eq!(Repr::parse(&packet), Err(Malformed::Checksum));
                assert_eq!(Repr::parse_unverified(&packet).map(|(read, _)| read), Ok(repr));
            }
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for length in 0..8 {
            assert!(matches!(Repr::parse(&KEYED[..length]), Err(Malformed::Truncated { .. })));
        }
        for (byte, bit) in [(0, 0x40), (0, 0x08), (1, 0x80), (1, 0x01)] {
            let mut wrong = KEYED;
            wrong[byte] |= bit;
            assert!(matches!(Repr::parse(&wrong), Err(Malformed::Field { .. })), "byte {byte}, bit {bit:#x}");
        }
    }
}
