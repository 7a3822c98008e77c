//! One client of the lab: its socket, and the answers that it has not taken yet.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde_json::{json, Value};

use super::door::lacks_descriptors;
use super::message::{self, Received};

/// Bytes of answers that may wait for a client before it is let go: it has stopped reading.
const WAITING_BYTES: usize = 64 << 20;

/// A client and what waits for it.
pub struct Client {
    /// Number by which answers find it.
    pub number: u64,
    socket: OwnedFd,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// `true` if the kernel lacked something beside room in the socket when an answer was sent last.
    stalled: bool,
}

impl Client {
    /// A client on `socket`, which must not block.
    #[must_use]
    pub fn new(number: u64, socket: OwnedFd) -> Self {
        Self { number, socket, waiting: VecDeque::new(), waiting_bytes: 0, stalled: false }
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns `true` if answers wait for it.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns `true` if sending is to be tried again after a while, although the socket may have room.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Takes the next request; an error is the end.
    pub fn receive(&self, buffer: &mut [u8]) -> Received {
        message::receive(self.socket.as_fd(), buffer).unwrap_or(Received::End)
    }

    /// Lets the client send no more; what it has sent can still be received.
    pub fn refuse_more(&self) {
        // A client that is gone sends no more either.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Read);
    }

    /// Adds an answer and sends what can be sent. `false` when the client is gone or has stopped reading.
    #[must_use]
    pub fn answer(&mut self, text: Vec<u8>) -> bool {
        self.waiting_bytes += text.len();
        self.waiting.push_back(text);
        self.flush() && self.waiting_bytes <= WAITING_BYTES
    }

    /// Sends what can be sent. `false` when the client is gone.
    #[must_use]
    pub fn flush(&mut self) -> bool {
        self.stalled = false;
        while let Some(text) = self.waiting.front_mut() {
            match message::send(self.socket.as_fd(), text, &[]) {
                Ok(()) => {
                    self.waiting_bytes -= text.len();
                    self.waiting.pop_front();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) => match error.raw_os_error() {
                    // A text that needs a memfd, and there is none to be had: the refusal fits into a packet.
                    Some(libc::EMFILE | libc::ENFILE) => {
                        let refusal = refusal_in_place_of(text);
                        self.waiting_bytes = self.waiting_bytes - text.len() + refusal.len();
                        *text = refusal;
                    }
                    // Too many descriptors are under way between this user's processes, or memory is short for the
                    // moment.
                    Some(libc::ETOOMANYREFS | libc::ENOBUFS | libc::ENOMEM) => {
                        self.stalled = true;
                        return true;
                    }
                    _ => return false,
                },
            }
        }
        true
    }
}

fn refusal_in_place_of(answer: &[u8]) -> Vec<u8> {
    let id = serde_json::from_slice::<Value>(answer).ok().and_then(|answer| answer.get("id").cloned());
    json!({"id": id, "error": lacks_descriptors()}).to_string().into_bytes()
}
