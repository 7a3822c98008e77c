//! The analysis of a chirp: where the queueing delay begins to rise and does not come back.
//!
//! Ribeiro, Riedi, Baraniuk, Navratil, Cottrell, *pathChirp: efficient available bandwidth estimation for network
//! paths*, PAM 2003, section 3.

/// The rules by which excursions of the queueing delay are told from each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excursions {
    /// An excursion ends when the delay has fallen to its greatest rise over this.
    pub decrease_factor: f64,
    /// Excursions of fewer packets do not count.
    pub busy_length: usize,
}

impl Excursions {
    /// The rules by the settings of a method.
    #[must_use]
    pub fn new(decrease_factor: f64, busy_length: u32) -> Self {
        Self { decrease_factor, busy_length: busy_length as usize }
    }

    /// The estimate of one chirp: `delays` of its packets (one more than there are gaps), and each gap with its rate.
    /// `None` of a chirp without a gap.
    #[must_use]
    pub fn estimate(self, delays: &[f64], rates: &[f64], gaps: &[f64]) -> Option<f64> {
        let count = rates.len().min(gaps.len()).min(delays.len().checked_sub(1)?);
        if count == 0 {
            return None;
        }
        let mut told: Vec<Option<f64>> = vec![None; count];
        let mut rest = rates[count - 1];
        let mut start = 0;
        while start < count {
            if delays[start] >= delays[start + 1] {
                start += 1;
                continue;
            }
            let (mut end, mut highest) = (start + 1, 0.0_f64);
            while end <= count {
                let rise = delays[end] - delays[start];
                highest = highest.max(rise);
                if rise < highest / self.decrease_factor {
                    break;
                }
                end += 1;
            }
            if end > count {
                // It never ends: from here on the path is overloaded.
                rest = rates[start];
                told[start..].fill(Some(rest));
                break;
            }
            if end - start >= self.busy_length {
                for place in start..end.min(count) {
                    if delays[place] < delays[place + 1] {
                        told[place] = Some(rates[place]);
                    }
                }
            }
            start = end;
        }
        let total: f64 = gaps[..count].iter().sum();
        let weighed: f64 = told.iter().zip(gaps).map(|(told, gap)| told.unwrap_or(rest) * gap).sum();
        (total > 0.0).then(|| weighed / total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Excursions = Excursions { decrease_factor: 1.5, busy_length: 5 };

    #[test]
    fn delays_that_rise_from_one_rate_on_give_that_rate() {
        let rates = [10.0, 12.0, 14.4, 17.3, 20.7, 24.9];
        let gaps = rates.map(|rate| 8000.0 / rate);
        let delays = [0.0, 0.0, 0.0, 0.0, 5.0, 12.0, 20.0];
        assert!((RULE.estimate(&delays, &rates, &gaps).unwrap() - 17.3).abs() < 1e-9);
    }

    #[test]
    fn a_short_bump_does_not_count_and_a_flat_chirp_gives_its_highest_rate() {
        let rates = [10.0, 12.0, 14.4, 17.3, 20.7, 24.9];
        let gaps = rates.map(|rate| 8000.0 / rate);
        let bump = [0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert!((RULE.estimate(&bump, &rates, &gaps).unwrap() - 24.9).abs() < 1e-9);
        assert_eq!(RULE.estimate(&[0.0], &[], &[]), None);
    }
}
