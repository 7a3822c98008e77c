//! The contents of fields of requests: a network, names of ports, what a capture keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use twinnet_units::Duration;

use crate::error::LabError;
use crate::network::NetworkSpec;

/// A network as a request describes it: read and checked, or the reason why it was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedNetwork(Result<NetworkSpec, LabError>);

impl DescribedNetwork {
    /// The network. [`Request::read`](super::Request::read) refuses a request whose network was refused.
    ///
    /// # Errors
    /// Why it was refused.
    pub const fn network(&self) -> Result<&NetworkSpec, &LabError> {
        self.0.as_ref()
    }
}

impl<'de> Deserialize<'de> for DescribedNetwork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(NetworkSpec::from_json(&value)))
    }
}

/// The kind of peer at the other end of a switch's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeerKind {
    /// A controller.
    #[default]
    Controller,
    /// A tool such as `ovs-ofctl`, for which the switch does not give up its fail mode.
    Tool,
}

/// A port by its interface name or by its place at a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum PortName {
    /// The place among the ports of a node.
    Index(usize),
    /// The interface name.
    Interface(String),
}

/// Frames of a port that a capture keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureWay {
    /// Those that arrive.
    In,
    /// Those that are sent.
    Out,
    /// All.
    #[default]
    Both,
}

/// Files that follow each other, of which the oldest goes when a new one is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ring {
    /// Files that are kept.
    pub files: u64,
    /// A file is full with so many bytes.
    pub bytes: Option<u64>,
    /// A file is full so long after its first frame.
    #[serde(rename = "duration_ps")]
    pub duration: Option<Duration>,
}
