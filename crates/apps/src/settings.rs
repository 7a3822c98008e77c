//! Settings that are said once: name, type, range, default and text. The struct, its schema and its check come of that.

use crate::check::{check_range, ConfigError};

/// Declares a struct of settings: `name: type [least, most] = usual`, the range where there is one. `check_ranges` of
/// the struct refuses what is outside of them, in the order of the settings; files may leave any of them out.
macro_rules! settings {
    (
        $(#[$about:meta])* pub struct $name:ident;
        $($(#[$meta:meta])* $field:ident: $kind:ty $([$least:expr, $most:expr])? = $usual:expr),* $(,)?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$meta])* $(#[schemars(range(min = $least, max = $most))])? pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $usual),* }
            }
        }

        impl $name {
            pub(crate) fn check_ranges(&self, kind: &'static str) -> Result<(), $crate::check::ConfigError> {
                $($($crate::settings::Ranged::check(self.$field, kind, stringify!($field), $least, $most)?;)?)*
                Ok(())
            }
        }
    };
}

/// A value that has a range, or may be missing.
pub(crate) trait Ranged {
    /// The type of the ends of the range.
    type End;

    /// Refuses a value that is there and outside of `least..=most`.
    fn check(
        self,
        kind: &'static str,
        field: &'static str,
        least: Self::End,
        most: Self::End,
    ) -> Result<(), ConfigError>;
}

impl<T: Number> Ranged for T {
    type End = T;

    fn check(self, kind: &'static str, field: &'static str, least: T, most: T) -> Result<(), ConfigError> {
        check_range(kind, field, self, least, most)
    }
}

impl<T: Number> Ranged for Option<T> {
    type End = T;

    fn check(self, kind: &'static str, field: &'static str, least: T, most: T) -> Result<(), ConfigError> {
        self.map_or(Ok(()), |given| check_range(kind, field, given, least, most))
    }
}

/// A number that a setting may be.
pub(crate) trait Number: PartialOrd + std::fmt::Display {}

impl Number for u32 {}
impl Number for u64 {}
impl Number for f64 {}

#[cfg(test)]
mod tests {
    settings! {
        /// Settings of a test.
        pub struct Given;

        /// A number.
        count: u32 [2, 5] = 3,
        /// A number that may be missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<f64> [1.0, 1e3] = None,
        /// Anything.
        on: bool = true,
    }

    fn given(json: &str) -> Given {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_is_not_given_is_as_usual() {
        assert_eq!(given("{}"), Given { count: 3, rate: None, on: true });
        assert!(serde_json::from_str::<Given>(r#"{"cuont": 3}"#).is_err());
    }

    #[test]
    fn a_value_outside_of_its_range_is_refused_by_name_and_a_missing_one_is_not() {
        assert_eq!(given("{}").check_ranges("test"), Ok(()));
        let refused = |json| given(json).check_ranges("test").unwrap_err().to_string();
        assert_eq!(refused(r#"{"count": 6}"#), "test: count is 6; allowed is 2 to 5");
        assert_eq!(refused(r#"{"rate": 0.5}"#), "test: rate is 0.5; allowed is 1 to 1000");
    }

    #[test]
    fn the_schema_has_the_same_ranges_and_defaults() {
        let schema = serde_json::to_value(schemars::schema_for!(Given)).unwrap();
        let count = &schema["properties"]["count"];
        assert_eq!((&count["minimum"], &count["maximum"], &count["default"]), (&2.into(), &5.into(), &3.into()));
        assert_eq!(schema["properties"]["rate"]["maximum"], 1e3);
        assert_eq!(schema["additionalProperties"], false);
    }
}
