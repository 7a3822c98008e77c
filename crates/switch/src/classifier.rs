//! One flow table's matches: tuple space search (Srinivasan, Suri, Varghese: "Packet Classification using Tuple
//! Space Search", 1999).
//!
//! All matches with one mask share a hash table (a tuple). Tuples are searched in the order of their highest
//! priority, and the search ends where none left can win. Among many tuples, [one word of the key](super::signpost)
//! tells first which of them can have a match at all.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use twinnet_units::impossible;

use rustc_hash::FxHashMap;
use twinnet_packet::{mix, FlowKey, FLOW_KEY_WORDS};

use super::matching::Match;
use super::signpost::Signpost;

/// A flow's place in the switch's store of flows.
pub(super) type FlowId = u32;

/// Tuples among which one word of the key is looked at before any is searched: fewer are soon searched.
const TUPLES: RangeInclusive<usize> = 6..=Signpost::MOST_TUPLES;
/// The most flows for which that is done: to look at each of them takes a millisecond, which a line can bear.
const MOST_SIGNPOSTED: usize = 20_000;

#[derive(Clone, Copy, Debug)]
struct Slot {
    value: FlowKey,
    priority: u16,
    /// Order of addition: of two matches with one priority, the older one wins.
    sequence: u64,
    id: FlowId,
}

impl Slot {
    fn beats(&self, other: &Self) -> bool {
        (self.priority, other.sequence) > (other.priority, self.sequence)
    }
}

#[derive(Debug)]
struct Tuple {
    mask: FlowKey,
    /// The words in which the mask has bits, with these bits: all that is hashed and compared.
    words: Vec<(u8, u64)>,
    /// The number of flows of each priority.
    priorities: BTreeMap<u16, usize>,
    highest_priority: u16,
    /// By hash of the masked value; the best first.
    slots: FxHashMap<u64, Vec<Slot>>,
}

impl Tuple {
    fn new(mask: FlowKey) -> Self {
        let words = (0..FLOW_KEY_WORDS as u8).zip(*mask.words()).filter(|(_, bits)| *bits != 0).collect();
        Self { mask, words, priorities: BTreeMap::new(), highest_priority: 0, slots: FxHashMap::default() }
    }

    fn digest(&self, key: &FlowKey, seed: u64) -> u64 {
        let values = key.words();
        self.words
            .iter()
            .fold(seed, |digest, &(word, bits)| mix(digest ^ (values[usize::from(word)] & bits), 0x9e37_79b9_7f4a_7c15))
    }

    fn find(&self, key: &FlowKey, seed: u64) -> Option<&Slot> {
        let values = key.words();
        self.slots.get(&self.digest(key, seed))?.iter().find(|slot| {
            let wanted = slot.value.words();
            self.words.iter().all(|&(word, bits)| values[usize::from(word)] & bits == wanted[usize::from(word)])
        })
    }
}

/// Finds the flow of highest priority that a key matches.
#[derive(Debug)]
pub(super) struct Classifier {
    /// Highest priority first.
    tuples: Vec<Tuple>,
    seed: u64,
    count: usize,
    /// Says which tuples are worth a search; made anew when flows came or went, once as many keys were looked for as
    /// there are flows: it costs a look at each.
    signpost: OnceLock<Signpost>,
    /// Keys that were looked for without it.
    without: AtomicUsize,
}

impl Classifier {
    pub(super) fn new(seed: u64) -> Self {
        Self { tuples: Vec::new(), seed, count: 0, signpost: OnceLock::new(), without: AtomicUsize::new(0) }
    }

    /// Returns the number of flows in it.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The masks of its flows.
    pub(super) fn masks(&self) -> impl Iterator<Item = &FlowKey> {
        self.tuples.iter().map(|tuple| &tuple.mask)
    }

    /// The flow that `key` matches.
    pub(super) fn find(&self, key: &FlowKey) -> Option<FlowId> {
        let best = match self.signpost() {
            Some(signpost) => self.best(key, signpost.ways(key).map_while(|at| self.tuples.get(at))),
            None => self.best(key, self.tuples.iter()),
        };
        best.map(|slot| slot.id)
    }

    /// The best match of `key` in `tuples`, which are in their order.
    #[inline]
    fn best<'a>(&self, key: &FlowKey, tuples: impl Iterator<Item = &'a Tuple>) -> Option<&'a Slot> {
        let mut best: Option<&Slot> = None;
        for tuple in tuples {
            if best.is_some_and(|best| best.priority > tuple.highest_priority) {
                break;
            }
            if let Some(slot) = tuple.find(key, self.seed) {
                if best.is_none_or(|best| slot.beats(best)) {
                    best = Some(slot);
                }
            }
        }
        best
    }

    #[inline]
    fn signpost(&self) -> Option<&Signpost> {
        if let Some(signpost) = self.signpost.get() {
            return Some(signpost);
        }
        let pays = TUPLES.contains(&self.tuples.len()) && self.count <= MOST_SIGNPOSTED;
        if !pays || self.without.fetch_add(1, Ordering::Relaxed) < self.count {
            return None;
        }
        Some(self.signpost.get_or_init(|| {
            let values = self.tuples.iter().map(|tuple| tuple.slots.values().flatten().map(|slot| &slot.value));
            let tuples: Vec<_> = self.tuples.iter().map(|tuple| &tuple.mask).zip(values.map(Vec::from_iter)).collect();
            Signpost::new(&tuples)
        }))
    }

    /// The flow with exactly this match and priority.
    pub(super) fn find_same(&self, matching: &Match, priority: u16) -> Option<FlowId> {
        let tuple = self.tuples.iter().find(|tuple| tuple.mask == matching.mask)?;
        let slots = tuple.slots.get(&tuple.digest(&matching.value, self.seed))?;
        slots.iter().find(|slot| slot.value == matching.value && slot.priority == priority).map(|slot| slot.id)
    }

    /// Adds a flow; one with the same match and priority must not be there.
    pub(super) fn insert(&mut self, matching: &Match, priority: u16, sequence: u64, id: FlowId) {
        let at = match self.tuples.iter().position(|tuple| tuple.mask == matching.mask) {
            Some(at) => at,
            None => {
                self.tuples.push(Tuple::new(matching.mask));
                self.tuples.len() - 1
            }
        };
        let tuple = &mut self.tuples[at];
        let digest = tuple.digest(&matching.value, self.seed);
        // Nearly always one flow alone has the hash: room for four, which is what a Vec begins with, would be most
        // of a flow's memory.
        let slots = tuple.slots.entry(digest).or_insert_with(|| Vec::with_capacity(1));
        let slot = Slot { value: matching.value, priority, sequence, id };
        let place = slots.iter().position(|other| slot.beats(other)).unwrap_or(slots.len());
        slots.insert(place, slot);
        *tuple.priorities.entry(priority).or_default() += 1;
        self.count += 1;
        self.settle(at);
    }

    /// Takes a flow out.
    pub(super) fn remove(&mut self, matching: &Match, id: FlowId) {
        let Some(at) = self.tuples.iter().position(|tuple| tuple.mask == matching.mask) else {
            return impossible!("a flow that is in no tuple");
        };
        let tuple = &mut self.tuples[at];
        let digest = tuple.digest(&matching.value, self.seed);
        let Some(slots) = tuple.slots.get_mut(&digest) else { return impossible!("a flow that is in no slot") };
        let Some(place) = slots.iter().position(|slot| slot.id == id) else {
            return impossible!("a flow that is not in its slot");
        };
        let priority = slots.remove(place).priority;
        self.count -= 1;
        if slots.is_empty() {
            tuple.slots.remove(&digest);
        }
        if let Some(count) = tuple.priorities.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                tuple.priorities.remove(&priority);
            }
        }
        self.settle(at);
    }

    /// Keeps the order of the tuples after a flow of the one at `at` came or went.
    fn settle(&mut self, at: usize) {
        self.signpost.take();
        *self.without.get_mut() = 0;
        let tuple = &mut self.tuples[at];
        let Some((&highest, _)) = tuple.priorities.last_key_value() else {
            self.tuples.remove(at);
            return;
        };
        if highest != tuple.highest_priority || self.tuples.len() == at + 1 {
            self.tuples[at].highest_priority = highest;
            self.tuples.sort_by_key(|tuple| std::cmp::Reverse(tuple.highest_priority));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_packet::Field;

    fn exact(field: Field, value: u128) -> Match {
        let mut matching = Match::default();
        assert!(matching.restrict(field, value, field.maximum()));
        matching
    }

    #[test]
    fn the_older_of_two_equal_priorities_wins_although_its_tuple_is_searched_later() {
        let mut classifier = Classifier::new(1);
        classifier.insert(&exact(Field::NW_DST, 4), 5, 0, 10);
        // The other tuple comes first, for the sake of a flow that does not match.
        classifier.insert(&exact(Field::TP_DST, 99), 9, 1, 11);
        classifier.insert(&exact(Field::TP_DST, 80), 5, 2, 12);
        let key = FlowKey::ZERO.with(Field::NW_DST, 4).with(Field::TP_DST, 80);
        assert_eq!(classifier.find(&key), Some(10));
    }

    /// Flows under more masks than a plain search is made of, with every priority several times.
    fn many(classifier: &mut Classifier) -> Vec<(Match, u16, FlowId)> {
        let mut flows = Vec::new();
        for id in 0..400_u32 {
            let mut matching = Match::default();
            let number = u128::from(id);
            let length = 8 * (1 + number % 4);
            let prefix = Field::NW_DST.maximum() << (32 - length) & Field::NW_DST.maximum();
            assert!(matching.restrict(Field::NW_DST, (number % 7) << 24 & prefix, prefix));
            if number % 3 == 0 {
                assert!(matching.restrict(Field::TP_DST, number % 5, Field::TP_DST.maximum()));
            }
            let priority = (id % 11) as u16;
            if classifier.find_same(&matching, priority).is_none() {
                classifier.insert(&matching, priority, u64::from(id), id);
                flows.push((matching, priority, id));
            }
        }
        flows
    }

    #[test]
    fn the_signpost_changes_nothing_in_what_is_found() {
        let mut classifier = Classifier::new(1);
        let mut flows = many(&mut classifier);
        assert!(TUPLES.contains(&classifier.tuples.len()));
        for round in 0..3 {
            let keys: Vec<_> = (0..2000_u128)
                .map(|n| FlowKey::ZERO.with(Field::NW_DST, ((n % 9) << 24) | (n % 3)).with(Field::TP_DST, n % 6))
                .collect();
            let plain: Vec<_> =
                keys.iter().map(|key| classifier.best(key, classifier.tuples.iter()).map(|slot| slot.id)).collect();
            let found: Vec<_> = keys.iter().map(|key| classifier.find(key)).collect();
            assert_eq!(found, plain, "round {round}");
            assert!(classifier.signpost.get().is_some(), "it is made once enough keys were looked for");
            let (matching, _, id) = flows.swap_remove(round * 31);
            classifier.remove(&matching, id);
            assert!(classifier.signpost.get().is_none(), "a flow that went makes it void");
        }
    }

    #[test]
    fn a_tuple_sinks_when_its_highest_flow_goes() {
        let mut classifier = Classifier::new(1);
        classifier.insert(&exact(Field::TP_DST, 80), 9, 0, 10);
        classifier.insert(&exact(Field::TP_DST, 81), 1, 1, 11);
        classifier.insert(&exact(Field::NW_DST, 4), 5, 2, 12);
        let key = FlowKey::ZERO.with(Field::NW_DST, 4).with(Field::TP_DST, 80);
        assert_eq!(classifier.find(&key), Some(10));
        classifier.remove(&exact(Field::TP_DST, 80), 10);
        assert_eq!((classifier.find(&key), classifier.len()), (Some(12), 2));
        assert_eq!(classifier.tuples[0].highest_priority, 5);
    }
}
