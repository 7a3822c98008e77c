//! Routers: packets that are for others (RFC 1812; RFC 8200).

use std::net::IpAddr;

use rustc_hash::FxHashMap;
use twinnet_packet::{checksum, Frame};

use super::fragments;
use super::icmp_errors::Error;
use super::interface::{Charge, LOOPBACK};
use super::packet::Packet;
use super::path::{Path, L3};
use super::stack::{Stack, Turn};

/// Destinations to which the way is remembered; then it is worked out anew.
const MOST_REMEMBERED: usize = 4096;

/// The ways to destinations that were forwarded to lately. Never iterated.
pub(super) type ForwardCache = FxHashMap<IpAddr, Box<Path>>;

impl Stack {
    /// Sends a packet on that is for another host.
    pub(super) fn forward(&mut self, mut frame: Box<Frame>, packet: &Packet, turn: &mut Turn<'_>) {
        if packet.hop_limit <= 1 {
            self.counters.expired += 1;
            return self.send_error(frame, packet, Error::HopsExceeded, turn);
        }
        let Some(path) = self.path_onward(packet, turn) else {
            self.counters.unreachable += 1;
            return self.send_error(frame, packet, Error::NoRoute, turn);
        };
        let too_long = frame.length() - L3 as u64 > u64::from(path.mtu);
        let may_be_cut = packet.source.is_ipv4() && frame.bytes[L3 + 6] & 0x40 == 0;
        if too_long && !may_be_cut {
            self.counters.too_big += 1;
            let error = Error::TooBig { mtu: path.mtu };
            self.keep_path_onward(packet, path);
            return self.send_error(frame, packet, error, turn);
        }
        self.counters.forwarded += 1;
        frame.bytes[..12].copy_from_slice(path.macs());
        decrement_hop_limit(&mut frame.bytes, packet.source.is_ipv4());
        // What the switches before this router have noted is not for those behind it.
        (frame.hops, frame.queue) = (0, 0);
        if too_long {
            frame.finish_checksum();
            let pieces = fragments::cut_v4(&frame, path.mtu);
            turn.pool.recycle(frame);
            for piece in pieces {
                self.transmit(Box::new(piece), &path, Charge::NONE, turn);
            }
        } else {
            self.transmit(frame, &path, Charge::NONE, turn);
        }
        self.keep_path_onward(packet, path);
    }

    /// The way on for `packet`, taken out of the cache when it is there.
    fn path_onward(&mut self, packet: &Packet, turn: &mut Turn<'_>) -> Option<Box<Path>> {
        let remembered = self.forward_cache.as_mut().and_then(|cache| cache.remove(&packet.destination));
        if let Some(path) = remembered.filter(|path| self.holds(path, turn.now)) {
            return Some(path);
        }
        let source = match packet.destination {
            IpAddr::V4(_) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        };
        let path = self.path(Some(source), packet.destination, packet.protocol, None, turn.now).ok()?;
        (path.interface != LOOPBACK).then(|| Box::new(path))
    }

    fn keep_path_onward(&mut self, packet: &Packet, path: Box<Path>) {
        let cache = self.forward_cache.get_or_insert_default();
        if cache.len() >= MOST_REMEMBERED {
            cache.clear();
        }
        cache.insert(packet.destination, path);
    }
}

/// Takes one off the time to live; the IPv4 checksum follows (RFC 1624).
fn decrement_hop_limit(bytes: &mut [u8], v4: bool) {
    let ip = &mut bytes[L3..];
    if !v4 {
        ip[7] -= 1;
        return;
    }
    let old = [ip[8], ip[9]];
    ip[8] -= 1;
    let before = u16::from_be_bytes([ip[10], ip[11]]);
    let after = checksum::update(before, &old, &[ip[8], ip[9]]);
    ip[10..12].copy_from_slice(&after.to_be_bytes());
}
