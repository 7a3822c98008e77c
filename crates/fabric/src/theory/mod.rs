//! Experiments that queueing theory has an answer for: one port of the fabric, fed with arrivals and sizes of known
//! laws.
//!
//! The port is the engine's own - queue discipline, serialiser, impairments, arrival; only the hosts are replaced
//! by processes that theory knows. Whoever compares is outside: here is no formula.

mod config;
mod draws;
mod experiment;

pub use config::{Draw, ExperimentError, PortExperiment, SourceConfig, MOST_FRAMES, MOST_RECORDS};
pub use experiment::{Batch, ExperimentReport, Record, SourceReport};
