//! Delay and jitter of a flow in each interval, beside the bytes and packets of [`crate::account::intervals`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The moments of the arrivals of one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    delays: u64,
    delay_sum: f64,
    delay_min: u64,
    delay_max: u64,
    differences: u64,
    difference_sum: f64,
    smoothed: f64,
    variations: u64,
    variation_sum: f64,
    variation_min: f64,
    variation_max: f64,
}

/// Delays and jitters by interval; places are those of the interval counter.
#[derive(Clone, Debug, Default)]
pub struct IntervalTimes {
    places: Vec<Moments>,
}

/// The report of an [`IntervalTimes`], one entry for each interval, in picoseconds; null where nothing arrived that
/// tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalTimesReport {
    /// Mean one-way delay.
    pub delay_mean: Vec<Option<f64>>,
    /// The least.
    pub delay_min: Vec<Option<u64>>,
    /// The greatest.
    pub delay_max: Vec<Option<u64>>,
    /// Mean of |D(i) - D(i-1)| over packets that arrived in the interval (RFC 4689).
    pub jitter_rfc4689_mean: Vec<Option<f64>>,
    /// The smoothed jitter (RFC 3550) at the last arrival.
    pub jitter_rfc3550: Vec<Option<f64>>,
    /// Mean of the delay variation (RFC 3393), with its sign, that arrivals of the interval told.
    #[serde(default)]
    pub delay_variation_mean: Vec<Option<f64>>,
    /// The least.
    #[serde(default)]
    pub delay_variation_min: Vec<Option<f64>>,
    /// The greatest.
    #[serde(default)]
    pub delay_variation_max: Vec<Option<f64>>,
}

/// The times that one arrival told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Its one-way delay.
    pub delay_ps: u64,
    /// |D(i) - D(i-1)|; `None` for the first.
    pub difference_ps: Option<u64>,
    /// The smoothed jitter after it.
    pub jitter_rfc3550_ps: f64,
    /// The delay variation (RFC 3393); `None` where the packet sent before it did not arrive before it.
    pub variation_ps: Option<f64>,
}

impl IntervalTimes {
    /// Counts an arrival in the interval at `place`.
    #[allow(clippy::cast_precision_loss)]
    pub fn add(&mut self, place: usize, timing: Timing) {
        if place >= self.places.len() {
            self.places.resize(place + 1, Moments::default());
        }
        let moments = &mut self.places[place];
        moments.delay_min = if moments.delays == 0 { timing.delay_ps } else { moments.delay_min.min(timing.delay_ps) };
        moments.delay_max = moments.delay_max.max(timing.delay_ps);
        moments.delays += 1;
        moments.delay_sum += timing.delay_ps as f64;
        moments.smoothed = timing.jitter_rfc3550_ps;
        if let Some(difference) = timing.difference_ps {
            moments.differences += 1;
            moments.difference_sum += difference as f64;
        }
        if let Some(variation) = timing.variation_ps {
            let first = moments.variations == 0;
            moments.variation_min = if first { variation } else { moments.variation_min.min(variation) };
            moments.variation_max = if first { variation } else { moments.variation_max.max(variation) };
            moments.variations += 1;
            moments.variation_sum += variation;
        }
    }

    /// Returns what was counted in the first `intervals`; `None` when no packet told its time.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn report(&self, intervals: usize) -> Option<IntervalTimesReport> {
        if self.places.is_empty() {
            return None;
        }
        let places = || (0..intervals).map(|place| self.places.get(place).filter(|moments| moments.delays > 0));
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        let varied = |of: fn(&Moments) -> f64| {
            places().map(|found| found.filter(|moments| moments.variations > 0).map(of)).collect()
        };
        Some(IntervalTimesReport {
            delay_mean: places().map(|found| mean(found?.delay_sum, found?.delays)).collect(),
            delay_min: places().map(|found| Some(found?.delay_min)).collect(),
            delay_max: places().map(|found| Some(found?.delay_max)).collect(),
            jitter_rfc4689_mean: places().map(|found| mean(found?.difference_sum, found?.differences)).collect(),
            jitter_rfc3550: places().map(|found| Some(found?.smoothed)).collect(),
            delay_variation_mean: varied(|one| one.variation_sum / one.variations as f64),
            delay_variation_min: varied(|one| one.variation_min),
            delay_variation_max: varied(|one| one.variation_max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interval_has_its_own_delays_and_an_empty_one_none() {
        let mut times = IntervalTimes::default();
        let timing = |delay_ps, difference_ps, variation_ps| Timing {
            delay_ps,
            difference_ps,
            jitter_rfc3550_ps: 2.0,
            variation_ps,
        };
        times.add(0, timing(100, None, None));
        times.add(0, timing(140, Some(40), Some(40.0)));
        times.add(2, timing(50, Some(90), Some(-90.0)));
        let told = times.report(4).unwrap();
        assert_eq!(told.delay_mean, [Some(120.0), None, Some(50.0), None]);
        assert_eq!((told.delay_min[0], told.delay_max[0]), (Some(100), Some(140)));
        assert_eq!(told.jitter_rfc4689_mean, [Some(40.0), None, Some(90.0), None]);
        assert_eq!(told.delay_variation_mean, [Some(40.0), None, Some(-90.0), None]);
        assert_eq!((told.delay_variation_min[2], told.delay_variation_max[2]), (Some(-90.0), Some(-90.0)));
        assert_eq!(told.jitter_rfc3550, [Some(2.0), None, Some(2.0), None]);
        assert_eq!(IntervalTimes::default().report(4), None);
    }
}
