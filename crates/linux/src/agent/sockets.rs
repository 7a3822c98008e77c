//! The sockets of all apps in all hosts: opened, used through [`HostView`], closed.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::c_int;
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashMap;
use twinnet_apps::{Chunk, Handover, Host, HostError, SocketId, TcpInfo};
use twinnet_units::Time;

use super::datagrams::{self, ArrivalClock, Buffers, Flushed, SendQueue};
use super::error_queue;
use super::icmp;
use super::namespaces::Namespaces;
use super::poller::{Poller, Urgency};
use super::system;
use crate::wall::clock::LabClock;

/// Something to do on a socket that is ready, as bits.
pub mod ready {
    /// There is something to receive.
    pub const READ: u8 = 1;
    /// There is room to send.
    pub const WRITE: u8 = 2;
    /// The kernel has an error for it.
    pub const ERROR: u8 = 4;
}

/// Bytes of a stream that an app may receive, and as many that it may send, before others have their turn: in the
/// order of what a turn of a datagram socket brings at most.
const BUDGET: u64 = 256 << 10;
/// Bytes thrown away at once from which a stream counts as bulk traffic.
const BULK_DISCARD: u64 = 1 << 20;
/// What a UDP socket may receive before it is read: thousands of full-size datagrams, since the thread may be away for
/// milliseconds. On the machine itself it may send as many.
const UDP_BUFFER: c_int = 4 << 20;
/// What a UDP socket of a lab may send before the line has taken it: Linux's default (`net.core.wmem_default`), which
/// programs on hosts have and which model hosts have. The kernel takes twice what is asked for.
const UDP_SEND_BUFFER: c_int = 212_992 / 2;
/// The content of filler.
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

const DATAGRAM_EVENTS: c_int = libc::EPOLLIN;
const STREAM_EVENTS: c_int = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP;

/// The kind of a socket.
pub enum Kind {
    /// UDP, with what the kernel has not taken yet.
    Udp(SendQueue),
    /// ICMP echo with this identifier.
    Icmp {
        /// Of which version.
        v6: bool,
        /// Ours in every request.
        identifier: u16,
    },
    /// Waits for connections.
    Listener,
    /// A connection that is not established yet.
    Connecting,
    /// A connection.
    Stream {
        /// `true` if a send took less than was offered.
        blocked: bool,
    },
}

/// One socket.
pub struct Socket {
    /// The descriptor.
    pub fd: OwnedFd,
    /// The app that owns it.
    pub app: u32,
    /// Its kind.
    pub kind: Kind,
    /// Own and peer's address, where known.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// Bits of [`ready`] that wait for the socket's turn.
    pub pending: u8,
    queued: bool,
    urgency: Urgency,
    events: c_int,
    /// An error of a datagram that was taken before: told at the next send.
    late_error: Option<HostError>,
    /// `true` if a datagram has left. Until then each is sent at once, so that what hinders all is told at once.
    proven: bool,
    /// `true` if a message that is received may hold several datagrams.
    pub merged: bool,
    /// `true` if fragments are forbidden.
    whole: bool,
    /// `true` if the app has closed it, and what the app has sent still waits for the kernel.
    pub closing: bool,
    /// Datagrams that the kernel has dropped for lack of room, modulo 2^32, as last told to the app.
    pub dropped: u32,
    /// The times when datagrams went to the interface, which the app has not asked for yet; `None` where they are not
    /// stamped.
    departures: Option<Vec<Time>>,
    /// Errors of datagrams sent earlier that the app was not told of yet.
    returned: Vec<(HostError, u64)>,
}

/// Departures of a socket that are kept.
const MOST_DEPARTURES: usize = 4096;

impl Socket {
    /// Reads the error queue.
    fn read_errors(&mut self, clock: LabClock) {
        let told = error_queue::read(self.fd.as_fd());
        self.returned.extend(told.returned);
        let Some(departures) = self.departures.as_mut().filter(|_| !told.left.is_empty()) else { return };
        let times = ArrivalClock::read(clock, None, Time::ZERO);
        let room = MOST_DEPARTURES.saturating_sub(departures.len());
        departures.extend(told.left.into_iter().take(room).map(|stamp| times.at(stamp)));
    }
}

/// All sockets.
pub struct Sockets {
    namespaces: Namespaces,
    /// Waits for them.
    pub poller: Poller,
    /// Buffers for datagrams.
    pub buffers: Buffers,
    table: FxHashMap<u32, Socket>,
    next: u32,
    next_identifier: u16,
    /// Sockets whose turn will come, each once.
    turns: std::collections::VecDeque<u32>,
    /// UDP sockets with datagrams that were not offered to the kernel yet.
    unflushed: Vec<u32>,
    receive_budget: u64,
    send_budget: u64,
    /// `true` if senders are told of datagrams that come back (ICMP).
    tell_returned: bool,
    clock: LabClock,
}

impl Sockets {
    /// No sockets. `tell_returned`: whether senders are told of datagrams that come back.
    pub fn new(namespaces: Namespaces, poller: Poller, clock: LabClock, tell_returned: bool) -> Self {
        Self {
            namespaces,
            poller,
            buffers: Buffers::new(),
            table: FxHashMap::default(),
            next: 1,
            next_identifier: 1,
            turns: std::collections::VecDeque::new(),
            unflushed: Vec::new(),
            receive_budget: 0,
            send_budget: 0,
            tell_returned,
            clock,
        }
    }

    /// A socket by number.
    pub fn get(&mut self, socket: u32) -> Option<&mut Socket> {
        self.table.get_mut(&socket)
    }

    /// A socket with the shared buffers, for receiving.
    pub fn with_buffers(&mut self, socket: u32) -> Option<(&mut Socket, &mut Buffers)> {
        Some((self.table.get_mut(&socket)?, &mut self.buffers))
    }

    /// Gives a socket a turn for `what` (bits of [`ready`]).
    pub fn schedule(&mut self, socket: u32, what: u8) {
        if let Some(entry) = self.table.get_mut(&socket) {
            entry.pending |= what;
            if !std::mem::replace(&mut entry.queued, true) {
                self.turns.push_back(socket);
            }
        }
    }

    /// The next socket whose turn it is, with what is to be done.
    pub fn next_turn(&mut self) -> Option<(u32, u8)> {
        while let Some(socket) = self.turns.pop_front() {
            if let Some(entry) = self.table.get_mut(&socket) {
                entry.queued = false;
                return Some((socket, std::mem::take(&mut entry.pending)));
            }
        }
        None
    }

    /// Sockets that wait for their turn.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Takes a descriptor in.
    pub fn insert(&mut self, fd: OwnedFd, app: u32, kind: Kind) -> io::Result<u32> {
        let (events, urgency) = match kind {
            Kind::Udp(_) => (DATAGRAM_EVENTS, Urgency::Bulk),
            Kind::Icmp { .. } | Kind::Listener => (DATAGRAM_EVENTS, Urgency::Urgent),
            Kind::Connecting | Kind::Stream { .. } => (STREAM_EVENTS, Urgency::Urgent),
        };
        while self.next == 0 || self.table.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.poller.add(fd.as_fd(), number, events, urgency)?;
        let socket = Socket {
            fd,
            app,
            kind,
            addresses: None,
            pending: 0,
            queued: false,
            urgency,
            events,
            late_error: None,
            proven: false,
            merged: false,
            whole: false,
            closing: false,
            dropped: 0,
            departures: None,
            returned: Vec::new(),
        };
        self.table.insert(number, socket);
        Ok(number)
    }

    /// What came back of datagrams of a socket and was not told yet, with the number of times.
    pub fn take_returned(&mut self, socket: u32) -> Vec<(HostError, u64)> {
        let Some(entry) = self.table.get_mut(&socket) else { return Vec::new() };
        entry.read_errors(self.clock);
        std::mem::take(&mut entry.returned)
    }

    /// Closes a socket; whose it was.
    pub fn remove(&mut self, socket: u32) -> Option<u32> {
        self.table.remove(&socket).map(|socket| socket.app)
    }

    /// Closes all sockets of an app, but for those that only wait for the kernel to take what was sent.
    pub fn remove_all_of(&mut self, app: u32) {
        self.table.retain(|_, socket| socket.app != app || socket.closing);
    }

    /// The UDP sockets of an app that had no room for datagrams which no later one told of, and how many.
    pub fn take_overflows(&mut self, app: u32) -> Vec<(u32, u64)> {
        let of = |(number, socket): (&u32, &mut Socket)| {
            if socket.app != app || !matches!(socket.kind, Kind::Udp(_)) {
                return None;
            }
            let dropped = system::overflowed(socket.fd.as_fd())?;
            let datagrams = dropped.wrapping_sub(std::mem::replace(&mut socket.dropped, dropped));
            (datagrams > 0).then_some((*number, u64::from(datagrams)))
        };
        self.table.iter_mut().filter_map(of).collect()
    }

    /// Returns `true` if datagrams of an app wait for the kernel.
    pub fn has_unsent(&self, app: u32) -> bool {
        self.table
            .values()
            .any(|socket| socket.app == app && matches!(&socket.kind, Kind::Udp(queue) if !queue.is_empty()))
    }

    /// Offers all waiting datagrams of an app's last call to the kernel.
    pub fn flush(&mut self) {
        while let Some(socket) = self.unflushed.pop() {
            self.flush_one(socket);
        }
    }

    /// Offers a socket's datagrams to the kernel, and has it watched for room when it does not take all.
    pub fn flush_one(&mut self, number: u32) {
        let Some(socket) = self.table.get_mut(&number) else { return };
        let Kind::Udp(queue) = &mut socket.kind else { return };
        let (late_error, whole) = (&mut socket.late_error, socket.whole);
        let flushed = self.buffers.flush(socket.fd.as_fd(), queue, |error, to, length| {
            *late_error = Some(match error.raw_os_error() {
                Some(libc::EMSGSIZE) if whole => HostError::WouldFragment(length),
                Some(libc::EMSGSIZE) => HostError::TooLong(length),
                _ => system::host_error(error, Some(to)),
            });
        });
        let events = match flushed {
            Flushed::All if socket.closing => {
                self.table.remove(&number);
                return;
            }
            Flushed::All => DATAGRAM_EVENTS,
            Flushed::Waiting => DATAGRAM_EVENTS | libc::EPOLLOUT,
        };
        // Watching for room is only for those that lack it: the kernel tells of room after every datagram sent.
        if events != socket.events && self.poller.modify(socket.fd.as_fd(), number, events, socket.urgency).is_ok() {
            socket.events = events;
        }
    }

    /// Returns what an app sees of its host during one call, with a fresh budget.
    pub fn view<'a>(&'a mut self, app: u32, host: usize, random: &'a mut Pcg64Mcg) -> HostView<'a> {
        self.receive_budget = BUDGET;
        self.send_budget = BUDGET;
        HostView { sockets: self, app, host, random }
    }
}

/// A host as one of its apps sees it.
pub struct HostView<'a> {
    sockets: &'a mut Sockets,
    app: u32,
    host: usize,
    random: &'a mut Pcg64Mcg,
}

impl HostView<'_> {
    fn open(&mut self, v6: bool, kind: c_int, protocol: c_int) -> Result<OwnedFd, HostError> {
        self.sockets
            .namespaces
            .enter(self.host)
            .map_err(|error| HostError::Other(format!("the host's network namespace cannot be entered: {error}")))?;
        system::socket(v6, kind, protocol).map_err(|error| system::host_error(&error, None))
    }

    fn keep(&mut self, fd: OwnedFd, kind: Kind) -> Result<SocketId, HostError> {
        let kept = self.sockets.insert(fd, self.app, kind);
        kept.map(SocketId).map_err(|error| system::host_error(&error, None))
    }

    fn mine(&mut self, socket: SocketId) -> Result<&mut Socket, HostError> {
        let app = self.app;
        self.sockets
            .table
            .get_mut(&socket.0)
            .filter(|socket| socket.app == app && !socket.closing)
            .ok_or(HostError::NoSuchSocket)
    }

    /// One receiving call on a stream: `call` with the bytes that the budget leaves of `most`.
    fn receive_with(
        &mut self,
        socket: SocketId,
        most: u64,
        call: impl FnOnce(&Socket, usize) -> io::Result<usize>,
    ) -> Result<Option<usize>, HostError> {
        let allowed = most.min(self.sockets.receive_budget);
        let entry = self.mine(socket)?;
        if allowed == 0 && most > 0 {
            self.sockets.schedule(socket.0, ready::READ);
            return Ok(None);
        }
        match call(entry, usize::try_from(allowed).unwrap_or(usize::MAX)) {
            Ok(length) => {
                self.sockets.receive_budget = self.sockets.receive_budget.saturating_sub(length as u64);
                Ok(Some(length))
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => Ok(None),
            Err(error) => Err(system::host_error(&error, None)),
        }
    }

    /// Sends filler until the kernel takes no more or the budget is used up.
    fn send_filler(&mut self, socket: SocketId, length: u64) -> Result<u64, HostError> {
        let budget = self.sockets.send_budget;
        let entry = self.mine(socket)?;
        let mut taken = 0;
        let mut used_up = false;
        while taken < length {
            if taken >= budget {
                used_up = true;
                break;
            }
            let piece = usize::try_from(length - taken).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
            match system::send(entry.fd.as_fd(), &ZEROS[..piece]) {
                Ok(sent) => {
                    taken += sent as u64;
                    if sent < piece {
                        break;
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => break,
                Err(error) => return Err(system::host_error(&error, None)),
            }
        }
        if let Kind::Stream { blocked } = &mut entry.kind {
            *blocked = taken < length;
        }
        self.sockets.send_budget = budget.saturating_sub(taken);
        if used_up {
            self.sockets.schedule(socket.0, ready::WRITE);
        }
        Ok(taken)
    }
}

/// Sets the code point of all that a socket will send.
fn mark(fd: BorrowedFd<'_>, v6: bool, dscp: u8) -> Result<(), HostError> {
    // RFC 2474: the upper six bits of what was the type of service; the lower two are for ECN.
    let class = c_int::from(dscp) << 2;
    let (level, name) = if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
    system::set_option(fd, level, name, class).map_err(|error| system::host_error(&error, None))
}

impl Host for HostView<'_> {
    fn udp_bind(&mut self, port: u16, v6: bool) -> Result<SocketId, HostError> {
        let fd = self.open(v6, libc::SOCK_DGRAM, 0)?;
        let socket = fd.as_fd();
        let to_send = if self.sockets.tell_returned { UDP_BUFFER } else { UDP_SEND_BUFFER };
        for (privileged, ordinary, bytes) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, UDP_BUFFER), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, to_send)]
        {
            // Without the privilege the host's own limit holds (net.core.rmem_max); both are wishes.
            let _ = system::set_option(socket, libc::SOL_SOCKET, privileged, bytes)
                .or_else(|_| system::set_option(socket, libc::SOL_SOCKET, ordinary, bytes));
        }
        let bound = (|| {
            system::set_option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
            system::set_option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
            if v6 {
                system::set_option::<c_int>(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
            }
            if self.sockets.tell_returned {
                let (level, name) =
                    if v6 { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) } else { (libc::IPPROTO_IP, libc::IP_RECVERR) };
                system::set_option::<c_int>(socket, level, name, 1)?;
            }
            system::bind_any(socket, v6, port)
        })();
        bound.map_err(|error| system::host_error(&error, Some(system::any_address(v6, port))))?;
        let local = system::local_address(socket);
        // In a lab what comes as one message left the fabric as one train. On the machine itself the kernel would
        // gather what a real interface received one by one, and there would be one stamp for all.
        let merged = !self.sockets.tell_returned
            && system::set_option::<c_int>(fd.as_fd(), libc::IPPROTO_UDP, datagrams::UDP_GRO, 1).is_ok();
        let id = self.keep(fd, Kind::Udp(SendQueue::default()))?;
        self.mine(id)?.merged = merged;
        self.mine(id)?.addresses = local.map(|local| (local, system::any_address(v6, 0)));
        Ok(id)
    }

    fn udp_send(&mut self, socket: SocketId, to: SocketAddr, datagram: Chunk<'_>) -> Result<(), HostError> {
        if matches!(&self.mine(socket)?.kind, Kind::Udp(queue) if queue.is_refused()) {
            // The send buffer was full: as with a socket of its own, the app is told so unless there is room now.
            self.sockets.flush_one(socket.0);
        }
        let entry = self.mine(socket)?;
        if let Some(error) = entry.late_error.take() {
            return Err(error);
        }
        let Kind::Udp(queue) = &mut entry.kind else { return Err(HostError::NoSuchSocket) };
        if queue.is_refused() {
            return Err(HostError::Full);
        }
        let was_empty = queue.is_empty();
        if !queue.push(to, datagram).map_err(HostError::TooLong)? {
            return Err(HostError::Full);
        }
        if !entry.proven {
            self.sockets.flush_one(socket.0);
            let entry = self.mine(socket)?;
            let refusal = entry.late_error.take();
            entry.proven = refusal.is_none();
            return refusal.map_or(Ok(()), Err);
        }
        if was_empty {
            self.sockets.unflushed.push(socket.0);
        }
        Ok(())
    }

    fn flush(&mut self, socket: SocketId) -> Option<Handover> {
        self.mine(socket).ok()?;
        let clock = self.sockets.clock;
        let begun = clock.now();
        self.sockets.flush_one(socket.0);
        let ended = clock.now();
        if let Ok(entry) = self.mine(socket) {
            // Most interfaces stamp a datagram before the call returns. Read now, the stamp wakes nobody.
            if entry.departures.is_some() {
                entry.read_errors(clock);
                if !entry.returned.is_empty() {
                    self.sockets.schedule(socket.0, ready::ERROR);
                }
            }
        }
        Some(Handover { begun, ended })
    }

    fn stamp_departures(&mut self, socket: SocketId) -> bool {
        let Ok(entry) = self.mine(socket) else { return false };
        let stamped = error_queue::stamp_departures(entry.fd.as_fd()).is_ok();
        entry.departures = stamped.then(Vec::new);
        stamped
    }

    fn departures(&mut self, socket: SocketId) -> Vec<Time> {
        let clock = self.sockets.clock;
        let Ok(entry) = self.mine(socket) else { return Vec::new() };
        if entry.departures.is_some() {
            entry.read_errors(clock);
        }
        entry.departures.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn returned(&mut self, socket: SocketId) -> Vec<(HostError, u64)> {
        if !self.sockets.tell_returned || self.mine(socket).is_err() {
            return Vec::new();
        }
        self.sockets.flush_one(socket.0);
        self.sockets.take_returned(socket.0)
    }

    fn forbid_fragments(&mut self, socket: SocketId) -> Result<(), HostError> {
        let entry = self.mine(socket)?;
        let v6 = matches!(entry.addresses, Some((SocketAddr::V6(_), _)));
        let (level, name, value) = if v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
        } else {
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
        };
        entry.whole = true;
        system::set_option(entry.fd.as_fd(), level, name, value)
            .and_then(|()| match v6 {
                // IPv6 fragments at the source: that, too, is forbidden.
                true => system::set_option::<c_int>(entry.fd.as_fd(), level, libc::IPV6_DONTFRAG, 1),
                false => Ok(()),
            })
            .map_err(|error| system::host_error(&error, None))
    }

    fn set_dscp(&mut self, socket: SocketId, dscp: u8) -> Result<(), HostError> {
        let entry = self.mine(socket)?;
        let v6 = match entry.kind {
            Kind::Icmp { v6, .. } => v6,
            _ => matches!(entry.addresses, Some((SocketAddr::V6(_), _))),
        };
        mark(entry.fd.as_fd(), v6, dscp)
    }

    fn set_hop_limit(&mut self, socket: SocketId, hops: u8) -> Result<(), HostError> {
        let entry = self.mine(socket)?;
        let (level, name) = match entry.addresses {
            Some((SocketAddr::V6(_), _)) => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
            _ => (libc::IPPROTO_IP, libc::IP_TTL),
        };
        system::set_option(entry.fd.as_fd(), level, name, c_int::from(hops.max(1)))
            .map_err(|error| system::host_error(&error, None))
    }

    fn icmp_open(&mut self, v6: bool) -> Result<SocketId, HostError> {
        let protocol = if v6 { libc::IPPROTO_ICMPV6 } else { libc::IPPROTO_ICMP };
        let fd = self.open(v6, libc::SOCK_RAW, protocol).map_err(|error| match error {
            HostError::Other(told) if self.sockets.tell_returned => HostError::Other(format!(
                "ICMP echo needs the right to open raw sockets ({told}): run twinnet as root, or send from a lab"
            )),
            error => error,
        })?;
        icmp::only_echo_replies(fd.as_fd(), v6).map_err(|error| system::host_error(&error, None))?;
        system::set_option::<c_int>(fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
            .map_err(|error| system::host_error(&error, None))?;
        let identifier = self.sockets.next_identifier;
        self.sockets.next_identifier = identifier.wrapping_add(1);
        self.keep(fd, Kind::Icmp { v6, identifier })
    }

    fn icmp_send(&mut self, socket: SocketId, to: SocketAddr, message: Chunk<'_>) -> Result<(), HostError> {
        datagrams::fits(message).map_err(HostError::TooLong)?;
        let entry = self.mine(socket)?;
        let Kind::Icmp { v6, identifier } = entry.kind else { return Err(HostError::NoSuchSocket) };
        let bytes = icmp::complete(message, identifier, v6);
        match system::send_to(entry.fd.as_fd(), &bytes, to) {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => Err(HostError::TooLong(bytes.len())),
            Err(error) => Err(system::host_error(&error, Some(to))),
        }
    }

    fn tcp_listen(&mut self, port: u16, v6: bool) -> Result<SocketId, HostError> {
        let fd = self.open(v6, libc::SOCK_STREAM, 0)?;
        let listening = (|| {
            system::set_option::<c_int>(fd.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
            if v6 {
                system::set_option::<c_int>(fd.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
            }
            system::bind_any(fd.as_fd(), v6, port)?;
            system::listen(fd.as_fd())
        })();
        listening.map_err(|error| system::host_error(&error, Some(system::any_address(v6, port))))?;
        let local = system::local_address(fd.as_fd());
        let id = self.keep(fd, Kind::Listener)?;
        self.mine(id)?.addresses = local.map(|local| (local, system::any_address(v6, 0)));
        Ok(id)
    }

    fn tcp_connect(&mut self, to: SocketAddr) -> Result<SocketId, HostError> {
        self.tcp_connect_marked(to, 0)
    }

    fn tcp_connect_marked(&mut self, to: SocketAddr, dscp: u8) -> Result<SocketId, HostError> {
        let fd = self.open(to.is_ipv6(), libc::SOCK_STREAM, 0)?;
        if dscp != 0 {
            mark(fd.as_fd(), to.is_ipv6(), dscp)?;
        }
        system::set_option::<c_int>(fd.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
            .and_then(|()| system::connect(fd.as_fd(), to))
            .map_err(|error| system::host_error(&error, Some(to)))?;
        self.keep(fd, Kind::Connecting)
    }

    fn set_congestion_control(&mut self, socket: SocketId, name: &str) -> Result<(), HostError> {
        let entry = self.mine(socket)?;
        system::set_text_option(entry.fd.as_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name).map_err(|error| {
            HostError::Other(format!(
                "the congestion control {name:?} is refused ({error}); `twinnet doctor` lists what this kernel has"
            ))
        })
    }

    fn tcp_send(&mut self, socket: SocketId, chunk: Chunk<'_>) -> Result<u64, HostError> {
        let (bytes, filler) = match chunk {
            Chunk::Bytes(bytes) => (bytes, 0),
            Chunk::Padded(bytes, padding) => (bytes, u64::from(padding)),
            Chunk::Filler(length) => (&[][..], length),
        };
        if bytes.is_empty() {
            return self.send_filler(socket, filler);
        }
        let entry = self.mine(socket)?;
        let taken = match system::send(entry.fd.as_fd(), bytes) {
            Ok(taken) => taken,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => 0,
            Err(error) => return Err(system::host_error(&error, None)),
        };
        if let Kind::Stream { blocked } = &mut entry.kind {
            *blocked = taken < bytes.len();
        }
        if taken < bytes.len() || filler == 0 {
            return Ok(taken as u64);
        }
        Ok(taken as u64 + self.send_filler(socket, filler)?)
    }

    fn tcp_receive(&mut self, socket: SocketId, buffer: &mut [u8]) -> Result<Option<usize>, HostError> {
        self.receive_with(socket, buffer.len() as u64, |entry, allowed| {
            system::receive(entry.fd.as_fd(), &mut buffer[..allowed])
        })
    }

    fn tcp_discard(&mut self, socket: SocketId, most: u64) -> Result<Option<u64>, HostError> {
        if most >= BULK_DISCARD {
            let entry = self.mine(socket)?;
            if entry.urgency == Urgency::Urgent && matches!(entry.kind, Kind::Stream { .. }) {
                entry.urgency = Urgency::Bulk;
                let entry = &self.sockets.table[&socket.0];
                let moved = self.sockets.poller.make_bulk(entry.fd.as_fd(), socket.0, entry.events);
                moved.map_err(|error| system::host_error(&error, None))?;
            }
        }
        let received = self.receive_with(socket, most, |entry, allowed| system::discard(entry.fd.as_fd(), allowed))?;
        Ok(received.map(|length| length as u64))
    }

    fn tcp_finish(&mut self, socket: SocketId) {
        if let Ok(entry) = self.mine(socket) {
            // A connection that is gone already is told by its own event.
            let _ = system::shutdown_send(entry.fd.as_fd());
        }
    }

    fn addresses(&self, socket: SocketId) -> Option<(SocketAddr, SocketAddr)> {
        self.sockets.table.get(&socket.0).filter(|entry| entry.app == self.app)?.addresses
    }

    fn tcp_info(&mut self, socket: SocketId) -> Option<TcpInfo> {
        let entry = self.mine(socket).ok()?;
        if !matches!(entry.kind, Kind::Stream { .. }) {
            return None;
        }
        system::tcp_info(entry.fd.as_fd()).ok()
    }

    fn close(&mut self, socket: SocketId) {
        if self.mine(socket).is_err() {
            return;
        }
        self.sockets.flush_one(socket.0);
        match self.sockets.get(socket.0) {
            Some(entry) if matches!(&entry.kind, Kind::Udp(queue) if !queue.is_empty()) => entry.closing = true,
            _ => drop(self.sockets.remove(socket.0)),
        }
    }

    fn random(&mut self) -> u64 {
        self.random.next_u64()
    }
}
