//! Evidence that more links of a path are loaded than the one that hybrid's formula knows.
//!
//! Three signs, none of which needs the cross traffic to be of a kind:
//!
//! - A link carries nothing for the share `A / C` of all time, so a packet that comes at a random moment meets no
//!   queue with that probability; on a path with about the product over its links (Wolff, *Poisson arrivals see time
//!   averages*, Operations Research 30(2), 1982). Of one loaded link that product is what was found over `C`. It is
//!   never more than the `A / C` of the tight link, and no capacity is below that of the narrow link: the product times
//!   the narrow link's capacity is a lower bound of what is available, whichever link is the tight one.
//! - Trains at less than what is available do not wait longer and longer. If they do, another link is the tight one.
//! - Packets sent at once arrive no slower than one link lets them.

use super::train::{Plan, Train};

/// A packet that met the path as no probe had disturbed it.
#[derive(Clone, Copy, Debug)]
pub struct Lone {
    pub at_ns: f64,
    pub delay_ns: f64,
}

/// The queue that each packet met, in nanoseconds: its delay above the least one. Clocks drift apart, so the least
/// delays of the first and the last third are taken for those of a path without queues.
pub fn queues_ns(packets: &[Lone]) -> Vec<f64> {
    let least = |part: &[Lone]| part.iter().copied().min_by(|one, other| one.delay_ns.total_cmp(&other.delay_ns));
    let third = packets.len().div_ceil(3);
    let ends = least(&packets[..third]).zip(least(&packets[packets.len() - third..]));
    let Some((begin, end)) = ends else { return Vec::new() };
    let slope = (end.delay_ns - begin.delay_ns) / (end.at_ns - begin.at_ns).max(1.0);
    let above = packets.iter().map(|packet| packet.delay_ns - begin.delay_ns - slope * (packet.at_ns - begin.at_ns));
    let above: Vec<f64> = above.collect();
    let floor = above.iter().copied().fold(f64::INFINITY, f64::min);
    above.iter().map(|queue| queue - floor).collect()
}

/// The delays of the first packets of trains.
#[derive(Clone, Debug, Default)]
pub struct Firsts {
    firsts: Vec<Lone>,
}

/// So many are needed before their shares mean something.
const LEAST_FIRSTS: usize = 24;
/// Stamps of real hosts are this uncertain: a queue is one that takes longer, and more than a quarter of a packet's
/// time on the narrow link, which a packet of a link four times as fast takes.
const STAMPS_NS: f64 = 20_000.0;
const QUEUE: f64 = 0.25;
/// Trains that have not quite left the path meet later ones: up to this share of what is expected means nothing.
const UNDISTURBED: f64 = 0.6;
/// Shares differ where they do by so many standard errors.
const SURE: f64 = 3.0;

impl Firsts {
    /// Keeps the first packet of a train.
    pub fn hear(&mut self, train: &Train) {
        if let (Some(sent), Some(Some(arrived))) = (train.sent_ns.first(), train.arrived_ns.first()) {
            self.firsts.push(Lone { at_ns: *sent as f64, delay_ns: (arrived - sent) as f64 });
        }
    }

    /// The share of packets that met no queue, where it is less than `expected` for sure: that share less two
    /// standard errors. `service_ns` is the time of a packet on the narrow link. `None` where no such thing can
    /// be said, or stamps are too coarse for it.
    pub fn too_few(&self, expected: f64, service_ns: f64) -> Option<f64> {
        let count = self.firsts.len();
        if count < LEAST_FIRSTS || service_ns < 2.0 * STAMPS_NS {
            return None;
        }
        let threshold = (QUEUE * service_ns).max(STAMPS_NS);
        let without = queues_ns(&self.firsts).iter().filter(|queue| **queue < threshold).count();
        let share = without as f64 / count as f64;
        let expected = expected.clamp(0.0, 1.0);
        let error = (expected * (1.0 - expected) / count as f64).sqrt();
        let sure = share < UNDISTURBED * expected && share < SURE.mul_add(-error, expected);
        let spread = (share.max(1.0 / count as f64) * (1.0 - share) / count as f64).sqrt();
        sure.then(|| 2.0f64.mul_add(-spread, share).max(0.0))
    }
}

/// Packets of the first check, and of those that follow where it finds a rise.
const CHECK_PACKETS: usize = 48;
const LONG_CHECK_PACKETS: usize = 200;
/// The share of a check that does not count: queues find their level in it.
const SETTLING: f64 = 0.25;
/// Rates of checks as shares of the estimate, and of the one before: at least and at most. Once a line through two
/// rises tells where delays begin to rise, the next is a little below that.
const CHECK_RATE: f64 = 0.9;
const NEXT_RATE: (f64, f64) = (0.5, 0.9);
const BELOW: f64 = 0.95;
/// Gaps vary by so much of themselves, so that they are in step with no cross traffic.
const UNEVEN: f64 = 0.2;
/// A rise is one of more than so many packets' times on the narrow link: one packet of cross traffic more or less at
/// the beginning and at the end of a train cannot make it.
const RISE: f64 = 0.7;
const LONG_RISE: f64 = 1.5;
/// Jitter of real hosts makes rises of this length: a packet's time is taken for no less.
const RISE_NS: f64 = 50_000.0;
/// What a rise is uncertain by.
const EDGE: f64 = 0.5;
/// Checks at most.
const MOST_CHECKS: usize = 10;

/// Trains at less than what was found.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Rate and rise of each long check in which delays rose, the rise as a share of time.
    rose: Vec<(f64, f64)>,
    /// The highest rate of a long check without a rise.
    level_bps: Option<f64>,
    /// Checks that were asked for.
    asked: usize,
    long: bool,
    passed: bool,
}

/// What checks found where what trains found is not what is available.
#[derive(Clone, Copy, Debug)]
pub struct Disproof {
    pub estimate_bps: f64,
    pub low_bps: f64,
    pub high_bps: f64,
}

impl Checks {
    /// The next check of `estimate`, in bit/s; `None` where nothing is left to ask. `uniform` draws from 0 to 1, and
    /// `gap_ns` is the distance of packets of `payload` at a rate.
    pub fn next(
        &mut self,
        estimate: f64,
        payload: u32,
        gap_ns: impl Fn(f64) -> f64,
        mut uniform: impl FnMut() -> f64,
    ) -> Option<Plan> {
        if self.passed || self.level_bps.is_some() || self.asked >= MOST_CHECKS {
            return None;
        }
        self.asked += 1;
        let rate = self.rose.last().map_or(CHECK_RATE * estimate, |(rate, slope)| {
            let begins = self.line().map_or(*rate, |capacity| BELOW * (rate - capacity * slope));
            begins.clamp(NEXT_RATE.0 * rate, NEXT_RATE.1 * rate)
        });
        let packets = if self.long { LONG_CHECK_PACKETS } else { CHECK_PACKETS };
        let gap = gap_ns(rate.max(1_000.0));
        Some(Plan::by_gaps(payload, (1..packets).map(|_| gap * (1.0 + UNEVEN * (2.0 * uniform() - 1.0)))))
    }

    /// Returns `true` if this train is a check: neither all at once nor begun by packets at once, and as long as one.
    pub fn is_check(&self, train: &Train) -> bool {
        let count = train.plan.packets.len();
        let apart = train.plan.packets.windows(2).all(|pair| pair[1].at_ns > pair[0].at_ns);
        self.asked > 0 && apart && (count == CHECK_PACKETS || count == LONG_CHECK_PACKETS)
    }

    /// Takes in a check, sent at `rate` bit/s, with a packet's time on the narrow link.
    pub fn hear(&mut self, train: &Train, rate: f64, service_ns: f64) {
        let Some((slope, time_ns)) = slope_of_delays(train) else {
            // A check that was cut or lost says nothing; the next one may.
            return;
        };
        let rise = slope * time_ns / service_ns.max(RISE_NS);
        if !self.long {
            self.long = rise > RISE;
            self.passed = !self.long;
        } else if rise > LONG_RISE {
            self.rose.push((rate, slope));
        } else if self.rose.is_empty() {
            self.passed = true;
        } else {
            self.level_bps = Some(rate);
        }
    }

    /// The tight link's capacity: above what is available delays rise by (rate - available) / capacity, and so a line
    /// through two rates has both.
    fn line(&self) -> Option<f64> {
        let ((high, most), (low, least)) = (self.rose.first()?, self.rose.last()?);
        (high > low && most > least).then(|| (high - low) / (most - least))
    }

    /// What checks say instead, if delays rose in one. `narrow_bps` is the narrow link's capacity, `service_ns` a
    /// packet's time on it, and `told_bps` the tight link's capacity where it is known.
    pub fn disproof(&self, narrow_bps: f64, service_ns: f64, told_bps: Option<f64>) -> Option<Disproof> {
        let (least, slope) = *self.rose.last()?;
        // A host that lost its processor may have sent the slower check faster.
        let level = self.level_bps.unwrap_or(0.0).min(least);
        // No capacity of the tight link is above that of one rise and the rate without one.
        let most = ((least - level) / slope).max(narrow_bps);
        let line = self.line().filter(|capacity| *capacity >= narrow_bps);
        let capacity = told_bps.filter(|told| *told > narrow_bps).or(line);
        let middle = f64::midpoint(level, least);
        let estimate = capacity.map_or(middle, |capacity| (least - capacity * slope).clamp(level, least));
        // A check without a rise may have been too fast by as much as makes a rise that is too small to tell.
        let unseen = (LONG_RISE + EDGE) / (LONG_CHECK_PACKETS as f64 * (1.0 - SETTLING)) * level / narrow_bps
            * (RISE_NS / service_ns).max(1.0);
        let low = (level - capacity.unwrap_or(most) * unseen).max(0.0);
        Some(Disproof { estimate_bps: estimate, low_bps: low, high_bps: least })
    }
}

/// The slope of delay over time by least squares, after a train has settled, and the time over which that is. `None` of
/// a train that was interrupted or lost packets.
fn slope_of_delays(train: &Train) -> Option<(f64, f64)> {
    if train.lost() > 0 || !train.interruptions().is_empty() || train.clock_stepped || train.reordered() {
        return None;
    }
    let skipped = (train.sent_ns.len() as f64 * SETTLING) as usize;
    let stamps = train.sent_ns.iter().zip(&train.arrived_ns).skip(skipped);
    let points: Vec<(f64, f64)> = stamps
        .filter_map(|(sent, arrived)| Some(((sent - train.sent_ns[0]) as f64, ((*arrived)? - sent) as f64)))
        .collect();
    let count = points.len() as f64;
    let (first, last) = (points.first()?.0, points.last()?.0);
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (xx, xy) = points.iter().fold((0.0, 0.0), |(xx, xy), point| {
        let from = point.0 - x;
        (xx + from * from, xy + from * (point.1 - y))
    });
    (xx > 0.0).then(|| (xy / xx, last - first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::random::Stream;

    const SERVICE_NS: f64 = 123_040.0;

    /// First packets of which the share `without` met no queue, by clocks that drift apart by 100 ppm.
    fn firsts(without: f64, count: u32) -> Firsts {
        let (mut firsts, mut random) = (Firsts::default(), Stream::new(7));
        for number in 0..count {
            let sent = i64::from(number) * 70_000_000;
            let queue = if random.uniform() < without { 0.0 } else { SERVICE_NS * (1.0 + random.uniform()) };
            let arrived = sent + sent / 10_000 + 5_000_000 + queue as i64;
            let plan = Plan::even(1, 1472, 0.0);
            firsts.hear(&Train { plan, sent_ns: vec![sent], arrived_ns: vec![Some(arrived)], ..Train::default() });
        }
        firsts
    }

    /// A train over a path whose delay rises by `slope` of the time.
    fn train(plan: Plan, slope: f64) -> Train {
        let sent_ns: Vec<i64> = plan.packets.iter().map(|packet| packet.at_ns as i64).collect();
        let arrived_ns = sent_ns.iter().map(|sent| Some(sent + 1_000_000 + (*sent as f64 * slope) as i64)).collect();
        Train { plan, sent_ns, arrived_ns, ..Train::default() }
    }

    #[test]
    fn first_packets_tell_of_other_links_though_clocks_drift() {
        assert_eq!(firsts(0.5, 60).too_few(0.5, SERVICE_NS), None);
        let least = firsts(0.125, 60).too_few(0.5, SERVICE_NS).unwrap();
        assert!(least < 0.125, "{least}");
    }

    #[test]
    fn few_packets_and_fast_links_tell_nothing() {
        assert_eq!(firsts(0.1, 20).too_few(0.8, SERVICE_NS), None);
        assert_eq!(firsts(0.1, 60).too_few(0.8, 12_304.0), None);
    }

    /// Checks over a tight link of `capacity` with `available` bit/s left, behind a narrow one of 100 Mbit/s.
    fn checked(found: f64, capacity: f64, available: f64) -> Option<Disproof> {
        let mut checks = Checks::default();
        let gap = |rate: f64| 12_304e9 / rate;
        while let Some(plan) = checks.next(found, 1472, gap, || 0.5) {
            let rate = 12_304e9 / (plan.duration_ns() as f64 / (plan.packets.len() - 1) as f64);
            let sent = train(plan, ((rate - available) / capacity).max(0.0));
            assert!(checks.is_check(&sent));
            checks.hear(&sent, rate, SERVICE_NS);
        }
        checks.disproof(100e6, SERVICE_NS, None)
    }

    #[test]
    fn a_line_through_the_rises_finds_a_tight_link_that_is_not_narrow() {
        let found = checked(80e6, 1e9, 50e6).unwrap();
        assert!((found.estimate_bps - 50e6).abs() < 0.5e6, "{found:?}");
        assert!(found.low_bps < 50e6 && found.high_bps > 50e6, "{found:?}");
    }

    #[test]
    fn a_check_that_was_sent_faster_than_it_was_to_be_widens_the_interval() {
        let mut checks = Checks::default();
        let even = |count| Plan::even(count, 1472, 100_000.0);
        for (slope, rate) in [(0.05, 90e6), (0.05, 90e6), (0.0, 95e6)] {
            checks.hear(&train(even(LONG_CHECK_PACKETS), slope), rate, SERVICE_NS);
        }
        let found = checks.disproof(100e6, SERVICE_NS, None).unwrap();
        assert!(found.low_bps < 90e6 && found.estimate_bps <= 90e6 && found.high_bps >= 90e6, "{found:?}");
    }

    #[test]
    fn nothing_rises_where_what_was_found_is_available() {
        assert!(checked(80e6, 100e6, 80e6).is_none());
    }
}
