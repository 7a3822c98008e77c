//! Interrupt coalescing: a host's network card keeps frames for a moment, so that one interrupt serves several.
//!
//! Real cards do this with a timer and a count (`ethtool -C rx-usecs`, `rx-frames`): the first frame that finds none
//! waiting starts the timer; when it ends, or when so many frames wait, the host is told of all of them. A frame is
//! later by up to the timer for it.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::{impossible, Duration, Time};

use super::{Fabric, Node, NodeId, PortId, World};
use crate::event::Class;

/// The moments at which a network card tells its host of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coalescing {
    /// The longest that a frame is kept.
    pub delay_ps: Duration,
    /// So many frames are told of at once, however short they have waited; `None`: as many as come in that time.
    #[serde(default)]
    pub frames: Option<NonZeroU64>,
}

/// Set in the element of an event that concerns the card at a port, and not a switch.
pub(super) const CARD: u32 = 1 << 31;

/// Frames that a card keeps.
pub(super) struct Kept {
    settings: Coalescing,
    // Boxes are what moves on.
    #[allow(clippy::vec_box)]
    waiting: Vec<Box<Frame>>,
    frames: u64,
    /// The time when the timer ends; `None` while nothing waits.
    tells_at: Option<Time>,
}

impl Fabric {
    /// Has the cards of host `node` coalesce interrupts from now on, or tell of each frame at once. Frames that wait
    /// are told of by the old setting's timer.
    pub fn set_coalescing(&mut self, node: NodeId, settings: Option<Coalescing>) {
        for port in self.ports.iter_mut().filter(|port| port.node == node) {
            match (&mut port.kept, settings) {
                (Some(kept), Some(settings)) => kept.settings = settings,
                (Some(kept), None) => kept.settings = Coalescing { delay_ps: Duration::ZERO, frames: None },
                (None, Some(settings)) => {
                    port.kept = Some(Box::new(Kept { settings, waiting: Vec::new(), frames: 0, tells_at: None }));
                }
                (None, None) => {}
            }
        }
    }

    /// The card at `port` of a host keeps `frame`, or tells of what it has.
    pub(super) fn keep(&mut self, port: PortId, frame: Box<Frame>, world: &mut dyn World) {
        let now = self.now;
        let at = &mut self.ports[port.0 as usize];
        let Some(kept) = &mut at.kept else { return self.hand_to_host(port, frame, world) };
        kept.frames += frame.frames();
        kept.waiting.push(frame);
        let full = kept.settings.frames.is_some_and(|most| kept.frames >= most.get());
        if full || kept.settings.delay_ps == Duration::ZERO {
            self.tell(port, world);
        } else if kept.tells_at.is_none() {
            let at = now + kept.settings.delay_ps;
            kept.tells_at = Some(at);
            self.events.push(at, Class::Forward, port.0 | CARD);
        }
    }

    /// The timer of the card at `port` may have ended.
    pub(super) fn tell_due(&mut self, port: u32, world: &mut dyn World) {
        let at = self.ports.get(port as usize).and_then(|port| port.kept.as_ref()).and_then(|kept| kept.tells_at);
        if at.is_some_and(|tells_at| tells_at <= self.now) {
            self.tell(PortId(port), world);
        }
    }

    /// Tells the host of all frames that its card at `port` keeps.
    fn tell(&mut self, port: PortId, world: &mut dyn World) {
        let Some(kept) = &mut self.ports[port.0 as usize].kept else {
            return impossible!("a card that keeps frames and has no setting");
        };
        kept.tells_at = None;
        kept.frames = 0;
        let mut waiting = std::mem::take(&mut kept.waiting);
        if matches!(self.nodes[self.ports[port.0 as usize].node.0 as usize], Node::Host) {
            world.deliver_together(port, &mut waiting, self.now);
        }
        for frame in waiting.drain(..) {
            self.hand_to_host(port, frame, world);
        }
        // The room is used again.
        if let Some(kept) = &mut self.ports[port.0 as usize].kept {
            if kept.waiting.is_empty() {
                kept.waiting = waiting;
            }
        }
    }

    fn hand_to_host(&mut self, port: PortId, frame: Box<Frame>, world: &mut dyn World) {
        let node = self.ports[port.0 as usize].node;
        match &self.nodes[node.0 as usize] {
            Node::Model(_) => self.model_receives(node.0, port, frame, world),
            Node::Host | Node::Switch(_) => world.deliver(port, frame, self.now),
        }
    }
}
