//! The protocols of one host and what they share: interfaces, addresses, routes, neighbours, sockets, timers.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rand::Rng as _;
use twinnet_apps::HostError;
use twinnet_packet::Frame;
use twinnet_packet::FramePool;
use twinnet_units::random::Rng;
use twinnet_units::{Duration, Rate, Time};

use super::counters::HostCounters;
use super::forward::ForwardCache;
use super::fragments::Reassembly;
use super::icmp_errors::ErrorLimits;
use super::interface::{is_link_local, Charge, Interface, LOOPBACK, LOOPBACK_MTU};
use super::neighbours::{Known, Neighbours, StaticNeighbours};
use super::parameters::Parameters;
use super::path::{Path, PathParts};
use super::path_mtu::PathMtus;
use super::processing::Processing;
use super::route::{Hop, Routes};
use super::sockets::{Kind, Sockets};
use super::tcp_sockets::TcpTable;
use super::timers::{Alarm, Owner, Timers};

/// The rate of the loopback, and the time that a frame is on its way: a host that talks to itself takes some time, as a
/// real one does, and no stream through it is endless at one moment.
const LOOPBACK_BPS: u64 = 40_000_000_000;
const LOOPBACK_DELAY: Duration = Duration::from_us(5);

/// The moment at which a host is called, and where frames come from.
pub(super) struct Turn<'a> {
    pub(super) now: Time,
    pub(super) pool: &'a mut FramePool,
}

/// The news that an app gets of a socket.
#[derive(Debug)]
pub(super) enum Told {
    Connected(u32),
    Accepted { listener: u32, socket: u32, peer: SocketAddr },
    Readable(u32),
    Writable(u32),
    Failed(u32, HostError),
}

/// A datagram for an app, in its frame.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) frame: Box<Frame>,
    /// The socket's number.
    pub(super) socket: u32,
    /// Place of the app.
    pub(super) app: u32,
    pub(super) from: SocketAddr,
    /// The offset of the stored bytes of the datagram.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its length, stored and elided.
    pub(super) length: usize,
}

/// Why there is no way to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPath {
    /// No route, or no address of our own to send from.
    NoRoute,
    /// A broadcast or multicast address, to which apps do not send.
    Many,
}

impl NoPath {
    /// The refusal as an app is told it.
    pub(super) fn error(self, to: SocketAddr) -> HostError {
        match self {
            Self::NoRoute => HostError::Unreachable(format!("{to}: no route from this host")),
            Self::Many => HostError::Unreachable(format!("{to}: a broadcast or multicast address; send to one host")),
        }
    }
}

/// Frames on their way from the host to itself.
#[derive(Debug, Default)]
struct Loop {
    frames: VecDeque<(Time, Box<Frame>)>,
    free_at: Time,
    alarm: Alarm,
}

/// The protocols of a host.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) interfaces: Box<[Interface]>,
    /// Interfaces that have got something to send since the engine was last told.
    woken: VecDeque<u16>,
    /// Own addresses, in order.
    pub(super) addresses: Box<[IpAddr]>,
    pub(super) routes: Routes,
    pub(super) neighbours: Neighbours,
    pub(super) neighbour_alarm: Alarm,
    pub(super) static_neighbours: Option<Arc<StaticNeighbours>>,
    /// Changes whenever a path that was worked out may not hold any longer.
    pub(super) epoch: u32,
    pub(super) parameters: Arc<Parameters>,
    pub(super) sockets: Sockets,
    pub(super) tcp: Option<Box<TcpTable>>,
    pub(super) timers: Timers,
    /// The news that apps must be told.
    pub(super) events: VecDeque<Told>,
    looped: Option<Box<Loop>>,
    pub(super) processing: Option<Box<Processing>>,
    pub(super) reassembly: Option<Box<Reassembly>>,
    pub(super) error_limits: Option<Box<ErrorLimits>>,
    pub(super) path_mtus: Option<Box<PathMtus>>,
    pub(super) forward_cache: Option<Box<ForwardCache>>,
    pub(super) counters: HostCounters,
    pub(super) random: Rng,
    /// Identification of the next packet that may be fragmented.
    identification: u32,
    pub(super) next_echo_identifier: u16,
}

impl Stack {
    /// A stack with these interfaces, addresses (in order) and routes.
    pub(super) fn new(
        interfaces: Box<[Interface]>,
        addresses: Box<[IpAddr]>,
        routes: Routes,
        parameters: Arc<Parameters>,
        mut random: Rng,
    ) -> Self {
        #[allow(clippy::cast_possible_truncation)]
        let identification = random.next_u64() as u32;
        Self {
            interfaces,
            woken: VecDeque::new(),
            addresses,
            routes,
            neighbours: Neighbours::default(),
            neighbour_alarm: Alarm::default(),
            static_neighbours: None,
            epoch: 0,
            parameters,
            sockets: Sockets::default(),
            tcp: None,
            timers: Timers::default(),
            events: VecDeque::new(),
            looped: None,
            processing: None,
            reassembly: None,
            error_limits: None,
            path_mtus: None,
            forward_cache: None,
            counters: HostCounters::default(),
            random,
            identification,
            next_echo_identifier: 1,
        }
    }

    /// Returns `true` if `address` is one of this host.
    pub(super) fn is_local(&self, address: IpAddr) -> bool {
        self.addresses.binary_search(&address).is_ok() || address.is_loopback()
    }

    /// A new identification for a packet that may be fragmented.
    pub(super) fn next_identification(&mut self) -> u32 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }

    /// Returns the next hop of a packet to `to`; link-local ones by the interface `on`, or else the first.
    fn hop(&self, to: IpAddr, on: Option<u16>) -> Option<Hop> {
        if is_link_local(to) {
            let interface = on.unwrap_or(0);
            return ((interface as usize) < self.interfaces.len()).then_some(Hop { interface, next: to, length: 64 });
        }
        self.routes.find(to)
    }

    /// The way to `to`. `source` is our address, chosen when not given; `on` is the interface that link-local
    /// addresses belong to.
    pub(super) fn path(
        &mut self,
        source: Option<IpAddr>,
        to: IpAddr,
        protocol: u8,
        on: Option<u16>,
        now: Time,
    ) -> Result<Path, NoPath> {
        let mut parts = PathParts {
            epoch: self.epoch,
            interface: LOOPBACK,
            mtu: LOOPBACK_MTU,
            until: Time::MAX,
            next: to,
            prefix: 128,
            source: source.unwrap_or(to),
            destination: to,
            protocol,
            hop_limit: self.parameters.hop_limit,
            to_mac: None,
            from_mac: [0; 6],
        };
        if self.is_local(to) {
            return Ok(Path::new(&parts));
        }
        if to.is_multicast() || to.is_unspecified() || matches!(to, IpAddr::V4(to) if to.is_broadcast()) {
            return Err(NoPath::Many);
        }
        let hop = self.hop(to, on).ok_or(NoPath::NoRoute)?;
        let interface = self.interfaces.get(hop.interface as usize).ok_or(NoPath::NoRoute)?;
        if is_subnet_broadcast(interface, to) {
            return Err(NoPath::Many);
        }
        let towards = if is_link_local(hop.next) { to } else { hop.next };
        let own = || interface.address_towards(towards).or_else(|| self.any_address(to));
        parts.source = source.or_else(own).ok_or(NoPath::NoRoute)?;
        parts.interface = hop.interface;
        parts.mtu = interface.mtu;
        parts.from_mac = interface.mac;
        parts.next = hop.next;
        parts.prefix = hop.length;
        if let Some((mtu, until)) = self.path_mtus.as_ref().and_then(|known| known.get(to, now)) {
            parts.mtu = parts.mtu.min(mtu);
            parts.until = until;
        }
        match self.hardware_address(hop.interface, hop.next, now) {
            Known::Address(mac, until) => {
                parts.to_mac = Some(mac);
                parts.until = parts.until.min(until);
            }
            Known::NotYet => parts.until = Time::ZERO,
        }
        Ok(Path::new(&parts))
    }

    fn hardware_address(&mut self, interface: u16, next: IpAddr, now: Time) -> Known {
        if let Some(mac) = self.static_neighbours.as_ref().and_then(|known| known.get(next)) {
            return Known::Address(mac, Time::MAX);
        }
        let known = self.neighbours.find((interface, next), now);
        self.watch_neighbours();
        known
    }

    /// An address of the family of `to` on any interface: for interfaces that have none themselves.
    fn any_address(&self, to: IpAddr) -> Option<IpAddr> {
        self.interfaces.iter().find_map(|interface| interface.address_towards(to))
    }

    /// Returns `true` if `path` still holds.
    pub(super) fn holds(&self, path: &Path, now: Time) -> bool {
        path.epoch == self.epoch && now < path.until
    }

    /// Sends a finished frame on `path`, charged to `charge` until it has left.
    pub(super) fn transmit(&mut self, frame: Box<Frame>, path: &Path, charge: Charge, turn: &mut Turn<'_>) {
        if path.interface == LOOPBACK {
            self.loop_back(frame, charge, turn.now);
        } else if path.resolved {
            self.enqueue(path.interface, frame, charge, turn);
        } else {
            self.await_neighbour((path.interface, path.next), (frame, charge), turn);
        }
    }

    /// Puts a frame into the queue of `interface`.
    pub(super) fn enqueue(&mut self, interface: u16, frame: Box<Frame>, charge: Charge, turn: &mut Turn<'_>) {
        let Some(at) = self.interfaces.get_mut(interface as usize) else { return turn.pool.recycle(frame) };
        match at.push(frame, charge) {
            Some((frame, charge)) => {
                self.counters.overflowed += 1;
                self.credit(charge);
                turn.pool.recycle(frame);
            }
            None => {
                if !std::mem::replace(&mut at.woken, true) {
                    self.woken.push_back(interface);
                }
            }
        }
    }

    /// As `ModelHost::next_woken`.
    pub(super) fn next_woken(&mut self) -> Option<usize> {
        let interface = usize::from(self.woken.pop_front()?);
        if let Some(at) = self.interfaces.get_mut(interface) {
            at.woken = false;
        }
        Some(interface)
    }

    /// The next frame of `interface`; its socket is credited.
    pub(super) fn take(&mut self, interface: usize) -> Option<Box<Frame>> {
        let (frame, charge) = self.interfaces.get_mut(interface)?.pop()?;
        self.credit(charge);
        Some(frame)
    }

    /// A frame has left the host or was thrown away: its socket may send more.
    pub(super) fn credit(&mut self, charge: Charge) {
        if charge.socket == 0 {
            return;
        }
        match self.sockets.get(charge.socket).map(|socket| &mut socket.kind) {
            Some(Kind::Udp(udp)) => udp.charged = udp.charged.saturating_sub(charge.bytes),
            Some(Kind::Tcp(tcp)) => {
                tcp.connection.left_host(charge.bytes);
                self.mark_unserved(charge.socket);
            }
            _ => {}
        }
    }

    fn loop_back(&mut self, frame: Box<Frame>, charge: Charge, now: Time) {
        // Linux takes what enters the loopback off its socket's account at once.
        self.credit(charge);
        let rate = Rate::from_bps(LOOPBACK_BPS);
        let busy = rate.map_or(Duration::ZERO, |rate| rate.serialise(frame.length()));
        let looped = self.looped.get_or_insert_default();
        looped.free_at = looped.free_at.max(now) + busy;
        let at = looped.free_at + LOOPBACK_DELAY;
        looped.frames.push_back((at, frame));
        looped.alarm.set(Some(at), Owner::Loopback, &mut self.timers);
    }

    /// The loopback's timer: a frame that has come around, if one is due.
    pub(super) fn looped_frame(&mut self, rung: Time, now: Time) -> Option<Box<Frame>> {
        let looped = self.looped.as_mut()?;
        looped.alarm.rings(rung);
        let due = looped.frames.front().is_some_and(|(at, _)| *at <= now);
        let frame = if due { looped.frames.pop_front().map(|(_, frame)| frame) } else { None };
        let next = looped.frames.front().map(|(at, _)| *at);
        looped.alarm.set(next, Owner::Loopback, &mut self.timers);
        frame
    }

    /// A draw below `limit`.
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn draw(&mut self, limit: u16) -> u16 {
        (self.random.next_u64() % u64::from(limit.max(1))) as u16
    }
}

/// Returns `true` if `address` is the broadcast address of a network of `interface`.
pub(super) fn is_subnet_broadcast(interface: &Interface, address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else { return false };
    interface.addresses.iter().any(|prefix| match prefix.address {
        IpAddr::V4(own) if prefix.length < 31 => {
            let host_bits = u32::MAX >> prefix.length;
            own.to_bits() | host_bits == address.to_bits()
        }
        _ => false,
    })
}
