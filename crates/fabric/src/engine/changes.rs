//! Changes of links and queues in motion, and the spanning tree that follows them.

use twinnet_units::{impossible, Time};

use super::{index, BuildError, Fabric, Node, PortId, World};
use crate::event::Class;
use crate::line::{Budget, DirectionConfig, Line};
use crate::tree::spanning_tree;
use twinnet_queue::QueueConfig;

/// A change of a link in motion. All fields that are set take effect together.
#[derive(Clone, Debug, Default)]
pub struct DirectionChange {
    /// The new configuration; frames whose first bit has left keep the old rate, frames that have left keep their
    /// delay.
    pub config: Option<DirectionConfig>,
    /// Up or down. Going down loses the frames in the queue and on the wire.
    pub up: Option<bool>,
    /// The longest payload of a frame in bytes, for frames that come to the line from now on; those that wait still go.
    pub mtu: Option<u64>,
}

impl Fabric {
    /// Changes one direction of a link now: the one that `port` sends into, which must have a link.
    ///
    /// # Errors
    /// [`BuildError::Impair`] when the new configuration is refused; nothing has changed then.
    pub fn change(&mut self, port: PortId, change: DirectionChange, world: &mut dyn World) -> Result<(), BuildError> {
        self.check(port, &change)?;
        self.apply(port, change, world);
        Ok(())
    }

    /// Changes directions of links at the moment `at` (now, when it is past), all together.
    ///
    /// # Errors
    /// As [`Fabric::change`]; nothing is scheduled then.
    pub fn change_at(&mut self, at: Time, changes: Vec<(PortId, DirectionChange)>) -> Result<(), BuildError> {
        for (port, change) in &changes {
            self.check(*port, change)?;
        }
        self.changes.push(Some(changes));
        self.events.push(at.max(self.now), Class::Change, index(self.changes.len() - 1));
        Ok(())
    }

    fn check(&self, port: PortId, change: &DirectionChange) -> Result<(), BuildError> {
        if let Some(config) = &change.config {
            config
                .impair
                .validate()
                .map_err(|source| BuildError::Impair { port: self.ports[port.0 as usize].name.clone(), source })?;
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, port: PortId, change: DirectionChange, world: &mut dyn World) {
        let now = self.now;
        let Some(line) = self.lines[port.0 as usize].as_mut() else {
            return impossible!("a change of a link at a port without one");
        };
        let reconfigured = change.config.is_some();
        if let Some(config) = change.config {
            // Checked when the change was accepted.
            if line.reconfigure(config).is_ok() {
                line.set_catch_up(self.catch_up);
                if line.is_fed_by_interface() {
                    world.reconfigured(port, line.config());
                }
            }
        }
        if let Some(mtu) = change.mtu {
            line.set_mtu(mtu);
            line.set_catch_up(self.catch_up);
        }
        let ends = [port.0, line.to];
        let up = change.up.filter(|up| line.set_up(*up, now));
        if reconfigured {
            self.settle_trains();
        }
        let Some(up) = up else { return };
        if !up {
            self.departing.remove(&port.0);
        }
        for at in ends {
            let (node, interface) = (self.ports[at as usize].node, self.ports[at as usize].number);
            match &mut self.nodes[node.0 as usize] {
                Node::Host => world.carrier(PortId(at), up),
                Node::Model(model) => model.host.carrier(interface as usize, up, now),
                Node::Switch(_) => {}
            }
        }
        self.link_state(port, up);
        if up {
            self.begin(port.0, Budget::UNLIMITED, world);
        }
        for at in ends {
            self.settle_behind(at, world);
        }
    }

    /// Tells switches that a link went up or down, and grows the spanning tree anew.
    fn link_state(&mut self, port: PortId, up: bool) {
        let Some(link) = self.links.iter().position(|link| link.ends.0 == port || link.ends.1 == port) else {
            return impossible!("a line without its link");
        };
        let ends = self.links[link].ends;
        let both = [ends.0, ends.1].iter().all(|end| self.lines[end.0 as usize].as_ref().is_some_and(Line::is_up));
        if self.links[link].up == both {
            return;
        }
        self.links[link].up = both;
        for end in [ends.0, ends.1] {
            let at = &self.ports[end.0 as usize];
            let node = at.node.0;
            if let Node::Switch(switch) = &mut self.nodes[node as usize] {
                switch.switch.set_port_up(at.number, up);
                self.watch_timeouts(node);
            }
        }
        self.tree_is_stale = true;
        self.update_spanning_tree();
    }

    /// Says whether what a switch is linked to at the other end of `port`'s link is there at all: when it is not, the
    /// switch has no such port. Nothing happens where no switch is.
    pub fn set_end_there(&mut self, port: PortId, there: bool) {
        let Some(link) = self.links.iter().find(|link| link.ends.0 == port || link.ends.1 == port) else {
            return impossible!("an end of a link at a port without one");
        };
        let (far, up) = (if link.ends.0 == port { link.ends.1 } else { link.ends.0 }, link.up);
        let (node, number) = (self.ports[far.0 as usize].node, self.ports[far.0 as usize].number);
        if let Node::Switch(switch) = &mut self.nodes[node.0 as usize] {
            switch.switch.set_port_there(number, there, up);
            self.watch_timeouts(node.0);
        }
    }

    pub(super) fn update_spanning_tree(&mut self) {
        if !std::mem::take(&mut self.tree_is_stale) {
            return;
        }
        let joins: Vec<Option<(usize, usize)>> = self
            .links
            .iter()
            .map(|link| {
                let (a, b) = (self.ports[link.ends.0 .0 as usize].node, self.ports[link.ends.1 .0 as usize].node);
                let switches = [a, b].iter().all(|node| matches!(self.nodes[node.0 as usize], Node::Switch(_)));
                (link.up && switches && a != b).then_some((a.0 as usize, b.0 as usize))
            })
            .collect();
        let in_tree = spanning_tree(self.nodes.len(), &joins);
        let changed = in_tree != self.in_tree;
        for (index, link) in self.links.iter().enumerate() {
            let (a, b) = (&self.ports[link.ends.0 .0 as usize], &self.ports[link.ends.1 .0 as usize]);
            let switches = [a, b].iter().all(|port| matches!(self.nodes[port.node.0 as usize], Node::Switch(_)));
            for (node, number) in [(a.node, a.number), (b.node, b.number)] {
                if let Node::Switch(switch) = &mut self.nodes[node.0 as usize] {
                    switch.switch.set_port_in_tree(number, !switches || in_tree[index]);
                    // Behind another switch, hosts may now be reached by another port: as bridges do when a spanning
                    // tree changes (IEEE 802.1Q), what was learnt there is forgotten.
                    if switches && changed {
                        switch.switch.forget_port(number);
                    }
                }
            }
        }
        self.in_tree = in_tree;
    }

    /// Puts another queue discipline at `port`; frames that wait in the old one are moved into it in order.
    ///
    /// # Errors
    /// [`BuildError::Queue`] when the configuration is refused; the old discipline stays then.
    pub fn set_queue(&mut self, port: PortId, queue: &QueueConfig, world: &mut dyn World) -> Result<(), BuildError> {
        let now = self.now;
        let name = self.ports[port.0 as usize].name.clone();
        let rate = self.direction_config(port).and_then(|(config, _)| config.rate_bps);
        let new = queue.build_for(self.site(port, rate)).map_err(|source| BuildError::Queue { port: name, source })?;
        let Some((line, mut sender)) = self.line_and_sender(port.0, world) else {
            impossible!("a queue at a port without a link");
            return Ok(());
        };
        let effects = line.set_queue(new, now, &mut sender);
        self.plan(port.0, effects);
        self.has_queues = true;
        self.settle_trains();
        Ok(())
    }

    /// From now on the frames of a train arrive one by one, each at its own moment, where that can be seen: on each
    /// line that is faster than another line of the network, and on all where a queue discipline is described. On
    /// others they go on arriving together, for up to [`crate::LONGEST_TRAIN`]: that costs fewer events.
    pub fn keep_trains_exact(&mut self) {
        self.exact_trains = true;
        self.settle_trains();
    }

    pub(super) fn settle_trains(&mut self) {
        if !self.exact_trains {
            return;
        }
        let slowest = self.lines.iter().flatten().filter_map(|line| line.config().slowest_bps()).min();
        for line in self.lines.iter_mut().flatten() {
            let faster = line.config().slowest_bps() > slowest;
            line.set_singly(self.has_queues || faster);
        }
    }
}
