//! From the description of a network to a fabric that stands ready.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use twinnet_fabric::{DirectionChange, DirectionConfig, Fabric, NodeId, PortId};
use twinnet_host::{ModelHost, StaticNeighbours};
use twinnet_queue::QueueConfig;
use twinnet_switch::{Switch, SwitchConfig};
use twinnet_units::{Duration, Time};

use super::error::{ErrorName, LabError};
use super::network::{self, HostSpec, NetworkSpec, NodeSpec, SwitchSpec};
use super::outside;
use super::requests::not_a_switch;
use super::tunnel_end::{self, TunnelEndSpec};

/// A network in motion: the fabric, the names of what is in it, and what it was described as.
pub struct RunningNetwork {
    /// The fabric.
    pub fabric: Fabric,
    /// Names and places.
    pub names: Names,
    /// The description.
    pub spec: NetworkSpec,
}

impl RunningNetwork {
    /// The switch of that name.
    ///
    /// # Errors
    /// `NotASwitch`.
    pub fn switch(&self, name: &str) -> Result<NodeId, LabError> {
        let node = self.names.nodes.get(name).copied().filter(|node| self.fabric.switch(*node).is_some());
        node.ok_or_else(|| not_a_switch(self, name))
    }

    /// The wire versions that the switch of that name speaks.
    #[must_use]
    pub fn versions(&self, name: &str) -> Vec<u8> {
        let described = self.spec.nodes.iter().find_map(|node| match node {
            NodeSpec::Switch(switch) if switch.name == name => Some(switch),
            _ => None,
        });
        let versions = |switch: &SwitchSpec| switch.protocols.iter().map(|protocol| protocol.wire_version()).collect();
        described.map_or_else(Vec::new, versions)
    }
}

/// The bodies of the hosts of a lab: what they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    /// Hosts are real, but for those that are described as models: the wall clock.
    Described,
    /// All hosts are models: the virtual clock.
    Models,
    /// Hosts are as described, and the real ones live in a guest: the virtual clock.
    Guest,
}

/// Names of what is in a fabric.
#[derive(Debug, Default)]
pub struct Names {
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
pub fn assemble(spec: NetworkSpec, bodies: Bodies) -> Result<RunningNetwork, LabError> {
    assemble_with(spec, bodies, |_| true)
}

/// Builds the fabric of a part of what `spec` describes: the nodes that `keeps` names by their numbers, on the wall
/// clock. The fabric knows all others too, but moves nothing there. Returns also the ports whose lines lead to other
/// parts.
///
/// # Errors
/// As [`assemble`].
pub fn assemble_part(
    spec: NetworkSpec,
    keeps: impl Fn(usize) -> bool,
) -> Result<(RunningNetwork, Vec<PortId>), LabError> {
    let mut network = assemble_with(spec, Bodies::Described, &keeps)?;
    // Every node of the description is one of the fabric, in the same order.
    let leading_away = network.fabric.keep_part(|node| keeps(node.0 as usize));
    Ok((network, leading_away))
}

/// Models are made of the hosts that `keeps` names only: another part has the others.
fn assemble_with(spec: NetworkSpec, bodies: Bodies, keeps: impl Fn(usize) -> bool) -> Result<RunningNetwork, LabError> {
    if bodies != Bodies::Described {
        outside::refuse_on_virtual_clock(&spec)?;
        tunnel_end::refuse_on_virtual_clock(&spec)?;
    }
    let mut assembly = Assembly { fabric: Fabric::new(spec.seed), names: Names::default() };
    let mtus = mtus(&spec);
    let mut queues: Vec<Option<QueueConfig>> = Vec::new();
    let neighbours = spec.static_neighbours.then(|| Arc::new(static_neighbours(&spec)));
    for ((number, node), mtus) in spec.nodes.iter().enumerate().zip(&mtus) {
        match node {
            NodeSpec::Host(host) => {
                let model = (host.model || bodies == Bodies::Models) && keeps(number);
                let model = model.then(|| model_host(host, mtus, spec.seed, neighbours.as_ref())).transpose()?;
                add_host(&mut assembly, host, model, &mut queues)?;
            }
            NodeSpec::Switch(switch) if !switch.datapath.is_own() => {
                add_outside(&mut assembly, &switch.name, outside::switch_ports(switch)?, &mut queues);
            }
            NodeSpec::Interface(interface) => {
                add_outside(&mut assembly, &interface.name, outside::interface_ports(interface)?, &mut queues);
            }
            NodeSpec::Tunnel(end) => add_tunnel_end(&mut assembly, end, &mut queues)?,
            NodeSpec::Switch(switch) => add_switch(&mut assembly, switch, spec.seed, &mut queues)?,
        }
    }
    let index: HashMap<&str, usize> = spec.nodes.iter().enumerate().map(|(index, node)| (node.name(), index)).collect();
    for link in &spec.links {
        let port = |end: &network::EndSpec| {
            let node = index.get(end.node.as_str())?;
            assembly.names.ports_of_node[*node].get(end.port).copied()
        };
        let (Some(a), Some(b)) = (port(&link.a), port(&link.b)) else {
            let message = format!("link {} - {}: no such port", link.a.node, link.b.node);
            return Err(LabError::new(ErrorName::UnknownPort, message, "name nodes and ports that are described"));
        };
        let forth = DirectionConfig { tunnel: link.tunnel, ..link.ab.clone() };
        let back = DirectionConfig { tunnel: link.tunnel, ..link.ba.clone() };
        let (a_queue, b_queue) = (queues[a.0 as usize].as_ref(), queues[b.0 as usize].as_ref());
        assembly
            .fabric
            .join((a, forth, a_queue), (b, back, b_queue), u64::from(link.mtu))
            .map_err(|error| LabError::new(ErrorName::BadLink, error.to_string(), ""))?;
        if !link.up {
            let down = || DirectionChange { up: Some(false), ..DirectionChange::default() };
            assembly
                .fabric
                .change_at(Time::ZERO, vec![(a, down()), (b, down())])
                .map_err(|error| LabError::new(ErrorName::BadLink, error.to_string(), ""))?;
        }
        assembly.names.links.push((a, b));
        assembly.names.link_ends.push((link.a.node.clone(), link.b.node.clone()));
    }
    take_unlinked_down(&mut assembly, &spec);
    Ok(RunningNetwork { fabric: assembly.fabric, names: assembly.names, spec })
}

/// Takes the ports of switches down that no link ends at.
fn take_unlinked_down(assembly: &mut Assembly, spec: &NetworkSpec) {
    let linked: HashSet<(&str, usize)> =
        spec.links.iter().flat_map(|link| [&link.a, &link.b]).map(|end| (end.node.as_str(), end.port)).collect();
    for node in &spec.nodes {
        let NodeSpec::Switch(switch) = node else { continue };
        for port in (0..switch.ports.len()).filter(|place| !linked.contains(&(node.name(), *place))) {
            let number = switch.ports[port].number;
            if let Some(at) = assembly.names.nodes.get(node.name()) {
                assembly.fabric.with_switch(*at, |switch, _| switch.set_port_up(number, false));
            }
        }
    }
}

/// For each port of each node the MTU of its link; 1500 where there is none.
fn mtus(spec: &NetworkSpec) -> Vec<Vec<u32>> {
    let mut mtus: Vec<Vec<u32>> = spec.nodes.iter().map(|node| vec![1500; node.port_count()]).collect();
    let index: HashMap<&str, usize> = spec.nodes.iter().enumerate().map(|(index, node)| (node.name(), index)).collect();
    for link in &spec.links {
        for end in [&link.a, &link.b] {
            let port = index.get(end.node.as_str()).and_then(|node| mtus[*node].get_mut(end.port));
            if let Some(mtu) = port {
                *mtu = link.host_mtu();
            }
        }
    }
    mtus
}

/// The hardware addresses of all interfaces with addresses. One that several interfaces have must be asked for.
fn static_neighbours(spec: &NetworkSpec) -> StaticNeighbours {
    let mut owners: HashMap<IpAddr, Option<[u8; 6]>> = HashMap::new();
    for node in &spec.nodes {
        let NodeSpec::Host(host) = node else { continue };
        for port in &host.ports {
            for prefix in &port.addresses {
                owners.entry(prefix.address).and_modify(|mac| *mac = None).or_insert(Some(port.mac.0));
            }
        }
    }
    let mut known = StaticNeighbours::default();
    for (address, mac) in owners {
        if let Some(mac) = mac {
            known.insert(address, mac);
        }
    }
    known
}

fn model_host(
    host: &HostSpec,
    mtus: &[u32],
    seed: u64,
    neighbours: Option<&Arc<StaticNeighbours>>,
) -> Result<ModelHost, LabError> {
    let mut model = ModelHost::new(&host.config(mtus), seed)?;
    if let Some(known) = neighbours {
        model.use_static_neighbours(Arc::clone(known));
    }
    Ok(model)
}

/// Adds a host; a real one where there is no model of it.
fn add_host(
    assembly: &mut Assembly,
    host: &HostSpec,
    model: Option<ModelHost>,
    queues: &mut Vec<Option<QueueConfig>>,
) -> Result<(), LabError> {
    let node = match model {
        None => assembly.fabric.add_host(),
        Some(model) => assembly.fabric.add_model(model),
    };
    assembly.names.nodes.insert(host.name.clone(), node);
    let mut ports = Vec::with_capacity(host.ports.len());
    for port in &host.ports {
        ports.push(assembly.add_port(node, &port.name, 0, port.mac.0));
        queues.push(checked_queue(port.queue.as_ref(), &port.name)?);
    }
    assembly.names.ports_of_node.push(ports);
    assembly.fabric.set_coalescing(node, host.coalescing);
    Ok(())
}

/// Adds a node whose frames come from the kernel: an interface of the machine, or a switch that is no part of the
/// fabric.
fn add_outside(
    assembly: &mut Assembly,
    name: &str,
    described: Vec<outside::OutsidePort>,
    queues: &mut Vec<Option<QueueConfig>>,
) {
    let node = assembly.fabric.add_host();
    assembly.names.nodes.insert(name.to_owned(), node);
    let mut ports = Vec::with_capacity(described.len());
    for port in described {
        ports.push(assembly.add_port(node, &port.name, port.number, port.mac));
        queues.push(Some(port.queue));
    }
    assembly.names.ports_of_node.push(ports);
}

/// The hardware address of port `number` of the switch `dpid`.
pub(super) fn switch_port_mac(dpid: u64, number: u32) -> [u8; 6] {
    let [_, _, _, a, b, c, d, e] = (dpid << 16 | u64::from(number & 0xffff)).to_be_bytes();
    [0x02, a, b, c, d, e]
}

/// Adds the end of a tunnel: to the fabric it is a host, whose frames come from the underlay.
fn add_tunnel_end(
    assembly: &mut Assembly,
    end: &TunnelEndSpec,
    queues: &mut Vec<Option<QueueConfig>>,
) -> Result<(), LabError> {
    let node = assembly.fabric.add_host();
    assembly.names.nodes.insert(end.name.clone(), node);
    let mut ports = Vec::with_capacity(1);
    for (name, queue) in end.queues()? {
        ports.push(assembly.add_port(node, name, 0, [0; 6]));
        queues.push(Some(queue));
    }
    assembly.names.ports_of_node.push(ports);
    Ok(())
}

fn add_switch(
    assembly: &mut Assembly,
    described: &SwitchSpec,
    seed: u64,
    queues: &mut Vec<Option<QueueConfig>>,
) -> Result<(), LabError> {
    let switch = Switch::new(SwitchConfig { dpid: described.dpid, fail_mode: described.fail_mode, seed });
    let node = assembly.fabric.add_switch(switch, described.delay);
    if described.control_delay > Duration::ZERO {
        assembly.fabric.set_control_delay(node, described.control_delay);
    }
    assembly.names.nodes.insert(described.name.clone(), node);
    let mut ports = Vec::with_capacity(described.ports.len());
    for port in &described.ports {
        let mac = described.port_mac(port).0;
        ports.push(assembly.add_port(node, &port.name, port.number, mac));
        queues.push(checked_queue(port.queue.as_ref(), &port.name)?);
    }
    assembly.names.ports_of_node.push(ports);
    assembly.fabric.with_switch(node, |switch, _| {
        for port in &described.ports {
            switch.set_port_vlans(port.number, port.vlans.clone());
        }
        switch.set_mirrors(described.mirrors.clone());
        switch.keep_to_tree(described.spanning_tree);
    });
    for (position, flow) in described.flows.iter().enumerate() {
        assembly.fabric.with_switch(node, |switch, now| switch.add_flow(flow, now)).unwrap_or(Ok(())).map_err(
            |error| {
                let message = format!("{}: flow {}: {error}", described.name, position + 1);
                LabError::new(ErrorName::BadFlow, message, "write it as for ovs-ofctl add-flow")
            },
        )?;
    }
    Ok(())
}

struct Assembly {
    fabric: Fabric,
    names: Names,
}

impl Assembly {
    fn add_port(&mut self, node: NodeId, name: &str, number: u32, mac: [u8; 6]) -> PortId {
        let port = self.fabric.add_port(node, name, number, mac);
        self.names.ports.insert(name.to_owned(), port);
        self.names.port_names.push(name.to_owned());
        port
    }
}

/// Checks the queue configuration of the port `name`.
///
/// # Errors
/// `BadQueue` with what is wrong.
pub(super) fn check_queue(config: &QueueConfig, name: &str) -> Result<(), LabError> {
    config.build().map(|_| ()).map_err(|error| {
        LabError::new(
            ErrorName::BadQueue,
            format!("queue at {name}: {error}"),
            "see the reference of queue disciplines",
        )
    })
}

/// The queue configuration of the port `name`, checked, if it has one.
///
/// # Errors
/// As [`check_queue`].
pub(super) fn checked_queue(config: Option<&QueueConfig>, name: &str) -> Result<Option<QueueConfig>, LabError> {
    config.map(|config| check_queue(config, name).map(|()| config.clone())).transpose()
}
