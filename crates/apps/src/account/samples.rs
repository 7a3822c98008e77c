//! Every packet of a flow, on request and up to a number that is given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::Time;

use crate::check::{check_range, ConfigError};

/// Packets of a flow that can be kept, at most.
pub const MOST_SAMPLES: u32 = 1_000_000;

/// Refuses to keep more packets than memory is meant for.
pub(crate) fn check_samples(kind: &'static str, most: Option<u32>) -> Result<(), ConfigError> {
    most.map_or(Ok(()), |most| check_range(kind, "record_packets", most, 1, MOST_SAMPLES))
}

/// Packets of one flow in the order of their arrival, duplicates included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    /// Their numbers in the flow, counted on beyond the wrap.
    pub sequence: Vec<u64>,
    /// The time when each arrived.
    pub arrived_ps: Vec<u64>,
    /// The time when each was sent; null where it does not tell.
    pub sent_ps: Vec<Option<u64>>,
    /// Bytes of payload.
    pub bytes: Vec<u32>,
    /// RTP only: RFC 3550's jitter after each packet; null for the first and for duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jitter_ps: Vec<Option<f64>>,
    /// RTP only: bits of IP in the second that ends with each packet; null for duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidth_bps: Vec<Option<f64>>,
    /// Packets that came when so many as were asked for had been kept.
    pub more: u64,
}

impl Samples {
    /// Enters what RTP tells of the packet that was entered last.
    pub fn add_rtp(&mut self, jitter_ps: Option<f64>, bandwidth_bps: Option<f64>) {
        if self.jitter_ps.len() < self.sequence.len() {
            self.jitter_ps.push(jitter_ps);
            self.bandwidth_bps.push(bandwidth_bps);
        }
    }

    /// Enters a packet.
    pub fn add(&mut self, most: u32, number: u64, sent: Option<Time>, arrived: Time, bytes: usize) {
        if self.sequence.len() >= most as usize {
            self.more += 1;
            return;
        }
        self.sequence.push(number);
        self.arrived_ps.push(arrived.as_ps());
        self.sent_ps.push(sent.map(Time::as_ps));
        self.bytes.push(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
}
