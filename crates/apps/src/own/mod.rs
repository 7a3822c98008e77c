//! Applications that whoever runs the lab brings along: what they do is a [`Behaviour`], found by name. The app around
//! it has the sockets, marks what it sends as our datagrams are marked, and counts.

mod connections;
mod sink;
mod source;
mod tcp_sink;
mod tcp_source;

use std::sync::Arc;

use twinnet_units::{Brought, Time};

use crate::check::{check_range, ConfigError};
use crate::udp::header::{Header, Stamp, FULL_LENGTH};
use crate::{Chunk, Host, HostError, SocketId};

pub use connections::{Act, News};
pub use sink::{OwnSink, OwnSinkConfig};
pub use source::{OwnSource, OwnSourceConfig};
pub use tcp_sink::{OwnTcpSink, OwnTcpSinkConfig};
pub use tcp_source::{OwnTcpSource, OwnTcpSourceConfig};

/// The longest payload of a datagram over IPv4.
const LONGEST: usize = 65_507;
/// The longest name of an application.
const LONGEST_NAME: u64 = 15;

/// What an application is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told<'a> {
    /// It begins.
    Start {
        /// Whether it is the end that the flow begins at.
        sends: bool,
        /// Whether it has connections, and not datagrams.
        tcp: bool,
        /// The seed of what it draws by chance.
        seed: u64,
    },
    /// The moment that it wanted has come.
    Timer,
    /// It ends: its time is over, or the lab asks it to.
    Stop,
    /// The other end sent a datagram.
    Datagram {
        /// The flow's number.
        flow: u32,
        /// What the other end wrote.
        bytes: &'a [u8],
        /// The whole payload in bytes.
        length: usize,
        /// When it was sent.
        sent: Option<Time>,
    },
    /// Something happened to a connection.
    Connection(&'a News),
}

/// What an application wants next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Datagrams to send now: what they say, and the length of the whole payload.
    pub datagrams: Vec<(Vec<u8>, u32)>,
    /// What it wants of its connections, in this order.
    pub acts: Vec<Act>,
    /// When it wants [`Told::Timer`]; later than now.
    pub wake: Option<Time>,
    /// It has nothing more to do.
    pub finished: bool,
    /// Why it cannot go on.
    pub failed: Option<String>,
}

/// One end of an application. It is told what happens, in the order in which it does, and says what it wants; what it
/// wanted before holds no longer then.
pub trait Behaviour: Send {
    /// Told something at `now`.
    fn tell(&mut self, now: Time, told: &Told<'_>) -> Wishes;
}

/// Makes one end from its settings, which are JSON.
pub type Start = dyn Fn(&str) -> Box<dyn Behaviour> + Send + Sync;

static KNOWN: Brought<Start> = Brought::new();

/// Makes the application `name` known in this process; one of that name is replaced.
pub fn register(name: &str, start: Arc<Start>) {
    KNOWN.add(name, start);
}

/// One end of the application `name`; `None` when there is none.
fn start(name: &str, settings: &str) -> Option<Box<dyn Behaviour>> {
    KNOWN.find(name).map(|start| start(settings))
}

fn unknown(name: &str) -> String {
    format!("the application {name:?} is not known in this process")
}

fn restless(name: &str) -> String {
    format!("{name} asked for more than {} things at one moment: it does not come to rest", connections::MOST_NEWS)
}

/// Refuses a name that is none.
pub(crate) fn check_name(kind: &'static str, name: &str) -> Result<(), ConfigError> {
    check_range(kind, "code", name.len() as u64, 1, LONGEST_NAME)
}

/// Sends one datagram with our header before what the application wrote.
fn send(
    host: &mut dyn Host,
    socket: SocketId,
    to: std::net::SocketAddr,
    (sequence, flow, now): (u32, u32, Time),
    (bytes, length): &(Vec<u8>, u32),
) -> Result<usize, HostError> {
    let whole = (*length as usize).max(FULL_LENGTH + bytes.len());
    if whole > LONGEST {
        return Err(HostError::TooLong(whole));
    }
    let mut begin = Header { sequence, flow, sent: Some(Stamp(now.as_ns())) }.emit().to_vec();
    begin.extend_from_slice(bytes);
    let padding = u32::try_from(whole - begin.len()).unwrap_or_default();
    host.udp_send(socket, to, Chunk::Padded(&begin, padding)).map(|()| whole)
}

/// What a datagram tells an application; `None` when it is none of ours.
fn told(bytes: &[u8], length: usize) -> Option<Told<'_>> {
    let header = Header::parse(bytes)?;
    let sent = header.sent.map(|sent| Time::from_ns(sent.0));
    Some(Told::Datagram { flow: header.flow, bytes: bytes.get(FULL_LENGTH..).unwrap_or_default(), length, sent })
}
