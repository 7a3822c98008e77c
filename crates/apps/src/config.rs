//! The configuration of an app, as the lab's protocol writes it: described, checked, built.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bandwidth::listener::BandwidthListener;
use crate::bandwidth::prober::BandwidthProber;
use crate::check::ConfigError;
use crate::clock::client::ClockClient;
use crate::clock::server::ClockServer;
use crate::http::client::HttpClient;
use crate::http::server::HttpServer;
use crate::http::video::VideoClient;
use crate::own::{
    OwnSink, OwnSinkConfig, OwnSource, OwnSourceConfig, OwnTcpSink, OwnTcpSinkConfig, OwnTcpSource, OwnTcpSourceConfig,
};
use crate::ping::Ping;
use crate::rtp::sink::RtpSink;
use crate::rtp::source::RtpSource;
use crate::tcp::sink::TcpSink;
use crate::tcp::source::TcpSource;
use crate::udp::sink::UdpSink;
use crate::udp::source::UdpSource;
use crate::{
    App, BandwidthListenerConfig, BandwidthProberConfig, ClockClientConfig, ClockServerConfig, HttpClientConfig,
    HttpServerConfig, PingConfig, RtpSinkConfig, RtpSourceConfig, TcpSinkConfig, TcpSourceConfig, UdpSinkConfig,
    UdpSourceConfig, VideoClientConfig,
};

/// A traffic program to run. Unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    HttpClient(Box<HttpClientConfig>),
    /// Watches video in segments over HTTP.
    VideoClient(VideoClientConfig),
    /// ICMP echo.
    Ping(Box<PingConfig>),
    /// Compares clocks with a server.
    ClockClient(ClockClientConfig),
    /// Answers clock clients.
    ClockServer(ClockServerConfig),
    /// One end of an application that was brought along: sends first.
    OwnSource(Box<OwnSourceConfig>),
    /// The other end of it: counts datagrams, and may answer.
    OwnSink(OwnSinkConfig),
    /// The end of an application over TCP that connects.
    OwnTcpSource(Box<OwnTcpSourceConfig>),
    /// The other end of it: counts what comes, and may answer.
    OwnTcpSink(OwnTcpSinkConfig),
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
            Self::VideoClient(_) => VideoClientConfig::KIND,
            Self::Ping(_) => PingConfig::KIND,
            Self::ClockClient(_) => ClockClientConfig::KIND,
            Self::ClockServer(_) => ClockServerConfig::KIND,
            Self::OwnSource(_) => OwnSourceConfig::KIND,
            Self::OwnSink(_) => OwnSinkConfig::KIND,
            Self::OwnTcpSource(_) => OwnTcpSourceConfig::KIND,
            Self::OwnTcpSink(_) => OwnTcpSinkConfig::KIND,
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
            // Read as what they mean together: nothing is left to refuse.
            Self::UdpSource(_) | Self::TcpSource(_) | Self::Ping(_) => Ok(()),
            Self::UdpSink(config) => config.validate(),
            Self::RtpSource(config) => config.validate(),
            Self::RtpSink(config) => config.validate(),
            Self::TcpSink(config) => config.validate(),
            Self::HttpServer(config) => config.validate(),
            Self::HttpClient(config) => config.validate(),
            Self::VideoClient(config) => config.validate(),
            Self::ClockClient(config) => config.validate(),
            Self::ClockServer(config) => config.validate(),
            Self::OwnSource(config) => config.validate(),
            Self::OwnSink(config) => config.validate(),
            Self::OwnTcpSource(config) => config.validate(),
            Self::OwnTcpSink(config) => config.validate(),
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
            Self::HttpClient(config) => Box::new(HttpClient::new(*config)),
            Self::VideoClient(config) => Box::new(VideoClient::new(config)),
            Self::Ping(config) => Box::new(Ping::new(*config)),
            Self::ClockClient(config) => Box::new(ClockClient::new(config.clone())),
            Self::ClockServer(config) => Box::new(ClockServer::new(config.clone())),
            Self::OwnSource(config) => Box::new(OwnSource::new(*config)),
            Self::OwnSink(config) => Box::new(OwnSink::new(config)),
            Self::OwnTcpSource(config) => Box::new(OwnTcpSource::new(*config)),
            Self::OwnTcpSink(config) => Box::new(OwnTcpSink::new(config)),
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
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "payload_bytes": 1470,
                   "rate_bps": 512_000_000, "process": "constant", "duration_ps": second}),
            json!({"kind": "udp_source", "to": "fd00::4", "port": 5003, "flow": 1, "payload_bytes": 64,
                   "packets_per_second": 10.5, "process": "poisson", "packets": 10}),
            json!({"kind": "udp_sink", "port": 5003, "interval_ps": second}),
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "dscp": 46, "duration_ps": second,
                   "gap_ps": {"distribution": "pareto", "shape": 1.5, "scale": 1e9, "least": null, "most": 1e12},
                   "size_bytes": {"distribution": "normal", "mean": 500.0, "std": 100.0, "least": 64.0, "most": null}}),
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "trace": [[0, 100], [1000, 200]]}),
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "trace": [[0, 100], [1000, 200]],
                   "repeat": true, "duration_ps": second, "fragment": false, "clock_offset_ps": -5}),
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "unpaced": true, "packets": 3,
                   "payload_bytes": 9}),
            json!({"kind": "udp_source", "to": "10.0.0.4", "port": 5003, "flow": 1, "payload_bytes": 9, "packets": 3,
                   "packets_per_second": 2.0, "process": "constant", "exact": true,
                   "on_off": {"on_ps": {"distribution": "constant", "value": 1e9, "least": null, "most": null},
                              "off_ps": {"distribution": "constant", "value": 2e9, "least": null, "most": null}}}),
            json!({"kind": "rtp_source", "to": "10.0.0.4", "port": 5004, "flow": 1, "frames_per_second": 60.0,
                   "frames": 3, "frame_bytes": [1000], "paced": true}),
            json!({"kind": "rtp_sink", "port": 5004, "interval_ps": second}),
            json!({"kind": "tcp_source", "to": "10.0.0.4", "port": 5002, "flow": 3, "duration_ps": second,
                "interval_ps": second}),
            json!({"kind": "tcp_source", "to": "10.0.0.4", "port": 5002, "flow": 3, "interval_ps": second, "dscp": 10,
                   "writes": 7, "packets_per_second": 2.5, "payload_bytes": 100_000, "process": "poisson"}),
            json!({"kind": "tcp_sink", "port": 5002, "interval_ps": second}),
            json!({"kind": "http_server", "port": 8080}),
            json!({"kind": "http_client", "to": "10.0.0.4", "port": 8080, "flow": 5, "bytes": 400_000_000, "count": 1,
                   "connections": 1, "interval_ps": second}),
            json!({"kind": "ping", "to": "10.0.0.4", "flow": 6, "count": 3, "interval_ps": second, "payload_bytes": 56,
                "timeout_ps": second}),
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
        let both = "rate_bps and packets_per_second were given";
        assert_eq!(error, format!("udp_source: exactly one of rate_bps, packets_per_second, gap_ps is needed; {both}"));
        let error =
            read(json!({"kind": "tcp_source", "to": "::1", "port": 1, "flow": 1, "interval_ps": 1_000_000_000}))
                .unwrap_err();
        assert_eq!(error, "tcp_source: exactly one of duration_ps and bytes is needed; none was given");
    }
}
