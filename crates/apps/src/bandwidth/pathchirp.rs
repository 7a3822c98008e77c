//! pathChirp: chirps of exponentially rising rate; the paper is named in [`super::excursions`].
//!
//! Differences: rates are those at which the chirps were sent; a chirp whose sender lost its processor is not used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chirp::{chirp, rising_rates, silence_ns, ChirpWindow};
use super::estimator::{Estimator, Finding, Probing, Step};
use super::excursions::Excursions;
use super::train::Train;
use crate::check::{check_range, ConfigError};

/// The settings; [`PathchirpConfig::published`] has the published values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathchirpConfig {
    /// Bytes of each packet, the headers of IP included.
    #[schemars(range(min = 60, max = 8200))]
    pub packet_bytes: u32,
    /// The lowest rate of a chirp.
    #[schemars(range(min = 1e3, max = 1e11))]
    pub low_bps: f64,
    /// The highest.
    #[schemars(range(min = 1e3, max = 1e11))]
    pub high_bps: f64,
    /// `true` if the range follows the estimates.
    pub auto_range: bool,
    /// The ratio of one rate to the one before.
    #[schemars(range(min = 1.01, max = 3.0))]
    pub spread: f64,
    /// Packets that are sent at each rate (published: 1, and up to 20 for jumbo packets). One packet of cross traffic
    /// then is less than a step.
    #[schemars(range(min = 1, max = 20))]
    pub hold: u32,
    /// Mean load of the probes, in bit/s.
    #[schemars(range(min = 1e3, max = 1e10))]
    pub load_bps: f64,
    /// Chirps over which estimates are averaged.
    #[schemars(range(min = 1, max = 1000))]
    pub smoothing: u32,
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

impl PathchirpConfig {
    /// As Ribeiro and others published it (PAM 2003), with the range of their tool.
    #[must_use]
    pub fn published() -> Self {
        Self { hold: 1, mean_signature: false, ..Self::default() }
    }
}

impl Default for PathchirpConfig {
    fn default() -> Self {
        Self {
            packet_bytes: 1000,
            low_bps: 10e6,
            high_bps: 200e6,
            auto_range: true,
            spread: 1.2,
            hold: 5,
            load_bps: 300e3,
            smoothing: 11,
            decrease_factor: 1.5,
            busy_length: 5,
            mean_signature: true,
            batch_ns: 10_000.0,
            chirps: 44,
        }
    }
}

impl PathchirpConfig {
    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        check_range(kind, "packet_bytes", self.packet_bytes, 60, 8200)?;
        check_range(kind, "low_bps", self.low_bps, 1e3, 1e11)?;
        check_range(kind, "high_bps", self.high_bps, self.low_bps, 1e11)?;
        check_range(kind, "spread", self.spread, 1.01, 3.0)?;
        check_range(kind, "hold", self.hold, 1, 20)?;
        check_range(kind, "load_bps", self.load_bps, 1e3, 1e10)?;
        check_range(kind, "smoothing", self.smoothing, 1, 1000)?;
        check_range(kind, "decrease_factor", self.decrease_factor, 1.0, 100.0)?;
        check_range(kind, "busy_length", self.busy_length, 1, 200)?;
        check_range(kind, "batch_ns", self.batch_ns, 0.0, 1e6)?;
        check_range(kind, "chirps", self.chirps, 1, 10_000)
    }
}

/// Estimates in a row near an end of the range that move it.
const PATIENCE: u32 = 3;
/// By how much the range moves.
const STRIDE: f64 = 7.0;
/// The payload of a packet is this much shorter than the packet.
const HEADERS: u32 = 28;

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

    fn payload(&self) -> u32 {
        self.config.packet_bytes.saturating_sub(HEADERS).clamp(32, self.probing.most_payload)
    }

    fn rule(&self) -> Excursions {
        Excursions { decrease_factor: self.config.decrease_factor, busy_length: self.config.busy_length as usize }
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
            self.payload(),
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
        let rule = self.rule();
        let length = self.config.smoothing as usize;
        let found = self.window.hear(train, rule, self.config.batch_ns, length, &self.probing);
        if let Some(found) = found.filter(|_| self.config.auto_range) {
            self.follow(found);
        }
    }

    fn finding(&self) -> Finding {
        let found = self.window.found(self.config.mean_signature);
        let full = self.window.estimates.len() >= self.config.smoothing as usize;
        let ends = found.filter(|(_, error)| error.is_finite());
        Finding {
            estimate_bps: found.map(|(mean, _)| mean),
            low_bps: ends.map(|(mean, error)| (mean - 1.96 * error).max(0.0)),
            high_bps: ends.map(|(mean, error)| mean + 1.96 * error),
            confidence: ends.map(|_| 0.95),
            gave_up: (!full && self.sent >= self.config.chirps).then(|| {
                format!(
                    "only {} chirps of the last {} could be used",
                    self.window.estimates.len(),
                    self.config.smoothing
                )
            }),
            notes: self.window.notes(),
            ..Finding::default()
        }
    }
}
