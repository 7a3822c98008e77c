//! The excess of acknowledgements over what the bandwidth promises.
//!
//! Hosts and radio links acknowledge in bursts. A window of one bandwidth-delay product would run dry between them,
//! so BBR adds the largest excess that the last five to ten rounds have shown.

use twinnet_units::{Duration, Time};

use super::bandwidth::{Bandwidth, UNIT};

/// Rounds in each half of the window over which the excess is remembered.
const ROUNDS: u32 = 5;
/// An epoch of more segments than this is too old to tell anything.
const EPOCH_SEGMENTS: u32 = 1 << 20;
/// The excess is taken for at most what passes in this time.
const LONGEST_SILENCE: Duration = Duration::from_ms(100);

/// The estimate.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    epoch_began: Time,
    epoch_delivered: u32,
    /// Largest excess of this half of the window and of the one before, in segments.
    excess: [u32; 2],
    rounds: u32,
}

impl Aggregation {
    pub fn new(now: Time) -> Self {
        Self { epoch_began: now, epoch_delivered: 0, excess: [0; 2], rounds: 0 }
    }

    /// Sending begins again after silence: an epoch begins.
    pub fn restart(&mut self, now: Time) {
        self.epoch_began = now;
        self.epoch_delivered = 0;
    }

    /// `delivered` segments were acknowledged where `bandwidth` was expected; the window is `window` segments.
    pub fn update(&mut self, now: Time, delivered: u32, bandwidth: Bandwidth, window: u32, round_begins: bool) {
        if round_begins {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.excess = [0, self.excess[0]];
            }
        }
        let mut expected = bandwidth.segments_in(now - self.epoch_began, UNIT);
        if self.epoch_delivered <= expected || self.epoch_delivered.saturating_add(delivered) >= EPOCH_SEGMENTS {
            self.restart(now);
            expected = 0;
        }
        self.epoch_delivered = self.epoch_delivered.saturating_add(delivered);
        self.excess[0] = self.excess[0].max(self.epoch_delivered.saturating_sub(expected).min(window));
    }

    /// Segments to be added to the window.
    pub fn extra(&self, bandwidth: Bandwidth) -> u32 {
        self.excess[0].max(self.excess[1]).min(bandwidth.segments_in(LONGEST_SILENCE, UNIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_acknowledgements_are_added_and_forgotten_after_ten_rounds() {
        // A little more than the segments that come, for it is rounded down.
        let bandwidth = Bandwidth::of(1001, Duration::from_secs(1));
        let mut aggregation = Aggregation::new(Time::ZERO);
        // Twenty segments at once every 20 ms: the excess over the line is the burst itself.
        for burst in 1..=5_u64 {
            aggregation.update(Time::from_ns(burst * 20_000_000), 20, bandwidth, 1000, false);
        }
        assert_eq!(aggregation.extra(bandwidth), 20);
        let mut rounds = 0;
        while aggregation.extra(bandwidth) > 1 && rounds < 100 {
            rounds += 1;
            aggregation.update(Time::from_ns(100_000_000 + rounds * 20_000_000), 1, bandwidth, 1000, true);
        }
        assert_eq!(rounds, 10);
    }
}
