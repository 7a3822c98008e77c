//! What a UDP source is to do: described, checked, and made into a schedule.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{check_dscp, check_exactly_one, check_one_of, check_port, check_range, ConfigError};
use crate::schedule::distribution::Distribution;
use crate::schedule::pace::{Gaps, Interval, Pace, Process, HIGHEST_RATE_BPS, PACKET_RATES};
use crate::schedule::process::{GapProcess, OnOff};
use crate::schedule::sizes::{Sizes, TraceEntry, LEAST_DRAWN, MOST_PAYLOAD};
use crate::udp::header::LEAST_LENGTH;

/// What a UDP source is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpSourceConfig {
    /// Where to send.
    pub to: IpAddr,
    /// The port there.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// Bytes of UDP payload in each datagram: 8 to 65507; below 16 the sink can tell no delay. Either this,
    /// `size_bytes` or `trace`.
    #[serde(default)]
    #[schemars(range(min = LEAST_LENGTH as u32, max = MOST_PAYLOAD))]
    pub payload_bytes: Option<u32>,
    /// The distribution of payloads, 16 to 65507.
    #[serde(default)]
    pub size_bytes: Option<Distribution>,
    /// Rate of UDP payload, for datagrams of one size. Either this, `packets_per_second`, `gap_ps` or `trace`.
    #[serde(default)]
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    pub rate_bps: Option<u64>,
    /// Datagrams a second, in millionths at the finest.
    #[serde(default)]
    #[schemars(range(min = PACKET_RATES.0, max = PACKET_RATES.1))]
    pub packets_per_second: Option<f64>,
    /// The distribution of distances between datagrams.
    #[serde(default)]
    pub gap_ps: Option<Distribution>,
    /// When datagrams are due at a rate; constant when nothing is said.
    #[serde(default)]
    pub process: Option<Process>,
    /// Periods of talk and silence; with `gap_ps`, or with a rate.
    #[serde(default)]
    pub on_off: Option<OnOff>,
    /// As many as the host takes, one after the other, instead of any schedule.
    #[serde(default)]
    pub unpaced: Option<bool>,
    /// Whether each datagram leaves at its own moment at any rate. When nothing is said, those of a source that is
    /// faster than 5000 a second may gather for up to 200 us and leave together: that costs a busy machine far
    /// less.
    #[serde(default)]
    pub exact: Option<bool>,
    /// Whether datagrams may be fragmented; they may when nothing is said.
    #[serde(default)]
    pub fragment: Option<bool>,
    /// What is added to the time that datagrams carry, in picoseconds: the receiver's clock less the sender's,
    /// where both are of different machines.
    #[serde(default)]
    pub clock_offset_ps: Option<i64>,
    /// Distances and sizes, one entry for each datagram.
    #[serde(default)]
    #[schemars(length(min = 1, max = MOST_TRACE))]
    pub trace: Option<Vec<TraceEntry>>,
    /// Whether the trace begins anew after its end.
    #[serde(default)]
    pub repeat: Option<bool>,
    /// Differentiated services code point of the datagrams, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    pub dscp: Option<u8>,
    /// How long to send. Either this or `packets`; a trace that is not repeated needs neither.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub duration_ps: Option<u64>,
    /// How many datagrams to send.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub packets: Option<u64>,
}

impl UdpSourceConfig {
    pub(crate) const KIND: &'static str = "udp_source";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let kind = Self::KIND;
        check_port(kind, self.port)?;
        check_one_of(
            kind,
            &[
                ("payload_bytes", self.payload_bytes.is_some()),
                ("size_bytes", self.size_bytes.is_some()),
                ("trace", self.trace.is_some()),
            ],
        )?;
        if self.unpaced() {
            self.check_unpaced()?;
        } else if self.gap_ps.is_some() || self.trace.is_some() {
            check_one_of(
                kind,
                &[
                    ("rate_bps", self.rate_bps.is_some()),
                    ("packets_per_second", self.packets_per_second.is_some()),
                    ("gap_ps", self.gap_ps.is_some()),
                    ("trace", self.trace.is_some()),
                    ("process", self.process.is_some()),
                ],
            )?;
        } else {
            let rates =
                (("rate_bps", self.rate_bps.is_some()), ("packets_per_second", self.packets_per_second.is_some()));
            check_exactly_one(kind, rates.0, rates.1)?;
        }
        self.check_trace()?;
        let endless = self.trace.is_none() || self.repeat == Some(true);
        if endless || (self.duration_ps.is_some() && self.packets.is_some()) {
            let ends = (("duration_ps", self.duration_ps.is_some()), ("packets", self.packets.is_some()));
            check_exactly_one(kind, ends.0, ends.1)?;
        }
        if let Some(payload) = self.payload_bytes {
            #[allow(clippy::cast_possible_truncation)]
            check_range(kind, "payload_bytes", payload, LEAST_LENGTH as u32, MOST_PAYLOAD)?;
        }
        self.pace().check_values(kind)?;
        check_dscp(kind, self.dscp)?;
        if let Some(duration) = self.duration_ps {
            check_range(kind, "duration_ps", duration, 1, u64::MAX)?;
        }
        if let Some(packets) = self.packets {
            check_range(kind, "packets", packets, 1, u64::MAX)?;
        }
        Ok(())
    }

    /// Whether there is no schedule.
    pub(crate) fn unpaced(&self) -> bool {
        self.unpaced == Some(true)
    }

    fn check_unpaced(&self) -> Result<(), ConfigError> {
        check_one_of(
            Self::KIND,
            &[
                ("unpaced", true),
                ("rate_bps", self.rate_bps.is_some()),
                ("packets_per_second", self.packets_per_second.is_some()),
                ("gap_ps", self.gap_ps.is_some()),
                ("trace", self.trace.is_some()),
                ("process", self.process.is_some()),
                ("on_off", self.on_off.is_some()),
                ("exact", self.exact.is_some()),
            ],
        )
    }

    fn check_trace(&self) -> Result<(), ConfigError> {
        let kind = Self::KIND;
        let Some(trace) = &self.trace else {
            return if self.repeat.is_some() { check_one_of(kind, &[("trace", false)]) } else { Ok(()) };
        };
        if self.on_off.is_some() {
            check_one_of(kind, &[("trace", true), ("on_off", true)])?;
        }
        check_range(kind, "trace (entries)", trace.len(), 1, MOST_TRACE)?;
        for entry in trace {
            check_range(kind, "trace (gap)", entry.0, 0, MOST_TRACE_GAP_PS)?;
            #[allow(clippy::cast_possible_truncation)]
            check_range(kind, "trace (size)", entry.1, LEAST_LENGTH as u32, MOST_PAYLOAD)?;
        }
        // A trace that takes no time and is repeated for a duration would never come to its end.
        if self.repeat == Some(true) {
            check_range(kind, "trace (all gaps)", trace.iter().map(|entry| u128::from(entry.0)).sum(), 1, u128::MAX)?;
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace {
            payload_bytes: self.payload_bytes,
            size_bytes: self.size_bytes,
            rate_bps: self.rate_bps,
            packets_per_second: self.packets_per_second,
            gap_ps: self.gap_ps,
            process: self.process,
            on_off: self.on_off,
            sizes: (LEAST_DRAWN, MOST_PAYLOAD),
        }
    }

    /// The mean distance between datagrams.
    pub(crate) fn interval(&self) -> Interval {
        self.pace().interval()
    }

    /// The schedule, whose random processes draw from streams of their own.
    pub(crate) fn schedule(&self, gap_seed: u64, size_seed: u64) -> Schedule {
        if self.trace.is_some() {
            return Schedule::Trace;
        }
        let pace = self.pace();
        let sizes = pace.drawn_sizes(size_seed);
        if self.unpaced() {
            return Schedule::Unpaced(sizes);
        }
        match pace.gaps(gap_seed) {
            Gaps::Even(interval) => Schedule::Even(interval, sizes),
            Gaps::Drawn(process, at_once) => Schedule::Drawn(process, sizes, at_once),
        }
    }
}

/// Entries of a trace, at most.
const MOST_TRACE: usize = 1_000_000;
/// The longest gap in a trace: 1 h.
const MOST_TRACE_GAP_PS: u64 = 3_600_000_000_000_000;

/// Where distances and sizes come from.
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
