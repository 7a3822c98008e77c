//! The description of a network as a lab receives it (docs/reference/lab-protocol.md).

mod change;
mod check;
mod direction;
mod host;
mod switch;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_fabric::{wire_bytes, DirectionConfig, TunnelConfig};
use twinnet_packet::Framing;
use twinnet_units::Rate;

use crate::error::{ErrorName, LabError};
use crate::outside::InterfaceSpec;
use crate::tunnel_end::TunnelEndSpec;

pub use change::{LinkName, LinkSet, LinkSettings, LinkWay, Schedule};
pub(super) use check::{check_interface_name, check_mtu, invalid};
pub use host::{HostPortSpec, HostSpec, ImageSpec, LimitsSpec, VolumeSpec};
pub use switch::{Protocol, SwitchPortSpec, SwitchSpec, TlsSpec};

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
            .map_err(|error| LabError::new(ErrorName::BadRequest, format!("the network is not JSON: {error}"), ""))?;
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
        let volumes = json!([{"source": "/a", "target": "a"}]);
        assert!(refusal(|n| n["nodes"][0]["image"] = json!({"name": "i.tar", "volumes": volumes}))
            .contains("not at an absolute place"));
        assert!(
            refusal(|n| n["nodes"][0]["limits"] = json!({"groups": ["/etc/passwd"]})).contains("takes no processes")
        );
        assert!(
            refusal(|n| n["nodes"][0]["ports"][0]["colour"] = json!(1)).contains("nodes[0]: unknown field `colour`")
        );
        assert!(refusal(|n| n["nodes"][0]["ports"][0]["mac"] = json!("01:00:00:00:00:01")).contains("multicast"));
        assert!(refusal(|n| n["links"][0]["ab"]["rate_bps"] = json!(0)).contains("links[0]"));
    }
}
