//! The report of a viewer of video: how much was played at which rate, and where it stood still.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session of video in segments, up to the moment of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VideoReport {
    /// Media that was played.
    pub played_ps: u64,
    /// From the beginning to the first picture; null when there was none yet.
    pub startup_ps: Option<u64>,
    /// The number of times it stood still for want of media, after it had begun.
    pub stalls: u64,
    /// The time that it stood still in all.
    pub stalled_ps: u64,
    /// Changes of quality between segments that follow each other.
    pub switches: u64,
    /// The mean rate of the media that was played, in bits per second; null when none was.
    pub rate_bps: Option<f64>,
    /// Media that was played at each rate of the ladder, from the lowest.
    pub played_at: Vec<PlayedAt>,
}

/// A rate of the ladder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlayedAt {
    /// The rate.
    pub rate_bps: u64,
    /// The time that was played of it.
    pub played_ps: u64,
}
