//! The interface of an estimator: it says which train to send next, hears what became of it, and tells what it found.
//!
//! An estimator knows nothing of sockets, of time or of the network between its trains: the same one is driven by the
//! [`super::prober`] and by a record of stamps ([`super::replay`]).

use super::framing::Framing;
use super::train::{Plan, Train};
pub use crate::account::bandwidth_report::{Finding, HopFinding};

/// The next wish of an estimator.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A train to be sent, so many nanoseconds after the last one ended at the earliest.
    Send {
        /// The train.
        plan: Plan,
        /// The silence before it.
        idle_ns: f64,
    },
    /// Nothing more.
    Done,
}

/// The settings that hold for all probes of one estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probing {
    /// The way a datagram counts.
    pub framing: Framing,
    /// The longest payload that passes without fragments, in bytes.
    pub most_payload: u32,
    /// The highest rate that may be sent, in bit/s.
    pub most_rate_bps: f64,
    /// Seeds what the estimator draws.
    pub seed: u64,
}

/// A method of estimating available bandwidth.
pub trait Estimator: Send {
    /// Returns what to do next. Asked at the beginning and after every [`Estimator::hear`].
    fn next(&mut self) -> Step;

    /// Takes in what became of the train that was asked for last.
    fn hear(&mut self, train: &Train);

    /// Returns what is known by now.
    fn finding(&self) -> Finding;
}

/// The rate at which packets come that were sent at once: the asymptotic dispersion rate (Dovrolis, Ramanathan,
/// Moore, *What do packet dispersion techniques measure?*, INFOCOM 2001), between available bandwidth and capacity.
#[must_use]
pub fn dispersion_rate(train: &Train, framing: Framing) -> Option<f64> {
    (train.arrived().len() >= 5).then(|| train.received_bps(framing)).flatten()
}

/// Mean and standard error of the mean.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, if values.len() < 2 { f64::INFINITY } else { (squares / (count - 1.0) / count).sqrt() }))
}

/// The median; `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}
