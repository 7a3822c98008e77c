//! The properties of a link in one direction, as a description writes it: flat, and without fields that nobody would
//! read.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use twinnet_fabric::{DeliveryTrace, DirectionConfig, MOST_DELIVERIES};
use twinnet_impair::{ImpairConfig, JitterConfig, LossConfig};
use twinnet_packet::Framing;
use twinnet_units::{Duration, Rate};

/// The fields, in one object.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DirectionSpec")]
pub(super) struct Fields {
    /// The line rate; null sends at once.
    rate_bps: Option<Rate>,
    /// The moments at which one packet of full size each can leave, in milliseconds, where the capacity follows a
    /// trace instead of a rate; at the last it begins anew.
    #[schemars(with = "Option<Vec<u32>>", length(min = 1, max = MOST_DELIVERIES))]
    delivery_trace: Option<DeliveryTrace>,
    /// The cost of a frame on the wire.
    framing: Framing,
    /// Time from the last bit sent to the last bit arrived.
    delay_ps: Duration,
    /// Differences of delay between frames.
    jitter: Option<JitterConfig>,
    /// Lets a frame overtake those before it when its delay is shorter.
    reorder: bool,
    /// Loss.
    loss: Option<LossConfig>,
    /// Probability that a frame arrives twice.
    #[schemars(range(min = 0.0, max = 1.0))]
    duplicate: f64,
    /// Probability that one bit of a frame is flipped.
    #[schemars(range(min = 0.0, max = 1.0))]
    corrupt: f64,
}

/// Reads a direction; its tunnel is the link's.
pub(super) fn direction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DirectionConfig, D::Error> {
    let Fields { rate_bps, delivery_trace, framing, delay_ps, jitter, reorder, loss, duplicate, corrupt } =
        Fields::deserialize(deserializer)?;
    let impair = ImpairConfig { jitter, reorder, loss, duplicate, corrupt };
    if rate_bps.is_some() && delivery_trace.is_some() {
        return Err(D::Error::custom("a direction has a rate or a delivery trace, not both: leave one out"));
    }
    Ok(DirectionConfig { rate_bps, delivery_trace, framing, delay_ps, tunnel: None, impair })
}
