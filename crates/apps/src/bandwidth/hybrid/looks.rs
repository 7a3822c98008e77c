//! Short packets that look whether the path has a queue, for cross traffic that is random.
//!
//! A link carries nothing for the share `A / C` of all time, so a packet that comes at a random moment meets no queue
//! with that probability (Wolff, *Poisson arrivals see time averages*, Operations Research 30(2), 1982). A look is the
//! shortest frame there is, and says as much about that share as a full one: of independent looks, `share (1 - share) /
//! error²` are enough, a few thousand even on a link that is nearly full. What the looks themselves take of the link is
//! added.
//!
//! Stamps are not exact, so a queue shorter than a threshold counts as none. Near zero the number of looks that met a
//! queue of up to `x` grows as a line (where traffic comes in bursts at the link's rate) or as an exponential (of
//! random packets): the numbers within the threshold and within twice as much tell how many of them met none.
//!
//! All that is true of one loaded link. On other paths looks find less than trains do, and are not used then.

use std::f64::consts::TAU;

use super::super::estimator::{mean_and_error, Step};
use super::super::message::PROBE_LENGTH;
use super::super::other_links::{queues_ns, Lone};
use super::super::student::quantile_975;
use super::super::train::{Plan, Train};
use super::ratio::Ratio;
use super::Hybrid;

/// The payload of a look.
const PAYLOAD: u32 = PROBE_LENGTH as u32;
/// The mean distance of looks in times of a full packet on the narrow link, at most (and where that is slow, at least),
/// and in nanoseconds; each is by chance within half of it.
const APART: (f64, f64) = (1.0, 3.0);
const APART_NS: (f64, f64) = (50e3, 5e6);
/// Looks of a train at least and at most, and about how long one lasts.
const LEAST_TRAIN: usize = 32;
const MOST_TRAIN: usize = 512;
const TRAIN_NS: f64 = 50e6;
/// So many looks before their share means something, and at most.
const LEAST: usize = 1024;
const MOST: usize = 60_000;
/// Batches of looks: the spread of their means tells how traffic changes from one time to another. Traffic that
/// remembers long varies more between fewer.
const BATCHES: [usize; 2] = [16, 6];
/// The threshold in medians of what stamps differ by where there is no queue; and in times of a full packet on the
/// narrow link, at least and at most.
const NOISE: f64 = 2.5;
const THRESHOLD: (f64, f64) = (1.0 / 64.0, 0.15);
/// Another threshold, in times of that, to tell whether it matters.
const WIDER: f64 = 1.5;
/// Trains have said enough to be compared with looks where their standard error is such a share of what they say, or
/// there are many of them: at least so many times the least number, so many of any error, and so many where they say
/// something else than looks.
const COMPARABLE: f64 = 0.06;
const COMPARABLE_TRAINS: (usize, usize, usize) = (2, 16, 48);
/// Trains of looks for each other train, until those have said enough.
const LOOKS_FOR_A_TRAIN: u32 = 2;
/// And then, so that trains tell of the whole window.
const LOOKS_BETWEEN_TRAINS: u32 = 16;
/// The probability, before anything is heard, that only one link is loaded.
const ONE_LINK: f64 = 0.95;
/// The probability of that below which looks are not used.
const DOUBTFUL: f64 = 0.5;
/// So many times the spread that is asked for may be left, with what trains say, before more of them are sent.
const UNSURE: f64 = 2.0;
/// Looks find more than trains only by chance: not by so many standard errors.
const MORE_THAN_TRAINS: f64 = 4.0;
/// The share of the averaging window that looks have to cover.
const COVERED: f64 = 0.6;
/// Looks leave so much of the spread that is asked for, since they cost little.
const FINER: f64 = 0.7;
/// With so many looks stamps are too coarse if they seem so.
const ENOUGH_FOR_NOISE: usize = 1_500;

/// What looks said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    looks: Vec<Lone>,
    /// The time of the trains of looks, in nanoseconds.
    time_ns: f64,
    /// At how many looks they were looked at.
    asked: usize,
    /// Trains of looks since the last other one.
    since_train: u32,
    /// Trains say something else.
    disputed: bool,
    pub(super) state: State,
}

/// What looks are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Not known yet.
    #[default]
    Open,
    /// Trains do not say what they say, or stamps are too coarse.
    Refused,
    /// They have said enough.
    Done,
}

/// The available bandwidth by looks, in bit/s, and its standard error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) available: f64,
    pub(super) error: f64,
    /// The standard error of looks alone.
    of_looks: f64,
    /// The probability that only one link is loaded, so that looks say what is available.
    one_link: f64,
    /// The share of the averaging window that looks cover.
    covered: f64,
}

impl Looks {
    /// Returns `true` if a train is one of looks.
    pub(super) fn are(train: &Train) -> bool {
        train.plan.packets.len() >= LEAST_TRAIN && train.plan.packets[0].payload == PAYLOAD
    }

    pub(super) fn count(&self) -> usize {
        self.looks.len()
    }

    /// Takes in a train of looks.
    pub(super) fn hear(&mut self, train: &Train) {
        if train.clock_stepped {
            return;
        }
        let stamps = train.sent_ns.iter().zip(&train.arrived_ns);
        let heard = stamps
            .filter_map(|(sent, arrived)| Some(Lone { at_ns: *sent as f64, delay_ns: ((*arrived)? - sent) as f64 }));
        self.looks.extend(heard);
        if let (Some(first), Some(last)) = (train.sent_ns.first(), train.sent_ns.last()) {
            self.time_ns += (last - first) as f64 * train.sent_ns.len() as f64 / (train.sent_ns.len() - 1) as f64;
        }
    }

    /// The share of looks that met no queue, and for each look what it counts for. `service_ns` is the time of a full
    /// packet on the narrow link, and `expected` the share by trains. `None` where stamps are too coarse.
    fn share(&self, service_ns: f64, apart_ns: f64, expected: f64) -> Option<Share> {
        let queues = queues_ns(&self.looks);
        let count = queues.len();
        let mut sorted = queues.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = (count as f64 * expected.clamp(0.0, 1.0) / 2.0) as usize;
        let noise = NOISE * sorted.get(middle)?;
        if noise > THRESHOLD.1 * service_ns {
            return None;
        }
        let threshold = noise.max(THRESHOLD.0 * service_ns);
        let within = |most: f64| sorted.partition_point(|queue| *queue <= most) as f64 / count as f64;
        // The share that met none, as a line and as an exponential.
        let none = |threshold: f64| {
            let (near, far) = (within(threshold), within(2.0 * threshold));
            (2.0 * near - far, near.powi(2) / far.max(1.0 / count as f64))
        };
        let (line, exponential) = none(threshold);
        let (other_line, other_exponential) = none(WIDER * threshold);
        let each = queues.iter().map(|queue| {
            let within = |most: f64| f64::from(u8::from(*queue <= most));
            2.0 * within(threshold) - within(2.0 * threshold)
        });
        let share = f64::midpoint(line, exponential).clamp(0.0, 1.0);
        // A look that met a queue makes it last longer, by its own time. Other looks see that if the queue lasts until
        // the next one may come: as long as it was, if nothing else comes, and so many times as long on average.
        let (sure, mean) = (1.0 - within(apart_ns / 2.0), 1.0 - within(apart_ns / 2.0 * share));
        let other = f64::midpoint(other_line, other_exponential).clamp(0.0, 1.0);
        let half = ((exponential - line).abs() / 2.0).hypot(other - share);
        Some(Share {
            share,
            seen_again: f64::midpoint(sure, mean),
            unsure: (mean - sure) / 12.0f64.sqrt(),
            form: half / 3.0f64.sqrt(),
            each: each.collect(),
        })
    }
}

struct Share {
    share: f64,
    /// The share of looks that made a queue last longer that other looks met.
    seen_again: f64,
    /// The standard deviation of that.
    unsure: f64,
    /// What the two forms and two thresholds differ by, as a standard deviation.
    form: f64,
    each: Vec<f64>,
}

impl Share {
    /// The standard error of the share over the time that was looked at: the mean of one random moment in each of as
    /// many steps varies as moments within one step do. Differences between neighbours tell how, if the correlation
    /// falls exponentially with the distance (Cochran, *Sampling Techniques*, 3rd edition, 8.2 and 8.6).
    fn error(&self) -> f64 {
        let count = self.each.len() as f64;
        let half_square = |lag: usize| {
            let pairs = self.each.iter().zip(&self.each[lag..]);
            pairs.map(|(one, other)| (one - other).powi(2)).sum::<f64>() / 2.0 / (count - lag as f64)
        };
        let (next, second) = (half_square(1), half_square(2));
        // Less two standard errors: what is not surely kept is taken for lost.
        let kept = (second / next.max(1.0 / count) - 1.0 - 2.0 / count.sqrt()).clamp(1e-9, 0.9);
        let memory = -1.0 / kept.ln();
        let within = 1.0 - 2.0 * (memory - memory.powi(2) * (1.0 - kept));
        let variance = next * within / (1.0 - kept);
        ((variance * count + 1.0).sqrt() / count).hypot(self.form)
    }

    /// The variance of the mean over a time `of` times as long as all that was looked at, by that of batches.
    fn variance_of_mean(&self, of: f64) -> f64 {
        let by = |batches: usize| {
            let length = (self.each.len() / batches).max(1);
            let means: Vec<f64> =
                self.each.chunks_exact(length).map(|batch| batch.iter().sum::<f64>() / length as f64).collect();
            let one = mean_and_error(&means).map_or(0.0, |(_, error)| error.powi(2) * means.len() as f64);
            one / (of * batches as f64).max(1.0)
        };
        BATCHES.into_iter().map(by).fold(0.0, f64::max)
    }
}

impl Hybrid {
    /// Returns `true` if looks are to tell what is available: cross traffic is random.
    pub(super) fn wants_looks(&self) -> bool {
        let random = || self.ratio().is_some_and(|ratio| ratio.random);
        self.looks.state == State::Open && self.samples.len() >= self.config.least_trains as usize && random()
    }

    /// Returns `true` if trains have said enough to be compared with looks.
    fn is_comparable(&self, ratio: &Ratio) -> bool {
        let least = COMPARABLE_TRAINS.0 * self.config.least_trains as usize;
        let most = if self.looks.disputed { COMPARABLE_TRAINS.2 } else { COMPARABLE_TRAINS.1.max(least) };
        let count = self.samples.len();
        let error = COMPARABLE.max(2.0 * self.config.precision);
        count >= most || !self.looks.disputed && count >= least && ratio.error <= error * ratio.available
    }

    /// The next train of looks; or, now and then, one that keeps the link busy.
    pub(super) fn look(&mut self) -> Step {
        let comparable = self.ratio().is_some_and(|ratio| self.is_comparable(&ratio));
        if self.looks.since_train >= if comparable { LOOKS_BETWEEN_TRAINS } else { LOOKS_FOR_A_TRAIN } {
            self.looks.since_train = 0;
            return self.next_train();
        }
        let mean = self.looks_apart_ns();
        let count = ((TRAIN_NS / mean) as usize).clamp(LEAST_TRAIN, MOST_TRAIN);
        // The queue that a train made is gone by then.
        let busy = if self.looks.since_train == 0 { self.queue_of_train_ns() } else { 0.0 };
        self.looks.since_train += 1;
        let random = &mut self.random;
        let plan = Plan::by_gaps(PAYLOAD, (1..count).map(|_| mean * (0.5 + random.uniform())));
        Step::Send { plan, idle_ns: mean + busy }
    }

    /// The mean distance of looks.
    fn looks_apart_ns(&self) -> f64 {
        let service = self.service_ns().unwrap_or(0.0);
        (APART.1 * service).clamp(APART_NS.0, APART_NS.1).max(APART.0 * service)
    }

    /// The time of a full packet on the narrow link.
    fn service_ns(&self) -> Option<f64> {
        self.capacity().map(|capacity| self.probing.framing.gap_ns(self.probing.most_payload, capacity))
    }

    pub(super) fn hear_looks(&mut self, train: &Train) {
        self.begun_ns = self.begun_ns.or(train.sent_ns.first().copied());
        self.ended_ns = train.sent_ns.last().copied().unwrap_or(self.ended_ns);
        self.looks.hear(train);
        let count = self.looks.looks.len();
        if count < LEAST.max(self.looks.asked + self.looks.asked / 4) {
            return;
        }
        let Some((ratio, capacity)) = self.ratio().zip(self.capacity()) else { return };
        if !self.is_comparable(&ratio) {
            return;
        }
        self.looks.asked = count;
        let Some(seen) = self.seen(&ratio, capacity) else {
            if count >= ENOUGH_FOR_NOISE {
                self.looks.state = State::Refused;
            }
            return;
        };
        let unsure = seen.one_link < DOUBTFUL || seen.error > UNSURE * self.config.precision * seen.available;
        if unsure && self.samples.len() < COMPARABLE_TRAINS.2 {
            self.looks.disputed = true;
        } else if seen.one_link < DOUBTFUL {
            self.looks.state = State::Refused;
        } else if seen.covered >= COVERED && seen.of_looks <= FINER * self.config.precision * seen.available
            || count >= MOST
        {
            self.looks.state = State::Done;
        }
    }

    /// What looks say, weighed with what trains say. `None` where there are too few, stamps are too coarse for them, or
    /// trains say something else.
    pub(super) fn looked(&self, ratio: &Ratio, capacity: f64) -> Option<Seen> {
        if self.looks.state == State::Refused || self.looks.looks.len() < LEAST {
            return None;
        }
        let better = |seen: &Seen| self.looks.state == State::Done || seen.error < ratio.error;
        self.seen(ratio, capacity).filter(|seen| seen.one_link >= DOUBTFUL && better(seen))
    }

    fn seen(&self, ratio: &Ratio, capacity: f64) -> Option<Seen> {
        let looks = &self.looks;
        let share = looks.share(self.service_ns()?, self.looks_apart_ns(), ratio.available / capacity)?;
        let framing = self.probing.framing;
        // The time that looks take of the link is that of their frames, whatever the layer is.
        let full = self.probing.most_payload;
        let wire = framing.wire();
        let own = wire.bits(PAYLOAD) / wire.bits(full) * framing.gap_ns(full, capacity) * looks.looks.len() as f64
            / looks.time_ns.max(1.0);
        let window = self.begun_ns.map_or(0, |begun| self.ended_ns - begun).max(1) as f64;
        let covered = (looks.time_ns / window).min(1.0);
        // What was available in the rest of the window differs from what looks saw by what traffic changes.
        let of_rest = share.variance_of_mean((1.0 - covered) / covered.max(1e-3));
        let rest = (1.0 - covered) * (share.variance_of_mean(1.0) + of_rest).sqrt();
        let error = capacity * share.error().hypot(rest).hypot(own * share.unsure);
        let available = (capacity * (share.share + own * share.seen_again)).min(capacity);
        Some(weighed((available, error), ratio, covered))
    }
}

/// What looks and trains say together. Of one loaded link looks say what trains say; of several they say less, by any
/// share. The probability of the former follows by Bayes' theorem, and the estimate and its variance are those of the
/// mixture of both.
fn weighed((looks, of_looks): (f64, f64), ratio: &Ratio, covered: f64) -> Seen {
    let trains = ratio.available.max(1.0);
    let of_trains = ratio.error * quantile_975(ratio.freedom) / quantile_975(f64::INFINITY);
    let apart = of_looks.hypot(of_trains).max(1.0);
    // Trains say no more than what was available if the link was idle for none or all of the time that they do not
    // know.
    let far = (looks - looks.clamp(ratio.least, ratio.least + ratio.unknown)) / apart;
    let one = (-far.powi(2) / 2.0).exp() / (TAU.sqrt() * apart);
    // More than trains say is no sign of other links; too much more is one of something else.
    let several = if looks < trains { 1.0 / trains } else { 0.0 };
    let one_link = if far > MORE_THAN_TRAINS {
        0.0
    } else if several > 0.0 {
        ONE_LINK * one / (ONE_LINK * one + (1.0 - ONE_LINK) * several)
    } else {
        1.0
    };
    let available = one_link.mul_add(looks, (1.0 - one_link) * trains);
    let part = |weight: f64, mean: f64, error: f64| weight * (error.powi(2) + (mean - available).powi(2));
    let error = (part(one_link, looks, of_looks) + part(1.0 - one_link, trains, of_trains)).sqrt();
    Seen { available, error, of_looks, one_link, covered }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::random::Stream;

    const SERVICE_NS: f64 = 615_200.0;

    /// Looks of which the share `none` met no queue and the others one of up to two packets, with stamps that are late
    /// by up to `noise_ns`.
    fn looks(none: f64, noise_ns: f64) -> Looks {
        let mut random = Stream::new(11);
        let look = |number: i32| {
            let queue = if random.uniform() < none { 0.0 } else { 2.0 * SERVICE_NS * random.uniform() };
            Lone { at_ns: f64::from(number) * 3.0 * SERVICE_NS, delay_ns: 5e6 + queue + noise_ns * random.uniform() }
        };
        Looks { looks: (0..4000).map(look).collect(), ..Looks::default() }
    }

    fn share(none: f64, noise_ns: f64, expected: f64) -> Option<Share> {
        looks(none, noise_ns).share(SERVICE_NS, 3.0 * SERVICE_NS, expected)
    }

    #[test]
    fn stamps_that_are_late_leave_the_share_of_looks_without_a_queue() {
        for noise_ns in [0.0, 30e3, 60e3] {
            let found = share(0.7, noise_ns, 0.65).unwrap();
            assert!((found.share - 0.7).abs() < 3.0 * found.error(), "{noise_ns}: {}", found.share);
            assert!(found.error() < 0.02, "{noise_ns}: {}", found.error());
        }
    }

    #[test]
    fn stamps_that_are_too_coarse_say_nothing() {
        assert!(share(0.7, SERVICE_NS / 2.0, 0.7).is_none());
    }

    #[test]
    fn looks_that_find_less_than_is_expected_say_nothing_of_one_link() {
        // Three links that are each idle for half of the time: an eighth of looks meets none.
        assert!(share(0.125, 0.0, 0.5).is_none());
    }

    #[test]
    fn neighbours_that_resemble_each_other_leave_less_unknown() {
        let of = |run: usize| Share {
            share: 0.5,
            seen_again: 0.0,
            unsure: 0.0,
            form: 0.0,
            each: (0..4096).map(|number| f64::from(u8::from(number / run % 2 == 0))).collect(),
        };
        let mut random = Stream::new(3);
        let each = (0..4096).map(|_| f64::from(u8::from(random.uniform() < 0.5))).collect();
        let independent = Share { each, ..of(1) }.error();
        assert!((independent - 0.5 / 64.0).abs() < 0.001, "{independent}");
        assert!(of(64).error() < 0.2 * independent, "{}", of(64).error());
    }

    fn ratio(available: f64, error: f64) -> Ratio {
        Ratio {
            available,
            least: available,
            error,
            freedom: 100.0,
            unknown: 0.0,
            regular: false,
            even: false,
            random: true,
        }
    }

    #[test]
    fn looks_and_trains_that_agree_are_one_estimate_with_the_spread_of_looks() {
        let seen = weighed((50e6, 0.5e6), &ratio(51e6, 3e6), 1.0);
        assert!(seen.one_link > 0.97 && (seen.available - 50e6).abs() < 0.1e6, "{seen:?}");
        assert!(seen.error < 1e6, "{seen:?}");
    }

    #[test]
    fn looks_that_say_much_less_or_much_more_than_trains_are_not_used() {
        assert!(weighed((12e6, 0.5e6), &ratio(50e6, 3e6), 1.0).one_link < 0.01);
        assert!(weighed((70e6, 0.5e6), &ratio(50e6, 3e6), 1.0).one_link < 0.01);
    }

    #[test]
    fn between_both_the_spread_has_room_for_both() {
        let seen = weighed((42e6, 0.5e6), &ratio(50e6, 3e6), 1.0);
        assert!((42e6..50e6).contains(&seen.available), "{seen:?}");
        assert!(seen.available + 2.0 * seen.error > 50e6 && seen.available - 2.0 * seen.error < 42e6, "{seen:?}");
    }
}
