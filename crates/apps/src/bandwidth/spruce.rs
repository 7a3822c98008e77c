//! Spruce: how much cross traffic comes between the two packets of a pair that is as far apart as the tight link's
//! capacity.
//!
//! Strauss, Katabi, Kaashoek, *A measurement study of available bandwidth estimation tools*, IMC 2003. The capacity
//! of the tight link must be known; the method assumes that the tight link is the narrow one.

use super::estimator::{mean_and_error, Estimator, Finding, Probing, Step};
use super::train::{Plan, Train};
use crate::schedule::random::Stream;

settings! {
    /// The settings, with the published values as defaults.
    pub struct SpruceConfig;

    /// Capacity of the tight link in bit/s; without it there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_bps: Option<f64> [1e3, 1e12] = None,
    /// Pairs.
    pairs: u32 [2, 100_000] = 100,
    /// The load of the probes as a share of the capacity.
    load: f64 [0.001, 0.5] = 0.05,
    /// The shortest mean distance of pairs, in nanoseconds.
    pair_idle_ns: f64 [0.0, 1e11] = 100e6,
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
        Finding { capacity_bps: self.config.capacity_bps, gave_up, notes, ..Finding::around(estimate, half) }
    }
}
