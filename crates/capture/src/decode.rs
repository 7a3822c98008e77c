//! A record taken apart: its network packets from the outermost tunnel inwards, and what the innermost carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use twinnet_packet::{gre, ipv4, ipv6, udp, vxlan};

use crate::link::{ethernet, LinkType};

/// Network packets within each other that are looked into.
pub const LAYERS: usize = 4;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// An address of either version; an IPv4 address stands in the lowest 32 bits.
pub(crate) type Address = u128;

/// A fragment of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The offset of its bytes in the datagram.
    pub offset: u32,
    /// `true` if more follow.
    pub more: bool,
}

/// One network packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer<'a> {
    /// `true` if it is IPv6.
    pub v6: bool,
    /// The source address.
    pub source: Address,
    /// The destination address: behind an IPv6 routing header that of the end, for that is whom the source speaks with.
    pub destination: Address,
    /// Protocol of the payload, after extension headers.
    pub protocol: u8,
    /// Bytes of header and payload, as the header says.
    pub length: u32,
    /// Identification of the datagram that it is, or of which it is a part; 0 in IPv6 that is no fragment.
    pub identification: u32,
    /// Set when it is a part of a datagram.
    pub fragment: Option<Fragment>,
    /// Bytes of the payload, as the header says.
    pub payload_length: u32,
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// The header of the transport protocol, where it is there in full.
    pub transport: Transport,
}

/// Header fields of the transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Of a protocol without ports, or cut off.
    None,
    /// UDP (RFC 768).
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Bytes of payload, as the headers say.
        payload: u32,
    },
    /// TCP (RFC 9293).
    Tcp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Sequence number.
        sequence: u32,
        /// Acknowledgement number.
        acknowledgement: u32,
        /// Flags, FIN being the lowest.
        flags: u8,
        /// Window, unscaled.
        window: u16,
        /// Bytes of the header.
        header: u32,
        /// Bytes of payload, as the headers say.
        payload: u32,
    },
}

impl Transport {
    /// Source and destination port; zero without.
    #[must_use]
    #[inline]
    pub fn ports(&self) -> (u16, u16) {
        match *self {
            Self::None => (0, 0),
            Self::Udp { source, destination, .. } | Self::Tcp { source, destination, .. } => (source, destination),
        }
    }

    /// Bytes of the header and of the payload; none without.
    #[must_use]
    pub fn payload(&self) -> Option<(usize, u32)> {
        match *self {
            Self::None => None,
            Self::Udp { payload, .. } => Some((8, payload)),
            Self::Tcp { header, payload, .. } => Some((header as usize, payload)),
        }
    }
}

/// The address in the form that people write.
pub(crate) fn address(v6: bool, address: Address) -> IpAddr {
    if v6 {
        Ipv6Addr::from(address).into()
    } else {
        Ipv4Addr::from(address as u32).into()
    }
}

/// Gives each network packet of a record to `each`, from the outermost inwards. Says whether there was any.
#[inline]
pub fn decode<'a>(link: LinkType, bytes: &'a [u8], mut each: impl FnMut(&Layer<'a>)) -> bool {
    let Some((mut kind, mut at)) = link.payload(bytes) else { return false };
    let mut bytes = bytes;
    for depth in 0..LAYERS {
        let Some(layer) = network(kind, bytes, at) else { return depth > 0 };
        each(&layer);
        let Some(inner) = inner(&layer) else { return true };
        bytes = layer.payload;
        (kind, at) = inner;
    }
    true
}

/// `EtherType` and offset of the packet that a tunnel's payload carries.
#[inline]
fn inner(layer: &Layer<'_>) -> Option<(u16, usize)> {
    if layer.protocol == TCP || layer.fragment.is_some() {
        return None;
    }
    match layer.protocol {
        UDP => match layer.transport {
            Transport::Udp { destination: vxlan::PORT, .. } => {
                let datagram = layer.payload.get(udp::HEADER_LENGTH..)?;
                let (_, frame) = vxlan::Repr::parse(datagram).ok()?;
                let (kind, at) = ethernet(frame, 0)?;
                Some((kind, layer.payload.len() - frame.len() + at))
            }
            _ => None,
        },
        4 => Some((IPV4, 0)),
        41 => Some((IPV6, 0)),
        47 => gre(layer.payload),
        _ => None,
    }
}

/// Decodes what generic routing encapsulation carries. Its checksum is not asked: a record may be cut off.
fn gre(bytes: &[u8]) -> Option<(u16, usize)> {
    let (header, payload) = gre::Repr::parse_unverified(bytes).ok()?;
    match header.protocol {
        gre::TRANSPARENT_ETHERNET => {
            let (kind, at) = ethernet(payload, 0)?;
            Some((kind, header.length() + at))
        }
        kind @ (IPV4 | IPV6) => Some((kind, header.length())),
        _ => None,
    }
}

#[inline]
fn network(kind: u16, bytes: &[u8], at: usize) -> Option<Layer<'_>> {
    match kind {
        IPV4 => ipv4(bytes.get(at..)?),
        IPV6 => ipv6(bytes.get(at..)?),
        _ => None,
    }
}

#[inline]
fn ipv4(bytes: &[u8]) -> Option<Layer<'_>> {
    let packet = ipv4::Packet::new_checked(bytes).ok()?;
    let header = packet.header_length();
    // A total length of 0 stands for one that the sending kernel leaves to its network card.
    let total = match usize::from(packet.total_length()) {
        0 => bytes.len(),
        total => total,
    };
    let (offset, more) = (u32::from(packet.fragment_offset()), packet.more_fragments());
    let mut layer = Layer {
        v6: false,
        source: u128::from(packet.source().to_bits()),
        destination: u128::from(packet.destination().to_bits()),
        protocol: packet.protocol(),
        length: total as u32,
        identification: u32::from(packet.identification()),
        fragment: (offset != 0 || more).then_some(Fragment { offset, more }),
        payload_length: (total - header) as u32,
        payload: &bytes[header..bytes.len().min(total)],
        transport: Transport::None,
    };
    layer.transport = transport(&layer);
    Some(layer)
}

fn ipv6(bytes: &[u8]) -> Option<Layer<'_>> {
    let packet = ipv6::Packet::new_checked(bytes).ok()?;
    let upper = packet.upper_layer().ok()?;
    // A payload length of 0 stands for a jumbogram (RFC 2675).
    let total = match usize::from(packet.payload_length()) {
        0 => bytes.len(),
        length => ipv6::HEADER_LENGTH + length,
    };
    let (offset, more) = (u32::from(upper.fragment_offset), upper.more_fragments);
    let mut layer = Layer {
        v6: true,
        source: packet.source().to_bits(),
        destination: packet.final_destination().to_bits(),
        protocol: upper.protocol,
        length: total as u32,
        identification: upper.identification,
        fragment: upper.fragment.then_some(Fragment { offset, more }),
        payload_length: total.checked_sub(upper.offset)? as u32,
        payload: bytes.get(upper.offset..bytes.len().min(total))?,
        transport: Transport::None,
    };
    layer.transport = transport(&layer);
    Some(layer)
}

/// The transport header of a packet; that of a datagram stands in its first fragment. It is read here, not through
/// `twinnet_packet`'s views, because a record may end within the options of a header whose length still counts.
#[inline]
fn transport(layer: &Layer<'_>) -> Transport {
    if layer.fragment.is_some_and(|part| part.offset > 0) {
        return Transport::None;
    }
    let bytes = layer.payload;
    match layer.protocol {
        UDP => {
            let Some(header) = bytes.get(..8) else { return Transport::None };
            let length = u32::from(u16::from_be_bytes([header[4], header[5]]));
            // 0 stands for a jumbogram (RFC 2675), or for a length left to the network card.
            let length = if length < 8 { layer.payload_length } else { length };
            // In the first fragment the length is that of the whole datagram.
            let length = if layer.fragment.is_some() { length } else { length.min(layer.payload_length) };
            Transport::Udp {
                source: u16::from_be_bytes([header[0], header[1]]),
                destination: u16::from_be_bytes([header[2], header[3]]),
                payload: length.saturating_sub(8),
            }
        }
        TCP => {
            let Some(header) = bytes.get(..20) else { return Transport::None };
            let length = u32::from(header[12] >> 4) * 4;
            if length < 20 || length > layer.payload_length {
                return Transport::None;
            }
            Transport::Tcp {
                source: u16::from_be_bytes([header[0], header[1]]),
                destination: u16::from_be_bytes([header[2], header[3]]),
                sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                acknowledgement: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
                flags: header[13],
                window: u16::from_be_bytes([header[14], header[15]]),
                header: length,
                payload: layer.payload_length - length,
            }
        }
        _ => Transport::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let total = (20 + payload.len()) as u16;
        let mut bytes = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 9, 0, 0, 64, protocol, 0, 0];
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(payload);
        bytes
    }

    fn udp(destination: u16, payload: &[u8]) -> Vec<u8> {
        let length = (8 + payload.len()) as u16;
        let words = [4000, destination, length, 0];
        [&words.iter().flat_map(|word: &u16| word.to_be_bytes()).collect::<Vec<_>>()[..], payload].concat()
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        [&[0; 12][..], &[8, 0], payload].concat()
    }

    fn seen(link: LinkType, bytes: &[u8]) -> Vec<(u8, (u16, u16), u32)> {
        let mut seen = Vec::new();
        decode(link, bytes, |layer| {
            let payload = layer.transport.payload().map_or(0, |(_, length)| length);
            seen.push((layer.protocol, layer.transport.ports(), payload));
        });
        seen
    }

    #[test]
    fn tunnels_are_looked_into() {
        let inside = v4(UDP, &udp(53, &[1, 2, 3]));
        let in_gre = v4(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 7][..], &inside].concat());
        assert_eq!(seen(LinkType::Ethernet, &frame(&in_gre)), [(47, (0, 0), 0), (UDP, (4000, 53), 3)]);
        let in_vxlan = v4(UDP, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 5, 0][..], &frame(&inside)].concat()));
        let found = seen(LinkType::Raw, &in_vxlan);
        assert_eq!((found.len(), found[1]), (2, (UDP, (4000, 53), 3)));
        let nested = (0..9).fold(inside, |inner, _| v4(4, &inner));
        assert_eq!(seen(LinkType::Raw, &nested).len(), LAYERS);
    }

    #[test]
    fn padding_and_snapping_do_not_change_lengths() {
        let mut bytes = frame(&v4(UDP, &udp(9, &[7; 4])));
        bytes.extend([0; 14]);
        assert_eq!(seen(LinkType::Ethernet, &bytes), [(UDP, (4000, 9), 4)]);
        assert_eq!(seen(LinkType::Ethernet, &bytes[..42]), [(UDP, (4000, 9), 4)]);
        assert_eq!(seen(LinkType::Ethernet, &bytes[..41]), [(UDP, (0, 0), 0)]);
        assert_eq!(seen(LinkType::Ethernet, &bytes[..33]), []);
    }

    #[test]
    fn extension_headers_lead_to_the_transport_and_fragments_are_placed() {
        let datagram = udp(53, &[1, 2, 3]);
        let packet = |next: u8, rest: &[u8]| {
            let mut bytes = vec![0x60, 0, 0, 0, (rest.len() >> 8) as u8, rest.len() as u8, next, 64];
            bytes.extend([0xfd; 32]);
            bytes.extend(rest);
            bytes
        };
        // Destination options, an authentication header (RFC 4302: 24 bytes, as it counts them 4), UDP.
        let mut authenticated = vec![51, 0, 1, 4, 0, 0, 0, 0, UDP, 4];
        authenticated.extend([0; 22]);
        authenticated.extend(&datagram);
        assert_eq!(seen(LinkType::Raw, &packet(60, &authenticated)), [(UDP, (4000, 53), 3)]);
        let fragment = |offset_and_more: u16, rest: &[u8]| {
            let mut header = vec![UDP, 0];
            header.extend(offset_and_more.to_be_bytes());
            header.extend([0, 0, 0, 9]);
            packet(44, &[&header[..], rest].concat())
        };
        let mut parts = Vec::new();
        for bytes in [fragment(0, &datagram), fragment(1, &datagram), fragment(1480, &[7; 8])] {
            decode(LinkType::Raw, &bytes, |layer| {
                parts.push((layer.identification, layer.fragment, layer.transport.ports(), layer.payload_length));
            });
        }
        assert_eq!(
            parts,
            [
                (9, None, (4000, 53), 11),
                (9, Some(Fragment { offset: 0, more: true }), (4000, 53), 11),
                (9, Some(Fragment { offset: 1480, more: false }), (0, 0), 8),
            ]
        );
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut bytes = v4(UDP, &udp(9, &[7; 8]));
        bytes[6] = 0x20;
        decode(LinkType::Raw, &bytes, |layer| {
            assert_eq!(layer.fragment, Some(Fragment { offset: 0, more: true }));
            assert_eq!(layer.transport.ports(), (4000, 9));
        });
        bytes[6..8].copy_from_slice(&[0, 185]);
        decode(LinkType::Raw, &bytes, |layer| {
            assert_eq!(layer.fragment, Some(Fragment { offset: 1480, more: false }));
            assert_eq!(layer.transport, Transport::None);
        });
    }
}
