//! Bytes and packets by interval of the lab's clock: interval `i` covers `[i, i + 1) * interval`.

use serde::{Deserialize, Serialize};
use twinnet_units::{Duration, Time};

use crate::interval_times::{IntervalTimes, IntervalTimesReport, Timing};

/// Intervals that are kept; what comes later is counted in totals only, and [`IntervalCounter::overflowed`] tells.
const MOST_INTERVALS: u64 = 1 << 20;

/// Counts what happened in each interval.
#[derive(Clone, Debug)]
pub struct IntervalCounter {
    interval: Duration,
    first: u64,
    bytes: Vec<u64>,
    packets: Option<Vec<u64>>,
    times: IntervalTimes,
    last: Vec<u64>,
    overflowed: bool,
}

/// What an [`IntervalCounter`] counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalsReport {
    /// Length of every interval.
    pub interval_ps: u64,
    /// Index of the first interval in the arrays.
    pub first: u64,
    /// Bytes in each interval.
    pub bytes: Vec<u64>,
    /// Packets in each interval; absent for streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Vec<u64>>,
    /// Delay and jitter in each interval, in picoseconds; absent where packets do not tell when they were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_ps: Option<IntervalTimesReport>,
    /// When the last packet of each interval arrived, 0 where there was none; absent for streams. What arrived between the
    /// last packets of two intervals took that time, so that a rate over it never exceeds the line's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ps: Option<Vec<u64>>,
}

impl IntervalCounter {
    /// A counter of bytes alone, for streams.
    #[must_use]
    pub fn of_bytes(interval: Duration) -> Self {
        let interval = interval.max(Duration::from_ps(1));
        Self {
            interval,
            first: 0,
            bytes: Vec::new(),
            packets: None,
            times: IntervalTimes::default(),
            last: Vec::new(),
            overflowed: false,
        }
    }

    /// A counter of bytes and packets.
    #[must_use]
    pub fn of_packets(interval: Duration) -> Self {
        Self { packets: Some(Vec::new()), ..Self::of_bytes(interval) }
    }

    /// Counts `bytes` in one packet at `time`. A time before the first interval counts in the first: arrivals are told in order.
    pub fn add(&mut self, time: Time, bytes: u64) {
        self.add_timed(time, bytes, None);
    }

    /// As [`IntervalCounter::add`], for a packet that may tell its delay.
    pub fn add_timed(&mut self, time: Time, bytes: u64, timing: Option<Timing>) {
        let index = time.as_ps() / self.interval.as_ps();
        if self.bytes.is_empty() {
            self.first = index;
        }
        let offset = index.saturating_sub(self.first);
        if offset >= MOST_INTERVALS {
            self.overflowed = true;
            return;
        }
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if offset >= self.bytes.len() {
            self.bytes.resize(offset + 1, 0);
        }
        self.bytes[offset] += bytes;
        if let Some(packets) = &mut self.packets {
            if offset >= packets.len() {
                packets.resize(offset + 1, 0);
            }
            packets[offset] += 1;
            if offset >= self.last.len() {
                self.last.resize(offset + 1, 0);
            }
            self.last[offset] = self.last[offset].max(time.as_ps());
        }
        if let Some(timing) = timing {
            self.times.add(offset, timing);
        }
    }

    /// Whether something came too late to be kept by interval.
    #[must_use]
    pub const fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// What was counted; `None` when nothing was.
    #[must_use]
    pub fn report(&self) -> Option<IntervalsReport> {
        (!self.bytes.is_empty()).then(|| IntervalsReport {
            interval_ps: self.interval.as_ps(),
            first: self.first,
            bytes: self.bytes.clone(),
            packets: self.packets.clone(),
            times_ps: self.times.report(self.bytes.len()),
            last_ps: self.packets.is_some().then(|| self.last.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_beginning_and_not_its_end() {
        let mut counter = IntervalCounter::of_packets(Duration::from_secs(4));
        counter.add(Time::from_ps(3_999_999_999_999), 1);
        counter.add(Time::from_ps(4_000_000_000_000), 10);
        counter.add(Time::from_ps(12_000_000_000_000), 100);
        let report = counter.report().unwrap();
        assert_eq!((report.first, report.bytes), (0, vec![1, 10, 0, 100]));
        assert_eq!(report.packets, Some(vec![1, 1, 0, 1]));
        assert_eq!(report.last_ps, Some(vec![3_999_999_999_999, 4_000_000_000_000, 0, 12_000_000_000_000]));
    }

    #[test]
    fn counting_begins_at_the_interval_of_the_first_arrival() {
        let mut counter = IntervalCounter::of_bytes(Duration::from_ms(100));
        counter.add(Time::from_ns(250_000_000), 5);
        let report = counter.report().unwrap();
        assert_eq!((report.first, report.bytes, report.packets, report.last_ps), (2, vec![5], None, None));
    }

    #[test]
    fn a_late_arrival_does_not_eat_memory_and_is_told() {
        let mut counter = IntervalCounter::of_bytes(Duration::from_ps(1));
        counter.add(Time::ZERO, 1);
        counter.add(Time::MAX, 1);
        assert!(counter.overflowed());
        assert_eq!(counter.report().unwrap().bytes, [1]);
    }
}
