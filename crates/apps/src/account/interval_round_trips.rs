//! Round trips of a flow in each interval, beside the bytes and packets of [`crate::account::intervals`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Round trips that ended in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    sum: f64,
    min: u64,
    max: u64,
}

/// Round trips by interval; places are those of the interval counter.
#[derive(Clone, Debug, Default)]
pub struct IntervalRoundTrips {
    places: Vec<Moments>,
}

/// The report of an [`IntervalRoundTrips`], one entry for each interval, in picoseconds; null where no reply came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalRoundTripsReport {
    /// Their mean.
    pub mean: Vec<Option<f64>>,
    /// The shortest.
    pub min: Vec<Option<u64>>,
    /// The longest.
    pub max: Vec<Option<u64>>,
}

impl IntervalRoundTrips {
    /// Counts a round trip that ended in the interval at `place`.
    #[allow(clippy::cast_precision_loss)]
    pub fn add(&mut self, place: usize, round_trip_ps: u64) {
        if place >= self.places.len() {
            self.places.resize(place + 1, Moments::default());
        }
        let moments = &mut self.places[place];
        moments.min = if moments.count == 0 { round_trip_ps } else { moments.min.min(round_trip_ps) };
        moments.max = moments.max.max(round_trip_ps);
        moments.count += 1;
        moments.sum += round_trip_ps as f64;
    }

    /// Returns what was counted in the first `intervals`; `None` when there was no reply.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn report(&self, intervals: usize) -> Option<IntervalRoundTripsReport> {
        let places = || (0..intervals).map(|place| self.places.get(place).filter(|moments| moments.count > 0));
        (!self.places.is_empty()).then(|| IntervalRoundTripsReport {
            mean: places().map(|found| found.map(|moments| moments.sum / moments.count as f64)).collect(),
            min: places().map(|found| found.map(|moments| moments.min)).collect(),
            max: places().map(|found| found.map(|moments| moments.max)).collect(),
        })
    }
}
