//! The order in which things happen.
//!
//! Events are ordered by time, then class, then a tie-break, then element. The order is total and the same on every
//! machine. The variants of [`Class`] are in the order in which events of one moment are handled: **do not reorder
//! them**, every trace hash would change.

use twinnet_units::random::mix;
use twinnet_units::Time;

use crate::heap::Heap;

/// The kind of an event; see the module's description for why the order matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// A scheduled change of a link: what happens at this moment meets the new state.
    Change,
    /// An app of a model host starts: what arrives at this moment finds its sockets open.
    Start,
    /// Flow entries of a switch time out, or something comes through its control channel.
    Timeout,
    /// The last bit of a frame leaves a serialiser.
    Departure,
    /// A queue discipline that held frames back may release one.
    QueueReady,
    /// A frame arrives whole at the far end of a link.
    Arrival,
    /// A switch has thought long enough about a frame.
    Forward,
    /// A timer of a model host is due: what has arrived at this moment comes before it.
    Timer,
    /// Counters are sampled: after everything else of this moment.
    Sample,
}

/// One event: a class and the index of the channel, switch, change or sampler that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time when it happens.
    pub at: Time,
    /// The kind of the event.
    pub class: Class,
    /// To which element of that class.
    pub element: u32,
}

/// The events to come. Each element has at most a few events in here: frames in flight wait in their link's own queue.
#[derive(Debug)]
pub struct EventQueue {
    /// Keys whose order is the order of events: 64 bits of time, 4 of class, 28 of tie-break, 32 of element.
    heap: Heap,
    seed: u64,
}

const CLASSES: [Class; 9] = [
    Class::Change,
    Class::Start,
    Class::Timeout,
    Class::Departure,
    Class::QueueReady,
    Class::Arrival,
    Class::Forward,
    Class::Timer,
    Class::Sample,
];

impl EventQueue {
    /// An empty queue whose ties are broken by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { heap: Heap::default(), seed }
    }

    /// Adds an event.
    ///
    /// Events of the same time and class are ordered by a hash of seed, time and element: independent sources in
    /// step with each other take turns at random, instead of the first-built one always winning (Floyd and Jacobson
    /// 1991, "traffic phase effects").
    pub fn push(&mut self, at: Time, class: Class, element: u32) {
        let tie = mix(self.seed ^ at.as_ps() ^ (u64::from(element) << 32 | u64::from(element)));
        let rest = u64::from(class as u8) << 60 | tie >> 36 << 32 | u64::from(element);
        self.heap.push(u128::from(at.as_ps()) << 64 | u128::from(rest));
    }

    /// Returns the time when the next event happens.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        self.heap.least().map(time_of)
    }

    /// Takes the next event that happens at `until` or before.
    pub fn pop_until(&mut self, until: Time) -> Option<Event> {
        let key = self.heap.peek().filter(|key| time_of(*key) <= until)?;
        self.heap.take();
        let class = CLASSES[((key as u64 >> 60) as usize).min(CLASSES.len() - 1)];
        Some(Event { at: time_of(key), class, element: key as u32 })
    }
}

/// The time in a key.
fn time_of(key: u128) -> Time {
    Time::from_ps((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn at_one_moment_the_class_decides_before_the_element() {
        let mut queue = EventQueue::new(7);
        let moment = Time::from_ns(5);
        for (position, class) in CLASSES.iter().enumerate().rev() {
            queue.push(moment, *class, u32::try_from(position).unwrap());
        }
        let order: Vec<Class> = std::iter::from_fn(|| queue.pop_until(moment)).map(|event| event.class).collect();
        assert_eq!(order, CLASSES);
    }

    #[test]
    fn ties_between_two_sources_are_won_by_each_about_half_the_time() {
        let mut queue = EventQueue::new(1);
        let wins = (0..10_000_u64)
            .filter(|step| {
                let moment = Time::from_ns(*step);
                queue.push(moment, Class::Arrival, 3);
                queue.push(moment, Class::Arrival, 4);
                let first = queue.pop_until(moment).unwrap().element;
                queue.pop_until(moment).unwrap();
                first == 3
            })
            .count();
        // Binomial(10,000, 1/2): five standard deviations are 250.
        assert!((4750..=5250).contains(&wins), "{wins}");
    }

    proptest! {
        #[test]
        fn events_come_in_time_order_and_never_past_the_limit(times in prop::collection::vec(0..1000_u64, 1..50),
            limit in 0..1000_u64) {
            let mut queue = EventQueue::new(3);
            for (element, time) in times.iter().enumerate() {
                queue.push(Time::from_ps(*time), Class::Arrival, u32::try_from(element).unwrap());
            }
            let taken: Vec<u64> =
                std::iter::from_fn(|| queue.pop_until(Time::from_ps(limit))).map(|event| event.at.as_ps()).collect();
            prop_assert!(taken.is_sorted());
            prop_assert_eq!(taken.len(), times.iter().filter(|time| **time <= limit).count());
        }
    }
}
