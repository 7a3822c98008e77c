//! A controller's socket as the fabric's loop reads and writes it: never waiting for it, and little at once.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// Bytes that are read at once: some fifty flow-mods, which take the loop a fifth of a millisecond.
pub(super) const PIECE_BYTES: usize = 4 * 1024;
/// Bytes that are written at once.
const MOST_WRITTEN_BYTES: usize = 64 * 1024;
/// Pieces that are thrown away of what is still to be read when a connection is closed.
const MOST_DISCARDED: u32 = 64;
/// Bytes that may wait for a controller; one that lets more wait is let go.
const MOST_BACKLOG_BYTES: usize = 64 << 20;

/// The result of reading.
pub(super) enum Heard {
    /// Nothing is there.
    Nothing,
    /// So many bytes came.
    Bytes(usize),
    /// The connection is over, and why.
    Ended(String),
}

/// A connected socket and what waits to be sent by it.
///
/// The loop is told of news once, when they come (edge-triggered): what is left to read or to write is remembered here.
pub(super) struct Line {
    socket: OwnedFd,
    epoll: OwnedFd,
    waiting: VecDeque<u8>,
    /// `true` if there may be something to read.
    readable: bool,
    /// `true` if the socket may take bytes.
    writable: bool,
    /// `true` if its end may have come behind what there is to read.
    hung: bool,
    /// `true` if nothing is read for now.
    pub(super) held: bool,
    /// `true` if it is to be closed when all is sent.
    last: bool,
    told_backlog: usize,
}

impl Line {
    /// Has `epoll` tell of `socket` under `token`, until this is dropped.
    pub(super) fn new(socket: OwnedFd, epoll: BorrowedFd, token: u64) -> io::Result<Self> {
        // Small messages go at once. A Unix socket has no such choice, and no need of it.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        let news = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let epoll = epoll.try_clone_to_owned()?;
        epoll::add(&epoll, &socket, epoll::EventData::new_u64(token), news)?;
        Ok(Self {
            socket,
            epoll,
            waiting: VecDeque::new(),
            readable: true,
            writable: true,
            hung: false,
            held: false,
            last: false,
            told_backlog: 0,
        })
    }

    /// Takes news of the socket: the events as `epoll` tells them. Returns whether it broke.
    pub(super) fn note(&mut self, events: u32) -> bool {
        let events = epoll::EventFlags::from_bits_retain(events);
        self.readable = true;
        self.writable |= events.contains(epoll::EventFlags::OUT);
        self.hung |= events.intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        events.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR)
    }

    /// Returns `true` if there may be something to do now.
    pub(super) fn is_ready(&self) -> bool {
        (self.readable && !self.held && !self.last) || (self.writable && !self.waiting.is_empty())
    }

    /// Reads into `piece`.
    pub(super) fn read(&mut self, piece: &mut [u8]) -> Heard {
        if !self.readable || self.held || self.last {
            return Heard::Nothing;
        }
        let most = piece.len();
        match rustix::net::recv(&self.socket, piece, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Heard::Ended("the controller closed it".to_owned()),
            Ok((_, count)) => {
                // A stream that gives less than was asked for has no more; only its end would not be told again.
                self.readable = count == most || self.hung;
                Heard::Bytes(count)
            }
            Err(Errno::INTR) => Heard::Nothing,
            Err(Errno::AGAIN) => {
                self.readable = false;
                Heard::Nothing
            }
            Err(error) => Heard::Ended(error.to_string()),
        }
    }

    /// Has `bytes` sent behind what waits, and when `last` the connection closed after them; returns why it is over,
    /// if it is.
    pub(super) fn send(&mut self, mut bytes: &[u8], last: bool) -> Option<String> {
        self.last |= last;
        if self.waiting.is_empty() && self.writable && bytes.len() <= MOST_WRITTEN_BYTES {
            match self.hand_over(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(why) => return Some(why),
            }
        }
        self.waiting.extend(bytes);
        if self.waiting.is_empty() && self.last {
            return Some("closed".to_owned());
        }
        (self.waiting.len() > MOST_BACKLOG_BYTES).then(|| "it let 64 MiB wait".to_owned())
    }

    /// Writes some of what waits; returns why the connection is over, if it is.
    pub(super) fn flush(&mut self) -> Option<String> {
        let mut left = MOST_WRITTEN_BYTES;
        while self.writable && left > 0 && !self.waiting.is_empty() {
            let waiting = std::mem::take(&mut self.waiting);
            let (front, _) = waiting.as_slices();
            let handed = self.hand_over(&front[..front.len().min(left)]);
            self.waiting = waiting;
            match handed {
                Ok(count) => {
                    self.waiting.drain(..count);
                    left -= count;
                }
                Err(why) => return Some(why),
            }
        }
        (self.last && self.waiting.is_empty()).then(|| "closed".to_owned())
    }

    /// Gives the kernel what it takes of `bytes`.
    fn hand_over(&mut self, bytes: &[u8]) -> Result<usize, String> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            match rustix::net::send(&self.socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => {
                    self.writable = false;
                    return Ok(0);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Bytes that wait to be sent.
    pub(super) fn backlog(&self) -> usize {
        self.waiting.len()
    }

    /// The bytes that wait to be sent, when they have become more or fewer by some 64 KiB since this told them.
    pub(super) fn backlog_news(&mut self) -> Option<usize> {
        let backlog = self.waiting.len();
        let is_news = backlog >> 16 != self.told_backlog >> 16;
        is_news.then(|| {
            self.told_backlog = backlog;
            backlog
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A socket that is closed with bytes unread tells its peer that it broke, in the place of what was said last.
        let mut piece = [0; PIECE_BYTES];
        for _ in 0..MOST_DISCARDED {
            match rustix::net::recv(&self.socket, &mut piece, RecvFlags::DONTWAIT) {
                Ok((_, 1..)) => {}
                _ => break,
            }
        }
        // Where somebody else has the socket open too, closing it here would not end the news of it.
        let _ = epoll::delete(&self.epoll, &self.socket);
    }
}
