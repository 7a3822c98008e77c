//! The reduction of the window: in proportion to what is delivered (RFC 6937), as Linux does it.

use twinnet_units::Time;

use super::congestion::Congestion;
use super::connection::Connection;
use super::recovery::Phase;

impl Connection {
    /// The window will go down to the threshold in proportion to what is delivered (RFC 6937).
    pub(super) fn begin_reduction(&mut self, congestion: Congestion, now: Time) {
        let window = self.congestion_window();
        self.congestion.congested(congestion, self.sent.in_flight(), now);
        let recovery = &mut self.recovery;
        recovery.high = self.send.next;
        recovery.probe_end = None;
        recovery.window = window;
        recovery.window_before = window;
        recovery.delivered_in_reduction = 0;
        recovery.sent_in_reduction = 0;
        recovery.reductions_total += 1;
        if self.agreed.ecn {
            self.echo.reduced = true;
        }
    }

    /// One step of proportional rate reduction (`tcp_cwnd_reduction`): conservative below the threshold, unless the
    /// acknowledgement advanced and brought no new loss, when it slow-starts towards it.
    pub(super) fn reduce(&mut self, delivered: u32, newly_lost: u32, advanced: bool) {
        if delivered == 0 {
            return;
        }
        let in_flight = self.sent.in_flight();
        let threshold = self.congestion.slow_start_threshold();
        let recovery = &mut self.recovery;
        recovery.delivered_in_reduction += delivered;
        let sent = i64::from(recovery.sent_in_reduction);
        let done = i64::from(recovery.delivered_in_reduction);
        let short = i64::from(threshold) - i64::from(in_flight);
        let mut most = if short < 0 {
            let before = i64::from(recovery.window_before.max(1));
            (i64::from(threshold) * done + before - 1) / before - sent
        } else {
            let step = (done - sent).max(i64::from(delivered)) + i64::from(advanced && newly_lost == 0);
            step.min(short)
        };
        // The first retransmission leaves whatever the sums say.
        most = most.max(i64::from(recovery.sent_in_reduction == 0));
        recovery.window = u32::try_from(i64::from(in_flight) + most).unwrap_or(1).max(1);
    }

    pub(super) fn end_reduction(&mut self, now: Time) {
        let threshold = self.congestion.slow_start_threshold();
        let counts = self.recovery.phase == Phase::Reduction || self.recovery.undo_from.is_some();
        if self.congestion.rules_recovery() {
            self.congestion.recovered(self.congestion.window(), now);
        } else if threshold < u32::MAX && counts {
            self.congestion.recovered(threshold, now);
        }
    }
}
