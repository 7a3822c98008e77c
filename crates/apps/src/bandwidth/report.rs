//! What a prober reports about its estimate.

use serde::{Deserialize, Serialize};

use super::estimator::Finding;
use super::framing::Layer;
use super::train::Train;

/// An estimate of the available bandwidth, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandwidthReport {
    /// The method's name.
    pub method: String,
    /// The layer at which all rates are told, and bytes and packets of probes are counted.
    pub layer: Layer,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// The averaging window: from the first probe to the last, on the clock of the prober.
    pub window_start_ps: Option<u64>,
    /// Its end.
    pub window_end_ps: Option<u64>,
    /// Packets of probes that were sent.
    pub probe_packets: u64,
    /// Their bytes.
    pub probe_bytes: u64,
    /// Packets of probes that did not arrive.
    pub probe_lost: u64,
    /// Bytes that the prober sent to ask for stamps.
    pub control_bytes: u64,
    /// Trains that were sent.
    pub trains: u64,
    /// Rate that was asked for, over the rate at which the trains were sent: mean of all trains that have a rate.
    pub generated_share: Option<f64>,
    /// The least of these shares.
    pub least_generated_share: Option<f64>,
    /// Gaps in which the sender lost its processor.
    pub interruptions: u64,
    /// Trains of which more than a fifth arrived in batches.
    pub batched_trains: u64,
    /// Datagrams that the listener's host threw away.
    pub overflowed: u64,
    /// Trains during which a clock was set.
    pub clock_steps: u64,
    /// Each train's rates, up to the first thousand.
    pub rates: Vec<TrainRates>,
    /// Stamps of each train, where they were asked for: what [`super::replay`] reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub record: Vec<Train>,
}

/// The rates of one train in bit/s; null where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainRates {
    /// When its first packet was sent.
    pub at_ps: u64,
    /// The rate that was asked for.
    pub requested_bps: Option<f64>,
    /// The rate at which it was sent.
    pub generated_bps: Option<f64>,
    /// The rate at which it arrived.
    pub received_bps: Option<f64>,
}
