//! An interface: its addresses, and the frames that wait for its serialiser.

use std::collections::VecDeque;
use std::net::IpAddr;

use twinnet_packet::{Frame, Prefix};

/// Frames that wait at an interface; more are dropped (Linux's `txqueuelen` of an Ethernet device).
pub(super) const QUEUE_FRAMES: usize = 1000;
/// Largest packet on the loopback: the longest that IPv4 can say (Linux has 65,536 there, and sends no longer ones
/// either).
pub(super) const LOOPBACK_MTU: u32 = 65_535;
/// The loopback's number among the interfaces.
pub(super) const LOOPBACK: u16 = u16::MAX;

/// Whom a frame that waits is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    /// The socket's number; 0 for none.
    pub(super) socket: u32,
    /// The amount that it was charged: bytes of the send buffer (UDP), or payload bytes (TCP).
    pub(super) bytes: u32,
}

impl Charge {
    /// Nobody's.
    pub(super) const NONE: Self = Self { socket: 0, bytes: 0 };
}

/// An interface of a model host.
#[derive(Debug)]
pub(super) struct Interface {
    /// Hardware address.
    pub(super) mac: [u8; 6],
    /// Largest packet in bytes.
    pub(super) mtu: u32,
    /// `true` if the engine must still be told that something waits.
    pub(super) woken: bool,
    /// Addresses with their prefixes.
    pub(super) addresses: Box<[Prefix]>,
    queue: VecDeque<(Box<Frame>, Charge)>,
}

impl Interface {
    /// An interface without frames.
    pub(super) fn new(mac: [u8; 6], mtu: u32, addresses: Box<[Prefix]>) -> Self {
        Self { mac, mtu, woken: false, addresses, queue: VecDeque::new() }
    }

    /// Adds a frame; one that finds the queue full comes back.
    pub(super) fn push(&mut self, frame: Box<Frame>, charge: Charge) -> Option<(Box<Frame>, Charge)> {
        if self.queue.len() >= QUEUE_FRAMES {
            return Some((frame, charge));
        }
        self.queue.push_back((frame, charge));
        None
    }

    /// Returns `true` if a frame waits.
    pub(super) fn has_frames(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes the next frame.
    pub(super) fn pop(&mut self) -> Option<(Box<Frame>, Charge)> {
        self.queue.pop_front()
    }

    /// Its address in the network of `peer`, or else its first of that family that is not link-local.
    pub(super) fn address_towards(&self, peer: IpAddr) -> Option<IpAddr> {
        let mut best: Option<(u8, IpAddr)> = None;
        for prefix in &self.addresses {
            if prefix.address.is_ipv4() != peer.is_ipv4() || is_link_local(prefix.address) != is_link_local(peer) {
                continue;
            }
            // The rest of RFC 6724's rules matters only for addresses that a lab does not give: deprecated,
            // temporary, mobile ones.
            let shared = common_bits(prefix.address, peer);
            if best.is_none_or(|(most, _)| shared > most) {
                best = Some((shared, prefix.address));
            }
        }
        best.map(|(_, address)| address)
    }
}

/// Returns `true` if `address` counts only on its link (IPv6; an IPv4 link-local address is used as any other).
pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local() || address.octets()[..2] == [0xff, 2])
}

#[allow(clippy::cast_possible_truncation)]
fn common_bits(a: IpAddr, b: IpAddr) -> u8 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() as u8,
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() as u8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_gives_the_newest_frame_back_and_keeps_the_order() {
        let mut interface = Interface::new([0, 0, 0, 0, 0, 1], 1500, Box::default());
        for number in 0..QUEUE_FRAMES {
            let frame = Frame { queue: u32::try_from(number).unwrap(), ..Frame::default() };
            assert!(interface.push(Box::new(frame), Charge::NONE).is_none());
        }
        assert!(interface.push(Box::default(), Charge { socket: 5, bytes: 9 }).is_some_and(|back| back.1.socket == 5));
        assert_eq!(interface.pop().unwrap().0.queue, 0);
    }

    #[test]
    fn the_source_address_is_the_one_nearest_to_the_peer() {
        let addresses = ["10.0.0.1/8", "192.168.1.1/24", "fe80::1/64", "fd00::1/64"].map(|text| text.parse().unwrap());
        let interface = Interface::new([0, 0, 0, 0, 0, 1], 1500, Box::new(addresses));
        let towards = |peer: &str| interface.address_towards(peer.parse().unwrap()).unwrap().to_string();
        assert_eq!(towards("192.168.1.9"), "192.168.1.1");
        assert_eq!(towards("10.9.9.9"), "10.0.0.1");
        assert_eq!(towards("2001:db8::1"), "fd00::1");
        assert_eq!(towards("fe80::9"), "fe80::1");
    }
}
