//! ICMP for IPv4 (RFC 792).

use std::fmt;

use crate::big_endian::{get_u16, get_u32, put_u16, put_u32};
use crate::checksum;
use crate::malformed::{need, Malformed};

mod field {
    pub const TYPE: usize = 0;
    pub const CODE: usize = 1;
    pub const CHECKSUM: usize = 2;
    pub const REST: usize = 4;
}

mod kind {
    pub const ECHO_REPLY: u8 = 0;
    pub const UNREACHABLE: u8 = 3;
    pub const ECHO_REQUEST: u8 = 8;
    pub const TIME_EXCEEDED: u8 = 11;
}

/// Bytes of the header that all messages share.
pub const HEADER_LENGTH: usize = 8;
/// The protocol number of ICMP.
pub const PROTOCOL: u8 = 1;

/// A view of bytes as an ICMP message.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when the header is there in full.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), HEADER_LENGTH)?;
        Ok(Self(bytes))
    }

    /// Type of the message.
    pub fn kind(&self) -> u8 {
        self.0.as_ref()[field::TYPE]
    }

    /// Code within the type.
    pub fn code(&self) -> u8 {
        self.0.as_ref()[field::CODE]
    }

    /// The four bytes whose meaning depends on the type.
    pub fn rest(&self) -> u32 {
        get_u32(self.0.as_ref(), field::REST)
    }

    /// Returns `true` if the checksum verifies. Elided payload counts as zeros.
    pub fn verify_checksum(&self) -> bool {
        checksum::checksum(self.0.as_ref()) == 0
    }

    /// The stored part of what follows the header: echo data, or the packet that an error is about.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER_LENGTH..]
    }
}

/// An ICMP message without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Asks for an echo.
    EchoRequest {
        /// Tells senders on a host apart.
        identifier: u16,
        /// Counts the requests of a sender.
        sequence: u16,
    },
    /// The echo.
    EchoReply {
        /// That of the request.
        identifier: u16,
        /// That of the request.
        sequence: u16,
    },
    /// A packet could not be delivered.
    Unreachable {
        /// Why: 0 net, 1 host, 2 protocol, 3 port, 4 fragmentation needed, ...
        code: u8,
        /// With code 4: the MTU of the next hop (RFC 1191); else 0.
        next_hop_mtu: u16,
    },
    /// A packet's time to live ran out, or a reassembly took too long.
    TimeExceeded {
        /// 0 in transit, 1 in reassembly.
        code: u8,
    },
}

impl Repr {
    /// The message that a view shows.
    ///
    /// # Errors
    /// [`Malformed::Checksum`]; [`Malformed::Field`] for other types.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Malformed> {
        if !packet.verify_checksum() {
            return Err(Malformed::Checksum);
        }
        let bytes = packet.0.as_ref();
        let (first, second) = (get_u16(bytes, field::REST), get_u16(bytes, field::REST + 2));
        Ok(match packet.kind() {
            kind::ECHO_REQUEST => Self::EchoRequest { identifier: first, sequence: second },
            kind::ECHO_REPLY => Self::EchoReply { identifier: first, sequence: second },
            kind::UNREACHABLE => Self::Unreachable { code: packet.code(), next_hop_mtu: second },
            kind::TIME_EXCEEDED => Self::TimeExceeded { code: packet.code() },
            other => return Err(Malformed::Field { field: "type", value: other.into() }),
        })
    }

    /// Writes the header before the data that `bytes` holds from [`HEADER_LENGTH`] on, and the checksum over all.
    pub fn emit(&self, bytes: &mut [u8]) {
        let (kind, code, rest) = match *self {
            Self::EchoRequest { identifier, sequence } => {
                (kind::ECHO_REQUEST, 0, u32::from(identifier) << 16 | u32::from(sequence))
            }
            Self::EchoReply { identifier, sequence } => {
                (kind::ECHO_REPLY, 0, u32::from(identifier) << 16 | u32::from(sequence))
            }
            Self::Unreachable { code, next_hop_mtu } => (kind::UNREACHABLE, code, u32::from(next_hop_mtu)),
            Self::TimeExceeded { code } => (kind::TIME_EXCEEDED, code, 0),
        };
        bytes[field::TYPE] = kind;
        bytes[field::CODE] = code;
        put_u16(bytes, field::CHECKSUM, 0);
        put_u32(bytes, field::REST, rest);
        let sum = checksum::checksum(bytes);
        put_u16(bytes, field::CHECKSUM, sum);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EchoRequest { identifier, sequence } => write!(f, "ICMP echo request {identifier} {sequence}"),
            Self::EchoReply { identifier, sequence } => write!(f, "ICMP echo reply {identifier} {sequence}"),
            Self::Unreachable { code, .. } => write!(f, "ICMP unreachable code {code}"),
            Self::TimeExceeded { code } => write!(f, "ICMP time exceeded code {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 12] = [8, 0, 0xf1, 0xf2, 0, 1, 0, 7, 1, 2, 5, 3];

    #[test]
    fn deconstruct_and_construct() {
        let packet = Packet::new_checked(&BYTES).unwrap();
        let repr = Repr::EchoRequest { identifier: 1, sequence: 7 };
        assert_eq!(Repr::parse(&packet), Ok(repr));
        assert_eq!(packet.payload(), [1, 2, 5, 3]);
        let mut bytes = BYTES;
        bytes[..8].fill(0xff);
        repr.emit(&mut bytes);
        assert_eq!(bytes, BYTES);
        assert_eq!(repr.to_string(), "ICMP echo request 1 7");
    }

    #[test]
    fn every_message_reads_back() {
        for repr in [
            Repr::EchoReply { identifier: 9, sequence: 8 },
            Repr::Unreachable { code: 4, next_hop_mtu: 1400 },
            Repr::TimeExceeded { code: 1 },
        ] {
            let mut bytes = BYTES;
            repr.emit(&mut bytes);
            assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap()), Ok(repr));
        }
    }

    #[test]
    fn impossible_messages() {
        assert!(Packet::new_checked(&BYTES[..7]).is_err());
        let mut corrupt = BYTES;
        corrupt[11] ^= 1;
        assert_eq!(Repr::parse(&Packet::new_checked(&corrupt).unwrap()), Err(Malformed::Checksum));
    }
}
