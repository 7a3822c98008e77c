//! The port at which an address was last seen, per VLAN: the table of a learning switch (IEEE 802.1Q, 8.8).

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use twinnet_packet::mix;
use twinnet_units::{Duration, Time};

use super::Switch;

/// An address that was not seen for so long is forgotten (IEEE 802.1Q, table 8-6: the recommended default).
const AGEING: Duration = Duration::from_secs(300);
/// Addresses that are kept at most; the longest unseen goes when one more comes.
const CAPACITY: usize = 8192;

/// An Ethernet address in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Station(u64);

impl Station {
    pub(super) fn new(vlan: u16, mac: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = mac;
        Self(u64::from(vlan & 0x0fff) << 48 | u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// The VLAN; 0: none.
    pub(super) fn vlan(self) -> u16 {
        (self.0 >> 48) as u16
    }

    fn address(self) -> [u8; 6] {
        let [_, _, address @ ..] = self.0.to_be_bytes();
        address
    }

    /// The same address in `vlan`.
    pub(super) fn within(self, vlan: u16) -> Self {
        Self(self.0 & 0xffff_ffff_ffff | u64::from(vlan & 0x0fff) << 48)
    }

    /// Group addresses: broadcast and multicast.
    pub(super) fn is_group(self) -> bool {
        self.0 >> 40 & 1 == 1
    }

    /// Returns `true` if this is `mac`, in any VLAN.
    pub(super) fn has_address(self, mac: [u8; 6]) -> bool {
        self.0 & 0xffff_ffff_ffff == Self::new(0, mac).0
    }

    /// Addresses that no bridge forwards (IEEE 802.1Q, table 8-1): 01-80-C2-00-00-00 to -0F.
    pub(super) fn is_reserved(self) -> bool {
        self.0 & 0xffff_ffff_fff0 == 0x0180_c200_0000
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    station: Station,
    port: u32,
    seen: Time,
}

/// An address that a switch has seen as the source of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learnt {
    /// The number of the port at which it was seen last.
    pub port: u32,
    /// The VLAN; 0: none.
    pub vlan: u16,
    /// The address.
    pub mac: [u8; 6],
    /// The time since it was seen.
    pub age: Duration,
}

impl Switch {
    /// Returns the addresses that a learning switch has seen lately, by VLAN and address. Frames that flows send to
    /// ports teach nothing; those of `normal` do.
    #[must_use]
    pub fn learnt(&self, now: Time) -> Vec<Learnt> {
        self.datapath.macs.learnt(now)
    }

    /// Forgets the addresses that it has learnt, and returns how many these were.
    pub fn forget_learnt(&mut self) -> usize {
        self.datapath.macs.clear()
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct MacTable {
    /// By seeded hash of the station, so that no sender can choose addresses that collide.
    entries: FxHashMap<u64, Entry>,
    /// Hashes in the order of an early sighting; a later sighting is found out when it comes to the front.
    order: VecDeque<(u64, Time)>,
    seed: u64,
}

impl MacTable {
    pub(super) fn new(seed: u64) -> Self {
        Self { entries: FxHashMap::default(), order: VecDeque::new(), seed: seed | 1 }
    }

    fn hash(&self, station: Station) -> u64 {
        mix(station.0 ^ self.seed, 0xa076_1d64_78bd_642f ^ self.seed.rotate_left(32))
    }

    /// Notes that `station` was seen at `port`.
    pub(super) fn learn(&mut self, station: Station, port: u32, now: Time) {
        if station.is_group() {
            return;
        }
        let hash = self.hash(station);
        if let Some(entry) = self.entries.get_mut(&hash) {
            *entry = Entry { station, port, seen: now };
            return;
        }
        while self.entries.len() >= CAPACITY {
            self.forget_oldest();
        }
        self.entries.insert(hash, Entry { station, port, seen: now });
        self.order.push_back((hash, now));
    }

    /// Takes the front of the order: back to the end if it was seen since, out of the table if not. Every turn of
    /// the loop that calls this either frees a place or brings an entry up to date, so it ends within one round.
    fn forget_oldest(&mut self) {
        let Some((hash, noted)) = self.order.pop_front() else {
            self.entries.clear();
            return;
        };
        match self.entries.get(&hash) {
            Some(entry) if entry.seen > noted => self.order.push_back((hash, entry.seen)),
            Some(_) => {
                self.entries.remove(&hash);
            }
            None => {}
        }
    }

    /// The port at which `station` is, unless that was too long ago.
    pub(super) fn find(&self, station: Station, now: Time) -> Option<u32> {
        let entry = self.entries.get(&self.hash(station))?;
        (entry.station == station && now.since(entry.seen) < AGEING).then_some(entry.port)
    }

    /// Forgets what was seen at `port`.
    pub(super) fn forget_port(&mut self, port: u32) {
        self.entries.retain(|_, entry| entry.port != port);
        self.order.retain(|(hash, _)| self.entries.contains_key(hash));
    }

    /// Forgets all, and returns how many addresses these were.
    fn clear(&mut self) -> usize {
        self.order.clear();
        self.entries.drain().count()
    }

    /// The addresses that were seen lately, by VLAN and address.
    fn learnt(&self, now: Time) -> Vec<Learnt> {
        let fresh = self.entries.values().filter(|entry| now.since(entry.seen) < AGEING);
        let mut found: Vec<_> = fresh
            .map(|Entry { station, port, seen }| Learnt {
                port: *port,
                vlan: station.vlan(),
                mac: station.address(),
                age: now.since(*seen),
            })
            .collect();
        found.sort_unstable_by_key(|one| (one.vlan, one.mac));
        found
    }

    /// Addresses in the table, aged ones that were not yet replaced included.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(number: u32) -> Station {
        let [a, b, c, d] = number.to_be_bytes();
        Station::new(0, [0, 2, a, b, c, d])
    }

    #[test]
    fn an_address_is_forgotten_after_300_seconds_without_a_frame() {
        let mut table = MacTable::new(1);
        table.learn(station(1), 3, Time::ZERO);
        let almost = Time::ZERO + Duration::from_secs(299);
        assert_eq!(table.find(station(1), almost), Some(3));
        assert_eq!(table.find(station(1), Time::ZERO + AGEING), None);
        table.learn(station(1), 3, almost);
        assert_eq!(table.find(station(1), Time::ZERO + AGEING), Some(3));
    }

    #[test]
    fn a_full_table_forgets_the_longest_unseen() {
        let mut table = MacTable::new(1);
        for number in 0..CAPACITY as u32 {
            table.learn(station(number), 1, Time::from_ns(u64::from(number)));
        }
        table.learn(station(0), 1, Time::from_ns(1_000_000));
        table.learn(station(9_999_999), 2, Time::from_ns(1_000_001));
        assert_eq!(table.len(), CAPACITY);
        assert_eq!(table.find(station(0), Time::from_ns(1_000_002)), Some(1), "seen again, so not the oldest");
        assert_eq!(table.find(station(1), Time::from_ns(1_000_002)), None);
    }

    #[test]
    fn flooding_with_addresses_keeps_the_memory_bounded() {
        let mut table = MacTable::new(1);
        for number in 0..3 * CAPACITY as u32 {
            table.learn(station(number), 1, Time::from_ns(u64::from(number)));
            table.learn(station(7), 2, Time::from_ns(u64::from(number)));
        }
        assert_eq!((table.len(), table.order.len()), (CAPACITY, CAPACITY));
        assert_eq!(table.find(station(7), Time::from_ns(3 * CAPACITY as u64)), Some(2));
    }

    #[test]
    fn group_addresses_are_not_learnt() {
        let mut table = MacTable::new(1);
        let broadcast = Station::new(0, [0xff; 6]);
        table.learn(broadcast, 1, Time::ZERO);
        assert_eq!(table.find(broadcast, Time::ZERO), None);
    }
}
