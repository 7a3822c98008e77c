//! The state that a line shows of itself: settings, counters, what waits, and how it kept its schedule.

use twinnet_queue::Backlog;
use twinnet_units::Time;

use super::{of_train, Cut, DirectionConfig, DirectionCounters, Feed, Line, LineRecord};

impl Line {
    pub(crate) const fn config(&self) -> &DirectionConfig {
        &self.config
    }

    pub(crate) const fn is_up(&self) -> bool {
        self.up
    }

    pub(crate) const fn feed(&self) -> &Feed {
        &self.feed
    }

    pub(crate) const fn is_fed_by_interface(&self) -> bool {
        matches!(self.feed, Feed::Interface)
    }

    /// Returns what it did with lateness; `None` when it was never too late.
    pub(crate) fn record(&self, now: Time) -> Option<LineRecord> {
        let free = match self.cut {
            Cut::LeadsHere(free) => free,
            Cut::Whole | Cut::LeadsAway => self.busy_until,
        };
        self.schedule.record(now, free)
    }

    /// The bytes that it has sent with their framing, the frames that its queue dropped, and its rate in bit/s; `None`
    /// when it has no rate.
    pub(crate) fn sent_at_rate(&self) -> Option<(u64, u64, u64)> {
        let drops = self.counters.dropped_overlimit + self.counters.dropped_early;
        self.config.rate_bps.map(|rate| (self.counters.wire_bytes, drops, rate.as_bps()))
    }

    /// Begins the record of lateness anew.
    pub(crate) fn forget_record(&mut self) {
        self.schedule.forget();
    }

    /// The counters as they stand at `now`.
    pub(crate) fn counters_at(&self, now: Time) -> DirectionCounters {
        let mut counters = self.counters;
        if let Some(leaving) = &self.leaving {
            leaving.count(&mut counters, now);
        }
        counters
    }

    pub(crate) fn backlog(&self) -> Backlog {
        let mut backlog = match &self.feed {
            Feed::Queue(queue) => queue.backlog(),
            Feed::Interface => Backlog::default(),
        };
        if let Some(rest) = &self.rest {
            backlog = backlog + of_train(rest);
        }
        for outer in self.tunnel.iter().flat_map(|tunnel| &tunnel.waiting) {
            backlog.frames += 1;
            backlog.bytes += outer.length();
        }
        backlog
    }
}
