//! IPv4: what arrives, and whether it is for this host (RFC 791, RFC 1122).

use std::net::{IpAddr, Ipv4Addr};

use twinnet_packet::{ipv4, Frame};

use super::fragments::Fragment;
use super::packet::Packet;
use super::path::L3;
use super::stack::{is_subnet_broadcast, Arrival, Stack, Turn};

impl Stack {
    /// An IPv4 packet arrived; `direct` when its frame was for our hardware address alone.
    pub(super) fn ipv4_input(
        &mut self,
        interface: u16,
        frame: Box<Frame>,
        direct: bool,
        turn: &mut Turn<'_>,
    ) -> Option<Arrival> {
        let Ok(header) = ipv4::Packet::new_checked(&frame.bytes[L3..]) else {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        };
        if !header.verify_checksum() {
            return self.refuse(frame, turn, |counters| &mut counters.corrupted);
        }
        let (header_length, total) = (header.header_length(), usize::from(header.total_length()));
        let (source, destination) = (header.source(), header.destination());
        // A sender has an address of its own, and a packet ends within its frame.
        if total < header_length
            || (L3 + total) as u64 > frame.length()
            || source.is_multicast()
            || source.is_broadcast()
        {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        }
        let to_many = self.is_broadcast(interface, destination);
        let packet = Packet {
            interface,
            l4: L3 + header_length,
            end: (L3 + total).min(frame.bytes.len()),
            length: total - header_length,
            source: source.into(),
            destination: destination.into(),
            protocol: header.protocol(),
            traffic_class: header.traffic_class(),
            hop_limit: header.time_to_live(),
            direct: direct && !to_many,
        };
        let fragment = (header.more_fragments() || header.fragment_offset() != 0).then(|| Fragment {
            identification: header.identification().into(),
            offset: header.fragment_offset().into(),
            more: header.more_fragments(),
            header_end: packet.l4,
            fragment_header: None,
        });
        if packet.end < packet.l4 {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        }
        if !to_many && !self.is_local(packet.destination) {
            if destination.is_multicast() || !direct || !self.parameters.forwarding_v4 {
                return self.refuse(frame, turn, |counters| &mut counters.ignored);
            }
            self.forward(frame, &packet, turn);
            return None;
        }
        match fragment {
            Some(fragment) => self.reassemble(frame, packet, fragment, turn),
            None => self.deliver(frame, &packet, turn),
        }
    }

    fn is_broadcast(&self, interface: u16, address: Ipv4Addr) -> bool {
        let on = self.interfaces.get(interface as usize);
        address.is_broadcast() || on.is_some_and(|at| is_subnet_broadcast(at, IpAddr::V4(address)))
    }
}
