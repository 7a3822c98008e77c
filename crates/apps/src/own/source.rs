//! The end of an own application at which its flow begins.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use super::{check_name, send, start, told, unknown, Behaviour, Told};
use crate::account::errors::ErrorTally;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{check_port, ConfigError};
use crate::{App, Event, Host, SocketId};

/// The task of the end at which a flow begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnSourceConfig {
    /// The address of the other end.
    pub to: IpAddr,
    /// The port of the other end.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// The name under which the application was brought along.
    pub code: String,
    /// Its settings, a JSON object.
    pub settings: String,
    /// Differentiated services code point, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    pub dscp: Option<u8>,
    /// When it ends at the latest.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub duration_ps: Option<u64>,
}

impl OwnSourceConfig {
    pub(crate) const KIND: &'static str = "own_source";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        crate::check::check_range(Self::KIND, "dscp", self.dscp.unwrap_or(0), 0, 63)?;
        crate::check::check_range(Self::KIND, "duration_ps", self.duration_ps.unwrap_or(1), 1, u64::MAX / 2)?;
        check_name(Self::KIND, &self.code)
    }
}

/// The app.
pub struct OwnSource {
    config: OwnSourceConfig,
    behaviour: Option<Box<dyn Behaviour>>,
    socket: Option<SocketId>,
    from: Option<SocketAddr>,
    begun: Option<Time>,
    ended: Option<Time>,
    wake: Option<Time>,
    packets: u64,
    bytes: u64,
    finished: bool,
    errors: ErrorTally,
}

impl OwnSource {
    /// An app that does what `config` says.
    #[must_use]
    pub fn new(config: OwnSourceConfig) -> Self {
        Self {
            behaviour: start(&config.code, &config.settings),
            config,
            socket: None,
            from: None,
            begun: None,
            ended: None,
            wake: None,
            packets: 0,
            bytes: 0,
            finished: false,
            errors: ErrorTally::default(),
        }
    }

    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        self.begun = Some(now);
        if self.behaviour.is_none() {
            self.errors.add(unknown(&self.config.code));
            self.finished = true;
            return;
        }
        let bound = host.udp_bind(0, self.config.to.is_ipv6()).and_then(|socket| {
            self.config.dscp.map_or(Ok(()), |dscp| host.set_dscp(socket, dscp))?;
            Ok(socket)
        });
        match bound {
            Ok(socket) => {
                self.socket = Some(socket);
                self.from = host.addresses(socket).map(|(local, _)| local);
                let seed = host.random();
                self.tell(now, &Told::Start { sends: true, tcp: false, seed }, host);
            }
            Err(error) => {
                self.errors.add(error);
                self.finished = true;
            }
        }
    }

    fn tell(&mut self, now: Time, told: &Told<'_>, host: &mut dyn Host) {
        let (Some(behaviour), Some(socket)) = (&mut self.behaviour, self.socket) else { return };
        let wishes = behaviour.tell(now, told);
        let to = SocketAddr::new(self.config.to, self.config.port);
        for datagram in &wishes.datagrams {
            // The header's number wraps, as that of every flow does.
            match send(host, socket, to, (self.packets as u32, self.config.flow, now), datagram) {
                Ok(length) => {
                    self.packets += 1;
                    self.bytes += length as u64;
                    self.ended = Some(now);
                }
                Err(error) => self.errors.add(error),
            }
        }
        if let Some(why) = wishes.failed {
            self.errors.add(why);
        }
        self.wake = wishes.wake;
        self.finished |= wishes.finished;
    }

    fn end(&mut self, now: Time, host: &mut dyn Host) {
        self.tell(now, &Told::Stop, host);
        self.finished = true;
    }

    fn last_moment(&self) -> Option<Time> {
        Some(self.begun? + Duration::from_ps(self.config.duration_ps?))
    }
}

impl App for OwnSource {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        // What comes after the end is not answered.
        if self.finished {
            return;
        }
        match event {
            Event::Start => self.begin(now, host),
            Event::Timer if self.last_moment().is_some_and(|last| now >= last) => self.end(now, host),
            Event::Timer if self.wake.is_some_and(|wake| now >= wake) => self.tell(now, &Told::Timer, host),
            Event::Stop => self.end(now, host),
            Event::Datagram { bytes, length, .. } => {
                if let Some(told) = told(bytes, length) {
                    self.tell(now, &told, host);
                }
            }
            Event::Overflowed { datagrams, .. } => {
                self.errors.add_many("the host threw datagrams away before they were read", datagrams);
            }
            Event::Returned { error, datagrams, .. } => self.errors.add_many(error, datagrams),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        match (self.wake, self.last_moment()) {
            (Some(wake), Some(last)) => Some(wake.min(last)),
            (one, other) => one.or(other),
        }
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn report(&self, _now: Time) -> Value {
        let mut row = FlowReport::new(Some(self.config.flow), Protocol::Udp, Role::Source).with_errors(&self.errors);
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(SocketAddr::new(self.config.to, self.config.port).to_string());
        row.start_ps = self.begun.map(Time::as_ps);
        row.end_ps = self.ended.or(self.begun).map(Time::as_ps);
        row.packets = Some(self.packets);
        row.bytes = self.bytes;
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{register, Wishes};
    use super::*;
    use crate::loop_network::{app, LoopNetwork};
    use serde_json::json;

    /// Sends what it was told in the settings, and again when an answer comes; the other end answers.
    struct Echo {
        say: Vec<u8>,
        sends: bool,
    }

    impl Behaviour for Echo {
        fn tell(&mut self, now: Time, told: &Told<'_>) -> Wishes {
            let mut wishes = Wishes { wake: Some(now + Duration::from_secs(9)), ..Wishes::default() };
            match told {
                Told::Start { sends, .. } => {
                    self.sends = *sends;
                    if *sends {
                        wishes.datagrams.push((self.say.clone(), 100));
                    }
                }
                Told::Datagram { bytes, length, sent, .. } => {
                    assert_eq!((*bytes, *length), (&self.say[..], 100));
                    assert_eq!(sent.map(|sent| now - sent), Some(Duration::from_ms(5)));
                    wishes.datagrams.push((self.say.clone(), 100));
                }
                Told::Timer | Told::Stop | Told::Connection(_) => {}
            }
            wishes
        }
    }

    fn network() -> LoopNetwork {
        register("echo", Arc::new(|settings| Box::new(Echo { say: settings.as_bytes().to_vec(), sends: false })));
        LoopNetwork::new(Duration::from_ms(5))
    }

    #[test]
    fn both_ends_are_told_what_the_other_wrote_and_what_arrives_is_counted() {
        let mut network = network();
        let sink = network.start(
            1,
            &app(json!({"kind": "own_sink", "port": 5010, "code": "echo", "settings": "{}",
                        "interval_ps": 1_000_000_000_000_u64})),
        );
        let source = network.start(
            0,
            &app(json!({"kind": "own_source", "to": "10.0.0.2", "port": 5010, "flow": 3, "code": "echo",
                        "settings": "{}", "duration_ps": 95_000_000_000_u64})),
        );
        network.run_until(Time::ZERO + Duration::from_secs(1));
        // One at the start and one for each round trip of 10 ms that ends within 95 ms.
        let sent = &network.report(source)["flows"][0];
        assert_eq!((&sent["packets"], &sent["bytes"], &sent["errors"]), (&json!(10), &json!(1000), &json!([])));
        let arrived = &network.report(sink)["flows"][0];
        assert_eq!((&arrived["packets"], &arrived["lost"], &arrived["flow"]), (&json!(10), &json!(0), &json!(3)));
        assert_eq!(arrived["delay_ps"]["mean"], json!(5e9));
    }

    #[test]
    fn an_application_that_is_not_there_is_told_in_the_report() {
        let mut network = network();
        let source = network.start(
            0,
            &app(json!({"kind": "own_source", "to": "10.0.0.2", "port": 5010, "flow": 3, "code": "none",
                        "settings": "{}"})),
        );
        let error = network.report(source)["flows"][0]["errors"][0].to_string();
        assert!(error.contains("not known in this process"), "{error}");
    }
}
