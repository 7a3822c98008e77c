//! Recovery where the peer does not tell what it has: duplicate acknowledgements are counted (RFC 5681, RFC 6582).

use super::acknowledge::Ack;
use super::connection::Connection;
use super::recovery::Phase;

impl Connection {
    pub(super) fn count_duplicate(&mut self, ack: &mut Ack) {
        if self.agreed.sack || !ack.duplicate {
            return;
        }
        let before = self.sent.sacked();
        self.sent.set_estimated_sacked(before + 1);
        self.check_estimated_reordering(0);
        let delivered = self.sent.sacked().saturating_sub(before);
        self.rate.count(delivered);
        ack.delivered += delivered;
    }

    /// At least one segment is missing, else there would be no duplicates. Whether more were counted than there can be.
    fn limit_estimated_sacked(&mut self) -> bool {
        let outstanding = self.sent.outstanding();
        let holes = self.sent.lost().max(1).min(outstanding);
        if self.sent.sacked() + holes > outstanding {
            self.sent.set_estimated_sacked(outstanding - holes);
            return true;
        }
        false
    }

    fn check_estimated_reordering(&mut self, acknowledged: u32) {
        if self.limit_estimated_sacked() {
            self.rack.reordered_by(self.sent.outstanding() + acknowledged);
        }
    }

    /// An acknowledgement advanced by `acknowledged` segments: one filled the hole, the rest had been counted as
    /// duplicates.
    pub(super) fn uncount_duplicates(&mut self, acknowledged: u32) -> u32 {
        let mut delivered = 0;
        if acknowledged > 0 {
            let counted = self.sent.sacked();
            delivered = acknowledged.saturating_sub(counted).max(1);
            self.rate.count(delivered);
            self.sent.set_estimated_sacked(counted.saturating_sub(acknowledged - 1));
        }
        self.check_estimated_reordering(acknowledged);
        delivered
    }

    /// NewReno (RFC 6582): the oldest segment is lost at the third duplicate and at each partial acknowledgement.
    pub(super) fn find_losses_without_sack(&mut self, advanced: bool) {
        let phase = self.recovery.phase;
        let third = phase < Phase::Recovery && self.sent.sacked() >= self.rack.reordering;
        if third || phase == Phase::Recovery && advanced {
            if self.sent.first().is_some_and(|first| !first.is_lost()) {
                self.sent.mark_lost(0);
            }
            self.limit_estimated_sacked();
        }
    }
}
