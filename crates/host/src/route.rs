//! The destinations of packets: connected networks and described routes, the longest prefix first.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    /// By which interface.
    pub(super) interface: u16,
    /// To whom: the destination itself, or a router.
    pub(super) next: IpAddr,
    /// Bits of the prefix that matched.
    pub(super) length: u8,
}

/// A family's addresses as numbers.
trait Bits: Copy + Ord {
    /// The number with all bits behind the first `length` cleared.
    fn network(self, length: u8) -> Self;
}

impl Bits for u32 {
    fn network(self, length: u8) -> Self {
        self & (!0_u32).checked_shl(32 - u32::from(length)).unwrap_or(0)
    }
}

impl Bits for u128 {
    fn network(self, length: u8) -> Self {
        self & (!0_u128).checked_shl(128 - u32::from(length)).unwrap_or(0)
    }
}

/// A route; `via` 0 (the unspecified address) stands for a network on the link.
#[derive(Clone, Copy, Debug)]
struct Route<A> {
    network: A,
    via: A,
    interface: u16,
    length: u8,
}

/// One family's routes: the longest prefixes first, within a length by network.
#[derive(Debug)]
struct Table<A>(Box<[Route<A>]>);

impl<A> Default for Table<A> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<A: Bits> Table<A> {
    fn new(mut routes: Vec<Route<A>>) -> Self {
        // Stable: of two routes to one network the first described stays.
        routes.sort_by(|a, b| b.length.cmp(&a.length).then(a.network.cmp(&b.network)));
        routes.dedup_by(|later, earlier| later.length == earlier.length && later.network == earlier.network);
        Self(routes.into())
    }

    fn find(&self, address: A) -> Option<&Route<A>> {
        let mut rest = &self.0[..];
        while let Some(first) = rest.first() {
            let length = first.length;
            let end = rest.partition_point(|route| route.length >= length);
            let network = address.network(length);
            if let Ok(at) = rest[..end].binary_search_by(|route| route.network.cmp(&network)) {
                return Some(&rest[at]);
            }
            rest = &rest[end..];
        }
        None
    }
}

/// The routes of a host.
#[derive(Debug, Default)]
pub(super) struct Routes {
    v4: Table<u32>,
    v6: Table<u128>,
}

/// Gathers routes.
#[derive(Default)]
pub(super) struct RoutesBuilder {
    v4: Vec<Route<u32>>,
    v6: Vec<Route<u128>>,
}

impl RoutesBuilder {
    /// Adds a route to the `length` first bits of `network`.
    pub(super) fn add(&mut self, network: IpAddr, length: u8, via: Option<IpAddr>, interface: u16) {
        match network {
            IpAddr::V4(network) => {
                let via = if let Some(IpAddr::V4(via)) = via { via.to_bits() } else { 0 };
                self.v4.push(Route { network: network.to_bits().network(length), via, interface, length });
            }
            IpAddr::V6(network) => {
                let via = if let Some(IpAddr::V6(via)) = via { via.to_bits() } else { 0 };
                self.v6.push(Route { network: network.to_bits().network(length), via, interface, length });
            }
        }
    }

    /// The routes, ready to be looked up.
    pub(super) fn build(self) -> Routes {
        Routes { v4: Table::new(self.v4), v6: Table::new(self.v6) }
    }
}

impl Routes {
    /// Returns the next hop of a packet to `address`.
    pub(super) fn find(&self, address: IpAddr) -> Option<Hop> {
        let (interface, length, next) = match address {
            IpAddr::V4(wanted) => {
                let route = self.v4.find(wanted.to_bits())?;
                let via = (route.via != 0).then(|| IpAddr::V4(Ipv4Addr::from_bits(route.via)));
                (route.interface, route.length, via)
            }
            IpAddr::V6(wanted) => {
                let route = self.v6.find(wanted.to_bits())?;
                let via = (route.via != 0).then(|| IpAddr::V6(Ipv6Addr::from_bits(route.via)));
                (route.interface, route.length, via)
            }
        };
        Some(Hop { interface, next: next.unwrap_or(address), length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_prefix_wins_and_the_default_comes_last() {
        let mut routes = RoutesBuilder::default();
        routes.add(ip("0.0.0.0"), 0, Some(ip("10.0.0.254")), 0);
        routes.add(ip("10.0.0.0"), 8, None, 0);
        routes.add(ip("10.1.0.0"), 16, Some(ip("10.0.0.2")), 1);
        routes.add(ip("10.1.2.3"), 32, None, 2);
        routes.add(ip("fd00::"), 64, None, 3);
        let routes = routes.build();
        let hop = |to: &str| routes.find(ip(to)).map(|hop| (hop.interface, hop.next.to_string()));
        assert_eq!(hop("10.1.2.3"), Some((2, "10.1.2.3".to_owned())));
        assert_eq!(hop("10.1.2.4"), Some((1, "10.0.0.2".to_owned())));
        assert_eq!(hop("10.2.0.1"), Some((0, "10.2.0.1".to_owned())));
        assert_eq!(hop("11.0.0.1"), Some((0, "10.0.0.254".to_owned())));
        assert_eq!(hop("fd00::9"), Some((3, "fd00::9".to_owned())));
        assert_eq!(hop("fd01::9"), None);
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_a_plain_search(
            given in prop::collection::vec((any::<u32>(), 0_u8..=32), 0..40),
            wanted in any::<u32>(),
        ) {
            let mut builder = RoutesBuilder::default();
            for (place, (network, length)) in given.iter().enumerate() {
                builder.add(Ipv4Addr::from_bits(*network).into(), *length, None, u16::try_from(place).unwrap());
            }
            let found = builder.build().find(Ipv4Addr::from_bits(wanted).into());
            let expected = given
                .iter()
                .enumerate()
                .filter(|(_, (network, length))| network.network(*length) == wanted.network(*length))
                .max_by_key(|(place, (_, length))| (*length, std::cmp::Reverse(*place)));
            prop_assert_eq!(
                found.map(|hop| (usize::from(hop.interface), hop.length)),
                expected.map(|(place, (_, length))| (place, *length))
            );
        }
    }
}
