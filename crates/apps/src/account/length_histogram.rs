//! Counts of lengths: one count for each length up to eight, above that one for each power of two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lengths with a count of their own.
const EXACT: u64 = 8;
/// Buckets above: the powers of two from 16 to 2^63, and one for what is longer.
const DOUBLING: usize = 61;

/// Counts of lengths, in fixed memory.
#[derive(Clone, Debug, Default)]
pub struct LengthHistogram {
    /// Empty until the first length comes.
    buckets: Vec<u64>,
    count: u64,
    sum: u64,
    longest: u64,
}

/// The report of the counted lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LengthsReport {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The longest.
    pub max: u64,
    /// `[upper, count]`: how many are longer than the upper bound before, and no longer than this.
    pub histogram: Vec<(u64, u64)>,
}

impl LengthHistogram {
    /// Counts a length; zero is none.
    pub fn add(&mut self, length: u64) {
        if length == 0 {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; EXACT as usize + DOUBLING];
        }
        self.buckets[bucket_of(length)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(length);
        self.longest = self.longest.max(length);
    }

    /// Returns what was counted, empty when nothing was.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn report(&self) -> LengthsReport {
        let counted = |(bucket, count): (usize, &u64)| (*count > 0).then(|| (upper_of(bucket), *count));
        LengthsReport {
            count: self.count,
            mean: if self.count > 0 { self.sum as f64 / self.count as f64 } else { 0.0 },
            max: self.longest,
            histogram: self.buckets.iter().enumerate().filter_map(counted).collect(),
        }
    }
}

fn bucket_of(length: u64) -> usize {
    if length <= EXACT {
        length as usize - 1
    } else {
        // 9 to 16 come first: their logarithm, rounded up, is 4.
        EXACT as usize + (u64::BITS - (length - 1).leading_zeros()) as usize - 4
    }
}

fn upper_of(bucket: usize) -> u64 {
    if bucket < EXACT as usize {
        bucket as u64 + 1
    } else {
        1_u64.checked_shl((bucket - EXACT as usize) as u32 + 4).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_counts_in_the_bucket_whose_bounds_hold_it() {
        let mut lengths = LengthHistogram::default();
        for length in [1, 1, 8, 9, 16, 17, u64::MAX, 0] {
            lengths.add(length);
        }
        let report = lengths.report();
        assert_eq!(report.histogram, [(1, 2), (8, 1), (16, 2), (32, 1), (u64::MAX, 1)]);
        assert_eq!((report.count, report.max), (7, u64::MAX));
    }
}
