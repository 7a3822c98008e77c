//! What is left of a link that serves in slots of one millisecond, as links of mobile access do: groups of packets at
//! random times, and how many of each leave in the first slot that comes.
//!
//! A slot has room for some packets, and cross traffic that waits takes its part first. A group that comes just before
//! the slot, and has more packets than any slot has room for, fills all that cross traffic leaves. Slots seen at times
//! that do not depend on the link are seen in their right shares, however their sizes depend on each other (Wolff,
//! *Poisson arrivals see time averages*, Operations Research 30(2), 1982; for groups at random distances with a least
//! one: Baccelli, Machiraju, Veitch, Bolot, *The role of PASTA in network measurement*, IEEE/ACM ToN 17(4), 2009). So
//! the mean over the groups is the mean available bandwidth of the time measured, over any kind of fading. No rate is
//! read from a gap, and the capacity need not be known.
//!
//! A group that comes some time before its slot takes the place of cross traffic that comes in between. So groups have
//! two distances from their slots, and the line through their means is read at distance zero (least squares; its
//! standard error is White's, *Econometrica* 48(4), 1980, which holds for slots of unlike variance). For slots that
//! are seen at even times it is an upper bound, as neighbours resemble each other (Cochran, *Sampling Techniques*, 3rd
//! edition, 8.6).

use super::estimator::{mean_and_error, median, Estimator, Finding, Probing, Step};
use super::message::PROBE_LENGTH;
use super::slots::{self, Slots, SHORT_NS, SLOT_NS};
use super::student::quantile_975;
use super::train::{Plan, Train, MOST_PACKETS};
use crate::schedule::random::Stream;

settings! {
    /// The settings.
    pub struct SlottedConfig;

    /// Packets of a group at first. There are twice as many after a slot had room for all.
    packets: u32 [2, MOST_GROUP as u32] = 4,
    /// The mean distance of groups at least, in nanoseconds. It is longer where groups take longer to pass.
    apart_ns: f64 [4e6, 1e10] = 15e6,
    /// Groups at most.
    groups: u32 [100, 100_000] = 1000,
    /// The standard error at which it ends, as a share of the estimate.
    precision: f64 [0.001, 0.5] = 0.05,
    /// The rate of the slowest link before the one with slots, in bit/s: packets of a group follow each other at it.
    line_bps: f64 [1e7, 1e12] = 1e9,
}

/// Packets of a group at most: more would not fit between two slots on a line of 1 Gbit/s.
const MOST_GROUP: usize = 64;
/// The first trains are short packets at a distance of a slot and a bit, which meet every phase of the slots: the one
/// that waits least tells when slots come.
const LOOKS: usize = 256;
const LOOKS_APART_NS: f64 = 1e6 + 1e6 / 128.0;
const LOOKS_TRAINS: u32 = 2;
/// Groups of a train: few until slots are seen and groups are large enough, then as many as a train has packets for.
const FIRST_GROUPS: usize = 8;
const MOST_GROUPS: usize = 64;
/// So many trains without a slot that takes a whole group are enough.
const ENOUGH: u32 = 4;
/// Trains that may pass until slots are seen.
const PATIENCE: u32 = 12;
/// Groups take at most about this share of what is available, so that one does not meet what another left.
const BUSY: f64 = 1.0 / 3.0;
const MOST_APART_NS: f64 = 500e6;
/// A group must reach the link so long before its slot.
const MARGIN_NS: i64 = 40_000;
/// The distance from the slot of one group in so many, and that of the others beyond what their packets need.
const FAR_NS: i64 = 900_000;
const ONE_FAR_IN: u32 = 4;
const NEAR_SPREAD_NS: f64 = 20_000.0;
/// Groups take at most this time to reach the link, so that distances from slots differ.
const LONGEST_NS: f64 = 450_000.0;
/// Parts of the groups, whose means tell how the link changes.
const PARTS: usize = 8;
/// The share of slots with room for a whole group from which on there is no answer.
const MOST_FULL: f64 = 0.02;
/// A tenth of the groups that are not used is worth a note.
const MANY: usize = 10;
/// Packets of a slot arrive from so long before its expected time on, as stamps have errors.
const EARLY_NS: i64 = 100_000;
/// Groups that are needed for an answer.
const LEAST: usize = 100;

/// A group as it was sent.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_ns: i64,
    last_ns: i64,
    packets: usize,
}

/// A group and its slot.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The time from the group to its slot, in slots.
    before: f64,
    /// Packets that the slot took.
    taken: f64,
    packets: usize,
    /// The slot took all packets of the group.
    full: bool,
}

/// The times in which there were no groups because what earlier ones left had to pass: long ones are those in which the
/// link serves little, and would be missed. All that passes in them is known.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// The time of trains, in slots.
    trains: f64,
    /// The time of waits, in slots, and the packets that passed.
    waits: f64,
    packets: f64,
    /// The part of the waits whose cross traffic has passed before the next group comes.
    unseen: f64,
}

/// The estimator.
pub struct Slotted {
    config: SlottedConfig,
    probing: Probing,
    random: Stream,
    /// Packets of a group.
    packets: usize,
    looks_sent: u32,
    trains: u32,
    groups: u32,
    slots: Slots,
    seen: bool,
    /// The least delay of looks.
    least_ns: Option<i64>,
    /// Arrivals of looks, in a clock that begins with the slots' phase: how far from the first one's phase.
    origin_ns: Option<i64>,
    phases: Vec<f64>,
    /// Gaps between packets that leave in the same slot.
    short: Vec<f64>,
    /// The silence asked for before the last train.
    idle_ns: f64,
    /// The phase of a train that is asked for with no silence.
    begins_ns: Option<i64>,
    samples: Vec<Sample>,
    /// Trains since groups are as large as they are, and whether that is enough, as far as is known.
    enough: u32,
    settled: bool,
    waits: Waits,
    /// The first packet of all, and the first one since groups are large enough.
    begun_ns: Option<i64>,
    since_ns: Option<i64>,
    unused: usize,
    gave_up: Option<String>,
}

/// What groups tell.
struct Seen {
    /// Packets in each slot.
    mean: f64,
    error: f64,
    /// What groups that were too small may have missed, at most.
    missed: f64,
    /// The share of slots that took a whole group.
    full: f64,
}

impl Slotted {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: SlottedConfig, probing: Probing) -> Self {
        Self {
            random: Stream::new(probing.seed),
            packets: config.packets as usize,
            config,
            probing,
            looks_sent: 0,
            trains: 0,
            groups: 0,
            slots: Slots::default(),
            seen: false,
            least_ns: None,
            origin_ns: None,
            phases: Vec::new(),
            short: Vec::new(),
            idle_ns: 0.0,
            begins_ns: None,
            samples: Vec::new(),
            enough: 0,
            settled: false,
            waits: Waits::default(),
            begun_ns: None,
            since_ns: None,
            unused: 0,
            gave_up: None,
        }
    }

    /// The phase at which packets of slots arrive: the earliest but for errors of stamps.
    fn arrival_phase_ns(&self) -> Option<i64> {
        let mut sorted = self.phases.clone();
        sorted.sort_by(f64::total_cmp);
        let early = sorted.get(sorted.len() / 20)?;
        self.origin_ns.map(|origin| (origin + *early as i64).rem_euclid(SLOT_NS))
    }

    /// The time from the sending of a packet to the slot that it can take, and when what leaves in that slot arrives.
    fn slot_of(&self, sent_ns: i64) -> Option<(i64, i64)> {
        let (phase, least) = self.arrival_phase_ns().zip(self.least_ns)?;
        let ready = sent_ns + least;
        let before = (phase - ready).rem_euclid(SLOT_NS);
        Some((before, ready + before))
    }

    /// The time of a packet on the links before the slots: that of the slowest, and no less than behind them.
    fn apiece_ns(&self) -> f64 {
        let line = self.probing.framing.wire().gap_ns(self.probing.most_payload, self.config.line_bps);
        median(&self.short).unwrap_or(0.0).max(line)
    }

    /// The time that packets of a group need on the links before the slots.
    fn span_ns(&self, packets: usize) -> i64 {
        (packets as f64 * self.apiece_ns()) as i64
    }

    /// The distance from the slot that the next group is to have.
    fn wanted_ns(&mut self) -> i64 {
        let near = self.span_ns(self.packets) + MARGIN_NS + (NEAR_SPREAD_NS * self.random.uniform()) as i64;
        self.groups += 1;
        if !self.seen {
            // At any distance, so that it is not the sender who keeps to milliseconds.
            near + ((FAR_NS - near).max(0) as f64 * self.random.uniform()) as i64
        } else if self.groups % ONE_FAR_IN == 0 {
            FAR_NS.max(near)
        } else {
            near
        }
    }

    /// The mean distance of groups.
    fn apart_ns(&self) -> f64 {
        let packets = self.packets as f64;
        let bits = self.probing.framing.bits(self.probing.most_payload) * packets;
        let taken = self.samples.iter().map(|one| one.taken).sum::<f64>() / self.samples.len().max(1) as f64;
        let rare = if taken > 0.0 { packets / taken / BUSY * SLOT_NS as f64 } else { 0.0 };
        self.config.apart_ns.max(rare.min(MOST_APART_NS)).max(bits * 1e9 / self.probing.most_rate_bps)
    }

    /// A train of groups, each at its distance from a slot.
    fn train(&mut self) -> Step {
        let apart = self.apart_ns();
        let most = if self.settled { MOST_GROUPS } else { FIRST_GROUPS };
        let count = most.min(MOST_PACKETS / self.packets);
        let mut idle = apart * (0.5 + self.random.uniform());
        let first = self.wanted_ns();
        if let Some((phase, (least, begins))) = self.arrival_phase_ns().zip(self.least_ns.zip(self.begins_ns)) {
            let late = (phase - least - first - begins - idle as i64).rem_euclid(SLOT_NS);
            idle += late as f64;
        }
        self.idle_ns = idle;
        let (mut at, mut before) = (0_i64, first);
        let mut gaps = vec![0.0; self.packets - 1];
        for _ in 1..count {
            let slots = (apart * (0.5 + self.random.uniform()) / SLOT_NS as f64).round().max(2.0) as i64;
            let wanted = self.wanted_ns();
            let gap = slots * SLOT_NS + before - wanted;
            (at, before) = (at + gap, wanted);
            gaps.push(gap as f64);
            gaps.extend(std::iter::repeat_n(0.0, self.packets - 1));
        }
        self.trains += 1;
        Step::Send { plan: Plan::by_gaps(self.probing.most_payload, gaps), idle_ns: idle }
    }

    fn hear_looks(&mut self, train: &Train) {
        let mut before = None;
        for (sent, arrived) in train.sent_ns.iter().zip(&train.arrived_ns) {
            let Some(arrived) = *arrived else { continue };
            let delay = arrived - sent;
            self.least_ns = Some(self.least_ns.map_or(delay, |least| least.min(delay)));
            let origin = *self.origin_ns.get_or_insert(arrived);
            // The first of its slot.
            if before.is_none_or(|before| arrived - before > SLOT_NS / 2) {
                let from_half = (arrived - origin + SLOT_NS / 2).rem_euclid(SLOT_NS);
                self.phases.push((from_half - SLOT_NS / 2) as f64);
            }
            before = Some(arrived);
        }
    }

    /// The groups of a train, with their places.
    fn groups_of(train: &Train) -> Vec<(Group, std::ops::Range<usize>)> {
        let planned = &train.plan.packets;
        let mut groups = Vec::new();
        let mut start = 0;
        for place in 1..=planned.len() {
            if place == planned.len() || planned[place].at_ns > planned[place - 1].at_ns {
                let (first_ns, last_ns) = (train.sent_ns[start], train.sent_ns[place - 1]);
                groups.push((Group { first_ns, last_ns, packets: place - start }, start..place));
                start = place;
            }
        }
        groups
    }

    fn hear_groups(&mut self, train: &Train) {
        self.since_ns = self.since_ns.or(train.sent_ns.first().copied());
        self.slots.hear(train);
        self.seen |= self.slots.are_seen();
        let mut arrivals: Vec<i64> = train.arrived_ns.iter().flatten().copied().collect();
        arrivals.sort_unstable();
        let gaps = arrivals.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap < SHORT_NS);
        self.short.extend(gaps.map(|gap| gap as f64).take(MOST_GROUP));
        let until = |time: i64| arrivals.partition_point(|arrived| *arrived < time);
        let (mut full, mut ends) = (false, None);
        for (group, places) in Self::groups_of(train) {
            let Some((before, at)) = self.slot_of(group.first_ns) else { return };
            let end = at - EARLY_NS + SLOT_NS;
            ends = Some((ends.map_or(end, |(first, _)| first), end));
            let needed = self.span_ns(group.packets - 1).max(group.last_ns - group.first_ns) + MARGIN_NS / 2;
            if before < needed {
                self.unused += 1;
                continue;
            }
            let own = train.arrived_ns[places].iter().flatten().filter(|arrived| **arrived < end);
            let full_slot = own.count() == group.packets;
            full |= full_slot;
            let taken = (until(end) - until(end - SLOT_NS)) as f64;
            let before = before as f64 / SLOT_NS as f64;
            self.samples.push(Sample { before, taken, packets: group.packets, full: full_slot });
        }
        if let Some(((first, last), end)) = ends.zip(arrivals.last()) {
            let slots = |from: i64, to: i64| (to - from).max(0) as f64 / SLOT_NS as f64;
            let (wait, waits) = (slots(last, *end), &mut self.waits);
            waits.trains += slots(first, last) + 1.0;
            waits.waits += wait;
            waits.packets += (arrivals.len() - until(last)) as f64;
            waits.unseen += wait.min(self.config.apart_ns / SLOT_NS as f64);
        }
        self.grow(full);
    }

    /// Larger groups after a slot that took a whole one; what smaller ones saw at first is left out.
    fn grow(&mut self, full: bool) {
        let fits = (LONGEST_NS / self.apiece_ns()) as usize;
        let larger = (2 * self.packets).min(fits).min(MOST_GROUP);
        if full && larger > self.packets {
            self.packets = larger;
            self.enough = 0;
            let full = self.samples.iter().filter(|one| one.full).count();
            if full as f64 > MOST_FULL * self.samples.len() as f64 {
                (self.waits, self.unused) = (Waits::default(), 0);
                self.samples.clear();
                (self.settled, self.since_ns) = (false, None);
            }
        } else {
            self.enough += u32::from(self.seen);
            self.settled |= self.enough >= ENOUGH;
        }
    }

    /// Packets in each slot, where the line through the groups meets their slots.
    fn seen(&self) -> Option<Seen> {
        let count = self.samples.len() as f64;
        let mean = |of: &dyn Fn(&Sample) -> f64| self.samples.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(&|one| one.before), mean(&|one| one.taken));
        let square = mean(&|one| (one.before - x).powi(2));
        if self.samples.len() < LEAST || square < 1e-4 {
            return None;
        }
        let slope = mean(&|one| (one.before - x) * (one.taken - y)) / square;
        let at_slot = y - slope * x;
        let weighed = |one: &Sample| {
            let weight = 1.0 - x * (one.before - x) / square;
            (weight * (one.taken - at_slot - slope * one.before)).powi(2)
        };
        let error = (mean(&weighed) / (count - 2.0)).sqrt();
        // No slot is taken to have room for more than twice the largest group.
        let missed = mean(&|one| if one.full { (2 * self.packets - one.packets) as f64 } else { 0.0 });
        let full = mean(&|one| f64::from(u8::from(one.full)));
        let Waits { trains, waits, packets, unseen } = self.waits;
        let share = trains / (trains + waits);
        let waiting = (packets - slope.max(0.0) * unseen) / (trains + waits);
        let error = (share * error).hypot(self.error_of_begin(trains + waits));
        Some(Seen { mean: (share * at_slot + waiting).max(0.0), error, missed, full })
    }

    /// The standard error by the time before groups were large enough, in which nothing is known, beside `slots` in
    /// which all is: as the means of parts of those differ, scaled to its length.
    fn error_of_begin(&self, slots: f64) -> f64 {
        let begin =
            self.begun_ns.zip(self.since_ns).map_or(0.0, |(begun, since)| (since - begun) as f64 / SLOT_NS as f64);
        let parts = self.samples.chunks(self.samples.len().div_ceil(PARTS).max(1));
        let means: Vec<f64> =
            parts.map(|part| part.iter().map(|one| one.taken).sum::<f64>() / part.len() as f64).collect();
        // Of one part.
        let variance = mean_and_error(&means).map_or(0.0, |(_, error)| error.powi(2) * means.len() as f64);
        (variance * slots / means.len() as f64 * begin).sqrt() / (slots + begin)
    }

    /// Why there can be no answer, from what was heard so far.
    fn refuse(&mut self) {
        let why = if self.least_ns.is_none() {
            (self.looks_sent >= LOOKS_TRAINS).then(|| "none of the first packets arrived".to_owned())
        } else if !self.seen {
            let why = if slots::are_one_phase(&self.phases) {
                "packets arrive at one phase of each millisecond, as from slots, but too few of them together to tell \
                 slots from a slow line or from cross traffic of that period: ask the counters of the link's ports"
            } else {
                "packets do not arrive in slots of 1 ms: this method is for links that serve in slots, as of mobile \
                 access; choose hybrid"
            };
            (self.trains >= PATIENCE).then(|| why.to_owned())
        } else if self.settled && self.seen().is_some_and(|seen| seen.full > MOST_FULL) {
            let why = "slots have room for more packets than this method can send just before one: the links on the \
                       way to the mobile one are too slow for that";
            Some(why.to_owned())
        } else {
            None
        };
        self.gave_up = why;
    }
}

impl Estimator for Slotted {
    fn next(&mut self) -> Step {
        self.refuse();
        let precise = self.seen().is_some_and(|seen| seen.error <= self.config.precision * seen.mean);
        if self.gave_up.is_some() || self.samples.len() >= self.config.groups as usize || self.settled && precise {
            return Step::Done;
        }
        if self.looks_sent < LOOKS_TRAINS {
            self.looks_sent += 1;
            self.idle_ns = self.config.apart_ns * (0.5 + self.random.uniform());
            return Step::Send { plan: Plan::even(LOOKS, PROBE_LENGTH as u32, LOOKS_APART_NS), idle_ns: self.idle_ns };
        }
        self.train()
    }

    fn hear(&mut self, train: &Train) {
        if train.clock_stepped || !train.is_whole() {
            self.unused += 1;
            return;
        }
        self.begun_ns = self.begun_ns.or(train.sent_ns.first().copied());
        self.begins_ns = train.sent_ns.first().map(|first| first - self.idle_ns as i64);
        if train.plan.packets.iter().all(|packet| packet.payload == PROBE_LENGTH as u32) {
            self.hear_looks(train);
        } else {
            self.hear_groups(train);
        }
    }

    fn finding(&self) -> Finding {
        let mut notes = Vec::new();
        if self.unused * MANY > self.samples.len() {
            notes.push(format!("{} groups came too late for their slot and were not used", self.unused));
        }
        let Some(seen) = self.seen().filter(|_| self.gave_up.is_none() && self.seen) else {
            return Finding { gave_up: self.gave_up.clone(), notes, ..Finding::default() };
        };
        let unit = self.probing.framing.bits(self.probing.most_payload) * 1e9 / SLOT_NS as f64;
        let half = quantile_975(self.samples.len() as f64 - 2.0) * seen.error;
        if seen.missed > 0.0 {
            notes.push(
                "some slots had room for a whole group: the interval has room for what they had beyond".to_owned(),
            );
        }
        Finding {
            estimate_bps: Some(seen.mean * unit),
            low_bps: Some((seen.mean - half).max(0.0) * unit),
            high_bps: Some((seen.mean + half + seen.missed) * unit),
            confidence: Some(0.95),
            notes,
            ..Finding::default()
        }
    }
}
