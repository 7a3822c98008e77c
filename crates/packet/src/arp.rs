//! ARP for IPv4 over Ethernet (RFC 826).

use std::fmt;
use std::net::Ipv4Addr;

use crate::big_endian::{array, get_u16, put_u16};
use crate::ethernet::Address;
use crate::malformed::{need, Malformed};

mod field {
    pub const HARDWARE: usize = 0;
    pub const PROTOCOL: usize = 2;
    pub const LENGTHS: usize = 4;
    pub const OPERATION: usize = 6;
    pub const SENDER_HARDWARE: usize = 8;
    pub const SENDER_PROTOCOL: usize = 14;
    pub const TARGET_HARDWARE: usize = 18;
    pub const TARGET_PROTOCOL: usize = 24;
}

/// Bytes of a packet.
pub const PACKET_LENGTH: usize = 28;
/// Asks who has the target address.
pub const REQUEST: u16 = 1;
/// Says that the sender has it.
pub const REPLY: u16 = 2;

/// A view of bytes as an ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when the bytes are such a packet.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::Field`] for other hardware or protocols.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), PACKET_LENGTH)?;
        for (name, at, wanted) in [
            ("hardware type", field::HARDWARE, 1),
            ("protocol type", field::PROTOCOL, 0x0800),
            ("lengths", field::LENGTHS, 0x0604),
        ] {
            let value = get_u16(bytes.as_ref(), at);
            if value != wanted {
                return Err(Malformed::Field { field: name, value: value.into() });
            }
        }
        Ok(Self(bytes))
    }

    /// [`REQUEST`], [`REPLY`] or another operation.
    pub fn operation(&self) -> u16 {
        get_u16(self.0.as_ref(), field::OPERATION)
    }

    /// Ethernet address of the sender.
    pub fn sender_hardware(&self) -> [u8; 6] {
        array(self.0.as_ref(), field::SENDER_HARDWARE)
    }

    /// IPv4 address of the sender.
    pub fn sender_protocol(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.0.as_ref(), field::SENDER_PROTOCOL))
    }

    /// Ethernet address of the target; zeros in a request.
    pub fn target_hardware(&self) -> [u8; 6] {
        array(self.0.as_ref(), field::TARGET_HARDWARE)
    }

    /// IPv4 address of the target.
    pub fn target_protocol(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.0.as_ref(), field::TARGET_PROTOCOL))
    }
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// [`REQUEST`], [`REPLY`] or another operation.
    pub operation: u16,
    /// Ethernet address of the sender.
    pub sender_hardware: [u8; 6],
    /// IPv4 address of the sender.
    pub sender_protocol: Ipv4Addr,
    /// Ethernet address of the target; zeros in a request.
    pub target_hardware: [u8; 6],
    /// IPv4 address of the target.
    pub target_protocol: Ipv4Addr,
}

impl Repr {
    /// The packet that a view shows.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            operation: packet.operation(),
            sender_hardware: packet.sender_hardware(),
            sender_protocol: packet.sender_protocol(),
            target_hardware: packet.target_hardware(),
            target_protocol: packet.target_protocol(),
        }
    }

    /// Writes the packet to the first [`PACKET_LENGTH`] of `bytes`.
    pub fn emit(&self, bytes: &mut [u8]) {
        put_u16(bytes, field::HARDWARE, 1);
        put_u16(bytes, field::PROTOCOL, 0x0800);
        put_u16(bytes, field::LENGTHS, 0x0604);
        put_u16(bytes, field::OPERATION, self.operation);
        bytes[field::SENDER_HARDWARE..field::SENDER_PROTOCOL].copy_from_slice(&self.sender_hardware);
        bytes[field::SENDER_PROTOCOL..field::TARGET_HARDWARE].copy_from_slice(&self.sender_protocol.octets());
        bytes[field::TARGET_HARDWARE..field::TARGET_PROTOCOL].copy_from_slice(&self.target_hardware);
        bytes[field::TARGET_PROTOCOL..PACKET_LENGTH].copy_from_slice(&self.target_protocol.octets());
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sender = Address(self.sender_hardware);
        match self.operation {
            REQUEST => write!(f, "ARP who has {} tell {} ({sender})", self.target_protocol, self.sender_protocol),
            REPLY => write!(f, "ARP {} is at {sender}", self.sender_protocol),
            other => write!(f, "ARP operation {other} from {} ({sender})", self.sender_protocol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 28] = [
        0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 4, //
    ];

    #[test]
    fn deconstruct_and_construct() {
        let repr = Repr::parse(&Packet::new_checked(&BYTES).unwrap());
        assert_eq!(repr.target_protocol, Ipv4Addr::new(10, 0, 0, 4));
        assert_eq!((repr.operation, repr.sender_hardware), (REQUEST, [0, 0, 0, 0, 0, 1]));
        let mut bytes = [0xff; 28];
        repr.emit(&mut bytes);
        assert_eq!(bytes, BYTES);
        assert_eq!(repr.to_string(), "ARP who has 10.0.0.4 tell 10.0.0.1 (00:00:00:00:00:01)");
    }

    #[test]
    fn other_hardware_and_lengths_are_refused() {
        assert!(Packet::new_checked(&BYTES[..27]).is_err());
        for at in [1, 3, 4, 5] {
            let mut other = BYTES;
            other[at] = 9;
            assert!(matches!(Packet::new_checked(&other), Err(Malformed::Field { .. })), "byte {at}");
        }
    }
}
