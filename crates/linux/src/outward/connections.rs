//! TCP: a connection of the network inside ends here, and goes on as an ordinary socket.
//!
//! The first segment of a connection waits until the socket outside is connected. So a port where nobody listens is
//! refused inside, too, and a host that does not answer stays silent.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustc_hash::FxHashMap;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{connect, socket_with, AddressFamily, SocketFlags, SocketType};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{Ipv4Packet, TcpPacket};

use super::destinations::Destinations;
use super::way::Way;

/// Connections at one time; further ones are refused.
const MOST: usize = 256;
/// Bytes that wait in each direction of one connection.
const BUFFER_BYTES: usize = 128 * 1024;
/// Who says nothing for so long although asked has gone.
const PATIENCE: Duration = Duration::from_secs(120);
/// After so long without a segment the other end is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(30);

/// Both ends: inside, and outside as the network inside knows it.
pub type Ends = (SocketAddrV4, SocketAddrV4);

enum Stage {
    /// The socket outside is being connected; the first segment waits.
    Connecting { first: Vec<u8> },
    /// Bytes go both ways.
    Open { handle: SocketHandle, inside_ended: bool, outside_ended: bool },
}

struct Connection {
    outside: TcpStream,
    stage: Stage,
}

/// The end of all connections towards the network inside: smoltcp's stack, and the interface that it speaks on.
pub struct Stack<'a> {
    /// smoltcp's interface.
    pub interface: &'a mut Interface,
    /// Its sockets.
    pub sockets: &'a mut SocketSet<'static>,
    /// The interface's other side.
    pub way: &'a mut Way,
    /// The moment.
    pub now: Instant,
}

impl Stack<'_> {
    /// Has the stack see `packet`, and answer.
    fn see(&mut self, packet: Vec<u8>) {
        self.way.admit(packet);
        self.turn();
    }

    /// Has the stack send what it has to send.
    pub fn turn(&mut self) {
        self.interface.poll(self.now, self.way, self.sockets);
    }
}

/// All connections of one way.
#[derive(Default)]
pub struct Connections {
    of: FxHashMap<Ends, Connection>,
}

impl Connections {
    /// Takes a packet of TCP that came out of the network.
    pub fn take(&mut self, packet: Vec<u8>, destinations: &Destinations, stack: &mut Stack<'_>) {
        let whole = Ipv4Packet::new_unchecked(&packet[..]);
        let Ok(segment) = TcpPacket::new_checked(whole.payload()) else { return };
        let ends = (
            SocketAddrV4::new(whole.src_addr(), segment.src_port()),
            SocketAddrV4::new(whole.dst_addr(), segment.dst_port()),
        );
        let first = segment.syn() && !segment.ack();
        match self.of.get(&ends).map(|held| &held.stage) {
            Some(Stage::Connecting { .. }) => {}
            Some(Stage::Open { handle, .. }) => {
                if first && stack.sockets.get::<Socket<'_>>(*handle).state() == State::TimeWait {
                    self.forget(ends, stack);
                    self.begin(ends, packet, destinations, stack);
                } else {
                    stack.see(packet);
                }
            }
            None if first => self.begin(ends, packet, destinations, stack),
            None => stack.see(packet),
        }
    }

    /// Connects outward for the first segment of a connection. What goes nowhere the stack refuses: it has no socket
    /// that listens there.
    fn begin(&mut self, ends: Ends, first: Vec<u8>, destinations: &Destinations, stack: &mut Stack<'_>) {
        let to = destinations.of(ends.1).filter(|_| self.of.len() < MOST);
        match to.map(open) {
            Some(Ok(outside)) => drop(self.of.insert(ends, Connection { outside, stage: Stage::Connecting { first } })),
            Some(Err(error)) => {
                tracing::debug!(%error, to = %ends.1, "no way to this address");
                stack.see(first);
            }
            None => stack.see(first),
        }
    }

    /// The sockets to wait for, with their ends and what is waited for. One that waits for nothing is left out, for
    /// the kernel would tell of its end again and again.
    pub fn sockets<'a>(
        &'a self,
        stack: &'a SocketSet<'static>,
    ) -> impl Iterator<Item = (Ends, BorrowedFd<'a>, PollFlags)> {
        self.of.iter().filter_map(move |(ends, held)| {
            let wanted = match held.stage {
                Stage::Connecting { .. } => PollFlags::OUT,
                Stage::Open { handle, outside_ended, .. } => {
                    let inside = stack.get::<Socket<'_>>(handle);
                    let mut wanted = PollFlags::empty();
                    wanted.set(PollFlags::IN, !outside_ended && inside.can_send());
                    wanted.set(PollFlags::OUT, inside.can_recv());
                    wanted
                }
            };
            (!wanted.is_empty()).then(|| (*ends, held.outside.as_fd(), wanted))
        })
    }

    /// Goes on with the connection of `ends`, whose socket outside is ready.
    pub fn ready(&mut self, ends: Ends, stack: &mut Stack<'_>) {
        let Some(held) = self.of.get_mut(&ends) else { return };
        if let Stage::Connecting { first } = &mut held.stage {
            let first = std::mem::take(first);
            match held.outside.take_error() {
                Ok(None) => {
                    let handle = stack.sockets.add(listening(ends.1));
                    held.stage = Stage::Open { handle, inside_ended: false, outside_ended: false };
                }
                Ok(Some(error)) | Err(error) => {
                    tracing::debug!(%error, to = %ends.1, "a connection is refused");
                    self.of.remove(&ends);
                }
            }
            stack.see(first);
        } else {
            held.read(stack.sockets);
        }
    }

    /// Hands on outward what has come, and forgets what has ended.
    pub fn go_on(&mut self, stack: &mut Stack<'_>) {
        for held in self.of.values_mut() {
            held.write(stack.sockets);
        }
        stack.turn();
        let ended = |held: &Connection| match held.stage {
            Stage::Connecting { .. } => false,
            // A reset of a connection that was not yet made has its socket listen again.
            Stage::Open { handle, .. } => {
                matches!(stack.sockets.get::<Socket<'_>>(handle).state(), State::Closed | State::Listen)
            }
        };
        let gone: Vec<Ends> = self.of.iter().filter(|(_, held)| ended(held)).map(|(ends, _)| *ends).collect();
        for ends in gone {
            self.forget(ends, stack);
        }
    }

    fn forget(&mut self, ends: Ends, stack: &mut Stack<'_>) {
        if let Some(Connection { stage: Stage::Open { handle, .. }, .. }) = self.of.remove(&ends) {
            stack.sockets.remove(handle);
        }
    }
}

impl Connection {
    /// Takes from the socket outside as much as there is room for.
    fn read(&mut self, sockets: &mut SocketSet<'static>) {
        let Stage::Open { handle, outside_ended, .. } = &mut self.stage else { return };
        let inside = sockets.get_mut::<Socket<'_>>(*handle);
        while !*outside_ended && inside.can_send() {
            let mut failed = None;
            let taken = inside.send(|room| match self.outside.read(room) {
                Ok(length) => (length, length),
                Err(error) => {
                    failed = Some(error.kind());
                    (0, 0)
                }
            });
            match (failed, taken) {
                (Some(ErrorKind::WouldBlock | ErrorKind::Interrupted), _) => return,
                (Some(_), _) | (None, Err(_)) => return inside.abort(),
                (None, Ok(0)) => {
                    *outside_ended = true;
                    inside.close();
                }
                (None, Ok(_)) => {}
            }
        }
    }

    /// Gives to the socket outside what has come from inside, and its end.
    fn write(&mut self, sockets: &mut SocketSet<'static>) {
        let Stage::Open { handle, inside_ended, .. } = &mut self.stage else { return };
        let inside = sockets.get_mut::<Socket<'_>>(*handle);
        while inside.can_recv() {
            let mut failed = None;
            let given = inside.recv(|bytes| match self.outside.write(bytes) {
                Ok(length) => (length, ()),
                Err(error) => {
                    failed = Some(error.kind());
                    (0, ())
                }
            });
            match (failed, given) {
                (Some(ErrorKind::WouldBlock | ErrorKind::Interrupted), _) => return,
                (Some(_), _) | (None, Err(_)) => return inside.abort(),
                (None, Ok(())) => {}
            }
        }
        let no_more = matches!(inside.state(), State::CloseWait | State::LastAck | State::Closing | State::TimeWait);
        if no_more && !*inside_ended {
            *inside_ended = true;
            // Fails where the other side has gone meanwhile, which the next read tells.
            let _ = self.outside.shutdown(Shutdown::Write);
        }
    }
}

/// A socket that is being connected to `to`.
fn open(to: SocketAddrV4) -> Result<TcpStream, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error),
    }
}

fn listening(at: SocketAddrV4) -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(CongestionControl::Cubic);
    socket.set_nagle_enabled(false);
    socket.set_timeout(Some(PATIENCE));
    socket.set_keep_alive(Some(SILENCE));
    // Fails for port 0 alone, to which no socket outside connects.
    let _ = socket.listen((*at.ip(), at.port()));
    socket
}
