//! Changes of a line while it runs: its configuration, its queue discipline, whether it is up, and how far it
//! catches up.

use twinnet_impair::ImpairError;
use twinnet_queue::QueueDiscipline;
use twinnet_units::{Duration, Time};

use super::deliveries::Deliveries;
use super::sender::CountDrops;
use super::{catch_up, longest_frame, DirectionConfig, Effects, Essentials, Feed, Line, Sender, TWO_TAGS};

impl Line {
    /// Lets the line catch up with lateness up to `bound`; `None` derives it from its rate ([`catch_up`]). Without a
    /// rate nothing is too late.
    pub(crate) fn set_catch_up(&mut self, bound: Option<Duration>) {
        let derived = self.config.rate_bps.map(|rate| {
            bound.unwrap_or_else(|| catch_up(rate.serialise(self.config.wire_bytes(self.longest_frame - TWO_TAGS))))
        });
        self.schedule.set_catch_up(derived.unwrap_or(Duration::MAX));
    }

    /// Takes frames with a payload of up to `mtu` bytes from now on. Frames that wait are on the line already.
    pub(crate) fn set_mtu(&mut self, mtu: u64) {
        self.longest_frame = longest_frame(mtu);
    }

    /// Has the frames of a train leave one by one, or together for up to [`super::LONGEST_TRAIN`].
    pub(crate) fn set_singly(&mut self, singly: bool) {
        self.singly = singly;
    }

    /// Takes over a configuration; `tunnel` stays as it is. Frames whose first bit has left keep the old rate, frames
    /// that have left keep their delay.
    ///
    /// # Errors
    /// [`ImpairError`] when an impairment is refused; nothing has changed then.
    pub(crate) fn reconfigure(&mut self, config: DirectionConfig) -> Result<(), ImpairError> {
        // The stream of random numbers goes on where it is.
        self.impairments.reconfigure(&config.impair)?;
        if config.delivery_trace != self.config.delivery_trace {
            self.deliveries = config.delivery_trace.clone().map(|trace| Box::new(Deliveries::new(trace)));
        }
        self.config = DirectionConfig { tunnel: self.config.tunnel, ..config };
        self.essentials = Essentials::of(&self.config, &self.impairments);
        Ok(())
    }

    /// Goes up or down; returns whether that is a change. Going down loses what is on the wire, on the serialiser and
    /// waiting.
    pub(crate) fn set_up(&mut self, up: bool, now: Time) -> bool {
        if std::mem::replace(&mut self.up, up) == up {
            return false;
        }
        if !up {
            let lost = self.cut(now);
            self.counters.dropped_down += lost;
        }
        true
    }

    fn cut(&mut self, now: Time) -> u64 {
        self.settle_counters(now);
        self.busy_until = self.busy_until.min(now);
        self.departure_at = None;
        let mut lost = self.in_flight.clear() + self.rest.take().map_or(0, |train| train.frames());
        if let Feed::Queue(queue) = &mut self.feed {
            lost += queue.drain().iter().map(|frame| frame.refuse()).sum::<u64>();
        }
        self.keep_rest(None);
        if let Some(tunnel) = &mut self.tunnel {
            lost += tunnel.waiting.drain(..).map(|frame| frame.refuse()).sum::<u64>();
        }
        lost
    }

    /// Puts another queue discipline before the serialiser; frames that wait in the old one are moved into it in order.
    pub(crate) fn set_queue<S: Sender>(
        &mut self,
        mut new: Box<dyn QueueDiscipline>,
        now: Time,
        sender: &mut S,
    ) -> Effects {
        if let Feed::Queue(old) = &mut self.feed {
            for frame in old.drain() {
                new.enqueue(frame, now, &mut CountDrops(&mut self.counters));
            }
        }
        self.feed = Feed::Queue(new);
        self.tell_rest();
        self.ready_at = None;
        self.wake(now, sender)
    }
}
