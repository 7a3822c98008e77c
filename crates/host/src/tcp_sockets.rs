//! TCP as a host has it: listeners, connections by their four addresses, and segments on their way between them and
//! the interfaces.
//!
//! What a connection does inside is [`super::tcp`]'s; here it is handed segments, asked for segments, and its
//! timers are kept.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rand::Rng as _;
use rustc_hash::FxHashMap;
use twinnet_apps::HostError;
use twinnet_packet::tcp::{Flags, Options, Packet as TcpPacket, Repr, PROTOCOL};
use twinnet_packet::{Checksum, Frame};
use twinnet_units::{impossible, Time};

use super::interface::Charge;
use super::packet::Packet;
use super::path::{Path, ECT_0};
use super::sockets::{any_address, Kind, Socket};
use super::stack::{NoPath, Stack, Told, Turn};
use super::tcp::congestion::Algorithm;
use super::tcp::{Connection, Failure, Planned, Segment, Signals};
use super::timers::{Alarm, Owner};

/// Connections of one listener whose handshake is not complete (`net.core.somaxconn`, and what the agent asks of
/// `listen`).
const BACKLOG: u32 = 4096;
/// Offset of the checksum in a TCP header.
const CHECKSUM: u16 = 16;
/// "Congestion experienced" in the ECN field (RFC 3168).
const CONGESTION_EXPERIENCED: u8 = 3;

/// A socket that waits for connections.
#[derive(Debug)]
pub(super) struct Listener {
    port: u16,
    v6: bool,
    /// Congestion control of the connections that it accepts, when not the host's.
    algorithm: Option<Algorithm>,
    /// Connections whose handshake is not complete.
    half_open: u32,
}

/// A connection and what the host keeps of it.
#[derive(Debug)]
pub(super) struct TcpSocket {
    pub(super) connection: Connection,
    /// In a box, because it is taken out for each segment and put back.
    path: Option<Box<Path>>,
    alarm: Alarm,
    /// The listener that has still to hear of it; 0 for none.
    listener: u32,
    /// The handshake was complete at some time.
    connected: bool,
    /// Nothing is left to do for it but to be closed.
    gone: bool,
    /// It stands in the list of those to be served.
    unserved: bool,
    identification: u16,
    /// Differentiated services code point of its segments, in its place in the traffic class; the rest is for ECN.
    services: u8,
}

/// Numbers of connections by own and peer's address. Never iterated.
#[derive(Debug, Default)]
struct Connections {
    /// Those of IPv4, by both addresses and both ports: a third as long a key, looked up for every segment.
    v4: FxHashMap<(u64, u32), u32>,
    others: FxHashMap<(SocketAddr, SocketAddr), u32>,
}

impl Connections {
    fn key_of_v4((local, peer): (SocketAddr, SocketAddr)) -> Option<(u64, u32)> {
        let (SocketAddr::V4(local), SocketAddr::V4(peer)) = (local, peer) else { return None };
        let addresses = u64::from(local.ip().to_bits()) << 32 | u64::from(peer.ip().to_bits());
        Some((addresses, u32::from(local.port()) << 16 | u32::from(peer.port())))
    }

    fn get(&self, between: (SocketAddr, SocketAddr)) -> Option<u32> {
        match Self::key_of_v4(between) {
            Some(key) => self.v4.get(&key).copied(),
            None => self.others.get(&between).copied(),
        }
    }

    fn insert(&mut self, between: (SocketAddr, SocketAddr), number: u32) {
        match Self::key_of_v4(between) {
            Some(key) => self.v4.insert(key, number),
            None => self.others.insert(between, number),
        };
    }

    fn remove(&mut self, between: (SocketAddr, SocketAddr)) {
        match Self::key_of_v4(between) {
            Some(key) => self.v4.remove(&key),
            None => self.others.remove(&between),
        };
    }
}

/// Connections and listeners of a host.
#[derive(Debug, Default)]
pub(super) struct TcpTable {
    connections: Connections,
    /// Numbers of listeners by family and port. Never iterated.
    listeners: FxHashMap<(bool, u16), u32>,
    /// Connections that may have something to send or to tell.
    unserved: VecDeque<u32>,
}

impl Stack {
    /// Listens on `port`.
    pub(super) fn tcp_listen(&mut self, app: u32, port: u16, v6: bool) -> Result<u32, HostError> {
        let is_free = |stack: &Self, port: u16| stack.listener_on(v6, port).is_none();
        let port = match port {
            0 => self.free_port(is_free),
            given => Some(given).filter(|port| is_free(self, *port)),
        }
        .ok_or(HostError::AddressInUse(any_address(v6, port)))?;
        let listener = Listener { port, v6, algorithm: None, half_open: 0 };
        let number = self.open(Socket { app, closed: false, kind: Kind::Listener(Box::new(listener)) })?;
        self.tcp.get_or_insert_default().listeners.insert((v6, port), number);
        Ok(number)
    }

    /// Begins a connection to `to`, its segments marked with the code point `dscp`.
    pub(super) fn tcp_connect(
        &mut self,
        app: u32,
        to: SocketAddr,
        dscp: u8,
        turn: &mut Turn<'_>,
    ) -> Result<u32, HostError> {
        let path = self.path(None, to.ip(), PROTOCOL, None, turn.now).map_err(|refusal| refusal.error(to))?;
        let source = path.source;
        let port = self
            .free_port(|stack, port| {
                stack.connection_between(SocketAddr::new(source, port), to).is_none()
                    && stack.listener_on(to.is_ipv6(), port).is_none()
            })
            .ok_or(HostError::AddressInUse(any_address(to.is_ipv6(), 0)))?;
        let local = SocketAddr::new(source, port);
        let sequence = self.initial_sequence();
        let connection = Connection::connect(&self.parameters.tcp, local, to, path.mtu, sequence, turn.now);
        let number = self.keep_connection(app, connection, path, 0)?;
        if let Some(tcp) = self.tcp(number) {
            tcp.services = dscp << 2;
        }
        self.tcp_serve(number, turn);
        Ok(number)
    }

    #[allow(clippy::cast_possible_truncation)]
    fn initial_sequence(&mut self) -> u32 {
        self.random.next_u64() as u32
    }

    fn keep_connection(
        &mut self,
        app: u32,
        connection: Connection,
        path: Path,
        listener: u32,
    ) -> Result<u32, HostError> {
        let addresses = connection.addresses();
        #[allow(clippy::cast_possible_truncation)]
        let identification = self.random.next_u64() as u16;
        let tcp = TcpSocket {
            connection,
            path: Some(Box::new(path)),
            alarm: Alarm::default(),
            listener,
            connected: false,
            gone: false,
            unserved: false,
            identification,
            services: 0,
        };
        let number = self.open(Socket { app, closed: false, kind: Kind::Tcp(Box::new(tcp)) })?;
        self.tcp.get_or_insert_default().connections.insert(addresses, number);
        Ok(number)
    }

    /// Number of the connection between our address `local` and `peer`.
    fn connection_between(&self, local: SocketAddr, peer: SocketAddr) -> Option<u32> {
        self.tcp.as_ref()?.connections.get((local, peer))
    }

    /// Number of the listener on `port`.
    fn listener_on(&self, v6: bool, port: u16) -> Option<u32> {
        self.tcp.as_ref()?.listeners.get(&(v6, port)).copied()
    }

    /// The connection `number`.
    pub(super) fn tcp(&mut self, number: u32) -> Option<&mut TcpSocket> {
        match &mut self.sockets.get(number)?.kind {
            Kind::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Notes that a connection may have something to send or to tell.
    pub(super) fn mark_unserved(&mut self, number: u32) {
        if let Some(tcp) = self.tcp(number) {
            if !std::mem::replace(&mut tcp.unserved, true) {
                self.tcp.get_or_insert_default().unserved.push_back(number);
            }
        }
    }

    /// The next connection that was marked.
    pub(super) fn next_unserved(&mut self) -> Option<u32> {
        self.tcp.as_mut()?.unserved.pop_front()
    }

    /// Returns `true` if any is marked.
    pub(super) fn has_unserved(&self) -> bool {
        self.tcp.as_ref().is_some_and(|table| !table.unserved.is_empty())
    }

    /// Sends what the connection wants to send, notes what its app must be told, and keeps its timer.
    pub(super) fn tcp_serve(&mut self, number: u32, turn: &mut Turn<'_>) {
        self.send_segments(number, turn);
        let Some(tcp) = self.tcp(number) else { return };
        tcp.unserved = false;
        let signals = tcp.connection.take_signals();
        if signals != Signals::default() {
            self.act_on_signals(number, signals, turn.now);
        }
        let Some(place) = self.sockets.place_of(number) else { return };
        if let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.at(place) {
            tcp.alarm.set(tcp.connection.deadline(), Owner::Socket(place), &mut self.timers);
        }
    }

    fn send_segments(&mut self, number: u32, turn: &mut Turn<'_>) {
        loop {
            let Some(tcp) = self.tcp(number) else { return };
            let Some(planned) = tcp.connection.planned(turn.now) else { return };
            let (local, peer) = tcp.connection.addresses();
            let remembered = tcp.path.take();
            let path = match remembered.filter(|path| self.holds(path, turn.now)) {
                Some(path) => Ok(path),
                None => self.path(Some(local.ip()), peer.ip(), PROTOCOL, None, turn.now).map(Box::new),
            };
            let sent = self.send_segment(number, planned, path.as_deref().map_err(|refusal| *refusal), turn);
            if let Some(tcp) = self.tcp(number) {
                tcp.path = path.ok();
            }
            if !sent {
                return;
            }
        }
    }

    /// Sends one segment; `false` when there was none. Without a path it is lost.
    fn send_segment(
        &mut self,
        number: u32,
        planned: Planned,
        path: Result<&Path, NoPath>,
        turn: &mut Turn<'_>,
    ) -> bool {
        let mut frame = turn.pool.take();
        if let Ok(path) = path {
            frame.bytes.extend_from_slice(path.header());
        }
        let start = frame.bytes.len();
        let Some(tcp) = self.tcp(number) else { return false };
        let Some(outgoing) = tcp.connection.send_planned(planned, turn.now, &mut frame.bytes) else {
            turn.pool.recycle(frame);
            return false;
        };
        tcp.identification = tcp.identification.wrapping_add(1);
        let (identification, services) = (tcp.identification, tcp.services);
        let Ok(path) = path else {
            tcp.connection.left_host(outgoing.payload);
            self.counters.unreachable += 1;
            turn.pool.recycle(frame);
            return true;
        };
        frame.elided = outgoing.elided;
        let length = (frame.length() - start as u64) as u32;
        let field = start + usize::from(CHECKSUM);
        if let Some(checksum) = frame.bytes.get_mut(field..field + 2) {
            checksum.copy_from_slice(&path.pseudo_header(length).to_be_bytes());
        }
        frame.checksum = Checksum::Partial { start: start as u16, offset: CHECKSUM };
        let traffic_class = services | if outgoing.ecn_capable { ECT_0 } else { 0 };
        path.seal(&mut frame.bytes, length as u16, identification, true, traffic_class);
        let charge = match outgoing.payload {
            0 => Charge::NONE,
            bytes => Charge { socket: number, bytes },
        };
        self.transmit(frame, path, charge, turn);
        true
    }

    /// Turns what a connection signals into what its app is told.
    fn act_on_signals(&mut self, number: u32, signals: Signals, now: Time) {
        let Some(Socket { closed, kind: Kind::Tcp(tcp), .. }) = self.sockets.get(number) else { return };
        let (_, peer) = tcp.connection.addresses();
        let addresses = tcp.connection.addresses();
        tcp.connected |= signals.connected;
        tcp.gone |= signals.gone;
        let (gone, unheard) = (tcp.gone, tcp.listener);
        let mut closed_now = *closed;
        if unheard != 0 && (signals.connected || signals.failed.is_some() || gone) {
            tcp.listener = 0;
            if signals.connected && signals.failed.is_none() {
                self.events.push_back(Told::Accepted { listener: unheard, socket: number, peer });
            } else {
                // Nobody has heard of it, and nobody will.
                *closed = true;
                closed_now = true;
            }
            if let Some(Socket { kind: Kind::Listener(listener), .. }) = self.sockets.get(unheard) {
                listener.half_open = listener.half_open.saturating_sub(1);
            } else {
                self.tcp_close(number, now);
                closed_now = true;
            }
        } else if signals.connected {
            self.events.push_back(Told::Connected(number));
        }
        if !closed_now {
            if signals.readable {
                self.events.push_back(Told::Readable(number));
            }
            match signals.failed {
                Some(failure) => self.events.push_back(Told::Failed(number, host_error(failure, peer))),
                None if signals.writable => self.events.push_back(Told::Writable(number)),
                None => {}
            }
        }
        if gone {
            self.forget_connection(number, addresses);
        }
    }

    /// A connection has come to its end: its addresses are free, and its socket too when the app has closed it.
    fn forget_connection(&mut self, number: u32, addresses: (SocketAddr, SocketAddr)) {
        if self.connection_between(addresses.0, addresses.1) == Some(number) {
            self.tcp.get_or_insert_default().connections.remove(addresses);
        }
        if self.sockets.get(number).is_some_and(|socket| socket.closed) {
            if let Some(place) = self.sockets.place_of(number) {
                self.sockets.remove(place);
            }
        }
    }

    /// The app has closed the connection `number`, or has been told that it failed.
    pub(super) fn tcp_close(&mut self, number: u32, now: Time) {
        let Some(socket) = self.sockets.get(number) else { return };
        socket.closed = true;
        let Kind::Tcp(tcp) = &mut socket.kind else { return };
        let (gone, addresses) = (tcp.gone, tcp.connection.addresses());
        if gone {
            self.forget_connection(number, addresses);
        } else {
            tcp.connection.close(now);
            self.mark_unserved(number);
        }
    }

    /// The app has closed the listener `number`: connections that it has not heard of are reset.
    pub(super) fn listener_close(&mut self, number: u32, now: Time) {
        let Some(place) = self.sockets.place_of(number) else { return };
        let Some(Socket { kind: Kind::Listener(listener), .. }) = self.sockets.remove(place) else { return };
        self.tcp.get_or_insert_default().listeners.remove(&(listener.v6, listener.port));
        let unheard: Vec<u32> = self
            .sockets
            .places()
            .filter(|(_, socket)| matches!(&socket.kind, Kind::Tcp(tcp) if tcp.listener == number))
            .map(|(place, _)| self.sockets.number_of(place))
            .collect();
        for connection in unheard {
            self.tcp_close(connection, now);
        }
    }

    /// The timer of the connection at `place`.
    pub(super) fn tcp_timer(&mut self, place: u32, rung: Time, turn: &mut Turn<'_>) {
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.at(place) else { return };
        if !tcp.alarm.rings(rung) {
            return;
        }
        if tcp.connection.deadline().is_some_and(|at| at <= turn.now) {
            tcp.connection.timer(turn.now);
        }
        self.tcp_serve(self.sockets.number_of(place), turn);
    }

    /// A segment arrived.
    pub(super) fn tcp_input(&mut self, frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) {
        let parsed = frame.bytes.get(packet.l4..packet.end).map(TcpPacket::new_checked);
        let Some(Ok(header)) = parsed else {
            self.refuse(frame, turn, |counters| &mut counters.malformed);
            return;
        };
        if !packet.is_intact(&frame) {
            self.refuse(frame, turn, |counters| &mut counters.corrupted);
            return;
        }
        let Ok(options) = header.options() else {
            self.refuse(frame, turn, |counters| &mut counters.malformed);
            return;
        };
        if !packet.direct {
            self.refuse(frame, turn, |counters| &mut counters.ignored);
            return;
        }
        let local = SocketAddr::new(packet.destination, header.destination_port());
        let peer = SocketAddr::new(packet.source, header.source_port());
        let payload = header.payload();
        let segment = Segment {
            sequence: header.sequence(),
            acknowledgement: header.acknowledgement(),
            flags: header.flags(),
            window: header.window(),
            options,
            payload,
            elided: (packet.length - header.header_length() - payload.len()) as u32,
            congestion_experienced: packet.traffic_class & 3 == CONGESTION_EXPERIENCED,
        };
        if let Some(number) = self.connection_between(local, peer) {
            if let Some(tcp) = self.tcp(number) {
                tcp.connection.receive(&segment, turn.now);
            }
            turn.pool.recycle(frame);
            return self.tcp_serve(number, turn);
        }
        self.greet(packet, local, peer, &segment, turn);
        turn.pool.recycle(frame);
    }

    /// A segment of no connection: a SYN for a listener, or a stranger's.
    fn greet(
        &mut self,
        packet: &Packet,
        local: SocketAddr,
        peer: SocketAddr,
        segment: &Segment<'_>,
        turn: &mut Turn<'_>,
    ) {
        let opening = segment.flags.has(Flags::SYN) && segment.flags.0 & (Flags::ACK.0 | Flags::RST.0) == 0;
        let listener = self.listener_on(local.is_ipv6(), local.port());
        let Some(number) = listener.filter(|_| opening) else {
            self.counters.unwanted += 1;
            return self.reset_stranger(packet, local, peer, segment, turn);
        };
        let Some(Socket { app, kind: Kind::Listener(at), .. }) = self.sockets.get(number) else {
            return impossible!("a listening port without its listener");
        };
        if at.half_open >= BACKLOG {
            self.counters.overflowed += 1;
            return;
        }
        let (app, algorithm) = (*app, at.algorithm);
        let Ok(path) = self.path(Some(local.ip()), peer.ip(), PROTOCOL, Some(packet.interface), turn.now) else {
            self.counters.unreachable += 1;
            return;
        };
        let sequence = self.initial_sequence();
        let mut config = self.parameters.tcp.clone();
        config.congestion_control = algorithm.unwrap_or(config.congestion_control);
        let connection = Connection::accept(&config, local, peer, path.mtu, sequence, segment, turn.now);
        let Ok(connection) = self.keep_connection(app, connection, path, number) else {
            self.counters.overflowed += 1;
            return;
        };
        if let Some(Socket { kind: Kind::Listener(at), .. }) = self.sockets.get(number) {
            at.half_open += 1;
        }
        self.tcp_serve(connection, turn);
    }

    /// Answers a segment that belongs to no connection by a reset (RFC 9293, 3.10.7.1).
    fn reset_stranger(
        &mut self,
        packet: &Packet,
        local: SocketAddr,
        peer: SocketAddr,
        segment: &Segment<'_>,
        turn: &mut Turn<'_>,
    ) {
        if segment.flags.has(Flags::RST) || peer.port() == 0 {
            return;
        }
        let Ok(path) = self.path(Some(local.ip()), peer.ip(), PROTOCOL, Some(packet.interface), turn.now) else {
            return;
        };
        let counted = [Flags::SYN, Flags::FIN].iter().filter(|flag| segment.flags.has(**flag)).count() as u32;
        let end = segment.sequence.wrapping_add(segment.payload_length()).wrapping_add(counted);
        let answers = segment.flags.has(Flags::ACK);
        let reset = Repr {
            source_port: local.port(),
            destination_port: peer.port(),
            sequence: if answers { segment.acknowledgement } else { 0 },
            acknowledgement: if answers { 0 } else { end },
            flags: if answers { Flags::RST } else { Flags::RST.with(Flags::ACK) },
            window: 0,
            options: Options::default(),
        };
        let mut frame = turn.pool.take();
        frame.bytes.extend_from_slice(path.header());
        let start = frame.bytes.len();
        let length = reset.header_length();
        frame.bytes.resize(start + length, 0);
        reset.emit(&mut frame.bytes[start..], path.pseudo_header(length as u32));
        self.ship(frame, &path, Charge::NONE, turn);
    }

    /// ICMP, or silence on the last link, says that `peer` cannot be reached from `local`.
    pub(super) fn tcp_unreachable(&mut self, local: SocketAddr, peer: SocketAddr, now: Time) {
        if let Some(number) = self.connection_between(local, peer) {
            if let Some(tcp) = self.tcp(number) {
                tcp.connection.unreachable(now);
            }
            self.mark_unserved(number);
        }
    }

    /// ICMP says that packets from `local` to `peer` may have at most `mtu` bytes.
    pub(super) fn tcp_packet_too_big(&mut self, local: SocketAddr, peer: SocketAddr, mtu: u32, now: Time) {
        if let Some(number) = self.connection_between(local, peer) {
            if let Some(tcp) = self.tcp(number) {
                tcp.connection.packet_too_big(mtu, now);
            }
            self.mark_unserved(number);
        }
    }

    /// Chooses the congestion control of a connection, or of those that a listener will accept.
    pub(super) fn set_congestion_control(&mut self, number: u32, name: &str, now: Time) -> Result<(), HostError> {
        let algorithm = Algorithm::by_name(name).ok_or_else(|| {
            HostError::Other(format!(
                "the congestion control {name:?} is unknown to model hosts; choose cubic, reno or bbr"
            ))
        })?;
        match self.sockets.get(number).map(|socket| &mut socket.kind) {
            Some(Kind::Listener(listener)) => listener.algorithm = Some(algorithm),
            Some(Kind::Tcp(tcp)) => tcp.connection.set_congestion_control(algorithm, now),
            _ => return Err(HostError::NoSuchSocket),
        }
        Ok(())
    }
}

impl Listener {
    /// Family and port.
    pub(super) const fn port(&self) -> (bool, u16) {
        (self.v6, self.port)
    }
}

impl TcpSocket {
    /// Returns `true` if the handshake was complete at some time.
    pub(super) const fn is_connected(&self) -> bool {
        self.connected
    }
}

fn host_error(failure: Failure, peer: SocketAddr) -> HostError {
    match failure {
        Failure::Refused => HostError::Refused,
        Failure::Reset => HostError::Reset,
        Failure::TimedOut => HostError::TimedOut,
        Failure::Unreachable => HostError::Unreachable(format!("{peer}: no route to the host, or it does not answer")),
    }
}
