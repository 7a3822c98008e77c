//! Quantile functions from +, -, x, / and the square root alone, which IEEE 754 defines to the last bit: the same
//! on every machine, whatever its mathematics library.

use std::f64::consts::{LN_2, SQRT_2};

/// The standard normal distribution's quantile for `p` in (0, 1), to about 1e-15.
///
/// M. J. Wichura, *Algorithm AS 241: the percentage points of the normal distribution*, Applied Statistics 37
/// (1988), PPND16.
pub(super) fn normal(p: f64) -> f64 {
    let centred = p - 0.5;
    if centred.abs() <= 0.425 {
        let square = 0.180_625 - centred * centred;
        return centred * polynomial(&CENTRE_NUMERATOR, square) / polynomial(&CENTRE_DENOMINATOR, square);
    }
    let tail = if centred < 0.0 { p } else { 1.0 - p };
    let distance = (-natural_logarithm(tail)).sqrt();
    let magnitude = if distance <= 5.0 {
        let near = distance - 1.6;
        polynomial(&NEAR_NUMERATOR, near) / polynomial(&NEAR_DENOMINATOR, near)
    } else {
        let far = distance - 5.0;
        polynomial(&FAR_NUMERATOR, far) / polynomial(&FAR_DENOMINATOR, far)
    };
    if centred < 0.0 {
        -magnitude
    } else {
        magnitude
    }
}

/// The cube root of `x` in [1, 1000], by Newton's method.
pub(super) fn cube_root(x: f64) -> f64 {
    let mut root = 1.0 + (x - 1.0) / 12.0;
    for _ in 0..24 {
        root = (2.0 * root + x / (root * root)) / 3.0;
    }
    root
}

/// ln(x) for a positive normal number: the exponent's share, and the series of the inverse hyperbolic tangent for
/// the mantissa.
fn natural_logarithm(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let bits = x.to_bits();
    let mut exponent = f64::from(u16::try_from(bits >> 52 & 0x7FF).unwrap_or(1023)) - 1023.0;
    let mut mantissa = f64::from_bits(bits & MANTISSA | ONE);
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1.0;
    }
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    // |ratio| < 0.172: the first term left out is below 1e-18 of the sum.
    let series = (0..12).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    exponent * LN_2 + 2.0 * ratio * series
}

/// Coefficients from the constant on.
fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[rustfmt::skip]
#[allow(clippy::excessive_precision, clippy::unreadable_literal)]
mod coefficients {
    pub(super) const CENTRE_NUMERATOR: [f64; 8] = [
        3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
        4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3,
    ];
    pub(super) const CENTRE_DENOMINATOR: [f64; 8] = [
        1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
        2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3,
    ];
    pub(super) const NEAR_NUMERATOR: [f64; 8] = [
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
        1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
    ];
    pub(super) const NEAR_DENOMINATOR: [f64; 8] = [
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
    ];
    pub(super) const FAR_NUMERATOR: [f64; 8] = [
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
        2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
    ];
    pub(super) const FAR_DENOMINATOR: [f64; 8] = [
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15,
    ];
}
use coefficients::{
    CENTRE_DENOMINATOR, CENTRE_NUMERATOR, FAR_DENOMINATOR, FAR_NUMERATOR, NEAR_DENOMINATOR, NEAR_NUMERATOR,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_agree_with_the_published_checks() {
        // The paper's own: p = 0.25, 0.001, 1e-20.
        for (p, quantile) in
            [(0.25, -0.674_489_750_196_081_7), (0.001, -3.090_232_306_167_814), (1e-20, -9.262_340_089_798_408)]
        {
            assert!((normal(p) - quantile).abs() < 1e-13, "{p}: {}", normal(p));
        }
        assert!(normal(0.5).abs() < f64::EPSILON);
        assert!((normal(0.975) - 1.959_963_984_540_054).abs() < 1e-13);
    }

    #[test]
    fn the_logarithm_and_the_cube_root_agree_with_the_library() {
        for k in 1..2000 {
            let x = f64::from(k) / 2000.0;
            assert!((natural_logarithm(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1.0), "{x}");
            let y = f64::from(k) / 2.0;
            if y >= 1.0 {
                assert!((cube_root(y) - y.cbrt()).abs() < 1e-14, "{y}");
            }
        }
        assert!((natural_logarithm(1e-300) - 1e-300_f64.ln()).abs() < 1e-12);
    }
}
