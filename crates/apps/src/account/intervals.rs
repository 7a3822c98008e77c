//! Bytes and packets by interval of the lab's clock: interval `i` covers `[i, i + 1) * interval`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::{Duration, Time};

use crate::account::carrier::{Carried, CarriedReport, Carrier};
use crate::account::interval_orders::{IntervalOrders, IntervalOrdersReport};
use crate::account::interval_round_trips::{IntervalRoundTrips, IntervalRoundTripsReport};
use crate::account::interval_times::{IntervalTimes, IntervalTimesReport, Timing};
use crate::account::sequence::Arrival;

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
    /// The packets and bytes that carried the datagrams, where the path is known.
    carrier: Option<Carrier>,
    carried: Vec<Carried>,
    orders: IntervalOrders,
    round_trips: IntervalRoundTrips,
    overflowed: bool,
}

/// The report of an [`IntervalCounter`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// The time when the last packet of each interval arrived, 0 where there was none; absent for streams. What arrived
    /// between the last packets of two intervals took that time, so that a rate over it never exceeds the line's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ps: Option<Vec<u64>>,
    /// The packets and bytes that carried the datagrams of each interval, counted packet by packet; absent where the
    /// path's MTU is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<CarriedReport>,
    /// Loss, reordering and duplicates in each interval; absent where packets carry no numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<IntervalOrdersReport>,
    /// Round trips that ended in each interval, in picoseconds; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips_ps: Option<IntervalRoundTripsReport>,
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
            carrier: None,
            carried: Vec::new(),
            orders: IntervalOrders::default(),
            round_trips: IntervalRoundTrips::default(),
            overflowed: false,
        }
    }

    /// A counter of bytes and packets.
    #[must_use]
    pub fn of_packets(interval: Duration) -> Self {
        Self { packets: Some(Vec::new()), ..Self::of_bytes(interval) }
    }

    /// As [`IntervalCounter::of_packets`], of UDP datagrams that a path carries, where its MTU is known.
    #[must_use]
    pub fn of_datagrams(interval: Duration, mtu_bytes: Option<u32>, ipv6: bool) -> Self {
        Self { carrier: mtu_bytes.map(|mtu| Carrier::new(mtu, ipv6)), ..Self::of_packets(interval) }
    }

    /// Counts `bytes` in one packet at `time`. A time before the first interval counts in the first: arrivals are
    /// told in order.
    pub fn add(&mut self, time: Time, bytes: u64) {
        self.add_timed(time, bytes, None);
    }

    /// As [`IntervalCounter::add`], for a packet that may tell its delay.
    pub fn add_timed(&mut self, time: Time, bytes: u64, timing: Option<Timing>) {
        let Some(offset) = self.place(time) else { return };
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
        if let Some(carrier) = self.carrier {
            if offset >= self.carried.len() {
                self.carried.resize(offset + 1, Carried::default());
            }
            self.carried[offset].add(carrier.carry(bytes));
        }
        if let Some(timing) = timing {
            self.times.add(offset, timing);
        }
    }

    /// Counts what the number of an arrival at `time` told; `lost` is how many numbers were lost before it and with it.
    pub fn add_order(&mut self, time: Time, arrival: Arrival, lost: (u64, u64)) {
        if let Some(place) = self.place(time) {
            let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            self.orders.add(place, arrival, signed(lost.1) - signed(lost.0));
        }
    }

    /// Counts a request of `bytes` whose reply arrived at `time`.
    pub fn add_round_trip(&mut self, time: Time, bytes: u64, round_trip_ps: u64) {
        self.add(time, bytes);
        if let Some(place) = self.place(time) {
            self.round_trips.add(place, round_trip_ps);
        }
    }

    /// The place of the interval of `time`, which is there from now on; `None` when it cannot be kept.
    fn place(&mut self, time: Time) -> Option<usize> {
        let index = time.as_ps() / self.interval.as_ps();
        if self.bytes.is_empty() {
            self.first = index;
        }
        let offset = index.saturating_sub(self.first);
        if offset >= MOST_INTERVALS {
            self.overflowed = true;
            return None;
        }
        let offset = usize::try_from(offset).ok()?;
        if offset >= self.bytes.len() {
            self.bytes.resize(offset + 1, 0);
        }
        Some(offset)
    }

    /// Returns `true` if something came too late to be kept by interval.
    #[must_use]
    pub const fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Returns what was counted; `None` when nothing was.
    #[must_use]
    pub fn report(&self) -> Option<IntervalsReport> {
        (!self.bytes.is_empty()).then(|| IntervalsReport {
            interval_ps: self.interval.as_ps(),
            first: self.first,
            bytes: self.bytes.clone(),
            packets: self.packets.as_ref().map(|packets| padded(packets, self.bytes.len())),
            times_ps: self.times.report(self.bytes.len()),
            last_ps: self.packets.is_some().then(|| padded(&self.last, self.bytes.len())),
            orders: self.orders.report(self.bytes.len()),
            round_trips_ps: self.round_trips.report(self.bytes.len()),
            carried: self.carrier.map(|_| CarriedReport::of(&self.carried, self.bytes.len())),
        })
    }
}

/// `counts` of `intervals` intervals: those in which only a duplicate came have none.
fn padded(counts: &[u64], intervals: usize) -> Vec<u64> {
    let mut counts = counts.to_vec();
    counts.resize(intervals, 0);
    counts
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
    fn sizes_on_both_sides_of_the_mtu_are_counted_each_by_itself() {
        let mut counter = IntervalCounter::of_datagrams(Duration::from_secs(1), Some(1500), false);
        for (at_ms, bytes) in [(0, 10), (1, 1473), (2100, 1472)] {
            counter.add(Time::from_ns(at_ms * 1_000_000), bytes);
        }
        let carried = counter.report().unwrap().carried.unwrap();
        assert_eq!(carried.frames, [3, 0, 1]);
        assert_eq!(carried.network_bytes, [38 + 1521, 0, 1500]);
        assert_eq!(carried.wire_bytes, [84 + 1538 + 84, 0, 1538]);
    }

    #[test]
    fn what_was_lost_is_counted_where_it_was_noticed_and_taken_back_where_it_came() {
        let mut counter = IntervalCounter::of_packets(Duration::from_secs(1));
        let second = |at: u64| Time::from_ps(at * 1_000_000_000_000);
        counter.add_order(second(5), Arrival::InOrder, (0, 3));
        counter.add(second(5), 10);
        counter.add_order(second(6), Arrival::Reordered, (3, 2));
        counter.add(second(6), 10);
        counter.add_order(second(8), Arrival::Duplicate, (2, 2));
        let report = counter.report().unwrap();
        let orders = report.orders.unwrap();
        assert_eq!((orders.lost, orders.reordered), (vec![3, -1, 0, 0], vec![0, 1, 0, 0]));
        assert_eq!(orders.duplicates, [0, 0, 0, 1]);
        // The interval of the duplicate alone is there and empty.
        assert_eq!((report.bytes, report.packets), (vec![10, 10, 0, 0], Some(vec![1, 1, 0, 0])));
        assert_eq!(report.last_ps.unwrap()[3], 0);
    }

    #[test]
    fn round_trips_count_where_their_reply_came() {
        let mut counter = IntervalCounter::of_packets(Duration::from_secs(1));
        for (at_ms, round_trip_ps) in [(100, 7), (200, 9), (2100, 5)] {
            counter.add_round_trip(Time::from_ns(at_ms * 1_000_000), 56, round_trip_ps);
        }
        let report = counter.report().unwrap();
        let told = report.round_trips_ps.unwrap();
        assert_eq!((report.packets, report.bytes), (Some(vec![2, 0, 1]), vec![112, 0, 56]));
        assert_eq!(told.mean, [Some(8.0), None, Some(5.0)]);
        assert_eq!((told.min[0], told.max[0], told.max[1]), (Some(7), Some(9), None));
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
