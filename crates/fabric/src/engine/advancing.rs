//! Time passes: the events that are due, one after the other.

use twinnet_units::random::mix;
use twinnet_units::Time;

use super::{Fabric, World};
use crate::event::{Class, Event};

impl Fabric {
    /// Lets time pass until `until`: handles every event that is due.
    pub fn advance(&mut self, until: Time, world: &mut dyn World) {
        self.update_spanning_tree();
        self.wall = if world.is_on_the_wall_clock() { until } else { Time::ZERO };
        while let Some(event) = self.events.pop_until(until) {
            self.now = event.at;
            self.handle(event, world);
        }
        self.now = self.now.max(until);
    }

    /// Handles events until `until`, but at most `most` of them, and none past the moment at which controllers are to
    /// be told something ([`Fabric::controllers_are_due`]); returns whether any due one is left.
    pub fn advance_some(&mut self, until: Time, most: usize, world: &mut dyn World) -> bool {
        self.advance_unless(until, most, world, |_| false)
    }

    /// As [`Fabric::advance_some`], but ends as soon as an app of a model host finishes, at the moment it does.
    pub fn advance_until_app_finishes(&mut self, until: Time, most: usize, world: &mut dyn World) -> bool {
        let finished = self.finished_apps;
        self.advance_unless(until, most, world, |fabric| fabric.finished_apps != finished)
    }

    #[inline]
    fn advance_unless(
        &mut self,
        until: Time,
        most: usize,
        world: &mut dyn World,
        is_over: impl Fn(&Self) -> bool,
    ) -> bool {
        self.update_spanning_tree();
        self.wall = if world.is_on_the_wall_clock() { until } else { Time::ZERO };
        for _ in 0..most {
            if self.controllers_are_due() {
                return true;
            }
            let Some(event) = self.events.pop_until(until) else {
                self.now = self.now.max(until);
                return false;
            };
            self.now = event.at;
            self.handle(event, world);
            if is_over(self) {
                break;
            }
        }
        self.events.next_time().is_some_and(|next| next <= until)
    }

    fn handle(&mut self, event: Event, world: &mut dyn World) {
        let element = event.element;
        self.handled += 1;
        // What only looks at the network (samples), or may or may not be needed to move it (departures), is left out.
        if !matches!(event.class, Class::Departure | Class::QueueReady | Class::Sample) {
            self.trace = mix(self.trace ^ event.at.as_ps()) ^ (u64::from(element) << 8 | event.class as u64);
        }
        if self.tells_events {
            world.happens(event);
        }
        match event.class {
            Class::Departure => self.depart(element, world),
            Class::Arrival => self.arrive(element, world),
            Class::QueueReady => self.release(element, world),
            Class::Forward => self.forward(element, world),
            Class::Timeout => self.time_out(element, world),
            Class::Change => {
                if let Some(change) = self.changes[element as usize].take() {
                    for (port, change) in change {
                        self.apply(port, change, world);
                    }
                }
            }
            Class::Timer => self.model_timer(element, world),
            Class::Start => self.apps_start(element, world),
            Class::Sample => self.sample(element),
        }
    }
}
