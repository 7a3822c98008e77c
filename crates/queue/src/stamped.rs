//! Frames in the order they came, each with the moment it came: what active queue management looks at.

use std::collections::VecDeque;

use twinnet_packet::Frame;
use twinnet_units::Time;

use super::Backlog;

/// A queue without a limit of its own. It holds single frames: whoever fills it takes trains apart first.
#[derive(Debug, Default)]
pub(super) struct StampedQueue {
    frames: VecDeque<(Time, Box<Frame>)>,
    backlog: Backlog,
}

impl StampedQueue {
    pub(super) fn push(&mut self, frame: Box<Frame>, now: Time) {
        self.backlog = self.backlog + Backlog::of(&frame);
        self.frames.push_back((now, frame));
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Box<Frame>)> {
        let (came, frame) = self.frames.pop_front()?;
        self.forget(&frame);
        Some((came, frame))
    }

    /// The frame that came last.
    pub(super) fn pop_last(&mut self) -> Option<Box<Frame>> {
        let (_, frame) = self.frames.pop_back()?;
        self.forget(&frame);
        Some(frame)
    }

    fn forget(&mut self, frame: &Frame) {
        let gone = Backlog::of(frame);
        self.backlog.frames -= gone.frames;
        self.backlog.bytes -= gone.bytes;
    }

    /// Returns the time when the frame at the head came.
    pub(super) fn head_came(&self) -> Option<Time> {
        self.frames.front().map(|(came, _)| *came)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub(super) fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.backlog = Backlog::default();
        self.frames.drain(..).map(|(_, frame)| frame).collect()
    }
}
