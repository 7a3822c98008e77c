//! Receives TCP streams and counts them by connection.
//!
//! Our own sources announce their flow's number in the first bytes; any other sender, such as iperf, is counted
//! without one.

use std::collections::HashMap;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::errors::ErrorTally;
use crate::account::intervals::IntervalCounter;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{check_interval, check_port, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS};
use crate::tcp::header::{Opening, LENGTH};
use crate::{listen, App, Event, Host, SocketId};

/// Connections that are kept, past ones included; more are refused and told as an error.
const MOST_CONNECTIONS: usize = 16_384;
/// Bytes thrown away at once.
const DISCARD: u64 = 16 << 20;

/// The task of a TCP sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpSinkConfig {
    /// The port to listen on.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The interval of counting.
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    pub interval_ps: u64,
}

impl TcpSinkConfig {
    pub(crate) const KIND: &'static str = "tcp_sink";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_interval(Self::KIND, self.interval_ps)
    }
}

/// One connection, open or past.
struct Connection {
    from: SocketAddr,
    to: Option<SocketAddr>,
    /// The first bytes, while they are needed to tell whose stream it is.
    opening: Vec<u8>,
    judged: bool,
    flow: Option<u32>,
    start: Time,
    end: Option<Time>,
    bytes: u64,
    intervals: IntervalCounter,
    errors: ErrorTally,
}

impl Connection {
    /// Receives what there is; whether the stream has ended.
    fn receive(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) -> bool {
        loop {
            let received = if self.judged {
                host.tcp_discard(socket, DISCARD)
            } else {
                let mut buffer = [0; LENGTH];
                let wanted = LENGTH.saturating_sub(self.opening.len()).max(1);
                let received = host.tcp_receive(socket, &mut buffer[..wanted]);
                if let Ok(Some(length)) = received {
                    self.judge(&buffer[..length]);
                }
                received.map(|length| length.map(|length| length as u64))
            };
            match received {
                Ok(None) => return false,
                Ok(Some(0)) => return true,
                Ok(Some(bytes)) => {
                    self.bytes += bytes;
                    self.intervals.add(now, bytes);
                }
                Err(error) => {
                    self.errors.add(error);
                    return true;
                }
            }
        }
    }

    fn judge(&mut self, received: &[u8]) {
        self.opening.extend_from_slice(received);
        match Opening::of(&self.opening) {
            Opening::Partial => return,
            Opening::Ours(header) => self.flow = Some(header.flow),
            Opening::Foreign => {}
        }
        self.judged = true;
        self.opening = Vec::new();
    }

    fn report(&self, now: Time) -> FlowReport {
        let mut row = FlowReport::new(self.flow, Protocol::Tcp, Role::Sink)
            .with_errors(&self.errors)
            .with_intervals(&self.intervals);
        row.from = Some(self.from.to_string());
        row.to = self.to.map(|to| to.to_string());
        row.start_ps = Some(self.start.as_ps());
        row.end_ps = Some(self.end.unwrap_or(now).as_ps());
        row.bytes = self.bytes;
        row
    }
}

/// The app.
pub struct TcpSink {
    config: TcpSinkConfig,
    connections: Vec<Connection>,
    open: HashMap<SocketId, usize>,
    finished: bool,
    errors: ErrorTally,
}

impl TcpSink {
    /// A sink that does what `config` says.
    #[must_use]
    pub fn new(config: TcpSinkConfig) -> Self {
        Self { config, connections: Vec::new(), open: HashMap::new(), finished: false, errors: ErrorTally::default() }
    }

    fn accept(&mut self, now: Time, socket: SocketId, peer: SocketAddr, host: &mut dyn Host) {
        if self.connections.len() >= MOST_CONNECTIONS {
            self.errors.add(format!("a connection beyond the first {MOST_CONNECTIONS} was refused"));
            host.close(socket);
            return;
        }
        self.open.insert(socket, self.connections.len());
        self.connections.push(Connection {
            from: peer,
            to: host.addresses(socket).map(|(local, _)| local),
            opening: Vec::new(),
            judged: false,
            flow: None,
            start: now,
            end: None,
            bytes: 0,
            intervals: IntervalCounter::of_bytes(Duration::from_ps(self.config.interval_ps)),
            errors: ErrorTally::default(),
        });
        self.receive(now, socket, host);
    }

    fn receive(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        let Some(connection) = self.open.get(&socket).and_then(|&place| self.connections.get_mut(place)) else {
            return;
        };
        if connection.receive(now, socket, host) {
            connection.end = Some(now);
            self.open.remove(&socket);
            host.close(socket);
        }
    }

    fn stop(&mut self, now: Time, host: &mut dyn Host) {
        let mut sockets: Vec<SocketId> = self.open.keys().copied().collect();
        sockets.sort_unstable();
        for socket in sockets {
            self.receive(now, socket, host);
            if let Some(place) = self.open.remove(&socket) {
                self.connections[place].end = Some(now);
                host.close(socket);
            }
        }
        self.finished = true;
    }
}

impl App for TcpSink {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                if let Err(error) = listen::tcp(host, self.config.port) {
                    self.errors.add(error);
                    self.finished = true;
                }
            }
            Event::Accepted { socket, peer, .. } => self.accept(now, socket, peer, host),
            Event::Readable { socket } => self.receive(now, socket, host),
            Event::Failed { socket, error } => match self.open.remove(&socket) {
                Some(place) => {
                    self.connections[place].errors.add(error);
                    self.connections[place].end = Some(now);
                }
                None => self.errors.add(error),
            },
            Event::Stop => self.stop(now, host),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn finished(&self) -> bool {
        self.finished
    }

    /// Errors that belong to no connection stand in a row without a flow.
    fn report(&self, now: Time) -> Value {
        let flows: Vec<FlowReport> = self.connections.iter().map(|connection| connection.report(now)).collect();
        AppReport::with_errors_apart(flows, Protocol::Tcp, Role::Sink, &self.errors).into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_network::LoopNetwork;
    use crate::{AppConfig, Chunk};
    use serde_json::json;

    /// Sends a text and ends.
    struct Foreign(&'static [u8], bool);

    impl App for Foreign {
        fn handle(&mut self, _now: Time, event: Event<'_>, host: &mut dyn Host) {
            match event {
                Event::Start => {
                    host.tcp_connect("10.0.0.2:5002".parse().unwrap()).unwrap();
                }
                Event::Connected { socket } => {
                    assert_eq!(host.tcp_send(socket, Chunk::Bytes(self.0)), Ok(self.0.len() as u64));
                    host.close(socket);
                    self.1 = true;
                }
                _ => {}
            }
        }
        fn deadline(&self) -> Option<Time> {
            None
        }
        fn finished(&self) -> bool {
            self.1
        }
        fn report(&self, _now: Time) -> Value {
            Value::Null
        }
    }

    #[test]
    fn a_foreign_sender_is_counted_without_a_flow_number() {
        let config: AppConfig =
            serde_json::from_value(json!({"kind": "tcp_sink", "port": 5002, "interval_ps": 1_000_000_000})).unwrap();
        for text in [&b"GET / HTTP/1.0\r\n\r\n"[..], b"twin", b"twinnet!", b"0"] {
            let mut network = LoopNetwork::new(Duration::from_ms(1));
            let sink = network.start(1, &config);
            network.start_app(0, Box::new(Foreign(text, false)));
            network.run_until(Time::ZERO + Duration::from_secs(1));
            let row = &network.report(sink)["flows"][0];
            assert_eq!((row["bytes"].as_u64(), row["flow"].is_null()), (Some(text.len() as u64), true));
            assert_eq!(row["end_ps"], 3_000_000_000_u64);
        }
    }
}
