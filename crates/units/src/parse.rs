//! Text to quantities: a decimal number, then a unit. Exact: no floating point in between. Only a number that floating
//! point has left, by its many digits, is rounded to the smallest unit.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::{Duration, Rate, Size};

/// Why a text is not a quantity. The message says what was given and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The text does not begin with a decimal number.
    #[error("{given:?} does not begin with a decimal number; write for example {example:?}")]
    NoNumber {
        /// The text as it was given.
        given: String,
        /// A text that would be accepted.
        example: &'static str,
    },
    /// A number without a unit.
    #[error("{given:?} has no unit; write for example {example:?} (units: {allowed})")]
    NoUnit {
        /// The text as it was given.
        given: String,
        /// A text that would be accepted.
        example: &'static str,
        /// The units that are known.
        allowed: &'static str,
    },
    /// A unit that is not known for this kind of quantity.
    #[error("{given:?} has the unknown unit {unit:?}; known are {allowed}")]
    UnknownUnit {
        /// The text as it was given.
        given: String,
        /// The unit in it.
        unit: String,
        /// The units that are known.
        allowed: &'static str,
    },
    /// A negative number.
    #[error("{given:?} is negative")]
    Negative {
        /// The text as it was given.
        given: String,
    },
    /// A number too large, too fine, or zero where zero has no meaning.
    #[error("{given:?} is out of range: {why}")]
    OutOfRange {
        /// The text as it was given.
        given: String,
        /// The allowed range.
        why: &'static str,
    },
}

struct Kind {
    example: &'static str,
    allowed: &'static str,
    units: &'static [(&'static str, u64)],
}

const DURATION: Kind = Kind {
    example: "5 ms",
    allowed: "ps, ns, us, ms, s, min, h",
    units: &[
        ("ps", 1),
        ("ns", 1000),
        ("us", 1_000_000),
        ("µs", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("sec", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
        ("h", 3_600_000_000_000_000),
    ],
};

const RATE: Kind = Kind {
    example: "10 Mbit",
    allowed: "bit, kbit, Mbit, Gbit, Tbit (per second; \"/s\" or \"ps\" may follow)",
    units: &[
        ("bit", 1),
        ("kbit", 1000),
        ("Kbit", 1000),
        ("Mbit", 1_000_000),
        ("Gbit", 1_000_000_000),
        ("Tbit", 1_000_000_000_000),
    ],
};

const SIZE: Kind = Kind {
    example: "1500 B",
    allowed: "B, kB, MB, GB, TB, KiB, MiB, GiB",
    units: &[
        ("B", 1),
        ("kB", 1000),
        ("KB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
};

/// Digits of a number that only binary floating point has left: 15 tell a decimal number (`DBL_DIG` of C).
const BINARY_DIGITS: usize = 16;
/// Digits behind the point that are read.
const MOST_DIGITS: usize = 18;

/// Reads `text` as a multiple of the smallest unit of `kind`, exactly.
fn parse(text: &str, kind: &Kind, unit_of: impl Fn(&str) -> String) -> Result<u64, ParseError> {
    let given = || text.chars().take(60).collect::<String>();
    let trimmed = text.trim();
    let unsigned = trimmed.strip_prefix('+').unwrap_or(trimmed);
    if let Some(rest) = trimmed.strip_prefix('-') {
        if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Err(ParseError::Negative { given: given() });
        }
    }
    let number_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, unit) = (&unsigned[..number_end], unsigned[number_end..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(ParseError::NoNumber { given: given(), example: kind.example });
    }
    if unit.is_empty() {
        return Err(ParseError::NoUnit { given: given(), example: kind.example, allowed: kind.allowed });
    }
    let wanted = unit_of(unit);
    let Some(&(_, scale)) = kind.units.iter().find(|(name, _)| *name == wanted) else {
        let unit = unit.chars().take(40).collect();
        return Err(ParseError::UnknownUnit { given: given(), unit, allowed: kind.allowed });
    };
    let too_large = || ParseError::OutOfRange { given: given(), why: "the number is too large" };
    let too_fine = || ParseError::OutOfRange { given: given(), why: "it is finer than the smallest unit" };
    let fraction = fraction.trim_end_matches('0');
    let mut value = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| too_large())? };
    value = value.checked_mul(scale).ok_or_else(too_large)?;
    if !fraction.is_empty() {
        let significant = [whole, fraction].concat().trim_start_matches('0').len();
        // What is left of a number of a program, such as 0.1 + 0.2, is rounded.
        let binary = significant >= BINARY_DIGITS;
        let kept = if binary { &fraction[..fraction.len().min(MOST_DIGITS)] } else { fraction };
        let digits = u32::try_from(kept.len()).ok().filter(|&n| n as usize <= MOST_DIGITS).ok_or_else(too_fine)?;
        let numerator = u128::from(kept.parse::<u64>().map_err(|_| too_fine())?) * u128::from(scale);
        let denominator = 10_u128.pow(digits);
        if numerator % denominator != 0 && !binary {
            return Err(too_fine());
        }
        let part = u64::try_from((numerator + denominator / 2) / denominator).map_err(|_| too_large())?;
        value = value.checked_add(part).ok_or_else(too_large)?;
    }
    Ok(value)
}

impl FromStr for Duration {
    type Err = ParseError;
    /// A duration such as `5 ms`, `1.5s`, `50 us`; never negative.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text, &DURATION, str::to_owned).map(Self::from_ps)
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    /// A rate such as `10 Mbit`, `1Gbit/s`, `512 kbps`; never zero.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let value = parse(text, &RATE, |unit| {
            let base = unit.strip_suffix("/s").unwrap_or(unit);
            match base.strip_suffix("bps") {
                Some(prefix) if base == unit => format!("{prefix}bit"),
                _ => base.to_owned(),
            }
        })?;
        Self::from_bps(value)
            .ok_or_else(|| ParseError::OutOfRange { given: text.to_owned(), why: "a rate is above zero" })
    }
}

impl FromStr for Size {
    type Err = ParseError;
    /// A size such as `1500 B`, `64 KiB`, `400 MB`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text, &SIZE, str::to_owned).map(Self::from_bytes)
    }
}

/// Writes `value / scale` without trailing zeros, then the unit.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, scale: u64, unit: &str) -> fmt::Result {
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole} {unit}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(f, "{whole}.{} {unit}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_parse_with_and_without_a_space() {
        assert_eq!("10 Mbit".parse::<Rate>().unwrap().as_bps(), 10_000_000);
        assert_eq!("1Gbit/s".parse::<Rate>().unwrap().as_bps(), 1_000_000_000);
        assert_eq!("512 kbps".parse::<Rate>().unwrap().as_bps(), 512_000);
        assert_eq!("1.5ms".parse::<Duration>().unwrap(), Duration::from_us(1500));
        assert_eq!("400 MB".parse::<Size>().unwrap().as_bytes(), 400_000_000);
    }

    #[test]
    fn what_floating_point_leaves_is_rounded_and_what_somebody_wrote_is_not() {
        for (text, ps) in [
            ("0.30000000000000004 s", 300_000_000_000),
            ("12.400000000000002 s", 12_400_000_000_000),
            ("0.00030000000000000003 s", 300_000_000),
            ("0.29999999999999999 ms", 300_000_000),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap().as_ps(), ps, "{text}");
        }
        assert_eq!("0.30000000000000004 Mbit".parse::<Rate>().unwrap().as_bps(), 300_000);
        assert!(matches!("0.3000000000004 s".parse::<Duration>(), Err(ParseError::OutOfRange { .. })));
    }

    #[test]
    fn a_bare_number_is_refused_with_the_units_that_exist() {
        let error = "10".parse::<Rate>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"10\" has no unit; write for example \"10 Mbit\" (units: bit, kbit, Mbit, Gbit, Tbit (per \
             second; \"/s\" or \"ps\" may follow))"
        );
    }

    #[test]
    fn nonsense_is_refused_by_kind() {
        assert!(matches!("-5ms".parse::<Duration>(), Err(ParseError::Negative { .. })));
        assert!(matches!("fast".parse::<Rate>(), Err(ParseError::NoNumber { .. })));
        assert!(matches!("5 parsecs".parse::<Duration>(), Err(ParseError::UnknownUnit { .. })));
        assert!(matches!("0 Mbit".parse::<Rate>(), Err(ParseError::OutOfRange { .. })));
        assert!(matches!("1.5 B".parse::<Size>(), Err(ParseError::OutOfRange { .. })));
        assert!(matches!("99999999999 h".parse::<Duration>(), Err(ParseError::OutOfRange { .. })));
        assert!(matches!("1..5 s".parse::<Duration>(), Err(ParseError::NoNumber { .. })));
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(ps in any::<u64>(), bps in 1..u64::MAX) {
            let duration = Duration::from_ps(ps);
            prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
            let rate = Rate::from_bps(bps).unwrap();
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (text.parse::<Duration>(), text.parse::<Rate>(), text.parse::<Size>());
        }
    }
}
