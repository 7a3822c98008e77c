//! Lines whose capacity follows a trace of deliveries, as of mobile access, in the form that Mahimahi records.
//!
//! Netravali and others, *Mahimahi: accurate record-and-replay for HTTP*, USENIX ATC 2015: a trace is a list of
//! moments, in milliseconds, at each of which one packet of full size can leave; several moments may be equal, and the
//! list begins anew at its last moment. A moment at which nothing waits passes unused. Smaller packets share a moment,
//! and a longer one takes several.
//!
//! A moment carries what a packet of [`PACKET_BYTES`] with its Ethernet header costs on the wire with the line's
//! framing (Mahimahi: 1504 bytes, whatever carries them). So as many full-size packets pass as there are moments.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twinnet_units::{Duration, Time};

/// The length of a packet of full size, without its Ethernet header.
const PACKET_BYTES: u64 = 1500;
const ETHERNET_HEADER_BYTES: u64 = 14;

/// The length of the frame that passes at each moment, in bytes at the link layer.
pub(super) const FRAME_BYTES: u64 = PACKET_BYTES + ETHERNET_HEADER_BYTES;

/// Most moments of a trace: an hour at 3.3 Mbit/s, a minute at 200 Mbit/s.
pub const MOST_DELIVERIES: usize = 1_000_000;

/// The moments at which packets can leave, in milliseconds from the beginning of the trace; at its last one it begins
/// anew. They do not fall, and the last is above zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct DeliveryTrace {
    times_ms: Arc<[u32]>,
}

/// The reason why a list of moments is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryTraceError {
    /// Too few or too many.
    #[error("a delivery trace has {given} moments; allowed are 1 to {MOST_DELIVERIES}")]
    Count {
        /// The number of moments.
        given: usize,
    },
    /// A moment before the one before it.
    #[error("moment {place} of a delivery trace, {given} ms, is before {before} ms; sort them")]
    Falls {
        /// Its place, counted from 1.
        place: usize,
        /// The moment.
        given: u32,
        /// The one before it.
        before: u32,
    },
    /// All at zero: the trace would not last.
    #[error("the last moment of a delivery trace is 0 ms; it is how long the trace lasts, at least 1 ms")]
    LastsNoTime,
}

impl DeliveryTrace {
    /// A trace with these moments.
    ///
    /// # Errors
    /// [`DeliveryTraceError`], which tells what is wrong.
    pub fn new(times_ms: Vec<u32>) -> Result<Self, DeliveryTraceError> {
        if times_ms.is_empty() || times_ms.len() > MOST_DELIVERIES {
            return Err(DeliveryTraceError::Count { given: times_ms.len() });
        }
        if let Some(place) = times_ms.windows(2).position(|pair| pair[1] < pair[0]) {
            let (before, given) = (times_ms[place], times_ms[place + 1]);
            return Err(DeliveryTraceError::Falls { place: place + 2, given, before });
        }
        if times_ms.last() == Some(&0) {
            return Err(DeliveryTraceError::LastsNoTime);
        }
        Ok(Self { times_ms: times_ms.into() })
    }

    fn lasts(&self) -> Duration {
        Duration::from_ms(u64::from(self.times_ms.last().copied().unwrap_or(1)))
    }
}

impl TryFrom<Vec<u32>> for DeliveryTrace {
    type Error = DeliveryTraceError;

    fn try_from(times_ms: Vec<u32>) -> Result<Self, Self::Error> {
        Self::new(times_ms)
    }
}

impl From<DeliveryTrace> for Vec<u32> {
    fn from(trace: DeliveryTrace) -> Self {
        trace.times_ms.to_vec()
    }
}

/// A trace that a line follows.
#[derive(Debug)]
pub(super) struct Deliveries {
    trace: DeliveryTrace,
    /// The time at which this round of the trace began.
    round: Time,
    /// The place of the next moment in it.
    next: usize,
    /// The last moment that was used.
    at: Time,
    /// The bytes that it can still carry.
    left: u64,
}

impl Deliveries {
    pub(super) const fn new(trace: DeliveryTrace) -> Self {
        Self { trace, round: Time::ZERO, next: 0, at: Time::ZERO, left: 0 }
    }

    /// A frame of `wire_bytes` is begun at `now`, where each moment carries `each`: returns when its last bit leaves.
    pub(super) fn carry(&mut self, wire_bytes: u64, each: u64, now: Time) -> Time {
        if now > self.at {
            self.left = 0;
            self.pass_over(now);
        }
        let mut missing = wire_bytes;
        while self.left < missing {
            missing -= self.left;
            self.at = self.take();
            self.left = each.max(1);
        }
        self.left -= missing;
        self.at = self.at.max(now);
        self.at
    }

    /// Lets the moments before `now` pass.
    fn pass_over(&mut self, now: Time) {
        if self.moment(self.next) >= now {
            return;
        }
        let lasts = self.trace.lasts();
        let rounds = now.since(self.round).as_ps() / lasts.as_ps();
        if rounds > 0 {
            self.round += Duration::from_ps(rounds * lasts.as_ps());
            self.next = 0;
        }
        let round = self.round;
        let before = |time_ms: &u32| round + Duration::from_ms(u64::from(*time_ms)) < now;
        self.next += self.trace.times_ms[self.next..].partition_point(before);
    }

    /// Takes the next moment.
    fn take(&mut self) -> Time {
        let moment = self.moment(self.next);
        self.next += 1;
        if self.next == self.trace.times_ms.len() {
            self.next = 0;
            self.round += self.trace.lasts();
        }
        moment
    }

    fn moment(&self, place: usize) -> Time {
        let time_ms = self.trace.times_ms.get(place).copied().unwrap_or(0);
        self.round + Duration::from_ms(u64::from(time_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn deliveries(times_ms: &[u32]) -> Deliveries {
        Deliveries::new(DeliveryTrace::new(times_ms.to_vec()).unwrap())
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    #[test]
    fn a_frame_of_full_size_leaves_at_each_moment_and_the_trace_begins_anew_at_its_last() {
        let mut line = deliveries(&[1, 2, 2, 5]);
        let mut now = Time::ZERO;
        let left: Vec<u64> = (0..9)
            .map(|_| {
                now = line.carry(1538, 1538, now);
                now.as_ns() / 1_000_000
            })
            .collect();
        assert_eq!(left, [1, 2, 2, 5, 6, 7, 7, 10, 11]);
    }

    #[test]
    fn small_frames_share_a_moment_and_long_ones_take_several() {
        let mut line = deliveries(&[1, 4, 9]);
        assert_eq!(line.carry(500, 1500, at(0)), at(1000));
        assert_eq!(line.carry(1000, 1500, at(1000)), at(1000));
        assert_eq!(line.carry(1501, 1500, at(1000)), at(9000));
        assert_eq!(line.carry(1499, 1500, at(9000)), at(9000));
        assert_eq!(line.carry(1, 1500, at(9000)), at(10_000));
    }

    #[test]
    fn moments_at_which_nothing_waits_pass_unused() {
        let mut line = deliveries(&[1, 2, 3, 10]);
        assert_eq!(line.carry(100, 1500, at(0)), at(1000));
        // What was left of the first moment is gone, and so is the second.
        assert_eq!(line.carry(1500, 1500, at(2500)), at(3000));
        assert_eq!(line.carry(1500, 1500, at(42_000)), at(42_000));
        assert_eq!(line.carry(1500, 1500, at(42_000)), at(43_000));
    }

    #[test]
    fn what_is_no_trace_is_told() {
        let refused = |times: &[u32]| DeliveryTrace::new(times.to_vec()).unwrap_err().to_string();
        assert!(refused(&[]).contains("0 moments"));
        assert!(refused(&[3, 5, 4]).contains("moment 3 of a delivery trace, 4 ms, is before 5 ms"));
        assert!(refused(&[0, 0]).contains("at least 1 ms"));
        assert!(refused(&vec![1; MOST_DELIVERIES + 1]).contains("allowed are 1 to 1000000"));
        assert!(serde_json::from_str::<DeliveryTrace>("[2, 1]").unwrap_err().to_string().contains("sort"));
    }

    proptest! {
        #[test]
        fn no_window_carries_more_than_its_moments(
            mut times in prop::collection::vec(0..200_u32, 1..40),
            frames in prop::collection::vec((60..3000_u64, 0..20_000_u64), 1..60))
        {
            times.sort_unstable();
            times.push(201);
            let mut line = deliveries(&times);
            let (mut now, mut sent, mut last) = (Time::ZERO, Vec::new(), Time::ZERO);
            for (bytes, wait_us) in frames {
                now = last.max(now + Duration::from_us(wait_us));
                last = line.carry(bytes, 1538, now);
                prop_assert!(last >= now);
                sent.push((last, bytes));
            }
            // All that left by a moment fits into the moments until then.
            let mut carried = 0;
            for (moment, bytes) in sent {
                carried += bytes;
                let ms = moment.as_ns() / 1_000_000;
                let (rounds, rest) = (ms / 201, ms % 201);
                let within = times.iter().filter(|time| u64::from(**time) <= rest).count() as u64;
                prop_assert!(carried <= (rounds * times.len() as u64 + within) * 1538);
            }
        }
    }
}
