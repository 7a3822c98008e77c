//! Reorder density (RFC 5236): how far from its place each packet of a flow arrived, in bounded memory.
//!
//! Arrivals get a receive index, 1, 2, 3 and so on, in which the numbers of lost packets are left out and duplicates
//! have none. The displacement of a packet is its receive index less its sequence number: negative for early packets,
//! positive for late ones. A packet is taken for lost when none of the [`THRESHOLD`] arrivals after the one that would
//! have its index is it; one that is displaced by more counts beside the density.
//!
//! The RFC's algorithm looks that many arrivals ahead before it enters one. Here an arrival is entered as soon as
//! nothing that may still come can change its index: in a flow without reordering, at once.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The displacement threshold (DT in the RFC), in packets.
pub const THRESHOLD: u64 = 64;

/// Follows the arrivals of one flow. Duplicates must not be entered.
#[derive(Clone, Debug)]
pub struct ReorderDensity {
    threshold: u64,
    /// The index of the next packet (RI in the RFC), from 0 as sequence numbers here do.
    index: u64,
    /// Arrivals that are not entered yet, in their order.
    window: VecDeque<u64>,
    /// Packets that arrived early and whose numbers the index has not reached.
    early: Vec<u64>,
    /// By displacement from -threshold; empty until a packet is displaced.
    displaced: Vec<u64>,
    in_place: u64,
    beyond: u64,
}

/// The reordering density that was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DensityReport {
    /// The displacement threshold, in packets.
    pub threshold: u64,
    /// Packets in the density.
    pub packets: u64,
    /// Packets that were displaced by more than the threshold.
    pub beyond: u64,
    /// `[displacement, count]` for those that occurred, from the earliest to the latest.
    pub histogram: Vec<(i64, u64)>,
}

impl Default for ReorderDensity {
    fn default() -> Self {
        Self::new(THRESHOLD)
    }
}

impl ReorderDensity {
    fn new(threshold: u64) -> Self {
        Self {
            threshold,
            index: 0,
            window: VecDeque::new(),
            early: Vec::new(),
            displaced: Vec::new(),
            in_place: 0,
            beyond: 0,
        }
    }

    /// Enters the first arrival of a number.
    pub fn enter(&mut self, number: u64) {
        if number == self.index && self.window.is_empty() && self.early.is_empty() {
            self.in_place += 1;
            self.index += 1;
        } else if number < self.index {
            // It was taken for lost.
            self.beyond += 1;
        } else {
            self.window.push_back(number);
            self.settle(false);
        }
    }

    /// Enters what can be decided; with `ended`, all.
    fn settle(&mut self, ended: bool) {
        while let Some(&first) = self.window.front() {
            let arrived = first == self.index || self.early.contains(&self.index) || self.window.contains(&self.index);
            if arrived {
                self.window.pop_front();
                self.place(first);
            } else if ended || self.window.len() as u64 > self.threshold {
                // The packet of this index is lost: on to the next that has arrived.
                let least = self.window.iter().chain(&self.early).copied().min().unwrap_or(first);
                self.index = least.max(self.index + 1);
            } else {
                return;
            }
        }
    }

    /// Gives the index to `number`, unless they are too far apart.
    fn place(&mut self, number: u64) {
        let distance = self.index.abs_diff(number);
        if distance > self.threshold {
            self.beyond += 1;
            return;
        }
        self.early.retain(|early| *early != self.index);
        if distance == 0 {
            self.in_place += 1;
        } else {
            if self.displaced.is_empty() {
                self.displaced = vec![0; as_place(2 * self.threshold) + 1];
            }
            let late = number < self.index;
            let place = if late { self.threshold + distance } else { self.threshold - distance };
            self.displaced[as_place(place)] += 1;
            if !late {
                self.early.push(number);
            }
        }
        self.index += 1;
    }

    /// Returns what was counted so far, as if nothing more came.
    #[must_use]
    pub fn report(&self) -> DensityReport {
        let mut all = self.clone();
        all.settle(true);
        let threshold = i64::try_from(all.threshold).unwrap_or(i64::MAX);
        let displaced = (-threshold..).zip(all.displaced.iter().copied());
        let mut histogram: Vec<(i64, u64)> = displaced.filter(|(_, count)| *count > 0).collect();
        if all.in_place > 0 {
            let at = histogram.partition_point(|(displacement, _)| *displacement < 0);
            histogram.insert(at, (0, all.in_place));
        }
        let packets = histogram.iter().map(|(_, count)| count).sum();
        DensityReport { threshold: all.threshold, packets, beyond: all.beyond, histogram }
    }
}

fn as_place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashSet};

    /// The density of arrivals that are numbered from 1, as in papers; duplicates are left out as a sink does.
    fn density(threshold: u64, arrivals: &[u64]) -> DensityReport {
        let mut density = ReorderDensity::new(threshold);
        let mut seen = HashSet::new();
        for number in arrivals.iter().filter(|number| seen.insert(**number)) {
            density.enter(number - 1);
        }
        density.report()
    }

    #[test]
    fn the_worked_examples_have_their_densities() {
        // RFC 5236, 8: nothing lost; displacements 0 -2 1 -1 2 0 0 0. Then 3 is lost, then 3 comes twice.
        let report = density(4, &[1, 4, 2, 5, 3, 6, 7, 8]);
        assert_eq!(report.histogram, [(-2, 1), (-1, 1), (0, 4), (1, 1), (2, 1)]);
        assert_eq!(density(3, &[1, 2, 4, 5, 6, 7]).histogram, [(0, 6)]);
        assert_eq!(density(2, &[1, 3, 2, 3, 4, 5]).histogram, [(-1, 1), (0, 3), (1, 1)]);
        // As there, 3.3: 2 is lost, 3 comes twice; 0 -1 1 0 - -2 0 2.
        let report = density(3, &[1, 4, 3, 5, 3, 8, 7, 6]);
        assert_eq!(report.histogram, [(-2, 1), (-1, 1), (0, 3), (1, 1), (2, 1)]);
        // Packet Reordering Metrics to Enable Performance Comparison in IP-Networks (JCNC 2020), table 1: 0 -4 -4 2
        // 2 2 2 0.
        let report = density(4, &[1, 6, 7, 2, 3, 4, 5, 8]);
        assert_eq!(report.histogram, [(-4, 2), (0, 2), (2, 4)]);
        assert_eq!((report.packets, report.beyond, report.threshold), (8, 0, 4));
    }

    #[test]
    fn losses_alone_displace_nothing() {
        let arrivals: Vec<u64> = (1..=1000).filter(|number| number % 7 != 0 && !(300..500).contains(number)).collect();
        let report = density(THRESHOLD, &arrivals);
        assert_eq!(report.histogram, [(0, arrivals.len() as u64)]);
        assert_eq!(report.beyond, 0);
    }

    #[test]
    fn a_packet_later_than_the_threshold_is_lost_to_the_density() {
        let report = density(3, &[1, 3, 4, 5, 6, 7, 2, 8]);
        assert_eq!((report.histogram, report.beyond), (vec![(0, 7)], 1));
        let report = density(5, &[1, 3, 4, 5, 6, 7, 2, 8]);
        assert_eq!((report.histogram, report.beyond), (vec![(-1, 5), (0, 2), (5, 1)], 0));
    }

    /// The authors' algorithm as they wrote it (RFC 5236, 7.1), with a window that is always full.
    fn by_the_letter(threshold: u64, arrivals: &[u64]) -> (BTreeMap<i64, u64>, u64) {
        let mut stream = arrivals.iter().copied();
        let (mut window, mut early): (VecDeque<u64>, HashSet<u64>) = Default::default();
        let (mut counts, mut beyond, mut index) = (BTreeMap::new(), 0, 0);
        window.extend(stream.by_ref().take(threshold as usize + 1));
        while let Some(&first) = window.front() {
            if !window.contains(&index) && !early.contains(&index) {
                let least = *window.iter().chain(&early).min().unwrap();
                index = if index < least { least } else { index + 1 };
                continue;
            }
            window.pop_front();
            if index.abs_diff(first) <= threshold {
                *counts.entry(index as i64 - first as i64).or_default() += 1;
                early.remove(&index);
                if first > index {
                    early.insert(first);
                }
                index += 1;
            } else {
                beyond += 1;
            }
            let next = stream.by_ref().find(|next| {
                let late = *next < index;
                beyond += u64::from(late);
                !late
            });
            window.extend(next);
        }
        (counts, beyond)
    }

    proptest! {
        #[test]
        fn entering_early_comes_to_what_looking_ahead_does(
            threshold in 1_u64..8,
            delays in prop::collection::vec((0_u64..14, 0_u8..10), 0..300),
        ) {
            let kept = delays.iter().zip(0_u64..).filter(|((_, fate), _)| *fate > 0);
            let mut order: Vec<(u64, u64)> = kept.map(|((delay, _), number)| (number + delay, number)).collect();
            order.sort_unstable();
            let arrivals: Vec<u64> = order.into_iter().map(|(_, number)| number).collect();
            let mut density = ReorderDensity::new(threshold);
            arrivals.iter().for_each(|number| density.enter(*number));
            let report = density.report();
            let (counts, beyond) = by_the_letter(threshold, &arrivals);
            prop_assert_eq!(&report.histogram, &counts.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(report.beyond, beyond);
            prop_assert_eq!(report.packets + report.beyond, arrivals.len() as u64);
        }
    }
}
