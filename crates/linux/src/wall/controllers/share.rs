//! The share of its time that the loop gives to controllers.
//!
//! Frames are looked after between any two pieces of what controllers say, so a flood of messages costs them a
//! piece's time at most. But it must not take the whole processor either: a loop of real-time class that does so is
//! stopped by the kernel.

use twinnet_units::{Duration, Time};

/// Share of the time that controllers may take for long: four fifths.
const SHARE: (u64, u64) = (4, 5);
/// The most that they may take beyond that in a row.
const MOST_CREDIT: Duration = Duration::from_ms(1);
/// The least credit before the next piece where nothing was left: to sleep for less is not worth it.
const FRESH_CREDIT: Duration = Duration::from_us(200);

/// Time that is left for controllers; it grows as time passes and shrinks as they use it.
#[derive(Debug)]
pub(super) struct Share {
    /// Below zero where they have used more than there was.
    left_ps: i64,
    at: Time,
    rests: bool,
}

impl Default for Share {
    fn default() -> Self {
        Self { left_ps: signed_ps(MOST_CREDIT), at: Time::ZERO, rests: false }
    }
}

impl Share {
    /// Returns how long controllers are to be left alone from `now` on; zero: not at all.
    pub(super) fn rest(&mut self, now: Time) -> Duration {
        self.settle(Duration::ZERO, now);
        let due_ps = if self.rests { signed_ps(FRESH_CREDIT) } else { 0 };
        let lacking_ps = u64::try_from(due_ps - self.left_ps).unwrap_or(0);
        self.rests = lacking_ps > 0;
        let (work, all) = SHARE;
        Duration::from_ps(lacking_ps.div_ceil(work) * all)
    }

    /// They took `taken` until `now`.
    pub(super) fn use_up(&mut self, taken: Duration, now: Time) {
        self.settle(taken, now);
        self.rests |= self.left_ps <= 0;
    }

    /// Adds what has grown until `now`, less what was `taken` of it.
    fn settle(&mut self, taken: Duration, now: Time) {
        let (work, all) = SHARE;
        let grown = Duration::from_ps((now - self.at).as_ps() / all * work);
        self.at = now;
        let left_ps = self.left_ps.saturating_add(signed_ps(grown)).saturating_sub(signed_ps(taken));
        self.left_ps = left_ps.min(signed_ps(MOST_CREDIT));
    }
}

fn signed_ps(duration: Duration) -> i64 {
    i64::try_from(duration.as_ps()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work_for(total: Duration, piece: Duration) -> f64 {
        let (mut share, mut now, mut worked) = (Share::default(), Time::ZERO, Duration::ZERO);
        while now < Time::ZERO + total {
            let rest = share.rest(now);
            if rest > Duration::ZERO {
                now += rest;
                continue;
            }
            now += piece;
            worked += piece;
            share.use_up(piece, now);
        }
        worked.as_ps() as f64 / (now - Time::ZERO).as_ps() as f64
    }

    #[test]
    fn those_who_never_stop_get_their_share_and_no_more() {
        for piece in [Duration::from_us(7), Duration::from_us(200), Duration::from_ms(5)] {
            let share = work_for(Duration::from_secs(1), piece);
            assert!((0.79..0.81).contains(&share), "{share} in pieces of {piece}");
        }
    }

    #[test]
    fn those_who_say_little_are_never_left_alone() {
        let (mut share, mut now) = (Share::default(), Time::ZERO);
        for _ in 0..10_000 {
            now += Duration::from_us(10);
            assert_eq!(share.rest(now), Duration::ZERO);
            now += Duration::from_us(20);
            share.use_up(Duration::from_us(20), now);
        }
    }

    #[test]
    fn a_rest_is_worth_a_sleep() {
        let mut share = Share::default();
        let mut now = Time::ZERO + Duration::from_ms(10);
        share.use_up(Duration::from_ms(10), now);
        let rest = share.rest(now);
        assert!(rest >= FRESH_CREDIT, "{rest}");
        now += rest;
        assert_eq!(share.rest(now), Duration::ZERO);
    }
}
