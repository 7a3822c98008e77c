//! IGI and PTR: trains with ever longer gaps, until the path leaves the gaps as they were.
//!
//! Hu and Steenkiste, *Evaluation and characterization of available bandwidth probing techniques*, IEEE JSAC 21(6),
//! 2003. At the turning point PTR tells the rate of the train (packet transmission rate), IGI the capacity less the
//! cross traffic that increased gaps hold (initial gap increasing).
//!
//! Difference: gaps count as equal within a share of themselves instead of 5 us, which is more than a gap at 1 Gbit/s
//! and nothing at 1 Mbit/s.

use super::estimator::{mean_and_error, median, Estimator, Finding, Probing, Step};
use super::train::{Plan, Train};

settings! {
    /// The settings of both, with the published values as defaults where nothing else is said.
    pub struct TurningPointConfig;

    /// Packets of a train.
    packets: u32 [8, 1000] = 60,
    /// Payload of each, in bytes.
    payload: u32 [32, 8192] = 472,
    /// Trains with each gap.
    trains: u32 [1, 100] = 3,
    /// The first gap as a share of that of packets sent at once.
    first_gap: f64 [0.01, 2.0] = 0.5,
    /// By how much gaps grow, as a share of the first gap.
    step: f64 [0.01, 1.0] = 0.25,
    /// Gaps that differ by less than this share are equal (not published).
    equal: f64 [0.001, 0.2] = 0.02,
    /// Gaps that differ by less than this are equal, in nanoseconds (published: 5 us), in the place of the share.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal_ns: Option<f64> [1.0, 1e6] = None,
    /// Silence between trains, in nanoseconds.
    idle_ns: f64 [1e4, 1e10] = 20e6,
    /// Gaps that are tried.
    gaps: u32 [2, 10_000] = 200,
}

impl TurningPointConfig {
    /// As Hu and Steenkiste published it (IEEE JSAC 21(6), 2003), with the limit of their tool.
    #[must_use]
    pub fn published() -> Self {
        Self { equal_ns: Some(5_000.0), ..Self::default() }
    }
}

/// The one of the two that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// The cross traffic in gaps that grew.
    InitialGapIncreasing,
    /// The rate of the trains.
    PacketTransmissionRate,
}

/// The results of the trains with one gap.
#[derive(Debug, Default)]
struct Round {
    sent: Vec<f64>,
    received: Vec<f64>,
    /// Cross traffic, as a share of the capacity.
    cross: Vec<f64>,
}

/// The estimator.
pub struct TurningPoint {
    config: TurningPointConfig,
    formula: Formula,
    probing: Probing,
    /// Gaps of the trains that were sent at once.
    at_once: Vec<f64>,
    first_trains: u32,
    /// The gap of the narrow link, in nanoseconds.
    bottleneck_gap: Option<f64>,
    first_gap: f64,
    gap: f64,
    round: Round,
    rounds: u32,
    trains: u32,
    lost: u32,
    found: Option<(f64, f64)>,
    gave_up: Option<String>,
}

/// The value that most others are within 3 % of; the least of several. Gaps of packets that left a link one after the
/// other lie close together, others do not.
#[must_use]
pub fn mode(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let near = |value: f64| sorted.iter().filter(|other| (**other - value).abs() <= 0.03 * value).count();
    let most = sorted.iter().map(|value| near(*value)).max()?;
    sorted.iter().copied().find(|value| near(*value) == most)
}

fn received_gaps(train: &Train) -> Option<Vec<f64>> {
    let all: Option<Vec<i64>> = train.arrived_ns.iter().copied().collect();
    all.map(|all| all.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect())
}

impl TurningPoint {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: TurningPointConfig, formula: Formula, probing: Probing) -> Self {
        Self {
            config,
            formula,
            probing,
            at_once: Vec::new(),
            first_trains: 0,
            bottleneck_gap: None,
            first_gap: 0.0,
            gap: 0.0,
            round: Round::default(),
            rounds: 0,
            trains: 0,
            lost: 0,
            found: None,
            gave_up: None,
        }
    }

    /// Returns the longest gap that counts as equal to `gap`.
    fn longest_equal_ns(&self, gap: f64) -> f64 {
        self.config.equal_ns.map_or(gap * (1.0 + self.config.equal), |equal| gap + equal)
    }

    fn payload(&self) -> u32 {
        self.config.payload.min(self.probing.most_payload)
    }

    fn begin(&mut self) {
        let Some(gap) = mode(&self.at_once).filter(|gap| *gap > 0.0) else {
            self.gave_up = Some("no train of packets sent at once came through".to_owned());
            return;
        };
        self.bottleneck_gap = Some(gap);
        let mean = self.at_once.iter().sum::<f64>() / self.at_once.len() as f64;
        let floor = self.probing.framing.gap_ns(self.payload(), self.probing.most_rate_bps);
        self.first_gap = (mean * self.config.first_gap).max(floor);
        self.gap = self.first_gap;
    }

    fn hear_round(&mut self, train: &Train, gaps: &[f64], bottleneck: f64) {
        let count = gaps.len() as f64;
        let sent = train.sent_gaps_ns().iter().sum::<f64>() / count;
        let longer = self.longest_equal_ns(bottleneck.max(sent));
        let held: f64 = gaps.iter().filter(|gap| **gap > longer).map(|gap| gap - bottleneck).sum();
        self.round.sent.push(sent);
        self.round.received.push(gaps.iter().sum::<f64>() / count);
        self.round.cross.push(held / gaps.iter().sum::<f64>());
    }

    fn end_round(&mut self, bottleneck: f64) {
        let Round { sent, received, cross } = std::mem::take(&mut self.round);
        self.trains = 0;
        self.rounds += 1;
        let (Some((sent, _)), Some((mean, error))) = (mean_and_error(&sent), mean_and_error(&received)) else { return };
        if mean <= self.longest_equal_ns(sent) {
            let bits = self.probing.framing.bits(self.payload());
            let capacity = bits * 1e9 / bottleneck;
            let rate = bits * 1e9 / mean;
            let spread = rate * error / mean;
            let told = match self.formula {
                Formula::PacketTransmissionRate => rate,
                Formula::InitialGapIncreasing => capacity * (1.0 - median(&cross).unwrap_or(0.0)),
            };
            self.found = Some((told, 1.96 * spread));
        } else if self.rounds >= self.config.gaps {
            self.gave_up = Some(format!("the path still changed the gaps after {} of them", self.rounds));
        } else {
            self.gap += self.first_gap * self.config.step;
        }
    }
}

impl Estimator for TurningPoint {
    fn next(&mut self) -> Step {
        if self.found.is_some() || self.gave_up.is_some() {
            return Step::Done;
        }
        let gap = if self.bottleneck_gap.is_none() { 0.0 } else { self.gap };
        let idle_ns = self.config.idle_ns.max(gap * f64::from(self.config.packets));
        Step::Send { plan: Plan::even(self.config.packets as usize, self.payload(), gap), idle_ns }
    }

    fn hear(&mut self, train: &Train) {
        let usable = !train.reordered() && !train.clock_stepped && train.interruptions().is_empty();
        let gaps = received_gaps(train).filter(|gaps| usable && !gaps.is_empty());
        if gaps.is_none() {
            self.lost += 1;
            if self.lost > 10 * self.config.trains.max(10) {
                self.gave_up = Some("too many trains were lost in part, reordered or interrupted".to_owned());
            }
            return;
        }
        let gaps = gaps.unwrap_or_default();
        match self.bottleneck_gap {
            None => {
                self.at_once.extend(gaps);
                self.first_trains += 1;
                if self.first_trains >= self.config.trains {
                    self.begin();
                }
            }
            Some(bottleneck) => {
                self.hear_round(train, &gaps, bottleneck);
                self.trains += 1;
                if self.trains >= self.config.trains {
                    self.end_round(bottleneck);
                }
            }
        }
    }

    fn finding(&self) -> Finding {
        let bits = self.probing.framing.bits(self.payload());
        let half = self.found.map(|(_, half)| half).filter(|half| half.is_finite());
        let estimate = self.found.map(|(told, _)| told);
        let mut notes = Vec::new();
        if self.lost > 0 {
            notes.push(format!("{} trains were lost in part, reordered or interrupted", self.lost));
        }
        Finding {
            capacity_bps: self.bottleneck_gap.map(|gap| bits * 1e9 / gap),
            gave_up: self.gave_up.clone(),
            notes,
            ..Finding::around(estimate, half)
        }
    }
}
