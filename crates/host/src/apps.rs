//! The apps of one host: when they are told something, and what becomes of them.

use std::fmt;

use serde_json::Value;
use twinnet_apps::{App, AppConfig, Event, SocketId};
use twinnet_units::Time;
use twinnet_units::{impossible, random::Rng};

use super::sockets::{Kind, Socket};
use super::stack::{Arrival, Stack, Told, Turn};
use super::timers::{Alarm, Owner};
use super::view::HostView;

enum State {
    /// Starts when its alarm rings.
    Planned(Box<dyn App>),
    Running(Box<dyn App>),
    /// Its report; the app itself is gone.
    Finished(Value),
}

struct Entry {
    state: State,
    random: Rng,
    alarm: Alarm,
}

/// All apps of a host. Each has a place, which never changes.
#[derive(Default)]
pub(super) struct Apps {
    entries: Vec<Entry>,
    /// Places by number, in order of numbers.
    places: Vec<(u32, u32)>,
    /// The number of apps that have finished since it was last asked.
    finished: u32,
    planned_start: Option<Time>,
}

impl fmt::Debug for Apps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Apps").field("places", &self.places).field("finished", &self.finished).finish_non_exhaustive()
    }
}

impl Apps {
    /// Plans an app.
    pub(super) fn start(&mut self, number: u32, config: &AppConfig, at: Time, random: Rng, stack: &mut Stack) {
        let Ok(place) = u32::try_from(self.entries.len()) else { return impossible!("more than 2^32 apps on a host") };
        // A number that is in use stays with whom it belongs to.
        let Err(position) = self.places.binary_search_by_key(&number, |(number, _)| *number) else { return };
        self.places.insert(position, (number, place));
        let mut alarm = Alarm::default();
        alarm.set(Some(at), Owner::App(place), &mut stack.timers);
        self.planned_start = Some(at);
        self.entries.push(Entry { state: State::Planned(config.build()), random, alarm });
    }

    fn place(&self, number: u32) -> Option<u32> {
        let found = self.places.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.places.get(found).map(|(_, place)| *place)
    }

    fn entry(&self, number: u32) -> Option<&Entry> {
        self.entries.get(self.place(number)? as usize)
    }

    /// Asks an app to end.
    pub(super) fn stop(&mut self, number: u32, stack: &mut Stack, turn: &mut Turn<'_>) {
        let Some(place) = self.place(number) else { return };
        let Some(entry) = self.entries.get_mut(place as usize) else { return impossible!("an app without an entry") };
        if let State::Planned(planned) = &entry.state {
            entry.state = State::Finished(planned.report(turn.now));
            self.finished += 1;
        } else {
            self.tell(place, Event::Stop, stack, turn);
        }
    }

    /// Returns what an app has counted.
    pub(super) fn report(&self, number: u32, now: Time) -> Option<Value> {
        Some(match &self.entry(number)?.state {
            State::Planned(app) | State::Running(app) => app.report(now),
            State::Finished(report) => report.clone(),
        })
    }

    /// Returns whether an app has finished.
    pub(super) fn is_finished(&self, number: u32) -> Option<bool> {
        Some(matches!(self.entry(number)?.state, State::Finished(_)))
    }

    /// Returns the number of apps that have finished since the last call.
    pub(super) fn take_finished(&mut self) -> u32 {
        std::mem::take(&mut self.finished)
    }

    /// Returns the time when the app starts that was last planned, once.
    pub(super) fn take_planned_start(&mut self) -> Option<Time> {
        self.planned_start.take()
    }

    /// The alarm of the app at `place` rang.
    pub(super) fn timer(&mut self, place: u32, rung: Time, stack: &mut Stack, turn: &mut Turn<'_>) {
        let Some(entry) = self.entries.get_mut(place as usize) else { return impossible!("an alarm of no app") };
        if !entry.alarm.rings(rung) {
            return;
        }
        match std::mem::replace(&mut entry.state, State::Finished(Value::Null)) {
            State::Planned(app) => {
                entry.state = State::Running(app);
                self.tell(place, Event::Start, stack, turn);
            }
            State::Running(app) => {
                let due = app.deadline();
                entry.state = State::Running(app);
                if due.is_some_and(|at| at <= turn.now) {
                    self.tell(place, Event::Timer, stack, turn);
                } else {
                    entry.alarm.set(due, Owner::App(place), &mut stack.timers);
                }
            }
            finished @ State::Finished(_) => entry.state = finished,
        }
    }

    /// Tells an app of a datagram, whose frame is then free.
    pub(super) fn hand_over(&mut self, arrival: Arrival, stack: &mut Stack, turn: &mut Turn<'_>) {
        let bytes = arrival.frame.bytes.get(arrival.start..arrival.end).unwrap_or_default();
        let event = Event::Datagram {
            socket: SocketId(arrival.socket),
            from: arrival.from,
            bytes,
            length: arrival.length,
            arrived: turn.now,
        };
        self.tell(arrival.app, event, stack, turn);
        turn.pool.recycle(arrival.frame);
    }

    /// Tells an app what happened to a connection, unless it has closed it meanwhile.
    pub(super) fn dispatch(&mut self, told: Told, stack: &mut Stack, turn: &mut Turn<'_>) {
        let open = |stack: &mut Stack, number: u32| stack.sockets.get(number).filter(|at| !at.closed).map(|at| at.app);
        match told {
            Told::Accepted { listener, socket, peer } => {
                let Some(app) = open(stack, listener) else { return stack.tcp_close(socket, turn.now) };
                let (listener, socket) = (SocketId(listener), SocketId(socket));
                self.tell(app, Event::Accepted { listener, socket, peer }, stack, turn);
            }
            Told::Connected(number) => {
                let Some(app) = open(stack, number) else { return };
                self.tell(app, Event::Connected { socket: SocketId(number) }, stack, turn);
            }
            Told::Readable(number) => {
                let Some(app) = open(stack, number) else { return };
                self.tell(app, Event::Readable { socket: SocketId(number) }, stack, turn);
            }
            Told::Writable(number) => {
                let Some(app) = open(stack, number) else { return };
                self.tell(app, Event::Writable { socket: SocketId(number) }, stack, turn);
            }
            Told::Failed(number, error) => {
                let Some(app) = open(stack, number) else { return };
                stack.tcp_close(number, turn.now);
                self.tell(app, Event::Failed { socket: SocketId(number), error }, stack, turn);
            }
        }
    }

    /// Tells an app something, and sees what it wants next.
    fn tell(&mut self, place: u32, event: Event<'_>, stack: &mut Stack, turn: &mut Turn<'_>) {
        let Some(entry) = self.entries.get_mut(place as usize) else { return impossible!("an event for no app") };
        let State::Running(app) = &mut entry.state else { return };
        let now = turn.now;
        app.handle(now, event, &mut HostView::new(stack, turn, place, &mut entry.random));
        if app.finished() {
            entry.state = State::Finished(app.report(now));
            self.finished += 1;
            close_all_of(place, stack, now);
        } else {
            entry.alarm.set(app.deadline(), Owner::App(place), &mut stack.timers);
        }
    }
}

/// Closes the sockets of an app that has ended.
fn close_all_of(app: u32, stack: &mut Stack, now: Time) {
    let of_app = |socket: &Socket| socket.app == app && !socket.closed;
    let open: Vec<u32> = stack
        .sockets
        .places()
        .filter(|(_, socket)| of_app(socket))
        .map(|(place, _)| stack.sockets.number_of(place))
        .collect();
    for number in open {
        stack.close(number, now);
    }
}

impl Stack {
    /// Closes a socket of any kind.
    pub(super) fn close(&mut self, number: u32, now: Time) {
        match self.sockets.get(number).map(|socket| &socket.kind) {
            Some(Kind::Udp(_) | Kind::Icmp(_)) => {
                if let Some(place) = self.sockets.place_of(number) {
                    self.sockets.remove(place);
                }
            }
            Some(Kind::Listener(_)) => self.listener_close(number, now),
            Some(Kind::Tcp(_)) => self.tcp_close(number, now),
            None => {}
        }
    }
}
