//! Bandwidths as BBR counts them: whole segments over time, and gains as 256ths.

use twinnet_units::{Duration, Rate};

/// A gain of 1.
pub(super) const UNIT: u64 = 256;
/// Share of the bandwidth that is paced at, in percent: what keeps the queue from building up by rounding.
const PACED_PERCENT: u128 = 99;

/// Segments per microsecond, times 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bandwidth(u64);

impl Bandwidth {
    pub const ZERO: Self = Self(0);

    /// `segments` over `interval`, which is at least a microsecond.
    pub fn of(segments: u64, interval: Duration) -> Self {
        Self((segments << 24) / microseconds(interval).max(1))
    }

    /// The mean of two.
    pub fn mean(self, other: Self) -> Self {
        Self(u64::midpoint(self.0, other.0))
    }

    pub fn difference(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// `gain` 256ths of it.
    pub fn times(self, gain: u64) -> Self {
        Self(saturated((u128::from(self.0) * u128::from(gain)) >> 8))
    }

    /// Whole segments that pass in `span`, times `gain`.
    pub fn segments_in(self, span: Duration, gain: u64) -> u32 {
        let scaled = u128::from(self.0) * u128::from(microseconds(span)) * u128::from(gain);
        u32::try_from(scaled >> 32).unwrap_or(u32::MAX)
    }

    /// As [`Bandwidth::segments_in`], rounded up.
    pub fn segments_to_fill(self, span: Duration, gain: u64) -> u32 {
        let scaled = (u128::from(self.0) * u128::from(microseconds(span)) * u128::from(gain)) >> 8;
        u32::try_from(scaled.div_ceil(1 << 24)).unwrap_or(u32::MAX)
    }

    /// Bytes per second, for segments of `segment_bytes`.
    pub fn bytes_per_second(self, segment_bytes: u32) -> u64 {
        saturated((u128::from(self.0) * u128::from(segment_bytes) * 1_000_000) >> 24)
    }

    /// The bandwidth to pace at so that this one is met.
    pub fn paced(self) -> Self {
        Self(saturated(u128::from(self.0) * PACED_PERCENT / 100))
    }

    /// As a rate on segments of `segment_bytes`, at least a bit per second.
    pub fn rate(self, segment_bytes: u32) -> Option<Rate> {
        let bits = (u128::from(self.0) * u128::from(segment_bytes) * 8_000_000) >> 24;
        Rate::from_bps(saturated(bits).max(1))
    }
}

fn microseconds(span: Duration) -> u64 {
    span.as_ps() / 1_000_000
}

fn saturated(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_tells_segments_and_rates() {
        let bandwidth = Bandwidth::of(100, Duration::from_ms(10));
        assert_eq!(bandwidth.segments_in(Duration::from_ms(1), UNIT), 9, "2^24 / 100 is not whole: rounded down");
        assert_eq!(bandwidth.segments_to_fill(Duration::from_ms(1), UNIT), 10);
        assert_eq!(bandwidth.segments_to_fill(Duration::from_ms(1), 2 * UNIT), 20);
        let rate = bandwidth.rate(1250).unwrap().as_bps();
        assert!((99_999_000..=100_000_000).contains(&rate), "{rate}");
        assert_eq!(Bandwidth::ZERO.rate(1250).unwrap().as_bps(), 1);
    }
}
