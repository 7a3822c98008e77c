//! Streams video over RTP: frames become packets of a transport stream, seven of which go into each RTP packet.
//!
//! As real streamers do, a packet of RTP leaves when it is full, so that its payload is always 1316 bytes: the last
//! packets of the transport stream of a frame wait for the next frame. With `paced` the packets of a frame are
//! spread evenly over the frame's interval, without it they leave back to back when the frame is due. With
//! `shaping_ps` the transport stream of all frames of a window is spread evenly over the window, as the multiplexer
//! of VLC does (200 ms there when nothing is said). Every deadline is computed from the start, so errors never
//! accumulate.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use twinnet_units::{Duration, Time};

use crate::account::report::{AppReport, Protocol};
use crate::account::sender::Sender;
use crate::check::{check_dscp, check_exactly_one, check_port, check_range, ConfigError};
use crate::rtp::frames::{check_trace, FrameSizes, VideoModel, MOST_FRAME, MOST_TRACE};
use crate::rtp::mark::{Mark, Part, MOST_PARTS, TS_LENGTH, TS_PER_PACKET};
use crate::{App, Chunk, Event, Host, HostError};
use twinnet_packet::rtp::{Header, HEADER_LENGTH};

/// Payload bytes of each RTP packet.
const PAYLOAD: u32 = TS_LENGTH * TS_PER_PACKET;
/// Bytes of a packet of the transport stream that are the video's: its header takes four.
const TS_CONTENT: u32 = TS_LENGTH - 4;
/// MPEG-2 transport streams (RFC 3551, table 5).
const PAYLOAD_TYPE: u8 = 33;
/// Its clock (RFC 2250).
const CLOCK_HZ: u128 = 90_000;
/// Packets sent in one call.
const MOST_PER_CALL: u32 = 64;
const SECOND_PS: u128 = 1_000_000_000_000;
/// Windows of shaping: 1 ms to 10 s.
const SHORTEST_SHAPING_PS: u64 = 1_000_000_000;
const LONGEST_SHAPING_PS: u64 = 10_000_000_000_000;

/// The task of an RTP source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RtpSourceConfig {
    /// The address to send to.
    pub to: IpAddr,
    /// The port there.
    #[schemars(range(min = 1, max = u16::MAX))]
    pub port: u16,
    /// The flow's number.
    pub flow: u32,
    /// Frames a second, in thousandths at the finest.
    #[schemars(range(min = 0.001, max = 100_000.0))]
    pub frames_per_second: f64,
    /// Sizes of frames in bytes, over and over. Either this or `model`.
    #[serde(default)]
    #[schemars(length(min = 1, max = MOST_TRACE), inner(range(min = 1, max = MOST_FRAME)))]
    pub frame_bytes: Option<Vec<u32>>,
    /// The model of a coder.
    #[serde(default)]
    pub model: Option<VideoModel>,
    /// `true` if the packets of a frame are spread over its interval; back to back when nothing is said.
    #[serde(default)]
    pub paced: Option<bool>,
    /// Length of the windows over which the transport stream is spread evenly; instead of `paced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = SHORTEST_SHAPING_PS, max = LONGEST_SHAPING_PS))]
    pub shaping_ps: Option<u64>,
    /// Differentiated services code point, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    pub dscp: Option<u8>,
    /// The time to send. Either this or `frames`.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub duration_ps: Option<u64>,
    /// The number of frames to send.
    #[serde(default)]
    #[schemars(range(min = 1, max = u64::from(u32::MAX)))]
    pub frames: Option<u64>,
}

impl RtpSourceConfig {
    pub(crate) const KIND: &'static str = "rtp_source";

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let kind = Self::KIND;
        check_port(kind, self.port)?;
        check_range(kind, "frames_per_second", self.frames_per_second, 0.001, 100_000.0)?;
        check_exactly_one(kind, ("frame_bytes", self.frame_bytes.is_some()), ("model", self.model.is_some()))?;
        self.frame_bytes.as_ref().map_or(Ok(()), |trace| check_trace(kind, trace))?;
        self.model.as_ref().map_or(Ok(()), |model| model.check(kind))?;
        if let Some(shaping) = self.shaping_ps {
            check_range(kind, "shaping_ps", shaping, SHORTEST_SHAPING_PS, LONGEST_SHAPING_PS)?;
            if self.paced == Some(true) {
                return check_exactly_one(kind, ("paced", true), ("shaping_ps", true));
            }
        }
        check_dscp(kind, self.dscp)?;
        check_exactly_one(kind, ("duration_ps", self.duration_ps.is_some()), ("frames", self.frames.is_some()))?;
        if let Some(duration) = self.duration_ps {
            check_range(kind, "duration_ps", duration, 1, u64::MAX)?;
        }
        self.frames.map_or(Ok(()), |frames| check_range(kind, "frames", frames, 1, u64::from(u32::MAX)))
    }

    /// Returns the time when a frame is due after the start, rounded down to a picosecond.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn frame_time(&self, number: u64) -> Duration {
        let thousandths = ((self.frames_per_second * 1000.0).round() as u128).max(1);
        let exact = u128::from(number) * SECOND_PS * 1000 / thousandths;
        Duration::from_ps(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// Frames to send.
    fn frame_count(&self) -> u64 {
        self.frames.unwrap_or(u64::from(u32::MAX))
    }
}

/// A packet that waits for its time.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Time,
    content: [Part; MOST_PARTS],
    parts: u8,
}

/// The app.
pub struct RtpSource {
    config: RtpSourceConfig,
    sizes: FrameSizes,
    sender: Sender,
    /// Packets of the current frame that have not left.
    waiting: VecDeque<Waiting>,
    /// Parts of the packet that is not full.
    content: [Part; MOST_PARTS],
    parts: u8,
    /// Packets of the transport stream in it.
    filled: u32,
    /// The time when the first of them is due.
    first_due: Time,
    next_frame: u64,
    due: Option<Time>,
    sequence: u16,
    timestamp: u32,
    source: u32,
    /// One past the highest frame of which a part was sent.
    frames_sent: u64,
}

impl RtpSource {
    /// A source that does what `config` says.
    #[must_use]
    pub fn new(config: RtpSourceConfig) -> Self {
        Self {
            sender: Sender::new(SocketAddr::new(config.to, config.port)),
            config,
            sizes: FrameSizes::Trace(Vec::new()),
            waiting: VecDeque::new(),
            content: [Part::default(); MOST_PARTS],
            parts: 0,
            filled: 0,
            first_due: Time::ZERO,
            next_frame: 0,
            due: None,
            sequence: 0,
            timestamp: 0,
            source: 0,
            frames_sent: 0,
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        // RFC 3550, 5.1: sequence number, timestamp and source begin at random values.
        let (seed, first) = (host.random(), host.random());
        self.sequence = (first >> 32) as u16;
        self.source = first as u32;
        self.timestamp = host.random() as u32;
        self.sizes = match (&self.config.frame_bytes, &self.config.model) {
            (Some(trace), _) => FrameSizes::Trace(trace.clone()),
            (None, Some(model)) => FrameSizes::of_model(model, self.config.frames_per_second, seed),
            (None, None) => FrameSizes::Trace(vec![1]),
        };
        if self.sender.bind(now, self.config.dscp, false, host) {
            self.sender.start = Some(now);
            self.due = Some(now);
        }
    }

    /// Returns when frame `number` is due after the start, if it is still to be sent.
    fn frame_to_send(&self, number: u64) -> Option<Duration> {
        let at = self.config.frame_time(number);
        let over = self.config.duration_ps.is_some_and(|duration| at.as_ps() >= duration);
        (!over && number < self.config.frame_count()).then_some(at)
    }

    /// Cuts what comes next into packets: a frame, or the frames of a window; whether there was one.
    fn load(&mut self, start: Time) -> bool {
        let Some(at) = self.frame_to_send(self.next_frame) else { return false };
        match self.config.shaping_ps {
            None => self.load_frame(start, at),
            Some(shaping) => self.load_window(start, at.as_ps() / shaping, shaping),
        }
        true
    }

    /// Cuts the next frame into packets, which are due with it or spread over its interval.
    fn load_frame(&mut self, start: Time, at: Duration) {
        let number = self.next_frame;
        self.next_frame += 1;
        let whole = self.whole_packets(number);
        let packets = u128::from((self.filled + whole) / TS_PER_PACKET).max(1);
        let interval = self.config.frame_time(number + 1).as_ps().saturating_sub(at.as_ps());
        let paced = self.config.paced == Some(true);
        let mut made = 0_u128;
        let mut left = whole;
        while left > 0 {
            left -= self.put_in(number, whole, left);
            if self.filled == TS_PER_PACKET {
                let offset = if paced { u128::from(interval) * made / packets } else { 0 };
                self.flush_packet(start + at + picoseconds(offset));
                made += 1;
            }
        }
    }

    /// Cuts the frames of a window into packets of the transport stream and spreads these evenly over it. A packet
    /// of RTP is due with the first that it carries.
    fn load_window(&mut self, start: Time, window: u64, shaping: u64) {
        let begin = Duration::from_ps(window.saturating_mul(shaping));
        let mut frames = Vec::new();
        while let Some(at) = self.frame_to_send(self.next_frame) {
            if at.as_ps() / shaping != window {
                break;
            }
            frames.push((self.next_frame, self.whole_packets(self.next_frame)));
            self.next_frame += 1;
        }
        let total = frames.iter().map(|(_, whole)| u128::from(*whole)).sum::<u128>().max(1);
        let mut place = 0_u128;
        for (number, whole) in frames {
            let mut left = whole;
            while left > 0 {
                if self.filled == 0 {
                    self.first_due = start + begin + picoseconds(u128::from(shaping) * place / total);
                }
                let here = self.put_in(number, whole, left);
                left -= here;
                place += u128::from(here);
                if self.filled == TS_PER_PACKET {
                    self.flush_packet(self.first_due);
                }
            }
        }
    }

    /// Packets of the transport stream that frame `number` fills; asked for in order.
    fn whole_packets(&mut self, number: u64) -> u32 {
        self.sizes.size(number).div_ceil(TS_CONTENT).max(1)
    }

    /// Puts as many of the `left` packets of a frame as have room into the packet of RTP, and tells how many.
    #[allow(clippy::cast_possible_truncation)]
    fn put_in(&mut self, frame: u64, whole: u32, left: u32) -> u32 {
        let here = left.min(TS_PER_PACKET - self.filled);
        if let Some(part) = self.content.get_mut(usize::from(self.parts)) {
            *part = Part { frame: frame as u32, here: here as u8, whole };
            self.parts += 1;
        }
        self.filled += here;
        here
    }

    fn flush_packet(&mut self, due: Time) {
        self.waiting.push_back(Waiting { due, content: self.content, parts: self.parts });
        self.parts = 0;
        self.filled = 0;
    }

    /// Loads frames until a packet waits; at the end what is left of the last frame, filled up with null packets.
    fn prepare(&mut self, now: Time, start: Time, host: &mut dyn Host) {
        while self.waiting.is_empty() && !self.sender.finished {
            if !self.load(start) {
                if self.filled == 0 {
                    return self.end(now, host);
                }
                let shaped = self.config.shaping_ps.is_some();
                let last = start + self.config.frame_time(self.next_frame.saturating_sub(1));
                self.flush_packet(if shaped { self.first_due } else { last });
            }
        }
    }

    fn send_due(&mut self, now: Time, host: &mut dyn Host) {
        let Some(start) = self.sender.start.filter(|_| !self.sender.finished) else { return };
        for _ in 0..MOST_PER_CALL {
            if self.waiting.is_empty() {
                self.prepare(now, start, host);
            }
            let Some(packet) = self.waiting.front().copied().filter(|packet| packet.due <= now) else { break };
            self.waiting.pop_front();
            let taken = self.send_one(now, start, packet, host);
            self.sender.pacing.add(packet.due, now, PAYLOAD, taken);
        }
        if self.waiting.is_empty() && !self.sender.finished {
            self.prepare(now, start, host);
        }
        self.due = self.waiting.front().map(|packet| packet.due);
    }

    #[allow(clippy::cast_possible_truncation)]
    fn send_one(&mut self, now: Time, start: Time, packet: Waiting, host: &mut dyn Host) -> bool {
        // RFC 2250, 2: the target transmission time of the first byte, by the 90 kHz clock.
        let ticks = u128::from(packet.due.since(start).as_ps()) * CLOCK_HZ / SECOND_PS;
        let header = Header {
            payload_type: PAYLOAD_TYPE,
            sequence: self.sequence,
            timestamp: self.timestamp.wrapping_add(ticks as u32),
            source: self.source,
            ..Header::default()
        };
        let mark = Mark { flow: self.config.flow, sent_ns: now.as_ns(), content: packet.content, parts: packet.parts };
        let bytes = mark.emit_behind(&header);
        let padding = (HEADER_LENGTH as u32 + PAYLOAD).saturating_sub(bytes.len() as u32);
        let outcome = self.sender.send(now, Chunk::Padded(&bytes, padding), host);
        let taken = outcome.is_ok();
        match outcome {
            Ok(()) => {
                self.sequence = self.sequence.wrapping_add(1);
                for part in packet.content.iter().take(usize::from(packet.parts)) {
                    self.frames_sent = self.frames_sent.max(u64::from(part.frame) + 1);
                }
            }
            Err(HostError::Full) => self.sender.errors.add("a packet was not sent: the host's send buffer was full"),
            Err(error) => self.sender.errors.add(error),
        }
        taken
    }

    fn end(&mut self, now: Time, host: &mut dyn Host) {
        self.due = None;
        self.waiting.clear();
        self.sender.close(now, host);
    }
}

fn picoseconds(value: u128) -> Duration {
    Duration::from_ps(u64::try_from(value).unwrap_or(u64::MAX))
}

impl App for RtpSource {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.begin(now, host);
                self.send_due(now, host);
            }
            Event::Timer => self.send_due(now, host),
            Event::Stop => self.end(now, host),
            Event::Failed { error, .. } => {
                self.sender.errors.add(error);
                self.end(now, host);
            }
            Event::Returned { error, datagrams, .. } => self.sender.note_returned(now, error, datagrams),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn finished(&self) -> bool {
        self.sender.finished
    }

    fn report(&self, _now: Time) -> Value {
        let mut row = self.sender.report(self.config.flow, Protocol::Rtp);
        row.frames_sent = Some(self.frames_sent);
        row.bytes = self.sender.sent * u64::from(PAYLOAD);
        AppReport { flows: vec![row] }.into_json()
    }
}
