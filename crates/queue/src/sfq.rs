//! Stochastic fairness queueing: P. McKenney, *Stochastic Fairness Queuing*, INFOCOM 1990; with the shape of the
//! kernel's `sfq`.
//!
//! Flows are hashed into buckets that take turns with a quantum of bytes. When all is full, the tail of the longest
//! bucket is dropped. From time to time the hash changes, so that flows that met in one bucket part; what waits is
//! hashed anew, and no flow's frames change their order.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::random::mix;
use twinnet_units::Time;

use super::config::Site;
use super::flow::flow_hash;
use super::ranges::{
    check_frames, check_quantum, check_range, check_span, QueueError, LEAST_QUANTUM_BYTES, LONGEST_SPAN_PS,
    MOST_BUCKETS, MOST_FRAMES, SHORTEST_SPAN_PS,
};
use super::stamped::StampedQueue;
use super::train::for_each_frame;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

const UNUSED: u32 = u32::MAX;
const FEWEST_BUCKETS: u64 = 127;

/// `{"kind": "sfq", ...}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SfqConfig {
    /// Frames that all buckets keep together.
    #[schemars(range(min = 1, max = MOST_FRAMES))]
    pub limit_frames: u64,
    /// Buckets that flows are hashed into.
    #[schemars(range(min = FEWEST_BUCKETS, max = MOST_BUCKETS))]
    pub buckets: u64,
    /// Link-layer bytes a bucket may send in a turn.
    #[schemars(range(min = LEAST_QUANTUM_BYTES, max = u32::MAX))]
    pub quantum_bytes: u64,
    /// The period after which the hash changes; 0 is never.
    #[schemars(range(min = SHORTEST_SPAN_PS, max = LONGEST_SPAN_PS), extend("or_zero" = true))]
    pub perturb_ps: u64,
}

impl Default for SfqConfig {
    fn default() -> Self {
        Self { limit_frames: 127, buckets: 1024, quantum_bytes: 1514, perturb_ps: 10_000_000_000_000 }
    }
}

impl SfqConfig {
    pub(super) fn build_at(&self, path: &str, site: Site<'_>) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        check_frames(&format!("{path}.limit_frames"), self.limit_frames)?;
        check_range(&format!("{path}.buckets"), self.buckets, FEWEST_BUCKETS, MOST_BUCKETS)?;
        check_quantum(&format!("{path}.quantum_bytes"), self.quantum_bytes)?;
        if self.perturb_ps > 0 {
            check_span(&format!("{path}.perturb_ps"), self.perturb_ps)?;
        }
        Ok(Box::new(Sfq::new(self, site.salt(path))))
    }
}

/// The discipline.
pub struct Sfq {
    limit_frames: u64,
    quantum: i64,
    perturb_ps: u64,
    seed: u64,
    /// The number of times the hash has changed.
    period: u64,
    /// By hash: the place in `flows`, or [`UNUSED`].
    buckets: Vec<u32>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// Flows in the order of their turns.
    turns: VecDeque<u32>,
    lengths: Lengths,
    backlog: Backlog,
    held_frames: u64,
}

struct Flow {
    queue: StampedQueue,
    bucket: u32,
    allotment: i64,
    /// Its place in [`Lengths`].
    place: usize,
}

/// Flows by the frames they hold, so that the longest is known without a search.
#[derive(Default)]
struct Lengths {
    by_length: Vec<Vec<u32>>,
    longest: usize,
}

impl Lengths {
    /// Moves the flow at `index` from one length to another; 0 is nowhere.
    fn change(&mut self, flows: &mut [Flow], index: u32, from: usize, to: usize) {
        if from > 0 {
            let peers = &mut self.by_length[from];
            let place = flows[index as usize].place;
            peers.swap_remove(place);
            if let Some(&moved) = peers.get(place) {
                flows[moved as usize].place = place;
            }
        }
        if to > 0 {
            if self.by_length.len() <= to {
                self.by_length.resize_with(to + 1, Vec::new);
            }
            flows[index as usize].place = self.by_length[to].len();
            self.by_length[to].push(index);
        }
        self.longest = self.longest.max(to);
        while self.longest > 0 && self.by_length[self.longest].is_empty() {
            self.longest -= 1;
        }
    }

    fn longest(&self) -> Option<u32> {
        self.by_length.get(self.longest)?.last().copied()
    }
}

impl Sfq {
    fn new(config: &SfqConfig, seed: u64) -> Self {
        Self {
            limit_frames: config.limit_frames,
            quantum: i64::try_from(config.quantum_bytes).unwrap_or(i64::MAX),
            perturb_ps: config.perturb_ps,
            seed,
            period: 0,
            buckets: vec![UNUSED; usize::try_from(config.buckets).unwrap_or(1)],
            flows: Vec::new(),
            free: Vec::new(),
            turns: VecDeque::new(),
            lengths: Lengths::default(),
            backlog: Backlog::default(),
            held_frames: 0,
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn length(&self, index: u32) -> usize {
        self.flows[index as usize].queue.backlog().frames as usize
    }

    /// The flow in the bucket that `frame` falls into, made when there is none.
    #[allow(clippy::cast_possible_truncation)]
    fn flow_of(&mut self, frame: &Frame) -> u32 {
        let hash = flow_hash(frame, mix(self.seed ^ self.period));
        let bucket = (((hash >> 32) * self.buckets.len() as u64) >> 32) as usize;
        if self.buckets[bucket] == UNUSED {
            let index = self.free.pop().unwrap_or(self.flows.len() as u32);
            let queue = StampedQueue::default();
            let flow = Flow { queue, bucket: bucket as u32, allotment: self.quantum, place: 0 };
            match self.flows.get_mut(index as usize) {
                // The old flow's queue is empty and keeps its memory.
                Some(old) => (old.bucket, old.allotment) = (flow.bucket, flow.allotment),
                None => self.flows.push(flow),
            }
            self.buckets[bucket] = index;
            self.turns.push_back(index);
        }
        self.buckets[bucket]
    }

    fn put(&mut self, frame: Box<Frame>, now: Time) {
        let index = self.flow_of(&frame);
        let before = self.length(index);
        self.backlog = self.backlog + Backlog::of(&frame);
        self.flows[index as usize].queue.push(frame, now);
        let after = self.length(index);
        self.lengths.change(&mut self.flows, index, before, after);
    }

    /// `gone` has left the flow at `index`, which held `before` frames.
    fn took(&mut self, index: u32, before: usize, gone: &Frame) {
        let gone = Backlog::of(gone);
        self.backlog.frames -= gone.frames;
        self.backlog.bytes -= gone.bytes;
        let after = self.length(index);
        self.lengths.change(&mut self.flows, index, before, after);
    }

    fn close(&mut self, index: u32) {
        self.buckets[self.flows[index as usize].bucket as usize] = UNUSED;
        self.free.push(index);
    }

    fn drop_from_the_longest(&mut self, drops: &mut dyn DropSink) {
        let Some(index) = self.lengths.longest() else { return };
        let before = self.length(index);
        let Some(frame) = self.flows[index as usize].queue.pop_last() else { return };
        self.took(index, before, &frame);
        drops.dropped(frame, DropReason::Overlimit);
        if self.length(index) == 0 {
            self.turns.retain(|&other| other != index);
            self.close(index);
        }
    }

    /// A new hash for a new period: all that waits is sorted anew, flow by flow.
    fn perturb(&mut self, now: Time) {
        let Some(period) = now.as_ps().checked_div(self.perturb_ps) else { return };
        if period == self.period {
            return;
        }
        let waiting = self.drain();
        self.period = period;
        for frame in waiting {
            self.put(frame, now);
        }
    }
}

impl QueueDiscipline for Sfq {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        self.perturb(now);
        for_each_frame(frame, |frame| {
            self.put(frame, now);
            while self.backlog.frames + self.held_frames > self.limit_frames && self.backlog.frames > 0 {
                self.drop_from_the_longest(drops);
            }
        });
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        loop {
            let index = *self.turns.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.allotment <= 0 {
                flow.allotment += self.quantum;
                self.turns.rotate_left(1);
                continue;
            }
            let before = self.length(index);
            let flow = &mut self.flows[index as usize];
            let Some((_, frame)) = flow.queue.pop() else {
                self.turns.pop_front();
                self.close(index);
                continue;
            };
            flow.allotment = flow.allotment.saturating_sub_unsigned(frame.link_bytes());
            self.took(index, before, &frame);
            if self.length(index) == 0 {
                self.turns.pop_front();
                self.close(index);
            }
            return Some(frame);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        let mut frames = VecDeque::new();
        for index in std::mem::take(&mut self.turns) {
            let before = self.length(index);
            frames.append(&mut self.flows[index as usize].queue.drain());
            self.lengths.change(&mut self.flows, index, before, 0);
            self.close(index);
        }
        self.backlog = Backlog::default();
        frames
    }

    fn hold(&mut self, held: Backlog) {
        self.held_frames = held.frames;
    }
}
