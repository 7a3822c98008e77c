//! Ethernet II headers (IEEE 802.3, 3.1).

use std::fmt;

use crate::big_endian::{array, get_u16, put_u16};
use crate::malformed::{need, Malformed};

mod field {
    pub const DESTINATION: usize = 0;
    pub const SOURCE: usize = 6;
    pub const ETHER_TYPE: usize = 12;
}

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 14;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of a VLAN tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of an outer VLAN tag of a provider.
pub const PROVIDER_VLAN: u16 = 0x88a8;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of MPLS.
pub const MPLS: u16 = 0x8847;

/// An Ethernet address as text: six hexadecimal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub [u8; 6]);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A view of bytes as an Ethernet frame without FCS.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when there are enough bytes for the header.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), HEADER_LENGTH)?;
        Ok(Self(bytes))
    }

    /// Returns the destination address.
    pub fn destination(&self) -> [u8; 6] {
        array(self.0.as_ref(), field::DESTINATION)
    }

    /// Returns the source address.
    pub fn source(&self) -> [u8; 6] {
        array(self.0.as_ref(), field::SOURCE)
    }

    /// EtherType, or the length of an IEEE 802.3 frame when below 0x0600.
    pub fn ether_type(&self) -> u16 {
        get_u16(self.0.as_ref(), field::ETHER_TYPE)
    }

    /// Returns the payload: what follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER_LENGTH..]
    }
}

/// An Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The destination address.
    pub destination: [u8; 6],
    /// The source address.
    pub source: [u8; 6],
    /// The EtherType of what follows.
    pub ether_type: u16,
}

impl Repr {
    /// The header that a view shows.
    ///
    /// # Errors
    /// [`Malformed::Field`] for an IEEE 802.3 length in place of the EtherType.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Malformed> {
        let ether_type = packet.ether_type();
        if ether_type < 0x0600 {
            return Err(Malformed::Field { field: "EtherType", value: ether_type.into() });
        }
        Ok(Self { destination: packet.destination(), source: packet.source(), ether_type })
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn len(&self) -> usize {
        HEADER_LENGTH
    }

    /// Never: a header has bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes the header to the front of `bytes`, which holds at least [`Repr::len`].
    pub fn emit(&self, bytes: &mut [u8]) {
        bytes[field::DESTINATION..field::SOURCE].copy_from_slice(&self.destination);
        bytes[field::SOURCE..field::ETHER_TYPE].copy_from_slice(&self.source);
        put_u16(bytes, field::ETHER_TYPE, self.ether_type);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ethernet {} > {} type {:#06x}", Address(self.source), Address(self.destination), self.ether_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 16] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0x08, 0x06, 0xaa, 0xbb];

    #[test]
    fn deconstruct_and_construct() {
        let packet = Packet::new_checked(&BYTES).unwrap();
        let repr = Repr::parse(&packet).unwrap();
        assert_eq!(repr, Repr { destination: [0xff; 6], source: [0, 0, 0, 0, 0, 1], ether_type: ARP });
        assert_eq!(packet.payload(), [0xaa, 0xbb]);
        let mut bytes = BYTES;
        bytes[..14].fill(0);
        repr.emit(&mut bytes);
        assert_eq!(bytes, BYTES);
        assert_eq!(repr.to_string(), "Ethernet 00:00:00:00:00:01 > ff:ff:ff:ff:ff:ff type 0x0806");
    }

    #[test]
    fn impossible_headers() {
        assert_eq!(Packet::new_checked(&BYTES[..13]).unwrap_err(), Malformed::Truncated { given: 13, needed: 14 });
        let mut length = BYTES;
        length[12] = 0;
        assert!(matches!(Repr::parse(&Packet::new_checked(&length).unwrap()), Err(Malformed::Field { value: 6, .. })));
    }
}
