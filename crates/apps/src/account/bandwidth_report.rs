//! The report of a prober of available bandwidth: its estimate, what it took, and the trains that it sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A layer at which bytes are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The bytes that an Ethernet line spends on a frame: preamble, padding, check sequence and gap included. The
    /// line's rate is its capacity.
    #[default]
    Wire,
    /// Packets with the headers of IP, as most published tools count.
    Network,
}

/// The findings about the links up to one hop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HopFinding {
    /// The hop, counted from 1.
    pub hop: u8,
    /// Available bandwidth of the links up to it, in bit/s.
    pub estimate_bps: Option<f64>,
    /// Half of the 95 % interval.
    pub interval_bps: Option<f64>,
    /// The probability that the link to this hop has less than all before it.
    pub thin: f64,
}

/// The findings of an estimator so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The estimate in bit/s: the middle, where the method gives a range.
    pub estimate_bps: Option<f64>,
    /// The lower end of the range or interval.
    pub low_bps: Option<f64>,
    /// The upper end.
    pub high_bps: Option<f64>,
    /// The probability with which the interval is to cover the truth; null for a range of variation.
    pub confidence: Option<f64>,
    /// Capacity of the tight link, where the method finds or needs it.
    pub capacity_bps: Option<f64>,
    /// Why it stopped before it had an answer, or what keeps the answer from being one.
    pub gave_up: Option<String>,
    /// Remarks about the answer.
    pub notes: Vec<String>,
    /// Of methods that locate the tight link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopFinding>,
}

impl Finding {
    /// What a method found that has an estimate and `half` the width of its 95 % confidence interval, where known.
    #[must_use]
    pub fn around(estimate_bps: Option<f64>, half_bps: Option<f64>) -> Self {
        let ends = estimate_bps.zip(half_bps);
        Self {
            estimate_bps,
            low_bps: ends.map(|(middle, half)| (middle - half).max(0.0)),
            high_bps: ends.map(|(middle, half)| middle + half),
            confidence: half_bps.map(|_| 0.95),
            ..Self::default()
        }
    }
}

/// One packet that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// Nanoseconds after the first.
    pub at_ns: u64,
    /// Bytes of UDP payload.
    pub payload: u32,
    /// Its hop limit (TTL); null for the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop_limit: Option<u8>,
}

/// A train that is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its packets in the order of their times.
    pub packets: Vec<Planned>,
}

/// A train that was sent. Times of sending are of the sender's clock, times of arrival of the receiver's: only
/// differences of each, and differences of delays, mean something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// The train that was asked for.
    pub plan: Plan,
    /// The time when each packet went to the interface, in nanoseconds, where the kernel stamped all of them; else when
    /// each was handed to the kernel.
    pub sent_ns: Vec<i64>,
    /// The time when each packet was handed to the kernel, where `sent_ns` is the kernel's own stamp; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed_over_ns: Vec<i64>,
    /// The time when each arrived; null for those that did not.
    pub arrived_ns: Vec<Option<i64>>,
    /// Datagrams that the receiving host threw away itself.
    #[serde(default)]
    pub overflowed: u32,
    /// `true` if a clock was set meanwhile: the stamps are of no use then.
    #[serde(default)]
    pub clock_stepped: bool,
}

/// An estimate of the available bandwidth, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BandwidthReport {
    /// The method's name.
    pub method: String,
    /// The layer at which all rates are told, and bytes and packets of probes are counted.
    pub layer: Layer,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// The averaging window: from the first probe to the answer about the last, on the clock of the prober.
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
    /// Of these, the trains whose times of sending are the kernel's stamps of when packets went to the interface. Of
    /// others the time is used at which packets were handed to the kernel.
    #[serde(default)]
    pub kernel_stamped_trains: u64,
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
    /// Stamps of each train, where they were asked for: what a replay reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub record: Vec<Train>,
}

/// The rates of one train in bit/s; null where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainRates {
    /// The time when its first packet was sent.
    pub at_ps: u64,
    /// The rate that was asked for.
    pub requested_bps: Option<f64>,
    /// The rate at which it was sent.
    pub generated_bps: Option<f64>,
    /// The rate at which it arrived.
    pub received_bps: Option<f64>,
}
