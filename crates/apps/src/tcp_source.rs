//! Sends one TCP stream as fast as the connection takes it, for a time or a number of bytes.
//!
//! The stream begins with an announcement of its flow (`stream_header.rs`), which counts as payload. When all is taken the source
//! ends its half and waits for the peer to end its own: then all has arrived. A peer that does not within [`LINGER`] is told as an error.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::config::{
    check_congestion_control, check_exactly_one, check_interval, check_interval_of, check_port, check_range,
    ConfigError,
};
use crate::errors::ErrorTally;
use crate::intervals::IntervalCounter;
use crate::report::{AppReport, FlowReport, Protocol, Role};
use crate::stream_header::{StreamHeader, LENGTH};
use crate::tcp_info::TcpInfoSeries;
use crate::{App, Chunk, Event, Host, HostError, SocketId};

/// How long a peer may take to receive what is left and end its half.
pub const LINGER: Duration = Duration::from_secs(30);
/// Bytes offered at once when only time limits the stream.
const OFFER: u64 = 16 << 20;

/// What a TCP source is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSourceConfig {
    /// Where to connect.
    pub to: IpAddr,
    /// The port there.
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// How long to send, from the app's start. Either this or `bytes`.
    #[serde(default)]
    pub duration_ps: Option<u64>,
    /// How many bytes to send, the announcement's 12 included. Either this or `duration_ps`.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// The interval of counting.
    pub interval_ps: u64,
    /// The congestion control; the host's own where it is not given.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// The interval at which the state of the connection's TCP is sampled; not at all where it is not given.
    #[serde(default)]
    pub info_interval_ps: Option<u64>,
}

impl TcpSourceConfig {
    pub(crate) const KIND: &'static str = "tcp_source";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_exactly_one(Self::KIND, ("duration_ps", self.duration_ps.is_some()), ("bytes", self.bytes.is_some()))?;
        if let Some(duration) = self.duration_ps {
            check_range(Self::KIND, "duration_ps", duration, 1, u64::MAX)?;
        }
        if let Some(bytes) = self.bytes {
            check_range(Self::KIND, "bytes", bytes, LENGTH as u64, u64::MAX)?;
        }
        check_congestion_control(Self::KIND, self.congestion_control.as_deref())?;
        if let Some(interval) = self.info_interval_ps {
            check_interval_of(Self::KIND, "info_interval_ps", interval)?;
        }
        check_interval(Self::KIND, self.interval_ps)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Connecting(SocketId),
    Sending(SocketId),
    /// All is taken; the peer has not ended its half yet.
    Lingering(SocketId, Time),
    Done,
}

/// The app.
pub struct TcpSource {
    config: TcpSourceConfig,
    state: State,
    from: Option<SocketAddr>,
    start: Option<Time>,
    end: Option<Time>,
    taken: u64,
    intervals: IntervalCounter,
    info: Option<TcpInfoSeries>,
    errors: ErrorTally,
}

impl TcpSource {
    /// A source that does what `config` says.
    #[must_use]
    pub fn new(config: TcpSourceConfig) -> Self {
        Self {
            intervals: IntervalCounter::of_bytes(Duration::from_ps(config.interval_ps)),
            info: config.info_interval_ps.map(|interval| TcpInfoSeries::new(Duration::from_ps(interval))),
            config,
            state: State::Idle,
            from: None,
            start: None,
            end: None,
            taken: 0,
            errors: ErrorTally::default(),
        }
    }

    /// When the duration is over.
    fn time_limit(&self) -> Option<Time> {
        Some(self.start? + Duration::from_ps(self.config.duration_ps?))
    }

    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        self.start = Some(now);
        match self.connect(host) {
            Ok(socket) => self.state = State::Connecting(socket),
            Err(error) => {
                self.errors.add(error);
                self.finish(now);
            }
        }
    }

    fn connect(&self, host: &mut dyn Host) -> Result<SocketId, HostError> {
        let socket = host.tcp_connect(SocketAddr::new(self.config.to, self.config.port))?;
        if let Some(name) = &self.config.congestion_control {
            if let Err(error) = host.set_congestion_control(socket, name) {
                host.close(socket);
                return Err(error);
            }
        }
        Ok(socket)
    }

    fn send(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        if self.time_limit().is_some_and(|limit| now >= limit) {
            return self.end_half(now, socket, host);
        }
        loop {
            let left = self.config.bytes.map_or(OFFER, |bytes| bytes.saturating_sub(self.taken));
            if left == 0 {
                return self.end_half(now, socket, host);
            }
            let announcement = StreamHeader { flow: self.config.flow }.emit();
            let (chunk, offered) = match usize::try_from(self.taken).ok().and_then(|taken| announcement.get(taken..)) {
                Some(rest) if !rest.is_empty() => (Chunk::Bytes(rest), rest.len() as u64),
                _ => (Chunk::Filler(left), left),
            };
            match host.tcp_send(socket, chunk) {
                Ok(taken) => {
                    self.taken += taken;
                    if taken > 0 {
                        self.intervals.add(now, taken);
                    }
                    if taken < offered {
                        return;
                    }
                }
                Err(error) => {
                    self.errors.add(error);
                    host.close(socket);
                    return self.finish(now);
                }
            }
        }
    }

    fn end_half(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        host.tcp_finish(socket);
        self.end = Some(now);
        self.state = State::Lingering(socket, now + LINGER);
    }

    fn finish(&mut self, now: Time) {
        if let Some(info) = &mut self.info {
            info.end();
        }
        self.end.get_or_insert(now);
        self.state = State::Done;
    }

    /// Throws away what the peer sends; its end is the end of the flow.
    fn drain(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        loop {
            match host.tcp_discard(socket, 1 << 16) {
                Ok(None) => return,
                Ok(Some(0)) => {
                    if !matches!(self.state, State::Lingering(..)) {
                        self.errors.add("the peer ended the connection before all was sent");
                    }
                    break;
                }
                Ok(Some(_)) => {}
                Err(error) => {
                    self.errors.add(error);
                    break;
                }
            }
        }
        host.close(socket);
        self.finish(now);
    }

    fn sample(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        if let Some(info) = &mut self.info {
            info.sample(now, host.tcp_info(socket));
        }
    }

    fn timer(&mut self, now: Time, host: &mut dyn Host) {
        if let State::Sending(socket) | State::Lingering(socket, _) = self.state {
            if self.info.as_ref().and_then(TcpInfoSeries::due).is_some_and(|due| now >= due) {
                self.sample(now, socket, host);
            }
        }
        match self.state {
            State::Connecting(socket) if self.time_limit().is_some_and(|limit| now >= limit) => {
                self.errors.add("no connection was made within the flow's duration");
                host.close(socket);
                self.finish(now);
            }
            State::Sending(socket) if self.time_limit().is_some_and(|limit| now >= limit) => {
                self.end_half(now, socket, host);
            }
            State::Lingering(socket, until) if now >= until => {
                self.errors.add(format!("the peer did not end the connection within {LINGER}"));
                host.close(socket);
                self.finish(now);
            }
            _ => {}
        }
    }
}

impl App for TcpSource {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match (event, self.state) {
            (Event::Start, _) => self.begin(now, host),
            (Event::Timer, _) => self.timer(now, host),
            (Event::Connected { socket }, State::Connecting(mine)) if socket == mine => {
                self.from = host.addresses(socket).map(|(local, _)| local);
                self.state = State::Sending(socket);
                self.sample(now, socket, host);
                self.send(now, socket, host);
            }
            (Event::Writable { socket }, State::Sending(mine)) if socket == mine => self.send(now, socket, host),
            (Event::Readable { socket }, State::Sending(mine) | State::Lingering(mine, _)) if socket == mine => {
                self.drain(now, socket, host);
            }
            (Event::Failed { error, .. }, _) => {
                self.errors.add(error);
                self.finish(now);
            }
            (Event::Stop, state) => {
                match state {
                    State::Connecting(socket) => host.close(socket),
                    State::Sending(socket) | State::Lingering(socket, _) => {
                        host.tcp_finish(socket);
                        host.close(socket);
                    }
                    State::Idle | State::Done => {}
                }
                self.finish(now);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        let end = match self.state {
            State::Connecting(_) | State::Sending(_) => self.time_limit(),
            State::Lingering(_, until) => Some(until),
            State::Idle | State::Done => None,
        };
        let sample = self.info.as_ref().and_then(TcpInfoSeries::due);
        end.into_iter().chain(sample).min()
    }

    fn finished(&self) -> bool {
        self.state == State::Done
    }

    fn report(&self, now: Time) -> Value {
        let mut row = FlowReport::new(Some(self.config.flow), Protocol::Tcp, Role::Source)
            .with_errors(&self.errors)
            .with_intervals(&self.intervals);
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(SocketAddr::new(self.config.to, self.config.port).to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.start.map(|_| self.end.unwrap_or(now).as_ps());
        row.bytes = self.taken;
        row.tcp_info = self.info.as_ref().map(TcpInfoSeries::report);
        row.errors.extend(self.info.as_ref().and_then(TcpInfoSeries::error).map(str::to_owned));
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_network::{app, LoopNetwork};
    use crate::AppConfig;
    use serde_json::json;

    const SECOND: u64 = 1_000_000_000_000;

    fn sink() -> AppConfig {
        app(json!({"kind": "tcp_sink", "port": 5002, "interval_ps": SECOND}))
    }

    fn source(limit: &str, value: u64) -> AppConfig {
        app(
            json!({"kind": "tcp_source", "to": "10.0.0.2", "port": 5002, "flow": 9, "interval_ps": SECOND, limit: value}),
        )
    }

    #[test]
    fn all_bytes_arrive_and_carry_the_flow_number_however_they_are_cut() {
        for segment in [1, 5, 1448] {
            let mut network = LoopNetwork::new(Duration::from_ms(1));
            network.segment(segment);
            let sink = network.start(1, &sink());
            let source = network.start(0, &source("bytes", 200_000));
            network.run_until(Time::ZERO + Duration::from_secs(60));
            assert!(network.finished(source));
            let (sent, received) = (network.report(source), network.report(sink));
            assert_eq!(sent["flows"][0]["bytes"], 200_000);
            assert_eq!(sent["flows"][0]["errors"], json!([]));
            assert_eq!(received["flows"][0]["bytes"], 200_000);
            assert_eq!(received["flows"][0]["flow"], 9);
            // Two listeners are left.
            assert_eq!(network.open_sockets(), 2);
        }
    }

    #[test]
    fn a_duration_ends_the_stream_and_intervals_add_up() {
        let mut network = LoopNetwork::new(Duration::from_ms(10));
        let sink = network.start(1, &sink());
        let source = network.start(0, &source("duration_ps", 3 * SECOND));
        network.run_until(Time::ZERO + Duration::from_secs(10));
        let (sent, received) = (network.report(source), network.report(sink));
        let (sent, received) = (&sent["flows"][0], &received["flows"][0]);
        assert_eq!(sent["end_ps"], 3 * SECOND);
        assert_eq!(sent["bytes"], received["bytes"]);
        let by_interval: u64 =
            received["intervals"]["bytes"].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).sum();
        assert_eq!(by_interval, received["bytes"].as_u64().unwrap());
        // A window of 64 KiB each round trip of 20 ms for 3 s, the handshake's excepted.
        assert_eq!(sent["bytes"], 149 * 65_536);
        assert!(sent["intervals"].get("packets").is_none());
    }

    #[test]
    fn the_state_of_tcp_is_sampled_from_the_connection_to_its_end() {
        let mut network = LoopNetwork::new(Duration::from_ms(10));
        network.start(1, &sink());
        let source = network.start(
            0,
            &app(json!({"kind": "tcp_source", "to": "10.0.0.2", "port": 5002, "flow": 9, "interval_ps": SECOND,
                        "duration_ps": SECOND, "info_interval_ps": SECOND / 10})),
        );
        network.run_until(Time::ZERO + Duration::from_secs(5));
        let report = network.report(source);
        let info = &report["flows"][0]["tcp_info"];
        // Connected after 20 ms, then at the multiples of 100 ms until the duration and a round trip are over.
        let at: Vec<u64> =
            info["at_ps"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap() * 100 / SECOND).collect();
        assert_eq!(at, [2, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        // This network's window is 64 KiB, whatever happens.
        assert_eq!(info["cwnd_segments"], json!(vec![45; 11]));
        assert_eq!(info["ssthresh_segments"][0], Value::Null);
        assert_eq!(report["flows"][0]["errors"], json!([]));
        assert_eq!(report["flows"][0]["end_ps"], SECOND);
    }

    #[test]
    fn a_refused_connection_is_told() {
        let mut network = LoopNetwork::new(Duration::from_ms(1));
        let source = network.start(0, &source("bytes", 1000));
        network.run_until(Time::ZERO + Duration::from_secs(1));
        assert!(network.finished(source));
        assert_eq!(network.report(source)["flows"][0]["errors"], json!(["connection refused"]));
    }

    #[test]
    fn a_stopped_source_closes_and_the_sink_counts_what_was_sent() {
        let mut network = LoopNetwork::new(Duration::from_ms(10));
        let sink = network.start(1, &sink());
        let source = network.start(0, &source("duration_ps", 1000 * SECOND));
        network.run_until(Time::ZERO + Duration::from_secs(1));
        network.stop(source);
        network.run_until(Time::ZERO + Duration::from_secs(2));
        assert!(network.finished(source));
        assert_eq!(network.report(source)["flows"][0]["bytes"], network.report(sink)["flows"][0]["bytes"]);
        network.stop(sink);
        assert!(network.finished(sink));
    }
}
