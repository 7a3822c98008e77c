//! Flow queueing with CoDel: T. Hoeiland-Joergensen, P. McKenney, D. Taht, J. Gettys and E. Dumazet, *The Flow
//! Queue CoDel Packet Scheduler and Active Queue Management Algorithm*, RFC 8290.
//!
//! Flows are hashed into queues that take turns by deficit round robin, each under a CoDel of its own. A queue that
//! becomes active goes first for one quantum: sparse flows do not wait for those that fill the line. When all is
//! full, the head of the longest queue is dropped, up to 64 frames or half of it at once (RFC 8290, 4.1).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::Time;

use super::codel::{CodelState, ControlLaw, DEFAULT_INTERVAL_PS, DEFAULT_TARGET_PS};
use super::config::Site;
use super::flow::flow_hash;
use super::ranges::{
    check_bytes, check_frames, check_quantum, check_range, QueueError, LEAST_QUANTUM_BYTES, LONGEST_SPAN_PS,
    MOST_BUCKETS, MOST_BYTES, MOST_FRAMES, SHORTEST_SPAN_PS,
};
use super::stamped::StampedQueue;
use super::train::for_each_frame;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

const DROP_BATCH: u32 = 64;
const UNUSED: u32 = u32::MAX;

/// `{"kind": "fq_codel", ...}`; the defaults are those of RFC 8290, 5.2, and the limit of bytes the kernel's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FqCodelConfig {
    /// Frames that all queues keep together.
    #[schemars(range(min = 1, max = MOST_FRAMES))]
    pub limit_frames: u64,
    /// Link-layer bytes that all queues keep together.
    #[schemars(range(min = 1, max = MOST_BYTES))]
    pub limit_bytes: u64,
    /// Queues that flows are hashed into.
    #[schemars(range(min = 1, max = MOST_BUCKETS))]
    pub flows: u64,
    /// Link-layer bytes a queue may send in a turn.
    #[schemars(range(min = LEAST_QUANTUM_BYTES, max = u32::MAX))]
    pub quantum_bytes: u64,
    /// CoDel's target.
    #[schemars(range(min = SHORTEST_SPAN_PS, max = LONGEST_SPAN_PS))]
    pub target_ps: u64,
    /// CoDel's interval.
    #[schemars(range(min = SHORTEST_SPAN_PS, max = LONGEST_SPAN_PS))]
    pub interval_ps: u64,
    /// Marks frames whose sender understands it, instead of dropping them.
    pub ecn: bool,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self {
            limit_frames: 10_240,
            limit_bytes: 32 << 20,
            flows: 1024,
            quantum_bytes: 1514,
            target_ps: DEFAULT_TARGET_PS,
            interval_ps: DEFAULT_INTERVAL_PS,
            ecn: true,
        }
    }
}

impl FqCodelConfig {
    pub(super) fn build_at(&self, path: &str, site: Site<'_>) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        check_frames(&format!("{path}.limit_frames"), self.limit_frames)?;
        check_bytes(&format!("{path}.limit_bytes"), self.limit_bytes)?;
        check_range(&format!("{path}.flows"), self.flows, 1, MOST_BUCKETS)?;
        check_quantum(&format!("{path}.quantum_bytes"), self.quantum_bytes)?;
        let law = ControlLaw::checked(path, self.target_ps, self.interval_ps, self.ecn)?;
        let limit = Backlog { frames: self.limit_frames, bytes: self.limit_bytes };
        Ok(Box::new(FqCodel::new(law, limit, self.flows, self.quantum_bytes, site.salt(path))))
    }
}

/// The discipline.
pub struct FqCodel {
    law: ControlLaw,
    limit: Backlog,
    quantum: i64,
    salt: u64,
    /// By hash: the place in `flows`, or [`UNUSED`]. Queues are made when a flow first needs them and keep their state.
    slots: Vec<u32>,
    flows: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    backlog: Backlog,
    held: Backlog,
}

#[derive(Default)]
struct Flow {
    queue: StampedQueue,
    codel: CodelState,
    deficit: i64,
    listed: bool,
}

impl FqCodel {
    pub(super) fn new(law: ControlLaw, limit: Backlog, flows: u64, quantum_bytes: u64, salt: u64) -> Self {
        Self {
            law,
            limit,
            quantum: i64::try_from(quantum_bytes).unwrap_or(i64::MAX),
            salt,
            slots: vec![UNUSED; usize::try_from(flows).unwrap_or(1)],
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
            held: Backlog::default(),
        }
    }

    /// The place of the flow that `frame` belongs to.
    #[allow(clippy::cast_possible_truncation)]
    fn flow_of(&mut self, frame: &Frame) -> u32 {
        let slot = (((flow_hash(frame, self.salt) >> 32) * self.slots.len() as u64) >> 32) as usize;
        if self.slots[slot] == UNUSED {
            self.slots[slot] = self.flows.len() as u32;
            self.flows.push(Flow::default());
        }
        self.slots[slot]
    }

    fn is_over_limit(&self) -> bool {
        self.backlog.frames + self.held.frames > self.limit.frames
            || self.backlog.bytes + self.held.bytes > self.limit.bytes
    }

    fn drop_from_the_longest(&mut self, drops: &mut dyn DropSink) {
        let Some(longest) = self.flows.iter_mut().max_by_key(|flow| flow.queue.backlog().bytes) else { return };
        let half = longest.queue.backlog().bytes / 2;
        let mut gone = Backlog::default();
        for _ in 0..DROP_BATCH {
            let Some((_, frame)) = longest.queue.pop() else { break };
            gone = gone + Backlog::of(&frame);
            drops.dropped(frame, DropReason::Overlimit);
            if gone.bytes >= half {
                break;
            }
        }
        self.forget(gone);
    }

    fn forget(&mut self, gone: Backlog) {
        self.backlog.frames -= gone.frames;
        self.backlog.bytes -= gone.bytes;
    }
}

/// Passes drops on and adds them up, so that the total over all queues stays right.
struct SummingSink<'a> {
    sum: Backlog,
    next: &'a mut dyn DropSink,
}

impl DropSink for SummingSink<'_> {
    fn dropped(&mut self, frame: Box<Frame>, reason: DropReason) {
        self.sum = self.sum + Backlog::of(&frame);
        self.next.dropped(frame, reason);
    }

    fn marked(&mut self, frame: &Frame) {
        self.next.marked(frame);
    }
}

impl QueueDiscipline for FqCodel {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let index = self.flow_of(&frame);
        let quantum = self.quantum;
        for_each_frame(frame, |frame| {
            self.backlog = self.backlog + Backlog::of(&frame);
            let flow = &mut self.flows[index as usize];
            flow.queue.push(frame, now);
            if !flow.listed {
                flow.listed = true;
                flow.deficit = quantum;
                self.new.push_back(index);
            }
            while self.is_over_limit() && self.backlog.frames > 0 {
                self.drop_from_the_longest(drops);
            }
        });
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let mut sink = SummingSink { sum: Backlog::default(), next: drops };
            let frame = flow.codel.dequeue(&mut flow.queue, &self.law, now, &mut sink);
            let mut gone = sink.sum;
            let Some(frame) = frame else {
                list.pop_front();
                // RFC 8290, 4.2: an empty new queue becomes an old one, lest a flow that sends a frame now and then
                // starves others.
                if is_new && !self.old.is_empty() {
                    self.old.push_back(index);
                } else {
                    flow.listed = false;
                }
                self.forget(gone);
                continue;
            };
            let sent = Backlog::of(&frame);
            flow.deficit = flow.deficit.saturating_sub_unsigned(sent.bytes);
            gone = gone + sent;
            self.forget(gone);
            return Some(frame);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        let order: Vec<u32> = self.new.drain(..).chain(self.old.drain(..)).collect();
        self.backlog = Backlog::default();
        let mut frames = VecDeque::new();
        for index in order {
            let flow = &mut self.flows[index as usize];
            flow.listed = false;
            frames.append(&mut flow.queue.drain());
        }
        frames
    }

    fn hold(&mut self, held: Backlog) {
        self.held = held;
    }
}
