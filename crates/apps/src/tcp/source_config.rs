//! What a TCP source is to do: described and checked.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{
    check_congestion_control, check_dscp, check_exactly_one, check_interval, check_interval_of, check_one_of,
    check_port, check_range, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS,
};
use crate::schedule::distribution::Distribution;
use crate::schedule::pace::{Pace, Process, HIGHEST_RATE_BPS, PACKET_RATES};
use crate::schedule::process::OnOff;
use crate::schedule::sizes::LEAST_DRAWN;
use crate::tcp::header::LENGTH;

/// The largest write: 1 GiB.
const MOST_WRITE: u32 = 1 << 30;

/// What a TCP source is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpSourceConfig {
    /// Where to connect.
    pub to: IpAddr,
    /// The port there.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// How long to send: without a schedule from the app's start, with one from the moment of the connection.
    /// Either this, `bytes` or `writes`.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub duration_ps: Option<u64>,
    /// How many bytes to send, the announcement's 12 included.
    #[serde(default)]
    #[schemars(range(min = LENGTH as u64, max = u64::MAX))]
    pub bytes: Option<u64>,
    /// With a schedule: how many writes.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub writes: Option<u64>,
    /// The rate of payload; with this, `packets_per_second` or `gap_ps` the source offers its connection so much at
    /// each deadline, and otherwise as much as it takes.
    #[serde(default)]
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    pub rate_bps: Option<u64>,
    /// Writes a second, in millionths at the finest.
    #[serde(default)]
    #[schemars(range(min = PACKET_RATES.0, max = PACKET_RATES.1))]
    pub packets_per_second: Option<f64>,
    /// The distribution of distances between writes.
    #[serde(default)]
    pub gap_ps: Option<Distribution>,
    /// When writes are due at a rate; constant when nothing is said.
    #[serde(default)]
    pub process: Option<Process>,
    /// Periods of talk and silence.
    #[serde(default)]
    pub on_off: Option<OnOff>,
    /// Bytes of each write, 16 to 1 GiB. With a schedule either this or `size_bytes`.
    #[serde(default)]
    #[schemars(range(min = LEAST_DRAWN, max = MOST_WRITE))]
    pub payload_bytes: Option<u32>,
    /// The distribution of writes.
    #[serde(default)]
    pub size_bytes: Option<Distribution>,
    /// Differentiated services code point of our segments, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    pub dscp: Option<u8>,
    /// The interval of counting.
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    pub interval_ps: u64,
    /// The congestion control; the host's own where it is not given.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// The interval at which the state of the connection's TCP is sampled; not at all where it is not given.
    #[serde(default)]
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    pub info_interval_ps: Option<u64>,
}

impl TcpSourceConfig {
    pub(crate) const KIND: &'static str = "tcp_source";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let kind = Self::KIND;
        check_port(kind, self.port)?;
        match self.pace() {
            Some(pace) => self.check_schedule(&pace)?,
            None => self.check_bulk()?,
        }
        if let Some(duration) = self.duration_ps {
            check_range(kind, "duration_ps", duration, 1, u64::MAX)?;
        }
        if let Some(bytes) = self.bytes {
            check_range(kind, "bytes", bytes, LENGTH as u64, u64::MAX)?;
        }
        if let Some(writes) = self.writes {
            check_range(kind, "writes", writes, 1, u64::MAX)?;
        }
        check_dscp(kind, self.dscp)?;
        check_congestion_control(kind, self.congestion_control.as_deref())?;
        if let Some(interval) = self.info_interval_ps {
            check_interval_of(kind, "info_interval_ps", interval)?;
        }
        check_interval(kind, self.interval_ps)
    }

    /// The schedule; `None` for a source that sends as fast as the connection takes it.
    pub(crate) fn pace(&self) -> Option<Pace> {
        let scheduled = self.rate_bps.is_some() || self.packets_per_second.is_some() || self.gap_ps.is_some();
        scheduled.then_some(Pace {
            payload_bytes: self.payload_bytes,
            size_bytes: self.size_bytes,
            rate_bps: self.rate_bps,
            packets_per_second: self.packets_per_second,
            gap_ps: self.gap_ps,
            process: self.process,
            on_off: self.on_off,
            sizes: (LEAST_DRAWN, MOST_WRITE),
        })
    }

    fn check_schedule(&self, pace: &Pace) -> Result<(), ConfigError> {
        let kind = Self::KIND;
        check_one_of(
            kind,
            &[
                ("rate_bps", self.rate_bps.is_some()),
                ("packets_per_second", self.packets_per_second.is_some()),
                ("gap_ps", self.gap_ps.is_some()),
            ],
        )?;
        if self.gap_ps.is_some() && self.process.is_some() {
            check_one_of(kind, &[("gap_ps", true), ("process", true)])?;
        }
        let sizes = (("payload_bytes", self.payload_bytes.is_some()), ("size_bytes", self.size_bytes.is_some()));
        check_exactly_one(kind, sizes.0, sizes.1)?;
        check_one_of(
            kind,
            &[
                ("duration_ps", self.duration_ps.is_some()),
                ("bytes", self.bytes.is_some()),
                ("writes", self.writes.is_some()),
            ],
        )?;
        if let Some(payload) = self.payload_bytes {
            check_range(kind, "payload_bytes", payload, LEAST_DRAWN, MOST_WRITE)?;
        }
        pace.check_values(kind)
    }

    /// Without a schedule nothing that belongs to one has a meaning.
    fn check_bulk(&self) -> Result<(), ConfigError> {
        let kind = Self::KIND;
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
        check_exactly_one(kind, ("duration_ps", self.duration_ps.is_some()), ("bytes", self.bytes.is_some()))
    }
}
