//! Loss, duplication and reordering from the sequence numbers of arrivals, in bounded memory.
//!
//! Numbers begin at 0 and wrap at 2^32; an arrival is taken for the number nearest to the highest so far. Which of
//! the latest [`WINDOW`] numbers have arrived is remembered. An arrival from before the window is taken for a first
//! one, so it counts as reordered and no longer as lost: a duplicate that is more than a window late is told as
//! that. Numbers before the first arrival count as lost. What a damaged header, or a receiver that began late,
//! would make of the count is told by [`SequenceAccount::notes`].

use std::collections::VecDeque;

use crate::account::length_histogram::{LengthHistogram, LengthsReport};
use crate::account::reordering_density::{DensityReport, ReorderDensity};

/// Sequence numbers below the highest that are remembered.
pub const WINDOW: u64 = 1 << 16;
const WORDS: usize = (WINDOW / 64) as usize;
/// Gaps in the numbers that are remembered, for the extents of reordering.
const MOST_GAPS: usize = 1024;

/// The kind of an arrival.
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
    /// Bit `n % WINDOW` tells whether number `n` arrived, for the window below `next`. Empty while all below `next`
    /// have: most flows never need the 8 KiB.
    seen: Vec<u64>,
    /// Losses in a row among the numbers that have left the window, and those that the window's first numbers go on
    /// from.
    bursts: LengthHistogram,
    missing: u64,
    /// Numbers that were passed over: first and last, and the arrival that did so.
    gaps: VecDeque<(u64, u64, u64)>,
    extents: LengthHistogram,
    density: ReorderDensity,
    /// The number that arrived first, and the least so far.
    first: u64,
    least: u64,
    /// Arrivals that passed over a window of numbers, and those from before the window.
    leaps: u64,
    stale: u64,
}

impl SequenceAccount {
    /// Enters an arrival.
    pub fn enter(&mut self, sequence: u32) -> Arrival {
        let number = self.unwrap(sequence);
        if number >= self.next {
            if self.received == 0 {
                (self.first, self.least) = (number, number);
            } else if number - self.next >= WINDOW {
                self.leaps += 1;
            }
            if number > self.next {
                if self.seen.is_empty() {
                    self.seen = vec![u64::MAX; WORDS];
                }
                if self.gaps.len() == MOST_GAPS {
                    self.gaps.pop_front();
                }
                self.gaps.push_back((self.next, number - 1, self.received));
            }
            if !self.seen.is_empty() {
                self.forget(number);
                self.mark(number);
            }
            self.next = number + 1;
            self.received += 1;
            self.density.enter(number);
            return Arrival::InOrder;
        }
        if self.next - number <= WINDOW && !self.mark(number) {
            self.duplicates += 1;
            return Arrival::Duplicate;
        }
        // RFC 4737, 4.2.3: the extent of packet i is i - j, with j the first arrival that has a higher number.
        let after = self.gaps.partition_point(|(first, _, _)| *first <= number);
        if let Some((_, last, passed_by)) = after.checked_sub(1).and_then(|place| self.gaps.get(place)) {
            if number <= *last {
                self.extents.add(self.received - passed_by);
            }
        }
        self.least = self.least.min(number);
        self.stale += u64::from(self.next - number > WINDOW);
        self.received += 1;
        self.reordered += 1;
        self.density.enter(number);
        Arrival::Reordered
    }

    /// The number that `sequence` will be taken for.
    #[must_use]
    pub fn number_of(&self, sequence: u32) -> u64 {
        self.unwrap(sequence)
    }

    /// Lengths of losses in a row, as far as is known now.
    #[must_use]
    pub fn loss_bursts(&self) -> LengthsReport {
        let mut bursts = self.bursts.clone();
        let mut missing = self.missing;
        if !self.seen.is_empty() {
            for number in self.next.saturating_sub(WINDOW)..self.next {
                let (word, bit) = place_of(number);
                if self.seen[word] & bit == 0 {
                    missing += 1;
                } else {
                    bursts.add(std::mem::take(&mut missing));
                }
            }
        }
        bursts.add(missing);
        bursts.report()
    }

    /// Extents of reordering (RFC 4737, 4.2.3), of those arrivals whose gap is among the latest that are remembered.
    #[must_use]
    pub fn reordering_extents(&self) -> LengthsReport {
        self.extents.report()
    }

    /// Reorder density (RFC 5236).
    #[must_use]
    pub fn reordering_density(&self) -> DensityReport {
        self.density.report()
    }

    /// Numbers below the highest that have not arrived.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.next.saturating_sub(self.received)
    }

    /// The least number that arrived; all below it count as lost. Zero before the first arrival.
    #[must_use]
    pub const fn least(&self) -> u64 {
        self.least
    }

    /// Returns the number of times an arrival was a [`WINDOW`] of numbers or more ahead of what was expected, or came
    /// from before the window.
    #[must_use]
    pub const fn jumps(&self) -> u64 {
        self.leaps() + self.stale
    }

    /// The first arrival is one when earlier numbers showed that nothing began there.
    const fn leaps(&self) -> u64 {
        self.leaps + (self.first >= self.least + WINDOW) as u64
    }

    /// Returns what hinders the count of losses from being taken for what the network did.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.least > 0 {
            notes.push(format!(
                "the first {} datagrams were lost or sent before this receiver listened; they are counted as lost",
                self.least
            ));
        }
        if self.leaps() > 0 {
            notes.push(format!(
                "the sequence number leapt ahead by {WINDOW} or more, {} times: what it passed over is counted as \
                 lost, but a damaged or forged header may have caused it",
                self.leaps()
            ));
        }
        if self.stale > 0 {
            notes.push(format!(
                "{} datagrams came from more than {WINDOW} numbers back: whether they had arrived before is not \
                 known, so they are counted as reordered and no longer as lost",
                self.stale
            ));
        }
        notes
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
        for place in self.next..=number.min(self.next + WINDOW - 1) {
            let (word, bit) = place_of(place);
            if self.seen[word] & bit == 0 {
                self.missing += 1;
            } else if self.missing > 0 {
                self.bursts.add(std::mem::take(&mut self.missing));
            }
            self.seen[word] &= !bit;
        }
        // Of a jump past the window all that it passed over is missing.
        self.missing += (number - self.next + 1).saturating_sub(WINDOW);
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

    #[test]
    fn what_was_sent_before_the_first_arrival_is_lost_and_told() {
        let mut account = SequenceAccount::default();
        for number in [5, 6, 8] {
            account.enter(number);
        }
        assert_eq!((account.lost(), account.least(), account.jumps()), (6, 5, 0));
        assert_eq!(
            account.notes(),
            ["the first 5 datagrams were lost or sent before this receiver listened; they are counted as lost"]
        );
        // The first ones were only late.
        for number in 0..5 {
            account.enter(number);
        }
        assert_eq!((account.lost(), account.least(), account.notes()), (1, 0, vec![]));
    }

    #[test]
    fn a_forged_number_is_told_beside_the_loss_that_it_makes() {
        let mut account = SequenceAccount::default();
        for number in [0, 1, 2, 2_000_000_000, 3, 4] {
            account.enter(number);
        }
        assert_eq!((account.lost(), account.jumps()), (2_000_000_001 - 6, 3));
        let notes = account.notes().join("\n");
        assert!(notes.contains("leapt ahead by 65536 or more, 1 times"), "{notes}");
        assert!(notes.contains("2 datagrams came from more than 65536 numbers back"), "{notes}");
    }

    #[test]
    fn a_forged_number_at_the_very_beginning_is_told_too() {
        let mut account = SequenceAccount::default();
        for number in [70_000, 0, 1] {
            account.enter(number);
        }
        assert_eq!((account.least(), account.jumps()), (0, 3));
        assert!(account.notes()[0].contains("leapt ahead"), "{:?}", account.notes());
    }

    #[test]
    fn losses_in_a_row_are_counted_also_past_the_window() {
        let mut account = SequenceAccount::default();
        let lost = [3, 4, 5, 100, 70_000, 70_001, 140_000];
        for number in (0..150_000).filter(|number| !lost.contains(number)) {
            account.enter(number);
        }
        assert_eq!(account.loss_bursts().histogram, [(1, 2), (2, 1), (3, 1)]);
        account.enter(400_000);
        // 150,000 to 399,999 are missing: one burst.
        let report = account.loss_bursts();
        assert_eq!((report.count, report.max, account.lost()), (5, 250_000, 250_007));
    }

    #[test]
    fn a_late_packet_has_the_extent_of_rfc_4737() {
        // RFC 4737, 7.3: the example of packets arriving as 1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11, numbers from 1.
        let mut account = SequenceAccount::default();
        for number in [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11] {
            account.enter(number - 1);
        }
        let report = account.reordering_extents();
        // 7 is the fourth arrival; 4, 5 and 6 are the eighth to tenth.
        assert_eq!((report.histogram, account.reordered()), (vec![(4, 1), (5, 1), (6, 1)], 3));
    }

    #[test]
    fn a_number_as_far_back_as_the_window_is_known_and_one_farther_is_not() {
        let mut account = SequenceAccount::default();
        for number in (0..=1 << 16).filter(|number| *number != 2) {
            account.enter(number);
        }
        assert_eq!(account.enter(1), Arrival::Duplicate);
        assert_eq!((account.jumps(), account.enter(0)), (0, Arrival::Reordered));
        assert_eq!((account.jumps(), account.duplicates(), account.reordered()), (1, 1, 1));
        // 3 may have come before, too. It is of no gap, so that it has no extent.
        account.enter((1 << 16) + 3);
        assert_eq!((account.enter(3), account.reordering_extents().count), (Arrival::Reordered, 0));
    }

    #[test]
    fn a_leap_is_what_passes_over_a_whole_window() {
        for (passed, jumps) in [((1 << 16) - 1, 0), (1 << 16, 1)] {
            let mut account = SequenceAccount::default();
            account.enter(0);
            account.enter(passed + 1);
            let bursts = account.loss_bursts();
            assert_eq!(
                (account.jumps(), account.lost(), account.notes().len()),
                (jumps, u64::from(passed), jumps as usize)
            );
            assert_eq!((bursts.count, bursts.max), (1, u64::from(passed)));
            // At the beginning it is one when an earlier number comes, which then is from before the window.
            let mut account = SequenceAccount::default();
            account.enter(passed);
            assert_eq!((account.jumps(), account.enter(0), account.jumps()), (0, Arrival::Reordered, 2 * jumps));
        }
    }

    #[test]
    fn a_late_arrival_within_the_window_is_no_jump_and_the_window_takes_8_kib() {
        let mut account = SequenceAccount::default();
        for number in (0..70_000).filter(|number| *number != 69_990) {
            account.enter(number);
        }
        assert_eq!((account.enter(69_990), account.jumps(), account.lost()), (Arrival::Reordered, 0, 0));
        assert_eq!(std::mem::size_of_val(account.seen.as_slice()), 8192);
    }

    #[test]
    fn extents_are_known_of_the_latest_gaps() {
        let mut account = SequenceAccount::default();
        for number in 0..=MOST_GAPS as u32 + 1 {
            account.enter(2 * number);
        }
        account.enter(1);
        assert_eq!((account.reordering_extents().count, account.reordered()), (0, 1));
        // 4 passed 3 over as the third arrival, and 3 is the 1028th.
        account.enter(3);
        assert_eq!((account.reordering_extents().count, account.reordering_extents().max), (1, 1025));
    }

    #[test]
    fn duplicates_are_no_part_of_the_density() {
        let mut account = SequenceAccount::default();
        for number in [0, 2, 1, 1, 0] {
            account.enter(number);
        }
        assert_eq!(account.reordering_density().histogram, [(-1, 1), (0, 1), (1, 1)]);
    }

    #[test]
    fn an_arrival_is_taken_for_the_nearest_number_and_never_for_one_below_zero() {
        const HALF: u64 = 1 << 31;
        const WHOLE: u64 = 1 << 32;
        for (next, number) in [
            (0, HALF + 1),
            (HALF + 5, 5),
            (HALF + 5, WHOLE + 4),
            (WHOLE + 10, HALF + 10),
            (WHOLE + 10, WHOLE + HALF + 9),
            (WHOLE - 1, WHOLE + 3),
            (3 * WHOLE + 7, 3 * WHOLE - 2),
        ] {
            let account = SequenceAccount { next, received: next, ..Default::default() };
            assert_eq!(account.number_of(number as u32), number, "{next}");
        }
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
