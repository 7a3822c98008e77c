//! The flow tables: flows with their counters and timeouts, in up to 255 tables.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;

use twinnet_packet::FlowKey;
use twinnet_units::{Duration, Time};

use super::action::Action;
use super::classifier::{Classifier, FlowId};
use super::event::{lived, Events, FlowRemovedEvent, RemovalReason, SwitchEvent};
use super::flow::{Flow, NO_BYTE_COUNT, NO_FRAME_COUNT, TELL_WHEN_REMOVED};
use super::group::Groups;
use super::matching::Match;
use super::meter::Meters;
use super::parse::Selection;
use super::translate::{Miss, Settings};

/// Flows that a switch holds at most.
pub(super) const MOST_FLOWS: usize = 4_000_000;

/// A flow and what it counted. Every frame touches the counters and few the flow, so that one cache line has all that
/// a frame needs.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Entry {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) used: Time,
    pub(super) added: Time,
    /// Order of addition; tells an entry from an earlier one in the same place.
    pub(super) sequence: u64,
    pub(super) flow: Box<Flow>,
    /// Those of the flow.
    flags: u16,
}

impl Entry {
    /// Returns the time when it goes if no frame follows it until then.
    fn deadline(&self) -> Option<Time> {
        let after = |start: Time, seconds: u16| (seconds != 0).then(|| start + Duration::from_secs(u64::from(seconds)));
        let idle = after(self.used, self.flow.idle_timeout_s);
        idle.into_iter().chain(self.hard_deadline()).min()
    }

    fn hard_deadline(&self) -> Option<Time> {
        let seconds = self.flow.hard_timeout_s;
        (seconds != 0).then(|| self.added + Duration::from_secs(u64::from(seconds)))
    }
}

/// All tables of a switch.
#[derive(Debug)]
pub(super) struct Pipeline {
    tables: Vec<Classifier>,
    entries: Vec<Option<Entry>>,
    free: Vec<FlowId>,
    next_sequence: u64,
    /// A deadline of each flow that has timeouts, as it was when it was last looked at: never later than the true one.
    deadlines: BinaryHeap<Reverse<(Time, FlowId, u64)>>,
    seed: u64,
    /// Flows that it holds at most.
    pub(super) most_flows: usize,
    pub(super) groups: Groups,
    pub(super) meters: Meters,
    pub(super) settings: Settings,
}

impl Pipeline {
    pub(super) fn new(seed: u64, miss: Miss) -> Self {
        Self {
            tables: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
            next_sequence: 0,
            deadlines: BinaryHeap::new(),
            seed,
            most_flows: MOST_FLOWS,
            groups: Groups::default(),
            meters: Meters::default(),
            settings: Settings { miss, drop_fragments: false, miss_send_len: 128, tell_invalid_ttl: false },
        }
    }

    /// Returns `true` if there is no flow at all.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.len() == self.free.len()
    }

    /// Flows in all tables.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Flows in `table`.
    pub(super) fn flows_in(&self, table: usize) -> usize {
        self.tables.get(table).map_or(0, Classifier::len)
    }

    /// The bits of flow keys that some flow matches.
    pub(super) fn matched(&self) -> FlowKey {
        self.tables.iter().flat_map(Classifier::masks).fold(FlowKey::ZERO, |all, mask| all.union(mask))
    }

    /// The flow of `table` that `key` matches.
    pub(super) fn find(&self, table: u8, key: &FlowKey) -> Option<FlowId> {
        self.tables.get(usize::from(table))?.find(key)
    }

    /// A flow by its place.
    pub(super) fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.entries.get(id as usize)?.as_ref().map(|entry| &*entry.flow)
    }

    /// Adds a flow; one with the same table, match and priority is replaced. Its counters go on in the new one when
    /// `keep_counters`. `false`, and nothing changes, when the switch is full and no flow is replaced.
    #[must_use]
    pub(super) fn add(&mut self, flow: Flow, keep_counters: bool, now: Time) -> bool {
        let table = usize::from(flow.table);
        while self.tables.len() <= table {
            self.tables.push(Classifier::new(self.seed));
        }
        let same = self.tables[table].find_same(&flow.matching, flow.priority);
        if same.is_none() && self.len() >= self.most_flows {
            return false;
        }
        let replaced = same.and_then(|same| self.remove(same));
        let (frames, bytes) = replaced.filter(|_| keep_counters).map_or((0, 0), |entry| (entry.frames, entry.bytes));
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            FlowId::try_from(self.entries.len() - 1).unwrap_or(FlowId::MAX)
        });
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.tables[table].insert(&flow.matching, flow.priority, sequence, id);
        let flags = flow.flags;
        let entry = Entry { frames, bytes, used: now, added: now, sequence, flow: Box::new(flow), flags };
        if let Some(deadline) = entry.deadline() {
            self.deadlines.push(Reverse((deadline, id, sequence)));
        }
        self.entries[id as usize] = Some(entry);
        if self.deadlines.len() > 2 * self.entries.len() + 64 {
            self.forget_stale_deadlines();
        }
        true
    }

    /// Notes that the flow with this table, match, priority and actions is in use; `false`: there is none.
    pub(super) fn renew(&mut self, flow: &Flow, now: Time) -> bool {
        let table = self.tables.get(usize::from(flow.table));
        let same = table.and_then(|flows| flows.find_same(&flow.matching, flow.priority));
        let entry = same.and_then(|id| self.entries.get_mut(id as usize)).and_then(Option::as_mut);
        match entry.filter(|entry| entry.flow.actions == flow.actions) {
            Some(entry) => {
                entry.used = entry.used.max(now);
                true
            }
            None => false,
        }
    }

    /// Flows that were replaced or deleted leave their deadlines behind: keeps those from piling up.
    fn forget_stale_deadlines(&mut self) {
        let Self { deadlines, entries, .. } = self;
        deadlines.retain(|Reverse((_, id, sequence))| {
            entries.get(*id as usize).and_then(Option::as_ref).is_some_and(|entry| entry.sequence == *sequence)
        });
    }

    fn remove(&mut self, id: FlowId) -> Option<Entry> {
        let entry = self.entries.get_mut(id as usize).and_then(Option::take)?;
        self.tables[usize::from(entry.flow.table)].remove(&entry.flow.matching, id);
        self.free.push(id);
        Some(entry)
    }

    /// The flows that `selection` means, in the order of their places.
    pub(super) fn select(&self, selection: &Selection) -> Vec<FlowId> {
        if let (Some(priority), Some(table)) = (selection.strict, selection.table) {
            let same =
                self.tables.get(usize::from(table)).and_then(|flows| flows.find_same(&selection.matching, priority));
            let entry = |id: &FlowId| self.entries.get(*id as usize).and_then(Option::as_ref);
            return same.filter(|id| is_selected(entry(id), selection)).into_iter().collect();
        }
        (0..).zip(&self.entries).filter(|(_, entry)| is_selected(entry.as_ref(), selection)).map(|(id, _)| id).collect()
    }

    /// An entry by its place.
    pub(super) fn entry(&self, id: FlowId) -> Option<&Entry> {
        self.entries.get(id as usize)?.as_ref()
    }

    /// Removes a flow; its end is told where it asked for that.
    pub(super) fn end(&mut self, id: FlowId, reason: RemovalReason, now: Time, events: &mut Events) {
        let Some(entry) = self.remove(id) else { return };
        if entry.flow.flags & TELL_WHEN_REMOVED != 0 {
            let Entry { flow, added, frames, bytes, .. } = entry;
            let event = FlowRemovedEvent { flow: *flow, reason, lived: lived(added, now), frames, bytes };
            events.push(SwitchEvent::FlowRemoved(Box::new(event)));
        }
    }

    /// Removes the flows that `selection` means; says how many.
    pub(super) fn delete(
        &mut self,
        selection: &Selection,
        reason: RemovalReason,
        now: Time,
        events: &mut Events,
    ) -> usize {
        let doomed = self.select(selection);
        doomed.iter().for_each(|id| self.end(*id, reason, now, events));
        doomed.len()
    }

    /// Gives flows the actions of `change`; everything else of them stays, but for counters when `reset_counters`.
    pub(super) fn modify(&mut self, flows: &[FlowId], change: &Flow, reset_counters: bool) {
        for id in flows {
            if let Some(entry) = self.entries.get_mut(*id as usize).and_then(Option::as_mut) {
                entry.flow.actions.clone_from(&change.actions);
                entry.flow.written.actions.clone_from(&change.written.actions);
                if reset_counters {
                    (entry.frames, entry.bytes) = (0, 0);
                }
            }
        }
    }

    /// Returns `true` if the table holds a flow of this priority that some frame could match beside one of `matching`.
    pub(super) fn overlaps(&self, table: u8, matching: &Match, priority: u16) -> bool {
        self.entries.iter().flatten().any(|entry| {
            entry.flow.table == table && entry.flow.priority == priority && entry.flow.matching.overlaps(matching)
        })
    }

    /// Counts frames that followed a flow.
    #[inline]
    pub(super) fn credit(&mut self, id: FlowId, frames: u64, bytes: u64, now: Time) {
        if let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) {
            if entry.flags & NO_FRAME_COUNT == 0 {
                entry.frames += frames;
            }
            if entry.flags & NO_BYTE_COUNT == 0 {
                entry.bytes += bytes;
            }
            entry.used = now;
        }
    }

    /// Lets a flow's timeouts be no longer than these seconds; 0 leaves that one as it is.
    pub(super) fn shorten(&mut self, id: FlowId, idle_s: u16, hard_s: u16) {
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) else { return };
        let before = (entry.flow.idle_timeout_s, entry.flow.hard_timeout_s);
        let shorter = |now: u16, most: u16| if most != 0 && (now == 0 || now > most) { most } else { now };
        let after = (shorter(before.0, idle_s), shorter(before.1, hard_s));
        (entry.flow.idle_timeout_s, entry.flow.hard_timeout_s) = after;
        if let Some(deadline) = entry.deadline().filter(|_| before != after) {
            let sequence = entry.sequence;
            self.deadlines.push(Reverse((deadline, id, sequence)));
        }
    }

    /// Returns the time when a flow may be due to go; it is not late, but may be early.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.deadlines.peek().map(|Reverse((deadline, ..))| *deadline)
    }

    /// Removes the flows whose time has run out; says how many.
    pub(super) fn expire(&mut self, now: Time, events: &mut Events) -> usize {
        let mut expired = 0;
        while let Some(&Reverse((noted, id, sequence))) = self.deadlines.peek() {
            if noted > now {
                break;
            }
            self.deadlines.pop();
            let entry = self.entries.get(id as usize).and_then(Option::as_ref);
            let Some(deadline) = entry.filter(|entry| entry.sequence == sequence).and_then(Entry::deadline) else {
                continue;
            };
            if deadline <= now {
                let hard = self.entry(id).is_some_and(|entry| entry.hard_deadline().is_some_and(|at| at <= now));
                self.end(id, if hard { RemovalReason::Hard } else { RemovalReason::Idle }, now, events);
                expired += 1;
            } else {
                self.deadlines.push(Reverse((deadline, id, sequence)));
            }
        }
        expired
    }

    /// All flows, by table, then priority, then age.
    pub(super) fn dump(&self, now: Time) -> Vec<String> {
        let mut entries: Vec<_> = self.entries.iter().flatten().collect();
        entries.sort_by_key(|entry| (entry.flow.table, Reverse(entry.flow.priority), entry.sequence));
        entries.into_iter().map(|entry| dump_line(entry, now)).collect()
    }
}

fn is_selected(entry: Option<&Entry>, selection: &Selection) -> bool {
    entry.is_some_and(|Entry { flow, .. }| {
        selection.table.is_none_or(|table| table == flow.table)
            && flow.cookie & selection.cookie.1 == selection.cookie.0
            && selection.out_port.is_none_or(|port| sends_to(&flow.actions, port))
            && selection.out_group.is_none_or(|group| uses(&flow.actions, &Action::Group(group)))
            && selection.meter.is_none_or(|meter| uses(&flow.actions, &Action::Meter(meter)))
            && selection.strict.is_none_or(|priority| priority == flow.priority && flow.matching == selection.matching)
            && flow.matching.is_within(&selection.matching)
    })
}

fn sends_to(actions: &[Action], wanted: u32) -> bool {
    actions.iter().any(|action| match action {
        Action::Output(port) | Action::Enqueue { port, .. } => *port == wanted,
        Action::Local => wanted == super::value::PORT_LOCAL,
        Action::Controller { .. } => wanted == super::value::PORT_CONTROLLER,
        Action::InPort => wanted == super::value::PORT_IN_PORT,
        Action::Normal => wanted == super::value::PORT_NORMAL,
        Action::Flood => wanted == super::value::PORT_FLOOD,
        Action::All => wanted == super::value::PORT_ALL,
        Action::WriteActions(actions) => sends_to(actions, wanted),
        _ => false,
    })
}

fn uses(actions: &[Action], wanted: &Action) -> bool {
    actions.iter().any(|action| match action {
        Action::WriteActions(actions) => uses(actions, wanted),
        action => action == wanted,
    })
}

fn dump_line(entry: &Entry, now: Time) -> String {
    let Entry { flow, frames, bytes, .. } = entry;
    let milliseconds = now.since(entry.added).as_ps() / 1_000_000_000;
    let mut line = format!(
        " cookie={:#x}, duration={}.{:03}s, table={}, n_packets={frames}, n_bytes={bytes}, ",
        flow.cookie,
        milliseconds / 1000,
        milliseconds % 1000,
        flow.table
    );
    let mut rule = String::new();
    // Writing to a String cannot fail.
    let _ = flow.write_rule(&mut rule);
    let _ = write!(line, "{rule}");
    line
}
