//! BBR's window: twice the bandwidth-delay product, room for what end systems hold at once, and what repair makes
//! of it.

use super::super::Repair;
use super::bandwidth::{Bandwidth, UNIT};
use super::{Acknowledged, Bbr, Mode};

/// The least window: two pairs of segments, against delayed acknowledgements.
pub(super) const LEAST_WINDOW: u32 = 4;
/// Window before any round trip was measured (RFC 6928), and the delivery until which start-up grows whatever the
/// target.
const INITIAL_WINDOW: u32 = 10;
/// Pacing rates below this leave in single segments, in bytes per second.
const SINGLE_SEGMENTS_BELOW: u64 = 1_200_000 / 8;
/// A host's quantum is what it sends in this part of a second, as Linux sizes its super-segments, and at most a
/// super-segment.
const QUANTA_PER_SECOND: u64 = 1024;
const QUANTUM_BYTES: u64 = 65_536 - 1 - 320;
/// The most segments in a quantum.
const QUANTUM_SEGMENTS: u64 = 127;
/// Quanta that the sender's queue, its interface and the receiver may hold.
const QUANTA_HELD: u32 = 3;

impl Bbr {
    /// Segments that leave at once on a host that hands its interface super-segments.
    pub(super) fn quantum(&self) -> u32 {
        let rate = self.pacing.bytes_per_second(self.segment_bytes);
        let least = if rate < SINGLE_SEGMENTS_BELOW { 1 } else { 2 };
        let bytes = (rate / QUANTA_PER_SECOND).min(QUANTUM_BYTES);
        let segments = (bytes / u64::from(self.segment_bytes.max(1))).max(least).min(QUANTUM_SEGMENTS);
        u32::try_from(segments).unwrap_or(u32::MAX)
    }

    /// The bandwidth-delay product, times `gain`.
    pub(super) fn product(&self, bandwidth: Bandwidth, gain: u64) -> u32 {
        match self.least_round_trip {
            Some(round_trip) => bandwidth.segments_to_fill(round_trip, gain),
            None => INITIAL_WINDOW,
        }
    }

    /// `segments` with room for what the end systems hold.
    pub(super) fn with_quanta(&self, segments: u32) -> u32 {
        let held = segments.saturating_add(QUANTA_HELD * self.quantum());
        // An even window draws fewer delayed acknowledgements; two more let a small one probe at all.
        let even = held.saturating_add(1) & !1;
        let probes = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        even.saturating_add(if probes { 2 } else { 0 })
    }

    pub(super) fn wanted_in_flight(&self, gain: u64) -> u32 {
        self.with_quanta(self.product(self.bandwidth.get(), gain))
    }

    /// Segments in the network when the next one leaves: with a gain above one that one counts as well.
    pub(super) fn in_network(&self, in_flight: u32) -> u32 {
        in_flight + if self.pacing_gain > UNIT { self.quantum() } else { 0 }
    }

    /// Remembers a window that was good, for after repair or probe.
    pub(super) fn save_window(&mut self) {
        self.good_window = if self.repair == Repair::Nothing && self.mode != Mode::ProbeRoundTrip {
            self.window
        } else {
            self.good_window.max(self.window)
        };
    }

    /// Conserves packets in the first round of a recovery and restores the window after repair. Whether the window
    /// is settled.
    fn repair_window(&mut self, told: &Acknowledged) -> bool {
        self.window = self.window.saturating_sub(told.lost).max(1);
        if told.repair == Repair::Losses && self.repair != Repair::Losses {
            self.conserves = true;
            self.round_ends_at = self.delivered;
            self.window = told.in_flight + told.delivered;
        } else if told.repair == Repair::Nothing && self.repair != Repair::Nothing {
            self.window = self.window.max(self.good_window);
            self.conserves = false;
        }
        self.repair = told.repair;
        if self.conserves {
            self.window = self.window.max(told.in_flight + told.delivered);
        }
        self.conserves
    }

    pub(super) fn set_window(&mut self, told: &Acknowledged) {
        if told.delivered > 0 && !self.repair_window(told) {
            let bandwidth = self.path();
            let mut target = self.product(bandwidth, self.window_gain);
            if self.pipe_filled {
                target = target.saturating_add(self.aggregation.extra(bandwidth));
            }
            target = self.with_quanta(target);
            let grown = self.window.saturating_add(told.delivered);
            if self.pipe_filled {
                self.window = grown.min(target);
            } else if self.window < target || self.delivered < u64::from(INITIAL_WINDOW) {
                self.window = grown;
            }
            self.window = self.window.max(LEAST_WINDOW);
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.window = self.window.min(LEAST_WINDOW);
        }
    }
}
