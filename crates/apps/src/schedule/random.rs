//! A seeded stream of random numbers of one process.
//!
//! SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, OOPSLA 2014). Every process of
//! an app has a stream of its own, seeded by the host's: what one process draws never shifts another.

use twinnet_units::random::split_mix;

/// 2^-53: the distance between the numbers that [`Stream::uniform`] gives.
const STEP: f64 = 1.0 / 9_007_199_254_740_992.0;

/// One stream.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        split_mix(&mut self.state)
    }

    /// Evenly from (0, 1].
    #[allow(clippy::cast_precision_loss)]
    pub fn uniform(&mut self) -> f64 {
        ((self.number() >> 11) + 1) as f64 * STEP
    }

    /// From the standard normal distribution (Box and Muller 1958; of each pair the first).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// From the gamma distribution of `shape` and scale 1 (Marsaglia and Tsang, *A simple method for generating gamma
    /// variables*, ACM TOMS 2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let power = self.uniform().powf(1.0 / shape);
            return self.gamma(shape + 1.0) * power;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            // Accepted in more than 95 of 100 rounds, whatever the shape.
            if v > 0.0 && self.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_published_generator() {
        // The first outputs of Vigna's splitmix64.c for seed 0.
        let mut stream = Stream::new(0);
        assert_eq!([stream.number(), stream.number()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn uniform_numbers_are_never_zero_and_never_above_one() {
        let mut stream = Stream::new(1);
        assert!((0..10_000).map(|_| stream.uniform()).all(|value| value > 0.0 && value <= 1.0));
    }
}
