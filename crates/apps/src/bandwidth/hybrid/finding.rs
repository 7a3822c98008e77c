//! What is told: the estimate, its interval, and the notes.

use super::super::estimator::Finding;
use super::super::student::quantile_975;
use super::ratio::{Ratio, SPAN};
use super::trains::LATE_UNKNOWN;
use super::Hybrid;

/// Of several loaded links trains say so much less at most.
const SEVERAL_LOW: f64 = 1.05;
/// A line cannot carry packets so many times as fast as its capacity, however few.
const FASTER: f64 = 1.5;
/// Where trains find that much of the capacity, they met no queue to speak of.
const UNLOADED: f64 = 0.95;

impl Hybrid {
    /// What became of the trains, where there is anything to say.
    fn notes_of_trains(&self) -> Vec<String> {
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
        notes
    }

    /// Returns `true` if trains may not be sent fast enough to tell what the tight link does between their packets.
    pub(super) fn is_too_slow(&self, ratio: &Ratio) -> bool {
        let capacity = self.capacity().unwrap_or(0.0);
        self.probing.most_rate_bps < 0.99 * capacity
            && ratio.unknown > LATE_UNKNOWN * ratio.available.max(0.01 * capacity)
    }

    /// Why the capacity that was told is not that of a line, where trains found nearly all of it available although
    /// packets sent at once came through much faster.
    fn disproof_of_capacity(&self, available: f64) -> Option<String> {
        let (told, rate) = self.config.capacity_bps.zip(self.dispersion)?;
        (rate > FASTER * told && available > UNLOADED * told).then(|| {
            format!(
                "packets sent at once arrived at {:.1} Mbit/s, and trains met no queue at {:.1} Mbit/s, the capacity \
                 that was told: a shaper lets bursts pass, or it is wrong; ask counters",
                rate / 1e6,
                told / 1e6
            )
        })
    }

    /// Returns what is known by now.
    pub(super) fn found(&self) -> Finding {
        let mut notes = self.notes_of_trains();
        let capacity = self.capacity();
        if let Some(of_prior) = self.answer_of_prior(&notes) {
            return of_prior;
        }
        let Some(ratio) = self.ratio().or(self.before.map(|before| before.0)) else {
            let why = self.done.then(|| "fewer than three trains kept the tight link busy".to_owned());
            return Finding {
                gave_up: self.gave_up.clone().or(why),
                capacity_bps: capacity,
                notes,
                ..Finding::default()
            };
        };
        if let Some(why) = self.disproof_of_capacity(ratio.available).filter(|_| self.config.prior_bps.is_none()) {
            return Finding { gave_up: Some(why), notes, ..Finding::default() };
        }
        let even = ratio.even;
        let (mut probed, mut half) = (ratio.available, quantile_975(ratio.freedom) * ratio.error);
        let looked = capacity.and_then(|capacity| self.looked(&ratio, capacity));
        if let Some(seen) = looked {
            (probed, half) = (seen.available, 1.96 * seen.error);
            notes.push(format!("cross traffic is random: {} short packets looked for a queue", self.looks.count()));
        } else if self.is_too_slow(&ratio) {
            // Anything between what passed and what was not seen to be taken.
            (probed, half) = (ratio.least + ratio.unknown / 2.0, half + ratio.unknown / 2.0);
            notes.push(format!(
                "trains of {:.1} Mbit/s, the most that may be sent, do not keep the tight link busy: the interval is \
                 all that may be available; lift most_rate",
                self.probing.most_rate_bps / 1e6
            ));
        }
        let (mut estimate, half, contradiction) = self.fuse(probed, half);
        if contradiction {
            notes.push("the prior and what trains found contradict each other: the interval spans both".to_owned());
        }
        let (mut low, mut high) = ((estimate - half).max(0.0), estimate + half);
        if self.config.prior_bps.is_none() && looked.is_none() {
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
        if let Some(rate) = several.filter(|_| self.config.prior_bps.is_none() && looked.is_none()) {
            high = high.max(rate).max(high * SEVERAL_LOW);
            notes.push("several links seem to be loaded: more may be available than was found".to_owned());
        }
        let spanned = self.spanned();
        let partly = spanned < if self.looks.count() > 0 { 1.0 } else { SPAN };
        if partly && looked.is_none() && self.config.prior_bps.is_none() {
            // In the rest of the window anything may have been available.
            low *= spanned;
            high = high.mul_add(spanned, (1.0 - spanned) * capacity.unwrap_or(high).max(estimate));
            notes.push(format!("the trains that count span {:.0} % of the window", 100.0 * spanned));
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
