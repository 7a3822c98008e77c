//! Counts RTP streams by sender and synchronisation source: loss and jitter by RFC 3550, the numbers that Wireshark
//! shows, and for our own sources delay and frames.
//!
//! Wireshark's: delta is the distance between arrivals, jitter that of RFC 3550 in milliseconds of the payload's
//! clock (here picoseconds), its mean over all packets after the first; bandwidth is what arrived in the second
//! that ends with the packet, with 28 bytes of IPv4 and UDP (48 for IPv6) for each.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::arrivals::{SignedMoments, SmoothedJitter};
use crate::account::column::Column;
use crate::account::intervals::IntervalCounter;
use crate::account::receiver::Receiver;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::account::rtp_report::{FramesReport, RtpReport};
use crate::account::samples::{check_samples, MOST_SAMPLES};
use crate::check::{
    check_interval, check_path_mtu, check_port, check_range, ConfigError, INTERVAL_LEAST_PS, INTERVAL_MOST_PS,
};
use crate::listen::SinkState;
use crate::rtp::mark::Mark;
use crate::{App, Event, Host};
use twinnet_packet::rtp::Header;

/// Streams that are kept; packets of more are told as an error.
const MOST_STREAMS: usize = 1024;
/// Frames of which parts are still awaited; older ones are judged.
const MOST_FRAMES: usize = 1024;
/// Packets of the last second that are held for the bandwidth.
const MOST_HELD: usize = 1 << 16;
/// A step of the sequence number beyond this is no ordinary loss (RFC 3550, A.1: `MAX_DROPOUT`).
const JUMP: i64 = 3000;
/// The clock when nothing is said: that of all video payloads (RFC 3551).
const VIDEO_CLOCK_HZ: u32 = 90_000;

/// The task of an RTP sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RtpSinkConfig {
    /// The port to receive on.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The interval of counting.
    #[schemars(range(min = INTERVAL_LEAST_PS, max = INTERVAL_MOST_PS))]
    pub interval_ps: u64,
    /// The payload's clock, for jitter; 90 kHz when nothing is said.
    #[serde(default)]
    #[schemars(range(min = 1000, max = 10_000_000))]
    pub clock_hz: Option<u32>,
    /// Packets of each stream to keep and report, at most 1,000,000; none when nothing is said.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_SAMPLES))]
    pub record_packets: Option<u32>,
    /// The path's MTU, 68 to 65,535 bytes: with it network and wire bytes are counted too.
    #[serde(default)]
    #[schemars(range(min = 68, max = 65_535))]
    pub mtu_bytes: Option<u32>,
}

impl RtpSinkConfig {
    pub(crate) const KIND: &'static str = "rtp_sink";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_port(Self::KIND, self.port)?;
        check_samples(Self::KIND, self.record_packets)?;
        check_path_mtu(Self::KIND, self.mtu_bytes)?;
        if let Some(clock) = self.clock_hz {
            check_range(Self::KIND, "clock_hz", clock, 1000, 10_000_000)?;
        }
        check_interval(Self::KIND, self.interval_ps)
    }
}

/// Frames that are not judged yet, and the number of those that are.
#[derive(Clone, Debug, Default)]
struct Frames {
    /// By number: parts that arrived, parts that there are.
    open: BTreeMap<u32, (u32, u32)>,
    judged: FramesReport,
    /// One past the highest number that was judged.
    next: u32,
    /// The least number of which a part arrived.
    first: Option<u32>,
}

impl Frames {
    fn add(&mut self, mark: &Mark) {
        for part in mark.content.iter().take(usize::from(mark.parts)).filter(|part| part.frame >= self.next) {
            self.first = Some(self.first.map_or(part.frame, |first| first.min(part.frame)));
            let frame = self.open.entry(part.frame).or_insert((0, part.whole));
            frame.0 = frame.0.saturating_add(u32::from(part.here));
        }
        while self.open.len() > MOST_FRAMES {
            let Some((number, (here, whole))) = self.open.pop_first() else { return };
            judge(&mut self.judged, &mut self.next, number, here, whole);
        }
    }

    fn report(&self) -> FramesReport {
        let (mut judged, mut next) = (self.judged, self.next);
        for (number, (here, whole)) in &self.open {
            judge(&mut judged, &mut next, *number, *here, *whole);
        }
        judged
    }
}

fn judge(judged: &mut FramesReport, next: &mut u32, number: u32, here: u32, whole: u32) {
    judged.lost += u64::from(number.saturating_sub(*next));
    *next = number.saturating_add(1);
    if here >= whole {
        judged.complete += 1;
    } else {
        judged.damaged += 1;
    }
}

/// One stream.
struct Stream {
    receiver: Receiver,
    flow: Option<u32>,
    source: u32,
    payload_type: u8,
    /// The first sequence number, and the highest, counted on from there.
    base: u16,
    highest: u64,
    early: u64,
    jumps: u64,
    timestamp: u32,
    jitter: SmoothedJitter,
    jitters: SignedMoments,
    held: VecDeque<(Time, u32)>,
    held_bytes: u64,
    bandwidths: SignedMoments,
    frames: Option<Frames>,
}

impl Stream {
    fn new(from: SocketAddr, header: &Header, intervals: IntervalCounter, now: Time) -> Self {
        Self {
            receiver: Receiver::new(from, intervals, now),
            flow: None,
            source: header.source,
            payload_type: header.payload_type,
            base: header.sequence,
            highest: 0,
            early: 0,
            jumps: 0,
            timestamp: header.timestamp,
            jitter: SmoothedJitter::default(),
            jitters: SignedMoments::default(),
            held: VecDeque::new(),
            held_bytes: 0,
            bandwidths: SignedMoments::default(),
            frames: None,
        }
    }

    /// The packet's number from the first on; `None` for one from before the first.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn number(&mut self, sequence: u16) -> Option<u64> {
        let here = (self.highest as u16).wrapping_add(self.base);
        let step = i64::from(sequence.wrapping_sub(here) as i16);
        self.jumps += u64::from(step.abs() > JUMP);
        let number = u64::try_from(self.highest as i64 + step).ok()?;
        self.highest = self.highest.max(number);
        Some(number)
    }

    fn count(&mut self, header: &Header, mark: Option<&Mark>, length: usize, arrived: Time, config: &RtpSinkConfig) {
        self.receiver.hear(arrived);
        self.flow = self.flow.or(mark.map(|mark| mark.flow));
        let sent = mark.map(|mark| Time::from_ns(mark.sent_ns));
        let Some(number) = self.number(header.sequence) else {
            self.early += 1;
            return;
        };
        #[allow(clippy::cast_possible_truncation)]
        if !self.receiver.enter((number, number as u32), sent, arrived, length, config.record_packets) {
            self.receiver.samples.add_rtp(None, None);
            return;
        }
        let clock_hz = config.clock_hz.unwrap_or(VIDEO_CLOCK_HZ);
        let (jitter_ps, bandwidth_bps) = self.measure(header, arrived, length as u64, clock_hz);
        self.receiver.samples.add_rtp(jitter_ps, Some(bandwidth_bps));
        if let Some(mark) = mark {
            self.frames.get_or_insert_with(Frames::default).add(mark);
        }
        self.receiver.count(arrived, length, Some((number, sent)));
    }

    /// The numbers that Wireshark shows: the jitter in picoseconds, of all packets but the first, and the bandwidth.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_wrap)]
    fn measure(&mut self, header: &Header, arrived: Time, payload: u64, clock_hz: u32) -> (Option<f64>, f64) {
        let mut jitter_ps = None;
        if let Some((before, _)) = self.held.back() {
            let ticks = f64::from(header.timestamp.wrapping_sub(self.timestamp) as i32);
            let spacing = ticks * 1e12 / f64::from(clock_hz);
            self.jitter.add(arrived.as_ps() as f64 - before.as_ps() as f64 - spacing);
            self.jitters.add(self.jitter.now);
            jitter_ps = Some(self.jitter.now);
        }
        self.timestamp = header.timestamp;
        let headers = if self.receiver.from.is_ipv4() { 28 } else { 48 };
        let bytes = u32::try_from(payload + headers).unwrap_or(u32::MAX);
        let second = Duration::from_secs(1);
        while self.held.front().is_some_and(|(at, _)| arrived.since(*at) > second) || self.held.len() >= MOST_HELD {
            let Some((_, gone)) = self.held.pop_front() else { break };
            self.held_bytes -= u64::from(gone);
        }
        self.held.push_back((arrived, bytes));
        self.held_bytes += u64::from(bytes);
        let bandwidth_bps = self.held_bytes as f64 * 8.0;
        self.bandwidths.add(bandwidth_bps);
        (jitter_ps, bandwidth_bps)
    }

    fn report(&self, record: bool) -> FlowReport {
        let mut row = self.receiver.numbered_report(self.flow, Protocol::Rtp, record);
        if self.flow.is_none() {
            row.delay_ps = Column::Absent;
            row.delays_below_zero = None;
            row.jitter_rfc4689_ps = Column::Absent;
            row.delay_variation_rfc3393_ps = Column::Absent;
        }
        row.jitter_rfc3550_ps = Some(self.jitter.now);
        if self.early > 0 {
            row.errors.push(format!("{} packets from before the first sequence number were not counted", self.early));
        }
        row.sequence_jumps = Some(self.jumps);
        if self.jumps > 0 {
            row.errors.push(format!(
                "the sequence number stepped by more than {JUMP}, {} times: what it passed over is counted as lost, \
                 but a restarted sender, a damaged or a forged header may have caused it",
                self.jumps
            ));
        }
        if let Some(first) = self.frames.as_ref().and_then(|frames| frames.first).filter(|first| *first > 0) {
            row.errors.push(format!(
                "the first {first} video frames were lost or sent before this receiver listened; they are counted as \
                 lost"
            ));
        }
        row.rtp = Some(RtpReport {
            ssrc: self.source,
            payload_type: self.payload_type,
            expected: self.highest + 1,
            jitter_ps: self.jitters.report(),
            bandwidth_bps: self.bandwidths.report(),
            frames: self.frames.as_ref().map(Frames::report),
        });
        row
    }
}

/// The app.
pub struct RtpSink {
    config: RtpSinkConfig,
    /// Place in `streams` by sender and synchronisation source.
    places: HashMap<(SocketAddr, u32), usize>,
    streams: Vec<Stream>,
    state: SinkState,
}

impl RtpSink {
    /// A sink that does what `config` says.
    #[must_use]
    pub fn new(config: RtpSinkConfig) -> Self {
        Self { config, places: HashMap::new(), streams: Vec::new(), state: SinkState::default() }
    }

    fn receive(&mut self, from: SocketAddr, bytes: &[u8], length: usize, arrived: Time) {
        let bytes = &bytes[..bytes.len().min(length)];
        let parsed = Header::parse(bytes).and_then(|header| Some((header, header.payload_start(bytes, length)?)));
        let Some((header, start)) = parsed else {
            self.state.errors.add("a datagram that is no RTP (version 2) was not counted");
            return;
        };
        let place = match self.places.get(&(from, header.source)) {
            Some(place) => *place,
            None if self.streams.len() >= MOST_STREAMS => {
                self.state.errors.add(format!("a packet of a stream beyond the first {MOST_STREAMS} was not counted"));
                return;
            }
            None => {
                let interval = Duration::from_ps(self.config.interval_ps);
                let ipv6 = from.ip().to_canonical().is_ipv6();
                let intervals = IntervalCounter::of_datagrams(interval, self.config.mtu_bytes, ipv6);
                self.streams.push(Stream::new(from, &header, intervals, arrived));
                self.places.insert((from, header.source), self.streams.len() - 1);
                self.streams.len() - 1
            }
        };
        let mark = Mark::parse(bytes, start);
        self.streams[place].count(&header, mark.as_ref(), length, arrived, &self.config);
    }
}

impl App for RtpSink {
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
        let record = self.config.record_packets.is_some();
        let flows: Vec<FlowReport> = self.streams.iter().map(|stream| stream.report(record)).collect();
        AppReport::with_errors_apart(flows, Protocol::Rtp, Role::Sink, &self.state.errors).into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_network::{app, LoopNetwork};
    use crate::AppConfig;
    use serde_json::json;

    fn run(source: Value, fate: impl FnMut(u64) -> Vec<Duration> + 'static) -> Value {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        network.datagram_fate(fate);
        let second = 1_000_000_000_000_u64;
        let sink = network.start(1, &app(json!({"kind": "rtp_sink", "port": 5004, "interval_ps": second})));
        let mut fields =
            json!({"kind": "rtp_source", "to": "10.0.0.2", "port": 5004, "flow": 9, "frames_per_second": 60});
        fields.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        network.start(0, &app(fields));
        network.run_until(Time::ZERO + Duration::from_secs(60));
        network.report(sink)["flows"][0].clone()
    }

    #[test]
    fn a_paced_stream_over_an_even_path_has_its_frames_and_almost_no_jitter() {
        // 14 packets of the transport stream a frame: two of RTP.
        let row = run(json!({"frame_bytes": [14 * 184], "paced": true, "frames": 600}), |_| vec![Duration::ZERO]);
        assert_eq!((&row["flow"], &row["packets"], &row["lost"]), (&json!(9), &json!(1200), &json!(0)));
        assert_eq!(row["bytes"], 1200 * 1328);
        assert_eq!(row["rtp"]["frames"], json!({"complete": 600, "damaged": 0, "lost": 0}));
        // The mark tells whole nanoseconds.
        let delay = row["delay_ps"]["max"].as_u64().unwrap();
        assert!((5_000_000_000..5_000_001_000).contains(&delay), "{delay}");
        // Timestamps are whole ticks of 11.1 us: the only difference there is.
        assert!(row["rtp"]["jitter_ps"]["max"].as_f64().unwrap() < 11.2e6, "{row}");
        let rate = row["rtp"]["bandwidth_bps"]["max"].as_f64().unwrap();
        assert!((rate / (120.0 * 1356.0 * 8.0) - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn lost_packets_damage_the_frames_that_they_carry_and_wraps_are_counted_on() {
        // One packet a frame, 70,000 of them: the sequence number wraps at least once; 3 to 5 and 66,000 are lost.
        let row = run(json!({"frame_bytes": [7 * 184], "frames_per_second": 2000, "frames": 70_000}), |number| {
            if (3..6).contains(&number) || number == 66_000 {
                vec![]
            } else {
                vec![Duration::ZERO]
            }
        });
        assert_eq!((&row["packets"], &row["lost"]), (&json!(69_996), &json!(4)));
        assert_eq!(row["loss_bursts"]["histogram"], json!([[1, 1], [3, 1]]));
        assert_eq!(row["rtp"]["frames"], json!({"complete": 69_996, "damaged": 0, "lost": 4}));
        assert_eq!(row["rtp"]["expected"], 70_000);
    }

    #[test]
    fn a_stream_that_began_before_the_sink_says_how_many_frames_it_missed() {
        let row = run(json!({"frame_bytes": [7 * 184], "frames": 70}), |number| {
            if number < 10 {
                vec![]
            } else {
                vec![Duration::ZERO]
            }
        });
        assert_eq!(row["rtp"]["frames"], json!({"complete": 60, "damaged": 0, "lost": 10}));
        let told =
            "the first 10 video frames were lost or sent before this receiver listened; they are counted as lost";
        assert_eq!(row["errors"], json!([told]));
    }

    #[test]
    fn the_source_tells_of_the_frames_that_no_sink_can_know_of() {
        let mut network = LoopNetwork::new(Duration::from_ms(5));
        network.datagram_fate(|number| if number < 20 { vec![Duration::ZERO] } else { vec![] });
        let sink = network.start(1, &app(json!({"kind": "rtp_sink", "port": 5004, "interval_ps": 1_000_000_000_u64})));
        let source = json!({"kind": "rtp_source", "to": "10.0.0.2", "port": 5004, "flow": 9, "frames_per_second": 60,
            "frame_bytes": [7 * 184], "frames": 70});
        let source = network.start(0, &app(source));
        network.run_until(Time::ZERO + Duration::from_secs(5));
        assert_eq!(network.report(source)["flows"][0]["frames_sent"], 70);
        assert_eq!(network.report(sink)["flows"][0]["rtp"]["frames"]["complete"], 20);
    }

    #[test]
    fn a_step_that_is_no_ordinary_loss_is_told() {
        let mut sink = RtpSink::new(RtpSinkConfig {
            port: 1,
            interval_ps: 1_000_000_000,
            clock_hz: None,
            record_packets: None,
            mtu_bytes: None,
        });
        for sequence in [0_u16, 1, 20_000] {
            let [high, low] = sequence.to_be_bytes();
            let packet = [0x80, 33, high, low, 0, 0, 0, 0, 0, 0, 0, 1];
            sink.receive("10.0.0.1:9".parse().unwrap(), &packet, 12, Time::ZERO);
        }
        let row = &sink.report(Time::ZERO)["flows"][0];
        assert_eq!((&row["lost"], &row["sequence_jumps"]), (&json!(19_998), &json!(1)));
        assert!(row["errors"][0].as_str().unwrap().contains("stepped by more than 3000, 1 times"), "{row}");
    }

    #[test]
    fn a_clock_that_was_set_is_told() {
        let mut sink = RtpSink::new(RtpSinkConfig {
            port: 1,
            interval_ps: 1_000_000_000,
            clock_hz: None,
            record_packets: None,
            mtu_bytes: None,
        });
        let mut host = crate::loop_network::RecordingHost::new(1);
        sink.handle(Time::ZERO, Event::ClockStepped { by_ns: 2_000_000 }, &mut host);
        let told = sink.report(Time::ZERO)["flows"][0]["errors"][0].to_string();
        assert!(told.contains("the machine's clock was set by 2.000 ms"), "{told}");
    }

    #[test]
    fn a_packet_of_two_frames_damages_both() {
        // 10 packets of the transport stream a frame: the second RTP packet has the end of frame 0 and the
        // beginning of 1.
        let row =
            run(
                json!({"frame_bytes": [1840], "frames": 70}),
                |number| if number == 1 { vec![] } else { vec![Duration::ZERO] },
            );
        assert_eq!(row["rtp"]["frames"], json!({"complete": 68, "damaged": 2, "lost": 0}));
    }

    #[test]
    fn a_shaped_stream_leaves_evenly_whatever_its_frames_are() {
        // 6 frames in each 100 ms: 70 packets of the transport stream in the first, one in each of the others; 75
        // in all.
        let sizes = [70 * 184, 184, 184, 184, 184, 184];
        let row = run(json!({"frame_bytes": sizes, "shaping_ps": 100_000_000_000_u64, "frames": 600}), |_| {
            vec![Duration::ZERO]
        });
        assert_eq!(row["rtp"]["frames"], json!({"complete": 600, "damaged": 0, "lost": 0}));
        // Seven of 75 in 100 ms; timestamps follow, but for whole ticks of 11.1 us.
        let (least, most) = (row["gap_ps"]["min"].as_u64().unwrap(), row["gap_ps"]["max"].as_u64().unwrap());
        assert!(least.abs_diff(9_333_333_333) < 10 && most.abs_diff(9_333_333_333) < 10, "{least} {most}");
        assert!(row["rtp"]["jitter_ps"]["max"].as_f64().unwrap() < 11.2e6, "{row}");
    }

    #[test]
    fn shaping_and_pacing_exclude_each_other() {
        let given = json!({"kind": "rtp_source", "to": "10.0.0.2", "port": 5004, "flow": 9, "frames_per_second": 60,
            "frame_bytes": [1], "frames": 1, "paced": true, "shaping_ps": 100_000_000_000_u64});
        let config: AppConfig = serde_json::from_value(given).unwrap();
        assert!(config.validate().unwrap_err().to_string().contains("shaping_ps"));
    }

    #[test]
    fn the_model_keeps_its_rate_for_as_long_as_it_is_told() {
        let model = json!({"rate_bps": 1_026_000, "group_frames": 30, "b_frames": 2, "variation": 0.3});
        let row = run(json!({"model": model, "duration_ps": 50_000_000_000_000_u64}), |_| vec![Duration::ZERO]);
        let frames = row["rtp"]["frames"]["complete"].as_u64().unwrap();
        assert_eq!(frames, 3000);
        // The transport stream adds 4 bytes to 184 and fills up the last of each frame: half of 184 in the mean, of
        // 2137.5.
        let payload = (row["bytes"].as_f64().unwrap() - row["packets"].as_f64().unwrap() * 12.0) * 8.0 / 50.0;
        let expected = 1_026_000.0 * (188.0 / 184.0) * (1.0 + 92.0 / 2137.5);
        assert!((payload / expected - 1.0).abs() < 0.05, "{payload} against {expected}");
    }

    #[test]
    fn every_packet_tells_its_jitter_and_bandwidth_and_a_duplicate_tells_none() {
        let mut sink = RtpSink::new(RtpSinkConfig {
            port: 1,
            interval_ps: 1_000_000_000,
            clock_hz: None,
            record_packets: Some(10),
            mtu_bytes: None,
        });
        // The second packet comes 16 ms after the first, its timestamp says none: the jitter is a sixteenth of that.
        for (sequence, milliseconds) in [(0, 0), (1, 16), (1, 17)] {
            let packet = [0x80, 33, 0, sequence, 0, 0, 0, 0, 0, 0, 0, 1];
            sink.receive("10.0.0.1:9".parse().unwrap(), &packet, 12, Time::ZERO + Duration::from_ms(milliseconds));
        }
        let report = sink.report(Time::ZERO);
        let samples = &report["flows"][0]["samples"];
        assert_eq!(samples["jitter_ps"], json!([null, 1e9, null]));
        assert_eq!(samples["bandwidth_bps"], json!([320.0, 640.0, null]));
    }

    #[test]
    fn what_is_no_rtp_is_told_and_a_foreign_stream_has_no_delay() {
        let mut sink = RtpSink::new(RtpSinkConfig {
            port: 1,
            interval_ps: 1_000_000_000,
            clock_hz: None,
            record_packets: None,
            mtu_bytes: None,
        });
        let from = "10.0.0.1:9".parse().unwrap();
        sink.receive(from, b"hello, this is no RTP", 21, Time::ZERO);
        sink.receive(from, &[0x80, 33, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1], 12, Time::ZERO);
        let report = sink.report(Time::ZERO);
        let row = &report["flows"][0];
        assert_eq!((row["flow"].is_null(), &row["packets"], row.get("delay_ps")), (true, &json!(1), None));
        assert_eq!(report["flows"][1]["errors"], json!(["a datagram that is no RTP (version 2) was not counted"]));
    }
}
