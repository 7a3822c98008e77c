//! What fields of requests hold: names of ports and links, directions, settings of a link.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use twinnet_fabric::DirectionConfig;
use twinnet_impair::{JitterConfig, LossConfig};
use twinnet_packet::Framing;
use twinnet_units::{Duration, Rate};

use crate::error::LabError;
use crate::network::NetworkSpec;

/// A network as a request describes it: read and checked, or the reason why it was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Described(Result<NetworkSpec, LabError>);

impl Described {
    /// The network. [`Request::read`] refuses a request whose network was refused.
    ///
    /// # Errors
    /// Why it was refused.
    pub const fn network(&self) -> Result<&NetworkSpec, &LabError> {
        self.0.as_ref()
    }
}

impl<'de> Deserialize<'de> for Described {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(NetworkSpec::from_json(&value)))
    }
}

/// What is at the other end of a switch's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkWay {
    /// From `a` to `b`.
    Ab,
    /// From `b` to `a`.
    Ba,
    /// Both.
    #[default]
    Both,
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

/// New settings of a direction of a link: those that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    /// Line rate; `Some(None)`: no serialisation time.
    #[serde(deserialize_with = "given")]
    pub rate_bps: Option<Option<Rate>>,
    /// Bytes of a frame on the wire.
    #[serde(deserialize_with = "given")]
    pub framing: Option<Framing>,
    /// Propagation delay.
    #[serde(deserialize_with = "given")]
    pub delay_ps: Option<Duration>,
    /// Distribution of the delay's variation; `Some(None)`: none.
    #[serde(deserialize_with = "given")]
    pub jitter: Option<Option<JitterConfig>>,
    /// Whether jitter may change the order of frames.
    #[serde(deserialize_with = "given")]
    pub reorder: Option<bool>,
    /// Loss model; `Some(None)`: no loss.
    #[serde(deserialize_with = "given")]
    pub loss: Option<Option<LossConfig>>,
    /// Probability that a frame is carried twice.
    #[serde(deserialize_with = "given")]
    pub duplicate: Option<f64>,
    /// Probability that a bit of a frame is turned.
    #[serde(deserialize_with = "given")]
    pub corrupt: Option<f64>,
    /// Whether it carries anything.
    #[serde(deserialize_with = "given")]
    pub up: Option<bool>,
}

impl LinkSettings {
    /// `config` with these settings.
    #[must_use]
    pub fn applied_to(&self, config: &DirectionConfig) -> DirectionConfig {
        let mut changed = config.clone();
        let Self { rate_bps, framing, delay_ps, jitter, reorder, loss, duplicate, corrupt, up: _ } = self.clone();
        let impair = &mut changed.impair;
        set(&mut changed.rate_bps, rate_bps);
        set(&mut changed.framing, framing);
        set(&mut changed.delay_ps, delay_ps);
        set(&mut impair.jitter, jitter);
        set(&mut impair.reorder, reorder);
        set(&mut impair.loss, loss);
        set(&mut impair.duplicate, duplicate);
        set(&mut impair.corrupt, corrupt);
        changed
    }
}

fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}

/// Reads a field that was given, so that a given null differs from an absent field.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A link by its number or by the names of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkName<'a> {
    /// Its number.
    Number(usize),
    /// The nodes at its ends.
    Ends(&'a str, &'a str),
}
