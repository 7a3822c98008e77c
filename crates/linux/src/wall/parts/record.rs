//! The record of fidelity of a fabric in parts: the sum of all, and what each part did.

use serde_json::{json, Map, Value};

use crate::wall::fidelity::{Histogram, TakenRecord};
use crate::wall::ingress::Losses;
use crate::wall::parts::crossing::CrossingRecord;

/// The record of one part.
#[derive(Debug)]
pub(crate) struct PartRecord {
    pub(crate) taken: TakenRecord,
    /// The losses that the kernel counted at the part's interfaces since the record began.
    pub(crate) losses: Losses,
    /// Time that a hypervisor took from the machine meanwhile.
    pub(crate) steal_s: f64,
    /// The other effects of the machine.
    pub(crate) machine: Value,
    pub(crate) crossings: CrossingRecord,
    /// Events that the part's fabric handled since the record began.
    pub(crate) events: u64,
}

/// The division of a network, as it is told.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Why there are so many threads.
    pub(crate) why: String,
    /// Nodes of each part.
    pub(crate) nodes: Vec<usize>,
    /// The share of the work that was expected in each.
    pub(crate) expected_shares: Vec<f64>,
    pub(crate) links_cut: usize,
}

impl Layout {
    /// Of a network that was not to be divided.
    pub(crate) fn whole(nodes: usize) -> Self {
        Self { why: "1 asked for".to_owned(), nodes: vec![nodes], expected_shares: vec![1.0], links_cut: 0 }
    }
}

/// The record as docs/reference/lab-protocol.md describes it.
pub(crate) fn told(records: Vec<PartRecord>, layout: &Layout) -> Value {
    let parts = parts(&records, layout);
    let (mut losses, mut steal_s, mut machine, mut dropped) = (Losses::default(), 0.0_f64, Value::Null, 0);
    let mut taken = Vec::with_capacity(records.len());
    for record in records {
        losses.unrated += record.losses.unrated;
        losses.rated.extend(record.losses.rated);
        // The same machine, seen by several: who looked longest has seen most.
        steal_s = steal_s.max(record.steal_s);
        machine = if machine.is_null() { record.machine } else { most_of(machine, &record.machine) };
        dropped += record.crossings.dropped;
        taken.push(record.taken);
    }
    let mut told = TakenRecord::joined(taken).map_or_else(|| json!({}), |whole| whole.to_json());
    // Kept apart from the times: whether they were counted at all.
    let sources = machine.as_object_mut().and_then(|machine| machine.remove("sources")).unwrap_or_default();
    if let Some(fields) = told.as_object_mut() {
        fields.insert("sources".to_owned(), sources);
        if let Some(overload) = fields.get("overload_drops").and_then(Value::as_u64) {
            fields.insert("overload_drops".to_owned(), (overload + dropped).into());
        }
        fields.insert("ingress_drops".to_owned(), losses.unrated.into());
        fields.insert("interface_drops".to_owned(), losses.rated.values().sum::<u64>().into());
        fields.insert("interface_drops_by_port".to_owned(), json!(losses.rated));
        fields.insert("steal_s".to_owned(), steal_s.into());
        fields.insert("machine".to_owned(), machine);
        fields.insert("parts".to_owned(), parts);
    }
    told
}

/// Returns what each part did, and what they said to each other.
#[allow(clippy::cast_precision_loss)]
fn parts(records: &[PartRecord], layout: &Layout) -> Value {
    let events: u64 = records.iter().map(|record| record.events).sum();
    let share = |of: u64| if events == 0 { 0.0 } else { of as f64 / events as f64 };
    let mut lateness = Histogram::default();
    records.iter().for_each(|record| lateness.add(&record.crossings.lateness));
    let sum = |of: fn(&CrossingRecord) -> u64| records.iter().map(|record| of(&record.crossings)).sum::<u64>();
    let rows = records.iter().enumerate().map(|(part, record)| {
        let mut row = record.taken.part_to_json();
        if let Some(fields) = row.as_object_mut() {
            fields.insert("nodes".to_owned(), layout.nodes.get(part).copied().unwrap_or(0).into());
            fields.insert("expected_share".to_owned(), json!(layout.expected_shares.get(part)));
            fields.insert("events".to_owned(), record.events.into());
            fields.insert("messages_sent".to_owned(), record.crossings.sent.into());
        }
        row
    });
    json!({
        "threads": records.len(),
        "why": layout.why,
        "links_cut": layout.links_cut,
        "expected_largest_share": layout.expected_shares.iter().copied().fold(0.0, f64::max),
        "largest_share": records.iter().map(|record| share(record.events)).fold(0.0, f64::max),
        "messages": sum(|crossings| crossings.sent),
        "messages_taken": sum(|crossings| crossings.taken),
        "messages_late": sum(|crossings| crossings.late),
        "frames_dropped": sum(|crossings| crossings.dropped),
        "wake_ups": sum(|crossings| crossings.rung),
        "lateness_ns": lateness.to_json(),
        "each": rows.collect::<Vec<_>>(),
    })
}

/// Of each quantity what is greater in total.
fn most_of(one: Value, other: &Value) -> Value {
    let total = |quantity: &Value| quantity.get("total_s").and_then(Value::as_f64).unwrap_or(0.0);
    let (Value::Object(one), Some(other)) = (one, other.as_object()) else { return other.clone() };
    let greater = |(name, quantity): (String, Value)| {
        let others = other.get(&name).filter(|others| total(others) > total(&quantity)).cloned();
        (name, others.unwrap_or(quantity))
    };
    Value::Object(one.into_iter().map(greater).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(events: u64, sent: u64, dropped: u64) -> PartRecord {
        PartRecord {
            taken: TakenRecord::default(),
            losses: Losses { unrated: 1, rated: [(format!("h{sent}-eth0"), sent)].into() },
            steal_s: 0.25,
            machine: json!({"steal": {"total_s": events as f64, "worst_second_s": 0.0}}),
            crossings: CrossingRecord { sent, dropped, ..CrossingRecord::default() },
            events,
        }
    }

    #[test]
    fn what_parts_counted_is_added_up_and_what_all_saw_is_not() {
        let layout =
            Layout { why: "2 asked for".to_owned(), nodes: vec![3, 4], expected_shares: vec![0.4, 0.6], links_cut: 1 };
        let told = told(vec![record(100, 7, 2), record(300, 5, 0)], &layout);
        assert_eq!((&told["ingress_drops"], &told["interface_drops"]), (&json!(2), &json!(12)));
        assert_eq!((&told["steal_s"], &told["machine"]["steal"]["total_s"]), (&json!(0.25), &json!(300.0)));
        let parts = &told["parts"];
        assert_eq!((&parts["threads"], &parts["messages"], &parts["links_cut"]), (&json!(2), &json!(12), &json!(1)));
        assert_eq!((&parts["largest_share"], &parts["expected_largest_share"]), (&json!(0.75), &json!(0.6)));
        assert_eq!((&parts["frames_dropped"], &told["overload_drops"]), (&json!(2), &json!(2)));
        assert_eq!((&parts["each"][1]["nodes"], &parts["each"][1]["events"]), (&json!(4), &json!(300)));
    }
}
