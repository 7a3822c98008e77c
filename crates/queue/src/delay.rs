//! A delay and losses for what goes through a class alone, as the kernel's `netem` has them when it stands in a class
//! of another discipline (S. Hemminger, *Network Emulation with `NetEm`*, 2005; Linux `net/sched/sch_netem.c`).
//!
//! A frame that comes is lost with one probability, independently of others. If not, it becomes due after the delay,
//! from which it differs by up to the jitter, drawn evenly; no delay is below zero. Frames leave in the order in which
//! they become due, so that jitter may reorder them. The rate of what is around counts when they leave.
//!
//! Lines have delays and losses of their own, which all frames meet; this is for those that differ by class.

use std::collections::{BTreeMap, VecDeque};

use rand::RngExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::random::{happens, Rng};
use twinnet_units::{Duration, Time};

use super::config::{Site, DEFAULT_LIMIT_FRAMES};
use super::ranges::{check_frames, check_range, refuse, QueueError, LONGEST_SPAN_PS, MOST_FRAMES};
use super::train::for_each_frame;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

/// `{"kind": "delay", ...}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DelayConfig {
    /// The time that frames are kept.
    #[schemars(range(max = LONGEST_SPAN_PS))]
    pub delay_ps: u64,
    /// The most that the delay of a frame differs from it.
    #[schemars(range(max = LONGEST_SPAN_PS))]
    pub jitter_ps: u64,
    /// The probability that a frame is lost.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: f64,
    /// Frames it keeps.
    #[schemars(range(min = 1, max = MOST_FRAMES))]
    pub limit_frames: u64,
}

impl Default for DelayConfig {
    fn default() -> Self {
        Self { delay_ps: 0, jitter_ps: 0, loss: 0.0, limit_frames: DEFAULT_LIMIT_FRAMES }
    }
}

impl DelayConfig {
    pub(super) fn build_at(&self, path: &str, site: Site<'_>) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        check_range(&format!("{path}.delay_ps"), self.delay_ps, 0, LONGEST_SPAN_PS)?;
        check_range(&format!("{path}.jitter_ps"), self.jitter_ps, 0, LONGEST_SPAN_PS)?;
        check_frames(&format!("{path}.limit_frames"), self.limit_frames)?;
        if !(0.0..=1.0).contains(&self.loss) {
            return refuse(&format!("{path}.loss"), self.loss.to_string(), "0 to 1");
        }
        Ok(Box::new(Delay {
            config: self.clone(),
            waiting: BTreeMap::new(),
            backlog: Backlog::default(),
            held_frames: 0,
            kept: 0,
            random: site.random(path),
        }))
    }
}

/// The discipline.
pub struct Delay {
    config: DelayConfig,
    /// By the time when they are due; of those that are due together the first first.
    waiting: BTreeMap<(Time, u64), Box<Frame>>,
    backlog: Backlog,
    held_frames: u64,
    /// Frames that were kept so far.
    kept: u64,
    random: Rng,
}

impl Delay {
    fn draw(&mut self) -> Duration {
        let DelayConfig { delay_ps, jitter_ps, .. } = self.config;
        let varied = if jitter_ps == 0 { 0 } else { self.random.random_range(0..=2 * jitter_ps) };
        Duration::from_ps((delay_ps + varied).saturating_sub(jitter_ps))
    }

    fn enqueue_one(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        if self.config.loss > 0.0 && happens(&mut self.random, self.config.loss) {
            drops.dropped(frame, DropReason::Early);
        } else if self.backlog.frames + self.held_frames >= self.config.limit_frames {
            drops.dropped(frame, DropReason::Overlimit);
        } else {
            self.backlog = self.backlog + Backlog::of(&frame);
            self.kept += 1;
            let due = now + self.draw();
            self.waiting.insert((due, self.kept), frame);
        }
    }
}

impl QueueDiscipline for Delay {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        for_each_frame(frame, |frame| self.enqueue_one(frame, now, drops));
    }

    fn dequeue(&mut self, now: Time, _drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        let next = self.waiting.first_entry().filter(|next| next.key().0 <= now)?;
        let frame = next.remove();
        let gone = Backlog::of(&frame);
        self.backlog.frames -= gone.frames;
        self.backlog.bytes -= gone.bytes;
        Some(frame)
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.waiting.first_key_value().map(|((due, _), _)| (*due).max(now))
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.backlog = Backlog::default();
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    fn hold(&mut self, held: Backlog) {
        self.held_frames = held.frames;
    }
}
