//! Frames of tunnelled links: how they enter the tunnel at the sending port, what befalls them on the line, and how they leave it.

use twinnet_packet::{Fragment, Frame};
use twinnet_units::Time;

use super::{Fabric, World};
use crate::link::Direction;
use twinnet_queue::ecn::{is_congested, mark_congestion};

impl Fabric {
    /// Gives `frame` to the tunnelled line of `port`: its queue discipline sees the outer frames.
    pub(super) fn offer_tunnelled(&mut self, port: u32, frame: Box<Frame>, world: &mut dyn World) {
        let Some(line) = self.line(port) else { return };
        let Some(tunnel) = &mut line.tunnel else { return };
        let (outer, refused) = tunnel.encapsulate(frame);
        line.counters.dropped_unfragmentable += refused;
        for frame in outer {
            self.offer_to_queue(port, frame, world);
        }
    }
}

impl Direction {
    /// `frame` comes from a host's interface: its outer frames are sent next.
    pub(super) fn enter_tunnel(&mut self, frame: Box<Frame>) {
        if let Some(tunnel) = &mut self.tunnel {
            let (outer, refused) = tunnel.encapsulate(frame);
            tunnel.waiting.extend(outer);
            self.counters.dropped_unfragmentable += refused;
        }
    }

    /// The next outer frame of what came from a host's interface.
    pub(super) fn next_outer(&mut self) -> Option<Box<Frame>> {
        self.tunnel.as_mut()?.waiting.pop_front()
    }
}

/// `outer` with its `fragment` has arrived: the frame that it completes.
pub(super) fn leave_tunnel(fragment: &Fragment, outer: &Frame, now: Time) -> Option<Box<Frame>> {
    let (mut carried, congested) = fragment.arrive(now, is_congested(outer))?;
    // RFC 6040 4.2: a mark on the outer header is handed to the inner one. What has no room for it was never marked, because the outer
    // header's bits are a copy.
    if congested {
        mark_congestion(&mut carried);
    }
    Some(carried)
}

/// What arrives beside `frame` when the line carries it twice.
pub(super) fn twin(frame: &Frame) -> Box<Frame> {
    let mut twin = Box::new(frame.clone());
    twin.fragment = frame.fragment.as_ref().map(Fragment::twin);
    twin
}

/// Turns a bit of `frame`; `false` when its receiver cannot know it for its own any more.
pub(super) fn corrupt(frame: &mut Frame, random: u64) -> bool {
    let bit = random % (frame.length().max(1) * 8);
    if let Some(fragment) = &frame.fragment {
        return fragment.turn_bit(bit);
    }
    frame.finish_checksum();
    frame.turn_bit(bit);
    true
}
