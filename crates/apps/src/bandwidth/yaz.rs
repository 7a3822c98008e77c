//! Yaz: a stream whose mean spacing the path leaves as it was is at the available bandwidth.
//!
//! Sommers, Barford, Willinger, *A proposed framework for calibration of available bandwidth estimation tools*, ISCC
//! 2006 (University of Wisconsin-Madison, TR 1546, 2005). Spacing starts short and grows by half of what the path
//! changed it by.
//!
//! Differences: spacings are measured in nanoseconds as fractions and never rounded, and the first spacing is that of
//! the highest rate that may be sent, so that the rates of the method have no ceiling of its own. The resolution is
//! the published 500 kbit/s or a share of the rate, whichever is finer: at a few Mbit/s the published one is a third
//! of what is measured. The path's noise moves the spacing to either side of its target, so the rate that is told is
//! the one at which the streams of a round cross from expansion to none, interpolated between the last two spacings.

use super::estimator::{mean_and_error, Estimator, Finding, Probing, Step};
use super::train::{Plan, Train};
use crate::schedule::random::Stream;

settings! {
    /// The settings, with the published values as defaults where nothing else is said.
    pub struct YazConfig;

    /// Packets of a stream.
    packets: u32 [20, 1000] = 50,
    /// Streams of a round (published: 1).
    streams: u32 [1, 100] = 1,
    /// The resolution in bit/s.
    resolution_bps: f64 [1e3, 1e9] = 500e3,
    /// The resolution as a share of the rate, where that is finer (not published).
    relative_resolution: f64 [0.001, 1.0] = 0.02,
    /// The first gap in nanoseconds; null for that of the highest rate that may be sent (published: 40 us).
    #[serde(skip_serializing_if = "Option::is_none")]
    first_gap_ns: Option<f64> [1.0, 1e9] = None,
    /// The longest gap in nanoseconds (published: 1 ms, with packets halved from there on).
    most_gap_ns: f64 [1e4, 1e9] = 1e6,
    /// Mean silence between streams, in nanoseconds.
    stream_idle_ns: f64 [1e5, 1e10] = 50e6,
    /// Mean silence between estimates, in nanoseconds.
    estimate_idle_ns: f64 [1e5, 1e11] = 500e6,
    /// Estimates to make.
    estimates: u32 [1, 1000] = 10,
    /// Rounds of one estimate at most.
    rounds: u32 [5, 10_000] = 200,
}

impl YazConfig {
    /// As Sommers, Barford and Willinger published it (University of Wisconsin, TR 1546, 2005).
    #[must_use]
    pub fn published() -> Self {
        Self { relative_resolution: 1.0, first_gap_ns: Some(40_000.0), ..Self::default() }
    }
}

/// Packets are halved down to this.
const LEAST_PAYLOAD: u32 = 200;
/// The least change of a spacing that means anything: 1 us in the published tool, whose clock could not tell less.
const LEAST_TOLERANCE_NS: f64 = 1.0;

/// The estimator.
pub struct Yaz {
    config: YazConfig,
    probing: Probing,
    random: Stream,
    payload: u32,
    gap_ns: f64,
    /// Mean spacings of this round's streams: sent, and received less sent.
    round: Vec<(f64, f64)>,
    /// The round before of this estimate: rate, and relative expansion.
    before: Option<(f64, f64)>,
    rounds: u32,
    pause: bool,
    estimates: Vec<f64>,
    invalid: u32,
    interrupted: u32,
    gave_up: Option<String>,
}

impl Yaz {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: YazConfig, probing: Probing) -> Self {
        let mut yaz = Self {
            random: Stream::new(probing.seed),
            config,
            probing,
            payload: 0,
            gap_ns: 0.0,
            round: Vec::new(),
            before: None,
            rounds: 0,
            pause: false,
            estimates: Vec::new(),
            invalid: 0,
            interrupted: 0,
            gave_up: None,
        };
        yaz.begin();
        yaz
    }

    /// A new estimate: from the highest rate on, or from well above the last one.
    fn begin(&mut self) {
        self.payload = self.probing.most_payload;
        let first = self.config.first_gap_ns.unwrap_or(0.0);
        let floor = self.probing.framing.gap_ns(self.payload, self.probing.most_rate_bps);
        self.gap_ns = first.max(floor);
        self.before = None;
        self.rounds = 0;
    }

    fn rate(&self, gap_ns: f64) -> f64 {
        self.probing.framing.bits(self.payload) * 1e9 / gap_ns
    }

    /// Mean spacing as sent and its change by the path; `None` when too little of the stream can be used.
    fn spacing(&mut self, train: &Train) -> Option<(f64, f64)> {
        if train.reordered() || train.clock_stepped {
            return None;
        }
        let interruptions = train.interruptions();
        self.interrupted += interruptions.len() as u32;
        let places = train.arrived();
        let (mut sent, mut received, mut count) = (0.0, 0.0, 0_usize);
        for pair in places.windows(2) {
            // A gap that spans a loss is kept, one in which the sender lost its processor is not.
            if interruptions.iter().any(|place| *place > pair[0] && *place <= pair[1]) {
                continue;
            }
            sent += (train.sent_ns[pair[1]] - train.sent_ns[pair[0]]) as f64;
            received += (train.arrived_ns[pair[1]]? - train.arrived_ns[pair[0]]?) as f64;
            count += pair[1] - pair[0];
        }
        (count * 2 >= train.plan.packets.len()).then(|| (sent / count as f64, (received - sent) / count as f64))
    }

    fn end_round(&mut self) {
        let count = self.round.len() as f64;
        let sent = self.round.iter().map(|(sent, _)| sent).sum::<f64>() / count;
        let change = self.round.iter().map(|(_, change)| change).sum::<f64>() / count;
        self.round.clear();
        self.rounds += 1;
        let rate = self.rate(sent);
        let resolution = self.config.resolution_bps.min(self.config.relative_resolution * rate);
        let tolerance = (self.rate(1.0) / (rate - resolution) - sent).max(LEAST_TOLERANCE_NS);
        if change.abs() <= tolerance {
            self.settle(rate, change / sent);
        } else if self.rounds >= self.config.rounds {
            self.gave_up = Some(format!("spacings had not settled after {} rounds", self.rounds));
        } else {
            self.before = Some((rate, change / sent));
            self.gap_ns = sent + change.abs() / 2.0;
            self.shorten();
        }
    }

    /// Above the longest gap packets become shorter instead.
    fn shorten(&mut self) {
        while self.gap_ns > self.config.most_gap_ns {
            let shorter = self.probing.framing.payload(self.probing.framing.bits(self.payload) / 2.0);
            if shorter < LEAST_PAYLOAD {
                break;
            }
            let rate = self.rate(self.gap_ns);
            self.payload = shorter;
            self.gap_ns = self.probing.framing.gap_ns(shorter, rate);
        }
    }

    /// The line through the last two rounds meets no expansion here: expansion is (rate - available) / capacity.
    fn settle(&mut self, rate: f64, expansion: f64) {
        let crossing = self.before.and_then(|(before, was)| {
            let slope = (was - expansion) / (before - rate);
            (slope > 0.0).then(|| rate - expansion / slope).filter(|found| (0.5..=1.5).contains(&(found / rate)))
        });
        self.estimates.push(crossing.unwrap_or(rate));
        self.pause = true;
        self.begin();
    }
}

impl Estimator for Yaz {
    fn next(&mut self) -> Step {
        if self.gave_up.is_some() || self.estimates.len() >= self.config.estimates as usize {
            return Step::Done;
        }
        let mean =
            if std::mem::take(&mut self.pause) { self.config.estimate_idle_ns } else { self.config.stream_idle_ns };
        let idle_ns = -mean * self.random.uniform().ln();
        Step::Send { plan: Plan::even(self.config.packets as usize, self.payload, self.gap_ns), idle_ns }
    }

    fn hear(&mut self, train: &Train) {
        match self.spacing(train) {
            Some(found) => self.round.push(found),
            None => {
                self.invalid += 1;
                if self.invalid >= 50 + 2 * self.config.rounds {
                    self.gave_up = Some("too many streams were lost, reordered or interrupted".to_owned());
                }
            }
        }
        if self.round.len() >= self.config.streams as usize {
            self.end_round();
        }
    }

    fn finding(&self) -> Finding {
        let mut notes = Vec::new();
        if self.invalid > 0 {
            notes.push(format!("{} streams could not be used (lost, reordered or interrupted)", self.invalid));
        }
        if self.interrupted > 0 {
            notes.push(format!("{} gaps in which the sender lost its processor", self.interrupted));
        }
        let found = mean_and_error(&self.estimates);
        let half = found.map(|(_, error)| 1.96 * error).filter(|half| half.is_finite());
        Finding { gave_up: self.gave_up.clone(), notes, ..Finding::around(found.map(|(mean, _)| mean), half) }
    }
}
