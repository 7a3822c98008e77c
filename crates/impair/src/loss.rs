//! The choice of frames that are lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::random::{happens, Rng};

use super::{check_probability, ImpairError};

/// A loss model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossConfig {
    /// Every frame is lost with the same probability, independently.
    Bernoulli {
        /// Of a frame being lost.
        #[schemars(range(min = 0.0, max = 1.0))]
        probability: f64,
    },
    /// Two states with a loss probability each; from frame to frame the state may change.
    ///
    /// E. N. Gilbert, *Capacity of a burst-noise channel*, BSTJ 39 (1960); E. O. Elliott, BSTJ 42 (1963). With the
    /// default loss probabilities (0 and 1) the mean burst is 1/`to_good` frames and the share of lost frames
    /// `to_bad`/(`to_bad`+`to_good`).
    GilbertElliott {
        /// From good to bad, per frame (p).
        #[schemars(range(min = 0.0, max = 1.0))]
        to_bad: f64,
        /// From bad to good, per frame (r).
        #[schemars(range(min = 0.0, max = 1.0))]
        to_good: f64,
        /// Of a frame being lost in the good state (1-k).
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 1.0))]
        loss_good: f64,
        /// Of a frame being lost in the bad state (1-h).
        #[serde(default = "certain")]
        #[schemars(range(min = 0.0, max = 1.0))]
        loss_bad: f64,
    },
}

const fn certain() -> f64 {
    1.0
}

impl LossConfig {
    pub(super) fn validate(&self) -> Result<(), ImpairError> {
        match *self {
            Self::Bernoulli { probability } => check_probability("loss.probability", probability),
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                check_probability("loss.to_bad", to_bad)?;
                check_probability("loss.to_good", to_good)?;
                check_probability("loss.loss_good", loss_good)?;
                check_probability("loss.loss_bad", loss_bad)
            }
        }
    }

    /// Returns `true` if it never loses a frame.
    pub(super) fn is_transparent(&self) -> bool {
        match *self {
            Self::Bernoulli { probability } => probability == 0.0,
            Self::GilbertElliott { to_bad, loss_good, loss_bad, .. } => {
                loss_good == 0.0 && (to_bad == 0.0 || loss_bad == 0.0)
            }
        }
    }
}

/// A loss process: a model and the state it is in. It begins in the good state.
pub(super) struct Loss {
    config: Option<LossConfig>,
    bad: bool,
    rng: Rng,
}

impl Loss {
    pub(super) fn new(config: Option<LossConfig>, rng: Rng) -> Self {
        Self { config, bad: false, rng }
    }

    /// Changes the model; the state is kept as long as both models have one.
    pub(super) fn reconfigure(&mut self, config: Option<LossConfig>) {
        self.bad &= matches!(config, Some(LossConfig::GilbertElliott { .. }));
        self.config = config;
    }

    /// Returns `true` if the next frame is lost. The frame meets the state it finds; then the state may change.
    pub(super) fn next(&mut self) -> bool {
        match self.config {
            None => false,
            Some(LossConfig::Bernoulli { probability }) => happens(&mut self.rng, probability),
            Some(LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad }) => {
                let lost = happens(&mut self.rng, if self.bad { loss_bad } else { loss_good });
                self.bad ^= happens(&mut self.rng, if self.bad { to_good } else { to_bad });
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_units::random::stream;

    const FRAMES: usize = 200_000;

    fn fates(config: LossConfig) -> Vec<bool> {
        config.validate().unwrap();
        let mut loss = Loss::new(Some(config), stream(3, "loss"));
        (0..FRAMES).map(|_| loss.next()).collect()
    }

    fn share(fates: &[bool]) -> f64 {
        fates.iter().filter(|lost| **lost).count() as f64 / fates.len() as f64
    }

    #[test]
    fn bernoulli_losses_are_as_many_as_the_binomial_distribution_allows() {
        // Four standard deviations: a correct generator fails for one seed in 16,000, and the seed is fixed.
        for probability in [0.0001, 0.01, 0.3, 0.999] {
            let tolerance = 4.0 * (probability * (1.0 - probability) / FRAMES as f64).sqrt();
            let share = share(&fates(LossConfig::Bernoulli { probability }));
            assert!((share - probability).abs() < tolerance, "{share} instead of {probability}");
        }
    }

    #[test]
    fn certain_and_impossible_losses_are_exact() {
        assert!(fates(LossConfig::Bernoulli { probability: 1.0 }).iter().all(|lost| *lost));
        assert!(!fates(LossConfig::Bernoulli { probability: 0.0 }).iter().any(|lost| *lost));
    }

    #[test]
    fn gilbert_elliott_bursts_and_share_follow_from_its_transitions() {
        let (p, r) = (0.02, 0.25);
        let fates = fates(LossConfig::GilbertElliott { to_bad: p, to_good: r, loss_good: 0.0, loss_bad: 1.0 });
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        // About 3700 bursts of geometric length with standard deviation sqrt(1-r)/r = 3.5: the mean within 4 x 0.057.
        assert!((lost / bursts - 1.0 / r).abs() < 0.23, "mean burst {}", lost / bursts);
        // The share's variance is that of independent frames times (1+c)/(1-c), c = 1-p-r being the state's
        // correlation.
        let expected = p / (p + r);
        let correlation = 1.0 - p - r;
        let variance = expected * (1.0 - expected) / FRAMES as f64 * (1.0 + correlation) / (1.0 - correlation);
        assert!((share(&fates) - expected).abs() < 4.0 * variance.sqrt(), "share {}", share(&fates));
    }

    #[test]
    fn both_states_of_gilbert_elliott_lose_at_their_own_rate() {
        let (to_bad, to_good, loss_good, loss_bad) = (0.1, 0.3, 0.05, 0.6);
        let fates = fates(LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad });
        let bad = to_bad / (to_bad + to_good);
        let expected = bad * loss_bad + (1.0 - bad) * loss_good;
        // The correlation of 0.6 between states at most quadruples the variance of independent losses.
        let tolerance = 4.0 * 2.0 * (expected * (1.0 - expected) / FRAMES as f64).sqrt();
        assert!((share(&fates) - expected).abs() < tolerance, "{} instead of {expected}", share(&fates));
    }

    #[test]
    fn a_model_keeps_its_state_when_its_parameters_change() {
        let stuck = |to_bad| LossConfig::GilbertElliott { to_bad, to_good: 0.0, loss_good: 0.0, loss_bad: 1.0 };
        let mut loss = Loss::new(Some(stuck(1.0)), stream(1, "x"));
        assert!(!loss.next());
        loss.reconfigure(Some(stuck(0.0)));
        assert!(loss.next(), "still in the bad state");
        loss.reconfigure(Some(LossConfig::Bernoulli { probability: 0.0 }));
        loss.reconfigure(Some(stuck(0.0)));
        assert!(!loss.next(), "a new model begins in the good state");
    }
}
