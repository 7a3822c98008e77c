//! CUBIC (RFC 9438), computed as Linux's `tcp_cubic.c` computes it: time in milliseconds, the cubic function in
//! 1024ths of a second.

use twinnet_units::{Duration, Time};

use super::hystart::HyStart;
use super::window::LossWindow;
use super::{Acknowledged, Algorithm, Congestion, CongestionControl};

/// The multiplicative decrease, 0.7, in 1024ths (RFC 9438, 4.6).
const BETA: u64 = 717;
/// The constant C, 0.4 segments per cubed second (RFC 9438, 4.1.4), in 1024ths.
const C: u64 = 410;
/// Parts of a second that the cubic function counts in.
const PARTS_PER_SECOND: u64 = 1024;
/// Segments to be delivered for each by which the Reno-friendly window grows, in eighths of the window:
/// 8 / alpha with alpha = 3 (1 - beta) / (1 + beta) (RFC 9438, 4.3), in Linux's integers.
const FRIENDLY_EIGHTHS: u64 = 8 * (1024 + BETA) / 3 / (1024 - BETA);
/// The cubic function is evaluated again for an unchanged window after this long, in milliseconds (a 32nd of a second).
const REFRESH_MS: u64 = 1000 / 32;
/// Delays of the first second after a reduction still hold the queue that led to it, in milliseconds.
const UNTRUSTED_MS: u64 = 1000;
/// While no maximum is known, one segment is added for at most this many delivered.
const SEARCHING_COUNT: u64 = 20;

/// The stretch since the last reduction.
#[derive(Clone, Debug)]
struct Epoch {
    began_ms: u64,
    /// The window at which the function is flat (`W_max`), in segments.
    origin: u64,
    /// The time at which it gets there (`K`), in parts of a second since the epoch began.
    until_origin: u64,
    /// Reno's window in its place, in segments, and the segments delivered since it grew.
    friendly: u64,
    friendly_counted: u64,
    /// Segments to be delivered for one more in the window.
    count: u64,
    /// Window and time of the last evaluation.
    evaluated: Option<(u64, u64)>,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: LossWindow,
    hystart: HyStart,
    /// Window before the last reduction, or less by fast convergence; zero while none is known.
    maximum: u64,
    epoch: Option<Epoch>,
    least_round_trip: Option<Duration>,
    /// Newest sequence number and time known, from which HyStart begins anew after a timeout.
    next_sequence: u64,
}

impl Cubic {
    /// A connection begins.
    #[must_use]
    pub fn new(initial_window: u32) -> Self {
        Self {
            window: LossWindow::new(initial_window),
            hystart: HyStart::new(Time::ZERO, 0),
            maximum: 0,
            epoch: None,
            least_round_trip: None,
            next_sequence: 0,
        }
    }

    /// Takes a delay sample and lets HyStart judge it.
    fn measure(&mut self, told: &Acknowledged) {
        let Some(round_trip) = told.round_trip else { return };
        if self.epoch.as_ref().is_some_and(|epoch| milliseconds(told.now).saturating_sub(epoch.began_ms) < UNTRUSTED_MS)
        {
            return;
        }
        let least = self.least_round_trip.map_or(round_trip, |least| least.min(round_trip));
        self.least_round_trip = Some(least);
        if self.window.in_slow_start() && self.hystart.should_leave(told, round_trip, least, self.window.segments()) {
            self.window.leave_slow_start();
        }
    }

    /// Segments to be delivered for one more in the window.
    fn count(&mut self, now: Time, delivered: u32) -> u32 {
        let window = u64::from(self.window.segments());
        let now_ms = milliseconds(now);
        let delay_ms = self.least_round_trip.map_or(0, |delay| delay.as_ps().div_ceil(1_000_000_000));
        let delivered = u64::from(delivered);
        let unknown = self.maximum == 0;
        let epoch = match &mut self.epoch {
            Some(epoch) => {
                epoch.friendly_counted += delivered;
                epoch
            }
            none => none.insert(Epoch::begin(now_ms, window, self.maximum, delivered)),
        };
        match epoch.evaluated {
            Some((last, at)) if last == window && now_ms.saturating_sub(at) <= REFRESH_MS => {
                return u32::try_from(epoch.count).unwrap_or(u32::MAX);
            }
            Some((_, at)) if at == now_ms => {}
            _ => {
                epoch.evaluated = Some((window, now_ms));
                epoch.count = epoch.cubic_count(window, now_ms + delay_ms);
                if unknown {
                    epoch.count = epoch.count.min(SEARCHING_COUNT);
                }
            }
        }
        epoch.count = epoch.count.min(epoch.friendly_count(window));
        // Never faster than one segment for two delivered: half as much again in a round.
        epoch.count = epoch.count.max(2);
        u32::try_from(epoch.count).unwrap_or(u32::MAX)
    }

    /// Linux forgets all it knew of the path when the timer runs out (`bictcp_reset`).
    fn forget(&mut self, now: Time) {
        self.maximum = 0;
        self.epoch = None;
        self.least_round_trip = None;
        self.hystart = HyStart::new(now, self.next_sequence);
    }
}

impl Epoch {
    fn begin(now_ms: u64, window: u64, maximum: u64, delivered: u64) -> Self {
        let below = maximum.saturating_sub(window);
        Self {
            began_ms: now_ms,
            origin: maximum.max(window),
            // K = cubic root of (W_max - cwnd) / C; with the parts and C in 1024ths the quotient is scaled by 2^40.
            until_origin: cube_root((u128::from(below) << 40) / u128::from(C)),
            friendly: window,
            friendly_counted: delivered,
            count: 0,
            evaluated: None,
        }
    }

    /// Returns the window that the cubic function asks for at `at_ms`, a round trip ahead.
    fn cubic_count(&self, window: u64, at_ms: u64) -> u64 {
        let elapsed = at_ms.saturating_sub(self.began_ms).saturating_mul(PARTS_PER_SECOND) / 1000;
        let away = u128::from(elapsed.abs_diff(self.until_origin));
        let difference = u64::try_from((u128::from(C) * away.pow(3)) >> 40).unwrap_or(u64::MAX);
        let target = if elapsed < self.until_origin {
            self.origin.saturating_sub(difference)
        } else {
            self.origin.saturating_add(difference)
        };
        if target > window {
            window / (target - window)
        } else {
            100 * window
        }
    }

    /// Returns the window that Reno's would be in this one's place (RFC 9438, 4.3).
    fn friendly_count(&mut self, window: u64) -> u64 {
        let for_one = (window * FRIENDLY_EIGHTHS / 8).max(1);
        // As many steps as Linux's loop makes: while more than `for_one` are counted.
        let grown = self.friendly_counted.saturating_sub(1) / for_one;
        self.friendly_counted -= grown * for_one;
        self.friendly += grown;
        if self.friendly > window {
            window / (self.friendly - window)
        } else {
            u64::MAX
        }
    }
}

impl CongestionControl for Cubic {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Cubic
    }

    fn window(&self) -> u32 {
        self.window.segments()
    }

    fn slow_start_threshold(&self) -> u32 {
        self.window.threshold()
    }

    fn established(&mut self, _round_trip: Option<Duration>, _segment_bytes: u32, now: Time) {
        self.hystart = HyStart::new(now, 0);
    }

    fn transmission_started(&mut self, idle: Duration, _app_limited: bool, now: Time) {
        // The window did not grow in the pause, so the epoch has not aged (RFC 9438, 5.8).
        if let Some(epoch) = &mut self.epoch {
            epoch.began_ms = (epoch.began_ms + idle.as_ps() / 1_000_000_000).min(milliseconds(now));
        }
    }

    fn acknowledged(&mut self, told: &Acknowledged) {
        self.next_sequence = told.next_sequence;
        self.measure(told);
        let mut delivered = LossWindow::growth(told);
        if self.window.in_slow_start() {
            delivered = self.window.slow_start(delivered);
        }
        if delivered > 0 {
            let count = self.count(told.now, delivered);
            self.window.add_slowly(count, delivered);
        }
    }

    fn congested(&mut self, congestion: Congestion, _in_flight: u32, now: Time) {
        let window = u64::from(self.window.segments());
        self.epoch = None;
        // Fast convergence (RFC 9438, 4.7): a flow that did not get back to where it was makes room.
        self.maximum = if window < self.maximum { window * (1024 + BETA) / 2048 } else { window };
        let threshold = u32::try_from(window * BETA / 1024).unwrap_or(u32::MAX);
        self.window.reduce(congestion, threshold.max(2));
        if congestion == Congestion::Timeout {
            self.forget(now);
        }
    }

    fn timed_out_again(&mut self, _in_flight: u32, now: Time) {
        self.window.collapse();
        self.forget(now);
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

fn milliseconds(time: Time) -> u64 {
    time.as_ps() / 1_000_000_000
}

/// The largest whole number whose cube is at most `cube`, below 2^26.
fn cube_root(cube: u128) -> u64 {
    (0..26).rev().fold(0, |root: u64, bit| {
        let larger = root | 1 << bit;
        if u128::from(larger).pow(3) <= cube {
            larger
        } else {
            root
        }
    })
}
