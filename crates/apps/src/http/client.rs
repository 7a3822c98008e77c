//! An HTTP/1.1 client that fetches `/bytes/N` a number of times over several connections at once, and keeps them.
//!
//! It reads responses of any server: with a length, in chunks, or ended by the connection. A connection that fails costs the request it
//! carried, so a server that refuses all is asked `count` times at most. Only a kept connection that the server ends before the first
//! byte of an answer is no failure: the request is made again on a new one (RFC 9110, 9.2.2).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::errors::ErrorTally;
use crate::account::intervals::IntervalCounter;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{check_interval, check_port, check_range, ConfigError};
use crate::http::chunked::ChunkedReader;
use crate::http::head::{parse_response, BodyEnd};
use crate::{App, Chunk, Event, Host, HostError, SocketId, Summary};

/// Bytes of a body of unknown length that are thrown away at once.
const DISCARD: u64 = 16 << 20;

/// What an HTTP client is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpClientConfig {
    /// The server.
    pub to: IpAddr,
    /// Its port.
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// Bytes to ask for in each request.
    pub bytes: u64,
    /// How many requests.
    pub count: u64,
    /// Over how many connections at once: 1 to 10,000.
    pub connections: u32,
    /// The interval of counting.
    pub interval_ps: u64,
}

impl HttpClientConfig {
    pub(crate) const KIND: &'static str = "http_client";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_range(Self::KIND, "count", self.count, 1, u64::MAX)?;
        check_range(Self::KIND, "connections", self.connections, 1, 10_000)?;
        check_interval(Self::KIND, self.interval_ps)
    }
}

enum Phase {
    Connecting,
    Head,
    Length(u64),
    Chunks(ChunkedReader),
    UntilClose,
}

/// One connection; it always carries a request.
struct Connection {
    phase: Phase,
    asked: Time,
    unsent: Vec<u8>,
    received: Vec<u8>,
    /// Whether it has carried a request before this.
    reused: bool,
    keep_alive: bool,
    status: u16,
    /// Bytes of the present body.
    body: u64,
}

/// How far a connection came.
enum Step {
    /// Nothing more for now.
    Wait,
    /// More may be there.
    Again,
    /// The response is complete.
    Complete,
}

/// Why a request failed.
enum Failure {
    /// The server ended a kept connection before it answered: to be asked again.
    Stale,
    /// For good, with the reason.
    Lost(String),
}

impl Connection {
    fn send(&mut self, socket: SocketId, host: &mut dyn Host) -> Result<(), Failure> {
        while !self.unsent.is_empty() {
            let taken = host.tcp_send(socket, Chunk::Bytes(&self.unsent)).map_err(|error| self.broken(&error))?;
            let taken = usize::try_from(taken).unwrap_or(usize::MAX);
            if taken == 0 {
                break;
            }
            self.unsent.drain(..taken.min(self.unsent.len()));
        }
        Ok(())
    }

    /// Receives once and reads what came; how many bytes of the body, and how far it came.
    fn step(&mut self, socket: SocketId, host: &mut dyn Host) -> Result<(u64, Step), Failure> {
        if !self.received.is_empty() {
            let before = self.received.len();
            let (bytes, complete) = self.read_received()?;
            self.body += bytes;
            if complete {
                return Ok((bytes, Step::Complete));
            }
            if bytes > 0 || self.received.len() < before {
                return Ok((bytes, Step::Again));
            }
        }
        let ahead = match &self.phase {
            Phase::Length(left) => *left,
            Phase::Chunks(reader) => reader.content_ahead(),
            Phase::UntilClose => DISCARD,
            Phase::Connecting | Phase::Head => 0,
        };
        if ahead > 0 {
            return self.discard(socket, host, ahead);
        }
        let mut buffer = [0; 4096];
        match host.tcp_receive(socket, &mut buffer).map_err(|error| self.broken(&error))? {
            None => Ok((0, Step::Wait)),
            Some(0) => Err(self.ended()),
            Some(length) => {
                self.received.extend_from_slice(&buffer[..length]);
                Ok((0, Step::Again))
            }
        }
    }

    /// Throws away content that certainly comes next.
    fn discard(&mut self, socket: SocketId, host: &mut dyn Host, ahead: u64) -> Result<(u64, Step), Failure> {
        let discarded = host.tcp_discard(socket, ahead).map_err(|error| self.broken(&error))?;
        let Some(bytes) = discarded else { return Ok((0, Step::Wait)) };
        self.body += bytes;
        match &mut self.phase {
            Phase::UntilClose if bytes == 0 => return Ok((0, Step::Complete)),
            _ if bytes == 0 => return Err(self.ended()),
            Phase::Length(left) => {
                *left -= bytes.min(*left);
                if *left == 0 {
                    return Ok((bytes, Step::Complete));
                }
            }
            Phase::Chunks(reader) => reader.skip(bytes),
            _ => {}
        }
        Ok((bytes, Step::Again))
    }

    /// Reads from what was received and not thrown away: bytes of the body, and whether the response is complete.
    fn read_received(&mut self) -> Result<(u64, bool), Failure> {
        let (bytes, taken, complete) = match &mut self.phase {
            Phase::Connecting => (0, 0, false),
            Phase::Head => match parse_response(&self.received).map_err(|error| Failure::Lost(error.to_string()))? {
                None => (0, 0, false),
                // "A client MUST be able to parse one or more 1xx responses received prior to a final response" (RFC 9110, 15.2)
                Some((head, length)) if head.status < 200 => (0, length, false),
                Some((head, length)) => {
                    (self.status, self.keep_alive) = (head.status, head.keep_alive);
                    self.phase = match head.body {
                        BodyEnd::Length(bytes) => Phase::Length(bytes),
                        BodyEnd::Chunked => Phase::Chunks(ChunkedReader::new()),
                        BodyEnd::Close => Phase::UntilClose,
                    };
                    (0, length, head.body == BodyEnd::Length(0))
                }
            },
            Phase::Length(left) => {
                let bytes = (*left).min(self.received.len() as u64);
                *left -= bytes;
                (bytes, usize::try_from(bytes).unwrap_or(usize::MAX), *left == 0)
            }
            Phase::Chunks(reader) => {
                let read = reader.read(&self.received).map_err(|error| Failure::Lost(error.to_string()))?;
                (read.0, read.1, reader.is_done())
            }
            Phase::UntilClose => (self.received.len() as u64, self.received.len(), false),
        };
        self.received.drain(..taken);
        Ok((bytes, complete))
    }

    /// What an error of the connection means.
    fn broken(&self, error: &HostError) -> Failure {
        match self.ended() {
            Failure::Stale => Failure::Stale,
            Failure::Lost(_) => Failure::Lost(error.to_string()),
        }
    }

    /// What the end of the connection means in the middle of a response.
    fn ended(&self) -> Failure {
        match self.phase {
            Phase::Head if self.reused && self.received.is_empty() => Failure::Stale,
            Phase::Head if self.received.is_empty() => {
                Failure::Lost("the server ended the connection without an answer".to_owned())
            }
            _ => Failure::Lost("the server ended the connection in the middle of its answer".to_owned()),
        }
    }
}

/// The app.
pub struct HttpClient {
    config: HttpClientConfig,
    connections: HashMap<SocketId, Connection>,
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
            connections: HashMap::new(),
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
        while self.begun < self.config.count && self.connections.len() < self.config.connections as usize {
            self.begun += 1;
            match host.tcp_connect(SocketAddr::new(self.config.to, self.config.port)) {
                Ok(socket) => {
                    let connection = Connection {
                        phase: Phase::Connecting,
                        asked: now,
                        unsent: Vec::new(),
                        received: Vec::new(),
                        reused: false,
                        keep_alive: false,
                        status: 0,
                        body: 0,
                    };
                    self.connections.insert(socket, connection);
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

    /// Sends a request. Its answer is not looked for in the same call: an answer that is quick would seem to have taken no time.
    fn ask(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        let server = SocketAddr::new(self.config.to, self.config.port);
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let request = format!(
            "GET /bytes/{} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: twinnet\r\nAccept: */*\r\n\r\n",
            self.config.bytes
        );
        connection.phase = Phase::Head;
        connection.asked = now;
        connection.body = 0;
        connection.unsent = request.into_bytes();
        if let Err(failure) = connection.send(socket, host) {
            self.fail(now, socket, &failure, host);
        }
    }

    fn receive(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        loop {
            let Some(connection) = self.connections.get_mut(&socket) else { return };
            if matches!(connection.phase, Phase::Connecting) {
                return;
            }
            match connection.step(socket, host) {
                Ok((bytes, step)) => {
                    if bytes > 0 {
                        self.bytes += bytes;
                        self.intervals.add(now, bytes);
                    }
                    match step {
                        Step::Wait => return,
                        Step::Again => {}
                        Step::Complete => return self.complete(now, socket, host),
                    }
                }
                Err(failure) => return self.fail(now, socket, &failure, host),
            }
        }
    }

    fn complete(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        self.completed += 1;
        self.latencies.add(now.since(connection.asked).as_ps());
        if connection.status != 200 {
            self.errors.add(format!("the server answered with status {}", connection.status));
        } else if connection.body != self.config.bytes {
            self.errors.add(format!("a response had {} bytes instead of {}", connection.body, self.config.bytes));
        }
        let usable = connection.keep_alive && connection.received.is_empty();
        if usable && self.begun < self.config.count {
            connection.reused = true;
            self.begun += 1;
            self.ask(now, socket, host);
        } else {
            self.close(now, socket, host);
        }
    }

    fn fail(&mut self, now: Time, socket: SocketId, failure: &Failure, host: &mut dyn Host) {
        match failure {
            Failure::Stale => self.begun -= 1,
            Failure::Lost(why) => self.errors.add(why),
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
                self.open(now, host);
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
            Event::Stop => {
                for (socket, _) in self.connections.drain() {
                    host.close(socket);
                }
                self.end.get_or_insert(now);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
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
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_network::LoopNetwork;
    use crate::AppConfig;
    use serde_json::json;

    fn client(bytes: u64, count: u64, connections: u32) -> AppConfig {
        let config: AppConfig =
            serde_json::from_value(json!({"kind": "http_client", "to": "10.0.0.2", "port": 80, "flow": 5,
            "bytes": bytes, "count": count, "connections": connections, "interval_ps": 100_000_000_000_u64}))
            .unwrap();
        config.validate().unwrap();
        config
    }

    /// Answers each request (taken to be whatever comes at once) with a fixed text, and ends connections after so many answers.
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
        let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x\r\n, world\r\n0\r\nT: x\r\n\r\n";
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
}
