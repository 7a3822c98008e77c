//! ICMP errors: about packets that cannot be delivered or forwarded here, at a limited rate; and those that arrive
//! about ours.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use twinnet_packet::{icmpv4, icmpv6, ipv4, ipv6, tcp, Frame};
use twinnet_units::{Duration, Time};

use super::interface::{Charge, LOOPBACK};
use super::packet::Packet;
use super::path::{Path, L3};
use super::path_mtu::PathMtus;
use super::stack::{Arrival, Stack, Turn};

/// Longest ICMP error over IPv4, IP header included (RFC 1812, 4.3.2.3).
const LONGEST_V4: usize = 576;
/// Longest ICMPv6 error, IP header included: the least MTU (RFC 4443, 2.4).
const LONGEST_V6: usize = 1280;
/// Time between errors to one destination (Linux's `icmp_ratelimit`).
const SPACING: Duration = Duration::from_secs(1);
/// Errors to one destination that may follow each other at once (Linux's `XRLIM_BURST_FACTOR`).
const BURST: u64 = 6;
/// Destinations whose rate is remembered.
const MOST_DESTINATIONS: usize = 4096;

/// A fault of a packet that its sender is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Error {
    /// Its hop limit ran out.
    HopsExceeded,
    /// Its fragments did not all come in time.
    ReassemblyTime,
    /// There is no route to its destination.
    NoRoute,
    /// Its destination, or the router before it, does not answer.
    NoAnswer,
    /// Nobody waits for it at its port.
    NoPort,
    /// Its upper layer is not spoken here.
    NoProtocol,
    /// It is longer than the next link takes.
    TooBig {
        /// The MTU: what the link takes.
        mtu: u32,
    },
}

/// The limits of errors by destination: a token bucket for each destination, as Linux's.
#[derive(Debug, Default)]
pub(super) struct ErrorLimits(BTreeMap<IpAddr, (Time, Duration)>);

impl ErrorLimits {
    /// Returns `true` if an error may be sent to `to` now, one every `spacing` and a few at once.
    fn allow(&mut self, to: IpAddr, spacing: Duration, now: Time) -> bool {
        let full = Duration::from_ps(spacing.as_ps() * BURST);
        if self.0.len() >= MOST_DESTINATIONS && !self.0.contains_key(&to) {
            // A bucket that is full again tells nothing.
            self.0.retain(|_, (at, saved)| *saved + now.since(*at) < full);
            if self.0.len() >= MOST_DESTINATIONS {
                return false;
            }
        }
        let (at, saved) = self.0.entry(to).or_insert((now, full));
        let have = (*saved + now.since(*at)).min(full);
        let allowed = have >= spacing;
        (*at, *saved) = (now, if allowed { have.saturating_sub(spacing) } else { have });
        allowed
    }
}

impl Stack {
    /// Tells the sender of `packet`, which `frame` holds, what is wrong with it.
    pub(super) fn send_error(&mut self, mut frame: Box<Frame>, packet: &Packet, error: Error, turn: &mut Turn<'_>) {
        // What is quoted is what was on the wire.
        frame.finish_checksum();
        if let Some(path) = self.path_for_error(&frame, packet, error, turn.now) {
            let answer = match packet.source {
                IpAddr::V4(_) => quote_v4(turn.pool.take(), &frame, packet, &path, error),
                IpAddr::V6(_) => quote_v6(turn.pool.take(), &frame, packet, &path, error),
            };
            self.ship_loosely(answer, &path, 0, turn);
        }
        turn.pool.recycle(frame);
    }

    /// The way back, if there is one and an error may be sent at all (RFC 1122, 3.2.2; RFC 4443, 2.4).
    fn path_for_error(&mut self, frame: &Frame, packet: &Packet, error: Error, now: Time) -> Option<Path> {
        let to = packet.source;
        let v6 = to.is_ipv6();
        let mute = to.is_unspecified() || to.is_multicast() || !packet.direct || is_later_fragment(frame, v6);
        // The version has no such error.
        let mute = mute || (v6 && error == Error::NoProtocol) || is_icmp_error(frame, packet);
        if mute {
            return None;
        }
        let source = self.is_local(packet.destination).then_some(packet.destination);
        let protocol = if v6 { icmpv6::PROTOCOL } else { icmpv4::PROTOCOL };
        // Linux sends from the address of the interface by which the error leaves.
        let path = self.path(source, to, protocol, Some(packet.interface), now).ok()?;
        let unlimited = path.interface == LOOPBACK || matches!(error, Error::TooBig { .. });
        // Linux gives more to wider IPv6 prefixes, since more hosts are behind them.
        let spacing =
            if v6 { SPACING.as_ps() >> ((128 - u32::from(path.prefix.min(128))) >> 5) } else { SPACING.as_ps() };
        if !unlimited && !self.error_limits.get_or_insert_default().allow(to, Duration::from_ps(spacing), now) {
            self.counters.errors_limited += 1;
            return None;
        }
        Some(path)
    }

    /// Nobody waits at the port of a datagram.
    pub(super) fn port_unreachable(&mut self, frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) {
        self.send_error(frame, packet, Error::NoPort, turn);
    }

    /// Nobody speaks the upper layer of a packet.
    pub(super) fn protocol_unknown(&mut self, frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) {
        self.send_error(frame, packet, Error::NoProtocol, turn);
    }

    /// The rest of the packet that `frame` is the first fragment of did not come.
    pub(super) fn reassembly_timed_out(&mut self, frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) {
        self.send_error(frame, packet, Error::ReassemblyTime, turn);
    }

    /// A packet waited for its next hop in vain: our own connection learns of it, or whoever sent it to us.
    pub(super) fn undeliverable(&mut self, frame: Box<Frame>, charge: Charge, turn: &mut Turn<'_>) {
        self.credit(charge);
        let Some(quoted) = Quoted::read(frame.bytes.get(L3..).unwrap_or_default(), frame.bytes.get(12) == Some(&8))
        else {
            return turn.pool.recycle(frame);
        };
        if self.is_local(quoted.source) {
            turn.pool.recycle(frame);
            if quoted.protocol == tcp::PROTOCOL {
                self.tcp_unreachable(quoted.local(), quoted.remote(), turn.now);
            }
            return;
        }
        let packet = Packet {
            interface: 0,
            l4: L3 + quoted.header,
            end: frame.bytes.len(),
            length: (frame.length() as usize).saturating_sub(L3 + quoted.header),
            source: quoted.source,
            destination: quoted.destination,
            protocol: quoted.protocol,
            traffic_class: 0,
            hop_limit: 0,
            direct: true,
        };
        self.send_error(frame, &packet, Error::NoAnswer, turn);
    }

    /// An error about a packet of ours arrived. With `mtu`, the packet was too long for a link that takes so much.
    pub(super) fn error_input(
        &mut self,
        frame: Box<Frame>,
        packet: &Packet,
        mtu: Option<u32>,
        turn: &mut Turn<'_>,
    ) -> Option<Arrival> {
        let v4 = packet.source.is_ipv4();
        let about = frame.bytes.get(packet.l4 + icmpv4::HEADER_LENGTH..packet.end).unwrap_or_default();
        let quoted = Quoted::read(about, v4);
        turn.pool.recycle(frame);
        // What we did not send concerns nobody here: a forged message, or one that went astray.
        let Some(quoted) = quoted.filter(|quoted| self.is_local(quoted.source)) else {
            self.counters.unwanted += 1;
            return None;
        };
        if let Some(mtu) = mtu {
            let known = self.path_mtus.get_or_insert_with(|| Box::new(PathMtus::default()));
            let believed = known.told(quoted.destination, mtu, turn.now);
            self.epoch = self.epoch.wrapping_add(1);
            if quoted.protocol == tcp::PROTOCOL {
                self.tcp_packet_too_big(quoted.local(), quoted.remote(), believed, turn.now);
            }
        } else if quoted.protocol == tcp::PROTOCOL {
            self.tcp_unreachable(quoted.local(), quoted.remote(), turn.now);
        }
        // UDP and ICMP sockets of apps are not connected: as Linux's, they are not told.
        None
    }
}

/// The part that an ICMP error quotes of the packet that it is about.
struct Quoted {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Bytes of the IP header.
    header: usize,
    ports: (u16, u16),
}

impl Quoted {
    fn read(bytes: &[u8], v4: bool) -> Option<Self> {
        let (source, destination, protocol, header) = if v4 {
            let ip = ipv4::Packet::new_checked(bytes).ok()?;
            (ip.source().into(), ip.destination().into(), ip.protocol(), ip.header_length())
        } else {
            let ip = ipv6::Packet::new_checked(bytes).ok()?;
            (ip.source().into(), ip.destination().into(), ip.next_header(), ipv6::HEADER_LENGTH)
        };
        let port = |at: usize| {
            bytes.get(header + at..header + at + 2).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]))
        };
        Some(Self { source, destination, protocol, header, ports: (port(0), port(2)) })
    }

    const fn local(&self) -> SocketAddr {
        SocketAddr::new(self.source, self.ports.0)
    }

    const fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.destination, self.ports.1)
    }
}

/// Returns `true` if `frame` holds a fragment other than the first.
fn is_later_fragment(frame: &Frame, v6: bool) -> bool {
    let at = |place: usize| frame.bytes.get(L3 + place).copied().unwrap_or(0);
    if v6 {
        return at(6) == 44 && u16::from_be_bytes([at(42), at(43)]) & 0xfff8 != 0;
    }
    u16::from_be_bytes([at(6), at(7)]) & 0x1fff != 0
}

/// Returns `true` if a packet is itself an error (or a message that is never answered by one).
fn is_icmp_error(frame: &Frame, packet: &Packet) -> bool {
    let kind = frame.bytes.get(packet.l4).copied();
    match packet.protocol {
        icmpv4::PROTOCOL if packet.source.is_ipv4() => !matches!(kind, Some(0 | 8 | 13 | 14)),
        icmpv6::PROTOCOL if packet.source.is_ipv6() => kind.is_none_or(|kind| kind < 128),
        _ => false,
    }
}

/// Appends as much of the packet in `frame` as fits into `longest` bytes after the IP header of `path` and the ICMP
/// header.
fn append_quote(answer: &mut Frame, frame: &Frame, packet: &Packet, longest: usize, headers: usize) {
    let whole = (packet.l4 - L3) + packet.length;
    let quoted = whole.min(longest - headers);
    let stored = frame.bytes.get(L3..packet.end).unwrap_or_default();
    let stored = &stored[..stored.len().min(quoted)];
    answer.bytes.extend_from_slice(stored);
    answer.elided = (quoted - stored.len()) as u32;
}

fn quote_v4(mut answer: Box<Frame>, frame: &Frame, packet: &Packet, path: &Path, error: Error) -> Box<Frame> {
    let message = match error {
        Error::HopsExceeded => icmpv4::Repr::TimeExceeded { code: 0 },
        Error::ReassemblyTime => icmpv4::Repr::TimeExceeded { code: 1 },
        Error::NoRoute => icmpv4::Repr::Unreachable { code: 0, next_hop_mtu: 0 },
        Error::NoAnswer => icmpv4::Repr::Unreachable { code: 1, next_hop_mtu: 0 },
        Error::NoProtocol => icmpv4::Repr::Unreachable { code: 2, next_hop_mtu: 0 },
        Error::NoPort => icmpv4::Repr::Unreachable { code: 3, next_hop_mtu: 0 },
        Error::TooBig { mtu } => {
            icmpv4::Repr::Unreachable { code: 4, next_hop_mtu: u16::try_from(mtu).unwrap_or(u16::MAX) }
        }
    };
    answer.bytes.extend_from_slice(path.header());
    let start = answer.bytes.len();
    answer.bytes.resize(start + icmpv4::HEADER_LENGTH, 0);
    append_quote(&mut answer, frame, packet, LONGEST_V4, ipv4::HEADER_LENGTH + icmpv4::HEADER_LENGTH);
    message.emit(&mut answer.bytes[start..]);
    answer
}

fn quote_v6(mut answer: Box<Frame>, frame: &Frame, packet: &Packet, path: &Path, error: Error) -> Box<Frame> {
    let message = match error {
        Error::HopsExceeded => icmpv6::Repr::TimeExceeded { code: 0 },
        Error::ReassemblyTime => icmpv6::Repr::TimeExceeded { code: 1 },
        Error::NoRoute => icmpv6::Repr::Unreachable { code: 0 },
        Error::NoAnswer | Error::NoProtocol => icmpv6::Repr::Unreachable { code: 3 },
        Error::NoPort => icmpv6::Repr::Unreachable { code: 4 },
        Error::TooBig { mtu } => icmpv6::Repr::PacketTooBig { mtu },
    };
    answer.bytes.extend_from_slice(path.header());
    let start = answer.bytes.len();
    answer.bytes.resize(start + icmpv6::HEADER_LENGTH, 0);
    append_quote(&mut answer, frame, packet, LONGEST_V6, ipv6::HEADER_LENGTH + icmpv6::HEADER_LENGTH);
    let length = (answer.length() - start as u64) as u32;
    message.emit(&mut answer.bytes[start..], path.pseudo_header(length));
    answer
}
