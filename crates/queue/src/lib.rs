//! Queue disciplines: what a port does with frames it cannot send yet. One file each.
//!
//! A configuration builds a discipline; the port puts frames in and takes them out, and tells it the time:
//!
//! ```
//! use twinnet_packet::Frame;
//! use twinnet_queue::{DropReason, DropSink, QueueConfig};
//! use twinnet_units::Time;
//!
//! struct Lost(u32);
//! impl DropSink for Lost {
//!     fn dropped(&mut self, _: Box<Frame>, _: DropReason) {
//!         self.0 += 1;
//!     }
//!     fn marked(&mut self, _: &Frame) {}
//! }
//!
//! let config: QueueConfig = serde_json::from_str(r#"{"kind": "fifo", "limit_frames": 2}"#)?;
//! let (mut queue, mut lost) = (config.build()?, Lost(0));
//! for _ in 0..3 {
//!     queue.enqueue(Box::new(Frame::new(vec![0; 60])), Time::ZERO, &mut lost);
//! }
//! assert_eq!((queue.backlog().frames, lost.0), (2, 1));
//! assert!(queue.dequeue(Time::ZERO, &mut lost).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket;
mod cbq;
mod class;
mod classify;
mod codel;
mod config;
mod delay;
mod drr;
pub mod ecn;
mod estimator;
mod fifo;
pub mod flow;
mod fq_codel;
mod htb;
pub mod own;
mod pie;
mod priority;
mod ranges;
mod red;
mod sfq;
mod stamped;
mod tbf;
mod train;

#[cfg(test)]
mod tests;

pub use bucket::TokenBucket;
pub use cbq::{Cbq, CbqClassConfig, CbqConfig};
pub use classify::{Classify, ClassifyConfig, ClassifyRule, HeaderMatch};
pub use codel::{Codel, CodelConfig};
pub use config::{DrrClassConfig, HtbQueueConfig, QueueConfig, Site};
pub use delay::{Delay, DelayConfig};
pub use drr::Drr;
pub use fifo::Fifo;
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use htb::{Htb, HtbLeaf};
pub use own::OwnConfig;
pub use pie::{Pie, PieConfig};
pub use priority::Priority;
pub use ranges::QueueError;
pub use red::{Red, RedConfig};
pub use sfq::{Sfq, SfqConfig};
pub use tbf::Tbf;

use std::collections::VecDeque;
use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Serialize};
use twinnet_packet::{Frame, Framing};
use twinnet_units::Time;

/// Why a queue discipline did not keep a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The limit in frames or bytes was reached.
    Overlimit,
    /// An active queue management dropped it early, or a class loses some of its frames.
    Early,
    /// No class of the discipline takes it.
    Unclassified,
}

/// Takes the frames that a discipline gives up, so that they are counted and freed in one place, and is told of
/// those it marked.
pub trait DropSink {
    /// `frame` (one frame or a train) will not be sent.
    fn dropped(&mut self, frame: Box<Frame>, reason: DropReason);

    /// `frame` was marked as having met congestion and stays.
    fn marked(&mut self, frame: &Frame);
}

/// The frames and bytes that wait in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Backlog {
    /// Frames; a train counts as the frames it stands for.
    pub frames: u64,
    /// Bytes at the link layer (Ethernet header included, FCS and framing not).
    pub bytes: u64,
}

impl Backlog {
    /// Of `frame` alone; a train counts as the frames that it stands for.
    pub fn of(frame: &Frame) -> Self {
        let extent = frame.extent(Framing::None);
        Self { frames: extent.frames, bytes: extent.link_bytes }
    }
}

impl Add for Backlog {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self { frames: self.frames + rhs.frames, bytes: self.bytes + rhs.bytes }
    }
}

impl Sum for Backlog {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

/// The rates that a class of a queue discipline has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassRates {
    /// Its number.
    pub class: u32,
    /// Guaranteed.
    pub min_rate_bps: u64,
    /// Never exceeded.
    pub max_rate_bps: u64,
}

/// A queue discipline, which belongs to one port (or to one class of another discipline).
///
/// Who calls it, and in which order: the port's line calls [`enqueue`](Self::enqueue) for each frame or train that it
/// is to send, and [`dequeue`](Self::dequeue) whenever its serialiser is idle. When `dequeue` gives nothing, the line
/// asks [`next_ready`](Self::next_ready) and calls `dequeue` again then, or after the next `enqueue`, whichever comes
/// first. `now` never goes back from one call to the next.
///
/// Invariants: each frame that was offered is in the [`backlog`](Self::backlog), has come out of `dequeue`, or
/// was given to the [`DropSink`], exactly once (a property test holds every discipline to it). All chance comes
/// from the stream of the [`Site`] that it was built for.
pub trait QueueDiscipline: Send {
    /// Offers `frame` at `now`; what is not kept (it, a part of its train, or another) goes to `drops`.
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink);

    /// The next frame to send at `now`, if one may be sent.
    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>>;

    /// After `dequeue` gave nothing: when it may give something without a further `enqueue`; at once, unless the
    /// discipline says otherwise. `None`: it is empty.
    fn next_ready(&self, now: Time) -> Option<Time> {
        (self.backlog().frames > 0).then_some(now)
    }

    /// Returns what waits, over all classes.
    fn backlog(&self) -> Backlog;

    /// Returns `true` if `frame`, if it were enqueued now, would come out at once and leave no trace: it need not go in
    /// then.
    fn lets_pass(&self, _frame: &Frame) -> bool {
        false
    }

    /// Returns `true` if [`QueueDiscipline::lets_pass`] is so for a single frame, whatever its length.
    fn lets_front_pass(&self) -> bool {
        false
    }

    /// Returns `true` if nothing waits.
    fn is_empty(&self) -> bool {
        self.backlog().frames == 0
    }

    /// Returns `true` if [`dequeue`](Self::dequeue) gives nothing only when nothing waits, and then changes nothing: it
    /// need not be called again before the next `enqueue`.
    fn rests_while_empty(&self) -> bool {
        false
    }

    /// Tells that `held`, though dequeued, has not left the port: it counts against the limits, not in `backlog`. A
    /// classful discipline around this one calls it, because it takes the next frame out before it may be sent.
    fn hold(&mut self, _held: Backlog) {}

    /// Takes out all that waits, in the order of its classes and whether it may be sent or not: for the discipline
    /// that takes the place of this one.
    fn drain(&mut self) -> VecDeque<Box<Frame>>;

    /// Counters of each class as a JSON array of objects; empty for a discipline without classes.
    fn class_counters(&self) -> serde_json::Value {
        serde_json::Value::Array(Vec::new())
    }

    /// Returns the rates that each class is promised, where the discipline promises rates; empty for any other.
    fn class_rates(&self) -> Vec<ClassRates> {
        Vec::new()
    }
}
