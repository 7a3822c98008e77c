//! The properties of a link in one direction, as it is described.

use serde::{Deserialize, Serialize};
use twinnet_packet::Framing;
use twinnet_units::{Duration, Rate};

use super::DeliveryTrace;
use crate::tunnel::TunnelConfig;
use twinnet_impair::ImpairConfig;

/// The properties of a link in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionConfig {
    /// The line rate; `None` sends at once.
    #[serde(default)]
    pub rate_bps: Option<Rate>,
    /// The moments at which frames can leave, where the capacity follows a trace. While there is a rate, that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_trace: Option<DeliveryTrace>,
    /// The bits that a frame costs on the wire.
    #[serde(default)]
    pub framing: Framing,
    /// Time from the last bit sent to the last bit arrived.
    #[serde(default)]
    pub delay_ps: Duration,
    /// The tunnel that carries the frames, when there is one. It stays as it is while the link is in motion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<TunnelConfig>,
    /// Jitter, loss, duplication, corruption, reordering.
    #[serde(flatten)]
    pub impair: ImpairConfig,
}

impl DirectionConfig {
    /// Returns `true` if frames take time to leave: by a rate, or by a trace.
    #[must_use]
    pub const fn takes_time(&self) -> bool {
        self.rate_bps.is_some() || self.delivery_trace.is_some()
    }

    /// The bits a second that frames leave with at the least: none by a trace, which may stand still.
    pub(crate) fn slowest_bps(&self) -> Option<u64> {
        self.rate_bps.map(Rate::as_bps).or(self.delivery_trace.as_ref().map(|_| 0))
    }

    /// Bytes that a frame of `length` bytes occupies on the wire.
    #[must_use]
    pub fn wire_bytes(&self, length: u64) -> u64 {
        wire_bytes(self.framing, self.tunnel.as_ref(), length)
    }
}

/// Bytes that a frame of `length` bytes occupies on a wire with `framing`, through a tunnel if there is one.
#[must_use]
pub fn wire_bytes(framing: Framing, tunnel: Option<&TunnelConfig>, length: u64) -> u64 {
    tunnel.map_or_else(|| framing.wire_bytes(length), |tunnel| tunnel.wire_bytes(framing, length))
}

impl Default for DirectionConfig {
    fn default() -> Self {
        Self {
            rate_bps: None,
            delivery_trace: None,
            framing: Framing::Ethernet,
            delay_ps: Duration::ZERO,
            tunnel: None,
            impair: ImpairConfig::default(),
        }
    }
}
