//! The sockets of one host, of all kinds, in one table.
//!
//! A socket's number holds its place in the table and how often the place was used before, so that an app which
//! uses a number after closing it reaches nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustc_hash::FxHashMap;

use super::path::Path;
use super::tcp_sockets::{Listener, TcpSocket};

/// Bits of a number that are the place.
const PLACE_BITS: u32 = 20;
/// Sockets that one host can have at once.
pub(super) const MOST_SOCKETS: usize = 1 << PLACE_BITS;

/// The kind of a socket.
#[derive(Debug)]
pub(super) enum Kind {
    /// UDP.
    Udp(Box<Udp>),
    /// ICMP echo.
    Icmp(Icmp),
    /// Waits for connections.
    Listener(Box<Listener>),
    /// A connection.
    Tcp(Box<TcpSocket>),
}

/// A UDP socket.
#[derive(Debug)]
pub(super) struct Udp {
    /// Our port.
    pub(super) port: u16,
    /// Of which family.
    pub(super) v6: bool,
    /// Bytes of the send buffer that are in use.
    pub(super) charged: u32,
    /// Traffic class of what it sends.
    pub(super) traffic_class: u8,
    /// Hops after which what it sends expires; `None` for the host's own.
    pub(super) hop_limit: Option<u8>,
    /// The destination of the last datagram, and the way there.
    pub(super) path: Option<(IpAddr, Path)>,
}

/// A socket for ICMP echo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Icmp {
    /// Of which version.
    pub(super) v6: bool,
    /// Ours in every request.
    pub(super) identifier: u16,
    /// Traffic class of what it sends.
    pub(super) traffic_class: u8,
}

/// One socket.
#[derive(Debug)]
pub(super) struct Socket {
    /// Place of the app that owns it.
    pub(super) app: u32,
    /// `true` if the app has closed it; a connection then comes to its end by itself.
    pub(super) closed: bool,
    /// Its kind.
    pub(super) kind: Kind,
}

#[derive(Debug, Default)]
struct Place {
    generation: u32,
    socket: Option<Socket>,
}

/// Returns the key that is looked up when a datagram arrives: protocol, family and port (or identifier) in one number.
const fn port_key(icmp: bool, v6: bool, port: u16) -> u32 {
    (icmp as u32) << 17 | (v6 as u32) << 16 | port as u32
}

/// All sockets of a host.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    places: Vec<Place>,
    free: Vec<u32>,
    /// UDP and ICMP sockets by [`port_key`]. Never iterated.
    ports: FxHashMap<u32, u32>,
}

impl Sockets {
    /// The place that `number` names, if it is in use by that number.
    pub(super) fn place_of(&self, number: u32) -> Option<u32> {
        let place = number & (MOST_SOCKETS as u32 - 1);
        let found = self.places.get(place as usize)?;
        (found.generation == number >> PLACE_BITS && found.socket.is_some()).then_some(place)
    }

    /// The number of the socket at `place`.
    pub(super) fn number_of(&self, place: u32) -> u32 {
        self.places.get(place as usize).map_or(0, |found| found.generation << PLACE_BITS | place)
    }

    /// The socket at `place`.
    pub(super) fn at(&mut self, place: u32) -> Option<&mut Socket> {
        self.places.get_mut(place as usize)?.socket.as_mut()
    }

    /// The socket `number`.
    pub(super) fn get(&mut self, number: u32) -> Option<&mut Socket> {
        let place = number & (MOST_SOCKETS as u32 - 1);
        let found = self.places.get_mut(place as usize)?;
        if found.generation != number >> PLACE_BITS {
            return None;
        }
        found.socket.as_mut()
    }

    /// As [`Sockets::get`], only to be looked at.
    pub(super) fn peek(&self, number: u32) -> Option<&Socket> {
        self.places.get(self.place_of(number)? as usize)?.socket.as_ref()
    }

    /// Takes a socket in; its number. `None` when the host has too many.
    pub(super) fn insert(&mut self, socket: Socket) -> Option<u32> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() >= MOST_SOCKETS => return None,
            None => {
                self.places.push(Place { generation: 1, socket: None });
                u32::try_from(self.places.len() - 1).ok()?
            }
        };
        let found = self.places.get_mut(place as usize)?;
        let number = found.generation << PLACE_BITS | place;
        match &socket.kind {
            Kind::Udp(udp) => self.ports.insert(port_key(false, udp.v6, udp.port), place),
            Kind::Icmp(icmp) => self.ports.insert(port_key(true, icmp.v6, icmp.identifier), place),
            Kind::Listener(_) | Kind::Tcp(_) => None,
        };
        found.socket = Some(socket);
        Some(number)
    }

    /// Takes the socket at `place` out.
    pub(super) fn remove(&mut self, place: u32) -> Option<Socket> {
        let found = self.places.get_mut(place as usize)?;
        let socket = found.socket.take()?;
        // 0 is no generation, so that 0 is no number.
        found.generation = (found.generation + 1) & (u32::MAX >> PLACE_BITS);
        found.generation = found.generation.max(1);
        self.free.push(place);
        match &socket.kind {
            Kind::Udp(udp) => self.ports.remove(&port_key(false, udp.v6, udp.port)),
            Kind::Icmp(icmp) => self.ports.remove(&port_key(true, icmp.v6, icmp.identifier)),
            Kind::Listener(_) | Kind::Tcp(_) => None,
        };
        Some(socket)
    }

    /// Place of the UDP socket on `port`.
    pub(super) fn udp(&self, v6: bool, port: u16) -> Option<u32> {
        self.ports.get(&port_key(false, v6, port)).copied()
    }

    /// Place of the ICMP socket with `identifier`.
    pub(super) fn icmp(&self, v6: bool, identifier: u16) -> Option<u32> {
        self.ports.get(&port_key(true, v6, identifier)).copied()
    }

    /// Places in use, in order.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, &Socket)> {
        self.places.iter().enumerate().filter_map(|(place, found)| {
            let place = u32::try_from(place).ok()?;
            found.socket.as_ref().map(|socket| (place, socket))
        })
    }
}

/// All addresses of a family with `port`.
pub(super) const fn any_address(v6: bool, port: u16) -> SocketAddr {
    let any = if v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    SocketAddr::new(any, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(port: u16) -> Socket {
        Socket {
            app: 0,
            closed: false,
            kind: Kind::Udp(Box::new(Udp {
                port,
                v6: false,
                charged: 0,
                traffic_class: 0,
                path: None,
                hop_limit: None,
            })),
        }
    }

    #[test]
    fn a_number_reaches_its_socket_until_it_is_removed_and_never_its_successor() {
        let mut sockets = Sockets::default();
        let first = sockets.insert(udp(5)).unwrap();
        assert!(sockets.get(first).is_some());
        let place = sockets.udp(false, 5).unwrap();
        assert_eq!(sockets.number_of(place), first);
        sockets.remove(place);
        let second = sockets.insert(udp(5)).unwrap();
        assert_ne!(first, second);
        assert!(sockets.get(first).is_none() && sockets.peek(first).is_none());
        assert!(sockets.get(second).is_some());
        assert!(sockets.udp(true, 5).is_none() && sockets.icmp(false, 5).is_none());
    }

    #[test]
    fn no_socket_has_the_number_zero() {
        let mut sockets = Sockets::default();
        for _ in 0..10_000 {
            let number = sockets.insert(udp(5)).unwrap();
            assert_ne!(number, 0);
            sockets.remove(sockets.place_of(number).unwrap());
        }
        assert!(sockets.get(0).is_none());
    }
}
