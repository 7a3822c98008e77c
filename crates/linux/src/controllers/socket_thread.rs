//! The thread that reads and writes the controllers' sockets.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;

/// Bytes that go to the loop in one piece: a hundred or two of flow-mods.
const PIECE_BYTES: usize = 16 * 1024;
/// Bytes that may wait for a controller; one that lets more wait is let go.
const MOST_BACKLOG_BYTES: usize = 64 << 20;

/// What the loop tells the thread.
pub(super) enum Order {
    /// A new connection.
    Add(u64, OwnedFd),
    /// Bytes to send; `true`: then the connection is closed.
    Send(u64, Vec<u8>, bool),
    /// The last piece was dealt with.
    GoOn(u64),
}

/// What the thread tells the loop.
pub(super) enum Said {
    /// Bytes came; and so many wait to be sent.
    Bytes(u64, Vec<u8>, usize),
    /// So many bytes wait to be sent.
    Backlog(u64, usize),
    /// The connection is over, and why.
    Ended(u64, String),
}

/// The loop's end.
pub(super) struct SocketThread {
    orders: Sender<Order>,
    said: Receiver<Said>,
    wake: OwnedFd,
}

struct Line {
    socket: OwnedFd,
    waiting: VecDeque<u8>,
    /// Whether a piece is with the loop.
    held: bool,
    /// Whether it is to be closed when all is sent.
    last: bool,
    told_backlog: usize,
}

struct Sockets {
    lines: BTreeMap<u64, Line>,
    orders: Receiver<Order>,
    wake: OwnedFd,
    said: Sender<Said>,
    loop_wake: OwnedFd,
}

impl SocketThread {
    /// Starts the thread; it wakes the loop by the event descriptor `loop_wake`, and ends when this is dropped.
    pub(super) fn start(loop_wake: RawFd) -> io::Result<Self> {
        // SAFETY: the loop's event descriptor is open as long as the loop runs, which calls this.
        let loop_wake = unsafe { BorrowedFd::borrow_raw(loop_wake) }.try_clone_to_owned()?;
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (orders, receiver) = channel();
        let (sender, said) = channel();
        let mut sockets =
            Sockets { lines: BTreeMap::new(), orders: receiver, wake: wake.try_clone()?, said: sender, loop_wake };
        std::thread::Builder::new().name("controllers".into()).spawn(move || sockets.run())?;
        Ok(Self { orders, said, wake })
    }

    pub(super) fn order(&self, order: Order) {
        // A thread that has ended takes no orders; its connections are gone with it.
        let _ = self.orders.send(order);
        ring(&self.wake);
    }

    pub(super) fn said(&self) -> Option<Said> {
        self.said.try_recv().ok()
    }
}

impl Drop for SocketThread {
    fn drop(&mut self) {
        // The channel closes with this; the thread is woken to see it.
        let (closed, _) = channel();
        self.orders = closed;
        ring(&self.wake);
    }
}

fn ring(wake: &OwnedFd) {
    // A full counter wakes as well.
    let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
}

impl Sockets {
    fn run(&mut self) {
        while self.take_orders() {
            let numbers: Vec<u64> = self.lines.keys().copied().collect();
            let mut watched = vec![PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
            for line in self.lines.values() {
                let mut flags = PollFlags::empty();
                if !line.held {
                    flags |= PollFlags::IN;
                }
                if !line.waiting.is_empty() {
                    flags |= PollFlags::OUT;
                }
                watched.push(PollFd::from_borrowed_fd(line.socket.as_fd(), flags));
            }
            // An interrupted wait finds nothing ready.
            let _ = rustix::event::poll(&mut watched, None);
            let ready: Vec<(u64, PollFlags)> =
                numbers.into_iter().zip(watched[1..].iter().map(PollFd::revents)).collect();
            drop(watched);
            let mut counter = [0; 8];
            // Nothing to read means that nobody has woken us since.
            let _ = rustix::io::read(&self.wake, &mut counter);
            for (number, flags) in ready {
                if !flags.is_empty() {
                    self.attend(number, flags);
                }
            }
        }
    }

    /// False when the loop is gone.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.orders.try_recv() {
                Ok(Order::Add(number, socket)) => {
                    if super::non_blocking(&socket).is_err() {
                        self.tell(Said::Ended(number, "its descriptor is no socket".to_owned()));
                        continue;
                    }
                    let line = Line { socket, waiting: VecDeque::new(), held: false, last: false, told_backlog: 0 };
                    self.lines.insert(number, line);
                }
                Ok(Order::Send(number, bytes, last)) => {
                    let Some(line) = self.lines.get_mut(&number) else { continue };
                    line.waiting.extend(bytes);
                    line.last |= last;
                    self.write(number);
                }
                Ok(Order::GoOn(number)) => {
                    if let Some(line) = self.lines.get_mut(&number) {
                        line.held = false;
                    }
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn tell(&self, said: Said) {
        // Without a loop nobody is left to be told; the next orders show it.
        let _ = self.said.send(said);
        ring(&self.loop_wake);
    }

    fn attend(&mut self, number: u64, flags: PollFlags) {
        if flags.contains(PollFlags::OUT) {
            self.write(number);
        }
        let Some(line) = self.lines.get_mut(&number) else { return };
        if line.held {
            // Nothing is read while a piece is with the loop, so a broken connection shows by its flags alone.
            if flags.intersects(PollFlags::ERR | PollFlags::HUP) {
                self.end(number, "the connection broke".to_owned());
            }
            return;
        }
        let mut buffer = vec![0; PIECE_BYTES];
        match rustix::io::read(&line.socket, &mut buffer) {
            Ok(0) => self.end(number, "the controller closed it".to_owned()),
            Ok(count) => {
                buffer.truncate(count);
                line.held = true;
                let backlog = line.waiting.len();
                self.tell(Said::Bytes(number, buffer, backlog));
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => self.end(number, error.to_string()),
        }
    }

    fn write(&mut self, number: u64) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        let failed = loop {
            let (front, _) = line.waiting.as_slices();
            if front.is_empty() {
                break line.last.then(|| "closed".to_owned());
            }
            match rustix::net::send(&line.socket, front, rustix::net::SendFlags::NOSIGNAL) {
                Ok(count) => drop(line.waiting.drain(..count)),
                Err(Errno::AGAIN) => break None,
                Err(Errno::INTR) => {}
                Err(error) => break Some(error.to_string()),
            }
        };
        let backlog = line.waiting.len();
        if let Some(why) = failed {
            return self.end(number, why);
        }
        if backlog > MOST_BACKLOG_BYTES {
            return self.end(number, "it let 64 MiB wait".to_owned());
        }
        // Every 64 KiB up or down is news.
        if backlog >> 16 != line.told_backlog >> 16 {
            line.told_backlog = backlog;
            self.tell(Said::Backlog(number, backlog));
        }
    }

    fn end(&mut self, number: u64, why: String) {
        self.lines.remove(&number);
        self.tell(Said::Ended(number, why));
    }
}
