//! Changes of links: at once, as the request `link.set`, or at a given time, as `schedule` and a network's description.

use serde::{Deserialize, Deserializer};
use twinnet_fabric::{DeliveryTrace, DirectionConfig};
use twinnet_impair::{JitterConfig, LossConfig};
use twinnet_packet::Framing;
use twinnet_units::{Duration, Rate, Time};

use crate::described::described;
use crate::error::{ErrorName, LabError};

described! {
    /// Changes a link: all together or nothing.
    LinkSet {
        /// The link's number; or `a` and `b`.
        link = "link": Option<usize>,
        /// The node at one end.
        a = "a": Option<String>,
        /// The node at the other end.
        b = "b": Option<String>,
        /// The directions that are meant; null: both.
        direction = "direction": Option<LinkWay>,
        /// Any fields of a direction, `up` and `mtu`. What is not named stays as it is.
        set = "set": LinkSettings,
    }
}

described! {
    /// Changes a link at a given time.
    Schedule {
        /// When.
        at = "at_ps": Time,
        /// The fields of a `link.set`.
        set = "set": LinkSet,
    }
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

/// New settings of a direction of a link: those that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    /// Line rate; `Some(None)`: no serialisation time.
    #[serde(deserialize_with = "given")]
    pub rate_bps: Option<Option<Rate>>,
    /// Trace of deliveries; `Some(None)`: none. While there is a line rate, that counts.
    #[serde(deserialize_with = "given")]
    pub delivery_trace: Option<Option<DeliveryTrace>>,
    /// Bytes of a frame on the wire.
    #[serde(deserialize_with = "given")]
    pub framing: Option<Framing>,
    /// Propagation delay.
    #[serde(deserialize_with = "given")]
    pub delay_ps: Option<Duration>,
    /// Distribution of the delay's variation; `Some(None)`: none.
    #[serde(deserialize_with = "given")]
    pub jitter: Option<Option<JitterConfig>>,
    /// `true` if jitter may change the order of frames.
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
    /// `true` if it carries anything.
    #[serde(deserialize_with = "given")]
    pub up: Option<bool>,
    /// Longest payload of a frame in bytes; interfaces of hosts keep theirs.
    #[serde(deserialize_with = "given")]
    pub mtu: Option<u32>,
}

impl LinkSettings {
    /// `config` with these settings.
    #[must_use]
    pub fn applied_to(&self, config: &DirectionConfig) -> DirectionConfig {
        let mut changed = config.clone();
        let Self {
            rate_bps,
            delivery_trace,
            framing,
            delay_ps,
            jitter,
            reorder,
            loss,
            duplicate,
            corrupt,
            up: _,
            mtu: _,
        } = self.clone();
        let impair = &mut changed.impair;
        set(&mut changed.rate_bps, rate_bps);
        set(&mut changed.delivery_trace, delivery_trace);
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

impl LinkSet {
    /// The link that is meant.
    ///
    /// # Errors
    /// `BadRequest` when it is named in both ways or in none.
    pub fn name(&self) -> Result<LinkName<'_>, LabError> {
        match (self.link, &self.a, &self.b) {
            (Some(link), None, None) => Ok(LinkName::Number(link)),
            (None, Some(a), Some(b)) => Ok(LinkName::Ends(a, b)),
            _ => Err(LabError::new(
                ErrorName::BadRequest,
                "a link is named by \"link\", its number, or by \"a\" and \"b\", the nodes at its ends",
                "give one of both; see `links`",
            )),
        }
    }
}
