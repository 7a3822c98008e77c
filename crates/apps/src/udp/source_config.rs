//! The configuration of a UDP source: described, checked, and made into a schedule.
//!
//! The protocol writes a source as [`UdpSourceFields`], of which several exclude each other. [`UdpSourceConfig`] is
//! what they mean together: it holds no contradiction, so that whoever has one needs no further check.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::Duration;

use crate::check::{check_alone, check_dscp, check_port, check_range, exactly_one, one_of, ConfigError};
use crate::schedule::distribution::Distribution;
use crate::schedule::process::{GapProcess, OnOff};
use crate::schedule::profile::{
    Gaps, Interval, Pace, Process, ProfileFields, TrafficProfile, HIGHEST_RATE_BPS, PACKET_RATES,
};
use crate::schedule::sizes::{Size, Sizes, TraceEntry, LEAST_DRAWN, MOST_PAYLOAD};
use crate::udp::header::LEAST_LENGTH;

/// The task of a UDP source, free of contradictions: a schedule, a trace, or as much as the host takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "UdpSourceFields", into = "UdpSourceFields")]
pub struct UdpSourceConfig {
    pub(crate) to: IpAddr,
    pub(crate) port: u16,
    pub(crate) flow: u32,
    pub(crate) traffic: Traffic,
    /// Datagrams may be fragmented.
    pub(crate) fragment: bool,
    pub(crate) clock_offset_ps: i64,
    pub(crate) dscp: Option<u8>,
}

/// The times at which datagrams leave, their bytes, and when that ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Traffic {
    /// By a schedule.
    Scheduled {
        profile: TrafficProfile,
        /// No datagrams gather.
        exact: bool,
        end: End,
    },
    /// As many as the host takes.
    Unpaced { size: Size, end: End },
    /// By a trace, which needs no other end unless it is repeated.
    Trace { entries: Vec<TraceEntry>, end: TraceEnd },
}

/// The condition that ends a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    After(Duration),
    Packets(u64),
}

impl End {
    /// `elapsed` since the start and after `count` datagrams it is over.
    pub(crate) fn reached(self, elapsed: Duration, count: u64) -> bool {
        match self {
            Self::After(duration) => elapsed >= duration,
            Self::Packets(packets) => count >= packets,
        }
    }

    const fn fields(self) -> (Option<u64>, Option<u64>) {
        match self {
            Self::After(duration) => (Some(duration.as_ps()), None),
            Self::Packets(packets) => (None, Some(packets)),
        }
    }
}

/// The condition that ends a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceEnd {
    /// With its last entry, or before.
    Once(Option<End>),
    /// It begins anew until then.
    Repeated(End),
}

/// A UDP source as the protocol writes it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UdpSourceFields {
    /// The address to send to.
    to: IpAddr,
    /// The port there.
    #[schemars(range(min = 1, max = u16::MAX))]
    port: u16,
    /// The flow's number.
    flow: u32,
    /// Bytes of UDP payload in each datagram: 8 to 65507; below 16 the sink can tell no delay. Either this,
    /// `size_bytes` or `trace`.
    #[serde(default)]
    #[schemars(range(min = LEAST_LENGTH as u32, max = MOST_PAYLOAD))]
    payload_bytes: Option<u32>,
    /// The distribution of payloads, 16 to 65507.
    #[serde(default)]
    size_bytes: Option<Distribution>,
    /// Rate of UDP payload, for datagrams of one size. Either this, `packets_per_second`, `gap_ps` or `trace`.
    #[serde(default)]
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    rate_bps: Option<u64>,
    /// Datagrams a second, in millionths at the finest.
    #[serde(default)]
    #[schemars(range(min = PACKET_RATES.0, max = PACKET_RATES.1))]
    packets_per_second: Option<f64>,
    /// The distribution of distances between datagrams.
    #[serde(default)]
    gap_ps: Option<Distribution>,
    /// When datagrams are due at a rate; constant when nothing is said.
    #[serde(default)]
    process: Option<Process>,
    /// Periods of talk and silence; with `gap_ps`, or with a rate.
    #[serde(default)]
    on_off: Option<OnOff>,
    /// As many as the host takes, one after the other, instead of any schedule.
    #[serde(default)]
    unpaced: Option<bool>,
    /// `true` if each datagram leaves at its own moment at any rate. When nothing is said, those of a source that is
    /// faster than 5000 a second may gather for up to 200 us and leave together: that costs a busy machine far
    /// less.
    #[serde(default)]
    exact: Option<bool>,
    /// `true` if datagrams may be fragmented; they may when nothing is said.
    #[serde(default)]
    fragment: Option<bool>,
    /// The time that is added to that which datagrams carry, in picoseconds: the receiver's clock less the sender's,
    /// where both are of different machines.
    #[serde(default)]
    clock_offset_ps: Option<i64>,
    /// Distances and sizes, one entry for each datagram.
    #[serde(default)]
    #[schemars(length(min = 1, max = MOST_TRACE))]
    trace: Option<Vec<TraceEntry>>,
    /// `true` if the trace begins anew after its end.
    #[serde(default)]
    repeat: Option<bool>,
    /// Differentiated services code point of the datagrams, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    dscp: Option<u8>,
    /// The time to send. Either this or `packets`; a trace that is not repeated needs neither.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    duration_ps: Option<u64>,
    /// The number of datagrams to send.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    packets: Option<u64>,
}

impl UdpSourceConfig {
    pub(crate) const KIND: &'static str = "udp_source";

    /// Returns when the source ends; a trace may have no end but its own.
    pub(crate) const fn end(&self) -> Option<End> {
        match &self.traffic {
            Traffic::Scheduled { end, .. } | Traffic::Unpaced { end, .. } => Some(*end),
            Traffic::Trace { end: TraceEnd::Repeated(end), .. } => Some(*end),
            Traffic::Trace { end: TraceEnd::Once(end), .. } => *end,
        }
    }

    /// The mean distance between datagrams.
    pub(crate) fn interval(&self) -> Interval {
        match &self.traffic {
            Traffic::Scheduled { profile, .. } => profile.interval(),
            Traffic::Unpaced { .. } | Traffic::Trace { .. } => Interval::NEVER,
        }
    }

    /// The trace's entry for datagram `place`, counted from 0; `None` after its end and where there is no trace.
    pub(crate) fn trace_entry(&self, place: u64) -> Option<TraceEntry> {
        let Traffic::Trace { entries, end } = &self.traffic else { return None };
        let place = match end {
            TraceEnd::Repeated(_) => place % (entries.len() as u64).max(1),
            TraceEnd::Once(_) => place,
        };
        usize::try_from(place).ok().and_then(|place| entries.get(place).copied())
    }

    /// The schedule, whose random processes draw from streams of their own.
    pub(crate) fn schedule(&self, gap_seed: u64, size_seed: u64) -> Schedule {
        match &self.traffic {
            Traffic::Trace { .. } => Schedule::Trace,
            Traffic::Unpaced { size, .. } => Schedule::Unpaced(size.sizes(size_seed, DRAWN)),
            Traffic::Scheduled { profile, .. } => {
                let sizes = profile.drawn_sizes(size_seed);
                match profile.gaps(gap_seed) {
                    Gaps::Even(interval) => Schedule::Even(interval, sizes),
                    Gaps::Drawn(process, at_once) => Schedule::Drawn(process, sizes, at_once),
                }
            }
        }
    }
}

impl TryFrom<UdpSourceFields> for UdpSourceConfig {
    type Error = ConfigError;

    fn try_from(mut fields: UdpSourceFields) -> Result<Self, ConfigError> {
        check_port(Self::KIND, fields.port)?;
        check_dscp(Self::KIND, fields.dscp)?;
        Ok(Self {
            to: fields.to,
            port: fields.port,
            flow: fields.flow,
            traffic: fields.traffic()?,
            fragment: fields.fragment.unwrap_or(true),
            clock_offset_ps: fields.clock_offset_ps.unwrap_or(0),
            dscp: fields.dscp,
        })
    }
}

/// The content that the fields give to send: sizes, or a trace with its own.
enum Content {
    Size(Size),
    Trace(Vec<TraceEntry>),
}

impl UdpSourceFields {
    /// The traffic that is asked for; the trace is taken out of the fields.
    fn traffic(&mut self) -> Result<Traffic, ConfigError> {
        let kind = UdpSourceConfig::KIND;
        let has_trace = self.trace.is_some();
        let content = one_of(
            kind,
            [
                ("payload_bytes", self.payload_bytes.map(|payload| Content::Size(Size::Constant(payload)))),
                ("size_bytes", self.size_bytes.map(|size| Content::Size(Size::Drawn(size)))),
                ("trace", self.trace.take().map(Content::Trace)),
            ],
        )?;
        if self.unpaced == Some(true) {
            check_alone(kind, "unpaced", &self.schedule_fields(has_trace))?;
        }
        let size = match content {
            Content::Trace(entries) => return self.trace(entries),
            Content::Size(size) => size,
        };
        if self.repeat.is_some() {
            return Err(ConfigError::OutOfRange {
                kind,
                field: "repeat",
                given: "there without a trace".to_owned(),
                allowed: "it beside trace".to_owned(),
            });
        }
        let end = exactly_one(kind, ("duration_ps", self.duration()?), ("packets", self.packet_count()?))?;
        if self.unpaced == Some(true) {
            size.check(kind, PAYLOADS, DRAWN)?;
            return Ok(Traffic::Unpaced { size, end });
        }
        let pace = one_of(
            kind,
            [
                ("rate_bps", self.rate_bps.map(Pace::Bits)),
                ("packets_per_second", self.packets_per_second.map(Pace::Packets)),
                ("gap_ps", self.gap_ps.map(Pace::Gaps)),
            ],
        )?;
        let profile = TrafficProfile::new(kind, (pace, self.process), size, self.on_off, (PAYLOADS, DRAWN))?;
        Ok(Traffic::Scheduled { profile, exact: self.exact == Some(true), end })
    }

    /// The traffic of a trace; it has a schedule of its own, to which each datagram leaves at its own moment.
    fn trace(&self, entries: Vec<TraceEntry>) -> Result<Traffic, ConfigError> {
        let kind = UdpSourceConfig::KIND;
        check_alone(
            kind,
            "trace",
            &[
                ("rate_bps", self.rate_bps.is_some()),
                ("packets_per_second", self.packets_per_second.is_some()),
                ("gap_ps", self.gap_ps.is_some()),
                ("process", self.process.is_some()),
                ("on_off", self.on_off.is_some()),
            ],
        )?;
        check_range(kind, "trace (entries)", entries.len(), 1, MOST_TRACE)?;
        for entry in &entries {
            check_range(kind, "trace (gap)", entry.0, 0, MOST_TRACE_GAP_PS)?;
            check_range(kind, "trace (size)", entry.1, PAYLOADS.0, PAYLOADS.1)?;
        }
        let ends = (("duration_ps", self.duration()?), ("packets", self.packet_count()?));
        let end = if self.repeat == Some(true) {
            // A trace that takes no time and is repeated for a duration would never come to its end.
            let whole: u128 = entries.iter().map(|entry| u128::from(entry.0)).sum();
            check_range(kind, "trace (all gaps)", whole, 1, u128::MAX)?;
            TraceEnd::Repeated(exactly_one(kind, ends.0, ends.1)?)
        } else if ends.0 .1.is_none() && ends.1 .1.is_none() {
            TraceEnd::Once(None)
        } else {
            TraceEnd::Once(Some(exactly_one(kind, ends.0, ends.1)?))
        };
        Ok(Traffic::Trace { entries, end })
    }

    /// The fields of a schedule, and whether they were given.
    const fn schedule_fields(&self, has_trace: bool) -> [(&'static str, bool); 7] {
        [
            ("rate_bps", self.rate_bps.is_some()),
            ("packets_per_second", self.packets_per_second.is_some()),
            ("gap_ps", self.gap_ps.is_some()),
            ("trace", has_trace),
            ("process", self.process.is_some()),
            ("on_off", self.on_off.is_some()),
            ("exact", self.exact.is_some()),
        ]
    }

    fn duration(&self) -> Result<Option<End>, ConfigError> {
        let Some(duration) = self.duration_ps else { return Ok(None) };
        check_range(UdpSourceConfig::KIND, "duration_ps", duration, 1, u64::MAX)?;
        Ok(Some(End::After(Duration::from_ps(duration))))
    }

    fn packet_count(&self) -> Result<Option<End>, ConfigError> {
        let Some(packets) = self.packets else { return Ok(None) };
        check_range(UdpSourceConfig::KIND, "packets", packets, 1, u64::MAX)?;
        Ok(Some(End::Packets(packets)))
    }
}

impl From<UdpSourceConfig> for UdpSourceFields {
    fn from(config: UdpSourceConfig) -> Self {
        let (duration_ps, packets) = config.end().map_or((None, None), End::fields);
        let (mut profile, mut unpaced, mut exact, mut trace, mut repeat) =
            (ProfileFields::default(), None, None, None, None);
        match config.traffic {
            Traffic::Scheduled { profile: asked, exact: wanted, .. } => {
                profile = asked.fields();
                exact = wanted.then_some(true);
            }
            Traffic::Unpaced { size, .. } => {
                (profile.payload_bytes, profile.size_bytes) = size.fields();
                unpaced = Some(true);
            }
            Traffic::Trace { entries, end } => {
                trace = Some(entries);
                repeat = matches!(end, TraceEnd::Repeated(_)).then_some(true);
            }
        }
        Self {
            to: config.to,
            port: config.port,
            flow: config.flow,
            payload_bytes: profile.payload_bytes,
            size_bytes: profile.size_bytes,
            rate_bps: profile.rate_bps,
            packets_per_second: profile.packets_per_second,
            gap_ps: profile.gap_ps,
            process: profile.process,
            on_off: profile.on_off,
            unpaced,
            exact,
            fragment: (!config.fragment).then_some(false),
            clock_offset_ps: Some(config.clock_offset_ps).filter(|offset| *offset != 0),
            trace,
            repeat,
            dscp: config.dscp,
            duration_ps,
            packets,
        }
    }
}

/// Bytes of payload, the fewest and the most: of one size, and of those that are drawn.
#[allow(clippy::cast_possible_truncation)]
const PAYLOADS: (u32, u32) = (LEAST_LENGTH as u32, MOST_PAYLOAD);
const DRAWN: (u32, u32) = (LEAST_DRAWN, MOST_PAYLOAD);
/// Entries of a trace, at most.
const MOST_TRACE: usize = 1_000_000;
/// The longest gap in a trace: 1 h.
const MOST_TRACE_GAP_PS: u64 = 3_600_000_000_000_000;

/// The source of distances and sizes.
#[derive(Clone, Debug)]
pub(crate) enum Schedule {
    /// Exact multiples of an interval.
    Even(Interval, Sizes),
    /// Drawn distances; whether the first datagram is due at once.
    Drawn(GapProcess, Sizes, bool),
    /// The configuration's trace.
    Trace,
    /// None: as fast as the host takes them.
    Unpaced(Sizes),
}
