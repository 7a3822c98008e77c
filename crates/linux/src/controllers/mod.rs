//! Controllers of the switches on the wall clock: their connected sockets come from the lab's owner, in whose network namespace they were
//! made (docs/reference/lab-protocol.md, "Controllers").
//!
//! A thread of its own reads and writes the sockets; the fabric's loop takes what came between two events, and is never held up by a
//! controller. Of each connection one piece of bytes is on its way to the loop at a time: the next is read when that was dealt with.

mod socket_thread;

use std::collections::HashMap;
use std::io;
use std::os::fd::{OwnedFd, RawFd};

use serde_json::{json, Value};
use twinnet_fabric::lab::requests::{missing, text};
use twinnet_fabric::lab::RunningNetwork;
use twinnet_fabric::switch::control::Peer;
use twinnet_fabric::{NodeId, World};

use crate::service::{LabError, Reply, Request};
use socket_thread::{Order, Said, SocketThread};

/// A connection as the loop knows it.
struct Attached {
    node: NodeId,
    switch: String,
    target: String,
    peer: Peer,
    /// Answered when the connection ends.
    reply: Reply,
}

/// Who waits until switches have their controllers.
struct Waiter {
    nodes: Vec<NodeId>,
    reply: Reply,
}

/// The connections of a lab's switches.
#[derive(Default)]
pub(crate) struct Controllers {
    attached: HashMap<u64, Attached>,
    next: u64,
    thread: Option<SocketThread>,
    waiters: Vec<Waiter>,
    /// Connections that say no more until what they said has come through their control channel.
    full: Vec<u64>,
}

/// Bytes of a connection that may be on their way through a control channel that takes time.
const MOST_UNDER_WAY_BYTES: usize = 4 << 20;

impl Controllers {
    /// `controller.attach`: serves the connection whose socket came with the request; the answer comes when it ends.
    pub(crate) fn attach(&mut self, at: &mut RunningNetwork, body: &Value, mut request: Request, wake: RawFd) {
        match self.try_attach(at, body, &mut request, wake) {
            Err(error) => request.reply.send(Err(error)),
            Ok((number, node, switch, target, peer)) => {
                at.fabric.controller_opened(node, number, peer);
                self.attached.insert(number, Attached { node, switch, target, peer, reply: request.reply });
                self.send(at);
            }
        }
    }

    fn try_attach(
        &mut self,
        at: &mut RunningNetwork,
        body: &Value,
        request: &mut Request,
        wake: RawFd,
    ) -> Result<(u64, NodeId, String, String, Peer), LabError> {
        let switch = text(body, "switch")?.to_owned();
        let node = at.switch(&switch)?;
        let target = text(body, "target")?.to_owned();
        let peer = match body.get("peer").and_then(Value::as_str) {
            None | Some("controller") => Peer::Controller,
            Some("tool") => Peer::Tool,
            Some(other) => {
                let message = format!("the peer is {other:?}; it can be \"controller\" or \"tool\"");
                return Err(LabError::new("BadRequest", message, ""));
            }
        };
        let socket = request.descriptors.pop().ok_or_else(|| missing("a descriptor", "the connected socket"))?;
        let lacking = |error: io::Error| {
            let message = format!("the connection to {target} cannot be served: {error}");
            LabError::new("ControllerFailed", message, "raise the limit of open files (ulimit -n)")
        };
        if self.thread.is_none() {
            self.thread = Some(SocketThread::start(wake).map_err(lacking)?);
        }
        at.fabric.ensure_agent(node, &at.versions(&switch));
        let number = self.next;
        self.next += 1;
        self.order(Order::Add(number, socket));
        Ok((number, node, switch, target, peer))
    }

    fn order(&self, order: Order) {
        if let Some(thread) = &self.thread {
            thread.order(order);
        }
    }

    /// Deals with what came since.
    pub(crate) fn hear(&mut self, at: &mut RunningNetwork, world: &mut dyn World) {
        while let Some(said) = self.thread.as_ref().and_then(SocketThread::said) {
            match said {
                Said::Bytes(number, bytes, backlog) => {
                    let Some(attached) = self.attached.get(&number) else { continue };
                    at.fabric.note_controller_backlog(attached.node, number, backlog);
                    at.fabric.controller_said(attached.node, number, &bytes, world);
                    self.full.push(number);
                    self.send(at);
                }
                Said::Backlog(number, bytes) => {
                    if let Some(attached) = self.attached.get(&number) {
                        at.fabric.note_controller_backlog(attached.node, number, bytes);
                    }
                }
                Said::Ended(number, why) => {
                    if let Some(attached) = self.attached.remove(&number) {
                        at.fabric.controller_closed(attached.node, number);
                        attached.reply.send(Ok(json!({"ended": why})));
                    }
                }
            }
        }
        self.answer_waiters(at);
    }

    /// Sends what the switches have to say.
    pub(crate) fn send(&mut self, at: &mut RunningNetwork) {
        if self.attached.is_empty() {
            return;
        }
        let goes_on = |number: &u64| match self.attached.get(number) {
            Some(attached) => at.fabric.control_bytes_under_way(attached.node, *number) < MOST_UNDER_WAY_BYTES,
            None => true,
        };
        let (going_on, full) = std::mem::take(&mut self.full).into_iter().partition(goes_on);
        self.full = full;
        let going_on: Vec<u64> = going_on;
        for output in at.fabric.take_control_output() {
            self.order(Order::Send(output.connection, output.bytes, output.ending.is_some()));
            if let Some(why) = output.ending {
                if let Some(attached) = self.attached.remove(&output.connection) {
                    attached.reply.send(Ok(json!({"ended": why})));
                }
            }
        }
        for number in going_on {
            self.order(Order::GoOn(number));
        }
    }

    /// `controllers`: how the connections stand.
    pub(crate) fn state(&self, at: &RunningNetwork) -> Value {
        let mut numbers: Vec<_> = self.attached.iter().collect();
        numbers.sort_by_key(|(number, _)| **number);
        let rows = numbers.into_iter().map(|(number, attached)| {
            let states = at.fabric.controllers(attached.node);
            let state = states.into_iter().find(|state| state.connection == *number);
            let peer = if attached.peer == Peer::Controller { "controller" } else { "tool" };
            let mut row = json!({"switch": attached.switch, "target": attached.target, "peer": peer});
            if let (Some(fields), Ok(Value::Object(state))) = (row.as_object_mut(), serde_json::to_value(state)) {
                fields.extend(state);
            }
            row
        });
        Value::Array(rows.collect())
    }

    /// `controllers.wait`: answers when every named switch has agreed on a version with a controller.
    pub(crate) fn wait(&mut self, at: &RunningNetwork, body: &Value, reply: Reply) {
        let names = body.get("switches").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        match names.map(|name| at.switch(name)).collect::<Result<Vec<_>, _>>() {
            Ok(nodes) => {
                self.waiters.push(Waiter { nodes, reply });
                self.answer_waiters(at);
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    fn answer_waiters(&mut self, at: &RunningNetwork) {
        if self.waiters.is_empty() {
            return;
        }
        let joined = |node: NodeId| {
            at.fabric.controllers(node).iter().any(|state| {
                let is_controller =
                    self.attached.get(&state.connection).is_some_and(|attached| attached.peer == Peer::Controller);
                is_controller && state.version.is_some()
            })
        };
        let (done, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiters)
            .into_iter()
            .partition(|waiter| waiter.nodes.iter().all(|node| joined(*node)));
        self.waiters = left;
        for waiter in done {
            waiter.reply.send(Ok(json!({})));
        }
    }
}

/// A socket that reads and writes without waiting.
fn non_blocking(socket: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(socket, true)?)
}
