//! One connection of a client: a request, and its answer read piece by piece.
//!
//! Answers of any server are read: with a length, in chunks, or ended by the connection.

use std::net::SocketAddr;

use twinnet_units::Time;

use crate::http::chunked::ChunkedReader;
use crate::http::head::{parse_response, BodyEnd};
use crate::{Chunk, Host, HostError, SocketId};

/// Bytes of a body of unknown length that are thrown away at once.
const DISCARD: u64 = 16 << 20;

/// The phase of an exchange that a connection is in.
enum Phase {
    Connecting,
    Head,
    Length(u64),
    Chunks(ChunkedReader),
    UntilClose,
}

/// One connection to a server; it carries one request at a time.
pub(super) struct Connection {
    /// Its phase.
    phase: Phase,
    /// The time when the present request was made.
    pub(super) asked: Time,
    /// The bytes of the request that the host has not taken.
    unsent: Vec<u8>,
    /// The bytes that were received and not read.
    received: Vec<u8>,
    /// `true` if it has carried a request before this.
    pub(super) reused: bool,
    /// `true` if the server keeps it.
    keep_alive: bool,
    /// The status of the present answer.
    pub(super) status: u16,
    /// Bytes of the present body.
    pub(super) body: u64,
    /// Bytes that were asked for.
    pub(super) wanted: u64,
}

/// The step that a connection came to.
enum Step {
    /// Nothing more for now.
    Wait,
    /// More may be there.
    Again,
    /// The response is complete.
    Complete,
}

/// Why a request failed.
pub(super) enum Failure {
    /// The server ended a kept connection before it answered: to be asked again.
    Stale,
    /// For good, with the reason.
    Lost(String),
}

impl Connection {
    /// One that is being made for a request at `now`.
    pub(super) const fn new(now: Time) -> Self {
        Self {
            phase: Phase::Connecting,
            asked: now,
            unsent: Vec::new(),
            received: Vec::new(),
            reused: false,
            keep_alive: false,
            status: 0,
            body: 0,
            wanted: 0,
        }
    }

    /// Asks `server` for `bytes`. The answer is not looked for in the same call: one that is quick would seem to
    /// have taken no time.
    pub(super) fn ask(
        &mut self,
        now: Time,
        socket: SocketId,
        server: SocketAddr,
        bytes: u64,
        host: &mut dyn Host,
    ) -> Result<(), Failure> {
        let request =
            format!("GET /bytes/{bytes} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: twinnet\r\nAccept: */*\r\n\r\n");
        self.phase = Phase::Head;
        (self.asked, self.body, self.wanted) = (now, 0, bytes);
        self.unsent = request.into_bytes();
        self.send(socket, host)
    }

    /// Returns `true` if another request may follow on it.
    pub(super) fn is_usable(&self) -> bool {
        self.keep_alive && self.received.is_empty()
    }

    /// Why an answer that has come whole is not what was asked for.
    pub(super) fn fault(&self) -> Option<String> {
        if self.status != 200 {
            return Some(format!("the server answered with status {}", self.status));
        }
        (self.body != self.wanted).then(|| format!("a response had {} bytes instead of {}", self.body, self.wanted))
    }

    /// Sends what waits.
    pub(super) fn send(&mut self, socket: SocketId, host: &mut dyn Host) -> Result<(), Failure> {
        while !self.unsent.is_empty() {
            let taken = host.tcp_send(socket, Chunk::Bytes(&self.unsent)).map_err(|error| self.broken(&error))?;
            let taken = usize::try_from(taken).unwrap_or(usize::MAX);
            if taken == 0 {
                break;
            }
            self.unsent.drain(..taken.min(self.unsent.len()));
        }
        Ok(())
    }

    /// Receives until nothing is left to read, the answer is complete, or it fails; returns the bytes of the body that
    /// came, and whether the answer is complete.
    pub(super) fn receive(&mut self, socket: SocketId, host: &mut dyn Host) -> (u64, Result<bool, Failure>) {
        let mut came = 0;
        if matches!(self.phase, Phase::Connecting) {
            return (came, Ok(false));
        }
        loop {
            match self.step(socket, host) {
                Ok((bytes, step)) => {
                    came += bytes;
                    match step {
                        Step::Wait => return (came, Ok(false)),
                        Step::Again => {}
                        Step::Complete => return (came, Ok(true)),
                    }
                }
                Err(failure) => return (came, Err(failure)),
            }
        }
    }

    /// Receives once and reads what came; how many bytes of the body, and how far it came.
    fn step(&mut self, socket: SocketId, host: &mut dyn Host) -> Result<(u64, Step), Failure> {
        if !self.received.is_empty() {
            let before = self.received.len();
            let (bytes, complete) = self.read_received()?;
            self.body += bytes;
            if complete {
                return Ok((bytes, Step::Complete));
            }
            if bytes > 0 || self.received.len() < before {
                return Ok((bytes, Step::Again));
            }
        }
        let ahead = match &self.phase {
            Phase::Length(left) => *left,
            Phase::Chunks(reader) => reader.content_ahead(),
            Phase::UntilClose => DISCARD,
            Phase::Connecting | Phase::Head => 0,
        };
        if ahead > 0 {
            return self.discard(socket, host, ahead);
        }
        let mut buffer = [0; 4096];
        match host.tcp_receive(socket, &mut buffer).map_err(|error| self.broken(&error))? {
            None => Ok((0, Step::Wait)),
            Some(0) => Err(self.ended()),
            Some(length) => {
                self.received.extend_from_slice(&buffer[..length]);
                Ok((0, Step::Again))
            }
        }
    }

    /// Throws away content that certainly comes next.
    fn discard(&mut self, socket: SocketId, host: &mut dyn Host, ahead: u64) -> Result<(u64, Step), Failure> {
        let discarded = host.tcp_discard(socket, ahead).map_err(|error| self.broken(&error))?;
        let Some(bytes) = discarded else { return Ok((0, Step::Wait)) };
        self.body += bytes;
        match &mut self.phase {
            Phase::UntilClose if bytes == 0 => return Ok((0, Step::Complete)),
            _ if bytes == 0 => return Err(self.ended()),
            Phase::Length(left) => {
                *left -= bytes.min(*left);
                if *left == 0 {
                    return Ok((bytes, Step::Complete));
                }
            }
            Phase::Chunks(reader) => reader.skip(bytes),
            _ => {}
        }
        Ok((bytes, Step::Again))
    }

    /// Reads from what was received and not thrown away: bytes of the body, and whether the response is complete.
    fn read_received(&mut self) -> Result<(u64, bool), Failure> {
        let (bytes, taken, complete) = match &mut self.phase {
            Phase::Connecting => (0, 0, false),
            Phase::Head => match parse_response(&self.received).map_err(|error| Failure::Lost(error.to_string()))? {
                None => (0, 0, false),
                // "A client MUST be able to parse one or more 1xx responses received prior to a final response"
                // (RFC 9110, 15.2)
                Some((head, length)) if head.status < 200 => (0, length, false),
                Some((head, length)) => {
                    (self.status, self.keep_alive) = (head.status, head.keep_alive);
                    self.phase = match head.body {
                        BodyEnd::Length(bytes) => Phase::Length(bytes),
                        BodyEnd::Chunked => Phase::Chunks(ChunkedReader::new()),
                        BodyEnd::Close => Phase::UntilClose,
                    };
                    (0, length, head.body == BodyEnd::Length(0))
                }
            },
            Phase::Length(left) => {
                let bytes = (*left).min(self.received.len() as u64);
                *left -= bytes;
                (bytes, usize::try_from(bytes).unwrap_or(usize::MAX), *left == 0)
            }
            Phase::Chunks(reader) => {
                let read = reader.read(&self.received).map_err(|error| Failure::Lost(error.to_string()))?;
                (read.0, read.1, reader.is_done())
            }
            Phase::UntilClose => (self.received.len() as u64, self.received.len(), false),
        };
        self.received.drain(..taken);
        Ok((bytes, complete))
    }

    /// Returns what an error of the connection means.
    pub(super) fn broken(&self, error: &HostError) -> Failure {
        match self.ended() {
            Failure::Stale => Failure::Stale,
            Failure::Lost(_) => Failure::Lost(error.to_string()),
        }
    }

    /// Returns what the end of the connection means in the middle of a response.
    fn ended(&self) -> Failure {
        match self.phase {
            Phase::Head if self.reused && self.received.is_empty() => Failure::Stale,
            Phase::Head if self.received.is_empty() => {
                Failure::Lost("the server ended the connection without an answer".to_owned())
            }
            _ => Failure::Lost("the server ended the connection in the middle of its answer".to_owned()),
        }
    }
}
