//! Guests: kernels of their own in virtual time, in which the real hosts of a lab on the virtual clock live.
//!
//! The lab is the only owner of virtual time, and a guest is one participant of it: it runs when it is told to, until
//! it has nothing to do or something to send. This is all that the lab asks of it. Nothing here does I/O: the crate
//! `linux` has the one guest that there is.

mod driven;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use super::error::LabError;
use super::network::{HostSpec, NetworkSpec, NodeSpec};

pub(super) use driven::{hash_of, GuestHosts};

/// The way a turn of a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It waits, until [`Guest::wants`] or until something reaches it.
    Waits,
    /// An interface has something to send, at this moment; the guest stands still until it is resumed.
    Sends {
        /// The interface.
        port: usize,
        /// The moment.
        at: Time,
    },
    /// It has not ended yet: resume it again.
    Goes,
}

/// A guest as the lab drives it.
///
/// Who calls it: the lab, and no one else. [`resume`](Self::resume) gives it the turn; until that says
/// [`Turn::Waits`], nothing but [`pull`](Self::pull) and another `resume` may be called. While it waits,
/// [`deliver`](Self::deliver), [`pull`](Self::pull), [`carrier`](Self::carrier) and the calls about programs only note
/// what they are given; [`settle`](Self::settle) lets the guest know all of it at one moment. Times are the lab's, and
/// never go back. Interfaces are numbered as [`interfaces`] lists them.
///
/// Equal descriptions, seeds and calls at equal moments give equal frames at equal moments, whatever real time it is.
/// After an error the guest is gone, and every call gives the same error again.
pub trait Guest: Send {
    /// The moment at which it wants to go on by itself; `None`: only when something reaches it.
    fn wants(&self) -> Option<Time>;

    /// The moment that it has come to at the most; it tells exactly only when it has something to tell.
    fn reached(&self) -> Time;

    /// The calling thread is about to drive it, until [`rests`](Self::rests).
    fn begins(&mut self) {}

    /// The calling thread stops driving it, for now.
    fn rests(&mut self) {}

    /// Gives it the turn at `at`, or lets it go on where it has it. It may go on by itself to moments before `until`.
    ///
    /// # Errors
    /// `GuestEnded`, `ProgramSpins`.
    fn resume(&mut self, at: Time, until: Time) -> Result<Turn, LabError>;

    /// Lets it know what has come since the last turn, at `at`.
    ///
    /// # Errors
    /// `GuestEnded`.
    fn settle(&mut self, at: Time) -> Result<(), LabError>;

    /// `frame` has arrived at the interface `port`.
    fn deliver(&mut self, port: usize, frame: Box<Frame>);

    /// The frame before has left `port`: gives its memory back, and returns the next one that waits.
    fn pull(&mut self, port: usize) -> Option<Box<Frame>>;

    /// The link at `port` went up or down.
    fn carrier(&mut self, port: usize, up: bool);

    /// Orders a program.
    fn order(&mut self, order: ProgramOrder);

    /// Takes what programs have done since it was last asked, in order.
    fn take_news(&mut self) -> Vec<News>;

    /// Returns `true` if there is any.
    fn has_news(&self) -> bool;
}

/// An order about a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramOrder {
    /// Start one.
    Start(Program),
    /// Give its standard input these bytes.
    Feed {
        /// Its number.
        job: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Close its standard input.
    Close {
        /// Its number.
        job: u64,
    },
    /// Its terminal has another size.
    Resize {
        /// Its number.
        job: u64,
        /// The size.
        size: TerminalSize,
    },
    /// Send a signal to its process group.
    Signal {
        /// Its number.
        job: u64,
        /// The signal's number.
        signal: i32,
    },
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its number.
    pub job: u64,
    /// The host.
    pub host: String,
    /// The program, by path or by name on `PATH`, and its arguments.
    pub argv: Vec<String>,
    /// The whole environment; `None`: the fixed one of guests.
    pub env: Option<BTreeMap<String, String>>,
    /// The working directory; `None`: that of the lab's owner.
    pub cwd: Option<String>,
    /// Where its input comes from.
    pub input: Input,
    /// The time after which its process group is ended.
    pub limit: Option<Duration>,
}

/// Where a program's input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// There is none.
    Empty,
    /// From [`ProgramOrder::Feed`].
    Fed,
    /// From a terminal, where it writes, too: what [`ProgramOrder::Feed`] gives is typed there, and
    /// [`ProgramOrder::Close`] hangs up.
    Terminal(TerminalSize),
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in each.
    pub columns: u16,
}

/// The outcome of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Its exit status, when it exited.
    pub status: Option<i32>,
    /// The signal that ended it otherwise.
    pub signal: Option<i32>,
    /// `true` if it was ended because its time was over.
    pub limit: bool,
    /// The virtual time that it ran, in nanoseconds.
    pub elapsed_ns: u64,
}

/// A stream that a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
}

/// What a program has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It runs, with this number among the processes of its host.
    Started {
        /// The program.
        job: u64,
        /// Its process.
        pid: i32,
    },
    /// It could not be started.
    Refused {
        /// The program.
        job: u64,
        /// Why.
        error: LabError,
    },
    /// It wrote.
    Wrote {
        /// The program.
        job: u64,
        /// Where.
        stream: Stream,
        /// What.
        bytes: Vec<u8>,
    },
    /// It has ended, and has written all.
    Ended {
        /// The program.
        job: u64,
        /// How.
        how: Ended,
    },
}

/// The hosts of a network that live in a guest: those that are not described as models.
pub fn hosts(network: &NetworkSpec) -> impl Iterator<Item = &HostSpec> {
    network.nodes.iter().filter_map(|node| match node {
        NodeSpec::Host(host) if !host.model => Some(host),
        _ => None,
    })
}

/// The interfaces of a guest's hosts in the order of their numbers: the host, and the index of the port there.
pub fn interfaces(network: &NetworkSpec) -> impl Iterator<Item = (&HostSpec, usize)> {
    hosts(network).flat_map(|host| (0..host.ports.len()).map(move |port| (host, port)))
}
