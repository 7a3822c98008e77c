//! A viewer of video in segments over HTTP, as DASH and HLS have it: segments of one length, each at a rate of a
//! ladder.
//!
//! Segments are fetched one after the other over one kept connection, as `/bytes/N` with N the rate times the
//! length. The viewer asks as long as less than its buffer's size waits. The rate of the next segment is the
//! highest that is at most a share of the harmonic mean of the last throughputs (Jiang, Sekar and Zhang, *Improving
//! fairness, efficiency, and stability in HTTP-based adaptive video streaming with FESTIVE*, CoNEXT 2012, whose
//! stability and fairness rules are left out); the lowest before anything is known.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::errors::ErrorTally;
use crate::account::intervals::IntervalCounter;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{check_interval, check_port, check_range, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS};
use crate::http::connection::{Connection, Failure};
use crate::http::playback::Playback;
use crate::{App, Event, Host, SocketId, Summary};

const SECOND_PS: u64 = 1_000_000_000_000;
const SHORTEST_SEGMENT_PS: u64 = SECOND_PS / 10;
const LONGEST_SEGMENT_PS: u64 = 60 * SECOND_PS;
const LARGEST_BUFFER_PS: u64 = 3600 * SECOND_PS;
const LONGEST_SESSION_PS: u64 = 100_000 * SECOND_PS;
const MOST_RATES: usize = 32;
const RATES_BPS: (u64, u64) = (8_000, 10_000_000_000);
/// Throughputs that the choice looks back on, as in FESTIVE.
const REMEMBERED: usize = 20;
/// The share of the expected throughput that a rate may have, as in FESTIVE.
const CAUTION: f64 = 0.85;
/// The time to wait before another connection after one that failed.
const RETRY: Duration = Duration::from_secs(1);

/// The task of a viewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VideoClientConfig {
    /// The server.
    pub to: IpAddr,
    /// Its port.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// The rates that there are, in bits per second, each above the one before: 1 to 32. One alone is always taken.
    #[schemars(length(min = 1, max = MOST_RATES), inner(range(min = RATES_BPS.0, max = RATES_BPS.1)))]
    pub ladder_bps: Vec<u64>,
    /// The length of a segment: 0.1 s to 60 s.
    #[schemars(range(min = SHORTEST_SEGMENT_PS, max = LONGEST_SEGMENT_PS))]
    pub segment_ps: u64,
    /// The most media that waits: at least two segments.
    #[schemars(range(min = 2 * SHORTEST_SEGMENT_PS, max = LARGEST_BUFFER_PS))]
    pub buffer_ps: u64,
    /// The media needed to begin to play, and to go on after standing still: at most the buffer.
    #[schemars(range(min = 1, max = LARGEST_BUFFER_PS))]
    pub needed_ps: u64,
    /// The duration of the session.
    #[schemars(range(min = 1, max = LONGEST_SESSION_PS))]
    pub duration_ps: u64,
    /// The interval of counting.
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    pub interval_ps: u64,
}

impl VideoClientConfig {
    pub(crate) const KIND: &'static str = "video_client";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let kind = Self::KIND;
        check_port(kind, self.port)?;
        check_range(kind, "ladder_bps (how many rates)", self.ladder_bps.len(), 1, MOST_RATES)?;
        let mut least = RATES_BPS.0;
        for rate in &self.ladder_bps {
            check_range(kind, "ladder_bps", *rate, least, RATES_BPS.1)?;
            least = rate + 1;
        }
        check_range(kind, "segment_ps", self.segment_ps, SHORTEST_SEGMENT_PS, LONGEST_SEGMENT_PS)?;
        check_range(kind, "buffer_ps", self.buffer_ps, 2 * self.segment_ps, LARGEST_BUFFER_PS)?;
        check_range(kind, "needed_ps", self.needed_ps, 1, self.buffer_ps)?;
        check_range(kind, "duration_ps", self.duration_ps, 1, LONGEST_SESSION_PS)?;
        check_interval(kind, self.interval_ps)
    }

    fn segment_bytes(&self, rung: usize) -> u64 {
        let bits = u128::from(self.ladder_bps[rung]) * u128::from(self.segment_ps) / u128::from(SECOND_PS);
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }
}

/// The app.
pub struct VideoClient {
    config: VideoClientConfig,
    connection: Option<(SocketId, Connection)>,
    from: Option<SocketAddr>,
    start: Option<Time>,
    end: Option<Time>,
    playback: Option<Playback>,
    /// The place in the ladder of the segment that is being fetched.
    rung: usize,
    /// The last throughputs in bits per second.
    throughputs: VecDeque<f64>,
    /// The time when the next thing is to be done: a request that waits for room, or another connection.
    due: Option<Time>,
    segments: u64,
    bytes: u64,
    fetches: Summary,
    intervals: IntervalCounter,
    errors: ErrorTally,
}

impl VideoClient {
    /// A viewer that does what `config` says.
    #[must_use]
    pub fn new(config: VideoClientConfig) -> Self {
        Self {
            intervals: IntervalCounter::of_bytes(Duration::from_ps(config.interval_ps)),
            config,
            connection: None,
            from: None,
            start: None,
            end: None,
            playback: None,
            rung: 0,
            throughputs: VecDeque::new(),
            due: None,
            segments: 0,
            bytes: 0,
            fetches: Summary::default(),
            errors: ErrorTally::default(),
        }
    }

    fn server(&self) -> SocketAddr {
        SocketAddr::new(self.config.to, self.config.port)
    }

    fn connect(&mut self, now: Time, host: &mut dyn Host) {
        match host.tcp_connect(self.server()) {
            Ok(socket) => self.connection = Some((socket, Connection::new(now))),
            Err(error) => {
                self.errors.add(error);
                self.due = Some(now + RETRY);
            }
        }
    }

    /// Asks for the next segment, or waits until there is room for it.
    fn ask(&mut self, now: Time, host: &mut dyn Host) {
        let (segment, most) = (self.config.segment_ps, self.config.buffer_ps);
        let waiting = self.playback.as_mut().map_or(0, |playback| playback.waiting(now).as_ps());
        if waiting + segment > most {
            self.due = Some(now + Duration::from_ps(waiting + segment - most));
            return;
        }
        self.rung = self.choice();
        let (server, bytes) = (self.server(), self.config.segment_bytes(self.rung));
        let Some((socket, connection)) = &mut self.connection else { return self.connect(now, host) };
        if let Err(failure) = connection.ask(now, *socket, server, bytes, host) {
            self.fail(now, &failure, host);
        }
    }

    /// The place in the ladder of the next segment.
    #[allow(clippy::cast_precision_loss)]
    fn choice(&self) -> usize {
        let sum: f64 = self.throughputs.iter().map(|rate| 1.0 / rate).sum();
        let expected = if self.throughputs.is_empty() { 0.0 } else { self.throughputs.len() as f64 / sum };
        self.config.ladder_bps.iter().rposition(|rate| *rate as f64 <= CAUTION * expected).unwrap_or(0)
    }

    fn receive(&mut self, now: Time, host: &mut dyn Host) {
        let Some((socket, connection)) = &mut self.connection else { return };
        let (bytes, read) = connection.receive(*socket, host);
        if bytes > 0 {
            self.bytes += bytes;
            self.intervals.add(now, bytes);
        }
        match read {
            Ok(true) => self.complete(now, host),
            Ok(false) => {}
            Err(failure) => self.fail(now, &failure, host),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn complete(&mut self, now: Time, host: &mut dyn Host) {
        let Some((socket, connection)) = &mut self.connection else { return };
        let (took, fault) = (now.since(connection.asked), connection.fault());
        let (socket, usable) = (*socket, connection.is_usable());
        connection.reused = true;
        if !usable {
            host.close(socket);
            self.connection = None;
        }
        if let Some(fault) = fault {
            self.errors.add(fault);
            self.due = Some(now + RETRY);
            return;
        }
        self.segments += 1;
        self.fetches.add(took.as_ps());
        self.throughputs.push_back(self.config.segment_bytes(self.rung) as f64 * 8.0 / took.as_secs_f64().max(1e-9));
        if self.throughputs.len() > REMEMBERED {
            self.throughputs.pop_front();
        }
        if let Some(playback) = &mut self.playback {
            playback.add(now, self.rung);
        }
        self.ask(now, host);
    }

    /// The connection is over: a kept one that the server ended while nothing was asked is made again at once.
    fn fail(&mut self, now: Time, failure: &Failure, host: &mut dyn Host) {
        if let Some((socket, _)) = self.connection.take() {
            host.close(socket);
        }
        match failure {
            Failure::Stale if self.due.is_some() => {}
            Failure::Stale => self.connect(now, host),
            Failure::Lost(why) => {
                self.errors.add(why);
                self.due = Some(now + RETRY);
            }
        }
    }

    fn stop(&mut self, now: Time, host: &mut dyn Host) {
        if let Some((socket, _)) = self.connection.take() {
            host.close(socket);
        }
        self.due = None;
        self.end.get_or_insert(now);
    }

    fn last_moment(&self) -> Option<Time> {
        Some(self.start? + Duration::from_ps(self.config.duration_ps))
    }

    fn is_own(&self, socket: SocketId) -> bool {
        self.connection.as_ref().is_some_and(|(own, _)| *own == socket)
    }
}

impl App for VideoClient {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.start = Some(now);
                let (segment, needed) = (self.config.segment_ps, self.config.needed_ps);
                let ladder = self.config.ladder_bps.clone();
                self.playback = Some(Playback::new(ladder, Duration::from_ps(segment), Duration::from_ps(needed), now));
                self.connect(now, host);
            }
            Event::Timer => {
                if self.end.is_none() && self.last_moment().is_some_and(|end| end <= now) {
                    return self.stop(now, host);
                }
                if self.due.is_some_and(|due| due <= now) {
                    self.due = None;
                    self.ask(now, host);
                }
            }
            Event::Connected { socket } if self.is_own(socket) => {
                self.from = self.from.or_else(|| host.addresses(socket).map(|(local, _)| local));
                self.ask(now, host);
            }
            Event::Readable { socket } if self.is_own(socket) => self.receive(now, host),
            Event::Writable { socket } if self.is_own(socket) => {
                let sent = self.connection.as_mut().map(|(own, connection)| connection.send(*own, host));
                if let Some(Err(failure)) = sent {
                    self.fail(now, &failure, host);
                }
            }
            Event::Failed { socket, error } if self.is_own(socket) => {
                if let Some(failure) = self.connection.as_ref().map(|(_, connection)| connection.broken(&error)) {
                    self.fail(now, &failure, host);
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
        self.due.into_iter().chain(self.last_moment()).min()
    }

    fn finished(&self) -> bool {
        self.end.is_some()
    }

    fn report(&self, now: Time) -> Value {
        let until = self.end.unwrap_or(now);
        let mut row = FlowReport::new(Some(self.config.flow), Protocol::Http, Role::Client)
            .with_errors(&self.errors)
            .with_round_trips(&self.fetches)
            .with_intervals(&self.intervals);
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(self.server().to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.start.map(|_| until.as_ps());
        row.packets = Some(self.segments);
        row.bytes = self.bytes;
        row.video = self.playback.as_ref().map(|playback| playback.report(until));
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::loop_network::LoopNetwork;
    use crate::AppConfig;

    fn viewer(ladder: &[u64], buffer_s: u64) -> Value {
        json!({"kind": "video_client", "to": "10.0.0.2", "port": 80, "flow": 5, "ladder_bps": ladder,
            "segment_ps": 2 * SECOND_PS, "buffer_ps": buffer_s * SECOND_PS, "needed_ps": 2 * SECOND_PS,
            "duration_ps": 20 * SECOND_PS, "interval_ps": SECOND_PS})
    }

    fn read(value: Value) -> Result<AppConfig, String> {
        let config: AppConfig = serde_json::from_value(value).map_err(|error| error.to_string())?;
        config.validate().map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn a_viewer_on_a_fast_way_climbs_the_ladder_fills_its_buffer_and_never_stands_still() {
        let mut network = LoopNetwork::new(Duration::from_ms(1));
        network.start(1, &read(json!({"kind": "http_server", "port": 80})).unwrap());
        let app = network.start(0, &read(viewer(&[500_000, 1_000_000], 10)).unwrap());
        network.run_until(Time::ZERO + Duration::from_secs(21));
        assert!(network.finished(app));
        let row = &network.report(app)["flows"][0];
        let video = &row["video"];
        assert_eq!((video["stalls"].as_u64(), video["switches"].as_u64()), (Some(0), Some(1)), "{row}");
        // Five segments at once, and one for each two seconds that are played: 5 + 9 or 10.
        assert!((14..=15).contains(&row["packets"].as_u64().unwrap()), "{row}");
        assert!(video["startup_ps"].as_u64().unwrap() < SECOND_PS / 10);
        assert!(video["played_ps"].as_u64().unwrap() > 19 * SECOND_PS);
        // The first segment was the lowest: 2 s of nearly 20.
        let rate = video["rate_bps"].as_f64().unwrap();
        assert!((940_000.0..960_000.0).contains(&rate), "{rate}");
        assert_eq!(row["errors"], json!([]));
    }

    #[test]
    fn a_viewer_without_a_server_tells_that_and_tries_each_second() {
        let mut network = LoopNetwork::new(Duration::from_ms(1));
        let app = network.start(0, &read(viewer(&[500_000], 10)).unwrap());
        network.run_until(Time::ZERO + Duration::from_secs(21));
        let row = &network.report(app)["flows"][0];
        assert!(network.finished(app));
        assert_eq!((row["packets"].as_u64(), row["video"]["played_ps"].as_u64()), (Some(0), Some(0)));
        assert!(!row["errors"].as_array().unwrap().is_empty(), "{row}");
    }

    #[test]
    fn sessions_that_cannot_be_are_refused_with_the_field() {
        let refusal = |change: &dyn Fn(&mut Value)| {
            let mut value = viewer(&[500_000, 1_000_000], 10);
            change(&mut value);
            read(value).unwrap_err()
        };
        assert!(refusal(&|value| value["ladder_bps"] = json!([])).contains("how many rates"));
        assert!(refusal(&|value| value["ladder_bps"] = json!([2_000_000, 1_000_000])).contains("ladder_bps"));
        assert!(refusal(&|value| value["segment_ps"] = json!(1)).contains("segment_ps"));
        assert!(refusal(&|value| value["buffer_ps"] = json!(SECOND_PS)).contains("buffer_ps"));
        assert!(refusal(&|value| value["needed_ps"] = json!(11 * SECOND_PS)).contains("needed_ps"));
    }
}
