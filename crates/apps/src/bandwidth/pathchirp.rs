//! pathChirp: chirps of exponentially rising rate; the paper is named in [`super::excursions`].
//!
//! Differences: rates are those at which the chirps were sent; a chirp whose sender lost its processor is not used.

use super::chirp::{chirp, payload, rising_rates, silence_ns, ChirpWindow};
use super::estimator::{Estimator, Finding, Probing, Step};
use super::excursions::Excursions;
use super::train::Train;
use crate::check::{check_range, ConfigError};

settings! {
    /// The settings; [`PathchirpConfig::published`] has the published values.
    pub struct PathchirpConfig;

    /// Bytes of each packet, the headers of IP included.
    packet_bytes: u32 [60, 8200] = 1000,
    /// The lowest rate of a chirp.
    low_bps: f64 [1e3, 1e11] = 10e6,
    /// The highest.
    high_bps: f64 [1e3, 1e11] = 200e6,
    /// `true` if the range follows the estimates.
    auto_range: bool = true,
    /// The ratio of one rate to the one before.
    spread: f64 [1.01, 3.0] = 1.2,
    /// Packets that are sent at each rate (published: 1, and up to 20 for jumbo packets). One packet of cross traffic
    /// then is less than a step.
    hold: u32 [1, 20] = 5,
    /// Mean load of the probes, in bit/s.
    load_bps: f64 [1e3, 1e10] = 300e3,
    /// Chirps over which estimates are averaged.
    smoothing: u32 [1, 1000] = 11,
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
    chirps: u32 [1, 10_000] = 44,
}

impl PathchirpConfig {
    /// As Ribeiro and others published it (PAM 2003), with the range of their tool.
    #[must_use]
    pub fn published() -> Self {
        Self { hold: 1, mean_signature: false, ..Self::default() }
    }

    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        self.check_ranges(kind)?;
        check_range(kind, "high_bps", self.high_bps, self.low_bps, 1e11)
    }
}

/// Estimates in a row near an end of the range that move it.
const PATIENCE: u32 = 3;
/// By how much the range moves.
const STRIDE: f64 = 7.0;

/// The estimator.
pub struct Pathchirp {
    config: PathchirpConfig,
    probing: Probing,
    window: ChirpWindow,
    low: f64,
    high: f64,
    below: u32,
    above: u32,
    sent: u32,
}

impl Pathchirp {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: PathchirpConfig, probing: Probing) -> Self {
        let high = config.high_bps.min(probing.most_rate_bps);
        // Where the highest rate may not be sent, the lowest moves down with it.
        let low = config.low_bps.min(high * config.low_bps / config.high_bps);
        Self { config, probing, window: ChirpWindow::default(), low, high, below: 0, above: 0, sent: 0 }
    }

    /// Moves the range when estimates stay near one of its ends.
    fn follow(&mut self, found: f64) {
        self.below = if found < 1.5 * self.low { self.below + 1 } else { 0 };
        self.above = if found > 0.66 * self.high { self.above + 1 } else { 0 };
        let (low, high) = (self.low, self.high);
        if self.below >= PATIENCE {
            (self.low, self.high) = (low / STRIDE, low * STRIDE);
        } else if self.above >= PATIENCE && high < self.probing.most_rate_bps {
            (self.low, self.high) = (high / STRIDE, high * STRIDE);
        } else {
            return;
        }
        self.high = self.high.min(self.probing.most_rate_bps);
        (self.below, self.above) = (0, 0);
        self.window.estimates.clear();
    }
}

impl Estimator for Pathchirp {
    fn next(&mut self) -> Step {
        if self.sent >= self.config.chirps {
            return Step::Done;
        }
        self.sent += 1;
        let high = self.high.min(self.probing.most_rate_bps);
        let plan = chirp(
            &rising_rates(self.low.min(high), high, self.config.spread),
            self.config.hold,
            payload(self.config.packet_bytes, &self.probing),
            &self.probing,
        );
        // With a range that moves, so does the load: between a tenth and a fifth of the lowest rate.
        let load = if self.config.auto_range {
            self.config.load_bps.clamp(self.low / 10.0, self.low / 5.0)
        } else {
            self.config.load_bps
        };
        let idle_ns = silence_ns(&plan, load, &self.probing);
        Step::Send { plan, idle_ns }
    }

    fn hear(&mut self, train: &Train) {
        let rule = Excursions::new(self.config.decrease_factor, self.config.busy_length);
        let length = self.config.smoothing as usize;
        let found = self.window.hear(train, rule, self.config.batch_ns, length, &self.probing);
        if let Some(found) = found.filter(|_| self.config.auto_range) {
            self.follow(found);
        }
    }

    fn finding(&self) -> Finding {
        let found = self.window.found(self.config.mean_signature);
        let full = self.window.estimates.len() >= self.config.smoothing as usize;
        let half = found.map(|(_, error)| 1.96 * error).filter(|half| half.is_finite());
        Finding {
            gave_up: (!full && self.sent >= self.config.chirps).then(|| {
                format!(
                    "only {} chirps of the last {} could be used",
                    self.window.estimates.len(),
                    self.config.smoothing
                )
            }),
            notes: self.window.notes(),
            ..Finding::around(found.map(|(mean, _)| mean), half)
        }
    }
}
