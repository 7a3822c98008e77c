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

use super::chirp::{chirp, payload, silence_ns, ChirpWindow};
use super::estimator::{dispersion_rate, median, Estimator, Finding, Probing, Step};
use super::excursions::Excursions;
use super::train::{Plan, Train};
use crate::check::{check_range, ConfigError};

settings! {
    /// The settings, with the published values as defaults where nothing else is said.
    pub struct AssoloConfig;

    /// Bytes of each packet, the headers of IP included.
    packet_bytes: u32 [60, 8200] = 1000,
    /// The lowest rate of a chirp; null with `high_bps` for a range that is found and followed (published: 10
    /// Mbit/s).
    #[serde(skip_serializing_if = "Option::is_none")]
    low_bps: Option<f64> [1e3, 1e11] = None,
    /// The highest (published: 200 Mbit/s).
    #[serde(skip_serializing_if = "Option::is_none")]
    high_bps: Option<f64> [1e3, 1e11] = None,
    /// The finest step as a share of half of the range.
    error: f64 [0.02, 0.1] = 0.05,
    /// The ratio of one step to the one nearer to the middle.
    spread: f64 [1.01, 3.0] = 1.2,
    /// Packets that are sent at each rate (published: 1, and up to 20 for jumbo packets). One packet of cross traffic
    /// then is less than a step.
    hold: u32 [1, 20] = 5,
    /// Mean load of the probes in bit/s, where the range is given; a tenth of the lowest rate otherwise, if that is
    /// more.
    load_bps: f64 [1e3, 1e10] = 300e3,
    /// Chirps over which estimates are smoothed.
    smoothing: u32 [2, 1000] = 11,
    /// `true` for the vertical horizontal filter, `false` for a sliding mean.
    filter: bool = true,
    /// An excursion ends when the delay has fallen to its greatest rise over this.
    decrease_factor: f64 [1.0, 100.0] = 1.5,
    /// Excursions of fewer packets do not count.
    busy_length: u32 [1, 200] = 5,
    /// `true` if the bend of the mean of the last chirps' delays counts, instead of the mean of the estimates of single
    /// chirps (published).
    mean_signature: bool = true,
    /// Arrivals closer than this may be a batch, in nanoseconds.
    batch_ns: f64 [0.0, 1e6] = 10_000.0,
    /// Chirps to send.
    chirps: u32 [1, 10_000] = 40,
}

impl AssoloConfig {
    /// As Goldoni, Rossi and Torelli published it (ICIMP 2009), with the range of their tool.
    #[must_use]
    pub fn published() -> Self {
        Self { low_bps: Some(10e6), high_bps: Some(200e6), hold: 1, mean_signature: false, ..Self::default() }
    }

    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        self.check_ranges(kind)?;
        if self.low_bps.is_some() != self.high_bps.is_some() {
            return Err(ConfigError::OneOf {
                kind,
                fields: "a range (low_bps and high_bps), no range".to_owned(),
                given: "half of one was".to_owned(),
            });
        }
        check_range(kind, "high_bps", self.high_bps.unwrap_or(1e11), self.low_bps.unwrap_or(1e3), 1e11)
    }
}

/// Packets of the train that tells where to begin.
const FIRST_PACKETS: usize = 20;
/// Chirps after which a range that is followed is set anew.
const STEP: u32 = 5;

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
        let plan = chirp(&rates, self.config.hold, payload(self.config.packet_bytes, &self.probing), &self.probing);
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
        let rule = Excursions::new(self.config.decrease_factor, self.config.busy_length);
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
        let half = found.map(|(_, error)| 1.96 * error).filter(|half| half.is_finite());
        let too_few = || {
            format!("only {} of the last {} chirps could be used", self.window.estimates.len(), self.config.smoothing)
        };
        Finding {
            gave_up: self.gave_up.clone().or_else(|| (!full && self.sent >= self.config.chirps).then(too_few)),
            notes: self.window.notes(),
            ..Finding::around(estimate, half)
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
