//! Queue disciplines: what a port does with frames it cannot send yet. One file each.

use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::Time;

/// Why a queue discipline did not keep a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The limit in frames or bytes was reached.
    Overlimit,
    /// An active queue management dropped it early.
    Early,
    /// No class of the discipline takes it.
    Unclassified,
}

/// Takes the frames that a discipline gives up, so that they are counted and freed in one place.
pub trait DropSink {
    /// `frame` (one frame or a train) will not be sent.
    fn dropped(&mut self, frame: Box<Frame>, reason: DropReason);
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Backlog {
    /// Frames; a train counts as the frames it stands for.
    pub frames: u64,
    /// Bytes at the link layer (Ethernet header included, FCS and framing not).
    pub bytes: u64,
}

/// A queue discipline. The port enqueues what it is to send and dequeues when its serialiser is idle.
pub trait QueueDiscipline: Send {
    /// Offers `frame` at `now`; what is not kept (it, a part of its train, or another) goes to `drops`.
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink);

    /// The next frame to send at `now`, if one may be sent.
    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>>;

    /// After `dequeue` gave nothing: when it may give something without a further `enqueue`. `None`: it is empty.
    fn next_ready(&self, now: Time) -> Option<Time>;

    /// What waits, over all classes.
    fn backlog(&self) -> Backlog;

    /// Counters of each class as a JSON array of objects; empty for a discipline without classes.
    fn class_counters(&self) -> serde_json::Value {
        serde_json::Value::Array(Vec::new())
    }
}
