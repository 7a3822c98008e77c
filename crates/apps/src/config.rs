//! What an app is to do, as the lab's protocol writes it: described, checked, built.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bandwidth::listener::BandwidthListener;
use crate::bandwidth::prober::BandwidthProber;
use crate::clock_client::ClockClient;
use crate::clock_server::ClockServer;
use crate::http_client::HttpClient;
use crate::http_server::HttpServer;
use crate::ping::Ping;
use crate::rtp_sink::RtpSink;
use crate::rtp_source::RtpSource;
use crate::tcp_sink::TcpSink;
use crate::tcp_source::TcpSource;
use crate::udp_sink::UdpSink;
use crate::udp_source::UdpSource;
use crate::{
    App, BandwidthListenerConfig, BandwidthProberConfig, ClockClientConfig, ClockServerConfig, HttpClientConfig, HttpServerConfig, PingConfig, RtpSinkConfig,
    RtpSourceConfig, TcpSinkConfig, TcpSourceConfig, UdpSinkConfig, UdpSourceConfig,
};

/// Why a description of an app was refused: what was given and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A field is outside of its range.
    #[error("{kind}: {field} is {given}; allowed is {allowed}")]
    OutOfRange {
        /// The app's kind.
        kind: &'static str,
        /// The field.
        field: &'static str,
        /// What it held.
        given: String,
        /// What it may hold.
        allowed: String,
    },
    /// Of two fields that exclude each other, both or none were given: give exactly one.
    #[error("{kind}: exactly one of {first} and {second} is needed; {given} given")]
    ExactlyOne {
        /// The app's kind.
        kind: &'static str,
        /// One of the two fields.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// `both were` or `none was`.
        given: &'static str,
    },
    /// Of several fields that exclude each other, several or none were given: give exactly one.
    #[error("{kind}: exactly one of {fields} is needed; {given} given")]
    OneOf {
        /// The app's kind.
        kind: &'static str,
        /// The fields.
        fields: String,
        /// Those that were given, or `none was`.
        given: String,
    },
}

/// Shortest interval of counting: 1 ms.
const INTERVAL_LEAST_PS: u64 = 1_000_000_000;
/// Longest interval of counting: 1 h.
const INTERVAL_MOST_PS: u64 = 3_600_000_000_000_000;

/// Refuses `given` outside of `least..=most`.
pub(crate) fn check_range<T: PartialOrd + Display>(
    kind: &'static str,
    field: &'static str,
    given: T,
    least: T,
    most: T,
) -> Result<(), ConfigError> {
    if given >= least && given <= most {
        return Ok(());
    }
    Err(ConfigError::OutOfRange { kind, field, given: given.to_string(), allowed: format!("{least} to {most}") })
}

/// Refuses port 0 where a port must be known.
pub(crate) fn check_port(kind: &'static str, port: u16) -> Result<(), ConfigError> {
    check_range(kind, "port", port, 1, u16::MAX)
}

/// Refuses an interval of counting that would need unreasonable memory or never end.
pub(crate) fn check_interval(kind: &'static str, interval_ps: u64) -> Result<(), ConfigError> {
    check_interval_of(kind, "interval_ps", interval_ps)
}

/// As [`check_interval`], for an interval of another name.
pub(crate) fn check_interval_of(kind: &'static str, field: &'static str, interval_ps: u64) -> Result<(), ConfigError> {
    check_range(kind, field, interval_ps, INTERVAL_LEAST_PS, INTERVAL_MOST_PS)
}

/// Refuses an MTU that no path has: below IPv4's least (RFC 791) or above the longest packet.
pub(crate) fn check_path_mtu(kind: &'static str, mtu_bytes: Option<u32>) -> Result<(), ConfigError> {
    mtu_bytes.map_or(Ok(()), |mtu| check_range(kind, "mtu_bytes", mtu, 68, 65_535))
}

/// Refuses what cannot be the name of a congestion control: the kernel's names have at most 15 bytes.
pub(crate) fn check_congestion_control(kind: &'static str, name: Option<&str>) -> Result<(), ConfigError> {
    let fits = |name: &str| (1..=15).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    match name.filter(|name| !fits(name)) {
        None => Ok(()),
        Some(name) => Err(ConfigError::OutOfRange {
            kind,
            field: "congestion_control",
            given: format!("{name:?}"),
            allowed: "a name of 1 to 15 letters, such as \"cubic\"".to_owned(),
        }),
    }
}

/// Refuses both and none of two fields that exclude each other.
pub(crate) fn check_exactly_one(
    kind: &'static str,
    (first, first_given): (&'static str, bool),
    (second, second_given): (&'static str, bool),
) -> Result<(), ConfigError> {
    if first_given != second_given {
        return Ok(());
    }
    let given = if first_given { "both were" } else { "none was" };
    Err(ConfigError::ExactlyOne { kind, first, second, given })
}

/// Refuses none and several of fields that exclude each other.
pub(crate) fn check_one_of(kind: &'static str, fields: &[(&'static str, bool)]) -> Result<(), ConfigError> {
    let given: Vec<&str> = fields.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    if given.len() == 1 {
        return Ok(());
    }
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let given = if given.is_empty() { "none was".to_owned() } else { format!("{} were", given.join(" and ")) };
    Err(ConfigError::OneOf { kind, fields: names.join(", "), given })
}

/// Refuses what is no code point of differentiated services.
pub(crate) fn check_dscp(kind: &'static str, dscp: Option<u8>) -> Result<(), ConfigError> {
    dscp.map_or(Ok(()), |dscp| check_range(kind, "dscp", dscp, 0, 63))
}

/// A traffic program to run. Unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AppConfig {
    /// Sends datagrams.
    UdpSource(Box<UdpSourceConfig>),
    /// Counts datagrams by sender and flow.
    UdpSink(UdpSinkConfig),
    /// Streams video over RTP.
    RtpSource(RtpSourceConfig),
    /// Counts RTP streams.
    RtpSink(RtpSinkConfig),
    /// Sends one TCP stream, as fast as it goes or by a schedule.
    TcpSource(Box<TcpSourceConfig>),
    /// Counts TCP streams by connection.
    TcpSink(TcpSinkConfig),
    /// Serves `/bytes/N` by HTTP/1.1.
    HttpServer(HttpServerConfig),
    /// Fetches `/bytes/N` a number of times.
    HttpClient(HttpClientConfig),
    /// ICMP echo.
    Ping(Box<PingConfig>),
    /// Compares clocks with a server.
    ClockClient(ClockClientConfig),
    /// Answers clock clients.
    ClockServer(ClockServerConfig),
    /// Estimates available bandwidth.
    BandwidthProber(Box<BandwidthProberConfig>),
    /// Tells probers when their probes arrived.
    BandwidthListener(BandwidthListenerConfig),
}

impl AppConfig {
    /// The value of `kind` in the protocol.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::UdpSource(_) => UdpSourceConfig::KIND,
            Self::UdpSink(_) => UdpSinkConfig::KIND,
            Self::RtpSource(_) => RtpSourceConfig::KIND,
            Self::RtpSink(_) => RtpSinkConfig::KIND,
            Self::TcpSource(_) => TcpSourceConfig::KIND,
            Self::TcpSink(_) => TcpSinkConfig::KIND,
            Self::HttpServer(_) => HttpServerConfig::KIND,
            Self::HttpClient(_) => HttpClientConfig::KIND,
            Self::Ping(_) => PingConfig::KIND,
            Self::ClockClient(_) => ClockClientConfig::KIND,
            Self::ClockServer(_) => ClockServerConfig::KIND,
            Self::BandwidthProber(_) => BandwidthProberConfig::KIND,
            Self::BandwidthListener(_) => BandwidthListenerConfig::KIND,
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field that is out of range, with what it held and what it may hold.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::UdpSource(config) => config.validate(),
            Self::UdpSink(config) => config.validate(),
            Self::RtpSource(config) => config.validate(),
            Self::RtpSink(config) => config.validate(),
            Self::TcpSource(config) => config.validate(),
            Self::TcpSink(config) => config.validate(),
            Self::HttpServer(config) => config.validate(),
            Self::HttpClient(config) => config.validate(),
            Self::Ping(config) => config.validate(),
            Self::ClockClient(config) => config.validate(),
            Self::ClockServer(config) => config.validate(),
            Self::BandwidthProber(config) => config.validate(),
            Self::BandwidthListener(config) => config.validate(),
        }
    }

    /// The app that does this. [`AppConfig::validate`] comes first: a description that it refuses builds an app that
    /// counts nothing useful, though it does not panic.
    #[must_use]
    pub fn build(&self) -> Box<dyn App> {
        match self.clone() {
            Self::UdpSource(config) => Box::new(UdpSource::new(*config)),
            Self::UdpSink(config) => Box::new(UdpSink::new(config)),
            Self::RtpSource(config) => Box::new(RtpSource::new(config)),
            Self::RtpSink(config) => Box::new(RtpSink::new(config)),
            Self::TcpSource(config) => Box::new(TcpSource::new(*config)),
            Self::TcpSink(config) => Box::new(TcpSink::new(config)),
            Self::HttpServer(config) => Box::new(HttpServer::new(config)),
            Self::HttpClient(config) => Box::new(HttpClient::new(config)),
            Self::Ping(config) => Box::new(Ping::new(*config)),
            Self::ClockClient(config) => Box::new(ClockClient::new(config.clone())),
            Self::ClockServer(config) => Box::new(ClockServer::new(config.clone())),
            Self::BandwidthProber(config) => Box::new(BandwidthProber::new(*config)),
            Self::BandwidthListener(config) => Box::new(BandwidthListener::new(config)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: serde_json::Value) -> Result<AppConfig, String> {
        let config: AppConfig = serde_json::from_value(value).map_err(|error| error.to_string())?;
        config.validate().map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn every_kind_of_the_protocol_is_read_and_written_back_alike() {
        let second = 1_000_000_000_000_u64;
        for value in [
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "payload_bytes": 1470, "rate_bps": 512_000_000,
                   "process": "constant", "duration_ps": second}),
            json!({"kind": "udp_source", "to": "fd00::4", "port": 5003, "flow": 1, "payload_bytes": 64, "packets_per_second": 10.5,
                   "process": "poisson", "packets": 10}),
            json!({"kind": "udp_sink", "port": 5003, "interval_ps": second}),
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "dscp": 46, "duration_ps": second,
                   "gap_ps": {"distribution": "pareto", "shape": 1.5, "scale": 1e9, "least": null, "most": 1e12},
                   "size_bytes": {"distribution": "normal", "mean": 500.0, "std": 100.0, "least": 64.0, "most": null}}),
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "trace": [[0, 100], [1000, 200]]}),
            json!({"kind": "rtp_source", "to": "10.0.0.4", "port": 5004, "flow": 1, "frames_per_second": 60.0, "frames": 3,
                   "frame_bytes": [1000], "paced": true}),
            json!({"kind": "rtp_sink", "port": 5004, "interval_ps": second}),
            json!({"kind": "tcp_source", "to": "10.0.0.4", "port": 5002, "flow": 3, "duration_ps": second, "interval_ps": second}),
            json!({"kind": "tcp_source", "to": "10.0.0.4", "port": 5002, "flow": 3, "interval_ps": second, "dscp": 10, "writes": 7,
                   "packets_per_second": 2.5, "payload_bytes": 100_000, "process": "poisson"}),
            json!({"kind": "tcp_sink", "port": 5002, "interval_ps": second}),
            json!({"kind": "http_server", "port": 8080}),
            json!({"kind": "http_client", "to": "10.0.0.4", "port": 8080, "flow": 5, "bytes": 400_000_000, "count": 1, "connections": 1,
                   "interval_ps": second}),
            json!({"kind": "ping", "to": "10.0.0.4", "flow": 6, "count": 3, "interval_ps": second, "payload_bytes": 56, "timeout_ps": second}),
            json!({"kind": "ping", "to": "10.0.0.4", "flow": 6, "count": 3, "timeout_ps": second, "dscp": 8,
                   "gap_ps": {"distribution": "exponential", "mean": 1e9, "least": null, "most": null},
                   "size_bytes": {"distribution": "uniform", "low": 0.0, "high": 100.0, "least": null, "most": null}}),
        ] {
            let config = read(value.clone()).unwrap();
            assert_eq!(config.kind(), value["kind"]);
            let mut written = serde_json::to_value(&config).unwrap();
            written.as_object_mut().unwrap().retain(|_, field| !field.is_null());
            assert_eq!(written, value);
            assert!(!config.build().finished());
        }
    }

    #[test]
    fn mistakes_are_told_with_the_field_and_what_is_allowed() {
        let error = read(json!({"kind": "udp_sink", "port": 0, "interval_ps": 1_000_000_000})).unwrap_err();
        assert_eq!(error, "udp_sink: port is 0; allowed is 1 to 65535");
        let error = read(json!({"kind": "udp_sink", "port": 1, "interval_ps": 1})).unwrap_err();
        assert_eq!(error, "udp_sink: interval_ps is 1; allowed is 1000000000 to 3600000000000000");
        let error = read(json!({"kind": "udp_sink", "port": 1, "interval_ps": 1_000_000_000, "speed": 3})).unwrap_err();
        assert!(error.contains("unknown field `speed`"), "{error}");
        let error = read(json!({"kind": "udp_sinc"})).unwrap_err();
        assert!(error.contains("unknown variant `udp_sinc`"), "{error}");
        let error = read(
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 1, "flow": 1, "payload_bytes": 1470, "rate_bps": 1,
            "packets_per_second": 1, "process": "constant", "packets": 1}),
        )
        .unwrap_err();
        assert_eq!(error, "udp_source: exactly one of rate_bps and packets_per_second is needed; both were given");
        let error =
            read(json!({"kind": "tcp_source", "to": "::1", "port": 1, "flow": 1, "interval_ps": 1_000_000_000}))
                .unwrap_err();
        assert_eq!(error, "tcp_source: exactly one of duration_ps and bytes is needed; none was given");
    }
}
