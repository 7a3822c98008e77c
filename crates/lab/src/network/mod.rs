//! The description of a network as a lab receives it (docs/reference/lab-protocol.md).

mod change;
mod check;
mod direction;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_fabric::Coalescing;
use twinnet_fabric::{wire_bytes, DirectionConfig, TunnelConfig};
use twinnet_host::{HostConfig, InterfaceConfig, ProcessingConfig, RouteConfig};
use twinnet_packet::{Framing, MacAddress, Prefix};
use twinnet_queue::QueueConfig;
use twinnet_switch::FailMode;
use twinnet_units::{Duration, Rate};

use crate::error::LabError;
use crate::outside::{Datapath, InterfaceSpec};
use crate::tunnel_end::TunnelEndSpec;

pub use change::{LinkName, LinkSet, LinkSettings, LinkWay, Schedule};
pub(super) use check::{check_interface_name, invalid};

/// The keys of a network's description.
const KEYS: [&str; 6] = ["seed", "nodes", "links", "schedule", "static_neighbours", "elsewhere"];

/// A whole network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Seed of all randomness.
    #[serde(default)]
    pub seed: u64,
    /// Hosts and switches; their order gives each its index.
    pub nodes: Vec<NodeSpec>,
    /// Links; their order gives each its index.
    #[serde(default)]
    pub links: Vec<LinkSpec>,
    /// Changes at given times.
    #[serde(default, skip_serializing)]
    pub schedule: Vec<Schedule>,
    /// `true` if model hosts know each other's hardware addresses beforehand, and need not ask.
    #[serde(default)]
    pub static_neighbours: bool,
    /// Addresses of hosts of the same network that other labs run, by name: programs here know them by it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub elsewhere: BTreeMap<String, Vec<IpAddr>>,
}

/// A node of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NodeSpec {
    /// A real host, or a router when it forwards.
    Host(HostSpec),
    /// A switch.
    Switch(SwitchSpec),
    /// An existing interface of the machine.
    Interface(InterfaceSpec),
    /// The end of a tunnel to another speaker.
    Tunnel(TunnelEndSpec),
}

/// A real host: a network namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Its name, and its host name.
    pub name: String,
    /// `true` if it is a model inside the fabric even on the wall clock. On the virtual clock every host is.
    #[serde(default)]
    pub model: bool,
    /// `true` if it forwards packets between its interfaces.
    #[serde(default)]
    pub forwarding: bool,
    /// Its interfaces.
    #[serde(default)]
    pub ports: Vec<HostPortSpec>,
    /// Its routes beyond those that its addresses imply.
    #[serde(default)]
    pub routes: Vec<RouteConfig>,
    /// Kernel parameters below `net.`, by their dotted name: text or whole numbers.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub sysctls: BTreeMap<String, Value>,
    /// The time that a model takes for each frame that arrives; `None`: no time. A real host takes its own.
    #[serde(default)]
    pub processing: Option<ProcessingConfig>,
    /// The way the network cards of the host coalesce interrupts; `None`: each frame is told of when it arrives.
    #[serde(default)]
    pub coalescing: Option<Coalescing>,
}

impl HostSpec {
    /// The model of this host; `mtus` are those of the links at its ports.
    #[must_use]
    pub fn config(&self, mtus: &[u32]) -> HostConfig {
        let interfaces = self.ports.iter().zip(mtus);
        HostConfig {
            name: self.name.clone(),
            forwarding: self.forwarding,
            interfaces: interfaces
                .map(|(port, mtu)| InterfaceConfig { mac: port.mac, mtu: *mtu, addresses: port.addresses.clone() })
                .collect(),
            routes: self.routes.clone(),
            sysctls: self.sysctls.clone(),
            processing: self.processing.clone(),
        }
    }
}

/// An interface of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostPortSpec {
    /// Interface name, such as `h1-eth0`.
    pub name: String,
    /// Hardware address.
    #[schemars(with = "String")]
    pub mac: MacAddress,
    /// Addresses with their prefix lengths.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<Prefix>,
    /// Queue configuration. `None`: the interface's own, back-pressured queue.
    #[serde(default)]
    pub queue: Option<QueueConfig>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// Its name.
    pub name: String,
    /// Its datapath identifier.
    pub dpid: u64,
    /// Its behaviour without a controller.
    #[serde(default)]
    pub fail_mode: FailMode,
    /// Time that each frame spends in it.
    #[serde(default, rename = "delay_ps")]
    pub delay: Duration,
    /// Its ports.
    #[serde(default)]
    pub ports: Vec<SwitchPortSpec>,
    /// Flows in `ovs-ofctl` syntax.
    #[serde(default)]
    pub flows: Vec<String>,
    /// Controllers that it is connected to, by the lab's owner: `tcp:ADDRESS:PORT` or `ssl:ADDRESS:PORT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<String>,
    /// Time that the way between it and its controllers takes, each way.
    #[serde(default, rename = "control_delay_ps", skip_serializing_if = "takes_no_time")]
    pub control_delay: Duration,
    /// The address at which the lab's owner listens for it: `ptcp:PORT`, `ptcp:PORT:ADDRESS`, `pssl:` likewise or
    /// `punix:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// The key and certificates of the lab's owner for TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
    /// Versions that it speaks.
    #[serde(default = "every_protocol")]
    pub protocols: Vec<Protocol>,
    /// The datapath that moves its frames.
    #[serde(default, skip_serializing_if = "Datapath::is_own")]
    pub datapath: Datapath,
}

/// Paths of PEM files, seen by the lab's owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// The private key.
    pub private_key: String,
    /// Its certificate.
    pub certificate: String,
    /// The authority that the other side's certificate must lead to. `None`: it is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn takes_no_time(duration: &Duration) -> bool {
    *duration == Duration::ZERO
}

fn every_protocol() -> Vec<Protocol> {
    vec![Protocol::OpenFlow10, Protocol::OpenFlow13]
}

/// A version of OpenFlow, by the name that `ovs-vsctl` has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Protocol {
    /// OpenFlow 1.0.
    OpenFlow10,
    /// OpenFlow 1.3.
    OpenFlow13,
}

impl Protocol {
    /// The version in the header of messages.
    #[must_use]
    pub const fn wire_version(self) -> u8 {
        match self {
            Self::OpenFlow10 => 1,
            Self::OpenFlow13 => 4,
        }
    }
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchPortSpec {
    /// Name, such as `s1-eth1`.
    pub name: String,
    /// Its OpenFlow number.
    #[schemars(range(min = 1, max = check::HIGHEST_PORT_NUMBER))]
    pub number: u32,
    /// Queue configuration. `None`: FIFO of 1000 frames.
    #[serde(default)]
    pub queue: Option<QueueConfig>,
}

/// A link between two ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// One end.
    pub a: EndSpec,
    /// The other end.
    pub b: EndSpec,
    /// Largest packet (Ethernet payload) in bytes.
    #[serde(default = "ethernet_mtu")]
    #[schemars(range(min = *check::MTU_RANGE.start(), max = *check::MTU_RANGE.end()))]
    pub mtu: u32,
    /// `true` if it carries anything.
    #[serde(default = "yes")]
    pub up: bool,
    /// The tunnel that carries its frames, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<TunnelConfig>,
    /// From `a` to `b`.
    #[serde(default, deserialize_with = "direction::direction")]
    #[schemars(with = "direction::Fields")]
    pub ab: DirectionConfig,
    /// From `b` to `a`.
    #[serde(default, deserialize_with = "direction::direction")]
    #[schemars(with = "direction::Fields")]
    pub ba: DirectionConfig,
}

/// An end of a link: a node and the index of a port in its `ports`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndSpec {
    /// Name of the node.
    pub node: String,
    /// Index of the port.
    pub port: usize,
}

/// The facts that a port needs of the link that it sends into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Largest packet in bytes.
    pub mtu: u32,
    /// Line rate.
    pub rate: Option<Rate>,
    /// `true` if its capacity follows a trace of deliveries.
    pub follows_trace: bool,
    /// The framing: what a frame costs on the wire.
    pub framing: Framing,
    /// The tunnel that carries its frames.
    pub tunnel: Option<TunnelConfig>,
}

impl Attachment {
    /// Bytes that a frame of `length` bytes occupies on the wire.
    #[must_use]
    pub fn wire_bytes(&self, length: u64) -> u64 {
        wire_bytes(self.framing, self.tunnel.as_ref(), length)
    }
}

impl LinkSpec {
    /// The MTU of the hosts' interfaces at its ends: its own, or what a tunnel carries that may not cut packets.
    #[must_use]
    pub fn host_mtu(&self) -> u32 {
        self.tunnel.map_or(self.mtu, |tunnel| tunnel.host_mtu(self.mtu))
    }
}

const fn ethernet_mtu() -> u32 {
    1500
}

const fn yes() -> bool {
    true
}

impl NodeSpec {
    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Host(host) => &host.name,
            Self::Switch(switch) => &switch.name,
            Self::Interface(interface) => &interface.name,
            Self::Tunnel(end) => &end.name,
        }
    }

    /// Number of its ports.
    #[must_use]
    pub fn port_count(&self) -> usize {
        match self {
            Self::Host(host) => host.ports.len(),
            Self::Switch(switch) => switch.ports.len(),
            Self::Interface(interface) => interface.ports.len(),
            Self::Tunnel(end) => end.ports.len(),
        }
    }

    /// Name of port `port`.
    #[must_use]
    pub fn port_name(&self, port: usize) -> Option<&str> {
        match self {
            Self::Host(host) => host.ports.get(port).map(|port| port.name.as_str()),
            Self::Switch(switch) => switch.ports.get(port).map(|port| port.name.as_str()),
            Self::Interface(interface) => interface.ports.get(port).map(|port| port.name.as_str()),
            Self::Tunnel(end) => end.ports.get(port).map(|port| port.name.as_str()),
        }
    }
}

impl NetworkSpec {
    /// Reads and checks a network written as JSON.
    ///
    /// # Errors
    /// `BadRequest` for a text that is not JSON; otherwise as [`NetworkSpec::from_json`].
    pub fn from_text(text: &str) -> Result<Self, LabError> {
        // A sound network is read without the detour over a tree of values, which takes several times its memory;
        // only a refusal needs that tree, to tell the place.
        if let Ok(spec) = serde_json::from_str::<Self>(text) {
            spec.check()?;
            return Ok(spec);
        }
        let value = serde_json::from_str(text)
            .map_err(|error| LabError::new("BadRequest", format!("the network is not JSON: {error}"), ""))?;
        Self::from_json(&value)
    }

    /// Reads and checks a network.
    ///
    /// # Errors
    /// `InvalidNetwork`, telling the element and what is wrong with it.
    pub fn from_json(value: &Value) -> Result<Self, LabError> {
        let Value::Object(fields) = value else {
            return Err(invalid("the network is not an object".to_owned()));
        };
        if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(invalid(format!("the network has the unknown key {unknown:?}; known are {}", KEYS.join(", "))));
        }
        let spec = Self {
            seed: fields.get("seed").map_or(Ok(0), |seed| read(seed, "seed"))?,
            nodes: read_each(fields.get("nodes"), "nodes")?,
            links: read_each(fields.get("links"), "links")?,
            schedule: read_each(fields.get("schedule"), "schedule")?,
            static_neighbours: fields
                .get("static_neighbours")
                .map_or(Ok(false), |given| read(given, "static_neighbours"))?,
            elsewhere: fields.get("elsewhere").map_or_else(|| Ok(BTreeMap::new()), |given| read(given, "elsewhere"))?,
        };
        spec.check()?;
        Ok(spec)
    }

    /// Names of the hosts, in order.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter_map(|node| match node {
            NodeSpec::Host(host) => Some(host.name.as_str()),
            NodeSpec::Switch(_) | NodeSpec::Interface(_) | NodeSpec::Tunnel(_) => None,
        })
    }

    /// Names of the hosts that are models on the wall clock too.
    pub fn model_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter_map(|node| match node {
            NodeSpec::Host(host) if host.model => Some(host.name.as_str()),
            _ => None,
        })
    }

    /// Index of the node `name`.
    #[must_use]
    pub fn node_index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name() == name)
    }

    /// MTU and line rate of the link at each port of the node `name`, seen from it; a port without a link has neither.
    #[must_use]
    pub fn attachments(&self) -> HashMap<(&str, usize), Attachment> {
        let mut attachments = HashMap::with_capacity(self.links.len() * 2);
        for link in &self.links {
            for (end, way) in [(&link.a, &link.ab), (&link.b, &link.ba)] {
                let (mtu, tunnel) = (link.host_mtu(), link.tunnel);
                let (rate, follows_trace) = (way.rate_bps, way.delivery_trace.is_some());
                let attachment = Attachment { mtu, rate, follows_trace, framing: way.framing, tunnel };
                attachments.insert((end.node.as_str(), end.port), attachment);
            }
        }
        attachments
    }
}

fn read<T: for<'de> Deserialize<'de>>(value: &Value, place: &str) -> Result<T, LabError> {
    T::deserialize(value).map_err(|error| invalid(format!("{place}: {error}")))
}

fn read_each<T: for<'de> Deserialize<'de>>(value: Option<&Value>, key: &str) -> Result<Vec<T>, LabError> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Array(values)) => {
            values.iter().enumerate().map(|(index, value)| read(value, &format!("{key}[{index}]"))).collect()
        }
        Some(_) => Err(invalid(format!("{key} is not an array"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn two_hosts() -> Value {
        json!({
            "seed": 1,
            "nodes": [
                {"kind": "host", "name": "h1", "forwarding": false,
                 "routes": [{"to": "0.0.0.0/0", "via": "10.0.0.254"}],
                 "ports": [{"name": "h1-eth0", "mac": "00:00:00:00:00:01",
                            "addresses": ["10.0.0.1/8", "fd00::1/64"], "queue": null}],
                 "sysctls": {"net.ipv4.tcp_congestion_control": "cubic"}},
                {"kind": "switch", "name": "s1", "dpid": 1, "fail_mode": "standalone", "delay_ps": 0, "flows": [],
                 "ports": [{"name": "s1-eth1", "number": 1, "queue": {"kind": "fifo", "limit_frames": 10}}]},
            ],
            "links": [{"a": {"node": "h1", "port": 0}, "b": {"node": "s1", "port": 0}, "mtu": 1500, "up": true,
                "ab": {"rate_bps": 1_000_000_000, "framing": "ethernet", "delay_ps": 5, "jitter": null,
                       "reorder": false, "loss": null, "duplicate": 0.0, "corrupt": 0.0},
                "ba": {"rate_bps": null}}],
            "schedule": []
        })
    }

    fn refusal(change: impl FnOnce(&mut Value)) -> String {
        let mut network = two_hosts();
        change(&mut network);
        NetworkSpec::from_json(&network).unwrap_err().message
    }

    #[test]
    fn a_network_is_read_and_written_alike() {
        let spec = NetworkSpec::from_json(&two_hosts()).unwrap();
        let again = NetworkSpec::from_json(&serde_json::to_value(&spec).unwrap()).unwrap();
        assert_eq!(spec, again);
        let rate = Rate::from_bps(1_000_000_000);
        assert_eq!(
            spec.attachments()[&("h1", 0)],
            Attachment { mtu: 1500, rate, follows_trace: false, framing: Framing::Ethernet, tunnel: None }
        );
    }

    #[test]
    fn a_text_is_read_as_its_value_is_and_refused_in_the_same_words() {
        let text = two_hosts().to_string();
        assert_eq!(NetworkSpec::from_text(&text).unwrap(), NetworkSpec::from_json(&two_hosts()).unwrap());
        let coloured = text.replace("\"mac\"", "\"colour\":1,\"mac\"");
        let refused = NetworkSpec::from_text(&coloured).unwrap_err();
        assert!(refused.message.starts_with("nodes[0]: unknown field `colour`"), "{}", refused.message);
        let twice = NetworkSpec::from_text(&text.replace("\"s1\"", "\"h1\"")).unwrap_err();
        assert_eq!(twice.message, "nodes[1]: the name \"h1\" is taken by an earlier node");
        assert_eq!(NetworkSpec::from_text("{").unwrap_err().name, "BadRequest");
        assert_eq!(NetworkSpec::from_text("{}").unwrap().nodes, []);
    }

    #[test]
    fn a_contradiction_is_refused_with_its_place() {
        assert_eq!(
            refusal(|n| n["links"][0]["b"]["node"] = json!("s9")),
            "links[0] (h1 to s9): there is no node \"s9\""
        );
        assert_eq!(
            refusal(|n| n["links"][0]["b"]["port"] = json!(1)),
            "links[0] (h1 to s1): \"s1\" has 1 ports; there is no port 1"
        );
        assert_eq!(
            refusal(|n| n["nodes"][1]["name"] = json!("h1")),
            "nodes[1]: the name \"h1\" is taken by an earlier node"
        );
        assert_eq!(
            refusal(|n| n["links"][0]["b"] = n["links"][0]["a"].clone()),
            "links[0] (h1 to h1): port 0 of \"h1\" is in use by links[0]"
        );
        assert_eq!(
            refusal(|n| n["links"][0]["mtu"] = json!(70_000)),
            "links[0] (h1 to s1): the MTU is 70000; it can be 68 to 65521"
        );
        assert!(refusal(|n| n["links"][0]["mtu"] = json!(600)).contains("IPv6 needs an MTU of 1280"));
        assert!(refusal(|n| n["links"][0]["ab"]["corrupt"] = json!(1.2)).contains("ab.corrupt is 1.2"));
        assert!(refusal(|n| n["nodes"][0]["ports"][0]["name"] = json!("an-interface-too-long"))
            .contains("cannot be an interface's name"));
        assert!(
            refusal(|n| n["nodes"][0]["routes"][0]["via"] = json!("fd00::1")).contains("both must be of one family")
        );
        assert!(refusal(|n| n["nodes"][0]["sysctls"] = json!({"kernel.panic": 1})).contains("only those below"));
        assert!(
            refusal(|n| n["nodes"][0]["ports"][0]["colour"] = json!(1)).contains("nodes[0]: unknown field `colour`")
        );
        assert!(refusal(|n| n["nodes"][0]["ports"][0]["mac"] = json!("01:00:00:00:00:01")).contains("multicast"));
        assert!(refusal(|n| n["links"][0]["ab"]["rate_bps"] = json!(0)).contains("links[0]"));
    }
}
