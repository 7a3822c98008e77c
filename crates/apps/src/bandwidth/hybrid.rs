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
//! A prior - from port counters, where a controller is there to ask - replaces the search for the rate and is weighed
//! in by its own variance, which is larger over a window that is shorter than a polling period. All rates are those of
//! the stamps at which packets really left. A train in which the
//! sender lost its processor counts up to there; where arrivals come in batches only the ends of batches count.
//!
//! All that holds of one loaded link, the narrow one. [`super::other_links`] has the signs that there are others:
//! trains are then longer, or slower ones look for the rate from which delays rise, or the interval is wider and says
//! why.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimator::{dispersion_rate, mean_and_error, Estimator, Finding, Probing, Step};
use super::other_links::{Checks, Firsts};
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
    /// The available bandwidth by counters, in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub prior_bps: Option<f64>,
    /// The standard deviation of that; a tenth of it when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1e12))]
    pub prior_std_bps: Option<f64>,
    /// The time, in nanoseconds, over which what that is the deviation of was averaged: a polling period. Averages over
    /// less time vary by more, as the root of the ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1e14))]
    pub prior_window_ns: Option<f64>,
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
            prior_window_ns: None,
            burst: 5,
            packets: 18,
            overload: 1.05,
            idle_ns: 50e6,
            least_trains: 6,
            trains: 600,
            precision: 0.03,
        }
    }
}

impl HybridConfig {
    /// The estimate by counters with its standard deviation, in bit/s.
    pub(crate) fn prior(&self) -> Option<(f64, f64)> {
        let prior = self.prior_bps?;
        Some((prior, self.prior_std_bps.unwrap_or(0.1 * prior).max(1.0)))
    }

    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        check_range(kind, "capacity_bps", self.capacity_bps.unwrap_or(1e6), 1e3, 1e12)?;
        check_range(kind, "prior_bps", self.prior_bps.unwrap_or(1e6), 0.0, 1e12)?;
        check_range(kind, "prior_std_bps", self.prior_std_bps.unwrap_or(1e6), 1.0, 1e12)?;
        check_range(kind, "prior_window_ns", self.prior_window_ns.unwrap_or(1.0), 1.0, 1e14)?;
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
/// So many of them where cross traffic is random, to tell whether several links are loaded.
const RANDOM_FIRST_TRAINS: u32 = 12;
/// Where several links are loaded: packets sent at once, and after them.
const SEVERAL_BURST: u32 = 96;
const SEVERAL_PACKETS: u32 = 150;
/// A capacity that was told and is more than so many times the narrow link's is that of another link.
const NOT_NARROW: f64 = 1.1;
/// Packets of cross traffic that even trains meet differ by so little: the square.
const EVEN: f64 = 1.0;
/// The amount that idle times may add to the estimate at most, as a share of it, before trains are sent that leave less
/// of them.
const UNKNOWN: f64 = 0.04;
/// The same once so many trains were counted: to forget so many costs more than idle times of a little more leave.
const LATE: usize = 40;
const LATE_UNKNOWN: f64 = 0.12;
/// Packets sent at once at most where a longer queue is needed.
const MOST_BURST: u32 = 32;
/// Packets of a train at the link's own rate, of which the first are sent at once.
const FAST_BURST: u32 = 3;
const FAST_PACKETS: u32 = 9;
/// So many times as many of them are sent at most, for as many bytes where their packets are full.
const MORE_FAST: u32 = 4;
/// Their packets are so many times shorter than full ones, where they can still be sent so far apart: more short looks
/// at bursts and silences tell more than fewer long ones.
const SHORTER: u32 = 3;
const LEAST_FAST_GAP_NS: f64 = 20_000.0;
const LEAST_FAST_PAYLOAD: u32 = 200;
/// Of the averaging window: what the trains that count must span, where others were forgotten.
const SPAN: f64 = 0.7;
/// The prior knowledge of the spread between trains: so many trains' worth of it, and the variance of a whole
/// number of packets about a mean that is half way between two of them.
const KNOWN: f64 = 4.0;
const WHOLE: f64 = 0.25;
/// So many times the least number of trains is needed where they do not all meet about as many packets.
const MORE_IRREGULAR: usize = 6;
/// Runs of trains whose sums tell how much neighbours resemble each other.
const BATCHES: usize = 16;
/// Of the interval's half: what two stamps of 1 us each leave of a train's time.
const STAMP_NS: f64 = 1_000.0;
/// Packets sent at once arrive no slower than one link with the cross traffic that was found lets them: below so much
/// of that, several links seem to be loaded. Three short trains leave as much noise.
const ONE_LINK: f64 = 0.95;
/// Trains that only search for the rate are not counted, up to so many.
const MOST_SEARCH: u32 = 12;
/// Arrivals closer than this may be a batch.
const BATCH_NS: f64 = 10_000.0;

/// The sample of one train: the available bandwidth over a time.
#[derive(Clone, Debug)]
struct Sample {
    at_ns: i64,
    /// For each packet, how long after the one before it had left the link it could have begun to leave, less the
    /// path's least delay, in nanoseconds. Above zero with that delay, the link may have had nothing to send meanwhile.
    after_ns: Vec<f64>,
    rate: f64,
    strain: f64,
    time_ns: f64,
}

impl Sample {
    /// The longest that the link may have been idle, where the path's least delay is `base_ns`: that much
    /// more may have been available.
    fn idle_ns(&self, base_ns: f64) -> f64 {
        self.after_ns.iter().map(|after| (after + base_ns).max(0.0)).sum()
    }

    /// Returns what was available if the link was never idle.
    fn least(&self, capacity: f64) -> f64 {
        self.rate - capacity * self.strain
    }
}

/// The sum of what all samples say.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    available: f64,
    error: f64,
    /// Of Student's t.
    freedom: f64,
    /// The amount that the time in which the link may have been idle could add.
    unknown: f64,
    /// `true` if all trains met about as many packets of cross traffic, and met any.
    regular: bool,
    /// `true` if cross traffic is no more random than that of a few periodic senders.
    even: bool,
}

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
    /// Trains are precise: what is left is to doubt them.
    precise: bool,
    /// Several links seem to be loaded, and trains are longer for that.
    several: bool,
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
            precise: false,
            several: false,
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

    /// The prior and its standard deviation over the window of this estimate: of traffic that is not the same for long,
    /// averages over a shorter time vary by more, as the root of the ratio; and a whole number of packets passes in it.
    fn prior(&self) -> Option<(f64, f64)> {
        let (prior, deviation) = self.config.prior()?;
        let window = self.begun_ns.map_or(0, |begun| self.ended_ns - begun).max(1) as f64;
        let shorter = self.config.prior_window_ns.map_or(1.0, |over| (over / window).max(1.0));
        let packet = self.probing.framing.bits(self.probing.most_payload) * 1e9 / window;
        Some((prior, (deviation * shorter.sqrt()).hypot(packet)))
    }

    /// Returns `true` if the tight link, whose capacity was told, is not the narrow one.
    fn is_not_narrow(&self) -> bool {
        self.config.capacity_bps.zip(self.narrow()).is_some_and(|(told, narrow)| told > NOT_NARROW * narrow)
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
        let interruptions = train.interruptions();
        self.interrupted += interruptions.len() as u32;
        let batched = train.batched(BATCH_NS) > 0.2;
        self.batched += u32::from(batched);
        // The sender's own link spreads the burst, so the first stamp that means something is that of the packet
        // after it.
        let start = self.shape().0 as usize;
        let payload = train.plan.packets.first().map_or(self.probing.most_payload, |packet| packet.payload);
        let service = framing.gap_ns(payload, capacity);
        let stop = interruptions.first().copied().unwrap_or(usize::MAX).min(train.plan.packets.len());
        let (mut end, mut after_ns) = (None, Vec::new());
        for place in start..stop {
            let Some(arrived) = train.arrived_ns[place] else { break };
            if place > start {
                // What came before this packet had left when the packet before it arrived.
                let before = train.arrived_ns[place - 1].unwrap_or(arrived);
                after_ns.push((train.sent_ns[place] - before) as f64 - service);
            }
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
        Some(Sample {
            at_ns: train.sent_ns[start],
            after_ns,
            rate: bits * 1e9 / sent,
            strain: received / sent - 1.0,
            time_ns: sent,
        })
    }

    /// Returns the weight of each train, in nanoseconds: its time; or, where short trains look at traffic that comes in
    /// bursts, half of the time to the trains beside it, since the next train waits until the queue has let this one
    /// through, and so comes later in a burst than in a silence.
    fn weights_ns(&self) -> Vec<f64> {
        if self.overload.is_finite() {
            return self.samples.iter().map(|sample| sample.time_ns).collect();
        }
        let at = |place: usize| self.samples[place.min(self.samples.len() - 1)].at_ns;
        let around = |place: usize| {
            let both = if place == 0 || place + 1 == self.samples.len() { 1.0 } else { 0.5 };
            (at(place + 1) - at(place.saturating_sub(1))) as f64 * both
        };
        let around: Vec<f64> = (0..self.samples.len()).map(around).collect();
        let seen: f64 = self.samples.iter().map(|sample| sample.time_ns).sum();
        let scale = seen / around.iter().sum::<f64>().max(1.0);
        around.iter().map(|weight| weight * scale).collect()
    }

    /// The ratio over all samples; `None` below three of them.
    fn ratio(&self) -> Option<Ratio> {
        let capacity = self.capacity()?;
        let seen: f64 = self.samples.iter().map(|sample| sample.time_ns).sum();
        let count = self.samples.len() as f64;
        if count < 3.0 || seen <= 0.0 {
            return None;
        }
        let weights = self.weights_ns();
        let time: f64 = weights.iter().sum();
        let mean = |of: &dyn Fn(&Sample) -> f64| {
            self.samples.iter().zip(&weights).map(|(sample, weight)| of(sample) * weight).sum::<f64>() / time
        };
        let base = self.base_ns?;
        let least = mean(&|sample| sample.least(capacity));
        let unknown = capacity * mean(&|sample| sample.idle_ns(base) / sample.time_ns);
        // Of the time in which the link may have been idle it was so for the share that it is, or for half where that
        // is less: the queue was empty at its beginning.
        let share = ((least + unknown) / capacity).clamp(0.5, 1.0);
        let found = |sample: &Sample| sample.least(capacity) + share * capacity * sample.idle_ns(base) / sample.time_ns;
        let available = least + share * unknown;
        let deviations: Vec<f64> = self
            .samples
            .iter()
            .zip(&weights)
            .map(|(sample, weight)| (found(sample) - available) * weight / 1e9)
            .collect();
        // Trains that all meet the same number of packets do not tell how far it is from the mean number: what a
        // number between two whole ones leaves is known beforehand.
        let packet = self.probing.framing.bits(self.probing.most_payload);
        let met = ((capacity - available) * time / 1e9 / count / packet).clamp(0.0, 1.0);
        let squares: f64 = deviations.iter().map(|deviation| deviation.powi(2)).sum();
        let single = (count - 1.0 + KNOWN, (squares + KNOWN * WHOLE * met * packet.powi(2)) / (count - 1.0 + KNOWN));
        let spread_packets = squares / (count - 1.0) / packet.powi(2);
        let regular = self.overload.is_finite() && met > 0.5 && spread_packets < 2.0 * WHOLE;
        let even = self.overload.is_finite() && spread_packets < EVEN;
        let (freedom, square) = of_batches(&deviations).filter(|batches| batches.1 > single.1).unwrap_or(single);
        let window = self.begun_ns.map_or(0, |begun| self.ended_ns - begun) as f64;
        let unseen = if window > 0.0 { (1.0 - seen / window).clamp(0.0, 1.0) } else { 1.0 };
        let spread = (count * square * unseen).sqrt() * 1e9 / time;
        let stamps = capacity * STAMP_NS * count.sqrt() / seen;
        // The variance of that share is between that of an even spread and none.
        let error = spread.hypot(stamps).hypot(unknown * (share * (1.0 - share) / 3.0).sqrt());
        Some(Ratio { available, error, freedom, unknown, regular, even })
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
                    self.guess = self.ratio().map_or(found, |ratio| ratio.available).max(0.3 * self.guess).max(1.0);
                    self.raise(capacity);
                }
            }
            None => self.unused += 1,
        }
        self.guess = self.guess.min(capacity).min(self.probing.most_rate_bps);
    }

    fn hear_check(&mut self, train: &Train) {
        self.note_delays(train);
        if let Some((rate, narrow)) = train.generated_bps(self.probing.framing).zip(self.capacity()) {
            self.checks.hear(train, rate, self.probing.framing.gap_ns(self.probing.most_payload, narrow));
        }
    }

    /// Makes a longer queue where the tight link may have been idle for too long, then sends faster, and forgets
    /// what was sent before.
    fn raise(&mut self, capacity: f64) {
        let Some(ratio) = self.ratio() else { return };
        let most = capacity.min(self.probing.most_rate_bps);
        let sent = self.guess * self.overload;
        let bound = if self.samples.len() < LATE { UNKNOWN } else { LATE_UNKNOWN };
        if ratio.unknown <= bound * ratio.available.max(0.01 * capacity) {
            return;
        }
        if self.burst < MOST_BURST && sent < 0.99 * most {
            self.burst = (2 * self.burst).min(MOST_BURST);
        } else if sent < 0.99 * most {
            self.overload *= 1.5;
            if self.overload * self.guess >= most {
                // As fast as packets can leave the link, whatever is found.
                self.overload = f64::INFINITY;
            }
        } else {
            return;
        }
        self.forget();
    }

    /// Packets sent at once, and packets after them.
    fn shape(&self) -> (u32, u32) {
        if self.overload.is_finite() {
            let packets = if self.several { self.config.packets.max(SEVERAL_PACKETS) } else { self.config.packets };
            (self.burst, packets)
        } else {
            // Nothing empties the queue before such a train; more of them say more than longer ones.
            (FAST_BURST.min(self.config.burst), FAST_PACKETS.min(self.config.packets))
        }
    }

    /// The payload of packets of trains at the link's own rate.
    fn fast_payload(&self) -> u32 {
        let full = self.probing.most_payload;
        let framing = self.probing.framing;
        let short = framing.payload(framing.bits(full) / f64::from(SHORTER)).max(LEAST_FAST_PAYLOAD).min(full);
        let most = self.capacity().unwrap_or(f64::INFINITY).min(self.probing.most_rate_bps);
        if framing.gap_ns(short, most) >= LEAST_FAST_GAP_NS {
            short
        } else {
            full
        }
    }

    /// The share of the averaging window that the trains that count span: all of it where none was forgotten.
    fn spanned(&self) -> f64 {
        let window = self.begun_ns.map_or(0, |begun| self.ended_ns - begun) as f64;
        let spanned = self.counted_ns.map_or(0, |begun| self.ended_ns - begun) as f64;
        if self.forgotten == 0 || window <= 0.0 {
            1.0
        } else {
            (spanned / window).min(1.0)
        }
    }

    /// The rate at which packets that were sent at once arrived, where it is too low for one loaded link of `capacity`
    /// with `available` left. At their own rate or less, they meet the cross traffic `capacity - available`, and share
    /// the link with it in proportion. Several links one after the other spread a train further, each by its own queue:
    /// estimates are then too low, and that rate is still above what is available.
    fn of_several_links(&self, capacity: f64, available: f64) -> Option<f64> {
        let cross = (capacity - available).max(0.0);
        let one = capacity.powi(2) / (capacity + cross);
        let (_, error) = mean_and_error(&self.first_rates)?;
        self.dispersion.filter(|rate| *rate < ONE_LINK * one && *rate + error < one)
    }

    /// The next train of those that put in doubt what precise trains found: that only the narrow link was loaded.
    fn doubt(&mut self) -> Option<Step> {
        let (capacity, ratio) = self.capacity().zip(self.ratio())?;
        let full = self.probing.most_payload;
        if self.config.prior_bps.is_some() {
            return None;
        }
        if ratio.even {
            let framing = self.probing.framing;
            let (checks, random) = (&mut self.checks, &mut self.random);
            let plan = checks.next(ratio.available, full, |rate| framing.gap_ns(full, rate), || random.uniform())?;
            let idle_ns = self.config.idle_ns.max(plan.duration_ns() as f64);
            return Some(Step::Send { plan, idle_ns });
        }
        if self.first_rates.len() < RANDOM_FIRST_TRAINS as usize {
            return Some(Step::Send { plan: Plan::even(FIRST_PACKETS, full, 0.0), idle_ns: 30e6 });
        }
        let service = self.probing.framing.gap_ns(full, capacity);
        let several = self.of_several_links(capacity, ratio.available).is_some()
            || self.firsts.too_few(ratio.available / capacity, service).is_some();
        if !self.several && self.overload.is_finite() && several {
            self.several = true;
            self.burst = self.burst.max(SEVERAL_BURST);
            self.forget();
            self.precise = false;
        }
        None
    }

    /// Begins to count anew.
    fn forget(&mut self) {
        self.forgotten += self.samples.len() as u32;
        self.samples.clear();
        self.counted_ns = None;
        self.searched = MOST_SEARCH;
        self.looked = 0;
    }

    /// Returns `true` if the interval is as narrow as it is to be: asked at numbers of trains that grow by a quarter,
    /// since who looks after each train ends when the trains happen to agree.
    fn is_precise(&mut self) -> bool {
        let count = self.samples.len();
        let Some(ratio) = self.ratio() else { return false };
        // A few trains that agree may all have met one burst, or one silence.
        let more = if ratio.regular { 1 } else { MORE_IRREGULAR };
        let least = self.config.least_trains as usize * more;
        if count < least.max(self.looked + self.looked / 4 + 1) || self.spanned() < SPAN {
            return false;
        }
        self.looked = count;
        ratio.error <= self.config.precision * ratio.available
    }
}

/// Degrees of freedom, and the variance of one deviation by that of the sums of [`BATCHES`] runs of them: more than
/// their own where neighbours resemble each other. `None` where there are too few for that.
fn of_batches(deviations: &[f64]) -> Option<(f64, f64)> {
    let length = deviations.len() / BATCHES;
    if length < 2 {
        return None;
    }
    // The few at the end that make no batch are in the last one.
    let sums = (0..BATCHES).map(|batch| {
        let end = if batch + 1 == BATCHES { deviations.len() } else { (batch + 1) * length };
        deviations[batch * length..end].iter().sum::<f64>()
    });
    let squares: f64 = sums.map(|sum| sum.powi(2)).sum();
    let freedom = BATCHES as f64 - 1.0;
    Some((freedom, squares / freedom * BATCHES as f64 / deviations.len() as f64))
}

/// The last packets of the first and the last batch between `start` and `end`: their arrivals are those of the wire.
fn batch_ends(train: &Train, start: usize, end: usize) -> Option<(usize, usize)> {
    let gap = |place: usize| Some((train.arrived_ns[place + 1]? - train.arrived_ns[place]?) as f64);
    let ends: Vec<usize> = (start..end).filter(|place| gap(*place).is_some_and(|gap| gap > BATCH_NS)).collect();
    Some((*ends.first()?, *ends.last()?)).filter(|(first, last)| first < last)
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
        let full = self.probing.most_payload;
        if first {
            return Step::Send { plan: Plan::even(FIRST_PACKETS, full, 0.0), idle_ns: 30e6 };
        }
        let fast = !self.overload.is_finite();
        let payload = if fast { self.fast_payload() } else { full };
        let count = if !fast {
            MORE_FAST * SHORTER
        } else if payload < full {
            1
        } else {
            SHORTER
        };
        self.sent += count;
        let most = self.capacity().unwrap_or(f64::INFINITY).min(self.probing.most_rate_bps).max(1_000.0);
        let rate = (self.guess * self.overload).clamp(1_000.0, most);
        let gap = self.probing.framing.gap_ns(payload, rate);
        let (burst, packets) = self.shape();
        // The sender's own link, which may be as slow as the tight one, has to be done with the burst before stamps
        // of sending are those of arriving at the tight link.
        let pause = gap.max(f64::from(burst) * self.probing.framing.gap_ns(payload, most));
        let place_gap = |place: u32| match place.cmp(&burst) {
            Ordering::Less => 0.0,
            Ordering::Equal => pause,
            Ordering::Greater => gap,
        };
        let plan = Plan::by_gaps(payload, (1..burst + packets).map(place_gap));
        // The queue is gone a while after the train; that time belongs to it.
        let busy = plan.duration_ns() as f64 + f64::from(burst) * gap;
        // Short looks are spread evenly, by chance within half a step, so that none of what they look at weighs more.
        let idle_ns = if fast {
            let mean = self.config.idle_ns * f64::from(count) / f64::from(SHORTER);
            mean * (0.5 + self.random.uniform())
        } else {
            -self.config.idle_ns * self.random.uniform().ln()
        };
        let idle_ns = idle_ns + 2.0 * busy;
        Step::Send { plan, idle_ns }
    }

    fn hear(&mut self, train: &Train) {
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
        if let Some((prior, deviation)) = self.prior().filter(|_| self.is_not_narrow()) {
            notes.push(
                "the tight link is not the narrow one, which is all that trains can ask: this is the prior".into(),
            );
            return Finding {
                estimate_bps: Some(prior),
                low_bps: Some((prior - 1.96 * deviation).max(0.0)),
                high_bps: Some(prior + 1.96 * deviation),
                confidence: Some(0.95),
                capacity_bps: self.config.capacity_bps,
                notes,
                ..Finding::default()
            };
        }
        let Some(Ratio { available: probed, error, freedom, even, .. }) = self.ratio() else {
            let why = self.done.then(|| "fewer than three trains kept the tight link busy".to_owned());
            return Finding {
                gave_up: self.gave_up.clone().or(why),
                capacity_bps: capacity,
                notes,
                ..Finding::default()
            };
        };
        let half = quantile_975(freedom) * error;
        let (mut estimate, mut half) = (probed.max(0.0), half);
        if let Some((prior, deviation)) = self.prior() {
            let (ours, theirs) = ((half / 1.96).powi(-2), deviation.powi(-2));
            let apart = (probed - prior).abs();
            estimate = (probed * ours + prior * theirs) / (ours + theirs);
            half = 1.96 / (ours + theirs).sqrt();
            if apart > 1.96 * (ours.recip() + theirs.recip()).sqrt() {
                // One of them is wrong, and nothing says which.
                half = half.max((probed - estimate).abs() + 1.96 / ours.sqrt());
                half = half.max((prior - estimate).abs() + 1.96 / theirs.sqrt());
                notes.push("the prior and what trains found contradict each other: the interval spans both".to_owned());
            }
        }
        let (mut low, mut high) = ((estimate - half).max(0.0), estimate + half);
        if self.config.prior_bps.is_none() {
            let told = self.config.capacity_bps;
            let service = |narrow| self.probing.framing.gap_ns(self.probing.most_payload, narrow);
            if let Some(found) = capacity.and_then(|narrow| self.checks.disproof(narrow, service(narrow), told)) {
                (estimate, low, high) = (found.estimate_bps, found.low_bps, found.high_bps);
                notes.push("delays rise at less than trains found: the tight link is not the narrow one".to_owned());
            }
            let few = capacity
                .filter(|_| !even && self.overload.is_finite())
                .and_then(|narrow| self.firsts.too_few(probed / narrow, service(narrow)).map(|share| share * narrow));
            if let Some(least) = few {
                low = low.min(least);
                notes.push("other links are loaded too, and one of them may be the tight one".to_owned());
            }
        }
        let several = capacity.and_then(|capacity| self.of_several_links(capacity, probed));
        if let Some(rate) = several.filter(|_| self.config.prior_bps.is_none()) {
            high = high.max(rate);
            notes.push("several links seem to be loaded: more may be available than was found".to_owned());
        }
        let spanned = self.spanned();
        if spanned < SPAN && self.config.prior_bps.is_none() {
            // In the rest of the window anything may have been available.
            low *= spanned;
            high = high.mul_add(spanned, (1.0 - spanned) * capacity.unwrap_or(high).max(estimate));
            notes.push(format!("the trains that count span the last {:.0} % of the window", 100.0 * spanned));
        }
        Finding {
            estimate_bps: Some(estimate),
            low_bps: Some(low),
            high_bps: Some(high),
            confidence: Some(0.95),
            capacity_bps: capacity,
            gave_up: self.gave_up.clone(),
            notes,
            ..Finding::default()
        }
    }
}
