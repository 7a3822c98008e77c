//! The settings of `hybrid`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{check_range, ConfigError};

/// The settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HybridConfig {
    /// Capacity of the tight link in bit/s, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e3, max = 1e12))]
    pub capacity_bps: Option<f64>,
    /// The available bandwidth by counters, in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub prior_bps: Option<f64>,
    /// The standard deviation of that; a tenth of it when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1e12))]
    pub prior_std_bps: Option<f64>,
    /// The time, in nanoseconds, over which what that is the deviation of was averaged: a polling period. Averages over
    /// less time vary by more, as the root of the ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1e14))]
    pub prior_window_ns: Option<f64>,
    /// Packets that are sent at once before each train.
    #[schemars(range(min = 1, max = 100))]
    pub burst: u32,
    /// Packets of a train after them.
    #[schemars(range(min = 5, max = 900))]
    pub packets: u32,
    /// The rate of a train as a share of the estimate.
    #[schemars(range(min = 0.8, max = 2.0))]
    pub overload: f64,
    /// Mean silence between trains, in nanoseconds; at least three times a train.
    #[schemars(range(min = 1e4, max = 1e11))]
    pub idle_ns: f64,
    /// Trains at least.
    #[schemars(range(min = 3, max = 10_000))]
    pub least_trains: u32,
    /// Trains at most.
    #[schemars(range(min = 3, max = 10_000))]
    pub trains: u32,
    /// The standard error, as a share of the estimate, at which no more trains are sent.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub precision: f64,
}

impl Default for HybridConfig {
    fn default() -> Self {
        Self {
            capacity_bps: None,
            prior_bps: None,
            prior_std_bps: None,
            prior_window_ns: None,
            burst: 5,
            packets: 18,
            overload: 1.05,
            idle_ns: 50e6,
            least_trains: 6,
            trains: 600,
            precision: 0.03,
        }
    }
}

impl HybridConfig {
    /// The estimate by counters with its standard deviation, in bit/s.
    pub(crate) fn prior(&self) -> Option<(f64, f64)> {
        let prior = self.prior_bps?;
        Some((prior, self.prior_std_bps.unwrap_or(0.1 * prior).max(1.0)))
    }

    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        check_range(kind, "capacity_bps", self.capacity_bps.unwrap_or(1e6), 1e3, 1e12)?;
        check_range(kind, "prior_bps", self.prior_bps.unwrap_or(1e6), 0.0, 1e12)?;
        check_range(kind, "prior_std_bps", self.prior_std_bps.unwrap_or(1e6), 1.0, 1e12)?;
        check_range(kind, "prior_window_ns", self.prior_window_ns.unwrap_or(1.0), 1.0, 1e14)?;
        check_range(kind, "burst", self.burst, 1, 100)?;
        check_range(kind, "packets", self.packets, 5, 900)?;
        check_range(kind, "overload", self.overload, 0.8, 2.0)?;
        check_range(kind, "idle_ns", self.idle_ns, 1e4, 1e11)?;
        check_range(kind, "least_trains", self.least_trains, 3, 10_000)?;
        check_range(kind, "trains", self.trains, self.least_trains, 10_000)?;
        check_range(kind, "precision", self.precision, 0.0, 0.5)
    }
}
