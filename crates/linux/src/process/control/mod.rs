//! The control of a lab (docs/reference/lab-protocol.md): one thread that reads requests of all clients, hands
//! them to the part of the lab that they are for, and writes the answers. It never blocks on a client or on a part.

mod client;
mod door;
pub mod message;
mod outbox;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::Value;
use twinnet_lab::protocol::Request;

use super::names::peer_user;
use crate::service::{Call, ErrorName, LabError};
use client::Client;
use door::Door;
use message::Received;
pub use outbox::Outbox;

/// Clients at one time, the owner included.
const MOST_CLIENTS: usize = 64;
/// The time that is waited for what the kernel lacked (descriptors, mostly) before it is tried again.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The owner's number.
const OWNER: u64 = 0;

/// The incidents that the loop tells the lab.
pub enum Incident {
    /// The owner is gone.
    OwnerGone,
    /// A signal waits in the signal descriptor.
    Signal,
    /// A request came.
    Call(Call),
}

/// The next wish of the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Continue,
    /// Write what waits and leave the loop.
    End,
}

/// The sockets and who is on them.
pub struct Control {
    door: Door,
    clients: Vec<Client>,
    next_number: u64,
    outbox: Arc<Outbox>,
    buffer: Vec<u8>,
}

impl Control {
    /// Serves the owner on `owner` and others on `listener`.
    ///
    /// # Errors
    /// When the kernel gives no eventfd, or a socket cannot be made non-blocking.
    pub fn new(owner: OwnedFd, listener: OwnedFd) -> std::io::Result<Self> {
        rustix::io::ioctl_fionbio(&owner, true)?;
        rustix::io::ioctl_fionbio(&listener, true)?;
        Ok(Self {
            door: Door::new(listener),
            clients: vec![Client::new(OWNER, owner)],
            next_number: OWNER + 1,
            outbox: Outbox::new()?,
            buffer: vec![0; message::PACKET_BYTES],
        })
    }

    /// Serves until `handle` says to end. `signals` is watched beside the sockets.
    pub fn serve(&mut self, signals: &OwnedFd, mut handle: impl FnMut(Incident) -> Next) {
        loop {
            let ready = self.wait(signals);
            self.door.open();
            for answer in self.outbox.take() {
                self.deliver(&answer);
            }
            if ready.signal && handle(Incident::Signal) == Next::End {
                break;
            }
            if ready.door {
                self.accept();
            }
            let mut next = Next::Continue;
            for number in ready.clients {
                if next == Next::Continue {
                    next = self.attend(number, &mut handle);
                }
            }
            if next == Next::End {
                break;
            }
        }
        if self.clients.iter().any(|client| client.number == OWNER) {
            self.take_leave(&mut handle);
        }
    }

    /// Takes no more requests, has those that came meanwhile handled, and sends what is answered. (A socket that is
    /// closed with something unread would lose what was sent on it.)
    fn take_leave(&mut self, handle: &mut impl FnMut(Incident) -> Next) {
        for client in &self.clients {
            client.refuse_more();
        }
        for index in 0..self.clients.len() {
            let number = self.clients[index].number;
            loop {
                match self.clients[index].receive(&mut self.buffer) {
                    Received::Nothing | Received::End => break,
                    received => self.take(number, received, handle),
                };
            }
        }
        for answer in self.outbox.take() {
            self.deliver(&answer);
        }
    }

    fn wait(&self, signals: &OwnedFd) -> Ready {
        let mut watched =
            vec![PollFd::from_borrowed_fd(self.outbox.wake(), PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        for client in &self.clients {
            let out = if client.has_waiting() && !client.is_stalled() { PollFlags::OUT } else { PollFlags::empty() };
            watched.push(PollFd::from_borrowed_fd(client.socket(), PollFlags::IN | out));
        }
        let first_client = 2;
        let door = self.door.watched();
        watched.extend(door.map(|listener| PollFd::from_borrowed_fd(listener, PollFlags::IN)));
        let lacking = door.is_none() || self.clients.iter().any(Client::is_stalled);
        // An interrupted wait finds nothing ready and is begun again by the caller.
        let _ = rustix::event::poll(&mut watched, lacking.then_some(&PATIENCE));
        let is_ready = |index: usize| !watched[index].revents().is_empty();
        let clients = self
            .clients
            .iter()
            .enumerate()
            .filter(|(index, client)| is_ready(index + first_client) || client.is_stalled())
            .map(|(_, client)| client.number)
            .collect();
        Ready { signal: is_ready(1), door: door.is_some() && is_ready(watched.len() - 1), clients }
    }

    /// Takes one request of a client and sends what waits for it.
    fn attend(&mut self, number: u64, handle: &mut impl FnMut(Incident) -> Next) -> Next {
        let Some(client) = self.clients.iter_mut().find(|client| client.number == number) else {
            return Next::Continue;
        };
        let received = if client.flush() { client.receive(&mut self.buffer) } else { Received::End };
        if matches!(received, Received::End) {
            self.clients.retain(|client| client.number != number);
        }
        self.take(number, received, handle)
    }

    /// Deals with what came from a client.
    fn take(&self, number: u64, received: Received, handle: &mut impl FnMut(Incident) -> Next) -> Next {
        match received {
            Received::End if number == OWNER => handle(Incident::OwnerGone),
            Received::Nothing | Received::End => Next::Continue,
            Received::Malformed { why, packet } => {
                let id = serde_json::from_slice::<Value>(&packet).ok().and_then(|packet| packet.get("id").cloned());
                self.outbox.reply(number, id.unwrap_or_default()).send(Err(malformed(why)));
                Next::Continue
            }
            Received::Message(message) => match serde_json::from_slice::<Value>(&message.text) {
                Ok(body) => {
                    let id = body.get("id").cloned().unwrap_or(Value::Null);
                    let responder = self.outbox.reply(number, id);
                    match Request::read(body) {
                        Ok(request) => {
                            handle(Incident::Call(Call { request, descriptors: message.descriptors, responder }))
                        }
                        Err(error) => {
                            responder.send(Err(error));
                            Next::Continue
                        }
                    }
                }
                Err(error) => {
                    self.outbox
                        .reply(number, Value::Null)
                        .send(Err(malformed(&format!("the request is not JSON: {error}"))));
                    Next::Continue
                }
            },
        }
    }

    fn deliver(&mut self, answer: &outbox::Answered) {
        let Some(client) = self.clients.iter_mut().find(|client| client.number == answer.client) else { return };
        if !client.answer(answer.text()) && answer.client != OWNER {
            self.clients.retain(|client| client.number != answer.client);
        }
    }

    /// Lets in a client of the lab's own user; others are turned away.
    fn accept(&mut self) {
        let Some(socket) = self.door.accept() else { return };
        if peer_user(&socket) != Some(rustix::process::geteuid().as_raw()) {
            return;
        }
        if self.clients.len() >= MOST_CLIENTS {
            let message = format!("the lab serves {MOST_CLIENTS} clients already, its owner included");
            door::turn_away(socket, &LabError::new(ErrorName::TooManyClients, message, "end one of them"));
            return;
        }
        self.clients.push(Client::new(self.next_number, socket));
        self.next_number += 1;
    }
}

struct Ready {
    signal: bool,
    door: bool,
    clients: Vec<u64>,
}

fn malformed(why: &str) -> LabError {
    LabError::new(ErrorName::MalformedRequest, why, "docs/reference/lab-protocol.md tells the form of a request")
}
