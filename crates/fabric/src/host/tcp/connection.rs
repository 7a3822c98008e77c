//! One connection.

use std::net::SocketAddr;

use twinnet_apps::{Chunk, HostError};
use twinnet_units::{Duration, Rate, Time};

use super::congestion::Algorithm;
use super::segment::{Outgoing, Segment};

/// How a host's TCP is set up; the defaults are Linux's.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Congestion control of new connections.
    pub congestion_control: Algorithm,
    /// Whether to ask for ECN (`net.ipv4.tcp_ecn` = 1), and to agree when asked.
    pub ecn: bool,
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
            ecn: false,
            sack: true,
            timestamps: true,
            window_scaling: true,
            send_buffer: [4096, 16_384, 4_194_304],
            receive_buffer: [4096, 131_072, 6_291_456],
            initial_window: 10,
        }
    }
}

/// What the owner of a connection must be told; all that has come up since it was last asked.
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

/// What can be seen of a connection from outside, as Linux's `TCP_INFO` tells it.
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
}

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Connection {
    local: SocketAddr,
    peer: SocketAddr,
}

impl Connection {
    /// Begins a connection: [`Connection::poll_send`] gives the SYN. `mtu` is the outgoing interface's.
    #[must_use]
    pub fn connect(
        _config: &TcpConfig,
        local: SocketAddr,
        peer: SocketAddr,
        _mtu: u32,
        _initial_sequence: u32,
        _now: Time,
    ) -> Self {
        Self { local, peer }
    }

    /// Answers the SYN `syn` that came to a listener.
    #[must_use]
    pub fn accept(
        _config: &TcpConfig,
        local: SocketAddr,
        peer: SocketAddr,
        _mtu: u32,
        _initial_sequence: u32,
        _syn: &Segment<'_>,
        _now: Time,
    ) -> Self {
        Self { local, peer }
    }

    /// Our address and the peer's.
    #[must_use]
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.local, self.peer)
    }

    /// A segment arrived.
    pub fn receive(&mut self, _segment: &Segment<'_>, _now: Time) {}

    /// When [`Connection::timer`] is wanted.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        None
    }

    /// Its deadline has come.
    pub fn timer(&mut self, _now: Time) {}

    /// Whether [`Connection::poll_send`] would give a segment now.
    #[must_use]
    pub fn wants_to_send(&self, _now: Time) -> bool {
        false
    }

    /// Appends the next segment that may be sent now to `bytes`: header, options and the real bytes of its payload. `None` when there
    /// is none: the window, TCP small queues, pacing or a lack of data forbids.
    pub fn poll_send(&mut self, _now: Time, _bytes: &mut Vec<u8>) -> Option<Outgoing> {
        None
    }

    /// The interface has begun to send (or has thrown away) a segment of `payload` bytes: TCP small queues let the next one come.
    pub fn left_host(&mut self, _payload: u32) {}

    /// Takes bytes to send; returns how many it took.
    ///
    /// # Errors
    /// [`HostError::Reset`] when our half is ended or the connection has failed.
    pub fn send(&mut self, _chunk: Chunk<'_>, _now: Time) -> Result<u64, HostError> {
        Ok(0)
    }

    /// Receives into `buffer`, elided bytes as zeros; results as [`twinnet_apps::Host::tcp_receive`].
    ///
    /// # Errors
    /// [`HostError::Reset`] when the connection has failed.
    pub fn read(&mut self, _buffer: &mut [u8], _now: Time) -> Result<Option<usize>, HostError> {
        Ok(None)
    }

    /// Receives and throws away up to `most` bytes.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn discard(&mut self, _most: u64, _now: Time) -> Result<Option<u64>, HostError> {
        Ok(None)
    }

    /// Ends our half once all is sent.
    pub fn finish(&mut self, _now: Time) {}

    /// The owner has closed its socket: ends in good order if all was read, by a reset if bytes were left unread.
    pub fn close(&mut self, _now: Time) {}

    /// Chooses the congestion control, before or during the connection.
    pub fn set_congestion_control(&mut self, _algorithm: Algorithm, _now: Time) {}

    /// ICMP said that the peer cannot be reached: ends an attempt to connect; an established connection goes on (RFC 1122, 4.2.3.9).
    pub fn unreachable(&mut self, _now: Time) {}

    /// ICMP said that packets of more than `mtu` bytes do not pass (RFC 1191, RFC 8201).
    pub fn packet_too_big(&mut self, _mtu: u32, _now: Time) {}

    /// What has come up since the last call.
    pub fn take_signals(&mut self) -> Signals {
        Signals::default()
    }

    /// What can be seen from outside.
    #[must_use]
    pub fn info(&self) -> TcpInfo {
        TcpInfo::default()
    }
}
