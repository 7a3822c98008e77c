//! The carriers of a datagram below its payload: IP packets, more than one where it is longer than the path takes, and
//! Ethernet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// UDP's header (RFC 768).
const UDP: u64 = 8;
/// IPv4's header without options (RFC 791).
const IPV4: u64 = 20;
/// IPv6's header, and what a fragment has beside it (RFC 8200).
const IPV6: u64 = 40;
const FRAGMENT_HEADER: u64 = 8;
/// Ethernet's header, and the shortest frame without its check sequence (IEEE 802.3).
const ETHERNET: u64 = 14;
const SHORTEST_FRAME: u64 = 60;
/// Preamble, check sequence and gap between frames.
const AROUND_A_FRAME: u64 = 8 + 4 + 12;

/// The path that a flow's datagrams take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    mtu: u64,
    ipv6: bool,
}

/// The packets and bytes that carried some datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// IP packets, each in a frame of its own.
    pub frames: u64,
    /// Their bytes with IP's headers.
    pub network_bytes: u64,
    /// Bytes on an Ethernet wire: padding, preamble, check sequence and gap too.
    pub wire_bytes: u64,
}

/// The packets and bytes that carried the datagrams of each interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedReport {
    /// IP packets, each in a frame of its own.
    pub frames: Vec<u64>,
    /// Their bytes with IP's headers.
    pub network_bytes: Vec<u64>,
    /// Bytes on an Ethernet wire: padding, preamble, check sequence and gap too.
    pub wire_bytes: Vec<u64>,
}

impl Carrier {
    /// A path whose narrowest link takes packets of `mtu` bytes.
    #[must_use]
    pub const fn new(mtu: u32, ipv6: bool) -> Self {
        Self { mtu: mtu as u64, ipv6 }
    }

    /// Returns what carries one datagram of `payload` bytes. All fragments but the last are as long as the path and the
    /// unit of eight bytes allow.
    #[must_use]
    pub fn carry(&self, payload: u64) -> Carried {
        let (header, more) = if self.ipv6 { (IPV6, FRAGMENT_HEADER) } else { (IPV4, 0) };
        let whole = payload + UDP;
        if header + whole <= self.mtu {
            return Carried { frames: 1, network_bytes: header + whole, wire_bytes: on_wire(header + whole) };
        }
        let header = header + more;
        let room = (self.mtu.saturating_sub(header) / 8 * 8).max(8);
        let full = (whole - 1) / room;
        let last = header + whole - full * room;
        Carried {
            frames: full + 1,
            network_bytes: full * (header + room) + last,
            wire_bytes: full * on_wire(header + room) + on_wire(last),
        }
    }
}

fn on_wire(packet: u64) -> u64 {
    (packet + ETHERNET).max(SHORTEST_FRAME) + AROUND_A_FRAME
}

impl Carried {
    /// Adds what carried another datagram.
    pub fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.network_bytes += other.network_bytes;
        self.wire_bytes += other.wire_bytes;
    }
}

impl CarriedReport {
    /// The report of `intervals` intervals; those past the end of `places` are empty.
    #[must_use]
    pub fn of(places: &[Carried], intervals: usize) -> Self {
        let series = |value: fn(&Carried) -> u64| (0..intervals).map(|at| places.get(at).map_or(0, value)).collect();
        Self {
            frames: series(|carried| carried.frames),
            network_bytes: series(|carried| carried.network_bytes),
            wire_bytes: series(|carried| carried.wire_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(frames: u64, network_bytes: u64, wire_bytes: u64) -> Carried {
        Carried { frames, network_bytes, wire_bytes }
    }

    #[test]
    fn a_datagram_has_its_headers_and_a_short_one_is_padded() {
        let path = Carrier::new(1500, false);
        assert_eq!(path.carry(1470), carried(1, 1498, 1536));
        // 18 bytes fill the shortest frame: 14 + 20 + 8 + 18.
        assert_eq!(path.carry(18), carried(1, 46, 84));
        assert_eq!(path.carry(17), carried(1, 45, 84));
        assert_eq!(path.carry(19), carried(1, 47, 85));
        assert_eq!(Carrier::new(1500, true).carry(1452), carried(1, 1500, 1538));
    }

    #[test]
    fn a_datagram_longer_than_the_path_takes_travels_as_fragments() {
        let path = Carrier::new(1500, false);
        assert_eq!(path.carry(1472), carried(1, 1500, 1538));
        // One byte more: 1480 in the first fragment, 1 in the last, which is padded.
        assert_eq!(path.carry(1473), carried(2, 1501 + 20, 1538 + 84));
        assert_eq!(path.carry(4000), carried(3, 4008 + 60, 4008 + 3 * (20 + 14 + 24)));
        // IPv6: 1448 in each but the last, with the fragment header's eight bytes.
        assert_eq!(Carrier::new(1500, true).carry(1453), carried(2, 1461 + 96, 1534 + 99));
        assert_eq!(Carrier::new(9000, false).carry(7999), carried(1, 8027, 8065));
    }
}
