//! The settings of `hybrid`.

use crate::check::{check_range, ConfigError};

settings! {
    /// The settings.
    pub struct HybridConfig;

    /// Capacity of the tight link in bit/s, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_bps: Option<f64> [1e3, 1e12] = None,
    /// The available bandwidth by counters, in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    prior_bps: Option<f64> [0.0, 1e12] = None,
    /// The standard deviation of that; a tenth of it when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    prior_std_bps: Option<f64> [1.0, 1e12] = None,
    /// The time, in nanoseconds, over which what that is the deviation of was averaged: a polling period. Averages over
    /// less time vary by more, as the root of the ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    prior_window_ns: Option<f64> [1.0, 1e14] = None,
    /// Packets that are sent at once before each train.
    burst: u32 [1, 100] = 5,
    /// Packets of a train after them.
    packets: u32 [5, 900] = 18,
    /// The rate of a train as a share of the estimate.
    overload: f64 [0.8, 2.0] = 1.05,
    /// Mean silence between trains, in nanoseconds; at least three times a train.
    idle_ns: f64 [1e4, 1e11] = 50e6,
    /// Trains at least.
    least_trains: u32 [3, 10_000] = 6,
    /// Trains at most.
    trains: u32 [3, 10_000] = 600,
    /// The standard error, as a share of the estimate, at which no more trains are sent.
    precision: f64 [0.0, 0.5] = 0.03,
}

impl HybridConfig {
    /// The estimate by counters with its standard deviation, in bit/s.
    pub(crate) fn prior(&self) -> Option<(f64, f64)> {
        let prior = self.prior_bps?;
        Some((prior, self.prior_std_bps.unwrap_or(0.1 * prior).max(1.0)))
    }

    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        self.check_ranges(kind)?;
        check_range(kind, "trains", self.trains, self.least_trains, 10_000)
    }
}
