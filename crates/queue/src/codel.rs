//! Controlled delay: K. Nichols, V. Jacobson, A. McGregor and J. Iyengar, *Controlled Delay Active Queue
//! Management*, RFC 8289.
//!
//! A frame is dropped when it leaves, because of how long it waited. While the delay of every frame of an interval
//! lay above the target, one frame is dropped, the next after interval/sqrt(2), then interval/sqrt(3), until a
//! frame waited less than the target. With marks switched on, a frame whose sender understands them is marked
//! instead.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use super::config::DEFAULT_LIMIT_FRAMES;
use super::ecn::mark_congestion;
use super::ranges::{check_frames, check_span, QueueError, LONGEST_SPAN_PS, MOST_FRAMES, SHORTEST_SPAN_PS};
use super::stamped::StampedQueue;
use super::train::for_each_frame;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

/// 5 ms (RFC 8289, 4.3): a twentieth of the interval.
pub const DEFAULT_TARGET_PS: u64 = 5_000_000_000;
/// RFC 8289, 4.2: an interval of 100 ms suits round trips from 10 ms to 1 s.
pub const DEFAULT_INTERVAL_PS: u64 = 100_000_000_000;
/// A queue that holds no more than this is never dropped from: the line would run empty.
const MAX_PACKET_BYTES: u64 = 1514;
/// RFC 8289, 5.5: a return to dropping within so many intervals goes on where it stopped.
const MEMORY_INTERVALS: u64 = 16;

/// `{"kind": "codel", ...}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodelConfig {
    /// Frames it keeps.
    #[schemars(range(min = 1, max = MOST_FRAMES))]
    pub limit_frames: u64,
    /// The standing delay that is accepted.
    #[schemars(range(min = SHORTEST_SPAN_PS, max = LONGEST_SPAN_PS))]
    pub target_ps: u64,
    /// The time that the delay may lie above the target: about the longest usual round trip.
    #[schemars(range(min = SHORTEST_SPAN_PS, max = LONGEST_SPAN_PS))]
    pub interval_ps: u64,
    /// Marks frames whose sender understands it, instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self {
            limit_frames: DEFAULT_LIMIT_FRAMES,
            target_ps: DEFAULT_TARGET_PS,
            interval_ps: DEFAULT_INTERVAL_PS,
            ecn: false,
        }
    }
}

impl CodelConfig {
    pub(super) fn build_at(&self, path: &str) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        check_frames(&format!("{path}.limit_frames"), self.limit_frames)?;
        let law = ControlLaw::checked(path, self.target_ps, self.interval_ps, self.ecn)?;
        Ok(Box::new(Codel::new(law, self.limit_frames)))
    }
}

/// The aims of CoDel: target and interval.
#[derive(Clone, Copy, Debug)]
pub struct ControlLaw {
    target: Duration,
    interval: Duration,
    ecn: bool,
}

impl ControlLaw {
    pub(super) fn checked(path: &str, target_ps: u64, interval_ps: u64, ecn: bool) -> Result<Self, QueueError> {
        check_span(&format!("{path}.target_ps"), target_ps)?;
        check_span(&format!("{path}.interval_ps"), interval_ps)?;
        Ok(Self { target: Duration::from_ps(target_ps), interval: Duration::from_ps(interval_ps), ecn })
    }

    /// The next drop after one at `at`, the `count`-th of its series: interval/sqrt(count) later, exact to the
    /// picosecond.
    #[allow(clippy::cast_possible_truncation)]
    fn next_drop(&self, at: Time, count: u64) -> Time {
        let interval = u128::from(self.interval.as_ps());
        at + Duration::from_ps((interval * interval / u128::from(count.max(1))).isqrt() as u64)
    }
}

/// The state that CoDel keeps for one queue (RFC 8289, 5.2).
#[derive(Debug, Default)]
pub(super) struct CodelState {
    /// The time when the delay will have lain above the target for an interval.
    first_above: Option<Time>,
    drop_next: Time,
    count: u64,
    last_count: u64,
    dropping: bool,
}

impl CodelState {
    /// The next frame of `queue`, after what had to be dropped before it. Some frame always remains when any was there.
    pub(super) fn dequeue(
        &mut self,
        queue: &mut StampedQueue,
        law: &ControlLaw,
        now: Time,
        drops: &mut dyn DropSink,
    ) -> Option<Box<Frame>> {
        let (mut frame, mut may_drop) = self.next(queue, law, now)?;
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if law.ecn && mark_congestion(&mut frame) {
                    drops.marked(&frame);
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                    return Some(frame);
                }
                drops.dropped(frame, DropReason::Early);
                (frame, may_drop) = self.next(queue, law, now)?;
                if may_drop {
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            if law.ecn && mark_congestion(&mut frame) {
                drops.marked(&frame);
            } else {
                drops.dropped(frame, DropReason::Early);
                (frame, _) = self.next(queue, law, now)?;
            }
            self.begin_dropping(law, now);
        }
        Some(frame)
    }

    /// RFC 8289, 5.5: "If min went above TARGET close to when it last went below, assume that the drop rate that
    /// controlled the queue on the last cycle is a good starting point to control it now."
    fn begin_dropping(&mut self, law: &ControlLaw, now: Time) {
        self.dropping = true;
        let since_last = self.count.saturating_sub(self.last_count);
        let is_recent = now.since(self.drop_next).as_ps() / MEMORY_INTERVALS < law.interval.as_ps();
        self.count = if since_last > 1 && is_recent { since_last } else { 1 };
        self.drop_next = law.next_drop(now, self.count);
        self.last_count = self.count;
    }

    /// The frame at the head, and whether it may be dropped (`dodequeue` of RFC 8289, 5.6).
    fn next(&mut self, queue: &mut StampedQueue, law: &ControlLaw, now: Time) -> Option<(Box<Frame>, bool)> {
        let Some((came, frame)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(came) < law.target || queue.backlog().bytes <= MAX_PACKET_BYTES {
            self.first_above = None;
            return Some((frame, false));
        }
        let first_above = *self.first_above.get_or_insert(now + law.interval);
        Some((frame, now >= first_above))
    }
}

/// The discipline: one queue.
pub struct Codel {
    queue: StampedQueue,
    state: CodelState,
    law: ControlLaw,
    limit_frames: u64,
    held_frames: u64,
}

impl Codel {
    pub(super) fn new(law: ControlLaw, limit_frames: u64) -> Self {
        Self { queue: StampedQueue::default(), state: CodelState::default(), law, limit_frames, held_frames: 0 }
    }
}

impl QueueDiscipline for Codel {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        for_each_frame(frame, |frame| {
            if self.queue.backlog().frames + self.held_frames < self.limit_frames {
                self.queue.push(frame, now);
            } else {
                drops.dropped(frame, DropReason::Overlimit);
            }
        });
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        self.state.dequeue(&mut self.queue, &self.law, now, drops)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.queue.drain()
    }

    fn hold(&mut self, held: Backlog) {
        self.held_frames = held.frames;
    }
}
