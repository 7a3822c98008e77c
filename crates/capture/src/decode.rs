//! A record taken apart: its network packets from the outermost tunnel inwards, and what the innermost carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::link::{ethernet, u16_at, LinkType};

/// Network packets within each other that are looked into.
pub const LAYERS: usize = 4;
/// IPv6 extension headers that are stepped over.
const EXTENSION_HEADERS: usize = 16;
const VXLAN_PORT: u16 = 4789;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// An address of either version; an IPv4 address stands in the lowest 32 bits.
pub(crate) type Address = u128;

/// A fragment of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where its bytes belong, in bytes.
    pub offset: u32,
    /// Whether more follow.
    pub more: bool,
}

/// One network packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer<'a> {
    /// Whether it is IPv6.
    pub v6: bool,
    /// Where it comes from.
    pub source: Address,
    /// Where it goes.
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
            // RFC 7348: the VNI's flag, then an Ethernet frame.
            Transport::Udp { destination: VXLAN_PORT, .. } if layer.payload.get(8)? & 0x08 != 0 => {
                ethernet(layer.payload, 16)
            }
            _ => None,
        },
        4 => Some((IPV4, 0)),
        41 => Some((IPV6, 0)),
        47 => gre(layer.payload),
        _ => None,
    }
}

/// Generic routing encapsulation (RFC 2784, with the key and sequence number of RFC 2890).
fn gre(bytes: &[u8]) -> Option<(u16, usize)> {
    let flags = u16_at(bytes, 0)?;
    // Routing (RFC 1701) and versions other than 0 are not looked into.
    if flags & 0x4007 != 0 {
        return None;
    }
    let at = 4 + [0x8000, 0x2000, 0x1000].iter().filter(|&&bit| flags & bit != 0).count() * 4;
    match u16_at(bytes, 2)? {
        0x6558 => ethernet(bytes, at),
        kind @ (IPV4 | IPV6) => Some((kind, at)),
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
fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[inline]
fn ipv4(bytes: &[u8]) -> Option<Layer<'_>> {
    let fixed: &[u8; 20] = bytes.get(..20)?.try_into().ok()?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    // A total length of 0 stands for one that the sending kernel leaves to its network card.
    let total = if total == 0 { bytes.len() } else { total };
    if fixed[0] >> 4 != 4 || header < 20 || total < header {
        return None;
    }
    let payload = bytes.get(header..)?;
    let payload = &payload[..payload.len().min(total - header)];
    let place = u16::from_be_bytes([fixed[6], fixed[7]]);
    let fragment =
        (place & 0x3fff != 0).then_some(Fragment { offset: u32::from(place & 0x1fff) << 3, more: place & 0x2000 != 0 });
    let mut layer = Layer {
        v6: false,
        source: u128::from(u32_of(&fixed[12..16])),
        destination: u128::from(u32_of(&fixed[16..20])),
        protocol: fixed[9],
        length: total as u32,
        identification: u32::from(u16::from_be_bytes([fixed[4], fixed[5]])),
        fragment,
        payload_length: (total - header) as u32,
        payload,
        transport: Transport::None,
    };
    layer.transport = transport(&layer);
    Some(layer)
}

fn ipv6(bytes: &[u8]) -> Option<Layer<'_>> {
    let fixed: &[u8; 40] = bytes.get(..40)?.try_into().ok()?;
    if fixed[0] >> 4 != 6 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    // A payload length of 0 stands for a jumbogram (RFC 2675).
    let length = if length == 0 { bytes.len() - 40 } else { length };
    let bytes = &bytes[..bytes.len().min(40 + length)];
    let (mut next, mut at) = (fixed[6], 40);
    let (mut identification, mut fragment) = (0, None);
    for _ in 0..EXTENSION_HEADERS {
        let header = match next {
            0 | 43 | 60 | 135 => usize::from(*bytes.get(at + 1)?) * 8 + 8,
            44 => {
                let part = bytes.get(at..at + 8)?;
                let place = u16::from_be_bytes([part[2], part[3]]);
                identification = u32_of(&part[4..8]);
                if place & 0xfff9 != 0 {
                    fragment = Some(Fragment { offset: u32::from(place & 0xfff8), more: place & 1 != 0 });
                }
                8
            }
            _ => break,
        };
        next = *bytes.get(at)?;
        at += header;
        if fragment.is_some_and(|part| part.offset > 0) {
            break;
        }
    }
    let mut layer = Layer {
        v6: true,
        source: u128::from_be_bytes(fixed[8..24].try_into().ok()?),
        destination: u128::from_be_bytes(fixed[24..40].try_into().ok()?),
        protocol: next,
        length: (40 + length) as u32,
        identification,
        fragment,
        payload_length: (40 + length).checked_sub(at)? as u32,
        payload: bytes.get(at..)?,
        transport: Transport::None,
    };
    layer.transport = transport(&layer);
    Some(layer)
}

/// The transport header of a packet; that of a datagram stands in its first fragment.
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
                sequence: u32_of(&header[4..8]),
                acknowledgement: u32_of(&header[8..12]),
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
