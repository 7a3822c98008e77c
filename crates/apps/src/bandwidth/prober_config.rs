//! The configuration of a prober and a listener.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::framing::Layer;
use super::method::Method;
use crate::check::{check_port, check_range, ConfigError};

/// An estimate that is to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BandwidthProberConfig {
    /// The address of the listener.
    pub to: IpAddr,
    /// Its port.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// The method of the estimate.
    pub method: Method,
    /// The layer at which rates are told.
    #[serde(default)]
    pub layer: Layer,
    /// The longest payload of a probe: what the path carries without fragments.
    #[schemars(range(min = 64, max = 65_507))]
    pub most_payload: u32,
    /// The highest rate that may be sent, in bit/s.
    #[schemars(range(min = 10_000, max = 1_000_000_000_000_u64))]
    pub most_rate_bps: u64,
    /// The estimate ends with what is known when its probes would exceed so many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000, max = 1_u64 << 50))]
    pub budget_bytes: Option<u64>,
    /// And after so much time.
    #[schemars(range(min = 1_000_000_000, max = 86_400_000_000_000_000_u64))]
    pub duration_ps: u64,
    /// `true` if the report keeps every stamp, up to [`super::prober::MOST_RECORDED`] trains.
    #[serde(default)]
    pub record: bool,
}

impl BandwidthProberConfig {
    pub(crate) const KIND: &'static str = "bandwidth_prober";

    /// Returns the address of the listener.
    #[must_use]
    pub const fn target(&self) -> SocketAddr {
        SocketAddr::new(self.to, self.port)
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_range(Self::KIND, "most_payload", self.most_payload, 64, 65_507)?;
        check_range(Self::KIND, "most_rate_bps", self.most_rate_bps, 10_000, 1_000_000_000_000)?;
        check_range(Self::KIND, "budget_bytes", self.budget_bytes.unwrap_or(1000), 1000, 1 << 50)?;
        check_range(Self::KIND, "duration_ps", self.duration_ps, 1_000_000_000, 86_400_000_000_000_000)?;
        self.method.validate()
    }
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BandwidthListenerConfig {
    /// The port.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The highest rate that probers are let send at, in bit/s.
    #[schemars(range(min = 10_000, max = 1_000_000_000_000_u64))]
    pub most_rate_bps: u64,
    /// The only addresses that are answered; null for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub allow: Option<Vec<IpAddr>>,
}

impl BandwidthListenerConfig {
    pub(crate) const KIND: &'static str = "bandwidth_listener";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_range(Self::KIND, "most_rate_bps", self.most_rate_bps, 10_000, 1_000_000_000_000)?;
        check_range(Self::KIND, "allow", self.allow.as_ref().map_or(1, Vec::len), 1, 1024)
    }
}
