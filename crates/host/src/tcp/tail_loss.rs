//! The probe for the loss of a tail (RFC 8985, 7): what is lost at the end of a flight is found by an
//! acknowledgement of the probe, not by a timeout.

use twinnet_units::{Duration, Time};

use super::acknowledge::Ack;
use super::connection::Connection;
use super::recovery::Phase;
use super::round_trip::{FIRST_TIMEOUT, LEAST_TIMEOUT};
use super::timers::TimerKind;

/// Added to two round trips, so that a delayed acknowledgement is not outrun by much (`TCP_TIMEOUT_MIN`).
const SLACK: Duration = Duration::from_ms(2);

impl Connection {
    /// Sets the timer for a probe, if one may be sent in this state; `advancing` when an acknowledgement has just
    /// restarted the retransmission timer.
    pub(super) fn schedule_tail_probe(&mut self, advancing: bool, now: Time) -> bool {
        let calm = matches!(self.recovery.phase, Phase::Open | Phase::Reduction);
        let Some(first) = self.sent.first().filter(|_| calm && self.agreed.sack) else { return false };
        let mut wait = match self.round_trip.smoothed() {
            // With one segment in flight its acknowledgement may be delayed as long as a peer may.
            Some(smoothed) if self.sent.outstanding() == 1 => smoothed + smoothed + LEAST_TIMEOUT,
            Some(smoothed) => smoothed + smoothed + SLACK,
            None => FIRST_TIMEOUT,
        };
        let timeout = self.round_trip.timeout();
        let left = if advancing { timeout } else { (first.sent_at + timeout).since(now) };
        wait = wait.min(left.max(Duration::from_us(1)));
        self.timers.set(TimerKind::TailProbe, now + wait);
        true
    }

    /// The timer for a probe: new data if the peer takes any, else the last segment again. One probe an episode.
    pub(super) fn tail_probe_timer(&mut self, now: Time) {
        if self.sent.outstanding() == 0 {
            return;
        }
        if self.recovery.probe_end.is_some() || self.all_waits_in_host() {
            self.rearm_timeout(now);
            return;
        }
        self.recovery.probe_wanted = true;
        self.recovery.probes_total += 1;
        self.recovery.probe_resent = false;
        // In case that nothing lets the probe go.
        self.timers.set(TimerKind::Timeout, now + self.round_trip.timeout());
    }

    /// A new segment has left; `idle` when nothing was in flight, `probe` when it was the probe.
    pub(super) fn after_new_segment(&mut self, idle: bool, probe: bool, now: Time) {
        if probe {
            self.probe_left(false, now);
            return;
        }
        let replaced = matches!(self.timers.kind(), None | Some(TimerKind::TailProbe | TimerKind::WindowProbe));
        if !self.schedule_tail_probe(false, now) && (idle || replaced) {
            self.timers.stop();
            self.rearm_timeout(now);
        }
    }

    /// The segment at `index` has left again.
    pub(super) fn after_resent_segment(&mut self, index: usize, probe: bool, now: Time) {
        if probe {
            self.probe_left(true, now);
            return;
        }
        self.recovery.resent(now);
        if index == 0 && self.timers.kind() != Some(TimerKind::Reordering) {
            self.timers.set(TimerKind::Timeout, now + self.round_trip.timeout());
        }
    }

    fn probe_left(&mut self, resent: bool, now: Time) {
        self.recovery.probe_end = Some(self.send.next);
        self.recovery.probe_resent = resent;
        self.timers.stop();
        self.rearm_timeout(now);
    }

    /// Handles the acknowledgement of the probe (RFC 8985, 7.4.2).
    pub(super) fn answer_to_tail_probe(&mut self, ack: &Ack, acknowledged: u64, now: Time) {
        let Some(end) = self.recovery.probe_end.filter(|end| acknowledged >= *end) else { return };
        if !self.recovery.probe_resent || ack.probe_was_duplicate {
            self.recovery.probe_end = None;
        } else if acknowledged > end {
            // It went on beyond the probe without a word of a duplicate: the probe repaired a loss.
            self.recovery.probe_end = None;
            self.reduce_for_repaired_tail(now);
        } else if !ack.advanced && !ack.not_duplicate && !ack.selected {
            // The original and the probe have both arrived.
            self.recovery.probe_end = None;
        }
    }
}
