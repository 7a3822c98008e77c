//! The path MTU of destinations that are reached only by packets shorter than the interface's MTU (RFC 1191, RFC
//! 8201).

use std::collections::BTreeMap;
use std::net::IpAddr;

use twinnet_units::{Duration, Time};

/// The time that it counts (Linux's `mtu_expires`).
const LIFETIME: Duration = Duration::from_secs(600);
/// Destinations that are kept; the one that expires first makes room.
const MOST_DESTINATIONS: usize = 1024;
/// The least that is believed over IPv4 (Linux's `min_pmtu`), so that a forged message cannot bring a host to a halt.
const LEAST_V4: u32 = 552;
/// The least MTU of IPv6 (RFC 8200, 5).
const LEAST_V6: u32 = 1280;

/// Path MTUs by destination.
#[derive(Debug, Default)]
pub(super) struct PathMtus(BTreeMap<IpAddr, (u32, Time)>);

impl PathMtus {
    /// The MTU towards `destination`, and until when it counts.
    pub(super) fn get(&self, destination: IpAddr, now: Time) -> Option<(u32, Time)> {
        self.0.get(&destination).copied().filter(|(_, until)| now < *until)
    }

    /// A router said that it takes `mtu` towards `destination`; what is believed. It never grows by being told.
    pub(super) fn told(&mut self, destination: IpAddr, mtu: u32, now: Time) -> u32 {
        let least = if destination.is_ipv4() { LEAST_V4 } else { LEAST_V6 };
        let before = self.get(destination, now).map_or(u32::MAX, |(mtu, _)| mtu);
        let mtu = mtu.max(least).min(before);
        if self.0.len() >= MOST_DESTINATIONS && !self.0.contains_key(&destination) {
            let first = self.0.iter().min_by_key(|(_, (_, until))| *until).map(|(destination, _)| *destination);
            if let Some(first) = first {
                self.0.remove(&first);
            }
        }
        self.0.insert(destination, (mtu, now + LIFETIME));
        mtu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_mtu_shrinks_by_being_told_and_is_forgotten_after_ten_minutes() {
        let mut known = PathMtus::default();
        let to: IpAddr = "10.0.0.1".parse().unwrap();
        assert_eq!(known.told(to, 1400, Time::ZERO), 1400);
        assert_eq!(known.told(to, 1450, Time::ZERO), 1400);
        assert_eq!(known.told(to, 68, Time::ZERO), 552);
        assert_eq!(known.get(to, Time::ZERO + LIFETIME), None);
        assert_eq!(known.told("fd00::1".parse().unwrap(), 1000, Time::ZERO), 1280);
    }

    #[test]
    fn the_number_of_destinations_is_bounded() {
        let mut known = PathMtus::default();
        for number in 0..5000_u32 {
            known.told(std::net::Ipv4Addr::from_bits(number).into(), 1000, Time::from_ns(number.into()));
        }
        assert_eq!(known.0.len(), MOST_DESTINATIONS);
    }
}
