//! The engine: moves frames between ports as time passes.
//!
//! Whoever drives it (the real-time loop, or the virtual clock) calls [`Fabric::advance`] with the time it is, and hands in
//! a [`World`] in which the real hosts live. The engine never asks what time it is.

mod changes;
mod channel;
mod control;
mod counters;
mod models;
mod sampling;
mod showing;
mod tunnelling;

use std::collections::BTreeMap;

use twinnet_packet::{Fragment, Frame};
use twinnet_units::{Duration, Rate, Time};

use crate::event::{mix, Class, Event, EventQueue};
use crate::impair::{stream, ImpairError, Impairments};
use crate::link::{Direction, DirectionConfig, DirectionCounters, Feed};
use crate::pool::FramePool;
use crate::queue::{DropReason, DropSink, QueueConfig, QueueError, Site};
use crate::switch::{Output, Switch};
use models::ModelNode;
use sampling::Sampler;
use tunnelling::{corrupt, leave_tunnel, twin};

pub use changes::DirectionChange;
pub use control::ControlOutput;
pub use counters::PortCounters;
pub use sampling::{Sample, Samples};

/// Switches that a frame may pass before it is taken for one that goes in circles.
pub const HOP_LIMIT: u16 = 255;

/// What one call of [`Fabric::readable`] takes from an interface before it returns to its caller: enough small frames to be
/// worth a turn, and few enough super-segments to stay in a processor's cache.
const INTERFACE_BUDGET: Budget = Budget { frames: 64, bytes: 128 * 1024 };

/// Frames that wait at a switch's port unless another queue is configured.
pub const DEFAULT_QUEUE_FRAMES: u64 = 1000;

/// How much may be sent in one go by a port without a line rate.
#[derive(Clone, Copy)]
struct Budget {
    frames: usize,
    bytes: u64,
}

impl Budget {
    const UNLIMITED: Self = Self { frames: usize::MAX, bytes: u64::MAX };

    /// Takes `frame` off.
    fn spend(&mut self, frame: &Frame) {
        self.frames = self.frames.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(frame.length());
    }

    const fn is_spent(self) -> bool {
        self.frames == 0 || self.bytes == 0
    }
}

/// A node of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A port of a node. The direction of a link that this port sends into has the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub u32);

/// A link between two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u32);

/// Which way a frame passed a port, seen from the port's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It arrived at the node.
    In,
    /// It left the node.
    Out,
}

/// Where the real hosts live: what the engine needs of them.
pub trait World {
    /// `frame` has arrived at the host behind `port`; it was due at `due`.
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, due: Time);

    /// The next frame that the host behind `port` wants to send, if there is one.
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>>;

    /// A frame passed a port under capture: its last bit at `at`.
    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, at: Time);

    /// The link at the host's `port` went up or down.
    fn carrier(&mut self, port: PortId, up: bool);

    /// The link that the host behind `port` sends into by its own interface's queue has a new configuration.
    fn reconfigured(&mut self, port: PortId, config: &DirectionConfig);
}

/// Why a network cannot be built or changed as asked.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A queue configuration is refused.
    #[error("queue at {port}: {source}")]
    Queue {
        /// The port's name.
        port: String,
        /// What is wrong with it.
        source: QueueError,
    },
    /// An impairment is refused.
    #[error("link from {port}: {source}")]
    Impair {
        /// The sending port's name.
        port: String,
        /// What is wrong with it.
        source: ImpairError,
    },
}

enum Node {
    /// A real host: it lives in the [`World`].
    Host,
    /// A model host.
    Model(Box<ModelNode>),
    Switch(Box<SwitchNode>),
}

struct SwitchNode {
    switch: Switch,
    delay: Duration,
    /// Port of the fabric by OpenFlow port number.
    ports: Vec<(u32, PortId)>,
    thinking: std::collections::VecDeque<(Time, PortId, Box<Frame>)>,
    timeout_at: Option<Time>,
    /// What speaks with its controllers.
    agent: Option<Box<crate::switch::control::Agent>>,
    /// The way to them, where anything was said of it.
    channel: Option<Box<channel::Channel>>,
}

struct Port {
    node: NodeId,
    name: String,
    number: u32,
    captured: bool,
    looped: u64,
    received: u64,
    received_bytes: u64,
}

struct Link {
    ends: (PortId, PortId),
    up: bool,
}

/// The network in motion.
pub struct Fabric {
    seed: u64,
    now: Time,
    events: EventQueue,
    nodes: Vec<Node>,
    ports: Vec<Port>,
    directions: Vec<Option<Direction>>,
    links: Vec<Link>,
    /// Switches that have an agent.
    controlled: Vec<NodeId>,
    /// Whether one of them has something to say to its controllers.
    control_waits: bool,
    changes: Vec<Option<Vec<(PortId, DirectionChange)>>>,
    samplers: Vec<Sampler>,
    /// Trains on the serialisers of captured ports.
    departing: BTreeMap<u32, (Time, Box<Frame>)>,
    outputs: Vec<Output>,
    pool: FramePool,
    finished_apps: u64,
    handled: u64,
    trace: u64,
    tree_is_stale: bool,
    /// For each link whether it is in the spanning tree.
    in_tree: Vec<bool>,
}

/// Counts what a queue discipline gives up.
struct CountDrops<'a>(&'a mut DirectionCounters);

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

impl Fabric {
    /// An empty fabric. All randomness in it comes from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            events: EventQueue::new(seed),
            nodes: Vec::new(),
            ports: Vec::new(),
            directions: Vec::new(),
            links: Vec::new(),
            controlled: Vec::new(),
            control_waits: false,
            changes: Vec::new(),
            samplers: Vec::new(),
            departing: BTreeMap::new(),
            outputs: Vec::new(),
            pool: FramePool::default(),
            finished_apps: 0,
            handled: 0,
            trace: seed,
            tree_is_stale: false,
            in_tree: Vec::new(),
        }
    }

    /// Adds a host whose frames come from the [`World`].
    pub fn add_host(&mut self) -> NodeId {
        self.add_node(Node::Host)
    }

    /// Adds a switch that thinks for `delay` about every frame.
    pub fn add_switch(&mut self, switch: Switch, delay: Duration) -> NodeId {
        self.add_node(Node::Switch(Box::new(SwitchNode {
            switch,
            delay,
            ports: Vec::new(),
            thinking: std::collections::VecDeque::new(),
            timeout_at: None,
            agent: None,
            channel: None,
        })))
    }

    fn add_node(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(index(self.nodes.len() - 1))
    }

    /// Adds a port to `node`. For a switch, `number` is its OpenFlow port number; `mac` its hardware address.
    pub fn add_port(&mut self, node: NodeId, name: &str, number: u32, mac: [u8; 6]) -> PortId {
        let port = PortId(index(self.ports.len()));
        self.ports.push(Port {
            node,
            name: name.to_owned(),
            number,
            captured: false,
            looped: 0,
            received: 0,
            received_bytes: 0,
        });
        self.directions.push(None);
        match &mut self.nodes[node.0 as usize] {
            Node::Switch(at) => {
                at.switch.add_port(number, name, mac);
                at.ports.push((number, port));
            }
            Node::Model(at) => {
                self.ports[port.0 as usize].number = index(at.ports.len());
                at.ports.push(port);
            }
            Node::Host => {}
        }
        port
    }

    /// Joins two ports. `a_queue` is the queue discipline at `a`, for frames from `a` to `b`; without one, a switch's port has
    /// a FIFO of [`DEFAULT_QUEUE_FRAMES`] and a host's port leaves frames in the host's interface until they can be sent.
    /// `mtu` is the longest payload of a frame in bytes.
    ///
    /// # Errors
    /// [`BuildError`] when a queue or an impairment is refused; nothing is joined then.
    pub fn join(
        &mut self,
        (a, a_config, a_queue): (PortId, DirectionConfig, Option<&QueueConfig>),
        (b, b_config, b_queue): (PortId, DirectionConfig, Option<&QueueConfig>),
        mtu: u64,
    ) -> Result<LinkId, BuildError> {
        let forth = self.direction(a, b, a_config, a_queue, mtu)?;
        let back = self.direction(b, a, b_config, b_queue, mtu)?;
        self.directions[a.0 as usize] = Some(forth);
        self.directions[b.0 as usize] = Some(back);
        self.links.push(Link { ends: (a, b), up: true });
        self.tree_is_stale = true;
        Ok(LinkId(index(self.links.len() - 1)))
    }

    fn direction(
        &self,
        from: PortId,
        to: PortId,
        config: DirectionConfig,
        queue: Option<&QueueConfig>,
        mtu: u64,
    ) -> Result<Direction, BuildError> {
        let name = || self.ports[from.0 as usize].name.clone();
        let random = stream(self.seed, &format!("link {} {}", name(), self.ports[to.0 as usize].name));
        let impairments =
            Impairments::new(&config.impair, random).map_err(|source| BuildError::Impair { port: name(), source })?;
        let feed = match (queue, self.is_host(from)) {
            (None, true) => Feed::Interface,
            (None, false) => Feed::Queue(
                QueueConfig::Fifo { limit_frames: Some(DEFAULT_QUEUE_FRAMES), limit_bytes: None }
                    .build()
                    .map_err(|source| BuildError::Queue { port: name(), source })?,
            ),
            (Some(queue), _) => {
                let site = self.site(from, config.rate_bps);
                Feed::Queue(queue.build_for(site).map_err(|source| BuildError::Queue { port: name(), source })?)
            }
        };
        let mut direction = Direction::new(from.0, to.0, config, feed, impairments);
        // An Ethernet header, and room for a stack of two VLAN tags, as switches allow.
        direction.longest_frame = mtu + 14 + 8;
        Ok(direction)
    }

    /// Where a queue discipline at `port` stands, before a line of `rate`.
    fn site(&self, port: PortId, rate: Option<Rate>) -> Site<'_> {
        Site { seed: self.seed, port: &self.ports[port.0 as usize].name, rate_bps: rate.map(Rate::as_bps) }
    }

    fn is_host(&self, port: PortId) -> bool {
        !matches!(self.nodes[self.ports[port.0 as usize].node.0 as usize], Node::Switch(_))
    }

    /// The fabric's time: that of the last event, or of the last call that told one.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// A hash over all that has happened, in order: equal for two runs that went the same way.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.trace
    }

    /// Events handled so far.
    #[must_use]
    pub fn events_handled(&self) -> u64 {
        self.handled
    }

    /// When the next event is due.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        self.events.next_time()
    }

    /// Lets time pass until `until`: handles every event that is due.
    pub fn advance(&mut self, until: Time, world: &mut dyn World) {
        self.plant_tree();
        while let Some(event) = self.events.pop_until(until) {
            self.now = event.at;
            self.handle(event, world);
        }
        self.now = self.now.max(until);
    }

    /// Handles events until `until`, but at most `most` of them, and none past the moment at which controllers are to be told something
    /// ([`Fabric::controllers_are_due`]); returns whether any due one is left.
    pub fn advance_some(&mut self, until: Time, most: usize, world: &mut dyn World) -> bool {
        self.plant_tree();
        for _ in 0..most {
            if self.controllers_are_due() {
                return true;
            }
            let Some(event) = self.events.pop_until(until) else {
                self.now = self.now.max(until);
                return false;
            };
            self.now = event.at;
            self.handle(event, world);
        }
        self.events.next_time().is_some_and(|next| next <= until)
    }

    fn handle(&mut self, event: Event, world: &mut dyn World) {
        let element = event.element;
        self.handled += 1;
        // What only looks at the network (samples), or may or may not be needed to move it (departures), is left out.
        if !matches!(event.class, Class::Departure | Class::QueueReady | Class::Sample) {
            self.trace = mix(self.trace ^ event.at.as_ps()) ^ (u64::from(element) << 8 | event.class as u64);
        }
        match event.class {
            Class::Departure => {
                let now = self.now;
                if !self.departing.is_empty() {
                    self.show_departed(element, world);
                }
                if let Some(line) = self.line(element).filter(|line| line.departure_at == Some(now)) {
                    line.departure_at = None;
                    self.start_next(element, world, Budget::UNLIMITED);
                    self.settle_behind(element, world);
                }
            }
            Class::Arrival => self.arrive(element, world),
            Class::QueueReady => {
                let now = self.now;
                if let Some(line) = self.line(element).filter(|line| line.ready_at == Some(now)) {
                    line.ready_at = None;
                    if line.is_idle(now) {
                        self.start_next(element, world, Budget::UNLIMITED);
                    }
                }
            }
            Class::Forward => self.forward(element, world),
            Class::Timeout => self.time_out(element, world),
            Class::Change => {
                if let Some(change) = self.changes[element as usize].take() {
                    for (port, change) in change {
                        self.apply(port, change, world);
                    }
                }
            }
            Class::Timer => self.model_timer(element, world),
            Class::Start => self.apps_start(element, world),
            Class::Sample => self.sample(element),
        }
    }

    fn line(&mut self, port: u32) -> Option<&mut Direction> {
        self.directions[port as usize].as_mut()
    }

    /// The host behind `port` has something to send. Returns whether it may have more that was not looked at: call again soon.
    pub fn readable(&mut self, port: PortId, world: &mut dyn World) -> bool {
        let now = self.now;
        let Some(line) = self.line(port.0) else { return false };
        if matches!(line.feed, Feed::Interface) {
            if !line.is_idle(now) {
                return false;
            }
            return self.start_next(port.0, world, INTERFACE_BUDGET);
        }
        let mut budget = INTERFACE_BUDGET;
        while !budget.is_spent() {
            let Some(frame) = world.pull(port) else { return false };
            budget.spend(&frame);
            self.offer(port.0, frame, world);
        }
        true
    }

    /// Gives `frame` to `port` to be sent.
    fn offer(&mut self, port: u32, frame: Box<Frame>, world: &mut dyn World) {
        let Some(line) = self.line(port) else { return };
        if !line.up {
            line.counters.dropped_down += frame.frames();
            return;
        }
        if longest(&frame) > line.longest_frame {
            line.counters.dropped_oversize += frame.frames();
            return;
        }
        if line.tunnel.is_some() {
            self.offer_tunnelled(port, frame, world);
            return;
        }
        self.offer_to_queue(port, frame, world);
    }

    /// Gives `frame`, as the line carries it, to the queue discipline at `port`.
    fn offer_to_queue(&mut self, port: u32, frame: Box<Frame>, world: &mut dyn World) {
        let now = self.now;
        let Some(line) = self.line(port) else { return };
        if let Feed::Queue(queue) = &mut line.feed {
            if line.busy_until <= now && line.rest.is_none() && queue.lets_pass(&frame) {
                self.send(port, frame, world);
                return;
            }
            queue.enqueue(frame, now, &mut CountDrops(&mut line.counters));
            self.something_waits(port, world);
        }
    }

    /// A frame waits at `port`: begins it when the serialiser is idle, and else sees to it that it will be.
    fn something_waits(&mut self, port: u32, world: &mut dyn World) {
        let now = self.now;
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        if line.is_idle(now) {
            self.start_next(port, world, Budget::UNLIMITED);
        } else if line.departure_at.is_none() {
            line.departure_at = Some(line.busy_until);
            self.events.push(line.busy_until, Class::Departure, port);
        }
    }

    /// The serialiser of `port` is idle: begins the next frame. Without a line rate frames leave at once, at most `budget` of
    /// them; returns whether the budget was used up.
    fn start_next(&mut self, port: u32, world: &mut dyn World, mut budget: Budget) -> bool {
        let now = self.now;
        while !budget.is_spent() {
            let Some(line) = self.directions[port as usize].as_mut() else { return false };
            let next = match (line.rest.take().or_else(|| line.next_outer()), &mut line.feed) {
                (Some(rest), _) => Some(rest),
                (None, Feed::Queue(queue)) => queue.dequeue(now, &mut CountDrops(&mut line.counters)),
                (None, Feed::Interface) => match pull(&mut self.nodes, &self.ports, &mut self.pool, port, now, world) {
                    Some(frame) if !line.up => {
                        line.counters.dropped_down += frame.frames();
                        continue;
                    }
                    Some(frame) if longest(&frame) > line.longest_frame => {
                        line.counters.dropped_oversize += frame.frames();
                        continue;
                    }
                    Some(frame) if line.tunnel.is_some() => {
                        line.enter_tunnel(frame);
                        continue;
                    }
                    pulled => pulled,
                },
            };
            let Some(frame) = next else {
                self.wait_for_queue(port);
                return false;
            };
            budget.spend(&frame);
            if !self.send(port, frame, world) {
                return false;
            }
        }
        true
    }

    /// The serialiser of `port` is idle and begins `frame`. Returns whether it is idle still, having no line rate.
    fn send(&mut self, port: u32, mut frame: Box<Frame>, world: &mut dyn World) -> bool {
        let now = self.now;
        let Some(line) = self.directions[port as usize].as_mut() else { return false };
        let Some(rate) = line.config.rate_bps else {
            self.depart(port, frame, now, world);
            return true;
        };
        let at_once = line.frames_at_once(&frame, rate);
        if let Some(front) = frame.split_front(at_once) {
            line.rest = Some(std::mem::replace(&mut frame, front));
        }
        let wire_bytes = frame.wire_bytes(line.config.framing);
        let busy_until = now + rate.serialise(wire_bytes);
        line.busy_until = busy_until;
        let last_bit = now + rate.serialise(wire_bytes - line.config.framing.gap_bytes());
        self.depart(port, frame, last_bit, world);
        let Some(line) = self.directions[port as usize].as_mut() else { return false };
        if line.has_waiting(|| waits(&self.nodes, &self.ports, port)) {
            line.departure_at = Some(busy_until);
            self.events.push(busy_until, Class::Departure, port);
        }
        false
    }

    /// A queue that gave nothing may give something later without a further frame: remembers when.
    fn wait_for_queue(&mut self, port: u32) {
        let now = self.now;
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        let Feed::Queue(queue) = &line.feed else { return };
        // A discipline that names a moment not after now would be asked again and again: the next picosecond will do.
        let ready = queue.next_ready(now).map(|at| at.max(now + Duration::from_ps(1)));
        if ready.is_some() && ready != line.ready_at {
            line.ready_at = ready;
            self.events.push(ready.unwrap_or(now), Class::QueueReady, port);
        }
    }

    /// The last bit of `frame` leaves `port` at `last_bit`, now or soon.
    fn depart(&mut self, port: u32, mut frame: Box<Frame>, last_bit: Time, world: &mut dyn World) {
        let now = self.now;
        if self.ports[port as usize].captured {
            self.show_departing(port, &frame, last_bit, world);
        }
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        line.leaves(&frame, last_bit, now);
        if line.impairments.is_transparent() {
            let (at, first) = line.in_flight.push(last_bit + line.config.delay_ps, false, frame);
            if first {
                self.events.push(at, Class::Arrival, port);
            }
            return;
        }
        while let Some(single) = frame.split_front(1) {
            self.suffer(port, single, last_bit);
        }
        self.suffer(port, frame, last_bit);
    }

    /// Sends a single frame over an impaired line.
    fn suffer(&mut self, port: u32, mut frame: Box<Frame>, last_bit: Time) {
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        let fate = line.impairments.fate();
        if fate.lost {
            line.counters.lost += frame.lose();
            return;
        }
        let twin = fate.duplicated.then(|| twin(&frame));
        if let Some(bit) = fate.corrupted_bit {
            line.counters.corrupted += 1;
            if !corrupt(&mut frame, bit) {
                line.counters.lost += frame.lose();
                return;
            }
        }
        let reorder = line.config.impair.reorder;
        let delay = line.impairments.delay(line.config.delay_ps);
        let (at, first) = line.in_flight.push(last_bit + delay, reorder, frame);
        if first {
            self.events.push(at, Class::Arrival, port);
        }
        if let Some(twin) = twin {
            line.counters.duplicated += u64::from(twin.fragment.as_ref().is_none_or(Fragment::is_whole));
            let delay = line.impairments.delay(line.config.delay_ps);
            let (at, first) = line.in_flight.push(last_bit + delay, reorder, twin);
            if first {
                self.events.push(at, Class::Arrival, port);
            }
        }
    }

    /// The frames that are due on the line from `port` arrive at its far end.
    fn arrive(&mut self, port: u32, world: &mut dyn World) {
        let now = self.now;
        let Some(line) = self.directions[port as usize].as_mut() else { return };
        let to = line.to;
        let Some(mut frame) = line.in_flight.pop(now) else { return };
        if let Some(next) = line.in_flight.next() {
            self.events.push(next, Class::Arrival, port);
        }
        if let Some(fragment) = frame.fragment.take() {
            let Some(carried) = leave_tunnel(&fragment, &frame, now) else { return };
            frame = carried;
        }
        let at = &mut self.ports[to as usize];
        at.received += frame.frames();
        at.received_bytes += frame.link_bytes();
        let node = at.node;
        if at.captured {
            self.show_train(to, Way::In, &frame, now, world);
        }
        match &mut self.nodes[node.0 as usize] {
            Node::Host => world.deliver(PortId(to), frame, now),
            Node::Model(_) => self.model_receives(node.0, PortId(to), frame, world),
            Node::Switch(switch) => {
                frame.hops += 1;
                if frame.hops > HOP_LIMIT {
                    self.ports[to as usize].looped += frame.frames();
                } else if switch.delay == Duration::ZERO {
                    self.switch_frame(node.0, PortId(to), frame, world);
                } else {
                    let ready = now + switch.delay;
                    switch.thinking.push_back((ready, PortId(to), frame));
                    self.events.push(ready, Class::Forward, node.0);
                }
            }
        }
    }

    fn forward(&mut self, node: u32, world: &mut dyn World) {
        let now = self.now;
        let Node::Switch(switch) = &mut self.nodes[node as usize] else { return };
        if switch.thinking.front().is_some_and(|(ready, ..)| *ready <= now) {
            if let Some((_, port, frame)) = switch.thinking.pop_front() {
                self.switch_frame(node, port, frame, world);
            }
        }
    }

    fn switch_frame(&mut self, node: u32, port: PortId, frame: Box<Frame>, world: &mut dyn World) {
        let now = self.now;
        let number = self.ports[port.0 as usize].number;
        let mut outputs = std::mem::take(&mut self.outputs);
        if let Node::Switch(switch) = &mut self.nodes[node as usize] {
            switch.switch.receive(number, frame, now, &mut outputs);
        }
        for output in outputs.drain(..) {
            self.leave_switch(node, output, world);
        }
        self.outputs = outputs;
        self.watch_timeouts(node);
    }

    /// A frame leaves a switch by one of its ports.
    fn leave_switch(&mut self, node: u32, output: Output, world: &mut dyn World) {
        let port = match &self.nodes[node as usize] {
            Node::Switch(switch) => port_by_number(&switch.ports, output.port),
            Node::Host | Node::Model(_) => None,
        };
        if let Some(port) = port {
            self.offer(port.0, output.frame, world);
        }
    }

    /// After a switch was called: keeps an event at the earliest moment at which a flow entry of `node` can time out or something comes
    /// through its control channel.
    fn watch_timeouts(&mut self, node: u32) {
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

    fn time_out(&mut self, node: u32, world: &mut dyn World) {
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

/// The next frame that the host behind `port` wants to send.
fn pull(
    nodes: &mut [Node],
    ports: &[Port],
    pool: &mut FramePool,
    port: u32,
    now: Time,
    world: &mut dyn World,
) -> Option<Box<Frame>> {
    let at = &ports[port as usize];
    match &mut nodes[at.node.0 as usize] {
        Node::Model(model) => model.host.pull(at.number as usize, now, pool),
        Node::Host | Node::Switch(_) => world.pull(PortId(port)),
    }
}

/// Whether the host behind `port` has a frame to send. A real host has to be asked for one to find out.
fn waits(nodes: &[Node], ports: &[Port], port: u32) -> bool {
    let at = &ports[port as usize];
    match &nodes[at.node.0 as usize] {
        Node::Model(model) => model.host.has_frames(at.number as usize),
        Node::Host | Node::Switch(_) => true,
    }
}

/// Length of the longest frame of a train, in bytes at the link layer.
fn longest(frame: &Frame) -> u64 {
    match frame.offload {
        Some(offload) if frame.frames() > 1 => u64::from(offload.header) + u64::from(offload.segment),
        _ => frame.length(),
    }
}

fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
