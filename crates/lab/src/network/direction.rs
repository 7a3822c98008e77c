//! What a link does in one direction, as a description writes it: flat, and without fields that nobody would read.

use serde::{Deserialize, Deserializer};
use twinnet_fabric::DirectionConfig;
use twinnet_impair::{ImpairConfig, JitterConfig, LossConfig};
use twinnet_packet::Framing;
use twinnet_units::{Duration, Rate};

/// The fields, in one object.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    rate_bps: Option<Rate>,
    framing: Framing,
    delay_ps: Duration,
    jitter: Option<JitterConfig>,
    reorder: bool,
    loss: Option<LossConfig>,
    duplicate: f64,
    corrupt: f64,
}

/// Reads a direction; its tunnel is the link's.
pub(super) fn direction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DirectionConfig, D::Error> {
    let Fields { rate_bps, framing, delay_ps, jitter, reorder, loss, duplicate, corrupt } =
        Fields::deserialize(deserializer)?;
    let impair = ImpairConfig { jitter, reorder, loss, duplicate, corrupt };
    Ok(DirectionConfig { rate_bps, framing, delay_ps, tunnel: None, impair })
}
