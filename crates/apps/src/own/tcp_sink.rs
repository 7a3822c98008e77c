//! The end of an own application over TCP that is connected to: it counts what comes, and may answer.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use super::connections::{Connections, Received, MOST_NEWS};
use super::{check_name, restless, start, unknown, Behaviour, News, Told};
use crate::account::errors::ErrorTally;
use crate::account::intervals::IntervalCounter;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{
    check_congestion_control, check_interval, check_port, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS,
};
use crate::{listen, App, Event, Host, SocketId};

/// Flows that are counted; bytes of more are told as an error.
const MOST_FLOWS: usize = 4096;

/// The task of the end that is connected to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnTcpSinkConfig {
    /// The port to listen on.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The interval of counting.
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    pub interval_ps: u64,
    /// The name under which the application was brought along.
    pub code: String,
    /// Its settings, a JSON object.
    pub settings: String,
    /// The congestion control of answers; the host's own where it is not given.
    #[serde(default)]
    pub congestion_control: Option<String>,
}

impl OwnTcpSinkConfig {
    pub(crate) const KIND: &'static str = "own_tcp_sink";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_interval(Self::KIND, self.interval_ps)?;
        check_congestion_control(Self::KIND, self.congestion_control.as_deref())?;
        check_name(Self::KIND, &self.code)
    }
}

/// What came of one flow from one host, over all its connections.
struct Flow {
    number: Option<u32>,
    from: SocketAddr,
    to: SocketAddr,
    start: Time,
    end: Time,
    bytes: u64,
    intervals: IntervalCounter,
}

/// The app.
pub struct OwnTcpSink {
    config: OwnTcpSinkConfig,
    behaviour: Option<Box<dyn Behaviour>>,
    connections: Connections,
    flows: Vec<Flow>,
    wake: Option<Time>,
    finished: bool,
    errors: ErrorTally,
}

impl OwnTcpSink {
    /// An app that does what `config` says.
    #[must_use]
    pub fn new(config: OwnTcpSinkConfig) -> Self {
        Self {
            behaviour: start(&config.code, &config.settings),
            config,
            connections: Connections::default(),
            flows: Vec::new(),
            wake: None,
            finished: false,
            errors: ErrorTally::default(),
        }
    }

    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        if self.behaviour.is_none() {
            self.errors.add(unknown(&self.config.code));
        }
        if let Err(error) = listen::tcp_with(host, self.config.port, self.config.congestion_control.as_deref()) {
            self.errors.add(error);
            self.finished = true;
            return;
        }
        let seed = host.random();
        self.tell(now, &Told::Start { sends: false, tcp: true, seed }, host);
    }

    fn tell(&mut self, now: Time, told: &Told<'_>, host: &mut dyn Host) {
        let Some(behaviour) = &mut self.behaviour else { return };
        let wishes = behaviour.tell(now, told);
        self.wake = wishes.wake;
        if let Some(why) = wishes.failed {
            self.errors.add(why);
        }
        for act in wishes.acts {
            self.connections.act(act, host);
        }
    }

    fn receive(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        if let Some(received) = self.connections.readable(socket, host) {
            self.count(now, received);
        }
    }

    fn count(&mut self, now: Time, received: Received) {
        let same = |flow: &Flow| flow.number == received.flow && flow.from.ip() == received.from.ip();
        let place = self.flows.iter().position(same).unwrap_or(self.flows.len());
        if place == MOST_FLOWS {
            self.errors.add(format!("bytes of a flow beyond the first {MOST_FLOWS} were not counted"));
            return;
        }
        if place == self.flows.len() {
            self.flows.push(Flow {
                number: received.flow,
                from: received.from,
                to: received.to,
                start: now,
                end: now,
                bytes: 0,
                intervals: IntervalCounter::of_bytes(Duration::from_ps(self.config.interval_ps)),
            });
        }
        let flow = &mut self.flows[place];
        flow.end = now;
        flow.bytes += received.bytes;
        flow.intervals.add(now, received.bytes);
    }

    /// Tells the application what has happened, and what comes of that.
    fn hear(&mut self, now: Time, host: &mut dyn Host) {
        for _ in 0..MOST_NEWS {
            let Some(news) = self.connections.next_news() else { return };
            if let News::Lost(_, why) = &news {
                self.errors.add(why);
            }
            self.tell(now, &news.told(), host);
        }
        self.errors.add(restless(&self.config.code));
        self.behaviour = None;
    }
}

impl App for OwnTcpSink {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => self.begin(now, host),
            Event::Timer if self.wake.is_some_and(|wake| now >= wake) => self.tell(now, &Told::Timer, host),
            Event::Accepted { socket, .. } => {
                self.connections.accept(socket, host);
                self.receive(now, socket, host);
            }
            Event::Readable { socket } => self.receive(now, socket, host),
            Event::Writable { socket } => self.connections.writable(socket, host),
            Event::Failed { socket, error } => {
                if let Some(error) = self.connections.fail(socket, error) {
                    self.errors.add(error);
                }
            }
            Event::Stop => {
                self.tell(now, &Told::Stop, host);
                self.connections.close_all(host);
                self.finished = true;
            }
            _ => {}
        }
        self.hear(now, host);
    }

    fn deadline(&self) -> Option<Time> {
        self.wake
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn report(&self, _now: Time) -> Value {
        let flows = self.flows.iter().map(|flow| {
            let mut row = FlowReport::new(flow.number, Protocol::Tcp, Role::Sink).with_intervals(&flow.intervals);
            row.from = Some(flow.from.to_string());
            row.to = Some(flow.to.to_string());
            row.start_ps = Some(flow.start.as_ps());
            row.end_ps = Some(flow.end.as_ps());
            row.bytes = flow.bytes;
            row
        });
        AppReport::with_errors_apart(flows.collect(), Protocol::Tcp, Role::Sink, &self.errors).into_json()
    }
}
