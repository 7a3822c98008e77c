//! The way to a destination, worked out once: the headers that every packet to it begins with.

use std::net::IpAddr;

use twinnet_packet::{checksum, ethernet};
use twinnet_units::{impossible, Time};

use super::interface::LOOPBACK;

/// Bytes of Ethernet and IPv4 headers.
pub(super) const V4_HEADERS: usize = 34;
/// Bytes of Ethernet and IPv6 headers.
pub(super) const V6_HEADERS: usize = 54;
/// The offset of the network header.
pub(super) const L3: usize = ethernet::HEADER_LENGTH;
/// The mark "ECN-capable", ECT(0) (RFC 3168).
pub(super) const ECT_0: u8 = 2;

/// A way to a destination. It holds while the host's epoch is the same and its time has not come.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// The host's epoch when this was worked out.
    pub(super) epoch: u32,
    /// By which interface; [`LOOPBACK`] for the host itself.
    pub(super) interface: u16,
    /// Largest packet on the path as far as is known, in bytes.
    pub(super) mtu: u32,
    /// The time at which to work it out anew.
    pub(super) until: Time,
    /// Whom to hand packets to.
    pub(super) next: IpAddr,
    /// `true` if the hardware address of `next` is in the header.
    pub(super) resolved: bool,
    /// Bits of the route's prefix.
    pub(super) prefix: u8,
    /// Our address.
    pub(super) source: IpAddr,
    header: [u8; V6_HEADERS],
    /// Sum of the IPv4 header without total length and identification.
    header_sum: u16,
    /// Sum of the pseudo-header without the length.
    pseudo_sum: u16,
}

/// The parts of a path.
pub(super) struct PathParts {
    pub(super) epoch: u32,
    pub(super) interface: u16,
    pub(super) mtu: u32,
    pub(super) until: Time,
    pub(super) next: IpAddr,
    pub(super) prefix: u8,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) hop_limit: u8,
    /// Hardware address of `next`, if known.
    pub(super) to_mac: Option<[u8; 6]>,
    pub(super) from_mac: [u8; 6],
}

impl Path {
    /// A path with its headers. Source and destination are of one family.
    pub(super) fn new(parts: &PathParts) -> Self {
        let mut header = [0; V6_HEADERS];
        header[..6].copy_from_slice(&parts.to_mac.unwrap_or_default());
        header[6..12].copy_from_slice(&parts.from_mac);
        let (mut header_sum, mut pseudo_sum) = (0, 0);
        match (parts.source, parts.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                header[12..14].copy_from_slice(&ethernet::IPV4.to_be_bytes());
                let ip = &mut header[L3..V4_HEADERS];
                ip[0] = 0x45;
                ip[8] = parts.hop_limit;
                ip[9] = parts.protocol;
                ip[12..16].copy_from_slice(&source.octets());
                ip[16..20].copy_from_slice(&destination.octets());
                header_sum = checksum::sum(ip);
                pseudo_sum = checksum::pseudo_header_v4(source.octets(), destination.octets(), parts.protocol, 0);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                header[12..14].copy_from_slice(&ethernet::IPV6.to_be_bytes());
                let ip = &mut header[L3..];
                ip[0] = 0x60;
                ip[6] = parts.protocol;
                ip[7] = parts.hop_limit;
                ip[8..24].copy_from_slice(&source.octets());
                ip[24..40].copy_from_slice(&destination.octets());
                pseudo_sum = checksum::pseudo_header_v6(&source.octets(), &destination.octets(), parts.protocol, 0);
            }
            _ => {}
        }
        Self {
            epoch: parts.epoch,
            interface: parts.interface,
            mtu: parts.mtu,
            until: parts.until,
            next: parts.next,
            resolved: parts.to_mac.is_some() || parts.interface == LOOPBACK,
            prefix: parts.prefix,
            source: parts.source,
            header,
            header_sum,
            pseudo_sum,
        }
    }

    /// The same way for packets that expire after `hops` hops.
    pub(super) fn with_hop_limit(&self, hops: u8) -> Self {
        let mut path = self.clone();
        if path.source.is_ipv4() {
            path.header[L3 + 8] = hops;
            path.header_sum = checksum::sum(&path.header[L3..V4_HEADERS]);
        } else {
            path.header[L3 + 7] = hops;
        }
        path
    }

    /// The headers that a packet begins with; [`Path::seal`] completes them.
    pub(super) fn header(&self) -> &[u8] {
        &self.header[..self.header_length()]
    }

    /// Bytes of [`Path::header`].
    pub(super) const fn header_length(&self) -> usize {
        if self.source.is_ipv4() {
            V4_HEADERS
        } else {
            V6_HEADERS
        }
    }

    /// Hardware addresses of the next hop and of our interface.
    pub(super) fn macs(&self) -> &[u8] {
        &self.header[..12]
    }

    /// Sum of the pseudo-header of an upper layer of `length` bytes.
    pub(super) fn pseudo_header(&self, length: u32) -> u16 {
        let [_, _, high, low] = length.to_be_bytes();
        let words = (length >> 16) as u16;
        let low = u16::from_be_bytes([high, low]);
        checksum::add(self.pseudo_sum, if words == 0 { low } else { checksum::add(words, low) })
    }

    /// Completes the headers at the front of `bytes` for `payload` bytes after the IP header. `whole` asks that it
    /// is not fragmented (IPv4), and `traffic_class` is written as it is.
    pub(super) fn seal(&self, bytes: &mut [u8], payload: u16, identification: u16, whole: bool, traffic_class: u8) {
        if self.source.is_ipv4() {
            let Some(ip) = bytes.get_mut(L3..V4_HEADERS) else {
                return impossible!("a packet without its IPv4 header");
            };
            let total = payload.saturating_add(20);
            let fragment: u16 = if whole { 0x4000 } else { 0 };
            ip[1] = traffic_class;
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            ip[4..6].copy_from_slice(&identification.to_be_bytes());
            ip[6..8].copy_from_slice(&fragment.to_be_bytes());
            let added = u64::from(total) + u64::from(identification) + u64::from(fragment) + u64::from(traffic_class);
            let folded = checksum::add((added >> 16) as u16, (added & 0xffff) as u16);
            let sum = !checksum::add(self.header_sum, folded);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            let Some(ip) = bytes.get_mut(L3..V6_HEADERS) else {
                return impossible!("a packet without its IPv6 header");
            };
            ip[0] = 0x60 | traffic_class >> 4;
            ip[1] = traffic_class << 4;
            ip[4..6].copy_from_slice(&payload.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_packet::{ipv4, ipv6};

    fn path(source: &str, destination: &str) -> Path {
        Path::new(&PathParts {
            epoch: 1,
            interface: 0,
            mtu: 1500,
            until: Time::MAX,
            next: destination.parse().unwrap(),
            prefix: 24,
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol: 17,
            hop_limit: 64,
            to_mac: Some([2; 6]),
            from_mac: [4; 6],
        })
    }

    #[test]
    fn a_sealed_ipv4_header_is_the_one_that_the_codec_writes() {
        let path = path("10.0.0.1", "10.0.0.4");
        let mut bytes = path.header().to_vec();
        path.seal(&mut bytes, 0xfff0 - 20, 0xffff, true, 0xba);
        let repr = ipv4::Repr::parse(&ipv4::Packet::new_checked(&bytes[L3..]).unwrap()).unwrap();
        let expected = (17, 0xba, 0xffff, true, 64, 0xfff0 - 20);
        let found = (
            repr.protocol,
            repr.traffic_class,
            repr.identification,
            repr.dont_fragment,
            repr.time_to_live,
            repr.payload_length,
        );
        assert_eq!(found, expected);
        assert_eq!(path.pseudo_header(1000), ipv4::Repr { payload_length: 1000, ..repr }.pseudo_header());
    }

    #[test]
    fn a_sealed_ipv6_header_is_the_one_that_the_codec_writes() {
        let path = path("fd00::1", "fd00::4");
        let mut bytes = path.header().to_vec();
        path.seal(&mut bytes, 1000, 0, true, 0xba);
        let repr = ipv6::Repr::parse(&ipv6::Packet::new_checked(&bytes[L3..]).unwrap());
        assert_eq!((repr.next_header, repr.traffic_class, repr.hop_limit, repr.payload_length), (17, 0xba, 64, 1000));
        assert_eq!(path.pseudo_header(1000), repr.pseudo_header());
        assert_eq!(
            path.pseudo_header(70_000),
            checksum::add(path.pseudo_header(0), checksum::sum(&70_000_u32.to_be_bytes()))
        );
    }
}
