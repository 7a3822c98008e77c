//! The nodes outside of the fabric that are part of the network: existing interfaces of the machine, and
//! switches that are Open vSwitch. The fabric holds a descriptor for each of their ports, as it does for a real
//! host's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_fabric::{PortId, DEFAULT_QUEUE_FRAMES};
use twinnet_packet::MacAddress;
use twinnet_queue::QueueConfig;

use super::assemble::{checked_queue, switch_port_mac, RunningNetwork};
use super::error::{ErrorName, LabError};
use super::network::{check_interface_name, invalid, NetworkSpec, NodeSpec, SwitchPortSpec, SwitchSpec};

/// An existing interface of the machine: what it receives enters the network, and what the network sends to it
/// leaves the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// The node's name.
    pub name: String,
    /// The interface's name in the network namespace of the lab's owner.
    pub interface: String,
    /// Its one port, once a link ends there.
    #[serde(default)]
    pub ports: Vec<InterfacePortSpec>,
}

/// The port of an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfacePortSpec {
    /// Its name in the lab.
    pub name: String,
    /// The queue before the link into the network. `None`: FIFO of 1000 frames.
    #[serde(default)]
    pub queue: Option<QueueConfig>,
}

/// The datapath that moves a switch's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Datapath {
    /// The fabric.
    #[default]
    Own,
    /// Open vSwitch's module in the kernel.
    System,
    /// Open vSwitch in user space.
    Netdev,
}

impl Datapath {
    /// Returns `true` if the switch is a part of the fabric.
    #[must_use]
    pub fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// A port as the fabric is told of it.
pub(super) struct OutsidePort {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) mac: [u8; 6],
    pub(super) queue: QueueConfig,
}

/// The queue before a link where nothing is said, as at any switch's port.
fn default_queue() -> QueueConfig {
    QueueConfig::Fifo { limit_frames: Some(DEFAULT_QUEUE_FRAMES), limit_bytes: None }
}

pub(super) fn interface_ports(interface: &InterfaceSpec) -> Result<Vec<OutsidePort>, LabError> {
    let port = |port: &InterfacePortSpec| {
        let queue = checked_queue(port.queue.as_ref(), &port.name)?.unwrap_or_else(default_queue);
        Ok(OutsidePort { name: port.name.clone(), number: 0, mac: [0; 6], queue })
    };
    interface.ports.iter().map(port).collect()
}

pub(super) fn switch_ports(switch: &SwitchSpec) -> Result<Vec<OutsidePort>, LabError> {
    let ports = switch.ports.iter().map(|port| {
        let queue = switch.fabric_queue(port.queue.as_ref(), &port.name)?;
        Ok(OutsidePort { name: port.name.clone(), number: port.number, mac: switch.port_mac(port).0, queue })
    });
    ports.collect()
}

impl InterfaceSpec {
    pub(super) fn check(&self) -> Result<(), LabError> {
        check_interface_name(&self.interface).map_err(|why| invalid(format!("interface {:?}: {why}", self.name)))?;
        if self.ports.len() > 1 {
            return Err(invalid(format!(
                "interface {:?} has {} ports; one link can end at an interface",
                self.name,
                self.ports.len()
            )));
        }
        Ok(())
    }
}

impl SwitchSpec {
    /// The hardware address of its port `port`.
    #[must_use]
    pub fn port_mac(&self, port: &SwitchPortSpec) -> MacAddress {
        port.mac.unwrap_or_else(|| MacAddress(switch_port_mac(self.dpid, port.number)))
    }

    /// The queue that the fabric has at the port `name` of a switch that is Open vSwitch. An HTB before the
    /// kernel's datapath is Open vSwitch's own affair: it stands in the kernel, and the fabric's queue behind it is
    /// a FIFO.
    ///
    /// # Errors
    /// `BadQueue`, also for one whose classes are chosen by queue numbers: these do not reach the fabric.
    pub fn fabric_queue(&self, described: Option<&QueueConfig>, name: &str) -> Result<QueueConfig, LabError> {
        let Some(config) = checked_queue(described, name)? else { return Ok(default_queue()) };
        match (self.datapath, &config) {
            (Datapath::System, QueueConfig::Htb { .. }) => Ok(default_queue()),
            (Datapath::System | Datapath::Netdev, config) if has_classes(config) => Err(LabError::new(
                ErrorName::BadQueue,
                format!("queue at {name}: {}", self.no_classes()),
                CLASSES_REMEDY,
            )),
            _ => Ok(config),
        }
    }

    fn no_classes(&self) -> &'static str {
        if self.datapath == Datapath::System {
            "of the queues with classes, Open vSwitch's kernel datapath has \"htb\" only"
        } else {
            "Open vSwitch's userspace datapath sends its frames without their queue numbers, so set_queue and \
             enqueue could not choose a class"
        }
    }

    pub(super) fn check_datapath(&self) -> Result<(), LabError> {
        if self.datapath.is_own() {
            return Ok(());
        }
        if self.delay > twinnet_units::Duration::ZERO {
            let message = format!("switch {:?} is Open vSwitch: its processing delay cannot be set", self.name);
            return Err(LabError::new(ErrorName::InvalidNetwork, message, "give the delay to its links"));
        }
        self.ports.iter().try_for_each(|port| self.fabric_queue(port.queue.as_ref(), &port.name).map(|_| ()))
    }
}

const CLASSES_REMEDY: &str =
    "use an HTB with datapath \"system\", a queue without classes, or a switch of the fabric (kind \"own\")";

fn has_classes(config: &QueueConfig) -> bool {
    match config {
        QueueConfig::Htb { .. } | QueueConfig::Priority { .. } | QueueConfig::Drr { .. } | QueueConfig::Cbq(_) => true,
        QueueConfig::Tbf { queue, .. } => queue.as_deref().is_some_and(has_classes),
        _ => false,
    }
}

/// Refuses what only exists in real time.
///
/// # Errors
/// `WallClockOnly`, with all names.
pub(super) fn refuse_on_virtual_clock(spec: &NetworkSpec) -> Result<(), LabError> {
    let interfaces: Vec<&str> = spec.interfaces().map(|(_, interface)| interface.name.as_str()).collect();
    let switches: Vec<&str> = spec.open_vswitches().map(|(_, switch)| switch.name.as_str()).collect();
    let refuse = |message: String, remedy: &str| Err(LabError::new(ErrorName::WallClockOnly, message, remedy));
    if !interfaces.is_empty() {
        let message = format!(
            "the virtual clock cannot drive interfaces of the machine: {} would be some",
            interfaces.join(", ")
        );
        return refuse(message, "use the wall clock (net.emulate()), or put model hosts in their place");
    }
    if !switches.is_empty() {
        let message = format!("the virtual clock cannot drive Open vSwitch: {} would be it", switches.join(", "));
        return refuse(message, "use the wall clock (net.emulate()), or switches of the fabric (kind \"own\")");
    }
    Ok(())
}

impl NetworkSpec {
    /// The interfaces of the machine, each with its index among the nodes.
    pub fn interfaces(&self) -> impl Iterator<Item = (usize, &InterfaceSpec)> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| match node {
            NodeSpec::Interface(interface) => Some((index, interface)),
            _ => None,
        })
    }

    /// The switches that are Open vSwitch, each with its index among the nodes.
    pub fn open_vswitches(&self) -> impl Iterator<Item = (usize, &SwitchSpec)> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| match node {
            NodeSpec::Switch(switch) if !switch.datapath.is_own() => Some((index, switch)),
            _ => None,
        })
    }
}

impl RunningNetwork {
    /// The switch whose port `port` is, when it is Open vSwitch.
    pub(super) fn open_vswitch_of(&self, port: PortId) -> Option<&SwitchSpec> {
        let is_its = |index: usize| self.names.ports_of_node.get(index).is_some_and(|ports| ports.contains(&port));
        self.spec.open_vswitches().find(|(index, _)| is_its(*index)).map(|(_, switch)| switch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assemble, Bodies};
    use serde_json::{json, Value};

    fn network() -> Value {
        json!({
            "nodes": [
                {"kind": "interface", "name": "up", "interface": "eth1", "ports": [{"name": "eth1"}]},
                {"kind": "switch", "name": "s1", "dpid": 1, "datapath": "netdev", "flows": ["what OVS alone knows"],
                 "ports": [{"name": "s1-eth1", "number": 1}]},
            ],
            "links": [{"a": {"node": "up", "port": 0}, "b": {"node": "s1", "port": 0}}],
        })
    }

    fn refusal(change: impl FnOnce(&mut Value)) -> LabError {
        let mut described = network();
        change(&mut described);
        NetworkSpec::from_json(&described).unwrap_err()
    }

    #[test]
    fn what_stands_outside_has_ports_in_the_fabric_and_no_pipeline() {
        let spec = NetworkSpec::from_json(&network()).unwrap();
        let again = NetworkSpec::from_json(&serde_json::to_value(&spec).unwrap()).unwrap();
        assert_eq!(spec, again);
        let built = assemble(spec, Bodies::Described).unwrap();
        assert_eq!(built.names.port_names, ["eth1", "s1-eth1"]);
        assert!(built.fabric.switch(built.names.nodes["s1"]).is_none());
    }

    #[test]
    fn the_virtual_clock_refuses_both_by_name() {
        let refuse = |described: &Value| {
            let spec = NetworkSpec::from_json(described).unwrap();
            assemble(spec, Bodies::Models).err().map(|error| (error.name.to_string(), error.message)).unwrap()
        };
        let mut described = network();
        assert_eq!(
            refuse(&described),
            (
                "WallClockOnly".into(),
                "the virtual clock cannot drive interfaces of the machine: up would be some".to_owned()
            )
        );
        described["nodes"][0] = json!({"kind": "host", "name": "up", "ports": [
            {"name": "up-eth0", "mac": "00:00:00:00:00:01", "addresses": []}]});
        assert_eq!(refuse(&described).1, "the virtual clock cannot drive Open vSwitch: s1 would be it");
    }

    #[test]
    fn classes_that_queue_numbers_could_not_reach_are_refused() {
        let htb = json!({"kind": "htb", "rate_bps": 1_000_000, "queues": {"0": {"max_rate_bps": 1_000_000}}});
        let drr =
            json!({"kind": "drr", "classes": [{"quantum_bytes": 1500, "queue": {"kind": "fifo", "limit_frames": 5}}]});
        let red = json!({"kind": "red", "min_bytes": 3000});
        let at = |described: &mut Value, queue: &Value| described["nodes"][1]["ports"][0]["queue"] = queue.clone();
        assert!(refusal(|n| at(n, &htb)).message.contains("without their queue numbers"));
        let system = |n: &mut Value, queue: &Value| {
            n["nodes"][1]["datapath"] = json!("system");
            at(n, queue);
        };
        assert!(refusal(|n| system(n, &drr)).message.contains("has \"htb\" only"));
        for (datapath, queue) in [("system", &htb), ("system", &red), ("netdev", &red)] {
            let mut described = network();
            described["nodes"][1]["datapath"] = json!(datapath);
            at(&mut described, queue);
            NetworkSpec::from_json(&described).unwrap();
        }
    }

    #[test]
    fn a_contradiction_is_refused() {
        assert!(refusal(|n| n["nodes"][1]["delay_ps"] = json!(5)).message.contains("its processing delay"));
        assert!(refusal(|n| n["nodes"][0]["interface"] = json!("lo"))
            .message
            .contains("cannot be an interface's name"));
        assert!(refusal(|n| n["nodes"][0]["ports"] = json!([{"name": "a"}, {"name": "b"}]))
            .message
            .contains("has 2 ports"));
    }
}
