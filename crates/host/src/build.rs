//! From the description of a host to its stack.

use std::net::IpAddr;

use twinnet_packet::Prefix;
use twinnet_units::random::stream;

use super::interface::{is_link_local, Interface};
use super::parameters::Parameters;
use super::processing::Processing;
use super::route::{Routes, RoutesBuilder};
use super::stack::Stack;
use crate::config::{HostConfig, HostConfigError, MOST_INTERFACES};

/// Bits of the network of IPv6 link-local addresses.
const LINK_LOCAL_BITS: u8 = 64;

/// The stack of the described host.
pub(super) fn stack(described: &HostConfig, seed: u64) -> Result<Stack, HostConfigError> {
    let name = &described.name;
    let given = described.interfaces.len();
    if given > MOST_INTERFACES {
        return Err(HostConfigError::TooManyInterfaces { host: name.clone(), given });
    }
    let parameters = Parameters::of(described)?;
    let spoken = |address: &IpAddr| !(parameters.without_v6 && address.is_ipv6());
    // A host speaks IPv6 when it has any such address.
    let v6 = !parameters.without_v6
        && described.interfaces.iter().flat_map(|port| &port.addresses).any(|prefix| prefix.address.is_ipv6());
    let interfaces: Box<[Interface]> = described
        .interfaces
        .iter()
        .map(|port| {
            let mut addresses = port.addresses.clone();
            addresses.retain(|prefix| spoken(&prefix.address));
            let link_local = Prefix { address: port.mac.link_local().into(), length: LINK_LOCAL_BITS };
            if v6 && !addresses.contains(&link_local) {
                addresses.push(link_local);
            }
            Interface::new(port.mac.0, port.mtu, addresses.into())
        })
        .collect();
    let mut addresses: Vec<IpAddr> =
        interfaces.iter().flat_map(|interface| &interface.addresses).map(|prefix| prefix.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let routes = routes(described, &interfaces, spoken)?;
    let random = stream(seed, &format!("host {name}"));
    let mut stack = Stack::new(interfaces, addresses.into(), routes, parameters, random);
    stack.processing = processing(described, seed)?;
    Ok(stack)
}

fn processing(described: &HostConfig, seed: u64) -> Result<Option<Box<Processing>>, HostConfigError> {
    let name = &described.name;
    let Some(config) = described.processing.as_ref().filter(|config| !config.takes_no_time()) else { return Ok(None) };
    let random = stream(seed, &format!("processing of {name}"));
    let refused = |error| HostConfigError::Processing { host: name.clone(), error };
    Processing::new(config, random).map(|processing| Some(Box::new(processing))).map_err(refused)
}

fn routes(
    described: &HostConfig,
    interfaces: &[Interface],
    spoken: impl Fn(&IpAddr) -> bool,
) -> Result<Routes, HostConfigError> {
    let mut connected = RoutesBuilder::default();
    add_connected(&mut connected, interfaces);
    let connected = connected.build();
    let mut all = RoutesBuilder::default();
    add_connected(&mut all, interfaces);
    for route in described.routes.iter().filter(|route| spoken(&route.via)) {
        let interface = if is_link_local(route.via) {
            // Which link it is on cannot be said, so there must be one only.
            (interfaces.len() == 1).then_some(0)
        } else {
            connected.find(route.via).map(|hop| hop.interface)
        };
        let interface = interface.ok_or_else(|| HostConfigError::BadRoute {
            host: described.name.clone(),
            to: route.to,
            via: route.via,
        })?;
        all.add(route.to.address, route.to.length, Some(route.via), interface);
    }
    Ok(all.build())
}

fn add_connected(routes: &mut RoutesBuilder, interfaces: &[Interface]) {
    for (number, interface) in interfaces.iter().enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        for prefix in interface.addresses.iter().filter(|prefix| !is_link_local(prefix.address)) {
            routes.add(prefix.address, prefix.length, None, number);
        }
    }
}
