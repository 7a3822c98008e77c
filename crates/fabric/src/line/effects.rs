//! The effects that a step of a line tells the engine, and how much it may do in one.

use twinnet_packet::Frame;
use twinnet_units::Time;

#[cfg(doc)]
use super::Line;

/// The times at which the engine has to come back to a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Effects {
    /// The serialiser is free and begins the next frame: [`Line::depart`].
    pub(crate) departure: Option<Time>,
    /// The next frame arrives: [`Line::arrive`].
    pub(crate) arrival: Option<Time>,
    /// The queue discipline may release a frame: [`Line::release`].
    pub(crate) ready: Option<Time>,
}

impl Effects {
    #[inline]
    pub(super) fn arrives(&mut self, at: Time) {
        self.arrival = Some(self.arrival.map_or(at, |before| before.min(at)));
    }
}

/// The amount that may be sent in one go by a line without a rate.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) frames: usize,
    pub(crate) bytes: u64,
}

impl Budget {
    pub(crate) const UNLIMITED: Self = Self { frames: usize::MAX, bytes: u64::MAX };

    /// Takes `frame` off.
    #[inline]
    pub(crate) fn spend(&mut self, frame: &Frame) {
        self.frames = self.frames.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(frame.length());
    }

    pub(crate) const fn is_spent(self) -> bool {
        self.frames == 0 || self.bytes == 0
    }
}

/// The outcome of an [arrival](Line::arrive).
pub(crate) enum Arrival {
    /// Nothing was due: the event was stale.
    Stale,
    /// The line was looked at too late: the frame arrives at the moment in the effects.
    Postponed(Effects),
    /// A frame is there (`None`: a fragment that completes none); the next one arrives at the moment in the effects.
    Frame(Option<Box<Frame>>, Effects),
}
