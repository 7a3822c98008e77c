//! A stream of durations told in few numbers: moments exactly, quantiles by a histogram of fixed size.
//!
//! The histogram is log-linear: values below 64 have a bucket each; above, every power of two is cut into 64
//! buckets of equal width. A quantile is told as the middle of its bucket, so its relative error is at most 1/128
//! (0.8 %). Only the powers of two that occur have buckets, for most flows one or two of them, and never more than
//! 59: 128 bytes each, and half a KiB from the moment on when one bucket holds 65,536 values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 64 buckets in each power of two.
type LogBuckets = twinnet_units::LogBuckets<6>;
const PER_OCTAVE: usize = LogBuckets::PER_OCTAVE;

/// Streaming statistics of durations in picoseconds.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean (Welford 1962).
    squares: f64,
    least: u64,
    most: u64,
    /// The powers of two that have occurred, in order.
    octaves: Vec<Octave>,
}

/// The buckets of one power of two; number 0 holds the values below 64.
#[derive(Clone, Debug)]
struct Octave {
    number: usize,
    buckets: Buckets,
}

/// Counts of the values in each bucket, in 16 bits each until one of them needs more: memory for each flow of a
/// large network is mostly this.
#[derive(Clone, Debug)]
enum Buckets {
    Narrow(Box<[u16; PER_OCTAVE]>),
    Wide(Box<[u64; PER_OCTAVE]>),
}

impl Buckets {
    fn new() -> Self {
        Self::Narrow(Box::new([0; PER_OCTAVE]))
    }

    fn add(&mut self, place: usize) {
        match self {
            Self::Wide(counts) => counts[place] += 1,
            Self::Narrow(counts) => match counts[place].checked_add(1) {
                Some(more) => counts[place] = more,
                None => self.widen_and_add(place),
            },
        }
    }

    #[cold]
    fn widen_and_add(&mut self, place: usize) {
        let mut counts = Box::new([0; PER_OCTAVE]);
        for (wide, at) in counts.iter_mut().zip(0..) {
            *wide = self.at(at);
        }
        counts[place] += 1;
        *self = Self::Wide(counts);
    }

    fn at(&self, place: usize) -> u64 {
        match self {
            Self::Narrow(counts) => u64::from(counts[place]),
            Self::Wide(counts) => counts[place],
        }
    }
}

/// A [`Summary`] as reports show it; all but the count in picoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryReport {
    /// Number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// Standard deviation of the sample (n - 1); zero for a single value.
    pub std: f64,
    /// Median, by nearest rank, within 1 %.
    pub p50: u64,
    /// 90 % are no greater, within 1 %.
    pub p90: u64,
    /// 99 % are no greater, within 1 %.
    pub p99: u64,
}

impl Summary {
    /// Counts a value.
    #[allow(clippy::cast_precision_loss)]
    pub fn add(&mut self, value_ps: u64) {
        self.least = if self.count == 0 { value_ps } else { self.least.min(value_ps) };
        self.most = self.most.max(value_ps);
        self.count += 1;
        let distance = value_ps as f64 - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value_ps as f64 - self.mean);
        let bucket = LogBuckets::of(value_ps);
        let (number, place) = (bucket / PER_OCTAVE, bucket % PER_OCTAVE);
        let at = self.octaves.partition_point(|octave| octave.number < number);
        if self.octaves.get(at).is_none_or(|octave| octave.number != number) {
            self.octaves.insert(at, Octave { number, buckets: Buckets::new() });
        }
        self.octaves[at].buckets.add(place);
    }

    /// Number of values so far.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value that at least `share` of all are no greater than (nearest rank), within 1 %; `None`
    /// without values.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut below = 0;
        for octave in &self.octaves {
            for place in 0..PER_OCTAVE {
                below += octave.buckets.at(place);
                if below >= rank {
                    let bucket = octave.number * PER_OCTAVE + place;
                    return Some(middle_of(bucket).clamp(self.least, self.most));
                }
            }
        }
        Some(self.most)
    }

    /// The numbers for a report; `None` without values.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn report(&self) -> Option<SummaryReport> {
        let std = if self.count > 1 { (self.squares / (self.count - 1) as f64).sqrt() } else { 0.0 };
        Some(SummaryReport {
            count: self.count,
            mean: self.mean,
            min: self.least,
            max: self.most,
            std,
            p50: self.quantile(0.5)?,
            p90: self.quantile(0.9)?,
            p99: self.quantile(0.99)?,
        })
    }
}

fn middle_of(bucket: usize) -> u64 {
    LogBuckets::least(bucket) + LogBuckets::width(bucket) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_counts_beyond_16_bits() {
        let mut summary = Summary::default();
        for _ in 0..70_000 {
            summary.add(1000);
        }
        for _ in 0..140_001 {
            summary.add(1999);
        }
        assert_eq!(summary.count(), 210_001);
        let near =
            |share, value: u64| summary.quantile(share).is_some_and(|found| found.abs_diff(value) <= value / 100);
        assert!(near(0.333, 1000) && near(0.334, 1999) && near(1.0, 1999));
        let counts: u64 = summary.octaves.iter().flat_map(|octave| (0..64).map(|place| octave.buckets.at(place))).sum();
        assert_eq!(counts, 210_001);
    }

    #[test]
    fn moments_are_exact_for_a_known_sample() {
        let mut summary = Summary::default();
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            summary.add(value);
        }
        let report = summary.report().unwrap();
        assert_eq!((report.count, report.min, report.max, report.p50), (8, 2, 9, 4));
        assert!((report.mean - 5.0).abs() < 1e-12);
        assert!((report.std - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn values_near_each_other_share_their_buckets() {
        let mut summary = Summary::default();
        for value in [1_000_000, 1_040_000, 700_000] {
            summary.add(value);
        }
        assert_eq!(summary.octaves.len(), 1);
        summary.add(3);
        assert_eq!((summary.octaves.len(), summary.quantile(0.25)), (2, Some(3)));
    }

    #[test]
    fn nothing_seen_is_no_report() {
        assert_eq!(Summary::default().report(), None);
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_one_percent_of_the_nearest_rank(
            mut values in prop::collection::vec(any::<u64>(), 1..200), shift in 0_u32..64, share in 0.0..=1.0_f64
        ) {
            let mut summary = Summary::default();
            for value in &mut values {
                *value >>= shift;
                summary.add(*value);
            }
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let told = summary.quantile(share).unwrap() as f64;
            prop_assert!((told - exact).abs() <= exact * 0.01, "told {told}, exact {exact}");
            prop_assert!(summary.octaves.len() <= 59);
        }
    }
}
