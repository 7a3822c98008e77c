//! The settings of TCP, and the visible state of a connection.

use twinnet_units::{Duration, Rate};

use super::congestion::Algorithm;

/// The way a host agrees upon marks of congestion (RFC 3168; `net.ipv4.tcp_ecn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Not even when asked (0).
    Never,
    /// It asks, and agrees when asked (1).
    Ask,
    /// It agrees when asked (2).
    WhenAsked,
}

/// The settings of a host's TCP; the defaults are Linux's.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Congestion control of new connections.
    pub congestion_control: Algorithm,
    /// The agreement upon marks of congestion.
    pub ecn: Ecn,
    /// SACK (RFC 2018).
    pub sack: bool,
    /// Timestamps and window scaling (RFC 7323).
    pub timestamps: bool,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Least, first and most bytes of the send buffer (`net.ipv4.tcp_wmem`).
    pub send_buffer: [u64; 3],
    /// Least, first and most bytes of the receive buffer (`net.ipv4.tcp_rmem`).
    pub receive_buffer: [u64; 3],
    /// Initial congestion window in segments (RFC 6928).
    pub initial_window: u32,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            congestion_control: Algorithm::Cubic,
            ecn: Ecn::WhenAsked,
            sack: true,
            timestamps: true,
            window_scaling: true,
            send_buffer: [4096, 16_384, 4_194_304],
            receive_buffer: [4096, 131_072, 33_554_432],
            initial_window: 10,
        }
    }
}

/// The news for the owner of a connection; all that has come up since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// The handshake is complete.
    pub connected: bool,
    /// There are bytes, or the end of the stream, to receive.
    pub readable: bool,
    /// There is room to send, after a send that took less than was offered.
    pub writable: bool,
    /// It failed.
    pub failed: Option<Failure>,
    /// Nothing is left to do for it, TIME-WAIT included: it can be forgotten.
    pub gone: bool,
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A reset answered our SYN.
    Refused,
    /// A reset in the midst.
    Reset,
    /// The peer has not answered in time.
    TimedOut,
    /// ICMP says that it cannot be reached.
    Unreachable,
}

/// The state of a connection as seen from outside, as Linux's `TCP_INFO` tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpInfo {
    /// Congestion window in segments.
    pub congestion_window: u32,
    /// Slow-start threshold in segments; `u32::MAX` before the first loss.
    pub slow_start_threshold: u32,
    /// Smoothed round-trip time.
    pub round_trip: Duration,
    /// Its mean deviation.
    pub round_trip_deviation: Duration,
    /// Least round trip seen.
    pub least_round_trip: Duration,
    /// Retransmission timeout.
    pub retransmission_timeout: Duration,
    /// Segments in flight as RFC 6675 estimates.
    pub in_flight: u32,
    /// Segments retransmitted so far.
    pub retransmitted: u64,
    /// Payload bytes acknowledged so far.
    pub acknowledged_bytes: u64,
    /// Pacing rate, where the congestion control paces.
    pub pacing_rate: Option<Rate>,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
    /// Probes for the loss of a tail (RFC 8985, 7) so far.
    pub tail_probes: u64,
    /// Reductions of the window that were undone so far.
    pub undone: u64,
    /// Episodes of congestion (recoveries, echoed marks, timeouts) so far.
    pub reductions: u64,
}
