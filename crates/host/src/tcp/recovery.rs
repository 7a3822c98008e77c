//! The states of loss recovery, from the first sign of disorder to the window's undoing, as Linux goes through them
//! (`tcp_fastretrans_alert`): RFC 6675 and RFC 8985 with SACK, RFC 6582 without, RFC 5682 after a timeout.

use twinnet_units::{Duration, Time};

use super::acknowledge::Ack;
use super::congestion::{Congestion, Repair};
use super::connection::Connection;
use super::timers::TimerKind;

/// The states (Linux's `TCP_CA_*`). The order is that of severity: it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// All is well.
    Open,
    /// Something is out of order.
    Disorder,
    /// The window is being reduced although nothing is lost: a mark was echoed.
    Reduction,
    /// Segments were found lost and are sent again.
    Recovery,
    /// The retransmission timer ran out.
    Loss,
}

/// The state of recovery.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub phase: Phase,
    /// The phase ends when this number is acknowledged.
    pub high: u64,
    /// The window while it is being reduced.
    pub window: u32,
    /// The window before the reduction.
    pub window_before: u32,
    pub delivered_in_reduction: u32,
    pub sent_in_reduction: u32,
    /// The reduction can be undone: what was acknowledged when it began.
    pub undo_from: Option<u64>,
    /// Retransmissions that were not reported as duplicates; `None` before the first one.
    pub undo_resent: Option<u32>,
    /// An undoing restores the window: no mark was echoed.
    pub restorable: bool,
    /// The time when the first retransmission of the episode left.
    pub first_resent_at: Option<Time>,
    /// F-RTO waits for what the timeout was about (RFC 5682).
    spurious_timeout_open: bool,
    /// F-RTO's step 2b: new data goes before retransmissions.
    pub new_data_first: bool,
    /// Timeouts in a row.
    pub timeouts: u32,
    /// A probe for the loss of a tail is to be sent.
    pub probe_wanted: bool,
    /// The end of what was sent when the probe was, until that is acknowledged.
    pub probe_end: Option<u64>,
    /// The probe was a retransmission.
    pub probe_resent: bool,
    /// Segments reported to have come twice so far.
    pub duplicates_told: u64,
    pub timeouts_total: u64,
    pub probes_total: u64,
    pub undone_total: u64,
    pub reductions_total: u64,
}

impl Recovery {
    /// All is well.
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            high: 0,
            window: 0,
            window_before: 0,
            delivered_in_reduction: 0,
            sent_in_reduction: 0,
            undo_from: None,
            undo_resent: None,
            restorable: false,
            first_resent_at: None,
            spurious_timeout_open: false,
            new_data_first: false,
            timeouts: 0,
            probe_wanted: false,
            probe_end: None,
            probe_resent: false,
            duplicates_told: 0,
            timeouts_total: 0,
            probes_total: 0,
            undone_total: 0,
            reductions_total: 0,
        }
    }

    /// Returns `true` if the window is being reduced in proportion.
    pub fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduction | Phase::Recovery)
    }

    /// Returns what is being repaired, as the congestion control is told.
    pub fn repair(&self) -> Repair {
        match self.phase {
            Phase::Open | Phase::Disorder | Phase::Reduction => Repair::Nothing,
            Phase::Recovery => Repair::Losses,
            Phase::Loss => Repair::Timeout,
        }
    }

    /// A retransmission that the peer had no need of was reported.
    pub fn was_duplicate(&mut self, end: u64, segments: u32) {
        if self.undo_from.is_some_and(|from| end > from) {
            self.undo_resent = self.undo_resent.map(|resent| resent.saturating_sub(segments));
        }
    }

    /// A segment was sent again.
    pub fn resent(&mut self, now: Time) {
        self.first_resent_at.get_or_insert(now);
        self.undo_resent = Some(self.undo_resent.unwrap_or(0) + 1);
    }
}

impl Connection {
    /// Works out what an acknowledgement means for recovery, when it is out of the ordinary.
    pub(super) fn alert(&mut self, ack: &mut Ack, now: Time) {
        if self.sent.outstanding() == 0 && !self.agreed.sack {
            self.sent.set_estimated_sacked(0);
        }
        if ack.echoes_mark {
            self.recovery.restorable = false;
        }
        if self.peer_has_reneged(ack) {
            return;
        }
        if self.recovery.phase == Phase::Open {
            self.recovery.first_resent_at = None;
        } else if self.send.unacknowledged >= self.recovery.high && self.phase_ends(now) {
            return;
        }
        match self.recovery.phase {
            Phase::Recovery => self.continue_recovery(ack, now),
            Phase::Loss => {
                self.continue_loss(ack, now);
                self.find_losses(ack, now);
                if self.recovery.phase == Phase::Open || ack.lost_retransmission {
                    self.consider_recovery(ack, now);
                }
            }
            _ => self.consider_recovery(ack, now),
        }
    }

    /// "The data receiver is permitted to discard data in its queue that has not been acknowledged" (RFC 2018, 8):
    /// the oldest segment is marked although it would be acknowledged, had the peer kept it. The timeout comes
    /// soon, and forgets the marks.
    fn peer_has_reneged(&mut self, ack: &mut Ack) -> bool {
        if !ack.advanced || !self.sent.first().is_some_and(super::sent::Sent::is_sacked) {
            return false;
        }
        let smoothed = self.round_trip.smoothed().unwrap_or(Duration::ZERO);
        let patience = Duration::from_ps(smoothed.as_ps() / 2).max(Duration::from_ms(10));
        self.timers.set(TimerKind::Timeout, ack.now + patience);
        ack.set_timer = false;
        true
    }

    /// All that was sent before the phase began is acknowledged. Whether nothing more is to be done.
    fn phase_ends(&mut self, now: Time) -> bool {
        match self.recovery.phase {
            Phase::Reduction if self.send.unacknowledged > self.recovery.high => {
                self.end_reduction(now);
                self.recovery.phase = Phase::Open;
            }
            Phase::Recovery => {
                if !self.agreed.sack {
                    self.sent.set_estimated_sacked(0);
                }
                let before = self.recovery.phase;
                if self.try_undo_recovery(before, now) {
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    /// In recovery: partial acknowledgements, duplicates, and more losses.
    fn continue_recovery(&mut self, ack: &mut Ack, now: Time) {
        if !ack.advanced {
            self.count_duplicate(ack);
        } else if self.try_undo_partial(ack, now) {
            return;
        }
        if self.try_undo_by_duplicates(now) {
            self.try_to_open(ack, now);
        }
        self.find_losses(ack, now);
        if self.recovery.phase != Phase::Recovery && self.sent.lost() > 0 {
            self.enter_recovery(ack.echoes_mark, now);
        }
    }

    /// Begins recovery if it must begin.
    fn consider_recovery(&mut self, ack: &mut Ack, now: Time) {
        if !self.agreed.sack {
            if ack.advanced {
                self.sent.set_estimated_sacked(0);
            }
            self.count_duplicate(ack);
        }
        if self.recovery.phase <= Phase::Disorder {
            self.try_undo_by_duplicates(now);
        }
        self.find_losses(ack, now);
        if self.sent.lost() == 0 {
            self.try_to_open(ack, now);
            return;
        }
        self.enter_recovery(ack.echoes_mark, now);
    }

    /// After a timeout (`tcp_process_loss`).
    fn continue_loss(&mut self, ack: &mut Ack, now: Time) {
        let recovered = self.send.unacknowledged >= self.recovery.high;
        if ack.advanced && self.try_undo_loss(false, now) {
            return;
        }
        if self.recovery.spurious_timeout_open {
            // RFC 5682, 3.1, step 3b: what was sent once only and before the timeout has arrived.
            if ack.original_delivered && self.try_undo_loss(true, now) {
                return;
            }
            if self.send.next > self.recovery.high {
                if ack.selected || ack.duplicate {
                    self.recovery.spurious_timeout_open = false;
                }
            } else if ack.advanced && !recovered {
                self.recovery.high = self.send.next;
                // Step 2b: two new segments tell whether the timeout was right.
                if self.has_new_data_for_window() {
                    self.recovery.new_data_first = true;
                    return;
                }
                self.recovery.spurious_timeout_open = false;
            }
        }
        if recovered {
            self.try_undo_recovery(Phase::Loss, now);
            return;
        }
        if !self.agreed.sack {
            if self.send.next > self.recovery.high && ack.duplicate {
                self.count_duplicate(ack);
            } else if ack.advanced {
                self.sent.set_estimated_sacked(0);
            }
        }
    }

    fn has_new_data_for_window(&self) -> bool {
        self.outgoing.end() > self.send.next && self.send.window_end() > self.send.next
    }

    /// Marks what must be lost by now.
    pub(super) fn find_losses(&mut self, ack: &mut Ack, now: Time) {
        if self.sent.outstanding() == 0 {
            return;
        }
        if !self.agreed.sack {
            self.find_losses_without_sack(ack.advanced);
            return;
        }
        let resent = self.sent.resent();
        let recovering = self.recovery.phase >= Phase::Recovery;
        let wait = self.rack.find_losses_after_delivery(&mut self.sent, recovering, &self.round_trip, now);
        if let Some(wait) = wait {
            self.timers.set(TimerKind::Reordering, now + wait);
            ack.set_timer = false;
        }
        ack.lost_retransmission |= self.sent.resent() < resent;
    }

    /// The reordering timer: what was waited for is lost now.
    pub(super) fn reordering_timer(&mut self, now: Time) {
        let in_flight = self.sent.in_flight();
        let lost = self.sent.lost_total();
        let recovering = self.recovery.phase >= Phase::Recovery;
        let wait = self.rack.find_losses(&mut self.sent, recovering, &self.round_trip, now);
        if self.sent.in_flight() != in_flight {
            if self.recovery.phase < Phase::Recovery {
                self.enter_recovery(false, now);
                if !self.congestion.rules_recovery() {
                    self.reduce(1, (self.sent.lost_total() - lost) as u32, false);
                }
            }
            self.sent.settle();
        }
        match wait {
            Some(wait) => self.timers.set(TimerKind::Reordering, now + wait),
            None => self.rearm_timeout(now),
        }
    }

    /// Fast recovery begins.
    pub(super) fn enter_recovery(&mut self, echoes_mark: bool, now: Time) {
        if !self.recovery.is_reducing() {
            self.recovery.restorable = !echoes_mark;
            self.begin_reduction(Congestion::Loss, now);
        } else {
            self.recovery.restorable = false;
        }
        self.begin_undo();
        self.recovery.phase = Phase::Recovery;
    }

    /// Remembers from where on the reduction may turn out to have been for nothing.
    pub(super) fn begin_undo(&mut self) {
        self.recovery.undo_from = Some(self.send.unacknowledged);
        let resent = self.sent.resent();
        self.recovery.undo_resent = (resent > 0).then_some(resent);
    }

    /// Without a loss: an echoed mark reduces the window once a round (RFC 3168, 6.1.2).
    fn try_to_open(&mut self, ack: &Ack, now: Time) {
        if self.sent.resent() == 0 {
            self.recovery.first_resent_at = None;
        }
        if ack.echoes_mark && self.recovery.phase < Phase::Reduction {
            self.recovery.undo_from = None;
            self.recovery.restorable = false;
            self.begin_reduction(Congestion::Marked, now);
            self.recovery.phase = Phase::Reduction;
        }
        if self.recovery.phase != Phase::Reduction {
            self.keep_open();
        }
    }

    pub(super) fn keep_open(&mut self) {
        let disorder = self.sent.sacked() + self.sent.lost() + self.sent.resent() > 0;
        let phase = if disorder { Phase::Disorder } else { Phase::Open };
        if phase != self.recovery.phase {
            self.recovery.phase = phase;
            self.recovery.high = self.send.next;
        }
    }

    /// The probe for a lost tail was answered by more than it repaired: there was a loss, to be paid for (RFC 8985,
    /// 7.4.2).
    pub(super) fn reduce_for_repaired_tail(&mut self, now: Time) {
        if !self.recovery.is_reducing() {
            self.begin_reduction(Congestion::Loss, now);
        }
        self.recovery.phase = Phase::Reduction;
        self.end_reduction(now);
        self.keep_open();
    }

    /// The retransmission timer ran out (`tcp_enter_loss`).
    pub(super) fn enter_loss(&mut self, now: Time) {
        let new_episode = self.recovery.phase < Phase::Recovery;
        let in_flight = self.sent.in_flight();
        let reneged = self.sent.first().is_some_and(super::sent::Sent::is_sacked);
        if reneged {
            self.sent.forget_selections();
        } else if !self.agreed.sack {
            self.sent.set_estimated_sacked(0);
        }
        let early = self.sent.sacked();
        let rack = self.rack.clone();
        let mut first = true;
        let spares = self.agreed.sack && !reneged;
        self.sent.mark_all_lost(|segment| !std::mem::take(&mut first) && spares && rack.is_recent(segment, now));
        self.sent.settle();

        // The threshold is lowered once for a window of data.
        let reduces = self.recovery.phase <= Phase::Disorder
            || self.recovery.high <= self.send.unacknowledged
            || self.recovery.phase == Phase::Loss && self.recovery.timeouts == 0;
        if reduces {
            self.congestion.congested(Congestion::Timeout, in_flight, now);
            self.recovery.restorable = true;
            self.recovery.reductions_total += 1;
            self.begin_undo();
        } else {
            self.congestion.timed_out_again(in_flight, now);
        }
        let window = self.sent.in_flight() + 1;
        if self.congestion.window() != window && !self.congestion.rules_recovery() {
            self.congestion.recovered(window, now);
        }
        if self.recovery.phase <= Phase::Disorder && early >= super::rack::REORDERING {
            self.rack.forget_reordering();
        }
        let recovery = &mut self.recovery;
        recovery.phase = Phase::Loss;
        recovery.high = self.send.next;
        recovery.probe_end = None;
        recovery.probe_wanted = false;
        recovery.new_data_first = false;
        recovery.spurious_timeout_open = new_episode || recovery.timeouts > 0;
        recovery.timeouts_total += 1;
        if self.agreed.ecn {
            self.echo.reduced = true;
        }
    }
}

impl Connection {
    /// The path has got narrower: what is too large is sent again in parts, without a reduction
    /// (`tcp_simple_retransmit`).
    pub(super) fn resend_oversized(&mut self, now: Time) {
        let most = self.segment_bytes;
        let lost = self.sent.lost();
        self.sent.mark_all_lost(|segment| segment.payload() <= most || segment.is_sacked());
        self.sent.settle();
        if self.sent.lost() == lost {
            return;
        }
        if self.recovery.phase != Phase::Loss {
            if self.recovery.is_reducing() {
                self.end_reduction(now);
            }
            self.recovery.phase = Phase::Loss;
            self.recovery.high = self.send.next;
            self.recovery.undo_from = None;
            self.recovery.restorable = false;
            self.recovery.spurious_timeout_open = false;
        }
        self.timers.set(TimerKind::Timeout, now + self.round_trip.timeout());
    }
}
