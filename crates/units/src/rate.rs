//! Line rates in bits per second.

use std::fmt;
use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Duration;

/// A rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// `bps` bits per second; `None` for zero.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Option<Self> {
        match NonZeroU64::new(bps) {
            Some(bps) => Some(Self(bps)),
            None => None,
        }
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0.get()
    }

    /// Time that `bytes` take at this rate, rounded to the nearest picosecond (an error below 1e-9 of a frame at
    /// 100 Gbit/s).
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn serialise(self, bytes: u64) -> Duration {
        const PS_PER_BYTE_AT_1_BPS: u64 = 8_000_000_000_000;
        let bps = self.0.get();
        if let Some(sum) = bytes.checked_mul(PS_PER_BYTE_AT_1_BPS).and_then(|product| product.checked_add(bps / 2)) {
            return Duration::from_ps(sum / bps);
        }
        let exact = (u128::from(bytes) * u128::from(PS_PER_BYTE_AT_1_BPS) + u128::from(bps / 2)) / u128::from(bps);
        Duration::from_ps(exact.min(u128::from(u64::MAX)) as u64)
    }

    /// Whole bytes that pass in `span`.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn bytes_in(self, span: Duration) -> u64 {
        let exact = u128::from(span.as_ps()) * u128::from(self.0.get()) / 8_000_000_000_000;
        exact.min(u128::from(u64::MAX)) as u64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0.get();
        for (unit, scale) in
            [("Tbit/s", 1_000_000_000_000), ("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000)]
        {
            if bps >= scale {
                return crate::parse::write_scaled(f, bps, scale, unit);
            }
        }
        write!(f, "{bps} bit/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_size_ethernet_frame_at_a_gigabit_takes_12304_ns() {
        let rate = Rate::from_bps(1_000_000_000).unwrap();
        assert_eq!(rate.serialise(1538).as_ps(), 12_304_000);
    }

    #[test]
    fn huge_sizes_saturate_and_do_not_overflow() {
        let rate = Rate::from_bps(1).unwrap();
        assert_eq!(rate.serialise(u64::MAX), Duration::MAX);
        assert_eq!(rate.serialise(2_305_844), Duration::MAX);
        let fast = Rate::from_bps(u64::MAX).unwrap();
        assert_eq!(fast.serialise(2_305_843).as_ps(), 1);
        assert_eq!(rate.serialise(2_000_000).as_ps(), 16_000_000_000_000_000_000);
    }
}
