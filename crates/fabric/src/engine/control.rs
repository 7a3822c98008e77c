//! The control channels of the switches: whoever drives the fabric hands in what controllers sent, and takes out what
//! they are to get.

use twinnet_units::{impossible, Duration, Time};

use super::channel::{Channel, Said};
use super::{Fabric, Line, Node, NodeId, Port, PortId, SwitchNode, World};
use crate::line::Feed;
use twinnet_switch::control::{Agent, ConnectionState, Lines, Messages, Peer, PortFacts, PortTraffic};
use twinnet_switch::Output;

/// The bytes to be sent to a controller.
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
    lines: &'a [Option<Line>],
    now: Time,
}

impl Lines for LinesOf<'_> {
    fn facts(&self, port: u32) -> Option<PortFacts> {
        let (_, place) = self.numbers.iter().find(|(number, _)| *number == port)?;
        let (at, line) = (&self.ports[place.0 as usize], self.lines[place.0 as usize].as_ref());
        let sent = line.map(|line| line.counters_at(self.now)).unwrap_or_default();
        let classes = match line.map(|line| line.feed()) {
            Some(Feed::Queue(queue)) => queue.class_counters(),
            _ => serde_json::Value::Null,
        };
        let rates = match line.map(|line| line.feed()) {
            Some(Feed::Queue(queue)) => queue.class_rates(),
            _ => Vec::new(),
        };
        Some(PortFacts {
            traffic: PortTraffic {
                received_frames: at.received,
                received_bytes: at.received_bytes,
                received_dropped: at.looped,
                sent_frames: sent.frames,
                sent_bytes: sent.link_bytes,
                sent_dropped: sent.dropped(),
            },
            rate_bps: line.and_then(|line| line.config().rate_bps).map(twinnet_units::Rate::as_bps),
            classes,
            rates,
            since: Time::ZERO,
        })
    }
}

impl Fabric {
    /// Gives a switch an agent that speaks these wire versions (1: OpenFlow 1.0, 4: 1.3). Nothing happens when `node`
    /// is no switch.
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

    /// A controller (or a tool) was connected to a switch, under a number of the caller's choice that the switch does
    /// not have yet.
    pub fn controller_opened(&mut self, node: NodeId, connection: u64, peer: Peer) {
        let now = self.now;
        if let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) {
            if let Some(agent) = &mut switch.agent {
                agent.open(connection, peer, now);
            }
        }
        self.watch_timeouts(node.0);
    }

    /// Says how long the way between a switch and its controllers takes, each way.
    pub fn set_control_delay(&mut self, node: NodeId, delay: Duration) {
        if let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) {
            switch.channel.get_or_insert_default().delay = delay;
        }
    }

    /// Why the peer of a connection may have ended it, where its version was not confirmed: what both hellos offered.
    #[must_use]
    pub fn misunderstanding(&self, node: NodeId, connection: u64) -> Option<String> {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Switch(switch)) => switch.agent.as_ref()?.misunderstanding(connection),
            _ => None,
        }
    }

    /// A connection ended; the switch learns it when that has come through the control channel.
    pub fn controller_closed(&mut self, node: NodeId, connection: u64) {
        let now = self.now;
        let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) else {
            return impossible!("a controller that left a node which is no switch");
        };
        match switch.slow_channel() {
            Some(channel) => channel.send_to_switch(connection, Said::Closed, now),
            None => switch.close(connection),
        }
        self.watch_timeouts(node.0);
    }

    /// Bytes came from a controller: they take effect when they have come through the control channel (now, where
    /// that takes no time), before any frame that comes later.
    ///
    /// On the wall clock the fabric's time stands while other programs have its processor, and bytes that came
    /// meanwhile are read after that. Their way begins when they are read, so that none takes less than the delay.
    pub fn controller_said(&mut self, node: NodeId, connection: u64, bytes: &[u8], world: &mut dyn World) {
        let begin = world.wall().map_or(self.now, |wall| wall.max(self.now));
        let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) else {
            return impossible!("a controller of a node which is no switch");
        };
        match switch.slow_channel() {
            Some(channel) => channel.send_to_switch(connection, Said::Bytes(bytes.to_vec()), begin),
            None => self.hear(node.0, connection, bytes, world),
        }
        self.watch_timeouts(node.0);
    }

    /// The switch gets `bytes` from a controller.
    fn hear(&mut self, node: u32, connection: u64, bytes: &[u8], world: &mut dyn World) {
        let now = self.now;
        let mut outputs: Vec<Output> = Vec::new();
        if let Some(Node::Switch(at)) = self.nodes.get_mut(node as usize) {
            let lines = LinesOf { numbers: &at.ports, ports: &self.ports, lines: &self.lines, now };
            if let Some(agent) = &mut at.agent {
                agent.receive(&mut at.switch, connection, bytes, &lines, (now, &mut outputs));
            }
        }
        for output in outputs {
            self.leave_switch(node, output, world);
        }
    }

    /// The switch gets what has come through its control channel by now.
    pub(super) fn hear_arrived(&mut self, node: u32, world: &mut dyn World) {
        while let Some(Node::Switch(switch)) = self.nodes.get_mut(node as usize) {
            let arrived = switch.channel.as_mut().and_then(|channel| channel.arrived_at_switch(self.now));
            match arrived {
                None => return,
                Some((connection, Said::Closed)) => switch.close(connection),
                Some((connection, Said::Bytes(bytes))) => self.hear(node, connection, &bytes, world),
            }
        }
    }

    /// After a switch was called: what it has to say sets out on its way, and whether somebody is to be called for it
    /// is noted.
    pub(super) fn note_control_output(&mut self, node: u32) {
        let now = self.now;
        let Some(Node::Switch(switch)) = self.nodes.get_mut(node as usize) else {
            return impossible!("a control channel of a node which is no switch");
        };
        if switch.agent.as_ref().is_none_or(|agent| !agent.has_output(&switch.switch)) {
            self.control_waits |= switch.channel.as_ref().is_some_and(|channel| channel.has_arrived(now));
            return;
        }
        if switch.slow_channel().is_none() {
            self.control_waits = true;
            return;
        }
        for output in switch.take_output(NodeId(node), now) {
            if let Some(channel) = switch.slow_channel() {
                let connection = output.connection;
                channel.send_to_controller(output, now);
                let backlog = channel.backlog(connection);
                if let Some(agent) = &mut switch.agent {
                    agent.note_backlog(connection, backlog);
                }
            }
        }
    }

    /// Returns `true` if controllers are to be told something, and nothing else is left to happen at this moment.
    #[must_use]
    pub fn controllers_are_due(&self) -> bool {
        self.control_waits && self.events.next_time().is_none_or(|next| next > self.now)
    }

    /// Says how many bytes for a connection have been taken out and not been sent yet.
    pub fn note_controller_backlog(&mut self, node: NodeId, connection: u64, bytes: usize) {
        if let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) {
            let bytes = switch.slow_channel().map_or(bytes, |channel| channel.note_socket(connection, bytes));
            if let Some(agent) = &mut switch.agent {
                agent.note_backlog(connection, bytes);
            }
        }
    }

    /// Returns `true` if nothing is under way in any control channel, and no switch has anything to say.
    #[must_use]
    pub fn control_is_quiet(&self) -> bool {
        let quiet = |node: &NodeId| match self.nodes.get(node.0 as usize) {
            Some(Node::Switch(switch)) => switch.channel.as_ref().is_none_or(|channel| channel.is_empty()),
            _ => true,
        };
        !self.control_waits && self.controlled.iter().all(quiet)
    }

    /// Bytes that a controller has said and that have not come through the control channel yet.
    #[must_use]
    pub fn control_bytes_under_way(&self, node: NodeId, connection: u64) -> usize {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Switch(switch)) => {
                switch.channel.as_ref().map_or(0, |channel| channel.on_the_way_to_switch(connection))
            }
            _ => 0,
        }
    }

    /// Takes out what controllers are to get now: by switch in the order of their agents, then by connection.
    pub fn take_control_output(&mut self) -> Vec<ControlOutput> {
        self.control_waits = false;
        let now = self.now;
        let mut taken = Vec::new();
        for position in 0..self.controlled.len() {
            let node = self.controlled[position];
            // What was not noted yet sets out now.
            self.note_control_output(node.0);
            let Some(Node::Switch(switch)) = self.nodes.get_mut(node.0 as usize) else { continue };
            if switch.slow_channel().is_none() {
                taken.extend(switch.take_output(node, now));
            }
            // A channel that has become faster still holds what set out before.
            while let Some(output) = switch.channel.as_mut().and_then(|channel| channel.arrived_at_controller(now)) {
                taken.push(output);
            }
            self.watch_timeouts(node.0);
        }
        self.control_waits = false;
        taken
    }

    /// Returns the state of each connection of a switch.
    #[must_use]
    pub fn controllers(&self, node: NodeId) -> Vec<ConnectionState> {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Switch(switch)) => switch.agent.as_ref().map(|agent| agent.state()).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Returns what was said on a connection of a switch; `None` when it has ended.
    #[must_use]
    pub fn control_messages(&self, node: NodeId, connection: u64) -> Option<Messages> {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Switch(switch)) => switch.agent.as_ref()?.messages(connection),
            _ => None,
        }
    }
}

impl SwitchNode {
    /// The control channel, where it takes time.
    fn slow_channel(&mut self) -> Option<&mut Channel> {
        self.channel.as_deref_mut().filter(|channel| channel.takes_time())
    }

    fn close(&mut self, connection: u64) {
        if let Some(agent) = &mut self.agent {
            agent.close(&mut self.switch, connection);
        }
    }

    /// Takes what the agent has to say; connections that it ends are closed.
    fn take_output(&mut self, node: NodeId, now: Time) -> Vec<ControlOutput> {
        let Some(agent) = self.agent.as_mut().filter(|agent| agent.has_output(&self.switch)) else { return Vec::new() };
        agent.tell(&mut self.switch);
        let taken = agent.take_output(now);
        for (connection, ..) in taken.iter().filter(|(_, _, ending)| ending.is_some()) {
            agent.close(&mut self.switch, *connection);
        }
        let of = |(connection, bytes, ending)| ControlOutput { node, connection, bytes, ending };
        taken.into_iter().map(of).collect()
    }
}
