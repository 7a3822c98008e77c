//! The configuration of a TCP source: described and checked.
//!
//! The protocol writes a source as [`TcpSourceFields`], of which several exclude each other. [`TcpSourceConfig`] is
//! what they mean together.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::Duration;

use crate::check::{
    check_congestion_control, check_dscp, check_interval, check_interval_of, check_port, check_range, exactly_one,
    one_of, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS,
};
use crate::schedule::distribution::Distribution;
use crate::schedule::process::OnOff;
use crate::schedule::profile::{Pace, Process, ProfileFields, TrafficProfile, HIGHEST_RATE_BPS, PACKET_RATES};
use crate::schedule::sizes::{Size, LEAST_DRAWN};
use crate::tcp::header::LENGTH;

/// The largest write: 1 GiB.
const MOST_WRITE: u32 = 1 << 30;

/// The task of a TCP source, free of contradictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "TcpSourceFields", into = "TcpSourceFields")]
pub struct TcpSourceConfig {
    pub(crate) to: IpAddr,
    pub(crate) port: u16,
    pub(crate) flow: u32,
    pub(crate) traffic: Traffic,
    pub(crate) dscp: Option<u8>,
    pub(crate) interval_ps: u64,
    pub(crate) congestion_control: Option<String>,
    pub(crate) info_interval_ps: Option<u64>,
}

/// The amount offered to the connection, and when that ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Traffic {
    /// As much as the connection takes, for a time that counts from the app's start.
    BulkFor(Duration),
    /// As much as the connection takes, until so many bytes are sent.
    BulkBytes(u64),
    /// Writes by a schedule, from the moment of the connection.
    Writes(Box<TrafficProfile>, End),
}

/// The condition that ends the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// After so long.
    After(Duration),
    /// After so many bytes; the last write is as long as what is left.
    Bytes(u64),
    /// After so many writes.
    Writes(u64),
}

/// A TCP source as the protocol writes it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TcpSourceFields {
    /// The address to connect to.
    to: IpAddr,
    /// The port there.
    #[schemars(range(min = 1, max = u16::MAX))]
    port: u16,
    /// The flow's number.
    flow: u32,
    /// The time to send: without a schedule from the app's start, with one from the moment of the connection.
    /// Either this, `bytes` or `writes`.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    duration_ps: Option<u64>,
    /// The number of bytes to send, the announcement's 12 included.
    #[serde(default)]
    #[schemars(range(min = LENGTH as u64, max = u64::MAX))]
    bytes: Option<u64>,
    /// With a schedule: how many writes.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    writes: Option<u64>,
    /// The rate of payload; with this, `packets_per_second` or `gap_ps` the source offers its connection so much at
    /// each deadline, and otherwise as much as it takes.
    #[serde(default)]
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    rate_bps: Option<u64>,
    /// Writes a second, in millionths at the finest.
    #[serde(default)]
    #[schemars(range(min = PACKET_RATES.0, max = PACKET_RATES.1))]
    packets_per_second: Option<f64>,
    /// The distribution of distances between writes.
    #[serde(default)]
    gap_ps: Option<Distribution>,
    /// When writes are due at a rate; constant when nothing is said.
    #[serde(default)]
    process: Option<Process>,
    /// Periods of talk and silence.
    #[serde(default)]
    on_off: Option<OnOff>,
    /// Bytes of each write, 16 to 1 GiB. With a schedule either this or `size_bytes`.
    #[serde(default)]
    #[schemars(range(min = LEAST_DRAWN, max = MOST_WRITE))]
    payload_bytes: Option<u32>,
    /// The distribution of writes.
    #[serde(default)]
    size_bytes: Option<Distribution>,
    /// Differentiated services code point of our segments, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    dscp: Option<u8>,
    /// The interval of counting.
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    interval_ps: u64,
    /// The congestion control; the host's own where it is not given.
    #[serde(default)]
    congestion_control: Option<String>,
    /// The interval at which the state of the connection's TCP is sampled; not at all where it is not given.
    #[serde(default)]
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    info_interval_ps: Option<u64>,
}

impl TcpSourceConfig {
    pub(crate) const KIND: &'static str = "tcp_source";
}

impl TryFrom<TcpSourceFields> for TcpSourceConfig {
    type Error = ConfigError;

    fn try_from(fields: TcpSourceFields) -> Result<Self, ConfigError> {
        let kind = Self::KIND;
        check_port(kind, fields.port)?;
        let traffic = fields.traffic()?;
        check_dscp(kind, fields.dscp)?;
        check_congestion_control(kind, fields.congestion_control.as_deref())?;
        if let Some(interval) = fields.info_interval_ps {
            check_interval_of(kind, "info_interval_ps", interval)?;
        }
        check_interval(kind, fields.interval_ps)?;
        Ok(Self {
            to: fields.to,
            port: fields.port,
            flow: fields.flow,
            traffic,
            dscp: fields.dscp,
            interval_ps: fields.interval_ps,
            congestion_control: fields.congestion_control,
            info_interval_ps: fields.info_interval_ps,
        })
    }
}

impl TcpSourceFields {
    fn traffic(&self) -> Result<Traffic, ConfigError> {
        let kind = TcpSourceConfig::KIND;
        let duration = Self::in_range("duration_ps", self.duration_ps, 1)?.map(Duration::from_ps);
        let bytes = Self::in_range("bytes", self.bytes, LENGTH as u64)?;
        let writes = Self::in_range("writes", self.writes, 1)?;
        if self.rate_bps.is_none() && self.packets_per_second.is_none() && self.gap_ps.is_none() {
            self.check_bulk()?;
            let ways = (duration.map(Traffic::BulkFor), bytes.map(Traffic::BulkBytes));
            return exactly_one(kind, ("duration_ps", ways.0), ("bytes", ways.1));
        }
        let pace = one_of(
            kind,
            [
                ("rate_bps", self.rate_bps.map(Pace::Bits)),
                ("packets_per_second", self.packets_per_second.map(Pace::Packets)),
                ("gap_ps", self.gap_ps.map(Pace::Gaps)),
            ],
        )?;
        let sizes = (self.payload_bytes.map(Size::Constant), self.size_bytes.map(Size::Drawn));
        let size = exactly_one(kind, ("payload_bytes", sizes.0), ("size_bytes", sizes.1))?;
        let end = one_of(
            kind,
            [
                ("duration_ps", duration.map(End::After)),
                ("bytes", bytes.map(End::Bytes)),
                ("writes", writes.map(End::Writes)),
            ],
        )?;
        let bounds = (LEAST_DRAWN, MOST_WRITE);
        let profile = TrafficProfile::new(kind, (pace, self.process), size, self.on_off, (bounds, bounds))?;
        Ok(Traffic::Writes(Box::new(profile), end))
    }

    fn in_range(field: &'static str, given: Option<u64>, least: u64) -> Result<Option<u64>, ConfigError> {
        given.map_or(Ok(()), |given| check_range(TcpSourceConfig::KIND, field, given, least, u64::MAX))?;
        Ok(given)
    }

    /// Without a schedule nothing that belongs to one has a meaning.
    fn check_bulk(&self) -> Result<(), ConfigError> {
        let kind = TcpSourceConfig::KIND;
        for (field, given) in [
            ("writes", self.writes.is_some()),
            ("process", self.process.is_some()),
            ("on_off", self.on_off.is_some()),
            ("payload_bytes", self.payload_bytes.is_some()),
            ("size_bytes", self.size_bytes.is_some()),
        ] {
            if given {
                return Err(ConfigError::OutOfRange {
                    kind,
                    field,
                    given: "there without a schedule".to_owned(),
                    allowed: "it beside rate_bps, packets_per_second or gap_ps".to_owned(),
                });
            }
        }
        Ok(())
    }
}

impl From<TcpSourceConfig> for TcpSourceFields {
    fn from(config: TcpSourceConfig) -> Self {
        let (profile, end) = match config.traffic {
            Traffic::BulkFor(duration) => (ProfileFields::default(), End::After(duration)),
            Traffic::BulkBytes(bytes) => (ProfileFields::default(), End::Bytes(bytes)),
            Traffic::Writes(profile, end) => (profile.fields(), end),
        };
        let (mut duration_ps, mut bytes, mut writes) = (None, None, None);
        match end {
            End::After(duration) => duration_ps = Some(duration.as_ps()),
            End::Bytes(count) => bytes = Some(count),
            End::Writes(count) => writes = Some(count),
        }
        Self {
            to: config.to,
            port: config.port,
            flow: config.flow,
            duration_ps,
            bytes,
            writes,
            rate_bps: profile.rate_bps,
            packets_per_second: profile.packets_per_second,
            gap_ps: profile.gap_ps,
            process: profile.process,
            on_off: profile.on_off,
            payload_bytes: profile.payload_bytes,
            size_bytes: profile.size_bytes,
            dscp: config.dscp,
            interval_ps: config.interval_ps,
            congestion_control: config.congestion_control,
            info_interval_ps: config.info_interval_ps,
        }
    }
}
