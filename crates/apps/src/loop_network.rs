//! A network in memory for tests: hosts `10.0.0.1`, `10.0.0.2`, ... (also `fd00::1`, ...) one delay apart, turned
//! by hand.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::{App, AppConfig, Chunk, Event, Handover, Host, HostError, SocketId, TcpInfo};

/// Bytes of one direction of a stream that may be on the way or unread.
const WINDOW: usize = 64 * 1024;

type Fate = Box<dyn FnMut(u64) -> Vec<Duration>>;

enum Delivery {
    Datagram { to: SocketAddr, icmp: bool, from: SocketAddr, bytes: Vec<u8>, length: usize },
    Connect { from: u32, to: SocketAddr },
    Bytes { socket: u32, bytes: Vec<u8> },
    End { socket: u32 },
    Connected { socket: u32 },
    Writable { socket: u32 },
    Failed { socket: u32, error: HostError },
}

#[derive(Default)]
struct Stream {
    peer: Option<u32>,
    addresses: Option<(SocketAddr, SocketAddr)>,
    incoming: VecDeque<u8>,
    ended: bool,
    /// Bytes that we sent and the peer has not read.
    outstanding: usize,
    blocked: bool,
    finished: bool,
}

enum Kind {
    Udp(SocketAddr),
    Icmp(IpAddr),
    Listener(SocketAddr),
    Stream(Stream),
}

struct Socket {
    app: usize,
    kind: Kind,
}

struct Wire {
    delay: Duration,
    segment: usize,
    fate: Fate,
    datagrams: u64,
    sockets: BTreeMap<u32, Socket>,
    next_socket: u32,
    deliveries: BTreeMap<(Time, u64), Delivery>,
    next_delivery: u64,
    next_port: u16,
    random: Pcg64Mcg,
}

struct Slot {
    host: usize,
    app: Box<dyn App>,
}

/// The app that `value` describes, as it is written in a request.
pub fn app(value: Value) -> AppConfig {
    let config: AppConfig = serde_json::from_value(value).unwrap();
    config.validate().unwrap();
    config
}

/// The network, its hosts and their apps.
pub struct LoopNetwork {
    now: Time,
    apps: Vec<Slot>,
    wire: Wire,
}

fn address_of(host: usize, v6: bool) -> IpAddr {
    let number = u8::try_from(host + 1).unwrap();
    if v6 {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(number)))
    } else {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
    }
}

impl LoopNetwork {
    /// A network in which everything takes `delay` one way.
    pub fn new(delay: Duration) -> Self {
        Self {
            now: Time::ZERO,
            apps: Vec::new(),
            wire: Wire {
                delay,
                segment: 1448,
                fate: Box::new(|_| vec![Duration::ZERO]),
                datagrams: 0,
                sockets: BTreeMap::new(),
                next_socket: 1,
                deliveries: BTreeMap::new(),
                next_delivery: 0,
                next_port: 40_000,
                random: Pcg64Mcg::seed_from_u64(7),
            },
        }
    }

    /// Sets what becomes of datagram `n` (from 0, over all): a copy for each extra delay that `fate` gives.
    pub fn datagram_fate(&mut self, fate: impl FnMut(u64) -> Vec<Duration> + 'static) {
        self.wire.fate = Box::new(fate);
    }

    /// Streams are delivered in pieces of `bytes` from now on.
    pub fn segment(&mut self, bytes: usize) {
        self.wire.segment = bytes;
    }

    /// Starts an app on a host, now.
    pub fn start(&mut self, host: usize, config: &AppConfig) -> usize {
        self.start_app(host, config.build())
    }

    /// Starts any app on a host, now.
    pub fn start_app(&mut self, host: usize, app: Box<dyn App>) -> usize {
        self.apps.push(Slot { host, app });
        let index = self.apps.len() - 1;
        self.tell(index, Event::Start);
        index
    }

    /// Asks an app to end.
    pub fn stop(&mut self, app: usize) {
        self.tell(app, Event::Stop);
    }

    /// Turns the network until `end`.
    pub fn run_until(&mut self, end: Time) {
        for _ in 0..10_000_000 {
            let delivery = self.wire.deliveries.keys().next().map(|(time, _)| *time);
            let timer = self
                .apps
                .iter()
                .enumerate()
                .filter(|(_, slot)| !slot.app.finished())
                .filter_map(|(index, slot)| slot.app.deadline().map(|deadline| (deadline, index)))
                .min();
            let next = match (delivery, timer) {
                (None, None) => break,
                (delivery, timer) => delivery.unwrap_or(Time::MAX).min(timer.map_or(Time::MAX, |timer| timer.0)),
            };
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if delivery == Some(next) {
                let ((time, number), _) = self.wire.deliveries.first_key_value().map(|(key, _)| (*key, ())).unwrap();
                let delivery = self.wire.deliveries.remove(&(time, number)).unwrap();
                self.deliver(delivery);
            } else if let Some((_, index)) = timer {
                self.tell(index, Event::Timer);
            }
        }
        self.now = self.now.max(end);
    }

    /// Returns what an app counted so far.
    pub fn report(&self, app: usize) -> Value {
        self.apps[app].app.report(self.now)
    }

    /// Returns `true` if an app has ended.
    pub fn finished(&self, app: usize) -> bool {
        self.apps[app].app.finished()
    }

    /// Sockets that are open now.
    pub fn open_sockets(&self) -> usize {
        self.wire.sockets.len()
    }

    fn tell(&mut self, index: usize, event: Event<'_>) {
        let Slot { host, app } = &mut self.apps[index];
        let mut view = View { wire: &mut self.wire, app: index, host: *host, now: self.now };
        app.handle(self.now, event, &mut view);
    }

    fn tell_owner(&mut self, socket: u32, event: Event<'_>) {
        if let Some(app) = self.wire.sockets.get(&socket).map(|socket| socket.app) {
            self.tell(app, event);
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Datagram { to, icmp, from, bytes, length } => {
                let found = self.wire.sockets.iter().find(|(_, socket)| match &socket.kind {
                    Kind::Udp(local) => !icmp && *local == to,
                    Kind::Icmp(local) => icmp && *local == to.ip(),
                    _ => false,
                });
                if let Some((&id, &Socket { app, .. })) = found {
                    let (socket, arrived) = (SocketId(id), self.now);
                    self.tell(app, Event::Datagram { socket, from, bytes: &bytes, length, arrived });
                }
            }
            Delivery::Connect { from, to } => self.connect(from, to),
            Delivery::Bytes { socket, bytes } => {
                if let Some(stream) = self.wire.stream(socket) {
                    stream.incoming.extend(bytes);
                    self.tell_owner(socket, Event::Readable { socket: SocketId(socket) });
                }
            }
            Delivery::End { socket } => {
                if let Some(stream) = self.wire.stream(socket) {
                    stream.ended = true;
                    self.tell_owner(socket, Event::Readable { socket: SocketId(socket) });
                }
            }
            Delivery::Connected { socket } => self.tell_owner(socket, Event::Connected { socket: SocketId(socket) }),
            Delivery::Writable { socket } => self.tell_owner(socket, Event::Writable { socket: SocketId(socket) }),
            Delivery::Failed { socket, error } => {
                if let Some(removed) = self.wire.sockets.remove(&socket) {
                    self.tell(removed.app, Event::Failed { socket: SocketId(socket), error });
                }
            }
        }
    }

    fn connect(&mut self, from: u32, to: SocketAddr) {
        let listener = self.wire.sockets.iter().find_map(|(&id, socket)| match &socket.kind {
            Kind::Listener(local) if *local == to => Some((id, socket.app)),
            _ => None,
        });
        let Some((listener, app)) = listener else {
            let delay = self.wire.delay;
            self.wire.after(self.now + delay, Delivery::Failed { socket: from, error: HostError::Refused });
            return;
        };
        let Some((peer, _)) = self.wire.stream(from).and_then(|stream| stream.addresses) else { return };
        let accepted = Stream { peer: Some(from), addresses: Some((to, peer)), ..Stream::default() };
        let socket = self.wire.open(app, Kind::Stream(accepted));
        if let Some(stream) = self.wire.stream(from) {
            stream.peer = Some(socket);
        }
        let delay = self.wire.delay;
        self.wire.after(self.now + delay, Delivery::Connected { socket: from });
        self.tell(app, Event::Accepted { listener: SocketId(listener), socket: SocketId(socket), peer });
    }
}

impl Wire {
    fn open(&mut self, app: usize, kind: Kind) -> u32 {
        let id = self.next_socket;
        self.next_socket += 1;
        self.sockets.insert(id, Socket { app, kind });
        id
    }

    fn after(&mut self, time: Time, delivery: Delivery) {
        self.deliveries.insert((time, self.next_delivery), delivery);
        self.next_delivery += 1;
    }

    fn stream(&mut self, socket: u32) -> Option<&mut Stream> {
        match self.sockets.get_mut(&socket) {
            Some(Socket { kind: Kind::Stream(stream), .. }) => Some(stream),
            _ => None,
        }
    }

    fn datagram(&mut self, now: Time, icmp: bool, from: SocketAddr, to: SocketAddr, extra: Duration, chunk: Chunk<'_>) {
        let (bytes, length) = contents(chunk);
        for late in (self.fate)(self.datagrams) {
            let time = now + self.delay + extra + late;
            self.after(time, Delivery::Datagram { to, icmp, from, bytes: bytes.clone(), length });
        }
        self.datagrams += 1;
    }
}

fn contents(chunk: Chunk<'_>) -> (Vec<u8>, usize) {
    match chunk {
        Chunk::Bytes(bytes) => (bytes.to_vec(), bytes.len()),
        Chunk::Padded(bytes, padding) => (bytes.to_vec(), bytes.len() + padding as usize),
        Chunk::Filler(length) => (Vec::new(), usize::try_from(length).unwrap()),
    }
}

struct View<'a> {
    wire: &'a mut Wire,
    app: usize,
    host: usize,
    now: Time,
}

impl View<'_> {
    fn bind(&mut self, port: u16, v6: bool, make: fn(SocketAddr) -> Kind) -> Result<SocketId, HostError> {
        let port = if port == 0 {
            self.wire.next_port += 1;
            self.wire.next_port
        } else {
            port
        };
        let local = SocketAddr::new(address_of(self.host, v6), port);
        let wanted = make(local);
        let taken = self.wire.sockets.values().any(|socket| match (&socket.kind, &wanted) {
            (Kind::Udp(other), Kind::Udp(_)) | (Kind::Listener(other), Kind::Listener(_)) => *other == local,
            _ => false,
        });
        if taken {
            let any = if v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
            return Err(HostError::AddressInUse(SocketAddr::new(any, port)));
        }
        Ok(SocketId(self.wire.open(self.app, wanted)))
    }

    fn take(&mut self, socket: SocketId, most: usize) -> Result<Option<Vec<u8>>, HostError> {
        let stream = self.wire.stream(socket.0).ok_or(HostError::NoSuchSocket)?;
        if stream.incoming.is_empty() {
            return Ok(stream.ended.then(Vec::new));
        }
        let taken: Vec<u8> = stream.incoming.drain(..most.min(stream.incoming.len())).collect();
        if let Some(peer) = stream.peer {
            let (now, delay) = (self.now, self.wire.delay);
            if let Some(sender) = self.wire.stream(peer) {
                sender.outstanding -= taken.len();
                if std::mem::take(&mut sender.blocked) {
                    self.wire.after(now + delay, Delivery::Writable { socket: peer });
                }
            }
        }
        Ok(Some(taken))
    }
}

impl Host for View<'_> {
    fn udp_bind(&mut self, port: u16, v6: bool) -> Result<SocketId, HostError> {
        self.bind(port, v6, Kind::Udp)
    }

    fn udp_send(&mut self, socket: SocketId, to: SocketAddr, datagram: Chunk<'_>) -> Result<(), HostError> {
        let Some(Socket { kind: Kind::Udp(from), .. }) = self.wire.sockets.get(&socket.0) else {
            return Err(HostError::NoSuchSocket);
        };
        let from = *from;
        self.wire.datagram(self.now, false, from, to, Duration::ZERO, datagram);
        Ok(())
    }

    fn icmp_open(&mut self, v6: bool) -> Result<SocketId, HostError> {
        Ok(SocketId(self.wire.open(self.app, Kind::Icmp(address_of(self.host, v6)))))
    }

    /// The host asked answers an echo request at once.
    fn icmp_send(&mut self, socket: SocketId, to: SocketAddr, message: Chunk<'_>) -> Result<(), HostError> {
        let Some(Socket { kind: Kind::Icmp(from), .. }) = self.wire.sockets.get(&socket.0) else {
            return Err(HostError::NoSuchSocket);
        };
        let back = SocketAddr::new(*from, 0);
        let (mut bytes, length) = contents(message);
        assert!(bytes[0] == 8 || bytes[0] == 128, "not an echo request: type {}", bytes[0]);
        bytes[0] = if bytes[0] == 8 { 0 } else { 129 };
        let padding = u32::try_from(length - bytes.len()).unwrap();
        let delay = self.wire.delay;
        self.wire.datagram(self.now, true, SocketAddr::new(to.ip(), 0), back, delay, Chunk::Padded(&bytes, padding));
        Ok(())
    }

    fn tcp_listen(&mut self, port: u16, v6: bool) -> Result<SocketId, HostError> {
        self.bind(port, v6, Kind::Listener)
    }

    fn set_congestion_control(&mut self, _socket: SocketId, name: &str) -> Result<(), HostError> {
        if name == "cubic" {
            return Ok(());
        }
        Err(HostError::Other(format!("no congestion control {name:?}")))
    }

    fn tcp_connect(&mut self, to: SocketAddr) -> Result<SocketId, HostError> {
        self.wire.next_port += 1;
        let local = SocketAddr::new(address_of(self.host, to.is_ipv6()), self.wire.next_port);
        let stream = Stream { addresses: Some((local, to)), ..Stream::default() };
        let socket = self.wire.open(self.app, Kind::Stream(stream));
        let delay = self.wire.delay;
        self.wire.after(self.now + delay, Delivery::Connect { from: socket, to });
        Ok(SocketId(socket))
    }

    fn tcp_info(&mut self, socket: SocketId) -> Option<TcpInfo> {
        self.wire.stream(socket.0)?;
        Some(TcpInfo {
            congestion_window: u32::try_from(WINDOW / self.wire.segment).unwrap(),
            slow_start_threshold: None,
            smoothed_round_trip: Duration::from_ps(2 * self.wire.delay.as_ps()),
            retransmitted: 0,
        })
    }

    fn tcp_send(&mut self, socket: SocketId, chunk: Chunk<'_>) -> Result<u64, HostError> {
        let (now, delay, segment) = (self.now, self.wire.delay, self.wire.segment);
        let stream = self.wire.stream(socket.0).ok_or(HostError::NoSuchSocket)?;
        let peer = stream.peer.ok_or(HostError::NoSuchSocket)?;
        if stream.finished {
            return Err(HostError::Other("the stream was finished".to_owned()));
        }
        let (mut bytes, length) = match chunk {
            Chunk::Filler(length) => (Vec::new(), usize::try_from(length).unwrap()),
            other => contents(other),
        };
        let taken = length.min(WINDOW - stream.outstanding);
        stream.outstanding += taken;
        stream.blocked = taken < length;
        bytes.resize(taken, 0);
        for piece in bytes.chunks(segment) {
            self.wire.after(now + delay, Delivery::Bytes { socket: peer, bytes: piece.to_vec() });
        }
        Ok(taken as u64)
    }

    fn tcp_receive(&mut self, socket: SocketId, buffer: &mut [u8]) -> Result<Option<usize>, HostError> {
        let taken = self.take(socket, buffer.len())?;
        Ok(taken.map(|bytes| {
            buffer[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        }))
    }

    fn tcp_discard(&mut self, socket: SocketId, most: u64) -> Result<Option<u64>, HostError> {
        let taken = self.take(socket, usize::try_from(most).unwrap_or(usize::MAX))?;
        Ok(taken.map(|bytes| bytes.len() as u64))
    }

    fn tcp_finish(&mut self, socket: SocketId) {
        let (now, delay) = (self.now, self.wire.delay);
        let Some(stream) = self.wire.stream(socket.0) else { return };
        if !std::mem::replace(&mut stream.finished, true) {
            if let Some(peer) = stream.peer {
                self.wire.after(now + delay, Delivery::End { socket: peer });
            }
        }
    }

    fn addresses(&self, socket: SocketId) -> Option<(SocketAddr, SocketAddr)> {
        match &self.wire.sockets.get(&socket.0)?.kind {
            Kind::Stream(stream) => stream.addresses,
            Kind::Udp(local) | Kind::Listener(local) => Some((*local, SocketAddr::new(local.ip(), 0))),
            Kind::Icmp(_) => None,
        }
    }

    fn close(&mut self, socket: SocketId) {
        self.tcp_finish(socket);
        self.wire.sockets.remove(&socket.0);
    }

    fn random(&mut self) -> u64 {
        self.wire.random.next_u64()
    }
}

/// A host on which datagrams go nowhere and are remembered; it has nothing else.
pub struct RecordingHost {
    datagrams: Vec<Vec<u8>>,
    refusal: Option<HostError>,
    handover: Option<Handover>,
    random: Pcg64Mcg,
}

impl RecordingHost {
    /// A host whose random numbers come from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { datagrams: Vec::new(), refusal: None, handover: None, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// The real bytes of the datagrams sent since the last call.
    pub fn take_datagrams(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.datagrams)
    }

    /// Datagrams are refused from now on.
    pub fn refuse_datagrams(&mut self, error: HostError) {
        self.refusal = Some(error);
    }

    /// Datagrams that are sent from now on are handed over then.
    pub fn hand_over(&mut self, handover: Handover) {
        self.handover = Some(handover);
    }

    /// Datagrams are taken again.
    pub fn accept_datagrams(&mut self) {
        self.refusal = None;
    }
}

const NOTHING_ELSE: HostError = HostError::NoSuchSocket;

impl Host for RecordingHost {
    fn udp_bind(&mut self, _port: u16, _v6: bool) -> Result<SocketId, HostError> {
        Ok(SocketId(1))
    }
    fn udp_send(&mut self, _socket: SocketId, _to: SocketAddr, datagram: Chunk<'_>) -> Result<(), HostError> {
        match &self.refusal {
            Some(error) => Err(error.clone()),
            None => {
                self.datagrams.push(contents(datagram).0);
                Ok(())
            }
        }
    }
    fn flush(&mut self, _socket: SocketId) -> Option<Handover> {
        self.handover
    }
    fn icmp_open(&mut self, _v6: bool) -> Result<SocketId, HostError> {
        Err(NOTHING_ELSE)
    }
    fn icmp_send(&mut self, _socket: SocketId, _to: SocketAddr, _message: Chunk<'_>) -> Result<(), HostError> {
        Err(NOTHING_ELSE)
    }
    fn tcp_listen(&mut self, _port: u16, _v6: bool) -> Result<SocketId, HostError> {
        Err(NOTHING_ELSE)
    }
    fn tcp_connect(&mut self, _to: SocketAddr) -> Result<SocketId, HostError> {
        Err(NOTHING_ELSE)
    }
    fn set_congestion_control(&mut self, _socket: SocketId, _name: &str) -> Result<(), HostError> {
        Err(NOTHING_ELSE)
    }
    fn tcp_send(&mut self, _socket: SocketId, _chunk: Chunk<'_>) -> Result<u64, HostError> {
        Err(NOTHING_ELSE)
    }
    fn tcp_receive(&mut self, _socket: SocketId, _buffer: &mut [u8]) -> Result<Option<usize>, HostError> {
        Err(NOTHING_ELSE)
    }
    fn tcp_discard(&mut self, _socket: SocketId, _most: u64) -> Result<Option<u64>, HostError> {
        Err(NOTHING_ELSE)
    }
    fn tcp_finish(&mut self, _socket: SocketId) {}
    fn addresses(&self, _socket: SocketId) -> Option<(SocketAddr, SocketAddr)> {
        None
    }
    fn close(&mut self, _socket: SocketId) {}
    fn random(&mut self) -> u64 {
        self.random.next_u64()
    }
}
