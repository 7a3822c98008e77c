//! The exact-match cache before the flow tables: what was decided for a flow key, found with one hash look-up.
//!
//! Two-way set associative, so its size is bounded whatever comes in. An entry of an older generation (the tables
//! changed since) counts as absent. Starts small and grows where entries in use push each other out, so that an
//! idle switch costs little.

use std::sync::Arc;

use twinnet_packet::{FlowKey, Glance};

use super::decision::Decision;

const FIRST_SETS: usize = 64;
const MOST_SETS: usize = 4096;

#[derive(Debug)]
struct Entry {
    key: FlowKey,
    generation: u64,
    decision: Arc<Decision>,
}

/// A decision found by a glance at the frame.
#[derive(Debug)]
struct Glanced {
    glance: Glance,
    generation: u64,
    decision: Arc<Decision>,
}

/// The two places of a set; the one used last comes first.
type Set = [Option<Box<Entry>>; 2];

/// The cache.
#[derive(Debug)]
pub(super) struct Cache {
    sets: Vec<Set>,
    /// One place for each glance, as many as there are sets; void ones are of generation 0 or older than the
    /// present one.
    glances: Vec<Option<Box<Glanced>>>,
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
        Self { sets: Vec::new(), glances: Vec::new(), seed, generation: 1, pushed_out: 0 }
    }

    /// Makes all entries void.
    pub(super) fn invalidate(&mut self) {
        self.generation += 1;
    }

    /// Returns the decision for frames with this glance.
    #[inline]
    pub(super) fn find_at_a_glance(&self, glance: &Glance) -> Option<&Arc<Decision>> {
        if self.glances.is_empty() {
            return None;
        }
        let place = index(glance.digest(self.seed), self.glances.len());
        let found = self.glances[place].as_ref()?;
        (found.glance == *glance && found.generation == self.generation).then_some(&found.decision)
    }

    /// Remembers that what was decided for `key`, which is cached, goes for all frames with this glance.
    pub(super) fn remember_glance(&mut self, glance: Glance, key: &FlowKey) {
        if self.glances.len() != self.sets.len() {
            self.glances.clear();
            self.glances.resize_with(self.sets.len(), || None);
        }
        let generation = self.generation;
        let set = &self.sets[index(key.digest(self.seed), self.sets.len())];
        let entry = set.iter().flatten().find(|entry| entry.generation == generation && entry.key == *key);
        if let Some(entry) = entry {
            let place = index(glance.digest(self.seed), self.glances.len());
            self.glances[place] = Some(Box::new(Glanced { glance, generation, decision: Arc::clone(&entry.decision) }));
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
        let at = index(key.digest(self.seed), self.sets.len());
        let set = &mut self.sets[at];
        set.swap(0, 1);
        if set[0].as_ref().is_some_and(|entry| entry.generation == self.generation) {
            self.pushed_out += 1;
        }
        let entry = Entry { key, generation: self.generation, decision: Arc::new(decision) };
        set[0] = Some(Box::new(entry));
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
