//! Doubts about precise trains: that only the narrow link was loaded.

use super::super::estimator::{mean_and_error, Step};
use super::super::train::{Plan, Train};
use super::{Hybrid, FIRST_PACKETS};

/// So many trains that tell where to begin where cross traffic is random, to tell whether several links are loaded.
const RANDOM_FIRST_TRAINS: u32 = 12;
/// Where several links are loaded: packets sent at once.
const SEVERAL_BURST: u32 = 96;
/// Packets sent at once arrive no slower than one link with the cross traffic that was found lets them: below so much
/// of that, several links seem to be loaded. Three short trains leave as much noise.
const ONE_LINK: f64 = 0.95;

impl Hybrid {
    /// The next train of those that put in doubt what precise trains found: that only the narrow link was loaded.
    pub(super) fn doubt(&mut self) -> Option<Step> {
        let (capacity, ratio) = self.capacity().zip(self.ratio())?;
        let full = self.probing.most_payload;
        if self.config.prior_bps.is_some() || self.is_too_slow(&ratio) {
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
            self.before = Some((ratio, self.ended_ns));
            self.forget();
            self.precise = false;
        }
        None
    }

    /// The rate at which packets that were sent at once arrived, where it is too low for one loaded link of `capacity`
    /// with `available` left. At their own rate or less, they meet the cross traffic `capacity - available`, and share
    /// the link with it in proportion. Several links one after the other spread a train further, each by its own queue:
    /// estimates are then too low, and that rate is still above what is available.
    pub(super) fn of_several_links(&self, capacity: f64, available: f64) -> Option<f64> {
        let cross = (capacity - available).max(0.0);
        let one = capacity.powi(2) / (capacity + cross);
        let (_, error) = mean_and_error(&self.first_rates)?;
        self.dispersion.filter(|rate| *rate < ONE_LINK * one && *rate + error < one)
    }

    pub(super) fn hear_check(&mut self, train: &Train) {
        self.note_delays(train);
        if let Some((rate, narrow)) = train.generated_bps(self.probing.framing).zip(self.capacity()) {
            self.checks.hear(train, rate, self.probing.framing.gap_ns(self.probing.most_payload, narrow));
        }
    }
}
