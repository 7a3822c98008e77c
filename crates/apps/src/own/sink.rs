//! The end of an own application that a flow comes to: it counts as a sink of datagrams does, and may answer.

use std::collections::HashMap;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::Time;

use super::{check_name, send, start, told, unknown, Behaviour, Told};
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::account::samples::MOST_SAMPLES;
use crate::check::{ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS};
use crate::udp::sink::{UdpSink, UdpSinkConfig};
use crate::{App, Event, Host, SocketId};

/// The task of the end that flows come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnSinkConfig {
    /// The port to receive on.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The interval of counting.
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    pub interval_ps: u64,
    /// Packets of each flow to keep and report, at most 1,000,000; none when nothing is said.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_SAMPLES))]
    pub record_packets: Option<u32>,
    /// The path's MTU, 68 to 65,535 bytes: with it network and wire bytes are counted too.
    #[serde(default)]
    #[schemars(range(min = 68, max = 65_535))]
    pub mtu_bytes: Option<u32>,
    /// The name under which the application was brought along.
    pub code: String,
    /// Its settings, a JSON object.
    pub settings: String,
}

impl OwnSinkConfig {
    pub(crate) const KIND: &'static str = "own_sink";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.counting().validate()?;
        check_name(Self::KIND, &self.code)
    }

    fn counting(&self) -> UdpSinkConfig {
        UdpSinkConfig {
            port: self.port,
            interval_ps: self.interval_ps,
            record_packets: self.record_packets,
            mtu_bytes: self.mtu_bytes,
        }
    }
}

/// The app.
pub struct OwnSink {
    counting: UdpSink,
    code: String,
    behaviour: Option<Box<dyn Behaviour>>,
    /// Who sent last, on which socket, and the number of its flow: what is sent without being asked goes there.
    peer: Option<(SocketId, SocketAddr, u32)>,
    /// The answers to each flow so far.
    answers: HashMap<(SocketAddr, u32), u32>,
    wake: Option<Time>,
    errors: Vec<String>,
}

impl OwnSink {
    /// An app that does what `config` says.
    #[must_use]
    pub fn new(config: OwnSinkConfig) -> Self {
        let behaviour = start(&config.code, &config.settings);
        let errors = if behaviour.is_none() { vec![unknown(&config.code)] } else { Vec::new() };
        Self {
            counting: UdpSink::new(config.counting()),
            code: config.code,
            behaviour,
            peer: None,
            answers: HashMap::new(),
            wake: None,
            errors,
        }
    }

    fn tell(&mut self, now: Time, told: &Told<'_>, host: &mut dyn Host) {
        let Some(behaviour) = &mut self.behaviour else { return };
        let wishes = behaviour.tell(now, told);
        self.wake = wishes.wake;
        if let Some(why) = wishes.failed {
            self.note(why);
        }
        for datagram in &wishes.datagrams {
            let Some((socket, to, flow)) = self.peer else {
                self.note(format!("{} sends before anybody is there to send to", self.code));
                return;
            };
            let answers = self.answers.entry((to, flow)).or_default();
            match send(host, socket, to, (*answers, flow, now), datagram) {
                Ok(_) => *answers = answers.wrapping_add(1),
                Err(error) => self.note(error.to_string()),
            }
        }
    }

    fn note(&mut self, error: String) {
        if !self.errors.contains(&error) && self.errors.len() < 100 {
            self.errors.push(error);
        }
    }
}

impl App for OwnSink {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        let told = match &event {
            Event::Start => Some(Told::Start { sends: false, tcp: false, seed: host.random() }),
            Event::Timer if self.wake.is_some_and(|wake| now >= wake) => Some(Told::Timer),
            Event::Stop => Some(Told::Stop),
            Event::Datagram { socket, from, bytes, length, .. } => {
                let told = told(bytes, *length);
                if let Some(Told::Datagram { flow, .. }) = told {
                    self.peer = Some((*socket, *from, flow));
                }
                told
            }
            _ => None,
        };
        if !matches!(event, Event::Timer | Event::Stop) {
            self.counting.handle(now, copy_of(&event), host);
        }
        if let Some(told) = told {
            self.tell(now, &told, host);
        }
        if matches!(event, Event::Stop) {
            self.counting.handle(now, event, host);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.wake
    }

    fn finished(&self) -> bool {
        self.counting.finished()
    }

    fn report(&self, now: Time) -> Value {
        let counted = self.counting.report(now);
        if self.errors.is_empty() {
            return counted;
        }
        let Ok(mut report) = serde_json::from_value::<AppReport>(counted.clone()) else { return counted };
        let mut row = FlowReport::new(None, Protocol::Udp, Role::Sink);
        row.errors.clone_from(&self.errors);
        report.flows.push(row);
        report.into_json()
    }
}

/// The events that the counting sink is told as well; what it does not look at is a timer, which it leaves alone.
fn copy_of<'a>(event: &Event<'a>) -> Event<'a> {
    match event {
        Event::Start => Event::Start,
        Event::Datagram { socket, from, bytes, length, arrived } => {
            Event::Datagram { socket: *socket, from: *from, bytes, length: *length, arrived: *arrived }
        }
        Event::Overflowed { socket, datagrams } => Event::Overflowed { socket: *socket, datagrams: *datagrams },
        Event::Returned { socket, error, datagrams } => {
            Event::Returned { socket: *socket, error: error.clone(), datagrams: *datagrams }
        }
        Event::ClockStepped { by_ns } => Event::ClockStepped { by_ns: *by_ns },
        _ => Event::Timer,
    }
}
