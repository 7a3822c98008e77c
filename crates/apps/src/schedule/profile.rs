//! The pace of a source and the amount at once, whatever carries it: as it is asked for, and as it then runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::{Duration, Time};

use crate::check::{check_alone, check_range, ConfigError};
use crate::schedule::distribution::{Distribution, Shape};
use crate::schedule::process::{check_gaps, GapProcess, OnOff};
use crate::schedule::sizes::{Size, Sizes};

/// A fraction of a picosecond is counted in these parts where a rate in packets per second is not a whole number.
const PARTS_PER_PACKET_RATE: f64 = 1e6;
/// The highest rate of payload.
pub(crate) const HIGHEST_RATE_BPS: u64 = 1_000_000_000_000;
/// Packets or writes a second, the fewest and the most.
pub(crate) const PACKET_RATES: (f64, f64) = (0.001, 100_000_000.0);

/// When datagrams are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// At equal distances.
    #[default]
    Constant,
    /// At exponentially distributed distances.
    Poisson,
}

/// The pace, as a description asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// Bits of payload a second.
    Bits(u64),
    /// Packets or writes a second.
    Packets(f64),
    /// Distances.
    Gaps(Distribution),
}

/// The pace, and the amount at once.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    /// Bits of payload a second, which need one size.
    Bits { rate_bps: u64, payload_bytes: u32, process: Process },
    /// Packets or writes a second.
    Packets { per_second: f64, size: Size, process: Process },
    /// Distances, which are a process of their own.
    Gaps { gap_ps: Distribution, size: Size },
}

/// The pace of a source and the amount at once. What excludes each other is refused by [`TrafficProfile::new`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrafficProfile {
    load: Load,
    on_off: Option<OnOff>,
    /// The smallest and the largest size that can be drawn.
    drawn: (u32, u32),
}

/// The fields of a description that ask for a profile, as they are written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProfileFields {
    pub(crate) payload_bytes: Option<u32>,
    pub(crate) size_bytes: Option<Distribution>,
    pub(crate) rate_bps: Option<u64>,
    pub(crate) packets_per_second: Option<f64>,
    pub(crate) gap_ps: Option<Distribution>,
    pub(crate) process: Option<Process>,
    pub(crate) on_off: Option<OnOff>,
}

impl TrafficProfile {
    /// The profile that an app of `kind` is asked for. A constant size is within `sizes.0`, one that is drawn within
    /// `sizes.1`.
    pub(crate) fn new(
        kind: &'static str,
        (pace, process): (Pace, Option<Process>),
        size: Size,
        on_off: Option<OnOff>,
        sizes: ((u32, u32), (u32, u32)),
    ) -> Result<Self, ConfigError> {
        size.check(kind, sizes.0, sizes.1)?;
        on_off.as_ref().map_or(Ok(()), |on_off| on_off.check(kind))?;
        let given_process = process;
        let process = process.unwrap_or_default();
        let load = match (pace, size) {
            (Pace::Bits(rate_bps), Size::Constant(payload_bytes)) => {
                check_range(kind, "rate_bps", rate_bps, 1, HIGHEST_RATE_BPS)?;
                Load::Bits { rate_bps, payload_bytes, process }
            }
            (Pace::Bits(_), Size::Drawn(_)) => {
                return Err(ConfigError::OutOfRange {
                    kind,
                    field: "size_bytes",
                    given: "a distribution beside rate_bps".to_owned(),
                    allowed: "payload_bytes with rate_bps; or size_bytes with packets_per_second or gap_ps".to_owned(),
                })
            }
            (Pace::Packets(per_second), size) => {
                check_range(kind, "packets_per_second", per_second, PACKET_RATES.0, PACKET_RATES.1)?;
                Load::Packets { per_second, size, process }
            }
            (Pace::Gaps(gap_ps), size) => {
                check_gaps(kind, &gap_ps)?;
                check_alone(kind, "gap_ps", &[("process", given_process.is_some())])?;
                Load::Gaps { gap_ps, size }
            }
        };
        Ok(Self { load, on_off, drawn: sizes.1 })
    }

    /// The fields that ask for this profile.
    pub(crate) fn fields(&self) -> ProfileFields {
        let on_off = self.on_off;
        let sized = |size: Size| {
            let (payload_bytes, size_bytes) = size.fields();
            ProfileFields { payload_bytes, size_bytes, on_off, ..ProfileFields::default() }
        };
        match self.load {
            Load::Bits { rate_bps, payload_bytes, process } => ProfileFields {
                rate_bps: Some(rate_bps),
                process: Some(process),
                ..sized(Size::Constant(payload_bytes))
            },
            Load::Packets { per_second, size, process } => {
                ProfileFields { packets_per_second: Some(per_second), process: Some(process), ..sized(size) }
            }
            Load::Gaps { gap_ps, size } => ProfileFields { gap_ps: Some(gap_ps), ..sized(size) },
        }
    }

    /// The mean distance.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn interval(&self) -> Interval {
        match self.load {
            Load::Bits { rate_bps, payload_bytes, .. } => {
                Interval { parts: u128::from(payload_bytes) * 8_000_000_000_000, per: u128::from(rate_bps.max(1)) }
            }
            Load::Packets { per_second, .. } => Interval {
                parts: 1_000_000_000_000 * PARTS_PER_PACKET_RATE as u128,
                per: ((per_second * PARTS_PER_PACKET_RATE).round() as u128).max(1),
            },
            Load::Gaps { gap_ps: Distribution { shape: Shape::Constant { value }, .. }, .. } => {
                Interval { parts: value.round() as u128, per: 1 }
            }
            Load::Gaps { .. } => Interval::NEVER,
        }
    }

    /// The sizes, from a stream of their own.
    pub(crate) fn drawn_sizes(&self, seed: u64) -> Sizes {
        let size = match self.load {
            Load::Bits { payload_bytes, .. } => Size::Constant(payload_bytes),
            Load::Packets { size, .. } | Load::Gaps { size, .. } => size,
        };
        size.sizes(seed, self.drawn)
    }

    /// The distances, from streams of their own.
    pub(crate) fn gaps(&self, seed: u64) -> Gaps {
        let interval = self.interval();
        #[allow(clippy::cast_precision_loss)]
        let mean = interval.parts as f64 / interval.per as f64;
        let gap = match self.load {
            Load::Gaps { gap_ps, .. } => gap_ps,
            Load::Bits { process: Process::Poisson, .. } | Load::Packets { process: Process::Poisson, .. } => {
                Distribution { shape: Shape::Exponential { mean }, least: None, most: Some(f64::MAX) }
            }
            Load::Bits { .. } | Load::Packets { .. } => Distribution::constant(mean),
        };
        if self.on_off.is_none() && matches!(gap.shape, Shape::Constant { .. }) {
            return Gaps::Even(interval);
        }
        Gaps::Drawn(GapProcess::new(gap, self.on_off, seed), self.on_off.is_some())
    }
}

/// The source of distances.
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
    /// The deadlines of `profile` from `zero` on; with `at_once` the first is due then whatever the process.
    pub(crate) fn new(profile: &TrafficProfile, zero: Time, (gap_seed, size_seed): (u64, u64), at_once: bool) -> Self {
        let (mut gaps, sizes) = (profile.gaps(gap_seed), profile.drawn_sizes(size_seed));
        let due = match &mut gaps {
            Gaps::Drawn(process, false) if !at_once => zero + process.distance(),
            _ => zero,
        };
        Self { gaps, sizes, zero, due, count: 0 }
    }

    /// Returns the time when the next is due.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Returns the number that was taken.
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
    /// Of what has no mean distance.
    pub(crate) const NEVER: Self = Self { parts: u64::MAX as u128, per: 1 };

    /// So many of them, rounded down to a picosecond.
    pub(crate) fn times(self, count: u64) -> Duration {
        let exact = u128::from(count).saturating_mul(self.parts) / self.per;
        Duration::from_ps(u64::try_from(exact).unwrap_or(u64::MAX))
    }
}
