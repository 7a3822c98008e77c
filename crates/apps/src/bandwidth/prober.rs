//! Sends the trains of an estimator and asks the listener when they arrived.
//!
//! Packets are sent by absolute deadlines. When each went to the interface (where the kernel tells; else when it was
//! handed to the kernel) is noted, so that estimators know the rate that was really sent. The question for stamps
//! follows the last packet on the same way, so it arrives after all of them. A listener that does not answer is asked
//! again, with growing patience, and given up after some seconds.

mod report;

use std::net::SocketAddr;

use serde_json::Value;
use twinnet_units::{Duration, Time};

use super::ceiling::Ceiling;
use super::estimator::{Estimator, Probing, Step};
use super::framing::Framing;
use super::message::{Message, MOST_STAMPS, PROBE_LENGTH};
use super::prober_config::BandwidthProberConfig;
use super::slots::Slots;
use super::train::Train;
use crate::account::bandwidth_report::TrainRates;
use crate::account::errors::ErrorTally;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::{App, Chunk, Event, Host, HostError, SocketId};

/// The time that the first answer may take; twice as long each time after that.
const PATIENCE: Duration = Duration::from_ms(250);
/// The number of times the prober asks before it gives up: 250 ms, 500 ms, ... 8 s.
const TRIES: u32 = 6;
/// Trains of which rates are reported.
const MOST_RATES: usize = 1000;
/// Trains of which stamps are kept.
pub const MOST_RECORDED: usize = 10_000;
/// Arrivals closer than this may be a batch, in nanoseconds; a train counts as batched from this share of them on.
const BATCH_NS: f64 = 10_000.0;
const BATCHED: f64 = 0.2;
/// The hop limit of packets that are to arrive, after others were to expire (as Linux's own).
const USUAL_HOPS: u8 = 64;
/// Packets sent in one call.
const MOST_PER_CALL: usize = 64;

enum State {
    /// Waits for the listener's welcome.
    Greeting { nonce: u64 },
    /// Sends a train, the next packet of which is at this place.
    Sending { place: usize },
    /// Waits for stamps.
    Asking,
    /// Has ended.
    Over,
}

/// The app.
pub struct BandwidthProber {
    config: BandwidthProberConfig,
    framing: Framing,
    estimator: Option<Box<dyn Estimator>>,
    socket: Option<SocketId>,
    /// Hops after which what is sent now expires; `None` as long as it is the host's own choice.
    hop_limit: Option<u8>,
    from: Option<SocketAddr>,
    state: State,
    due: Option<Time>,
    tries: u32,
    cookie: u64,
    most_rate_bps: u64,
    start: Option<Time>,
    train_number: u32,
    train: Train,
    /// `true` where the stamps have come of each piece of this train, [`MOST_STAMPS`] packets long.
    told: Vec<bool>,
    /// Questions about this train that were sent.
    asked: usize,
    begun: Time,
    window: Option<(Time, Time)>,
    counts: Counts,
    why_ended: Option<String>,
    rates: Vec<TrainRates>,
    shares: (f64, u64, f64),
    slots: Slots,
    ceiling: Ceiling,
    record: Vec<Train>,
    errors: ErrorTally,
}

#[derive(Default)]
struct Counts {
    packets: u64,
    bytes: f64,
    lost: u64,
    control_bytes: f64,
    trains: u64,
    kernel_stamped: u64,
    interruptions: u64,
    batched: u64,
    overflowed: u64,
    clock_steps: u64,
}

impl BandwidthProber {
    /// A prober that does what `config` says.
    #[must_use]
    pub fn new(config: BandwidthProberConfig) -> Self {
        Self {
            framing: Framing::new(config.layer, config.to.is_ipv6()),
            most_rate_bps: config.most_rate_bps,
            config,
            estimator: None,
            socket: None,
            hop_limit: None,
            from: None,
            state: State::Over,
            due: None,
            tries: 0,
            cookie: 0,
            start: None,
            train_number: 0,
            train: Train::default(),
            told: Vec::new(),
            asked: 0,
            begun: Time::ZERO,
            window: None,
            counts: Counts::default(),
            why_ended: None,
            rates: Vec::new(),
            shares: (0.0, 0, f64::INFINITY),
            slots: Slots::default(),
            ceiling: Ceiling::default(),
            record: Vec::new(),
            errors: ErrorTally::default(),
        }
    }

    fn begin(&mut self, now: Time, host: &mut dyn Host) {
        self.start = Some(now);
        let nonce = host.random();
        let v6 = self.config.to.is_ipv6();
        let open = |host: &mut dyn Host| -> Result<SocketId, HostError> {
            let socket = host.udp_bind(0, v6)?;
            // Fragments would be other probes than those that were asked for.
            let _ = host.forbid_fragments(socket);
            host.stamp_departures(socket);
            Ok(socket)
        };
        match open(host) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.from = host.addresses(socket).map(|(local, _)| local);
            }
            Err(error) => {
                self.errors.add(error);
                self.end("no socket could be opened", host);
                return;
            }
        }
        self.state = State::Greeting { nonce };
        self.ask(now, host);
    }

    /// Sends what waits for an answer, again if need be; gives up when it was asked often enough.
    fn ask(&mut self, now: Time, host: &mut dyn Host) {
        if self.tries >= TRIES {
            let to = self.config.target();
            let why = match self.estimator {
                Some(_) => format!("the listener at {to} has answered before, and does not any more"),
                None => {
                    format!("no listener answers at {to}: is one there (twinnet abw --listen), and may datagrams pass?")
                }
            };
            self.end(&why, host);
            return;
        }
        let messages = match self.state {
            State::Greeting { nonce } => vec![Message::Hello { nonce }],
            State::Asking => self.questions(),
            State::Sending { .. } | State::Over => return,
        };
        self.tries += 1;
        self.due = Some(now + Duration::from_ps(PATIENCE.as_ps() << (self.tries - 1)));
        let Some(socket) = self.socket else { return };
        if !self.limit_hops(None, socket, host) {
            return;
        }
        for message in messages {
            let bytes = message.emit();
            self.counts.control_bytes += self.framing.bits(bytes.len() as u32) / 8.0;
            match host.udp_send(socket, self.config.target(), Chunk::Bytes(&bytes)) {
                Ok(()) => self.asked += 1,
                Err(error) => self.errors.add(error),
            }
            // Each by itself, so that each has a stamp.
            host.flush(socket);
        }
    }

    /// Asks for every piece of the train that is not told yet.
    fn questions(&self) -> Vec<Message> {
        let missing = self.told.iter().enumerate().filter(|(_, told)| !**told);
        let ask = |piece: usize| Message::Ask {
            cookie: self.cookie,
            train: self.train_number,
            place: (piece * MOST_STAMPS) as u16,
        };
        missing.map(|(piece, _)| ask(piece)).collect()
    }

    /// Asks the estimator what to do.
    fn proceed(&mut self, now: Time, host: &mut dyn Host) {
        let Some(estimator) = &mut self.estimator else { return };
        let Step::Send { mut plan, idle_ns } = estimator.next() else { return self.end("", host) };
        for packet in &mut plan.packets {
            packet.payload =
                packet.payload.clamp(PROBE_LENGTH as u32, self.config.most_payload.max(PROBE_LENGTH as u32));
        }
        let bytes = plan.bits(self.framing) / 8.0;
        if plan.packets.is_empty() {
            return self.end("the method asked for a train of no packets", host);
        }
        if self
            .config
            .budget_bytes
            .is_some_and(|budget| self.counts.bytes + self.counts.control_bytes + bytes > budget as f64)
        {
            return self.end("the next train would exceed the budget of bytes", host);
        }
        let idle = Duration::from_ps((idle_ns.clamp(0.0, 3.6e12) * 1000.0) as u64);
        let past = |start: Time| (now + idle).since(start).as_ps() > self.config.duration_ps;
        if self.start.is_some_and(past) {
            return self.end("the time that was allowed is over", host);
        }
        self.train_number = self.train_number.wrapping_add(1);
        let count = plan.packets.len();
        self.train = Train { plan, sent_ns: Vec::with_capacity(count), ..Train::default() };
        self.begun = now + idle;
        self.state = State::Sending { place: 0 };
        self.due = Some(self.begun);
    }

    fn due_of(&self, place: usize) -> Option<Time> {
        self.train.plan.packets.get(place).map(|packet| self.begun + Duration::from_ps(packet.at_ns * 1000))
    }

    /// Sends the packets that are due.
    fn send_due(&mut self, now: Time, host: &mut dyn Host) {
        let State::Sending { mut place } = self.state else { return };
        if place == 0 {
            // A host that wakes late begins late; the gaps are what counts.
            self.begun = now;
            self.asked = 0;
            if let Some(socket) = self.socket {
                // Those of questions about the train before.
                host.departures(socket);
            }
            self.window = Some((self.window.map_or(now, |(start, _)| start), now));
        }
        for _ in 0..MOST_PER_CALL {
            match self.due_of(place) {
                Some(due) if due <= now => {}
                _ => break,
            }
            if !self.send_probe(place, now, host) {
                return;
            }
            place += 1;
        }
        self.state = State::Sending { place };
        self.due = self.due_of(place);
        if self.due.is_none() {
            self.state = State::Asking;
            let count = self.train.plan.packets.len();
            (self.tries, self.told) = (0, vec![false; count.div_ceil(MOST_STAMPS)]);
            // Of what is not told nothing arrived.
            self.train.arrived_ns = vec![None; count];
            self.ask(now, host);
        }
    }

    /// Sends one packet and notes when it went; false when the prober had to end.
    fn send_probe(&mut self, place: usize, now: Time, host: &mut dyn Host) -> bool {
        let packet = self.train.plan.packets[place];
        let Some(socket) = self.socket else { return false };
        if !self.limit_hops(packet.hop_limit, socket, host) {
            return false;
        }
        let probe = Message::Probe { cookie: self.cookie, train: self.train_number, place: place as u16 };
        let chunk = Chunk::Padded(&probe.emit(), packet.payload - PROBE_LENGTH as u32);
        let outcome = host.udp_send(socket, self.config.target(), chunk);
        let handed_over = host.flush(socket).map_or(now, |handover| handover.begun);
        self.train.sent_ns.push(i64::try_from(handed_over.as_ns()).unwrap_or(i64::MAX));
        match outcome {
            Ok(()) => {
                self.counts.packets += 1;
                self.counts.bytes += self.framing.bits(packet.payload) / 8.0;
                true
            }
            Err(
                error @ (HostError::WouldFragment(_)
                | HostError::TooLong(_)
                | HostError::Unreachable(_)
                | HostError::NoSuchSocket),
            ) => {
                let why = format!("a probe of {} bytes could not be sent: {error}", packet.payload);
                self.end(&why, host);
                false
            }
            // It counts as lost.
            Err(error) => {
                self.errors.add(error);
                true
            }
        }
    }

    /// Lets what is sent from now on expire after `limit` hops, or after as many as is usual; false when the host
    /// refused. There is one socket for both, since the listener knows a prober by its port.
    fn limit_hops(&mut self, limit: Option<u8>, socket: SocketId, host: &mut dyn Host) -> bool {
        if self.hop_limit == limit {
            return true;
        }
        self.hop_limit = limit;
        match host.set_hop_limit(socket, limit.unwrap_or(USUAL_HOPS)) {
            Ok(()) => true,
            Err(error) => {
                self.end(&format!("the hop limit could not be set: {error}"), host);
                false
            }
        }
    }

    fn hear(&mut self, now: Time, bytes: &[u8], length: usize, host: &mut dyn Host) {
        match (Message::parse(bytes, length), &self.state) {
            (Some(Message::Welcome { nonce, cookie, most_rate_bps }), State::Greeting { nonce: ours })
                if nonce == *ours =>
            {
                self.cookie = cookie;
                self.most_rate_bps = self.config.most_rate_bps.min(most_rate_bps.max(10_000));
                let probing = Probing {
                    framing: self.framing,
                    most_payload: self.config.most_payload,
                    most_rate_bps: self.most_rate_bps as f64,
                    seed: host.random(),
                };
                self.estimator = Some(self.config.method.build(probing));
                self.tries = 0;
                self.proceed(now, host);
            }
            (Some(Message::Stamps(stamps)), State::Asking)
                if stamps.cookie == self.cookie && stamps.train == self.train_number =>
            {
                let first = usize::from(stamps.place);
                let piece = first / MOST_STAMPS;
                if first % MOST_STAMPS != 0 || self.told.get(piece) != Some(&false) {
                    return;
                }
                self.told[piece] = true;
                for (place, arrived) in self.train.arrived_ns.iter_mut().skip(first).zip(stamps.arrived_ns) {
                    *place = arrived.and_then(|arrived| i64::try_from(arrived).ok());
                }
                self.train.overflowed = self.train.overflowed.saturating_add(stamps.overflowed);
                self.train.clock_stepped |= stamps.clock_stepped;
                self.tries = 0;
                if self.told.iter().all(|told| *told) {
                    self.judge(now, host);
                }
            }
            _ => {}
        }
    }

    /// A train is complete.
    fn judge(&mut self, now: Time, host: &mut dyn Host) {
        let mut train = std::mem::take(&mut self.train);
        let departures = self.socket.map(|socket| host.departures(socket)).unwrap_or_default();
        self.counts.kernel_stamped += u64::from(train.use_departures(self.asked, &departures));
        // The answer came after all probes, so what they put into queues has passed.
        self.window = self.window.map(|(start, _)| (start, now));
        let counts = &mut self.counts;
        counts.trains += 1;
        counts.lost += train.lost() as u64;
        counts.interruptions += train.interruptions().len() as u64;
        counts.batched += u64::from(train.batched(BATCH_NS) > BATCHED);
        counts.overflowed += u64::from(train.overflowed);
        counts.clock_steps += u64::from(train.clock_stepped);
        let (requested, generated) = (train.plan.rate_bps(self.framing), train.generated_bps(self.framing));
        if let Some((requested, generated)) = requested.zip(generated) {
            let share = generated / requested;
            self.shares = (self.shares.0 + share, self.shares.1 + 1, self.shares.2.min(share));
        }
        if self.rates.len() < MOST_RATES {
            self.rates.push(TrainRates {
                at_ps: self.begun.as_ps(),
                requested_bps: requested,
                generated_bps: generated.filter(|_| requested.is_some()),
                received_bps: train.received_bps(self.framing),
            });
        }
        if let Some(estimator) = self.estimator.as_mut().filter(|_| train.is_whole()) {
            self.slots.hear(&train);
            self.ceiling.hear(&train, self.framing);
            estimator.hear(&train);
        }
        if self.config.record && self.record.len() < MOST_RECORDED {
            self.record.push(train);
        }
        if self.slots_hinder() {
            // More trains would cost data and tell no more.
            return self.end("", host);
        }
        self.proceed(now, host);
    }

    /// Packets arrive in slots, and the method is not made for that.
    fn slots_hinder(&self) -> bool {
        self.slots.are_seen() && !self.config.method.is_for_slots()
    }

    fn end(&mut self, why: &str, host: &mut dyn Host) {
        if !why.is_empty() {
            self.why_ended = Some(why.to_owned());
        }
        self.state = State::Over;
        self.due = None;
        if let Some(socket) = self.socket.take() {
            host.close(socket);
        }
    }
}

impl App for BandwidthProber {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => self.begin(now, host),
            Event::Timer => match self.state {
                State::Sending { .. } => self.send_due(now, host),
                State::Greeting { .. } | State::Asking => self.ask(now, host),
                State::Over => self.due = None,
            },
            // Only the listener's own words count: strangers can send here, too.
            Event::Datagram { from, bytes, length, .. } if from == self.config.target() => {
                self.hear(now, bytes, length, host);
            }
            Event::ClockStepped { .. } => self.train.clock_stepped = true,
            Event::Returned { socket, error: HostError::Refused, .. } if Some(socket) == self.socket => {
                let to = self.config.target();
                let why = match self.estimator {
                    Some(_) => format!("the listener at {to} has ended: start twinnet abw --listen there again"),
                    None => format!("nobody listens at {to}: start twinnet abw --listen there"),
                };
                self.end(&why, host);
            }
            Event::Stop => self.end("it was stopped", host),
            Event::Failed { error, .. } => {
                self.errors.add(error);
                self.end("the socket failed", host);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn finished(&self) -> bool {
        self.start.is_some() && matches!(self.state, State::Over)
    }

    fn report(&self, _now: Time) -> Value {
        let mut row =
            FlowReport::new(Some(self.config.flow), Protocol::Bandwidth, Role::Client).with_errors(&self.errors);
        let report = self.bandwidth_report();
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(self.config.target().to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.window.map_or(self.start, |(_, end)| Some(end)).map(Time::as_ps);
        row.packets = Some(report.probe_packets);
        row.bytes = report.probe_bytes;
        row.lost = Some(report.probe_lost);
        if report.finding.estimate_bps.is_none() {
            row.errors.extend(report.finding.gave_up.clone());
        }
        row.bandwidth = Some(Box::new(report));
        AppReport { flows: vec![row] }.into_json()
    }
}
