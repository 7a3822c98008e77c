//! The host as its apps see it, and an app as its host sees it.

use std::net::SocketAddr;

use thiserror::Error;
use twinnet_units::random::{stream, Rng};
use twinnet_units::{Duration, Time};

use crate::TcpInfo;

/// A socket of one host, valid until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u32);

/// The times when a host handed datagrams to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Just before the first.
    pub begun: Time,
    /// Just after the last.
    pub ended: Time,
}

/// Bytes to send: real ones, or a number of them whose content does not matter (zeros on a real wire, elided in a
/// model).
#[derive(Clone, Copy, Debug)]
pub enum Chunk<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// These bytes, then so many of any content: a UDP datagram with a header that matters and padding that does not.
    Padded(&'a [u8], u32),
    /// So many bytes of any content.
    Filler(u64),
}

/// Something that happened. Sent to the app that owns the socket.
#[derive(Debug)]
pub enum Event<'a> {
    /// The app begins. Sent once, first.
    Start,
    /// The time asked for by [`App::deadline`] has come (or passed: `now` tells).
    Timer,
    /// The lab asks the app to end: finish counting, close what is open. Sent at most once.
    Stop,
    /// A datagram arrived on a UDP or ICMP socket.
    Datagram {
        /// The socket it arrived on.
        socket: SocketId,
        /// Who sent it (port 0 for ICMP).
        from: SocketAddr,
        /// Its first bytes; the rest may be elided.
        bytes: &'a [u8],
        /// Its full payload length in bytes.
        length: usize,
        /// The time when it arrived at the host's interface, on the lab's clock.
        arrived: Time,
    },
    /// The host itself threw datagrams for this socket away, since they came faster than the app was given its turn.
    /// They are no loss of the network, and what was counted beside them is to be doubted.
    Overflowed {
        /// The socket.
        socket: SocketId,
        /// Datagrams thrown away since this was last told.
        datagrams: u64,
    },
    /// Datagrams sent earlier came back: a host or router on the way said so by ICMP.
    Returned {
        /// The socket.
        socket: SocketId,
        /// The error that was told.
        error: HostError,
        /// The number of times since this was last told.
        datagrams: u64,
    },
    /// The machine's clock was set while datagrams arrived, so that the kernel's stamps of these cannot be used: they
    /// have the time at which the host looked.
    ClockStepped {
        /// By how many nanoseconds.
        by_ns: i64,
    },
    /// A connection that was begun by [`Host::tcp_connect`] is established.
    Connected {
        /// The connection.
        socket: SocketId,
    },
    /// A peer connected to a listener.
    Accepted {
        /// The listener.
        listener: SocketId,
        /// The new connection.
        socket: SocketId,
        /// The peer's address.
        peer: SocketAddr,
    },
    /// There are bytes (or the end of the stream) to receive. Edge-triggered: receive until it gives `None`.
    Readable {
        /// The connection.
        socket: SocketId,
    },
    /// There is room to send again, after a send that took less than was offered.
    Writable {
        /// The connection.
        socket: SocketId,
    },
    /// The connection failed (refused, reset, timed out, unreachable). The socket is closed already.
    Failed {
        /// The socket.
        socket: SocketId,
        /// Why.
        error: HostError,
    },
}

/// Why a host refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// The address or port is taken by another socket of this host: choose another.
    #[error("address {0} is in use on this host")]
    AddressInUse(SocketAddr),
    /// Nobody listens there.
    #[error("connection refused")]
    Refused,
    /// The peer ended the connection at once.
    #[error("connection reset by peer")]
    Reset,
    /// No answer in time.
    #[error("timed out")]
    TimedOut,
    /// No route, or an ICMP error said so.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// The datagram is larger than can be sent.
    #[error("message of {0} bytes is too long")]
    TooLong(usize),
    /// The datagram exceeds the MTU, and fragments are forbidden: send smaller ones or allow fragments.
    #[error(
        "a datagram of {0} bytes of payload exceeds the MTU of the way and may not be fragmented: send smaller \
        ones or allow fragments"
    )]
    WouldFragment(usize),
    /// The host's send buffer is full: the datagram was not sent.
    #[error("send buffer full")]
    Full,
    /// The socket is not open.
    #[error("no such socket")]
    NoSuchSocket,
    /// Any other refusal of the host.
    #[error("{0}")]
    Other(String),
}

/// The requests that an app can make of its host. Calls never block.
pub trait Host {
    /// Opens a UDP socket on `port` (0: any free one), all addresses, IPv4 or IPv6 as `v6` says.
    ///
    /// # Errors
    /// [`HostError::AddressInUse`] when the port is taken.
    fn udp_bind(&mut self, port: u16, v6: bool) -> Result<SocketId, HostError>;

    /// Sends a datagram. It may be held back until the app's current `handle` returns, so that a host can send
    /// several at once.
    ///
    /// # Errors
    /// [`HostError::Full`], [`HostError::TooLong`], [`HostError::NoSuchSocket`], [`HostError::Unreachable`].
    fn udp_send(&mut self, socket: SocketId, to: SocketAddr, datagram: Chunk<'_>) -> Result<(), HostError>;

    /// Hands what was sent on a socket to the kernel now and tells when that was; `None` on a host whose clock
    /// stands still during a call, where everything is sent at the moment of the call.
    fn flush(&mut self, _socket: SocketId) -> Option<Handover> {
        None
    }

    /// Asks the kernel for the time at which each datagram of a UDP socket goes to the interface, for
    /// [`Host::departures`]; `false` where it does not tell.
    fn stamp_departures(&mut self, _socket: SocketId) -> bool {
        false
    }

    /// Returns the times at which datagrams of a socket went to the interface, in that order, since it was last asked.
    /// Some may be missing: not all interfaces stamp what they send.
    fn departures(&mut self, _socket: SocketId) -> Vec<Time> {
        Vec::new()
    }

    /// Returns what came back of the datagrams of a socket and no [`Event::Returned`] has told yet, with the number of
    /// times: for a source that is about to close it. Empty on a host that tells events at once.
    fn returned(&mut self, _socket: SocketId) -> Vec<(HostError, u64)> {
        Vec::new()
    }

    /// Forbids the fragmentation of all that a UDP socket will send (the DF bit of IPv4).
    ///
    /// # Errors
    /// [`HostError::NoSuchSocket`]; [`HostError::Other`] when the host cannot.
    fn forbid_fragments(&mut self, _socket: SocketId) -> Result<(), HostError> {
        Err(HostError::Other("this host cannot forbid fragments: leave fragment out".to_owned()))
    }

    /// Sets the differentiated services code point (0 to 63) of all that a UDP or ICMP socket or a connection will
    /// send.
    ///
    /// # Errors
    /// [`HostError::NoSuchSocket`]; [`HostError::Other`] when the host cannot.
    fn set_dscp(&mut self, _socket: SocketId, _dscp: u8) -> Result<(), HostError> {
        Err(HostError::Other("this host cannot set the DSCP of what it sends: leave dscp out".to_owned()))
    }

    /// Lets all that a UDP socket will send expire after so many hops (1 to 255; the TTL of IPv4).
    ///
    /// # Errors
    /// [`HostError::NoSuchSocket`]; [`HostError::Other`] when the host cannot.
    fn set_hop_limit(&mut self, _socket: SocketId, _hops: u8) -> Result<(), HostError> {
        Err(HostError::Other("this host cannot set a hop limit: choose a method that needs none".to_owned()))
    }

    /// Opens a socket for ICMP echo to and from any peer; datagrams are ICMP messages from their type byte on.
    ///
    /// # Errors
    /// [`HostError::Other`] when the host may not open one.
    fn icmp_open(&mut self, v6: bool) -> Result<SocketId, HostError>;

    /// Sends an ICMP message; the host fills in the checksum (and, on real sockets, the identifier).
    ///
    /// # Errors
    /// As [`Host::udp_send`].
    fn icmp_send(&mut self, socket: SocketId, to: SocketAddr, message: Chunk<'_>) -> Result<(), HostError>;

    /// Listens on `port`, all addresses.
    ///
    /// # Errors
    /// [`HostError::AddressInUse`] when the port is taken.
    fn tcp_listen(&mut self, port: u16, v6: bool) -> Result<SocketId, HostError>;

    /// Begins a connection; [`Event::Connected`] or [`Event::Failed`] follows.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] when there is no route at all.
    fn tcp_connect(&mut self, to: SocketAddr) -> Result<SocketId, HostError>;

    /// As [`Host::tcp_connect`], with the differentiated services code point (0 to 63) of all that we send, from
    /// the first segment on.
    ///
    /// # Errors
    /// As [`Host::tcp_connect`]; [`HostError::Other`] when the host cannot mark what it sends.
    fn tcp_connect_marked(&mut self, to: SocketAddr, dscp: u8) -> Result<SocketId, HostError> {
        let socket = self.tcp_connect(to)?;
        self.set_dscp(socket, dscp).inspect_err(|_| self.close(socket))?;
        Ok(socket)
    }

    /// Chooses the congestion control of a connection, or of those that a listener will accept, by its name
    /// (`cubic`, `reno`).
    ///
    /// # Errors
    /// [`HostError::Other`] when the host does not know it or may not use it; [`HostError::NoSuchSocket`].
    fn set_congestion_control(&mut self, socket: SocketId, name: &str) -> Result<(), HostError>;

    /// Offers bytes to a connection; returns how many of them it took. Taking less means [`Event::Writable`] will
    /// follow.
    ///
    /// # Errors
    /// [`HostError::NoSuchSocket`], [`HostError::Reset`].
    fn tcp_send(&mut self, socket: SocketId, chunk: Chunk<'_>) -> Result<u64, HostError>;

    /// Receives up to `buffer.len()` bytes. `Ok(None)`: nothing now. `Ok(Some(0))`: the peer has ended its stream.
    ///
    /// # Errors
    /// [`HostError::NoSuchSocket`], [`HostError::Reset`].
    fn tcp_receive(&mut self, socket: SocketId, buffer: &mut [u8]) -> Result<Option<usize>, HostError>;

    /// Receives and throws away up to `most` bytes, without copying them; results as [`Host::tcp_receive`].
    ///
    /// # Errors
    /// As [`Host::tcp_receive`].
    fn tcp_discard(&mut self, socket: SocketId, most: u64) -> Result<Option<u64>, HostError>;

    /// Ends our half of the stream once all that was taken is sent.
    fn tcp_finish(&mut self, socket: SocketId);

    /// The local and the peer's address of a connection.
    fn addresses(&self, socket: SocketId) -> Option<(SocketAddr, SocketAddr)>;

    /// The state of a connection's TCP; `None` when there is no such connection or the host cannot tell.
    fn tcp_info(&mut self, _socket: SocketId) -> Option<TcpInfo> {
        None
    }

    /// Closes a socket of any kind; unknown ones are ignored.
    fn close(&mut self, socket: SocketId);

    /// A random number from the app's own seeded stream.
    fn random(&mut self) -> u64;
}

/// A traffic program. See the crate's description for its rules.
///
/// Who calls it, and in which order: its host alone. The first call is [`handle`](Self::handle) with
/// [`Event::Start`], once. Each event follows when it happened, and after every `handle` the host asks
/// [`deadline`](Self::deadline) and [`finished`](Self::finished). [`Event::Timer`] comes at the deadline, or later
/// by what the host's clock makes of it, and never before. [`Event::Stop`] comes at most once. After `finished` was
/// true, the host asks for nothing but the [`report`](Self::report).
///
/// Invariants: `now` never goes back. An app uses only sockets that this host opened for it, draws chance from
/// [`Host::random`] alone, and changes nothing in `report`, which may be asked for at any moment. Everything it was
/// told wrong (a refused socket, a lost connection) is in its report.
pub trait App: Send {
    /// Told that something happened at `now`; acts through `host`.
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host);

    /// Returns the time when the app wants [`Event::Timer`]; asked after every `handle`. `None`: not at all.
    fn deadline(&self) -> Option<Time>;

    /// Returns how much later than [`App::deadline`] the timer may come without harm: what is due meanwhile is then
    /// done at once. A host with a clock of its own uses this to wake less often; it never makes a timer early.
    fn slack(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the share of its time that the app was behind when it gave up because its host could not follow what it
    /// was asked to send; `None` if it did not. What was measured then is the host's doing, and not the network's.
    fn fell_behind(&self) -> Option<f64> {
        None
    }

    /// Returns `true` if the app has nothing more to do. A server never has, until it is stopped.
    fn finished(&self) -> bool;

    /// Returns what the app counted so far, as a JSON object: see `report.rs` for the columns.
    fn report(&self, now: Time) -> serde_json::Value;
}

/// The stream of an app of `host` that has this `seed`. Every host that runs apps takes it, so that an app draws the
/// same on both clocks: the same gaps, sizes and frames of video.
#[must_use]
pub fn random_of_app(host: &str, seed: u64) -> Rng {
    stream(seed, &format!("app of {host}"))
}
