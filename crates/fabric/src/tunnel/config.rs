//! The description of a tunnelled link, and the cost of a frame on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use twinnet_packet::{ethernet, gre, ipv4, udp, vxlan, Frame, Framing, Piece};

/// MTUs that an underlay may have: the least that IPv4 allows, and the most that a packet's length can tell.
const MTU_RANGE: std::ops::RangeInclusive<u32> = 68..=65_535;
/// The longest IPv4 packet.
const LONGEST_PACKET: u32 = 65_535;
/// Room for two VLAN tags beside a link's MTU.
const TAGS: u32 = 8;
const ETHERNET: u32 = ethernet::HEADER_LENGTH as u32;
const IPV4: u32 = ipv4::HEADER_LENGTH as u32;

/// The way in which an IPv4 underlay carries the frames of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TunnelConfig {
    /// Ethernet in GRE (RFC 2784).
    Gre {
        /// The key (RFC 2890), when there is one.
        #[serde(default)]
        key: Option<u32>,
        /// `true` if the GRE header has a checksum.
        #[serde(default)]
        checksum: bool,
        /// The underlay's MTU: the longest IPv4 packet.
        #[serde(default = "ethernet_mtu")]
        #[schemars(range(min = *MTU_RANGE.start(), max = *MTU_RANGE.end()))]
        mtu: u32,
        /// `true` if a packet that is longer is cut by IPv4; otherwise it is dropped.
        #[serde(default = "yes")]
        fragment: bool,
    },
    /// Ethernet in VXLAN (RFC 7348).
    Vxlan {
        /// The network identifier.
        #[schemars(range(max = vxlan::HIGHEST_VNI))]
        vni: u32,
        /// The underlay's MTU: the longest IPv4 packet.
        #[serde(default = "ethernet_mtu")]
        #[schemars(range(min = *MTU_RANGE.start(), max = *MTU_RANGE.end()))]
        mtu: u32,
        /// `true` if a packet that is longer is cut by IPv4; otherwise it is dropped.
        #[serde(default = "yes")]
        fragment: bool,
    },
}

const fn ethernet_mtu() -> u32 {
    1500
}

const fn yes() -> bool {
    true
}

/// Why a link cannot be tunnelled so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TunnelError {
    /// Choose an MTU that IPv4 allows.
    #[error("the underlay's MTU is {0}; it can be {low} to {high}", low = MTU_RANGE.start(), high = MTU_RANGE.end())]
    UnderlayMtu(u32),
    /// Choose an identifier of 24 bits.
    #[error("the VNI is {0}; it can be 0 to {high}", high = vxlan::HIGHEST_VNI)]
    Vni(u32),
    /// Choose a smaller MTU of the link.
    #[error(
        "the link's MTU is {link}; with the tunnel's headers a packet would be longer than IPv4 allows: at most {most}"
    )]
    LinkMtu {
        /// The MTU of the link.
        link: u32,
        /// The greatest MTU that the link may have.
        most: u32,
    },
    /// Choose a larger MTU of the underlay, or let packets be cut.
    #[error("an underlay's MTU of {underlay} has no room for a frame that may not be cut; it takes at least {least}")]
    NoRoom {
        /// The MTU of the underlay.
        underlay: u32,
        /// The least MTU that the underlay must have.
        least: u32,
    },
}

impl TunnelConfig {
    /// Checks all values, for a link with an MTU of `link_mtu`.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn check(&self, link_mtu: u32) -> Result<(), TunnelError> {
        if !MTU_RANGE.contains(&self.underlay_mtu()) {
            return Err(TunnelError::UnderlayMtu(self.underlay_mtu()));
        }
        if let Self::Vxlan { vni, .. } = *self {
            if vni > vxlan::HIGHEST_VNI {
                return Err(TunnelError::Vni(vni));
            }
        }
        let most = LONGEST_PACKET - self.overhead() - TAGS;
        if link_mtu > most {
            return Err(TunnelError::LinkMtu { link: link_mtu, most });
        }
        let least = MTU_RANGE.start() + self.overhead();
        if !self.cuts() && self.underlay_mtu() < least {
            return Err(TunnelError::NoRoom { underlay: self.underlay_mtu(), least });
        }
        Ok(())
    }

    /// The underlay's MTU.
    #[must_use]
    pub const fn underlay_mtu(&self) -> u32 {
        match *self {
            Self::Gre { mtu, .. } | Self::Vxlan { mtu, .. } => mtu,
        }
    }

    /// Returns `true` if packets that are too long are cut.
    #[must_use]
    pub const fn cuts(&self) -> bool {
        match *self {
            Self::Gre { fragment, .. } | Self::Vxlan { fragment, .. } => fragment,
        }
    }

    /// Bytes between the IP header and the carried frame.
    #[must_use]
    pub(crate) const fn header_bytes(&self) -> u32 {
        match *self {
            Self::Gre { key, checksum, .. } => 4 + if key.is_some() { 4 } else { 0 } + if checksum { 4 } else { 0 },
            Self::Vxlan { .. } => (udp::HEADER_LENGTH + vxlan::HEADER_LENGTH) as u32,
        }
    }

    /// Bytes that an IPv4 packet of the underlay has beyond the Ethernet payload that it carries.
    #[must_use]
    pub const fn overhead(&self) -> u32 {
        IPV4 + self.header_bytes() + ETHERNET
    }

    /// The MTU that the hosts at the ends of a link with `link_mtu` go by: what fits, where packets may not be cut.
    #[must_use]
    pub fn host_mtu(&self, link_mtu: u32) -> u32 {
        if self.cuts() {
            return link_mtu;
        }
        link_mtu.min(self.underlay_mtu().saturating_sub(self.overhead()))
    }

    /// Returns `true` if a frame of `length` bytes goes through: in pieces if need be.
    #[must_use]
    pub(crate) fn takes(&self, length: u64) -> bool {
        self.cuts() || length + u64::from(self.header_bytes() + IPV4) <= u64::from(self.underlay_mtu())
    }

    /// The IP payloads of the fragments that carry a frame of `length` bytes, in order: "the data is divided on an
    /// 8 octet boundary" (RFC 791 3.2).
    pub(crate) fn payloads(&self, length: u64) -> impl Iterator<Item = u64> {
        let room = u64::from(self.underlay_mtu().saturating_sub(IPV4));
        let mut left = length + u64::from(self.header_bytes());
        let each = if left <= room { room } else { room / 8 * 8 };
        std::iter::from_fn(move || {
            let payload = left.min(each);
            left -= payload;
            (payload > 0).then_some(payload)
        })
    }

    /// Returns the places of the fragments of a frame of `length` bytes.
    pub(crate) fn pieces(&self, length: u64) -> Vec<Piece> {
        let mut offset = -i64::from(self.header_bytes());
        let piece = |payload: u64| {
            let piece = Piece { offset, header: ETHERNET + IPV4 };
            offset += i64::try_from(payload).unwrap_or(i64::MAX);
            piece
        };
        self.payloads(length).map(piece).collect()
    }

    /// Bytes that a frame of `length` bytes occupies on a wire with `framing`, in all of its fragments.
    #[must_use]
    pub fn wire_bytes(&self, framing: Framing, length: u64) -> u64 {
        self.payloads(length).map(|payload| framing.wire_bytes(u64::from(ETHERNET + IPV4) + payload)).sum()
    }

    /// Writes the headers of the fragment at `offset` of a packet with `payload` bytes behind the IP header.
    pub(crate) fn emit_headers(&self, fragment: OuterFragment, carried: &Frame, outer: &mut Vec<u8>) {
        let (protocol, flow) = match self {
            Self::Gre { .. } => (gre::PROTOCOL, None),
            Self::Vxlan { .. } => (udp::PROTOCOL, Some(twinnet_queue::flow::flow_hash(carried, 0))),
        };
        outer.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
        outer.resize((ETHERNET + IPV4) as usize, 0);
        fragment.emit_ipv4(protocol, !self.cuts(), &mut outer[ETHERNET as usize..]);
        if fragment.offset > 0 {
            return;
        }
        let at = outer.len();
        outer.resize(at + self.header_bytes() as usize, 0);
        match *self {
            // The payload is not there to sum: a checksum is left at zero.
            Self::Gre { key, .. } => gre::Repr::ethernet(key, false).emit(&mut outer[at..]),
            Self::Vxlan { vni, .. } => {
                let port = source_port(flow.unwrap_or(0));
                let length = u16::try_from(fragment.whole_payload).unwrap_or(0);
                outer[at..at + 2].copy_from_slice(&port.to_be_bytes());
                outer[at + 2..at + 4].copy_from_slice(&vxlan::PORT.to_be_bytes());
                outer[at + 4..at + 6].copy_from_slice(&length.to_be_bytes());
                vxlan::Repr { vni }.emit(&mut outer[at + udp::HEADER_LENGTH..]);
            }
        }
    }
}

/// "It is RECOMMENDED that the UDP source port number be calculated using a hash of fields from the inner packet",
/// in the range of dynamic ports 49152 to 65535 (RFC 7348 5).
#[allow(clippy::cast_possible_truncation)]
pub(crate) const fn source_port(flow: u64) -> u16 {
    0xc000 | (flow as u16 & 0x3fff)
}

/// The IP header of one fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OuterFragment {
    /// The offset of its payload in the packet's.
    pub(crate) offset: u64,
    /// Bytes of its payload.
    pub(crate) payload: u64,
    /// Bytes of the packet's payload.
    pub(crate) whole_payload: u64,
    pub(crate) identification: u16,
    /// Type of service, copied from what is carried: code point and congestion bits (RFC 2983 and RFC 6040, normal
    /// mode).
    pub(crate) traffic_class: u8,
}

impl OuterFragment {
    #[allow(clippy::cast_possible_truncation)]
    fn emit_ipv4(self, protocol: u8, dont_fragment: bool, bytes: &mut [u8]) {
        let header = ipv4::Repr {
            source: [198, 18, 0, 1].into(),
            destination: [198, 18, 0, 2].into(),
            protocol,
            traffic_class: self.traffic_class,
            identification: self.identification,
            dont_fragment,
            time_to_live: 64,
            payload_length: self.payload as u16,
        };
        header.emit(bytes);
        let more = self.offset + self.payload < self.whole_payload;
        if more || self.offset > 0 {
            let place = (self.offset / 8) as u16 | if more { 0x2000 } else { 0 };
            let before = [bytes[6], bytes[7]];
            bytes[6..8].copy_from_slice(&place.to_be_bytes());
            let sum = u16::from_be_bytes([bytes[10], bytes[11]]);
            let sum = twinnet_packet::checksum::update(sum, &before, &place.to_be_bytes());
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRE: TunnelConfig = TunnelConfig::Gre { key: Some(5), checksum: false, mtu: 1500, fragment: true };
    const VXLAN: TunnelConfig = TunnelConfig::Vxlan { vni: 42, mtu: 1500, fragment: true };

    #[test]
    fn a_packet_is_cut_at_eights_of_bytes() {
        // 1514 bytes of a frame and 8 of GRE: 1480 fit, the multiple of 8 below the MTU less 20.
        assert_eq!(GRE.payloads(1514).collect::<Vec<_>>(), [1480, 42]);
        assert_eq!(GRE.payloads(1472).collect::<Vec<_>>(), [1480]);
        let odd = TunnelConfig::Gre { key: None, checksum: false, mtu: 1499, fragment: true };
        assert_eq!(odd.payloads(1475).collect::<Vec<_>>(), [1479], "it fits whole");
        assert_eq!(odd.payloads(1476).collect::<Vec<_>>(), [1472, 8]);
    }

    #[test]
    fn each_fragment_pays_the_framing_of_the_underlay() {
        // 34 + 1480 + 24, and 34 + 42 + 24.
        assert_eq!(GRE.wire_bytes(Framing::Ethernet, 1514), 1538 + 100);
        // 34 + 16 + 60 + 24.
        assert_eq!(VXLAN.wire_bytes(Framing::Ethernet, 60), 134);
        // 54 - 14 + 7 of the serial line: its framing takes the place of the Ethernet header.
        assert_eq!(VXLAN.wire_bytes(Framing::Hdlc, 60), 103);
    }

    #[test]
    fn hosts_go_by_what_fits_where_packets_may_not_be_cut() {
        let whole = TunnelConfig::Vxlan { vni: 1, mtu: 1500, fragment: false };
        assert_eq!((whole.host_mtu(1500), VXLAN.host_mtu(1500)), (1450, 1500));
        assert!(whole.takes(1464) && !whole.takes(1465) && VXLAN.takes(9000));
        let whole = TunnelConfig::Gre { key: Some(1), checksum: false, mtu: 1500, fragment: false };
        assert_eq!(whole.host_mtu(1500), 1458, "what Linux gives a gretap with a key");
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let gre = |mtu, fragment| TunnelConfig::Gre { key: None, checksum: false, mtu, fragment };
        assert_eq!(gre(67, true).check(1500), Err(TunnelError::UnderlayMtu(67)));
        assert_eq!(gre(65_536, true).check(1500), Err(TunnelError::UnderlayMtu(65_536)));
        assert_eq!(gre(100, false).check(1500), Err(TunnelError::NoRoom { underlay: 100, least: 106 }));
        assert_eq!(gre(1500, true).check(65_490), Err(TunnelError::LinkMtu { link: 65_490, most: 65_489 }));
        let vxlan = TunnelConfig::Vxlan { vni: 1 << 24, mtu: 1500, fragment: true };
        assert_eq!(vxlan.check(1500), Err(TunnelError::Vni(1 << 24)));
        assert_eq!(GRE.check(9000), Ok(()));
    }
}
