//! Decides whether one-way delays of a stream rise: the two tests of Pathload on medians of groups.
//!
//! Jain and Dovrolis, *End-to-end available bandwidth: measurement methodology, dynamics, and relation with TCP
//! throughput*, IEEE/ACM Transactions on Networking 11(4), 2003, section IV.

use super::estimator::median;

/// The verdict of a test or a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// Delays rise: the rate is above the available bandwidth.
    Increasing,
    /// They do not.
    None,
    /// Neither is clear.
    Unclear,
}

/// The two statistics of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Pairwise comparison test: the share of groups whose median is above the one before.
    pub comparison: f64,
    /// Pairwise difference test: the rise from the first to the last over the sum of all changes.
    pub difference: f64,
}

/// The statistics of these delays, in groups of the square root of their number; `None` below five groups' worth of
/// points.
#[must_use]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn statistics(delays: &[f64]) -> Option<Statistics> {
    let group = (delays.len() as f64).sqrt().floor() as usize;
    if group == 0 || delays.len() / group < 5 {
        return None;
    }
    let medians: Vec<f64> = delays.chunks_exact(group).filter_map(median).collect();
    let pairs = medians.len() - 1;
    let rises = medians.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let changes: f64 = medians.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    let rise = medians[pairs] - medians[0];
    Some(Statistics {
        comparison: rises as f64 / pairs as f64,
        difference: if changes > 0.0 { rise / changes } else { 0.0 },
    })
}

/// One test's word: `value` against `threshold`, with a band of a tenth of it in which nothing is said.
fn judge(value: f64, threshold: f64) -> Trend {
    if value > 1.1 * threshold {
        Trend::Increasing
    } else if value < 0.9 * threshold {
        Trend::None
    } else {
        Trend::Unclear
    }
}

impl Statistics {
    /// Returns what both tests say together: one of them may be unclear, but they may not contradict each other.
    #[must_use]
    pub fn trend(self, comparison_threshold: f64, difference_threshold: f64) -> Trend {
        let both = (judge(self.comparison, comparison_threshold), judge(self.difference, difference_threshold));
        match both {
            (Trend::Increasing, Trend::Increasing | Trend::Unclear) | (Trend::Unclear, Trend::Increasing) => {
                Trend::Increasing
            }
            (Trend::None, Trend::None | Trend::Unclear) | (Trend::Unclear, Trend::None) => Trend::None,
            _ => Trend::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_a_trend_and_a_saw_is_none() {
        let rise: Vec<f64> = (0..100).map(f64::from).collect();
        let told = statistics(&rise).unwrap();
        assert_eq!(told, Statistics { comparison: 1.0, difference: 1.0 });
        assert_eq!(told.trend(0.55, 0.4), Trend::Increasing);
        let saw: Vec<f64> = (0..100).map(|place| f64::from(place % 20)).collect();
        assert_eq!(statistics(&saw).unwrap().trend(0.55, 0.4), Trend::None);
        assert_eq!(statistics(&[1.0; 4]), None);
    }

    #[test]
    fn tests_that_contradict_each_other_say_nothing() {
        assert_eq!(Statistics { comparison: 0.9, difference: 0.1 }.trend(0.55, 0.4), Trend::Unclear);
        assert_eq!(Statistics { comparison: 0.55, difference: 0.9 }.trend(0.55, 0.4), Trend::Increasing);
    }

    #[test]
    fn twenty_delays_are_five_groups_and_delays_that_never_change_have_no_trend() {
        assert_eq!(statistics(&[1.0; 20]), Some(Statistics { comparison: 0.0, difference: 0.0 }));
        assert_eq!(statistics(&[1.0; 19]), None);
    }

    #[test]
    fn the_ends_of_the_band_belong_to_it() {
        for (difference, trend) in [(0.1, Trend::None), (0.9, Trend::Increasing)] {
            for edge in [1.1 * 0.55, 0.9 * 0.55] {
                assert_eq!(Statistics { comparison: edge, difference }.trend(0.55, 0.4), trend);
            }
        }
    }
}
