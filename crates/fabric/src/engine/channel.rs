//! The messages under way between a switch and its controllers where that way takes time.

use std::collections::{BTreeMap, VecDeque};

use twinnet_units::{Duration, Time};

use super::ControlOutput;

/// The acts of a controller on a connection.
#[derive(Debug)]
pub(super) enum Said {
    Bytes(Vec<u8>),
    /// It closed the connection.
    Closed,
}

/// The control channel of a switch: both ways take `delay`, and keep their order.
#[derive(Debug, Default)]
pub(super) struct Channel {
    pub(super) delay: Duration,
    to_switch: VecDeque<(Time, u64, Said)>,
    to_controllers: VecDeque<(Time, ControlOutput)>,
    /// For each connection the bytes on their way to the controller, and those that its socket has not taken.
    backlog: BTreeMap<u64, (usize, usize)>,
    bytes_to_switch: BTreeMap<u64, usize>,
}

impl Channel {
    pub(super) fn takes_time(&self) -> bool {
        self.delay > Duration::ZERO
    }

    /// Returns the time when the next of what is under way arrives; what has arrived at controllers waits to be taken,
    /// and is not meant.
    pub(super) fn next_arrival(&self, now: Time) -> Option<Time> {
        let to_switch = self.to_switch.front().map(|(at, ..)| *at);
        let arrived = self.to_controllers.partition_point(|(at, _)| *at <= now);
        to_switch.into_iter().chain(self.to_controllers.get(arrived).map(|(at, _)| *at)).min()
    }

    pub(super) fn send_to_switch(&mut self, connection: u64, said: Said, now: Time) {
        if let Said::Bytes(bytes) = &said {
            *self.bytes_to_switch.entry(connection).or_default() += bytes.len();
        }
        self.to_switch.push_back((now + self.delay, connection, said));
    }

    /// Takes what has arrived at the switch by `now`.
    pub(super) fn arrived_at_switch(&mut self, now: Time) -> Option<(u64, Said)> {
        self.to_switch.front().filter(|(at, ..)| *at <= now)?;
        let (_, connection, said) = self.to_switch.pop_front()?;
        match &said {
            Said::Bytes(bytes) => {
                if let Some(left) = self.bytes_to_switch.get_mut(&connection) {
                    *left = left.saturating_sub(bytes.len());
                }
            }
            Said::Closed => {
                self.bytes_to_switch.remove(&connection);
                self.backlog.remove(&connection);
            }
        }
        Some((connection, said))
    }

    /// Bytes of a connection that are on their way to the switch.
    pub(super) fn on_the_way_to_switch(&self, connection: u64) -> usize {
        self.bytes_to_switch.get(&connection).copied().unwrap_or(0)
    }

    pub(super) fn send_to_controller(&mut self, output: ControlOutput, now: Time) {
        self.backlog.entry(output.connection).or_default().0 += output.bytes.len();
        self.to_controllers.push_back((now + self.delay, output));
    }

    /// Returns what has arrived at a controller by `now`.
    pub(super) fn arrived_at_controller(&mut self, now: Time) -> Option<ControlOutput> {
        self.to_controllers.front().filter(|(at, _)| *at <= now)?;
        let (_, output) = self.to_controllers.pop_front()?;
        if let Some((under_way, _)) = self.backlog.get_mut(&output.connection) {
            *under_way = under_way.saturating_sub(output.bytes.len());
        }
        Some(output)
    }

    /// Returns `true` if nothing is under way, either way.
    pub(super) fn is_empty(&self) -> bool {
        self.to_switch.is_empty() && self.to_controllers.is_empty()
    }

    /// Returns `true` if something has arrived at a controller by `now`.
    pub(super) fn has_arrived(&self, now: Time) -> bool {
        self.to_controllers.front().is_some_and(|(at, _)| *at <= now)
    }

    /// Notes what a controller's socket has not taken; returns all that waits for that controller.
    pub(super) fn note_socket(&mut self, connection: u64, bytes: usize) -> usize {
        let (under_way, socket) = self.backlog.entry(connection).or_default();
        *socket = bytes;
        *under_way + bytes
    }

    /// All that waits for a controller.
    pub(super) fn backlog(&self, connection: u64) -> usize {
        self.backlog.get(&connection).map_or(0, |(under_way, socket)| under_way + socket)
    }
}
