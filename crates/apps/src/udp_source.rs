//! Sends datagrams, at a constant rate or as a Poisson process, whatever becomes of them.
//!
//! Pacing is by absolute deadlines. Datagram `k` of a constant source is due at `start + floor(k * interval)` with the
//! interval as an exact fraction, so errors never accumulate. A source that is called late sends all that is due at
//! once, at most [`MOST_PER_CALL`] at a time, and asks to be called again at once for the rest.
//!
//! When the interval is below [`GATHER`], up to that much time of datagrams may gather and leave in one burst: a host
//! with a clock of its own cannot wake for each of 80,000 datagrams a second at a reasonable cost.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::config::{check_exactly_one, check_port, check_range, ConfigError};
use crate::datagram::{Header, Stamp, FULL_LENGTH, LEAST_LENGTH};
use crate::errors::ErrorTally;
use crate::report::{AppReport, FlowReport, Protocol, Role};
use crate::{App, Chunk, Event, Host, HostError, SocketId};

/// Datagrams sent in one call.
pub const MOST_PER_CALL: u32 = 64;
/// How long datagrams of a fast source may gather.
pub const GATHER: Duration = Duration::from_us(200);
/// The largest payload of UDP over IPv4.
const MOST_PAYLOAD: u32 = 65_507;
/// A fraction of a picosecond is counted in these parts where a rate in packets per second is not a whole number.
const PARTS_PER_PACKET_RATE: f64 = 1e6;

/// When datagrams are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// At equal distances.
    Constant,
    /// At exponentially distributed distances.
    Poisson,
}

/// What a UDP source is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpSourceConfig {
    /// Where to send.
    pub to: IpAddr,
    /// The port there.
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// Bytes of UDP payload in each datagram: 8 to 65507; below 16 the sink can tell no delay.
    pub payload_bytes: u32,
    /// Rate of UDP payload. Either this or `packets_per_second`.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Datagrams a second, in millionths at the finest. Either this or `rate_bps`.
    #[serde(default)]
    pub packets_per_second: Option<f64>,
    /// When datagrams are due.
    pub process: Process,
    /// How long to send. Either this or `packets`.
    #[serde(default)]
    pub duration_ps: Option<u64>,
    /// How many datagrams to send. Either this or `duration_ps`.
    #[serde(default)]
    pub packets: Option<u64>,
}

impl UdpSourceConfig {
    pub(crate) const KIND: &'static str = "udp_source";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        #[allow(clippy::cast_possible_truncation)]
        check_range(Self::KIND, "payload_bytes", self.payload_bytes, LEAST_LENGTH as u32, MOST_PAYLOAD)?;
        check_exactly_one(
            Self::KIND,
            ("rate_bps", self.rate_bps.is_some()),
            ("packets_per_second", self.packets_per_second.is_some()),
        )?;
        check_exactly_one(
            Self::KIND,
            ("duration_ps", self.duration_ps.is_some()),
            ("packets", self.packets.is_some()),
        )?;
        if let Some(rate) = self.rate_bps {
            check_range(Self::KIND, "rate_bps", rate, 1, 1_000_000_000_000)?;
        }
        if let Some(rate) = self.packets_per_second {
            check_range(Self::KIND, "packets_per_second", rate, 0.001, 100_000_000.0)?;
        }
        if let Some(duration) = self.duration_ps {
            check_range(Self::KIND, "duration_ps", duration, 1, u64::MAX)?;
        }
        if let Some(packets) = self.packets {
            check_range(Self::KIND, "packets", packets, 1, u64::MAX)?;
        }
        Ok(())
    }

    fn interval(&self) -> Interval {
        match (self.rate_bps, self.packets_per_second) {
            (Some(bps), _) => {
                Interval { parts: u128::from(self.payload_bytes) * 8_000_000_000_000, per: u128::from(bps.max(1)) }
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            (None, Some(rate)) => Interval {
                parts: 1_000_000_000_000 * PARTS_PER_PACKET_RATE as u128,
                per: ((rate * PARTS_PER_PACKET_RATE).round() as u128).max(1),
            },
            (None, None) => Interval { parts: u128::from(u64::MAX), per: 1 },
        }
    }
}

/// The mean distance between datagrams, `parts / per` picoseconds.
#[derive(Clone, Copy, Debug)]
struct Interval {
    parts: u128,
    per: u128,
}

impl Interval {
    fn times(self, count: u64) -> Duration {
        let exact = u128::from(count).saturating_mul(self.parts) / self.per;
        Duration::from_ps(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// A draw from the exponential distribution with this mean.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn exponential(self, random: u64) -> Duration {
        const SCALE: f64 = 1.0 / (1_u64 << 53) as f64;
        let uniform = ((random >> 11) + 1) as f64 * SCALE;
        let mean = self.parts as f64 / self.per as f64;
        Duration::from_ps((-uniform.ln() * mean).round() as u64)
    }
}

/// How long after its time a source may send what was due in it.
const GRACE: Duration = Duration::from_ms(10);

/// The app.
pub struct UdpSource {
    config: UdpSourceConfig,
    interval: Interval,
    socket: Option<SocketId>,
    from: Option<SocketAddr>,
    start: Option<Time>,
    /// When the next datagram is due; `None` before the start and after the end.
    due: Option<Time>,
    /// Datagrams that have been due so far.
    due_count: u64,
    sent: u64,
    last_sent: Option<Time>,
    finished: bool,
    errors: ErrorTally,
}

impl UdpSource {
    /// A source that does what `config` says.
    #[must_use]
    pub fn new(config: UdpSourceConfig) -> Self {
        Self {
            interval: config.interval(),
            config,
            socket: None,
            from: None,
            start: None,
            due: None,
            due_count: 0,
            sent: 0,
            last_sent: None,
            finished: false,
            errors: ErrorTally::default(),
        }
    }

    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        self.start = Some(now);
        match host.udp_bind(0, self.config.to.is_ipv6()) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.from = host.addresses(socket).map(|(local, _)| local);
                self.due = Some(match self.config.process {
                    Process::Constant => now,
                    Process::Poisson => now + self.interval.exponential(host.random()),
                });
            }
            Err(error) => {
                self.errors.add(error);
                self.finished = true;
            }
        }
    }

    fn send_due(&mut self, now: Time, host: &mut dyn Host) {
        let (Some(start), Some(socket)) = (self.start, self.socket) else { return };
        if self.config.duration_ps.is_some_and(|duration| now.since(start) > Duration::from_ps(duration) + GRACE) {
            self.give_up(host);
            return;
        }
        for _ in 0..MOST_PER_CALL {
            let Some(due) = self.due else { return };
            let past_end = self.config.duration_ps.is_some_and(|duration| due.since(start).as_ps() >= duration)
                || self.config.packets.is_some_and(|packets| self.due_count >= packets);
            if past_end {
                self.end(host);
                return;
            }
            if due > now {
                return;
            }
            self.send_one(now, socket, host);
            self.due_count += 1;
            self.due = Some(match self.config.process {
                Process::Constant => start + self.interval.times(self.due_count),
                Process::Poisson => due + self.interval.exponential(host.random()),
            });
        }
    }

    /// Sends a datagram. One that the host refuses takes no sequence number: it was never in the network.
    fn send_one(&mut self, now: Time, socket: SocketId, host: &mut dyn Host) {
        let sent = (self.config.payload_bytes as usize >= FULL_LENGTH).then_some(Stamp(now.as_ns()));
        #[allow(clippy::cast_possible_truncation)]
        let header = Header { sequence: self.sent as u32, flow: self.config.flow, sent };
        let (bytes, length) = (header.emit(), header.length());
        #[allow(clippy::cast_possible_truncation)]
        let chunk = Chunk::Padded(&bytes[..length], self.config.payload_bytes.saturating_sub(length as u32));
        match host.udp_send(socket, SocketAddr::new(self.config.to, self.config.port), chunk) {
            Ok(()) => {
                self.sent += 1;
                self.last_sent = Some(now);
            }
            Err(HostError::Full) => self.errors.add("a datagram was not sent: the host's send buffer was full"),
            Err(error) => self.errors.add(error),
        }
    }

    /// The time is over and datagrams that were due are not sent: a source that went on would send at another time than it
    /// was told to.
    fn give_up(&mut self, host: &mut dyn Host) {
        self.errors.add(format!(
            "the host could not keep up: the source was behind when its time was over, and sent {} datagrams",
            self.sent
        ));
        self.end(host);
    }

    fn end(&mut self, host: &mut dyn Host) {
        self.due = None;
        self.finished = true;
        if let Some(socket) = self.socket.take() {
            host.close(socket);
        }
    }
}

impl App for UdpSource {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.begin(now, host);
                self.send_due(now, host);
            }
            Event::Timer => self.send_due(now, host),
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

    fn slack(&self) -> Duration {
        if self.interval.times(1) < GATHER {
            GATHER
        } else {
            Duration::ZERO
        }
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn report(&self, _now: Time) -> Value {
        let mut row = FlowReport::new(Some(self.config.flow), Protocol::Udp, Role::Source).with_errors(&self.errors);
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(SocketAddr::new(self.config.to, self.config.port).to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.last_sent.or(self.start).map(Time::as_ps);
        row.packets = Some(self.sent);
        row.bytes = self.sent * u64::from(self.config.payload_bytes);
        AppReport { flows: vec![row] }.into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_network::RecordingHost;
    use serde_json::json;

    fn source(fields: Value) -> UdpSource {
        let mut object = json!({"to": "10.0.0.2", "port": 9, "flow": 3, "process": "constant"});
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let config: UdpSourceConfig = serde_json::from_value(object).unwrap();
        config.validate().unwrap();
        UdpSource::new(config)
    }

    /// Runs a source by calling it exactly at its deadlines, or late by what `late` says, and gives the calls' times with the datagrams sent in each.
    fn run(source: &mut UdpSource, host: &mut RecordingHost, late: impl Fn(usize) -> Duration) -> Vec<(Time, usize)> {
        let mut calls = Vec::new();
        let start = Time::from_ns(5_000);
        source.handle(start, Event::Start, host);
        calls.push((start, host.take_datagrams().len()));
        while let Some(deadline) = source.deadline() {
            let now = (deadline + late(calls.len())).max(calls[calls.len() - 1].0);
            source.handle(now, Event::Timer, host);
            calls.push((now, host.take_datagrams().len()));
            assert!(calls.len() < 1_000_000, "the source never ends");
        }
        calls
    }

    #[test]
    fn a_constant_source_is_due_at_exact_multiples_of_its_interval() {
        // 1470 bytes at 512 Mbit/s: 22,968.75 ns; 7 packets a second: a fraction that no clock can hold.
        for (rate, expected) in [
            (json!({"rate_bps": 512_000_000_u64}), &(|k: u64| k * 22_968_750) as &dyn Fn(u64) -> u64),
            (json!({"packets_per_second": 7}), &|k| k * 1_000_000_000_000 / 7),
        ] {
            let mut fields = json!({"payload_bytes": 1470, "packets": 2000});
            fields.as_object_mut().unwrap().extend(rate.as_object().unwrap().clone());
            let calls = run(&mut source(fields), &mut RecordingHost::new(1), |_| Duration::ZERO);
            let sent: Vec<_> = calls.iter().filter(|(_, number)| *number > 0).collect();
            assert_eq!(sent.len(), 2000);
            for (k, (time, number)) in sent.iter().enumerate() {
                assert_eq!((time.as_ps(), *number), (5_000_000 + expected(k as u64), 1));
            }
        }
    }

    #[test]
    fn a_source_that_is_called_late_sends_what_is_due_and_keeps_its_schedule() {
        let mut source = source(json!({"payload_bytes": 100, "packets_per_second": 10_000, "packets": 1000}));
        let calls = run(&mut source, &mut RecordingHost::new(1), |call| {
            if call == 3 {
                Duration::from_ms(20)
            } else {
                Duration::ZERO
            }
        });
        let largest = calls.iter().map(|(_, number)| *number).max().unwrap();
        assert_eq!(largest, MOST_PER_CALL as usize);
        assert_eq!(calls.iter().map(|(_, number)| number).sum::<usize>(), 1000);
        let last_sent = calls.iter().rev().find(|(_, number)| *number > 0).unwrap().0;
        assert_eq!(last_sent, Time::from_ns(5_000) + Duration::from_us(99_900));
    }

    #[test]
    fn a_source_that_cannot_keep_up_ends_in_time_and_says_so() {
        let mut source =
            source(json!({"payload_bytes": 100, "packets_per_second": 100_000, "duration_ps": 50_000_000_000_u64}));
        let calls = run(&mut source, &mut RecordingHost::new(1), |call| Duration::from_ms(call as u64));
        let sent = calls.iter().map(|(_, number)| number).sum::<usize>();
        assert!(sent < 5000, "{sent}");
        let over = calls[calls.len() - 1].0 - Time::from_ns(5_000);
        assert!(over < Duration::from_ms(50) + GRACE + Duration::from_ms(3), "{over} is long after the end");
        let report = source.report(Time::from_ns(0)).to_string();
        assert!(report.contains("could not keep up"), "{report}");
    }

    #[test]
    fn a_duration_ends_before_the_datagram_that_is_due_at_its_end() {
        let mut source =
            source(json!({"payload_bytes": 100, "packets_per_second": 1000, "duration_ps": 10_000_000_000_u64}));
        let calls = run(&mut source, &mut RecordingHost::new(1), |_| Duration::ZERO);
        assert_eq!(calls.iter().map(|(_, number)| number).sum::<usize>(), 10);
        assert!(source.finished());
    }

    #[test]
    fn poisson_gaps_are_exponential_by_kolmogorov_and_smirnov() {
        let mut source =
            source(json!({"payload_bytes": 100, "packets_per_second": 1000, "process": "poisson", "packets": 20_000}));
        let calls = run(&mut source, &mut RecordingHost::new(42), |_| Duration::ZERO);
        let times: Vec<Time> = calls.iter().filter(|(_, number)| *number > 0).map(|(time, _)| *time).collect();
        let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64() * 1000.0).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // Five standard errors of the mean of 20,000 exponential gaps.
        assert!((mean - 1.0).abs() < 5.0 / (gaps.len() as f64).sqrt(), "mean {mean}");
        gaps.sort_by(f64::total_cmp);
        let count = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(rank, gap)| {
                let theory = 1.0 - (-gap).exp();
                (theory - rank as f64 / count).abs().max(((rank + 1) as f64 / count - theory).abs())
            })
            .fold(0.0, f64::max);
        // The critical value at the 0.1 % level is 1.95 / sqrt(n).
        assert!(distance < 1.95 / count.sqrt(), "distance {distance}");
    }

    #[test]
    fn a_datagram_that_the_host_refuses_takes_no_sequence_number() {
        let mut source = source(json!({"payload_bytes": 100, "packets_per_second": 1000, "packets": 4}));
        let mut host = RecordingHost::new(1);
        source.handle(Time::ZERO, Event::Start, &mut host);
        host.refuse_datagrams(HostError::Full);
        source.handle(Time::from_ns(1_000_000), Event::Timer, &mut host);
        host.accept_datagrams();
        source.handle(Time::from_ns(2_000_000), Event::Timer, &mut host);
        let sequences: Vec<u32> =
            host.take_datagrams().iter().map(|sent| Header::parse(sent).unwrap().sequence).collect();
        assert_eq!(sequences, [0, 1]);
        let report = source.report(Time::ZERO);
        assert_eq!(report["flows"][0]["packets"], 2);
        assert_eq!(report["flows"][0]["errors"], json!(["a datagram was not sent: the host's send buffer was full"]));
    }

    #[test]
    fn only_a_fast_source_lets_datagrams_gather() {
        let slack =
            |rate: u64| source(json!({"payload_bytes": 1470, "packets": 1, "packets_per_second": rate})).slack();
        assert_eq!((slack(1000), slack(43_500)), (Duration::ZERO, GATHER));
    }
}
