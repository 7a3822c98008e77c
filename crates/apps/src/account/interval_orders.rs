//! Loss, reordering and duplicates of a flow in each interval, beside the bytes and packets of
//! [`crate::account::intervals`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::sequence::Arrival;

/// The order of the sequence numbers of one interval's arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    lost: i64,
    reordered: u64,
    duplicates: u64,
}

/// Orders by interval; places are those of the interval counter.
#[derive(Clone, Debug, Default)]
pub struct IntervalOrders {
    places: Vec<Order>,
}

/// The report of an [`IntervalOrders`], one entry for each interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalOrdersReport {
    /// Numbers that arrivals of the interval passed over, less those that it filled in late; below zero where it
    /// filled more. The sum over all intervals is what is lost.
    pub lost: Vec<i64>,
    /// Arrivals below the highest number so far.
    pub reordered: Vec<u64>,
    /// Arrivals of a number that had arrived before.
    pub duplicates: Vec<u64>,
}

impl IntervalOrders {
    /// Counts an arrival in the interval at `place`, by which the number of losses grew by `lost`.
    pub fn add(&mut self, place: usize, arrival: Arrival, lost: i64) {
        if place >= self.places.len() {
            self.places.resize(place + 1, Order::default());
        }
        let order = &mut self.places[place];
        order.lost += lost;
        order.reordered += u64::from(arrival == Arrival::Reordered);
        order.duplicates += u64::from(arrival == Arrival::Duplicate);
    }

    /// Returns what was counted in the first `intervals`; `None` when no packet had a number.
    #[must_use]
    pub fn report(&self, intervals: usize) -> Option<IntervalOrdersReport> {
        let places = || (0..intervals).map(|place| self.places.get(place).copied().unwrap_or_default());
        (!self.places.is_empty()).then(|| IntervalOrdersReport {
            lost: places().map(|order| order.lost).collect(),
            reordered: places().map(|order| order.reordered).collect(),
            duplicates: places().map(|order| order.duplicates).collect(),
        })
    }
}
