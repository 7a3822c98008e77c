//! Round-trip times and the retransmission timeout: RFC 6298, with the deviation, the bounds and the back-off of Linux.

use twinnet_units::{Duration, Time};

/// Least retransmission timeout, as Linux has it (`TCP_RTO_MIN`); RFC 6298 (2.4) asks for a second.
pub(super) const LEAST_TIMEOUT: Duration = Duration::from_ms(200);
/// Longest retransmission timeout (`TCP_RTO_MAX`).
pub(super) const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout before the first sample (RFC 6298, 2.1).
pub(super) const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// The time that a sample counts for the least round trip (`tcp_min_rtt_wlen`).
const LEAST_WINDOW: Duration = Duration::from_secs(300);

/// The estimator.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    /// Eight times the smoothed round trip, in picoseconds; 0 before the first sample.
    smoothed_times_8: u64,
    /// Four times the mean deviation.
    deviation_times_4: u64,
    /// The largest of it since the window's beginning.
    largest_deviation: u64,
    /// The deviation that the timeout uses: it decays once a window.
    variation: u64,
    /// The window ends when this number is acknowledged.
    window_end: u64,
    least: WindowedLeast,
    timeout: Duration,
}

impl RoundTrip {
    /// No sample yet.
    pub fn new() -> Self {
        Self {
            smoothed_times_8: 0,
            deviation_times_4: 0,
            largest_deviation: 0,
            variation: 0,
            window_end: 0,
            least: WindowedLeast::default(),
            timeout: FIRST_TIMEOUT,
        }
    }

    /// A round trip was measured. `acknowledged` and `next` are the numbers acknowledged and sent next.
    pub fn sample(&mut self, measured: Duration, acknowledged: u64, next: u64) {
        // A sample of zero would look like none.
        let measured = measured.as_ps().clamp(1, LONGEST_TIMEOUT.as_ps());
        if self.smoothed_times_8 == 0 {
            self.smoothed_times_8 = measured * 8;
            self.deviation_times_4 = measured * 2;
            self.variation = self.deviation_times_4.max(LEAST_TIMEOUT.as_ps());
            self.largest_deviation = self.variation;
            self.window_end = next;
        } else {
            self.update(measured, acknowledged, next);
        }
        let timeout = self.smoothed_times_8 / 8 + self.variation;
        self.timeout = Duration::from_ps(timeout.min(LONGEST_TIMEOUT.as_ps()));
    }

    /// `tcp_rtt_estimator`: RFC 6298's gains, but a fall of the round trip does not raise the deviation at full
    /// weight, and the deviation in use is the largest of the last window.
    fn update(&mut self, measured: u64, acknowledged: u64, next: u64) {
        let error = measured as i64 - (self.smoothed_times_8 / 8) as i64;
        self.smoothed_times_8 = self.smoothed_times_8.saturating_add_signed(error).max(1);
        let mut change = error.abs() - (self.deviation_times_4 / 4) as i64;
        if error < 0 && change > 0 {
            change /= 8;
        }
        self.deviation_times_4 = self.deviation_times_4.saturating_add_signed(change);
        if self.deviation_times_4 > self.largest_deviation {
            self.largest_deviation = self.deviation_times_4;
            self.variation = self.variation.max(self.largest_deviation);
        }
        if acknowledged > self.window_end {
            if self.largest_deviation < self.variation {
                self.variation -= (self.variation - self.largest_deviation) / 4;
            }
            self.window_end = next;
            self.largest_deviation = LEAST_TIMEOUT.as_ps();
        }
    }

    /// A sample for the least round trip alone.
    pub fn sample_least(&mut self, measured: Duration, now: Time) {
        self.least.sample(measured.max(Duration::from_ps(1)), now);
    }

    /// The timer ran out: the next timeout is twice as long (RFC 6298, 5.5).
    pub fn back_off(&mut self) {
        self.timeout = self.timeout.saturating_add(self.timeout).min(LONGEST_TIMEOUT);
    }

    /// The SYN was lost and gave no sample (RFC 6298, 5.7).
    pub fn fall_back(&mut self) {
        if self.smoothed_times_8 == 0 {
            self.timeout = Duration::from_secs(3);
        }
    }

    /// The timeout, back-off included.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The smoothed round trip; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.smoothed_times_8 > 0).then(|| Duration::from_ps(self.smoothed_times_8 / 8))
    }

    /// The mean deviation.
    pub fn deviation(&self) -> Duration {
        Duration::from_ps(self.deviation_times_4 / 4)
    }

    /// The least round trip; `None` before the first sample.
    pub fn least(&self) -> Option<Duration> {
        self.least.value()
    }
}

/// The least of what was measured in the last [`LEAST_WINDOW`], from three candidates as Linux keeps them
/// (`lib/win_minmax.c`).
#[derive(Clone, Debug, Default)]
struct WindowedLeast {
    best: Option<[(Time, Duration); 3]>,
}

impl WindowedLeast {
    fn value(&self) -> Option<Duration> {
        self.best.map(|best| best[0].1)
    }

    fn sample(&mut self, value: Duration, now: Time) {
        let Some(best) = &mut self.best else {
            self.best = Some([(now, value); 3]);
            return;
        };
        if value <= best[0].1 || now - best[2].0 > LEAST_WINDOW {
            *best = [(now, value); 3];
            return;
        }
        if value <= best[1].1 {
            best[1] = (now, value);
            best[2] = best[1];
        } else if value <= best[2].1 {
            best[2] = (now, value);
        }
        let age = now - best[0].0;
        if age > LEAST_WINDOW {
            *best = [best[1], best[2], (now, value)];
            if now - best[0].0 > LEAST_WINDOW {
                *best = [best[1], best[2], (now, value)];
            }
        } else if best[1].0 == best[0].0 && age.as_ps() > LEAST_WINDOW.as_ps() / 4 {
            best[1] = (now, value);
            best[2] = best[1];
        } else if best[2].0 == best[1].0 && age.as_ps() > LEAST_WINDOW.as_ps() / 2 {
            best[2] = (now, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_the_round_trip_and_at_least_200_ms() {
        let mut round_trip = RoundTrip::new();
        assert_eq!(round_trip.timeout(), Duration::from_secs(1));
        for _ in 0..100 {
            round_trip.sample(Duration::from_ms(50), 0, 1);
        }
        assert_eq!(round_trip.timeout(), Duration::from_ms(250));
        round_trip.back_off();
        assert_eq!(round_trip.timeout(), Duration::from_ms(500));
    }

    #[test]
    fn a_jump_upwards_raises_the_timeout_at_once() {
        let mut round_trip = RoundTrip::new();
        for _ in 0..100 {
            round_trip.sample(Duration::from_ms(100), 0, 1);
        }
        round_trip.sample(Duration::from_ms(900), 0, 1);
        // 100 + 800/8 smoothed, and a deviation of at least a quarter of the error, times four.
        assert!(round_trip.timeout() >= Duration::from_ms(200 + 800), "{}", round_trip.timeout());
    }

    #[test]
    fn the_least_round_trip_forgets_after_five_minutes() {
        let mut round_trip = RoundTrip::new();
        for second in 0..900 {
            let measured = if second < 10 { 10 } else { 20 };
            round_trip.sample_least(Duration::from_ms(measured), Time::ZERO + Duration::from_secs(second));
            let expected = if second <= 309 { 10 } else { 20 };
            assert_eq!(round_trip.least(), Some(Duration::from_ms(expected)), "{second}");
        }
    }
}
