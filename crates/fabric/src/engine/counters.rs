//! The state of a fabric as seen from outside.

use twinnet_units::Duration;

use super::{Fabric, PortId};
use crate::line::{DirectionConfig, DirectionCounters, Feed, Line, LineRecord};
use twinnet_queue::Backlog;

/// The counters of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct PortCounters {
    /// The counters of what it sent, and what it could not.
    #[serde(flatten)]
    pub sent: DirectionCounters,
    /// Frames that arrived at it.
    pub received_frames: u64,
    /// Their bytes at the link layer.
    pub received_bytes: u64,
    /// Frames that ended here because they had passed too many switches.
    pub dropped_loop: u64,
    /// Frames that wait at it.
    pub backlog_frames: u64,
    /// Their bytes at the link layer.
    pub backlog_bytes: u64,
}

impl PortCounters {
    /// Returns what the counters grew by after `earlier`; the backlog is that of now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent.since(&earlier.sent),
            received_frames: self.received_frames - earlier.received_frames,
            received_bytes: self.received_bytes - earlier.received_bytes,
            dropped_loop: self.dropped_loop - earlier.dropped_loop,
            backlog_frames: self.backlog_frames,
            backlog_bytes: self.backlog_bytes,
        }
    }

    /// Returns what two fabrics that each keep a part of the network have counted of one port.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            sent: self.sent.plus(&other.sent),
            received_frames: self.received_frames + other.received_frames,
            received_bytes: self.received_bytes + other.received_bytes,
            dropped_loop: self.dropped_loop + other.dropped_loop,
            backlog_frames: self.backlog_frames + other.backlog_frames,
            backlog_bytes: self.backlog_bytes + other.backlog_bytes,
        }
    }
}

impl Fabric {
    /// The configuration of the direction that `port` sends into, and whether it is up.
    #[must_use]
    pub fn direction_config(&self, port: PortId) -> Option<(&DirectionConfig, bool)> {
        self.lines.get(port.0 as usize)?.as_ref().map(|line| (line.config(), line.is_up()))
    }

    pub(super) fn direction_counters(&self, port: PortId) -> DirectionCounters {
        self.lines[port.0 as usize].as_ref().map_or_else(DirectionCounters::default, |line| line.counters_at(self.now))
    }

    pub(super) fn backlog(&self, port: PortId) -> Backlog {
        self.lines[port.0 as usize].as_ref().map_or_else(Backlog::default, Line::backlog)
    }

    /// The port at the far end of the line that `port` sends into.
    #[must_use]
    pub fn far_end(&self, port: PortId) -> Option<PortId> {
        self.lines.get(port.0 as usize)?.as_ref().map(|line| PortId(line.to))
    }

    /// Returns what the line that `port` sends into did with lateness since the record began; `None` when it was never
    /// looked at too late.
    #[must_use]
    pub fn line_record(&self, port: PortId) -> Option<LineRecord> {
        self.lines.get(port.0 as usize)?.as_ref()?.record(self.now())
    }

    /// The bytes on the wire that `port` has sent, the frames that its queue had no room for or dropped early, and the
    /// rate of its line in bit/s; `None` where it has no rate.
    #[must_use]
    pub fn sent_at_rate(&self, port: PortId) -> Option<(u64, u64, u64)> {
        self.lines.get(port.0 as usize)?.as_ref()?.sent_at_rate()
    }

    /// Begins the records of lateness anew.
    pub fn forget_line_records(&mut self) {
        self.lines.iter_mut().flatten().for_each(Line::forget_record);
    }

    /// Lets every line catch up with lateness up to `bound` instead of the time that follows from its rate
    /// ([`crate::catch_up`]).
    pub fn set_catch_up(&mut self, bound: Option<Duration>) {
        self.catch_up = bound;
        self.lines.iter_mut().flatten().for_each(|line| line.set_catch_up(bound));
    }

    /// Frames that had nowhere to go, because their port has no line: none in a network that was assembled.
    #[must_use]
    pub fn frames_without_line(&self) -> u64 {
        self.ports.iter().map(|port| port.without_line).sum()
    }

    /// The counters of `port`.
    #[must_use]
    pub fn counters(&self, port: PortId) -> PortCounters {
        let (at, backlog) = (&self.ports[port.0 as usize], self.backlog(port));
        PortCounters {
            sent: self.direction_counters(port),
            received_frames: at.received,
            received_bytes: at.received_bytes,
            dropped_loop: at.looped,
            backlog_frames: backlog.frames,
            backlog_bytes: backlog.bytes,
        }
    }

    /// The counters of the classes of the queue discipline at `port`, as JSON.
    #[must_use]
    pub fn class_counters(&self, port: PortId) -> serde_json::Value {
        match self.lines.get(port.0 as usize).and_then(Option::as_ref).map(Line::feed) {
            Some(Feed::Queue(queue)) => queue.class_counters(),
            _ => serde_json::Value::Array(Vec::new()),
        }
    }
}
