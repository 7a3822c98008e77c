//! The exact-match cache before the flow tables: what was decided for a flow key, found with one hash look-up.
//!
//! Before it, a glance at the frame mostly does: only the bits of it count that flows match and actions read. So all
//! connections between two hosts share one entry where no flow asks for their ports, and fit into a processor's cache.
//!
//! Two-way set associative, so its size is bounded whatever comes in. An entry of an older generation (the tables
//! changed since) counts as absent. Starts small and grows where entries in use push each other out, so that an
//! idle switch costs little.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use twinnet_packet::{FlowKey, Glance};
use twinnet_units::impossible;

use super::classifier::FlowId;
use super::decision::{Decision, Straight};
use super::pipeline::Pipeline;

const FIRST_SETS: usize = 64;
const MOST_SETS: usize = 4096;

#[derive(Debug)]
struct Entry {
    key: FlowKey,
    generation: u64,
    decision: Arc<Decision>,
}

/// The decisions of one flow among which an equal one is looked for before another is kept: most frames of a flow share
/// one, which then stays in the processor's cache.
const SHARED_OF_A_FLOW: usize = 16;
/// Decisions that are looked among, of all flows.
const SHARED: usize = 1024;

/// A decision found by a glance at the frame: one cache line, with which most frames find all that was decided.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Glanced {
    glance: Glance,
    generation: u64,
    pub(super) decision: Arc<Decision>,
    /// The same, where it is as short as that.
    pub(super) straight: Option<Straight>,
}

/// The two places of a set; the one used last comes first.
type Set = [Option<Box<Entry>>; 2];
/// The two places of a glance; the one that came last comes first.
type GlanceSet = [Option<Glanced>; 2];

/// The cache.
#[derive(Debug)]
pub(super) struct Cache {
    sets: Vec<Set>,
    /// As many as there are sets; void ones are older than the present generation.
    glances: Vec<GlanceSet>,
    /// The bits of glances that decisions of this generation depend on: those that flows match, and what the decisions'
    /// actions read. It only grows within a generation, and what was kept under fewer bits stays true. `None` until a
    /// glance is looked at.
    mask: Option<Glance>,
    /// The part of it that actions read.
    reads: Glance,
    /// Decisions of this generation that flow keys share, by the flow that was found last; the latest last.
    shared: FxHashMap<Option<FlowId>, Vec<Arc<Decision>>>,
    /// All of them.
    shared_count: usize,
    seed: u64,
    generation: u64,
    /// Entries in use that were pushed out since the cache last grew.
    pushed_out: usize,
}

fn index(digest: u64, sets: usize) -> usize {
    // `sets` is a power of two.
    digest as usize & (sets - 1)
}

impl Cache {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            sets: Vec::new(),
            glances: Vec::new(),
            mask: None,
            reads: Glance::default(),
            shared: FxHashMap::default(),
            shared_count: 0,
            seed,
            generation: 1,
            pushed_out: 0,
        }
    }

    /// Makes all entries void.
    pub(super) fn invalidate(&mut self) {
        self.generation += 1;
        (self.mask, self.reads) = (None, Glance::default());
        self.forget_shared();
    }

    /// Returns those bits of `glance` that matter to the flows of `pipeline`: what the other calls are to be given.
    #[inline]
    pub(super) fn look(&mut self, glance: Glance, pipeline: &Pipeline) -> Glance {
        let mask = self.mask.get_or_insert_with(|| Glance::mask_of(&pipeline.matched()).union(&self.reads));
        glance.masked(mask)
    }

    /// Returns what was decided for frames with this glance.
    #[inline]
    pub(super) fn find_at_a_glance(&self, glance: &Glance) -> Option<&Glanced> {
        if self.glances.is_empty() {
            return None;
        }
        let set = &self.glances[index(glance.digest(self.seed), self.glances.len())];
        let hit = |found: &&Glanced| found.glance == *glance && found.generation == self.generation;
        set.iter().flatten().find(hit)
    }

    /// Remembers that what was decided for `key`, which is cached, goes for all frames with the bits of this glance
    /// that matter.
    pub(super) fn remember_glance(&mut self, glance: Glance, key: &FlowKey) {
        if self.glances.len() != self.sets.len() {
            self.glances.clear();
            self.glances.resize_with(self.sets.len(), GlanceSet::default);
        }
        let Some(mask) = self.mask else { return impossible!("a glance is kept before one was looked at") };
        let glance = glance.masked(&mask);
        let generation = self.generation;
        let set = &self.sets[index(key.digest(self.seed), self.sets.len())];
        let entry = set.iter().flatten().find(|entry| entry.generation == generation && entry.key == *key);
        if let Some(entry) = entry {
            let at = index(glance.digest(self.seed), self.glances.len());
            let glances = &mut self.glances[at];
            glances.swap(0, 1);
            let decision = Arc::clone(&entry.decision);
            glances[0] = Some(Glanced { glance, generation, straight: Straight::of(&decision), decision });
        }
    }

    /// Returns the decision for `key`.
    #[inline]
    pub(super) fn find(&mut self, key: &FlowKey) -> Option<&Arc<Decision>> {
        if self.sets.is_empty() {
            return None;
        }
        let at = index(key.digest(self.seed), self.sets.len());
        let generation = self.generation;
        let set = &mut self.sets[at];
        let hit = |entry: &Option<Box<Entry>>| {
            entry.as_ref().is_some_and(|entry| entry.generation == generation && entry.key == *key)
        };
        if !hit(&set[0]) {
            if !hit(&set[1]) {
                return None;
            }
            set.swap(0, 1);
        }
        set[0].as_ref().map(|entry| &entry.decision)
    }

    /// Keeps a decision.
    pub(super) fn insert(&mut self, key: FlowKey, decision: Decision) {
        if self.sets.is_empty() {
            self.sets.resize_with(FIRST_SETS, Set::default);
        } else if self.pushed_out > self.sets.len() / 8 && self.sets.len() < MOST_SETS {
            self.grow();
        }
        self.reads = self.reads.union(&decision.reads);
        self.mask = self.mask.map(|mask| mask.union(&decision.reads));
        let at = index(key.digest(self.seed), self.sets.len());
        let set = &mut self.sets[at];
        set.swap(0, 1);
        if set[0].as_ref().is_some_and(|entry| entry.generation == self.generation) {
            self.pushed_out += 1;
        }
        let entry = Entry { key, generation: self.generation, decision: self.shared(decision) };
        match &mut self.sets[at][0] {
            Some(old) => **old = entry,
            free => *free = Some(Box::new(entry)),
        }
    }

    /// `decision`, or the one like it that other keys have.
    fn shared(&mut self, decision: Decision) -> Arc<Decision> {
        if self.shared_count == SHARED {
            self.forget_shared();
        }
        let flow = decision.lookups.last().and_then(|lookup| lookup.flow);
        let of_flow = self.shared.entry(flow).or_default();
        if let Some(known) = of_flow.iter().rev().find(|known| ***known == decision) {
            return Arc::clone(known);
        }
        if of_flow.len() == SHARED_OF_A_FLOW {
            of_flow.remove(0);
        } else {
            self.shared_count += 1;
        }
        let decision = Arc::new(decision);
        of_flow.push(Arc::clone(&decision));
        decision
    }

    fn forget_shared(&mut self) {
        self.shared.clear();
        self.shared_count = 0;
    }

    fn grow(&mut self) {
        let count = self.sets.len() * 2;
        let old = std::mem::take(&mut self.sets);
        self.sets.resize_with(count, Set::default);
        self.pushed_out = 0;
        for entry in old.into_iter().flatten().flatten().filter(|entry| entry.generation == self.generation) {
            let set = &mut self.sets[index(entry.key.digest(self.seed), count)];
            let free = usize::from(set[0].is_some());
            set[free] = Some(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Lookup;
    use twinnet_packet::Field;

    fn key(number: u128) -> FlowKey {
        FlowKey::ZERO.with(Field::NW_SRC, number)
    }

    #[test]
    fn an_entry_is_found_until_the_tables_change() {
        let mut cache = Cache::new(1);
        assert!(cache.find(&key(1)).is_none());
        cache.insert(key(1), Decision::default());
        assert!(cache.find(&key(1)).is_some());
        assert!(cache.find(&key(2)).is_none());
        cache.invalidate();
        assert!(cache.find(&key(1)).is_none());
    }

    #[test]
    fn flows_with_equal_decisions_share_one_until_the_tables_change() {
        let mut cache = Cache::new(1);
        let other = Decision { certain: 1, ..Decision::default() };
        cache.insert(key(1), Decision::default());
        cache.insert(key(2), other.clone());
        cache.insert(key(3), Decision::default());
        let found = |cache: &mut Cache, number| Arc::clone(cache.find(&key(number)).unwrap());
        assert!(Arc::ptr_eq(&found(&mut cache, 1), &found(&mut cache, 3)));
        assert_eq!(*found(&mut cache, 2), other);
        cache.invalidate();
        assert!(cache.shared.is_empty());
        for certain in 0..100 {
            cache.insert(key(4), Decision { certain, ..Decision::default() });
        }
        assert_eq!((found(&mut cache, 4).certain, cache.shared_count), (99, SHARED_OF_A_FLOW));
        for flow in 0..10_000 {
            let lookups = vec![Lookup { table: 0, flow: Some(flow) }];
            cache.insert(key(5), Decision { lookups, ..Decision::default() });
        }
        assert!(cache.shared_count <= SHARED && cache.shared.len() <= SHARED);
    }

    #[test]
    fn it_grows_with_what_is_in_use_and_stays_bounded() {
        let mut cache = Cache::new(1);
        for number in 0..100_000 {
            cache.insert(key(number), Decision::default());
            assert!(cache.find(&key(number)).is_some());
        }
        assert_eq!(cache.sets.len(), MOST_SETS);
        let kept = (0..100_000).filter(|&number| cache.find(&key(number)).is_some()).count();
        // Nearly every place is taken, and no more than there are.
        assert!(kept <= 2 * MOST_SETS && kept > MOST_SETS, "{kept}");
    }
}
