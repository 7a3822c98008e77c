//! The heap of events: a heap of four children a node, whose root may be a hole.
//!
//! What is taken out leaves a hole at the root; what comes in next fills it and sinks once. Handling an event
//! mostly brings exactly one new one (the next arrival on a line after this one), which then costs one way down
//! instead of one down and one up. Four children of 16 bytes are one cache line.

const CHILDREN: usize = 4;

/// A heap of keys, the least first.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    keys: Vec<u128>,
    /// The root was taken and nothing has come in since.
    hole: bool,
}

impl Heap {
    /// Adds a key.
    pub(crate) fn push(&mut self, key: u128) {
        if self.hole {
            self.hole = false;
            self.sink(key);
            return;
        }
        self.keys.push(key);
        let mut at = self.keys.len() - 1;
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[at] = self.keys[parent];
            at = parent;
        }
        self.keys[at] = key;
    }

    /// The least key.
    pub(crate) fn peek(&mut self) -> Option<u128> {
        self.close();
        self.keys.first().copied()
    }

    /// The least key without closing the hole.
    pub(crate) fn least(&self) -> Option<u128> {
        if self.hole {
            return self.keys.iter().skip(1).take(CHILDREN).min().copied();
        }
        self.keys.first().copied()
    }

    /// Takes the least key out; to be called after [`Heap::peek`] gave it.
    pub(crate) fn take(&mut self) {
        self.close();
        self.hole = !self.keys.is_empty();
    }

    /// Fills the hole with the last key.
    fn close(&mut self) {
        if !std::mem::take(&mut self.hole) {
            return;
        }
        match self.keys.pop() {
            Some(last) if !self.keys.is_empty() => self.sink(last),
            _ => {}
        }
    }

    /// Puts `key` in at the root, whose own key is void, and lets it sink.
    fn sink(&mut self, key: u128) {
        let keys = self.keys.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * CHILDREN + 1;
            let least = match keys.get(first..).and_then(<[u128]>::first_chunk) {
                Some(four) => first + least_of(four),
                _ => {
                    let rest = keys.get(first..).unwrap_or_default();
                    match rest.iter().enumerate().min_by_key(|(_, key)| **key) {
                        Some((place, _)) => first + place,
                        None => break,
                    }
                }
            };
            if key <= keys[least] {
                break;
            }
            keys[at] = keys[least];
            at = least;
        }
        keys[at] = key;
    }
}

/// Place of the least of `four` keys. Their upper halves, the times, mostly decide: half the work of whole comparisons.
#[inline]
fn least_of(four: &[u128; CHILDREN]) -> usize {
    let [a, b, c, d] = four.map(|key| (key >> 64) as u64);
    let (left, right) = (a.min(b), c.min(d));
    if a == b || c == d || left == right {
        return least_of_equals(four);
    }
    // Which half has the least is as random as a coin: a jump would be guessed wrongly every second time.
    let (in_left, in_right) = (usize::from(b < a), 2 + usize::from(d < c));
    in_left ^ (in_left ^ in_right) & usize::from(right < left).wrapping_neg()
}

/// The same where times are equal.
fn least_of_equals(&[a, b, c, d]: &[u128; CHILDREN]) -> usize {
    if c.min(d) < a.min(b) {
        2 + usize::from(d < c)
    } else {
        usize::from(b < a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        #[test]
        fn it_gives_what_the_standard_heap_gives(steps in prop::collection::vec(
            (any::<bool>(), 0..40_u128, 0..40_u128), 0..400)) {
            let (mut heap, mut reference) = (Heap::default(), BinaryHeap::new());
            // Times, and what decides between equal ones.
            for (push, time, rest) in steps {
                let key = time << 64 | rest;
                if push {
                    heap.push(key);
                    reference.push(Reverse(key));
                } else {
                    let expected = reference.pop().map(|Reverse(key)| key);
                    prop_assert_eq!(heap.least(), expected);
                    prop_assert_eq!(heap.peek(), expected);
                    heap.take();
                }
                prop_assert_eq!(heap.least(), reference.peek().map(|Reverse(key)| *key));
            }
            while let Some(Reverse(expected)) = reference.pop() {
                prop_assert_eq!(heap.peek(), Some(expected));
                heap.take();
            }
            prop_assert_eq!(heap.peek(), None);
        }
    }
}
