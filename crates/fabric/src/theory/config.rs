//! The input of an experiment, and the limits of it.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use twinnet_queue::QueueConfig;

use crate::line::DirectionConfig;
use crate::BuildError;

/// Frames of one experiment: each takes 24 bytes until the end.
pub const MOST_FRAMES: u64 = 10_000_000;
/// Frames of an experiment that returns a record of each.
pub const MOST_RECORDS: u64 = 1_000_000;
/// A frame carries its number.
pub(super) const LEAST_BYTES: u32 = 8;
/// As long as times of a million frames at a bit a second still fit.
const LONGEST_GAP_PS: f64 = 1e15;
const MOST_SOURCES: usize = 1024;
const MOST_BATCHES: u64 = 10_000;

/// A port, what arrives there, and what is to be told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortExperiment {
    /// Of all random streams: those of the sources, named by their place, and those of the link.
    pub seed: u64,
    /// The serialiser and the line behind the queue.
    pub direction: DirectionConfig,
    /// The queue in which frames wait for the serialiser.
    pub queue: QueueConfig,
    /// The sources of arrivals. Frames of one moment arrive in the order of their sources: here is no tie rule.
    pub sources: Vec<SourceConfig>,
    /// Into how many parts of equally many frames, in the order of arrival, the means are divided.
    pub batches: u64,
    /// `true` to return a record of every frame.
    #[serde(default)]
    pub records: bool,
}

/// A process of arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The number of frames that it sends.
    pub frames: u64,
    /// The time when it begins; its first frame comes a gap later.
    #[serde(default)]
    pub start_ps: u64,
    /// Between arrivals, in picoseconds.
    pub gap_ps: Draw,
    /// Of a frame as the link layer counts it.
    pub size_bytes: Draw,
    /// The queue number of its frames.
    #[serde(default)]
    pub queue: u32,
}

/// A law from which whole numbers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "snake_case", deny_unknown_fields)]
pub enum Draw {
    /// Always the same.
    Constant {
        /// The number.
        value: u64,
    },
    /// An exponential variable of this mean, rounded up, and then limited: for whole numbers a geometric law with
    /// the probability mass of its ends at them.
    Exponential {
        /// Of the variable before it is rounded.
        mean: f64,
        /// The least value; what is drawn below it becomes this.
        least: u64,
        /// The greatest value; what is drawn above it becomes this.
        most: u64,
    },
}

/// An experiment cannot be made: change what `field` names.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// A value is out of its range.
    #[error("{field}: got {value}; allowed is {allowed}")]
    Value {
        /// The field, as keys joined by dots.
        field: String,
        /// The value that stands there.
        value: String,
        /// The values that may stand there.
        allowed: String,
    },
    /// The queue or an impairment is refused.
    #[error(transparent)]
    Build(#[from] BuildError),
}

fn check<T: PartialOrd + ToString>(field: &str, value: T, least: T, most: T) -> Result<(), ExperimentError> {
    if value >= least && value <= most {
        return Ok(());
    }
    let allowed = format!("{} to {}", least.to_string(), most.to_string());
    Err(ExperimentError::Value { field: field.to_owned(), value: value.to_string(), allowed })
}

impl PortExperiment {
    /// Checks what the fabric does not check itself.
    pub(super) fn validate(&self) -> Result<(), ExperimentError> {
        check("sources", self.sources.len(), 1, MOST_SOURCES)?;
        for (number, source) in self.sources.iter().enumerate() {
            source.validate(&format!("sources.{number}"))?;
        }
        let most = if self.records { MOST_RECORDS } else { MOST_FRAMES };
        check("frames of all sources", self.frames(), 1, most)?;
        check("batches", self.batches, 1, MOST_BATCHES.min(self.frames()))
    }

    /// Frames of all sources.
    pub(super) fn frames(&self) -> u64 {
        self.sources.iter().fold(0, |sum, source| sum.saturating_add(source.frames))
    }
}

impl SourceConfig {
    fn validate(&self, path: &str) -> Result<(), ExperimentError> {
        check(&format!("{path}.frames"), self.frames, 1, MOST_FRAMES)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let longest = LONGEST_GAP_PS as u64;
        check(&format!("{path}.start_ps"), self.start_ps, 0, longest)?;
        self.gap_ps.validate(&format!("{path}.gap_ps"), 1, longest)?;
        self.size_bytes.validate(&format!("{path}.size_bytes"), u64::from(LEAST_BYTES), u64::from(u32::MAX))
    }
}

impl Draw {
    fn validate(&self, path: &str, lowest: u64, highest: u64) -> Result<(), ExperimentError> {
        match *self {
            Self::Constant { value } => check(&format!("{path}.value"), value, lowest, highest),
            Self::Exponential { mean, least, most } => {
                check(&format!("{path}.mean"), mean, 1.0, LONGEST_GAP_PS)?;
                check(&format!("{path}.least"), least, lowest, highest)?;
                check(&format!("{path}.most"), most, least, highest)
            }
        }
    }
}
