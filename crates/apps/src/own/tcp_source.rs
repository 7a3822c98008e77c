//! The end of an own application over TCP that connects.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use super::connections::{Connections, MOST_NEWS};
use super::{check_name, restless, start, unknown, Act, Behaviour, News, Told};
use crate::account::errors::ErrorTally;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{check_congestion_control, check_port, check_range, ConfigError};
use crate::tcp::source::LINGER;
use crate::{App, Event, Host, HostError, SocketId};

/// The task of the end that connects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnTcpSourceConfig {
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
    /// Differentiated services code point of our segments, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    pub dscp: Option<u8>,
    /// The congestion control; the host's own where it is not given.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// When it ends at the latest.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub duration_ps: Option<u64>,
}

impl OwnTcpSourceConfig {
    pub(crate) const KIND: &'static str = "own_tcp_source";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_range(Self::KIND, "dscp", self.dscp.unwrap_or(0), 0, 63)?;
        check_range(Self::KIND, "duration_ps", self.duration_ps.unwrap_or(1), 1, u64::MAX / 2)?;
        check_congestion_control(Self::KIND, self.congestion_control.as_deref())?;
        check_name(Self::KIND, &self.code)
    }

    fn connect(&self, host: &mut dyn Host) -> Result<SocketId, HostError> {
        let to = SocketAddr::new(self.to, self.port);
        let socket = match self.dscp {
            Some(dscp) => host.tcp_connect_marked(to, dscp)?,
            None => host.tcp_connect(to)?,
        };
        match &self.congestion_control {
            Some(name) => {
                host.set_congestion_control(socket, name).inspect_err(|_| host.close(socket)).map(|()| socket)
            }
            None => Ok(socket),
        }
    }
}

/// The app. It ends when its application does, and the other end has received all that TCP was given: what it has not
/// within [`LINGER`] is told as an error.
pub struct OwnTcpSource {
    config: OwnTcpSourceConfig,
    behaviour: Option<Box<dyn Behaviour>>,
    connections: Connections,
    from: Option<SocketAddr>,
    begun: Option<Time>,
    ended: Option<Time>,
    wake: Option<Time>,
    /// The application is over.
    over: Option<Time>,
    finished: bool,
    errors: ErrorTally,
}

impl OwnTcpSource {
    /// An app that does what `config` says.
    #[must_use]
    pub fn new(config: OwnTcpSourceConfig) -> Self {
        Self {
            behaviour: start(&config.code, &config.settings),
            config,
            connections: Connections::default(),
            from: None,
            begun: None,
            ended: None,
            wake: None,
            over: None,
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
        let seed = host.random();
        self.tell(now, &Told::Start { sends: true, tcp: true, seed }, host);
    }

    fn tell(&mut self, now: Time, told: &Told<'_>, host: &mut dyn Host) {
        let Some(behaviour) = &mut self.behaviour else { return };
        let wishes = behaviour.tell(now, told);
        for act in wishes.acts {
            if let Act::Connect(number) = act {
                self.connections.begin(number, self.config.flow, self.config.connect(host));
            } else {
                self.connections.act(act, host);
            }
        }
        if let Some(why) = wishes.failed {
            self.errors.add(why);
        }
        self.wake = wishes.wake;
        if wishes.finished {
            self.end(now, host);
        }
    }

    /// Tells the application what has happened, and what comes of that.
    fn hear(&mut self, now: Time, host: &mut dyn Host) {
        let mut told = 0;
        while let Some(news) = self.connections.next_news() {
            if self.over.is_some() {
                continue;
            }
            if let News::Lost(_, why) = &news {
                self.errors.add(why);
            }
            self.tell(now, &news.told(), host);
            told += 1;
            if told == MOST_NEWS {
                self.errors.add(restless(&self.config.code));
                self.end(now, host);
            }
        }
        if self.over.is_some() && self.connections.are_closed() {
            self.finished = true;
            self.ended.get_or_insert(now);
        }
    }

    /// The application is over: what TCP was given still goes out.
    fn end(&mut self, now: Time, host: &mut dyn Host) {
        self.over.get_or_insert(now);
        self.wake = None;
        self.connections.finish_all(host);
    }

    fn timer(&mut self, now: Time, host: &mut dyn Host) {
        if let Some(over) = self.over {
            if now >= over + LINGER {
                self.errors.add(format!("the other end did not end a connection within {LINGER}"));
                self.connections.close_all(host);
            }
        } else if self.last_moment().is_some_and(|last| now >= last) {
            self.tell(now, &Told::Stop, host);
            self.end(now, host);
        } else if self.wake.is_some_and(|wake| now >= wake) {
            self.tell(now, &Told::Timer, host);
        }
    }

    fn last_moment(&self) -> Option<Time> {
        Some(self.begun? + Duration::from_ps(self.config.duration_ps?))
    }
}

impl App for OwnTcpSource {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        if self.finished {
            return;
        }
        match event {
            Event::Start => self.begin(now, host),
            Event::Timer => self.timer(now, host),
            Event::Stop => {
                if self.over.is_none() {
                    self.tell(now, &Told::Stop, host);
                    self.end(now, host);
                }
                self.connections.close_all(host);
            }
            Event::Connected { socket } => {
                if self.from.is_none() {
                    self.from = host.addresses(socket).map(|(local, _)| local);
                }
                self.connections.establish(socket, host);
            }
            Event::Readable { socket } => {
                self.connections.readable(socket, host);
            }
            Event::Writable { socket } => self.connections.writable(socket, host),
            Event::Failed { socket, error } => {
                if let Some(error) = self.connections.fail(socket, error) {
                    self.errors.add(error);
                }
            }
            _ => {}
        }
        self.hear(now, host);
    }

    fn deadline(&self) -> Option<Time> {
        if let Some(over) = self.over {
            return Some(over + LINGER);
        }
        self.wake.into_iter().chain(self.last_moment()).min()
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn report(&self, now: Time) -> Value {
        let mut row = FlowReport::new(Some(self.config.flow), Protocol::Tcp, Role::Source).with_errors(&self.errors);
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(SocketAddr::new(self.config.to, self.config.port).to_string());
        row.start_ps = self.begun.map(Time::as_ps);
        row.end_ps = self.begun.map(|_| self.ended.unwrap_or(now).as_ps());
        row.bytes = self.connections.taken;
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

    const SECOND: u64 = 1_000_000_000_000;

    /// Asks for 100 kB by each of three connections in turn, and ends after the last; the other end gives them.
    #[derive(Default)]
    struct Asks {
        sends: bool,
        asked: u32,
        got: usize,
    }

    impl Behaviour for Asks {
        fn tell(&mut self, _now: Time, told: &Told<'_>) -> Wishes {
            let mut wishes = Wishes::default();
            match told {
                Told::Start { sends, .. } => {
                    self.sends = *sends;
                    if *sends {
                        wishes.acts.push(Act::Connect(1));
                    }
                }
                Told::Connection(News::Connected(number, flow)) => {
                    assert_eq!(*flow, 3);
                    if self.sends {
                        self.asked += 1;
                        wishes.acts = vec![Act::Write(*number, b"give".to_vec(), 96), Act::Finish(*number)];
                    }
                }
                Told::Connection(News::Read(number, bytes)) => {
                    self.got += bytes.len();
                    if !self.sends && self.got % 100 == 0 {
                        wishes.acts.push(Act::Write(*number, Vec::new(), 100_000));
                    }
                }
                Told::Connection(News::Drained(number)) if !self.sends => wishes.acts.push(Act::Finish(*number)),
                Told::Connection(News::Ended(_)) if self.sends => {
                    assert_eq!(self.got, 100_000 * self.asked as usize);
                    wishes.finished = self.asked == 3;
                    if self.asked < 3 {
                        wishes.acts.push(Act::Connect(self.asked + 1));
                    }
                }
                Told::Connection(News::Lost(number, _)) => wishes.acts.push(Act::Connect(*number)),
                _ => {}
            }
            wishes
        }
    }

    fn network() -> LoopNetwork {
        register("asks", Arc::new(|_| Box::new(Asks::default())));
        LoopNetwork::new(Duration::from_ms(5))
    }

    fn source(code: &str) -> crate::AppConfig {
        app(json!({"kind": "own_tcp_source", "to": "10.0.0.2", "port": 5010, "flow": 3, "code": code, "settings": "{}",
                   "duration_ps": 9 * SECOND}))
    }

    #[test]
    fn what_both_ends_write_arrives_however_it_is_cut_and_is_counted_by_flow() {
        for segment in [1, 7, 1448] {
            let mut network = network();
            network.segment(segment);
            let sink = network.start(
                1,
                &app(json!({"kind": "own_tcp_sink", "port": 5010, "code": "asks", "settings": "{}",
                            "interval_ps": SECOND})),
            );
            let asks = network.start(0, &source("asks"));
            network.run_until(Time::ZERO + Duration::from_secs(8));
            assert!(network.finished(asks));
            let sent = &network.report(asks)["flows"][0];
            // 12 bytes announce each connection.
            assert_eq!((&sent["bytes"], &sent["errors"]), (&json!(3 * 112), &json!([])));
            let arrived = network.report(sink);
            assert_eq!(arrived["flows"].as_array().map(Vec::len), Some(1));
            let arrived = &arrived["flows"][0];
            assert_eq!(
                (&arrived["bytes"], &arrived["flow"], &arrived["protocol"]),
                (&json!(336), &json!(3), &json!("tcp"))
            );
            // The sink's two listeners are left.
            assert_eq!(network.open_sockets(), 2);
        }
    }

    #[test]
    fn one_that_always_connects_again_at_once_is_told_and_ended_by_its_duration() {
        let mut network = network();
        // Nobody listens: each refusal takes a round trip.
        let asks = network.start(0, &source("asks"));
        network.run_until(Time::ZERO + Duration::from_secs(10));
        assert!(network.finished(asks));
        let sent = &network.report(asks)["flows"][0];
        assert!(sent["errors"][0].as_str().unwrap().starts_with("connection refused ("), "{sent}");
        assert_eq!(network.open_sockets(), 0);
    }

    #[test]
    fn an_application_that_is_not_there_is_told_in_the_report() {
        let mut network = network();
        let nobody = network.start(0, &source("nobody"));
        network.run_until(Time::ZERO + Duration::from_secs(1));
        assert!(network.finished(nobody));
        assert!(network.report(nobody)["flows"][0]["errors"][0].as_str().unwrap().contains("nobody"));
    }
}
