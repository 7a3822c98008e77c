//! NewReno: additive increase, multiplicative decrease (RFC 5681, RFC 6582), with appropriate byte counting as Linux does it in segments.

use twinnet_units::{Duration, Rate, Time};

use super::{Acknowledged, Algorithm, Congestion, CongestionControl};

/// The state.
#[derive(Clone, Debug)]
pub struct NewReno {
    initial_window: u32,
    window: u32,
    threshold: u32,
    /// Segments acknowledged since the window last grew by one (Linux's `snd_cwnd_cnt`).
    counted: u32,
    /// Window and threshold before the last reduction.
    before: (u32, u32),
}

impl NewReno {
    /// A connection begins.
    #[must_use]
    pub fn new(initial_window: u32) -> Self {
        Self {
            initial_window,
            window: initial_window,
            threshold: u32::MAX,
            counted: 0,
            before: (initial_window, u32::MAX),
        }
    }
}

impl CongestionControl for NewReno {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Reno
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn slow_start_threshold(&self) -> u32 {
        self.threshold
    }

    fn acknowledged(&mut self, told: &Acknowledged) {
        if told.in_recovery || !told.window_limited {
            return;
        }
        let mut left = told.acknowledged;
        if self.window < self.threshold {
            let grown = self.window.saturating_add(left).min(self.threshold);
            left -= grown - self.window;
            self.window = grown;
        }
        self.counted += left;
        if self.counted >= self.window {
            self.window += self.counted / self.window;
            self.counted %= self.window;
        }
    }

    fn congested(&mut self, congestion: Congestion, _in_flight: u32, _now: Time) {
        self.before = (self.window, self.threshold);
        self.threshold = (self.window / 2).max(2);
        self.counted = 0;
        if congestion == Congestion::Timeout {
            self.window = 1;
        }
    }

    fn recovered(&mut self, window: u32, _now: Time) {
        self.window = window.max(1);
        self.counted = 0;
    }

    fn undo(&mut self, _now: Time) {
        self.window = self.window.max(self.before.0);
        self.threshold = self.threshold.max(self.before.1);
    }

    fn restarted(&mut self, idle: Duration, timeout: Duration, _now: Time) {
        // RFC 9293, 3.8.6.2 by way of Linux: one halving for each timeout of silence, down to the initial window.
        let halvings = u32::try_from(idle.as_ps() / timeout.as_ps().max(1)).unwrap_or(31).min(31);
        self.threshold = self.threshold.max(self.window / 4 * 3);
        self.window = (self.window >> halvings).max(self.initial_window.min(self.window));
    }

    fn pacing_rate(&self, _segment_bytes: u32) -> Option<Rate> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(acknowledged: u32) -> Acknowledged {
        Acknowledged { acknowledged, delivered: acknowledged, window_limited: true, ..Acknowledged::default() }
    }

    #[test]
    fn it_doubles_in_slow_start_and_adds_one_a_round_after_a_loss() {
        let mut reno = NewReno::new(10);
        reno.acknowledged(&told(10));
        assert_eq!(reno.window(), 20);
        reno.congested(Congestion::Loss, 20, Time::ZERO);
        reno.recovered(10, Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (10, 10));
        reno.acknowledged(&told(9));
        assert_eq!(reno.window(), 10);
        reno.acknowledged(&told(1));
        assert_eq!(reno.window(), 11);
    }

    #[test]
    fn a_reduction_for_nothing_is_undone() {
        let mut reno = NewReno::new(10);
        reno.congested(Congestion::Timeout, 10, Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (1, 5));
        reno.undo(Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (10, u32::MAX));
    }
}
