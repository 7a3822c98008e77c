//! Frames between the serialiser and the far end of a line.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

/// Frames on their way, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    ordered: VecDeque<(Time, Box<Frame>)>,
    last_arrival: Time,
    /// Those that may overtake others. Few lines have any, and all lines together are to fit into a processor's cache.
    disordered: Option<Box<Disordered>>,
}

/// Frames that may overtake others.
#[derive(Debug, Default)]
struct Disordered {
    frames: BinaryHeap<Reverse<Late>>,
    pushed: u64,
}

/// A frame that may overtake others; ordered by arrival, then by departure.
#[derive(Debug)]
struct Late {
    arrival: Time,
    departed: u64,
    frame: Box<Frame>,
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        (self.arrival, self.departed) == (other.arrival, other.departed)
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.arrival, self.departed).cmp(&(other.arrival, other.departed))
    }
}

impl InFlight {
    /// Adds a frame; returns when it arrives: at `arrival`, or with the frame before it where the order is kept.
    /// The second value says whether it has become the next to arrive.
    pub(crate) fn push(&mut self, arrival: Time, reorder: bool, frame: Box<Frame>) -> (Time, bool) {
        let before = self.next();
        let arrival = if reorder { arrival } else { arrival.max(self.last_arrival) };
        self.last_arrival = self.last_arrival.max(arrival);
        if reorder {
            let disordered = self.disordered.get_or_insert_default();
            disordered.pushed += 1;
            disordered.frames.push(Reverse(Late { arrival, departed: disordered.pushed, frame }));
        } else {
            self.ordered.push_back((arrival, frame));
        }
        (arrival, before.is_none_or(|before| arrival < before))
    }

    pub(crate) fn next(&self) -> Option<Time> {
        let ordered = self.ordered.front().map(|(at, _)| *at);
        let Some(disordered) = &self.disordered else { return ordered };
        let late = disordered.frames.peek().map(|Reverse(late)| late.arrival);
        match (ordered, late) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes a frame that has arrived by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Box<Frame>> {
        if self.disordered.is_none() {
            return match self.ordered.front() {
                Some((at, _)) if *at <= now => self.ordered.pop_front().map(|(_, frame)| frame),
                _ => None,
            };
        }
        let next = self.next()?;
        if next > now {
            return None;
        }
        if self.ordered.front().is_some_and(|(at, _)| *at == next) {
            return self.ordered.pop_front().map(|(_, frame)| frame);
        }
        self.disordered.as_mut()?.frames.pop().map(|Reverse(late)| late.frame)
    }

    /// What was due by `now` arrives at `moment`, and what follows it at least the time of `spacing` after the frame
    /// before it: a gap between frames takes up the move. Returns by how much the last frame was moved.
    pub(crate) fn postpone(&mut self, now: Time, moment: Time, spacing: impl Fn(&Frame) -> Duration) -> Duration {
        let mut moved = Duration::ZERO;
        let mut earliest = moment;
        for (position, (arrival, frame)) in self.ordered.iter_mut().enumerate() {
            if position > 0 {
                earliest += spacing(frame);
            }
            moved = earliest.since(*arrival);
            if moved == Duration::ZERO {
                break;
            }
            *arrival = earliest;
        }
        if let Some(disordered) = self.disordered.as_mut().filter(|disordered| !disordered.frames.is_empty()) {
            // Their order is not that in which they left: all keep their distances.
            moved = moment.since(now);
            let late = std::mem::take(&mut disordered.frames).into_iter();
            disordered.frames =
                late.map(|Reverse(late)| Reverse(Late { arrival: late.arrival + moved, ..late })).collect();
        }
        self.last_arrival += moved;
        moved
    }

    pub(crate) fn clear(&mut self) -> u64 {
        let disordered = self.disordered.as_mut().map(|disordered| std::mem::take(&mut disordered.frames));
        let frames = self.ordered.iter().map(|(_, frame)| frame.lose()).sum::<u64>()
            + disordered.iter().flatten().map(|Reverse(late)| late.frame.lose()).sum::<u64>();
        self.ordered.clear();
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(mark: u8) -> Box<Frame> {
        Box::new(Frame::new(vec![mark]))
    }

    #[test]
    fn the_order_is_kept_when_a_later_frame_has_less_delay() {
        let mut line = InFlight::default();
        line.push(Time::from_ns(10), false, marked(1));
        let (arrival, first) = line.push(Time::from_ns(4), false, marked(2));
        assert_eq!((arrival, first), (Time::from_ns(10), false));
        assert_eq!(line.pop(Time::from_ns(10)).unwrap().bytes, [1]);
        assert_eq!(line.pop(Time::from_ns(10)).unwrap().bytes, [2]);
    }

    #[test]
    fn frames_overtake_when_reordering_is_asked_for() {
        let mut line = InFlight::default();
        line.push(Time::from_ns(10), true, marked(1));
        let (_, first) = line.push(Time::from_ns(4), true, marked(2));
        assert!(first);
        assert!(line.pop(Time::from_ns(3)).is_none());
        assert_eq!(line.pop(Time::from_ns(20)).unwrap().bytes, [2]);
        assert_eq!(line.pop(Time::from_ns(20)).unwrap().bytes, [1]);
    }
}
