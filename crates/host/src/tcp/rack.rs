//! The detection of lost segments: RACK (RFC 8985), with the reordering window of Linux.

use twinnet_units::{Duration, Time};

use super::round_trip::RoundTrip;
use super::sent::{Scoreboard, Sent};

/// Segments that may come early before order is given up (`tcp_reordering`, RFC 5681's three).
pub(super) const REORDERING: u32 = 3;
/// The most that is learnt (`tcp_max_reordering`).
const LONGEST_REORDERING: u32 = 300;
/// Recoveries for which a widened reordering window stays (RFC 8985, 6.2, step 4).
const PERSISTENCE: u32 = 16;
/// Added to the reordering timer (`TCP_TIMEOUT_MIN`).
const TIMER_SLACK: Duration = Duration::from_ms(2);

/// The knowledge learnt from deliveries.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The transmission sent last among those delivered.
    serial: u64,
    sent_at: Time,
    round_trip: Duration,
    /// Something was delivered since losses were last looked for.
    advanced: bool,
    reordering_seen: bool,
    /// Degree of reordering in segments.
    pub reordering: u32,
    window_steps: u32,
    persistence: u32,
    duplicate_told: bool,
    /// The data delivered when the window was last widened.
    widened_at: u64,
}

impl Rack {
    /// Nothing delivered yet.
    pub fn new() -> Self {
        Self {
            serial: 0,
            sent_at: Time::ZERO,
            round_trip: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            reordering: REORDERING,
            window_steps: 1,
            persistence: 0,
            duplicate_told: false,
            widened_at: 0,
        }
    }

    /// A segment was delivered (RFC 8985, 6.2, step 2).
    pub fn delivered(&mut self, segment: &Sent, least_round_trip: Option<Duration>, now: Time) {
        let round_trip = now - segment.sent_at;
        if segment.was_retransmitted() && round_trip < least_round_trip.unwrap_or(Duration::MAX) {
            // The acknowledgement is probably for the original: it says nothing about the retransmission.
            return;
        }
        self.advanced = true;
        self.round_trip = round_trip;
        if segment.serial > self.serial {
            self.serial = segment.serial;
            self.sent_at = segment.sent_at;
        }
    }

    /// Losses are to be looked for again, for marks were taken back.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// A segment between `low` and the highest sequence selectively acknowledged came late without having been
    /// retransmitted.
    pub fn reordered(&mut self, low: u64, highest: u64, segment_bytes: u32) {
        if low >= highest {
            return;
        }
        let distance = u32::try_from((highest - low).div_ceil(u64::from(segment_bytes.max(1)))).unwrap_or(u32::MAX);
        self.reordering = self.reordering.max(distance.min(LONGEST_REORDERING));
        self.reordering_seen = true;
    }

    /// Without SACK: as many segments were acknowledged out of order as `distance` tells.
    pub fn reordered_by(&mut self, distance: u32) {
        self.reordering = distance.min(LONGEST_REORDERING);
        self.reordering_seen = true;
    }

    /// A timeout although more than three segments came early: the degree was thought too high.
    pub fn forget_reordering(&mut self) {
        self.reordering = self.reordering.min(REORDERING);
    }

    /// The peer reported a duplicate, so that a retransmission was for nothing.
    pub fn duplicate(&mut self) {
        self.duplicate_told = true;
    }

    /// The window stays as wide as it is for some recoveries.
    pub fn persist_longer(&mut self) {
        self.persistence = (self.persistence + 1).min(PERSISTENCE);
    }

    /// A recovery was right.
    pub fn persist_less(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
    }

    /// Widens the reordering window once a round in which a duplicate was told (RFC 8985, 6.2, step 4).
    pub fn adapt(&mut self, delivered_before: u64, delivered: u64) {
        if delivered_before < self.widened_at {
            self.duplicate_told = false;
        }
        if self.duplicate_told {
            self.window_steps = (self.window_steps + 1).min(0xff);
            self.duplicate_told = false;
            self.widened_at = delivered;
            self.persistence = PERSISTENCE;
        } else if self.persistence == 0 {
            self.window_steps = 1;
        }
    }

    /// Returns the time that a segment may come later than one sent after it.
    fn window(&self, sacked: u32, recovering: bool, round_trip: &RoundTrip) -> Duration {
        if !self.reordering_seen && (recovering || sacked >= self.reordering) {
            return Duration::ZERO;
        }
        let smoothed = round_trip.smoothed().unwrap_or(Duration::ZERO).as_ps();
        let least = round_trip.least().map_or(u64::MAX, Duration::as_ps);
        Duration::from_ps((least / 4).saturating_mul(u64::from(self.window_steps)).min(smoothed / 8))
    }

    /// Marks what must be lost by now (RFC 8985, 6.2, step 5), if something was delivered since it was last done;
    /// gives how long the rest must be waited for.
    pub fn find_losses_after_delivery(
        &mut self,
        sent: &mut Scoreboard,
        recovering: bool,
        round_trip: &RoundTrip,
        now: Time,
    ) -> Option<Duration> {
        if !std::mem::take(&mut self.advanced) {
            return None;
        }
        self.find_losses(sent, recovering, round_trip, now)
    }

    /// Marks what must be lost by now; gives how long the rest must be waited for.
    pub fn find_losses(
        &self,
        sent: &mut Scoreboard,
        recovering: bool,
        round_trip: &RoundTrip,
        now: Time,
    ) -> Option<Duration> {
        let patience = self.round_trip + self.window(sent.sacked(), recovering, round_trip);
        while let Some((index, segment)) = sent.oldest_transmission() {
            if segment.serial >= self.serial {
                return None;
            }
            if now - segment.sent_at < patience {
                // The latest that can wait was sent no later than the one delivered last.
                return Some((self.sent_at + patience).since(now) + TIMER_SLACK);
            }
            sent.mark_lost(index);
        }
        None
    }

    /// Returns `true` if a segment was sent too short a time ago to be lost when the retransmission timer runs out.
    pub fn is_recent(&self, segment: &Sent, now: Time) -> bool {
        // With no delivery yet there is no measure: everything is old.
        self.serial > 0 && now - segment.sent_at < self.round_trip
    }
}
