//! The ranges of what describes an app: what is refused, and how it is told.

use std::fmt::Display;

use thiserror::Error;

/// Why a description of an app was refused: what was given and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A field is outside of its range.
    #[error("{kind}: {field} is {given}; allowed is {allowed}")]
    OutOfRange {
        /// The app's kind.
        kind: &'static str,
        /// The field.
        field: &'static str,
        /// The value that it held.
        given: String,
        /// The values that it may hold.
        allowed: String,
    },
    /// Of two fields that exclude each other, both or none were given: give exactly one.
    #[error("{kind}: exactly one of {first} and {second} is needed; {given} given")]
    ExactlyOne {
        /// The app's kind.
        kind: &'static str,
        /// One of the two fields.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// `both were` or `none was`.
        given: &'static str,
    },
    /// Of several fields that exclude each other, several or none were given: give exactly one.
    #[error("{kind}: exactly one of {fields} is needed; {given} given")]
    OneOf {
        /// The app's kind.
        kind: &'static str,
        /// The fields.
        fields: String,
        /// Those that were given, or `none was`.
        given: String,
    },
}

/// Shortest interval of counting: 1 ms.
pub(crate) const INTERVAL_LEAST_PS: u64 = 1_000_000_000;
/// Longest interval of counting: 1 h.
pub(crate) const INTERVAL_MOST_PS: u64 = 3_600_000_000_000_000;

/// Refuses `given` outside of `least..=most`.
pub(crate) fn check_range<T: PartialOrd + Display>(
    kind: &'static str,
    field: &'static str,
    given: T,
    least: T,
    most: T,
) -> Result<(), ConfigError> {
    if given >= least && given <= most {
        return Ok(());
    }
    Err(ConfigError::OutOfRange { kind, field, given: given.to_string(), allowed: format!("{least} to {most}") })
}

/// Refuses port 0 where a port must be known.
pub(crate) fn check_port(kind: &'static str, port: u16) -> Result<(), ConfigError> {
    check_range(kind, "port", port, 1, u16::MAX)
}

/// Refuses an interval of counting that would need unreasonable memory or never end.
pub(crate) fn check_interval(kind: &'static str, interval_ps: u64) -> Result<(), ConfigError> {
    check_interval_of(kind, "interval_ps", interval_ps)
}

/// As [`check_interval`], for an interval of another name.
pub(crate) fn check_interval_of(kind: &'static str, field: &'static str, interval_ps: u64) -> Result<(), ConfigError> {
    check_range(kind, field, interval_ps, INTERVAL_LEAST_PS, INTERVAL_MOST_PS)
}

/// Refuses an MTU that no path has: below IPv4's least (RFC 791) or above the longest packet.
pub(crate) fn check_path_mtu(kind: &'static str, mtu_bytes: Option<u32>) -> Result<(), ConfigError> {
    mtu_bytes.map_or(Ok(()), |mtu| check_range(kind, "mtu_bytes", mtu, 68, 65_535))
}

/// Refuses what cannot be the name of a congestion control: the kernel's names have at most 15 bytes.
pub(crate) fn check_congestion_control(kind: &'static str, name: Option<&str>) -> Result<(), ConfigError> {
    let fits = |name: &str| (1..=15).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    match name.filter(|name| !fits(name)) {
        None => Ok(()),
        Some(name) => Err(ConfigError::OutOfRange {
            kind,
            field: "congestion_control",
            given: format!("{name:?}"),
            allowed: "a name of 1 to 15 letters, such as \"cubic\"".to_owned(),
        }),
    }
}

/// Refuses both and none of two fields that exclude each other.
pub(crate) fn check_exactly_one(
    kind: &'static str,
    (first, first_given): (&'static str, bool),
    (second, second_given): (&'static str, bool),
) -> Result<(), ConfigError> {
    exactly_one(kind, (first, first_given.then_some(())), (second, second_given.then_some(())))
}

/// The one that was given of two fields that exclude each other.
pub(crate) fn exactly_one<T>(
    kind: &'static str,
    (first, one): (&'static str, Option<T>),
    (second, other): (&'static str, Option<T>),
) -> Result<T, ConfigError> {
    let given = match (one, other) {
        (Some(value), None) | (None, Some(value)) => return Ok(value),
        (Some(_), Some(_)) => "both were",
        (None, None) => "none was",
    };
    Err(ConfigError::ExactlyOne { kind, first, second, given })
}

/// The one that was given of fields that exclude each other: none and several are refused.
pub(crate) fn one_of<T, const N: usize>(
    kind: &'static str,
    fields: [(&'static str, Option<T>); N],
) -> Result<T, ConfigError> {
    let names = fields.each_ref().map(|(name, given)| (*name, given.is_some()));
    let mut given = fields.into_iter().filter_map(|(_, value)| value);
    match (given.next(), given.next()) {
        (Some(value), None) => Ok(value),
        _ => Err(not_one_of(kind, &names)),
    }
}

/// Refuses `other` fields beside `first`, which was given and excludes them.
pub(crate) fn check_alone(
    kind: &'static str,
    first: &'static str,
    other: &[(&'static str, bool)],
) -> Result<(), ConfigError> {
    if !other.iter().any(|(_, given)| *given) {
        return Ok(());
    }
    let all: Vec<(&str, bool)> = [(first, true)].into_iter().chain(other.iter().copied()).collect();
    Err(not_one_of(kind, &all))
}

fn not_one_of(kind: &'static str, fields: &[(&'static str, bool)]) -> ConfigError {
    let given: Vec<&str> = fields.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let given = if given.is_empty() { "none was".to_owned() } else { format!("{} were", given.join(" and ")) };
    ConfigError::OneOf { kind, fields: names.join(", "), given }
}

/// Refuses what is no code point of differentiated services.
pub(crate) fn check_dscp(kind: &'static str, dscp: Option<u8>) -> Result<(), ConfigError> {
    dscp.map_or(Ok(()), |dscp| check_range(kind, "dscp", dscp, 0, 63))
}
