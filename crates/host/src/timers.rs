//! The timers of one host: a heap of moments and whom they concern.
//!
//! An owner keeps an [`Alarm`]. Moving it to an earlier moment adds an entry and leaves the old one to be skipped;
//! moving it to a later one costs nothing: the old entry comes first, its owner finds that nothing is due and sets
//! the alarm again. So a connection that moves its retransmission timer with every acknowledgement does not touch
//! the heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use twinnet_units::Time;

/// Whom a timer concerns. At one moment they are served in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A frame has come around the loopback.
    Loopback,
    /// The host gets to a frame that has arrived.
    Processing,
    /// Neighbours are to be asked for again, or given up.
    Neighbours,
    /// Fragments have waited too long for the rest.
    Reassembly,
    /// A connection, by its socket's place.
    Socket(u32),
    /// An app, by its place.
    App(u32),
}

/// The moments to come.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Time, Owner)>>,
}

impl Timers {
    /// The next moment; it may turn out that nothing is due then.
    pub(super) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a moment that has come.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Owner)> {
        self.heap.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}

/// An owner's side of its timer: the earliest moment that stands for it in the heap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alarm(Option<Time>);

impl Alarm {
    /// Asks to be woken at `at` or earlier.
    pub(super) fn set(&mut self, at: Option<Time>, owner: Owner, timers: &mut Timers) {
        let Some(at) = at else { return };
        if self.0.is_none_or(|set| at < set) {
            self.0 = Some(at);
            timers.heap.push(Reverse((at, owner)));
        }
    }

    /// Returns `true` if the entry `at` is the one that counts; it is spent then.
    pub(super) fn rings(&mut self, at: Time) -> bool {
        let counts = self.0 == Some(at);
        if counts {
            self.0 = None;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_moved_forward_rings_once_and_one_moved_back_rings_at_its_old_moment() {
        let mut timers = Timers::default();
        let mut alarm = Alarm::default();
        let owner = Owner::App(3);
        alarm.set(Some(Time::from_ns(50)), owner, &mut timers);
        alarm.set(Some(Time::from_ns(20)), owner, &mut timers);
        alarm.set(Some(Time::from_ns(90)), owner, &mut timers);
        alarm.set(None, owner, &mut timers);
        assert_eq!(timers.next(), Some(Time::from_ns(20)));
        assert!(timers.pop(Time::from_ns(19)).is_none());
        let mut rung = Vec::new();
        while let Some((at, _)) = timers.pop(Time::from_ns(100)) {
            if alarm.rings(at) {
                rung.push(at);
            }
        }
        assert_eq!(rung, [Time::from_ns(20)]);
    }

    #[test]
    fn at_one_moment_owners_come_in_a_fixed_order() {
        let mut timers = Timers::default();
        for owner in [Owner::App(2), Owner::Socket(9), Owner::App(1), Owner::Neighbours] {
            Alarm::default().set(Some(Time::ZERO), owner, &mut timers);
        }
        let order: Vec<Owner> = std::iter::from_fn(|| timers.pop(Time::ZERO)).map(|(_, owner)| owner).collect();
        assert_eq!(order, [Owner::Neighbours, Owner::Socket(9), Owner::App(1), Owner::App(2)]);
    }
}
