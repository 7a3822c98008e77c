//! The times at which an app sends, and how much: processes, distributions, sizes, each from a seeded stream.

pub(crate) mod distribution;
pub(crate) mod process;
pub(crate) mod profile;
pub(crate) mod random;
pub(crate) mod sizes;
