//! Traffic programs as state machines without I/O.
//!
//! An [`App`] is told what happened and when; it acts through a [`Host`]. The same app runs in a model host on either
//! clock and on real sockets in a namespace: an app never reads a clock, opens a socket or sleeps. [`AppConfig`]
//! describes one, checks the description and builds it.

#[macro_use]
mod settings;

mod account;
mod bandwidth;
mod check;
mod clock;
mod config;
mod host;
mod http;
mod listen;
#[cfg(test)]
mod loop_network;
pub mod own;
mod ping;
mod rtp;
mod schedule;
mod tcp;
mod udp;

pub use account::arrivals::SignedReport;
pub use account::bandwidth_report::{
    BandwidthReport, Finding as BandwidthFinding, HopFinding, Layer, Plan as TrainPlan, Planned as PlannedProbe, Train,
    TrainRates,
};
pub use account::carrier::CarriedReport;
pub use account::clock_report::ClockReport;
pub use account::column::Column;
pub use account::interval_orders::IntervalOrdersReport;
pub use account::interval_round_trips::IntervalRoundTripsReport;
pub use account::interval_times::IntervalTimesReport;
pub use account::intervals::IntervalsReport;
pub use account::length_histogram::LengthsReport;
pub use account::pacing::PacingReport;
pub use account::reordering_density::DensityReport;
pub use account::report::{AppReport, FlowReport, Protocol, Role};
pub use account::rtp_report::{FramesReport, RtpReport};
pub use account::samples::Samples;
pub use account::summary::{Summary, SummaryReport};
pub use account::tcp_info::{TcpInfo, TcpInfoReport};
pub use account::video_report::{PlayedAt, VideoReport};
pub use bandwidth::estimator::{Estimator as BandwidthEstimator, Probing, Step as BandwidthStep};
pub use bandwidth::framing::Framing;
pub use bandwidth::message::Message as BandwidthMessage;
pub use bandwidth::method::Method as BandwidthMethod;
pub use bandwidth::own::{register as register_bandwidth_method, OwnMethodConfig};
pub use bandwidth::prober_config::{BandwidthListenerConfig, BandwidthProberConfig};
pub use bandwidth::replay::replay as replay_bandwidth;
pub use check::ConfigError;
pub use clock::client::ClockClientConfig;
pub use clock::server::ClockServerConfig;
pub use config::AppConfig;
pub use host::{random_of_app, App, Chunk, Event, Handover, Host, HostError, SocketId};
pub use http::client::HttpClientConfig;
pub use http::server::HttpServerConfig;
pub use http::video::VideoClientConfig;
pub use ping::PingConfig;
pub use rtp::frames::VideoModel;
pub use rtp::sink::RtpSinkConfig;
pub use rtp::source::RtpSourceConfig;
pub use schedule::distribution::{Distribution, Shape};
pub use schedule::process::OnOff;
pub use schedule::profile::Process;
pub use schedule::sizes::TraceEntry;
pub use tcp::header::StreamHeader;
pub use tcp::sink::TcpSinkConfig;
pub use tcp::source_config::TcpSourceConfig;
pub use udp::header::{Header as DatagramHeader, Stamp as DatagramStamp};
pub use udp::sink::UdpSinkConfig;
pub use udp::source_config::UdpSourceConfig;
