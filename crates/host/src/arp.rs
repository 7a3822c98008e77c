//! ARP: asking for hardware addresses of IPv4 neighbours, and answering (RFC 826).

use std::net::{IpAddr, Ipv4Addr};
use twinnet_units::impossible;

use twinnet_packet::{arp, ethernet, Frame};

use super::interface::Charge;
use super::path::L3;
use super::stack::{Stack, Turn};

const BROADCAST: [u8; 6] = [0xff; 6];

impl Stack {
    /// An ARP packet arrived.
    pub(super) fn arp_input(&mut self, interface: u16, frame: Box<Frame>, turn: &mut Turn<'_>) {
        let packet = frame.bytes.get(L3..).map(arp::Packet::new_checked);
        let Some(Ok(packet)) = packet else {
            self.counters.malformed += 1;
            return turn.pool.recycle(frame);
        };
        let packet = arp::Repr::parse(&packet);
        turn.pool.recycle(frame);
        let sender = packet.sender_protocol;
        if packet.sender_hardware[0] & 1 == 1 || sender.is_multicast() || sender.is_broadcast() {
            self.counters.malformed += 1;
            return;
        }
        // As Linux: any own address is answered for at any interface.
        let for_us = self.is_local(packet.target_protocol.into());
        if !sender.is_unspecified() && !self.is_local(sender.into()) {
            let answer = packet.operation == arp::REPLY && for_us;
            let learn = packet.operation == arp::REQUEST && for_us;
            self.neighbour_told((interface, sender.into()), packet.sender_hardware, answer, learn, turn);
        }
        if packet.operation == arp::REQUEST && for_us {
            let reply = arp::Repr {
                operation: arp::REPLY,
                sender_hardware: [0; 6],
                sender_protocol: packet.target_protocol,
                target_hardware: packet.sender_hardware,
                target_protocol: sender,
            };
            self.send_arp(interface, packet.sender_hardware, reply, turn);
        }
    }

    /// Asks who has `target`.
    pub(super) fn ask_by_arp(&mut self, interface: u16, target: Ipv4Addr, to: Option<[u8; 6]>, turn: &mut Turn<'_>) {
        let own = self.interfaces.get(interface as usize).and_then(|at| at.address_towards(target.into()));
        // Without an address of its own it asks as nobody does, as a probe does (RFC 5227).
        let own = if let Some(IpAddr::V4(own)) = own { own } else { Ipv4Addr::UNSPECIFIED };
        let request = arp::Repr {
            operation: arp::REQUEST,
            sender_hardware: [0; 6],
            sender_protocol: own,
            target_hardware: [0; 6],
            target_protocol: target,
        };
        self.send_arp(interface, to.unwrap_or(BROADCAST), request, turn);
    }

    /// Sends an ARP packet from `interface`, whose hardware address becomes the sender's.
    fn send_arp(&mut self, interface: u16, to: [u8; 6], packet: arp::Repr, turn: &mut Turn<'_>) {
        let Some(source) = self.interfaces.get(interface as usize).map(|at| at.mac) else {
            return impossible!("no such interface");
        };
        let mut frame = turn.pool.take();
        frame.bytes.resize(L3 + arp::PACKET_LENGTH, 0);
        ethernet::Repr { destination: to, source, ether_type: ethernet::ARP }.emit(&mut frame.bytes);
        arp::Repr { sender_hardware: source, ..packet }.emit(&mut frame.bytes[L3..]);
        self.enqueue(interface, frame, Charge::NONE, turn);
    }
}
