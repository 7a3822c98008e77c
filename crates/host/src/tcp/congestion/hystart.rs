//! HyStart: leaves slow start before it overflows the bottleneck's buffer (Ha and Rhee 2011), as Linux's
//! `tcp_cubic.c` has it.
//!
//! Two signs are looked for in every round. The train of acknowledgements that a window's burst gives is as long as
//! the path's forward delay: the burst fills the pipe. Or the round trip has grown by an eighth: a queue builds up.

use twinnet_units::{Duration, Time};

use super::Acknowledged;

/// Windows below this are never too large, in segments.
const LOW_WINDOW: u32 = 16;
/// Acknowledgements further apart than this are of two trains.
const TRAIN_GAP: Duration = Duration::from_ms(2);
/// Round trips that a round must show before its least is believed.
const ROUND_TRIPS_NEEDED: u32 = 8;
/// By how much a round trip must grow, at least and at most.
const DELAY_GROWTH: (Duration, Duration) = (Duration::from_ms(4), Duration::from_ms(16));
/// Largest super-segment that Linux gives to an interface, in bytes (`sk_gso_max_size`).
const SUPER_SEGMENT_BYTES: u64 = 65_536;

/// The observations of the current round.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    round_began: Time,
    round_ends_after: u64,
    last_of_train: Time,
    least_round_trip: Duration,
    round_trips: u32,
    found: bool,
}

impl HyStart {
    /// A connection begins at `now`, with nothing sent but what precedes sequence number `next_sequence`.
    pub fn new(now: Time, next_sequence: u64) -> Self {
        Self {
            round_began: now,
            round_ends_after: next_sequence,
            last_of_train: now,
            least_round_trip: Duration::MAX,
            round_trips: 0,
            found: false,
        }
    }

    /// Looks at an acknowledgement that told `round_trip`, in slow start with a window of `window` segments;
    /// `least_round_trip` is the connection's. Whether slow start should end here; says so once.
    pub fn should_leave(
        &mut self,
        told: &Acknowledged,
        round_trip: Duration,
        least_round_trip: Duration,
        window: u32,
    ) -> bool {
        if self.found {
            return false;
        }
        if told.acknowledged_to > self.round_ends_after {
            *self = Self::new(told.now, told.next_sequence);
        }
        if window < LOW_WINDOW {
            return false;
        }
        let full = self.train_fills_the_pipe(told, least_round_trip, window);
        let queued = self.queue_builds_up(round_trip, least_round_trip);
        self.found = full || queued;
        self.found
    }

    fn train_fills_the_pipe(&mut self, told: &Acknowledged, least_round_trip: Duration, window: u32) -> bool {
        if told.now - self.last_of_train > TRAIN_GAP {
            return false;
        }
        self.last_of_train = told.now;
        let longest = least_round_trip + acknowledgement_delay(told, window);
        // The way there is half a round trip. Linux halves the allowance as well for a sender that is not paced,
        // which all of CUBIC's are.
        told.now - self.round_began > Duration::from_ps(longest.as_ps() / 2)
    }

    fn queue_builds_up(&mut self, round_trip: Duration, least_round_trip: Duration) -> bool {
        self.least_round_trip = self.least_round_trip.min(round_trip);
        if self.round_trips < ROUND_TRIPS_NEEDED {
            self.round_trips += 1;
            return false;
        }
        let growth = Duration::from_ps(least_round_trip.as_ps() / 8).clamp(DELAY_GROWTH.0, DELAY_GROWTH.1);
        self.least_round_trip > least_round_trip + growth
    }
}

/// Returns the time that segmentation and its reversal in the two hosts may add to a train: the time of four
/// super-segments at the rate of slow start, at most a millisecond.
fn acknowledgement_delay(told: &Acknowledged, window: u32) -> Duration {
    let bytes_a_round = 2 * u128::from(window) * u128::from(told.segment_bytes);
    let round = told.smoothed_round_trip.as_ps();
    if bytes_a_round == 0 || round == 0 {
        return Duration::ZERO;
    }
    let ps = u128::from(4 * SUPER_SEGMENT_BYTES) * u128::from(round) / bytes_a_round;
    Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)).min(Duration::from_ms(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_ms(40);

    fn told(now: Time, acknowledged_to: u64, next_sequence: u64) -> Acknowledged {
        Acknowledged {
            now,
            acknowledged_to,
            next_sequence,
            smoothed_round_trip: ROUND_TRIP,
            segment_bytes: 1448,
            ..Acknowledged::default()
        }
    }

    /// Acknowledgements `gap` apart, all of one round; how many passed before slow start ended, of at most `most`.
    fn train(hystart: &mut HyStart, gap: Duration, window: u32, most: u64) -> Option<u64> {
        let begin = Time::from_ns(1_000_000_000);
        (0..most).find(|&n| {
            let now = begin + Duration::from_ps(gap.as_ps() * n);
            hystart.should_leave(&told(now, 1 + n, 1000), ROUND_TRIP, ROUND_TRIP, window)
        })
    }

    #[test]
    fn a_train_as_long_as_the_way_there_ends_slow_start() {
        let mut hystart = HyStart::new(Time::ZERO, 0);
        // (40 ms + 1 ms of segmentation) / 2 = 20.5 ms: the 42nd half millisecond is the first beyond it.
        let expected = Some(42);
        // A window of 2000 would carry four super-segments in less than a millisecond; one of 20 takes longer, so
        // the millisecond counts.
        assert_eq!(train(&mut hystart, Duration::from_us(500), 20, 200), expected);
        assert_eq!(train(&mut hystart, Duration::from_us(500), 20, 200), None, "it says so once");
    }

    #[test]
    fn gaps_break_a_train() {
        let mut hystart = HyStart::new(Time::ZERO, 0);
        assert_eq!(train(&mut hystart, Duration::from_us(2100), 20, 200), None);
    }

    #[test]
    fn a_small_window_is_left_to_grow() {
        let mut hystart = HyStart::new(Time::ZERO, 0);
        assert_eq!(train(&mut hystart, Duration::from_us(500), LOW_WINDOW - 1, 200), None);
    }

    #[test]
    fn a_round_trip_that_grows_by_an_eighth_ends_slow_start_after_eight_samples() {
        let grown = |ms| {
            let mut hystart = HyStart::new(Time::ZERO, 0);
            (0..50_u64).find(|&n| {
                let now = Time::from_ns(1_000_000_000 + 3_000_000 * n);
                hystart.should_leave(&told(now, 1 + n, 1000), Duration::from_ms(ms), ROUND_TRIP, 20)
            })
        };
        assert_eq!(grown(45), None, "40 ms / 8 = 5 ms is not exceeded by 5 ms");
        assert_eq!(grown(46), Some(8));
    }

    #[test]
    fn each_round_is_judged_by_itself() {
        let mut hystart = HyStart::new(Time::ZERO, 0);
        let rounds = (1..60_u64).any(|round| {
            // Seven samples a round are too few to believe, however slow they are.
            (0..7_u64).any(|n| {
                let now = Time::from_ns(round * 100_000_000 + n * 3_000_000);
                let told = told(now, round * 10 + n, round * 10 + 9);
                hystart.should_leave(&told, Duration::from_ms(90), ROUND_TRIP, 20)
            })
        });
        assert!(!rounds);
    }
}
