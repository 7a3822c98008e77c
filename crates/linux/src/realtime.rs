//! The real-time loop: drives the fabric by the wall clock and carries frames between it and the hosts' interfaces.
//!
//! The loop waits on the interfaces until shortly before the next event is due and spins the rest of the time, still looking
//! at the interfaces. It never hurries to catch up: see `fidelity.rs`.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;
use twinnet_fabric::{DirectionConfig, Fabric, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use crate::assemble::{assemble, Assembly};
use crate::back_pressure::TokenBucket;
use crate::capture::Capture;
use crate::clock::{thread_cpu_ns, LabClock};
use crate::device::{Device, Pool};
use crate::fidelity::{self, FidelityRecord};
use crate::ingress::{Losses, Watched};
use crate::interface::{HostInterface, InterfaceKind};
use crate::netlink::Netlink;
use crate::network::NetworkSpec;
use crate::requests;
use crate::service::{LabError, Reply, Request, Service};

/// The longest time before an event at which the loop stops sleeping; below, it follows how late sleeps end on this machine.
const LONGEST_SPIN: Duration = Duration::from_us(250);
/// Shares of the processor between which the loop holds itself by spinning less or more: spinning makes hand-overs exact to a
/// microsecond instead of some tens, and is not worth being stopped for.
const DUTY_RANGE: (f64, f64) = (0.75, 0.88);
/// How many times the usual oversleep the loop spins at most, where the processor is free for it: a few sleeps in a thousand end
/// many times later than the others.
const MOST_EAGER: f64 = 8.0;
/// Share of the processor above which real-time scheduling is given up: the kernel stops a real-time thread that uses more than
/// 95 % of a second for the rest of it, 50 ms at once.
const HIGHEST_DUTY: f64 = 0.92;
/// How often the share is looked at.
const DUTY_PERIOD: Duration = Duration::from_ms(50);
/// Periods in a row with too high a share after which real-time scheduling is given up: before the kernel's second is over.
const PATIENCE: u32 = 8;
/// Events handled before the loop looks at the interfaces again.
const EVENTS_PER_TURN: usize = 64;
/// Longest sleep: requests wake the loop by themselves, this only bounds what a lost wake-up could cost.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Interfaces that are told of in one look.
const EPOLL_EVENTS: usize = 256;
const WAKE_TOKEN: u64 = u64::MAX;
/// Name of the loop's thread, by which an owner finds it.
const THREAD_NAME: &str = "fabric";

/// What the loop keeps of a host's interface beside its device.
struct Held {
    kind: InterfaceKind,
    mtu: u32,
    index: u32,
    routing: Option<Arc<Mutex<Netlink>>>,
}

/// The hosts as the fabric sees them.
pub(crate) struct Hosts {
    devices: Vec<Option<Device>>,
    interfaces: Vec<Option<Held>>,
    pool: Pool,
    clock: LabClock,
    /// The wall clock less the fabric's clock.
    pub(crate) behind: Duration,
    pub(crate) record: FidelityRecord,
    pub(crate) captures: HashMap<u32, (PortId, Capture)>,
}

impl Hosts {
    /// The fabric's time, were it on time.
    fn fabric_time(&self) -> Time {
        Time::ZERO + (self.clock.now() - (Time::ZERO + self.behind))
    }
}

impl World for Hosts {
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, due: Time) {
        let late = self.fabric_time() - due;
        self.record.lateness.record(late.as_ns(), 1);
        if let Some(Some(device)) = self.devices.get(port.0 as usize) {
            match device.write(&frame) {
                Ok(()) => self.record.handed_over += frame.frames(),
                Err(error) if is_overload(&error) => self.record.overload_drops += frame.frames(),
                // The host has put its interface down, or refuses the frame: as a real one may.
                Err(_) => {}
            }
        }
        self.pool.recycle(frame);
    }

    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        let device = self.devices.get_mut(port.0 as usize)?.as_mut()?;
        // An interface that a host deleted gives errors for ever: it is silent from then on.
        device.read(&mut self.pool).unwrap_or(None)
    }

    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, at: Time) {
        let stamped = at + self.behind;
        for (captured, capture) in self.captures.values_mut() {
            if *captured == port {
                capture.record(way, frame, stamped);
            }
        }
    }

    fn carrier(&mut self, port: PortId, up: bool) {
        const TUNSETCARRIER: libc::c_ulong = 0x4004_54e2;
        let at = port.0 as usize;
        if let (Some(Some(device)), Some(Some(Held { kind: InterfaceKind::Tap, .. }))) =
            (self.devices.get(at), self.interfaces.get(at))
        {
            let state = libc::c_int::from(up);
            // SAFETY: the descriptor is a TAP's; the call reads one int. A kernel without it only leaves the carrier on.
            unsafe { libc::ioctl(device.raw(), TUNSETCARRIER, &raw const state) };
        }
    }

    fn reconfigured(&mut self, port: PortId, config: &DirectionConfig) {
        let Some(Some(held)) = self.interfaces.get(port.0 as usize) else { return };
        let Some(Ok(mut routing)) = held.routing.as_ref().map(|routing| routing.lock()) else { return };
        let bucket = TokenBucket::of(config.rate_bps, config.framing, held.mtu);
        routing.hold_back(held.index, "the interface", bucket);
        // A host whose root has replaced the bucket keeps what it has: the fabric's serialiser limits the rate in any case.
        let _ = routing.commit();
    }
}

fn is_overload(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC))
}

/// How the loop is to run.
#[derive(Clone, Copy, Debug)]
pub struct RealtimeOptions {
    /// Whether to ask for real-time scheduling.
    pub realtime: bool,
    /// How far the fabric may be behind without moving its clock; `None` derives it from the links' rates, see `fidelity.rs`.
    pub slip_after: Option<Duration>,
}

impl RealtimeOptions {
    /// Reads `realtime` (`"auto"`, `"off"`) and `slip_after_ps` of a `start` request's options; others are for others.
    ///
    /// # Errors
    /// `InvalidOption` that names what is allowed.
    pub fn from_json(options: Option<&Value>) -> Result<Self, LabError> {
        let mut read = Self::default();
        let refuse = |message: String| LabError::new("InvalidOption", message, "");
        match options.and_then(|options| options.get("realtime")) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text == "auto" => {}
            Some(Value::String(text)) if text == "off" => read.realtime = false,
            Some(other) => {
                return Err(refuse(format!("the option realtime is {other}; it can be \"auto\" or \"off\"")))
            }
        }
        match options.and_then(|options| options.get("slip_after_ps")) {
            None | Some(Value::Null) => {}
            Some(value) => {
                let ps = value.as_u64().filter(|ps| *ps > 0);
                read.slip_after = Some(Duration::from_ps(ps.ok_or_else(|| {
                    refuse(format!("the option slip_after_ps is {value}; it is a whole number above 0"))
                })?));
            }
        }
        Ok(read)
    }
}

impl Default for RealtimeOptions {
    fn default() -> Self {
        Self { realtime: true, slip_after: None }
    }
}

/// The fabric of a lab on the wall clock, in a thread of its own. It ends when this is dropped.
pub struct RealtimeFabric {
    sender: Mutex<Option<Sender<Request>>>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl RealtimeFabric {
    /// Builds the fabric that `spec` describes on `interfaces` and starts it.
    ///
    /// # Errors
    /// What is wrong with the description, or what the kernel refused.
    pub fn start(
        spec: &NetworkSpec,
        interfaces: Vec<HostInterface>,
        clock: LabClock,
        options: RealtimeOptions,
    ) -> Result<Self, LabError> {
        let refused = |error: io::Error| {
            LabError::new("FabricFailed", format!("the fabric's loop cannot start: {error}"), "see `twinnet doctor`")
        };
        let assembly = assemble(spec)?;
        let (sender, receiver) = channel();
        let wake = event_descriptor().map_err(refused)?;
        let mut fabric_loop =
            FabricLoop::new(spec, assembly, interfaces, clock, options, receiver, &wake).map_err(refused)?;
        requests::schedule_described(&mut fabric_loop, &spec.schedule)?;
        let thread =
            std::thread::Builder::new().name(THREAD_NAME.into()).spawn(move || fabric_loop.run()).map_err(refused)?;
        Ok(Self { sender: Mutex::new(Some(sender)), wake, thread: Some(thread) })
    }

    fn ring(&self) {
        let one = 1_u64;
        // SAFETY: writes eight readable bytes to an event descriptor; it can only fail when the counter is full, which wakes too.
        unsafe { libc::write(self.wake.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

impl Service for RealtimeFabric {
    fn submit(&self, request: Request) {
        let Ok(sender) = self.sender.lock() else { return };
        // Without a loop the request is dropped, and its reply says so.
        if let Some(sender) = sender.as_ref() {
            let _ = sender.send(request);
        }
        self.ring();
    }
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

/// What the loop's thread owns.
pub(crate) struct FabricLoop {
    pub(crate) fabric: Fabric,
    pub(crate) hosts: Hosts,
    pub(crate) names: Assembly,
    pub(crate) clock: LabClock,
    pub(crate) spec: NetworkSpec,
    pub(crate) next_capture: u32,
    /// What the hosts' interfaces had lost when the record of fidelity began.
    pub(crate) losses_before: Arc<Mutex<Losses>>,
    options: RealtimeOptions,
    duty: Duty,
    oversleep: Oversleep,
    slip_after: Duration,
    receiver: Receiver<Request>,
    epoll: OwnedFd,
    wake: RawFd,
    /// Ports that may have more to read than was read in one turn.
    ready: Vec<PortId>,
}

impl FabricLoop {
    fn new(
        spec: &NetworkSpec,
        mut assembly: Assembly,
        interfaces: Vec<HostInterface>,
        clock: LabClock,
        options: RealtimeOptions,
        receiver: Receiver<Request>,
        wake: &OwnedFd,
    ) -> io::Result<Self> {
        let fabric = std::mem::replace(&mut assembly.fabric, Fabric::new(0));
        // SAFETY: no pointers are passed; the result is checked.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        watch(&epoll, wake.as_raw_fd(), WAKE_TOKEN, libc::EPOLLIN)?;
        let ports = assembly.port_names.len();
        let mut devices: Vec<Option<Device>> = (0..ports).map(|_| None).collect();
        let mut held: Vec<Option<Held>> = (0..ports).map(|_| None).collect();
        for interface in interfaces {
            let port = assembly.ports_of_node.get(interface.node).and_then(|ports| ports.get(interface.port));
            let Some(port) = port.map(|port| port.0) else { continue };
            let device = Device::new(interface.fd);
            // Edge-triggered: a port whose serialiser is busy is not looked at, and must not wake the loop again and again.
            watch(&epoll, device.raw(), u64::from(port), libc::EPOLLIN | libc::EPOLLET)?;
            held[port as usize] = Some(Held {
                kind: interface.kind,
                mtu: interface.mtu,
                index: interface.index,
                routing: interface.routing,
            });
            devices[port as usize] = Some(device);
        }
        let ready = (0..ports).filter(|port| devices[*port].is_some());
        let ready = ready.map(|port| PortId(u32::try_from(port).unwrap_or(u32::MAX))).collect();
        Ok(Self {
            fabric,
            hosts: Hosts {
                devices,
                interfaces: held,
                pool: Pool::default(),
                clock,
                behind: Duration::ZERO,
                record: FidelityRecord::default(),
                captures: HashMap::new(),
            },
            names: assembly,
            clock,
            spec: spec.clone(),
            next_capture: 0,
            losses_before: Arc::default(),
            options,
            duty: Duty::default(),
            oversleep: Oversleep::default(),
            slip_after: options.slip_after.unwrap_or_else(|| fidelity::slip_after(fastest(spec))),
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
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
        self.hosts.record = FidelityRecord::begin(self.clock.now());
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EPOLL_EVENTS];
        loop {
            let due_left = self.turn();
            if self.duty.observe(self.clock.now()) {
                give_up_realtime();
            }
            let wait = if due_left || !self.ready.is_empty() { Duration::ZERO } else { self.idle_time() };
            if wait > Duration::ZERO {
                self.hosts.captures.values_mut().for_each(|(_, capture)| capture.flush());
            }
            let asleep_until = self.clock.now() + wait;
            let count = wait_for_events(&self.epoll, &mut events, wait);
            if count == 0 && wait > Duration::ZERO {
                self.oversleep.observe(self.clock.now() - asleep_until);
            }
            let mut requests = false;
            for event in &events[..count] {
                match event.u64 {
                    WAKE_TOKEN => requests = true,
                    port => self.mark_ready(PortId(u32::try_from(port).unwrap_or(u32::MAX))),
                }
            }
            if requests && !self.answer_requests() {
                return;
            }
        }
    }

    fn mark_ready(&mut self, port: PortId) {
        if !self.ready.contains(&port) {
            self.ready.push(port);
        }
    }

    /// Lets the fabric catch up with the clock and takes what the hosts have sent; returns whether due events are left.
    fn turn(&mut self) -> bool {
        let now = self.hosts.fabric_time();
        let late = self.fabric.next_event().map_or(Duration::ZERO, |next| now - next);
        let now = if late > self.slip_after {
            self.hosts.record.slip(late);
            self.hosts.behind += late;
            Time::from_ps(now.as_ps() - late.as_ps())
        } else {
            now
        };
        let due_left = self.fabric.advance_some(now, EVENTS_PER_TURN, &mut self.hosts);
        if !self.ready.is_empty() {
            let mut ready = std::mem::take(&mut self.ready);
            ready.retain(|port| self.fabric.readable(*port, &mut self.hosts));
            self.ready = ready;
            // What was read may be due at once further on: it is not late for having come while the loop was reading.
            let now = self.fabric.now();
            return self.fabric.advance_some(now, EVENTS_PER_TURN, &mut self.hosts) || due_left;
        }
        due_left
    }

    /// How long before an event to stop sleeping: as long as sleeps end late, or less to spare the processor, but never so
    /// little that a sleep would make the clock slip.
    fn spin(&self) -> Duration {
        let margin = self.oversleep.margin();
        let wanted = Duration::from_ps((margin.as_ps() as f64 * self.duty.eagerness) as u64);
        wanted.min(LONGEST_SPIN).max(margin.saturating_sub(self.slip_after))
    }

    /// How long nothing is to be done unless something arrives; zero when the next event is close enough to spin.
    fn idle_time(&self) -> Duration {
        let Some(next) = self.fabric.next_event() else { return LONGEST_SLEEP };
        (next - self.hosts.fabric_time()).saturating_sub(self.spin()).min(LONGEST_SLEEP)
    }

    /// Answers what was asked; false when nobody can ask any more.
    fn answer_requests(&mut self) -> bool {
        let mut counter = 0_u64;
        // SAFETY: reads eight bytes into a writable integer; a failure only means that there was nothing to reset.
        unsafe { libc::read(self.wake, (&raw mut counter).cast(), 8) };
        loop {
            match self.receiver.try_recv() {
                Ok(request) => requests::answer(self, request),
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
            let rated = self.fabric.direction_config(port)?.0.rate_bps.is_some();
            Some(Watched { index: held.index, routing: held.routing.clone()?, rated })
        };
        self.hosts.interfaces.iter().enumerate().filter_map(of).collect()
    }

    /// Changes links at `at` on the wall clock.
    pub(crate) fn fabric_time_of(&self, at: Time) -> Time {
        Time::ZERO + (at - (Time::ZERO + self.hosts.behind))
    }

    /// Ends a capture without holding up the loop: the disk is waited for elsewhere.
    pub(crate) fn finish_capture(capture: Capture, reply: Reply) {
        let finish = move || reply.send(Ok(capture.finish()));
        // Without a thread the reply is dropped, which tells the client that there is no answer.
        let _ = std::thread::Builder::new().name("capture-end".into()).spawn(finish);
    }
}

/// The highest rate of a link and the MTU there: what has the shortest serialisation time of a full-size frame.
fn fastest(spec: &NetworkSpec) -> Option<Duration> {
    let ways = spec.links.iter().flat_map(|link| [(&link.ab, link.mtu), (&link.ba, link.mtu)]);
    ways.filter_map(|(way, mtu)| Some(way.rate?.serialise(way.framing.wire_bytes(u64::from(mtu) + 14)))).min()
}

/// An event descriptor to wake the loop with.
fn event_descriptor() -> io::Result<OwnedFd> {
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
    // SAFETY: `events` has room for as many events as are asked for; the timeout outlives the call. The system call itself is
    // used because older C libraries lack the wrapper.
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

/// Asks for `SCHED_FIFO` at the lowest priority for the calling thread. Inside a user namespace the kernel grants it only below
/// `RLIMIT_RTPRIO`; where that cannot be raised, the owner asks for it from outside: see [`promote`].
fn become_realtime() {
    // A refusal is seen by `is_realtime`, and told in the record of fidelity.
    let _ = schedule_fifo(0);
}

/// Whether the calling thread has real-time scheduling.
pub(crate) fn is_realtime() -> bool {
    // SAFETY: no pointers are passed; 0 means the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
}

/// The share of the processor that the loop's thread uses, and what follows from it.
#[derive(Debug)]
struct Duty {
    since: Time,
    used_ns: u64,
    /// How many times the margin before an event is spent spinning, from 0 to [`MOST_EAGER`].
    eagerness: f64,
    too_high: u32,
    given_up: bool,
}

impl Default for Duty {
    fn default() -> Self {
        Self { since: Time::ZERO, used_ns: 0, eagerness: 1.0, too_high: 0, given_up: false }
    }
}

impl Duty {
    /// Looks at the share when it is time to; returns whether real-time scheduling is to be given up now, because work alone
    /// takes so much that the kernel is about to stop the thread. Says so once.
    fn observe(&mut self, now: Time) -> bool {
        let elapsed = now - self.since;
        if elapsed < DUTY_PERIOD {
            return false;
        }
        let used_ns = thread_cpu_ns();
        let share = used_ns.saturating_sub(self.used_ns) as f64 / elapsed.as_ns() as f64;
        (self.since, self.used_ns) = (now, used_ns);
        self.follow(share);
        let give_up = self.too_high >= PATIENCE && !self.given_up && is_realtime();
        self.given_up |= give_up;
        give_up
    }

    fn follow(&mut self, share: f64) {
        if share > DUTY_RANGE.1 {
            self.eagerness *= 0.7;
        } else if share < DUTY_RANGE.0 {
            self.eagerness = (self.eagerness * 1.2 + 0.01).min(MOST_EAGER);
        }
        self.too_high = if share > HIGHEST_DUTY { self.too_high + 1 } else { 0 };
    }
}

/// Gives up real-time scheduling. The thread keeps the highest share that an ordinary one has, where its owner gave it that.
fn give_up_realtime() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid and outlives the call; giving up is always granted.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameter) };
}

/// How late sleeps end: an estimate that most of them keep.
#[derive(Debug)]
struct Oversleep {
    estimate_ns: u64,
}

impl Default for Oversleep {
    fn default() -> Self {
        Self { estimate_ns: 50_000 }
    }
}

impl Oversleep {
    /// Learns from a sleep that ended late by `late`: up fast, down slowly, so that most sleeps end in time.
    fn observe(&mut self, late: Duration) {
        let late = late.as_ns().min(LONGEST_SPIN.as_ns());
        if late > self.estimate_ns {
            self.estimate_ns += (late - self.estimate_ns) / 2;
        } else {
            self.estimate_ns -= (self.estimate_ns - late) / 16;
        }
    }

    /// How long before an event to stop sleeping.
    fn margin(&self) -> Duration {
        Duration::from_ns(self.estimate_ns + self.estimate_ns / 8).min(LONGEST_SPIN)
    }
}

/// Gives the fabric's thread of the lab process `pid` real-time scheduling, as a caller with the right to do so outside of the
/// lab's user namespace can; returns whether that was granted.
#[must_use]
pub fn promote(pid: i32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let promoted = |thread: libc::pid_t| {
        // Should it ever have to give up real-time scheduling, it keeps the highest share of an ordinary thread.
        // SAFETY: no pointers are passed.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, -20) };
        schedule_fifo(thread).is_ok()
    };
    threads
        .filter_map(Result::ok)
        .filter(|thread| {
            std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim_end() == THREAD_NAME)
        })
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
        .any(promoted)
}

fn schedule_fifo(thread: libc::pid_t) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 1 };
    // What the thread starts itself (the writers of captures) is not to run ahead of the hosts' programs.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter is valid and outlives the call.
    match unsafe { libc::sched_setscheduler(thread, policy, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_follows_how_late_sleeps_end() {
        let mut oversleep = Oversleep::default();
        for _ in 0..500 {
            oversleep.observe(Duration::from_us(2));
        }
        assert!(oversleep.margin() < Duration::from_us(5), "{}", oversleep.margin());
        for _ in 0..10 {
            oversleep.observe(Duration::from_us(90));
        }
        assert!(
            (Duration::from_us(80)..Duration::from_us(110)).contains(&oversleep.margin()),
            "{}",
            oversleep.margin()
        );
        oversleep.observe(Duration::from_secs(1));
        assert!(oversleep.margin() <= LONGEST_SPIN);
    }

    #[test]
    fn a_loop_that_uses_too_much_spins_less_and_spins_again_when_it_may() {
        let mut duty = Duty::default();
        for _ in 0..20 {
            duty.follow(0.9);
        }
        assert!(duty.eagerness < 0.01, "{}", duty.eagerness);
        assert_eq!(duty.too_high, 0);
        for _ in 0..40 {
            duty.follow(0.2);
        }
        assert!((duty.eagerness - MOST_EAGER).abs() < 1e-9);
        for _ in 0..PATIENCE {
            duty.follow(0.97);
        }
        assert_eq!(duty.too_high, PATIENCE);
    }
}
