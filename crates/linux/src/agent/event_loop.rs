//! The agent's thread: sockets that are ready and timers that are due, each in its turn.
//!
//! Every turn serves each ready socket once, with bounded work, and looks at the timers in between, so no flow can
//! starve another. A timer is waited for until shortly before it is due; the rest is spun, see `waiting.rs`. An app
//! that allows slack ([`twinnet_apps::App::slack`]) is never spun for, and is served early, though not before it is
//! due, when the thread is awake anyway.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::Receiver;
use std::sync::Arc;

use serde_json::Value;
use twinnet_apps::{random_of_app, App, AppConfig, Event, HostError, SocketId};
use twinnet_lab::protocol::{Answer, AppRow, Reply};
use twinnet_units::random::Rng;
use twinnet_units::{Duration, Time};

use super::datagrams::{ArrivalClock, LOOKED_AT};
use super::icmp;
use super::poller::Found;
use super::requests::Command;
use super::sockets::{ready, Kind, Sockets};
use super::system;
use super::usage::PublishedUsage;
use super::waiting::{Next, Waiting};
use crate::service::{ErrorName, LabError, Responder};
use crate::wall::clock::LabClock;
use crate::wall::fidelity::Histogram;

/// Connections accepted in one turn of a listener.
const ACCEPTS: usize = 16;
/// Batches of datagrams received in one turn of a socket.
const RECEIVES: usize = 4;
/// The interval at which the thread's own costs are published while it is busy.
const PUBLISH: Duration = Duration::from_ms(10);

/// The longest wait of an agent on a machine of its own while apps run there.
const LONGEST_UNWATCHED: Duration = Duration::from_ms(20);

enum State {
    /// Starts at its deadline.
    Planned(Box<dyn App>),
    Running(Box<dyn App>),
    /// Its report; the app itself is gone.
    Finished(Value),
}

struct Entry {
    host: usize,
    kind: &'static str,
    state: State,
    random: Rng,
    /// The deadline under which the app stands in `timers`.
    deadline: Option<Time>,
    slack: Duration,
}

struct Waiter {
    apps: Vec<u32>,
    until: Option<Time>,
    responder: Responder,
}

/// All that the thread holds.
pub struct EventLoop {
    clock: LabClock,
    sockets: Sockets,
    hosts: Arc<Vec<String>>,
    commands: Receiver<Command>,
    /// App `n` is at `n - 1`.
    apps: Vec<Entry>,
    timers: BTreeSet<(Time, u32)>,
    waiters: Vec<Waiter>,
    usage: Arc<PublishedUsage>,
    published: Time,
    /// Apps told something since they were last settled.
    unsettled: Vec<u32>,
    /// Timers that are being served.
    due: Vec<(Time, u32)>,
    waiting: Waiting,
    /// The time after its moment, and the slack that its app allows, at which each timer was served.
    lateness: Histogram,
    /// The moment up to which all timers that were due have been served.
    served_until: Time,
    /// `CLOCK_REALTIME` less `CLOCK_MONOTONIC` when datagrams were last received.
    clock_offset_ns: Option<i128>,
    /// Stamps from before this are of a clock that was set since.
    stamps_from: Time,
    ended: bool,
}

impl EventLoop {
    /// A loop without apps.
    pub fn new(
        clock: LabClock,
        sockets: Sockets,
        hosts: Arc<Vec<String>>,
        commands: Receiver<Command>,
        usage: Arc<PublishedUsage>,
        waiting: Waiting,
    ) -> Self {
        Self {
            clock,
            sockets,
            hosts,
            commands,
            apps: Vec::new(),
            timers: BTreeSet::new(),
            waiters: Vec::new(),
            usage,
            published: Time::ZERO,
            unsettled: Vec::new(),
            due: Vec::new(),
            waiting,
            lateness: Histogram::default(),
            served_until: Time::ZERO,
            clock_offset_ns: None,
            stamps_from: Time::ZERO,
            ended: false,
        }
    }

    /// Runs until it is told to end.
    pub fn run(&mut self) -> io::Result<()> {
        let mut found = Found::default();
        self.waiting.begin(self.clock.now());
        self.publish();
        while !self.ended {
            self.turn();
            let Next::Wait(timeout) = self.next() else { continue };
            let (clock, timeout) = (self.clock, self.watchful(timeout));
            let asked_until = timeout.map(|timeout| clock.now() + timeout);
            self.sockets.poller.wait(timeout, &mut found, || clock.now())?;
            let now = clock.now();
            self.waiting.waited(now);
            if let Some(asked_until) = asked_until {
                self.note_overrun(asked_until, now);
            }
            for &(socket, events) in &found.ready {
                self.sockets.schedule(socket, what_is_ready(events));
            }
            if found.woken {
                // First what has arrived, so that a report or an end includes it.
                self.turn();
                self.obey();
            }
        }
        Ok(())
    }

    /// Serves every socket that is ready once, and all timers that are due.
    fn turn(&mut self) {
        self.serve_timers();
        for _ in 0..self.sockets.turns() {
            let Some((socket, what)) = self.sockets.next_turn() else { break };
            self.serve(socket, what);
            self.settle();
            self.serve_timers();
        }
        self.answer_waiters(self.clock.now());
    }

    /// Publishes what the thread costs and what it found about its processor.
    fn publish(&mut self) {
        self.usage.publish();
        let (waited_ns, shared, realtime) = self.waiting.found();
        self.usage.publish_processor(waited_ns, shared, realtime);
        self.usage.publish_lateness(&self.lateness);
    }

    /// Returns how long to wait for sockets; publishes the thread's costs now and then, and always before a long wait.
    fn next(&mut self) -> Next {
        let (wake, precise) = self.next_wake();
        let now = self.clock.now();
        let left = (wake < Time::MAX).then(|| wake.since(now));
        if now.since(self.published) >= PUBLISH || left.is_none_or(|left| left >= PUBLISH) {
            self.publish();
            self.published = now;
        }
        match left {
            _ if self.sockets.turns() > 0 => Next::Wait(Some(Duration::ZERO)),
            Some(_) if precise => self.waiting.until(wake, self.clock),
            left => {
                self.waiting.rest();
                Next::Wait(left)
            }
        }
    }

    /// The longest that the thread may wait that would wait for `timeout`: on a machine of its own nobody else sees
    /// that it stood still, and a sink has no timer that would be late.
    fn watchful(&self, timeout: Option<Duration>) -> Option<Duration> {
        if !self.waiting.is_on_machine() || timeout.is_some_and(|timeout| timeout <= LONGEST_UNWATCHED) {
            return timeout;
        }
        let at_work = self.apps.iter().any(|entry| matches!(entry.state, State::Running(_)));
        if at_work {
            Some(LONGEST_UNWATCHED)
        } else {
            timeout
        }
    }

    /// The thread wanted to go on at `asked_until` and does so `now`. From the moment on at which a timer is due, the
    /// timer tells of it.
    fn note_overrun(&self, asked_until: Time, now: Time) {
        let (due, _) = self.next_wake();
        self.usage.note_pause(due.min(now).since(asked_until), now);
    }

    /// The moment by which some timer must be served, and whether exactly then.
    fn next_wake(&self) -> (Time, bool) {
        let mut best = (Time::MAX, false);
        for &(deadline, app) in &self.timers {
            if deadline >= best.0 {
                break;
            }
            let slack = self.apps[app as usize - 1].slack;
            if deadline + slack < best.0 {
                best = (deadline + slack, slack == Duration::ZERO);
            }
        }
        for until in self.waiters.iter().filter_map(|waiter| waiter.until) {
            if until < best.0 {
                best = (until, false);
            }
        }
        best
    }

    fn serve_timers(&mut self) {
        let now = self.clock.now();
        // Each app once: one that asks to be called again at once is due again in the next round.
        if self.timers.first().is_none_or(|(deadline, _)| *deadline > now) {
            self.served_until = now;
            return;
        }
        let mut due = std::mem::take(&mut self.due);
        due.extend(self.timers.range(..=(now, u32::MAX)).copied());
        let apps = &self.apps;
        let wanted = due.iter().map(|&(deadline, app)| deadline + apps[app as usize - 1].slack).min();
        // An app that is behind asks for moments that are past: it was served since.
        let held_up = now.since(wanted.unwrap_or(now).max(self.served_until));
        self.served_until = now;
        self.usage.note_pause(held_up, now);
        for (deadline, app) in due.drain(..) {
            let entry = &mut self.apps[app as usize - 1];
            let planned = matches!(entry.state, State::Planned(_));
            self.lateness.record(self.clock.now().since(deadline + entry.slack).as_ns(), 1);
            if planned {
                let state = std::mem::replace(&mut entry.state, State::Finished(Value::Null));
                entry.state = match state {
                    State::Planned(app) => State::Running(app),
                    other => other,
                };
                // The flow's schedule counts from the moment that was planned, not from when the thread got to it.
                self.tell(app, deadline, Event::Start);
            } else {
                self.tell(app, self.clock.now(), Event::Timer);
            }
            self.settle();
        }
        self.due = due;
    }

    fn tell(&mut self, app: u32, now: Time, event: Event<'_>) {
        let Some(entry) = self.apps.get_mut(app as usize - 1) else { return };
        let State::Running(running) = &mut entry.state else { return };
        let mut view = self.sockets.view(app, entry.host, &mut entry.random);
        running.handle(now, event, &mut view);
        if self.unsettled.last() != Some(&app) {
            self.unsettled.push(app);
        }
    }

    /// After apps were told something: sends what they sent, notes their deadlines, keeps the reports of those that
    /// ended.
    fn settle(&mut self) {
        self.sockets.flush();
        while let Some(app) = self.unsettled.pop() {
            let entry = &mut self.apps[app as usize - 1];
            let State::Running(running) = &entry.state else { continue };
            let finished = running.finished() && !self.sockets.has_unsent(app);
            let deadline = if running.finished() { None } else { running.deadline() };
            entry.slack = running.slack();
            if deadline != entry.deadline {
                if let Some(before) = entry.deadline {
                    self.timers.remove(&(before, app));
                }
                if let Some(after) = deadline {
                    self.timers.insert((after, app));
                }
                entry.deadline = deadline;
            }
            if finished {
                self.tell_overflows(app);
                let entry = &mut self.apps[app as usize - 1];
                let State::Running(running) = &entry.state else { continue };
                if let Some(share) = running.fell_behind() {
                    self.usage.count_overloaded_sender(share);
                }
                entry.state = State::Finished(running.report(self.clock.now()));
                self.sockets.remove_all_of(app);
            }
        }
    }

    fn serve(&mut self, socket: u32, what: u8) {
        let Some(entry) = self.sockets.get(socket) else { return };
        let app = entry.app;
        if entry.closing {
            // The app has left it; what it sent goes on its way.
            self.sockets.flush_one(socket);
            self.unsettled.push(app);
            return;
        }
        match entry.kind {
            Kind::Udp(_) => {
                if what & ready::ERROR != 0 {
                    // Taken off, so that sends go on.
                    drop(system::pending_error(entry.fd.as_fd()));
                    for (error, datagrams) in self.sockets.take_returned(socket) {
                        self.tell(
                            app,
                            self.clock.now(),
                            Event::Returned { socket: SocketId(socket), error, datagrams },
                        );
                    }
                }
                if what & ready::WRITE != 0 {
                    self.sockets.flush_one(socket);
                    self.unsettled.push(app);
                }
                self.receive_datagrams(socket, app, None);
            }
            Kind::Icmp { v6, identifier } => self.receive_datagrams(socket, app, Some((v6, identifier))),
            Kind::Listener => self.accept(socket, app),
            Kind::Connecting => self.establish(socket, app),
            Kind::Stream { .. } => self.serve_stream(socket, app, what),
        }
    }

    /// Receives a few batches; when the last was a full one the socket gets another turn.
    fn receive_datagrams(&mut self, socket: u32, app: u32, echo: Option<(bool, u16)>) {
        for _ in 0..RECEIVES {
            let Some((entry, buffers)) = self.sockets.with_buffers(socket) else { return };
            let Ok((number, more)) = buffers.receive(entry.fd.as_fd(), entry.merged) else { return };
            self.hand_over_messages(socket, app, number, echo);
            if !more {
                return;
            }
        }
        self.sockets.schedule(socket, ready::READ);
    }

    /// Tells an app of the first `number` messages in the buffers.
    fn hand_over_messages(&mut self, socket: u32, app: u32, number: usize, echo: Option<(bool, u16)>) {
        if number == 0 {
            return;
        }
        let before = self.clock_offset_ns;
        let times = ArrivalClock::read(self.clock, before, self.stamps_from);
        self.clock_offset_ns = Some(times.offset_ns());
        let now = self.clock.now();
        if times.stepped() {
            let by_ns = i64::try_from(times.offset_ns() - before.unwrap_or_default()).unwrap_or(i64::MAX);
            self.tell_clock_stepped(now, by_ns);
        }
        let mut dropped = None;
        for place in 0..number {
            for part in 0.. {
                // The bytes are copied out (at most 128), since the app may use the same buffers for sending.
                let mut copy = [0_u8; LOOKED_AT];
                let Some(message) = self.sockets.buffers.received(place, &times) else { break };
                dropped = message.dropped.or(dropped);
                let Some((bytes, length)) = message.datagram(part) else { break };
                let stored = bytes.len();
                copy[..stored].copy_from_slice(bytes);
                let (arrived, mut from) = (message.arrived, message.from);
                let mut offset = 0;
                if let Some((v6, identifier)) = echo {
                    let Some(found) = icmp::offset_of_reply(&copy[..stored], identifier, v6) else { break };
                    (offset, from) = (found, SocketAddr::new(from.ip(), 0));
                }
                let (bytes, length) = (&copy[offset..stored], length - offset);
                self.tell(app, now, Event::Datagram { socket: SocketId(socket), from, bytes, length, arrived });
            }
        }
        let Some((dropped, entry)) = dropped.zip(self.sockets.get(socket)) else { return };
        // A datagram tells of what was dropped before it; a look at the socket may have told of more since.
        let datagrams = dropped.wrapping_sub(entry.dropped);
        if (1..=u32::MAX / 2).contains(&datagrams) {
            entry.dropped = dropped;
            self.usage.count_overflowed_datagrams(u64::from(datagrams));
            self.tell(app, now, Event::Overflowed { socket: SocketId(socket), datagrams: u64::from(datagrams) });
        }
    }

    /// Tells every app: what waits in any socket has stamps of the clock as it was.
    fn tell_clock_stepped(&mut self, now: Time, by_ns: i64) {
        self.stamps_from = now;
        for app in 1..=u32::try_from(self.apps.len()).unwrap_or(u32::MAX) {
            self.tell(app, now, Event::ClockStepped { by_ns });
        }
    }

    /// Tells an app of what its sockets had no room for, where no later datagram did.
    fn tell_overflows(&mut self, app: u32) {
        for (socket, datagrams) in self.sockets.take_overflows(app) {
            self.usage.count_overflowed_datagrams(datagrams);
            self.tell(app, self.clock.now(), Event::Overflowed { socket: SocketId(socket), datagrams });
        }
    }

    fn accept(&mut self, listener: u32, app: u32) {
        for _ in 0..ACCEPTS {
            let Some(entry) = self.sockets.get(listener) else { return };
            let accepted = system::accept(entry.fd.as_fd()).and_then(|(fd, peer)| {
                system::set_option::<libc::c_int>(fd.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
                let local = system::local_address(fd.as_fd());
                let number = self.sockets.insert(fd, app, Kind::Stream { blocked: false })?;
                Ok((number, local.zip(peer)))
            });
            match accepted {
                Ok((number, addresses)) => {
                    let Some((_, peer)) = addresses else {
                        self.sockets.remove(number);
                        continue;
                    };
                    if let Some(entry) = self.sockets.get(number) {
                        entry.addresses = addresses;
                    }
                    let (listener, socket) = (SocketId(listener), SocketId(number));
                    self.tell(app, self.clock.now(), Event::Accepted { listener, socket, peer });
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return,
                    // The peer gave up while it waited in the queue (accept(2)).
                    Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO | libc::ENETDOWN | libc::EHOSTUNREACH) => {}
                    _ => return self.fail(listener, app, system::host_error(&error, None)),
                },
            }
        }
        self.sockets.schedule(listener, ready::READ);
    }

    fn fail(&mut self, socket: u32, app: u32, error: HostError) {
        self.sockets.remove(socket);
        self.tell(app, self.clock.now(), Event::Failed { socket: SocketId(socket), error });
    }

    fn establish(&mut self, socket: u32, app: u32) {
        let Some(entry) = self.sockets.get(socket) else { return };
        if let Some(error) = system::pending_error(entry.fd.as_fd()) {
            return self.fail(socket, app, system::host_error(&error, None));
        }
        // Ready without an error and without a peer: not established yet.
        let Some(peer) = system::peer_address(entry.fd.as_fd()) else { return };
        entry.addresses = system::local_address(entry.fd.as_fd()).map(|local| (local, peer));
        entry.kind = Kind::Stream { blocked: false };
        self.tell(app, self.clock.now(), Event::Connected { socket: SocketId(socket) });
        self.sockets.schedule(socket, ready::READ);
    }

    fn serve_stream(&mut self, socket: u32, app: u32, what: u8) {
        if what & ready::READ != 0 {
            self.tell(app, self.clock.now(), Event::Readable { socket: SocketId(socket) });
        }
        let Some(entry) = self.sockets.get(socket) else { return };
        if what & ready::ERROR != 0 {
            if let Some(error) = system::pending_error(entry.fd.as_fd()) {
                return self.fail(socket, app, system::host_error(&error, None));
            }
        }
        if what & ready::WRITE != 0 {
            if let Kind::Stream { blocked: blocked @ true } = &mut entry.kind {
                *blocked = false;
                self.tell(app, self.clock.now(), Event::Writable { socket: SocketId(socket) });
            }
        }
    }

    /// Does what other threads asked for.
    fn obey(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Start { host, config, at, seed, responder } => self.start(host, &config, at, seed, responder),
                Command::Stop { app, responder } => self.stop(app, responder),
                Command::Report { apps, responder } => responder.send(self.report(apps)),
                Command::Wait { apps, until, responder } => match self.check_known(&apps) {
                    Ok(()) => self.waiters.push(Waiter { apps, until, responder }),
                    Err(error) => responder.send(Err(error)),
                },
                Command::End => self.ended = true,
            }
        }
    }

    fn start(&mut self, host: usize, config: &AppConfig, at: Option<Time>, seed: Option<u64>, responder: Responder) {
        let Ok(app) = u32::try_from(self.apps.len() + 1) else {
            return responder.send(Err(LabError::new(
                ErrorName::TooManyApps,
                "this lab has run 2^32 apps",
                "start another lab",
            )));
        };
        let now = self.clock.now();
        let start = at.map_or(now, |at| at.max(now));
        self.apps.push(Entry {
            host,
            kind: config.kind(),
            state: State::Planned(config.build()),
            random: random_of_app(&self.hosts[host], seed.unwrap_or(u64::from(app))),
            deadline: Some(start),
            slack: Duration::ZERO,
        });
        self.timers.insert((start, app));
        if start > now {
            self.waiting.probe(now);
        }
        self.serve_timers();
        responder.send(Ok(Reply::App { app }));
    }

    fn stop(&mut self, app: u32, responder: Responder) {
        if let Err(error) = self.check_known(&[app]) {
            return responder.send(Err(error));
        }
        let now = self.clock.now();
        let entry = &mut self.apps[app as usize - 1];
        if let State::Planned(planned) = &entry.state {
            let report = planned.report(now);
            entry.state = State::Finished(report);
            if let Some(deadline) = entry.deadline.take() {
                self.timers.remove(&(deadline, app));
            }
        }
        self.tell(app, now, Event::Stop);
        self.settle();
        responder.send(Ok(Reply::Done {}));
    }

    fn check_known(&self, apps: &[u32]) -> Result<(), LabError> {
        match apps.iter().find(|&&app| app == 0 || app as usize > self.apps.len()) {
            None => Ok(()),
            Some(app) => {
                let remedy = match self.apps.len() {
                    0 => "no app was started yet".to_owned(),
                    number => format!("apps are 1 to {number}"),
                };
                Err(LabError::new(ErrorName::UnknownApp, format!("there is no app {app}"), remedy))
            }
        }
    }

    fn report(&mut self, apps: Option<Vec<u32>>) -> Answer {
        let apps = match apps {
            Some(apps) => apps,
            None => (1..=u32::try_from(self.apps.len()).unwrap_or(u32::MAX)).collect(),
        };
        self.check_known(&apps)?;
        for &app in &apps {
            self.tell_overflows(app);
        }
        self.settle();
        let now = self.clock.now();
        let reports = apps.into_iter().map(|app| {
            let entry = &self.apps[app as usize - 1];
            let (finished, report) = match &entry.state {
                State::Planned(running) | State::Running(running) => (false, running.report(now)),
                State::Finished(report) => (true, report.clone()),
            };
            AppRow { app, host: self.hosts[entry.host].clone(), kind: entry.kind, finished, report: Some(report) }
        });
        Ok(Reply::Apps(reports.collect()))
    }

    fn answer_waiters(&mut self, now: Time) {
        for place in (0..self.waiters.len()).rev() {
            let waiter = &self.waiters[place];
            let finished =
                waiter.apps.iter().all(|&app| matches!(self.apps[app as usize - 1].state, State::Finished(_)));
            if finished || waiter.until.is_some_and(|until| now >= until) {
                self.waiters.swap_remove(place).responder.send(Ok(Reply::Finished { finished }));
            }
        }
    }
}

fn what_is_ready(events: u32) -> u8 {
    let any = |bits: libc::c_int| events & u32::try_from(bits).unwrap_or(0) != 0;
    let mut what = 0;
    if any(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP) {
        what |= ready::READ;
    }
    if any(libc::EPOLLOUT) {
        what |= ready::WRITE;
    }
    if any(libc::EPOLLERR) {
        what |= ready::ERROR;
    }
    what
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::mpsc::channel;

    use super::super::namespaces::Namespaces;
    use super::super::poller::Poller;
    use super::*;
    use serde_json::json;

    const OPEN_SOCKETS: u32 = 8;

    fn event_loop() -> EventLoop {
        let clock = LabClock::of_machine();
        let (poller, _) = Poller::new().unwrap();
        let waiting = Waiting::on_machine();
        let sockets = Sockets::new(Namespaces::of_machine(), poller, clock, true);
        let hosts = Arc::new(vec!["machine".to_owned()]);
        EventLoop::new(clock, sockets, hosts, channel().1, Arc::default(), waiting)
    }

    fn start(event_loop: &mut EventLoop, app: Value) {
        let config: AppConfig = serde_json::from_value(app).unwrap();
        event_loop.start(0, &config, None, None, Responder::new(|answer| drop(answer.unwrap())));
    }

    #[test]
    fn a_sink_on_a_machine_that_stood_still_tells_of_it_though_no_timer_was_due() {
        let mut event_loop = event_loop();
        assert_eq!(event_loop.watchful(None), None);
        start(&mut event_loop, json!({"kind": "udp_sink", "port": free_port(), "interval_ps": 1_000_000_000_000_u64}));
        event_loop.turn();
        assert_eq!(event_loop.watchful(None), Some(LONGEST_UNWATCHED));
        assert_eq!(event_loop.watchful(Some(Duration::from_us(7))), Some(Duration::from_us(7)));
        let asked_until = event_loop.clock.now();
        event_loop.note_overrun(asked_until, asked_until + Duration::from_secs(30));
        let told = event_loop.usage.pauses().to_json();
        assert_eq!(told["longest_ps"], json!(30_000_000_000_000_u64), "{told}");
        // What is due meanwhile tells of the rest.
        event_loop.timers.insert((asked_until + Duration::from_ms(2), 1));
        event_loop.usage.forget_pauses();
        event_loop.note_overrun(asked_until, asked_until + Duration::from_secs(30));
        assert_eq!(event_loop.usage.pauses().to_json()["longest_ps"], json!(2_000_000_000_u64));
    }

    /// A port that nobody has.
    fn free_port() -> u16 {
        UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn a_clock_that_was_set_is_told_to_every_sink_and_not_only_to_the_one_that_reads_first() {
        let mut event_loop = event_loop();
        let ports = [free_port(), free_port()];
        start(&mut event_loop, json!({"kind": "udp_sink", "port": ports[0], "interval_ps": 1_000_000_000_000_u64}));
        start(&mut event_loop, json!({"kind": "rtp_sink", "port": ports[1], "interval_ps": 1_000_000_000_000_u64}));
        let here = ArrivalClock::read(event_loop.clock, None, Time::ZERO).offset_ns();
        event_loop.clock_offset_ns = Some(here - 2_000_000);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(&[0; 16], ("127.0.0.1", ports[0])).unwrap();
        for socket in 0..OPEN_SOCKETS {
            event_loop.sockets.schedule(socket, ready::READ);
        }
        event_loop.turn();
        let told = event_loop.report(None).unwrap().into_json();
        for app in told.as_array().unwrap() {
            let rows = app["report"]["flows"].as_array().unwrap();
            let errors: Vec<_> = rows.iter().flat_map(|row| row["errors"].as_array().unwrap()).collect();
            assert_eq!(errors.len(), 1, "{told:#}");
            assert!(errors[0].as_str().unwrap().contains("clock was set by 2.0"), "{told:#}");
        }
        assert!(event_loop.stamps_from > Time::ZERO);
    }
}
