//! Statistics of the times of a flow's arrivals, in fixed memory: distances, delays and three measures of their
//! variation.
//!
//! The three have names of their own, since each is called jitter somewhere:
//! - RFC 3550: the smoothed mean of |D(i) - D(i-1)| over arrivals in their order;
//! - RFC 4689, 3.2.5: |D(i) - D(i-1)| of two packets received one after the other, as a distribution;
//! - RFC 3393: D(i) - D(i-1) with its sign, of packets that were sent one after the other and both arrived in order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::Time;

use crate::account::interval_times::Timing;
use crate::account::report::FlowReport;
use crate::Summary;

/// RFC 3550, 6.4.1: J(i) = J(i-1) + (|D(i-1,i)| - J(i-1)) / 16.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmoothedJitter {
    /// The jitter now, in the unit of what was added.
    pub now: f64,
}

impl SmoothedJitter {
    /// Enters a difference of transit times.
    pub fn add(&mut self, difference: f64) {
        self.now += (difference.abs() - self.now) / 16.0;
    }
}

/// Mean, deviation and extremes of values that have a sign.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignedMoments {
    count: u64,
    mean: f64,
    squares: f64,
    least: f64,
    most: f64,
}

/// A [`SignedMoments`] in a report, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignedReport {
    /// Number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Standard deviation of the sample (n - 1); zero for a single value.
    pub std: f64,
}

impl SignedMoments {
    /// Counts a value.
    #[allow(clippy::cast_precision_loss)]
    pub fn add(&mut self, value: f64) {
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.most = if self.count == 0 { value } else { self.most.max(value) };
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// The numbers for a report; `None` without values.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn report(&self) -> Option<SignedReport> {
        let std = if self.count > 1 { (self.squares / (self.count - 1) as f64).sqrt() } else { 0.0 };
        (self.count > 0).then_some(SignedReport {
            count: self.count,
            mean: self.mean,
            min: self.least,
            max: self.most,
            std,
        })
    }
}

/// The arrivals of one flow.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    last: Option<Time>,
    gaps: Summary,
    delays: Summary,
    /// Delays that came out negative and were entered as zero.
    below_zero: u64,
    /// Transit time of the latest arrival, and its number.
    transit: Option<(i128, u64)>,
    jitter_rfc3550: SmoothedJitter,
    jitter_rfc4689: Summary,
    variation: SignedMoments,
}

impl Arrivals {
    /// Enters an arrival that is no duplicate: its number, and when it was sent, where it tells; what that tells.
    #[allow(clippy::cast_precision_loss)]
    pub fn add(&mut self, number: u64, sent: Option<Time>, arrived: Time) -> Option<Timing> {
        if let Some(last) = self.last.replace(arrived) {
            self.gaps.add(arrived.since(last).as_ps());
        }
        let sent = sent?;
        let delay_ps = arrived.since(sent).as_ps();
        self.below_zero += u64::from(arrived < sent);
        self.delays.add(delay_ps);
        let transit = i128::from(arrived.as_ps()) - i128::from(sent.as_ps());
        let mut variation_ps = None;
        let difference_ps = self.transit.replace((transit, number)).map(|(before, previous)| {
            let difference = transit - before;
            let without_sign = u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX);
            self.jitter_rfc3550.add(difference as f64);
            self.jitter_rfc4689.add(without_sign);
            if number == previous + 1 {
                self.variation.add(difference as f64);
                variation_ps = Some(difference as f64);
            }
            without_sign
        });
        Some(Timing { delay_ps, difference_ps, jitter_rfc3550_ps: self.jitter_rfc3550.now, variation_ps })
    }

    /// Fills in what is known of times.
    pub fn fill(&self, row: &mut FlowReport) {
        row.gap_ps = self.gaps.report().into();
        row.delay_ps = self.delays.report().into();
        row.delays_below_zero = Some(self.below_zero);
        if self.below_zero > 0 {
            row.errors.push(format!(
                "{} one-way delays were below zero and are counted as zero: the clocks' comparison is wrong by more \
                 than the delay",
                self.below_zero
            ));
        }
        row.jitter_rfc3550_ps = Some(self.jitter_rfc3550.now);
        row.jitter_rfc4689_ps = self.jitter_rfc4689.report().into();
        row.delay_variation_rfc3393_ps = self.variation.report().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::report::{Protocol, Role};

    #[test]
    fn the_three_measures_follow_their_formulas() {
        let mut arrivals = Arrivals::default();
        // Delays 100, 116, 100, then number 3 is missing, 130.
        for (number, sent, arrived) in [(0, 0, 100), (1, 1000, 1116), (2, 2000, 2100), (4, 4000, 4130)] {
            arrivals.add(number, Some(Time::from_ps(sent)), Time::from_ps(arrived));
        }
        let mut row = FlowReport::new(None, Protocol::Udp, Role::Sink);
        arrivals.fill(&mut row);
        // |D| is 16, 16, 30: 1; 1 + 15/16; and 1/16 of the way to 30.
        let smoothed = 1.9375 + (30.0 - 1.9375) / 16.0;
        assert!((row.jitter_rfc3550_ps.unwrap() - smoothed).abs() < 1e-12);
        let jitter = row.jitter_rfc4689_ps.told().unwrap();
        assert_eq!((jitter.count, jitter.min, jitter.max), (3, 16, 30));
        let variation = row.delay_variation_rfc3393_ps.told().unwrap();
        assert_eq!((variation.count, variation.min, variation.max, variation.mean), (2, -16.0, 16.0, 0.0));
        assert_eq!(row.gap_ps.told().unwrap().max, 2030);
        assert_eq!((row.delays_below_zero, row.errors.len()), (Some(0), 0));
    }

    #[test]
    fn a_datagram_that_arrives_before_it_was_sent_is_told() {
        let mut arrivals = Arrivals::default();
        for (number, sent, arrived) in [(0, 500, 400), (1, 1000, 1100), (2, 2100, 2000)] {
            arrivals.add(number, Some(Time::from_ps(sent)), Time::from_ps(arrived));
        }
        let mut row = FlowReport::new(None, Protocol::Udp, Role::Sink);
        arrivals.fill(&mut row);
        assert_eq!((row.delays_below_zero, row.delay_ps.told().unwrap().min), (Some(2), 0));
        assert!(row.errors[0].starts_with("2 one-way delays were below zero"), "{:?}", row.errors);
        // Their variation needs no comparison of clocks: each differs from the one before by 200 ps.
        assert_eq!(row.jitter_rfc4689_ps.told().unwrap().min, 200);
    }

    #[test]
    fn each_arrival_tells_its_own_delay_and_how_it_differs() {
        let mut arrivals = Arrivals::default();
        let mut told = |number, sent: Option<u64>, arrived| {
            let timing = arrivals.add(number, sent.map(Time::from_ps), Time::from_ps(arrived));
            timing.map(|one| (one.delay_ps, one.difference_ps, one.jitter_rfc3550_ps, one.variation_ps))
        };
        assert_eq!(told(0, Some(0), 100), Some((100, None, 0.0, None)));
        assert_eq!(told(1, Some(1000), 1084), Some((84, Some(16), 1.0, Some(-16.0))));
        // It does not tell when it was sent, and parts nothing: the next is compared with the one before it.
        assert_eq!(told(2, None, 2000), None);
        assert_eq!(told(3, Some(3000), 3116), Some((116, Some(32), 1.0 + 31.0 / 16.0, None)));
        // Late: no variation of RFC 3393. Nor is there one where the number is the same again.
        let (delay_ps, difference_ps, _, variation_ps) = told(1, Some(1000), 3200).unwrap();
        assert_eq!((delay_ps, difference_ps, variation_ps), (2200, Some(2084), None));
        assert_eq!(told(1, Some(1000), 3300).unwrap().3, None);
        // As soon as it was sent is not before it was.
        assert_eq!(told(2, Some(4000), 4000).unwrap().0, 0);
        let mut row = FlowReport::new(None, Protocol::Udp, Role::Sink);
        arrivals.fill(&mut row);
        assert_eq!((row.delays_below_zero, row.errors), (Some(0), vec![]));
        let gaps = row.gap_ps.told().unwrap();
        assert_eq!((gaps.count, gaps.min, gaps.max), (6, 84, 1116));
    }

    #[test]
    fn signed_moments_are_those_of_a_sample() {
        let mut moments = SignedMoments::default();
        assert_eq!(moments.report(), None);
        moments.add(-3.0);
        assert_eq!(moments.report(), Some(SignedReport { count: 1, mean: -3.0, min: -3.0, max: -3.0, std: 0.0 }));
        for value in [1.0, 5.0, -3.0, 10.0] {
            moments.add(value);
        }
        let told = moments.report().unwrap();
        assert_eq!((told.count, told.min, told.max), (5, -3.0, 10.0));
        // Squares of -5, -1, 3, -5 and 8 are 124 together; a fourth of that.
        assert!((told.mean - 2.0).abs() < 1e-12 && (told.std - 31.0_f64.sqrt()).abs() < 1e-12, "{told:?}");
    }
}
