//! The way in for new clients. Who cannot be let in is told why; a process that has no descriptor left for a client
//! must not spin on a listener that stays ready, so one descriptor is kept in reserve to take the client and turn
//! it away.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketFlags;
use serde_json::{json, Value};

use super::message;
use crate::service::{ErrorName, LabError};

/// The listening socket.
pub struct Door {
    listener: OwnedFd,
    /// Given up for the moment in which a client is turned away. `None`: others took it meanwhile, and the door is shut
    /// until there is one again.
    reserve: Option<OwnedFd>,
}

impl Door {
    /// A door at `listener`, which must not block.
    #[must_use]
    pub fn new(listener: OwnedFd) -> Self {
        let mut door = Self { listener, reserve: None };
        door.open();
        door
    }

    /// Returns what is to be watched for clients; `None` while the door is shut.
    #[must_use]
    pub fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.reserve.is_some().then(|| self.listener.as_fd())
    }

    /// Opens a shut door again when a descriptor is to be had.
    pub fn open(&mut self) {
        if self.reserve.is_none() {
            self.reserve = rustix::io::fcntl_dupfd_cloexec(&self.listener, 0).ok();
        }
    }

    /// Takes the next client, if there is one and a descriptor for it.
    pub fn accept(&mut self) -> Option<OwnedFd> {
        match self.take() {
            Ok(socket) => Some(socket),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                self.reserve = None;
                if let Ok(socket) = self.take() {
                    turn_away(socket, &lacks_descriptors());
                }
                self.open();
                None
            }
            // Nobody is there any more, or the client has left already.
            Err(_) => None,
        }
    }

    fn take(&self) -> Result<OwnedFd, Errno> {
        rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
    }
}

/// Tells a client why it is not served, and lets it go.
pub fn turn_away(socket: OwnedFd, error: &LabError) {
    let text = json!({"id": Value::Null, "error": error}).to_string();
    // A client that has left needs no word.
    let _ = message::send(socket.as_fd(), text.as_bytes(), &[]);
}

/// The refusal of what would need a descriptor that the lab cannot have.
pub fn lacks_descriptors() -> LabError {
    LabError::new(
        ErrorName::OpenFilesExhausted,
        "the lab has as many files open as it may",
        "raise the limit of open files (ulimit -n) before the lab is started, or end other clients",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{bind, connect, listen, socket_with, AddressFamily, SocketAddrUnix, SocketType};

    fn door_and_client(name: &[u8]) -> (Door, OwnedFd) {
        let socket = || {
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
                .unwrap()
        };
        let address = SocketAddrUnix::new_abstract_name(&[name, &std::process::id().to_ne_bytes()].concat()).unwrap();
        let (listener, client) = (socket(), socket());
        bind(&listener, &address).unwrap();
        listen(&listener, 4).unwrap();
        connect(&client, &address).unwrap();
        (Door::new(listener), client)
    }

    #[test]
    fn a_client_comes_in_and_then_nobody_is_there() {
        let (mut door, _client) = door_and_client(b"door-in");
        assert!(door.accept().is_some());
        assert!(door.accept().is_none());
        assert!(door.watched().is_some());
    }

    #[test]
    fn who_is_turned_away_is_told_why_and_that_it_is_over() {
        let (mut door, client) = door_and_client(b"door-away");
        turn_away(door.accept().unwrap(), &lacks_descriptors());
        let mut buffer = vec![0; message::PACKET_BYTES];
        let message::Received::Message(told) = message::receive(client.as_fd(), &mut buffer).unwrap() else {
            panic!("nothing was told")
        };
        let told: Value = serde_json::from_slice(&told.text).unwrap();
        assert_eq!((&told["id"], &told["error"]["name"]), (&Value::Null, &Value::from("OpenFilesExhausted")));
        assert!(matches!(message::receive(client.as_fd(), &mut buffer).unwrap(), message::Received::End));
    }

    #[test]
    fn a_shut_door_is_not_watched_until_it_opens() {
        let (mut door, _client) = door_and_client(b"door-shut");
        door.reserve = None;
        assert!(door.watched().is_none());
        door.open();
        assert!(door.watched().is_some());
    }
}
