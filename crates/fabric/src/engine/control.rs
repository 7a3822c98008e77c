//! The control channels of the switches: whoever drives the fabric hands in what controllers sent, and takes out what they are to get.

use twinnet_units::Time;

use super::{Direction, Fabric, Node, NodeId, Port, PortCounters, PortId, World};
use crate::link::Feed;
use crate::switch::control::{Agent, ConnectionState, Lines, Peer, PortFacts};
use crate::switch::Output;

/// What is to be sent to a controller.
#[derive(Debug)]
pub struct ControlOutput {
    /// The switch.
    pub node: NodeId,
    /// The connection's number.
    pub connection: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Why the connection is to be closed after them, if it is.
    pub ending: Option<String>,
}

/// The links at one switch, as its agent sees them.
struct LinesOf<'a> {
    numbers: &'a [(u32, PortId)],
    ports: &'a [Port],
    directions: &'a [Option<Direction>],
    now: Time,
}

impl Lines for LinesOf<'_> {
    fn facts(&self, port: u32) -> Option<PortFacts> {
        let (_, place) = self.numbers.iter().find(|(number, _)| *number == port)?;
        let (at, line) = (&self.ports[place.0 as usize], self.directions[place.0 as usize].as_ref());
        let backlog = line.map(Direction::backlog).unwrap_or_default();
        let classes = match line.map(|line| &line.feed) {
            Some(Feed::Queue(queue)) => queue.class_counters(),
            _ => serde_json::Value::Null,
        };
        let rates = match line.map(|line| &line.feed) {
            Some(Feed::Queue(queue)) => queue.class_rates(),
            _ => Vec::new(),
        };
        Some(PortFacts {
            counters: PortCounters {
                sent: line.map(|line| line.counters_at(self.now)).unwrap_or_default(),
                received_frames: at.received,
                received_bytes: at.received_bytes,
                dropped_loop: at.looped,
                backlog_frames: backlog.frames,
                backlog_bytes: backlog.bytes,
            },
            rate_bps: line.and_then(|line| line.config.rate_bps).map(twinnet_units::Rate::as_bps),
            classes,
            rates,
            since: Time::ZERO,
        })
    }
}

impl Fabric {
    /// Gives a switch an agent that speaks these wire versions (1: OpenFlow 1.0, 4: 1.3). Nothing happens when `node` is no switch.
    pub fn add_agent(&mut self, node: NodeId, versions: &[u8]) {
        if let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) {
            switch.agent = Some(Box::new(Agent::new(versions)));
            self.controlled.push(node);
        }
    }

    /// As [`Fabric::add_agent`], unless the switch has one.
    pub fn ensure_agent(&mut self, node: NodeId, versions: &[u8]) {
        let has_one = matches!(self.nodes.get(node.0 as usize), Some(Node::Switch(switch)) if switch.agent.is_some());
        if !has_one {
            self.add_agent(node, versions);
        }
    }

    /// A controller (or a tool) was connected to a switch, under a number of the caller's choice that the switch does not have yet.
    pub fn controller_opened(&mut self, node: NodeId, connection: u64, peer: Peer) {
        let now = self.now;
        if let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) {
            if let Some(agent) = &mut switch.agent {
                agent.open(connection, peer, now);
            }
        }
        self.watch_timeouts(node.0);
    }

    /// A connection ended.
    pub fn controller_closed(&mut self, node: NodeId, connection: u64) {
        if let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) {
            if let Some(agent) = &mut switch.agent {
                agent.close(&mut switch.switch, connection);
            }
        }
    }

    /// Bytes came from a controller: they take effect now, before any frame that comes later.
    pub fn controller_said(&mut self, node: NodeId, connection: u64, bytes: &[u8], world: &mut dyn World) {
        let now = self.now;
        let mut outputs: Vec<Output> = Vec::new();
        if let Some(Node::Switch(at)) = self.nodes.get_mut(node.0 as usize) {
            let lines = LinesOf { numbers: &at.ports, ports: &self.ports, directions: &self.directions, now };
            if let Some(agent) = &mut at.agent {
                agent.receive(&mut at.switch, connection, bytes, &lines, (now, &mut outputs));
            }
        }
        for output in outputs {
            self.leave_switch(node.0, output, world);
        }
        self.watch_timeouts(node.0);
    }

    /// Says how many bytes for a connection have been taken out and not been sent yet.
    pub fn note_controller_backlog(&mut self, node: NodeId, connection: u64, bytes: usize) {
        if let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) {
            if let Some(agent) = &mut switch.agent {
                agent.note_backlog(connection, bytes);
            }
        }
    }

    /// Takes out what controllers are to get.
    pub fn take_control_output(&mut self) -> Vec<ControlOutput> {
        let mut taken = Vec::new();
        for node in &self.controlled {
            let Some(Node::Switch(at)) = self.nodes.get_mut(node.0 as usize) else { continue };
            let Some(agent) = at.agent.as_mut().filter(|agent| agent.has_output(&at.switch)) else { continue };
            agent.tell(&mut at.switch);
            for (connection, bytes, ending) in agent.take_output() {
                if ending.is_some() {
                    agent.close(&mut at.switch, connection);
                }
                taken.push(ControlOutput { node: *node, connection, bytes, ending });
            }
        }
        taken
    }

    /// How the connections of a switch stand.
    #[must_use]
    pub fn controllers(&self, node: NodeId) -> Vec<ConnectionState> {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Switch(switch)) => switch.agent.as_ref().map(|agent| agent.state()).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}
