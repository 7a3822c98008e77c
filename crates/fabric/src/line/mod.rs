//! One direction of a link in motion: queue discipline, serialiser, propagation, and the schedule that it keeps.
//!
//! All that a line does to a frame is in [`Line`]; the engine only routes. A frame is [offered](Line::offer) to it,
//! or taken from the interface of a host; the serialiser [begins](Line::begin) it when it is free; it departs when
//! its last bit has left, and [arrives](Line::arrive) at the far end. Each step returns [`Effects`]: the moments at
//! which the engine has to come back. Time and randomness are given from outside.

mod changes;
mod config;
mod counters;
mod crossing;
mod deliveries;
mod effects;
mod in_flight;
mod pace;
mod schedule;
mod sender;
mod showing;

use twinnet_packet::{Extent, Fragment, Frame, Framing, Train};
use twinnet_units::{Duration, Rate, Time};

pub use config::{wire_bytes, DirectionConfig};
pub use counters::DirectionCounters;
use crossing::Cut;
use deliveries::Deliveries;
pub use deliveries::{DeliveryTrace, DeliveryTraceError, MOST_DELIVERIES};
pub(crate) use effects::{Arrival, Budget, Effects};
use in_flight::InFlight;
use pace::Pace;
use schedule::Schedule;
pub use schedule::{catch_up, LineRecord};
use sender::CountDrops;
pub(crate) use sender::{Feed, Sender};

use crate::tunnel::Entry;
use twinnet_impair::Impairments;
use twinnet_queue::ecn::{is_congested, mark_congestion};
use twinnet_queue::Backlog;

/// Longest time that a train may occupy a serialiser before it is cut, so that the first of its frames does not wait
/// for the last: at 1 Gbit/s eight full-size Ethernet frames. See [`crate::Fabric::keep_trains_exact`].
pub const LONGEST_TRAIN: Duration = Duration::from_us(100);

/// One direction of a link in motion.
///
/// Called by the engine alone, with times that never go back: [`offer`](Self::offer) or [`wake`](Self::wake) when there
/// is something to send, [`depart`](Self::depart), [`release`](Self::release) and [`arrive`](Self::arrive) at the
/// moments that [`Effects`] named. A call at a moment that was taken back since does nothing, so the engine need not
/// cancel events.
///
/// Frames leave in the order of the queue discipline and arrive in the order in which they left (unless `reorder` is
/// set), no closer than the rate allows. What is on the serialiser is among the frames in flight already. Each frame
/// that was taken arrives, or is in the counters with the reason why not.
// What every frame touches lies together in front, what few do behind: a network's lines do not fit into the
// processor's first cache. Each paragraph is a line of that cache.
#[repr(C, align(64))]
pub(crate) struct Line {
    pub(crate) to: u32,
    up: bool,
    /// The frames of a train leave one by one, however short it is.
    singly: bool,
    /// The queue has been told of a rest.
    rest_is_held: bool,
    /// Until when the serialiser is busy: the end of the last frame's inter-frame gap.
    busy_until: Time,
    /// The same, had nothing held the serialiser back since.
    last_end: Time,
    /// The time when a departure is due, at which the next frame is begun; events that do not match are stale. There is
    /// none while nothing waits.
    departure_at: Option<Time>,
    essentials: Essentials,

    in_flight: InFlight,
    feed: Feed,

    schedule: Schedule,
    /// The place where frames enter the tunnel, when there is one.
    tunnel: Option<Box<Entry>>,
    /// Length of the longest frame that the link's MTU permits.
    longest_frame: u64,

    pace: Pace,
    /// The ends of it that another fabric has, if any.
    cut: Cut,

    /// The rest of a train whose front is being sent; see [`Line::keep_rest`].
    rest: Option<Box<Train>>,
    /// The amounts that the frame on the serialiser adds to the counters once it has left.
    leaving: Option<Leaving>,
    counters: DirectionCounters,

    /// The time when the queue discipline is to be asked again; events that do not match are stale.
    ready_at: Option<Time>,
    config: DirectionConfig,
    impairments: Impairments,
    /// The trace that its capacity follows while it has no rate, if any.
    deliveries: Option<Box<Deliveries>>,
}

/// What every frame asks of the configuration and the impairments.
#[derive(Clone, Copy, Debug)]
struct Essentials {
    rate: Option<Rate>,
    delay: Duration,
    framing: Framing,
    reorder: bool,
    /// Frames pass as if there were no impairments.
    transparent: bool,
}

impl Essentials {
    fn of(config: &DirectionConfig, impairments: &Impairments) -> Self {
        Self {
            rate: config.rate_bps,
            delay: config.delay_ps,
            framing: config.framing,
            reorder: config.impair.reorder,
            transparent: impairments.is_transparent(),
        }
    }
}

/// A train on the serialiser, as the counters will see it.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: Time,
    extent: Extent,
}

impl Leaving {
    /// Adds it to `counters` if it has left by `now`.
    #[inline]
    fn count(&self, counters: &mut DirectionCounters, now: Time) {
        if self.at <= now {
            counters.frames += self.extent.frames;
            counters.link_bytes += self.extent.link_bytes;
            counters.wire_bytes += self.extent.wire_bytes;
        }
    }
}

impl Line {
    /// A line to the port `to` that carries frames with a payload of up to `mtu` bytes.
    pub(crate) fn new(to: u32, config: DirectionConfig, feed: Feed, impairments: Impairments, mtu: u64) -> Self {
        let mut line = Self {
            to,
            tunnel: config.tunnel.map(|tunnel| Box::new(Entry::new(tunnel))),
            deliveries: config.delivery_trace.clone().map(|trace| Box::new(Deliveries::new(trace))),
            essentials: Essentials::of(&config, &impairments),
            config,
            up: true,
            singly: false,
            longest_frame: longest_frame(mtu),
            feed,
            impairments,
            busy_until: Time::ZERO,
            last_end: Time::ZERO,
            departure_at: None,
            leaving: None,
            rest: None,
            rest_is_held: false,
            ready_at: None,
            in_flight: InFlight::default(),
            cut: Cut::default(),
            schedule: Schedule::UNRATED,
            pace: Pace::default(),
            counters: DirectionCounters::default(),
        };
        line.set_catch_up(None);
        line
    }

    /// Returns `true` if the serialiser can begin a frame.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.busy_until <= now
    }

    /// Gives `frame` to the line to be sent.
    pub(crate) fn offer<S: Sender>(&mut self, frame: Box<Frame>, now: Time, sender: &mut S) -> Effects {
        let mut effects = Effects::default();
        if !self.takes(&frame) {
            return effects;
        }
        if let Some(tunnel) = &mut self.tunnel {
            let (outer, refused) = tunnel.encapsulate(frame);
            self.counters.dropped_unfragmentable += refused;
            for frame in outer {
                self.offer_to_queue(frame, now, sender, &mut effects);
            }
        } else {
            self.offer_to_queue(frame, now, sender, &mut effects);
        }
        effects
    }

    /// Returns `true` if the line carries `frame`; counts it when it does not.
    fn takes(&mut self, frame: &Frame) -> bool {
        if !self.up {
            self.counters.dropped_down += frame.frames();
        } else if longest(frame) > self.longest_frame {
            self.counters.dropped_oversize += frame.frames();
        } else {
            return true;
        }
        false
    }

    /// Gives `frame`, as the line carries it, to the queue discipline.
    fn offer_to_queue<S: Sender>(&mut self, mut frame: Box<Frame>, now: Time, sender: &mut S, effects: &mut Effects) {
        loop {
            let Feed::Queue(queue) = &mut self.feed else {
                // The engine takes frames from interfaces one by one, and offers none.
                debug_assert!(false, "a frame was offered to a line that an interface feeds");
                self.counters.dropped_overlimit += frame.refuse();
                return;
            };
            let idle = self.busy_until <= now && self.rest.is_none();
            if idle && queue.lets_pass(&frame) {
                self.send(frame, now, sender, effects);
                return;
            }
            if idle && self.essentials.rate.is_some() && queue.lets_front_pass() {
                // The queue has no room for the whole train, but its front is on the line at once and takes none.
                if let Some(front) = frame.split_front(1) {
                    self.send(front, now, sender, effects);
                    continue;
                }
            }
            queue.enqueue(frame, now, &mut CountDrops(&mut self.counters));
            self.something_waits(now, sender, effects);
            return;
        }
    }

    /// A frame waits: begins it when the serialiser is idle, and else sees to it that it will be.
    fn something_waits<S: Sender>(&mut self, now: Time, sender: &mut S, effects: &mut Effects) {
        if self.is_idle(now) {
            self.send_waiting(now, sender, Budget::UNLIMITED, effects);
        } else if self.departure_at.is_none() {
            self.departure_at = Some(self.busy_until);
            effects.departure = self.departure_at;
        }
    }

    /// The node has something to send: begins it when the serialiser is idle, and else sees to it that it will be.
    pub(crate) fn wake<S: Sender>(&mut self, now: Time, sender: &mut S) -> Effects {
        let mut effects = Effects::default();
        self.something_waits(now, sender, &mut effects);
        effects
    }

    /// Begins the next frame if the serialiser is idle. Without a line rate frames leave at once, at most `budget` of
    /// them; the second value says whether the budget was used up.
    pub(crate) fn begin<S: Sender>(&mut self, now: Time, sender: &mut S, budget: Budget) -> (Effects, bool) {
        let mut effects = Effects::default();
        if !self.is_idle(now) {
            return (effects, false);
        }
        let spent = self.send_waiting(now, sender, budget, &mut effects);
        (effects, spent)
    }

    /// A departure was due at `now`, while the clock shows `wall`; `None` when the event was stale.
    pub(crate) fn depart<S: Sender>(&mut self, now: Time, wall: Time, sender: &mut S) -> Option<Effects> {
        if self.departure_at != Some(now) {
            return None;
        }
        let mut effects = Effects::default();
        if let Some(moment) = self.schedule.too_late_to_start(now, wall) {
            self.schedule.note(wall.since(now));
            self.schedule.excuse_start(moment);
            self.schedule.hold(moment.since(now));
            self.busy_until = self.busy_until.max(moment);
            self.departure_at = Some(moment);
            effects.departure = self.departure_at;
            return Some(effects);
        }
        self.departure_at = None;
        self.send_waiting(now, sender, Budget::UNLIMITED, &mut effects);
        Some(effects)
    }

    /// The queue discipline was to be asked again at `now`, while the clock shows `wall`; `None` when the event was
    /// stale.
    pub(crate) fn release<S: Sender>(&mut self, now: Time, wall: Time, sender: &mut S) -> Option<Effects> {
        if self.ready_at != Some(now) {
            return None;
        }
        let mut effects = Effects::default();
        if let Some(moment) = self.schedule.too_late_to_start(now, wall) {
            // A discipline that holds frames back keeps its own rate in the same way.
            self.schedule.note(wall.since(now));
            self.schedule.excuse_start(moment);
            self.ready_at = Some(moment);
            effects.ready = self.ready_at;
            return Some(effects);
        }
        self.ready_at = None;
        if self.is_idle(now) {
            self.send_waiting(now, sender, Budget::UNLIMITED, &mut effects);
        }
        Some(effects)
    }

    /// The serialiser is idle: begins the next frame. Returns whether the budget was used up.
    fn send_waiting<S: Sender>(
        &mut self,
        now: Time,
        sender: &mut S,
        mut budget: Budget,
        effects: &mut Effects,
    ) -> bool {
        while !budget.is_spent() {
            if self.rest.is_some() && self.config.takes_time() && self.send_front_of_rest(now, sender, effects) {
                return false;
            }
            let Some(frame) = self.next(now, sender) else {
                self.wait_for_queue(now, effects);
                return false;
            };
            budget.spend(&frame);
            if !self.send(frame, now, sender, effects) {
                return false;
            }
        }
        true
    }

    /// The next frame for the serialiser.
    fn next<S: Sender>(&mut self, now: Time, sender: &mut S) -> Option<Box<Frame>> {
        loop {
            if self.rest.is_some() {
                return self.whole_rest(sender);
            }
            if let Some(outer) = self.tunnel.as_mut().and_then(|tunnel| tunnel.waiting.pop_front()) {
                return Some(outer);
            }
            if let Feed::Queue(queue) = &mut self.feed {
                return queue.dequeue(now, &mut CountDrops(&mut self.counters));
            }
            let frame = sender.pull(now)?;
            if !self.takes(&frame) {
                continue;
            }
            let Some(tunnel) = &mut self.tunnel else { return Some(frame) };
            let (outer, refused) = tunnel.encapsulate(frame);
            tunnel.waiting.extend(outer);
            self.counters.dropped_unfragmentable += refused;
        }
    }

    /// What is left of a train, where the line has no rate any more.
    #[cold]
    fn whole_rest<S: Sender>(&mut self, sender: &mut S) -> Option<Box<Frame>> {
        let mut rest = self.rest.take()?;
        let left = rest.frames();
        rest.take_front(left, sender.blank())
    }

    /// The serialiser is idle and begins `frame`. Returns whether it is idle still, having no line rate.
    fn send<S: Sender>(&mut self, mut frame: Box<Frame>, now: Time, sender: &mut S, effects: &mut Effects) -> bool {
        let Some(rate) = self.essentials.rate else { return self.send_unrated(frame, now, sender, effects) };
        let extent = frame.extent(self.essentials.framing);
        if self.frames_at_once(extent.frames, extent.wire_bytes, rate) < extent.frames {
            match Train::of(frame) {
                Ok(train) => {
                    self.rest = Some(Box::new(train));
                    self.send_front_of_rest(now, sender, effects);
                    return false;
                }
                Err(whole) => frame = whole,
            }
        }
        if self.rest_is_held {
            self.keep_rest(None);
        }
        self.serialise(frame, extent, rate, now, sender, effects);
        false
    }

    /// Sends `frame` without a line rate: at once, or by the trace of deliveries. Returns as [`send`](Self::send).
    fn send_unrated<S: Sender>(
        &mut self,
        mut frame: Box<Frame>,
        now: Time,
        sender: &mut S,
        effects: &mut Effects,
    ) -> bool {
        let extent = frame.extent(self.config.framing);
        if self.deliveries.is_none() {
            self.leave(frame, extent, now, now, sender, effects);
            return true;
        }
        if extent.frames > 1 {
            match Train::of(frame) {
                Ok(train) => {
                    self.rest = Some(Box::new(train));
                    self.send_front_of_rest(now, sender, effects);
                    return false;
                }
                Err(whole) => frame = whole,
            }
        }
        if self.rest_is_held {
            self.keep_rest(None);
        }
        self.deliver(frame, extent, now, sender, effects);
        false
    }

    /// Puts `frame`, of `extent`, on the idle serialiser of a line that follows a trace of deliveries.
    fn deliver<S: Sender>(
        &mut self,
        frame: Box<Frame>,
        extent: Extent,
        now: Time,
        sender: &mut S,
        effects: &mut Effects,
    ) {
        let each = self.config.wire_bytes(deliveries::FRAME_BYTES);
        let Some(deliveries) = &mut self.deliveries else {
            return self.leave(frame, extent, now, now, sender, effects);
        };
        let last_bit = deliveries.carry(extent.wire_bytes, each, now);
        self.busy_until = last_bit;
        self.last_end = last_bit;
        self.leave(frame, extent, last_bit, now, sender, effects);
        if self.has_waiting(sender) {
            self.departure_at = Some(self.busy_until);
            effects.departure = self.departure_at;
        }
    }

    /// The serialiser is idle and begins the front of the train that it has begun before, if there is one; returns
    /// whether.
    fn send_front_of_rest<S: Sender>(&mut self, now: Time, sender: &mut S, effects: &mut Effects) -> bool {
        let Some(mut train) = self.rest.take() else { return false };
        let rate = self.config.rate_bps;
        let at_once =
            rate.map_or(1, |rate| self.frames_at_once(train.frames(), train.wire_bytes(self.config.framing), rate));
        let front = train.take_front(at_once, sender.blank());
        if train.frames() > 0 {
            self.keep_rest(Some(train));
        } else {
            self.keep_rest(None);
            sender.recycle(train.into_whole());
        }
        let Some(front) = front else { return false };
        let extent = front.extent(self.config.framing);
        match rate {
            Some(rate) => self.serialise(front, extent, rate, now, sender, effects),
            None => self.deliver(front, extent, now, sender, effects),
        }
        true
    }

    /// Puts `frame`, of `extent`, on the idle serialiser.
    fn serialise<S: Sender>(
        &mut self,
        frame: Box<Frame>,
        extent: Extent,
        rate: Rate,
        now: Time,
        sender: &mut S,
        effects: &mut Effects,
    ) {
        let pace = self.pace.of(extent.wire_bytes, rate, self.essentials.framing);
        let busy = self.schedule.begin(now, self.busy_until, pace.whole);
        self.busy_until = now + busy;
        self.last_end = self.busy_until;
        self.leave(frame, extent, now + pace.to_last_bit, now, sender, effects);
        if self.has_waiting(sender) {
            self.departure_at = Some(self.busy_until);
            effects.departure = self.departure_at;
        }
    }

    /// The last bit of `frame`, of `extent`, leaves at `last_bit`, now or soon.
    fn leave<S: Sender>(
        &mut self,
        mut frame: Box<Frame>,
        extent: Extent,
        last_bit: Time,
        now: Time,
        sender: &mut S,
        effects: &mut Effects,
    ) {
        sender.departing(&self.config, &frame, last_bit);
        self.count_leaving(&frame, extent, last_bit, now);
        if self.essentials.transparent {
            self.fly(last_bit + self.essentials.delay, frame, sender, effects);
            return;
        }
        while let Some(single) = frame.split_front(1) {
            self.impair(single, last_bit, sender, effects);
        }
        self.impair(frame, last_bit, sender, effects);
    }

    /// `frame` is on its way and arrives at `arrival`.
    fn fly<S: Sender>(&mut self, arrival: Time, frame: Box<Frame>, sender: &mut S, effects: &mut Effects) {
        if self.cut.leads_away() {
            return sender.cross(frame, arrival);
        }
        let (at, first) = self.in_flight.push(arrival, self.essentials.reorder, frame);
        if first {
            effects.arrives(at);
        }
    }

    /// Sends a single frame over an impaired line.
    fn impair<S: Sender>(&mut self, mut frame: Box<Frame>, last_bit: Time, sender: &mut S, effects: &mut Effects) {
        let fate = self.impairments.fate();
        if fate.lost {
            self.counters.lost += frame.lose();
            return;
        }
        let second = fate.duplicated.then(|| duplicate(&frame));
        if let Some(bit) = fate.corrupted_bit {
            self.counters.corrupted += 1;
            if !corrupt(&mut frame, bit) {
                self.counters.lost += frame.lose();
                return;
            }
        }
        let delay = self.impairments.delay(self.config.delay_ps);
        self.fly(last_bit + delay, frame, sender, effects);
        if let Some(second) = second {
            self.counters.duplicated += u64::from(second.fragment.as_ref().is_none_or(Fragment::is_whole));
            let delay = self.impairments.delay(self.config.delay_ps);
            self.fly(last_bit + delay, second, sender, effects);
        }
    }

    /// A queue that gave nothing may give something later without a further frame: remembers when.
    fn wait_for_queue(&mut self, now: Time, effects: &mut Effects) {
        let Feed::Queue(queue) = &self.feed else { return };
        // A discipline that names a moment not after now would be asked again and again: the next picosecond will do.
        let ready = queue.next_ready(now).map(|at| at.max(now + Duration::from_ps(1)));
        if ready.is_some() && ready != self.ready_at {
            self.ready_at = ready;
            effects.ready = ready;
        }
    }

    /// A frame was due at the far end at `now`, while the clock shows `wall`.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, wall: Time) -> Arrival {
        let mut postponed = Effects::default();
        let mut due = now;
        if let Some(moment) = self.schedule.too_late(now, wall) {
            let excused = self.schedule.arrival_is_excused(now);
            if let Some(effects) = self.postpone(now, moment, wall) {
                if !excused {
                    return Arrival::Postponed(effects);
                }
                // What follows it keeps its distance from the moment at which it really arrives.
                (postponed, due) = (effects, moment);
            }
        }
        let Some(mut frame) = self.in_flight.pop(due) else { return Arrival::Stale };
        let effects = Effects { arrival: self.in_flight.next(), ..postponed };
        if frame.fragment.is_none() {
            return Arrival::Frame(Some(frame), effects);
        }
        let fragment = frame.fragment.take();
        Arrival::Frame(fragment.and_then(|fragment| complete(&fragment, &frame, now)), effects)
    }

    /// What was due at `now` arrives at `moment` instead, and what follows it on the line no closer than the rate
    /// allows. `None` when nothing was due.
    #[cold]
    fn postpone(&mut self, now: Time, moment: Time, wall: Time) -> Option<Effects> {
        let rate = self.config.rate_bps?;
        self.in_flight.next().filter(|next| *next <= now)?;
        self.schedule.note(wall.since(now));
        self.schedule.excuse_arrival(moment);
        let left = self.in_flight.postpone(now, moment, |frame| rate.serialise(frame.wire_bytes(self.config.framing)));
        let mut effects = Effects { arrival: self.in_flight.next(), ..Effects::default() };
        if self.leads_here() {
            self.hold_crossing(left);
            return Some(effects);
        }
        // The serialiser may not push frames any closer to the last one than the rate allows, either.
        self.last_end += left;
        if self.last_end > self.busy_until {
            self.schedule.hold(self.last_end.since(self.busy_until));
            self.busy_until = self.last_end;
            if self.departure_at.is_some() {
                self.departure_at = Some(self.busy_until);
                effects.departure = self.departure_at;
            }
        }
        Some(effects)
    }

    /// `frame`, of `extent`, will have left at `at`: it is counted from then on.
    fn count_leaving(&mut self, frame: &Frame, extent: Extent, at: Time, now: Time) {
        self.settle_counters(now);
        let extent = match &frame.fragment {
            Some(fragment) => {
                let (frames, link_bytes) = fragment.leaving();
                Extent { frames, link_bytes, ..extent }
            }
            None => extent,
        };
        self.leaving = Some(Leaving { at, extent });
    }

    /// Counts what has left by `now`.
    fn settle_counters(&mut self, now: Time) {
        if let Some(leaving) = &self.leaving {
            leaving.count(&mut self.counters, now);
        }
        self.leaving = None;
    }

    /// Keeps what is left of a train whose front is begun. It has not left the port, so it takes room of the queue
    /// that it came from.
    fn keep_rest(&mut self, rest: Option<Box<Train>>) {
        self.rest = rest;
        if self.rest.is_some() || self.rest_is_held {
            self.tell_rest();
        }
    }

    /// Tells the queue discipline of the rest of a train.
    fn tell_rest(&mut self) {
        if let Feed::Queue(queue) = &mut self.feed {
            queue.hold(self.rest.as_deref().map_or_else(Backlog::default, of_train));
        }
        self.rest_is_held = self.rest.is_some();
    }

    /// Returns `true` if a frame waits for the serialiser.
    fn has_waiting<S: Sender>(&self, sender: &S) -> bool {
        self.rest.is_some()
            || self.tunnel.as_ref().is_some_and(|tunnel| !tunnel.waiting.is_empty())
            || match &self.feed {
                Feed::Queue(queue) => !queue.is_empty(),
                Feed::Interface => sender.waits(),
            }
    }

    /// Returns how many frames of a train of `frames`, of `wire_bytes` in all, may be sent in one go.
    fn frames_at_once(&mut self, frames: u64, wire_bytes: u64, rate: Rate) -> u64 {
        if frames == 1 || self.singly || !self.essentials.transparent {
            return 1;
        }
        let each = wire_bytes.div_ceil(frames);
        (self.pace.longest_train(rate) / each.max(1)).clamp(1, frames)
    }
}

/// Returns what is left of a train, as a queue discipline counts it.
fn of_train(train: &Train) -> Backlog {
    Backlog { frames: train.frames(), bytes: train.link_bytes() }
}

/// Room for a stack of two VLAN tags, which switches permit beyond the MTU.
const TWO_TAGS: u64 = 8;

/// Length of the longest frame that an MTU permits: an Ethernet header, and room for the tags.
const fn longest_frame(mtu: u64) -> u64 {
    mtu + 14 + TWO_TAGS
}

/// Length of the longest frame of a train, in bytes at the link layer.
fn longest(frame: &Frame) -> u64 {
    let length = frame.length();
    frame.offload.map_or(length, |offload| (u64::from(offload.header) + u64::from(offload.segment)).min(length))
}

/// `outer` with its `fragment` has arrived: the frame that it completes.
fn complete(fragment: &Fragment, outer: &Frame, now: Time) -> Option<Box<Frame>> {
    let (mut carried, congested) = fragment.arrive(now, is_congested(outer))?;
    // RFC 6040 4.2: a mark on the outer header is handed to the inner one. What has no room for it was never marked,
    // because the outer header's bits are a copy.
    if congested {
        mark_congestion(&mut carried);
    }
    Some(carried)
}

/// Returns the frame that arrives beside `frame` when the line carries it twice.
fn duplicate(frame: &Frame) -> Box<Frame> {
    let mut second = Box::new(frame.clone());
    second.fragment = frame.fragment.as_ref().map(Fragment::twin);
    second
}

/// Turns a bit of `frame`; `false` when its receiver cannot know it for its own any more.
fn corrupt(frame: &mut Frame, random: u64) -> bool {
    let bit = random % (frame.length().max(1) * 8);
    if let Some(fragment) = &frame.fragment {
        return fragment.turn_bit(bit);
    }
    frame.finish_checksum();
    frame.turn_bit(bit);
    true
}
