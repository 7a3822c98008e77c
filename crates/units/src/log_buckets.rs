//! The buckets of log-linear histograms: as fine as the values are large.
//!
//! Values below `2^BITS` have a bucket each; above, every power of two is cut into `2^BITS` buckets of equal width, so
//! that a bucket is at most `2^-BITS` of its values wide (as in HdrHistogram). Counts are the user's to keep.

/// Numbers of buckets, with `2^BITS` of them in each power of two; `BITS` is 1 to 16.
#[derive(Clone, Copy, Debug)]
pub struct LogBuckets<const BITS: u32>;

impl<const BITS: u32> LogBuckets<BITS> {
    /// Buckets in each power of two.
    pub const PER_OCTAVE: usize = 1 << BITS;

    /// The bucket that holds `value`.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub const fn of(value: u64) -> usize {
        if value < Self::PER_OCTAVE as u64 {
            return value as usize;
        }
        let shift = value.ilog2() - BITS;
        shift as usize * Self::PER_OCTAVE + (value >> shift) as usize
    }

    /// The least value in `bucket`.
    #[must_use]
    pub const fn least(bucket: usize) -> u64 {
        if bucket < Self::PER_OCTAVE {
            return bucket as u64;
        }
        ((bucket % Self::PER_OCTAVE + Self::PER_OCTAVE) as u64) << Self::shift(bucket)
    }

    /// Returns the number of values that `bucket` holds.
    #[must_use]
    pub const fn width(bucket: usize) -> u64 {
        1 << Self::shift(bucket)
    }

    const fn shift(bucket: usize) -> usize {
        (bucket / Self::PER_OCTAVE).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::LogBuckets;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        assert_eq!(LogBuckets::<3>::least(0), 0);
        for bucket in 0..8 * 61 {
            let next = LogBuckets::<3>::least(bucket) + LogBuckets::<3>::width(bucket);
            assert_eq!((LogBuckets::<3>::least(bucket + 1), LogBuckets::<3>::of(next)), (next, bucket + 1));
        }
    }

    proptest! {
        #[test]
        fn a_value_is_in_its_bucket_which_is_narrow(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let bucket = LogBuckets::<6>::of(value);
            let least = LogBuckets::<6>::least(bucket);
            prop_assert!(least <= value && value - least < LogBuckets::<6>::width(bucket));
            prop_assert!(LogBuckets::<6>::width(bucket) == 1 || LogBuckets::<6>::width(bucket) <= value / 64);
        }
    }
}
