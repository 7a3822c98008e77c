//! First in, first out, with a limit in frames, in bytes, or both: the tail is dropped (the kernel's `pfifo` and
//! `bfifo`).

use std::collections::VecDeque;
use std::hint::black_box;

use twinnet_packet::Frame;
use twinnet_units::Time;

use super::train::frames_within;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

/// The plain queue. A train that fits only in part leaves its front in the queue and loses its tail.
#[derive(Debug)]
pub struct Fifo {
    queue: VecDeque<Box<Frame>>,
    backlog: Backlog,
    /// Dequeued but still waiting in the class around: counts against the limits.
    held: Backlog,
    limit: Backlog,
}

impl Fifo {
    /// A queue that keeps at most `limit_frames` frames and at most `limit_bytes` bytes; `None` sets no limit of
    /// that kind.
    #[must_use]
    pub fn new(limit_frames: Option<u64>, limit_bytes: Option<u64>) -> Self {
        let limit = Backlog { frames: limit_frames.unwrap_or(u64::MAX), bytes: limit_bytes.unwrap_or(u64::MAX) };
        Self { queue: VecDeque::new(), backlog: Backlog::default(), held: Backlog::default(), limit }
    }

    fn keep(&mut self, frame: Box<Frame>, frames: u64, bytes: u64) {
        self.backlog.frames += frames;
        self.backlog.bytes += bytes;
        self.queue.push_back(frame);
    }
}

impl QueueDiscipline for Fifo {
    fn enqueue(&mut self, mut frame: Box<Frame>, _now: Time, drops: &mut dyn DropSink) {
        let Backlog { frames, bytes } = Backlog::of(&frame);
        let room_frames = self.limit.frames.saturating_sub(self.backlog.frames + self.held.frames);
        let room_bytes = self.limit.bytes.saturating_sub(self.backlog.bytes + self.held.bytes);
        if frames <= room_frames && bytes <= room_bytes {
            self.keep(frame, frames, bytes);
            return;
        }
        if frames > 1 {
            let fit = frames_within(&frame, room_bytes).min(room_frames);
            if let Some(front) = frame.split_front(fit) {
                let (frames, bytes) = (front.frames(), front.link_bytes());
                self.keep(front, frames, bytes);
            }
        }
        drops.dropped(frame, DropReason::Overlimit);
    }

    fn lets_pass(&self, frame: &Frame) -> bool {
        if !self.queue.is_empty() {
            return false;
        }
        let alone = Backlog::of(frame);
        alone.frames <= self.limit.frames && alone.bytes <= self.limit.bytes
    }

    fn lets_front_pass(&self) -> bool {
        self.queue.is_empty() && self.limit.frames > 0
    }

    fn rests_while_empty(&self) -> bool {
        true
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        let frame = self.queue.pop_front()?;
        // A long queue does not fit into the processor's cache: it gets the next frame there by the time that this one
        // is on the line.
        black_box(self.queue.front().map(|next| next.elided));
        let gone = Backlog::of(&frame);
        self.backlog.frames -= gone.frames;
        self.backlog.bytes -= gone.bytes;
        Some(frame)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.backlog = Backlog::default();
        std::mem::take(&mut self.queue)
    }

    fn hold(&mut self, held: Backlog) {
        self.held = held;
    }
}
