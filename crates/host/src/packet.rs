//! A packet that has arrived at this host, of either version, and the upper layer that it is for.

use std::net::IpAddr;

use twinnet_packet::{checksum, ethernet, icmpv4, icmpv6, tcp, udp, Checksum, Frame};

use super::interface::LOOPBACK;
use super::stack::{Arrival, Stack, Turn};

/// The fields of the IP header of an arrived packet. Its bytes stay in the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// By which interface it came.
    pub(super) interface: u16,
    /// The offset of the upper layer in the frame.
    pub(super) l4: usize,
    /// The end of its stored bytes.
    pub(super) end: usize,
    /// Its length, stored and elided.
    pub(super) length: usize,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
    /// It was sent to this host alone, not to all or to a group.
    pub(super) direct: bool,
}

impl Packet {
    /// Sum of the pseudo-header.
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn pseudo_header(&self) -> u16 {
        let length = self.length as u32;
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                checksum::pseudo_header_v4(source.octets(), destination.octets(), self.protocol, length)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                checksum::pseudo_header_v6(&source.octets(), &destination.octets(), self.protocol, length)
            }
            _ => 0,
        }
    }

    /// Returns `true` if the checksum of TCP or UDP is right, as far as it is done.
    pub(super) fn is_intact(&self, frame: &Frame) -> bool {
        matches!(frame.checksum, Checksum::Partial { .. })
            || frame
                .bytes
                .get(self.l4..self.end)
                .is_some_and(|bytes| checksum::add(self.pseudo_header(), checksum::sum(bytes)) == 0xffff)
    }
}

impl Stack {
    /// A single frame arrived at `interface`. A datagram in it that an app waits for is given back.
    pub(super) fn input(&mut self, interface: u16, frame: Box<Frame>, turn: &mut Turn<'_>) -> Option<Arrival> {
        let Some(header) = frame.bytes.first_chunk::<{ ethernet::HEADER_LENGTH }>() else {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        };
        let direct =
            interface == LOOPBACK || self.interfaces.get(interface as usize).is_some_and(|at| header[..6] == at.mac);
        if !direct && header[0] & 1 == 0 {
            return self.refuse(frame, turn, |counters| &mut counters.ignored);
        }
        match u16::from_be_bytes([header[12], header[13]]) {
            ethernet::IPV4 => self.ipv4_input(interface, frame, direct, turn),
            ethernet::IPV6 => self.ipv6_input(interface, frame, direct, turn),
            ethernet::ARP => {
                self.arp_input(interface, frame, turn);
                None
            }
            _ => self.refuse(frame, turn, |counters| &mut counters.ignored),
        }
    }

    /// A whole packet for this host.
    pub(super) fn deliver(&mut self, frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) -> Option<Arrival> {
        match (packet.protocol, packet.source) {
            (udp::PROTOCOL, _) => self.udp_input(frame, packet, turn),
            (tcp::PROTOCOL, _) => {
                self.tcp_input(frame, packet, turn);
                None
            }
            (icmpv4::PROTOCOL, IpAddr::V4(_)) => self.icmpv4_input(frame, packet, turn),
            (icmpv6::PROTOCOL, IpAddr::V6(_)) => self.icmpv6_input(frame, packet, turn),
            _ => {
                self.counters.unwanted += 1;
                self.protocol_unknown(frame, packet, turn);
                None
            }
        }
    }

    /// Throws a frame away and counts it.
    pub(super) fn refuse(
        &mut self,
        frame: Box<Frame>,
        turn: &mut Turn<'_>,
        counter: impl FnOnce(&mut super::counters::HostCounters) -> &mut u64,
    ) -> Option<Arrival> {
        *counter(&mut self.counters) += 1;
        turn.pool.recycle(frame);
        None
    }
}
