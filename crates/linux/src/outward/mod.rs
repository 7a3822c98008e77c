//! A way from a network to the world without any right: the connections of its hosts become ordinary sockets.
//!
//! Packets come out of one end of an interface (a packet socket on it). smoltcp ends their TCP connections, and a
//! thread hands the bytes on to sockets of this machine; UDP and ICMP echo requests go by a socket for each pair of
//! ends. Nothing comes in by itself. The kernel puts fragments together where the socket was made so. Left out: IPv6,
//! other protocols, other messages of ICMP, options of IP, urgent data; the remaining hops of a packet do not count.

mod connections;
mod datagrams;
mod destinations;
mod way;

use std::io;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{poll, EventfdFlags, PollFd, PollFlags, Timespec};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{HardwareAddress, IpCidr, IpProtocol, Ipv4Cidr, Ipv4Packet};

use connections::{Connections, Stack};
use datagrams::Datagrams;
pub use destinations::Destinations;
use way::Way;

/// Packets of the network that are looked at before the sockets have their turn.
const TURN: usize = 64;
/// How often conversations are looked at that have become silent.
const SWEEP: Duration = Duration::from_secs(5);

/// A thread that carries what a network has to say outward, until it is dropped.
pub struct Outward {
    thread: Option<JoinHandle<()>>,
    stop: OwnedFd,
}

impl Outward {
    /// Starts the thread in the network namespace of the caller. `packets` is a packet socket (`SOCK_RAW`) that is
    /// bound to one end of the interface, for IPv4; the other end has the hardware address 02:00:00:00:53:01.
    pub fn start(packets: OwnedFd, destinations: Destinations) -> io::Result<Self> {
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        let told = stop.try_clone()?;
        let translation = Translation::new(Way::new(packets), destinations);
        let thread = std::thread::Builder::new().name("outward".to_owned()).spawn(move || {
            if let Err(error) = translation.run(&told) {
                tracing::warn!(%error, "the way to the network outside has ended");
            }
        })?;
        Ok(Self { thread: Some(thread), stop })
    }
}

impl Drop for Outward {
    fn drop(&mut self) {
        // The counter cannot be full: it is written once.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the way to the network outside has failed");
        }
    }
}

/// What a socket that is waited for belongs to.
enum Ready {
    Datagrams(datagrams::Ends),
    Connection(connections::Ends),
}

/// The state of the thread.
struct Translation {
    way: Way,
    destinations: Destinations,
    interface: Interface,
    sockets: SocketSet<'static>,
    datagrams: Datagrams,
    connections: Connections,
    start: Instant,
}

impl Translation {
    fn new(mut way: Way, destinations: Destinations) -> Self {
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = rand::random();
        let mut interface = Interface::new(config, &mut way, StackInstant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let own = IpCidr::Ipv4(Ipv4Cidr::new(destinations.gateway, destinations.prefix));
            // One of several places.
            let _ = addresses.push(own);
        });
        // The stack takes packets for all addresses whose route leads to itself.
        interface.set_any_ip(true);
        let _ = interface.routes_mut().add_default_ipv4_route(destinations.gateway);
        Self {
            way,
            destinations,
            interface,
            sockets: SocketSet::new(Vec::new()),
            datagrams: Datagrams::default(),
            connections: Connections::default(),
            start: Instant::now(),
        }
    }

    fn run(mut self, stop: &OwnedFd) -> io::Result<()> {
        let mut swept = self.start;
        loop {
            let Some((network, ready)) = self.wait(stop)? else { return Ok(()) };
            if network {
                self.take()?;
            }
            let now = Instant::now();
            for each in ready {
                match each {
                    Ready::Datagrams(ends) => self.datagrams.answer(ends, &mut self.way, now),
                    Ready::Connection(ends) => {
                        let (connections, mut stack, _) = self.parts(now);
                        connections.ready(ends, &mut stack);
                    }
                }
            }
            let (connections, mut stack, _) = self.parts(now);
            connections.go_on(&mut stack);
            if now.duration_since(swept) >= SWEEP {
                self.datagrams.sweep(now);
                swept = now;
            }
        }
    }

    /// Waits until something is to do; returns whether packets wait, and the sockets that are ready. `None`: it is time
    /// to stop.
    fn wait(&mut self, stop: &OwnedFd) -> io::Result<Option<(bool, Vec<Ready>)>> {
        let now = self.stack_time(Instant::now());
        let due = self.interface.poll_delay(now, &self.sockets).map_or(SWEEP, Duration::from).min(SWEEP);
        let mut watched = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(&self.way, PollFlags::IN)];
        let mut whose = Vec::new();
        for (ends, socket) in self.datagrams.sockets() {
            watched.push(PollFd::from_borrowed_fd(socket, PollFlags::IN));
            whose.push(Ready::Datagrams(ends));
        }
        for (ends, socket, wanted) in self.connections.sockets(&self.sockets) {
            watched.push(PollFd::from_borrowed_fd(socket, wanted));
            whose.push(Ready::Connection(ends));
        }
        let due = Timespec { tv_sec: due.as_secs().try_into().unwrap_or(0), tv_nsec: due.subsec_nanos().into() };
        match poll(&mut watched, Some(&due)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let told: Vec<bool> = watched.iter().map(|each| !each.revents().is_empty()).collect();
        if told[0] {
            return Ok(None);
        }
        let ready = whose.into_iter().zip(&told[2..]).filter(|(_, told)| **told).map(|(whose, _)| whose).collect();
        Ok(Some((told[1], ready)))
    }

    /// Takes packets that came out of the network.
    fn take(&mut self) -> io::Result<()> {
        for _ in 0..TURN {
            let Some(packet) = self.way.take()? else { break };
            let Ok(whole) = Ipv4Packet::new_checked(&packet[..]) else { continue };
            // One that the kernel could not put together.
            if whole.more_frags() || whole.frag_offset() > 0 {
                continue;
            }
            let now = Instant::now();
            match whole.next_header() {
                IpProtocol::Tcp => {
                    let (connections, mut stack, destinations) = self.parts(now);
                    connections.take(packet, &destinations, &mut stack);
                }
                IpProtocol::Udp => self.datagrams.carry_udp(&whole, &self.destinations, now),
                IpProtocol::Icmp => self.datagrams.carry_icmp(&whole, &self.destinations, now),
                _ => {}
            }
        }
        Ok(())
    }

    fn parts(&mut self, now: Instant) -> (&mut Connections, Stack<'_>, Destinations) {
        let now = self.stack_time(now);
        let stack = Stack { interface: &mut self.interface, sockets: &mut self.sockets, way: &mut self.way, now };
        (&mut self.connections, stack, self.destinations)
    }

    fn stack_time(&self, now: Instant) -> StackInstant {
        let since = now.saturating_duration_since(self.start);
        StackInstant::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}
