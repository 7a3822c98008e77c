//! The TCP connections of one end of an own application: what it wants of them is done, and what happens to them waits
//! here until the application is told.
//!
//! Each connection begins with the announcement of its flow (`tcp/header.rs`), which the application does not see.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

use super::Told;
use crate::tcp::header::{Opening, StreamHeader};
use crate::{Chunk, Host, HostError, SocketId};

/// Bytes received at once.
const RECEIVED: usize = 64 * 1024;
/// What an application may be told at one moment; one that asks for more does not come to rest.
pub(super) const MOST_NEWS: usize = 100_000;

/// What an application wants of a connection, by the number that it or we gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// To connect to the other end: it is this number from now on.
    Connect(u32),
    /// To write these bytes, and then so many of any content.
    Write(u32, Vec<u8>, u64),
    /// To end its half when all is sent that was written.
    Finish(u32),
    /// To close it at once.
    Close(u32),
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It is there; with the number of its flow, 0 where it announced none.
    Connected(u32, u32),
    /// These bytes came.
    Read(u32, Vec<u8>),
    /// All that was written is with TCP: there is room for more.
    Drained(u32),
    /// The other end has ended its half.
    Ended(u32),
    /// It is no more, for this reason.
    Lost(u32, String),
}

impl News {
    pub(super) fn told(&self) -> Told<'_> {
        Told::Connection(self)
    }
}

/// What was received of one flow, to be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) flow: Option<u32>,
    pub(super) bytes: u64,
}

struct Connection {
    socket: SocketId,
    /// The two addresses where they are known.
    addresses: Option<(SocketAddr, SocketAddr)>,
    connected: bool,
    /// Written and not with TCP yet: bytes, and so many of any content after them.
    waiting: VecDeque<(Vec<u8>, u64)>,
    /// It has written something since it was last told that all is with TCP.
    wrote: bool,
    /// It wants to end its half, or has.
    finishing: bool,
    finished: bool,
    /// The other end has ended its half.
    ended: bool,
    /// Of an accepted one, the first bytes while they are needed to tell whose it is.
    opening: Option<Vec<u8>>,
    flow: Option<u32>,
    /// Bytes that came and are not counted yet: it is not known whose they are.
    uncounted: u64,
}

/// The connections.
#[derive(Default)]
pub(super) struct Connections {
    open: BTreeMap<u32, Connection>,
    numbers: HashMap<SocketId, u32>,
    accepted: u32,
    news: VecDeque<News>,
    /// Bytes that TCP took, announcements included.
    pub(super) taken: u64,
}

impl Connections {
    /// What the application is to be told next.
    pub(super) fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// `true` if none is open.
    pub(super) fn are_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// Begins the connection `number`, whose flow is `flow`.
    pub(super) fn begin(&mut self, number: u32, flow: u32, socket: Result<SocketId, HostError>) {
        match socket {
            Ok(socket) => {
                let mut made = Connection::new(socket);
                made.flow = Some(flow);
                made.waiting.push_back((StreamHeader { flow }.emit().to_vec(), 0));
                self.numbers.insert(socket, number);
                self.open.insert(number, made);
            }
            Err(error) => self.news.push_back(News::Lost(number, error.to_string())),
        }
    }

    /// The connection of `socket` is established.
    pub(super) fn establish(&mut self, socket: SocketId, host: &mut dyn Host) {
        let Some((number, connection)) = self.of(socket) else { return };
        connection.connected = true;
        connection.addresses = host.addresses(socket);
        let flow = connection.flow.unwrap_or_default();
        self.news.push_back(News::Connected(number, flow));
        self.send(number, host);
    }

    /// A peer has connected; the application is told when the flow is known.
    pub(super) fn accept(&mut self, socket: SocketId, host: &mut dyn Host) {
        self.accepted += 1;
        let mut made = Connection::new(socket);
        made.connected = true;
        made.addresses = host.addresses(socket);
        made.opening = Some(Vec::new());
        self.numbers.insert(socket, self.accepted);
        self.open.insert(self.accepted, made);
    }

    /// Does what the application wants of a connection; what it wants of one that is no more is left aside.
    pub(super) fn act(&mut self, act: Act, host: &mut dyn Host) {
        match act {
            Act::Connect(_) => {}
            Act::Write(number, bytes, filler) => {
                let Some(connection) = self.open.get_mut(&number) else { return };
                if !connection.finishing {
                    connection.waiting.push_back((bytes, filler));
                    connection.wrote = true;
                    self.send(number, host);
                }
            }
            Act::Finish(number) => {
                let Some(connection) = self.open.get_mut(&number) else { return };
                connection.finishing = true;
                self.send(number, host);
            }
            Act::Close(number) => self.close(number, host),
        }
    }

    /// Gives TCP what waits, as far as it takes it, and then ends our half where that is wanted.
    fn send(&mut self, number: u32, host: &mut dyn Host) {
        let Some(connection) = self.open.get_mut(&number) else { return };
        if !connection.connected {
            return;
        }
        while let Some((bytes, filler)) = connection.waiting.front_mut() {
            let (chunk, offered) = if bytes.is_empty() {
                (Chunk::Filler(*filler), *filler)
            } else {
                (Chunk::Bytes(bytes), bytes.len() as u64)
            };
            let taken = match host.tcp_send(connection.socket, chunk) {
                Ok(taken) => taken,
                Err(error) => return self.lose(number, error.to_string(), host),
            };
            self.taken += taken;
            if bytes.is_empty() {
                *filler -= taken;
            } else {
                bytes.drain(..taken as usize);
            }
            if bytes.is_empty() && *filler == 0 {
                connection.waiting.pop_front();
            }
            if taken < offered {
                return;
            }
        }
        if std::mem::take(&mut connection.wrote) && !connection.finishing {
            self.news.push_back(News::Drained(number));
        }
        if connection.finishing && !connection.finished {
            connection.finished = true;
            host.tcp_finish(connection.socket);
        }
        self.close_if_over(number, host);
    }

    /// There is room again.
    pub(super) fn writable(&mut self, socket: SocketId, host: &mut dyn Host) {
        if let Some(&number) = self.numbers.get(&socket) {
            self.send(number, host);
        }
    }

    /// Receives what there is; returns what is to be counted.
    pub(super) fn readable(&mut self, socket: SocketId, host: &mut dyn Host) -> Option<Received> {
        let &number = self.numbers.get(&socket)?;
        let mut buffer = vec![0; RECEIVED];
        loop {
            let connection = self.open.get_mut(&number)?;
            if connection.ended {
                return None;
            }
            match host.tcp_receive(socket, &mut buffer) {
                Ok(None) => break,
                Ok(Some(0)) => {
                    connection.ended = true;
                    if let Some(opening) = connection.opening.take() {
                        self.news.push_back(News::Connected(number, 0));
                        self.news.push_back(News::Read(number, opening));
                    }
                    self.news.push_back(News::Ended(number));
                    break;
                }
                Ok(Some(length)) => {
                    connection.uncounted += length as u64;
                    self.news.extend(connection.read(number, &buffer[..length]));
                }
                Err(error) => {
                    self.lose(number, error.to_string(), host);
                    break;
                }
            }
        }
        let received = self.open.get_mut(&number)?.received();
        self.close_if_over(number, host);
        received
    }

    /// The host says that the connection has failed; it is closed already. Gives the error back if it is none of ours.
    pub(super) fn fail(&mut self, socket: SocketId, error: HostError) -> Option<HostError> {
        let Some(number) = self.numbers.remove(&socket) else { return Some(error) };
        self.open.remove(&number);
        self.news.push_back(News::Lost(number, error.to_string()));
        None
    }

    /// Ends our half of all, without what waits: the application is over.
    pub(super) fn finish_all(&mut self, host: &mut dyn Host) {
        for number in self.open.keys().copied().collect::<Vec<_>>() {
            let Some(connection) = self.open.get_mut(&number) else { continue };
            if !connection.connected {
                self.close(number, host);
                continue;
            }
            connection.waiting.clear();
            connection.finishing = true;
            self.send(number, host);
        }
        self.news.clear();
    }

    /// Closes all.
    pub(super) fn close_all(&mut self, host: &mut dyn Host) {
        for number in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(number, host);
        }
    }

    fn of(&mut self, socket: SocketId) -> Option<(u32, &mut Connection)> {
        let &number = self.numbers.get(&socket)?;
        self.open.get_mut(&number).map(|connection| (number, connection))
    }

    fn close_if_over(&mut self, number: u32, host: &mut dyn Host) {
        if self.open.get(&number).is_some_and(|connection| connection.ended && connection.finished) {
            self.close(number, host);
        }
    }

    fn lose(&mut self, number: u32, why: String, host: &mut dyn Host) {
        self.close(number, host);
        self.news.push_back(News::Lost(number, why));
    }

    fn close(&mut self, number: u32, host: &mut dyn Host) {
        if let Some(connection) = self.open.remove(&number) {
            self.numbers.remove(&connection.socket);
            host.close(connection.socket);
        }
    }
}

impl Connection {
    fn new(socket: SocketId) -> Self {
        Self {
            socket,
            addresses: None,
            connected: false,
            waiting: VecDeque::new(),
            wrote: false,
            finishing: false,
            finished: false,
            ended: false,
            opening: None,
            flow: None,
            uncounted: 0,
        }
    }

    /// What is to be counted now.
    fn received(&mut self) -> Option<Received> {
        let (to, from) = self.addresses?;
        if self.opening.is_some() || self.uncounted == 0 {
            return None;
        }
        Some(Received { from, to, flow: self.flow, bytes: std::mem::take(&mut self.uncounted) })
    }

    /// What the application is told of bytes that came: those of the announcement are ours.
    fn read(&mut self, number: u32, bytes: &[u8]) -> Vec<News> {
        let Some(mut opening) = self.opening.take() else { return vec![News::Read(number, bytes.to_vec())] };
        opening.extend_from_slice(bytes);
        let begins = match Opening::of(&opening) {
            Opening::Partial => {
                self.opening = Some(opening);
                return Vec::new();
            }
            Opening::Ours(header) => {
                self.flow = Some(header.flow);
                crate::tcp::header::LENGTH
            }
            Opening::Foreign => 0,
        };
        let mut news = vec![News::Connected(number, self.flow.unwrap_or_default())];
        if opening.len() > begins {
            news.push(News::Read(number, opening.split_off(begins)));
        }
        news
    }
}
