//! Checks that a network does not contradict itself; faults are told with the place, before anything is built.

use std::collections::HashMap;

use twinnet_switch::PortVlans;

use super::{HostSpec, NetworkSpec, NodeSpec, SwitchSpec};
use crate::error::{ErrorName, LabError};

/// Longest interface name that the kernel takes, in bytes.
const INTERFACE_NAME_BYTES: usize = 15;
/// Longest host name that the kernel takes, in bytes.
const HOST_NAME_BYTES: usize = 63;
/// MTUs that a link may have: the least that IPv4 allows, and the most that a TAP takes.
pub(super) const MTU_RANGE: std::ops::RangeInclusive<u32> = 68..=65_521;
/// The least MTU that IPv6 allows (RFC 8200 section 5).
const IPV6_MTU: u32 = 1280;
/// OpenFlow 1.3: the highest number of a physical port (`OFPP_MAX`).
pub(super) const HIGHEST_PORT_NUMBER: u32 = 0xffff_ff00;
/// The number of a switch's own port (`OFPP_LOCAL`).
pub(super) const LOCAL_PORT_NUMBER: u32 = 0xffff_fffe;

/// Says why a link cannot have this MTU, if it cannot.
pub fn check_mtu(mtu: u32) -> Result<(), String> {
    if MTU_RANGE.contains(&mtu) {
        return Ok(());
    }
    Err(format!("the MTU is {mtu}; it can be {} to {}", MTU_RANGE.start(), MTU_RANGE.end()))
}

impl NetworkSpec {
    /// Checks that the network does not contradict itself.
    ///
    /// # Errors
    /// `InvalidNetwork`, telling the element and what is wrong with it.
    pub fn check(&self) -> Result<(), LabError> {
        let mut node_names = HashMap::new();
        let mut port_names = HashMap::new();
        let mut dpids = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let name = node.name();
            check_node_name(name).map_err(|why| invalid(format!("nodes[{index}]: {why}")))?;
            if node_names.insert(name, node).is_some() {
                return Err(invalid(format!("nodes[{index}]: the name {name:?} is taken by an earlier node")));
            }
            for port in 0..node.port_count() {
                let port_name = node.port_name(port).unwrap_or_default();
                check_interface_name(port_name)
                    .map_err(|why| invalid(format!("node {name:?}, ports[{port}]: {why}")))?;
                if let Some(other) = port_names.insert(port_name, name) {
                    return Err(invalid(format!(
                        "node {name:?}, ports[{port}]: the name {port_name:?} is taken by a port of {other:?}"
                    )));
                }
            }
            match node {
                NodeSpec::Host(host) => host.check()?,
                NodeSpec::Interface(interface) => interface.check()?,
                NodeSpec::Tunnel(end) => end.check()?,
                NodeSpec::Switch(switch) => {
                    switch.check()?;
                    switch.check_datapath()?;
                    if let Some(other) = dpids.insert(switch.dpid, name) {
                        return Err(invalid(format!("switches {other:?} and {name:?} both have dpid {}", switch.dpid)));
                    }
                }
            }
        }
        for name in self.elsewhere.keys() {
            check_node_name(name).map_err(|why| invalid(format!("elsewhere: {why}")))?;
            if node_names.contains_key(name.as_str()) {
                return Err(invalid(format!("elsewhere: the host {name:?} is a node of this network")));
            }
        }
        self.check_links(&node_names)
    }

    fn check_links(&self, nodes: &HashMap<&str, &NodeSpec>) -> Result<(), LabError> {
        let mut used = HashMap::new();
        for (index, link) in self.links.iter().enumerate() {
            let refuse = |why: String| invalid(format!("links[{index}] ({} to {}): {why}", link.a.node, link.b.node));
            for end in [&link.a, &link.b] {
                let Some(node) = nodes.get(end.node.as_str()) else {
                    return Err(refuse(format!("there is no node {:?}", end.node)));
                };
                if end.port >= node.port_count() {
                    return Err(refuse(format!(
                        "{:?} has {} ports; there is no port {}",
                        end.node,
                        node.port_count(),
                        end.port
                    )));
                }
                if let Some(other) = used.insert((end.node.as_str(), end.port), index) {
                    return Err(refuse(format!("port {} of {:?} is in use by links[{other}]", end.port, end.node)));
                }
                if let NodeSpec::Host(host) = node {
                    let speaks_ipv6 = host
                        .ports
                        .get(end.port)
                        .is_some_and(|port| port.addresses.iter().any(|prefix| prefix.address.is_ipv6()));
                    if speaks_ipv6 && link.host_mtu() < IPV6_MTU {
                        return Err(refuse(format!(
                            "{:?} has an IPv6 address there, and IPv6 needs an MTU of {IPV6_MTU}; the MTU is {}",
                            end.node,
                            link.host_mtu()
                        )));
                    }
                }
            }
            if let Some(tunnel) = &link.tunnel {
                tunnel.check(link.mtu).map_err(|error| refuse(format!("tunnel: {error}")))?;
            }
            check_mtu(link.mtu).map_err(refuse)?;
            for (name, direction) in [("ab", &link.ab), ("ba", &link.ba)] {
                for (what, probability) in
                    [("duplicate", direction.impair.duplicate), ("corrupt", direction.impair.corrupt)]
                {
                    if !(0.0..=1.0).contains(&probability) {
                        return Err(refuse(format!(
                            "{name}.{what} is {probability}; a probability lies between 0 and 1"
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}

impl HostSpec {
    fn check(&self) -> Result<(), LabError> {
        let refuse = |why: String| invalid(format!("host {:?}: {why}", self.name));
        for route in &self.routes {
            if route.to.address.is_ipv4() != route.via.is_ipv4() {
                return Err(refuse(format!(
                    "the route to {} goes via {}: both must be of one family",
                    route.to, route.via
                )));
            }
            if route.to.network() != route.to.address {
                return Err(refuse(format!(
                    "the route to {} has bits behind its prefix; write {}/{}",
                    route.to,
                    route.to.network(),
                    route.to.length
                )));
            }
        }
        for (key, value) in &self.sysctls {
            let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
            if !key.starts_with("net.") || key.contains("..") || !plain {
                return Err(refuse(format!(
                    "the kernel parameter {key:?} cannot be set for one host; only those below \"net.\" can"
                )));
            }
            if !(value.is_string() || value.is_i64() || value.is_u64()) {
                return Err(refuse(format!("the value of {key:?} is {value}; it can be text or a whole number")));
            }
        }
        for group in self.limits.iter().flat_map(|limits| &limits.groups) {
            if !group.ends_with("/cgroup.procs") {
                return Err(refuse(format!("{group:?} takes no processes into a control group")));
            }
        }
        for volume in self.image.iter().flat_map(|image| &image.volumes) {
            if !volume.target.starts_with('/') {
                return Err(refuse(format!("the volume {:?} is not at an absolute place in its image", volume.target)));
            }
        }
        Ok(())
    }
}

impl SwitchSpec {
    fn check(&self) -> Result<(), LabError> {
        let mut numbers = HashMap::new();
        for port in &self.ports {
            let refuse = |why: String| invalid(format!("switch {:?}, port {:?}: {why}", self.name, port.name));
            if !(1..=HIGHEST_PORT_NUMBER).contains(&port.number) && port.number != LOCAL_PORT_NUMBER {
                return Err(refuse(format!(
                    "the number is {}; it can be 1 to {HIGHEST_PORT_NUMBER}, or {LOCAL_PORT_NUMBER} for its own port",
                    port.number
                )));
            }
            if let Some(other) = numbers.insert(port.number, &port.name) {
                return Err(refuse(format!("the number {} is taken by {other:?}", port.number)));
            }
            port.vlans.as_ref().map_or(Ok(()), PortVlans::check).map_err(refuse)?;
        }
        for (at, mirror) in self.mirrors.iter().enumerate() {
            let refuse = |why: String| invalid(format!("switch {:?}, mirrors[{at}]: {why}", self.name));
            mirror.check().map_err(refuse)?;
            if let Some(missing) = mirror.ports().find(|number| !numbers.contains_key(number)) {
                return Err(refuse(format!("there is no port {missing}")));
            }
        }
        Ok(())
    }
}

fn check_node_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty()
        || name.len() > HOST_NAME_BYTES
        || !name.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !name.chars().all(allowed)
    {
        let shown: String = name.chars().take(80).collect();
        return Err(format!(
            "{shown:?} cannot be a name; 1 to {HOST_NAME_BYTES} letters, digits, \"_\", \".\" and \"-\" can, \
             a letter or digit first"
        ));
    }
    Ok(())
}

pub(crate) fn check_interface_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_graphic() && c != '/' && c != ':' && c != '%';
    if name.is_empty()
        || name.len() > INTERFACE_NAME_BYTES
        || ["lo", ".", "..", "all", "default"].contains(&name)
        || !name.chars().all(allowed)
    {
        let shown: String = name.chars().take(80).collect();
        return Err(format!(
            "{shown:?} cannot be an interface's name; 1 to {INTERFACE_NAME_BYTES} ASCII characters without space, \
             \"/\", \":\" and \"%\" can, and not \"lo\""
        ));
    }
    Ok(())
}

pub(crate) fn invalid(message: String) -> LabError {
    LabError::new(ErrorName::InvalidNetwork, message, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn switch(more: &Value) -> Result<NetworkSpec, LabError> {
        let mut switch = json!({"kind": "switch", "name": "s1", "dpid": 1, "ports": [
            {"name": "s1-eth1", "number": 1, "vlans": {"mode": "access", "tag": 10}},
            {"name": "s1-eth2", "number": 2, "vlans": {"mode": "native-tagged", "tag": 10, "trunks": [20]}}]});
        for (key, value) in more.as_object().unwrap() {
            switch[key] = value.clone();
        }
        NetworkSpec::from_json(&json!({"nodes": [switch]}))
    }

    #[test]
    fn vlans_and_mirrors_are_checked_with_their_places() {
        assert!(switch(&json!({"mirrors": [{"to": {"port": 2}, "all": true}]})).is_ok());
        let refusal = |more: Value| switch(&more).unwrap_err().message;
        assert_eq!(
            refusal(json!({"mirrors": [{"to": {"vlan": 9}, "from": [1, 3]}]})),
            "switch \"s1\", mirrors[0]: there is no port 3"
        );
        assert!(refusal(json!({"mirrors": [{"to": {"vlan": 4095}}]})).contains("the VLAN 4095 is not there"));
        let ports = json!([{"name": "s1-eth1", "number": 1, "vlans": {"mode": "access", "tag": 5000}}]);
        assert_eq!(
            refusal(json!({"ports": ports})),
            "switch \"s1\", port \"s1-eth1\": the VLAN 5000 is not there; VLANs are 0 to 4094"
        );
    }
}
