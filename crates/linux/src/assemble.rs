//! From the description of a network to a fabric that stands ready.

use std::collections::HashMap;

use serde_json::Value;
use twinnet_fabric::queue::QueueConfig;
use twinnet_fabric::switch::{FailMode, Switch, SwitchConfig};
use twinnet_fabric::{DirectionChange, DirectionConfig, Fabric, NodeId, PortId};
use twinnet_units::Time;

use crate::network::{self, DirectionSpec, HostSpec, NetworkSpec, NodeSpec, SwitchSpec};
use crate::service::LabError;

/// A fabric, and the names of what is in it.
pub struct Assembly {
    /// The fabric.
    pub fabric: Fabric,
    /// Nodes by name.
    pub nodes: HashMap<String, NodeId>,
    /// For each node of the description, its ports in order.
    pub ports_of_node: Vec<Vec<PortId>>,
    /// Ports by interface name.
    pub ports: HashMap<String, PortId>,
    /// Interface names by port.
    pub port_names: Vec<String>,
    /// For each link of the description, its ports at `a` and `b`.
    pub links: Vec<(PortId, PortId)>,
    /// Names of the nodes at both ends of each link.
    pub link_ends: Vec<(String, String)>,
}

/// Builds the fabric that `spec` describes.
///
/// # Errors
/// [`LabError`] that names the element and what is wrong with it.
pub fn assemble(spec: &NetworkSpec) -> Result<Assembly, LabError> {
    let mut assembly = Assembly {
        fabric: Fabric::new(spec.seed),
        nodes: HashMap::new(),
        ports_of_node: Vec::with_capacity(spec.nodes.len()),
        ports: HashMap::new(),
        port_names: Vec::new(),
        links: Vec::with_capacity(spec.links.len()),
        link_ends: Vec::with_capacity(spec.links.len()),
    };
    let mut queues: Vec<Option<QueueConfig>> = Vec::new();
    for node in &spec.nodes {
        match node {
            NodeSpec::Host(host) => add_host(&mut assembly, host, &mut queues)?,
            NodeSpec::Switch(switch) => add_switch(&mut assembly, switch, spec.seed, &mut queues)?,
        }
    }
    let index: HashMap<&str, usize> = spec.nodes.iter().enumerate().map(|(index, node)| (node.name(), index)).collect();
    for link in &spec.links {
        let port = |end: &network::EndSpec| {
            let node = index.get(end.node.as_str())?;
            assembly.ports_of_node[*node].get(end.port).copied()
        };
        let (Some(a), Some(b)) = (port(&link.a), port(&link.b)) else {
            let message = format!("link {} - {}: no such port", link.a.node, link.b.node);
            return Err(LabError::new("UnknownPort", message, "name nodes and ports that are described"));
        };
        let ends = |port: PortId| assembly.port_names[port.0 as usize].as_str();
        let forth = direction(&link.ab, ends(a))?;
        let back = direction(&link.ba, ends(b))?;
        let (a_queue, b_queue) = (queues[a.0 as usize].as_ref(), queues[b.0 as usize].as_ref());
        assembly
            .fabric
            .join((a, forth, a_queue), (b, back, b_queue), u64::from(link.mtu))
            .map_err(|error| LabError::new("BadLink", error.to_string(), ""))?;
        if !link.up {
            let down = || DirectionChange { config: None, up: Some(false) };
            assembly
                .fabric
                .change_at(Time::ZERO, vec![(a, down()), (b, down())])
                .map_err(|error| LabError::new("BadLink", error.to_string(), ""))?;
        }
        assembly.links.push((a, b));
        assembly.link_ends.push((link.a.node.clone(), link.b.node.clone()));
    }
    Ok(assembly)
}

fn add_host(assembly: &mut Assembly, host: &HostSpec, queues: &mut Vec<Option<QueueConfig>>) -> Result<(), LabError> {
    let node = assembly.fabric.add_host();
    assembly.nodes.insert(host.name.clone(), node);
    let mut ports = Vec::with_capacity(host.ports.len());
    for port in &host.ports {
        ports.push(assembly.add_port(node, &port.name, 0, port.mac.0));
        queues.push(queue(port.queue.as_ref(), &port.name)?);
    }
    assembly.ports_of_node.push(ports);
    Ok(())
}

fn add_switch(
    assembly: &mut Assembly,
    described: &SwitchSpec,
    seed: u64,
    queues: &mut Vec<Option<QueueConfig>>,
) -> Result<(), LabError> {
    let fail_mode = match described.fail_mode {
        network::FailMode::Standalone => FailMode::Standalone,
        network::FailMode::Secure => FailMode::Secure,
    };
    let switch = Switch::new(SwitchConfig { dpid: described.dpid, fail_mode, seed });
    let node = assembly.fabric.add_switch(switch, described.delay);
    assembly.nodes.insert(described.name.clone(), node);
    let mut ports = Vec::with_capacity(described.ports.len());
    for port in &described.ports {
        let [_, _, _, a, b, c, d, e] = (described.dpid << 16 | u64::from(port.number & 0xffff)).to_be_bytes();
        ports.push(assembly.add_port(node, &port.name, port.number, [0x02, a, b, c, d, e]));
        queues.push(queue(port.queue.as_ref(), &port.name)?);
    }
    assembly.ports_of_node.push(ports);
    for (position, flow) in described.flows.iter().enumerate() {
        assembly.fabric.with_switch(node, |switch, now| switch.add_flow(flow, now)).unwrap_or(Ok(())).map_err(
            |error| {
                let message = format!("{}: flow {}: {error}", described.name, position + 1);
                LabError::new("BadFlow", message, "write it as for ovs-ofctl add-flow")
            },
        )?;
    }
    Ok(())
}

impl Assembly {
    fn add_port(&mut self, node: NodeId, name: &str, number: u32, mac: [u8; 6]) -> PortId {
        let port = self.fabric.add_port(node, name, number, mac);
        self.ports.insert(name.to_owned(), port);
        self.port_names.push(name.to_owned());
        port
    }
}

/// Reads a queue configuration of the port `name`.
///
/// # Errors
/// `BadQueue` with what is wrong.
pub fn queue(value: Option<&Value>, name: &str) -> Result<Option<QueueConfig>, LabError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let refuse = |why: String| {
        LabError::new("BadQueue", format!("queue at {name}: {why}"), "see the reference of queue disciplines")
    };
    let config: QueueConfig = serde_json::from_value(value.clone()).map_err(|error| refuse(error.to_string()))?;
    config.build().map_err(|error| refuse(error.to_string()))?;
    Ok(Some(config))
}

/// Reads what a link does in the direction that `name` sends into.
fn direction(described: &DirectionSpec, name: &str) -> Result<DirectionConfig, LabError> {
    let value = serde_json::to_value(described).map_err(|error| bad_direction(name, &error))?;
    serde_json::from_value(value).map_err(|error| bad_direction(name, &error))
}

fn bad_direction(name: &str, error: &serde_json::Error) -> LabError {
    LabError::new("BadLink", format!("link from {name}: {error}"), "see the reference of links")
}
