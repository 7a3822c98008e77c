//! The estimator of class-based queueing: how much less or more than its allotment a class has used (Floyd and Jacobson
//! 1995).

use twinnet_units::{Rate, Time};

/// A frame that arrived `idle` later than the allotment would have had it raises an exponential average of such
/// times, one that came earlier lowers it. A class is *over its limit* while the average, with the time passed
/// since its last frame counted in, is negative; the class then waits until it is not. The filter's weight is
/// 1/2^gain. All is integer arithmetic in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct Estimator {
    rate_bps: u64,
    gain: u32,
    /// The average, times 2^gain.
    average: i128,
    most: i128,
    last: Option<(Time, i128)>,
    ready: Time,
}

impl Estimator {
    /// An estimator for `rate_bps`; a rate of 0 is always over its limit. A class that was idle for long may send
    /// `burst_frames` frames of `frame_bytes` back to back at `line_bps`.
    pub(super) fn new(rate_bps: u64, line_bps: u64, burst_frames: u32, frame_bytes: u64, gain: u32) -> Self {
        let early = (time_ps(frame_bytes, rate_bps) - time_ps(frame_bytes, line_bps)).max(0);
        // Each frame back to back takes the average from A to A (1 - w) - early x w: from the last one's 0 back to
        // where it began.
        let unit = 1_i128 << gain;
        let most = (0..burst_frames).fold(0_i128, |average, _| (average + early) * unit / (unit - 1));
        let ready = if rate_bps == 0 { Time::MAX } else { Time::ZERO };
        Self { rate_bps, gain, average: most, most, last: None, ready }
    }

    /// From when on the class is not over its limit.
    pub(super) fn ready(&self) -> Time {
        self.ready
    }

    /// A frame of `bytes` is sent at `now`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn charge(&mut self, bytes: u64, now: Time) {
        if self.rate_bps == 0 {
            return;
        }
        if let Some((before, due)) = self.last {
            let idle = i128::from(now.since(before).as_ps()) - due;
            self.average = (self.average - (self.average >> self.gain) + idle).min(self.most);
        }
        let due = time_ps(bytes, self.rate_bps);
        self.last = Some((now, due));
        // The average is no longer negative when idle >= -(1 - w) A, where A is the average times 2^gain.
        let wait = due - (self.average - (self.average >> self.gain));
        let ready = i128::from(now.as_ps()) + wait;
        self.ready = Time::from_ps(ready.clamp(0, i128::from(u64::MAX)) as u64);
    }
}

/// Returns the time that `bytes` take at `rate_bps`.
fn time_ps(bytes: u64, rate_bps: u64) -> i128 {
    Rate::from_bps(rate_bps).map_or(0, |rate| i128::from(rate.serialise(bytes).as_ps()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_sends_whenever_it_may_gets_its_rate_to_the_picosecond() {
        let mut class = Estimator::new(3_000_000, 10_000_000, 0, 1000, 5);
        let mut now = Time::ZERO;
        for _ in 0..3000 {
            now = class.ready();
            class.charge(1000, now);
        }
        // The first frame goes at once: 2999 intervals of 8000 bits at 3 Mbit/s, each rounded by less than a
        // picosecond.
        let expected = 2999.0 * 8000.0 / 3e6;
        assert!((now.as_secs_f64() - expected).abs() < 1e-8, "{now:?}");
    }

    #[test]
    fn after_a_long_idle_time_so_many_frames_go_back_to_back() {
        for burst in [1, 2, 8, 20] {
            let mut class = Estimator::new(1_000_000, 10_000_000, burst, 1000, 4);
            let mut now = Time::from_ns(50_000_000_000);
            let mut sent = 0;
            while class.ready() <= now {
                class.charge(1000, now);
                now = Time::from_ps(now.as_ps() + 800_000_000);
                sent += 1;
            }
            assert!((burst..=burst + 1).contains(&sent), "{sent} instead of {burst}");
        }
    }

    #[test]
    fn a_class_that_took_more_than_its_allotment_waits_until_the_average_has_recovered() {
        let mut class = Estimator::new(1_000_000, 10_000_000, 0, 1000, 4);
        let mut now = Time::ZERO;
        for _ in 0..100 {
            class.charge(1000, now);
            now = Time::from_ps(now.as_ps() + 800_000_000);
        }
        // Borrowing at ten times its rate, the average has come near to -7.2 ms: 15 times that, and 8 ms for the
        // last frame.
        let wait = class.ready().as_secs_f64() - (now.as_secs_f64() - 0.0008);
        assert!((wait - (15.0 * 0.0072 + 0.008)).abs() < 0.001, "{wait}");
    }
}
