//! The description of a switch: its ports, flows, controllers and datapath.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::MacAddress;
use twinnet_queue::QueueConfig;
use twinnet_switch::{FailMode, Mirror, PortVlans};
use twinnet_units::Duration;

use crate::outside::Datapath;

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
    /// It floods and learns by ports of the spanning tree alone, as stand-alone switches do, whatever its fail mode and
    /// its controllers are (`stp_enable`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spanning_tree: bool,
    /// Mirrors: copies of what comes and goes at its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<Mirror>,
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
    /// Its OpenFlow number: 1 to 4294967040, or that of the switch's own port (`OFPP_LOCAL`, 4294967294).
    #[schemars(range(min = 1, max = super::check::LOCAL_PORT_NUMBER))]
    pub number: u32,
    /// Its hardware address, as controllers are told it. `None`: one made of the switch's datapath identifier and the
    /// number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub mac: Option<MacAddress>,
    /// Queue configuration. `None`: FIFO of 1000 frames.
    #[serde(default)]
    pub queue: Option<QueueConfig>,
    /// Its VLANs, where the switch learns and forwards by itself. `None`: a trunk of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlans: Option<PortVlans>,
}
