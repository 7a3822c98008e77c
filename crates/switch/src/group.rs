//! Groups (OpenFlow 1.3, 5.6): which of their buckets a frame takes is decided with its flow key, so that a cached
//! decision stays right until a group or a port changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use twinnet_packet::{Field, FlowKey};
use twinnet_units::Time;

use super::action::Action;

/// Stands for "none" where a port or group is watched.
pub(super) const NOTHING_WATCHED: u32 = u32::MAX;

/// The rule for which buckets of a group are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// All of them, a copy each.
    All,
    /// One that its flow chooses, by their weights.
    Select,
    /// The only one.
    Indirect,
    /// The first that is live.
    FastFailover,
}

/// One way through a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bucket {
    pub(super) weight: u16,
    pub(super) watch_port: u32,
    pub(super) watch_group: u32,
    /// As they came.
    pub(super) actions: Vec<Action>,
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

/// A group and what it counted.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) kind: GroupKind,
    pub(super) buckets: Vec<Bucket>,
    /// The buckets as the controller wrote them.
    pub(super) written: Arc<[u8]>,
    pub(super) added: Time,
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

/// Why a change of groups is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupRefusal {
    Exists,
    Unknown,
    /// Its type and its buckets do not go together.
    Invalid,
    /// A bucket leads back to the group.
    Loop,
    /// Another group leads here.
    Chained,
    /// A bucket watches a port or group that does not exist, or none.
    BadWatch,
    /// A bucket names a group that does not exist.
    BadOutGroup,
    TooMany,
}

/// Groups that a switch holds at most.
pub(super) const MOST_GROUPS: usize = 65_536;

/// All groups of a switch.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: BTreeMap<u32, Group>,
    live_ports: BTreeSet<u32>,
}

impl Groups {
    pub(super) fn get(&self, id: u32) -> Option<&Group> {
        self.groups.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(id, group)| (*id, group))
    }

    /// Notes whether a port is live; true when that is news.
    pub(super) fn set_port_live(&mut self, port: u32, live: bool) -> bool {
        if live {
            self.live_ports.insert(port)
        } else {
            self.live_ports.remove(&port)
        }
    }

    /// Returns `true` if a port is there, up and not taken down.
    pub(super) fn is_port_live(&self, port: u32) -> bool {
        self.live_ports.contains(&port)
    }

    /// Adds a group (`change` false) or puts another in its place.
    pub(super) fn put(
        &mut self,
        id: u32,
        kind: GroupKind,
        (buckets, written): (Vec<Bucket>, Arc<[u8]>),
        change: bool,
        now: Time,
    ) -> Result<(), GroupRefusal> {
        let known = self.groups.contains_key(&id);
        if known != change {
            return Err(if known { GroupRefusal::Exists } else { GroupRefusal::Unknown });
        }
        if !change && self.groups.len() >= MOST_GROUPS {
            return Err(GroupRefusal::TooMany);
        }
        if kind == GroupKind::Indirect && buckets.len() != 1 {
            return Err(GroupRefusal::Invalid);
        }
        // "If a specified group type is invalid (ie: includes fields such as weight that are undefined for the
        // group type)" (6.5).
        if kind != GroupKind::Select && buckets.iter().any(|bucket| bucket.weight != 0) {
            return Err(GroupRefusal::Invalid);
        }
        for bucket in &buckets {
            let watches = [bucket.watch_port, bucket.watch_group].iter().any(|watched| *watched != NOTHING_WATCHED);
            let group_missing = bucket.watch_group != NOTHING_WATCHED && !self.groups.contains_key(&bucket.watch_group);
            if (kind == GroupKind::FastFailover && !watches) || (group_missing && bucket.watch_group != id) {
                return Err(GroupRefusal::BadWatch);
            }
            for next in next_groups(bucket) {
                if next == id || self.leads_to(next, id) {
                    return Err(GroupRefusal::Loop);
                }
                if !self.groups.contains_key(&next) {
                    return Err(GroupRefusal::BadOutGroup);
                }
            }
        }
        let added = self.groups.get(&id).map_or(now, |group| group.added);
        self.groups.insert(id, Group { kind, buckets, written, added, frames: 0, bytes: 0 });
        Ok(())
    }

    fn leads_to(&self, from: u32, wanted: u32) -> bool {
        let mut waiting = vec![from];
        let mut seen = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if id == wanted {
                return true;
            }
            if seen.insert(id) {
                waiting.extend(self.groups.get(&id).into_iter().flat_map(|group| &group.buckets).flat_map(next_groups));
            }
        }
        false
    }

    /// Removes a group; one that is not there is no error.
    pub(super) fn remove(&mut self, id: u32) -> Result<bool, GroupRefusal> {
        let others = self.groups.iter().filter(|(other, _)| **other != id);
        if others.flat_map(|(_, group)| &group.buckets).flat_map(next_groups).any(|next| next == id) {
            return Err(GroupRefusal::Chained);
        }
        Ok(self.groups.remove(&id).is_some())
    }

    /// Removes all; says which there were.
    pub(super) fn clear(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.groups).into_keys().collect()
    }

    /// Other groups that lead to this one.
    pub(super) fn references(&self, id: u32) -> usize {
        self.groups.values().flat_map(|group| &group.buckets).flat_map(next_groups).filter(|next| *next == id).count()
    }

    /// The buckets of group `id` that a frame with `key` takes.
    pub(super) fn taken(&self, id: u32, key: &FlowKey) -> Vec<usize> {
        let Some(group) = self.groups.get(&id) else { return Vec::new() };
        let live = |index: &usize| self.is_bucket_live(&group.buckets[*index], 0);
        let mut every = 0..group.buckets.len();
        match group.kind {
            GroupKind::All => every.collect(),
            GroupKind::Indirect => every.take(1).collect(),
            GroupKind::FastFailover => every.find(live).into_iter().collect(),
            GroupKind::Select => {
                let candidates: Vec<usize> = every.filter(live).collect();
                choose(group, &candidates, flow_hash(key)).into_iter().collect()
            }
        }
    }

    /// Returns `true` if a frame may take `bucket`; `depth` is that of the group that is looked at.
    pub(super) fn is_bucket_live(&self, bucket: &Bucket, depth: usize) -> bool {
        let port = bucket.watch_port != NOTHING_WATCHED && self.live_ports.contains(&bucket.watch_port);
        if bucket.watch_port == NOTHING_WATCHED && bucket.watch_group == NOTHING_WATCHED {
            return true;
        }
        // "A group is considered live if at least one of its buckets is live" (6.7); groups that watch each other
        // in a circle are not.
        let group = self.groups.get(&bucket.watch_group).filter(|_| depth < 32);
        port || group.is_some_and(|group| group.buckets.iter().any(|next| self.is_bucket_live(next, depth + 1)))
    }

    pub(super) fn credit(&mut self, id: u32, bucket: Option<usize>, frames: u64, bytes: u64) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        match bucket {
            None => {
                group.frames += frames;
                group.bytes += bytes;
            }
            Some(bucket) => {
                if let Some(bucket) = group.buckets.get_mut(bucket) {
                    bucket.frames += frames;
                    bucket.bytes += bytes;
                }
            }
        }
    }
}

fn next_groups(bucket: &Bucket) -> impl Iterator<Item = u32> + '_ {
    bucket.actions.iter().filter_map(|action| if let Action::Group(id) = action { Some(*id) } else { None })
}

/// Of a select group's live buckets the one in whose share of the weights the hash falls.
fn choose(group: &Group, candidates: &[usize], hash: u64) -> Option<usize> {
    let total: u64 = candidates.iter().map(|index| u64::from(group.buckets[*index].weight)).sum();
    let mut left = hash % total.max(1);
    candidates.iter().copied().find(|index| {
        let weight = u64::from(group.buckets[*index].weight);
        let found = left < weight;
        left = left.saturating_sub(weight);
        found
    })
}

/// A hash of what all frames of one flow share: addresses, VLAN, protocol and, but for fragments, ports; not flags
/// or the time to live.
fn flow_hash(key: &FlowKey) -> u64 {
    let mut flow = FlowKey::ZERO;
    let whole = key.get(Field::NW_FRAG) == 0;
    let ports = [Field::TP_SRC, Field::TP_DST].into_iter().filter(|_| whole);
    let always = [
        Field::ETH_TYPE,
        Field::VLAN_VID,
        Field::ETH_SRC,
        Field::ETH_DST,
        Field::NW_SRC,
        Field::NW_DST,
        Field::NW_PROTO,
        Field::IPV6_SRC,
        Field::IPV6_DST,
        Field::MPLS_LABEL,
    ];
    for field in always.into_iter().chain(ports) {
        flow.set(field, key.get(field));
    }
    // The low bits alone decide: they are mixed once more.
    flow.digest(0x51ec_7ed5) >> 16
}
