//! Traffic programs as state machines without I/O.
//!
//! An [`App`] is told what happened and when; it acts through a [`Host`]. The same app runs in a model host on either
//! clock and on real sockets in a namespace: an app never reads a clock, opens a socket or sleeps. [`AppConfig`]
//! describes one, checks the description and builds it.

mod arrivals;
mod bandwidth;
mod carrier;
mod clock_client;
mod clock_message;
mod clock_server;
mod config;
mod datagram;
mod distribution;
mod errors;
mod frames;
mod host;
mod http;
mod http_chunked;
mod http_client;
mod http_server;
mod interval_orders;
mod interval_round_trips;
mod interval_times;
mod intervals;
mod length_histogram;
mod listen;
#[cfg(test)]
mod loop_network;
mod pace;
mod pacing;
mod ping;
mod process;
mod random;
mod reordering_density;
mod report;
mod rtp_header;
mod rtp_sink;
mod rtp_source;
mod samples;
mod sequence;
mod sizes;
mod stream_header;
mod summary;
mod tcp_info;
mod tcp_sink;
mod tcp_source;
mod tcp_source_config;
mod udp_sink;
mod udp_source;
mod udp_source_config;
mod writes;

pub use arrivals::SignedReport;
pub use carrier::CarriedReport;
pub use clock_client::{ClockClientConfig, ClockReport};
pub use clock_server::ClockServerConfig;
pub use config::{AppConfig, ConfigError};
pub use datagram::{Header as DatagramHeader, Stamp as DatagramStamp};
pub use distribution::{Distribution, Shape};
pub use frames::VideoModel;
pub use host::{App, Chunk, Event, Handover, Host, HostError, SocketId};
pub use http_client::HttpClientConfig;
pub use http_server::HttpServerConfig;
pub use interval_orders::IntervalOrdersReport;
pub use interval_round_trips::IntervalRoundTripsReport;
pub use interval_times::IntervalTimesReport;
pub use intervals::IntervalsReport;
pub use length_histogram::LengthsReport;
pub use pace::Process;
pub use pacing::PacingReport;
pub use ping::PingConfig;
pub use process::OnOff;
pub use reordering_density::DensityReport;
pub use report::{AppReport, FlowReport, Protocol, Role};
pub use rtp_sink::{FramesReport, RtpReport, RtpSinkConfig};
pub use rtp_source::RtpSourceConfig;
pub use samples::Samples;
pub use sizes::TraceEntry;
pub use stream_header::StreamHeader;
pub use summary::{Summary, SummaryReport};
pub use tcp_info::{TcpInfo, TcpInfoReport};
pub use tcp_sink::TcpSinkConfig;
pub use tcp_source_config::TcpSourceConfig;
pub use udp_sink::UdpSinkConfig;
pub use udp_source_config::UdpSourceConfig;
