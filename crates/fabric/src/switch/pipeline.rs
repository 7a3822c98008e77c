//! The flow tables: flows with their counters and timeouts, in up to 255 tables.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;

use twinnet_packet::FlowKey;
use twinnet_units::{Duration, Time};

use super::action::Action;
use super::classifier::{Classifier, FlowId};
use super::flow::Flow;
use super::parse::Selection;

/// A flow and what it counted.
#[derive(Clone, Debug)]
struct Entry {
    flow: Flow,
    /// Order of addition; tells an entry from an earlier one in the same place.
    sequence: u64,
    added: Time,
    used: Time,
    frames: u64,
    bytes: u64,
}

impl Entry {
    /// When it goes if no frame follows it until then.
    fn deadline(&self) -> Option<Time> {
        let after = |start: Time, seconds: u16| (seconds != 0).then(|| start + Duration::from_secs(u64::from(seconds)));
        let idle = after(self.used, self.flow.idle_timeout_s);
        let hard = after(self.added, self.flow.hard_timeout_s);
        idle.into_iter().chain(hard).min()
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
}

impl Pipeline {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            tables: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
            next_sequence: 0,
            deadlines: BinaryHeap::new(),
            seed,
        }
    }

    /// Whether there is no flow at all.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.len() == self.free.len()
    }

    /// Flows in `table`.
    pub(super) fn flows_in(&self, table: usize) -> usize {
        self.tables.get(table).map_or(0, Classifier::len)
    }

    /// The flow of `table` that `key` matches.
    pub(super) fn find(&self, table: u8, key: &FlowKey) -> Option<FlowId> {
        self.tables.get(usize::from(table))?.find(key)
    }

    /// A flow by its place.
    pub(super) fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.entries.get(id as usize)?.as_ref().map(|entry| &entry.flow)
    }

    /// Adds a flow; one with the same table, match and priority is replaced, its counters with it.
    pub(super) fn add(&mut self, flow: Flow, now: Time) {
        let table = usize::from(flow.table);
        while self.tables.len() <= table {
            self.tables.push(Classifier::new(self.seed));
        }
        if let Some(same) = self.tables[table].find_same(&flow.matching, flow.priority) {
            self.remove(same);
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            FlowId::try_from(self.entries.len() - 1).unwrap_or(FlowId::MAX)
        });
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.tables[table].insert(&flow.matching, flow.priority, sequence, id);
        let entry = Entry { flow, sequence, added: now, used: now, frames: 0, bytes: 0 };
        if let Some(deadline) = entry.deadline() {
            self.deadlines.push(Reverse((deadline, id, sequence)));
        }
        self.entries[id as usize] = Some(entry);
        if self.deadlines.len() > 2 * self.entries.len() + 64 {
            self.forget_stale_deadlines();
        }
    }

    /// Flows that were replaced or deleted leave their deadlines behind: keeps those from piling up.
    fn forget_stale_deadlines(&mut self) {
        let Self { deadlines, entries, .. } = self;
        deadlines.retain(|Reverse((_, id, sequence))| {
            entries.get(*id as usize).and_then(Option::as_ref).is_some_and(|entry| entry.sequence == *sequence)
        });
    }

    fn remove(&mut self, id: FlowId) {
        if let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::take) {
            self.tables[usize::from(entry.flow.table)].remove(&entry.flow.matching, id);
            self.free.push(id);
        }
    }

    /// Removes the flows that `selection` means; says how many.
    pub(super) fn delete(&mut self, selection: &Selection) -> usize {
        let doomed: Vec<_> =
            (0..).zip(&self.entries).filter(|(_, entry)| is_selected(entry.as_ref(), selection)).collect();
        let doomed: Vec<FlowId> = doomed.into_iter().map(|(id, _)| id).collect();
        doomed.iter().for_each(|&id| self.remove(id));
        doomed.len()
    }

    /// Counts frames that followed a flow.
    #[inline]
    pub(super) fn credit(&mut self, id: FlowId, frames: u64, bytes: u64, now: Time) {
        if let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) {
            entry.frames += frames;
            entry.bytes += bytes;
            entry.used = now;
        }
    }

    /// When a flow may be due to go; it is not late, but may be early.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.deadlines.peek().map(|Reverse((deadline, ..))| *deadline)
    }

    /// Removes the flows whose time has run out; says how many.
    pub(super) fn expire(&mut self, now: Time) -> usize {
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
                self.remove(id);
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
            && flow.matching.is_within(&selection.matching)
    })
}

fn sends_to(actions: &[Action], wanted: u32) -> bool {
    actions.iter().any(|action| match action {
        Action::Output(port) | Action::Enqueue { port, .. } => *port == wanted,
        Action::Local => wanted == super::value::PORT_LOCAL,
        Action::WriteActions(actions) => sends_to(actions, wanted),
        _ => false,
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
    if flow.idle_timeout_s != 0 {
        line += &format!("idle_timeout={}, ", flow.idle_timeout_s);
    }
    if flow.hard_timeout_s != 0 {
        line += &format!("hard_timeout={}, ", flow.hard_timeout_s);
    }
    let mut rule = String::new();
    // Writing to a String cannot fail.
    let _ = flow.write_rule(&mut rule);
    let _ = write!(line, "{rule}");
    line
}
