//! A column of a report that some kinds of flows do not have.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The contents of a column. On the wire an absent column has no key and an empty one is null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Column<T> {
    /// This kind of flow has no such column.
    #[default]
    Absent,
    /// There is nothing to tell yet.
    Empty,
    /// The value.
    Told(T),
}

impl<T> Column<T> {
    /// Returns `true` if this kind of flow has no such column.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value, if there is one.
    pub const fn told(&self) -> Option<&T> {
        match self {
            Self::Told(value) => Some(value),
            Self::Absent | Self::Empty => None,
        }
    }
}

impl<T> From<Option<T>> for Column<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Self::Told)
    }
}

impl<T: Serialize> Serialize for Column<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.told().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Column<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::from)
    }
}

impl<T: JsonSchema> JsonSchema for Column<T> {
    fn inline_schema() -> bool {
        Option::<T>::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}
