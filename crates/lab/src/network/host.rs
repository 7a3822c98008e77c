//! The description of a host: its ports, routes and settings, and what its programs are given.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_fabric::Coalescing;
use twinnet_host::{HostConfig, InterfaceConfig, ProcessingConfig, RouteConfig};
use twinnet_packet::{MacAddress, Prefix};
use twinnet_queue::QueueConfig;

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
    /// The image whose files it has in the place of those of the machine; `None`: it has those of the machine.
    #[serde(default)]
    pub image: Option<Box<ImageSpec>>,
    /// What its programs may use at most; `None`: there are no limits.
    #[serde(default)]
    pub limits: Option<Box<LimitsSpec>>,
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

/// The image of a container as the root file system of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageSpec {
    /// The image as its user names it.
    pub name: String,
    /// The folder of the machine with its root file system. `None`: nobody has looked for it yet.
    #[serde(default)]
    pub root: Option<String>,
    /// The folder in it where programs start. `None`: its root.
    #[serde(default)]
    pub folder: Option<String>,
    /// The variables that it gives programs which bring none.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Variables beside those, and in their place.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files and folders of the machine in it.
    #[serde(default)]
    pub volumes: Vec<VolumeSpec>,
    /// The program that its user has started with the lab, with its arguments; empty: none.
    #[serde(default)]
    pub command: Vec<String>,
}

impl ImageSpec {
    /// All variables of programs that bring none.
    #[must_use]
    pub fn all_variables(&self) -> BTreeMap<String, String> {
        let mut all = self.variables.clone();
        all.extend(self.environment.clone());
        all
    }
}

/// What the programs of a host may use at most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsSpec {
    /// Processor time, in processors.
    #[serde(default)]
    pub processors: Option<f64>,
    /// Memory.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The files `cgroup.procs` of the control groups that limit it, made by the owner of the lab.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// A file or folder of the machine in an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// Its place on the machine.
    pub source: String,
    /// Its place in the image.
    pub target: String,
    /// `true` if programs may not write there.
    #[serde(default)]
    pub read_only: bool,
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
