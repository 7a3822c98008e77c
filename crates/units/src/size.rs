//! Amounts of data in bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Size(u64);

impl Size {
    /// `bytes` bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Bytes.
    #[must_use]
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, scale) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)] {
            if self.0 >= scale {
                return crate::parse::write_scaled(f, self.0, scale, unit);
            }
        }
        write!(f, "{} B", self.0)
    }
}
