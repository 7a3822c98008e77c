//! Loss, duplication and reordering from the sequence numbers of arrivals, in bounded memory.
//!
//! Numbers begin at 0 and wrap at 2^32; an arrival is taken for the number nearest to the highest so far. Which of the
//! latest [`WINDOW`] numbers have arrived is remembered. An arrival from before the window is taken for a first one, so
//! it counts as reordered and no longer as lost: a duplicate that is more than a window late is told as that.

/// Sequence numbers below the highest that are remembered.
pub const WINDOW: u64 = 1 << 16;
const WORDS: usize = (WINDOW / 64) as usize;

/// What an arrival was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The highest number so far.
    InOrder,
    /// Below the highest, for the first time.
    Reordered,
    /// Seen before.
    Duplicate,
}

/// Keeps account of one flow's sequence numbers.
#[derive(Clone, Debug, Default)]
pub struct SequenceAccount {
    /// One past the highest number so far; zero before the first arrival.
    next: u64,
    received: u64,
    reordered: u64,
    duplicates: u64,
    /// Bit `n % WINDOW` tells whether number `n` arrived, for the window below `next`. Empty while all below `next` have: most flows
    /// never need the 8 KiB.
    seen: Vec<u64>,
}

impl SequenceAccount {
    /// Enters an arrival.
    pub fn enter(&mut self, sequence: u32) -> Arrival {
        let number = self.unwrap(sequence);
        if number >= self.next {
            if self.seen.is_empty() && number > self.next {
                self.seen = vec![u64::MAX; WORDS];
            }
            if !self.seen.is_empty() {
                self.forget(number);
                self.mark(number);
            }
            self.next = number + 1;
            self.received += 1;
            return Arrival::InOrder;
        }
        if self.next - number <= WINDOW && !self.mark(number) {
            self.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.received += 1;
        self.reordered += 1;
        Arrival::Reordered
    }

    /// Numbers below the highest that have not arrived.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.next.saturating_sub(self.received)
    }

    /// Arrivals below the highest so far, duplicates excepted.
    #[must_use]
    pub const fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Arrivals of numbers that had arrived.
    #[must_use]
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// The number nearest to the next expected one that is `sequence` modulo 2^32; not below zero.
    fn unwrap(&self, sequence: u32) -> u64 {
        const HALF: u64 = 1 << 31;
        const WHOLE: u64 = 1 << 32;
        let near = (self.next & !(WHOLE - 1)) | u64::from(sequence);
        if near + HALF < self.next {
            near + WHOLE
        } else if near >= self.next + HALF && near >= WHOLE {
            near - WHOLE
        } else {
            near
        }
    }

    /// Clears the bits of the numbers from `next` to `number`, whose places older numbers held.
    fn forget(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for place in self.next..=number {
            let (word, bit) = place_of(place);
            self.seen[word] &= !bit;
        }
    }

    /// Marks a number as arrived; whether it was new.
    fn mark(&mut self, number: u64) -> bool {
        if self.seen.is_empty() {
            return false;
        }
        let (word, bit) = place_of(number);
        let new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        new
    }
}

#[allow(clippy::cast_possible_truncation)]
const fn place_of(number: u64) -> (usize, u64) {
    let place = number % WINDOW;
    ((place / 64) as usize, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_gap_is_lost_until_it_is_filled() {
        let mut account = SequenceAccount::default();
        assert_eq!(account.enter(0), Arrival::InOrder);
        assert_eq!(account.enter(3), Arrival::InOrder);
        assert_eq!(account.lost(), 2);
        assert_eq!(account.enter(1), Arrival::Reordered);
        assert_eq!(account.enter(1), Arrival::Duplicate);
        assert_eq!((account.lost(), account.reordered(), account.duplicates(), account.received), (1, 1, 1, 3));
    }

    #[test]
    fn a_flow_without_gaps_keeps_no_window_and_knows_its_duplicates() {
        let mut account = SequenceAccount::default();
        for sequence in 0..1000 {
            assert_eq!(account.enter(sequence), Arrival::InOrder);
        }
        assert_eq!(account.enter(7), Arrival::Duplicate);
        assert!(account.seen.is_empty());
    }

    #[test]
    fn numbers_go_on_after_the_wrap() {
        let mut account =
            SequenceAccount { next: u64::from(u32::MAX), received: u64::from(u32::MAX), ..Default::default() };
        for sequence in [u32::MAX, 1, 0, 0, 2] {
            account.enter(sequence);
        }
        assert_eq!(account.next, (1 << 32) + 3);
        assert_eq!((account.lost(), account.reordered(), account.duplicates()), (0, 1, 1));
    }

    #[test]
    fn a_jump_past_the_window_forgets_it() {
        let mut account = SequenceAccount::default();
        account.enter(5);
        account.enter(5 + u32::try_from(WINDOW).unwrap() * 3);
        assert_eq!(account.enter(5), Arrival::Reordered);
        assert_eq!(account.lost(), 5 + WINDOW * 3 + 1 - 3);
    }

    proptest! {
        #[test]
        fn the_account_agrees_with_a_model_that_remembers_all(
            start in 0_u64..2, steps in prop::collection::vec(-300_i64..400, 1..600)
        ) {
            // Begins just below the wrap in half of the cases, as if all before had arrived.
            let base = if start == 1 { (1_u64 << 32) - 1000 } else { 0 };
            let mut account = SequenceAccount { next: base, received: base, ..Default::default() };
            let mut seen = HashSet::new();
            let (mut next, mut duplicates, mut reordered, mut current) = (base, 0, 0, base as i64);
            for step in steps {
                current = (current + step).max(base as i64);
                let number = current as u64;
                let expected = if !seen.insert(number) {
                    duplicates += 1;
                    Arrival::Duplicate
                } else if number < next {
                    reordered += 1;
                    Arrival::Reordered
                } else {
                    Arrival::InOrder
                };
                next = next.max(number + 1);
                prop_assert_eq!(account.enter(number as u32), expected);
            }
            prop_assert_eq!(account.lost(), next - base - seen.len() as u64);
            prop_assert_eq!((account.duplicates(), account.reordered()), (duplicates, reordered));
        }
    }
}
