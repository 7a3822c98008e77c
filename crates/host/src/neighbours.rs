//! Hardware addresses of neighbours: what is known, what is being asked for, and the packets that wait for an answer.
//!
//! The states are those of RFC 4861, 7.3.2, used for ARP as well, as Linux does: an entry is *reachable* for 30 s
//! after an answer, then *stale*; one that is used while stale is asked again 5 s later by unicast (*delay*, then
//! *probe*), and forgotten when three requests, 1 s apart, stay unanswered. An unknown one is *incomplete* and
//! asked for by broadcast or multicast three times, 1 s apart. Simplified: the time of being reachable is not drawn
//! at random, and what TCP hears confirms nobody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use rustc_hash::FxHashMap;
use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use super::interface::Charge;

/// Time between two requests (`RETRANS_TIMER`).
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// Requests without an answer (`MAX_MULTICAST_SOLICIT`, `MAX_UNICAST_SOLICIT`).
pub(super) const TRIES: u8 = 3;
/// The time that an answer counts (`REACHABLE_TIME`).
const REACHABLE: Duration = Duration::from_secs(30);
/// The time that a stale entry is used before it is asked (`DELAY_FIRST_PROBE_TIME`).
const DELAY: Duration = Duration::from_secs(5);
/// Packets that wait for one neighbour; the oldest is dropped (Linux's `unres_qlen`).
pub(super) const MOST_PENDING: usize = 101;
/// Neighbours that are kept; more are not learnt, and cannot be asked for.
const MOST_NEIGHBOURS: usize = 65_536;

/// Hardware addresses that are known beforehand, shared by many hosts: large networks need not ask.
#[derive(Clone, Debug, Default)]
pub struct StaticNeighbours(FxHashMap<IpAddr, [u8; 6]>);

impl StaticNeighbours {
    /// Adds the hardware address of `address`.
    pub fn insert(&mut self, address: IpAddr, mac: [u8; 6]) {
        self.0.insert(address, mac);
    }

    /// The hardware address of `address`.
    #[must_use]
    pub fn get(&self, address: IpAddr) -> Option<[u8; 6]> {
        self.0.get(&address).copied()
    }
}

/// A neighbour: an interface and an address on its link.
pub(super) type Neighbour = (u16, IpAddr);

/// A packet that waits for a hardware address.
pub(super) type Pending = (Box<Frame>, Charge);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Incomplete { left: u8, at: Time },
    Reachable { until: Time },
    Stale,
    Delay { until: Time },
    Probe { left: u8, at: Time },
}

#[derive(Debug)]
struct Entry {
    mac: [u8; 6],
    state: State,
    pending: VecDeque<Pending>,
}

/// The state of a neighbour's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Its hardware address, to be looked up again at the moment given.
    Address([u8; 6], Time),
    /// It is not known yet.
    NotYet,
}

/// The next step about a neighbour.
#[derive(Debug)]
pub(super) enum Task {
    /// Ask for it: by unicast when an address is given.
    Ask(Neighbour, Option<[u8; 6]>),
    /// Nobody answered: these packets cannot be sent.
    GiveUp(VecDeque<Pending>),
}

/// The neighbours of a host.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    // Ordered, since the order in which neighbours are asked can be seen.
    entries: BTreeMap<Neighbour, Entry>,
    /// Those whose state changes by itself.
    waiting: BTreeSet<Neighbour>,
}

impl Neighbours {
    /// Returns what is known of `neighbour`, which is about to be used.
    pub(super) fn find(&mut self, neighbour: Neighbour, now: Time) -> Known {
        let Some(entry) = self.entries.get_mut(&neighbour) else { return Known::NotYet };
        let again = match entry.state {
            State::Incomplete { .. } => return Known::NotYet,
            State::Reachable { until } if now < until => until,
            State::Reachable { .. } | State::Stale => {
                entry.state = State::Delay { until: now + DELAY };
                self.waiting.insert(neighbour);
                Time::MAX
            }
            State::Delay { .. } | State::Probe { .. } => Time::MAX,
        };
        Known::Address(entry.mac, again)
    }

    /// Keeps a packet until `neighbour` has answered. Gives a packet that must be dropped instead, and whether the
    /// neighbour is to be asked for now.
    pub(super) fn hold(&mut self, neighbour: Neighbour, packet: Pending, now: Time) -> (Option<Pending>, bool) {
        let mut ask = false;
        if !self.entries.contains_key(&neighbour) {
            if self.entries.len() >= MOST_NEIGHBOURS {
                return (Some(packet), false);
            }
            ask = true;
            let state = State::Incomplete { left: TRIES - 1, at: now + RETRY };
            self.entries.insert(neighbour, Entry { mac: [0; 6], state, pending: VecDeque::new() });
            self.waiting.insert(neighbour);
        }
        let Some(entry) = self.entries.get_mut(&neighbour) else { return (Some(packet), false) };
        let dropped = if entry.pending.len() >= MOST_PENDING { entry.pending.pop_front() } else { None };
        entry.pending.push_back(packet);
        (dropped, ask)
    }

    /// `neighbour` has told its hardware address. One that is not known is learnt only when `learn` is set; an
    /// answer to our request (`answer`) makes it reachable. Gives the packets that waited for it, and whether its
    /// address is new.
    pub(super) fn told(
        &mut self,
        neighbour: Neighbour,
        mac: [u8; 6],
        answer: bool,
        learn: bool,
        now: Time,
    ) -> (VecDeque<Pending>, bool) {
        let state = if answer { State::Reachable { until: now + REACHABLE } } else { State::Stale };
        let room = self.entries.len() < MOST_NEIGHBOURS;
        let Some(entry) = self.entries.get_mut(&neighbour) else {
            if learn && room {
                self.entries.insert(neighbour, Entry { mac, state, pending: VecDeque::new() });
            }
            return (VecDeque::new(), false);
        };
        let moved = entry.mac != mac;
        // What is told unasked and changes nothing confirms nothing.
        if answer || moved || matches!(entry.state, State::Incomplete { .. }) {
            entry.state = state;
            self.waiting.remove(&neighbour);
        }
        entry.mac = mac;
        (std::mem::take(&mut entry.pending), moved)
    }

    /// Returns the time when [`Neighbours::next_task`] is wanted.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.waiting.iter().filter_map(|neighbour| self.due(*neighbour)).min()
    }

    fn due(&self, neighbour: Neighbour) -> Option<Time> {
        match self.entries.get(&neighbour)?.state {
            State::Incomplete { at, .. } | State::Probe { at, .. } => Some(at),
            State::Delay { until } => Some(until),
            State::Reachable { .. } | State::Stale => None,
        }
    }

    /// The next thing that is due by `now`.
    pub(super) fn next_task(&mut self, now: Time) -> Option<Task> {
        let due = self.waiting.iter().copied().find(|neighbour| self.due(*neighbour).is_some_and(|at| at <= now))?;
        let entry = self.entries.get_mut(&due)?;
        let (left, unicast) = match entry.state {
            State::Incomplete { left, .. } => (left, None),
            State::Delay { .. } => (TRIES, Some(entry.mac)),
            State::Probe { left, .. } => (left, Some(entry.mac)),
            State::Reachable { .. } | State::Stale => return None,
        };
        let Some(left) = left.checked_sub(1) else {
            self.waiting.remove(&due);
            let pending = self.entries.remove(&due).map(|entry| entry.pending).unwrap_or_default();
            return Some(Task::GiveUp(pending));
        };
        let at = now + RETRY;
        entry.state = if unicast.is_some() { State::Probe { left, at } } else { State::Incomplete { left, at } };
        Some(Task::Ask(due, unicast))
    }

    /// Forgets all neighbours of `interface`; gives the packets that waited.
    pub(super) fn forget(&mut self, interface: u16) -> Vec<Pending> {
        let mut dropped = Vec::new();
        self.entries.retain(|(at, _), entry| {
            if *at == interface {
                dropped.extend(entry.pending.drain(..));
            }
            *at != interface
        });
        self.waiting.retain(|(at, _)| *at != interface);
        dropped
    }
}
