//! IPv6 headers and the extension headers after them (RFC 8200).

use std::fmt;
use std::net::Ipv6Addr;

use crate::big_endian::{array, get_u16, get_u32, put_u16, put_u32};
use crate::checksum;
use crate::extract::{extension_headers, Extensions, EXTENSION_HEADERS};
use crate::malformed::{need, Malformed};

mod field {
    pub const VERSION_CLASS_LABEL: usize = 0;
    pub const PAYLOAD_LENGTH: usize = 4;
    pub const NEXT_HEADER: usize = 6;
    pub const HOP_LIMIT: usize = 7;
    pub const SOURCE: usize = 8;
    pub const DESTINATION: usize = 24;
}

/// Bytes of the header without extensions.
pub const HEADER_LENGTH: usize = 40;

/// The upper layer behind the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLayer {
    /// Its protocol.
    pub protocol: u8,
    /// The offset of its first byte, from the IPv6 header on.
    pub offset: usize,
    /// `true` if there was a fragment header that makes this a fragment.
    pub fragment: bool,
    /// `true` if this is a fragment other than the first: what stands at `offset` is no header.
    pub later_fragment: bool,
    /// The offset of the fragment in its datagram, in bytes.
    pub fragment_offset: u16,
    /// `true` if more fragments follow.
    pub more_fragments: bool,
    /// Identification of the datagram of which it is a part; 0 without a fragment header.
    pub identification: u32,
}

/// A view of bytes as an IPv6 packet. The payload may be elided.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when the header is there in full.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::Field`] for another version.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), HEADER_LENGTH)?;
        let version = bytes.as_ref()[field::VERSION_CLASS_LABEL] >> 4;
        if version != 6 {
            return Err(Malformed::Field { field: "version", value: version.into() });
        }
        Ok(Self(bytes))
    }

    /// Differentiated services code point and ECN.
    pub fn traffic_class(&self) -> u8 {
        (get_u32(self.0.as_ref(), field::VERSION_CLASS_LABEL) >> 20 & 0xff) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        get_u32(self.0.as_ref(), field::VERSION_CLASS_LABEL) & 0xf_ffff
    }

    /// Bytes after this header; 0 in a super-segment that is too long to say.
    pub fn payload_length(&self) -> u16 {
        get_u16(self.0.as_ref(), field::PAYLOAD_LENGTH)
    }

    /// Returns the number of what follows: an extension header or the upper layer.
    pub fn next_header(&self) -> u8 {
        self.0.as_ref()[field::NEXT_HEADER]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.0.as_ref()[field::HOP_LIMIT]
    }

    /// Returns the source address.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(array::<16>(self.0.as_ref(), field::SOURCE))
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(array::<16>(self.0.as_ref(), field::DESTINATION))
    }

    /// The stored part of what follows the header, without the padding of a short frame.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER_LENGTH..self.end()]
    }

    /// Returns the destination that the packet has in the end: a routing header with segments left names it last (type
    /// 0 of RFC 2460), first (type 4, RFC 8754) or alone (type 2, RFC 6275). Other types are not looked into.
    pub fn final_destination(&self) -> Ipv6Addr {
        let (mut at, mut next) = (HEADER_LENGTH, self.next_header());
        let bytes = &self.0.as_ref()[..self.end()];
        for _ in 0..EXTENSION_HEADERS {
            let (0 | 43 | 60, Some(&[following, length])) = (next, bytes.get(at..at + 2)) else { break };
            let length = 8 + usize::from(length) * 8;
            let Some(header) = bytes.get(at..at + length) else { break };
            // Type and segments left.
            if next == 43 && header[3] > 0 && length >= 24 {
                match header[2] {
                    0 => return Ipv6Addr::from(array::<16>(header, 8 + (length - 8) / 16 * 16 - 16)),
                    2 | 4 => return Ipv6Addr::from(array::<16>(header, 8)),
                    _ => break,
                }
            }
            (at, next) = (at + length, following);
        }
        self.destination()
    }

    fn end(&self) -> usize {
        let stored = self.0.as_ref().len();
        match usize::from(self.payload_length()) {
            0 => stored,
            length => stored.min(HEADER_LENGTH + length),
        }
    }

    /// Walks the extension headers (hop-by-hop, routing, destination options, authentication, fragment; at most 16
    /// of them).
    ///
    /// # Errors
    /// [`Malformed::Field`] where they are cut short or too many.
    pub fn upper_layer(&self) -> Result<UpperLayer, Malformed> {
        let bytes = &self.0.as_ref()[..self.end()];
        let next = self.next_header();
        let Extensions { protocol, l4: offset, fragment, offset_and_more, identification, .. } =
            extension_headers(bytes, HEADER_LENGTH, next)
                .ok_or(Malformed::Field { field: "next header", value: next.into() })?;
        Ok(UpperLayer {
            protocol,
            offset,
            fragment: fragment & 1 != 0,
            later_fragment: fragment & 2 != 0,
            fragment_offset: offset_and_more & 0xfff8,
            more_fragments: offset_and_more & 1 != 0,
            identification,
        })
    }
}

/// A header without extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The source address.
    pub source: Ipv6Addr,
    /// The destination address.
    pub destination: Ipv6Addr,
    /// The number of the header that follows.
    pub next_header: u8,
    /// Differentiated services code point and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Bytes that follow.
    pub payload_length: u16,
}

impl Repr {
    /// The header that a view shows.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            source: packet.source(),
            destination: packet.destination(),
            next_header: packet.next_header(),
            traffic_class: packet.traffic_class(),
            flow_label: packet.flow_label(),
            hop_limit: packet.hop_limit(),
            payload_length: packet.payload_length(),
        }
    }

    /// Writes the header to the first [`HEADER_LENGTH`] of `bytes`; bits beyond the flow label are cut off.
    pub fn emit(&self, bytes: &mut [u8]) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        put_u32(bytes, field::VERSION_CLASS_LABEL, first);
        put_u16(bytes, field::PAYLOAD_LENGTH, self.payload_length);
        bytes[field::NEXT_HEADER] = self.next_header;
        bytes[field::HOP_LIMIT] = self.hop_limit;
        bytes[field::SOURCE..field::DESTINATION].copy_from_slice(&self.source.octets());
        bytes[field::DESTINATION..HEADER_LENGTH].copy_from_slice(&self.destination.octets());
    }

    /// The sum of the pseudo-header for an upper layer that follows this header at once.
    #[must_use]
    pub fn pseudo_header(&self) -> u16 {
        let (source, destination) = (self.source.octets(), self.destination.octets());
        checksum::pseudo_header_v6(&source, &destination, self.next_header, self.payload_length.into())
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv6 {} > {} next {} hops {}", self.source, self.destination, self.next_header, self.hop_limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hop-by-hop options, then a first fragment of UDP.
    fn bytes() -> Vec<u8> {
        let mut bytes = vec![0x6b, 0x81, 0x23, 0x45, 0, 24, 0, 64];
        bytes.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).octets());
        bytes.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 4).octets());
        bytes.extend([44, 0, 1, 4, 0, 0, 0, 0]);
        bytes.extend([17, 0, 0, 1, 0, 0, 0, 9]);
        bytes.extend([0x9c, 0x40, 0x13, 0x8b, 0, 8, 0, 0]);
        bytes
    }

    #[test]
    fn deconstruct_and_construct() {
        let bytes = bytes();
        let packet = Packet::new_checked(&bytes).unwrap();
        let repr = Repr::parse(&packet);
        assert_eq!((repr.traffic_class, repr.flow_label, repr.payload_length), (0xb8, 0x12345, 24));
        let mut again = bytes.clone();
        again[..40].fill(0xff);
        repr.emit(&mut again);
        assert_eq!(again, bytes);
        assert_eq!(repr.to_string(), "IPv6 fd00::1 > fd00::4 next 0 hops 64");
    }

    #[test]
    fn extension_headers_lead_to_the_upper_layer() {
        let mut bytes = bytes();
        let first = Packet::new_checked(&bytes).unwrap().upper_layer().unwrap();
        assert_eq!((first.protocol, first.offset), (17, 56));
        assert_eq!((first.fragment, first.later_fragment, first.fragment_offset), (true, false, 0));
        assert_eq!(first.identification, u32::from_be_bytes([bytes[52], bytes[53], bytes[54], bytes[55]]));
        bytes[51] = 9;
        let later = Packet::new_checked(&bytes).unwrap().upper_layer().unwrap();
        assert_eq!((later.later_fragment, later.fragment_offset, later.more_fragments), (true, 8, true));
    }

    #[test]
    fn a_routing_header_names_the_final_destination() {
        let address = |last: u16| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
        let routed = |kind: u8, left: u8, segments: &[u16]| {
            let mut bytes = vec![0x60, 0, 0, 0, 0, 16 + 16 * segments.len() as u8, 0, 64];
            bytes.extend([address(1).octets(), address(4).octets()].concat());
            bytes.extend([43, 0, 1, 4, 0, 0, 0, 0]);
            bytes.extend([17, 2 * segments.len() as u8, kind, left, 0, 0, 0, 0]);
            bytes.extend(segments.iter().flat_map(|last| address(*last).octets()));
            bytes
        };
        let destination = |bytes: &[u8]| Packet::new_checked(bytes).unwrap().final_destination();
        assert_eq!(destination(&routed(0, 2, &[5, 6, 7])), address(7));
        assert_eq!(destination(&routed(4, 2, &[7, 6, 5])), address(7));
        assert_eq!(destination(&routed(2, 1, &[7])), address(7));
        // At its end, of another type, without an address, and cut off.
        for bytes in
            [routed(0, 0, &[5, 6, 7]), routed(3, 1, &[7]), routed(0, 1, &[]), routed(0, 2, &[5, 6])[..70].into()]
        {
            assert_eq!(destination(&bytes), address(4));
        }
    }

    #[test]
    fn impossible_headers() {
        let bytes = bytes();
        assert!(matches!(Packet::new_checked(&bytes[..39]), Err(Malformed::Truncated { .. })));
        assert!(Packet::new_checked(&bytes[..47]).unwrap().upper_layer().is_err());
        let mut other = bytes;
        other[0] = 0x45;
        assert!(matches!(Packet::new_checked(&other), Err(Malformed::Field { field: "version", value: 4 })));
    }
}
