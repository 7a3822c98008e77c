//! The engine: moves frames between ports as time passes.
//!
//! Whoever drives it (the real-time loop, or the virtual clock) calls [`Fabric::advance`] with the time it is, and
//! hands in a [`World`] in which the real hosts live. The engine never asks what time it is.

mod advancing;
mod changes;
mod channel;
mod coalescing;
mod control;
mod counters;
mod crossing;
mod models;
mod sampling;
mod sending;
mod showing;
mod switching;

use std::collections::BTreeMap;

use twinnet_packet::Frame;
use twinnet_units::{impossible, Duration, Rate, Time};

use crate::event::{Class, Event, EventQueue};
use crate::line::{Arrival, Budget, DirectionConfig, Feed, Line};
use models::ModelNode;
use sampling::Sampler;
use showing::show_train;
use twinnet_impair::{ImpairError, Impairments};
use twinnet_packet::{FramePool, Framing};
use twinnet_queue::{QueueConfig, QueueError, Site};
use twinnet_switch::{Output, Switch};
use twinnet_units::random::stream;

pub use changes::DirectionChange;
pub use coalescing::Coalescing;
pub use control::ControlOutput;
pub use counters::PortCounters;
pub use sampling::{Samples, MOST_SAMPLES};

/// Switches that a frame may pass before it is taken for one that goes in circles.
pub const HOP_LIMIT: u16 = 255;

/// The most that one call of [`Fabric::readable`] takes from an interface before it returns to its caller: enough small
/// frames to be worth a turn, and few enough super-segments to stay in a processor's cache.
const INTERFACE_BUDGET: Budget = Budget { frames: 64, bytes: 128 * 1024 };

/// Frames that wait at a switch's port unless another queue is configured.
pub const DEFAULT_QUEUE_FRAMES: u64 = 1000;

/// A node of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A port of a node. The direction of a link that this port sends into has the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub u32);

/// A link between two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u32);

/// The direction in which a frame passed a port, seen from the port's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It arrived at the node.
    In,
    /// It left the node.
    Out,
}

/// The world of the real hosts: what the engine needs of them.
///
/// The engine calls it from within the call of [`Fabric`] that it was handed to, in the order of events, and keeps
/// nothing of it afterwards. It may not wait: while it does, the network stands still. [`pull`](Self::pull) takes a
/// frame out of a host's interface only when the line can begin it, so that the host feels its own queue; a frame that
/// was pulled is the fabric's. A frame that is delivered is the world's, also when it cannot hand it on: it counts that
/// itself. Ports are those of [`Fabric::add_port`].
pub trait World {
    /// `frame` has arrived at the host behind `port`; it was due at `due`.
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, due: Time);

    /// `frames` have arrived at the host behind `port` one after another, and its card tells of them together at
    /// `due`. Takes those that it delivers; the others are delivered one by one.
    #[allow(clippy::vec_box)]
    fn deliver_together(&mut self, port: PortId, frames: &mut Vec<Box<Frame>>, due: Time) {
        let _ = (port, frames, due);
    }

    /// The next frame that the host behind `port` wants to send, if there is one.
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>>;

    /// A frame passed a port under capture: its last bit at `at`.
    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, at: Time);

    /// `frame` has arrived at a port that is shown ([`Fabric::set_shown`]).
    fn shown(&mut self, port: PortId, frame: &Frame) {
        let _ = (port, frame);
    }

    /// The link at the host's `port` went up or down.
    fn carrier(&mut self, port: PortId, up: bool);

    /// `event` is handled next. Told only after [`Fabric::tell_events`].
    fn happens(&mut self, event: Event) {
        let _ = event;
    }

    /// The wall clock's reading, where it is the wall clock that drives the fabric: what is due can be late then.
    fn wall(&mut self) -> Option<Time> {
        None
    }

    /// Returns `true` if it is the wall clock that drives the fabric: the times that it is told are its readings.
    fn is_on_the_wall_clock(&self) -> bool {
        false
    }

    /// `frame` left `port`, and arrives at `arrival` at the far end of the line, which another fabric has: see
    /// [`Fabric::keep_part`]. It is to be handed to that one's [`Fabric::take_crossing`]. Only a fabric that keeps a
    /// part of a network calls this.
    // Frames move in their boxes.
    #[allow(clippy::boxed_local)]
    fn cross(&mut self, port: PortId, frame: Box<Frame>, arrival: Time) {
        debug_assert!(
            false,
            "the line of port {} leads to no other fabric ({} bytes, {arrival})",
            port.0,
            frame.length()
        );
    }

    /// A frame whose buffer may be used for another.
    fn blank(&mut self) -> Box<Frame> {
        Box::default()
    }

    /// Takes back a frame that is no longer needed.
    fn recycle(&mut self, frame: Box<Frame>) {
        drop(frame);
    }

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
        /// The fault in it.
        source: QueueError,
    },
    /// An impairment is refused.
    #[error("link from {port}: {source}")]
    Impair {
        /// The sending port's name.
        port: String,
        /// The fault in it.
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
    /// The agent that speaks with its controllers.
    agent: Option<Box<twinnet_switch::control::Agent>>,
    /// The way to them, where anything was said of it.
    channel: Option<Box<channel::Channel>>,
}

// What every frame touches is one line of the processor's cache.
#[repr(C, align(64))]
struct Port {
    node: NodeId,
    number: u32,
    captured: bool,
    shown: bool,
    /// The frames that a host's card keeps, where it coalesces interrupts.
    kept: Option<Box<coalescing::Kept>>,
    received: u64,
    received_bytes: u64,
    looped: u64,
    /// Frames that had nowhere to go.
    without_line: u64,
    name: String,
}

struct Link {
    ends: (PortId, PortId),
    up: bool,
}

/// A network in motion: its nodes, ports and links, and the events that are to come.
///
/// One owner drives it: the virtual lab, or one loop of the wall clock. It builds the network first (a node, then its
/// ports, then [`join`](Self::join)), and then alternates [`advance`](Self::advance) with what comes from outside:
/// [`readable`](Self::readable) when a real host has frames, [`with_model`](Self::with_model) for a model host's apps,
/// [`controller_said`](Self::controller_said) for controllers, [`change`](Self::change) for links. Between two calls
/// it may sleep until [`next_event`](Self::next_event). Nothing in here reads a clock or waits.
///
/// Numbers of nodes, ports and links are those that its own calls gave, and are valid as long as it is; others panic.
///
/// Some things stay true throughout. [`now`](Self::now) never goes back, and each event is handled at its own time, in
/// the order that `event.rs` argues for. A frame is delivered, or counted with the reason why it was not. Equal
/// seeds, networks and calls at equal times give equal [`trace_hash`](Self::trace_hash)es; looking (samples, captures,
/// counters) does not change it.
pub struct Fabric {
    seed: u64,
    now: Time,
    /// The wall clock's reading when the current call began; zero where none drives the fabric, so that nothing is
    /// ever late.
    wall: Time,
    /// The lateness at which lines may be looked at and still catch up, where that was set.
    catch_up: Option<Duration>,
    /// Trains are told apart where that can be seen; see [`Fabric::keep_trains_exact`].
    exact_trains: bool,
    /// A port has a queue discipline that was described.
    has_queues: bool,
    events: EventQueue,
    nodes: Vec<Node>,
    ports: Vec<Port>,
    lines: Vec<Option<Line>>,
    links: Vec<Link>,
    /// Switches that have an agent.
    controlled: Vec<NodeId>,
    /// `true` if one of them has something to say to its controllers.
    control_waits: bool,
    changes: Vec<Option<Vec<(PortId, DirectionChange)>>>,
    samplers: Vec<Option<Sampler>>,
    /// Trains on the serialisers of captured ports.
    departing: BTreeMap<u32, (Time, Box<Frame>)>,
    outputs: Vec<Output>,
    pool: FramePool,
    finished_apps: u64,
    handled: u64,
    trace: u64,
    /// The [`World`] is told of each event.
    tells_events: bool,
    tree_is_stale: bool,
    /// For each link whether it is in the spanning tree.
    in_tree: Vec<bool>,
}

impl Fabric {
    /// An empty fabric. All randomness in it comes from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            wall: Time::ZERO,
            catch_up: None,
            exact_trains: false,
            has_queues: false,
            events: EventQueue::new(seed),
            nodes: Vec::new(),
            ports: Vec::new(),
            lines: Vec::new(),
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
            tells_events: false,
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
            shown: false,
            looped: 0,
            kept: None,
            without_line: 0,
            received: 0,
            received_bytes: 0,
        });
        self.lines.push(None);
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

    /// Joins two ports. `a_queue` is the queue discipline at `a`, for frames from `a` to `b`; without one, a switch's
    /// port has a FIFO of [`DEFAULT_QUEUE_FRAMES`] and a host's port leaves frames in the host's interface until they
    /// can be sent. `mtu` is the longest payload of a frame in bytes.
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
        self.lines[a.0 as usize] = Some(forth);
        self.lines[b.0 as usize] = Some(back);
        self.has_queues |= a_queue.is_some() || b_queue.is_some();
        self.settle_trains();
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
    ) -> Result<Line, BuildError> {
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
        let mut line = Line::new(to.0, config, feed, impairments, mtu);
        line.set_catch_up(self.catch_up);
        Ok(line)
    }

    /// Returns the surroundings of a queue discipline at `port`, before a line of `rate`.
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

    /// From now on the [`World`] is told of each event, before it is handled.
    pub fn tell_events(&mut self) {
        self.tells_events = true;
    }

    /// Events handled so far.
    #[must_use]
    pub fn events_handled(&self) -> u64 {
        self.handled
    }

    /// Returns the time when the next event is due.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        self.events.next_time()
    }

    /// The host behind `port` has something to send. Returns whether it may have more that was not looked at: call
    /// again soon.
    pub fn readable(&mut self, port: PortId, world: &mut dyn World) -> bool {
        // Without a line it is pulled all the same: `offer` counts what has nowhere to go.
        if self.lines[port.0 as usize].as_ref().is_some_and(Line::is_fed_by_interface) {
            return self.begin(port.0, INTERFACE_BUDGET, world);
        }
        let mut budget = INTERFACE_BUDGET;
        while !budget.is_spent() {
            let Some(frame) = world.pull(port) else { return false };
            budget.spend(&frame);
            self.offer(port.0, frame, world);
        }
        true
    }

    /// The frames that are due on the line from `port` arrive at its far end.
    fn arrive(&mut self, port: u32, world: &mut dyn World) {
        let now = self.now;
        let Some(line) = self.lines[port as usize].as_mut() else {
            return impossible!("an arrival without a line");
        };
        let to = line.to;
        // Where a frame leaves the fabric the clock is read anew: what was handed over before took its time.
        let leaves = matches!(self.nodes[self.ports[to as usize].node.0 as usize], Node::Host);
        let wall = if leaves { world.wall().unwrap_or(self.wall) } else { self.wall };
        let arrival = if line.leads_here() { line.arrive_from_afar(now, wall) } else { line.arrive(now, wall) };
        let frame = match arrival {
            Arrival::Stale => return,
            Arrival::Postponed(effects) => return self.plan(port, effects),
            Arrival::Frame(frame, effects) => {
                self.plan(port, effects);
                frame
            }
        };
        let Some(mut frame) = frame else { return };
        let at = &mut self.ports[to as usize];
        let extent = frame.extent(Framing::None);
        at.received += extent.frames;
        at.received_bytes += extent.link_bytes;
        let (node, shown) = (at.node, at.shown);
        if at.captured {
            show_train(to, Way::In, &frame, now, self.showing(port), world);
        }
        if shown {
            world.shown(PortId(to), &frame);
        }
        match &mut self.nodes[node.0 as usize] {
            Node::Host | Node::Model(_) if self.ports[to as usize].kept.is_some() => {
                self.keep(PortId(to), frame, world)
            }
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
}

fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
