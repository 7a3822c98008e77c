//! The counters of one direction of a link.

use serde::Serialize;

/// Counters of one direction, in frames and bytes at the link layer (Ethernet header to payload).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DirectionCounters {
    /// Frames whose last bit has left.
    pub frames: u64,
    /// Their bytes.
    pub link_bytes: u64,
    /// Their bytes with the link's framing.
    pub wire_bytes: u64,
    /// Frames that the queue discipline refused for its limit.
    pub dropped_overlimit: u64,
    /// Frames that the queue discipline dropped early.
    pub dropped_early: u64,
    /// Frames that the queue discipline marked as having met congestion (ECN) instead of dropping them.
    pub marked: u64,
    /// Frames that no class of the queue discipline takes.
    pub dropped_unclassified: u64,
    /// Frames that met a link that was down, or were on it when it went down.
    pub dropped_down: u64,
    /// Frames longer than the link's MTU allows.
    pub dropped_oversize: u64,
    /// Frames that a tunnel would have had to cut into fragments, and may not.
    pub dropped_unfragmentable: u64,
    /// Frames lost by the loss model.
    pub lost: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
}

impl DirectionCounters {
    /// Returns what the counters grew by after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, |now, then| now - then)
    }

    /// Returns what both have counted together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |one, more| one + more)
    }

    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            frames: of(self.frames, other.frames),
            link_bytes: of(self.link_bytes, other.link_bytes),
            wire_bytes: of(self.wire_bytes, other.wire_bytes),
            dropped_overlimit: of(self.dropped_overlimit, other.dropped_overlimit),
            dropped_early: of(self.dropped_early, other.dropped_early),
            marked: of(self.marked, other.marked),
            dropped_unclassified: of(self.dropped_unclassified, other.dropped_unclassified),
            dropped_down: of(self.dropped_down, other.dropped_down),
            dropped_oversize: of(self.dropped_oversize, other.dropped_oversize),
            dropped_unfragmentable: of(self.dropped_unfragmentable, other.dropped_unfragmentable),
            lost: of(self.lost, other.lost),
            duplicated: of(self.duplicated, other.duplicated),
            corrupted: of(self.corrupted, other.corrupted),
        }
    }

    /// Frames that did not arrive, for whatever reason.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_overlimit
            + self.dropped_early
            + self.dropped_unclassified
            + self.dropped_down
            + self.dropped_oversize
            + self.dropped_unfragmentable
            + self.lost
    }
}
