//! Frames between a node's port and the line behind it, and the moments at which the engine comes back to a line.

use std::collections::BTreeMap;

use twinnet_packet::Frame;
use twinnet_units::{impossible, Time};

use super::showing::{show_train, Showing};
use super::{Fabric, Node, Port, PortId, Way, World};
use crate::event::{Class, EventQueue};
use crate::line::{Budget, DirectionConfig, Effects, Line, Sender};
use twinnet_packet::FramePool;

/// The node that sends into the line of `port`, and who watches the port.
pub(super) struct Behind<'a> {
    port: u32,
    now: Time,
    nodes: &'a mut [Node],
    ports: &'a [Port],
    pool: &'a mut FramePool,
    departing: &'a mut BTreeMap<u32, (Time, Box<Frame>)>,
    events: &'a mut EventQueue,
    world: &'a mut dyn World,
}

impl Sender for Behind<'_> {
    fn pull(&mut self, now: Time) -> Option<Box<Frame>> {
        let at = &self.ports[self.port as usize];
        match &mut self.nodes[at.node.0 as usize] {
            Node::Model(model) => model.host.pull(at.number as usize, now, self.pool),
            Node::Host | Node::Switch(_) => self.world.pull(PortId(self.port)),
        }
    }

    fn waits(&self) -> bool {
        let at = &self.ports[self.port as usize];
        match &self.nodes[at.node.0 as usize] {
            Node::Model(model) => model.host.has_frames(at.number as usize),
            Node::Host | Node::Switch(_) => true,
        }
    }

    fn blank(&mut self) -> Box<Frame> {
        let at = &self.ports[self.port as usize];
        match &self.nodes[at.node.0 as usize] {
            Node::Model(_) => self.pool.take(),
            Node::Host | Node::Switch(_) => self.world.blank(),
        }
    }

    fn recycle(&mut self, frame: Box<Frame>) {
        let at = &self.ports[self.port as usize];
        match &self.nodes[at.node.0 as usize] {
            Node::Model(_) => self.pool.recycle(frame),
            Node::Host | Node::Switch(_) => self.world.recycle(frame),
        }
    }

    fn departing(&mut self, config: &DirectionConfig, frame: &Frame, last_bit: Time) {
        if self.ports[self.port as usize].captured {
            self.show_departing(config, frame, last_bit);
        }
    }

    fn cross(&mut self, frame: Box<Frame>, arrival: Time) {
        self.world.cross(PortId(self.port), frame, arrival);
    }
}

impl Behind<'_> {
    /// A train goes onto the serialiser of a captured port: shows it when its last bit has left.
    #[cold]
    fn show_departing(&mut self, config: &DirectionConfig, frame: &Frame, last_bit: Time) {
        if let Some(fragment) = &frame.fragment {
            // A port shows what its node sent: the carried frame, when the last of it has left.
            if let Some(carried) = fragment.departed() {
                self.show_departing(config, &carried, last_bit);
            }
            return;
        }
        if last_bit <= self.now {
            let showing = Showing::of(config);
            show_train(self.port, Way::Out, frame, last_bit, showing, self.world);
            return;
        }
        self.departing.insert(self.port, (last_bit, Box::new(frame.clone())));
        self.events.push(last_bit, Class::Departure, self.port);
    }
}

impl Fabric {
    /// The line that `port` sends into, and the node that does. Every port of a network that was assembled has one:
    /// without, a frame has nowhere to go, which is counted.
    pub(super) fn line_and_sender<'a>(
        &'a mut self,
        port: u32,
        world: &'a mut dyn World,
    ) -> Option<(&'a mut Line, Behind<'a>)> {
        let line = self.lines[port as usize].as_mut()?;
        let behind = Behind {
            port,
            now: self.now,
            nodes: &mut self.nodes,
            ports: &self.ports,
            pool: &mut self.pool,
            departing: &mut self.departing,
            events: &mut self.events,
            world,
        };
        Some((line, behind))
    }

    /// Comes back to the line of `port` when it asks for it.
    #[inline]
    pub(super) fn plan(&mut self, port: u32, effects: Effects) {
        if let Some(at) = effects.arrival {
            self.events.push(at, Class::Arrival, port);
        }
        if let Some(at) = effects.departure {
            self.events.push(at, Class::Departure, port);
        }
        if let Some(at) = effects.ready {
            self.events.push(at, Class::QueueReady, port);
        }
    }

    /// Gives `frame` to `port` to be sent.
    pub(super) fn offer(&mut self, port: u32, frame: Box<Frame>, world: &mut dyn World) {
        let now = self.now;
        let Some((line, mut sender)) = self.line_and_sender(port, world) else {
            self.ports[port as usize].without_line += frame.frames();
            return;
        };
        let effects = line.offer(frame, now, &mut sender);
        self.plan(port, effects);
    }

    /// The node behind `port` has something to send.
    pub(super) fn wake(&mut self, port: u32, world: &mut dyn World) {
        let now = self.now;
        let Some((line, mut sender)) = self.line_and_sender(port, world) else {
            return impossible!("an interface that feeds no line");
        };
        let effects = line.wake(now, &mut sender);
        self.plan(port, effects);
    }

    /// Begins the next frame of `port` if its serialiser is idle; returns whether `budget` was used up.
    pub(super) fn begin(&mut self, port: u32, budget: Budget, world: &mut dyn World) -> bool {
        let now = self.now;
        let Some((line, mut sender)) = self.line_and_sender(port, world) else {
            impossible!("a serialiser without a line");
            return false;
        };
        let (effects, spent) = line.begin(now, &mut sender, budget);
        self.plan(port, effects);
        spent
    }

    /// A departure from `port` is due.
    pub(super) fn depart(&mut self, port: u32, world: &mut dyn World) {
        if !self.departing.is_empty() {
            self.show_departed(port, world);
        }
        let (now, wall) = (self.now, self.wall);
        let Some((line, mut sender)) = self.line_and_sender(port, world) else {
            return impossible!("a departure without a line");
        };
        if let Some(effects) = line.depart(now, wall, &mut sender) {
            self.plan(port, effects);
            self.settle_behind(port, world);
        }
    }

    /// The queue discipline of `port` may release a frame.
    pub(super) fn release(&mut self, port: u32, world: &mut dyn World) {
        let (now, wall) = (self.now, self.wall);
        let Some((line, mut sender)) = self.line_and_sender(port, world) else {
            return impossible!("a queue without a line");
        };
        if let Some(effects) = line.release(now, wall, &mut sender) {
            self.plan(port, effects);
        }
    }
}
