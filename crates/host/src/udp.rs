//! UDP: sockets, what they send and what arrives for them (RFC 768).

use std::net::SocketAddr;

use twinnet_apps::{Chunk, HostError};
use twinnet_packet::{udp, Checksum, Frame};

use super::interface::Charge;
use super::packet::Packet;
use super::sockets::{any_address, Kind, Socket, Udp};
use super::stack::{Arrival, Stack, Turn};

/// Bytes of a socket's send buffer (Linux's `net.core.wmem_default`).
const SEND_BUFFER: u32 = 212_992;
/// The bytes that a frame is charged beyond its length, as Linux charges for its own record of it.
const FRAME_OVERHEAD: u32 = 256;
/// The longest datagram: an IPv4 packet's 65,535 bytes without the headers.
pub(super) const LONGEST: usize = 65_507;
/// Ports that are given to those who ask for none: `net.ipv4.ip_local_port_range`.
pub(super) const EPHEMERAL: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// Real bytes of a chunk, and how many follow that are not stored.
pub(super) fn parts(chunk: Chunk<'_>) -> Result<(&[u8], u32), HostError> {
    let (bytes, elided) = match chunk {
        Chunk::Bytes(bytes) => (bytes, 0),
        Chunk::Padded(bytes, padding) => (bytes, u64::from(padding)),
        Chunk::Filler(length) => (&[][..], length),
    };
    let length = (bytes.len() as u64).saturating_add(elided);
    if length > LONGEST as u64 {
        return Err(HostError::TooLong(usize::try_from(length).unwrap_or(usize::MAX)));
    }
    u32::try_from(elided).map(|elided| (bytes, elided)).map_err(|_| HostError::TooLong(usize::MAX))
}

impl Stack {
    /// Opens a socket of the app at `app` on `port`, or a free one.
    pub(super) fn udp_bind(&mut self, app: u32, port: u16, v6: bool) -> Result<u32, HostError> {
        let port = match port {
            0 => self.free_port(|stack, port| stack.sockets.udp(v6, port).is_none()),
            given => Some(given).filter(|port| self.sockets.udp(v6, *port).is_none()),
        }
        .ok_or(HostError::AddressInUse(any_address(v6, port)))?;
        self.open(Socket {
            app,
            closed: false,
            kind: Kind::Udp(Box::new(Udp { port, v6, charged: 0, traffic_class: 0, hop_limit: None, path: None })),
        })
    }

    /// Takes a socket in.
    pub(super) fn open(&mut self, socket: Socket) -> Result<u32, HostError> {
        let too_many = || HostError::Other("the host has a million sockets open: close some".to_owned());
        self.sockets.insert(socket).ok_or_else(too_many)
    }

    /// A port that is free by `is_free`, drawn from the ephemeral ones.
    pub(super) fn free_port(&mut self, is_free: impl Fn(&Self, u16) -> bool) -> Option<u16> {
        let (first, last) = (*EPHEMERAL.start(), *EPHEMERAL.end());
        let number = last - first + 1;
        let offset = self.draw(number);
        (0..number).map(|step| first + (offset + step) % number).find(|port| is_free(self, *port))
    }

    /// Sends a datagram from `socket`.
    pub(super) fn udp_send(
        &mut self,
        socket: u32,
        to: SocketAddr,
        datagram: Chunk<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<(), HostError> {
        let (bytes, elided) = parts(datagram)?;
        let Some(Socket { kind: Kind::Udp(udp), .. }) = self.sockets.get(socket) else {
            return Err(HostError::NoSuchSocket);
        };
        if udp.v6 != to.is_ipv6() {
            return Err(HostError::Other(format!("{to} is of another family than the socket")));
        }
        if udp.charged >= SEND_BUFFER {
            return Err(HostError::Full);
        }
        let (port, traffic_class, hop_limit) = (udp.port, udp.traffic_class, udp.hop_limit);
        // Taken out and put back, so that the path can be used while the stack sends.
        let path = match udp.path.take() {
            Some((address, path)) if address == to.ip() && path.epoch == self.epoch && turn.now < path.until => path,
            _ => {
                let path =
                    self.path(None, to.ip(), udp::PROTOCOL, None, turn.now).map_err(|refusal| refusal.error(to))?;
                hop_limit.map_or(path.clone(), |hops| path.with_hop_limit(hops))
            }
        };
        let mut frame = turn.pool.take();
        let length = (bytes.len() + udp::HEADER_LENGTH) as u32 + elided;
        let start = path.header_length();
        frame.bytes.extend_from_slice(path.header());
        let [from_high, from_low] = port.to_be_bytes();
        let [to_high, to_low] = to.port().to_be_bytes();
        let [_, _, length_high, length_low] = length.to_be_bytes();
        let [sum_high, sum_low] = path.pseudo_header(length).to_be_bytes();
        let header = [from_high, from_low, to_high, to_low, length_high, length_low, sum_high, sum_low];
        frame.bytes.extend_from_slice(&header);
        frame.bytes.extend_from_slice(bytes);
        frame.elided = elided;
        frame.checksum = Checksum::Partial { start: start as u16, offset: 6 };
        let charge = Charge { socket, bytes: length + start as u32 + FRAME_OVERHEAD };
        if let Some(Socket { kind: Kind::Udp(udp), .. }) = self.sockets.get(socket) {
            udp.charged += charge.bytes;
        }
        self.ship_as(frame, &path, traffic_class, charge, turn);
        if let Some(Socket { kind: Kind::Udp(udp), .. }) = self.sockets.get(socket) {
            udp.path = Some((to.ip(), path));
        }
        Ok(())
    }

    /// A datagram arrived.
    pub(super) fn udp_input(&mut self, frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) -> Option<Arrival> {
        let header = frame.bytes.get(packet.l4..packet.end).and_then(|bytes| bytes.first_chunk::<8>());
        let Some(&[from_high, from_low, to_high, to_low, length_high, length_low, sum_high, sum_low]) = header else {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        };
        let length = usize::from(u16::from_be_bytes([length_high, length_low]));
        if length < udp::HEADER_LENGTH || length > packet.length {
            return self.refuse(frame, turn, |counters| &mut counters.malformed);
        }
        let v6 = packet.source.is_ipv6();
        let unsummed = [sum_high, sum_low] == [0, 0];
        let packet = &Packet { length, end: packet.end.min(packet.l4 + length), ..*packet };
        // RFC 8200, 8.1: over IPv6 a checksum must be there; over IPv4 0 says that there is none.
        if if unsummed && frame.checksum == Checksum::Complete { v6 } else { !packet.is_intact(&frame) } {
            return self.refuse(frame, turn, |counters| &mut counters.corrupted);
        }
        let port = u16::from_be_bytes([to_high, to_low]);
        let Some(place) = self.sockets.udp(v6, port) else {
            self.counters.unwanted += 1;
            self.port_unreachable(frame, packet, turn);
            return None;
        };
        let number = self.sockets.number_of(place);
        let app = self.sockets.at(place)?.app;
        Some(Arrival {
            socket: number,
            app,
            from: SocketAddr::new(packet.source, u16::from_be_bytes([from_high, from_low])),
            start: packet.l4 + udp::HEADER_LENGTH,
            end: packet.end,
            length: length - udp::HEADER_LENGTH,
            frame,
        })
    }
}
