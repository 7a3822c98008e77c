//! NewReno: additive increase, multiplicative decrease (RFC 5681, RFC 6582), with appropriate byte counting as
//! Linux does it in segments.

use twinnet_units::{Duration, Time};

use super::window::LossWindow;
use super::{Acknowledged, Algorithm, Congestion, CongestionControl};

/// The state.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: LossWindow,
}

impl NewReno {
    /// A connection begins.
    #[must_use]
    pub fn new(initial_window: u32) -> Self {
        Self { window: LossWindow::new(initial_window) }
    }
}

impl CongestionControl for NewReno {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Reno
    }

    fn window(&self) -> u32 {
        self.window.segments()
    }

    fn slow_start_threshold(&self) -> u32 {
        self.window.threshold()
    }

    fn acknowledged(&mut self, told: &Acknowledged) {
        let mut delivered = LossWindow::growth(told);
        if self.window.in_slow_start() {
            delivered = self.window.slow_start(delivered);
        }
        if delivered > 0 {
            self.window.add_slowly(self.window.segments(), delivered);
        }
    }

    fn congested(&mut self, congestion: Congestion, _in_flight: u32, _now: Time) {
        self.window.reduce(congestion, (self.window.segments() / 2).max(2));
    }

    fn timed_out_again(&mut self, _in_flight: u32, _now: Time) {
        self.window.collapse();
    }

    fn recovered(&mut self, window: u32, _now: Time) {
        self.window.set(window);
    }

    fn undo(&mut self, _now: Time) {
        self.window.undo();
    }

    fn restarted(&mut self, idle: Duration, timeout: Duration, _now: Time) {
        self.window.restart(idle, timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Repair;
    use super::*;

    fn told(delivered: u32) -> Acknowledged {
        Acknowledged { acknowledged: delivered, delivered, window_limited: true, ..Acknowledged::default() }
    }

    /// A connection whose window and threshold are `window`.
    fn avoiding(window: u32) -> NewReno {
        let mut reno = NewReno::new(2 * window);
        reno.congested(Congestion::Loss, 2 * window, Time::ZERO);
        reno.recovered(window, Time::ZERO);
        reno
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
    fn an_acknowledgement_across_the_threshold_counts_on_both_sides() {
        let mut reno = avoiding(10);
        reno.congested(Congestion::Timeout, 10, Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (1, 5));
        reno.acknowledged(&told(8));
        assert_eq!(reno.window(), 5, "four segments reach the threshold, the other four are one short of the next");
        reno.acknowledged(&told(1));
        assert_eq!(reno.window(), 6);
    }

    #[test]
    fn one_saw_tooth_delivers_three_eighths_of_the_square_of_its_peak() {
        // Mathis et al. 1997: from W/2 to W at one segment a round, W^2 * 3/8 segments pass between two losses.
        let (peak, mut delivered) = (200_u32, 0_u32);
        let mut reno = avoiding(peak / 2);
        while reno.window() < peak {
            reno.acknowledged(&told(2));
            delivered += 2;
        }
        let expected = f64::from(peak * peak) * 3.0 / 8.0;
        // The closed form sums W/2..W as an integral; the steps are off by half a segment each round: 1 in 150.
        assert!((f64::from(delivered) / expected - 1.0).abs() < 1.0 / 150.0, "{delivered} for {expected}");
    }

    #[test]
    fn it_keeps_still_in_fast_recovery_and_when_the_app_is_the_limit() {
        let mut reno = NewReno::new(10);
        reno.acknowledged(&Acknowledged { window_limited: false, ..told(10) });
        reno.acknowledged(&Acknowledged { acknowledged: 0, ..told(10) });
        assert_eq!(reno.window(), 10);
        reno.congested(Congestion::Loss, 10, Time::ZERO);
        reno.acknowledged(&Acknowledged { in_recovery: true, ..told(10) });
        assert_eq!(reno.window(), 10);
    }

    #[test]
    fn it_slow_starts_while_a_timeout_is_repaired() {
        let mut reno = NewReno::new(16);
        reno.congested(Congestion::Loss, 16, Time::ZERO);
        reno.timed_out_again(3, Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (1, 8), "one loss lowers the threshold once");
        reno.acknowledged(&Acknowledged { repair: Repair::Timeout, ..told(3) });
        assert_eq!(reno.window(), 4);
        reno.undo(Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (16, u32::MAX));
    }

    #[test]
    fn a_reduction_for_nothing_is_undone_once_and_a_mark_never() {
        let mut reno = NewReno::new(10);
        reno.congested(Congestion::Timeout, 10, Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (1, 5));
        reno.undo(Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (10, u32::MAX));
        reno.congested(Congestion::Marked, 10, Time::ZERO);
        reno.recovered(5, Time::ZERO);
        reno.undo(Time::ZERO);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (5, 5));
    }

    #[test]
    fn silence_halves_the_window_for_each_timeout_but_not_below_the_initial_one() {
        let mut reno = NewReno::new(10);
        reno.acknowledged(&told(90));
        reno.restarted(Duration::from_ms(500), Duration::from_ms(200), Time::ZERO);
        assert_eq!(reno.window(), 25);
        reno.restarted(Duration::from_secs(60), Duration::from_ms(200), Time::ZERO);
        assert_eq!(reno.window(), 10);
    }
}
