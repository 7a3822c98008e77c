//! Hierarchical token bucket with the meaning that Open vSwitch gives `linux-htb`.
//!
//! Sources: M. Devera, *HTB: Hierarchical Token Bucket theory* (2002) and Linux `net/sched/sch_htb.c` for the
//! algorithm; Open vSwitch `lib/netdev-linux.c` and `vswitchd/bridge.c` for what a port's queues become.
//!
//! There is a root class with rate = ceil = the port's `max-rate`, and under it one leaf for each queue: `min-rate`
//! is its rate, `max-rate` its ceiling. A leaf *can send* while neither of its buckets is overdrawn; it *may
//! borrow* while only the bucket of its rate is; it *cannot send* while that of its ceiling is. First come the
//! leaves that can send, by priority, then, if the root is not overdrawn, those that may borrow, by priority;
//! leaves of equal priority take turns by deficit round robin with a quantum of a tenth of a second of their rate,
//! 1000 to 200,000 bytes (`r2q` 10). A frame is charged to the ceiling of its leaf and to the root always, to the
//! leaf's rate only when it did not borrow. Rates count link-layer bytes. Guaranteed rates may add up to more than
//! the port's: the leaves then share the line in their turns, and the root falls into debt, which is forgotten
//! beyond 60 s of its rate; until it is paid nothing is borrowed.
//!
//! The defaults of Open vSwitch, and of this file: a queue's burst is at least MTU + 64 bytes, the root's is the
//! MTU; a queue without `min-rate` gets MTU bytes/s, without `max-rate` the port's. Frames for a queue that does
//! not exist go to queue 0; when queue 0 is not configured `bridge.c` makes one of these defaults, with priority 0.
//! The MTU is 1500, or what the longest frame seen shows it to be.
//!
//! Differences from the kernel: time is exact, with no timer ticks and no rate tables. A class whose quantum is
//! shorter than its frames waits until its deficit is paid, so that shares follow the quanta there too (the kernel
//! lets it send a frame every turn). Trains are cut to what the burst allows instead of being sent and charged
//! whole.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use twinnet_packet::Frame;
use twinnet_units::Time;

use super::bucket::TokenBucket;
use super::class::Class;
use super::{Backlog, ClassRates, DropSink, QueueDiscipline};

/// Priorities that HTB knows; 0 is served first.
pub const PRIORITIES: u32 = 8;
/// `min-rate` of a queue that names none: the MTU in bytes per second.
pub const DEFAULT_MIN_RATE_BPS: u64 = 8 * MTU;

const MTU: u64 = 1500;
const ETHERNET_HEADER: u64 = 14;
/// The bytes that Open vSwitch adds to the MTU for a queue's burst, as a guard against headers it does not know of.
const BURST_GUARD: u64 = 64;
const RATE_TO_QUANTUM: u64 = 10;
/// No frame is so long; bounds the rounds after which every class has paid its deficit.
const DEEPEST_DEFICIT: i64 = -1_000_000;

/// The rates that one queue is promised, checked.
pub struct HtbLeaf {
    /// Guaranteed rate.
    pub min_rate_bps: u64,
    /// Ceiling, at least the guaranteed rate.
    pub max_rate_bps: u64,
    /// Depth of both buckets; `None` is MTU + 64.
    pub burst_bytes: Option<u64>,
    /// Below [`PRIORITIES`]; 0 is served first.
    pub priority: u32,
    /// The discipline that queues the frames.
    pub inside: Box<dyn QueueDiscipline>,
}

/// The discipline. Made by [`super::QueueConfig::build`].
pub struct Htb {
    /// Rate and ceiling of the root are equal, and both are charged alike: one bucket stands for both.
    root: TokenBucket,
    root_mtu: u64,
    /// By queue number, ascending: the order in which they take turns.
    leaves: Vec<Leaf>,
    index_of: BTreeMap<u32, usize>,
    default: usize,
    turns: [[usize; PRIORITIES as usize]; 2],
    last: usize,
}

struct Leaf {
    queue: u32,
    priority: usize,
    rate: TokenBucket,
    ceiling: TokenBucket,
    /// Set when the configuration leaves the burst open: it follows the longest frame.
    burst_follows_mtu: bool,
    burst_bytes: u64,
    quantum: i64,
    deficit: [i64; 2],
    class: Class,
    promised: ClassRates,
}

/// From which class the tokens come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The leaf's own rate.
    Own,
    /// The root's: the leaf borrows.
    Root,
}

impl Leaf {
    fn new(queue: u32, promise: HtbLeaf) -> Self {
        let burst_bytes = promise.burst_bytes.unwrap_or(0).max(MTU + BURST_GUARD);
        let tenth_of_a_second = promise.min_rate_bps / 8 / RATE_TO_QUANTUM;
        let quantum = i64::try_from(tenth_of_a_second).unwrap_or(i64::MAX).clamp(1000, 200_000);
        let HtbLeaf { min_rate_bps, max_rate_bps, .. } = promise;
        Self {
            promised: ClassRates { class: queue, min_rate_bps, max_rate_bps },
            queue,
            priority: promise.priority.min(PRIORITIES - 1) as usize,
            rate: TokenBucket::new(promise.min_rate_bps, burst_bytes),
            ceiling: TokenBucket::new(promise.max_rate_bps, burst_bytes),
            burst_follows_mtu: promise.burst_bytes.is_none(),
            burst_bytes,
            quantum,
            deficit: [0; 2],
            class: Class::new(promise.inside),
        }
    }

    /// Returns the level at which this leaf may take the tokens for a frame at `now`, if it has one ready.
    fn level(&self, now: Time) -> Option<Level> {
        if !self.class.is_primed() || !self.ceiling.holds(0, now) {
            return None;
        }
        Some(if self.rate.holds(0, now) { Level::Own } else { Level::Root })
    }

    /// Returns the time when this leaf may send, given when the root may lend.
    fn next_ready(&self, root_ready: Option<Time>, now: Time) -> Option<Time> {
        let frame = self.class.next_ready(now)?;
        let ceiling = self.ceiling.ready(0, now)?;
        let tokens = self.rate.ready(0, now).into_iter().chain(root_ready).min()?;
        Some(frame.max(ceiling).max(tokens))
    }

    fn follow_mtu(&mut self, mtu: u64, now: Time) {
        if self.burst_follows_mtu && mtu + BURST_GUARD > self.burst_bytes {
            self.burst_bytes = mtu + BURST_GUARD;
            self.rate.deepen(self.burst_bytes, now);
            self.ceiling.deepen(self.burst_bytes, now);
        }
    }
}

impl Htb {
    /// A port of `rate_bps` with `queues`, whose values have been checked.
    #[must_use]
    pub fn new(
        rate_bps: u64,
        mut queues: BTreeMap<u32, HtbLeaf>,
        fifo: impl FnOnce() -> Box<dyn QueueDiscipline>,
    ) -> Self {
        queues.entry(0).or_insert_with(|| HtbLeaf {
            min_rate_bps: DEFAULT_MIN_RATE_BPS.min(rate_bps),
            max_rate_bps: rate_bps,
            burst_bytes: None,
            priority: 0,
            inside: fifo(),
        });
        let index_of = queues.keys().enumerate().map(|(index, queue)| (*queue, index)).collect();
        let leaves = queues.into_iter().map(|(queue, promise)| Leaf::new(queue, promise)).collect();
        Self {
            root: TokenBucket::new(rate_bps, MTU),
            root_mtu: MTU,
            leaves,
            index_of,
            default: 0,
            turns: [[0; PRIORITIES as usize]; 2],
            last: 0,
        }
    }

    /// Whose turn it is among the leaves of `priority` that may send at `level`, by deficit round robin.
    fn turn(&mut self, level: Level, priority: usize, now: Time) -> Option<usize> {
        let leaves = self.leaves.len();
        let start = self.turns[level as usize][priority];
        let mut skipped_in_debt = false;
        let mut index = start;
        loop {
            let leaf = &mut self.leaves[index];
            if leaf.priority == priority && leaf.level(now) == Some(level) {
                let deficit = &mut leaf.deficit[level as usize];
                if *deficit >= 0 {
                    self.turns[level as usize][priority] = index;
                    return Some(index);
                }
                *deficit += leaf.quantum;
                skipped_in_debt = true;
            }
            index += 1;
            if index == leaves {
                index = 0;
            }
            if index == start && !std::mem::take(&mut skipped_in_debt) {
                return None;
            }
        }
    }

    fn select(&mut self, now: Time) -> Option<(usize, Level)> {
        // One bit for each priority of which some class has a frame: most ports have one priority, or nothing to send.
        let waiting = self
            .leaves
            .iter()
            .filter(|leaf| leaf.class.is_primed())
            .fold(0_u32, |bits, leaf| bits | 1 << leaf.priority);
        if waiting == 0 {
            return None;
        }
        let levels: &[Level] = if self.root.holds(0, now) { &[Level::Own, Level::Root] } else { &[Level::Own] };
        for &level in levels {
            for priority in (0..PRIORITIES as usize).filter(|priority| waiting >> priority & 1 == 1) {
                if let Some(index) = self.turn(level, priority, now) {
                    return Some((index, level));
                }
            }
        }
        None
    }

    fn send_from(&mut self, index: usize, level: Level, now: Time) -> Option<Box<Frame>> {
        let leaves = self.leaves.len();
        let leaf = &mut self.leaves[index];
        let frame = leaf.class.take(leaf.burst_bytes)?;
        let bytes = frame.link_bytes();
        if level == Level::Own {
            leaf.rate.charge(bytes, now);
        }
        leaf.ceiling.charge(bytes, now);
        self.root.charge(bytes, now);
        let deficit = &mut leaf.deficit[level as usize];
        *deficit = deficit.saturating_sub_unsigned(bytes).max(DEEPEST_DEFICIT);
        if *deficit < 0 {
            *deficit += leaf.quantum;
            self.turns[level as usize][leaf.priority] = (index + 1) % leaves;
        }
        self.last = index;
        Some(frame)
    }

    /// The bursts that follow the MTU grow when a frame shows it to be larger than thought.
    fn notice_length(&mut self, index: usize, frame: &Frame, now: Time) {
        let mtu = super::train::first_frame_bytes(frame).saturating_sub(ETHERNET_HEADER);
        if mtu > MTU {
            self.leaves[index].follow_mtu(mtu, now);
            if mtu > self.root_mtu {
                self.root_mtu = mtu;
                self.root.deepen(mtu, now);
            }
        }
    }
}

impl QueueDiscipline for Htb {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let index = self.index_of.get(&frame.queue).copied().unwrap_or(self.default);
        self.notice_length(index, &frame, now);
        self.leaves[index].class.enqueue(frame, now, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        for leaf in &mut self.leaves {
            leaf.class.prime(now, drops);
        }
        let (index, level) = self.select(now)?;
        self.send_from(index, level, now)
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        let root_ready = self.root.ready(0, now);
        self.leaves.iter().filter_map(|leaf| leaf.next_ready(root_ready, now)).min()
    }

    fn backlog(&self) -> Backlog {
        self.leaves.iter().map(|leaf| leaf.class.backlog()).sum()
    }

    fn is_empty(&self) -> bool {
        self.leaves.iter().all(|leaf| leaf.class.is_empty())
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.leaves.iter_mut().flat_map(|leaf| leaf.class.drain()).collect()
    }

    fn hold(&mut self, held: Backlog) {
        self.leaves[self.last].class.hold_outside(held);
    }

    fn class_rates(&self) -> Vec<ClassRates> {
        self.leaves.iter().map(|leaf| leaf.promised).collect()
    }

    fn class_counters(&self) -> Value {
        self.leaves.iter().map(|leaf| leaf.class.counters(leaf.queue)).collect()
    }
}
