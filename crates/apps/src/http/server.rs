//! An HTTP/1.1 server of bytes: `GET /bytes/N` answers with N of them.
//!
//! It keeps connections, answers `HEAD`, and refuses the rest as RFC 9110 says: 400 for what it cannot read, 404
//! for other paths, 405 for other methods, 431 for a head of more than 8 KiB. Bodies of requests are not read:
//! their connection ends with the answer.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::Time;

use crate::account::errors::ErrorTally;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{check_congestion_control, check_port, ConfigError};
use crate::http::head::{parse_request, HeadError, RequestHead, MOST_HEAD};
use crate::{listen, App, Chunk, Event, Host, HostError, SocketId};

/// Connections at once; more are closed and told as an error.
const MOST_CONNECTIONS: usize = 16_384;

/// The task of an HTTP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpServerConfig {
    /// The port to listen on.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The congestion control of its connections; the host's own where it is not given.
    #[serde(default)]
    pub congestion_control: Option<String>,
}

impl HttpServerConfig {
    pub(crate) const KIND: &'static str = "http_server";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_congestion_control(Self::KIND, self.congestion_control.as_deref())?;
        check_port(Self::KIND, self.port)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waits for a request's head.
    Head,
    /// Sends the response; `body` bytes of filler follow what is in `unsent`.
    Sending { body: u64, keep: bool },
    /// Everything is sent and our half ended: what the client still sends is thrown away, so that it reads our
    /// answer rather than a reset.
    Draining,
}

/// One connection.
struct Connection {
    phase: Phase,
    received: Vec<u8>,
    unsent: Vec<u8>,
}

/// The result of one call of a connection.
#[derive(Default)]
struct Done {
    responses: u64,
    bytes: u64,
    closed: bool,
}

impl Connection {
    /// Sends and receives as far as it goes.
    fn drive(&mut self, socket: SocketId, host: &mut dyn Host, done: &mut Done) -> Result<(), HostError> {
        loop {
            let goes_on = match self.phase {
                Phase::Sending { body, keep } => self.send(socket, host, body, keep, done)?,
                Phase::Head => self.receive(socket, host, done)?,
                Phase::Draining => match host.tcp_discard(socket, 1 << 16)? {
                    None => false,
                    Some(0) => {
                        done.closed = true;
                        false
                    }
                    Some(_) => true,
                },
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    fn send(
        &mut self,
        socket: SocketId,
        host: &mut dyn Host,
        body: u64,
        keep: bool,
        done: &mut Done,
    ) -> Result<bool, HostError> {
        if !self.unsent.is_empty() {
            let taken = host.tcp_send(socket, Chunk::Bytes(&self.unsent))?;
            self.unsent.drain(..usize::try_from(taken).unwrap_or(usize::MAX).min(self.unsent.len()));
            return Ok(self.unsent.is_empty());
        }
        if body > 0 {
            let taken = host.tcp_send(socket, Chunk::Filler(body))?;
            done.bytes += taken;
            self.phase = Phase::Sending { body: body - taken, keep };
            return Ok(taken == body);
        }
        done.responses += 1;
        if keep {
            self.phase = Phase::Head;
        } else {
            host.tcp_finish(socket);
            self.phase = Phase::Draining;
        }
        Ok(true)
    }

    fn receive(&mut self, socket: SocketId, host: &mut dyn Host, done: &mut Done) -> Result<bool, HostError> {
        if !self.received.is_empty() {
            match parse_request(&self.received) {
                Ok(Some((head, length))) => {
                    self.received.drain(..length);
                    self.answer(&head);
                    return Ok(true);
                }
                Ok(None) => {}
                Err(HeadError::TooLarge) => {
                    self.refuse("431 Request Header Fields Too Large", "", "", false);
                    return Ok(true);
                }
                Err(HeadError::Malformed(why)) => {
                    self.refuse("400 Bad Request", why, "", false);
                    return Ok(true);
                }
            }
        }
        let mut buffer = [0; 4096];
        let room = buffer.len().min(MOST_HEAD.saturating_sub(self.received.len()).max(1));
        match host.tcp_receive(socket, &mut buffer[..room])? {
            None => Ok(false),
            Some(0) => {
                done.closed = true;
                Ok(false)
            }
            Some(length) => {
                self.received.extend_from_slice(&buffer[..length]);
                Ok(true)
            }
        }
    }

    fn answer(&mut self, head: &RequestHead) {
        let keep = head.keep_alive && !head.has_body;
        let is_head = head.method == "HEAD";
        if head.method != "GET" && !is_head {
            return self.refuse("405 Method Not Allowed", "only GET and HEAD are served", "Allow: GET, HEAD\r\n", keep);
        }
        let path = head.path.split('?').next().unwrap_or("");
        let digits = path.strip_prefix("/bytes/").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(bytes) = digits.and_then(|digits| digits.parse::<u64>().ok()) else {
            self.refuse("404 Not Found", "only /bytes/N is served, for N bytes", "", keep);
            if is_head {
                self.drop_body();
            }
            return;
        };
        let connection = match (keep, head.old) {
            (false, _) => "Connection: close\r\n",
            (true, true) => "Connection: keep-alive\r\n",
            (true, false) => "",
        };
        let text = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {bytes}\r\n{connection}\r\n"
        );
        self.unsent.extend(text.bytes());
        self.phase = Phase::Sending { body: if is_head { 0 } else { bytes }, keep };
    }

    fn refuse(&mut self, status: &str, why: &str, fields: &str, keep: bool) {
        let connection = if keep { "" } else { "Connection: close\r\n" };
        let body = if why.is_empty() { String::new() } else { format!("{why}\n") };
        let text = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n{fields}{connection}\r\n{body}",
            body.len()
        );
        self.unsent.extend(text.bytes());
        self.phase = Phase::Sending { body: 0, keep };
    }

    /// Leaves only the head of the response that waits: what `HEAD` asked for.
    fn drop_body(&mut self) {
        if let Some(end) = self.unsent.windows(4).position(|four| four == b"\r\n\r\n") {
            self.unsent.truncate(end + 4);
        }
    }
}

/// The app.
pub struct HttpServer {
    config: HttpServerConfig,
    connections: HashMap<SocketId, Connection>,
    start: Option<Time>,
    end: Option<Time>,
    responses: u64,
    bytes: u64,
    errors: ErrorTally,
}

impl HttpServer {
    /// A server that does what `config` says.
    #[must_use]
    pub fn new(config: HttpServerConfig) -> Self {
        Self {
            config,
            connections: HashMap::new(),
            start: None,
            end: None,
            responses: 0,
            bytes: 0,
            errors: ErrorTally::default(),
        }
    }

    fn drive(&mut self, socket: SocketId, host: &mut dyn Host) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let mut done = Done::default();
        let result = connection.drive(socket, host, &mut done);
        self.responses += done.responses;
        self.bytes += done.bytes;
        if let Err(error) = &result {
            self.errors.add(error);
        }
        if done.closed || result.is_err() {
            self.connections.remove(&socket);
            host.close(socket);
        }
    }
}

impl App for HttpServer {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.start = Some(now);
                if let Err(error) = listen::tcp_with(host, self.config.port, self.config.congestion_control.as_deref())
                {
                    self.errors.add(error);
                    self.end = Some(now);
                }
            }
            Event::Accepted { socket, .. } => {
                if self.connections.len() >= MOST_CONNECTIONS {
                    self.errors.add(format!("a connection beyond {MOST_CONNECTIONS} at once was refused"));
                    host.close(socket);
                    return;
                }
                let connection = Connection { phase: Phase::Head, received: Vec::new(), unsent: Vec::new() };
                self.connections.insert(socket, connection);
                self.drive(socket, host);
            }
            Event::Readable { socket } | Event::Writable { socket } => self.drive(socket, host),
            Event::Failed { socket, error } => {
                self.connections.remove(&socket);
                self.errors.add(error);
            }
            Event::Stop => {
                for (socket, _) in self.connections.drain() {
                    host.close(socket);
                }
                self.end = Some(now);
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
        let mut row = FlowReport::new(None, Protocol::Http, Role::Server).with_errors(&self.errors);
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.start.map(|_| self.end.unwrap_or(now).as_ps());
        row.packets = Some(self.responses);
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
    use std::sync::{Arc, Mutex};
    use twinnet_units::Duration;

    /// Sends a text and keeps all that comes back until the server ends the connection, or `most` bytes came.
    struct Telnet {
        text: Vec<u8>,
        heard: Arc<Mutex<Vec<u8>>>,
    }

    impl App for Telnet {
        fn handle(&mut self, _now: Time, event: Event<'_>, host: &mut dyn Host) {
            match event {
                Event::Start => {
                    host.tcp_connect("10.0.0.2:80".parse().unwrap()).unwrap();
                }
                Event::Connected { socket } => {
                    assert_eq!(host.tcp_send(socket, Chunk::Bytes(&self.text)), Ok(self.text.len() as u64));
                }
                Event::Readable { socket } => {
                    let mut buffer = [0; 512];
                    while let Ok(Some(length)) = host.tcp_receive(socket, &mut buffer) {
                        if length == 0 {
                            self.heard.lock().unwrap().extend(b"<end>");
                            host.close(socket);
                            return;
                        }
                        self.heard.lock().unwrap().extend(&buffer[..length]);
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

    fn exchange(text: &[u8], segment: usize) -> (String, Value) {
        let mut network = LoopNetwork::new(Duration::from_us(10));
        network.segment(segment);
        let config: AppConfig = serde_json::from_value(json!({"kind": "http_server", "port": 80})).unwrap();
        let server = network.start(1, &config);
        let heard = Arc::new(Mutex::new(Vec::new()));
        network.start_app(0, Box::new(Telnet { text: text.to_vec(), heard: Arc::clone(&heard) }));
        network.run_until(Time::ZERO + Duration::from_secs(10));
        let text = String::from_utf8(heard.lock().unwrap().clone()).unwrap();
        (text, network.report(server)["flows"][0].clone())
    }

    #[test]
    fn requests_on_a_kept_connection_are_answered_in_turn_however_they_are_cut() {
        let requests = b"GET /bytes/3 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /bytes/7?x HTTP/1.1\r\nHost: a\r\n\r\nGET \
            /bytes/0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        for segment in [1, 7, 1448] {
            let (heard, row) = exchange(requests, segment);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: ";
            assert_eq!(heard, format!("{head}3\r\n\r\n\0\0\0{head}7\r\n\r\n{head}0\r\nConnection: close\r\n\r\n<end>"));
            assert_eq!((&row["packets"], &row["bytes"], &row["errors"]), (&json!(3), &json!(3), &json!([])));
        }
    }

    #[test]
    fn a_client_of_http_1_0_is_kept_only_when_it_asks() {
        let (heard, _) = exchange(b"GET /bytes/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 100);
        assert!(heard.contains("\r\nConnection: keep-alive\r\n") && !heard.ends_with("<end>"), "{heard}");
        let (heard, _) = exchange(b"GET /bytes/1 HTTP/1.0\r\n\r\n", 100);
        assert!(heard.contains("\r\nConnection: close\r\n") && heard.ends_with("<end>"), "{heard}");
    }

    #[test]
    fn what_is_not_served_is_refused_by_its_status() {
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(2 * MOST_HEAD));
        for (text, status, ends) in [
            ("GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found", false),
            ("GET /bytes/ HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found", false),
            ("GET /bytes/99999999999999999999 HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found", false),
            ("DELETE /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n", "405 Method Not Allowed", false),
            ("POST /bytes/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab", "405 Method Not Allowed", true),
            ("nonsense\r\n\r\n", "400 Bad Request", true),
            (&long, "431 Request Header Fields Too Large", true),
        ] {
            let (heard, _) = exchange(text.as_bytes(), 1448);
            assert!(heard.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{text:.40}: {heard}");
            assert_eq!(heard.ends_with("<end>"), ends, "{text:.40}: {heard}");
        }
        let (heard, _) = exchange(b"HEAD /nothing HTTP/1.1\r\nHost: a\r\n\r\n", 1448);
        assert!(heard.starts_with("HTTP/1.1 404 ") && heard.ends_with("\r\n\r\n"), "{heard}");
    }
}
