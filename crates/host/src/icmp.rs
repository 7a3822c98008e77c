//! ICMP: echo requests and replies of both versions, and messages about packets of ours (RFC 792, RFC 4443).

use std::net::{IpAddr, SocketAddr};

use twinnet_apps::{Chunk, HostError};
use twinnet_packet::{icmpv4, icmpv6, Frame};

use super::interface::Charge;
use super::output::finished_checksum;
use super::packet::Packet;
use super::sockets::{Icmp, Kind, Socket};
use super::stack::{Arrival, Stack, Turn};
use super::udp::parts;

const ECHO_REPLY: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;
/// Bytes of an echo header.
const HEADER: usize = icmpv4::HEADER_LENGTH;

impl Stack {
    /// Opens a socket for ICMP echo of the app at `app`.
    pub(super) fn icmp_open(&mut self, app: u32, v6: bool) -> Result<u32, HostError> {
        let taken = |stack: &Self, identifier: u16| stack.sockets.icmp(v6, identifier).is_some();
        for _ in 0..=u16::MAX {
            let identifier = self.next_echo_identifier;
            self.next_echo_identifier = identifier.wrapping_add(1);
            if !taken(self, identifier) {
                return self.open(Socket {
                    app,
                    closed: false,
                    kind: Kind::Icmp(Icmp { v6, identifier, traffic_class: 0 }),
                });
            }
        }
        Err(HostError::Other("all identifiers of ICMP echo are in use on this host: close some".to_owned()))
    }

    /// Sends an ICMP message from `socket`; identifier and checksum are filled in.
    pub(super) fn icmp_send(
        &mut self,
        socket: u32,
        to: SocketAddr,
        message: Chunk<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<(), HostError> {
        let (bytes, elided) = parts(message)?;
        let Some(Socket { kind: Kind::Icmp(icmp), .. }) = self.sockets.get(socket) else {
            return Err(HostError::NoSuchSocket);
        };
        let Icmp { v6, identifier, traffic_class } = *icmp;
        if v6 != to.is_ipv6() {
            return Err(HostError::Other(format!("{to} is of another family than the socket")));
        }
        let protocol = if v6 { icmpv6::PROTOCOL } else { icmpv4::PROTOCOL };
        let path = self.path(None, to.ip(), protocol, None, turn.now).map_err(|refusal| refusal.error(to))?;
        let start = path.header_length();
        let mut frame = turn.pool.take();
        frame.bytes.extend_from_slice(path.header());
        frame.bytes.extend_from_slice(bytes);
        frame.elided = elided;
        // A message shorter than its header is filled up, its missing bytes zeros.
        let missing = (start + HEADER).saturating_sub(frame.bytes.len());
        frame.bytes.resize(frame.bytes.len() + missing, 0);
        frame.elided = frame.elided.saturating_sub(missing as u32);
        let length = (frame.length() - start as u64) as u32;
        let echo = &mut frame.bytes[start..];
        echo[2..4].fill(0);
        echo[4..6].copy_from_slice(&identifier.to_be_bytes());
        let sum = finished_checksum(if v6 { path.pseudo_header(length) } else { 0 }, echo);
        echo[2..4].copy_from_slice(&sum.to_be_bytes());
        self.ship_as(frame, &path, traffic_class, Charge::NONE, turn);
        Ok(())
    }

    /// An ICMP message arrived.
    pub(super) fn icmpv4_input(&mut self, frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) -> Option<Arrival> {
        let message = frame.bytes.get(packet.l4..packet.end).map(icmpv4::Packet::new_checked);
        let Some(Ok(message)) = message else {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        };
        if !message.verify_checksum() {
            return self.refuse(frame, turn, |counters| &mut counters.corrupted);
        }
        match icmpv4::Repr::parse(&message) {
            Ok(icmpv4::Repr::EchoRequest { .. }) => self.answer_echo(frame, packet, ECHO_REPLY, turn),
            Ok(icmpv4::Repr::EchoReply { identifier, .. }) => self.echo_reply(frame, packet, identifier, turn),
            Ok(icmpv4::Repr::Unreachable { code, next_hop_mtu }) => {
                let mtu = (code == 4).then_some(u32::from(next_hop_mtu));
                self.error_input(frame, packet, mtu, turn)
            }
            Ok(icmpv4::Repr::TimeExceeded { .. }) => self.error_input(frame, packet, None, turn),
            Err(_) => self.refuse(frame, turn, |counters| &mut counters.ignored),
        }
    }

    /// An ICMPv6 message arrived.
    pub(super) fn icmpv6_input(&mut self, frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) -> Option<Arrival> {
        let message = frame.bytes.get(packet.l4..packet.end).map(icmpv6::Packet::new_checked);
        let Some(Ok(message)) = message else {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        };
        let pseudo_header = packet.pseudo_header();
        if !message.verify_checksum(pseudo_header) {
            return self.refuse(frame, turn, |counters| &mut counters.corrupted);
        }
        match icmpv6::Repr::parse(&message, pseudo_header) {
            Ok(icmpv6::Repr::EchoRequest { .. }) => self.answer_echo(frame, packet, ECHO_REPLY_V6, turn),
            Ok(icmpv6::Repr::EchoReply { identifier, .. }) => self.echo_reply(frame, packet, identifier, turn),
            Ok(icmpv6::Repr::PacketTooBig { mtu }) => self.error_input(frame, packet, Some(mtu), turn),
            Ok(icmpv6::Repr::Unreachable { .. } | icmpv6::Repr::TimeExceeded { .. }) => {
                self.error_input(frame, packet, None, turn)
            }
            Ok(
                discovery @ (icmpv6::Repr::NeighbourSolicitation { .. } | icmpv6::Repr::NeighbourAdvertisement { .. }),
            ) => {
                self.discovery_input(frame, packet, discovery, turn);
                None
            }
            Err(_) => self.refuse(frame, turn, |counters| &mut counters.ignored),
        }
    }

    /// Sends the data of an echo request back, with its traffic class. As Linux, not for one that was sent to all
    /// by IPv4.
    fn answer_echo(&mut self, frame: Box<Frame>, packet: &Packet, reply: u8, turn: &mut Turn<'_>) -> Option<Arrival> {
        let v6 = packet.source.is_ipv6();
        if packet.source.is_unspecified() || (!packet.direct && !v6) {
            return self.refuse(frame, turn, |counters| &mut counters.ignored);
        }
        let source = (!packet.destination.is_multicast()).then_some(packet.destination);
        let path = self.path(source, packet.source, packet.protocol, Some(packet.interface), turn.now);
        let Ok(path) = path else {
            return self.refuse(frame, turn, |counters| &mut counters.unreachable);
        };
        let mut answer = turn.pool.take();
        answer.bytes.extend_from_slice(path.header());
        let start = answer.bytes.len();
        answer.bytes.extend_from_slice(&frame.bytes[packet.l4..packet.end]);
        answer.elided = (packet.length - (packet.end - packet.l4)) as u32;
        turn.pool.recycle(frame);
        let echo = &mut answer.bytes[start..];
        (echo[0], echo[2], echo[3]) = (reply, 0, 0);
        let pseudo_header = if v6 { path.pseudo_header(packet.length as u32) } else { 0 };
        let sum = finished_checksum(pseudo_header, echo);
        echo[2..4].copy_from_slice(&sum.to_be_bytes());
        self.ship_loosely(answer, &path, packet.traffic_class, turn);
        None
    }

    fn echo_reply(
        &mut self,
        frame: Box<Frame>,
        packet: &Packet,
        identifier: u16,
        turn: &mut Turn<'_>,
    ) -> Option<Arrival> {
        let v6 = matches!(packet.source, IpAddr::V6(_));
        let Some(place) = self.sockets.icmp(v6, identifier) else {
            return self.refuse(frame, turn, |counters| &mut counters.unwanted);
        };
        Some(Arrival {
            socket: self.sockets.number_of(place),
            app: self.sockets.at(place)?.app,
            from: SocketAddr::new(packet.source, 0),
            start: packet.l4,
            end: packet.end,
            length: packet.length,
            frame,
        })
    }
}
