//! The report of an app: one row for each flow, with the columns of the lab's protocol.
//!
//! Keys that have no meaning for a kind of app are absent; keys that have one but no value yet are null.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::account::arrivals::SignedReport;
use crate::account::bandwidth_report::BandwidthReport;
use crate::account::clock_report::ClockReport;
use crate::account::column::Column;
use crate::account::errors::ErrorTally;
use crate::account::intervals::IntervalCounter;
use crate::account::length_histogram::LengthsReport;
use crate::account::pacing::PacingReport;
use crate::account::reordering_density::DensityReport;
use crate::account::rtp_report::RtpReport;
use crate::account::samples::Samples;
use crate::account::video_report::VideoReport;
use crate::{IntervalsReport, Summary, SummaryReport, TcpInfoReport};

/// The protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Datagrams.
    Udp,
    /// RTP in datagrams.
    Rtp,
    /// A stream.
    Tcp,
    /// Requests and responses.
    Http,
    /// Echo.
    Icmp,
    /// Comparison of clocks.
    Clock,
    /// Probes for available bandwidth.
    Bandwidth,
}

/// The end of the flow that the row was counted at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sends.
    Source,
    /// Receives.
    Sink,
    /// Asks.
    Client,
    /// Answers.
    Server,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowReport {
    /// The flow's number; null for traffic of a foreign sender, which carries none, and for servers.
    pub flow: Option<u32>,
    /// The sender's address and port (for ICMP the address alone), where known.
    pub from: Option<String>,
    /// The receiver's address and port (for ICMP the address alone), where known.
    pub to: Option<String>,
    /// The protocol.
    pub protocol: Protocol,
    /// The end that counted.
    pub role: Role,
    /// The time when the flow began: a source's own beginning, a sink's first arrival. Null when it has not.
    pub start_ps: Option<u64>,
    /// The time when it ended, or the moment of the report while it lasts: a source's last datagram or the end of its
    /// stream, a sink's last arrival.
    pub end_ps: Option<u64>,
    /// Datagrams, echo requests, HTTP responses: sent by a source or server, received by a sink or client.
    /// Duplicates are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Bytes of payload: of UDP, of the stream, of HTTP bodies, of echo requests sent.
    pub bytes: u64,
    /// Sequence numbers that did not arrive up to the highest that did, whatever was sent after that; echo requests
    /// without a reply in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Arrivals below the highest sequence number so far (RFC 4737, Type-P-Reordered).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Arrivals of a sequence number that had arrived before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// The least sequence number that arrived; what was sent before it counts as lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_number: Option<u64>,
    /// The number of times the sequence number leapt further than a loss or a late packet explains: `lost` is not to be
    /// trusted then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_jumps: Option<u64>,
    /// The errors, each text once with its number.
    pub errors: Vec<String>,
    /// Round trips: of an echo; of an HTTP request, from its first byte sent to the last byte of its response.
    #[serde(default, skip_serializing_if = "Column::is_absent")]
    pub rtt_ps: Column<SummaryReport>,
    /// Latencies of HTTP requests by percentile ("50" is the median), within 1 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_percentiles_ps: Option<BTreeMap<String, u64>>,
    /// The report of a viewer of video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoReport>,
    /// One-way delay (RFC 7679), from the app that sends to the arrival at the receiving host's interface.
    #[serde(default, skip_serializing_if = "Column::is_absent")]
    pub delay_ps: Column<SummaryReport>,
    /// One-way delays that came out below zero, as they can only between two clocks; `delay_ps` has them as zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays_below_zero: Option<u64>,
    /// Interarrival jitter as RFC 3550 smooths it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_rfc3550_ps: Option<f64>,
    /// Absolute differences of the delays of packets received one after the other (RFC 4689).
    #[serde(default, skip_serializing_if = "Column::is_absent")]
    pub jitter_rfc4689_ps: Column<SummaryReport>,
    /// Differences of the delays of packets sent one after the other, with their sign (RFC 3393).
    #[serde(default, skip_serializing_if = "Column::is_absent")]
    pub delay_variation_rfc3393_ps: Column<SignedReport>,
    /// Distances between arrivals.
    #[serde(default, skip_serializing_if = "Column::is_absent")]
    pub gap_ps: Column<SummaryReport>,
    /// Losses in a row, in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bursts: Option<LengthsReport>,
    /// Extents of reordering (RFC 4737), in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering_extents: Option<LengthsReport>,
    /// The distances of packets from their places on arrival (RFC 5236).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering_density: Option<DensityReport>,
    /// Every packet, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// Video frames of which a source sent a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_sent: Option<u64>,
    /// The report of RTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtp: Option<RtpReport>,
    /// The counts of each interval.
    #[serde(default, skip_serializing_if = "Column::is_absent")]
    pub intervals: Column<IntervalsReport>,
    /// The accuracy with which a source kept its schedule.
    #[serde(default, skip_serializing_if = "Column::is_absent")]
    pub pacing: Column<PacingReport>,
    /// The course of the sender's TCP, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_info: Option<TcpInfoReport>,
    /// The comparison of two clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockReport>,
    /// An estimate of available bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Box<BandwidthReport>>,
}

impl FlowReport {
    /// A row in which nothing has happened yet.
    #[must_use]
    pub const fn new(flow: Option<u32>, protocol: Protocol, role: Role) -> Self {
        Self {
            flow,
            from: None,
            to: None,
            protocol,
            role,
            start_ps: None,
            end_ps: None,
            packets: None,
            bytes: 0,
            lost: None,
            reordered: None,
            duplicates: None,
            first_number: None,
            sequence_jumps: None,
            errors: Vec::new(),
            rtt_ps: Column::Absent,
            delay_ps: Column::Absent,
            latency_percentiles_ps: None,
            video: None,
            delays_below_zero: None,
            jitter_rfc3550_ps: None,
            jitter_rfc4689_ps: Column::Absent,
            delay_variation_rfc3393_ps: Column::Absent,
            gap_ps: Column::Absent,
            loss_bursts: None,
            reordering_extents: None,
            reordering_density: None,
            samples: None,
            frames_sent: None,
            rtp: None,
            intervals: Column::Absent,
            pacing: Column::Absent,
            tcp_info: None,
            clock: None,
            bandwidth: None,
        }
    }

    /// Adds the errors.
    #[must_use]
    pub fn with_errors(mut self, errors: &ErrorTally) -> Self {
        self.errors.extend(errors.lines());
        self
    }

    /// Adds the intervals, and an error when not all could be kept.
    #[must_use]
    pub fn with_intervals(mut self, intervals: &IntervalCounter) -> Self {
        self.intervals = intervals.report().into();
        if intervals.overflowed() {
            self.errors.push("the flow lasted longer than intervals can be kept: use longer intervals".to_owned());
        }
        self
    }

    /// Adds round trips.
    #[must_use]
    pub fn with_round_trips(mut self, round_trips: &Summary) -> Self {
        self.rtt_ps = round_trips.report().into();
        self
    }
}

/// All rows of one app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppReport {
    /// The rows.
    pub flows: Vec<FlowReport>,
}

impl AppReport {
    /// The rows `flows`; errors that belong to none of them stand in a row without a flow's number.
    #[must_use]
    pub(crate) fn with_errors_apart(
        mut flows: Vec<FlowReport>,
        protocol: Protocol,
        role: Role,
        errors: &ErrorTally,
    ) -> Self {
        if !errors.lines().is_empty() {
            flows.push(FlowReport::new(None, protocol, role).with_errors(errors));
        }
        Self { flows }
    }

    /// As a JSON object.
    #[must_use]
    pub fn into_json(self) -> Value {
        serde_json::to_value(self).unwrap_or_else(|_| serde_json::json!({"flows": []}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_meaning_are_absent_and_keys_without_value_are_null() {
        let row = FlowReport::new(Some(7), Protocol::Icmp, Role::Source).with_round_trips(&Summary::default());
        let json = AppReport { flows: vec![row] }.into_json();
        let row = json["flows"][0].as_object().unwrap();
        assert_eq!(
            (row["flow"].as_u64(), row["protocol"].as_str(), row["role"].as_str()),
            (Some(7), Some("icmp"), Some("source"))
        );
        assert!(row["rtt_ps"].is_null() && row.contains_key("rtt_ps"));
        assert!(!row.contains_key("delay_ps") && !row.contains_key("intervals") && !row.contains_key("lost"));
    }
}
