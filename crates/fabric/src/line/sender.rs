//! The sending side of a line: the node that sends into it, and what feeds its serialiser.

use twinnet_packet::Frame;
use twinnet_queue::{DropReason, DropSink, QueueDiscipline};
use twinnet_units::Time;

use super::{DirectionConfig, DirectionCounters};

/// The source that feeds the serialiser of a line.
pub(crate) enum Feed {
    /// A queue discipline inside the fabric.
    Queue(Box<dyn QueueDiscipline>),
    /// The interface of a real host: the fabric takes a frame from it when the serialiser is idle, and leaves the
    /// others where they are, so that the sender feels its interface's queue as on hardware.
    Interface,
}

/// The abilities that a line needs of the node that sends into it.
pub(crate) trait Sender {
    /// The next frame that the node wants to send, if there is one.
    fn pull(&mut self, now: Time) -> Option<Box<Frame>>;

    /// Returns `true` if the node may have a frame to send. A real host has to be asked for one to find out.
    fn waits(&self) -> bool;

    /// A frame whose buffer may be used for another.
    fn blank(&mut self) -> Box<Frame>;

    /// Takes back a frame that is no longer needed.
    fn recycle(&mut self, frame: Box<Frame>);

    /// `frame` has been begun and its last bit leaves at `last_bit`.
    fn departing(&mut self, config: &DirectionConfig, frame: &Frame, last_bit: Time);

    /// `frame` is on its way to a far end that another fabric has, and arrives there at `arrival`.
    fn cross(&mut self, frame: Box<Frame>, arrival: Time);
}

/// Counts what a queue discipline gives up.
pub(super) struct CountDrops<'a>(pub(super) &'a mut DirectionCounters);

impl DropSink for CountDrops<'_> {
    fn dropped(&mut self, frame: Box<Frame>, reason: DropReason) {
        let counter = match reason {
            DropReason::Overlimit => &mut self.0.dropped_overlimit,
            DropReason::Early => &mut self.0.dropped_early,
            DropReason::Unclassified => &mut self.0.dropped_unclassified,
        };
        *counter += frame.refuse();
    }

    fn marked(&mut self, frame: &Frame) {
        self.0.marked += frame.frames();
    }
}
