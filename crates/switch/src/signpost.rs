//! Which of a flow table's tuples can have a match, by one word of the key.
//!
//! Most of many tuples have no flow with the addresses, say, that a key has. For each of the few masks that tuples have
//! in one word, a hash table says by the masked word which of them have a flow with it: small look-ups in place of
//! one for each tuple. (Open vSwitch looks at prefixes of addresses first, to the same end: Pfaff and others, "The
//! Design and Implementation of Open vSwitch", 2015, section 5.4.)

use std::collections::HashSet;

use rustc_hash::FxHashMap;
use twinnet_packet::{FlowKey, FLOW_KEY_WORDS};

/// Flows of a tuple that are looked at to choose the word.
const SHOWN: usize = 64;

/// Tuples by their places, one bit for each.
type Places = u128;

/// The way from a key to the tuples that can have a match of it.
#[derive(Debug, Default)]
pub(super) struct Signpost {
    word: usize,
    /// Tuples whose mask has no bits in the word.
    always: Places,
    /// By mask of the word, and by the masked word.
    ways: Vec<(u64, FxHashMap<u64, Places>)>,
}

impl Signpost {
    /// Tuples that it can have at most.
    pub(super) const MOST_TUPLES: usize = Places::BITS as usize;

    /// A signpost to `tuples`, each with its mask and the values of its flows.
    pub(super) fn new(tuples: &[(&FlowKey, Vec<&FlowKey>)]) -> Self {
        let mut post = Self { word: most_telling(tuples), ..Self::default() };
        for (place, (mask, values)) in tuples.iter().take(Self::MOST_TUPLES).enumerate() {
            let (bits, tuple) = (mask.words()[post.word], 1 << place);
            if bits == 0 {
                post.always |= tuple;
                continue;
            }
            let at = post.ways.iter().position(|(other, _)| *other == bits).unwrap_or_else(|| {
                post.ways.push((bits, FxHashMap::default()));
                post.ways.len() - 1
            });
            for value in values {
                *post.ways[at].1.entry(value.words()[post.word]).or_default() |= tuple;
            }
        }
        post
    }

    /// The places of the tuples that can have a match of `key`, in their order.
    #[inline]
    pub(super) fn ways(&self, key: &FlowKey) -> impl Iterator<Item = usize> {
        let word = key.words()[self.word];
        let found = self.ways.iter().filter_map(|(bits, places)| places.get(&(word & bits)));
        let mut left = found.fold(self.always, |all, places| all | places);
        std::iter::from_fn(move || {
            let place = left.trailing_zeros() as usize;
            left &= left.checked_sub(1)?;
            Some(place)
        })
    }
}

/// The word by which most tuples can be told to have no match: of those in which most masks have bits, the one with the
/// most different values, as far as a few of each tuple show.
fn most_telling(tuples: &[(&FlowKey, Vec<&FlowKey>)]) -> usize {
    let telling = |word: &usize| {
        let masked = || tuples.iter().filter(|(mask, _)| mask.words()[*word] != 0);
        let shown = masked().flat_map(|(mask, values)| values.iter().take(SHOWN).map(move |value| (mask, value)));
        let different: HashSet<_> = shown.map(|(mask, value)| (mask.words()[*word], value.words()[*word])).collect();
        (2 * masked().count() > tuples.len(), different.len())
    };
    (0..FLOW_KEY_WORDS).max_by_key(telling).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_packet::Field;

    #[test]
    fn it_leads_to_the_tuples_with_the_masked_value_and_to_those_without_a_mask() {
        let to = |address| FlowKey::ZERO.with(Field::NW_DST, address);
        let port = |key: FlowKey, port| key.with(Field::TP_DST, port);
        let tuples = [
            (to(0xFFFF_FFFF), vec![to(0x0A00_0001), to(0x0A00_0002)]),
            (to(0xFFFF_0000), vec![to(0x0A00_0000), to(0x0B00_0000)]),
            (port(FlowKey::ZERO, 0xFFFF), vec![port(FlowKey::ZERO, 80)]),
            (port(to(0xFFFF_0000), 0xFFFF), vec![port(to(0x0B00_0000), 80)]),
        ];
        let tuples: Vec<_> = tuples.iter().map(|(mask, values)| (mask, values.iter().collect())).collect();
        let post = Signpost::new(&tuples);
        let ways = |address| post.ways(&to(address)).collect::<Vec<_>>();
        assert_eq!(ways(0x0A00_0001), [0, 1, 2]);
        assert_eq!(ways(0x0A00_0009), [1, 2]);
        assert_eq!(ways(0x0B00_0001), [1, 2, 3]);
        assert_eq!(ways(0x0C00_0001), [2]);
    }
}
