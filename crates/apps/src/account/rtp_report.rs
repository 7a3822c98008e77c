//! The columns of a stream over RTP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arrivals::SignedReport;

/// Frames of a video as they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FramesReport {
    /// All parts arrived.
    pub complete: u64,
    /// Some parts arrived.
    pub damaged: u64,
    /// Nothing arrived, though a later frame did.
    pub lost: u64,
}

/// A stream's RTP part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RtpReport {
    /// Synchronisation source.
    pub ssrc: u32,
    /// Payload type of the first packet.
    pub payload_type: u8,
    /// Packets from the first sequence number to the highest (RFC 3550, A.3).
    pub expected: u64,
    /// RFC 3550's jitter after each packet but the first: its mean and extremes over the stream, as Wireshark shows it.
    pub jitter_ps: Option<SignedReport>,
    /// IP bits of the second that ends with each packet, as Wireshark shows it.
    pub bandwidth_bps: Option<SignedReport>,
    /// Frames, of our own sources.
    pub frames: Option<FramesReport>,
}
