//! The writes of a TCP source with a schedule: what is due, what the connection has still to take, and how late
//! that was.
//!
//! Deadlines are fixed by the moment of the connection. What the connection does not take waits, and what is due
//! meanwhile waits behind it: nothing is left out, and a source that is behind catches up as fast as the connection
//! lets it.

use twinnet_units::{Duration, Time};

use crate::account::pacing::{Pacing, PacingReport};
use crate::schedule::profile::{Deadlines, TrafficProfile};
use crate::tcp::source_config::End;

/// The time after its due moment at which a source may send what was due in it.
const GRACE: Duration = Duration::from_ms(10);

#[derive(Clone, Copy, Debug)]
struct Write {
    due: Time,
    size: u32,
    left: u32,
}

/// A running schedule of writes.
#[derive(Debug)]
pub(crate) struct Writes {
    deadlines: Deadlines,
    end: End,
    zero: Time,
    /// Bytes of all writes that were begun.
    begun_bytes: u64,
    /// The write that the connection has not taken whole yet.
    under_way: Option<Write>,
    pacing: Pacing,
}

impl Writes {
    /// The writes of `profile` from `zero` on, their processes drawn from `seeds`.
    pub(crate) fn new(profile: &TrafficProfile, end: End, zero: Time, seeds: (u64, u64)) -> Self {
        let deadlines = Deadlines::new(profile, zero, seeds, false);
        Self { deadlines, end, zero, begun_bytes: 0, under_way: None, pacing: Pacing::default() }
    }

    /// Bytes to offer now; `None` when nothing is due.
    pub(crate) fn offer(&mut self, now: Time) -> Option<u32> {
        if self.under_way.is_none() && !self.all_begun() && self.deadlines.due() <= now {
            let due = self.deadlines.due();
            let drawn = self.deadlines.take();
            let room = match self.end {
                End::Bytes(bytes) => bytes.saturating_sub(self.begun_bytes),
                End::After(_) | End::Writes(_) => u64::MAX,
            };
            let size = u32::try_from(room).map_or(drawn, |room| drawn.min(room));
            self.begun_bytes += u64::from(size);
            self.under_way = Some(Write { due, size, left: size });
        }
        self.under_way.map(|write| write.left)
    }

    /// The connection took `bytes` of what was offered.
    pub(crate) fn taken(&mut self, now: Time, bytes: u64) {
        let Some(write) = &mut self.under_way else { return };
        write.left = write.left.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        if write.left == 0 {
            self.pacing.add(write.due, now, write.size, true);
            self.under_way = None;
        }
    }

    /// Returns `true` if no write is left to begin.
    fn all_begun(&self) -> bool {
        match self.end {
            End::After(duration) => self.deadlines.due().since(self.zero) >= duration,
            End::Bytes(bytes) => self.begun_bytes >= bytes,
            End::Writes(writes) => self.deadlines.count() >= writes,
        }
    }

    /// Returns `true` if all has been taken.
    pub(crate) fn over(&self) -> bool {
        self.under_way.is_none() && self.all_begun()
    }

    /// Returns the time at which to look again; while the connection takes nothing, it is what tells.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let due = (self.under_way.is_none() && !self.all_begun()).then(|| self.deadlines.due());
        due.into_iter().chain(self.last_moment()).min()
    }

    fn last_moment(&self) -> Option<Time> {
        let End::After(duration) = self.end else { return None };
        Some(self.zero + duration + GRACE)
    }

    /// Returns `true` if the time is over and not all that was due in it was taken.
    pub(crate) fn too_late(&self, now: Time) -> bool {
        !self.over() && self.last_moment().is_some_and(|last| now >= last)
    }

    /// Ends a schedule that could not be kept; what that is told as.
    pub(crate) fn give_up(&mut self) -> String {
        self.pacing.give_up();
        let waiting = self.under_way.map_or(0, |write| write.left);
        format!(
            "the connection could not keep up: {waiting} bytes of write {} and all that were due after it were not \
             taken when the time was over",
            self.deadlines.count()
        )
    }

    /// Returns how well the schedule was kept.
    pub(crate) fn report(&self) -> Option<PacingReport> {
        self.pacing.report()
    }
}
