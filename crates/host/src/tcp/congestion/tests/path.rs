//! A path to try algorithms on: senders, one bottleneck with a buffer, receivers that delay acknowledgements.
//!
//! Segments are numbers. The path keeps their order, so a segment is lost when one sent three later has arrived.
//! Recovery is as simple as can be: a loss-based sender goes straight to its threshold. What is tested is the
//! algorithm, not the connection.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use twinnet_units::{Duration, Rate, Time};

use super::super::{Acknowledged, Congestion, CongestionControl, RateSample, Repair};

/// Bytes of a segment, on the wire and for the sender alike.
pub const SEGMENT_BYTES: u32 = 1500;
/// Segments by which a later one must have passed a lost one.
const REORDERING: u64 = 3;
/// The time that a receiver waits for a second segment to acknowledge.
const DELAYED_ACKNOWLEDGEMENT: Duration = Duration::from_ms(40);
/// Silence after which all is taken for lost.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A bottleneck and the way around it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub rate: Rate,
    pub round_trip: Duration,
    /// The capacity of the bottleneck's buffer, in segments.
    pub buffer: u64,
    /// Segments that a receiver acknowledges at once.
    pub acknowledged_at_once: u32,
    /// A token bucket before the bottleneck: its rate, and its depth in segments.
    pub policer: Option<(Rate, f64)>,
}

impl Settings {
    /// A bottleneck of `megabits` and `round_trip_ms`, whose buffer holds `buffer` bandwidth-delay products.
    pub fn new(megabits: u64, round_trip_ms: u64, buffer: f64) -> Self {
        let rate = Rate::from_bps(megabits * 1_000_000).unwrap();
        let mut settings = Self {
            rate,
            round_trip: Duration::from_ms(round_trip_ms),
            buffer: 0,
            acknowledged_at_once: 2,
            policer: None,
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        {
            settings.buffer = (settings.product() * buffer).round().max(2.0) as u64;
        }
        settings
    }

    /// The bandwidth-delay product in segments.
    pub fn product(&self) -> f64 {
        self.round_trip.as_secs_f64() / self.rate.serialise(u64::from(SEGMENT_BYTES)).as_secs_f64()
    }
}

/// A segment on its way: when and with what account it was sent (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
struct Sent {
    order: u64,
    at: Time,
    first_of_sample: Time,
    delivered: u64,
    delivered_at: Time,
    app_limited: bool,
    again: bool,
}

/// One sender and its receiver.
#[derive(Debug)]
pub struct Flow {
    pub control: Box<dyn CongestionControl>,
    /// Segments delivered, lost and sent so far.
    pub delivered: u64,
    pub lost: u64,
    pub timeouts: u64,
    /// `true` if the app has something to send.
    pub sending: bool,
    outstanding: BTreeMap<u64, Sent>,
    /// Numbers of the outstanding segments, in the order of sending.
    in_order: BTreeMap<u64, u64>,
    to_resend: BTreeSet<u64>,
    next: u64,
    order: u64,
    acknowledged_to: u64,
    recovers_to: Option<u64>,
    after_timeout: bool,
    first_of_sample: Time,
    delivered_at: Time,
    may_send_at: Time,
    /// The time when pacing wakes the sender next.
    wakes_at: Option<Time>,
    last_sent_at: Time,
    progress_at: Time,
    smoothed: Duration,
    least: Option<Duration>,
    app_limited_to: u64,
    /// The receiver: what comes next in order, what came beyond it, what it has not acknowledged yet.
    expected: u64,
    beyond: BTreeSet<u64>,
    unacknowledged: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(usize),
    Arrival(usize, u64),
    DelayedAcknowledgement(usize, u64),
    Acknowledgement(usize, u64, Vec<u64>),
    TimeoutCheck(usize),
}

/// The path in motion.
#[derive(Debug)]
pub struct Path {
    pub now: Time,
    pub flows: Vec<Flow>,
    settings: Settings,
    free_at: Time,
    tokens: f64,
    tokens_at: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    sequence: u64,
}

impl Path {
    /// A path with one flow for each of `controls`, all beginning now.
    pub fn new(settings: Settings, controls: Vec<Box<dyn CongestionControl>>) -> Self {
        let mut path = Self {
            now: Time::from_ns(1_000_000),
            flows: Vec::new(),
            settings,
            free_at: Time::ZERO,
            tokens: settings.policer.map_or(0.0, |(_, depth)| depth),
            tokens_at: Time::ZERO,
            events: BinaryHeap::new(),
            sequence: 0,
        };
        controls.into_iter().for_each(|control| path.add(control));
        path
    }

    /// One more flow begins now, its handshake done.
    pub fn add(&mut self, mut control: Box<dyn CongestionControl>) {
        control.established(Some(self.settings.round_trip), SEGMENT_BYTES, self.now);
        self.flows.push(Flow::new(control, self.now));
        let flow = self.flows.len() - 1;
        self.schedule(self.now, Event::Wake(flow));
        self.schedule(self.now + TIMEOUT, Event::TimeoutCheck(flow));
    }

    /// Sets whether the app of `flow` has something to send from now on.
    pub fn set_sending(&mut self, flow: usize, sending: bool) {
        self.flows[flow].sending = sending;
        self.schedule(self.now, Event::Wake(flow));
    }

    /// Segments that wait in the bottleneck or are being sent by it.
    pub fn queue(&self) -> u64 {
        let segment = self.settings.rate.serialise(u64::from(SEGMENT_BYTES));
        (self.free_at - self.now).as_ps().div_ceil(segment.as_ps())
    }

    /// Lets `span` pass.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > end {
                self.schedule(at, event);
                break;
            }
            self.now = at;
            self.happen(event);
        }
        self.now = end;
    }

    /// Lets `span` pass in steps and gives what `seen` sees after each.
    pub fn watch<T>(&mut self, span: Duration, step: Duration, mut seen: impl FnMut(&Self) -> T) -> Vec<T> {
        (0..span.as_ps() / step.as_ps())
            .map(|_| {
                self.run(step);
                seen(self)
            })
            .collect()
    }

    /// Bits per second that `flow` gets delivered in the next `span`.
    pub fn goodput(&mut self, flow: usize, span: Duration) -> f64 {
        let before = self.flows[flow].delivered;
        self.run(span);
        #[allow(clippy::cast_precision_loss)]
        let bits = ((self.flows[flow].delivered - before) * 8 * u64::from(SEGMENT_BYTES)) as f64;
        bits / span.as_secs_f64()
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake(flow) => self.send(flow),
            Event::Arrival(flow, number) => self.arrive(flow, number),
            Event::DelayedAcknowledgement(flow, expected) => {
                if self.flows[flow].expected == expected {
                    self.acknowledge(flow);
                }
            }
            Event::Acknowledgement(flow, to, numbers) => {
                self.flows[flow].acknowledged(self.now, to, &numbers);
                self.send(flow);
            }
            Event::TimeoutCheck(flow) => {
                self.flows[flow].check_timeout(self.now);
                self.send(flow);
                self.schedule(self.now + Duration::from_ms(100), Event::TimeoutCheck(flow));
            }
        }
    }

    /// Sends what window and pacing let pass.
    fn send(&mut self, index: usize) {
        while self.flows[index].may_send() {
            let flow = &mut self.flows[index];
            if self.now < flow.may_send_at {
                let at = flow.may_send_at;
                if flow.wakes_at != Some(at) {
                    flow.wakes_at = Some(at);
                    self.schedule(at, Event::Wake(index));
                }
                return;
            }
            let number = flow.transmit(self.now);
            if let Some(arrival) = self.through_bottleneck() {
                self.schedule(arrival, Event::Arrival(index, number));
            }
        }
        let flow = &mut self.flows[index];
        if !flow.sending {
            flow.app_limited_to = flow.delivered + flow.in_flight();
        }
    }

    /// Returns the time when a segment that is sent now arrives; `None` when it is thrown away.
    fn through_bottleneck(&mut self) -> Option<Time> {
        if let Some((rate, depth)) = self.settings.policer {
            let segment = rate.serialise(u64::from(SEGMENT_BYTES)).as_secs_f64();
            self.tokens = depth.min(self.tokens + (self.now - self.tokens_at).as_secs_f64() / segment);
            self.tokens_at = self.now;
            if self.tokens < 1.0 {
                return None;
            }
            self.tokens -= 1.0;
        }
        if self.queue() > self.settings.buffer {
            return None;
        }
        self.free_at = self.free_at.max(self.now) + self.settings.rate.serialise(u64::from(SEGMENT_BYTES));
        Some(self.free_at + Duration::from_ps(self.settings.round_trip.as_ps() / 2))
    }

    fn arrive(&mut self, index: usize, number: u64) {
        let at_once = self.settings.acknowledged_at_once as usize;
        let flow = &mut self.flows[index];
        let in_order = number == flow.expected && flow.beyond.is_empty();
        flow.beyond.insert(number);
        while flow.beyond.remove(&flow.expected) {
            flow.expected += 1;
        }
        flow.unacknowledged.push(number);
        let expected = flow.expected;
        if !in_order || flow.unacknowledged.len() >= at_once {
            self.acknowledge(index);
        } else {
            self.schedule(self.now + DELAYED_ACKNOWLEDGEMENT, Event::DelayedAcknowledgement(index, expected));
        }
    }

    fn acknowledge(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let numbers = std::mem::take(&mut flow.unacknowledged);
        if !numbers.is_empty() {
            let event = Event::Acknowledgement(index, flow.expected, numbers);
            self.schedule(self.now + Duration::from_ps(self.settings.round_trip.as_ps() / 2), event);
        }
    }
}

impl Flow {
    fn new(control: Box<dyn CongestionControl>, now: Time) -> Self {
        Self {
            control,
            delivered: 0,
            lost: 0,
            timeouts: 0,
            sending: true,
            outstanding: BTreeMap::new(),
            in_order: BTreeMap::new(),
            to_resend: BTreeSet::new(),
            next: 0,
            order: 0,
            acknowledged_to: 0,
            recovers_to: None,
            after_timeout: false,
            first_of_sample: now,
            delivered_at: now,
            may_send_at: now,
            wakes_at: None,
            last_sent_at: now,
            progress_at: now,
            smoothed: Duration::ZERO,
            least: None,
            app_limited_to: 0,
            expected: 0,
            beyond: BTreeSet::new(),
            unacknowledged: Vec::new(),
        }
    }

    /// Segments in flight.
    pub fn in_flight(&self) -> u64 {
        self.outstanding.len() as u64
    }

    fn may_send(&self) -> bool {
        let fast_recovery = self.recovers_to.is_some() && !self.after_timeout && !self.control.rules_recovery();
        let window = if fast_recovery { self.control.slow_start_threshold() } else { self.control.window() };
        (self.sending || !self.to_resend.is_empty()) && self.in_flight() < u64::from(window)
    }

    fn transmit(&mut self, now: Time) -> u64 {
        if self.outstanding.is_empty() {
            self.first_of_sample = now;
            self.delivered_at = now;
            self.progress_at = now;
            self.control.transmission_started(now - self.last_sent_at, self.app_limited_to > 0, now);
        }
        let again = self.to_resend.pop_first();
        let number = again.unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.order += 1;
        let sent = Sent {
            order: self.order,
            at: now,
            first_of_sample: self.first_of_sample,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            app_limited: self.app_limited_to > 0,
            again: again.is_some(),
        };
        self.outstanding.insert(number, sent);
        self.in_order.insert(self.order, number);
        self.last_sent_at = now;
        if let Some(rate) = self.control.pacing_rate(SEGMENT_BYTES) {
            self.may_send_at = now + rate.serialise(u64::from(SEGMENT_BYTES));
        }
        number
    }

    fn acknowledged(&mut self, now: Time, to: u64, numbers: &[u64]) {
        let in_flight_before = self.in_flight();
        let arrived: Vec<Sent> = numbers.iter().filter_map(|number| self.outstanding.remove(number)).collect();
        let Some(newest) = arrived.iter().max_by_key(|sent| sent.order).copied() else { return };
        let delivered = arrived.len() as u64;
        for sent in &arrived {
            self.in_order.remove(&sent.order);
        }
        self.delivered += delivered;
        self.delivered_at = now;
        self.progress_at = now;
        if self.delivered > self.app_limited_to {
            self.app_limited_to = 0;
        }
        let round_trip = (!newest.again).then(|| now - newest.at);
        self.measure(round_trip);
        let lost = self.find_losses(newest.order);
        let acknowledged = to - self.acknowledged_to;
        self.acknowledged_to = to;
        self.update_recovery(now, lost, in_flight_before);
        let interval = (newest.at - newest.first_of_sample).max(now - newest.delivered_at);
        self.first_of_sample = newest.at;
        let told = Acknowledged {
            now,
            acknowledged: small(acknowledged),
            delivered: small(delivered),
            lost: small(lost),
            in_flight_before: small(in_flight_before),
            in_flight: small(self.in_flight()),
            round_trip,
            least_round_trip: self.least.unwrap_or_default(),
            smoothed_round_trip: self.smoothed,
            in_recovery: self.recovers_to.is_some() && !self.after_timeout,
            repair: match (self.recovers_to, self.after_timeout) {
                (None, _) => Repair::Nothing,
                (Some(_), false) => Repair::Losses,
                (Some(_), true) => Repair::Timeout,
            },
            window_limited: self.sending,
            rate: Some(RateSample {
                delivered: small(self.delivered - newest.delivered),
                interval,
                delivered_before: newest.delivered,
                delivered_total: self.delivered,
                app_limited: newest.app_limited,
                delayed: delivered == 1,
            }),
            next_sequence: self.next * u64::from(SEGMENT_BYTES),
            acknowledged_to: to * u64::from(SEGMENT_BYTES),
            segment_bytes: SEGMENT_BYTES,
        };
        self.control.acknowledged(&told);
    }

    fn measure(&mut self, round_trip: Option<Duration>) {
        let Some(round_trip) = round_trip else { return };
        self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
        let eighth = Duration::from_ps(round_trip.as_ps() / 8);
        self.smoothed = if self.smoothed == Duration::ZERO {
            round_trip
        } else {
            self.smoothed.saturating_sub(Duration::from_ps(self.smoothed.as_ps() / 8)) + eighth
        };
    }

    /// Takes for lost what was sent well before the segment of that order. How many.
    fn find_losses(&mut self, order: u64) -> u64 {
        let passed = self.in_order.split_off(&(order + 1).saturating_sub(REORDERING));
        let lost: Vec<u64> = std::mem::replace(&mut self.in_order, passed).into_values().collect();
        for number in &lost {
            self.outstanding.remove(number);
            self.to_resend.insert(*number);
        }
        self.lost += lost.len() as u64;
        lost.len() as u64
    }

    fn update_recovery(&mut self, now: Time, lost: u64, in_flight: u64) {
        match self.recovers_to {
            Some(to) if self.acknowledged_to >= to => {
                self.recovers_to = None;
                if !self.after_timeout {
                    let window = self.control.slow_start_threshold();
                    self.control.recovered(window, now);
                }
                self.after_timeout = false;
            }
            None if lost > 0 => {
                self.recovers_to = Some(self.next);
                self.control.congested(Congestion::Loss, small(in_flight), now);
            }
            _ => {}
        }
    }

    fn check_timeout(&mut self, now: Time) {
        if self.outstanding.is_empty() || now - self.progress_at < TIMEOUT {
            return;
        }
        let in_flight = small(self.in_flight());
        self.timeouts += 1;
        self.progress_at = now;
        self.in_order.clear();
        self.to_resend.extend(std::mem::take(&mut self.outstanding).into_keys());
        if self.recovers_to.is_some() {
            self.control.timed_out_again(in_flight, now);
        } else {
            self.control.congested(Congestion::Timeout, in_flight, now);
        }
        self.recovers_to = Some(self.next);
        self.after_timeout = true;
    }
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap()
}
