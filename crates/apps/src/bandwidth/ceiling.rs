//! Sees that a path never slowed the fastest trains that may be sent: there is more available than a method that only
//! compares its own rates can see, and its answer would be the limit and not the path.
//!
//! At a rate `p` above the available bandwidth `A` of a link of capacity `C`, packets arrive `(p - A) / C` further
//! apart than they were sent. The last quarter of a train shows it best: queues have grown, and chirps are fastest
//! there.

use super::estimator::{median, Finding};
use super::framing::Framing;
use super::method::Method;
use super::train::Train;

/// Trains count as the fastest from this share of the fastest rate on.
const FASTEST: f64 = 0.95;
/// They must have been sent at so much of the rate that may be sent: else the method did not want to be faster. The
/// last quarter of a chirp is slower on average than at its end.
const NEAR_LIMIT: f64 = 0.5;
/// A path slows trains that arrive further apart by so much.
const SLOWED: f64 = 0.05;
/// Trains that are kept.
const MOST_KEPT: usize = 10_000;

/// What became of the last quarters of trains.
#[derive(Clone, Debug, Default)]
pub struct Ceiling {
    /// How many hops each may go, the rate at which it was sent in bit/s, and how much further apart its packets
    /// arrived, as a share.
    ends: Vec<(u8, f64, f64)>,
}

impl Ceiling {
    /// Takes in a train.
    pub fn hear(&mut self, train: &Train, framing: Framing) {
        let hops = train.plan.packets.first().and_then(|packet| packet.hop_limit).unwrap_or(u8::MAX);
        let arrived = train.arrived();
        let start = arrived.len() - arrived.len().div_ceil(4).min(arrived.len());
        let (Some(first), Some(last)) = (arrived.get(start.saturating_sub(1)), arrived.last()) else { return };
        let span = |stamp: &dyn Fn(usize) -> Option<i64>| Some((stamp(*last)? - stamp(*first)?) as f64);
        let sent = span(&|place| Some(train.sent_ns[place]));
        let received = span(&|place| train.arrived_ns[place]);
        let Some((sent, received)) = sent.zip(received).filter(|(sent, _)| *sent > 0.0) else { return };
        if train.plan.duration_ns() > 0 && self.ends.len() < MOST_KEPT {
            let packets = &train.plan.packets[first + 1..=*last];
            let bits: f64 = packets.iter().map(|packet| framing.bits(packet.payload)).sum();
            self.ends.push((hops, bits * 1e9 / sent, received / sent - 1.0));
        }
    }

    /// Returns `true` if trains were sent about as fast as they may be, and the path did not slow the fastest of them.
    #[must_use]
    pub fn is_reached(&self, most_rate_bps: f64) -> bool {
        // Those that go all the way: the links up to a hop may have more available than the path.
        let furthest = self.ends.iter().map(|(hops, ..)| *hops).max();
        let ends = || self.ends.iter().filter(|(hops, ..)| Some(*hops) == furthest);
        let fastest = ends().map(|(_, rate, _)| *rate).fold(0.0, f64::max);
        let slowed: Vec<f64> =
            ends().filter(|(_, rate, _)| *rate >= FASTEST * fastest).map(|(.., slowed)| *slowed).collect();
        fastest >= NEAR_LIMIT * most_rate_bps && median(&slowed).is_some_and(|slowed| slowed < SLOWED)
    }
}

/// Returns `finding` as it is to be told: without an estimate, where `method` sees no more than what it may send and
/// the path would have taken that.
#[must_use]
pub fn judged(finding: Finding, method: &Method, ceiling: &Ceiling, most_rate_bps: f64) -> Finding {
    // Pathload and Spruce refuse by themselves, Kalman needs queues, hybrid widens its interval, and slotted compares
    // no rates. What one that was brought along does is not known.
    let blind = !matches!(
        method,
        Method::Pathload(_)
            | Method::Spruce(_)
            | Method::Kalman(_)
            | Method::Hybrid(_)
            | Method::Slotted(_)
            | Method::Own(_)
    );
    let Some(estimate) = finding.estimate_bps.filter(|_| blind && ceiling.is_reached(most_rate_bps)) else {
        return finding;
    };
    Finding {
        low_bps: Some(finding.low_bps.map_or(estimate, |low| low.min(estimate))),
        gave_up: Some(format!(
            "the path did not slow trains of {:.1} Mbit/s, about the most that may be sent: more may be available; \
             lift most_rate to go on",
            most_rate_bps / 1e6
        )),
        capacity_bps: finding.capacity_bps,
        notes: finding.notes,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::framing::Layer;
    use super::super::train::Plan;
    use super::*;

    fn framing() -> Framing {
        Framing::new(Layer::Wire, false)
    }

    /// A train at `rate_bps` whose packets arrive `slowed` further apart.
    fn train(rate_bps: f64, slowed: f64) -> Train {
        let gap = framing().gap_ns(1472, rate_bps);
        let sent_ns: Vec<i64> = (0..40).map(|place| (f64::from(place) * gap) as i64).collect();
        let arrived_ns = sent_ns.iter().map(|sent| Some((*sent as f64 * (1.0 + slowed)) as i64)).collect();
        Train { plan: Plan::even(40, 1472, gap), sent_ns, arrived_ns, ..Train::default() }
    }

    fn reached(trains: &[(f64, f64)]) -> bool {
        let mut ceiling = Ceiling::default();
        for (rate, slowed) in trains {
            ceiling.hear(&train(*rate, *slowed), framing());
        }
        ceiling.is_reached(10e6)
    }

    #[test]
    fn the_ceiling_is_reached_where_the_fastest_trains_pass_as_they_were_sent() {
        assert!(reached(&[(10e6, 0.0), (10e6, 0.01), (5e6, 0.0)]));
    }

    #[test]
    fn the_ceiling_is_not_reached_where_the_path_slows_the_fastest_trains() {
        assert!(!reached(&[(10e6, 0.2), (5e6, 0.0), (5e6, 0.0), (6e6, 0.0)]));
    }

    #[test]
    fn the_ceiling_is_not_reached_by_trains_far_below_what_may_be_sent() {
        assert!(!reached(&[(3e6, 0.0), (4e6, 0.0)]));
    }

    #[test]
    fn trains_that_expire_on_the_way_tell_nothing_of_the_path() {
        let mut ceiling = Ceiling::default();
        for (hops, slowed) in [(1, 0.0), (1, 0.0), (2, 0.3)] {
            let mut train = train(10e6, slowed);
            train.plan.packets.iter_mut().for_each(|packet| packet.hop_limit = Some(hops));
            ceiling.hear(&train, framing());
        }
        assert!(!ceiling.is_reached(10e6));
    }

    #[test]
    fn nothing_is_said_of_no_trains_and_of_packets_that_did_not_arrive() {
        assert!(!reached(&[]));
        let lost = Train { arrived_ns: vec![None; 40], ..train(10e6, 0.0) };
        let mut ceiling = Ceiling::default();
        ceiling.hear(&lost, framing());
        assert!(!ceiling.is_reached(10e6));
    }
}
