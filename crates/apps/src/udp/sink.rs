//! Counts datagrams by sender and flow: loss, duplicates, reordering, one-way delay, jitter, and by interval.

use std::collections::HashMap;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::intervals::IntervalCounter;
use crate::account::receiver::Receiver;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::account::samples::{check_samples, MOST_SAMPLES};
use crate::check::{check_interval, check_path_mtu, check_port, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS};
use crate::listen::SinkState;
use crate::udp::header::Header;
use crate::{App, Event, Host};

/// Flows that are kept; datagrams of more are told as an error.
const MOST_FLOWS: usize = 4096;

/// The task of a UDP sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpSinkConfig {
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
}

impl UdpSinkConfig {
    pub(crate) const KIND: &'static str = "udp_sink";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_samples(Self::KIND, self.record_packets)?;
        check_path_mtu(Self::KIND, self.mtu_bytes)?;
        check_interval(Self::KIND, self.interval_ps)
    }
}

/// One flow of one sender.
struct Flow {
    /// `None`: datagrams too short to carry our header.
    number: Option<u32>,
    receiver: Receiver,
}

impl Flow {
    fn count(&mut self, header: Option<Header>, length: usize, arrived: Time, record: Option<u32>) {
        self.receiver.hear(arrived);
        let mut numbered = None;
        if let Some(header) = header {
            let sent = header.sent.map(|sent| Time::from_ns(sent.0));
            let number = self.receiver.sequences.number_of(header.sequence);
            if !self.receiver.enter((number, header.sequence), sent, arrived, length, record) {
                return;
            }
            numbered = Some((number, sent));
        }
        self.receiver.count(arrived, length, numbered);
    }

    fn report(&self, record: bool) -> FlowReport {
        if self.number.is_none() {
            return self.receiver.report(None, Protocol::Udp);
        }
        let mut row = self.receiver.numbered_report(self.number, Protocol::Udp, record);
        row.first_number = Some(self.receiver.sequences.least());
        row.sequence_jumps = Some(self.receiver.sequences.jumps());
        row.errors.extend(self.receiver.sequences.notes());
        row
    }
}

/// The app.
pub struct UdpSink {
    config: UdpSinkConfig,
    /// Place in `flows` by sender and number.
    places: HashMap<(SocketAddr, Option<u32>), usize>,
    flows: Vec<Flow>,
    /// The flow of the last datagram: the next one is often of the same.
    latest: usize,
    state: SinkState,
}

impl UdpSink {
    /// A sink that does what `config` says.
    #[must_use]
    pub fn new(config: UdpSinkConfig) -> Self {
        Self { config, places: HashMap::new(), flows: Vec::new(), latest: 0, state: SinkState::default() }
    }

    fn receive(&mut self, from: SocketAddr, bytes: &[u8], length: usize, arrived: Time) {
        let header = Header::parse(&bytes[..bytes.len().min(length)]);
        let number = header.map(|header| header.flow);
        let same = self.flows.get(self.latest).is_some_and(|flow| flow.receiver.from == from && flow.number == number);
        if !same {
            let known = self.places.get(&(from, number)).copied();
            let Some(place) = known.or_else(|| self.admit(from, number, arrived)) else { return };
            self.latest = place;
        }
        self.flows[self.latest].count(header, length, arrived, self.config.record_packets);
    }

    fn admit(&mut self, from: SocketAddr, number: Option<u32>, now: Time) -> Option<usize> {
        if self.flows.len() >= MOST_FLOWS {
            self.state.errors.add(format!("a datagram of a flow beyond the first {MOST_FLOWS} was not counted"));
            return None;
        }
        let interval = Duration::from_ps(self.config.interval_ps);
        let ipv6 = from.ip().to_canonical().is_ipv6();
        let intervals = IntervalCounter::of_datagrams(interval, self.config.mtu_bytes, ipv6);
        self.flows.push(Flow { number, receiver: Receiver::new(from, intervals, now) });
        let place = self.flows.len() - 1;
        self.places.insert((from, number), place);
        Some(place)
    }
}

impl App for UdpSink {
    fn handle(&mut self, _now: Time, event: Event<'_>, host: &mut dyn Host) {
        if let Event::Datagram { from, bytes, length, arrived, .. } = event {
            self.receive(from, bytes, length, arrived);
        } else {
            self.state.handle(&event, host, self.config.port);
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn finished(&self) -> bool {
        self.state.finished
    }

    fn report(&self, _now: Time) -> Value {
        let flows: Vec<FlowReport> =
            self.flows.iter().map(|flow| flow.report(self.config.record_packets.is_some())).collect();
        AppReport::with_errors_apart(flows, Protocol::Udp, Role::Sink, &self.state.errors).into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_network::{app, LoopNetwork, RecordingHost};
    use crate::{AppConfig, SocketId};
    use serde_json::json;

    fn sink() -> AppConfig {
        app(json!({"kind": "udp_sink", "port": 5003, "interval_ps": 100_000_000_000_u64}))
    }

    fn source(flow: u32, packets: u64) -> AppConfig {
        app(json!({"kind": "udp_source", "to": "10.0.0.2", "port": 5003, "flow": flow, "payload_bytes": 1000,
                   "packets_per_second": 1000, "process": "constant", "packets": packets}))
    }

    #[test]
    fn every_packet_is_told_on_request_up_to_the_number_asked_for() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        let sink = network.start(
            1,
            &app(json!({"kind": "udp_sink", "port": 5003, "interval_ps": 100_000_000_000_u64, "record_packets": 3})),
        );
        network.start(0, &source(7, 5));
        network.run_until(Time::ZERO + Duration::from_secs(1));
        let told = &network.report(sink)["flows"][0]["samples"];
        assert_eq!((&told["sequence"], &told["more"]), (&json!([0, 1, 2]), &json!(2)));
        assert_eq!(told["arrived_ps"][2], 7_000_000_000_u64);
        assert_eq!((&told["sent_ps"][2], &told["bytes"][2]), (&json!(2_000_000_000_u64), &json!(1000)));
    }

    #[test]
    fn two_sources_are_counted_apart_with_their_delay_and_intervals() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        let sink = network.start(1, &sink());
        network.start(0, &source(7, 500));
        network.start(0, &source(8, 250));
        network.run_until(Time::ZERO + Duration::from_secs(1));
        let report = network.report(sink);
        let flows = report["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 2);
        assert_eq!((flows[0]["flow"].as_u64(), flows[0]["packets"].as_u64()), (Some(7), Some(500)));
        assert_eq!((flows[1]["flow"].as_u64(), flows[1]["bytes"].as_u64()), (Some(8), Some(250_000)));
        assert_eq!(flows[0]["delay_ps"]["min"], 5_000_000_000_u64);
        assert_eq!(flows[0]["delay_ps"]["max"], 5_000_000_000_u64);
        assert_eq!(flows[0]["jitter_rfc3550_ps"], 0.0);
        // The first datagram arrives at 5 ms, the last at 504 ms.
        assert_eq!(flows[0]["intervals"]["packets"], json!([95, 100, 100, 100, 100, 5]));
        assert_eq!(flows[0]["intervals"]["first"], 0);
        assert_eq!(flows[0]["intervals"]["times_ps"]["delay_mean"][1], 5_000_000_000.0);
        assert_eq!(flows[0]["intervals"]["times_ps"]["jitter_rfc4689_mean"][5], 0.0);
    }

    #[test]
    fn what_the_network_does_to_datagrams_is_told() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        // Number 10 is lost, 20 comes twice, 30 comes 3 ms late: after 31, 32 and (sent first at that moment) 33.
        network.datagram_fate(|number| match number {
            10 => vec![],
            20 => vec![Duration::ZERO, Duration::ZERO],
            30 => vec![Duration::from_us(2500)],
            _ => vec![Duration::ZERO],
        });
        let sink = network.start(1, &sink());
        network.start(0, &source(7, 100));
        network.run_until(Time::ZERO + Duration::from_secs(1));
        let flow = &network.report(sink)["flows"][0];
        let count = |key: &str| flow[key].as_u64().unwrap();
        assert_eq!((count("packets"), count("lost"), count("duplicates"), count("reordered")), (99, 1, 1, 1));
        assert_eq!(flow["delay_ps"]["max"], 7_500_000_000_u64);
    }

    #[test]
    fn a_sink_that_starts_late_says_how_much_it_missed() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        // The first 100 never arrive, and so are for the sink as if it had not listened.
        network.datagram_fate(|number| if number < 100 { vec![] } else { vec![Duration::ZERO] });
        let sink = network.start(1, &sink());
        network.start(0, &source(7, 500));
        network.run_until(Time::ZERO + Duration::from_secs(1));
        let flow = &network.report(sink)["flows"][0];
        assert_eq!((&flow["packets"], &flow["lost"], &flow["first_number"]), (&json!(400), &json!(100), &json!(100)));
        let told = "the first 100 datagrams were lost or sent before this receiver listened; they are counted as lost";
        assert_eq!(flow["errors"], json!([told]));
    }

    #[test]
    fn a_forged_sequence_number_is_told_as_a_jump() {
        let mut sink =
            UdpSink::new(UdpSinkConfig { port: 1, interval_ps: 1_000_000_000, record_packets: None, mtu_bytes: None });
        for sequence in [0, 1, 2_000_000_000] {
            let header = Header { sequence, flow: 7, sent: None };
            sink.receive("10.0.0.1:9".parse().unwrap(), &header.emit(), header.length(), Time::ZERO);
        }
        let row = &sink.report(Time::ZERO)["flows"][0];
        assert_eq!((&row["lost"], &row["sequence_jumps"]), (&json!(1_999_999_998), &json!(1)));
        assert!(row["errors"][0].as_str().unwrap().contains("damaged or forged header"), "{row}");
    }

    #[test]
    fn datagrams_too_short_for_a_header_are_counted_without_a_flow() {
        let mut sink =
            UdpSink::new(UdpSinkConfig { port: 1, interval_ps: 1_000_000_000, record_packets: None, mtu_bytes: None });
        sink.receive("10.0.0.1:9".parse().unwrap(), b"hello", 5, Time::ZERO);
        let row = &sink.report(Time::ZERO)["flows"][0];
        assert_eq!((row["flow"].is_null(), row["packets"].as_u64(), row["bytes"].as_u64()), (true, Some(1), Some(5)));
        assert!(row.get("lost").is_none());
    }

    #[test]
    fn what_the_host_itself_dropped_is_told_as_an_error() {
        let mut sink =
            UdpSink::new(UdpSinkConfig { port: 1, interval_ps: 1_000_000_000, record_packets: None, mtu_bytes: None });
        let mut host = RecordingHost::new(1);
        sink.handle(Time::ZERO, Event::Overflowed { socket: SocketId(1), datagrams: 7 }, &mut host);
        let report = sink.report(Time::ZERO);
        let told = "a datagram was dropped in the receiving host: its socket's buffer was full (7 times)";
        assert_eq!(report["flows"][0]["errors"], json!([told]));
    }

    #[test]
    fn a_taken_port_ends_the_sink_with_an_error() {
        let mut network = LoopNetwork::new(Duration::ZERO);
        network.start(1, &sink());
        let second = network.start(1, &sink());
        network.run_until(Time::from_ns(1));
        assert!(network.finished(second));
        assert_eq!(
            network.report(second)["flows"][0]["errors"],
            json!(["address 0.0.0.0:5003 is in use on this host"])
        );
    }
}
