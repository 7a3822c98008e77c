//! The end of a tunnel to another speaker: a node whose frames cross a real underlay, on the wall clock only.

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_fabric::{TunnelConfig, DEFAULT_QUEUE_FRAMES};
use twinnet_queue::QueueConfig;

use super::assemble::checked_queue;
use super::error::{ErrorName, LabError};
use super::network::{NetworkSpec, NodeSpec};

/// A tunnel to another speaker of GRE or VXLAN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunnelEndSpec {
    /// The node's name.
    pub name: String,
    /// The encapsulation; its `mtu` is the underlay's path MTU where it is not cut, and not used where it is.
    pub tunnel: TunnelConfig,
    /// The other speaker.
    pub remote: Ipv4Addr,
    /// The address to speak from; `None`: what the kernel chooses towards `remote`.
    #[serde(default)]
    pub local: Option<Ipv4Addr>,
    /// The UDP port of VXLAN, here and there.
    #[serde(default = "vxlan_port")]
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Its one port, once a link ends there.
    #[serde(default)]
    pub ports: Vec<TunnelPortSpec>,
}

/// The port of a tunnel's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunnelPortSpec {
    /// Its name in the lab.
    pub name: String,
    /// The queue before the link into the network. `None`: FIFO of 1000 frames.
    #[serde(default)]
    pub queue: Option<QueueConfig>,
}

const fn vxlan_port() -> u16 {
    twinnet_packet::vxlan::PORT
}

impl TunnelEndSpec {
    pub(super) fn check(&self) -> Result<(), LabError> {
        let refuse =
            |why: String| Err(LabError::new(ErrorName::InvalidNetwork, format!("tunnel {:?}: {why}", self.name), ""));
        if self.ports.len() > 1 {
            return refuse(format!("it has {} ports; one link can end at a tunnel", self.ports.len()));
        }
        for address in [Some(self.remote), self.local].into_iter().flatten() {
            if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
                return refuse(format!("{address} is not the address of one machine"));
            }
        }
        if self.port == 0 {
            return refuse("the UDP port is 0; it can be 1 to 65535".to_owned());
        }
        self.tunnel.check(0).or_else(|error| refuse(error.to_string()))
    }

    /// The name and the queue of each port.
    pub(super) fn queues(&self) -> Result<Vec<(&str, QueueConfig)>, LabError> {
        let default = || QueueConfig::Fifo { limit_frames: Some(DEFAULT_QUEUE_FRAMES), limit_bytes: None };
        let port = |port: &'_ TunnelPortSpec| {
            checked_queue(port.queue.as_ref(), &port.name).map(|given| given.unwrap_or_else(default))
        };
        self.ports.iter().map(|one| Ok((one.name.as_str(), port(one)?))).collect()
    }
}

impl NetworkSpec {
    /// The ends of tunnels, each with its index among the nodes.
    pub fn tunnel_ends(&self) -> impl Iterator<Item = (usize, &TunnelEndSpec)> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| match node {
            NodeSpec::Tunnel(end) => Some((index, end)),
            _ => None,
        })
    }
}

/// Refuses tunnels to other speakers where there is no underlay.
///
/// # Errors
/// `WallClockOnly`, with all names.
pub(super) fn refuse_on_virtual_clock(spec: &NetworkSpec) -> Result<(), LabError> {
    let names: Vec<String> = spec.tunnel_ends().map(|(_, end)| format!("{} (to {})", end.name, end.remote)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!("the virtual clock has no underlay for tunnels to other speakers: {}", names.join(", "));
    let remedy =
        "use the wall clock (net.emulate()), or describe both sides in one network and join them with link(tunnel=...)";
    Err(LabError::new(ErrorName::WallClockOnly, message, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn network(change: impl FnOnce(&mut Value)) -> Result<NetworkSpec, LabError> {
        let mut end = json!({"kind": "tunnel", "name": "tun1", "remote": "192.0.2.2",
            "tunnel": {"kind": "vxlan", "vni": 42}, "ports": [{"name": "tun1"}]});
        change(&mut end);
        NetworkSpec::from_json(&json!({"nodes": [end]}))
    }

    #[test]
    fn an_end_is_read_with_what_is_usual() {
        let spec = network(|_| ()).unwrap();
        let (_, end) = spec.tunnel_ends().next().unwrap();
        assert_eq!((end.port, end.local, end.tunnel.cuts()), (4789, None, true));
    }

    #[test]
    fn what_cannot_be_an_end_is_refused() {
        for (key, value) in [
            ("remote", json!("224.0.0.1")),
            ("remote", json!("2001:db8::1")),
            ("local", json!("0.0.0.0")),
            ("port", json!(0)),
            ("tunnel", json!({"kind": "vxlan", "vni": 16_777_216})),
            ("ports", json!([{"name": "a"}, {"name": "b"}])),
        ] {
            assert_eq!(network(|end| end[key] = value).unwrap_err().name, "InvalidNetwork", "{key}");
        }
    }

    #[test]
    fn the_virtual_clock_refuses_it_with_names_and_a_remedy() {
        let error = refuse_on_virtual_clock(&network(|_| ()).unwrap()).unwrap_err();
        assert!(error.message.contains("tun1 (to 192.0.2.2)") && error.remedy.contains("emulate"), "{error:?}");
    }
}
