//! Neighbour discovery: asking for hardware addresses of IPv6 neighbours, and answering (RFC 4861); and what ARP
//! and discovery share.

use std::net::{IpAddr, Ipv6Addr};

use twinnet_packet::{icmpv6, Frame};
use twinnet_units::{impossible, Time};

use super::interface::Charge;
use super::neighbours::{Neighbour, Pending, Task};
use super::packet::Packet;
use super::path::{Path, PathParts, V6_HEADERS};
use super::stack::{Stack, Turn};
use super::timers::Owner;

/// RFC 4861, 7.1.1: a hop limit of 255 proves that a packet comes from the same link.
const ON_LINK: u8 = 255;

/// The multicast group that listens for `address` (RFC 4291, 2.7.1).
pub(super) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// The hardware address of an IPv6 multicast group (RFC 2464, 7).
fn multicast_mac(group: Ipv6Addr) -> [u8; 6] {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

impl Stack {
    /// Keeps a packet until its neighbour has answered, and asks for it.
    pub(super) fn await_neighbour(&mut self, neighbour: Neighbour, packet: Pending, turn: &mut Turn<'_>) {
        let (dropped, ask) = self.neighbours.hold(neighbour, packet, turn.now);
        if let Some((frame, charge)) = dropped {
            self.counters.overflowed += 1;
            self.credit(charge);
            turn.pool.recycle(frame);
        }
        if ask {
            self.ask_for(neighbour, None, turn);
        }
        self.watch_neighbours();
    }

    /// Keeps the timer of the neighbours at what is due next.
    pub(super) fn watch_neighbours(&mut self) {
        self.neighbour_alarm.set(self.neighbours.deadline(), Owner::Neighbours, &mut self.timers);
    }

    /// The timer of the neighbours.
    pub(super) fn serve_neighbours(&mut self, rung: Time, turn: &mut Turn<'_>) {
        self.neighbour_alarm.rings(rung);
        while let Some(task) = self.neighbours.next_task(turn.now) {
            match task {
                Task::Ask(neighbour, unicast) => self.ask_for(neighbour, unicast, turn),
                Task::GiveUp(pending) => {
                    // Paths that hold its hardware address hold no longer.
                    self.epoch = self.epoch.wrapping_add(1);
                    for (frame, charge) in pending {
                        self.counters.unreachable += 1;
                        self.undeliverable(frame, charge, turn);
                    }
                }
            }
        }
        self.watch_neighbours();
    }

    /// A neighbour has told its hardware address.
    pub(super) fn neighbour_told(
        &mut self,
        neighbour: Neighbour,
        mac: [u8; 6],
        answer: bool,
        learn: bool,
        turn: &mut Turn<'_>,
    ) {
        let (pending, moved) = self.neighbours.told(neighbour, mac, answer, learn, turn.now);
        if moved {
            self.epoch = self.epoch.wrapping_add(1);
        }
        for (mut frame, charge) in pending {
            if let Some(destination) = frame.bytes.get_mut(..6) {
                destination.copy_from_slice(&mac);
            }
            self.enqueue(neighbour.0, frame, charge, turn);
        }
    }

    fn ask_for(&mut self, (interface, address): Neighbour, to: Option<[u8; 6]>, turn: &mut Turn<'_>) {
        match address {
            IpAddr::V4(address) => self.ask_by_arp(interface, address, to, turn),
            IpAddr::V6(address) => self.solicit(interface, address, to, turn),
        }
    }

    fn solicit(&mut self, interface: u16, target: Ipv6Addr, to: Option<[u8; 6]>, turn: &mut Turn<'_>) {
        let Some(at) = self.interfaces.get(interface as usize) else { return impossible!("no such interface") };
        let source = at.address_towards(target.into()).or_else(|| at.address_towards(solicited_node(target).into()));
        let Some(source) = source else { return };
        let source_link = Some(at.mac);
        let group = solicited_node(target);
        let (destination, to) = to.map_or((group, multicast_mac(group)), |to| (target, to));
        let message = icmpv6::Repr::NeighbourSolicitation { target, source_link };
        self.send_discovery(interface, source, destination, to, message, turn);
    }

    fn send_discovery(
        &mut self,
        interface: u16,
        source: IpAddr,
        destination: Ipv6Addr,
        to_mac: [u8; 6],
        message: icmpv6::Repr,
        turn: &mut Turn<'_>,
    ) {
        let Some(at) = self.interfaces.get(interface as usize) else { return impossible!("no such interface") };
        let path = Path::new(&PathParts {
            epoch: self.epoch,
            interface,
            mtu: at.mtu,
            until: Time::ZERO,
            next: destination.into(),
            prefix: 128,
            source,
            destination: destination.into(),
            protocol: icmpv6::PROTOCOL,
            hop_limit: ON_LINK,
            to_mac: Some(to_mac),
            from_mac: at.mac,
        });
        let length = message.header_length();
        let mut frame = turn.pool.take();
        frame.bytes.extend_from_slice(path.header());
        frame.bytes.resize(V6_HEADERS + length, 0);
        #[allow(clippy::cast_possible_truncation)]
        path.seal(&mut frame.bytes, length as u16, 0, true, 0);
        message.emit(&mut frame.bytes[V6_HEADERS..], path.pseudo_header(length as u32));
        self.transmit(frame, &path, Charge::NONE, turn);
    }

    /// A solicitation or an advertisement arrived.
    pub(super) fn discovery_input(
        &mut self,
        frame: Box<Frame>,
        packet: &Packet,
        message: icmpv6::Repr,
        turn: &mut Turn<'_>,
    ) {
        turn.pool.recycle(frame);
        let (IpAddr::V6(source), true) = (packet.source, packet.hop_limit == ON_LINK) else {
            self.counters.malformed += 1;
            return;
        };
        let interface = packet.interface;
        match message {
            icmpv6::Repr::NeighbourSolicitation { target, source_link } if self.is_local(target.into()) => {
                let Some(mac) = self.interfaces.get(interface as usize).map(|at| at.mac) else {
                    return impossible!("a message by no interface");
                };
                let duplicate_check = source.is_unspecified();
                let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
                // Whoever asks for its own address is told by multicast (RFC 4861, 7.2.4).
                let (destination, to) = match source_link {
                    _ if duplicate_check => (all_nodes, multicast_mac(all_nodes)),
                    Some(link) if link[0] & 1 == 0 => {
                        self.neighbour_told((interface, source.into()), link, false, true, turn);
                        (source, link)
                    }
                    _ => return,
                };
                let message = icmpv6::Repr::NeighbourAdvertisement {
                    target,
                    router: self.parameters.forwarding_v6,
                    solicited: !duplicate_check,
                    overrides: true,
                    target_link: Some(mac),
                };
                self.send_discovery(interface, target.into(), destination, to, message, turn);
            }
            icmpv6::Repr::NeighbourAdvertisement { target, solicited, target_link: Some(link), .. }
                if link[0] & 1 == 0 && !self.is_local(target.into()) =>
            {
                self.neighbour_told((interface, target.into()), link, solicited, false, turn);
            }
            _ => {}
        }
    }
}
