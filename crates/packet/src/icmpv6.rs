//! ICMPv6 (RFC 4443), and the neighbour discovery in it (RFC 4861).

use std::fmt;
use std::net::Ipv6Addr;

use crate::big_endian::{array, get_u16, get_u32, put_u16, put_u32};
use crate::checksum;
use crate::extract::neighbour_options;
use crate::malformed::{need, Malformed};

mod field {
    pub const TYPE: usize = 0;
    pub const CODE: usize = 1;
    pub const CHECKSUM: usize = 2;
    pub const REST: usize = 4;
    pub const TARGET: usize = 8;
    pub const OPTIONS: usize = 24;
}

mod kind {
    pub const UNREACHABLE: u8 = 1;
    pub const PACKET_TOO_BIG: u8 = 2;
    pub const TIME_EXCEEDED: u8 = 3;
    pub const ECHO_REQUEST: u8 = 128;
    pub const ECHO_REPLY: u8 = 129;
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
}

const SOURCE_LINK_ADDRESS: u8 = 1;
const TARGET_LINK_ADDRESS: u8 = 2;

/// Bytes of the header that all messages share.
pub const HEADER_LENGTH: usize = 8;
/// The protocol number of ICMPv6.
pub const PROTOCOL: u8 = 58;

/// A view of bytes as an ICMPv6 message.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when the header is there in full.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), HEADER_LENGTH)?;
        let kind = bytes.as_ref()[field::TYPE];
        if matches!(kind, kind::NEIGHBOUR_SOLICITATION | kind::NEIGHBOUR_ADVERTISEMENT) {
            need(bytes.as_ref(), field::OPTIONS)?;
        }
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

    /// Returns `true` if the checksum verifies, given the sum of the pseudo-header. Elided payload counts as zeros.
    pub fn verify_checksum(&self, pseudo_header: u16) -> bool {
        checksum::add(pseudo_header, checksum::sum(self.0.as_ref())) == 0xffff
    }

    /// Target of a neighbour solicitation or advertisement.
    pub fn target(&self) -> Option<Ipv6Addr> {
        let discovery = matches!(self.kind(), kind::NEIGHBOUR_SOLICITATION | kind::NEIGHBOUR_ADVERTISEMENT);
        discovery.then(|| Ipv6Addr::from(array::<16>(self.0.as_ref(), field::TARGET)))
    }

    fn link_address(&self, option: u8) -> Option<[u8; 6]> {
        self.target()?;
        let bytes = self.0.as_ref();
        neighbour_options(bytes).find(|&(kind, _)| kind == option).map(|(_, at)| array(bytes, at + 2))
    }

    /// The stored part of what follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER_LENGTH..]
    }
}

/// An ICMPv6 message without its data.
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
        /// Why: 0 no route, 1 forbidden, 3 address, 4 port, ...
        code: u8,
    },
    /// A packet was larger than a link's MTU.
    PacketTooBig {
        /// That MTU.
        mtu: u32,
    },
    /// A packet's hop limit ran out, or a reassembly took too long.
    TimeExceeded {
        /// 0 in transit, 1 in reassembly.
        code: u8,
    },
    /// Asks for the link-layer address of `target`.
    NeighbourSolicitation {
        /// Whose address is asked for.
        target: Ipv6Addr,
        /// The sender's link-layer address.
        source_link: Option<[u8; 6]>,
    },
    /// Tells the link-layer address of `target`.
    NeighbourAdvertisement {
        /// Whose address is told.
        target: Ipv6Addr,
        /// The sender is a router.
        router: bool,
        /// It answers a solicitation.
        solicited: bool,
        /// It replaces what was known.
        overrides: bool,
        /// The target's link-layer address.
        target_link: Option<[u8; 6]>,
    },
}

impl Repr {
    /// The message that a view shows.
    ///
    /// # Errors
    /// [`Malformed::Checksum`]; [`Malformed::Field`] for other types.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>, pseudo_header: u16) -> Result<Self, Malformed> {
        if !packet.verify_checksum(pseudo_header) {
            return Err(Malformed::Checksum);
        }
        let bytes = packet.0.as_ref();
        let (first, second) = (get_u16(bytes, field::REST), get_u16(bytes, field::REST + 2));
        let other = Malformed::Field { field: "type", value: packet.kind().into() };
        Ok(match packet.kind() {
            kind::ECHO_REQUEST => Self::EchoRequest { identifier: first, sequence: second },
            kind::ECHO_REPLY => Self::EchoReply { identifier: first, sequence: second },
            kind::UNREACHABLE => Self::Unreachable { code: packet.code() },
            kind::PACKET_TOO_BIG => Self::PacketTooBig { mtu: packet.rest() },
            kind::TIME_EXCEEDED => Self::TimeExceeded { code: packet.code() },
            kind::NEIGHBOUR_SOLICITATION => Self::NeighbourSolicitation {
                target: packet.target().ok_or(other)?,
                source_link: packet.link_address(SOURCE_LINK_ADDRESS),
            },
            kind::NEIGHBOUR_ADVERTISEMENT => Self::NeighbourAdvertisement {
                target: packet.target().ok_or(other)?,
                router: first & 0x8000 != 0,
                solicited: first & 0x4000 != 0,
                overrides: first & 0x2000 != 0,
                target_link: packet.link_address(TARGET_LINK_ADDRESS),
            },
            _ => return Err(other),
        })
    }

    /// Bytes of the message without data after it: options are part of it.
    #[must_use]
    pub const fn header_length(&self) -> usize {
        match self {
            Self::NeighbourSolicitation { source_link: link, .. }
            | Self::NeighbourAdvertisement { target_link: link, .. } => {
                field::OPTIONS + if link.is_some() { 8 } else { 0 }
            }
            _ => HEADER_LENGTH,
        }
    }

    /// Writes the message before the data that `bytes` holds from [`Repr::header_length`] on, and the checksum over
    /// all.
    pub fn emit(&self, bytes: &mut [u8], pseudo_header: u16) {
        let echo = |identifier: u16, sequence: u16| u32::from(identifier) << 16 | u32::from(sequence);
        let (kind, code, rest) = match *self {
            Self::EchoRequest { identifier, sequence } => (kind::ECHO_REQUEST, 0, echo(identifier, sequence)),
            Self::EchoReply { identifier, sequence } => (kind::ECHO_REPLY, 0, echo(identifier, sequence)),
            Self::Unreachable { code } => (kind::UNREACHABLE, code, 0),
            Self::PacketTooBig { mtu } => (kind::PACKET_TOO_BIG, 0, mtu),
            Self::TimeExceeded { code } => (kind::TIME_EXCEEDED, code, 0),
            Self::NeighbourSolicitation { target, source_link } => {
                emit_target(bytes, target, source_link, SOURCE_LINK_ADDRESS);
                (kind::NEIGHBOUR_SOLICITATION, 0, 0)
            }
            Self::NeighbourAdvertisement { target, router, solicited, overrides, target_link } => {
                emit_target(bytes, target, target_link, TARGET_LINK_ADDRESS);
                let flags = u32::from(router) << 31 | u32::from(solicited) << 30 | u32::from(overrides) << 29;
                (kind::NEIGHBOUR_ADVERTISEMENT, 0, flags)
            }
        };
        bytes[field::TYPE] = kind;
        bytes[field::CODE] = code;
        put_u16(bytes, field::CHECKSUM, 0);
        put_u32(bytes, field::REST, rest);
        let sum = !checksum::add(pseudo_header, checksum::sum(bytes));
        put_u16(bytes, field::CHECKSUM, sum);
    }
}

fn emit_target(bytes: &mut [u8], target: Ipv6Addr, link: Option<[u8; 6]>, option: u8) {
    bytes[field::TARGET..field::OPTIONS].copy_from_slice(&target.octets());
    if let Some(link) = link {
        bytes[field::OPTIONS] = option;
        bytes[field::OPTIONS + 1] = 1;
        bytes[field::OPTIONS + 2..field::OPTIONS + 8].copy_from_slice(&link);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EchoRequest { identifier, sequence } => write!(f, "ICMPv6 echo request {identifier} {sequence}"),
            Self::EchoReply { identifier, sequence } => write!(f, "ICMPv6 echo reply {identifier} {sequence}"),
            Self::Unreachable { code } => write!(f, "ICMPv6 unreachable code {code}"),
            Self::PacketTooBig { mtu } => write!(f, "ICMPv6 packet too big, mtu {mtu}"),
            Self::TimeExceeded { code } => write!(f, "ICMPv6 time exceeded code {code}"),
            Self::NeighbourSolicitation { target, .. } => write!(f, "ICMPv6 who has {target}"),
            Self::NeighbourAdvertisement { target, .. } => write!(f, "ICMPv6 here is {target}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PSEUDO_HEADER: u16 = 0x1234;

    const SOLICITATION: [u8; 32] =
        [135, 0, 0x67, 0x44, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 1, 0, 0, 0, 0, 0, 1];

    #[test]
    fn deconstruct_and_construct() {
        let target = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 4);
        let repr = Repr::NeighbourSolicitation { target, source_link: Some([0, 0, 0, 0, 0, 1]) };
        let mut bytes = [0xff; 32];
        repr.emit(&mut bytes, PSEUDO_HEADER);
        assert_eq!(bytes, SOLICITATION);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet, PSEUDO_HEADER), Ok(repr));
        assert_eq!((packet.target(), repr.header_length()), (Some(target), 32));
        assert_eq!(repr.to_string(), "ICMPv6 who has fe80::4");
    }

    #[test]
    fn every_message_reads_back() {
        let target = Ipv6Addr::LOCALHOST;
        for repr in [
            Repr::EchoRequest { identifier: 9, sequence: 8 },
            Repr::EchoReply { identifier: 9, sequence: 8 },
            Repr::Unreachable { code: 4 },
            Repr::PacketTooBig { mtu: 70_000 },
            Repr::TimeExceeded { code: 1 },
            Repr::NeighbourSolicitation { target, source_link: None },
            Repr::NeighbourAdvertisement {
                target,
                router: true,
                solicited: false,
                overrides: true,
                target_link: Some([1; 6]),
            },
        ] {
            let mut bytes = vec![0; repr.header_length()];
            repr.emit(&mut bytes, PSEUDO_HEADER);
            assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap(), PSEUDO_HEADER), Ok(repr));
            assert!(Packet::new_checked(&bytes[..7]).is_err());
        }
    }

    #[test]
    fn impossible_messages() {
        assert!(Packet::new_checked(&SOLICITATION[..23]).is_err());
        let packet = Packet::new_checked(&SOLICITATION).unwrap();
        assert_eq!(Repr::parse(&packet, PSEUDO_HEADER ^ 0x0101), Err(Malformed::Checksum));
        let mut endless = SOLICITATION;
        endless[25] = 0;
        assert_eq!(Packet::new_checked(&endless).unwrap().link_address(SOURCE_LINK_ADDRESS), None);
    }
}
