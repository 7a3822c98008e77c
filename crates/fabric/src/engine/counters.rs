//! What can be seen of a fabric from outside.

use super::{Fabric, PortId};
use crate::link::{Direction, DirectionConfig, DirectionCounters, Feed};
use twinnet_queue::Backlog;

/// What a port has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PortCounters {
    /// What it sent, and what it could not.
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
    /// What the counters grew by after `earlier`; the backlog is that of now.
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
}

impl Fabric {
    /// The configuration of the direction that `port` sends into, and whether it is up.
    #[must_use]
    pub fn direction_config(&self, port: PortId) -> Option<(&DirectionConfig, bool)> {
        self.directions.get(port.0 as usize)?.as_ref().map(|line| (&line.config, line.up))
    }

    pub(super) fn direction_counters(&self, port: PortId) -> DirectionCounters {
        self.directions[port.0 as usize]
            .as_ref()
            .map_or_else(DirectionCounters::default, |line| line.counters_at(self.now))
    }

    pub(super) fn backlog(&self, port: PortId) -> Backlog {
        self.directions[port.0 as usize].as_ref().map_or_else(Backlog::default, Direction::backlog)
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
        match self.directions.get(port.0 as usize).and_then(Option::as_ref).map(|line| &line.feed) {
            Some(Feed::Queue(queue)) => queue.class_counters(),
            _ => serde_json::Value::Array(Vec::new()),
        }
    }
}
