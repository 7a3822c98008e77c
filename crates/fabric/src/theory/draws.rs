//! Drawing from the laws of an experiment.

use rand::distr::Distribution;
use rand_distr::Exp1;
use twinnet_units::random::Rng;

use super::config::Draw;

impl Draw {
    /// The next number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn next(&self, rng: &mut Rng) -> u64 {
        match *self {
            Self::Constant { value } => value,
            Self::Exponential { mean, least, most } => {
                let drawn: f64 = Exp1.sample(rng);
                ((drawn * mean).ceil() as u64).clamp(least, most)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_units::random::stream;

    #[test]
    fn exponential_numbers_have_their_mean_and_share_of_long_ones() {
        let law = Draw::Exponential { mean: 1000.0, least: 8, most: 2000 };
        let mut rng = stream(3, "sizes");
        let drawn: Vec<u64> = (0..100_000).map(|_| law.next(&mut rng)).collect();
        assert!(drawn.iter().all(|size| (8..=2000).contains(size)));
        // P(X > 1000) = e^-1, P(X at the upper end) = e^-2: four standard deviations of a share are 0.0061 and 0.0043.
        let share = |wanted: fn(&u64) -> bool| drawn.iter().filter(|size| wanted(size)).count() as f64 / 100_000.0;
        assert!((share(|size| *size > 1000) - (-1.0_f64).exp()).abs() < 0.0061);
        assert!((share(|size| *size == 2000) - (-2.0_f64).exp()).abs() < 0.0043);
    }
}
