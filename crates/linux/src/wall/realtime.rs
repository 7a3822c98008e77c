//! The real-time loop: drives the fabric by the wall clock and carries frames between it and the hosts' interfaces.
//!
//! The loop waits on the interfaces until shortly before the next event is due and spins the rest of the time, still
//! looking at the interfaces. What it is late for, each line bears for itself: see the fabric's `line/schedule.rs`.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use twinnet_fabric::{catch_up, DirectionChange, DirectionConfig, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use crate::kernel::back_pressure::{most_segments, TokenBucket};
use crate::kernel::device::{Device, Pool};
use crate::kernel::interface::{HostInterface, InterfaceKind};
use crate::kernel::netlink::Netlink;
use crate::kernel::real_interface::RealInterface;
use crate::service::{Call, ErrorName, LabError, Responder, Service};
use crate::wall::aside::Aside;
use crate::wall::busy_lines::long_lines;
use crate::wall::capture::Capture;
use crate::wall::clock::{time_is_virtual, LabClock};
use crate::wall::controllers::{Controllers, CONTROLLER_TOKEN};
use crate::wall::delivery::{write_joined, Delivery};
use crate::wall::evidence::{own_process, Evidence};
use crate::wall::fidelity::{steal_s, FidelityRecord};
use crate::wall::inelastic::Inelastic;
use crate::wall::ingress::{Counted, Counter, SocketLosses, Watched};
use crate::wall::model_apps::LoopApps;
use crate::wall::moving_off::{move_off_waiters, Onset};
use crate::wall::pace::Pace;
use crate::wall::parts::crossing::Crossings;
use crate::wall::parts::record::PartRecord;
use crate::wall::parts::routing::first_number;
use crate::wall::pauses::Watchfulness;
use crate::wall::programs::turns_of_programs;
use crate::wall::requests;
use crate::wall::scheduling::{become_realtime, Breaks, THREAD_NAME};
use crate::wall::shown::Shown;
use crate::wall::spinning::SpinControl;
use crate::wall::tunnels::Tunnels;
use crate::wall::wakefulness::{Need, Wakefulness};
use twinnet_lab::capture::RunningCaptures;
use twinnet_lab::network::{NetworkSpec, NodeSpec};
use twinnet_lab::protocol::{Answer, InterfaceState as State, Reply, SamplesStart, StartOptions, TunnelAttach};
use twinnet_lab::requests::schedule_described;
use twinnet_lab::{assemble, Bodies, RunningNetwork};

/// Events handled before the loop looks at the interfaces again.
const EVENTS_PER_TURN: usize = 64;
/// Events handled between the interfaces that it reads.
const EVENTS_BETWEEN_READS: usize = 8;
/// The time after which it is looked again at what cannot be seen in virtual time: no script runs for so long.
const NEVER: std::time::Duration = std::time::Duration::from_secs(1_000_000_000);
/// Longest sleep: requests wake the loop by themselves, this only bounds what a lost wake-up could cost.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Interfaces that are told of in one look.
const EPOLL_EVENTS: usize = 256;
const WAKE_TOKEN: u64 = u64::MAX;
/// Set in the token of what tells the state of the interface at a port.
const STATE_TOKEN: u64 = 1 << 32;

/// The state that the loop keeps of a host's interface beside its device.
struct Held {
    kind: InterfaceKind,
    mtu: u32,
    index: u32,
    routing: Option<Arc<Mutex<Netlink>>>,
    /// The counter of the frames that were lost on the way to the loop.
    losses: Option<Counter>,
    /// `true` if frames are read as they come, whatever the link's rate: not those of a host, which is held back.
    eager: bool,
}

/// The hosts as the fabric sees them.
pub(crate) struct Hosts {
    devices: Vec<Option<Device>>,
    interfaces: Vec<Option<Held>>,
    pool: Pool,
    clock: LabClock,
    /// The time that the clock showed when the fabric asked for the frame that it hands over next.
    looked: Option<Time>,
    /// `true` where the line that leads to the host behind each port has a rate.
    rated: Vec<bool>,
    /// Limits, in virtual time, what no line does.
    pace: Option<Pace>,
    pub(crate) delivery: Delivery,
    /// Frames that are handed over in one step; empty between any two.
    // Boxes are what the fabric gives: keeping one costs no allocation.
    #[allow(clippy::vec_box)]
    joined: Vec<Box<Frame>>,
    /// Frames that were handed over, by this thread or another.
    passed: u64,
    pub(crate) inelastic: Inelastic,
    pub(crate) record: FidelityRecord,
    pub(crate) captures: RunningCaptures<Capture>,
    pub(crate) shown: Shown,
    pub(crate) tunnels: Tunnels,
    /// The ways to other parts of the network.
    pub(crate) crossings: Crossings,
}

impl World for Hosts {
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, due: Time) {
        // The fabric has looked at the clock just now where it had to know whether the frame is too late.
        let now = self.looked.take().unwrap_or_else(|| self.clock.now());
        self.passed += 1;
        if self.tunnels.has(port) {
            self.record.hand_overs.hand_over(port, now - due);
            let (handed, full) = self.tunnels.send(port, frame);
            self.record.hand_overs.handed_over += handed;
            self.record.hand_overs.overload_drops += full;
            return;
        }
        let Some(Some(device)) = self.devices.get(port.0 as usize) else { return self.pool.recycle(frame) };
        self.inelastic.went(port, &frame);
        // Lines with a rate carry single frames, many of them; without one the sender's trains come whole and are
        // soon written.
        let frame = if self.rated.get(port.0 as usize).is_some_and(|rated| *rated) {
            self.delivery.take(port, frame, due)
        } else {
            Some(frame)
        };
        if let Some(frame) = frame {
            self.record.hand_overs.hand_over(port, now - due);
            let answer = self.delivery.timed(self.clock, || device.writer().write(&frame));
            self.record.hand_overs.written(&frame, &answer);
            self.pool.recycle(frame);
        }
    }

    fn deliver_together(&mut self, port: PortId, frames: &mut Vec<Box<Frame>>, due: Time) {
        // One by one they go to the second thread, which joins them.
        if self.tunnels.has(port) || self.delivery.gives_away(port) {
            return;
        }
        let Some(Some(device)) = self.devices.get(port.0 as usize) else { return };
        let writer = device.writer();
        let now = self.clock.now();
        let joined = &mut self.joined;
        let mut left = frames.drain(..).peekable();
        while let Some(first) = left.next() {
            joined.push(first);
            let others = left.peek().is_some();
            let write = || write_joined(writer, joined, others, |whole| left.next_if(|next| whole.join(next)));
            let answer = self.delivery.timed(self.clock, write);
            self.passed += joined.len() as u64;
            for frame in joined.drain(..) {
                self.inelastic.went(port, &frame);
                self.record.hand_overs.hand_over(port, now - due);
                self.record.hand_overs.written(&frame, &answer);
                self.pool.recycle(frame);
            }
        }
    }

    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        if self.pace.as_mut().is_some_and(|pace| pace.holds(port, self.clock.now())) {
            return None;
        }
        let frame = match self.devices.get_mut(port.0 as usize)?.as_mut() {
            // An interface that a host deleted gives errors for ever: it is silent from then on.
            Some(device) => device.read(&mut self.pool).unwrap_or(None),
            None => self.tunnels.next(port),
        }?;
        if let Some(pace) = &mut self.pace {
            pace.took(port, frame.bytes.len(), self.clock.now());
        }
        self.inelastic.came(port, &frame);
        Some(frame)
    }

    fn blank(&mut self) -> Box<Frame> {
        self.pool.blank()
    }

    fn recycle(&mut self, frame: Box<Frame>) {
        self.pool.recycle(frame);
    }

    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, at: Time) {
        for (captured, capture) in self.captures.values_mut() {
            if *captured == port {
                capture.record(way, frame, at);
            }
        }
    }

    fn shown(&mut self, port: PortId, frame: &Frame) {
        self.shown.see(port, frame);
    }

    fn cross(&mut self, port: PortId, frame: Box<Frame>, arrival: Time) {
        self.crossings.give(port, frame, arrival);
    }

    fn wall(&mut self) -> Option<Time> {
        let now = self.clock.now();
        self.looked = Some(now);
        Some(now)
    }

    fn is_on_the_wall_clock(&self) -> bool {
        true
    }

    fn carrier(&mut self, port: PortId, up: bool) {
        const TUNSETCARRIER: libc::c_ulong = 0x4004_54e2;
        let at = port.0 as usize;
        if let (Some(Some(device)), Some(Some(Held { kind: InterfaceKind::Tap, losses, .. }))) =
            (self.devices.get(at), self.interfaces.get(at))
        {
            if let Some(losses) = losses {
                losses.follow(up);
            }
            let state = libc::c_int::from(up);
            // SAFETY: the descriptor is a TAP's; the call reads one int. A kernel without it only leaves the carrier
            // on.
            unsafe { libc::ioctl(device.raw(), TUNSETCARRIER, &raw const state) };
        }
    }

    fn reconfigured(&mut self, port: PortId, config: &DirectionConfig) {
        if let Some(pace) = &mut self.pace {
            pace.change(port, config.takes_time());
        }
        let Some(Some(held)) = self.interfaces.get(port.0 as usize) else { return };
        let Some(Ok(mut routing)) = held.routing.as_ref().map(|routing| routing.lock()) else { return };
        let bucket = TokenBucket::of(config.rate_bps, config.wire_bytes(u64::from(held.mtu) + 14), held.mtu);
        routing.hold_back(held.index, "the interface", bucket);
        routing.limit_segments(held.index, "the interface", most_segments(config.rate_bps, held.mtu));
        // A host whose root has replaced the bucket keeps what it has: the fabric's serialiser limits the rate in any
        // case.
        let _ = routing.commit();
    }
}

/// The options of the loop.
#[derive(Clone, Copy, Debug)]
pub struct RealtimeOptions {
    /// `true` to ask for real-time scheduling.
    pub realtime: bool,
    /// The lateness at which a line may be looked at and still catch up; `None` derives it from each line's rate
    /// ([`catch_up`]).
    pub catch_up: Option<Duration>,
}

impl From<StartOptions> for RealtimeOptions {
    fn from(options: StartOptions) -> Self {
        Self { realtime: options.realtime, catch_up: options.slip_after }
    }
}

impl Default for RealtimeOptions {
    fn default() -> Self {
        Self { realtime: true, catch_up: None }
    }
}

/// The part of a network that a loop moves.
#[derive(Default)]
pub(crate) struct Place {
    /// Its number.
    pub(crate) part: usize,
    /// The ways to the others.
    pub(crate) crossings: Crossings,
}

/// An order to a loop.
pub(crate) enum Order {
    /// A request is to be answered.
    Call(Call),
    /// The record of fidelity is to be given away as it is.
    TakeRecord(Box<dyn FnOnce(PartRecord) + Send>),
    /// A sampler is to be started whose first interval begins at `begin`.
    Sample {
        /// The request.
        asked: SamplesStart,
        /// The time at which to begin.
        begin: Time,
        /// Who asks.
        responder: Responder,
    },
}

/// A fabric on the wall clock, of a whole network or of a part of it, in a thread of its own. It ends when this is
/// dropped.
pub struct RealtimeFabric {
    sender: Mutex<Option<Sender<Order>>>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl RealtimeFabric {
    /// Builds the fabric that `spec` describes on `interfaces` and starts it.
    ///
    /// # Errors
    /// The fault of the description, or what the kernel refused.
    pub fn start(
        spec: &NetworkSpec,
        interfaces: Vec<HostInterface>,
        clock: LabClock,
        options: RealtimeOptions,
    ) -> Result<Self, LabError> {
        let network = assemble(spec.clone(), Bodies::Described)?;
        let wake = event_descriptor().map_err(refused)?;
        Self::start_part(network, interfaces, clock, options, Place::default(), wake)
    }

    /// Starts the loop of `network`, or of a part of one, at its `place`; `wake` is the event descriptor that wakes it.
    ///
    /// # Errors
    /// The refusal of the kernel.
    pub(crate) fn start_part(
        mut network: RunningNetwork,
        interfaces: Vec<HostInterface>,
        clock: LabClock,
        options: RealtimeOptions,
        place: Place,
        wake: OwnedFd,
    ) -> Result<Self, LabError> {
        schedule_described(&mut network)?;
        let (sender, receiver) = channel();
        let fabric_loop =
            FabricLoop::new(network, interfaces, clock, options, place, receiver, &wake).map_err(refused)?;
        let thread =
            std::thread::Builder::new().name(THREAD_NAME.into()).spawn(move || fabric_loop.run()).map_err(refused)?;
        Ok(Self { sender: Mutex::new(Some(sender)), wake, thread: Some(thread) })
    }

    /// Has the loop do something. Without a loop the order is dropped, and who is to be answered is told so.
    pub(crate) fn order(&self, order: Order) {
        let Ok(sender) = self.sender.lock() else { return };
        if let Some(sender) = sender.as_ref() {
            let _ = sender.send(order);
        }
        self.ring();
    }

    fn ring(&self) {
        let one = 1_u64;
        // SAFETY: writes eight readable bytes to an event descriptor; it can only fail when the counter is full,
        // which wakes too.
        unsafe { libc::write(self.wake.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

impl Service for RealtimeFabric {
    fn submit(&self, request: Call) {
        self.order(Order::Call(request));
    }
}

fn refused(error: io::Error) -> LabError {
    LabError::new(ErrorName::FabricFailed, format!("the fabric's loop cannot start: {error}"), "see `twinnet doctor`")
}

impl Drop for RealtimeFabric {
    fn drop(&mut self) {
        if let Ok(mut sender) = self.sender.lock() {
            sender.take();
        }
        self.ring();
        if let Some(thread) = self.thread.take() {
            // A loop that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

/// The state that the loop's thread owns.
pub(crate) struct FabricLoop {
    pub(crate) network: RunningNetwork,
    pub(crate) hosts: Hosts,
    pub(crate) apps: LoopApps,
    pub(crate) controllers: Controllers,
    pub(crate) real: BTreeMap<PortId, RealInterface>,
    pub(crate) clock: LabClock,
    /// The counters of the kernel when the record of fidelity began.
    pub(crate) counted_before: Arc<Mutex<Counted>>,
    /// Does what would hold up the loop.
    pub(crate) aside: Aside,
    pub(crate) evidence: Evidence,
    watchfulness: Watchfulness,
    options: RealtimeOptions,
    /// `true` in a guest whose time goes on by what is waited for. No sleep ends late there, nothing holds the loop up,
    /// and no program waits for a processor: what watches for that would only wake the guest.
    time_is_virtual: bool,
    spin: SpinControl,
    onset: Onset,
    /// Long lines on the longest way.
    pub(crate) long_lines: usize,
    breaks: Breaks,
    wakefulness: Wakefulness,
    receiver: Receiver<Order>,
    pub(crate) epoll: OwnedFd,
    wake: RawFd,
    /// Ports that may have more to read than was read in one turn.
    ready: Vec<PortId>,
}

impl FabricLoop {
    fn new(
        mut network: RunningNetwork,
        interfaces: Vec<HostInterface>,
        clock: LabClock,
        options: RealtimeOptions,
        place: Place,
        receiver: Receiver<Order>,
        wake: &OwnedFd,
    ) -> io::Result<Self> {
        network.fabric.set_catch_up(options.catch_up);
        let least_catch_up =
            options.catch_up.unwrap_or_else(|| catch_up(fastest(&network.spec).unwrap_or(Duration::MAX)));
        // SAFETY: no pointers are passed; the result is checked.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        watch(&epoll, wake.as_raw_fd(), WAKE_TOKEN, libc::EPOLLIN)?;
        let ports = network.names.port_names.len();
        let long_lines = long_lines(&network.names, &network.fabric);
        let mut devices: Vec<Option<Device>> = (0..ports).map(|_| None).collect();
        let mut held: Vec<Option<Held>> = (0..ports).map(|_| None).collect();
        let mut real = BTreeMap::new();
        for interface in interfaces {
            let port = network.names.ports_of_node.get(interface.node).and_then(|ports| ports.get(interface.port));
            let Some(port) = port.map(|port| port.0) else { continue };
            let losses = match (&interface.watch, &interface.routing) {
                (Some(_), _) => Some(Counter::Socket(Arc::new(SocketLosses::of(&interface.fd)?))),
                (None, Some(routing)) => Some(Counter::Interface(interface.index, Arc::clone(routing), Arc::default())),
                (None, None) => None,
            };
            let eager = !matches!(network.spec.nodes.get(interface.node), Some(NodeSpec::Host(_)));
            let device = Device::new(interface.fd, interface.kind, interface.whole_frames);
            // Edge-triggered: a port whose serialiser is busy is not looked at, and must not wake the loop again and
            // again.
            watch(&epoll, device.raw(), u64::from(port), libc::EPOLLIN | libc::EPOLLET)?;
            held[port as usize] = Some(Held {
                kind: interface.kind,
                mtu: interface.mtu,
                index: interface.index,
                routing: interface.routing,
                losses,
                eager,
            });
            devices[port as usize] = Some(device);
            if let Some(told) = interface.watch {
                watch(&epoll, told.raw(), STATE_TOKEN | u64::from(port), libc::EPOLLIN)?;
                told.ask()?;
                let node = interface.node;
                real.insert(PortId(port), RealInterface { watch: told, node, state: State::Up, lowered: false });
            }
        }
        // In a part of a network some traffic comes from others, and that of model hosts from within.
        let complete = place.crossings.is_empty() && !has_model_hosts(&network.spec);
        let inelastic = Inelastic::new(complete, devices.iter().map(Option::is_some));
        let rated = (0..ports).map(|port| leads_to_with_rate(&network, port)).collect();
        let writers = devices.iter().map(|device| device.as_ref().map(|device| device.writer().clone())).collect();
        let delivery = Delivery::start(writers, clock, options.realtime)?;
        let ready = (0..ports).filter(|port| devices[*port].is_some());
        let ready = ready.map(|port| PortId(u32::try_from(port).unwrap_or(u32::MAX))).collect();
        let watchfulness = Watchfulness::new(clock.now());
        let time_is_virtual = time_is_virtual();
        let wakefulness = Wakefulness::new(options.realtime && !time_is_virtual);
        let evidence = Evidence::begin(watchfulness.at_work(), wakefulness.occupied());
        let looked_at = evidence.clone();
        let pace = time_is_virtual.then(|| Pace::of((0..ports).map(|port| has_rate(&network, port))));
        Ok(Self {
            network,
            hosts: Hosts {
                devices,
                interfaces: held,
                pool: Pool::default(),
                clock,
                looked: None,
                rated,
                pace,
                delivery,
                joined: Vec::new(),
                passed: 0,
                inelastic,
                record: FidelityRecord::default(),
                captures: RunningCaptures::numbered_from(first_number(place.part)),
                shown: Shown::default(),
                tunnels: Tunnels::default(),
                crossings: place.crossings,
            },
            apps: LoopApps::new(first_number(place.part)),
            controllers: Controllers::default(),
            real,
            clock,
            counted_before: Arc::new(Mutex::new(Counted { steal_s: steal_s(), ..Counted::default() })),
            aside: Aside::start(move || if time_is_virtual { NEVER } else { looked_at.look() })?,
            evidence,
            watchfulness,
            options,
            time_is_virtual,
            spin: SpinControl::new(least_catch_up),
            onset: Onset::default(),
            breaks: Breaks::begin(clock.now()),
            long_lines,
            wakefulness,
            receiver,
            epoll,
            wake: wake.as_raw_fd(),
            ready,
        })
    }

    fn run(mut self) {
        if self.options.realtime {
            become_realtime();
        }
        // SAFETY: sets an attribute of the calling thread; it cannot fail for this option.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
        self.hosts.record = FidelityRecord::begin(self.clock.now());
        // SAFETY: takes no pointers and cannot fail.
        let own_thread = unsafe { libc::gettid() };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EPOLL_EVENTS];
        loop {
            let begin = self.clock.now();
            let (handled, reads) = (self.network.fabric.events_handled(), !self.ready.is_empty());
            let (fabric, hosts) = (&mut self.network.fabric, &mut self.hosts);
            hosts.passed += hosts.crossings.take(fabric, &mut hosts.record.hand_overs);
            let due_left = self.turn();
            self.hosts.crossings.flush();
            self.hosts.delivery.flush();
            let worked = reads || self.network.fabric.events_handled() != handled;
            self.hosts.delivery.observe(begin, self.clock.now(), worked);
            let pool = &mut self.hosts.pool;
            self.hosts.delivery.take_used(|frame| pool.recycle(frame));
            // What a controller says takes effect at the moment that it is, not at that of the last event.
            self.hear_controllers();
            self.controllers.send(&mut self.network);
            self.apps.answer_waiters(&self.network, self.clock.now());
            self.breaks.look(self.clock.now());
            let wait = if due_left || !self.ready.is_empty() { Duration::ZERO } else { self.idle_time() };
            self.spin.observe(self.clock.now());
            // Where frames are given away a thread of the fabric has each processor.
            let programs_have_one = !self.hosts.delivery.is_active() && self.evidence.programs_run();
            self.breaks.are_ample(programs_have_one);
            self.wakefulness.keep(self.need(programs_have_one));
            let wait = if self.time_is_virtual { wait } else { self.watchfulness.sleep(wait) };
            if wait > Duration::ZERO {
                self.hosts.captures.values_mut().for_each(|(_, capture)| capture.flush());
                self.hosts.shown.flush();
            }
            let wait = if self.time_is_virtual { self.left_of(wait) } else { wait };
            let wait = self.hosts.crossings.before_sleep(wait, self.clock.now());
            let asleep_until = self.clock.now() + wait;
            let count = wait_for_events(&self.epoll, &mut events, wait);
            if self.time_is_virtual {
                // No sleep ends late: a look at the clock would be another call.
                self.clock.hold_at((count == 0 && wait > Duration::ZERO).then_some(asleep_until));
            }
            self.hosts.crossings.awake();
            let now = self.clock.now();
            if count == 0 && wait > Duration::ZERO {
                self.spin.slept(now - asleep_until);
            }
            if self.onset.woke(now, self.hosts.passed) && self.options.realtime && !self.time_is_virtual {
                self.aside.run(move || move_off_waiters(own_thread, || turns_of_programs(own_process())));
            }
            let stood_still = self.watchfulness.woke(wait, now, self.hosts.passed);
            self.hosts.record.pauses.observe(stood_still, now);
            self.hosts.record.traffic.observe(self.hosts.passed, stood_still, now);
            let ports = self.network.names.port_names.len();
            self.hosts.record.busy_lines.look(&self.network.fabric, ports, &self.hosts.inelastic, now);
            while let Some(port) = self.hosts.pace.as_mut().and_then(|pace| pace.due(now)) {
                self.mark_ready(port);
            }
            let mut requests = false;
            for event in &events[..count] {
                let token = event.u64;
                match token {
                    WAKE_TOKEN => requests = true,
                    _ if token & CONTROLLER_TOKEN != 0 => self.controllers.note(token, event.events, &mut self.network),
                    _ if token & STATE_TOKEN != 0 => {
                        self.look_at_interface(PortId(u32::try_from(token ^ STATE_TOKEN).unwrap_or(u32::MAX)));
                    }
                    port => self.mark_ready(PortId(u32::try_from(port).unwrap_or(u32::MAX))),
                }
            }
            if requests && !self.answer_requests() {
                return;
            }
        }
    }

    /// `tunnel.attach`: has the socket that came with the request watched from now on.
    pub(crate) fn attach_tunnel(&mut self, asked: &TunnelAttach, socket: Option<OwnedFd>) -> Answer {
        let (port, descriptor) = self.hosts.tunnels.attach(&self.network, asked, socket)?;
        if let Some(descriptor) = descriptor {
            watch(&self.epoll, descriptor, u64::from(port.0), libc::EPOLLIN | libc::EPOLLET).map_err(|error| {
                LabError::new(ErrorName::TunnelFailed, error.to_string(), "pass a UDP or raw socket")
            })?;
        }
        self.mark_ready(port);
        Ok(Reply::Done {})
    }

    fn mark_ready(&mut self, port: PortId) {
        if !self.ready.contains(&port) {
            self.ready.push(port);
        }
    }

    /// Has the link of an interface of the machine follow the interface's state.
    fn look_at_interface(&mut self, port: PortId) {
        let Some(real) = self.real.get_mut(&port) else { return };
        let Some(state) = real.watch.news().filter(|state| *state != real.state) else { return };
        let was_there = std::mem::replace(&mut real.state, state) != State::Gone;
        let up = state == State::Up;
        let there = state != State::Gone;
        // A measurement that crosses an interface which went away is not what was asked for.
        if up {
            tracing::info!("the interface {} is {}", real.watch.name, state.words());
        } else {
            tracing::warn!("the interface {} is {}", real.watch.name, state.words());
        }
        let link = self.network.names.links.iter().find(|(a, b)| *a == port || *b == port).copied();
        let is_up = self.network.fabric.direction_config(port).is_some_and(|(_, up)| up);
        let follows = if up { std::mem::take(&mut real.lowered) } else { is_up };
        // Controllers hear that a port was deleted, and not before that that its link went down; when it comes back,
        // how it stands then.
        if was_there && !there {
            self.network.fabric.set_end_there(port, false);
        }
        if let Some((a, b)) = link.filter(|_| follows) {
            real.lowered = !up;
            for end in [a, b] {
                let change = DirectionChange { up: Some(up), ..DirectionChange::default() };
                // A change without a configuration is never refused.
                let _ = self.network.fabric.change(end, change, &mut self.hosts);
            }
        }
        if there && !was_there {
            self.network.fabric.set_end_there(port, true);
        }
        if up {
            self.mark_ready(port);
        }
    }

    /// Lets the fabric catch up with the clock and takes what the hosts have sent; returns whether due events are left.
    fn turn(&mut self) -> bool {
        let mut due_left = self.network.fabric.advance_some(self.clock.now(), EVENTS_PER_TURN, &mut self.hosts);
        if self.ready.is_empty() {
            return due_left;
        }
        let mut ready = std::mem::take(&mut self.ready);
        ready.retain(|port| {
            // What falls due while others are read is not kept waiting by them, and what is read now was not there
            // before.
            due_left |= self.network.fabric.advance_some(self.clock.now(), EVENTS_BETWEEN_READS, &mut self.hosts);
            self.network.fabric.readable(*port, &mut self.hosts)
        });
        self.ready = ready;
        for port in self.hosts.tunnels.take_unfinished() {
            self.mark_ready(port);
        }
        // What was read may be due at once further on.
        let now = self.network.fabric.now();
        self.network.fabric.advance_some(now, EVENTS_PER_TURN, &mut self.hosts) || due_left
    }

    /// Hears a piece of what one controller says, if one says something and they may have the loop's time.
    fn hear_controllers(&mut self) {
        let begin = self.clock.now();
        if self.controllers.patience(begin) == Some(Duration::ZERO) {
            self.controllers.hear(&mut self.network, &mut self.hosts);
            let end = self.clock.now();
            self.controllers.took(end - begin, end);
        }
    }

    /// Returns what the loop needs of its processor now; `programs_have_one`, another, and run there.
    fn need(&self, programs_have_one: bool) -> Need {
        // A loop with so much to do that frames are given away hardly sleeps: while it does, the agent is to find its
        // processor idle. From a break it is to be back in time.
        let hardly_sleeps = self.hosts.delivery.is_active();
        if self.breaks.are_taken() && programs_have_one {
            Need::All
        } else if self.breaks.are_taken() || (self.spin.is_at_work() && !hardly_sleeps) {
            Need::Awake
        } else {
            Need::Nothing
        }
    }

    /// Returns how long nothing is to be done unless something arrives; zero when the next event is close enough to
    /// spin.
    fn idle_time(&mut self) -> Duration {
        let now = self.clock.now();
        let patience = self.apps.deadline().map_or(LONGEST_SLEEP, |at| (at - now).min(LONGEST_SLEEP));
        let paced = self.hosts.pace.as_ref().and_then(Pace::next);
        let patience = paced.map_or(patience, |at| (at - now).min(patience));
        let patience = self.controllers.patience(now).map_or(patience, |controllers| controllers.min(patience));
        let Some(next) = self.network.fabric.next_event() else { return patience };
        let margin = if self.time_is_virtual { Duration::ZERO } else { self.spin.margin() };
        (next - now).saturating_sub(margin).min(patience)
    }

    /// Returns what is left of `wait`, which begins at the time that the clock is held at, and holds it now: calls of
    /// Linux do take time.
    fn left_of(&self, wait: Duration) -> Duration {
        let begin = self.clock.now();
        self.clock.hold_at(None);
        wait.saturating_sub(self.clock.now() - begin)
    }

    /// Answers what was asked; false when nobody can ask any more.
    fn answer_requests(&mut self) -> bool {
        let mut counter = 0_u64;
        // SAFETY: reads eight bytes into a writable integer; a failure only means that there was nothing to reset.
        unsafe { libc::read(self.wake, (&raw mut counter).cast(), 8) };
        loop {
            match self.receiver.try_recv() {
                Ok(order) => requests::carry_out(self, order),
                Err(std::sync::mpsc::TryRecvError::Empty) => return true,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// The interfaces that are asked for their losses.
    pub(crate) fn watched(&self) -> Vec<Watched> {
        let of = |(port, held): (usize, &Option<Held>)| {
            let held = held.as_ref()?;
            let port = PortId(u32::try_from(port).ok()?);
            let rated = self.network.fabric.direction_config(port)?.0.takes_time() && !held.eager;
            let name = self.network.names.port_names.get(port.0 as usize).cloned().unwrap_or_default();
            Some(Watched { port: name, counter: held.losses.clone()?, rated })
        };
        self.hosts.interfaces.iter().enumerate().filter_map(of).collect()
    }

    /// Ends a capture without holding up the loop: the disk is waited for elsewhere.
    pub(crate) fn finish_capture(capture: Capture, responder: Responder) {
        let finish = move || responder.send(Ok(Reply::Captured(capture.finish())));
        // Without a thread the reply is dropped, which tells the client that there is no answer.
        let _ = std::thread::Builder::new().name("capture-end".into()).spawn(finish);
    }
}

/// Returns `true` if frames take time on the line that leads to `port`.
fn leads_to_with_rate(network: &RunningNetwork, port: usize) -> bool {
    let near = u32::try_from(port).ok().and_then(|port| network.fabric.far_end(PortId(port)));
    near.is_some_and(|near| has_rate(network, near.0 as usize))
}

/// Returns `true` if frames take time on the line from `port`.
fn has_rate(network: &RunningNetwork, port: usize) -> bool {
    let port = u32::try_from(port).ok().map(PortId);
    port.and_then(|port| network.fabric.direction_config(port)).is_some_and(|(config, _)| config.takes_time())
}

/// Returns `true` if some hosts are models inside the fabric: what they send does not come from an interface.
fn has_model_hosts(spec: &NetworkSpec) -> bool {
    spec.nodes.iter().any(|node| matches!(node, NodeSpec::Host(host) if host.model))
}

/// The highest rate of a link and the MTU there: what has the shortest serialisation time of a full-size frame.
fn fastest(spec: &NetworkSpec) -> Option<Duration> {
    let ways = spec.links.iter().flat_map(|link| [(&link.ab, link.mtu), (&link.ba, link.mtu)]);
    ways.filter_map(|(way, mtu)| Some(way.rate_bps?.serialise(way.framing.wire_bytes(u64::from(mtu) + 14)))).min()
}

/// An event descriptor to wake the loop with.
pub(crate) fn event_descriptor() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed; the result is checked.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just created and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn watch(epoll: &OwnedFd, descriptor: RawFd, token: u64, events: i32) -> io::Result<()> {
    #[allow(clippy::cast_sign_loss)]
    let mut event = libc::epoll_event { events: events as u32, u64: token };
    // SAFETY: both descriptors are open; the event outlives the call.
    match unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &raw mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits at most `wait`; returns how many events were filled in.
fn wait_for_events(epoll: &OwnedFd, events: &mut [libc::epoll_event; EPOLL_EVENTS], wait: Duration) -> usize {
    let nanoseconds = wait.as_ns();
    #[allow(clippy::cast_possible_wrap)]
    let timeout = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `events` has room for as many events as are asked for; the timeout outlives the call. The system call
    // itself is used because older C libraries lack the wrapper.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            EPOLL_EVENTS,
            &raw const timeout,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    usize::try_from(count).unwrap_or(0)
}
