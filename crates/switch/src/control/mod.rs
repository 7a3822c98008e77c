//! The OpenFlow agent of a switch: bytes from its controllers in, bytes to them out, and the time. No I/O.
//!
//! Every message takes full effect before the next one is looked at, and before the switch gets its next frame: a
//! barrier is answered where it stands in the stream, and what arrives after its reply meets the new state.

mod actions;
#[cfg(test)]
mod any_bytes;
#[cfg(test)]
mod bounds_tests;
mod buffers;
mod changes;
mod connection;
#[cfg(test)]
mod extension_tests;
pub(super) mod extensions;
pub(super) mod fields;
mod log;
pub(super) mod numbers;
#[cfg(test)]
mod read_back;
mod roles;
mod statistics;
mod table_features;
mod table_limits;
mod tell;
pub mod text;
pub mod text_v10;
mod v10_messages;
mod v10_statistics;
mod v13_messages;

#[cfg(test)]
mod tests;

pub use log::{Message, Messages};
pub use numbers::from_narrow;

use std::collections::BTreeMap;

use serde::Serialize;
use twinnet_openflow::v13::{table_number, Role};
use twinnet_openflow::{v10, v13, FramingError};
use twinnet_queue::ClassRates;
use twinnet_units::{impossible, Duration, Time};

use super::translate::Miss;
use super::{FailMode, Output, Switch};
use buffers::Buffers;
use connection::Connection;
use table_limits::TableLimits;

/// A hello or an error (`ofp_type` 0 and 1), which confirm no version.
fn is_greeting_or_error(message: &[u8]) -> bool {
    matches!(message.get(1), Some(0 | 1))
}

/// Silence after which a controller is probed, and after which, unanswered, it counts as gone.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes that may wait for a controller before frames for it are dropped.
const CROWDED_BYTES: usize = 1 << 20;
/// Tables of the pipeline.
pub(super) const TABLES: u8 = table_number::MAX + 1;

/// The traffic that passed a port, as OpenFlow counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTraffic {
    /// Frames that arrived.
    pub received_frames: u64,
    /// Their bytes at the link layer.
    pub received_bytes: u64,
    /// Frames that arrived and went no further.
    pub received_dropped: u64,
    /// Frames that were sent.
    pub sent_frames: u64,
    /// Their bytes at the link layer.
    pub sent_bytes: u64,
    /// Frames that were to be sent and could not be.
    pub sent_dropped: u64,
}

/// The known facts of a port's line.
#[derive(Clone, Debug, Default)]
pub struct PortFacts {
    /// The traffic that passed it.
    pub traffic: PortTraffic,
    /// Its line rate.
    pub rate_bps: Option<u64>,
    /// Counters of the classes of its queue discipline, as JSON.
    pub classes: serde_json::Value,
    /// The rates that the classes of its queue discipline are promised.
    pub rates: Vec<ClassRates>,
    /// The time when it began to exist.
    pub since: Time,
}

/// The questions that the agent asks of the links at its switch.
pub trait Lines {
    /// Returns the known facts of a port.
    fn facts(&self, port: u32) -> Option<PortFacts>;
}

/// The relation of a controller to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A controller: while one is connected the switch does not fall back to its fail mode.
    Controller,
    /// A tool that looks and changes (`ovs-ofctl`): it is told nothing unasked unless it wants to.
    Tool,
}

/// The state of one connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ConnectionState {
    /// Its number.
    pub connection: u64,
    /// `"1.0"`, `"1.3"`, or `null` before both sides agreed and the controller said more than its hello.
    pub version: Option<&'static str>,
    /// `"equal"`, `"master"` or `"slave"`.
    pub role: &'static str,
    /// Messages that came.
    pub messages: u64,
    /// Frames that it was sent.
    pub packet_ins: u64,
    /// Errors that it was answered.
    pub errors: u64,
}

/// The agent of one switch.
#[derive(Debug)]
pub struct Agent {
    versions: Vec<u8>,
    connections: BTreeMap<u64, Connection>,
    /// The highest generation of a role request so far.
    generation: Option<u64>,
    buffers: Buffers,
    /// The abilities that controllers want of the tables.
    tables: TableLimits,
}

impl Agent {
    /// An agent that speaks these wire versions: 1 (OpenFlow 1.0), 4 (1.3).
    #[must_use]
    pub fn new(versions: &[u8]) -> Self {
        Self {
            versions: versions.to_vec(),
            connections: BTreeMap::new(),
            generation: None,
            buffers: Buffers::default(),
            tables: TableLimits::default(),
        }
    }

    /// A connection was made: greets.
    pub fn open(&mut self, number: u64, peer: Peer, now: Time) {
        let mut connection = Connection::new(peer, now);
        connection.greet(&self.versions);
        self.connections.insert(number, connection);
    }

    /// A connection ended.
    pub fn close(&mut self, switch: &mut Switch, number: u64) {
        self.connections.remove(&number);
        self.settle(switch);
    }

    /// Bytes came. Frames that the controller sends are appended to `out`.
    pub fn receive(
        &mut self,
        switch: &mut Switch,
        number: u64,
        mut bytes: &[u8],
        lines: &dyn Lines,
        (now, out): (Time, &mut Vec<Output>),
    ) {
        let Some(mut connection) = self.connections.remove(&number) else { return };
        while connection.ending.is_none() {
            let taken = connection.framer.push(bytes);
            bytes = &bytes[taken..];
            let mut any = false;
            while connection.ending.is_none() {
                match connection.framer.next_message().map(|message| message.map(<[u8]>::to_vec)) {
                    Ok(None) => break,
                    Ok(Some(message)) => {
                        any = true;
                        connection.messages += 1;
                        connection.log.note(now, false, &message);
                        // Only whole messages are a sign of life: one that never ends would be one for ever.
                        connection.heard = now;
                        connection.probed = false;
                        self.handle(switch, &mut connection, &message, lines, (now, &mut *out));
                        // What it brought about is told before the next one is answered, a barrier perhaps.
                        if !switch.events.is_empty() {
                            self.connections.insert(number, connection);
                            self.tell(switch);
                            let Some(back) = self.connections.remove(&number) else {
                                return impossible!("a connection went while its messages were handled");
                            };
                            connection = back;
                        }
                    }
                    Err(FramingError::Version { xid, .. }) => {
                        any = true;
                        connection.refuse_version(xid);
                    }
                    Err(error @ FramingError::ShortLength { .. }) => connection.ending = Some(error.to_string()),
                }
            }
            if bytes.is_empty() || (taken == 0 && !any) {
                break;
            }
        }
        self.connections.insert(number, connection);
        self.tell(switch);
        self.settle(switch);
    }

    fn handle(
        &mut self,
        switch: &mut Switch,
        connection: &mut Connection,
        message: &[u8],
        lines: &dyn Lines,
        (now, out): (Time, &mut Vec<Output>),
    ) {
        if connection.version == 0 {
            connection.agree(message, &self.versions);
            self.settle_with(switch, connection);
            return;
        }
        connection.confirmed |= !is_greeting_or_error(message);
        let context = Context { agent: self, switch, lines, now, out };
        if connection.version == v13::VERSION {
            context.handle_v13(connection, message);
        } else {
            context.handle_v10(connection, message);
        }
    }

    /// Why the peer of a connection may have ended it, where its version was not confirmed: what both hellos offered.
    #[must_use]
    pub fn misunderstanding(&self, number: u64) -> Option<String> {
        self.connections.get(&number).and_then(Connection::misunderstanding)
    }

    /// Tells the controllers what has happened.
    pub fn tell(&mut self, switch: &mut Switch) {
        for event in switch.events.take() {
            self.tell_event(&event);
        }
    }

    /// Returns `true` if something waits to be told or sent.
    #[must_use]
    pub fn has_output(&self, switch: &Switch) -> bool {
        !switch.events.is_empty()
            || self.connections.values().any(|connection| !connection.out.is_empty() || connection.ending.is_some())
    }

    /// Returns what is to be sent, by connection; and whether the connection is to be closed then, and why.
    pub fn take_output(&mut self, now: Time) -> Vec<(u64, Vec<u8>, Option<String>)> {
        let waiting = self.connections.iter_mut().filter(|(_, one)| !one.out.is_empty() || one.ending.is_some());
        let take = |(number, one): (&u64, &mut Connection)| {
            one.log.note(now, true, &one.out);
            (*number, std::mem::take(&mut one.out), one.ending.clone())
        };
        let taken: Vec<_> = waiting.map(take).collect();
        for (number, _, ending) in &taken {
            if ending.is_some() {
                self.connections.remove(number);
            }
        }
        taken
    }

    /// Says how many bytes are on their way to a controller that it has not taken yet.
    pub fn note_backlog(&mut self, number: u64, bytes: usize) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.backlog = bytes;
        }
    }

    /// Returns the time when [`Agent::tick`] is to be called next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        // One that is given up is only waiting to be taken out.
        let kept = self.connections.values().filter(|connection| connection.ending.is_none());
        kept.map(|connection| connection.heard + connection.patience()).min()
    }

    /// Probes controllers that are silent, and gives up on those that stay so.
    pub fn tick(&mut self, now: Time) {
        for connection in self.connections.values_mut() {
            connection.tick(now);
        }
    }

    /// Returns the state of each connection.
    pub fn state(&self) -> Vec<ConnectionState> {
        self.connections.iter().map(|(number, connection)| connection.state(*number)).collect()
    }

    /// Returns what was said on a connection; `None` when it has ended.
    #[must_use]
    pub fn messages(&self, number: u64) -> Option<Messages> {
        self.connections.get(&number).map(|connection| connection.log.told())
    }

    fn settle(&mut self, switch: &mut Switch) {
        let agreed = || self.connections.values().filter(|connection| connection.version != 0);
        let controllers = || agreed().filter(|connection| connection.peer == Peer::Controller);
        let miss = match switch.config.fail_mode {
            _ if controllers().any(|connection| connection.version == v10::VERSION) => Miss::Controller,
            _ if controllers().next().is_some() => Miss::Drop,
            FailMode::Standalone => Miss::Normal,
            FailMode::Secure => Miss::Drop,
        };
        let invalid_ttl = agreed().any(Connection::wants_invalid_ttl);
        switch.events.heard = agreed().next().is_some();
        let settings = &mut switch.pipeline.settings;
        if settings.miss != miss || settings.tell_invalid_ttl != invalid_ttl {
            (settings.miss, settings.tell_invalid_ttl) = (miss, invalid_ttl);
            switch.cache.invalidate();
        }
        switch.settle_tree();
    }

    /// As [`Agent::settle`], for a connection that is just being dealt with and not in its place.
    fn settle_with(&mut self, switch: &mut Switch, connection: &Connection) {
        self.settle(switch);
        switch.events.heard |= connection.version != 0;
    }

    /// Makes the other master a slave.
    fn depose(&mut self) {
        for connection in self.connections.values_mut().filter(|connection| connection.role == Role::Master) {
            connection.role = Role::Slave;
        }
    }
}

/// All that a message may touch beside its connection.
struct Context<'a> {
    agent: &'a mut Agent,
    switch: &'a mut Switch,
    lines: &'a dyn Lines,
    now: Time,
    out: &'a mut Vec<Output>,
}
