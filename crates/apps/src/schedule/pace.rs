//! How often a source sends and how much at once, whatever carries it: as it is asked for, and as it then runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::{Duration, Time};

use crate::check::{check_range, ConfigError};
use crate::schedule::distribution::{Distribution, Shape};
use crate::schedule::process::{check_gaps, GapProcess, OnOff};
use crate::schedule::random::Stream;
use crate::schedule::sizes::Sizes;

/// A fraction of a picosecond is counted in these parts where a rate in packets per second is not a whole number.
const PARTS_PER_PACKET_RATE: f64 = 1e6;
/// The highest rate of payload.
pub(crate) const HIGHEST_RATE_BPS: u64 = 1_000_000_000_000;
/// Packets or writes a second, the fewest and the most.
pub(crate) const PACKET_RATES: (f64, f64) = (0.001, 100_000_000.0);

/// When datagrams are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// At equal distances.
    Constant,
    /// At exponentially distributed distances.
    Poisson,
}

/// What was asked for: of `rate_bps`, `packets_per_second` and `gap_ps` one, of `payload_bytes` and `size_bytes` one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) payload_bytes: Option<u32>,
    pub(crate) size_bytes: Option<Distribution>,
    pub(crate) rate_bps: Option<u64>,
    pub(crate) packets_per_second: Option<f64>,
    pub(crate) gap_ps: Option<Distribution>,
    pub(crate) process: Option<Process>,
    pub(crate) on_off: Option<OnOff>,
    /// The smallest and the largest size that can be drawn.
    pub(crate) sizes: (u32, u32),
}

impl Pace {
    /// Refuses values that are out of range; which of them were given together is checked before.
    pub(crate) fn check_values(&self, kind: &'static str) -> Result<(), ConfigError> {
        self.size_bytes.map_or(Ok(()), |size| {
            size.check(kind, "size_bytes", (f64::from(self.sizes.0), f64::from(self.sizes.1)))
        })?;
        self.gap_ps.as_ref().map_or(Ok(()), |gap| check_gaps(kind, gap))?;
        self.on_off.as_ref().map_or(Ok(()), |on_off| on_off.check(kind))?;
        if let Some(rate) = self.rate_bps {
            check_range(kind, "rate_bps", rate, 1, HIGHEST_RATE_BPS)?;
            if self.size_bytes.is_some() {
                return Err(ConfigError::OutOfRange {
                    kind,
                    field: "size_bytes",
                    given: "a distribution beside rate_bps".to_owned(),
                    allowed: "payload_bytes with rate_bps; or size_bytes with packets_per_second or gap_ps".to_owned(),
                });
            }
        }
        self.packets_per_second
            .map_or(Ok(()), |rate| check_range(kind, "packets_per_second", rate, PACKET_RATES.0, PACKET_RATES.1))
    }

    /// The mean distance.
    pub(crate) fn interval(&self) -> Interval {
        match (self.rate_bps, self.packets_per_second, self.gap_ps) {
            (Some(bps), _, _) => Interval {
                parts: u128::from(self.payload_bytes.unwrap_or_default()) * 8_000_000_000_000,
                per: u128::from(bps.max(1)),
            },
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            (None, Some(rate), _) => Interval {
                parts: 1_000_000_000_000 * PARTS_PER_PACKET_RATE as u128,
                per: ((rate * PARTS_PER_PACKET_RATE).round() as u128).max(1),
            },
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            (None, None, Some(Distribution { shape: Shape::Constant { value }, .. })) => {
                Interval { parts: value.round() as u128, per: 1 }
            }
            (None, None, _) => Interval { parts: u128::from(u64::MAX), per: 1 },
        }
    }

    /// The sizes, from a stream of their own.
    pub(crate) fn drawn_sizes(&self, seed: u64) -> Sizes {
        match self.size_bytes {
            Some(distribution) => Sizes::Drawn(distribution, Stream::new(seed), self.sizes),
            None => Sizes::Constant(self.payload_bytes.unwrap_or_default()),
        }
    }

    /// The distances, from streams of their own.
    pub(crate) fn gaps(&self, seed: u64) -> Gaps {
        let interval = self.interval();
        #[allow(clippy::cast_precision_loss)]
        let mean = interval.parts as f64 / interval.per as f64;
        let gap = match (self.gap_ps, self.process.unwrap_or(Process::Constant)) {
            (Some(gap), _) => gap,
            (None, Process::Poisson) => {
                Distribution { shape: Shape::Exponential { mean }, least: None, most: Some(f64::MAX) }
            }
            (None, Process::Constant) => Distribution::constant(mean),
        };
        if self.on_off.is_none() && matches!(gap.shape, Shape::Constant { .. }) {
            return Gaps::Even(interval);
        }
        Gaps::Drawn(GapProcess::new(gap, self.on_off, seed), self.on_off.is_some())
    }
}

/// Where distances come from.
#[derive(Clone, Debug)]
pub(crate) enum Gaps {
    /// Exact multiples of an interval, the first at once.
    Even(Interval),
    /// Drawn distances; whether the first is due at once.
    Drawn(GapProcess, bool),
}

/// A running schedule: deadlines that are fixed by its beginning, and what is due at each.
#[derive(Clone, Debug)]
pub(crate) struct Deadlines {
    gaps: Gaps,
    sizes: Sizes,
    zero: Time,
    due: Time,
    count: u64,
}

impl Deadlines {
    /// The deadlines of `pace` from `zero` on; with `at_once` the first is due then whatever the process.
    pub(crate) fn new(pace: &Pace, zero: Time, (gap_seed, size_seed): (u64, u64), at_once: bool) -> Self {
        let (mut gaps, sizes) = (pace.gaps(gap_seed), pace.drawn_sizes(size_seed));
        let due = match &mut gaps {
            Gaps::Drawn(process, false) if !at_once => zero + process.distance(),
            _ => zero,
        };
        Self { gaps, sizes, zero, due, count: 0 }
    }

    /// When the next is due.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// How many were taken.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The size of what is due next, after which the one that follows is next.
    pub(crate) fn take(&mut self) -> u32 {
        self.count += 1;
        self.due = match &mut self.gaps {
            Gaps::Even(interval) => self.zero + interval.times(self.count),
            Gaps::Drawn(process, _) => self.due + process.distance(),
        };
        self.sizes.size()
    }
}

/// The mean distance between datagrams, `parts / per` picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    parts: u128,
    per: u128,
}

impl Interval {
    /// So many of them, rounded down to a picosecond.
    pub(crate) fn times(self, count: u64) -> Duration {
        let exact = u128::from(count).saturating_mul(self.parts) / self.per;
        Duration::from_ps(u64::try_from(exact).unwrap_or(u64::MAX))
    }
}
