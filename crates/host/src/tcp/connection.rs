//! One connection: its parts, and what its owner can ask of it.

use std::net::SocketAddr;

use twinnet_apps::{Chunk, HostError};
use twinnet_units::random::split_mix;
use twinnet_units::{Duration, Time};

use super::config::{Failure, Signals, TcpConfig, TcpInfo};
use super::congestion::{Algorithm, CongestionControl};
use super::delayed_ack::DelayedAck;
use super::delivery_rate::DeliveryRate;
use super::handshake::{Agreed, Handshake};
use super::rack::Rack;
use super::receive_buffer::ReceiveBuffer;
use super::recovery::Recovery;
use super::round_trip::RoundTrip;
use super::segment::Segment;
use super::send_buffer::SendBuffer;
use super::sent::Scoreboard;
use super::sequence;
use super::timers::Timers;
use super::transmit::Departures;
use super::window::ReceiveWindow;

/// RFC 9293, 3.3.2. LISTEN is the listener's; CLOSED is what is left when nothing more will be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

impl State {
    /// Returns `true` if the owner's data may be sent.
    pub fn may_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }

    /// Returns `true` if the handshake is over and segments are exchanged.
    pub fn is_synchronised(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }
}

/// Sequence numbers of what we send, and the peer's window for it (RFC 9293, 3.3.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct SendSequence {
    /// Our SYN.
    pub initial: u64,
    /// The oldest that is not acknowledged (SND.UNA).
    pub unacknowledged: u64,
    /// The next to be sent (SND.NXT).
    pub next: u64,
    /// The window that the peer offers from `unacknowledged` on.
    pub window: u64,
    /// The largest that it ever offered.
    pub largest_window: u64,
    /// Sequence and acknowledgement of the segment that told it (SND.WL1, SND.WL2).
    pub window_told_by: (u64, u64),
    /// The FIN's number, once it is sent.
    pub fin: Option<u64>,
}

impl SendSequence {
    /// The number after the last that the peer takes.
    pub fn window_end(&self) -> u64 {
        self.unacknowledged + self.window
    }
}

/// The marks of RFC 3168.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echo {
    /// A mark came in: echoed until the sender says that it has reduced its window.
    pub to_peer: bool,
    /// We have reduced ours: the next new segment says so.
    pub reduced: bool,
}

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) config: TcpConfig,
    pub(super) state: State,
    pub(super) signals: Signals,
    pub(super) failure: Option<Failure>,
    /// The owner has let go of it.
    pub(super) abandoned: bool,

    pub(super) mtu: u32,
    pub(super) handshake: Handshake,
    pub(super) agreed: Agreed,
    /// Payload of a full segment.
    pub(super) segment_bytes: u32,

    pub(super) send: SendSequence,
    pub(super) outgoing: SendBuffer,
    /// Bytes that the send buffer takes by now.
    pub(super) send_buffer: u64,
    /// The owner was refused room.
    pub(super) room_wanted: bool,
    /// Our half ends after what is buffered.
    pub(super) finish_wanted: bool,
    pub(super) sent: Scoreboard,
    pub(super) round_trip: RoundTrip,
    pub(super) rate: DeliveryRate,
    pub(super) rack: Rack,
    pub(super) recovery: Recovery,
    pub(super) congestion: Box<dyn CongestionControl>,
    pub(super) departures: Departures,
    pub(super) retransmitted: u64,

    pub(super) incoming: ReceiveBuffer,
    pub(super) window: ReceiveWindow,
    pub(super) acks: DelayedAck,
    /// The peer's stream has ended.
    pub(super) finished_by_peer: bool,
    /// The end of the peer's stream, when its FIN came before what precedes it.
    pub(super) fin_at: Option<u64>,
    /// The range that came twice, to be told in the next acknowledgement (RFC 2883).
    pub(super) duplicate: Option<(u64, u64)>,
    /// The peer's latest timestamp, and when it came (RFC 7323, 4.3).
    pub(super) recent_timestamp: u32,
    pub(super) recent_timestamp_at: Time,
    /// The latest echo of our own, used to tell an original from a retransmission.
    pub(super) echoed_timestamp: Option<u32>,
    /// The echo by which the receiver last measured a round trip.
    pub(super) last_echo_measured: u32,
    pub(super) echo: Echo,

    pub(super) timers: Timers,
    /// A reset to be sent: its sequence, and its acknowledgement where it carries one.
    pub(super) reset: Option<(u32, Option<u32>)>,
}

impl Connection {
    /// Begins a connection: [`Connection::poll_send`] gives the SYN. `mtu` is the outgoing interface's.
    #[must_use]
    pub fn connect(
        config: &TcpConfig,
        local: SocketAddr,
        peer: SocketAddr,
        mtu: u32,
        initial_sequence: u32,
        now: Time,
    ) -> Self {
        let mut connection = Self::new(config, local, peer, mtu, initial_sequence);
        connection.begin_handshake(State::SynSent, now);
        connection
    }

    /// Answers the SYN `syn` that came to a listener.
    #[must_use]
    pub fn accept(
        config: &TcpConfig,
        local: SocketAddr,
        peer: SocketAddr,
        mtu: u32,
        initial_sequence: u32,
        syn: &Segment<'_>,
        now: Time,
    ) -> Self {
        let mut connection = Self::new(config, local, peer, mtu, initial_sequence);
        connection.take_syn(syn, now);
        connection.begin_handshake(State::SynReceived, now);
        connection
    }

    fn new(config: &TcpConfig, local: SocketAddr, peer: SocketAddr, mtu: u32, initial_sequence: u32) -> Self {
        let initial = sequence::begin(initial_sequence);
        let handshake = Handshake::new(local, mtu);
        let longest_segment = u32::from(handshake.our_segment);
        Self {
            local,
            peer,
            config: config.clone(),
            state: State::Closed,
            signals: Signals::default(),
            failure: None,
            abandoned: false,
            mtu,
            agreed: Agreed::default(),
            segment_bytes: longest_segment,
            send: SendSequence {
                initial,
                unacknowledged: initial,
                next: initial,
                window: 0,
                largest_window: 0,
                window_told_by: (0, 0),
                fin: None,
            },
            outgoing: SendBuffer::new(initial + 1),
            send_buffer: config.send_buffer[1],
            room_wanted: false,
            finish_wanted: false,
            sent: Scoreboard::default(),
            round_trip: RoundTrip::new(),
            rate: DeliveryRate::default(),
            rack: Rack::new(),
            recovery: Recovery::new(),
            congestion: config
                .congestion_control
                .start(config.initial_window.max(1), random_of(local, peer, initial_sequence)),
            departures: Departures::default(),
            retransmitted: 0,
            incoming: ReceiveBuffer::new(0),
            window: ReceiveWindow::new(config, longest_segment),
            acks: DelayedAck::new(longest_segment),
            finished_by_peer: false,
            fin_at: None,
            duplicate: None,
            last_echo_measured: 0,
            recent_timestamp: 0,
            recent_timestamp_at: Time::ZERO,
            echoed_timestamp: None,
            echo: Echo::default(),
            timers: Timers::default(),
            reset: None,
            handshake,
        }
    }

    /// Our address and the peer's.
    #[must_use]
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.local, self.peer)
    }

    /// Takes bytes to send; returns how many it took.
    ///
    /// # Errors
    /// [`HostError::Reset`] when our half is ended or the connection has failed.
    pub fn send(&mut self, chunk: Chunk<'_>, now: Time) -> Result<u64, HostError> {
        self.tell_time(now);
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        if self.finish_wanted || self.abandoned || !(opening || self.state.may_send()) {
            return Err(HostError::Reset);
        }
        let room = self.send_buffer.saturating_sub(self.outgoing.held());
        let (bytes, filler): (&[u8], u64) = match chunk {
            Chunk::Bytes(bytes) => (bytes, 0),
            Chunk::Padded(bytes, filler) => (bytes, u64::from(filler)),
            Chunk::Filler(filler) => (&[], filler),
        };
        let real = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let counted = filler.min(room - real as u64);
        let taken = real as u64 + counted;
        if taken < bytes.len() as u64 + filler {
            self.room_wanted = true;
        }
        if taken > 0 {
            self.restart_after_idle(now);
            self.outgoing.append(&bytes[..real]);
            self.outgoing.append_filler(counted);
            self.keep_probing_window(now);
        }
        Ok(taken)
    }

    /// Receives into `buffer`, elided bytes as zeros; results as [`twinnet_apps::Host::tcp_receive`].
    ///
    /// # Errors
    /// [`HostError::Reset`] when the connection has failed and nothing that came before is left.
    pub fn read(&mut self, buffer: &mut [u8], now: Time) -> Result<Option<usize>, HostError> {
        let count = self.incoming.read(buffer);
        self.after_read(count as u64, now);
        // An empty buffer must not be told the end of the stream.
        let none = if buffer.is_empty() { Ok(None) } else { self.nothing_read() };
        if count > 0 {
            Ok(Some(count))
        } else {
            none.map(|end| end.map(|()| 0))
        }
    }

    /// Receives and throws away up to `most` bytes.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn discard(&mut self, most: u64, now: Time) -> Result<Option<u64>, HostError> {
        let count = self.incoming.discard(most);
        self.after_read(count, now);
        let none = if most == 0 { Ok(None) } else { self.nothing_read() };
        if count > 0 {
            Ok(Some(count))
        } else {
            none.map(|end| end.map(|()| 0))
        }
    }

    /// Returns what a read finds when nothing is there: the end of the stream, a failure, or nothing yet.
    fn nothing_read(&self) -> Result<Option<()>, HostError> {
        if self.failure.is_some() || self.abandoned {
            return Err(HostError::Reset);
        }
        Ok(self.finished_by_peer.then_some(()))
    }

    /// Ends our half once all is sent.
    pub fn finish(&mut self, now: Time) {
        self.finish_wanted = true;
        if self.state == State::SynSent {
            self.end(now);
        } else {
            self.keep_probing_window(now);
        }
    }

    /// The owner has closed its socket: ends in good order if all was read, by a reset if bytes were left unread.
    pub fn close(&mut self, now: Time) {
        if self.abandoned {
            return;
        }
        self.abandoned = true;
        match self.state {
            State::SynSent => self.end(now),
            State::Closed => self.conclude(),
            // RFC 2525, 2.17: data that nobody will read is a reason to reset.
            _ if self.incoming.held() > 0 && self.state != State::TimeWait => self.abort(now),
            State::FinWait2 => self.timers.wait_in_state(now),
            _ => {
                self.finish_wanted = true;
                self.keep_probing_window(now);
            }
        }
    }

    /// Chooses the congestion control, before or during the connection.
    pub fn set_congestion_control(&mut self, algorithm: Algorithm, now: Time) {
        if self.congestion.algorithm() == algorithm {
            return;
        }
        let window = self.congestion.window();
        let random = random_of(self.local, self.peer, self.send.initial as u32);
        self.congestion = algorithm.start(self.config.initial_window.max(1), random);
        if self.state.is_synchronised() {
            self.congestion.recovered(window, now);
            self.congestion.established(self.round_trip.smoothed(), self.segment_bytes, now);
        }
        self.update_pace();
    }

    /// Returns what has come up since the last call.
    pub fn take_signals(&mut self) -> Signals {
        std::mem::take(&mut self.signals)
    }

    /// Returns what can be seen from outside.
    #[must_use]
    pub fn info(&self) -> TcpInfo {
        let first = self.send.initial + 1;
        TcpInfo {
            congestion_window: self.congestion_window(),
            slow_start_threshold: self.congestion.slow_start_threshold(),
            round_trip: self.round_trip.smoothed().unwrap_or(Duration::ZERO),
            round_trip_deviation: self.round_trip.deviation(),
            least_round_trip: self.round_trip.least().unwrap_or(Duration::ZERO),
            retransmission_timeout: self.round_trip.timeout(),
            in_flight: self.sent.in_flight(),
            retransmitted: self.retransmitted,
            acknowledged_bytes: self.send.unacknowledged.min(self.outgoing.end()).saturating_sub(first),
            pacing_rate: self.departures.rate,
            timeouts: self.recovery.timeouts_total,
            tail_probes: self.recovery.probes_total,
            undone: self.recovery.undone_total,
            reductions: self.recovery.reductions_total,
        }
    }
}

/// The seed of what a connection draws: its addresses and its first sequence number, mixed (SplitMix64).
fn random_of(local: SocketAddr, peer: SocketAddr, initial_sequence: u32) -> u64 {
    let ports = u64::from(local.port()) << 16 | u64::from(peer.port());
    let mut state = ports << 32 | u64::from(initial_sequence);
    split_mix(&mut state)
}
