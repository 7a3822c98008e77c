//! Token bucket: over any window of length T no more than burst + rate x T bytes leave.
//!
//! The conforming bytes are those of the committed bucket of RFC 2697; a frame that finds too few tokens waits
//! instead of being marked, as in the kernel's `tbf`. Rates and bytes are those of the link layer.

use std::collections::VecDeque;

use serde_json::Value;
use twinnet_packet::Frame;
use twinnet_units::Time;

use super::bucket::TokenBucket;
use super::class::Class;
use super::train::first_frame_bytes;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

/// The discipline. A frame longer than the burst could never be sent and is dropped as over the limit, as the
/// kernel does. Trains are cut to what the bucket holds.
pub struct Tbf {
    bucket: TokenBucket,
    class: Class,
}

impl Tbf {
    /// A bucket of `burst_bytes` filled at `rate_bps` before `inside`.
    #[must_use]
    pub fn new(rate_bps: u64, burst_bytes: u64, inside: Box<dyn QueueDiscipline>) -> Self {
        Self { bucket: TokenBucket::new(rate_bps, burst_bytes), class: Class::new(inside) }
    }
}

impl QueueDiscipline for Tbf {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        if self.bucket.can_hold(first_frame_bytes(&frame)) {
            self.class.enqueue(frame, now, drops);
        } else {
            self.class.refuse(frame, DropReason::Overlimit, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        let bytes = self.class.prime(now, drops)?;
        if !self.bucket.holds(bytes, now) {
            return None;
        }
        let frame = self.class.take(self.bucket.bytes(now))?;
        self.bucket.charge(frame.link_bytes(), now);
        Some(frame)
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        let frame = self.class.next_ready(now)?;
        // How long the next frame will be is not known while a shaper inside holds it back: then this may be too
        // early, never late.
        let Some(bytes) = self.class.head_bytes() else { return Some(frame) };
        self.bucket.ready(bytes, now)
    }

    fn backlog(&self) -> Backlog {
        self.class.backlog()
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.class.drain()
    }

    fn hold(&mut self, held: Backlog) {
        self.class.hold_outside(held);
    }

    fn class_counters(&self) -> Value {
        std::iter::once(self.class.counters(0)).collect()
    }
}
