//! Tells whether packets arrive by a clock that the sender did not keep: a link of mobile access serves a user in slots
//! of one millisecond, and what waits for one leaves all at once. Gaps then say when slots came, and not how fast the
//! path is; how much passes in a slot changes with the radio channel, so that no estimate of some seconds holds for the
//! next ones.
//!
//! Slots are taken for seen where arrivals within trains have all of these marks: nearly all of the time is in long
//! gaps; packets stand close together between them; long gaps end at the same fraction of a millisecond; and the long
//! gaps that the sender made, if any, do not.

use std::f64::consts::TAU;

use super::estimator::Finding;
use super::method::Method;
use super::train::Train;

/// The slot of LTE (3GPP TS 36.211, section 4: a subframe), and of traces of Mahimahi.
pub(super) const SLOT_NS: i64 = 1_000_000;
/// A longer gap between packets spans more than one slot.
const LONG_NS: i64 = SLOT_NS / 2;
/// A shorter one is within a slot.
pub(super) const SHORT_NS: i64 = SLOT_NS / 10;
/// Long gaps that are needed: the mean of as many cosines of random angles is above [`IN_STEP`] by chance in one of
/// 200,000 cases, as it has a standard deviation of 0.16. (Pairs of packets have few long gaps.)
const LEAST_LONG: usize = 20;
const IN_STEP: f64 = 0.7;
/// Each is compared with the one so many before it: where a packet takes a link about a slot, they drift apart by then.
const LAG: usize = 4;
/// The share of the time of trains that is in long gaps, and that of gaps that are short.
const MOSTLY: f64 = 0.8;
const LEAST_SHORT: f64 = 0.2;

/// Whether long gaps end at the same fraction of a slot as others before them.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    /// The last ends.
    recent_ns: [i64; LAG],
    heard: usize,
    cosines: f64,
}

impl Steps {
    fn hear(&mut self, at_ns: i64) {
        let place = self.heard % LAG;
        if self.heard >= LAG {
            let since_ns = (at_ns - self.recent_ns[place]).rem_euclid(SLOT_NS);
            self.cosines += (TAU * since_ns as f64 / SLOT_NS as f64).cos();
        }
        self.recent_ns[place] = at_ns;
        self.heard += 1;
    }

    /// How many were compared.
    fn count(self) -> usize {
        self.heard.saturating_sub(LAG)
    }

    fn are_kept(self) -> bool {
        self.cosines > IN_STEP * self.count() as f64
    }
}

/// Returns `true` if enough arrivals of packets that were sent at every phase of the slots have one phase, in
/// nanoseconds: they left by a clock, though perhaps too few together to be sure of slots.
pub(super) fn are_one_phase(phases_ns: &[f64]) -> bool {
    let angles = || phases_ns.iter().map(|phase| TAU * phase / SLOT_NS as f64);
    let length = angles().map(f64::cos).sum::<f64>().hypot(angles().map(f64::sin).sum());
    phases_ns.len() >= LEAST_LONG && length > IN_STEP * phases_ns.len() as f64
}

/// What was heard of arrivals so far.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    arrivals: Steps,
    sender: Steps,
    time_ns: f64,
    long_ns: f64,
    gaps: u32,
    short: u32,
}

impl Slots {
    /// Takes in a train.
    pub fn hear(&mut self, train: &Train) {
        for pair in train.sent_ns.windows(2) {
            if pair[1] - pair[0] > LONG_NS {
                self.sender.hear(pair[1]);
            }
        }
        let longest = train.plan.packets.iter().map(|packet| packet.payload).max().unwrap_or(0);
        let arrived = train.arrived();
        for pair in arrived.windows(2) {
            let both = train.arrived_ns[pair[0]].zip(train.arrived_ns[pair[1]]);
            let Some((before_ns, at_ns)) = both else { continue };
            let gap_ns = at_ns - before_ns;
            self.time_ns += gap_ns as f64;
            self.gaps += 1;
            if gap_ns > LONG_NS {
                self.long_ns += gap_ns as f64;
                self.arrivals.hear(at_ns);
            } else if gap_ns < SHORT_NS && train.plan.packets[pair[1]].payload == longest {
                // A short packet may follow a long one closely over any link.
                self.short += 1;
            }
        }
    }

    /// Returns `true` if packets arrived in slots.
    #[must_use]
    pub fn are_seen(&self) -> bool {
        self.arrivals.count() >= LEAST_LONG
            && self.arrivals.are_kept()
            && self.long_ns > MOSTLY * self.time_ns
            && f64::from(self.short) > LEAST_SHORT * f64::from(self.gaps)
            && !(self.sender.count() >= self.arrivals.count() / 2 && self.sender.are_kept())
    }
}

/// Why no method tells the rate of such a link.
const WHY: &str =
    "packets arrive together in slots of 1 ms, as over a mobile link: gaps do not tell its rate, and the \
                   rate changes while it is estimated; ask the counters of the link's ports";

/// The finding where packets arrive in slots: the counters' word if `method` was told it, and otherwise none.
#[must_use]
pub fn finding(method: &Method) -> Finding {
    let Method::Hybrid(config) = method else {
        return Finding { gave_up: Some(WHY.to_owned()), ..Finding::default() };
    };
    let Some((prior, deviation)) = config.prior() else {
        let why = format!("{WHY}, and give hybrid what they say as its prior");
        return Finding { gave_up: Some(why), ..Finding::default() };
    };
    Finding {
        capacity_bps: config.capacity_bps,
        notes: vec![
            "packets arrive together in slots of 1 ms, as over a mobile link, and say nothing of its rate: the \
             estimate is the prior"
                .to_owned(),
        ],
        ..Finding::around(Some(prior), Some(1.96 * deviation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandwidth::estimator::Probing;
    use crate::bandwidth::framing::{Framing, Layer};
    use crate::bandwidth::model_path::{Cross, Link, ModelPath};
    use crate::bandwidth::train::Plan;
    use serde_json::json;

    /// A train of full packets, `gap_ns` apart, whose arrivals are made from the times at which they were sent.
    fn train(begin_ns: i64, count: usize, gap_ns: i64, arrives: impl Fn(i64) -> i64) -> Train {
        let sent_ns: Vec<i64> = (0..count as i64).map(|place| begin_ns + place * gap_ns).collect();
        let mut arrived_ns: Vec<Option<i64>> = Vec::new();
        for sent in &sent_ns {
            // Packets leave the next link one after the other.
            let free = arrived_ns.last().copied().flatten().map_or(i64::MIN, |last: i64| last + 12_304);
            arrived_ns.push(Some(arrives(*sent).max(free)));
        }
        Train { plan: Plan::even(count, 1472, gap_ns as f64), sent_ns, arrived_ns, ..Train::default() }
    }

    fn heard(trains: impl IntoIterator<Item = Train>) -> bool {
        let mut slots = Slots::default();
        for train in trains {
            slots.hear(&train);
        }
        slots.are_seen()
    }

    #[test]
    fn packets_that_wait_for_the_next_millisecond_are_seen() {
        let next_slot = |sent: i64| (sent / SLOT_NS + 1) * SLOT_NS + 77_123;
        for gap_ns in [150_000, 307_600, 400_000] {
            let trains = (0..8).map(|number| train(number * 33_300_000, 50, gap_ns, next_slot));
            assert!(heard(trains), "{gap_ns}");
        }
    }

    #[test]
    fn a_link_that_sends_one_packet_after_the_other_is_none_of_slots() {
        // 12.304 Mbit/s: a full packet takes 1 ms, but none leave together.
        let trains = (0..8).map(|number| {
            let mut train = train(number * 333_000_000, 50, 900_000, |sent| sent);
            for (place, arrived) in train.arrived_ns.iter_mut().enumerate() {
                *arrived = Some(number * 333_000_000 + place as i64 * SLOT_NS);
            }
            train
        });
        assert!(!heard(trains));
    }

    #[test]
    fn a_sender_that_keeps_to_milliseconds_itself_makes_no_slots() {
        let trains = (0..8).map(|number| {
            let mut train = train(number * 333_000_000, 50, 1, |sent| sent + 5_000_000);
            for (place, sent) in train.sent_ns.iter_mut().enumerate() {
                *sent = number * 333_000_000 + (place as i64 / 3) * SLOT_NS + (place as i64 % 3) * 12_304;
            }
            train.arrived_ns = train.sent_ns.iter().map(|sent| Some(sent + 5_000_000)).collect();
            train
        });
        assert!(!heard(trains));
    }

    #[test]
    fn no_method_takes_a_loaded_link_for_one_of_slots() {
        for name in ["pathload", "yaz", "assolo", "pathchirp", "stab", "kalman", "ptr", "hybrid"] {
            for (rate, load) in [(3e6, 1.5e6), (9.3e6, 3e6), (12.304e6, 6e6), (100e6, 70e6)] {
                let method: Method = serde_json::from_value(json!({"name": name})).unwrap();
                let framing = Framing::new(Layer::Wire, false);
                let probing = Probing { framing, most_payload: 1472, most_rate_bps: 2.0 * rate, seed: 3 };
                let mut path = ModelPath::new(vec![Link::new(rate, load, Cross::Poisson, 5)], framing);
                path.run(&mut *method.build(probing));
                assert!(!path.slots.are_seen(), "{name} at {rate}");
            }
        }
    }

    #[test]
    fn only_counters_tell_what_such_a_link_has_left() {
        let of = |value| -> Finding { finding(&serde_json::from_value(value).unwrap()) };
        assert!(of(json!({"name": "yaz"})).gave_up.unwrap().contains("ask the counters"));
        assert!(of(json!({"name": "hybrid"})).gave_up.unwrap().contains("as its prior"));
        let told = of(json!({"name": "hybrid", "prior_bps": 20e6, "prior_std_bps": 5e6}));
        assert_eq!((told.estimate_bps, told.low_bps, told.gave_up), (Some(20e6), Some(20e6 - 9.8e6), None));
    }
}
