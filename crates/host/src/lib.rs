//! The model host: a state machine with interfaces, a TCP/IP stack and apps, in place of a network namespace.
//!
//! The engine hands it frames and the time and takes frames from it one by one, when a serialiser is idle: what
//! waits, waits in the host, so that its TCP feels its own interface's queue as on hardware.
//!
//! Left out: VLAN interfaces, multicast beyond neighbour discovery, IPv4 options, router advertisements, duplicate
//! address detection.

pub mod tcp;

mod apps;
mod arp;
mod build;
mod config;
mod counters;
mod discovery;
mod forward;
mod fragments;
mod icmp;
mod icmp_errors;
mod interface;
mod ipv4;
mod ipv6;
mod neighbours;
mod output;
mod packet;
mod parameters;
mod path;
mod path_mtu;
mod processing;
mod route;
mod sockets;
mod stack;
mod tcp_sockets;
mod timers;
mod udp;
mod view;

use std::sync::Arc;

use twinnet_apps::{random_of_app, AppConfig};
use twinnet_packet::Frame;
use twinnet_units::{impossible, Time};

pub use config::{HostConfig, HostConfigError, InterfaceConfig, RouteConfig, MOST_INTERFACES};
pub use counters::HostCounters;
pub use neighbours::StaticNeighbours;
pub use processing::ProcessingConfig;

use apps::Apps;
use interface::{Interface, LOOPBACK};
use stack::{Stack, Turn};
use timers::Owner;
use twinnet_packet::FramePool;

/// A host inside the fabric: its interfaces, its network stack and its apps.
///
/// Who calls it, and in which order: the fabric alone. [`receive`](Self::receive) for each frame that arrived,
/// [`pull`](Self::pull) when the line behind an interface can take a frame, [`timer`](Self::timer) at the moment that
/// [`deadline`](Self::deadline) names, [`carrier`](Self::carrier) when a link goes up or down. After each of them the
/// caller takes what has changed: [`next_woken`](Self::next_woken) until it is `None` (interfaces that have frames to
/// pull), [`take_finished_apps`](Self::take_finished_apps) and the `deadline`.
///
/// What stays true: `now` never goes back. A frame is pulled once, in the order in which it was queued. A packet
/// that goes no further is in [`counters`](Self::counters). All randomness comes from the seed and the host's name,
/// so that another host does not change it.
#[derive(Debug)]
pub struct ModelHost {
    name: Box<str>,
    stack: Stack,
    apps: Apps,
}

impl ModelHost {
    /// The host that `described` tells of. All its randomness comes from `seed` and its name.
    ///
    /// # Errors
    /// What a model cannot be: an unknown kernel parameter, a route by a router that is not on any of its links.
    pub fn new(described: &HostConfig, seed: u64) -> Result<Self, HostConfigError> {
        let stack = build::stack(described, seed)?;
        Ok(Self { name: described.name.clone().into(), stack, apps: Apps::default() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives it hardware addresses that it need not ask for. Others it asks for as always.
    pub fn use_static_neighbours(&mut self, known: Arc<StaticNeighbours>) {
        self.stack.static_neighbours = Some(known);
        self.stack.epoch = self.stack.epoch.wrapping_add(1);
    }

    /// Returns the counters of packets that went no further.
    #[must_use]
    pub const fn counters(&self) -> &HostCounters {
        &self.stack.counters
    }

    /// A frame has arrived whole at interface `interface`.
    pub fn receive(&mut self, interface: usize, frame: Box<Frame>, now: Time, pool: &mut FramePool) {
        let Ok(interface) = u16::try_from(interface) else { return impossible!("a frame for an interface past 65535") };
        let turn = &mut Turn { now, pool };
        if frame.offload.is_none() {
            return self.arrive(interface, frame, turn);
        }
        // A train of a real host's: each of its frames is looked at.
        for mut single in frame.into_frames() {
            single.offload = None;
            self.arrive(interface, single, turn);
        }
    }

    fn arrive(&mut self, interface: u16, frame: Box<Frame>, turn: &mut Turn<'_>) {
        match &mut self.stack.processing {
            Some(processing) => processing.push(interface, frame, turn.now, &mut self.stack.timers),
            None => self.take_in(interface, frame, turn),
        }
    }

    fn take_in(&mut self, interface: u16, frame: Box<Frame>, turn: &mut Turn<'_>) {
        if let Some(arrival) = self.stack.input(interface, frame, turn) {
            self.apps.hand_over(arrival, &mut self.stack, turn);
        }
        self.run(turn);
    }

    /// Does all that is to be done at this moment: tells apps, and serves connections.
    fn run(&mut self, turn: &mut Turn<'_>) {
        loop {
            if let Some(told) = self.stack.events.pop_front() {
                self.apps.dispatch(told, &mut self.stack, turn);
            } else if let Some(number) = self.stack.next_unserved() {
                self.stack.tcp_serve(number, turn);
            } else {
                return;
            }
        }
    }

    /// The time asked for by [`ModelHost::deadline`] has come.
    pub fn timer(&mut self, now: Time, pool: &mut FramePool) {
        let turn = &mut Turn { now, pool };
        while let Some((at, owner)) = self.stack.timers.pop(now) {
            match owner {
                Owner::Loopback => {
                    if let Some(frame) = self.stack.looped_frame(at, now) {
                        self.take_in(LOOPBACK, frame, turn);
                    }
                }
                Owner::Processing => {
                    let Stack { processing, timers, .. } = &mut self.stack;
                    let turned = processing.as_mut().and_then(|processing| processing.pop(at, now, timers));
                    if let Some((interface, frame)) = turned {
                        self.take_in(interface, frame, turn);
                    }
                }
                Owner::Neighbours => self.stack.serve_neighbours(at, turn),
                Owner::Reassembly => self.stack.serve_reassembly(at, turn),
                Owner::Socket(place) => self.stack.tcp_timer(place, at, turn),
                Owner::App(place) => self.apps.timer(place, at, &mut self.stack, turn),
            }
            self.run(turn);
        }
    }

    /// Returns the time when the host wants [`ModelHost::timer`] next.
    pub fn deadline(&self) -> Option<Time> {
        self.stack.timers.next()
    }

    /// The next frame that `interface` has to send. Called when its serialiser is idle.
    pub fn pull(&mut self, interface: usize, now: Time, pool: &mut FramePool) -> Option<Box<Frame>> {
        let frame = self.stack.take(interface)?;
        if self.stack.has_unserved() {
            self.run(&mut Turn { now, pool });
        }
        Some(frame)
    }

    /// Returns `true` if `interface` has a frame to send now.
    pub fn has_frames(&self, interface: usize) -> bool {
        self.stack.interfaces.get(interface).is_some_and(Interface::has_frames)
    }

    /// An interface that has got something to send since it was last named here; called until it gives `None`.
    pub fn next_woken(&mut self) -> Option<usize> {
        self.stack.next_woken()
    }

    /// The link at `interface` went up or down. Going down, its neighbours are forgotten, as Linux does.
    pub fn carrier(&mut self, interface: usize, up: bool, now: Time) {
        let Ok(interface) = u16::try_from(interface) else {
            return impossible!("a carrier of an interface past 65535");
        };
        if up {
            return;
        }
        self.stack.epoch = self.stack.epoch.wrapping_add(1);
        for (_, charge) in self.stack.neighbours.forget(interface) {
            self.stack.counters.unreachable += 1;
            self.stack.credit(charge);
        }
        self.run(&mut Turn { now, pool: &mut FramePool::default() });
    }

    /// Starts an app under `number` at `at`, or now when that has passed. Its random numbers come from `seed`.
    pub fn start_app(&mut self, number: u32, config: &AppConfig, at: Time, seed: u64) {
        let random = random_of_app(&self.name, seed);
        self.apps.start(number, config, at, random, &mut self.stack);
    }

    /// Returns the time when the app starts that was last planned, once: the host wants [`ModelHost::timer`] then,
    /// before what arrives at that moment.
    pub fn take_planned_start(&mut self) -> Option<Time> {
        self.apps.take_planned_start()
    }

    /// Asks an app to end; unknown ones are ignored.
    pub fn stop_app(&mut self, number: u32, now: Time, pool: &mut FramePool) {
        let turn = &mut Turn { now, pool };
        self.apps.stop(number, &mut self.stack, turn);
        self.run(turn);
    }

    /// Returns what an app has counted, as its report tells it; `None` when there is no such app.
    #[must_use]
    pub fn app_report(&self, number: u32, now: Time) -> Option<serde_json::Value> {
        self.apps.report(number, now)
    }

    /// Returns whether an app has nothing more to do; `None` when there is no such app.
    #[must_use]
    pub fn app_finished(&self, number: u32) -> Option<bool> {
        self.apps.is_finished(number)
    }

    /// Returns the number of its apps that have finished since the last call.
    pub fn take_finished_apps(&mut self) -> u32 {
        self.apps.take_finished()
    }
}
