//! One direction of a link: queue discipline, serialiser, propagation. Time and randomness are given from outside.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};
use twinnet_packet::{Fragment, Frame, Framing};
use twinnet_units::{Duration, Rate, Time};

use crate::tunnel::{Entry, TunnelConfig};
use twinnet_impair::{ImpairConfig, Impairments};
use twinnet_queue::{Backlog, QueueDiscipline};

/// Longest time that a train may occupy a serialiser before it is cut, so that the first of its frames does not wait for
/// the last: at 1 Gbit/s eight full-size Ethernet frames.
pub const LONGEST_TRAIN: Duration = Duration::from_us(100);

/// What a link does in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionConfig {
    /// The line rate; `None` sends at once.
    #[serde(default)]
    pub rate_bps: Option<Rate>,
    /// What a frame costs on the wire.
    #[serde(default)]
    pub framing: Framing,
    /// Time from the last bit sent to the last bit arrived.
    #[serde(default)]
    pub delay_ps: Duration,
    /// The tunnel that carries the frames, when there is one. It stays as it is while the link is in motion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<TunnelConfig>,
    /// Jitter, loss, duplication, corruption, reordering.
    #[serde(flatten)]
    pub impair: ImpairConfig,
}

impl DirectionConfig {
    /// Bytes that a frame of `length` bytes occupies on the wire.
    #[must_use]
    pub fn wire_bytes(&self, length: u64) -> u64 {
        wire_bytes(self.framing, self.tunnel.as_ref(), length)
    }
}

/// Bytes that a frame of `length` bytes occupies on a wire with `framing`, through a tunnel if there is one.
#[must_use]
pub fn wire_bytes(framing: Framing, tunnel: Option<&TunnelConfig>, length: u64) -> u64 {
    tunnel.map_or_else(|| framing.wire_bytes(length), |tunnel| tunnel.wire_bytes(framing, length))
}

impl Default for DirectionConfig {
    fn default() -> Self {
        Self {
            rate_bps: None,
            framing: Framing::Ethernet,
            delay_ps: Duration::ZERO,
            tunnel: None,
            impair: ImpairConfig::default(),
        }
    }
}

/// Counters of one direction, in frames and bytes at the link layer (Ethernet header to payload).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirectionCounters {
    /// Frames whose last bit has left.
    pub frames: u64,
    /// Their bytes.
    pub link_bytes: u64,
    /// Their bytes with the link's framing.
    pub wire_bytes: u64,
    /// Frames that the queue discipline refused for its limit.
    pub dropped_overlimit: u64,
    /// Frames that the queue discipline dropped early.
    pub dropped_early: u64,
    /// Frames that the queue discipline marked as having met congestion (ECN) instead of dropping them.
    pub marked: u64,
    /// Frames that no class of the queue discipline takes.
    pub dropped_unclassified: u64,
    /// Frames that met a link that was down, or were on it when it went down.
    pub dropped_down: u64,
    /// Frames longer than the link's MTU allows.
    pub dropped_oversize: u64,
    /// Frames that a tunnel would have had to cut into fragments, and may not.
    pub dropped_unfragmentable: u64,
    /// Frames lost by the loss model.
    pub lost: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
}

impl DirectionCounters {
    /// What the counters grew by after `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            frames: self.frames - earlier.frames,
            link_bytes: self.link_bytes - earlier.link_bytes,
            wire_bytes: self.wire_bytes - earlier.wire_bytes,
            dropped_overlimit: self.dropped_overlimit - earlier.dropped_overlimit,
            dropped_early: self.dropped_early - earlier.dropped_early,
            marked: self.marked - earlier.marked,
            dropped_unclassified: self.dropped_unclassified - earlier.dropped_unclassified,
            dropped_down: self.dropped_down - earlier.dropped_down,
            dropped_oversize: self.dropped_oversize - earlier.dropped_oversize,
            dropped_unfragmentable: self.dropped_unfragmentable - earlier.dropped_unfragmentable,
            lost: self.lost - earlier.lost,
            duplicated: self.duplicated - earlier.duplicated,
            corrupted: self.corrupted - earlier.corrupted,
        }
    }

    /// Frames that did not arrive, for whatever reason.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_overlimit
            + self.dropped_early
            + self.dropped_unclassified
            + self.dropped_down
            + self.dropped_oversize
            + self.dropped_unfragmentable
            + self.lost
    }
}

/// Frames on their way, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    ordered: VecDeque<(Time, Box<Frame>)>,
    disordered: BinaryHeap<Reverse<Late>>,
    pushed: u64,
    last_arrival: Time,
}

/// A frame that may overtake others; ordered by arrival, then by departure.
#[derive(Debug)]
struct Late {
    arrival: Time,
    departed: u64,
    frame: Box<Frame>,
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        (self.arrival, self.departed) == (other.arrival, other.departed)
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.arrival, self.departed).cmp(&(other.arrival, other.departed))
    }
}

impl InFlight {
    /// Adds a frame; returns when it arrives: at `arrival`, or with the frame before it where the order is kept.
    /// The second value says whether it has become the next to arrive.
    pub(crate) fn push(&mut self, arrival: Time, reorder: bool, frame: Box<Frame>) -> (Time, bool) {
        let before = self.next();
        let arrival = if reorder { arrival } else { arrival.max(self.last_arrival) };
        self.last_arrival = self.last_arrival.max(arrival);
        if reorder {
            self.pushed += 1;
            self.disordered.push(Reverse(Late { arrival, departed: self.pushed, frame }));
        } else {
            self.ordered.push_back((arrival, frame));
        }
        (arrival, before.is_none_or(|before| arrival < before))
    }

    pub(crate) fn next(&self) -> Option<Time> {
        let ordered = self.ordered.front().map(|(at, _)| *at);
        let late = self.disordered.peek().map(|Reverse(late)| late.arrival);
        match (ordered, late) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes a frame that has arrived by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Box<Frame>> {
        if self.disordered.is_empty() {
            return match self.ordered.front() {
                Some((at, _)) if *at <= now => self.ordered.pop_front().map(|(_, frame)| frame),
                _ => None,
            };
        }
        let next = self.next()?;
        if next > now {
            return None;
        }
        if self.ordered.front().is_some_and(|(at, _)| *at == next) {
            return self.ordered.pop_front().map(|(_, frame)| frame);
        }
        self.disordered.pop().map(|Reverse(late)| late.frame)
    }

    pub(crate) fn clear(&mut self) -> u64 {
        let frames = self.ordered.iter().map(|(_, frame)| frame.lose()).sum::<u64>()
            + self.disordered.iter().map(|Reverse(late)| late.frame.lose()).sum::<u64>();
        self.ordered.clear();
        self.disordered.clear();
        frames
    }
}

/// What feeds the serialiser of a direction.
pub(crate) enum Feed {
    /// A queue discipline inside the fabric.
    Queue(Box<dyn QueueDiscipline>),
    /// The interface of a real host: the fabric takes a frame from it when the serialiser is idle, and leaves the others
    /// where they are, so that the sender feels its interface's queue as on hardware.
    Interface,
}

/// One direction of a link in motion.
pub(crate) struct Direction {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) config: DirectionConfig,
    pub(crate) up: bool,
    pub(crate) longest_frame: u64,
    pub(crate) feed: Feed,
    /// Where frames enter the tunnel, when there is one.
    pub(crate) tunnel: Option<Box<Entry>>,
    pub(crate) impairments: Impairments,
    /// Until when the serialiser is busy: the end of the last frame's inter-frame gap. What it sends is among `in_flight` already.
    pub(crate) busy_until: Time,
    /// When a `Departure` event is due, at which the next frame is begun; events that do not match are stale. There is none
    /// while nothing waits.
    pub(crate) departure_at: Option<Time>,
    /// What the frame on the serialiser adds to the counters once it has left.
    leaving: Option<Leaving>,
    /// The rest of a train whose front is being sent; see [`Direction::keep_rest`].
    pub(crate) rest: Option<Box<Frame>>,
    /// The queue has been told of a rest.
    rest_is_held: bool,
    /// When a `QueueReady` event is due; events that do not match are stale.
    pub(crate) ready_at: Option<Time>,
    pub(crate) in_flight: InFlight,
    pub(crate) counters: DirectionCounters,
}

/// A train on the serialiser, as the counters will see it.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: Time,
    frames: u64,
    link_bytes: u64,
    wire_bytes: u64,
}

impl Direction {
    pub(crate) fn new(from: u32, to: u32, config: DirectionConfig, feed: Feed, impairments: Impairments) -> Self {
        Self {
            from,
            to,
            tunnel: config.tunnel.map(|tunnel| Box::new(Entry::new(tunnel))),
            config,
            up: true,
            longest_frame: u64::MAX,
            feed,
            impairments,
            busy_until: Time::ZERO,
            departure_at: None,
            leaving: None,
            rest: None,
            rest_is_held: false,
            ready_at: None,
            in_flight: InFlight::default(),
            counters: DirectionCounters::default(),
        }
    }

    /// Whether the serialiser can begin a frame.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.busy_until <= now
    }

    /// `frame` will have left at `at`: it is counted from then on.
    pub(crate) fn leaves(&mut self, frame: &Frame, at: Time, now: Time) {
        self.counters = self.counters_at(now);
        let (frames, link_bytes) =
            frame.fragment.as_ref().map_or_else(|| (frame.frames(), frame.link_bytes()), Fragment::leaving);
        let wire_bytes = frame.wire_bytes(self.config.framing);
        self.leaving = Some(Leaving { at, frames, link_bytes, wire_bytes });
    }

    /// The counters as they stand at `now`.
    pub(crate) fn counters_at(&self, now: Time) -> DirectionCounters {
        let mut counters = self.counters;
        if let Some(leaving) = self.leaving.filter(|leaving| leaving.at <= now) {
            counters.frames += leaving.frames;
            counters.link_bytes += leaving.link_bytes;
            counters.wire_bytes += leaving.wire_bytes;
        }
        counters
    }

    /// Takes everything off the line: what is on the wire, on the serialiser and waiting. Returns how many frames that were.
    pub(crate) fn cut(&mut self, now: Time) -> u64 {
        self.counters = self.counters_at(now);
        self.leaving = None;
        self.busy_until = self.busy_until.min(now);
        self.departure_at = None;
        let mut lost = self.in_flight.clear() + self.rest.take().map_or(0, |frame| frame.refuse());
        if let Feed::Queue(queue) = &mut self.feed {
            lost += queue.drain().iter().map(|frame| frame.refuse()).sum::<u64>();
        }
        self.keep_rest(None);
        if let Some(tunnel) = &mut self.tunnel {
            lost += tunnel.waiting.drain(..).map(|frame| frame.refuse()).sum::<u64>();
        }
        lost
    }

    /// Keeps what is left of a train whose front is begun. It has not left the port, so it takes room of the queue that it came from.
    pub(crate) fn keep_rest(&mut self, rest: Option<Box<Frame>>) {
        self.rest = rest;
        if self.rest.is_some() || self.rest_is_held {
            self.tell_rest();
        }
    }

    /// Tells the queue discipline of the rest of a train.
    pub(crate) fn tell_rest(&mut self) {
        if let Feed::Queue(queue) = &mut self.feed {
            queue.hold(self.rest.as_deref().map_or_else(Backlog::default, Backlog::of));
        }
        self.rest_is_held = self.rest.is_some();
    }

    /// Whether a frame waits for the serialiser; `waits` tells of an interface.
    pub(crate) fn has_waiting(&self, waits: impl FnOnce() -> bool) -> bool {
        self.rest.is_some()
            || self.tunnel.as_ref().is_some_and(|tunnel| !tunnel.waiting.is_empty())
            || match &self.feed {
                Feed::Queue(queue) => !queue.is_empty(),
                Feed::Interface => waits(),
            }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        let mut backlog = match &self.feed {
            Feed::Queue(queue) => queue.backlog(),
            Feed::Interface => Backlog::default(),
        };
        if let Some(rest) = &self.rest {
            backlog = backlog + Backlog::of(rest);
        }
        for outer in self.tunnel.iter().flat_map(|tunnel| &tunnel.waiting) {
            backlog.frames += 1;
            backlog.bytes += outer.length();
        }
        backlog
    }

    /// How many frames of `train` may be sent in one go.
    pub(crate) fn frames_at_once(&self, train: &Frame, rate: Rate) -> u64 {
        let frames = train.frames();
        if frames == 1 {
            return 1;
        }
        if !self.impairments.is_transparent() {
            return 1;
        }
        let each = train.wire_bytes(self.config.framing).div_ceil(frames);
        (rate.bytes_in(LONGEST_TRAIN) / each.max(1)).clamp(1, frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(mark: u8) -> Box<Frame> {
        Box::new(Frame::new(vec![mark]))
    }

    #[test]
    fn the_order_is_kept_when_a_later_frame_has_less_delay() {
        let mut line = InFlight::default();
        line.push(Time::from_ns(10), false, marked(1));
        let (arrival, first) = line.push(Time::from_ns(4), false, marked(2));
        assert_eq!((arrival, first), (Time::from_ns(10), false));
        assert_eq!(line.pop(Time::from_ns(10)).unwrap().bytes, [1]);
        assert_eq!(line.pop(Time::from_ns(10)).unwrap().bytes, [2]);
    }

    #[test]
    fn frames_overtake_when_reordering_is_asked_for() {
        let mut line = InFlight::default();
        line.push(Time::from_ns(10), true, marked(1));
        let (_, first) = line.push(Time::from_ns(4), true, marked(2));
        assert!(first);
        assert!(line.pop(Time::from_ns(3)).is_none());
        assert_eq!(line.pop(Time::from_ns(20)).unwrap().bytes, [2]);
        assert_eq!(line.pop(Time::from_ns(20)).unwrap().bytes, [1]);
    }
}
