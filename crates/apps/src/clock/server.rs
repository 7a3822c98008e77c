//! Answers [`crate::clock::client`], and keeps what clients found, and of which flows they tell, for those who
//! judge one-way delays and losses.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::Time;

use crate::account::clock_report::ClockReport;
use crate::account::errors::ErrorTally;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{check_port, ConfigError};
use crate::clock::message::{Kind, Message};
use crate::{listen, App, Chunk, Event, Host, SocketId};

/// Clients that are kept; those beyond are answered, but their findings are not kept.
const MOST_CLIENTS: usize = 4096;
/// Flows that are kept; those beyond are told as an error.
const MOST_FLOWS: usize = 4096;

/// The task of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockServerConfig {
    /// The port.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// Whose clock this is.
    pub machine: u64,
}

impl ClockServerConfig {
    pub(crate) const KIND: &'static str = "clock_server";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)
    }
}

/// A flow that a client told of.
#[derive(Clone, Copy)]
struct Told {
    from: SocketAddr,
    flow: u32,
    port: u16,
    /// Datagrams sent; `None` while it lasts.
    packets: Option<u64>,
    /// The comparison of the client's clock when it told.
    clock: Option<ClockReport>,
}

/// The app.
pub struct ClockServer {
    config: ClockServerConfig,
    /// The findings of each client, in the order in which they came.
    found: Vec<(IpAddr, ClockReport)>,
    places: HashMap<IpAddr, usize>,
    /// In the order in which they were told of, and their places by sender and number.
    told: Vec<Told>,
    told_places: HashMap<(SocketAddr, u32), usize>,
    finished: bool,
    errors: ErrorTally,
}

impl ClockServer {
    /// A server that does what `config` says.
    #[must_use]
    pub fn new(config: ClockServerConfig) -> Self {
        Self {
            config,
            found: Vec::new(),
            places: HashMap::new(),
            told: Vec::new(),
            told_places: HashMap::new(),
            finished: false,
            errors: ErrorTally::default(),
        }
    }

    fn hear(
        &mut self,
        socket: SocketId,
        from: SocketAddr,
        message: Message,
        arrived: Time,
        now: Time,
        host: &mut dyn Host,
    ) {
        match message.kind {
            Kind::Request => {
                let times = [message.times[0], arrived.as_ns(), now.as_ns()];
                let reply = Message { kind: Kind::Reply, machine: self.config.machine, times, ..message };
                if let Err(error) = host.udp_send(socket, from, Chunk::Bytes(&reply.emit())) {
                    self.errors.add(error);
                }
            }
            Kind::Found => self.keep(from.ip(), message),
            Kind::Sent => self.keep_flow(from.ip(), message),
            Kind::Reply => {}
        }
    }

    /// Keeps what a client tells of a flow, with the comparison of clocks as it stands then.
    fn keep_flow(&mut self, from: IpAddr, message: Message) {
        let [ports, packets, _] = message.times;
        let (Ok(from_port), Ok(port)) = (u16::try_from(ports >> 16), u16::try_from(ports & 0xffff)) else { return };
        let told = Told {
            from: SocketAddr::new(from, from_port),
            flow: message.sequence,
            port,
            packets: (packets != u64::MAX).then_some(packets),
            clock: self.places.get(&from).map(|&place| self.found[place].1),
        };
        let key = (told.from, told.flow);
        match self.told_places.get(&key) {
            Some(&place) => self.told[place] = told,
            None if self.told.len() < MOST_FLOWS => {
                self.told_places.insert(key, self.told.len());
                self.told.push(told);
            }
            None => self.errors.add(format!("what was told of a flow beyond the first {MOST_FLOWS} was not kept")),
        }
    }

    /// Keeps the latest finding of each client; where they differ, the bound grows by the difference: the clocks drift.
    fn keep(&mut self, from: IpAddr, message: Message) {
        let [offset, bound, _] = message.times;
        let offset_ps = i64::from_be_bytes(offset.to_be_bytes()).saturating_mul(1000);
        let mut report = ClockReport {
            offset_ps,
            bound_ps: bound.saturating_mul(1000),
            same_clock: message.machine == self.config.machine,
            exchanges: message.sequence,
        };
        match self.places.get(&from) {
            Some(&place) => {
                let before = &mut self.found[place].1;
                let drift = before.offset_ps.abs_diff(offset_ps);
                report.bound_ps = report.bound_ps.max(before.bound_ps).saturating_add(drift);
                report.offset_ps = before.offset_ps;
                *before = report;
            }
            None if self.found.len() < MOST_CLIENTS => {
                self.places.insert(from, self.found.len());
                self.found.push((from, report));
            }
            None => self.errors.add(format!("the clock of a client beyond the first {MOST_CLIENTS} was not kept")),
        }
    }
}

impl App for ClockServer {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                if let Err(error) = listen::udp(host, self.config.port) {
                    self.errors.add(error);
                    self.finished = true;
                }
            }
            Event::Datagram { socket, from, bytes, arrived, .. } => {
                if let Some(message) = Message::parse(bytes) {
                    self.hear(socket, from, message, arrived, now, host);
                }
            }
            Event::Stop => self.finished = true,
            Event::Failed { error, .. } => self.errors.add(error),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn report(&self, _now: Time) -> Value {
        let found = self.found.iter().map(|(from, found)| {
            let mut row = FlowReport::new(None, Protocol::Clock, Role::Server);
            row.from = Some(from.to_string());
            row.clock = Some(*found);
            row
        });
        let told = self.told.iter().map(|told| {
            let mut row = FlowReport::new(Some(told.flow), Protocol::Clock, Role::Server);
            let any: IpAddr =
                if told.from.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            row.from = Some(told.from.to_string());
            row.to = Some(SocketAddr::new(any, told.port).to_string());
            row.packets = told.packets;
            row.clock = told.clock;
            row
        });
        let flows: Vec<FlowReport> = found.chain(told).collect();
        AppReport::with_errors_apart(flows, Protocol::Clock, Role::Server, &self.errors).into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_finding_widens_the_bound_by_the_drift() {
        let mut server = ClockServer::new(ClockServerConfig { port: 1, machine: 8 });
        let client: IpAddr = "10.0.0.1".parse().unwrap();
        let found = |offset, bound| Message { kind: Kind::Found, sequence: 20, machine: 7, times: [offset, bound, 0] };
        server.keep(client, found(1_000, 50));
        server.keep(client, found(1_030, 40));
        let kept = server.found[0].1;
        assert_eq!((kept.offset_ps, kept.bound_ps, kept.same_clock), (1_000_000, 80_000, false));
    }
}
