//! Compares this machine's clock with that of a [`crate::clock::server`], and tells the server what it found, or of
//! flows.
//!
//! Of each exchange four times are known: the request's sending (1) and arrival (2), the reply's sending (3) and
//! arrival (4). The other clock less this one is ((2 - 1) + (3 - 4)) / 2, wrong by at most half of the time that
//! both ways took, ((4 - 1) - (3 - 2)) / 2, whatever the two ways' shares of it (Mills, RFC 5905, section 8). The
//! exchange with the shortest round trip counts.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::clock_report::ClockReport;
use crate::account::errors::ErrorTally;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{check_port, check_range, ConfigError};
use crate::clock::message::{Kind, Message};
use crate::{App, Chunk, Event, Host, SocketId};

/// Distance between two requests.
const INTERVAL: Duration = Duration::from_ms(10);
/// The time that the client waits for the reply to its last request.
const PATIENCE: Duration = Duration::from_ms(500);
/// The number of times that the finding is told, since a message may be lost.
const TOLD: u32 = 3;
/// Flows that are told of at once: so many have room in any socket's buffer.
const FLOWS_AT_ONCE: usize = 64;

/// The task of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockClientConfig {
    /// The address of the server.
    pub to: IpAddr,
    /// The port there.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// Whose clock this is: machines of one number have one clock.
    pub machine: u64,
    /// Exchanges, 1 to 1000; 0 to 1000 where there are flows to tell of.
    #[schemars(range(max = 1000))]
    pub exchanges: u32,
    /// Flows that this machine sends by the clock that was compared, to tell the server of; none when nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<ToldFlow>,
}

/// A flow that the server is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToldFlow {
    /// Its number.
    pub flow: u32,
    /// The port that it comes from.
    pub from_port: u16,
    /// The port that it goes to.
    pub port: u16,
    /// Datagrams sent; null while it lasts.
    pub packets: Option<u64>,
}

impl ClockClientConfig {
    pub(crate) const KIND: &'static str = "clock_client";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_range(Self::KIND, "exchanges", self.exchanges, u32::from(self.flows.is_empty()), 1000)
    }
}

/// The app.
pub struct ClockClient {
    config: ClockClientConfig,
    socket: Option<SocketId>,
    start: Option<Time>,
    requests: u32,
    answered: u32,
    told: u32,
    /// Flows told of, each counted as often as it was told.
    flows_told: usize,
    /// The best exchange: its bound in nanoseconds, the offset, and whether the clock is the same.
    best: Option<(u64, i64, bool)>,
    due: Option<Time>,
    finished: bool,
    errors: ErrorTally,
}

impl ClockClient {
    /// A client that does what `config` says.
    #[must_use]
    pub fn new(config: ClockClientConfig) -> Self {
        Self {
            config,
            socket: None,
            start: None,
            requests: 0,
            answered: 0,
            told: 0,
            flows_told: 0,
            best: None,
            due: None,
            finished: false,
            errors: ErrorTally::default(),
        }
    }

    fn send(&mut self, host: &mut dyn Host, kind: Kind, sequence: u32, times: [u64; 3]) {
        let Some(socket) = self.socket else { return };
        let message = Message { kind, sequence, machine: self.config.machine, times };
        let to = SocketAddr::new(self.config.to, self.config.port);
        if let Err(error) = host.udp_send(socket, to, Chunk::Bytes(&message.emit())) {
            self.errors.add(error);
        }
    }

    fn proceed(&mut self, now: Time, host: &mut dyn Host) {
        if self.requests < self.config.exchanges {
            self.requests += 1;
            self.send(host, Kind::Request, self.requests, [now.as_ns(), 0, 0]);
            let last = self.requests == self.config.exchanges;
            self.due = Some(now + if last { PATIENCE } else { INTERVAL });
            return;
        }
        match self.best {
            Some((bound, offset, _)) if self.told < TOLD => {
                self.told += 1;
                self.send(host, Kind::Found, self.requests, [u64::from_be_bytes(offset.to_be_bytes()), bound, 0]);
                self.due = Some(now + INTERVAL);
            }
            _ if self.flows_told < self.config.flows.len() * TOLD as usize => {
                self.tell_of_flows(host);
                self.due = Some(now + INTERVAL);
            }
            _ => self.end(host),
        }
    }

    /// Tells of the next flows.
    fn tell_of_flows(&mut self, host: &mut dyn Host) {
        let count = self.config.flows.len();
        let end = (self.flows_told + FLOWS_AT_ONCE).min(count * TOLD as usize);
        for place in self.flows_told..end {
            let told = self.config.flows[place % count];
            let ports = u64::from(told.from_port) << 16 | u64::from(told.port);
            self.send(host, Kind::Sent, told.flow, [ports, told.packets.unwrap_or(u64::MAX), 0]);
        }
        self.flows_told = end;
    }

    fn end(&mut self, host: &mut dyn Host) {
        if self.best.is_none() && self.config.exchanges > 0 {
            let to = SocketAddr::new(self.config.to, self.config.port);
            self.errors.add(format!("no clock answered at {to}"));
        }
        self.finished = true;
        self.due = None;
        if let Some(socket) = self.socket.take() {
            host.close(socket);
        }
    }

    fn hear(&mut self, bytes: &[u8], arrived: Time, now: Time, host: &mut dyn Host) {
        let Some(Message { kind: Kind::Reply, sequence, machine, times }) = Message::parse(bytes) else { return };
        if sequence == 0 || sequence > self.requests {
            return;
        }
        self.answered += 1;
        let there = i128::from(times[2]) - i128::from(times[1]);
        let both_ways = i128::from(arrived.as_ns()) - i128::from(times[0]) - there;
        let twice = i128::from(times[1]) - i128::from(times[0]) + i128::from(times[2]) - i128::from(arrived.as_ns());
        // A clock that was set in between gives a round trip of no length.
        let (Ok(bound), Ok(offset)) = (u64::try_from(both_ways / 2 + 1), i64::try_from(twice / 2)) else { return };
        let found = if machine == self.config.machine { (0, 0, true) } else { (bound, offset, false) };
        if self.best.is_none_or(|best| found.0 < best.0) {
            self.best = Some(found);
        }
        if sequence == self.config.exchanges {
            self.proceed(now, host);
        }
    }
}

impl App for ClockClient {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.start = Some(now);
                match host.udp_bind(0, self.config.to.is_ipv6()) {
                    Ok(socket) => {
                        self.socket = Some(socket);
                        self.proceed(now, host);
                    }
                    Err(error) => {
                        self.errors.add(error);
                        self.finished = true;
                    }
                }
            }
            Event::Timer => self.proceed(now, host),
            Event::Datagram { bytes, arrived, .. } => self.hear(bytes, arrived, now, host),
            // Nobody listens there: no need to wait for what will not come.
            Event::Returned { .. } if self.answered == 0 => self.end(host),
            Event::Stop => self.end(host),
            Event::Failed { error, .. } => {
                self.errors.add(error);
                self.end(host);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn report(&self, _now: Time) -> Value {
        let mut row = FlowReport::new(None, Protocol::Clock, Role::Client).with_errors(&self.errors);
        row.to = Some(SocketAddr::new(self.config.to, self.config.port).to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.packets = Some(u64::from(self.answered));
        row.clock = self.best.map(|(bound, offset, same_clock)| ClockReport {
            offset_ps: offset.saturating_mul(1000),
            bound_ps: bound.saturating_mul(1000),
            same_clock,
            exchanges: self.answered,
        });
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_network::{app, LoopNetwork};
    use serde_json::json;

    fn compared(machine: u64) -> (Value, Value) {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        let server = network.start(1, &app(json!({"kind": "clock_server", "port": 5009, "machine": 8})));
        let client =
            app(json!({"kind": "clock_client", "to": "10.0.0.2", "port": 5009, "machine": machine, "exchanges": 5}));
        let client = network.start(0, &client);
        network.run_until(Time::ZERO + Duration::from_secs(2));
        assert!(network.finished(client));
        (network.report(client)["flows"][0].clone(), network.report(server)["flows"][0].clone())
    }

    #[test]
    fn the_bound_is_half_the_round_trip_and_the_server_is_told() {
        let (client, server) = compared(7);
        // Both hosts of the test have one clock, which they do not know; each way takes 5 ms.
        assert_eq!(client["clock"]["offset_ps"], 0);
        assert_eq!((&client["clock"]["bound_ps"], &client["packets"]), (&json!(5_000_001_000_u64), &json!(5)));
        assert_eq!(
            (&server["clock"]["bound_ps"], &server["clock"]["same_clock"]),
            (&json!(5_000_001_000_u64), &json!(false))
        );
    }

    #[test]
    fn one_clock_needs_no_estimate() {
        let (client, server) = compared(8);
        assert_eq!((&client["clock"]["bound_ps"], &client["clock"]["same_clock"]), (&json!(0), &json!(true)));
        assert_eq!(server["clock"]["same_clock"], true);
    }

    #[test]
    fn the_server_is_told_of_flows_and_how_much_was_sent_of_them() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        let server = network.start(1, &app(json!({"kind": "clock_server", "port": 5009, "machine": 8})));
        let told =
            |flow, packets: Option<u64>| json!({"flow": flow, "from_port": 4000, "port": 5003, "packets": packets});
        let mut client = json!({"kind": "clock_client", "to": "10.0.0.2", "port": 5009, "machine": 7, "exchanges": 2});
        client["flows"] = json!([told(1, None), told(2, Some(9))]);
        network.start(0, &app(client.clone()));
        network.run_until(Time::ZERO + Duration::from_secs(1));
        // Later without another comparison: the flow has ended.
        client["exchanges"] = json!(0);
        client["flows"] = json!([told(1, Some(12))]);
        let client = network.start(0, &app(client));
        network.run_until(Time::ZERO + Duration::from_secs(2));
        assert_eq!((network.finished(client), &network.report(client)["flows"][0]["errors"]), (true, &json!([])));
        let rows = network.report(server)["flows"].clone();
        let sent: Vec<_> = rows.as_array().unwrap().iter().map(|row| (&row["flow"], &row["packets"])).collect();
        assert_eq!(sent, [(&json!(null), &json!(null)), (&json!(1), &json!(12)), (&json!(2), &json!(9))]);
        assert_eq!((&rows[1]["from"], &rows[1]["to"]), (&json!("10.0.0.1:4000"), &json!("0.0.0.0:5003")));
        assert_eq!(rows[1]["clock"], rows[0]["clock"]);
    }

    #[test]
    fn silence_is_told_and_has_an_end() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        let client = app(json!({"kind": "clock_client", "to": "10.0.0.2", "port": 5009, "machine": 7, "exchanges": 3}));
        let client = network.start(0, &client);
        network.run_until(Time::ZERO + Duration::from_secs(2));
        assert!(network.finished(client));
        assert_eq!(network.report(client)["flows"][0]["errors"], json!(["no clock answered at 10.0.0.2:5009"]));
    }

    #[test]
    fn two_clocks_that_differ_are_told_apart_by_their_difference() {
        let config =
            ClockClientConfig { to: "10.0.0.2".parse().unwrap(), port: 1, machine: 7, exchanges: 2, flows: vec![] };
        let mut client = ClockClient::new(config);
        let mut host = crate::loop_network::RecordingHost::new(1);
        client.handle(Time::from_ns(1_000), Event::Start, &mut host);
        // The other clock is 1 s ahead; the request took 300 ns, the reply 100 ns.
        let reply = |times| Message { kind: Kind::Reply, sequence: 1, machine: 8, times }.emit();
        let ahead = 1_000_000_000;
        client.hear(
            &reply([1_000, ahead + 1_300, ahead + 1_400]),
            Time::from_ns(1_500),
            Time::from_ns(1_600),
            &mut host,
        );
        let (bound, offset, same) = client.best.unwrap();
        assert!((offset - 1_000_000_000).unsigned_abs() <= bound && !same, "{offset} within {bound}");
        assert_eq!((bound, offset), (201, 1_000_000_100));
    }
}
