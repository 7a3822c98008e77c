//! Frames in switches, and the moments at which a switch has something to do by itself.

use twinnet_packet::Frame;
use twinnet_units::{impossible, Time};

use super::coalescing::CARD;
use super::{Fabric, Node, NodeId, PortId, World};
use crate::event::Class;
use twinnet_switch::{Output, Switch};

impl Fabric {
    pub(super) fn forward(&mut self, node: u32, world: &mut dyn World) {
        let now = self.now;
        if node & CARD != 0 {
            return self.tell_due(node ^ CARD, world);
        }
        let Node::Switch(switch) = &mut self.nodes[node as usize] else {
            return impossible!("a frame in a switch that is none");
        };
        if switch.thinking.front().is_some_and(|(ready, ..)| *ready <= now) {
            if let Some((_, port, frame)) = switch.thinking.pop_front() {
                self.switch_frame(node, port, frame, world);
            }
        }
    }

    pub(super) fn switch_frame(&mut self, node: u32, port: PortId, frame: Box<Frame>, world: &mut dyn World) {
        let now = self.now;
        let number = self.ports[port.0 as usize].number;
        let mut outputs = std::mem::take(&mut self.outputs);
        let mut stirred = false;
        if let Node::Switch(switch) = &mut self.nodes[node as usize] {
            switch.switch.receive(number, frame, now, &mut outputs);
            stirred = switch.switch.take_stirred();
        }
        if outputs.len() > 1 {
            for output in outputs.drain(..) {
                self.leave_switch(node, output, world);
            }
        } else if let Some(output) = outputs.pop() {
            self.leave_switch(node, output, world);
        }
        self.outputs = outputs;
        if stirred {
            self.watch_timeouts(node);
        }
    }

    /// A frame leaves a switch by one of its ports.
    pub(super) fn leave_switch(&mut self, node: u32, output: Output, world: &mut dyn World) {
        let port = match &self.nodes[node as usize] {
            Node::Switch(switch) => port_by_number(&switch.ports, output.port),
            Node::Host | Node::Model(_) => None,
        };
        if let Some(port) = port {
            self.offer(port.0, output.frame, world);
        }
    }

    /// After a switch was called: keeps an event at the earliest moment at which a flow entry of `node` can time out
    /// or something comes through its control channel.
    pub(super) fn watch_timeouts(&mut self, node: u32) {
        self.note_control_output(node);
        if let Node::Switch(switch) = &mut self.nodes[node as usize] {
            let agent = switch.agent.as_ref().and_then(|agent| agent.next_timeout());
            let channel = switch.channel.as_ref().and_then(|channel| channel.next_arrival(self.now));
            if let Some(at) = switch.switch.next_timeout().into_iter().chain(agent).chain(channel).min() {
                if switch.timeout_at.is_none_or(|watched| at < watched) {
                    switch.timeout_at = Some(at);
                    self.events.push(at.max(self.now), Class::Timeout, node);
                }
            }
        }
    }

    pub(super) fn time_out(&mut self, node: u32, world: &mut dyn World) {
        let now = self.now;
        if let Node::Switch(switch) = &mut self.nodes[node as usize] {
            if switch.timeout_at.is_some_and(|at| at <= now) {
                switch.timeout_at = None;
                switch.switch.expire(now);
                if let Some(agent) = &mut switch.agent {
                    agent.tick(now);
                }
                self.hear_arrived(node, world);
            }
        }
        self.watch_timeouts(node);
    }

    /// The switch `node`, if it is one.
    #[must_use]
    pub fn switch(&self, node: NodeId) -> Option<&Switch> {
        match self.nodes.get(node.0 as usize)? {
            Node::Switch(switch) => Some(&switch.switch),
            Node::Host | Node::Model(_) => None,
        }
    }

    /// Changes the switch `node`, if it is one, by `change`.
    pub fn with_switch<T>(&mut self, node: NodeId, change: impl FnOnce(&mut Switch, Time) -> T) -> Option<T> {
        let now = self.now;
        let result = match self.nodes.get_mut(node.0 as usize)? {
            Node::Switch(switch) => change(&mut switch.switch, now),
            Node::Host | Node::Model(_) => return None,
        };
        self.watch_timeouts(node.0);
        Some(result)
    }
}

fn port_by_number(ports: &[(u32, PortId)], number: u32) -> Option<PortId> {
    let guess = (number as usize).wrapping_sub(1);
    match ports.get(guess) {
        Some((found, port)) if *found == number => Some(*port),
        _ => ports.iter().find(|(found, _)| *found == number).map(|(_, port)| *port),
    }
}
