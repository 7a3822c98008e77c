//! A Kalman filter of the line on which the strain of trains lies above the available bandwidth, as in BART.
//!
//! Ekelin, Nilsson, Hartikainen, Johnsson, Mangs, Melander, Bjorkman, *Real-time measurement of end-to-end available
//! bandwidth using Kalman filtering*, NOMS 2006. A train sent at rate `u` arrives stretched by the strain `e = u /
//! received - 1`, which is zero below the available bandwidth `A` and `(u - A) / C` above, with the capacity `C` of
//! the tight link. The filter's state is slope and intercept; `A` is where the line meets zero.

use super::estimator::{dispersion_rate, Estimator, Finding, Probing, Step};
use super::train::{Plan, Train};
use crate::schedule::random::Stream;

settings! {
    /// The settings.
    pub struct KalmanConfig;

    /// Packets of a train (published: 17).
    packets: u32 [5, 1000] = 17,
    /// Variance by which slope and intercept wander from train to train, in units of the strain.
    wander: f64 [0.0, 1.0] = 1e-5,
    /// Mean silence between trains, in nanoseconds.
    idle_ns: f64 [1e4, 1e11] = 50e6,
    /// Trains.
    trains: u32 [5, 100_000] = 200,
}

const FIRST_PACKETS: usize = 30;
/// Rates are drawn between these shares of the dispersion rate, which is at least the available bandwidth.
const LOWEST: f64 = 0.2;
const HIGHEST: f64 = 1.1;
/// The least variance of a train's strain: what the granularity of packets leaves.
const LEAST_VARIANCE: f64 = 1e-5;

/// The estimator.
pub struct Kalman {
    config: KalmanConfig,
    probing: Probing,
    random: Stream,
    /// The dispersion rate: rates are in units of it.
    unit: Option<f64>,
    tries: u32,
    /// Slope and intercept, and their covariance.
    state: [f64; 2],
    covariance: [[f64; 2]; 2],
    sent: u32,
    used: u32,
    unused: u32,
    gave_up: Option<String>,
}

impl Kalman {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: KalmanConfig, probing: Probing) -> Self {
        Self {
            random: Stream::new(probing.seed),
            config,
            probing,
            unit: None,
            tries: 0,
            state: [0.8, -0.4],
            covariance: [[1.0, 0.0], [0.0, 1.0]],
            sent: 0,
            used: 0,
            unused: 0,
            gave_up: None,
        }
    }

    /// Returns the place where the line meets zero, in units of the dispersion rate.
    fn crossing(&self) -> f64 {
        (-self.state[1] / self.state[0]).clamp(0.0, 1.0)
    }

    /// The filter's step for a measurement `strain = slope * rate + intercept` of this variance.
    fn update(&mut self, rate: f64, strain: f64, variance: f64) {
        let [[a, b], [c, d]] = self.covariance;
        let (a, d) = (a + self.config.wander, d + self.config.wander);
        let toward = [a * rate + b, c * rate + d];
        let gain = [toward[0], toward[1]].map(|value| value / (toward[0] * rate + toward[1] + variance));
        let surprise = strain - (self.state[0] * rate + self.state[1]);
        self.state[0] = (self.state[0] + gain[0] * surprise).clamp(0.05, 10.0);
        self.state[1] = (self.state[1] + gain[1] * surprise).min(-1e-6);
        let across = [rate * a + c, rate * b + d];
        self.covariance =
            [[a - gain[0] * across[0], b - gain[0] * across[1]], [c - gain[1] * across[0], d - gain[1] * across[1]]];
        self.used += 1;
    }
}

impl Estimator for Kalman {
    fn next(&mut self) -> Step {
        if self.gave_up.is_some() || self.sent >= self.config.trains {
            return Step::Done;
        }
        let Some(unit) = self.unit else {
            self.tries += 1;
            return Step::Send { plan: Plan::even(FIRST_PACKETS, self.probing.most_payload, 0.0), idle_ns: 50e6 };
        };
        self.sent += 1;
        let share = LOWEST + (HIGHEST - LOWEST) * self.random.uniform();
        let rate = (unit * share).min(self.probing.most_rate_bps);
        let payload = self.probing.most_payload;
        let plan = Plan::even(self.config.packets as usize, payload, self.probing.framing.gap_ns(payload, rate));
        let idle_ns = (-self.config.idle_ns * self.random.uniform().ln()).max(plan.duration_ns() as f64);
        Step::Send { plan, idle_ns }
    }

    fn hear(&mut self, train: &Train) {
        let framing = self.probing.framing;
        let Some(unit) = self.unit else {
            self.unit = dispersion_rate(train, framing);
            if self.unit.is_none() && self.tries >= 5 {
                self.gave_up = Some("no train of packets sent at once came through".to_owned());
            }
            return;
        };
        let usable =
            train.lost() == 0 && !train.reordered() && !train.clock_stepped && train.interruptions().is_empty();
        let rates = train.generated_bps(framing).zip(train.received_bps(framing));
        let Some((generated, _)) = rates.filter(|_| usable) else {
            self.unused += 1;
            return;
        };
        let rate = generated / unit;
        // Below the line's zero the strain says nothing of the line.
        if rate <= self.crossing() && self.used > 0 {
            return;
        }
        let gaps = train.sent_gaps_ns();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let strains: Vec<f64> = train
            .arrived_ns
            .windows(2)
            .zip(&gaps)
            .filter_map(|(pair, gap)| Some(((pair[1]? - pair[0]?) as f64 - gap) / mean))
            .collect();
        let count = strains.len() as f64;
        let strain = strains.iter().sum::<f64>() / count;
        let spread = strains.iter().map(|one| (one - strain).powi(2)).sum::<f64>() / (count - 1.0).max(1.0) / count;
        self.update(rate, strain, spread.max(LEAST_VARIANCE));
    }

    fn finding(&self) -> Finding {
        let mut notes = Vec::new();
        if self.unused > 0 {
            notes.push(format!("{} trains were lost in part, reordered or interrupted", self.unused));
        }
        let Some(unit) = self.unit.filter(|_| self.used >= 5) else {
            let why = self.gave_up.clone().or_else(|| {
                (self.sent >= self.config.trains).then(|| "fewer than five trains could be used".to_owned())
            });
            return Finding { gave_up: why, notes, ..Finding::default() };
        };
        let crossing = self.crossing();
        // Of -b/a to the first order.
        let [slope, _] = self.state;
        let [[a, b], [_, d]] = self.covariance;
        let variance = (d + 2.0 * crossing * b + crossing * crossing * a) / (slope * slope);
        let half = 1.96 * variance.max(0.0).sqrt() * unit;
        let estimate = crossing * unit;
        Finding {
            capacity_bps: Some(unit / slope),
            gave_up: self.gave_up.clone(),
            notes,
            ..Finding::around(Some(estimate), Some(half))
        }
    }
}
