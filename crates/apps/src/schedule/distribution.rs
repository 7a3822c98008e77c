//! Distributions of gaps and sizes, with their cumulative functions.
//!
//! Each may be cut to `least..=most`: what falls outside is drawn again, so that the rest keeps its shape (the
//! conditional distribution). A distribution of which less than [`LEAST_SHARE`] lies within is refused, which
//! bounds the drawing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{check_range, ConfigError};
use crate::schedule::random::Stream;

/// The least share of a distribution that must lie within its bounds.
const LEAST_SHARE: f64 = 0.01;
/// Draws until the bounds are used instead: after so many the chance of still being outside is below 1e-17.
const MOST_DRAWS: u32 = 4096;
/// The largest parameter.
const MOST_PARAMETER: f64 = 1e18;
/// The smallest of a parameter that is above zero.
const LEAST_POSITIVE: f64 = 1e-3;
/// Shapes of Pareto, gamma and Weibull.
const SHAPES: (f64, f64) = (0.05, 1000.0);

/// A distribution, before it is cut. Parameters are in the unit of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "snake_case")]
pub enum Shape {
    /// One value.
    Constant {
        /// It.
        #[schemars(range(min = 0.0, max = MOST_PARAMETER))]
        value: f64,
    },
    /// Evenly between two values.
    Uniform {
        /// The lower.
        #[schemars(range(min = 0.0, max = MOST_PARAMETER))]
        low: f64,
        /// The upper.
        #[schemars(range(min = 0.0, max = MOST_PARAMETER))]
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        #[schemars(range(min = LEAST_POSITIVE, max = MOST_PARAMETER))]
        mean: f64,
    },
    /// Normal.
    Normal {
        /// The mean.
        #[schemars(range(min = -MOST_PARAMETER, max = MOST_PARAMETER))]
        mean: f64,
        /// The standard deviation.
        #[schemars(range(min = LEAST_POSITIVE, max = MOST_PARAMETER))]
        std: f64,
    },
    /// Lognormal, by the mean and standard deviation of the values themselves.
    Lognormal {
        /// The mean.
        #[schemars(range(min = LEAST_POSITIVE, max = MOST_PARAMETER))]
        mean: f64,
        /// The standard deviation.
        #[schemars(range(min = LEAST_POSITIVE, max = MOST_PARAMETER))]
        std: f64,
    },
    /// Pareto of the first kind: never below its scale.
    Pareto {
        /// The tail's index; up to 1 there is no mean, up to 2 no variance.
        #[schemars(range(min = SHAPES.0, max = SHAPES.1))]
        shape: f64,
        /// The least value.
        #[schemars(range(min = LEAST_POSITIVE, max = MOST_PARAMETER))]
        scale: f64,
    },
    /// Cauchy: neither mean nor variance before it is cut.
    Cauchy {
        /// The median.
        #[schemars(range(min = -MOST_PARAMETER, max = MOST_PARAMETER))]
        location: f64,
        /// Half the distance between the quartiles.
        #[schemars(range(min = LEAST_POSITIVE, max = MOST_PARAMETER))]
        scale: f64,
    },
    /// Gamma.
    Gamma {
        /// The shape.
        #[schemars(range(min = SHAPES.0, max = SHAPES.1))]
        shape: f64,
        /// The scale: the mean is shape times scale.
        #[schemars(range(min = LEAST_POSITIVE, max = MOST_PARAMETER))]
        scale: f64,
    },
    /// Weibull.
    Weibull {
        /// The shape.
        #[schemars(range(min = SHAPES.0, max = SHAPES.1))]
        shape: f64,
        /// The scale.
        #[schemars(range(min = LEAST_POSITIVE, max = MOST_PARAMETER))]
        scale: f64,
    },
}

/// A distribution, cut to bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// The shape and its parameters.
    #[serde(flatten)]
    pub shape: Shape,
    /// The least value: one below is drawn again; null: the least that the field allows.
    #[serde(default)]
    pub least: Option<f64>,
    /// The greatest value: one above is drawn again; null: the greatest that the field allows.
    #[serde(default)]
    pub most: Option<f64>,
}

/// Mean and deviation of the logarithm of a lognormal variable with the given ones.
fn logarithmic(mean: f64, std: f64) -> (f64, f64) {
    let variance = (std / mean).powi(2).ln_1p();
    (mean.ln() - variance / 2.0, variance.sqrt())
}

impl Shape {
    /// A draw.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match *self {
            Self::Constant { value } => value,
            Self::Uniform { low, high } => low + (high - low) * stream.uniform(),
            Self::Exponential { mean } => -mean * stream.uniform().ln(),
            Self::Normal { mean, std } => mean + std * stream.normal(),
            Self::Lognormal { mean, std } => {
                let (location, deviation) = logarithmic(mean, std);
                (location + deviation * stream.normal()).exp()
            }
            Self::Pareto { shape, scale } => scale * stream.uniform().powf(-1.0 / shape),
            Self::Cauchy { location, scale } => {
                location + scale * (std::f64::consts::PI * (stream.uniform() - 0.5)).tan()
            }
            Self::Gamma { shape, scale } => scale * stream.gamma(shape),
            Self::Weibull { shape, scale } => scale * (-stream.uniform().ln()).powf(1.0 / shape),
        }
    }

    /// The share of values that are no greater than `value`.
    #[must_use]
    pub fn cumulative(&self, value: f64) -> f64 {
        match *self {
            Self::Constant { value: only } => f64::from(u8::from(value >= only)),
            Self::Uniform { low, high } if high > low => ((value - low) / (high - low)).clamp(0.0, 1.0),
            Self::Uniform { low, .. } => f64::from(u8::from(value >= low)),
            Self::Exponential { mean } => 1.0 - (-value.max(0.0) / mean).exp(),
            Self::Normal { mean, std } => normal_share((value - mean) / std),
            Self::Lognormal { mean, std } => {
                let (location, deviation) = logarithmic(mean, std);
                if value <= 0.0 {
                    0.0
                } else {
                    normal_share((value.ln() - location) / deviation)
                }
            }
            Self::Pareto { shape, scale } => {
                if value <= scale {
                    0.0
                } else {
                    1.0 - (scale / value).powf(shape)
                }
            }
            Self::Cauchy { location, scale } => 0.5 + ((value - location) / scale).atan() / std::f64::consts::PI,
            Self::Gamma { shape, scale } => gamma_share(shape, value / scale),
            Self::Weibull { shape, scale } => 1.0 - (-(value.max(0.0) / scale).powf(shape)).exp(),
        }
    }

    fn check(&self, kind: &'static str, field: &'static str) -> Result<(), ConfigError> {
        let positive = |value: f64| check_range(kind, field, value, LEAST_POSITIVE, MOST_PARAMETER);
        let any = |value: f64| check_range(kind, field, value, -MOST_PARAMETER, MOST_PARAMETER);
        let bent = |shape: f64| check_range(kind, field, shape, SHAPES.0, SHAPES.1);
        match *self {
            Self::Constant { value } => check_range(kind, field, value, 0.0, MOST_PARAMETER),
            Self::Uniform { low, high } => {
                check_range(kind, field, low, 0.0, MOST_PARAMETER)?;
                check_range(kind, field, high, low, MOST_PARAMETER)
            }
            Self::Exponential { mean } => positive(mean),
            Self::Normal { mean, std } => any(mean).and_then(|()| positive(std)),
            Self::Lognormal { mean, std } => positive(mean).and_then(|()| positive(std)),
            Self::Cauchy { location, scale } => any(location).and_then(|()| positive(scale)),
            Self::Pareto { shape, scale } | Self::Gamma { shape, scale } | Self::Weibull { shape, scale } => {
                bent(shape).and_then(|()| positive(scale))
            }
        }
    }
}

impl Distribution {
    /// Refuses impossible parameters, and bounds that leave almost nothing of it within `allowed`.
    pub(crate) fn check(
        &self,
        kind: &'static str,
        field: &'static str,
        allowed: (f64, f64),
    ) -> Result<(), ConfigError> {
        self.shape.check(kind, field)?;
        let (least, most) = (self.least.unwrap_or(allowed.0), self.most.unwrap_or(allowed.1));
        check_range(kind, field, least, allowed.0, allowed.1)?;
        check_range(kind, field, most, least, allowed.1)?;
        let within = match self.shape {
            Shape::Constant { value } => f64::from(u8::from(value >= least && value <= most)),
            shape => shape.cumulative(most) - shape.cumulative(least),
        };
        if within >= LEAST_SHARE {
            return Ok(());
        }
        Err(ConfigError::OutOfRange {
            kind,
            field,
            given: format!("a distribution with {:.3} % of its values from {least} to {most}", within * 100.0),
            allowed: format!("one with at least 1 % of them there, and bounds from {} to {}", allowed.0, allowed.1),
        })
    }

    /// A draw within the bounds, those of the field where it has none of its own.
    pub fn draw(&self, stream: &mut Stream, allowed: (f64, f64)) -> f64 {
        let (least, most) = (self.least.unwrap_or(allowed.0), self.most.unwrap_or(allowed.1));
        let mut value = least;
        for _ in 0..MOST_DRAWS {
            value = self.shape.draw(stream);
            if value >= least && value <= most {
                break;
            }
        }
        if value.is_nan() {
            return least;
        }
        value.max(least).min(most)
    }

    /// A constant.
    #[must_use]
    pub const fn constant(value: f64) -> Self {
        Self { shape: Shape::Constant { value }, least: None, most: None }
    }
}

/// The standard normal distribution's share up to `value`: by the error function, which is an incomplete gamma
/// function.
fn normal_share(value: f64) -> f64 {
    let half = gamma_share(0.5, value * value / 2.0) / 2.0;
    if value < 0.0 {
        0.5 - half
    } else {
        0.5 + half
    }
}

/// The regularised lower incomplete gamma function P(shape, value): by its series below `shape + 1`, above by the
/// continued fraction (Abramowitz and Stegun 6.5.29 and 6.5.31, evaluated by Lentz's method).
fn gamma_share(shape: f64, value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    if value.is_infinite() {
        return 1.0;
    }
    const ROUNDS: u32 = 10_000;
    const ENOUGH: f64 = 1e-15;
    let front = (shape * value.ln() - value - ln_gamma(shape)).exp();
    if value < shape + 1.0 {
        let (mut term, mut sum, mut divisor) = (1.0 / shape, 1.0 / shape, shape);
        for _ in 0..ROUNDS {
            divisor += 1.0;
            term *= value / divisor;
            sum += term;
            if term < sum * ENOUGH {
                break;
            }
        }
        return (front * sum).min(1.0);
    }
    const TINY: f64 = 1e-300;
    let mut b = value + 1.0 - shape;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut fraction = d;
    for round in 1..ROUNDS {
        let i = f64::from(round);
        let a = -i * (i - shape);
        b += 2.0;
        let steer = |value: f64| if value.abs() < TINY { TINY } else { value };
        d = 1.0 / steer(a * d + b);
        c = steer(b + a / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < ENOUGH {
            break;
        }
    }
    (1.0 - front * fraction).clamp(0.0, 1.0)
}

/// The logarithm of the gamma function for positive arguments (Lanczos 1964, g = 7, 9 terms): within 1e-14.
fn ln_gamma(value: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if value < 0.5 {
        return (std::f64::consts::PI / (std::f64::consts::PI * value).sin()).ln() - ln_gamma(1.0 - value);
    }
    let x = value - 1.0;
    let base = x + 7.5;
    let sum = TERMS.iter().enumerate().skip(1).fold(TERMS[0], |sum, (i, term)| sum + term / (x + i as f64));
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Distance of a sample from a distribution, by Kolmogorov and Smirnov.
    pub(crate) fn distance(mut sample: Vec<f64>, cumulative: impl Fn(f64) -> f64) -> f64 {
        sample.sort_by(f64::total_cmp);
        let count = sample.len() as f64;
        let gap = |(rank, value): (usize, &f64)| {
            let theory = cumulative(*value);
            (theory - rank as f64 / count).abs().max(((rank + 1) as f64 / count - theory).abs())
        };
        sample.iter().enumerate().map(gap).fold(0.0, f64::max)
    }

    /// One of each that is continuous, of mean or median about 1000.
    pub(crate) const SHAPES_OF_EACH: [Shape; 8] = [
        Shape::Uniform { low: 500.0, high: 1500.0 },
        Shape::Exponential { mean: 1000.0 },
        Shape::Normal { mean: 1000.0, std: 400.0 },
        Shape::Lognormal { mean: 1000.0, std: 300.0 },
        Shape::Pareto { shape: 1.5, scale: 400.0 },
        Shape::Cauchy { location: 1000.0, scale: 200.0 },
        Shape::Gamma { shape: 0.5, scale: 2000.0 },
        Shape::Weibull { shape: 0.7, scale: 1000.0 },
    ];

    #[test]
    fn draws_have_their_distribution_by_kolmogorov_and_smirnov_also_when_cut() {
        for (shape, cut) in SHAPES_OF_EACH.iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            let bounds = if cut { (600.0, 2000.0) } else { (0.0, 1e15) };
            let distribution = Distribution { shape: *shape, least: None, most: None };
            distribution.check("x", "y", bounds).unwrap();
            let mut stream = Stream::new(11);
            let sample: Vec<f64> = (0..10_000).map(|_| distribution.draw(&mut stream, bounds)).collect();
            let (low, high) = (shape.cumulative(bounds.0), shape.cumulative(bounds.1));
            let far = distance(sample, |value| (shape.cumulative(value) - low) / (high - low));
            // The critical value at the 0.1 % level.
            assert!(far < 1.95 / 100.0, "{shape:?} cut {cut}: {far}");
        }
    }

    #[test]
    fn cumulative_functions_agree_with_published_tables() {
        // Normal and gamma from Abramowitz and Stegun, tables 26.1 and 26.7 (chi-square 3.841 with one degree: 95 %).
        let normal = Shape::Normal { mean: 0.0, std: 1.0 };
        for (value, share) in [(-1.96, 0.024_997_895), (0.0, 0.5), (1.0, 0.841_344_746), (3.0, 0.998_650_102)] {
            assert!((normal.cumulative(value) - share).abs() < 1e-8, "{value}");
        }
        let gamma = Shape::Gamma { shape: 0.5, scale: 2.0 };
        assert!((gamma.cumulative(3.841_458_82) - 0.95).abs() < 1e-8);
        // With shape 2: 1 - (1 + x) exp(-x).
        let second = Shape::Gamma { shape: 2.0, scale: 1.0 };
        assert!((second.cumulative(5.0) - (1.0 - 6.0 * (-5.0_f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_with_the_field_and_its_range() {
        let check = |shape: Shape, least, most| {
            let refusal = Distribution { shape, least, most }.check("udp_source", "gap_ps", (0.0, 1e6));
            refusal.unwrap_err().to_string()
        };
        let told = check(Shape::Normal { mean: 1000.0, std: -1.0 }, None, None);
        assert_eq!(told, "udp_source: gap_ps is -1; allowed is 0.001 to 1000000000000000000");
        assert!(check(Shape::Exponential { mean: f64::NAN }, None, None).contains("NaN"));
        assert!(check(Shape::Exponential { mean: 1.0 }, Some(50.0), None).contains("at least 1 %"));
        assert!(check(Shape::Constant { value: 5.0 }, Some(6.0), None).contains("at least 1 %"));
        assert!(check(Shape::Uniform { low: 9.0, high: 3.0 }, None, None).contains("allowed is 9 to"));
        assert!(check(Shape::Pareto { shape: 0.0, scale: 3.0 }, None, None).contains("0.05 to 1000"));
    }
}
