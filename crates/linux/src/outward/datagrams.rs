//! UDP and ICMP echo: each pair of ends has one ordinary socket, as long as something is said.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use rustix::net::{ipproto, socket_with, AddressFamily, SocketFlags, SocketType};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr};

use super::destinations::Destinations;
use super::way::{checksums, Way, MOST_BYTES};

/// Conversations at one time. Another one takes the place of the one that was silent longest.
const MOST: usize = 256;
/// A conversation without a datagram for so long has ended. RFC 4787 (REQ-5) asks for two minutes or more.
const SILENCE: Duration = Duration::from_secs(120);
const HOP_LIMIT: u8 = 64;
/// Datagrams that one conversation hands in before the others have their turn.
const TURN: usize = 32;

/// The kind of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Udp,
    Echo,
}

/// The two ends of a conversation, as the network inside knows them. The identifier of echo requests is the port of
/// who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    kind: Kind,
    inside: SocketAddrV4,
    outside: SocketAddrV4,
}

struct Conversation {
    socket: UdpSocket,
    last: Instant,
}

/// All conversations of one way.
#[derive(Default)]
pub struct Datagrams {
    of: FxHashMap<Ends, Conversation>,
}

impl Datagrams {
    /// Carries the UDP datagram of `packet` outward.
    pub fn carry_udp(&mut self, packet: &Ipv4Packet<&[u8]>, destinations: &Destinations, now: Instant) {
        let Ok(datagram) = UdpPacket::new_checked(packet.payload()) else { return };
        let inside = SocketAddrV4::new(packet.src_addr(), datagram.src_port());
        let outside = SocketAddrV4::new(packet.dst_addr(), datagram.dst_port());
        self.carry(Ends { kind: Kind::Udp, inside, outside }, datagram.payload(), destinations, now);
    }

    /// Carries the ICMP message of `packet` outward, where it is an echo request.
    pub fn carry_icmp(&mut self, packet: &Ipv4Packet<&[u8]>, destinations: &Destinations, now: Instant) {
        let Ok(message) = Icmpv4Packet::new_checked(packet.payload()) else { return };
        let Ok(Icmpv4Repr::EchoRequest { ident, .. }) = Icmpv4Repr::parse(&message, &checksums()) else { return };
        let inside = SocketAddrV4::new(packet.src_addr(), ident);
        let outside = SocketAddrV4::new(packet.dst_addr(), 0);
        self.carry(Ends { kind: Kind::Echo, inside, outside }, packet.payload(), destinations, now);
    }

    fn carry(&mut self, ends: Ends, bytes: &[u8], destinations: &Destinations, now: Instant) {
        if !self.of.contains_key(&ends) {
            let Some(to) = destinations.of(ends.outside) else { return };
            if self.of.len() >= MOST {
                if let Some(oldest) = self.of.iter().min_by_key(|(_, held)| held.last).map(|(ends, _)| *ends) {
                    self.of.remove(&oldest);
                }
            }
            match open(ends.kind, to) {
                Ok(socket) => drop(self.of.insert(ends, Conversation { socket, last: now })),
                Err(error) => return tracing::debug!(%error, ?ends, "no socket for datagrams"),
            }
        }
        let Some(held) = self.of.get_mut(&ends) else { return };
        held.last = now;
        if let Err(error) = held.socket.send(bytes) {
            tracing::debug!(%error, ?ends, "a datagram does not go out");
        }
    }

    /// The sockets to wait for, with their ends.
    pub fn sockets(&self) -> impl Iterator<Item = (Ends, BorrowedFd<'_>)> {
        self.of.iter().map(|(ends, held)| (*ends, held.socket.as_fd()))
    }

    /// Hands in what waits at the socket of `ends`.
    pub fn answer(&mut self, ends: Ends, way: &mut Way, now: Instant) {
        let Some(held) = self.of.get_mut(&ends) else { return };
        let mut bytes = [0; MOST_BYTES];
        for _ in 0..TURN {
            // An error is a message about an earlier datagram, such as a port where nobody listens: it is read here,
            // and who sent hears nothing, as behind many a firewall.
            let Ok(length) = held.socket.recv(&mut bytes) else { return };
            held.last = now;
            hand_in(ends, &bytes[..length], way);
        }
    }

    /// Ends the conversations that have been silent.
    pub fn sweep(&mut self, now: Instant) {
        self.of.retain(|_, held| now.saturating_duration_since(held.last) < SILENCE);
    }
}

fn open(kind: Kind, to: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = match kind {
        Kind::Udp => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
        // Needs no right where net.ipv4.ping_group_range permits it, as it does in most distributions.
        Kind::Echo => {
            let flags = SocketFlags::CLOEXEC;
            socket_with(AddressFamily::INET, SocketType::DGRAM, flags, Some(ipproto::ICMP))?.into()
        }
    };
    socket.set_nonblocking(true)?;
    socket.connect(to)?;
    Ok(socket)
}

/// Writes the head of a packet that the network inside may cut where its links are narrower.
fn emit_head(head: &Ipv4Repr, ident: u16, whole: &mut Ipv4Packet<&mut [u8]>) {
    head.emit(whole, &checksums());
    whole.set_ident(ident);
    whole.set_dont_frag(false);
    whole.fill_checksum();
}

fn hand_in(ends: Ends, bytes: &[u8], way: &mut Way) {
    let ident = way.next_ident();
    let (src_addr, dst_addr) = (*ends.outside.ip(), *ends.inside.ip());
    let sums = checksums();
    let packet =
        |next_header, payload_len| Ipv4Repr { src_addr, dst_addr, next_header, payload_len, hop_limit: HOP_LIMIT };
    match ends.kind {
        Kind::Udp => {
            let udp = UdpRepr { src_port: ends.outside.port(), dst_port: ends.inside.port() };
            let ip = packet(IpProtocol::Udp, udp.header_len() + bytes.len());
            if ip.buffer_len() + ip.payload_len > MOST_BYTES {
                return;
            }
            way.send(ip.buffer_len() + ip.payload_len, |room| {
                let mut whole = Ipv4Packet::new_unchecked(room);
                emit_head(&ip, ident, &mut whole);
                let mut datagram = UdpPacket::new_unchecked(whole.payload_mut());
                let copy = |room: &mut [u8]| room.copy_from_slice(bytes);
                udp.emit(&mut datagram, &src_addr.into(), &dst_addr.into(), bytes.len(), copy, &sums);
            });
        }
        Kind::Echo => {
            let Ok(message) = Icmpv4Packet::new_checked(bytes) else { return };
            let Ok(Icmpv4Repr::EchoReply { seq_no, data, .. }) = Icmpv4Repr::parse(&message, &sums) else { return };
            // The kernel chose an identifier of its own for the socket.
            let reply = Icmpv4Repr::EchoReply { ident: ends.inside.port(), seq_no, data };
            let ip = packet(IpProtocol::Icmp, reply.buffer_len());
            way.send(ip.buffer_len() + ip.payload_len, |room| {
                let mut whole = Ipv4Packet::new_unchecked(room);
                emit_head(&ip, ident, &mut whole);
                reply.emit(&mut Icmpv4Packet::new_unchecked(whole.payload_mut()), &sums);
            });
        }
    }
}
