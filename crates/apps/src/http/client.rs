//! An HTTP/1.1 client that fetches `/bytes/N` a number of times over several connections at once, and keeps them.
//!
//! It reads responses of any server: with a length, in chunks, or ended by the connection. A connection that fails
//! costs the request it carried, so a server that refuses all is asked `count` times at most. Only a kept
//! connection that the server ends before the first byte of an answer is no failure: the request is made again on a
//! new one (RFC 9110, 9.2.2).
//!
//! Between an answer and the next request of its connection it may think for a while, and what it asks for may be
//! drawn.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::errors::ErrorTally;
use crate::account::intervals::IntervalCounter;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{
    check_exactly_one, check_interval, check_port, check_range, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS,
};
use crate::http::connection::{Connection, Failure};
use crate::schedule::distribution::Distribution;
use crate::schedule::random::Stream;
use crate::{App, Event, Host, SocketId, Summary};

/// Thinking times: up to a day.
const LONGEST_THINKING_PS: f64 = 8.64e16;
/// Bodies that are drawn: up to 1 TB.
const LARGEST_DRAWN: f64 = 1e12;
/// The percentiles of latencies in the report: those that `ab` prints, and 99.9.
const PERCENTILES: [(&str, f64); 9] = [
    ("50", 0.5),
    ("66", 0.66),
    ("75", 0.75),
    ("80", 0.8),
    ("90", 0.9),
    ("95", 0.95),
    ("98", 0.98),
    ("99", 0.99),
    ("99.9", 0.999),
];

/// The task of an HTTP client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpClientConfig {
    /// The server.
    pub to: IpAddr,
    /// Its port.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// Bytes to ask for in each request. Either this or `size_bytes`.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// A distribution of them.
    #[serde(default)]
    pub size_bytes: Option<Distribution>,
    /// The number of requests.
    #[schemars(range(min = 1, max = u64::MAX))]
    pub count: u64,
    /// Over how many connections at once: 1 to 10,000.
    #[schemars(range(min = 1, max = 10_000))]
    pub connections: u32,
    /// The time that a connection thinks after an answer, before its next request; null: not at all.
    #[serde(default)]
    pub think_ps: Option<Distribution>,
    /// When it ends, whatever it has done by then; null: when all requests are done.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub duration_ps: Option<u64>,
    /// The interval of counting.
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    pub interval_ps: u64,
}

impl HttpClientConfig {
    pub(crate) const KIND: &'static str = "http_client";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_range(Self::KIND, "count", self.count, 1, u64::MAX)?;
        check_range(Self::KIND, "connections", self.connections, 1, 10_000)?;
        check_exactly_one(Self::KIND, ("bytes", self.bytes.is_some()), ("size_bytes", self.size_bytes.is_some()))?;
        if let Some(size) = &self.size_bytes {
            size.check(Self::KIND, "size_bytes", (0.0, LARGEST_DRAWN))?;
        }
        if let Some(think) = &self.think_ps {
            think.check(Self::KIND, "think_ps", (0.0, LONGEST_THINKING_PS))?;
        }
        if let Some(duration) = self.duration_ps {
            check_range(Self::KIND, "duration_ps", duration, 1, u64::MAX)?;
        }
        check_interval(Self::KIND, self.interval_ps)
    }
}

/// The app.
pub struct HttpClient {
    config: HttpClientConfig,
    connections: BTreeMap<SocketId, Connection>,
    /// Connections that think, and until when.
    thinking: BTreeMap<SocketId, Time>,
    sizes: Stream,
    thoughts: Stream,
    from: Option<SocketAddr>,
    start: Option<Time>,
    end: Option<Time>,
    /// Requests that were begun.
    begun: u64,
    completed: u64,
    bytes: u64,
    latencies: Summary,
    intervals: IntervalCounter,
    errors: ErrorTally,
}

impl HttpClient {
    /// A client that does what `config` says.
    #[must_use]
    pub fn new(config: HttpClientConfig) -> Self {
        Self {
            intervals: IntervalCounter::of_bytes(Duration::from_ps(config.interval_ps)),
            config,
            connections: BTreeMap::new(),
            thinking: BTreeMap::new(),
            sizes: Stream::new(0),
            thoughts: Stream::new(0),
            from: None,
            start: None,
            end: None,
            begun: 0,
            completed: 0,
            bytes: 0,
            latencies: Summary::default(),
            errors: ErrorTally::default(),
        }
    }

    /// Opens connections up to their number, while there are requests for them; ends when there are neither.
    fn open(&mut self, now: Time, host: &mut dyn Host) {
        while self.begun + (self.thinking.len() as u64) < self.config.count
            && self.connections.len() < self.config.connections as usize
        {
            self.begun += 1;
            match host.tcp_connect(SocketAddr::new(self.config.to, self.config.port)) {
                Ok(socket) => {
                    self.connections.insert(socket, Connection::new(now));
                }
                Err(error) => {
                    // The host itself refuses: the next request would fare no better.
                    self.errors.add_many(error, self.config.count - self.begun + 1);
                    self.begun = self.config.count;
                }
            }
        }
        if self.connections.is_empty() && self.begun >= self.config.count {
            self.end.get_or_insert(now);
        }
    }

    /// Returns the size that the next request asks for.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn next_size(&mut self) -> u64 {
        match (&self.config.size_bytes, self.config.bytes) {
            (Some(drawn), _) => drawn.draw(&mut self.sizes, (0.0, LARGEST_DRAWN)).round() as u64,
            (None, bytes) => bytes.unwrap_or(0),
        }
    }

    fn ask(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        let server = SocketAddr::new(self.config.to, self.config.port);
        let bytes = self.next_size();
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        if let Err(failure) = connection.ask(now, socket, server, bytes, host) {
            self.fail(now, socket, &failure, host);
        }
    }

    /// Ends what a connection that has its answer does next: ask again, think, or close.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn go_on(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        let Some(think) = &self.config.think_ps else {
            self.begun += 1;
            return self.ask(now, socket, host);
        };
        let pause = think.draw(&mut self.thoughts, (0.0, LONGEST_THINKING_PS)) as u64;
        self.thinking.insert(socket, now + Duration::from_ps(pause));
    }

    fn stop(&mut self, now: Time, host: &mut dyn Host) {
        for (socket, _) in std::mem::take(&mut self.connections) {
            host.close(socket);
        }
        self.thinking.clear();
        self.begun = self.config.count;
        self.end.get_or_insert(now);
    }

    /// The moment at which it ends whatever it has done.
    fn last_moment(&self) -> Option<Time> {
        Some(self.start? + Duration::from_ps(self.config.duration_ps?))
    }

    fn receive(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let (bytes, read) = connection.receive(socket, host);
        if bytes > 0 {
            self.bytes += bytes;
            self.intervals.add(now, bytes);
        }
        match read {
            Ok(true) => self.complete(now, socket, host),
            Ok(false) => {}
            Err(failure) => self.fail(now, socket, &failure, host),
        }
    }

    fn complete(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        self.completed += 1;
        self.latencies.add(now.since(connection.asked).as_ps());
        if let Some(fault) = connection.fault() {
            self.errors.add(fault);
        }
        if connection.is_usable() && self.begun + (self.thinking.len() as u64) < self.config.count {
            connection.reused = true;
            self.go_on(now, socket, host);
        } else {
            self.close(now, socket, host);
        }
    }

    fn fail(&mut self, now: Time, socket: SocketId, failure: &Failure, host: &mut dyn Host) {
        // A connection that thinks carries no request.
        if self.thinking.remove(&socket).is_none() {
            match failure {
                Failure::Stale => self.begun -= 1,
                Failure::Lost(why) => self.errors.add(why),
            }
        }
        self.close(now, socket, host);
    }

    fn close(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        self.connections.remove(&socket);
        host.close(socket);
        self.open(now, host);
    }
}

impl App for HttpClient {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.start = Some(now);
                if self.config.size_bytes.is_some() || self.config.think_ps.is_some() {
                    (self.sizes, self.thoughts) = (Stream::new(host.random()), Stream::new(host.random()));
                }
                self.open(now, host);
            }
            Event::Timer => {
                if self.end.is_none() && self.last_moment().is_some_and(|end| end <= now) {
                    return self.stop(now, host);
                }
                let due: Vec<SocketId> =
                    self.thinking.iter().filter(|(_, until)| **until <= now).map(|(socket, _)| *socket).collect();
                for socket in due {
                    self.thinking.remove(&socket);
                    self.begun += 1;
                    self.ask(now, socket, host);
                }
            }
            Event::Connected { socket } => {
                self.from = self.from.or_else(|| host.addresses(socket).map(|(local, _)| local));
                self.ask(now, socket, host);
            }
            Event::Readable { socket } => self.receive(now, socket, host),
            Event::Writable { socket } => {
                let sent = self.connections.get_mut(&socket).map(|connection| connection.send(socket, host));
                if let Some(Err(failure)) = sent {
                    self.fail(now, socket, &failure, host);
                }
            }
            Event::Failed { socket, error } => {
                if let Some(failure) = self.connections.get(&socket).map(|connection| connection.broken(&error)) {
                    self.fail(now, socket, &failure, host);
                }
            }
            Event::Stop => self.stop(now, host),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        self.thinking.values().copied().chain(self.last_moment()).min()
    }

    fn finished(&self) -> bool {
        self.end.is_some()
    }

    fn report(&self, now: Time) -> Value {
        let mut row = FlowReport::new(Some(self.config.flow), Protocol::Http, Role::Client)
            .with_errors(&self.errors)
            .with_round_trips(&self.latencies)
            .with_intervals(&self.intervals);
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(SocketAddr::new(self.config.to, self.config.port).to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.start.map(|_| self.end.unwrap_or(now).as_ps());
        row.packets = Some(self.completed);
        row.bytes = self.bytes;
        let latency = |(name, share): (&str, f64)| Some((name.to_owned(), self.latencies.quantile(share)?));
        row.latency_percentiles_ps = Some(PERCENTILES.into_iter().filter_map(latency).collect());
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::loop_network::LoopNetwork;
    use crate::AppConfig;
    use crate::Chunk;
    use serde_json::json;

    fn client(bytes: u64, count: u64, connections: u32) -> AppConfig {
        let config: AppConfig =
            serde_json::from_value(json!({"kind": "http_client", "to": "10.0.0.2", "port": 80, "flow": 5,
            "bytes": bytes, "count": count, "connections": connections, "interval_ps": 100_000_000_000_u64}))
            .unwrap();
        config.validate().unwrap();
        config
    }

    /// Answers each request (taken to be whatever comes at once) with a fixed text, and ends connections after so
    /// many answers.
    struct Canned {
        answer: &'static [u8],
        answers_left: HashMap<SocketId, u32>,
        answers: u32,
    }

    impl App for Canned {
        fn handle(&mut self, _now: Time, event: Event<'_>, host: &mut dyn Host) {
            match event {
                Event::Start => {
                    host.tcp_listen(80, false).unwrap();
                }
                Event::Accepted { socket, .. } => {
                    self.answers_left.insert(socket, self.answers);
                }
                Event::Readable { socket } => {
                    let received = host.tcp_discard(socket, 1 << 20);
                    let left = self.answers_left.get_mut(&socket).unwrap();
                    if matches!(received, Ok(Some(1..))) && *left > 0 {
                        *left -= 1;
                        host.tcp_send(socket, Chunk::Bytes(self.answer)).unwrap();
                    }
                    if *left == 0 {
                        host.close(socket);
                    }
                }
                _ => {}
            }
        }
        fn deadline(&self) -> Option<Time> {
            None
        }
        fn finished(&self) -> bool {
            false
        }
        fn report(&self, _now: Time) -> Value {
            Value::Null
        }
    }

    fn ask_canned(answer: &'static [u8], answers: u32, segment: usize, config: &AppConfig) -> Value {
        let mut network = LoopNetwork::new(Duration::from_ms(1));
        network.segment(segment);
        network.start_app(1, Box::new(Canned { answer, answers_left: HashMap::new(), answers }));
        let app = network.start(0, config);
        network.run_until(Time::ZERO + Duration::from_secs(20));
        assert!(network.finished(app));
        network.report(app)["flows"][0].clone()
    }

    #[test]
    fn our_server_serves_our_client_over_several_connections() {
        for segment in [3, 1448] {
            let mut network = LoopNetwork::new(Duration::from_ms(1));
            network.segment(segment);
            let server: AppConfig = serde_json::from_value(json!({"kind": "http_server", "port": 80})).unwrap();
            let server = network.start(1, &server);
            let app = network.start(0, &client(10_000, 20, 4));
            network.run_until(Time::ZERO + Duration::from_secs(5));
            assert!(network.finished(app));
            let row = &network.report(app)["flows"][0];
            assert_eq!((&row["packets"], &row["bytes"], &row["errors"]), (&json!(20), &json!(200_000), &json!([])));
            // Request and response take a delay each; nothing else takes time here.
            assert_eq!((&row["rtt_ps"]["count"], &row["rtt_ps"]["max"]), (&json!(20), &json!(2_000_000_000_u64)));
            // The handshake, then five requests one after the other.
            assert_eq!(row["end_ps"], 12_000_000_000_u64);
            assert_eq!(network.report(server)["flows"][0]["packets"], 20);
            assert_eq!(row["intervals"]["bytes"], json!([200_000]));
        }
    }

    #[test]
    fn bodies_in_chunks_and_bodies_ended_by_the_connection_are_read() {
        let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: \
            chunked\r\n\r\n5\r\nhello\r\n7;x\r\n, world\r\n0\r\nT: x\r\n\r\n";
        let until_close = b"HTTP/1.1 200 OK\r\n\r\nhello, world";
        for segment in [1, 9, 1448] {
            for (answer, answers) in [(&chunked[..], 100), (&until_close[..], 1)] {
                let row = ask_canned(answer, answers, segment, &client(12, 3, 1));
                assert_eq!((&row["packets"], &row["bytes"], &row["errors"]), (&json!(3), &json!(36), &json!([])));
            }
        }
    }

    #[test]
    fn a_kept_connection_that_the_server_ends_costs_no_request() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let row = ask_canned(answer, 2, 1448, &client(2, 7, 2));
        assert_eq!((&row["packets"], &row["errors"]), (&json!(7), &json!([])));
    }

    #[test]
    fn answers_that_are_not_what_was_asked_for_are_told() {
        let row = ask_canned(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 100, 1448, &client(2, 3, 1));
        assert_eq!(
            (&row["packets"], &row["errors"]),
            (&json!(3), &json!(["the server answered with status 404 (3 times)"]))
        );
        let row = ask_canned(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 100, 1448, &client(2, 1, 1));
        assert_eq!(row["errors"], json!(["a response had 1 bytes instead of 2"]));
        let row = ask_canned(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na", 1, 1448, &client(9, 2, 1));
        assert_eq!(
            (&row["packets"], &row["errors"]),
            (&json!(0), &json!(["the server ended the connection in the middle of its answer (2 times)"]))
        );
        let row = ask_canned(b"SSH-2.0-OpenSSH\r\n\r\n", 100, 1448, &client(9, 2, 1));
        assert_eq!(row["errors"], json!(["the message's head is malformed: the version is not HTTP/1 (2 times)"]));
    }

    #[test]
    fn a_refused_client_asks_no_more_often_than_it_should() {
        let mut network = LoopNetwork::new(Duration::from_ms(1));
        let app = network.start(0, &client(1, 5, 2));
        network.run_until(Time::ZERO + Duration::from_secs(5));
        assert!(network.finished(app));
        assert_eq!(network.report(app)["flows"][0]["errors"], json!(["connection refused (5 times)"]));
    }

    #[test]
    fn a_client_thinks_between_answers_draws_what_it_asks_for_and_ends_when_its_time_is_up() {
        let config: AppConfig = serde_json::from_value(json!({"kind": "http_client", "to": "10.0.0.2", "port": 80,
            "flow": 5, "size_bytes": {"distribution": "uniform", "low": 100.0, "high": 300.0}, "count": 1_000_000,
            "connections": 4, "think_ps": {"distribution": "constant", "value": 98e9},
            "duration_ps": 10_000_000_000_000_u64, "interval_ps": 100_000_000_000_u64}))
        .unwrap();
        config.validate().unwrap();
        let mut network = LoopNetwork::new(Duration::from_ms(1));
        network.start(1, &serde_json::from_value(json!({"kind": "http_server", "port": 80})).unwrap());
        let app = network.start(0, &config);
        network.run_until(Time::ZERO + Duration::from_secs(11));
        assert!(network.finished(app));
        let row = &network.report(app)["flows"][0];
        // Each of four connections asks every 98 ms of thought and 2 ms of way for 10 s; the first has 2 ms more to
        // connect.
        let requests = row["packets"].as_u64().unwrap();
        assert!((396..=400).contains(&requests), "{row}");
        // The standard error of a mean of 400 draws is 2.9 bytes.
        let mean = row["bytes"].as_u64().unwrap() / requests;
        assert!((190..=210).contains(&mean), "{mean} bytes");
        assert_eq!(row["end_ps"].as_u64().unwrap() - row["start_ps"].as_u64().unwrap(), 10_000_000_000_000);
        let median = row["latency_percentiles_ps"]["50"].as_u64().unwrap();
        assert!(median.abs_diff(2_000_000_000) < 40_000_000, "{median} ps");
    }
}
