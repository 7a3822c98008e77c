//! Detects that a token bucket polices the path: two intervals of heavy loss with the same throughput tell its rate.

use twinnet_units::Time;

use super::bandwidth::{Bandwidth, UNIT};

/// Rounds that an interval lasts at least; four times as many make it too long.
const INTERVAL_ROUNDS: u32 = 4;
/// Lost segments for one delivered, in 256ths, that an interval needs.
const HEAVY_LOSS: u64 = 50;
/// The most by which two intervals may differ: this share in 256ths, or this many bytes per second.
const SAME_SHARE: u64 = UNIT / 8;
const SAME_BYTES_PER_SECOND: u64 = 4000 / 8;
/// Rounds for which the rate found is used before the path is probed anew.
const ROUNDS_OF_USE: u32 = 48;

/// The contents of BBR's account of the connection at an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub now: Time,
    /// Segments delivered and lost since the connection began.
    pub delivered: u64,
    pub lost: u64,
    /// Segments lost just now.
    pub newly_lost: u32,
    pub app_limited: bool,
    pub round_begins: bool,
    /// `true` if BBR is in its steady state.
    pub steady: bool,
    pub segment_bytes: u32,
}

/// The result of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Nothing,
    /// A policer is at work.
    Policed,
    /// Its rate has been used for long enough.
    ProbeAgain,
}

/// The detector.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    bandwidth: Option<Bandwidth>,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    /// Moment and account when the interval began.
    began: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The policer's rate, while it is to be used.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        self.bandwidth.filter(|_| self.in_use)
    }

    /// Forgets all.
    pub fn reset(&mut self, account: &Account) {
        *self = Self::default();
        self.begin(account);
    }

    fn begin(&mut self, account: &Account) {
        self.began = account.now;
        self.delivered = account.delivered;
        self.lost = account.lost;
        self.rounds = 0;
    }

    /// An acknowledgement gave a rate sample.
    pub fn update(&mut self, account: &Account) -> Finding {
        if self.in_use {
            return self.use_up(account);
        }
        if !self.sampling {
            // Before the first loss the bucket still has tokens: what passes then is not the policer's rate.
            if account.newly_lost == 0 {
                return Finding::Nothing;
            }
            self.begin(account);
            self.sampling = true;
        }
        if account.app_limited {
            self.reset(account);
            return Finding::Nothing;
        }
        self.rounds += u32::from(account.round_begins);
        if self.rounds < INTERVAL_ROUNDS {
            return Finding::Nothing;
        }
        if self.rounds > 4 * INTERVAL_ROUNDS {
            self.reset(account);
            return Finding::Nothing;
        }
        // Only at a loss is the bucket known to be empty.
        if account.newly_lost == 0 {
            return Finding::Nothing;
        }
        let delivered = account.delivered.saturating_sub(self.delivered);
        let lost = account.lost.saturating_sub(self.lost);
        let interval = account.now - self.began;
        let lightly = lost * UNIT < HEAVY_LOSS * delivered;
        if delivered == 0 || lightly || interval.as_ps() < 1_000_000_000 {
            return Finding::Nothing;
        }
        self.conclude(Bandwidth::of(delivered, interval), account)
    }

    fn use_up(&mut self, account: &Account) -> Finding {
        if account.steady && account.round_begins {
            self.rounds += 1;
            if self.rounds >= ROUNDS_OF_USE {
                self.reset(account);
                return Finding::ProbeAgain;
            }
        }
        Finding::Nothing
    }

    /// An interval has ended in which `bandwidth` passed.
    fn conclude(&mut self, bandwidth: Bandwidth, account: &Account) -> Finding {
        if let Some(before) = self.bandwidth {
            let difference = bandwidth.difference(before);
            if difference <= before.times(SAME_SHARE)
                || difference.paced().bytes_per_second(account.segment_bytes) <= SAME_BYTES_PER_SECOND
            {
                self.bandwidth = Some(bandwidth.mean(before));
                self.in_use = true;
                self.rounds = 0;
                return Finding::Policed;
            }
        }
        self.bandwidth = Some(bandwidth);
        self.begin(account);
        Finding::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One acknowledgement a round of 100 ms: `delivered` segments arrive and `lost` do not. How the detector
    /// finds, round by round.
    fn rounds(policer: &mut Policer, from: u64, count: u64, delivered: u64, lost: u64) -> Vec<Finding> {
        (from + 1..=from + count)
            .map(|round| {
                policer.update(&Account {
                    now: Time::from_ns(round * 100_000_000),
                    delivered: round * delivered,
                    lost: round * lost,
                    newly_lost: u32::try_from(lost).unwrap(),
                    app_limited: false,
                    round_begins: true,
                    steady: true,
                    segment_bytes: 1448,
                })
            })
            .collect()
    }

    #[test]
    fn two_alike_intervals_of_heavy_loss_are_a_policer() {
        let mut policer = Policer::default();
        let findings = rounds(&mut policer, 0, 8, 100, 25);
        let found = findings.iter().position(|&finding| finding == Finding::Policed);
        // Round 1 begins the first interval, which ends in round 4; the second ends four rounds later.
        assert_eq!(found, Some(7));
        let rate = policer.bandwidth().unwrap().bytes_per_second(1448);
        // 1000 segments a second; the first interval counts three rounds of delivery over the same time.
        assert!(rate.abs_diff(1_448_000) < 1_448, "{rate}");
        let findings = rounds(&mut policer, 8, 48, 100, 0);
        assert_eq!(findings.last(), Some(&Finding::ProbeAgain));
        assert_eq!(policer.bandwidth(), None);
    }

    #[test]
    fn light_loss_is_none() {
        let mut policer = Policer::default();
        assert!(rounds(&mut policer, 0, 200, 100, 10).iter().all(|&finding| finding == Finding::Nothing));
    }
}
