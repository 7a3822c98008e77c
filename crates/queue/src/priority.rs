//! Strict priority: a band is served only while all bands before it are empty (the kernel's `prio`).

use std::collections::VecDeque;

use serde_json::Value;
use twinnet_packet::Frame;
use twinnet_units::Time;

use super::class::Class;
use super::{Backlog, DropSink, QueueDiscipline};

/// The discipline. Trains in all bands but the first are cut to single frames, so that a frame of a higher band
/// waits for no more than one frame of a lower one.
pub struct Priority {
    bands: Vec<Class>,
    last: usize,
}

impl Priority {
    /// Strict priority among `bands`, the first of which is served first; a frame's queue number selects its band,
    /// band 0 takes those that select none.
    #[must_use]
    pub fn new(bands: Vec<Box<dyn QueueDiscipline>>) -> Self {
        Self { bands: bands.into_iter().map(Class::new).collect(), last: 0 }
    }
}

impl QueueDiscipline for Priority {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let band = usize::try_from(frame.queue).ok().filter(|band| *band < self.bands.len()).unwrap_or(0);
        self.bands[band].enqueue(frame, now, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        for (index, band) in self.bands.iter_mut().enumerate() {
            if band.prime(now, drops).is_some() {
                self.last = index;
                return band.take(if index == 0 { u64::MAX } else { 0 });
            }
        }
        None
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.bands.iter().filter_map(|band| band.next_ready(now)).min()
    }

    fn backlog(&self) -> Backlog {
        self.bands.iter().map(Class::backlog).sum()
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.bands.iter_mut().flat_map(Class::drain).collect()
    }

    fn hold(&mut self, held: Backlog) {
        if let Some(band) = self.bands.get_mut(self.last) {
            band.hold_outside(held);
        }
    }

    fn class_counters(&self) -> Value {
        (0..).zip(&self.bands).map(|(number, band)| band.counters(number)).collect()
    }
}
