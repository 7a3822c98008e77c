//! The token bucket that shapers share: integer arithmetic, so that it neither drifts nor rounds in anyone's favour.

use twinnet_units::Time;

/// Tokens that one byte costs. One token is what a rate of 1 bit/s gathers in one picosecond, so every level is a
/// whole number.
const TOKENS_PER_BYTE: i128 = 8_000_000_000_000;
/// The most debt that is remembered, as time at the bucket's rate: what the kernel's HTB remembers (`mbuffer`, 60 s).
const LONGEST_DEBT_PS: i128 = 60_000_000_000_000;

/// A bucket that fills at a rate up to a depth and may be overdrawn.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate_bps: i128,
    depth: i128,
    level: i128,
    at: Time,
}

impl TokenBucket {
    /// A full bucket. `rate_bps` is at most 10^15 (checked with the configuration), so that no level overflows.
    pub fn new(rate_bps: u64, depth_bytes: u64) -> Self {
        let depth = i128::from(depth_bytes) * TOKENS_PER_BYTE;
        Self { rate_bps: i128::from(rate_bps), depth, level: depth, at: Time::ZERO }
    }

    /// Makes the bucket at least so deep; what it holds stays.
    pub fn deepen(&mut self, depth_bytes: u64, now: Time) {
        self.advance(now);
        self.depth = self.depth.max(i128::from(depth_bytes) * TOKENS_PER_BYTE);
    }

    /// Returns `true` if `bytes` can ever be in the bucket at once.
    pub fn can_hold(&self, bytes: u64) -> bool {
        i128::from(bytes) * TOKENS_PER_BYTE <= self.depth
    }

    /// Returns `true` if the bucket holds `bytes` at `now`; with 0 bytes, if it is not overdrawn.
    pub fn holds(&self, bytes: u64, now: Time) -> bool {
        self.level_at(now) >= i128::from(bytes) * TOKENS_PER_BYTE
    }

    /// Whole bytes in the bucket at `now`; 0 when it is overdrawn.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn bytes(&self, now: Time) -> u64 {
        (self.level_at(now) / TOKENS_PER_BYTE).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The first picosecond from `now` on at which the bucket holds `bytes`; `None` when it is not deep enough.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn ready(&self, bytes: u64, now: Time) -> Option<Time> {
        let wanted = i128::from(bytes) * TOKENS_PER_BYTE;
        let missing = wanted - self.level_at(now);
        if missing <= 0 {
            return Some(now);
        }
        if wanted > self.depth {
            return None;
        }
        let wait_ps = (missing + self.rate_bps - 1) / self.rate_bps;
        Some(Time::from_ps((i128::from(now.as_ps()) + wait_ps).min(i128::from(u64::MAX)) as u64))
    }

    /// Takes `bytes` out at `now`, into debt if need be.
    pub fn charge(&mut self, bytes: u64, now: Time) {
        self.advance(now);
        let floor = -self.rate_bps * LONGEST_DEBT_PS;
        self.level = (self.level - i128::from(bytes) * TOKENS_PER_BYTE).max(floor);
    }

    fn advance(&mut self, now: Time) {
        self.level = self.level_at(now);
        self.at = self.at.max(now);
    }

    fn level_at(&self, now: Time) -> i128 {
        let elapsed_ps = i128::from(now.since(self.at).as_ps());
        (self.level + elapsed_ps * self.rate_bps).min(self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_is_exact_to_the_picosecond_at_a_rate_that_divides_nothing() {
        let mut bucket = TokenBucket::new(7_777_777, 1_600);
        bucket.charge(1_600, Time::ZERO);
        let ready = bucket.ready(1_000, Time::ZERO).unwrap();
        // 8000 bits / 7777777 bit/s = 1028571531.4 ps
        assert_eq!(ready, Time::from_ps(1_028_571_532));
        assert!(bucket.holds(1_000, ready));
        assert!(!bucket.holds(1_000, Time::from_ps(ready.as_ps() - 1)));
    }

    #[test]
    fn a_million_refills_lose_nothing() {
        let mut stepped = TokenBucket::new(333_333_333, 10_000_000);
        stepped.charge(10_000_000, Time::ZERO);
        let mut leapt = stepped.clone();
        for step in 1..=1_000_000_u64 {
            stepped.advance(Time::from_ps(step * 1_237));
        }
        leapt.advance(Time::from_ps(1_237_000_000));
        assert_eq!(stepped.level, leapt.level);
    }

    #[test]
    fn time_that_runs_backwards_gives_no_tokens() {
        let mut bucket = TokenBucket::new(1_000_000, 100);
        bucket.charge(100, Time::from_ns(1_000));
        assert!(!bucket.holds(1, Time::ZERO));
        assert_eq!(bucket.bytes(Time::ZERO), 0);
    }
}
