//! Traffic programs as state machines without I/O.
//!
//! An [`App`] is told what happened and when; it acts through a [`Host`]. The same app runs in a model host on either
//! clock and on real sockets in a namespace: an app never reads a clock, opens a socket or sleeps. [`AppConfig`]
//! describes one, checks the description and builds it.

mod config;
mod datagram;
mod errors;
mod host;
mod http;
mod http_chunked;
mod http_client;
mod http_server;
mod intervals;
mod listen;
#[cfg(test)]
mod loop_network;
mod ping;
mod report;
mod sequence;
mod stream_header;
mod summary;
mod tcp_info;
mod tcp_sink;
mod tcp_source;
mod udp_sink;
mod udp_source;

pub use config::{AppConfig, ConfigError};
pub use datagram::{Header as DatagramHeader, Stamp as DatagramStamp};
pub use host::{App, Chunk, Event, Host, HostError, SocketId};
pub use http_client::HttpClientConfig;
pub use http_server::HttpServerConfig;
pub use intervals::IntervalsReport;
pub use ping::PingConfig;
pub use report::{AppReport, FlowReport, Protocol, Role};
pub use stream_header::StreamHeader;
pub use summary::{Summary, SummaryReport};
pub use tcp_info::{TcpInfo, TcpInfoReport};
pub use tcp_sink::TcpSinkConfig;
pub use tcp_source::TcpSourceConfig;
pub use udp_sink::UdpSinkConfig;
pub use udp_source::{Process, UdpSourceConfig};
