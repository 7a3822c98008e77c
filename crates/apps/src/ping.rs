//! ICMP echo: requests at equal or random distances, of one size or of random ones, and the round trip of each reply.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::column::Column;
use crate::account::errors::ErrorTally;
use crate::account::intervals::IntervalCounter;
use crate::account::pacing::Pacing;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::check::{
    check_dscp, check_interval_of, check_range, exactly_one, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS,
};
use crate::schedule::distribution::Distribution;
use crate::schedule::profile::{Deadlines, Pace, TrafficProfile};
use crate::schedule::sizes::Size;
use crate::{App, Chunk, Event, Host, SocketId, Summary};

/// Type of an ICMP echo request (RFC 792).
const ECHO_REQUEST: u8 = 8;
/// Type of an ICMP echo reply.
const ECHO_REPLY: u8 = 0;
/// Type of an ICMPv6 echo request (RFC 4443).
const ECHO_REQUEST_V6: u8 = 128;
/// Type of an ICMPv6 echo reply.
const ECHO_REPLY_V6: u8 = 129;
/// Bytes of an echo header: type, code, checksum, identifier, sequence number.
const HEADER: usize = 8;
/// Requests whose time is not over: fewer than sequence numbers, so that a reply belongs to one request only.
const MOST_OUTSTANDING: u64 = 30_000;
/// The interval of counting when nothing is said.
const A_SECOND_PS: u64 = 1_000_000_000_000;
/// The largest payload of an echo request over IPv4.
const MOST_PAYLOAD: u32 = 65_499;
/// The longest interval, and the longest time to wait: 1 h.
const LONGEST_PS: u64 = 3_600_000_000_000_000;

/// The task of a ping, free of contradictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "PingFields", into = "PingFields")]
pub struct PingConfig {
    to: IpAddr,
    flow: u32,
    count: u64,
    profile: TrafficProfile,
    /// The distances were asked for as one, not as a distribution.
    interval_ps: Option<u64>,
    dscp: Option<u8>,
    timeout_ps: u64,
    count_interval_ps: u64,
}

/// A ping as the protocol writes it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PingFields {
    /// Whom to ask.
    to: IpAddr,
    /// The flow's number.
    flow: u32,
    /// The number of requests.
    #[schemars(range(min = 1, max = u64::MAX))]
    count: u64,
    /// The distance between requests. Either this or `gap_ps`.
    #[serde(default)]
    #[schemars(range(min = 1_000_000, max = LONGEST_PS))]
    interval_ps: Option<u64>,
    /// The distribution of distances between requests.
    #[serde(default)]
    gap_ps: Option<Distribution>,
    /// Bytes after the echo header: 0 to 65,499. Either this or `size_bytes`.
    #[serde(default)]
    #[schemars(range(min = 0, max = MOST_PAYLOAD))]
    payload_bytes: Option<u32>,
    /// The distribution of bytes after the echo header.
    #[serde(default)]
    size_bytes: Option<Distribution>,
    /// Differentiated services code point of the requests, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    dscp: Option<u8>,
    /// The longest wait for a reply; at most 30,000 intervals.
    #[schemars(range(min = 1))]
    timeout_ps: u64,
    /// The interval of counting; a second when nothing is said.
    #[serde(default)]
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    count_interval_ps: Option<u64>,
}

impl PingConfig {
    pub(crate) const KIND: &'static str = "ping";
}

impl TryFrom<PingFields> for PingConfig {
    type Error = ConfigError;

    fn try_from(fields: PingFields) -> Result<Self, ConfigError> {
        let kind = Self::KIND;
        check_range(kind, "count", fields.count, 1, u64::MAX)?;
        #[allow(clippy::cast_precision_loss)]
        let even = fields.interval_ps.map(|interval| Distribution::constant(interval as f64));
        let gap = exactly_one(kind, ("interval_ps", even), ("gap_ps", fields.gap_ps))?;
        let sizes = (fields.payload_bytes.map(Size::Constant), fields.size_bytes.map(Size::Drawn));
        let size = exactly_one(kind, ("payload_bytes", sizes.0), ("size_bytes", sizes.1))?;
        if let Some(interval) = fields.interval_ps {
            check_range(kind, "interval_ps", interval, 1_000_000, LONGEST_PS)?;
        }
        let count_interval_ps = fields.count_interval_ps.unwrap_or(A_SECOND_PS);
        check_interval_of(kind, "count_interval_ps", count_interval_ps)?;
        let payloads = (0, MOST_PAYLOAD);
        let profile = TrafficProfile::new(kind, (Pace::Gaps(gap), None), size, None, (payloads, payloads))?;
        check_dscp(kind, fields.dscp)?;
        let most = fields.interval_ps.map_or(LONGEST_PS, |interval| interval.saturating_mul(MOST_OUTSTANDING));
        check_range(kind, "timeout_ps", fields.timeout_ps, 1, most)?;
        Ok(Self {
            to: fields.to,
            flow: fields.flow,
            count: fields.count,
            profile,
            interval_ps: fields.interval_ps,
            dscp: fields.dscp,
            timeout_ps: fields.timeout_ps,
            count_interval_ps,
        })
    }
}

impl From<PingConfig> for PingFields {
    fn from(config: PingConfig) -> Self {
        let asked = config.profile.fields();
        Self {
            to: config.to,
            flow: config.flow,
            count: config.count,
            interval_ps: config.interval_ps,
            gap_ps: asked.gap_ps.filter(|_| config.interval_ps.is_none()),
            payload_bytes: asked.payload_bytes,
            size_bytes: asked.size_bytes,
            dscp: config.dscp,
            timeout_ps: config.timeout_ps,
            count_interval_ps: Some(config.count_interval_ps).filter(|interval| *interval != A_SECOND_PS),
        }
    }
}

struct Outstanding {
    number: u64,
    sent: Time,
    answered: bool,
}

/// The app.
pub struct Ping {
    config: PingConfig,
    socket: Option<SocketId>,
    start: Option<Time>,
    end: Option<Time>,
    /// Requests that are left to send; `None` before the start and after the last.
    deadlines: Option<Deadlines>,
    pacing: Pacing,
    sent_bytes: u64,
    /// Requests whose time is not over, the oldest first.
    outstanding: VecDeque<Outstanding>,
    sent: u64,
    lost: u64,
    duplicates: u64,
    late: u64,
    round_trips: Summary,
    intervals: IntervalCounter,
    finished: bool,
    errors: ErrorTally,
}

impl Ping {
    /// A ping that does what `config` says.
    #[must_use]
    pub fn new(config: PingConfig) -> Self {
        let interval = Duration::from_ps(config.count_interval_ps);
        Self {
            intervals: IntervalCounter::of_packets(interval),
            config,
            socket: None,
            start: None,
            end: None,
            deadlines: None,
            pacing: Pacing::default(),
            sent_bytes: 0,
            outstanding: VecDeque::new(),
            sent: 0,
            lost: 0,
            duplicates: 0,
            late: 0,
            round_trips: Summary::default(),
            finished: false,
            errors: ErrorTally::default(),
        }
    }

    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        self.start = Some(now);
        // Both are drawn whether they are needed or not: a change of one process leaves the other's numbers as they
        // were.
        let seeds = (host.random(), host.random());
        match host.icmp_open(self.config.to.is_ipv6()) {
            Ok(socket) => {
                self.socket = Some(socket);
                if let Some(Err(error)) = self.config.dscp.map(|dscp| host.set_dscp(socket, dscp)) {
                    self.errors.add(error);
                    return self.finish(now, host);
                }
                self.deadlines = Some(Deadlines::new(&self.config.profile, now, seeds, true));
            }
            Err(error) => {
                self.errors.add(error);
                self.finished = true;
            }
        }
    }

    fn send_due(&mut self, now: Time, host: &mut dyn Host) {
        let (Some(socket), Some(deadlines)) = (self.socket, &mut self.deadlines) else { return };
        let due = deadlines.due();
        if due > now {
            return;
        }
        let number = deadlines.count();
        let size = deadlines.take();
        if deadlines.count() >= self.config.count {
            self.deadlines = None;
        }
        let taken = self.request(now, number, size, socket, host);
        self.pacing.add(due, now, size, taken);
    }

    /// Sends request `number`; whether the host took it.
    fn request(&mut self, now: Time, number: u64, size: u32, socket: SocketId, host: &mut dyn Host) -> bool {
        if self.outstanding.len() as u64 >= MOST_OUTSTANDING {
            self.errors
                .add("a request was not sent: 30000 wait for their replies; use longer gaps or a shorter timeout");
            return false;
        }
        let kind = if self.config.to.is_ipv6() { ECHO_REQUEST_V6 } else { ECHO_REQUEST };
        #[allow(clippy::cast_possible_truncation)]
        let [high, low] = (number as u16).to_be_bytes();
        let message = [kind, 0, 0, 0, 0, 0, high, low];
        let to = SocketAddr::new(self.config.to, 0);
        if let Err(error) = host.icmp_send(socket, to, Chunk::Padded(&message, size)) {
            self.errors.add(error);
            return false;
        }
        self.sent += 1;
        self.sent_bytes += u64::from(size);
        self.outstanding.push_back(Outstanding { number, sent: now, answered: false });
        true
    }

    /// Gives up on requests whose time is over, and ends when there is nothing left to wait for.
    fn expire(&mut self, now: Time, host: &mut dyn Host) {
        let timeout = Duration::from_ps(self.config.timeout_ps);
        while self.outstanding.front().is_some_and(|oldest| oldest.sent + timeout <= now) {
            if self.outstanding.pop_front().is_some_and(|request| !request.answered) {
                self.lost += 1;
            }
        }
        if self.deadlines.is_none() && self.outstanding.iter().all(|request| request.answered) {
            self.finish(now, host);
        }
    }

    fn finish(&mut self, now: Time, host: &mut dyn Host) {
        self.deadlines = None;
        self.end.get_or_insert(now);
        self.finished = true;
        if let Some(socket) = self.socket.take() {
            host.close(socket);
        }
    }

    fn receive(&mut self, from: SocketAddr, bytes: &[u8], length: usize, arrived: Time) {
        let expected = if self.config.to.is_ipv6() { ECHO_REPLY_V6 } else { ECHO_REPLY };
        let Some(&[kind, _, _, _, _, _, high, low]) = bytes.first_chunk::<HEADER>() else { return };
        if kind != expected || from.ip() != self.config.to {
            return;
        }
        let sequence = u16::from_be_bytes([high, low]);
        #[allow(clippy::cast_possible_truncation)]
        let found = self.outstanding.iter_mut().rev().find(|request| request.number as u16 == sequence);
        match found {
            Some(request) if request.answered => self.duplicates += 1,
            Some(request) => {
                request.answered = true;
                let round_trip_ps = arrived.since(request.sent).as_ps();
                self.round_trips.add(round_trip_ps);
                self.intervals.add_round_trip(arrived, length.saturating_sub(HEADER) as u64, round_trip_ps);
            }
            None => self.late += 1,
        }
    }
}

impl App for Ping {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.begin(now, host);
                self.send_due(now, host);
            }
            Event::Timer => {
                self.expire(now, host);
                self.send_due(now, host);
            }
            Event::Datagram { from, bytes, length, arrived, .. } => {
                self.receive(from, bytes, length, arrived);
                self.expire(now, host);
            }
            Event::Stop => self.finish(now, host),
            Event::Failed { error, .. } => {
                self.errors.add(error);
                self.finish(now, host);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        if self.finished {
            return None;
        }
        let timeout = Duration::from_ps(self.config.timeout_ps);
        let expiry = self.outstanding.front().map(|oldest| oldest.sent + timeout);
        // Without anything due or outstanding (the last request was refused) the end is due at once.
        let due = self.deadlines.as_ref().map(Deadlines::due);
        let idle = (due.is_none() && expiry.is_none()).then_some(self.start).flatten();
        [due, expiry, idle].into_iter().flatten().min()
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn report(&self, now: Time) -> Value {
        let mut row = FlowReport::new(Some(self.config.flow), Protocol::Icmp, Role::Source)
            .with_errors(&self.errors)
            .with_round_trips(&self.round_trips)
            .with_intervals(&self.intervals);
        if self.late > 0 {
            row.errors.push(format!("replies that came after the timeout, counted as lost: {}", self.late));
        }
        row.to = Some(self.config.to.to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.start.map(|_| self.end.unwrap_or(now).as_ps());
        row.packets = Some(self.sent);
        row.bytes = self.sent_bytes;
        row.pacing = self.config.interval_ps.map_or_else(|| self.pacing.report().into(), |_| Column::Absent);
        row.lost = Some(self.lost);
        row.duplicates = Some(self.duplicates);
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_network::LoopNetwork;
    use crate::AppConfig;
    use serde_json::json;

    fn ping(to: &str, count: u64) -> AppConfig {
        let config: AppConfig = serde_json::from_value(json!({"kind": "ping", "to": to, "flow": 2, "count": count,
            "interval_ps": 100_000_000_000_u64, "payload_bytes": 56, "timeout_ps": 1_000_000_000_000_u64}))
        .unwrap();
        config.validate().unwrap();
        config
    }

    #[test]
    fn round_trips_are_measured_over_both_versions() {
        for to in ["10.0.0.2", "fd00::2"] {
            let mut network = LoopNetwork::new(Duration::from_ms(5));
            let app = network.start(0, &ping(to, 3));
            network.run_until(Time::ZERO + Duration::from_secs(5));
            assert!(network.finished(app));
            let row = &network.report(app)["flows"][0];
            assert_eq!((&row["packets"], &row["bytes"], &row["lost"]), (&json!(3), &json!(168), &json!(0)));
            let rtt = &row["rtt_ps"];
            assert_eq!(
                (&rtt["count"], &rtt["min"], &rtt["max"]),
                (&json!(3), &json!(10_000_000_000_u64), &json!(10_000_000_000_u64))
            );
            // It ends with the last reply, not with its timeout.
            assert_eq!(row["end_ps"], 210_000_000_000_u64);
            assert_eq!(network.open_sockets(), 0);
            // Three replies in the first second, each after 10 ms.
            let counted = &row["intervals"];
            assert_eq!((&counted["packets"], &counted["bytes"]), (&json!([3]), &json!([168])));
            let mean = json!([10_000_000_000.0]);
            assert_eq!((&counted["round_trips_ps"]["mean"], &counted["first"]), (&mean, &json!(0)));
        }
    }

    #[test]
    fn lost_late_and_double_replies_are_told_apart() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        network.datagram_fate(|number| match number {
            1 => vec![],
            2 => vec![Duration::from_ms(1), Duration::from_ms(2)],
            3 => vec![Duration::from_ms(1200)],
            _ => vec![Duration::ZERO],
        });
        let app = network.start(0, &ping("10.0.0.2", 20));
        network.run_until(Time::ZERO + Duration::from_secs(5));
        let row = &network.report(app)["flows"][0];
        assert_eq!((&row["packets"], &row["lost"], &row["duplicates"]), (&json!(20), &json!(2), &json!(1)));
        assert_eq!(row["errors"], json!(["replies that came after the timeout, counted as lost: 1"]));
        assert_eq!(row["rtt_ps"]["count"], 18);
    }

    #[test]
    fn gaps_and_sizes_are_drawn_and_the_first_request_leaves_at_once() {
        let config = crate::loop_network::app(json!({"kind": "ping", "to": "10.0.0.2", "flow": 2, "count": 2000,
            "gap_ps": {"distribution": "exponential", "mean": 1e10},
            "size_bytes": {"distribution": "uniform", "low": 0.0, "high": 1000.0},
            "timeout_ps": 1_000_000_000_000_u64}));
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        let app = network.start(0, &config);
        network.run_until(Time::ZERO + Duration::from_secs(60));
        let row = &network.report(app)["flows"][0];
        assert_eq!((&row["packets"], &row["lost"], &row["start_ps"]), (&json!(2000), &json!(0), &json!(0)));
        let pacing = &row["pacing"];
        assert_eq!((&pacing["gap_error_ps"]["max"], &pacing["kept_up"]), (&json!(0), &json!(true)));
        // Five standard errors of the means: 1 / sqrt(2000), and 1000 / sqrt(12 * 2000) bytes.
        let rate = pacing["requested_packets_per_second"].as_f64().unwrap();
        assert!((rate / 100.0 - 1.0).abs() < 5.0 / 2000_f64.sqrt(), "{rate} requests a second");
        let mean = row["bytes"].as_f64().unwrap() / 2000.0;
        assert!((mean - 500.0).abs() < 5.0 * 1000.0 / 24_000_f64.sqrt(), "{mean} bytes");
    }

    #[test]
    fn requests_that_nobody_answers_are_bounded() {
        let config = crate::loop_network::app(json!({"kind": "ping", "to": "10.0.0.9", "flow": 2, "count": 31_000,
            "gap_ps": {"distribution": "constant", "value": 0.0}, "payload_bytes": 0,
            "timeout_ps": 1_000_000_000_000_u64}));
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        network.datagram_fate(|_| vec![]);
        let app = network.start(0, &config);
        network.run_until(Time::ZERO + Duration::from_secs(5));
        let row = &network.report(app)["flows"][0];
        assert_eq!((&row["packets"], &row["lost"]), (&json!(30_000), &json!(30_000)));
        assert!(row["errors"][0].as_str().unwrap().contains("30000 wait for their replies"), "{row}");
        assert_eq!(row["pacing"]["kept_up"], json!(false));
    }

    #[test]
    fn nobody_there_is_all_lost() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        network.datagram_fate(|_| vec![]);
        let app = network.start(0, &ping("10.0.0.9", 2));
        network.run_until(Time::ZERO + Duration::from_secs(5));
        assert!(network.finished(app));
        let row = &network.report(app)["flows"][0];
        assert_eq!((&row["lost"], &row["rtt_ps"]), (&json!(2), &Value::Null));
        assert_eq!(row["end_ps"], 1_100_000_000_000_u64);
    }
}
