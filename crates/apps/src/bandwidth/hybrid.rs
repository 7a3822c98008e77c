//! Our own: trains that keep the tight link busy at about the rate that is available, counted by bytes and time.
//!
//! A few packets sent at once make a queue at the tight link; the rest of the train follows at about the available
//! bandwidth, so that the queue neither grows much nor empties. While it does not empty, what left the link in a time
//! is its capacity times that time, whatever came first: with `b` bits of probes sent in a time `t` and received in a
//! time `r`, the cross traffic that came in `t` is `C r - b`, and what was available is
//!
//! ```text
//! A = C - (C r - b) / t = b / t - C (r / t - 1)
//! ```
//!
//! exactly, not on average, and the capacity `C` matters the less the nearer the rate `b / t` is to `A`.
//! (Self-loading methods compare rates with `A`; methods of gaps need `C`; this needs neither.) A train that found
//! the queue empty (a packet's delay is the path's least) says only that at least its rate was available; where more
//! than a tenth of the trains do, the rate is raised, up to the capacity, and trains sent more slowly are forgotten,
//! so that the choice does not depend on what single trains said. Trains are weighed by their time. The interval is
//! that of the ratio's own spread between trains, with Student's t, and less by what the trains covered of the
//! window.
//!
//! A prior - from port counters, where a controller is there to ask - replaces the search for the rate and is weighed
//! in by its own variance. All rates are those of the stamps at which packets really left. A train in which the
//! sender lost its processor counts up to there; where arrivals come in batches only the ends of batches count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimator::{dispersion_rate, Estimator, Finding, Probing, Step};
use super::student::quantile_975;
use super::train::{Plan, Train};
use super::turning_point::mode;
use crate::check::{check_range, ConfigError};
use crate::schedule::random::Stream;

/// The settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HybridConfig {
    /// Capacity of the tight link in bit/s, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e3, max = 1e12))]
    pub capacity_bps: Option<f64>,
    /// What counters say is available, in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub prior_bps: Option<f64>,
    /// The standard deviation of that; a tenth of it when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1e12))]
    pub prior_std_bps: Option<f64>,
    /// Packets that are sent at once before each train.
    #[schemars(range(min = 1, max = 100))]
    pub burst: u32,
    /// Packets of a train after them.
    #[schemars(range(min = 5, max = 900))]
    pub packets: u32,
    /// The rate of a train as a share of the estimate.
    #[schemars(range(min = 0.8, max = 2.0))]
    pub overload: f64,
    /// Mean silence between trains, in nanoseconds; at least three times a train.
    #[schemars(range(min = 1e4, max = 1e11))]
    pub idle_ns: f64,
    /// Trains at least.
    #[schemars(range(min = 3, max = 10_000))]
    pub least_trains: u32,
    /// Trains at most.
    #[schemars(range(min = 3, max = 10_000))]
    pub trains: u32,
    /// The standard error, as a share of the estimate, at which no more trains are sent.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub precision: f64,
}

impl Default for HybridConfig {
    fn default() -> Self {
        Self {
            capacity_bps: None,
            prior_bps: None,
            prior_std_bps: None,
            burst: 5,
            packets: 18,
            overload: 1.05,
            idle_ns: 50e6,
            least_trains: 6,
            trains: 200,
            precision: 0.02,
        }
    }
}

impl HybridConfig {
    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        check_range(kind, "capacity_bps", self.capacity_bps.unwrap_or(1e6), 1e3, 1e12)?;
        check_range(kind, "prior_bps", self.prior_bps.unwrap_or(1e6), 0.0, 1e12)?;
        check_range(kind, "prior_std_bps", self.prior_std_bps.unwrap_or(1e6), 1.0, 1e12)?;
        check_range(kind, "burst", self.burst, 1, 100)?;
        check_range(kind, "packets", self.packets, 5, 900)?;
        check_range(kind, "overload", self.overload, 0.8, 2.0)?;
        check_range(kind, "idle_ns", self.idle_ns, 1e4, 1e11)?;
        check_range(kind, "least_trains", self.least_trains, 3, 10_000)?;
        check_range(kind, "trains", self.trains, self.least_trains, 10_000)?;
        check_range(kind, "precision", self.precision, 0.0, 0.5)
    }
}

/// Packets of the trains that tell where to begin, and how many of them.
const FIRST_PACKETS: usize = 15;
const FIRST_TRAINS: u32 = 3;
/// A queue counts as empty when a packet waits less than this share of the time that a packet takes on the line.
const EMPTY: f64 = 0.1;
/// Of the interval's half: what two stamps of 1 us each leave of a train's time.
const STAMP_NS: f64 = 1_000.0;
/// Trains that only search for the rate are not counted, up to so many.
const MOST_SEARCH: u32 = 12;
/// So many times the least number of trains is needed where traffic comes in bursts longer than a train.
const MORE_FOR_BURSTS: u32 = 6;
/// Arrivals closer than this may be a batch.
const BATCH_NS: f64 = 10_000.0;

/// What one train says: the available bandwidth over a time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Whether the queue was empty meanwhile: then more may have been available.
    emptied: bool,
    rate: f64,
    strain: f64,
    time_ns: f64,
}

/// The estimator.
pub struct Hybrid {
    config: HybridConfig,
    probing: Probing,
    random: Stream,
    at_once: Vec<f64>,
    dispersion: Option<f64>,
    first_trains: u32,
    first_lost: u32,
    guess: f64,
    samples: Vec<Sample>,
    /// The least delay of all trains: sending clock against receiving clock, in nanoseconds.
    base_ns: Option<f64>,
    searched: u32,
    /// The rate of trains as a multiple of the estimate.
    overload: f64,
    forgotten: u32,
    sent: u32,
    unused: u32,
    interrupted: u32,
    batched: u32,
    begun_ns: Option<i64>,
    ended_ns: i64,
    done: bool,
    gave_up: Option<String>,
}

impl Hybrid {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: HybridConfig, probing: Probing) -> Self {
        let guess = config.prior_bps.unwrap_or(0.0);
        Self {
            random: Stream::new(probing.seed),
            probing,
            at_once: Vec::new(),
            dispersion: None,
            first_trains: 0,
            first_lost: 0,
            guess,
            samples: Vec::new(),
            base_ns: None,
            searched: 0,
            overload: config.overload,
            config,
            forgotten: 0,
            sent: 0,
            unused: 0,
            interrupted: 0,
            batched: 0,
            begun_ns: None,
            ended_ns: 0,
            done: false,
            gave_up: None,
        }
    }

    /// The capacity: told, or that of the narrow link by the gaps of packets sent at once.
    fn capacity(&self) -> Option<f64> {
        let bits = self.probing.framing.bits(self.probing.most_payload);
        let narrow = || mode(&self.at_once).filter(|gap| *gap > 0.0).map(|gap| bits * 1e9 / gap);
        self.config.capacity_bps.or_else(narrow)
    }

    fn hear_first(&mut self, train: &Train) {
        let Some(rate) = dispersion_rate(train, self.probing.framing) else {
            self.first_lost += 1;
            if self.first_lost >= 5 {
                self.gave_up = Some("no train of packets sent at once came through".to_owned());
                self.done = true;
            }
            return;
        };
        self.note_delays(train);
        let places = train.arrived();
        let gaps = places.windows(2).filter(|pair| pair[1] == pair[0] + 1);
        self.at_once
            .extend(gaps.filter_map(|pair| Some((train.arrived_ns[pair[1]]? - train.arrived_ns[pair[0]]?) as f64)));
        self.first_trains += 1;
        let before = self.dispersion.unwrap_or(rate);
        self.dispersion = Some(before + (rate - before) / f64::from(self.first_trains));
        if self.first_trains >= FIRST_TRAINS && self.guess == 0.0 {
            self.guess = 0.8 * self.dispersion.unwrap_or(rate);
        }
    }

    /// The delay's floor, and the window.
    fn note_delays(&mut self, train: &Train) {
        let stamps = train.sent_ns.iter().zip(&train.arrived_ns);
        let least = stamps.filter_map(|(sent, arrived)| arrived.map(|arrived| arrived - sent)).min();
        if let Some(least) = least.map(|least| least as f64) {
            self.base_ns = Some(self.base_ns.map_or(least, |base| base.min(least)));
        }
        self.begun_ns = self.begun_ns.or(train.sent_ns.first().copied());
        self.ended_ns = train.sent_ns.last().copied().unwrap_or(self.ended_ns);
    }

    /// The part of a train that counts: from the end of the burst to the packet before the queue was empty, the
    /// sender interrupted or a packet lost. `None` where nothing is left.
    fn sample(&mut self, train: &Train, capacity: f64) -> Option<Sample> {
        let framing = self.probing.framing;
        let base = self.base_ns?;
        let interruptions = train.interruptions();
        self.interrupted += interruptions.len() as u32;
        let batched = train.batched(BATCH_NS) > 0.2;
        self.batched += u32::from(batched);
        // The sender's own link spreads the burst, so the first stamp that means something is that of the packet
        // after it.
        let start = self.config.burst as usize;
        let empty = EMPTY * framing.gap_ns(self.probing.most_payload, capacity);
        let stop = interruptions.first().copied().unwrap_or(usize::MAX).min(train.plan.packets.len());
        let (mut end, mut emptied) = (None, false);
        for place in start..stop {
            let Some(arrived) = train.arrived_ns[place] else { break };
            let waited = (arrived - train.sent_ns[place]) as f64 - base;
            emptied |= waited <= empty;
            end = Some(place);
        }
        let (mut start, mut end) = (start, end?);
        if batched {
            (start, end) = batch_ends(train, start, end)?;
        }
        let sent = (train.sent_ns[end] - train.sent_ns[start]) as f64;
        let received = (train.arrived_ns[end]? - train.arrived_ns[start]?) as f64;
        if end <= start || sent <= 0.0 {
            return None;
        }
        let bits: f64 = train.plan.packets[start + 1..=end].iter().map(|packet| framing.bits(packet.payload)).sum();
        Some(Sample { emptied, rate: bits * 1e9 / sent, strain: received / sent - 1.0, time_ns: sent })
    }

    /// The ratio over all samples and its standard error; `None` below three of them.
    fn ratio(&self) -> Option<(f64, f64)> {
        let capacity = self.capacity()?;
        let available = |sample: &Sample| sample.rate - capacity * sample.strain;
        let time: f64 = self.samples.iter().map(|sample| sample.time_ns).sum();
        let count = self.samples.len() as f64;
        if count < 3.0 || time <= 0.0 {
            return None;
        }
        let ratio = self.samples.iter().map(|sample| available(sample) * sample.time_ns).sum::<f64>() / time;
        let squares: f64 =
            self.samples.iter().map(|sample| ((available(sample) - ratio) * sample.time_ns).powi(2)).sum();
        let window = self.begun_ns.map_or(0, |begun| self.ended_ns - begun) as f64;
        let unseen = if window > 0.0 { (1.0 - time / window).clamp(0.0, 1.0) } else { 1.0 };
        let spread = (count / (count - 1.0) * squares).sqrt() / time * unseen.sqrt();
        let stamps = capacity * STAMP_NS * count.sqrt() / time;
        Some((ratio, spread.hypot(stamps)))
    }

    fn hear_train(&mut self, train: &Train) {
        self.note_delays(train);
        if train.clock_stepped || train.reordered() {
            self.unused += 1;
            return;
        }
        let Some(capacity) = self.capacity().or(self.dispersion) else { return };
        let searching = self.searched < MOST_SEARCH && self.samples.is_empty();
        match self.sample(train, capacity) {
            Some(sample) => {
                let found = sample.rate - capacity * sample.strain;
                let far = !(0.5..=1.1).contains(&(found / sample.rate)) || sample.emptied;
                if searching && far {
                    // Far from the rate the capacity weighs too much; and without a queue more may be available.
                    self.searched += 1;
                    let least = 0.02 * self.dispersion.unwrap_or(self.guess);
                    self.guess = if sample.emptied {
                        1.3 * self.guess.max(found)
                    } else {
                        found.max(least).max(0.3 * self.guess)
                    };
                } else {
                    self.samples.push(sample);
                    self.guess = self.ratio().map_or(found, |(ratio, _)| ratio).max(0.3 * self.guess).max(1.0);
                    self.raise(capacity);
                }
            }
            None => self.unused += 1,
        }
        self.guess = self.guess.min(capacity).min(self.probing.most_rate_bps);
    }

    /// Sends faster, and forgets what was sent more slowly, when the queue is empty in more than a tenth of the
    /// trains.
    fn raise(&mut self, capacity: f64) {
        let emptied = self.samples.iter().filter(|sample| sample.emptied).count();
        let sent = self.guess * self.overload;
        if emptied < 2 || emptied * 10 <= self.samples.len() || sent >= 0.99 * capacity.min(self.probing.most_rate_bps)
        {
            return;
        }
        self.overload = (1.3 * self.overload).min(capacity / self.guess);
        self.forgotten += self.samples.len() as u32;
        self.samples.clear();
        self.searched = MOST_SEARCH;
    }

    fn is_precise(&self) -> bool {
        // Trains that had to be forgotten tell of bursts longer than a train: then a few that agree may be of one
        // burst.
        let bursts = if self.forgotten > 0 { MORE_FOR_BURSTS } else { 1 };
        self.samples.len() >= (self.config.least_trains * bursts) as usize
            && self.ratio().is_some_and(|(ratio, error)| error <= self.config.precision * ratio)
    }
}

/// The last packets of the first and the last batch between `start` and `end`: their arrivals are those of the wire.
fn batch_ends(train: &Train, start: usize, end: usize) -> Option<(usize, usize)> {
    let gap = |place: usize| Some((train.arrived_ns[place + 1]? - train.arrived_ns[place]?) as f64);
    let ends: Vec<usize> = (start..end).filter(|place| gap(*place).is_some_and(|gap| gap > BATCH_NS)).collect();
    Some((*ends.first()?, *ends.last()?)).filter(|(first, last)| first < last)
}

impl Estimator for Hybrid {
    fn next(&mut self) -> Step {
        if self.done || self.sent >= self.config.trains || self.is_precise() {
            self.done = true;
            return Step::Done;
        }
        let payload = self.probing.most_payload;
        let known = self.config.prior_bps.is_some() && self.config.capacity_bps.is_some();
        if self.first_trains < FIRST_TRAINS && !known {
            return Step::Send { plan: Plan::even(FIRST_PACKETS, payload, 0.0), idle_ns: 30e6 };
        }
        self.sent += 1;
        let most = self.capacity().unwrap_or(f64::INFINITY).min(self.probing.most_rate_bps).max(1_000.0);
        let rate = (self.guess * self.overload).clamp(1_000.0, most);
        let gap = self.probing.framing.gap_ns(payload, rate);
        let burst = self.config.burst as usize;
        let gaps = (1..burst + self.config.packets as usize).map(|place| if place < burst { 0.0 } else { gap });
        let plan = Plan::by_gaps(payload, gaps);
        let idle_ns = -self.config.idle_ns * self.random.uniform().ln() + 3.0 * plan.duration_ns() as f64;
        Step::Send { plan, idle_ns }
    }

    fn hear(&mut self, train: &Train) {
        let first = train.plan.duration_ns() == 0;
        if first {
            self.hear_first(train);
        } else {
            self.hear_train(train);
        }
    }

    fn finding(&self) -> Finding {
        let mut notes = Vec::new();
        for (number, what) in [
            (self.unused, "trains said nothing: they were lost, reordered or interrupted at once"),
            (self.forgotten, "trains were forgotten: they were too slow to keep the tight link busy"),
            (self.interrupted, "gaps in which the sender lost its processor"),
            (self.batched, "trains arrived in batches; only the ends of batches count"),
        ] {
            if number > 0 {
                notes.push(format!("{number} {what}"));
            }
        }
        let capacity = self.capacity();
        let Some((probed, error)) = self.ratio() else {
            let why = self.done.then(|| "fewer than three trains kept the tight link busy".to_owned());
            return Finding {
                gave_up: self.gave_up.clone().or(why),
                capacity_bps: capacity,
                notes,
                ..Finding::default()
            };
        };
        let half = quantile_975(self.samples.len() as f64 - 1.0) * error;
        let (mut estimate, mut half) = (probed.max(0.0), half);
        if let Some(prior) = self.config.prior_bps {
            let deviation = self.config.prior_std_bps.unwrap_or(0.1 * prior).max(1.0);
            let (ours, theirs) = ((half / 1.96).powi(-2), deviation.powi(-2));
            estimate = (probed * ours + prior * theirs) / (ours + theirs);
            half = 1.96 / (ours + theirs).sqrt();
        }
        Finding {
            estimate_bps: Some(estimate),
            low_bps: Some((estimate - half).max(0.0)),
            high_bps: Some(estimate + half),
            confidence: Some(0.95),
            capacity_bps: capacity,
            gave_up: self.gave_up.clone(),
            notes,
            ..Finding::default()
        }
    }
}
