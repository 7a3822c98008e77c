//! ASSOLO: reflected exponential chirps (REACH), whose steps are finest in the middle of their range.
//!
//! Goldoni, Rossi, Torelli, *Assolo, a new method for available bandwidth estimation*, ICIMP 2009; and *Investigating
//! and comparing end-to-end available bandwidth estimation tools*, International Journal on Advances in Systems and
//! Measurements 2(4), 2009.
//!
//! Estimates are smoothed by the vertical horizontal filter: by a third of |highest - lowest| / sum of the changes of
//! the last estimates, in the order of time. A trend is followed at once, noise is smoothed. (In the published
//! program the sum runs in the order of a ring buffer and the weights are exchanged, which smooths trends and follows
//! noise.)
//!
//! Differences: the chirps need a range that has the answer near its middle. Where none is given, a train of packets
//! sent at once tells where to begin, and the range follows the estimates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chirp::{chirp, silence_ns, ChirpWindow};
use super::estimator::{dispersion_rate, median, Estimator, Finding, Probing, Step};
use super::excursions::Excursions;
use super::train::{Plan, Train};
use crate::check::{check_range, ConfigError};

/// The settings, with the published values as defaults where nothing else is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AssoloConfig {
    /// Bytes of each packet, the headers of IP included.
    #[schemars(range(min = 60, max = 8200))]
    pub packet_bytes: u32,
    /// The lowest rate of a chirp; null with `high_bps` for a range that is found and followed (published: 10
    /// Mbit/s).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e3, max = 1e11))]
    pub low_bps: Option<f64>,
    /// The highest (published: 200 Mbit/s).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e3, max = 1e11))]
    pub high_bps: Option<f64>,
    /// The finest step as a share of half of the range.
    #[schemars(range(min = 0.02, max = 0.1))]
    pub error: f64,
    /// The ratio of one step to the one nearer to the middle.
    #[schemars(range(min = 1.01, max = 3.0))]
    pub spread: f64,
    /// Packets that are sent at each rate (published: 1, and up to 20 for jumbo packets). One packet of cross traffic
    /// then is less than a step.
    #[schemars(range(min = 1, max = 20))]
    pub hold: u32,
    /// Mean load of the probes in bit/s, where the range is given; a tenth of the lowest rate otherwise, if that is
    /// more.
    #[schemars(range(min = 1e3, max = 1e10))]
    pub load_bps: f64,
    /// Chirps over which estimates are smoothed.
    #[schemars(range(min = 2, max = 1000))]
    pub smoothing: u32,
    /// `true` for the vertical horizontal filter, `false` for a sliding mean.
    pub filter: bool,
    /// An excursion ends when the delay has fallen to its greatest rise over this.
    #[schemars(range(min = 1.0, max = 100.0))]
    pub decrease_factor: f64,
    /// Excursions of fewer packets do not count.
    #[schemars(range(min = 1, max = 200))]
    pub busy_length: u32,
    /// `true` if the bend of the mean of the last chirps' delays counts, instead of the mean of the estimates of single
    /// chirps (published).
    pub mean_signature: bool,
    /// Arrivals closer than this may be a batch, in nanoseconds.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub batch_ns: f64,
    /// Chirps to send.
    #[schemars(range(min = 1, max = 10_000))]
    pub chirps: u32,
}

impl AssoloConfig {
    /// As Goldoni, Rossi and Torelli published it (ICIMP 2009), with the range of their tool.
    #[must_use]
    pub fn published() -> Self {
        Self { low_bps: Some(10e6), high_bps: Some(200e6), hold: 1, mean_signature: false, ..Self::default() }
    }
}

impl Default for AssoloConfig {
    fn default() -> Self {
        Self {
            packet_bytes: 1000,
            low_bps: None,
            high_bps: None,
            error: 0.05,
            spread: 1.2,
            hold: 5,
            load_bps: 300e3,
            smoothing: 11,
            filter: true,
            decrease_factor: 1.5,
            busy_length: 5,
            mean_signature: true,
            batch_ns: 10_000.0,
            chirps: 40,
        }
    }
}

impl AssoloConfig {
    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        check_range(kind, "packet_bytes", self.packet_bytes, 60, 8200)?;
        if self.low_bps.is_some() != self.high_bps.is_some() {
            return Err(ConfigError::OneOf {
                kind,
                fields: "a range (low_bps and high_bps), no range".to_owned(),
                given: "half of one was".to_owned(),
            });
        }
        let low = self.low_bps.unwrap_or(1e3);
        check_range(kind, "low_bps", low, 1e3, 1e11)?;
        check_range(kind, "high_bps", self.high_bps.unwrap_or(1e11), low, 1e11)?;
        check_range(kind, "error", self.error, 0.02, 0.1)?;
        check_range(kind, "spread", self.spread, 1.01, 3.0)?;
        check_range(kind, "hold", self.hold, 1, 20)?;
        check_range(kind, "load_bps", self.load_bps, 1e3, 1e10)?;
        check_range(kind, "smoothing", self.smoothing, 2, 1000)?;
        check_range(kind, "decrease_factor", self.decrease_factor, 1.0, 100.0)?;
        check_range(kind, "busy_length", self.busy_length, 1, 200)?;
        check_range(kind, "batch_ns", self.batch_ns, 0.0, 1e6)?;
        check_range(kind, "chirps", self.chirps, 1, 10_000)
    }
}

/// Packets of the train that tells where to begin.
const FIRST_PACKETS: usize = 20;
/// Chirps after which a range that is followed is set anew.
const STEP: u32 = 5;
/// The payload of a packet is this much shorter than the packet.
const HEADERS: u32 = 28;

/// Rates of a reflected exponential chirp: finest at the middle of `low..high`, mirrored around it, rising.
#[must_use]
pub fn reflected_rates(low: f64, high: f64, error: f64, spread: f64) -> Vec<f64> {
    let middle = (low + high) / 2.0;
    let finest = error * (high - low) / 2.0;
    let mut offsets = Vec::new();
    let (mut offset, mut step) = (finest, finest);
    while middle - offset > low && offsets.len() < 90 {
        offsets.push(offset);
        step *= spread;
        offset += step;
    }
    let below = offsets.iter().rev().map(|offset| middle - offset);
    below.chain([middle]).chain(offsets.iter().map(|offset| middle + offset)).collect()
}

/// The share of a new estimate that the vertical horizontal filter takes, of the last `estimates` in the order of
/// time.
#[must_use]
pub fn filter_gain(estimates: &[f64]) -> f64 {
    let changes: f64 = estimates.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    let highest = estimates.iter().copied().fold(f64::MIN, f64::max);
    let lowest = estimates.iter().copied().fold(f64::MAX, f64::min);
    if changes > 0.0 {
        (highest - lowest) / changes / 3.0
    } else {
        0.5
    }
}

/// The estimator.
pub struct Assolo {
    config: AssoloConfig,
    probing: Probing,
    window: ChirpWindow,
    range: Option<(f64, f64)>,
    follows: bool,
    since: u32,
    recent: Vec<f64>,
    /// The smoothed values, in the order of time.
    filtered: Vec<f64>,
    smoothed: Option<f64>,
    sent: u32,
    tries: u32,
    gave_up: Option<String>,
}

impl Assolo {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: AssoloConfig, probing: Probing) -> Self {
        let range = config.low_bps.zip(config.high_bps);
        Self {
            follows: range.is_none(),
            config,
            probing,
            window: ChirpWindow::default(),
            range,
            since: 0,
            recent: Vec::new(),
            filtered: Vec::new(),
            smoothed: None,
            sent: 0,
            tries: 0,
            gave_up: None,
        }
    }

    fn payload(&self) -> u32 {
        self.config.packet_bytes.saturating_sub(HEADERS).clamp(32, self.probing.most_payload)
    }

    fn rule(&self) -> Excursions {
        Excursions { decrease_factor: self.config.decrease_factor, busy_length: self.config.busy_length as usize }
    }

    /// Sets a range that is followed by the last estimates: around their median, 0.6 of it to either side.
    fn follow(&mut self) {
        self.since += 1;
        if self.since < STEP {
            return;
        }
        let Some((low, high)) = self.range else { return };
        let Some(found) = median(&self.recent) else { return };
        self.since = 0;
        self.recent.clear();
        let width = high - low;
        let place = (found - low) / width;
        // A range that has the answer in its middle half and is as wide as that stays, so that chirps can be
        // compared.
        if (0.25..=0.75).contains(&place) && width < 2.5 * found {
            return;
        }
        let middle = found.min(self.probing.most_rate_bps / 1.5);
        // Near an end the answer may be beyond it; otherwise the range narrows to 0.6 of the estimate on either side.
        let wide = !(0.15..=0.85).contains(&place);
        self.range = Some(if wide { (middle / 3.0, middle * 5.0 / 3.0) } else { (0.4 * middle, 1.6 * middle) });
        self.filtered.clear();
        self.window.estimates.clear();
        self.smoothed = None;
    }
}

impl Estimator for Assolo {
    fn next(&mut self) -> Step {
        if self.gave_up.is_some() || self.sent >= self.config.chirps {
            return Step::Done;
        }
        let Some((low, high)) = self.range else {
            self.tries += 1;
            return Step::Send { plan: Plan::even(FIRST_PACKETS, self.probing.most_payload, 0.0), idle_ns: 50e6 };
        };
        self.sent += 1;
        let rates = reflected_rates(low, high.min(self.probing.most_rate_bps), self.config.error, self.config.spread);
        let plan = chirp(&rates, self.config.hold, self.payload(), &self.probing);
        let load = if self.follows { self.config.load_bps.max(low / 10.0) } else { self.config.load_bps };
        let idle_ns = silence_ns(&plan, load, &self.probing);
        Step::Send { plan, idle_ns }
    }

    fn hear(&mut self, train: &Train) {
        if self.range.is_none() {
            match dispersion_rate(train, self.probing.framing) {
                Some(rate) => self.range = Some((rate / 20.0, rate.min(self.probing.most_rate_bps))),
                None if self.tries >= 5 => {
                    self.gave_up = Some("no train of packets sent at once came through".to_owned());
                }
                None => {}
            }
            return;
        }
        let rule = self.rule();
        let length = self.config.smoothing as usize;
        let Some(found) = self.window.hear(train, rule, self.config.batch_ns, length, &self.probing) else { return };
        let raw = self.window.latest(self.config.mean_signature).unwrap_or(found);
        self.filtered.push(raw);
        let more = self.filtered.len().saturating_sub(length);
        self.filtered.drain(..more);
        let gain = filter_gain(&self.filtered);
        // The first estimates of a range are of few chirps: they are not to be remembered.
        let begun = self.smoothed.filter(|_| self.filtered.len() > STEP as usize);
        self.smoothed = Some(begun.map_or(raw, |old| old + gain * (raw - old)));
        if self.follows {
            self.recent.push(raw);
            self.follow();
        }
    }

    fn finding(&self) -> Finding {
        let found = self.window.found(self.config.mean_signature);
        let full = self.window.estimates.len() >= self.config.smoothing as usize;
        let mean = found.map(|(mean, _)| mean);
        let estimate = if self.config.filter { self.smoothed.or(mean) } else { mean };
        let error = found.map(|(_, error)| error).filter(|error| error.is_finite());
        let too_few = || {
            format!("only {} of the last {} chirps could be used", self.window.estimates.len(), self.config.smoothing)
        };
        Finding {
            estimate_bps: estimate,
            low_bps: estimate.zip(error).map(|(middle, error)| (middle - 1.96 * error).max(0.0)),
            high_bps: estimate.zip(error).map(|(middle, error)| middle + 1.96 * error),
            confidence: error.map(|_| 0.95),
            gave_up: self.gave_up.clone().or_else(|| (!full && self.sent >= self.config.chirps).then(too_few)),
            notes: self.window.notes(),
            ..Finding::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_range_gives_17_gaps_that_are_mirrored_around_its_middle() {
        let rates = reflected_rates(10e6, 200e6, 0.05, 1.2);
        assert_eq!(rates.len(), 17);
        assert!((rates[8] - 105e6).abs() < 1.0 && (rates[9] - rates[8] - 4.75e6).abs() < 1.0);
        assert!(rates.iter().zip(rates.iter().rev()).all(|(up, down)| (up + down - 210e6).abs() < 1.0));
    }

    #[test]
    fn the_filter_follows_a_trend_and_smooths_noise() {
        assert!((filter_gain(&[1.0, 2.0, 3.0, 4.0]) - 1.0 / 3.0).abs() < 1e-12);
        assert!((filter_gain(&[1.0, 2.0, 1.0, 2.0, 1.0]) - 1.0 / 12.0).abs() < 1e-12);
        assert_eq!(filter_gain(&[5.0, 5.0]), 0.5);
    }
}
