//! The deviation of a frame's delay from the delay of the link.

use rand::Rng as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::random::{unit, Rng};
use twinnet_units::Duration;

use super::quantile;
use super::ImpairError;

/// Values of an empirical table.
const MOST_VALUES: usize = 1 << 20;
/// The end of netem's tables, in scales: they hold 16-bit integers of which 8192 are one scale.
const TABLE_END: f64 = 32_767.0 / 8192.0;
/// The amount that netem's tables subtract from a Pareto variable of shape 3 (its mean) and what they multiply the
/// difference by.
const PARETO_MEAN: f64 = 1.5;
const PARETO_SCALE: f64 = 4.0 / 3.0;

/// A distribution of the difference to the link's delay. A delay never falls below zero.
///
/// The Pareto forms are those that iproute2's `netem/pareto.c` and `netem/paretonormal.c` (from NIST Net) tabulate,
/// as continuous functions instead of 4096 points, cut off where the tables are: at 4 scales.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum JitterConfig {
    /// Evenly between -scale and +scale.
    Uniform {
        /// Half the width.
        scale_ps: u64,
    },
    /// Normal, with mean 0.
    Normal {
        /// Standard deviation.
        scale_ps: u64,
    },
    /// (X - 3/2) x 4/3 scales, at most 4, where X is Pareto with shape 3 and minimum 1: from -2/3 of a scale on,
    /// with a long tail.
    Pareto {
        /// netem's jitter.
        scale_ps: u64,
    },
    /// A quarter of the normal quantile and three quarters of the Pareto one, of the same probability.
    ParetoNormal {
        /// netem's jitter.
        scale_ps: u64,
    },
    /// One of the values, each as likely as the others; nothing is interpolated.
    Table {
        /// Differences to the link's delay.
        #[schemars(length(min = 1, max = MOST_VALUES))]
        values_ps: Vec<i64>,
    },
}

impl JitterConfig {
    pub(super) fn validate(&self) -> Result<(), ImpairError> {
        let Self::Table { values_ps } = self else { return Ok(()) };
        if (1..=MOST_VALUES).contains(&values_ps.len()) {
            return Ok(());
        }
        Err(ImpairError {
            field: "jitter.values_ps".to_owned(),
            value: format!("{} values", values_ps.len()),
            allowed: format!("1 to {MOST_VALUES} values"),
        })
    }

    /// Returns `true` if it never changes a delay.
    pub(super) fn is_transparent(&self) -> bool {
        match self {
            Self::Uniform { scale_ps }
            | Self::Normal { scale_ps }
            | Self::Pareto { scale_ps }
            | Self::ParetoNormal { scale_ps } => *scale_ps == 0,
            Self::Table { values_ps } => values_ps.iter().all(|value| *value == 0),
        }
    }

    /// Draws a difference, in picoseconds.
    fn draw(&self, rng: &mut Rng) -> i64 {
        match self {
            Self::Uniform { scale_ps } => scaled(2.0 * unit(rng) - 1.0, *scale_ps),
            Self::Normal { scale_ps } => scaled(quantile::normal(open_unit(rng)), *scale_ps),
            Self::Pareto { scale_ps } => scaled(pareto(open_unit(rng)), *scale_ps),
            Self::ParetoNormal { scale_ps } => {
                let probability = open_unit(rng);
                scaled(0.25 * quantile::normal(probability) + 0.75 * pareto(probability), *scale_ps)
            }
            Self::Table { values_ps } => drawn_evenly(values_ps, rng),
        }
    }
}

/// The quantile that netem's Pareto table holds for `probability`, in scales.
fn pareto(probability: f64) -> f64 {
    let survival = 1.0 - probability;
    let longest = TABLE_END / PARETO_SCALE + PARETO_MEAN;
    if survival * longest * longest * longest <= 1.0 {
        return TABLE_END;
    }
    (quantile::cube_root(1.0 / survival) - PARETO_MEAN) * PARETO_SCALE
}

/// A draw in (0, 1), where quantiles are finite: the middle of one of 2^52 steps.
fn open_unit(rng: &mut Rng) -> f64 {
    const HALF_STEP: f64 = 0.5 / (1_u64 << 52) as f64;
    #[allow(clippy::cast_precision_loss)]
    let steps = (rng.next_u64() >> 12) as f64;
    (2.0 * steps + 1.0) * HALF_STEP
}

/// `quantile` scales, to the nearest picosecond.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn scaled(quantile: f64, scale_ps: u64) -> i64 {
    (quantile * scale_ps as f64).round() as i64
}

/// D. Lemire, *Fast random integer generation in an interval* (2019), without the rejection: with at most 2^20
/// values the bias is below 2^-44.
#[allow(clippy::cast_possible_truncation)]
fn drawn_evenly(values: &[i64], rng: &mut Rng) -> i64 {
    let index = ((u128::from(rng.next_u64()) * values.len() as u128) >> 64) as usize;
    values.get(index).copied().unwrap_or(0)
}

/// A jitter process.
pub(super) struct Jitter {
    config: Option<JitterConfig>,
    rng: Rng,
}

impl Jitter {
    pub(super) fn new(config: Option<JitterConfig>, rng: Rng) -> Self {
        Self { config, rng }
    }

    pub(super) fn reconfigure(&mut self, config: Option<JitterConfig>) {
        self.config = config;
    }

    /// The delay of the next frame on a link whose delay is `base`.
    pub(super) fn delay(&mut self, base: Duration) -> Duration {
        let Some(config) = &self.config else { return base };
        Duration::from_ps(base.as_ps().saturating_add_signed(config.draw(&mut self.rng)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_units::random::stream;

    const SAMPLES: usize = 10_000;
    const SCALE_PS: u64 = 1_000_000_000;
    /// The Kolmogorov-Smirnov statistic of 10,000 samples exceeds this once in a thousand seeds; the seed is fixed.
    const CRITICAL: f64 = 1.949 / 100.0;

    /// One, in scales.
    const PICOSECOND: f64 = 1.0 / SCALE_PS as f64;

    /// Draws, in scales, sorted.
    fn sample(config: &JitterConfig) -> Vec<f64> {
        let mut rng = stream(11, "jitter");
        let mut draws: Vec<f64> = (0..SAMPLES).map(|_| config.draw(&mut rng) as f64 / SCALE_PS as f64).collect();
        draws.sort_by(f64::total_cmp);
        draws
    }

    /// The largest distance between the sample's distribution and `cdf`, looked for where the latter is continuous.
    fn kolmogorov_smirnov(sorted: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
        let count = sorted.len() as f64;
        let distance = |(index, value): (usize, &f64)| {
            let expected = cdf(*value);
            (expected - index as f64 / count).abs().max(((index + 1) as f64 / count - expected).abs())
        };
        sorted.iter().enumerate().map(distance).fold(0.0, f64::max)
    }

    /// The normal distribution by its Taylor series about 0: 1/2 + phi(x) (x + x^3/3 + x^5/15 + ...).
    fn normal_cdf(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for k in 1..200 {
            term *= x * x / f64::from(2 * k + 1);
            sum += term;
        }
        0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    }

    fn pareto_cdf(x: f64) -> f64 {
        1.0 - (x * 0.75 + 1.5).powi(-3)
    }

    /// x with cdf(x) = p, by bisection.
    fn inverse(cdf: impl Fn(f64) -> f64, p: f64, mut low: f64, mut high: f64) -> f64 {
        for _ in 0..80 {
            let middle = (low + high) / 2.0;
            if cdf(middle) < p {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    #[test]
    fn uniform_jitter_is_uniform_over_twice_its_scale() {
        let draws = sample(&JitterConfig::Uniform { scale_ps: SCALE_PS });
        let distance = kolmogorov_smirnov(&draws, |x| ((x + 1.0) / 2.0).clamp(0.0, 1.0));
        assert!(distance < CRITICAL, "{distance}");
    }

    #[test]
    fn normal_jitter_is_normal_with_the_scale_as_its_deviation() {
        let draws = sample(&JitterConfig::Normal { scale_ps: SCALE_PS });
        let distance = kolmogorov_smirnov(&draws, normal_cdf);
        assert!(distance < CRITICAL, "{distance}");
    }

    #[test]
    fn pareto_jitter_is_a_shifted_pareto_cut_off_at_four_scales() {
        let draws = sample(&JitterConfig::Pareto { scale_ps: SCALE_PS });
        assert!(draws[0] >= -2.0 / 3.0 - PICOSECOND && draws[SAMPLES - 1] <= TABLE_END + PICOSECOND);
        let uncut: Vec<f64> = draws.iter().copied().filter(|x| *x < 3.9).collect();
        let reached = pareto_cdf(3.9);
        let distance = kolmogorov_smirnov(&uncut, |x| pareto_cdf(x) / reached);
        assert!(distance < CRITICAL, "{distance}");
        // One frame in 91 lies beyond the cut; four standard deviations of 10,000 draws are 0.0042.
        let cut = draws.iter().filter(|x| **x > TABLE_END - 1e-6).count() as f64 / SAMPLES as f64;
        assert!((cut - (1.0 - pareto_cdf(TABLE_END))).abs() < 0.0042, "{cut}");
    }

    #[test]
    fn pareto_normal_jitter_mixes_both_quantiles() {
        let mixed = |p: f64| {
            let normal = inverse(normal_cdf, p, -8.0, 8.0);
            let pareto = (((1.0 - p).powf(-1.0 / 3.0) - 1.5) * 4.0 / 3.0).min(TABLE_END);
            0.25 * normal + 0.75 * pareto
        };
        let draws = sample(&JitterConfig::ParetoNormal { scale_ps: SCALE_PS });
        // The distance at 999 quantiles instead of at every sample: between two of them it grows by 0.001 at most.
        let distance = (1..1000)
            .map(|step| {
                let p = f64::from(step) / 1000.0;
                let quantile = mixed(p);
                (draws.partition_point(|x| *x <= quantile) as f64 / SAMPLES as f64 - p).abs() + 0.001
            })
            .fold(0.0, f64::max);
        assert!(distance < CRITICAL, "{distance}");
    }

    #[test]
    fn pareto_begins_and_ends_as_netems_table() {
        // iproute2's pareto.dist begins with -5461 and ends with 32767.
        assert_eq!((pareto(0.0) * 8192.0).round(), -5461.0);
        assert_eq!((pareto(1.0 - 16.0 / 65_536.0) * 8192.0).round(), 32_767.0);
    }

    #[test]
    fn table_values_are_drawn_as_often_as_each_other() {
        let config = JitterConfig::Table { values_ps: vec![-5, 0, 7, 7_000_000] };
        let mut rng = stream(2, "table");
        let draws: Vec<i64> = (0..SAMPLES).map(|_| config.draw(&mut rng)).collect();
        for value in [-5, 0, 7, 7_000_000] {
            let share = draws.iter().filter(|draw| **draw == value).count() as f64 / SAMPLES as f64;
            // Four standard deviations of a share of 1/4.
            assert!((share - 0.25).abs() < 4.0 * (0.25_f64 * 0.75 / SAMPLES as f64).sqrt(), "{value}: {share}");
        }
    }

    #[test]
    fn delays_are_never_below_zero_and_never_wrap() {
        let configs = [
            JitterConfig::Normal { scale_ps: SCALE_PS },
            JitterConfig::Uniform { scale_ps: u64::MAX },
            JitterConfig::Pareto { scale_ps: u64::MAX },
            JitterConfig::Table { values_ps: vec![i64::MIN, i64::MAX] },
        ];
        for config in configs {
            let mut jitter = Jitter::new(Some(config.clone()), stream(5, "delay"));
            let base = Duration::from_ps(1000);
            let delays: Vec<Duration> = (0..1000).map(|_| jitter.delay(base)).collect();
            assert!(delays.contains(&Duration::ZERO), "{config:?}");
            assert!(delays.iter().any(|delay| *delay > base), "{config:?}");
            let mut late = Jitter::new(Some(config), stream(5, "delay"));
            assert!((0..1000).all(|_| late.delay(Duration::MAX) > Duration::from_secs(1)));
        }
    }
}
