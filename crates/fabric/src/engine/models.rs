//! Model hosts as nodes of the engine: when they are asked for frames, and when their timers are due.

use twinnet_packet::Frame;
use twinnet_units::{impossible, Time};

use super::{Fabric, Node, NodeId, PortId, World};
use crate::event::Class;
use crate::line::Line;
use twinnet_host::ModelHost;
use twinnet_packet::FramePool;

/// A model host and its place among the ports.
pub(super) struct ModelNode {
    pub(super) host: ModelHost,
    /// Its interfaces in order.
    pub(super) ports: Vec<PortId>,
    /// The earliest moment for which a timer event stands in the queue.
    timer_at: Option<Time>,
}

impl Fabric {
    /// Adds a model host.
    pub fn add_model(&mut self, host: ModelHost) -> NodeId {
        self.add_node(Node::Model(Box::new(ModelNode { host, ports: Vec::new(), timer_at: None })))
    }

    /// The model host `node`, if it is one.
    #[must_use]
    pub fn model(&self, node: NodeId) -> Option<&ModelHost> {
        match self.nodes.get(node.0 as usize)? {
            Node::Model(model) => Some(&model.host),
            Node::Host | Node::Switch(_) => None,
        }
    }

    /// Changes the model host `node`, if it is one, by `change`; what it wants to send then is sent.
    pub fn with_model<T>(
        &mut self,
        node: NodeId,
        world: &mut dyn World,
        change: impl FnOnce(&mut ModelHost, Time, &mut FramePool) -> T,
    ) -> Option<T> {
        let now = self.now;
        let Node::Model(model) = self.nodes.get_mut(node.0 as usize)? else { return None };
        let result = change(&mut model.host, now, &mut self.pool);
        self.settle(node.0, world);
        Some(result)
    }

    /// Apps of model hosts that have finished so far.
    #[must_use]
    pub fn finished_apps(&self) -> u64 {
        self.finished_apps
    }

    /// A timer of a model host is due.
    pub(super) fn model_timer(&mut self, node: u32, world: &mut dyn World) {
        let now = self.now;
        if let Node::Model(model) = &mut self.nodes[node as usize] {
            if model.timer_at.is_none_or(|at| at > now) {
                return;
            }
            model.timer_at = None;
            if model.host.deadline().is_some_and(|at| at <= now) {
                model.host.timer(now, &mut self.pool);
            }
        }
        self.settle(node, world);
    }

    /// Apps of a model host start.
    pub(super) fn apps_start(&mut self, node: u32, world: &mut dyn World) {
        if let Node::Model(model) = &mut self.nodes[node as usize] {
            model.host.timer(self.now, &mut self.pool);
        }
        self.settle(node, world);
    }

    /// The host behind `port` has a frame for it.
    pub(super) fn model_receives(&mut self, node: u32, port: PortId, frame: Box<Frame>, world: &mut dyn World) {
        let interface = self.ports[port.0 as usize].number as usize;
        if let Node::Model(model) = &mut self.nodes[node as usize] {
            model.host.receive(interface, frame, self.now, &mut self.pool);
        }
        self.settle(node, world);
    }

    /// After frames were taken from the host behind `port`, or its link has changed: what a model host then wants
    /// (its connections go on when a frame has left) is seen to.
    pub(super) fn settle_behind(&mut self, port: u32, world: &mut dyn World) {
        let node = self.ports[port as usize].node.0;
        if matches!(self.nodes[node as usize], Node::Model(_)) {
            self.settle(node, world);
        }
    }

    /// After a model host was called: begins to send what it has got to send, and keeps an event at its deadline.
    fn settle(&mut self, node: u32, world: &mut dyn World) {
        while let Node::Model(model) = &mut self.nodes[node as usize] {
            let Some(interface) = model.host.next_woken() else { break };
            let Some(port) = model.ports.get(interface).copied() else { continue };
            self.model_sends(node, interface, port, world);
        }
        let now = self.now;
        let Node::Model(model) = &mut self.nodes[node as usize] else {
            return impossible!("a model host that is none");
        };
        self.finished_apps += u64::from(model.host.take_finished_apps());
        if let Some(at) = model.host.take_planned_start() {
            self.events.push(at.max(now), Class::Start, node);
        }
        let Some(at) = model.host.deadline() else { return };
        if model.timer_at.is_none_or(|watched| at < watched) {
            let at = at.max(now);
            model.timer_at = Some(at);
            self.events.push(at, Class::Timer, node);
        }
    }

    /// `interface` has got something to send.
    fn model_sends(&mut self, node: u32, interface: usize, port: PortId, world: &mut dyn World) {
        // Without a line it is pulled all the same: `offer` counts what has nowhere to go.
        if self.lines[port.0 as usize].as_ref().is_some_and(Line::is_fed_by_interface) {
            self.wake(port.0, world);
            return;
        }
        let now = self.now;
        while let Node::Model(model) = &mut self.nodes[node as usize] {
            let Some(frame) = model.host.pull(interface, now, &mut self.pool) else { return };
            self.offer(port.0, frame, world);
        }
    }
}
