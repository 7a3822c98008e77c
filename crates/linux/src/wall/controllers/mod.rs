//! Controllers of the switches on the wall clock: their connected sockets come from the lab's owner, in whose network
//! namespace they were made (docs/reference/lab-protocol.md, "Controllers").
//!
//! The fabric's loop reads and writes them itself, so that an answer wakes nobody but the controller. It never waits
//! for one, and gives its turns to those that have something to say one after the other, a small piece each; frames
//! are looked after in between.

mod line;
mod share;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use twinnet_fabric::{NodeId, World};
use twinnet_lab::protocol::{ControllerAttach, ControllerRow, ControllersWait, PeerKind, Reply};
use twinnet_lab::requests::missing;
use twinnet_lab::RunningNetwork;
use twinnet_switch::control::Peer;
use twinnet_units::{Duration, Time};

use crate::service::{ErrorName, LabError, Responder};
use line::{Heard, Line, PIECE_BYTES};
use share::Share;

/// A connection as the loop knows it.
struct Attached {
    node: NodeId,
    switch: String,
    target: String,
    peer: PeerKind,
    /// Answered when the connection ends.
    responder: Responder,
}

/// Who waits until switches have their controllers.
struct Waiter {
    nodes: Vec<NodeId>,
    responder: Responder,
}

/// The connections of a lab's switches.
#[derive(Default)]
pub(crate) struct Controllers {
    attached: HashMap<u64, Attached>,
    next: u64,
    lines: HashMap<u64, Line>,
    /// Connections that may have something to read or to write, each once, in the order of their turns.
    ready: VecDeque<u64>,
    share: Share,
    waiters: Vec<Waiter>,
    /// Connections that say no more until what they said has come through their control channel.
    full: Vec<u64>,
}

/// Set in the token of a controller's socket; the rest is the connection's number.
pub(crate) const CONTROLLER_TOKEN: u64 = 1 << 33;

/// Tools that a lab serves at once. Whoever may connect to where a switch listens could fill the lab with connections.
const MOST_TOOLS: usize = 128;

/// Bytes of a connection that may be on their way through a control channel that takes time.
const MOST_UNDER_WAY_BYTES: usize = 4 << 20;

impl Controllers {
    /// `controller.attach`: serves the connection whose socket came with the request; the answer comes when it ends.
    pub(crate) fn attach(
        &mut self,
        at: &mut RunningNetwork,
        asked: ControllerAttach,
        socket: Option<OwnedFd>,
        responder: Responder,
        epoll: &OwnedFd,
    ) {
        match self.try_attach(at, &asked, socket, epoll) {
            Err(error) => responder.send(Err(error)),
            Ok((number, node)) => {
                let ControllerAttach { switch, target, peer } = asked;
                let peer = peer.unwrap_or_default();
                let kind = match peer {
                    PeerKind::Controller => Peer::Controller,
                    PeerKind::Tool => Peer::Tool,
                };
                if peer == PeerKind::Tool {
                    self.make_room(at);
                }
                tracing::info!(%switch, %target, kind = ?peer, "a controller or tool is connected");
                at.fabric.controller_opened(node, number, kind);
                self.attached.insert(number, Attached { node, switch, target, peer, responder });
                self.ready.push_back(number);
                self.send(at);
            }
        }
    }

    /// Ends a tool's connection where there are as many as may be: the oldest of those that have not agreed on a
    /// version, or else the oldest.
    fn make_room(&mut self, at: &mut RunningNetwork) {
        let tools = || self.attached.iter().filter(|(_, attached)| attached.peer == PeerKind::Tool);
        if tools().count() < MOST_TOOLS {
            return;
        }
        let agreed = |node: NodeId, number: u64| {
            at.fabric.controllers(node).iter().any(|state| state.connection == number && state.version.is_some())
        };
        let first = tools().min_by_key(|(number, attached)| (agreed(attached.node, **number), **number));
        if let Some(number) = first.map(|(number, _)| *number) {
            self.end(number, format!("another tool came, and a lab serves {MOST_TOOLS}"), at);
        }
    }

    fn try_attach(
        &mut self,
        at: &mut RunningNetwork,
        asked: &ControllerAttach,
        socket: Option<OwnedFd>,
        epoll: &OwnedFd,
    ) -> Result<(u64, NodeId), LabError> {
        let ControllerAttach { switch, target, .. } = asked;
        let node = at.switch(switch)?;
        let socket = socket.ok_or_else(|| missing("a descriptor", "the connected socket"))?;
        let number = self.next;
        let line = Line::new(socket, epoll.as_fd(), CONTROLLER_TOKEN | number).map_err(|error: io::Error| {
            let message = format!("the connection to {target} cannot be served: {error}");
            LabError::new(
                ErrorName::ControllerFailed,
                message,
                "pass a connected socket, and raise the limit of open files (ulimit -n)",
            )
        })?;
        at.fabric.ensure_agent(node, &at.versions(switch));
        self.next += 1;
        self.lines.insert(number, line);
        Ok((number, node))
    }

    /// Takes news of the socket with this token: the events as `epoll` tells them.
    pub(crate) fn note(&mut self, token: u64, events: u32, at: &mut RunningNetwork) {
        let number = token ^ CONTROLLER_TOKEN;
        let Some(line) = self.lines.get_mut(&number) else { return };
        let was_ready = line.is_ready();
        let broke = line.note(events);
        if broke && !line.is_ready() {
            // Nothing is read of it now, which would tell more.
            self.end(number, "the connection broke".to_owned(), at);
        } else if !was_ready && line.is_ready() {
            self.ready.push_back(number);
        }
    }

    /// Returns how long the loop may leave controllers alone from `now` on; `None`: they have nothing to say.
    pub(crate) fn patience(&mut self, now: Time) -> Option<Duration> {
        (!self.ready.is_empty()).then(|| self.share.rest(now))
    }

    /// Time until `now` went into what controllers said.
    pub(crate) fn took(&mut self, taken: Duration, now: Time) {
        self.share.use_up(taken, now);
    }

    /// Deals with one connection: writes some of what waits for it, and hears a piece of what it says.
    pub(crate) fn hear(&mut self, at: &mut RunningNetwork, world: &mut dyn World) {
        let Some(number) = self.ready.pop_front() else { return };
        let Some(line) = self.lines.get_mut(&number) else { return };
        if let Some(why) = line.flush() {
            return self.end(number, why, at);
        }
        let mut piece = [0; PIECE_BYTES];
        match line.read(&mut piece) {
            Heard::Nothing => {}
            Heard::Ended(why) => {
                let attached = self.attached.get(&number);
                let better = attached.and_then(|attached| at.fabric.misunderstanding(attached.node, number));
                return self.end(number, better.unwrap_or(why), at);
            }
            Heard::Bytes(count) => {
                let Some(Attached { node, .. }) = self.attached.get(&number) else { return };
                at.fabric.note_controller_backlog(*node, number, line.backlog());
                at.fabric.controller_said(*node, number, &piece[..count], world);
                line.held = at.fabric.control_bytes_under_way(*node, number) >= MOST_UNDER_WAY_BYTES;
                if line.held {
                    self.full.push(number);
                }
            }
        }
        if line.is_ready() {
            self.ready.push_back(number);
        }
        self.tell_backlog(number, at);
        self.answer_waiters(at);
    }

    fn tell_backlog(&mut self, number: u64, at: &mut RunningNetwork) {
        let (Some(line), Some(attached)) = (self.lines.get_mut(&number), self.attached.get(&number)) else { return };
        if let Some(bytes) = line.backlog_news() {
            at.fabric.note_controller_backlog(attached.node, number, bytes);
        }
    }

    fn end(&mut self, number: u64, why: String, at: &mut RunningNetwork) {
        self.lines.remove(&number);
        if let Some(attached) = self.attached.remove(&number) {
            let Attached { switch, target, .. } = &attached;
            tracing::info!(%switch, %target, %why, "the connection to a controller or tool ended");
            at.fabric.controller_closed(attached.node, number);
            attached.responder.send(Ok(Reply::Ended { ended: why }));
        }
    }

    /// Sends what the switches have to say.
    pub(crate) fn send(&mut self, at: &mut RunningNetwork) {
        if self.attached.is_empty() {
            return;
        }
        self.let_go_on(at);
        for output in at.fabric.take_control_output() {
            let number = output.connection;
            let Some(line) = self.lines.get_mut(&number) else { continue };
            let was_ready = line.is_ready();
            let over = line.send(&output.bytes, output.ending.is_some());
            if !was_ready && line.is_ready() {
                self.ready.push_back(number);
            }
            if let Some(why) = output.ending {
                if let Some(attached) = self.attached.remove(&number) {
                    attached.responder.send(Ok(Reply::Ended { ended: why }));
                }
            }
            match over {
                Some(why) => self.end(number, why, at),
                None => self.tell_backlog(number, at),
            }
        }
    }

    /// Has those heard again whose bytes have come through their control channel.
    fn let_go_on(&mut self, at: &RunningNetwork) {
        let is_full = |number: &u64| match self.attached.get(number) {
            Some(attached) => at.fabric.control_bytes_under_way(attached.node, *number) >= MOST_UNDER_WAY_BYTES,
            None => false,
        };
        let (full, going_on): (Vec<u64>, Vec<u64>) = std::mem::take(&mut self.full).into_iter().partition(is_full);
        self.full = full;
        for number in going_on {
            if let Some(line) = self.lines.get_mut(&number) {
                let was_ready = line.is_ready();
                line.held = false;
                if !was_ready && line.is_ready() {
                    self.ready.push_back(number);
                }
            }
        }
    }

    /// `controllers`: how the connections stand, and what was `said`.
    pub(crate) fn state(&self, at: &RunningNetwork, said: bool) -> Vec<ControllerRow> {
        let mut numbers: Vec<_> = self.attached.iter().collect();
        numbers.sort_by_key(|(number, _)| **number);
        let row = |(number, attached): (&u64, &Attached)| ControllerRow {
            switch: attached.switch.clone(),
            target: attached.target.clone(),
            peer: attached.peer,
            state: at.fabric.controllers(attached.node).into_iter().find(|state| state.connection == *number),
            said: said.then(|| at.fabric.control_messages(attached.node, *number)).flatten(),
        };
        numbers.into_iter().map(row).collect()
    }

    /// `controllers.wait`: answers when every named switch has agreed on a version with a controller.
    pub(crate) fn wait(&mut self, at: &RunningNetwork, asked: &ControllersWait, responder: Responder) {
        match asked.switches.iter().map(|name| at.switch(name)).collect::<Result<Vec<_>, _>>() {
            Ok(nodes) => {
                self.waiters.push(Waiter { nodes, responder });
                self.answer_waiters(at);
            }
            Err(error) => responder.send(Err(error)),
        }
    }

    fn answer_waiters(&mut self, at: &RunningNetwork) {
        if self.waiters.is_empty() {
            return;
        }
        let joined = |node: NodeId| {
            at.fabric.controllers(node).iter().any(|state| {
                let is_controller =
                    self.attached.get(&state.connection).is_some_and(|attached| attached.peer == PeerKind::Controller);
                is_controller && state.version.is_some()
            })
        };
        let (done, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiters)
            .into_iter()
            .partition(|waiter| waiter.nodes.iter().all(|node| joined(*node)));
        self.waiters = left;
        for waiter in done {
            waiter.responder.send(Ok(Reply::Finished { finished: true }));
        }
    }
}
