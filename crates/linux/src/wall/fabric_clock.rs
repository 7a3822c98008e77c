//! The fabric's clock on the wall clock: behind it by what the loop could not follow, and catching up slowly.

use twinnet_units::{Duration, Time};

/// While the clock is behind it goes faster by one part in so many: less than one frame in 10 ms up to 1 Gbit/s, and within the
/// bound of the long-run rate.
const REGAINED_ONE_IN: u64 = 1000;

/// How far the fabric's clock is behind the wall clock. Moments of the wall clock are passed in.
#[derive(Debug)]
pub(crate) struct FabricClock {
    behind: Duration,
    /// When a part of that was last made good.
    looked: Time,
}

impl FabricClock {
    /// A clock that is level with the wall clock, which shows `now`.
    pub(crate) const fn level(now: Time) -> Self {
        Self { behind: Duration::ZERO, looked: now }
    }

    /// What this clock shows when the wall clock shows `wall`.
    pub(crate) fn at(&self, wall: Time) -> Time {
        Time::ZERO + (wall - (Time::ZERO + self.behind))
    }

    /// The wall clock less this one.
    pub(crate) const fn behind(&self) -> Duration {
        self.behind
    }

    /// Makes good a part of what this clock is behind, as much as the time since the last call allows; returns how much.
    pub(crate) fn regain(&mut self, wall: Time) -> Duration {
        let regained = Duration::from_ps((wall - self.looked).as_ps() / REGAINED_ONE_IN).min(self.behind);
        self.looked = wall;
        self.behind = self.behind.saturating_sub(regained);
        regained
    }

    /// The clock is moved back.
    pub(crate) fn slip(&mut self, by: Duration) {
        self.behind += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    #[test]
    fn what_slipped_is_regained_by_a_thousandth_of_the_time_and_no_further() {
        let mut clock = FabricClock::level(at(100));
        assert_eq!(clock.regain(at(5_100)), Duration::ZERO);
        clock.slip(Duration::from_us(7));
        assert_eq!(clock.at(at(5_100)), at(5_093));
        assert_eq!(clock.regain(at(9_100)), Duration::from_us(4));
        assert_eq!(clock.behind(), Duration::from_us(3));
        assert_eq!(clock.regain(at(99_100)), Duration::from_us(3));
        assert_eq!(clock.at(at(99_100)), at(99_100));
    }

    #[test]
    fn the_clock_never_goes_back_while_it_regains() {
        let mut clock = FabricClock::level(Time::ZERO);
        clock.slip(Duration::from_us(50));
        clock.regain(at(60));
        let mut before = clock.at(at(60));
        for us in 61..50_000 {
            clock.regain(at(us));
            let now = clock.at(at(us));
            assert!(now - before >= Duration::from_us(1) && now - before <= Duration::from_ps(1_001_000));
            before = now;
        }
    }
}
