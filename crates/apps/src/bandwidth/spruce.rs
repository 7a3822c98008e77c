//! Spruce: how much cross traffic comes between the two packets of a pair that is as far apart as the tight link's
//! capacity.
//!
//! Strauss, Katabi, Kaashoek, *A measurement study of available bandwidth estimation tools*, IMC 2003. The capacity
//! of the tight link must be known; the method assumes that the tight link is the narrow one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimator::{mean_and_error, Estimator, Finding, Probing, Step};
use super::train::{Plan, Train};
use crate::check::{check_range, ConfigError};
use crate::schedule::random::Stream;

/// The settings, with the published values as defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpruceConfig {
    /// Capacity of the tight link in bit/s; without it there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e3, max = 1e12))]
    pub capacity_bps: Option<f64>,
    /// Pairs.
    #[schemars(range(min = 2, max = 100_000))]
    pub pairs: u32,
    /// The load of the probes as a share of the capacity.
    #[schemars(range(min = 0.001, max = 0.5))]
    pub load: f64,
    /// The shortest mean distance of pairs, in nanoseconds.
    #[schemars(range(min = 0.0, max = 1e11))]
    pub pair_idle_ns: f64,
}

impl Default for SpruceConfig {
    fn default() -> Self {
        Self { capacity_bps: None, pairs: 100, load: 0.05, pair_idle_ns: 100e6 }
    }
}

impl SpruceConfig {
    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        check_range(kind, "capacity_bps", self.capacity_bps.unwrap_or(1e6), 1e3, 1e12)?;
        check_range(kind, "pairs", self.pairs, 2, 100_000)?;
        check_range(kind, "load", self.load, 0.001, 0.5)?;
        check_range(kind, "pair_idle_ns", self.pair_idle_ns, 0.0, 1e11)
    }
}

/// The least that one pair says of the capacity's share that is available.
const FLOOR: f64 = -0.8;
/// A pair that was sent later than this, in nanoseconds, is not used.
const LATE_NS: f64 = 500_000.0;

/// The estimator.
pub struct Spruce {
    config: SpruceConfig,
    probing: Probing,
    random: Stream,
    shares: Vec<f64>,
    sent: u32,
    unused: u32,
}

impl Spruce {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: SpruceConfig, probing: Probing) -> Self {
        Self { random: Stream::new(probing.seed), config, probing, shares: Vec::new(), sent: 0, unused: 0 }
    }
}

impl Estimator for Spruce {
    fn next(&mut self) -> Step {
        let Some(capacity) = self.config.capacity_bps else { return Step::Done };
        if self.sent >= self.config.pairs || capacity > self.probing.most_rate_bps {
            return Step::Done;
        }
        self.sent += 1;
        let plan =
            Plan::even(2, self.probing.most_payload, self.probing.framing.gap_ns(self.probing.most_payload, capacity));
        let mean = (plan.bits(self.probing.framing) * 1e9 / capacity / self.config.load).max(self.config.pair_idle_ns);
        Step::Send { plan, idle_ns: -mean * self.random.uniform().ln() }
    }

    fn hear(&mut self, train: &Train) {
        let pair = (train.sent_gaps_ns().first().copied(), train.arrived_ns.first(), train.arrived_ns.get(1));
        let (Some(sent), Some(Some(first)), Some(Some(second))) = pair else {
            self.unused += 1;
            return;
        };
        let planned = train.plan.duration_ns() as f64;
        if sent <= 0.0 || sent > planned + LATE_NS || second < first || train.clock_stepped {
            self.unused += 1;
            return;
        }
        let received = (second - first) as f64;
        self.shares.push((1.0 - (received - planned).max(0.0) / sent).max(FLOOR));
    }

    fn finding(&self) -> Finding {
        let found = mean_and_error(&self.shares).zip(self.config.capacity_bps);
        let estimate = found.map(|((mean, _), capacity)| capacity * mean.max(0.0));
        let half = found.map(|((_, error), capacity)| 1.96 * error * capacity).filter(|half| half.is_finite());
        let gave_up = match self.config.capacity_bps {
            None => Some("the capacity of the tight link is not known: give capacity".to_owned()),
            Some(capacity) if capacity > self.probing.most_rate_bps => {
                Some(format!("pairs must be sent at the capacity of {:.1} Mbit/s: lift most_rate", capacity / 1e6))
            }
            Some(_) if self.shares.is_empty() && self.unused > 0 => Some("no pair arrived whole".to_owned()),
            Some(_) => None,
        };
        let mut notes = Vec::new();
        if self.unused > 0 {
            notes.push(format!("{} pairs were lost or sent too late", self.unused));
        }
        Finding {
            estimate_bps: estimate,
            low_bps: estimate.zip(half).map(|(middle, half)| (middle - half).max(0.0)),
            high_bps: estimate.zip(half).map(|(middle, half)| middle + half),
            confidence: half.map(|_| 0.95),
            capacity_bps: self.config.capacity_bps,
            gave_up,
            notes,
            ..Finding::default()
        }
    }
}
