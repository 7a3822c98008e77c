//! The window and the threshold of an algorithm that reacts to loss, with what Linux does to them whichever the
//! algorithm is.

use twinnet_units::Duration;

use super::{Acknowledged, Congestion};

/// Congestion window, slow-start threshold and what an undo goes back to; in segments.
#[derive(Clone, Debug)]
pub(super) struct LossWindow {
    initial: u32,
    window: u32,
    threshold: u32,
    /// Segments delivered since the window last grew by one (Linux's `snd_cwnd_cnt`).
    counted: u32,
    /// Window and threshold before the reduction that may yet prove to be for nothing.
    before: Option<(u32, u32)>,
}

impl LossWindow {
    pub fn new(initial: u32) -> Self {
        let initial = initial.max(1);
        Self { initial, window: initial, threshold: u32::MAX, counted: 0, before: None }
    }

    pub fn segments(&self) -> u32 {
        self.window
    }

    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    pub fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Ends slow start here.
    pub fn leave_slow_start(&mut self) {
        self.threshold = self.window;
    }

    /// By how many segments an acknowledgement lets the window grow. None in fast recovery and when the app or the
    /// peer is the limit (RFC 9438, 5.8), and none when nothing was acknowledged cumulatively (Linux's
    /// `tcp_may_raise_cwnd`).
    pub fn growth(told: &Acknowledged) -> u32 {
        if told.in_recovery || !told.window_limited || told.acknowledged == 0 {
            return 0;
        }
        told.delivered
    }

    /// Slow start with appropriate byte counting (RFC 3465), in segments. Returns the segments that were left over
    /// at the threshold.
    pub fn slow_start(&mut self, delivered: u32) -> u32 {
        let grown = self.window.saturating_add(delivered).min(self.threshold);
        let left = delivered - (grown - self.window);
        self.window = grown;
        left
    }

    /// Grows by one segment for each `for_one` that are delivered.
    pub fn add_slowly(&mut self, for_one: u32, delivered: u32) {
        let for_one = for_one.max(1);
        // The window may have been waiting for more than is asked for now: that earns one segment, not several
        // (tcp_cong_avoid_ai).
        if self.counted >= for_one {
            self.counted = 0;
            self.window = self.window.saturating_add(1);
        }
        self.counted = self.counted.saturating_add(delivered);
        self.window = self.window.saturating_add(self.counted / for_one);
        self.counted %= for_one;
    }

    /// An episode of congestion begins, which lowers the threshold to `threshold`.
    pub fn reduce(&mut self, congestion: Congestion, threshold: u32) {
        // Linux's tcp_current_ssthresh: three quarters of the window were good, whatever the old threshold said. A
        // mark is no mistake: there is nothing to undo.
        let good = self.threshold.max((self.window >> 1) + (self.window >> 2));
        self.before = (congestion != Congestion::Marked).then_some((self.window, good));
        self.threshold = threshold;
        self.counted = 0;
        if congestion == Congestion::Timeout {
            self.window = 1;
        }
    }

    /// The timer ran out while a loss was being repaired.
    pub fn collapse(&mut self) {
        self.window = 1;
        self.counted = 0;
    }

    pub fn set(&mut self, segments: u32) {
        self.window = segments.max(1);
    }

    /// Goes back to what was before the last reduction, once.
    pub fn undo(&mut self) {
        if let Some((window, threshold)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
        }
    }

    /// One halving for each timeout of silence, down to the initial window (RFC 2861 as Linux's `tcp_cwnd_restart`
    /// does it).
    pub fn restart(&mut self, idle: Duration, timeout: Duration) {
        self.threshold = self.threshold.max((self.window >> 1) + (self.window >> 2));
        let least = self.initial.min(self.window);
        let halvings =
            u32::try_from(idle.as_ps().saturating_sub(1) / timeout.as_ps().max(1)).unwrap_or(u32::MAX).min(31);
        self.window = (self.window >> halvings).max(least);
    }
}
