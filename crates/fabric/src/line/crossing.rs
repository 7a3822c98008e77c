//! A line whose ends two fabrics have, each in a thread of its own: the parts of one network.
//!
//! Both have the line. The fabric of its sending end moves frames up to the last bit that leaves, and gives each away
//! as soon as its first bit is on the serialiser, with the moment of its arrival: the other learns of it by the frame's
//! own time on the wire ahead. The fabric of the far end keeps it in flight until then. What a fabric is late for it
//! bears at its own end: the far end moves frames back by the same rule as the [schedule](super::schedule) of a whole
//! line, each no closer to the one before than the rate allows.

use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use super::{Arrival, Effects, Line};

/// The ends of a line that another fabric has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cut {
    /// None, or both.
    #[default]
    Whole,
    /// The far end.
    LeadsAway,
    /// The sending end; the last frame that came from there leaves the wire at this moment.
    LeadsHere(Time),
}

impl Cut {
    #[inline]
    pub(super) const fn leads_away(self) -> bool {
        matches!(self, Self::LeadsAway)
    }
}

impl Line {
    /// Has the far end belong to another fabric.
    pub(crate) fn lead_away(&mut self) {
        self.cut = Cut::LeadsAway;
    }

    /// Has the sending end belong to another fabric.
    pub(crate) fn lead_here(&mut self) {
        self.cut = Cut::LeadsHere(Time::ZERO);
    }

    /// Returns `true` if frames come from another fabric.
    pub(crate) const fn leads_here(&self) -> bool {
        matches!(self.cut, Cut::LeadsHere(_))
    }

    /// `frame`, which the fabric of the sending end has put onto the line, arrives at `arrival`. It is lost where the
    /// line is down.
    pub(crate) fn take_crossing(&mut self, frame: Box<Frame>, arrival: Time, now: Time) -> Effects {
        let mut effects = Effects::default();
        if !self.up {
            self.counters.dropped_down += frame.lose();
            return effects;
        }
        let arrival = self.behind_the_last(&frame, arrival);
        let (at, first) = self.in_flight.push(arrival, self.config.impair.reorder, frame);
        if first {
            effects.arrives(at.max(now));
        }
        effects
    }

    /// Returns the time when `frame` arrives that would at `arrival`: later while the line is behind, as a serialiser
    /// would have it that was held back.
    fn behind_the_last(&mut self, frame: &Frame, arrival: Time) -> Time {
        let (Cut::LeadsHere(free), Some(rate)) = (self.cut, self.config.rate_bps) else { return arrival };
        if !self.schedule.is_behind() {
            self.cut = Cut::LeadsHere(arrival.max(free));
            return arrival;
        }
        let wire = rate.serialise(frame.wire_bytes(self.config.framing));
        let begun = Time::from_ps(arrival.as_ps().saturating_sub(wire.as_ps())).max(free);
        let arrival = arrival.max(begun + self.schedule.begin(begun, free, wire));
        self.cut = Cut::LeadsHere(arrival);
        arrival
    }

    /// Moves what came from another fabric back by `moved`: what comes next is held back as much.
    pub(super) fn hold_crossing(&mut self, moved: Duration) {
        if let Cut::LeadsHere(free) = &mut self.cut {
            *free += moved;
            self.schedule.hold(moved);
        }
    }

    /// A frame from another fabric may be due at the far end by `now`, while the clock shows `wall`. It may have come
    /// after it was due.
    pub(crate) fn arrive_from_afar(&mut self, now: Time, wall: Time) -> Arrival {
        let due = self.in_flight.next().map_or(now, |next| next.min(now));
        let not_before = |effects: Effects| Effects { arrival: effects.arrival.map(|at| at.max(now)), ..effects };
        match self.arrive(due, wall) {
            Arrival::Stale => Arrival::Stale,
            Arrival::Postponed(effects) => Arrival::Postponed(not_before(effects)),
            Arrival::Frame(frame, effects) => Arrival::Frame(frame, not_before(effects)),
        }
    }
}
