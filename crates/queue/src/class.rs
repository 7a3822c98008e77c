//! One class of a classful discipline: the discipline inside, its next frame, and what has passed.

use std::collections::VecDeque;

use serde_json::{json, Value};
use twinnet_packet::{Frame, Frames};
use twinnet_units::Time;

use super::train::{first_frame_bytes, frames_within};
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

/// A class. The frame (or train) that comes next is taken out of the discipline inside before it is due, because most
/// schedulers must know its length; until it is sent it still counts against the limits inside.
pub(super) struct Class {
    inside: Box<dyn QueueDiscipline>,
    head: Option<Box<Frame>>,
    /// The discipline inside may have a frame, or has to be asked all the same.
    may_wait: bool,
    /// The frames that follow `head` of a train that is being taken apart.
    rest: Option<Frames>,
    /// Both of these.
    held: Backlog,
    sent: Backlog,
    drops: DropCount,
}

/// Frames dropped, by reason, and marked.
#[derive(Default)]
struct DropCount {
    overlimit: u64,
    early: u64,
    unclassified: u64,
    bytes: u64,
    marked: u64,
}

impl DropCount {
    fn count(&mut self, frame: &Frame, reason: DropReason) {
        let counter = match reason {
            DropReason::Overlimit => &mut self.overlimit,
            DropReason::Early => &mut self.early,
            DropReason::Unclassified => &mut self.unclassified,
        };
        *counter += frame.frames();
        self.bytes += frame.link_bytes();
    }
}

/// Counts what a class drops on its way to the sink of the port.
struct CountingSink<'a> {
    count: &'a mut DropCount,
    next: &'a mut dyn DropSink,
}

impl DropSink for CountingSink<'_> {
    fn dropped(&mut self, frame: Box<Frame>, reason: DropReason) {
        self.count.count(&frame, reason);
        self.next.dropped(frame, reason);
    }

    fn marked(&mut self, frame: &Frame) {
        self.count.marked += frame.frames();
        self.next.marked(frame);
    }
}

impl Class {
    pub(super) fn new(inside: Box<dyn QueueDiscipline>) -> Self {
        Self {
            inside,
            head: None,
            may_wait: true,
            rest: None,
            held: Backlog::default(),
            sent: Backlog::default(),
            drops: DropCount::default(),
        }
    }

    /// Offers `frame` to the discipline inside.
    pub(super) fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        self.may_wait = true;
        self.inside.enqueue(frame, now, &mut CountingSink { count: &mut self.drops, next: drops });
    }

    /// Refuses `frame` in the name of this class.
    pub(super) fn refuse(&mut self, frame: Box<Frame>, reason: DropReason, drops: &mut dyn DropSink) {
        self.drops.count(&frame, reason);
        drops.dropped(frame, reason);
    }

    /// Looks for the next frame; gives the bytes of the first frame of what comes next, `None` when nothing can be
    /// sent now.
    pub(super) fn prime(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<u64> {
        if self.head.is_none() {
            if !self.may_wait {
                return None;
            }
            let next = self.inside.dequeue(now, &mut CountingSink { count: &mut self.drops, next: drops });
            let Some(head) = next else {
                self.may_wait = !self.inside.rests_while_empty();
                return None;
            };
            self.held = Backlog::of(&head);
            self.head = Some(head);
            self.inside.hold(self.held);
        }
        self.head.as_deref().map(first_frame_bytes)
    }

    /// Takes as many frames of the train that comes next as fit into `limit_bytes`, at least one. Call
    /// [`Self::prime`] first.
    pub(super) fn take(&mut self, limit_bytes: u64) -> Option<Box<Frame>> {
        let mut head = self.head.take()?;
        let fit = frames_within(&head, limit_bytes).max(1);
        let cut = if fit > 1 { head.split_front(fit) } else { None };
        let frame = if let Some(front) = cut {
            self.head = Some(head);
            front
        } else if fit < head.frames() {
            self.take_apart(head)?
        } else {
            self.head = self.rest.as_mut().and_then(Iterator::next);
            head
        };
        if self.head.is_none() {
            self.rest = None;
        }
        let gone = Backlog::of(&frame);
        self.held.frames = self.held.frames.saturating_sub(gone.frames);
        self.held.bytes = self.held.bytes.saturating_sub(gone.bytes);
        self.inside.hold(self.held);
        self.sent = self.sent + gone;
        Some(frame)
    }

    /// The first frame of `train`, whose others wait. Copies each frame once, while cutting them off one by one
    /// would copy what remains every time. A train that cannot be cut comes back whole.
    fn take_apart(&mut self, train: Box<Frame>) -> Option<Box<Frame>> {
        let mut frames = train.into_frames();
        let first = frames.next();
        self.head = frames.next();
        self.rest = Some(frames);
        first
    }

    /// Takes out all that waits, in order.
    pub(super) fn drain(&mut self) -> VecDeque<Box<Frame>> {
        let mut frames: VecDeque<Box<Frame>> =
            self.head.take().into_iter().chain(self.rest.take().into_iter().flatten()).collect();
        self.held = Backlog::default();
        self.inside.hold(self.held);
        frames.append(&mut self.inside.drain());
        frames
    }

    /// Returns the time when [`Self::prime`] may find something without a further frame.
    pub(super) fn next_ready(&self, now: Time) -> Option<Time> {
        if self.head.is_some() {
            return Some(now);
        }
        self.inside.next_ready(now)
    }

    /// Returns `true` if a frame has been found by [`Self::prime`] and waits to be taken.
    pub(super) fn is_primed(&self) -> bool {
        self.head.is_some()
    }

    /// Bytes of the first frame of what [`Self::prime`] found.
    pub(super) fn head_bytes(&self) -> Option<u64> {
        self.head.as_deref().map(first_frame_bytes)
    }

    /// Returns what waits in this class.
    pub(super) fn backlog(&self) -> Backlog {
        self.inside.backlog() + self.held
    }

    /// Passes on that a frame of this class, though dequeued, has not left the port.
    pub(super) fn hold_outside(&mut self, outside: Backlog) {
        self.inside.hold(outside + self.held);
    }

    /// Returns `true` if nothing waits in this class.
    pub(super) fn is_empty(&self) -> bool {
        self.held.frames == 0 && (!self.may_wait || self.inside.is_empty())
    }

    /// The counters of this class as JSON, with those of the classes inside it, if any.
    pub(super) fn counters(&self, class: u32) -> Value {
        let mut counters = json!({
            "class": class,
            "frames": self.sent.frames,
            "bytes": self.sent.bytes,
            "drops": {
                "overlimit": self.drops.overlimit,
                "early": self.drops.early,
                "unclassified": self.drops.unclassified,
            },
            "dropped_bytes": self.drops.bytes,
            "marked": self.drops.marked,
            "backlog": self.backlog(),
        });
        if let (Value::Array(inside), Some(object)) = (self.inside.class_counters(), counters.as_object_mut()) {
            if !inside.is_empty() {
                object.insert("classes".to_owned(), Value::Array(inside));
            }
        }
        counters
    }
}
