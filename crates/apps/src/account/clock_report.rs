//! The columns of a comparison of two clocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The comparison of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReport {
    /// The server's clock less the client's, in picoseconds.
    pub offset_ps: i64,
    /// The offset is wrong by at most this.
    pub bound_ps: u64,
    /// `true` if both have one clock: then the offset is exactly zero.
    pub same_clock: bool,
    /// Exchanges that were answered.
    pub exchanges: u32,
}
