//! Undoing (RFC 4015 by way of Linux): a reduction that turns out to have been for nothing is taken back.

use twinnet_units::Time;

use super::acknowledge::Ack;
use super::connection::Connection;
use super::recovery::Phase;

impl Connection {
    /// Returns `true` if what was retransmitted had arrived anyway: by the echo of a timestamp older than the first
    /// retransmission (Eifel), or because every retransmission was reported as a duplicate.
    fn may_undo(&self) -> bool {
        self.recovery.undo_from.is_some() && (self.recovery.undo_resent == Some(0) || self.original_was_echoed())
    }

    fn original_was_echoed(&self) -> bool {
        let (Some(first), Some(echoed)) = (self.recovery.first_resent_at, self.echoed_timestamp) else { return false };
        (echoed.wrapping_sub(self.timestamp(first)) as i32) < 0
    }

    fn undo(&mut self, unmark: bool, now: Time) {
        if unmark {
            self.sent.unmark_lost();
        }
        if self.recovery.restorable {
            self.congestion.undo(now);
            self.recovery.undone_total += 1;
        }
        self.recovery.undo_from = None;
        self.recovery.new_data_first = false;
        self.rack.look_again();
    }

    /// Returns `true` if the phase must go on, for without SACK what lies at its very end cannot be told from
    /// duplicates (RFC 6582, 3.2).
    fn must_stay(&mut self) -> bool {
        if self.agreed.sack || self.send.unacknowledged != self.recovery.high {
            return false;
        }
        if self.sent.resent() == 0 {
            self.recovery.first_resent_at = None;
        }
        true
    }

    /// The phase is over: undoes it, or ends it. Whether it must go on.
    pub(super) fn try_undo_recovery(&mut self, from: Phase, now: Time) -> bool {
        if self.may_undo() {
            self.undo(false, now);
        } else {
            self.rack.persist_less();
        }
        if self.must_stay() {
            return true;
        }
        if from == Phase::Recovery {
            self.end_reduction(now);
        }
        self.recovery.phase = Phase::Open;
        self.recovery.new_data_first = false;
        false
    }

    pub(super) fn try_undo_by_duplicates(&mut self, now: Time) -> bool {
        if self.recovery.undo_from.is_none() || self.recovery.undo_resent != Some(0) {
            return false;
        }
        self.rack.persist_longer();
        self.undo(false, now);
        true
    }

    /// A partial acknowledgement. Whether nothing more is to be done, because originals come late and
    /// retransmissions are still out.
    pub(super) fn try_undo_partial(&mut self, ack: &Ack, now: Time) -> bool {
        if self.recovery.undo_from.is_none() || !self.original_was_echoed() {
            return false;
        }
        let highest = self.sent.highest_sacked().max(self.send.unacknowledged);
        self.rack.reordered(ack.acknowledged_before, highest, self.segment_bytes);
        if self.sent.resent() > 0 {
            return true;
        }
        self.recovery.first_resent_at = None;
        self.undo(true, now);
        self.keep_open();
        false
    }

    pub(super) fn try_undo_loss(&mut self, by_new_data: bool, now: Time) -> bool {
        if !by_new_data && !self.may_undo() {
            return false;
        }
        self.undo(true, now);
        self.recovery.timeouts = 0;
        if self.must_stay() {
            return true;
        }
        if by_new_data || self.agreed.sack {
            self.recovery.phase = Phase::Open;
        }
        true
    }
}
