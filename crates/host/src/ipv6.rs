//! IPv6: what arrives, and whether it is for this host (RFC 8200).

use std::net::{IpAddr, Ipv6Addr};

use twinnet_packet::{ipv6, Frame};

use super::discovery::solicited_node;
use super::fragments::Fragment;
use super::packet::Packet;
use super::path::{L3, V6_HEADERS};
use super::stack::{Arrival, Stack, Turn};

/// Next header: fragment header.
const FRAGMENT: u8 = 44;

impl Stack {
    /// An IPv6 packet arrived; `direct` when its frame was for our hardware address alone.
    pub(super) fn ipv6_input(
        &mut self,
        interface: u16,
        frame: Box<Frame>,
        direct: bool,
        turn: &mut Turn<'_>,
    ) -> Option<Arrival> {
        let Ok(header) = ipv6::Packet::new_checked(&frame.bytes[L3..]) else {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        };
        let length = usize::from(header.payload_length());
        let (source, destination) = (header.source(), header.destination());
        if length == 0 || (V6_HEADERS + length) as u64 > frame.length() || source.is_multicast() {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        }
        let mut packet = Packet {
            interface,
            l4: V6_HEADERS,
            end: (V6_HEADERS + length).min(frame.bytes.len()),
            length,
            source: source.into(),
            destination: destination.into(),
            protocol: header.next_header(),
            traffic_class: header.traffic_class(),
            hop_limit: header.hop_limit(),
            direct: direct && !destination.is_multicast(),
        };
        if destination.is_multicast() {
            if !self.listens_to(interface, destination) {
                return self.refuse(frame, turn, |counters| &mut counters.ignored);
            }
        } else if !self.is_local(packet.destination) {
            if !direct || !self.parameters.forwarding_v6 || destination.is_unicast_link_local() {
                return self.refuse(frame, turn, |counters| &mut counters.ignored);
            }
            self.forward(frame, &packet, turn);
            return None;
        }
        let upper = match upper_layer(&frame.bytes[..packet.end], packet.protocol) {
            Some(upper) => upper,
            None => return self.refuse(frame, turn, |counters| &mut counters.malformed),
        };
        (packet.protocol, packet.l4) = (upper.protocol, upper.offset);
        packet.length = V6_HEADERS + length - upper.offset;
        match upper.fragment {
            Some(fragment) => self.reassemble(frame, packet, fragment, turn),
            None => self.deliver(frame, &packet, turn),
        }
    }

    /// Returns `true` if this host is a member of the group `group` at `interface`: all nodes, and those that are asked
    /// for its addresses.
    fn listens_to(&self, interface: u16, group: Ipv6Addr) -> bool {
        let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let on = self.interfaces.get(interface as usize);
        group == all_nodes
            || on.is_some_and(|at| {
                at.addresses.iter().any(|own| match own.address {
                    IpAddr::V6(own) => solicited_node(own) == group,
                    IpAddr::V4(_) => false,
                })
            })
    }
}

/// The upper layer, or the fragment of it, behind the extension headers.
struct Upper {
    protocol: u8,
    offset: usize,
    fragment: Option<Fragment>,
}

/// Passes over the extension headers. `None` when they do not end within `bytes`.
fn upper_layer(bytes: &[u8], first: u8) -> Option<Upper> {
    let (mut protocol, mut offset) = (first, V6_HEADERS);
    loop {
        match protocol {
            // Hop-by-hop options, routing and destination options: a host passes over them.
            0 | 43 | 60 => {
                let length = (usize::from(*bytes.get(offset + 1)?) + 1) * 8;
                protocol = *bytes.get(offset)?;
                offset += length;
            }
            FRAGMENT => {
                let header: [u8; 8] = bytes.get(offset..offset + 8)?.try_into().ok()?;
                let place = u16::from_be_bytes([header[2], header[3]]);
                let [_, _, _, _, a, b, c, d] = header;
                let (more, fragment_offset) = (place & 1 == 1, u32::from(place & 0xfff8));
                let after = offset + 8;
                if !more && fragment_offset == 0 {
                    // An atomic fragment is a whole packet (RFC 6946).
                    (protocol, offset) = (header[0], after);
                    continue;
                }
                let fragment = Fragment {
                    identification: u32::from_be_bytes([a, b, c, d]),
                    offset: fragment_offset,
                    more,
                    header_end: after,
                    fragment_header: Some(offset),
                };
                return Some(Upper { protocol: header[0], offset: after, fragment: Some(fragment) });
            }
            _ => return (offset <= bytes.len()).then_some(Upper { protocol, offset, fragment: None }),
        }
    }
}
