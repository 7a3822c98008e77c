//! The packets that came over an underlay, checked: whose tunnel it is of, and the frame in it. Any bytes may come.

use std::net::Ipv4Addr;

use serde::Serialize;
use twinnet_packet::{ethernet, gre, ipv4, vxlan};

/// The identifier that tells the tunnels of one socket apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identifier {
    /// A GRE key, or none.
    Key(Option<u32>),
    /// A VXLAN network identifier.
    Vni(u32),
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The headers are not what the protocol allows, or the frame is shorter than its header.
    Malformed,
    /// GRE that carries something else than Ethernet.
    NotEthernet,
    /// No tunnel has its key or network identifier.
    OtherIdentifier,
    /// It comes from somebody else than the tunnel's other end.
    OtherSource,
}

/// Packets that were not taken, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Refusals {
    pub(crate) malformed: u64,
    pub(crate) not_ethernet: u64,
    pub(crate) other_identifier: u64,
    pub(crate) other_source: u64,
}

impl Refusals {
    pub(crate) fn count(&mut self, why: Refusal) {
        *match why {
            Refusal::Malformed => &mut self.malformed,
            Refusal::NotEthernet => &mut self.not_ethernet,
            Refusal::OtherIdentifier => &mut self.other_identifier,
            Refusal::OtherSource => &mut self.other_source,
        } += 1;
    }
}

/// Takes an IPv4 packet with GRE apart, as a raw socket gives it: who sent it, the key and the frame.
pub(crate) fn from_gre(packet: &[u8]) -> Result<(Ipv4Addr, Identifier, &[u8]), Refusal> {
    let outer = ipv4::Packet::new_checked(packet).map_err(|_| Refusal::Malformed)?;
    if outer.protocol() != gre::PROTOCOL || outer.fragment_offset() != 0 || outer.more_fragments() {
        return Err(Refusal::Malformed);
    }
    let source = outer.source();
    let (header_length, total_length) = (outer.header_length(), usize::from(outer.total_length()));
    let payload = packet.get(header_length..total_length.min(packet.len())).ok_or(Refusal::Malformed)?;
    let (header, frame) = gre::Repr::parse(payload).map_err(|_| Refusal::Malformed)?;
    if header.protocol != gre::TRANSPARENT_ETHERNET {
        return Err(Refusal::NotEthernet);
    }
    Ok((source, Identifier::Key(header.key), whole_frame(frame)?))
}

/// Takes a UDP datagram with VXLAN apart: the network identifier and the frame.
pub(crate) fn from_vxlan(datagram: &[u8]) -> Result<(Identifier, &[u8]), Refusal> {
    let (header, frame) = vxlan::Repr::parse(datagram).map_err(|_| Refusal::Malformed)?;
    Ok((Identifier::Vni(header.vni), whole_frame(frame)?))
}

fn whole_frame(frame: &[u8]) -> Result<&[u8], Refusal> {
    if frame.len() < ethernet::HEADER_LENGTH {
        return Err(Refusal::Malformed);
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gre_packet(key: Option<u32>, protocol: u16, frame: &[u8]) -> Vec<u8> {
        let header = gre::Repr { protocol, key, sequence: Some(1), checksum: true };
        let mut packet = vec![0; 20 + header.length()];
        packet.extend_from_slice(frame);
        header.emit(&mut packet[20..]);
        let outer = ipv4::Repr {
            source: Ipv4Addr::new(192, 0, 2, 2),
            destination: Ipv4Addr::new(192, 0, 2, 1),
            protocol: gre::PROTOCOL,
            traffic_class: 0,
            identification: 1,
            dont_fragment: false,
            time_to_live: 64,
            payload_length: u16::try_from(packet.len() - 20).unwrap(),
        };
        outer.emit(&mut packet);
        packet
    }

    #[test]
    fn a_frame_in_gre_comes_out_with_its_sender_and_key() {
        let packet = gre_packet(Some(5), gre::TRANSPARENT_ETHERNET, &[7; 60]);
        let (source, identifier, frame) = from_gre(&packet).unwrap();
        assert_eq!((source, identifier), (Ipv4Addr::new(192, 0, 2, 2), Identifier::Key(Some(5))));
        assert_eq!(frame, [7; 60]);
    }

    #[test]
    fn other_payloads_and_frames_without_a_header_are_refused() {
        assert_eq!(from_gre(&gre_packet(None, 0x0800, &[0x45; 60])), Err(Refusal::NotEthernet));
        assert_eq!(from_gre(&gre_packet(None, gre::TRANSPARENT_ETHERNET, &[7; 13])), Err(Refusal::Malformed));
        assert_eq!(from_vxlan(&[8, 0, 0, 0, 0, 0, 42, 0, 1, 2, 3]), Err(Refusal::Malformed));
        assert_eq!(from_vxlan(&[0; 60]), Err(Refusal::Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (from_gre(&bytes), from_vxlan(&bytes));
        }

        #[test]
        fn no_damage_to_a_packet_breaks_it(at in 0_usize..120, with in any::<u8>(), length in 0_usize..120) {
            let mut packet = gre_packet(Some(5), gre::TRANSPARENT_ETHERNET, &[7; 70]);
            if let Some(byte) = packet.get_mut(at) {
                *byte = with;
            }
            packet.truncate(length);
            if let Ok((_, _, frame)) = from_gre(&packet) {
                prop_assert!(frame.len() >= 14);
            }
            let _ = from_vxlan(&packet);
        }
    }
}
