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
//! (Self-loading methods compare rates with `A`; methods of gaps need `C`; this needs neither.) Where a packet came
//! after all before it had left, the link may have been idle in between, and at most that long: so each train bounds
//! what was available from both sides, whatever the cross traffic is. Where the bounds are far apart, trains begin with
//! a longer queue; where that does not help, because traffic comes in bursts and silences, short trains at the link's
//! own rate are sent, which leave no such doubt. Trains before are forgotten, so that the choice does not depend on
//! what single trains said. Trains are weighed by their time, short ones by the time to those beside them. The interval
//! is that of the ratio's own spread between trains (of runs of trains, where neighbours resemble each other), with
//! Student's t, and less by what the trains covered of the window.
//!
//! Where trains show that cross traffic is random, [`looks`] says the rest: the shortest packets find how often the
//! path has no queue, for a tenth of the data. Trains are then what they are compared with, because only trains are
//! right where several links are loaded.
//!
//! A prior - from port counters, where a controller is there to ask - replaces the search for the rate and is weighed
//! in by its own variance, which is larger over a window that is shorter than a polling period. All rates are those of
//! the stamps at which packets really left. A train in which the
//! sender lost its processor counts up to there; where arrivals come in batches only the ends of batches count.
//!
//! All that holds of one loaded link, the narrow one. [`super::other_links`] has the signs that there are others:
//! trains are then longer, or slower ones look for the rate from which delays rise, or the interval is wider and says
//! why.

mod config;
mod doubt;
mod finding;
mod looks;
mod prior;
mod ratio;
mod sample;
mod trains;

pub use config::HybridConfig;

use super::estimator::{dispersion_rate, mean_and_error, Estimator, Finding, Probing, Step};
use super::other_links::{Checks, Firsts};
use super::train::{Plan, Train};
use super::turning_point::mode;
use crate::schedule::random::Stream;
use looks::{Looks, State};
use ratio::Ratio;
use sample::Sample;
use trains::{MORE_FAST, MOST_SEARCH, SHORTER};

/// Packets of the trains that tell where to begin, and how many of them.
const FIRST_PACKETS: usize = 15;
const FIRST_TRAINS: u32 = 3;

/// The estimator.
pub struct Hybrid {
    config: HybridConfig,
    probing: Probing,
    random: Stream,
    at_once: Vec<f64>,
    dispersion: Option<f64>,
    first_rates: Vec<f64>,
    first_lost: u32,
    firsts: Firsts,
    checks: Checks,
    looks: Looks,
    /// Trains are precise: what is left is to doubt them.
    precise: bool,
    /// Several links seem to be loaded, and trains are longer for that.
    several: bool,
    /// What trains had found before that, and until when, in case there is no time for others.
    before: Option<(Ratio, i64)>,
    guess: f64,
    samples: Vec<Sample>,
    /// The least delay of all trains: sending clock against receiving clock, in nanoseconds.
    base_ns: Option<f64>,
    searched: u32,
    /// The rate of trains as a multiple of the estimate.
    overload: f64,
    /// Packets sent at once before each train.
    burst: u32,
    /// At how many samples the precision was looked at.
    looked: usize,
    forgotten: u32,
    sent: u32,
    unused: u32,
    interrupted: u32,
    batched: u32,
    begun_ns: Option<i64>,
    /// The time when the first train that counts was sent.
    counted_ns: Option<i64>,
    /// The time when the last one was.
    until_ns: i64,
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
            first_rates: Vec::new(),
            first_lost: 0,
            firsts: Firsts::default(),
            checks: Checks::default(),
            looks: Looks::default(),
            precise: false,
            several: false,
            before: None,
            guess,
            samples: Vec::new(),
            base_ns: None,
            searched: 0,
            overload: config.overload,
            burst: config.burst,
            looked: 0,
            config,
            forgotten: 0,
            sent: 0,
            unused: 0,
            interrupted: 0,
            batched: 0,
            begun_ns: None,
            counted_ns: None,
            until_ns: 0,
            ended_ns: 0,
            done: false,
            gave_up: None,
        }
    }

    /// The capacity of the narrow link by the gaps of packets sent at once.
    fn narrow(&self) -> Option<f64> {
        let bits = self.probing.framing.bits(self.probing.most_payload);
        mode(&self.at_once).filter(|gap| *gap > 0.0).map(|gap| bits * 1e9 / gap)
    }

    /// The capacity: told, or that of the narrow link.
    fn capacity(&self) -> Option<f64> {
        if self.is_not_narrow() {
            return self.narrow();
        }
        self.config.capacity_bps.or_else(|| self.narrow())
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
        self.first_rates.push(rate);
        self.dispersion = mean_and_error(&self.first_rates).map(|(mean, _)| mean);
        if self.first_rates.len() >= FIRST_TRAINS as usize && self.guess == 0.0 {
            self.guess = 0.8 * self.dispersion.unwrap_or(rate);
        }
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
                let base = self.base_ns.unwrap_or(0.0);
                let emptied = sample.idle_ns(base) > 0.1 * sample.time_ns;
                let far = !(0.5..=1.1).contains(&(found / sample.rate)) || emptied;
                if searching && far {
                    // Far from the rate the capacity weighs too much; and without a queue more may be available.
                    self.searched += 1;
                    let least = 0.02 * self.dispersion.unwrap_or(self.guess);
                    self.guess =
                        if emptied { 1.3 * self.guess.max(found) } else { found.max(least).max(0.3 * self.guess) };
                } else {
                    self.samples.push(sample);
                    self.counted_ns = self.counted_ns.or(train.sent_ns.first().copied());
                    self.until_ns = train.sent_ns.last().copied().unwrap_or(self.until_ns);
                    self.guess = self.ratio().map_or(found, |ratio| ratio.available).max(0.3 * self.guess).max(1.0);
                    self.raise(capacity);
                }
            }
            None => self.unused += 1,
        }
        self.guess = self.guess.min(capacity).min(self.probing.most_rate_bps);
    }
}

impl Estimator for Hybrid {
    fn next(&mut self) -> Step {
        if self.done || self.sent >= MORE_FAST * SHORTER * self.config.trains {
            self.done = true;
            return Step::Done;
        }
        let first = self.first_rates.len() < FIRST_TRAINS as usize;
        if !first && self.config.prior_bps.is_some() && self.is_not_narrow() {
            // Trains keep the narrow link busy, which is not the one to ask for.
            self.done = true;
            return Step::Done;
        }
        if self.looks.state == State::Done {
            self.done = true;
            return Step::Done;
        }
        if !first && self.wants_looks() {
            return self.look();
        }
        self.precise = self.precise || self.is_precise();
        if self.precise {
            if let Some(step) = self.doubt() {
                return step;
            }
            self.done = self.precise;
            if self.done {
                return Step::Done;
            }
        }
        if first {
            return Step::Send { plan: Plan::even(FIRST_PACKETS, self.probing.most_payload, 0.0), idle_ns: 30e6 };
        }
        self.next_train()
    }

    fn hear(&mut self, train: &Train) {
        if Looks::are(train) {
            self.hear_looks(train);
            return;
        }
        self.firsts.hear(train);
        if train.plan.duration_ns() == 0 {
            self.hear_first(train);
        } else if self.checks.is_check(train) {
            self.hear_check(train);
        } else {
            self.hear_train(train);
        }
    }

    fn finding(&self) -> Finding {
        self.found()
    }
}
