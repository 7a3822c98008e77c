//! Deficit round robin: M. Shreedhar and G. Varghese, *Efficient Fair Queuing using Deficit Round Robin*, SIGCOMM 1995.

use std::collections::VecDeque;

use serde_json::Value;
use twinnet_packet::Frame;
use twinnet_units::Time;

use super::class::Class;
use super::{Backlog, DropSink, QueueDiscipline};

/// The discipline. A backlogged class is on the list of active ones; at the head of it, it gains its quantum and
/// sends while its deficit covers the next frame. A class that becomes empty forgets its deficit. Trains are cut to
/// what the deficit covers.
pub struct Drr {
    classes: Vec<DrrClass>,
    active: VecDeque<usize>,
    /// The class at the head of the list has got the quantum of this turn.
    turn_begun: bool,
    last: usize,
}

struct DrrClass {
    quantum: u64,
    deficit: u64,
    listed: bool,
    class: Class,
}

impl Drr {
    /// Takes classes as quantum in bytes (not zero) and the discipline inside; a frame's queue number selects its
    /// class, class 0 takes those that select none.
    #[must_use]
    pub fn new(classes: Vec<(u64, Box<dyn QueueDiscipline>)>) -> Self {
        let classes = classes
            .into_iter()
            .map(|(quantum, inside)| DrrClass {
                quantum: quantum.max(1),
                deficit: 0,
                listed: false,
                class: Class::new(inside),
            })
            .collect();
        Self { classes, active: VecDeque::new(), turn_begun: false, last: 0 }
    }

    /// Spares the rounds in which no class could send: with small quanta and long frames there may be very many.
    fn skip_empty_rounds(&mut self) {
        let rounds = self.active.iter().filter_map(|&index| {
            let class = &self.classes[index];
            let missing = class.class.head_bytes()?.saturating_sub(class.deficit);
            Some(missing.div_ceil(class.quantum))
        });
        let empty_rounds = rounds.min().unwrap_or(0).saturating_sub(1);
        for &index in &self.active {
            let class = &mut self.classes[index];
            if class.class.is_primed() {
                class.deficit += empty_rounds * class.quantum;
            }
        }
    }

    /// Finds the next frame of every class; whether there is any. The class whose turn it is keeps its turn.
    fn prime(&mut self, now: Time, drops: &mut dyn DropSink) -> bool {
        let mut any = false;
        for &index in &self.active {
            any |= self.classes[index].class.prime(now, drops).is_some();
        }
        any
    }

    fn send_from(&mut self, index: usize) -> Option<Box<Frame>> {
        let class = &mut self.classes[index];
        let frame = class.class.take(class.deficit)?;
        class.deficit = class.deficit.saturating_sub(frame.link_bytes());
        self.last = index;
        if class.class.backlog().frames == 0 {
            self.leave();
        }
        Some(frame)
    }

    fn next_turn(&mut self) {
        self.active.rotate_left(1);
        self.turn_begun = false;
    }

    fn leave(&mut self) {
        if let Some(index) = self.active.pop_front() {
            self.classes[index].listed = false;
            self.classes[index].deficit = 0;
        }
        self.turn_begun = false;
    }
}

impl QueueDiscipline for Drr {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let index = usize::try_from(frame.queue).ok().filter(|index| *index < self.classes.len()).unwrap_or(0);
        let class = &mut self.classes[index];
        class.class.enqueue(frame, now, drops);
        if !class.listed && class.class.backlog().frames > 0 {
            class.listed = true;
            self.active.push_back(index);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        if !self.prime(now, drops) {
            return None;
        }
        let mut short = 0;
        loop {
            let index = *self.active.front()?;
            let class = &mut self.classes[index];
            let Some(bytes) = class.class.head_bytes() else {
                self.next_turn();
                continue;
            };
            if !self.turn_begun {
                class.deficit += class.quantum;
                self.turn_begun = true;
            }
            if class.deficit >= bytes {
                return self.send_from(index);
            }
            self.next_turn();
            short += 1;
            if short == self.active.len() {
                self.skip_empty_rounds();
            }
        }
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.active.iter().filter_map(|&index| self.classes[index].class.next_ready(now)).min()
    }

    fn backlog(&self) -> Backlog {
        self.active.iter().map(|&index| self.classes[index].class.backlog()).sum()
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        while !self.active.is_empty() {
            self.leave();
        }
        self.classes.iter_mut().flat_map(|class| class.class.drain()).collect()
    }

    fn hold(&mut self, held: Backlog) {
        if let Some(class) = self.classes.get_mut(self.last) {
            class.class.hold_outside(held);
        }
    }

    fn class_counters(&self) -> Value {
        (0..).zip(&self.classes).map(|(number, class)| class.class.counters(number)).collect()
    }
}
