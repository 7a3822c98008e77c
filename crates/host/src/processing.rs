//! The time that a host takes before it deals with a frame that has arrived.

use std::collections::VecDeque;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_impair::{ImpairConfig, ImpairError, Impairments, JitterConfig};
use twinnet_packet::Frame;
use twinnet_units::random::Rng;
use twinnet_units::{Duration, Time};

use super::timers::{Alarm, Owner, Timers};

/// The time that a host takes for each frame: an interrupt, the kernel's receiving half, the app's turn on a processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessingConfig {
    /// The time, without jitter.
    pub delay_ps: Duration,
    /// The deviation of a frame's time from it; never below zero, and no frame overtakes another.
    #[serde(default)]
    pub jitter: Option<JitterConfig>,
}

impl ProcessingConfig {
    /// Returns `true` if frames are dealt with when they arrive.
    pub(super) fn takes_no_time(&self) -> bool {
        self.delay_ps == Duration::ZERO && self.jitter.is_none()
    }

    fn impairments(&self, random: Rng) -> Result<Impairments, ImpairError> {
        Impairments::new(&ImpairConfig { jitter: self.jitter.clone(), ..ImpairConfig::default() }, random)
    }
}

/// Frames that have arrived and wait for their turn, in the order of arrival at all interfaces.
pub(super) struct Processing {
    delay: Duration,
    jitter: Impairments,
    waiting: VecDeque<(Time, u16, Box<Frame>)>,
    last: Time,
    alarm: Alarm,
}

impl fmt::Debug for Processing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Processing").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Processing {
    /// # Errors
    /// For a jitter that is out of its range.
    pub(super) fn new(config: &ProcessingConfig, random: Rng) -> Result<Self, ImpairError> {
        let jitter = config.impairments(random)?;
        let (waiting, alarm) = (VecDeque::new(), Alarm::default());
        Ok(Self { delay: config.delay_ps, jitter, waiting, last: Time::ZERO, alarm })
    }

    /// A frame has arrived at `interface`.
    pub(super) fn push(&mut self, interface: u16, frame: Box<Frame>, now: Time, timers: &mut Timers) {
        let at = (now + self.jitter.delay(self.delay)).max(self.last);
        self.last = at;
        self.waiting.push_back((at, interface, frame));
        self.alarm.set(Some(at), Owner::Processing, timers);
    }

    /// The alarm rang: the frame whose turn it is, if there is one.
    pub(super) fn pop(&mut self, rung: Time, now: Time, timers: &mut Timers) -> Option<(u16, Box<Frame>)> {
        self.alarm.rings(rung);
        let due = self.waiting.front().is_some_and(|(at, ..)| *at <= now);
        let taken = if due { self.waiting.pop_front() } else { None };
        let next = self.waiting.front().map(|(at, ..)| *at);
        self.alarm.set(next, Owner::Processing, timers);
        taken.map(|(_, interface, frame)| (interface, frame))
    }
}
