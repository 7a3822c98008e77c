//! Pathload: streams whose delays rise are faster than the available bandwidth (self-loading periodic streams).
//!
//! Jain and Dovrolis, *Pathload: a measurement tool for end-to-end available bandwidth*, PAM 2002, and the paper that
//! [`super::trend`] names. Fleets of streams at one rate are judged together; rates are found by bisection with a
//! grey region in which fleets disagree. The answer is a range: that of the variation of the available bandwidth
//! during the measurement.
//!
//! Differences: times are nanoseconds and fractions, so that there are no steps of whole microseconds; packets are
//! paced by absolute deadlines; silences between streams vary; the rate of a fleet is the one at which its streams were
//! sent, from their own stamps.

use super::estimator::{dispersion_rate, median, Estimator, Finding, Probing, Step};
use super::train::{Plan, Train};
use super::trend::{statistics, Trend};
use crate::check::{check_range, ConfigError};
use crate::schedule::random::Stream;

settings! {
    /// The settings; [`PathloadConfig::published`] has the published values.
    pub struct PathloadConfig;

    /// Streams of a fleet.
    streams: u32 [1, 100] = 12,
    /// Packets of a stream, 36 to 400.
    packets: u32 [LEAST_PACKETS as u32, 400] = 100,
    /// The shortest payload, in bytes.
    least_payload: u32 [32, 1472] = 200,
    /// The shortest gap between packets, in nanoseconds.
    least_gap_ns: u64 [100, 1_000_000] = 7_000,
    /// The gap that is used where packets of some length allow it (published: 80 us). A stream must last as long as
    /// many packets of cross traffic for its trend to be more than theirs.
    usual_gap_ns: u64 [100, 100_000_000] = 700_000,
    /// By how much of themselves gaps vary at random, and five times as much of the shortest silence is added to
    /// silences (published: 0): a stream that is in step with periodic cross traffic would see a trend of its own.
    variation: f64 [0.0, 0.5] = 0.2,
    /// Threshold of the pairwise comparison test.
    comparison_threshold: f64 [0.1, 0.9] = 0.55,
    /// Threshold of the pairwise difference test.
    difference_threshold: f64 [0.1, 0.9] = 0.4,
    /// The share of streams that decides about a fleet.
    fleet_fraction: f64 [0.5, 1.0] = 0.6,
    /// The width of the range at which the search ends, as a share of the dispersion rate.
    resolution: f64 [0.001, 0.5] = 0.02,
    /// The width of what may remain beside the grey region, as a share of the dispersion rate.
    grey_resolution: f64 [0.001, 0.5] = 0.05,
    /// Fleets at most.
    fleets: u32 [1, 1000] = 40,
}

impl PathloadConfig {
    /// As Jain and Dovrolis published it (PAM 2002), with the gap of their tool.
    #[must_use]
    pub fn published() -> Self {
        Self { usual_gap_ns: 80_000, variation: 0.0, ..Self::default() }
    }

    pub(crate) fn validate(&self, kind: &'static str) -> Result<(), ConfigError> {
        self.check_ranges(kind)?;
        check_range(kind, "usual_gap_ns", self.usual_gap_ns, self.least_gap_ns, 100_000_000)
    }
}

/// The shortest stream, or piece of one, that is judged.
const LEAST_PACKETS: usize = 36;
/// Packets of the first train, and how often it is tried.
const DISPERSION_PACKETS: usize = 50;
const DISPERSION_TRIES: u32 = 5;
/// The longest gap between packets.
const MOST_GAP_NS: f64 = 200e6;
/// Below this rate streams have the usual gap.
const SLOW_BPS: f64 = 150e6;
const FAST_BPS: f64 = 600e6;
/// Loss in a stream from which the fleet is given up, and from which the stream counts as lossy.
const HEAVY_LOSS: f64 = 0.15;
const MODERATE_LOSS: f64 = 0.03;
/// The mean load while probing is at most a tenth of the rate: silence of nine times a stream, and by chance up to
/// this often more for each unit by which gaps vary, so that the streams of a fleet meet periodic cross traffic at
/// other moments of its period.
const SILENCE: f64 = 9.0;
const MORE_SILENCE: f64 = 5.0;
/// The grey region's resolution is at most this.
const MOST_GREY_BPS: f64 = 12e6;
/// Pathload's batch rule: arrivals closer than this are back to back, and 60 % of them are interrupt coalescence.
const BATCH_NS: f64 = 7_000.0;
const BATCHED: f64 = 0.6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Increasing,
    NoTrend,
    Grey,
}

/// The fleet that is under way.
#[derive(Debug, Default)]
struct Fleet {
    sent: u32,
    increasing: u32,
    none: u32,
    unclear: u32,
    lossy: u32,
    discarded: u32,
    aborted: bool,
    repeated: bool,
    generated: Vec<f64>,
}

/// The estimator.
pub struct Pathload {
    config: PathloadConfig,
    random: Stream,
    probing: Probing,
    dispersion: Option<f64>,
    dispersion_tries: u32,
    rate: f64,
    fleet: Fleet,
    fleets: u32,
    floor: f64,
    ceiling: Option<f64>,
    grey: Option<(f64, f64)>,
    at_most: u32,
    batched: u32,
    interrupted: u32,
    done: bool,
    gave_up: Option<String>,
    notes: Vec<String>,
}

impl Pathload {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: PathloadConfig, probing: Probing) -> Self {
        Self {
            config,
            random: Stream::new(probing.seed),
            probing,
            dispersion: None,
            dispersion_tries: 0,
            rate: 0.0,
            fleet: Fleet::default(),
            fleets: 0,
            floor: 0.0,
            ceiling: None,
            grey: None,
            at_most: 0,
            batched: 0,
            interrupted: 0,
            done: false,
            gave_up: None,
            notes: Vec::new(),
        }
    }

    /// The highest rate that packets of full size reach at the shortest gap.
    fn most_rate(&self) -> f64 {
        let reached = self.probing.framing.bits(self.probing.most_payload) * 1e9 / self.config.least_gap_ns as f64;
        reached.min(self.probing.most_rate_bps)
    }

    fn least_rate(&self) -> f64 {
        self.probing.framing.bits(self.config.least_payload) * 1e9 / MOST_GAP_NS
    }

    /// Size and gap of a stream at `rate`.
    fn stream(&mut self, rate: f64) -> Plan {
        let framing = self.probing.framing;
        let (least, most) = (self.config.least_payload.min(self.probing.most_payload), self.probing.most_payload);
        let floor = self.config.least_gap_ns as f64;
        let payload = if rate < SLOW_BPS {
            framing.payload(rate * self.config.usual_gap_ns as f64 / 1e9).clamp(least, most)
        } else if rate < FAST_BPS {
            framing.payload(rate * framing.gap_ns(most, rate).round() / 1e9).clamp(least, most)
        } else {
            most
        };
        let gap = framing.gap_ns(payload, rate).max(floor);
        let (random, variation) = (&mut self.random, self.config.variation);
        let uneven = (1..self.config.packets).map(|_| gap * (1.0 + variation * (2.0 * random.uniform() - 1.0)));
        Plan::by_gaps(payload, uneven)
    }

    fn hear_dispersion(&mut self, train: &Train) {
        self.dispersion_tries += 1;
        let found = dispersion_rate(train, self.probing.framing);
        let clean = train.lost() == 0;
        if let Some(rate) = found.filter(|_| clean || self.dispersion_tries >= DISPERSION_TRIES) {
            self.dispersion = Some(rate);
            let (least, most) = (self.least_rate(), self.most_rate());
            self.rate = if rate > most || rate < least { (least + most) / 2.0 } else { rate };
        } else if self.dispersion_tries >= DISPERSION_TRIES {
            self.give_up("no train of packets sent at once came through: the path loses almost all of them");
        }
    }

    fn give_up(&mut self, why: &str) {
        self.gave_up = Some(why.to_owned());
        self.done = true;
    }

    /// Takes in the longest piece of a stream that the sender did not interrupt.
    fn hear_stream(&mut self, train: &Train) {
        let interruptions = train.interruptions();
        self.interrupted += interruptions.len() as u32;
        if train.batched(BATCH_NS) > BATCHED {
            self.batched += 1;
        }
        let fleet = &mut self.fleet;
        fleet.sent += 1;
        if train.loss() >= HEAVY_LOSS {
            fleet.aborted = true;
            return;
        }
        fleet.lossy += u32::from(train.loss() >= MODERATE_LOSS);
        fleet.generated.extend(generated_rate(train, &self.probing));
        let mut edges = vec![0];
        edges.extend(interruptions);
        edges.push(train.plan.packets.len());
        let longest = edges.windows(2).map(|pair| pair[0]..pair[1]).max_by_key(ExactSizeIterator::len).unwrap_or(0..0);
        let delays: Vec<f64> = train
            .delays_ns()
            .into_iter()
            .filter(|(place, _)| longest.contains(place))
            .map(|(_, delay)| delay)
            .collect();
        let judged = (delays.len() >= LEAST_PACKETS && !train.clock_stepped).then(|| statistics(&delays)).flatten();
        match judged.map(|told| told.trend(self.config.comparison_threshold, self.config.difference_threshold)) {
            Some(Trend::Increasing) => fleet.increasing += 1,
            Some(Trend::None) => fleet.none += 1,
            Some(Trend::Unclear) => fleet.unclear += 1,
            None => fleet.discarded += 1,
        }
        if fleet.lossy * 2 >= self.config.streams.max(2) {
            fleet.aborted = true;
        }
    }

    /// Returns what the fleet says; `None` when it must be sent again.
    fn verdict(&mut self) -> Option<Verdict> {
        let fleet = &self.fleet;
        if fleet.aborted {
            return Some(Verdict::Increasing);
        }
        let usable = fleet.sent - fleet.discarded;
        if usable * 2 < fleet.sent {
            if fleet.repeated {
                self.give_up(
                    "more than half of the streams could not be used: the sender loses its processor while it sends",
                );
            }
            return None;
        }
        let share = |number: u32| f64::from(number) / f64::from(usable);
        Some(if share(fleet.increasing) >= self.config.fleet_fraction {
            Verdict::Increasing
        } else if share(fleet.none) >= self.config.fleet_fraction {
            Verdict::NoTrend
        } else {
            Verdict::Grey
        })
    }

    fn end_fleet(&mut self) {
        let Some(verdict) = self.verdict() else {
            self.fleet = Fleet { repeated: true, ..Fleet::default() };
            return;
        };
        self.fleets += 1;
        let rate = median(&self.fleet.generated).unwrap_or(self.rate);
        if (rate / self.rate - 1.0).abs() > 0.1 {
            self.notes.push(format!(
                "asked for {:.3} Mbit/s, the sender generated {:.3} Mbit/s",
                self.rate / 1e6,
                rate / 1e6
            ));
            self.notes.truncate(8);
        }
        self.fleet = Fleet::default();
        self.enter(verdict, rate);
        if !self.done {
            self.choose(verdict);
        }
    }

    /// Moves the bounds by a fleet at `rate`; a grey region that it contradicts is forgotten.
    fn enter(&mut self, verdict: Verdict, rate: f64) {
        match verdict {
            Verdict::Increasing => {
                self.ceiling = Some(self.ceiling.map_or(rate, |ceiling| ceiling.min(rate)));
                if self.grey.is_some_and(|(_, high)| rate < high) {
                    self.grey = None;
                }
                self.floor = self.floor.min(rate);
            }
            Verdict::NoTrend => {
                self.floor = self.floor.max(rate);
                if self.grey.is_some_and(|(low, _)| rate > low) {
                    self.grey = None;
                }
                if self.ceiling.is_some_and(|ceiling| ceiling < rate) {
                    self.ceiling = None;
                }
            }
            Verdict::Grey => {
                let (low, high) = self.grey.unwrap_or((rate, rate));
                self.grey = Some((low.min(rate), high.max(rate)));
            }
        }
    }

    /// The next rate, or the end.
    fn choose(&mut self, verdict: Verdict) {
        let scale = self.dispersion.unwrap_or(self.rate);
        let fine = self.config.resolution * scale;
        let grey_fine = (self.config.grey_resolution * scale).min(MOST_GREY_BPS);
        let most = self.most_rate();
        let met = match (self.ceiling, self.grey) {
            (Some(ceiling), _) if ceiling - self.floor <= fine => true,
            (Some(ceiling), Some((low, high))) => ceiling - high <= grey_fine && low - self.floor <= grey_fine,
            _ => false,
        };
        if met || self.fleets >= self.config.fleets {
            if !met {
                self.gave_up = Some(format!("the search had not ended after {} fleets", self.fleets));
            }
            self.done = true;
            return;
        }
        let floor = self.floor.max(self.least_rate());
        let next = match (verdict, self.ceiling, self.grey) {
            (Verdict::Increasing, Some(ceiling), Some((_, high))) if ceiling - high > grey_fine => {
                (high + ceiling) / 2.0
            }
            (Verdict::NoTrend, _, Some((low, _))) if low - self.floor > grey_fine => (self.floor + low) / 2.0,
            (_, Some(ceiling), Some((_, high))) if ceiling - high > grey_fine => (high + ceiling) / 2.0,
            (_, None, Some((_, high))) => 1.5 * high,
            (_, _, Some((low, _))) => (floor.min(low) + low) / 2.0,
            (_, Some(ceiling), None) => (floor.min(ceiling) + ceiling) / 2.0,
            (_, None, None) => 2.0 * self.rate,
        };
        if next >= most {
            self.at_most += 1;
            if self.at_most >= 2 {
                self.give_up(&format!(
                    "the rate would be above {:.1} Mbit/s, the most that this method reaches at its shortest gap of \
                     {} ns and the prober's most_rate: lift them to go on",
                    most / 1e6,
                    self.config.least_gap_ns
                ));
                return;
            }
        }
        self.rate = next.min(most);
    }
}

/// The rate of a stream without the longest 15 % of its gaps, which are those in which the sender was interrupted.
fn generated_rate(train: &Train, probing: &Probing) -> Option<f64> {
    let mut gaps = train.sent_gaps_ns();
    gaps.sort_by(f64::total_cmp);
    let planned = train.plan.duration_ns() as f64;
    let sent: f64 = gaps.iter().sum();
    // Without interruptions all gaps count: leaving the longest out would only tell of the rounding of stamps.
    let kept = if sent > 1.05 * planned { (gaps.len() * 85).div_ceil(100) } else { gaps.len() };
    let mean = gaps.get(..kept)?.iter().sum::<f64>() / kept as f64;
    (mean > 0.0).then(|| probing.framing.bits(train.plan.packets[0].payload) * 1e9 / mean)
}

impl Estimator for Pathload {
    fn next(&mut self) -> Step {
        if self.done {
            return Step::Done;
        }
        if self.dispersion.is_none() {
            let shorter = 5 * self.dispersion_tries as usize;
            let plan = Plan::even(DISPERSION_PACKETS - shorter, self.probing.most_payload, 0.0);
            return Step::Send { plan, idle_ns: 100e6 };
        }
        let plan = self.stream(self.rate);
        let idle_ns =
            (SILENCE + MORE_SILENCE * self.config.variation * self.random.uniform()) * plan.duration_ns() as f64;
        Step::Send { plan, idle_ns }
    }

    fn hear(&mut self, train: &Train) {
        if self.dispersion.is_none() {
            self.hear_dispersion(train);
            return;
        }
        self.hear_stream(train);
        if self.fleet.aborted || self.fleet.sent >= self.config.streams {
            self.end_fleet();
        }
    }

    fn finding(&self) -> Finding {
        let mut notes = self.notes.clone();
        if self.batched > 0 {
            notes.push(format!("{} streams arrived in batches (interrupt coalescence or offload)", self.batched));
        }
        if self.interrupted > 0 {
            notes.push(format!("{} gaps in which the sender lost its processor", self.interrupted));
        }
        let settled = self.done && self.gave_up.is_none();
        let range = match (self.grey, self.ceiling) {
            (Some(grey), _) if settled => Some(grey),
            (_, Some(ceiling)) if self.fleets > 0 => Some((self.floor, ceiling)),
            _ => None,
        };
        Finding {
            estimate_bps: range.map(|(low, high)| (low + high) / 2.0),
            low_bps: range.map(|(low, _)| low).or((self.floor > 0.0).then_some(self.floor)),
            high_bps: range.map(|(_, high)| high),
            gave_up: self.gave_up.clone(),
            notes,
            ..Finding::default()
        }
    }
}
