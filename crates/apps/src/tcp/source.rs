//! Sends one TCP stream: as fast as the connection takes it, or so much at each deadline of a schedule (`writes.rs`).
//!
//! The stream begins with an announcement of its flow (`stream_header.rs`), which counts as payload. When all is
//! taken the source ends its half and waits for the peer to end its own: then all has arrived. A peer that does not
//! within [`LINGER`] is told as an error.

use std::net::SocketAddr;

use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::column::Column;
use crate::account::errors::ErrorTally;
use crate::account::intervals::IntervalCounter;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::account::tcp_info::TcpInfoSeries;
use crate::tcp::header::StreamHeader;
use crate::tcp::source_config::{End, Traffic};
use crate::tcp::writes::Writes;
use crate::{App, Chunk, Event, Host, HostError, SocketId, TcpSourceConfig};

/// The time that a peer may take to receive what is left and end its half.
pub const LINGER: Duration = Duration::from_secs(30);
/// Bytes offered at once when only time limits the stream.
const OFFER: u64 = 16 << 20;

/// Writes in one call.
const MOST_PER_CALL: u32 = 64;

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
    /// The schedule, from the moment of the connection on.
    writes: Option<Writes>,
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
            writes: None,
            errors: ErrorTally::default(),
        }
    }

    /// Returns the time when the duration is over, of a source that counts it from its start.
    fn time_limit(&self) -> Option<Time> {
        let duration = match self.config.traffic {
            Traffic::BulkFor(duration) => duration,
            // The schedule begins with the connection, for which the source waits no longer than it is to send.
            Traffic::Writes(_, End::After(duration)) if self.writes.is_none() => duration,
            Traffic::BulkBytes(_) | Traffic::Writes(..) => return None,
        };
        Some(self.start? + duration)
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
        let to = SocketAddr::new(self.config.to, self.config.port);
        let socket = match self.config.dscp {
            Some(dscp) => host.tcp_connect_marked(to, dscp)?,
            None => host.tcp_connect(to)?,
        };
        if let Some(name) = &self.config.congestion_control {
            if let Err(error) = host.set_congestion_control(socket, name) {
                host.close(socket);
                return Err(error);
            }
        }
        Ok(socket)
    }

    fn send(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        if self.writes.is_some() {
            return self.send_due(now, socket, host);
        }
        if self.time_limit().is_some_and(|limit| now >= limit) {
            return self.end_half(now, socket, host);
        }
        loop {
            let left = match self.config.traffic {
                Traffic::BulkBytes(bytes) => bytes.saturating_sub(self.taken),
                Traffic::BulkFor(_) | Traffic::Writes(..) => OFFER,
            };
            if left == 0 {
                return self.end_half(now, socket, host);
            }
            let announcement = StreamHeader { flow: self.config.flow }.emit();
            let (chunk, offered) = match usize::try_from(self.taken).ok().and_then(|taken| announcement.get(taken..)) {
                Some(rest) if !rest.is_empty() => (Chunk::Bytes(rest), rest.len() as u64),
                _ => (Chunk::Filler(left), left),
            };
            if self.offer(now, socket, chunk, host).is_none_or(|taken| taken < offered) {
                return;
            }
        }
    }

    /// Offers a chunk; how much of it was taken, `None` when the connection is no more.
    fn offer(&mut self, now: Time, socket: SocketId, chunk: Chunk<'_>, host: &mut dyn Host) -> Option<u64> {
        match host.tcp_send(socket, chunk) {
            Ok(taken) => {
                self.taken += taken;
                if taken > 0 {
                    self.intervals.add(now, taken);
                }
                Some(taken)
            }
            Err(error) => {
                self.errors.add(error);
                host.close(socket);
                self.finish(now);
                None
            }
        }
    }

    /// Offers the writes that are due.
    fn send_due(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        for _ in 0..MOST_PER_CALL {
            let Some(writes) = &mut self.writes else { return };
            if writes.over() {
                return self.end_half(now, socket, host);
            }
            if writes.too_late(now) {
                let told = writes.give_up();
                self.errors.add(told);
                return self.end_half(now, socket, host);
            }
            let Some(offered) = writes.offer(now) else { return };
            let announcement = StreamHeader { flow: self.config.flow }.emit();
            // The announcement is the beginning of the first write, which is longer.
            let head = usize::try_from(self.taken).ok().and_then(|taken| announcement.get(taken..)).unwrap_or_default();
            let head = &head[..head.len().min(offered as usize)];
            #[allow(clippy::cast_possible_truncation)]
            let chunk = match offered - head.len() as u32 {
                filler if head.is_empty() => Chunk::Filler(u64::from(filler)),
                0 => Chunk::Bytes(head),
                filler => Chunk::Padded(head, filler),
            };
            let Some(taken) = self.offer(now, socket, chunk, host) else { return };
            let Some(writes) = &mut self.writes else { return };
            writes.taken(now, taken);
            if writes.over() {
                return self.end_half(now, socket, host);
            }
            if taken < u64::from(offered) {
                return;
            }
        }
    }

    /// The connection is there: the schedule begins.
    fn begin_schedule(&mut self, now: Time, host: &mut dyn Host) {
        let Traffic::Writes(profile, end) = &self.config.traffic else { return };
        self.writes = Some(Writes::new(profile, *end, now, (host.random(), host.random())));
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
            State::Sending(socket) if self.writes.as_ref().and_then(Writes::deadline).is_some_and(|due| now >= due) => {
                self.send_due(now, socket, host);
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
                self.begin_schedule(now, host);
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
            State::Connecting(_) => self.time_limit(),
            State::Sending(_) => match &self.writes {
                Some(writes) => writes.deadline(),
                None => self.time_limit(),
            },
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
        row.pacing = self.writes.as_ref().map_or(Column::Absent, |writes| writes.report().into());
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
        app(json!({"kind": "tcp_source", "to": "10.0.0.2", "port": 5002, "flow": 9, "interval_ps": SECOND,
                limit: value}))
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

    fn scheduled(fields: &Value) -> AppConfig {
        let mut whole = json!({"kind": "tcp_source", "to": "10.0.0.2", "port": 5002, "flow": 9, "interval_ps": SECOND});
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        app(whole)
    }

    #[test]
    fn a_schedule_offers_so_much_at_each_deadline_from_the_connection_on() {
        let mut network = LoopNetwork::new(Duration::from_ms(10));
        let sink = network.start(1, &sink());
        let source =
            network.start(0, &scheduled(&json!({"rate_bps": 3_000_000, "payload_bytes": 1000, "duration_ps": SECOND})));
        network.run_until(Time::ZERO + Duration::from_secs(3));
        let (sent, received) = (network.report(source), network.report(sink));
        let (sent, received) = (&sent["flows"][0], &received["flows"][0]);
        assert_eq!((&sent["bytes"], &received["bytes"]), (&json!(375_000), &json!(375_000)));
        assert_eq!((&received["flow"], &sent["errors"]), (&json!(9), &json!([])));
        let pacing = &sent["pacing"];
        assert_eq!((&pacing["gap_error_ps"]["max"], &pacing["kept_up"]), (&json!(0), &json!(true)));
        // 374 whole intervals of 8000/3 us and the rest of a picosecond.
        let rate = pacing["requested_rate_bps"].as_f64().unwrap();
        assert!((rate / 3e6 - 1.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn what_the_connection_does_not_take_waits_and_that_it_fell_behind_is_told() {
        let mut network = LoopNetwork::new(Duration::from_ms(50));
        let sink = network.start(1, &sink());
        // A window of 64 KiB on a way of 50 ms is at most 10.5 Mbit/s: half of what is asked for.
        let source = network
            .start(0, &scheduled(&json!({"rate_bps": 20_000_000, "payload_bytes": 2500, "duration_ps": SECOND})));
        network.run_until(Time::ZERO + Duration::from_secs(5));
        let (sent, received) = (network.report(source), network.report(sink));
        let sent = &sent["flows"][0];
        assert_eq!(sent["bytes"], received["flows"][0]["bytes"]);
        assert!(sent["bytes"].as_u64().unwrap() < 1_500_000, "{sent}");
        assert_eq!(sent["pacing"]["kept_up"], json!(false));
        assert!(sent["errors"][0].as_str().unwrap().starts_with("the connection could not keep up"), "{sent}");
    }

    #[test]
    fn a_schedule_behind_catches_up_in_order_and_leaves_nothing_out() {
        let mut network = LoopNetwork::new(Duration::from_ms(50));
        let sink = network.start(1, &sink());
        let source = network.start(
            0,
            &scheduled(&json!({"packets_per_second": 1000.0, "payload_bytes": 2500, "writes": 200, "on_off": {
                "on_ps": {"distribution": "constant", "value": 1e11},
                "off_ps": {"distribution": "constant", "value": 4e11}}})),
        );
        network.run_until(Time::ZERO + Duration::from_secs(5));
        let (sent, received) = (network.report(source), network.report(sink));
        let sent = &sent["flows"][0];
        assert_eq!((&sent["bytes"], &received["flows"][0]["bytes"]), (&json!(500_000), &json!(500_000)));
        // 250 KB come in 100 ms; the window of 64 KiB takes about half of that.
        assert!(sent["pacing"]["lateness_ps"]["max"].as_u64().unwrap() > SECOND / 100, "{sent}");
    }

    #[test]
    fn the_last_write_is_as_long_as_what_is_left_and_draws_do_not_depend_on_each_other() {
        let gap = json!({"distribution": "exponential", "mean": 1e9});
        let size = json!({"distribution": "uniform", "low": 16.0, "high": 2000.0});
        let run = |fields: Value| {
            let mut network = LoopNetwork::new(Duration::from_ms(1));
            network.start(1, &sink());
            let source = network.start(0, &scheduled(&fields));
            network.run_until(Time::ZERO + Duration::from_secs(20));
            assert!(network.finished(source));
            network.report(source)["flows"][0].clone()
        };
        let whole = run(json!({"gap_ps": gap, "size_bytes": size, "bytes": 100_001}));
        assert_eq!(whole["bytes"], 100_001);
        let even = run(json!({"gap_ps": gap, "payload_bytes": 20, "writes": 500}));
        let drawn = run(json!({"gap_ps": gap, "size_bytes": size, "writes": 500}));
        let rate = "requested_packets_per_second";
        assert_eq!(even["pacing"][rate], drawn["pacing"][rate]);
        assert_eq!((&even["bytes"], even["bytes"] == drawn["bytes"]), (&json!(10_000), false));
    }

    #[test]
    fn what_belongs_to_a_schedule_is_refused_without_one() {
        let refusal = |fields: Value| {
            let mut whole =
                json!({"kind": "tcp_source", "to": "10.0.0.2", "port": 1, "flow": 9, "interval_ps": SECOND});
            whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            serde_json::from_value::<AppConfig>(whole).unwrap_err().to_string()
        };
        assert!(refusal(json!({"duration_ps": 1, "payload_bytes": 100}))
            .contains("payload_bytes is there without a schedule"));
        assert!(
            refusal(json!({"duration_ps": 1, "rate_bps": 100})).contains("exactly one of payload_bytes and size_bytes")
        );
        assert!(refusal(json!({"rate_bps": 100, "payload_bytes": 100}))
            .contains("exactly one of duration_ps, bytes, writes"));
        assert!(refusal(json!({"duration_ps": 1, "dscp": 64})).contains("dscp is 64; allowed is 0 to 63"));
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
