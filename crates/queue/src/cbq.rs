//! Class-based queueing: S. Floyd and V. Jacobson, *Link-sharing and Resource Management Models for Packet
//! Networks*, IEEE/ACM Transactions on Networking, 1995.
//!
//! Classes form a tree under the link; each has an allotment and an [`Estimator`] of what it uses, leaves have
//! queues. The *general scheduler* serves leaves by priority, and those of one priority by weighted round robin,
//! weights being allotments. The *link-sharing scheduler* is the formal guideline of the paper: a leaf may send
//! while it is not over its limit, or else while it has an ancestor that is not, and no class at a lower level than
//! that ancestor's is unsatisfied. Otherwise it is regulated: it waits until its estimator lets it go on. A class
//! is unsatisfied when it is under its limit and a leaf below it, or it itself, has frames waiting. Levels count
//! from 1 at the leaves.
//!
//! The paper's two approximations of it (section 4), which need not look at every class, can be chosen instead
//! ([`LinkSharing`]).
//!
//! A *bounded* class borrows from no ancestor, nor does what lies below it; a leaf that could not use what an
//! ancestor has does not make that ancestor unsatisfied, for others would wait for nobody. An *isolated* class does
//! not lend: its allotment is taken out of its ancestors', and a frame is charged to them only when it borrowed
//! from them, but then not to itself.
//!
//! Trains are cut to single frames. Rates count link-layer bytes.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use twinnet_packet::Frame;
use twinnet_units::Time;

use super::class::Class;
use super::config::{build_or_fifo, Site};
use super::estimator::Estimator;
use super::ranges::{check_count, check_range, check_rate, refuse, QueueError, HIGHEST_RATE_BPS};
use super::{Backlog, DropSink, QueueConfig, QueueDiscipline};

const PRIORITIES: usize = 8;
/// Classes above each other.
const MOST_LEVELS: usize = 8;
/// The frame by which bursts and quanta are reckoned.
const FRAME_BYTES: u64 = 1514;
/// Quanta of one priority have this mean; none is so short that a frame needs many turns.
const MEAN_QUANTUM_BYTES: u64 = 1514;
const QUANTA: std::ops::RangeInclusive<u64> = 100..=200_000;
/// The weight of the newest frame in the estimator is 1/32, as in the kernel (`TC_CBQ_DEF_EWMA`).
const DEFAULT_GAIN: u32 = 5;
const DEFAULT_BURST_FRAMES: u32 = 16;

/// `{"kind": "cbq", ...}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CbqConfig {
    /// The rate of the whole link.
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    pub rate_bps: u64,
    /// By class number. A frame's queue number selects its leaf; a number that is no leaf goes to the leaf with the
    /// lowest.
    #[serde(deserialize_with = "classes_by_number")]
    #[schemars(with = "BTreeMap<String, CbqClassConfig>")]
    pub classes: BTreeMap<u32, CbqClassConfig>,
    /// The estimator's weight is 1/2^gain.
    #[serde(default = "default_gain")]
    #[schemars(range(min = 1, max = 16))]
    pub gain: u32,
    /// When a class over its limit may borrow.
    #[serde(default)]
    pub link_sharing: LinkSharing,
}

/// The link-sharing guidelines of the paper: when a leaf over its limit may use an ancestor's allotment that is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkSharing {
    /// While no class at a lower level than that ancestor's is unsatisfied.
    #[default]
    Formal,
    /// Always. A class under its limit may then wait for one that borrows from an ancestor which both share.
    AncestorOnly,
    /// While that ancestor's level is at most *Top-Level*: 1 when a frame comes for a class that is not over its
    /// limit; the level of its nearest such ancestor when one comes for a class that is; and any level again after
    /// a class has sent and has no more frames or may not go on.
    TopLevel,
}

/// One class of the link-sharing structure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CbqClassConfig {
    /// The class above; null is the link itself.
    #[serde(default)]
    pub parent: Option<u32>,
    /// Its allotment.
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    pub rate_bps: u64,
    /// 0 to 7 for leaves; 0 is served first.
    #[serde(default)]
    #[schemars(range(max = PRIORITIES - 1))]
    pub priority: u32,
    /// Does not borrow.
    #[serde(default)]
    pub bounded: bool,
    /// Does not lend.
    #[serde(default)]
    pub isolated: bool,
    /// Full-size frames that it may send back to back after a quiet time.
    #[serde(default = "default_burst")]
    #[schemars(range(max = 1000))]
    pub burst_frames: u32,
    /// The queue of a leaf's frames; null is a FIFO of 1000 frames.
    #[serde(default)]
    pub queue: Option<QueueConfig>,
}

const fn default_gain() -> u32 {
    DEFAULT_GAIN
}

const fn default_burst() -> u32 {
    DEFAULT_BURST_FRAMES
}

/// JSON's keys are text, and serde's tagged enums do not turn them into numbers.
fn classes_by_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u32, CbqClassConfig>, D::Error> {
    super::config::by_number(deserializer, "classes")
}

impl CbqConfig {
    pub(super) fn build_at(
        &self,
        path: &str,
        depth: usize,
        site: Site<'_>,
    ) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        check_rate(&format!("{path}.rate_bps"), self.rate_bps, HIGHEST_RATE_BPS)?;
        check_range(&format!("{path}.gain"), u64::from(self.gain), 1, 16)?;
        let path = format!("{path}.classes");
        check_count(&path, self.classes.len())?;
        for (number, class) in &self.classes {
            self.check_class(&format!("{path}.{number}"), *number, class)?;
        }
        self.check_allotments(&path)?;
        let mut queues = BTreeMap::new();
        for (number, class) in &self.classes {
            if self.children(Some(*number)).next().is_none() {
                let path = format!("{path}.{number}.queue");
                let site = Site { rate_bps: Some(self.rate_bps), ..site };
                queues.insert(*number, build_or_fifo(class.queue.as_ref(), &path, depth + 1, site)?);
            }
        }
        Ok(Box::new(Cbq::new(self, queues)))
    }

    fn children(&self, parent: Option<u32>) -> impl Iterator<Item = (u32, &CbqClassConfig)> {
        self.classes.iter().filter(move |(_, class)| class.parent == parent).map(|(number, class)| (*number, class))
    }

    fn check_class(&self, path: &str, number: u32, class: &CbqClassConfig) -> Result<(), QueueError> {
        check_rate(&format!("{path}.rate_bps"), class.rate_bps, self.rate_bps)?;
        check_range(&format!("{path}.priority"), u64::from(class.priority), 0, PRIORITIES as u64 - 1)?;
        check_range(&format!("{path}.burst_frames"), u64::from(class.burst_frames), 0, 1000)?;
        let (mut above, mut levels) = (class.parent, 1);
        while let Some(parent) = above {
            let Some(found) = self.classes.get(&parent).filter(|_| parent != number) else {
                let allowed = "the number of another class, or null for the link";
                return refuse(&format!("{path}.parent"), parent.to_string(), allowed);
            };
            levels += 1;
            if levels > MOST_LEVELS {
                let allowed = format!("at most {MOST_LEVELS} classes above each other, in no circle");
                return refuse(&format!("{path}.parent"), parent.to_string(), allowed);
            }
            above = found.parent;
        }
        if class.queue.is_some() && self.children(Some(number)).next().is_some() {
            return refuse(&format!("{path}.queue"), "a queue", "none: classes below this one have the frames");
        }
        Ok(())
    }

    /// Checks that each class has what it gives away.
    fn check_allotments(&self, path: &str) -> Result<(), QueueError> {
        let links = std::iter::once((None, self.rate_bps));
        let parents = links.chain(self.classes.iter().map(|(number, class)| (Some(*number), class.rate_bps)));
        for (parent, rate_bps) in parents {
            let sum: u64 = self.children(parent).map(|(_, child)| child.rate_bps).sum();
            if sum > rate_bps {
                let name = parent.map_or("the link".to_owned(), |number| format!("class {number}"));
                let value = format!("allotments below {name} of {sum} bit/s together");
                return refuse(path, value, format!("at most its own {rate_bps} bit/s"));
            }
        }
        Ok(())
    }
}

/// The discipline.
pub struct Cbq {
    /// The link first, then its classes in the order of their numbers.
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    /// By class number: the place in `leaves`.
    index_of: BTreeMap<u32, usize>,
    turns: [usize; PRIORITIES],
    last: usize,
    link_sharing: LinkSharing,
    /// The highest level from which may be borrowed, of [`LinkSharing::TopLevel`].
    top_level: usize,
}

struct Node {
    parent: Option<usize>,
    level: usize,
    bounded: bool,
    isolated: bool,
    estimator: Estimator,
}

struct Leaf {
    number: u32,
    node: usize,
    priority: usize,
    quantum: i64,
    deficit: i64,
    borrowed_frames: u64,
    class: Class,
}

impl Cbq {
    fn new(config: &CbqConfig, mut queues: BTreeMap<u32, Box<dyn QueueDiscipline>>) -> Self {
        let place: BTreeMap<u32, usize> = config.classes.keys().copied().zip(1..).collect();
        let lends = |number: Option<u32>, rate_bps: u64| rate_bps.saturating_sub(isolated_below(config, number));
        let estimator = |rate_bps, burst| Estimator::new(rate_bps, config.rate_bps, burst, FRAME_BYTES, config.gain);
        let mut nodes = vec![Node {
            parent: None,
            level: level_of(config, None),
            bounded: true,
            isolated: false,
            estimator: estimator(lends(None, config.rate_bps), DEFAULT_BURST_FRAMES),
        }];
        let peers: Vec<Vec<u64>> = (0..PRIORITIES).map(|priority| allotments_at(config, priority, &queues)).collect();
        let mut leaves: Vec<Leaf> = Vec::new();
        for (number, class) in &config.classes {
            nodes.push(Node {
                parent: Some(class.parent.and_then(|parent| place.get(&parent).copied()).unwrap_or(0)),
                level: level_of(config, Some(*number)),
                bounded: class.bounded,
                isolated: class.isolated,
                estimator: estimator(lends(Some(*number), class.rate_bps), class.burst_frames),
            });
            if let Some(queue) = queues.remove(number) {
                leaves.push(Leaf {
                    number: *number,
                    node: nodes.len() - 1,
                    priority: priority_of(class),
                    quantum: quantum_of(&peers[priority_of(class)], class.rate_bps),
                    deficit: 0,
                    borrowed_frames: 0,
                    class: Class::new(queue),
                });
            }
        }
        let index_of = leaves.iter().enumerate().map(|(index, leaf)| (leaf.number, index)).collect();
        let link_sharing = config.link_sharing;
        Self { nodes, leaves, index_of, turns: [0; PRIORITIES], last: 0, link_sharing, top_level: usize::MAX }
    }

    /// From `node` up to the link.
    fn upwards(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(node), |&at| self.nodes[at].parent)
    }

    /// From `node` up to where borrowing ends: the classes whose allotment may carry its frames.
    fn lenders(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let mut ended = false;
        self.upwards(node).take_while(move |&at| !std::mem::replace(&mut ended, self.nodes[at].bounded) || at == node)
    }

    /// The lowest level at which a class is unsatisfied at `now`, given which leaves have frames.
    fn lowest_unsatisfied(&self, now: Time, has_frames: impl Fn(&Leaf) -> bool) -> usize {
        self.leaves
            .iter()
            .filter(|leaf| has_frames(leaf))
            .filter_map(|leaf| {
                let mut lenders = self.lenders(leaf.node);
                lenders.find(|&at| self.nodes[at].estimator.ready() < now).map(|at| self.nodes[at].level)
            })
            .min()
            .unwrap_or(usize::MAX)
    }

    /// The highest level of an ancestor from which may be borrowed at `now`, by the guideline, given which leaves
    /// have frames.
    fn borrowing_level(&self, now: Time, has_frames: impl Fn(&Leaf) -> bool) -> usize {
        match self.link_sharing {
            LinkSharing::Formal => self.lowest_unsatisfied(now, has_frames),
            LinkSharing::AncestorOnly => usize::MAX,
            LinkSharing::TopLevel => self.top_level,
        }
    }

    /// Whose allotment carries the next frame of the leaf at `node`, if any does, when ancestors up to `level` may
    /// lend.
    fn lender(&self, node: usize, level: usize, now: Time) -> Option<usize> {
        self.lenders(node).find(|&at| {
            let class = &self.nodes[at];
            class.estimator.ready() <= now && (at == node || class.level <= level)
        })
    }

    /// A frame has come for the leaf at `node`: Top-Level goes down to where that leaf would get its bandwidth from.
    fn lower_top_level(&mut self, node: usize, now: Time) {
        let nearest = self.lenders(node).find(|&at| self.nodes[at].estimator.ready() <= now);
        if let Some(at) = nearest {
            // A leaf's own level is 1.
            self.top_level = self.top_level.min(self.nodes[at].level);
        }
    }

    /// Whose turn it is among the leaves of `priority` that may send, by weighted round robin, and from whom it
    /// borrows.
    fn turn(&mut self, priority: usize, level: usize, now: Time) -> Option<(usize, usize)> {
        let count = self.leaves.len();
        let start = self.turns[priority];
        let mut skipped_in_debt = false;
        let mut step = 0;
        loop {
            let index = (start + step) % count;
            let leaf = &self.leaves[index];
            if leaf.priority == priority && leaf.class.is_primed() {
                if let Some(lender) = self.lender(leaf.node, level, now) {
                    let leaf = &mut self.leaves[index];
                    if leaf.deficit >= 0 {
                        self.turns[priority] = index;
                        return Some((index, lender));
                    }
                    leaf.deficit += leaf.quantum;
                    skipped_in_debt = true;
                }
            }
            step += 1;
            if step % count == 0 && !std::mem::take(&mut skipped_in_debt) {
                return None;
            }
        }
    }

    fn send_from(&mut self, index: usize, lender: usize, now: Time) -> Option<Box<Frame>> {
        let count = self.leaves.len();
        let leaf = &mut self.leaves[index];
        let frame = leaf.class.take(0)?;
        let bytes = frame.link_bytes();
        leaf.deficit = leaf.deficit.saturating_sub_unsigned(bytes);
        if leaf.deficit < 0 {
            leaf.deficit += leaf.quantum;
            self.turns[leaf.priority] = (index + 1) % count;
        }
        if lender != leaf.node {
            leaf.borrowed_frames += frame.frames();
        }
        let (mut at, mut lender_passed) = (Some(leaf.node), false);
        while let Some(node) = at {
            lender_passed |= node == lender;
            let class = &mut self.nodes[node];
            // An isolated class's allotment is apart from those above it: a frame is charged to the one or to the
            // others.
            if !class.isolated || lender_passed {
                class.estimator.charge(bytes, now);
            }
            at = if class.isolated && lender_passed { None } else { class.parent };
        }
        self.last = index;
        let leaf = &self.leaves[index];
        let may_go_on = leaf.class.backlog().frames > 0 && self.lender(leaf.node, self.top_level, now).is_some();
        if !may_go_on {
            self.top_level = usize::MAX;
        }
        Some(frame)
    }
}

/// Allotments of the isolated classes below `number`, which are not lent; those inside an isolated class are part
/// of its own.
fn isolated_below(config: &CbqConfig, number: Option<u32>) -> u64 {
    config
        .children(number)
        .map(|(child, class)| if class.isolated { class.rate_bps } else { isolated_below(config, Some(child)) })
        .sum()
}

fn level_of(config: &CbqConfig, number: Option<u32>) -> usize {
    1 + config.children(number).map(|(child, _)| level_of(config, Some(child))).max().unwrap_or(0)
}

fn priority_of(class: &CbqClassConfig) -> usize {
    (class.priority as usize).min(PRIORITIES - 1)
}

/// Allotments of the leaves of `priority`.
fn allotments_at(config: &CbqConfig, priority: usize, leaves: &BTreeMap<u32, Box<dyn QueueDiscipline>>) -> Vec<u64> {
    let classes = config.classes.iter().filter(|(number, _)| leaves.contains_key(number));
    classes.filter(|(_, class)| priority_of(class) == priority).map(|(_, class)| class.rate_bps).collect()
}

/// Returns what a leaf sends in a turn: its share of the allotments of its priority.
fn quantum_of(peers_bps: &[u64], rate_bps: u64) -> i64 {
    let sum: u128 = peers_bps.iter().map(|rate| u128::from(*rate)).sum();
    let mean = u128::from(MEAN_QUANTUM_BYTES) * peers_bps.len() as u128;
    let quantum = u64::try_from(mean * u128::from(rate_bps) / sum.max(1)).unwrap_or(*QUANTA.end());
    i64::try_from(quantum.clamp(*QUANTA.start(), *QUANTA.end())).unwrap_or(i64::MAX)
}

impl QueueDiscipline for Cbq {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let index = self.index_of.get(&frame.queue).copied().unwrap_or(0);
        self.lower_top_level(self.leaves[index].node, now);
        self.leaves[index].class.enqueue(frame, now, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        let mut any = false;
        for leaf in &mut self.leaves {
            any |= leaf.class.prime(now, drops).is_some();
        }
        if !any {
            return None;
        }
        let level = self.borrowing_level(now, |leaf| leaf.class.is_primed());
        for priority in 0..PRIORITIES {
            if let Some((index, lender)) = self.turn(priority, level, now) {
                return self.send_from(index, lender, now);
            }
        }
        None
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        let waiting: Vec<(usize, Time)> =
            self.leaves.iter().filter_map(|leaf| Some((leaf.node, leaf.class.next_ready(now)?))).collect();
        // What may send changes only when a class is no longer over its limit, or a discipline inside has something.
        let ready = self.nodes.iter().map(|node| node.estimator.ready()).chain(waiting.iter().map(|(_, at)| *at));
        let mut moments: Vec<Time> = ready.map(|at| at.max(now)).collect();
        moments.sort_unstable();
        moments.into_iter().find(|&at| {
            let level = self.borrowing_level(at, |leaf| leaf.class.next_ready(now).is_some_and(|ready| ready <= at));
            waiting.iter().any(|&(node, ready)| ready <= at && self.lender(node, level, at).is_some())
        })
    }

    fn backlog(&self) -> Backlog {
        self.leaves.iter().map(|leaf| leaf.class.backlog()).sum()
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.leaves.iter_mut().flat_map(|leaf| leaf.class.drain()).collect()
    }

    fn hold(&mut self, held: Backlog) {
        self.leaves[self.last].class.hold_outside(held);
    }

    fn class_counters(&self) -> Value {
        let counters = |leaf: &Leaf| {
            let mut counters = leaf.class.counters(leaf.number);
            counters["borrowed_frames"] = leaf.borrowed_frames.into();
            counters
        };
        self.leaves.iter().map(counters).collect()
    }
}
