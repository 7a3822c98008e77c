//! The switch: a multi-table flow pipeline with an exact-match cache, and stand-alone learning.
//!
//! A frame's flow key (mostly only the bits of it that flows match) is looked up in the cache; what is not there is
//! decided by a walk through the flow tables (`translate`) and kept. The decision is a list of steps that depends on
//! nothing but the key and the tables, so a cached frame costs one hash look-up and its steps. What does change from
//! frame to frame - learnt addresses, ports that go down - is looked at when the steps are carried out.
//!
//! Differences to Open vSwitch, beside those in `parse`:
//! - in a stand-alone switch a frame that no flow of table 0 matches is switched as by action `normal`;
//! - of two flows of equal priority that both match, the older one wins;
//! - what is meant for a controller while none is connected is dropped and counted;
//! - a loop of stand-alone switches does not melt the network: without a controller they flood and learn only by
//!   ports of the spanning tree that the fabric computes ([`Switch::set_port_in_tree`]), without a protocol of its
//!   own. Others do so where they are told to ([`Switch::keep_to_tree`], `stp_enable`).
//!
//! A flow table of one flow, and a frame that it sends on:
//!
//! ```
//! use twinnet_packet::Frame;
//! use twinnet_switch::{FailMode, Switch, SwitchConfig};
//! use twinnet_units::Time;
//!
//! let mut switch = Switch::new(SwitchConfig { dpid: 1, fail_mode: FailMode::Secure, seed: 7 });
//! switch.add_port(1, "s1-eth1", [2, 0, 0, 0, 0, 1]);
//! switch.add_port(2, "s1-eth2", [2, 0, 0, 0, 0, 2]);
//! switch.add_flow("in_port=1,actions=output:2", Time::ZERO)?;
//!
//! let mut out = Vec::new();
//! switch.receive(1, Box::new(Frame::new(vec![0; 60])), Time::ZERO, &mut out);
//! assert_eq!(out.iter().map(|output| output.port).collect::<Vec<_>>(), [2]);
//! assert!(switch.dump_flows(Time::ZERO)[0].contains("n_packets=1"));
//! # Ok::<(), twinnet_switch::FlowSyntaxError>(())
//! ```

mod action;
mod cache;
mod carry_out;
mod classifier;
pub mod control;
mod counted;
mod decision;
mod event;
mod execute;
mod extension;
mod extension_syntax;
mod field;
mod flow;
mod follow;
mod group;
mod mac_table;
mod matching;
mod membership;
mod meter;
mod mirror;
mod nearest;
mod other_tools;
mod parse;
mod pipeline;
mod port;
mod signpost;
mod subfield;
mod syntax;
#[cfg(test)]
mod tests;
mod translate;
mod value;
mod vlans;
mod written;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_openflow::v13::PortReason;
use twinnet_packet::{FlowKey, Frame, Glance};
use twinnet_units::{impossible, Time};

use cache::Cache;
use decision::{Lookup, Straight};
use event::{Events, RemovalReason, SwitchEvent};
use execute::Datapath;
use flow::CHECK_OVERLAP;
use pipeline::{Pipeline, MOST_FLOWS};
use port::Port;
use translate::{translate, Miss, Start};

pub use counted::{BandRow, BucketRow, GroupRow, MeterRow, MeterUnit};
pub use decision::SwitchDrop;
pub use follow::{Followed, FollowedKind, FollowedStep};
pub use group::GroupKind;
pub use mac_table::Learnt;
pub use mirror::{Mirror, MirrorTo};
pub use syntax::FlowSyntaxError;
pub use vlans::{PortVlans, VlanMode, HIGHEST_VLAN};

/// The treatment of frames that no flow matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// Switches them as a learning switch.
    #[default]
    Standalone,
    /// Drops them.
    Secure,
}

/// The configuration of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchConfig {
    /// Datapath identifier.
    pub dpid: u64,
    /// The treatment of frames that no flow matches.
    pub fail_mode: FailMode,
    /// Seed of the hash functions. Nothing that can be seen depends on it.
    pub seed: u64,
}

/// A frame that leaves the switch.
#[derive(Debug)]
pub struct Output {
    /// The port it leaves by.
    pub port: u32,
    /// The frame; its `queue` says which queue of that port.
    pub frame: Box<Frame>,
}

/// The counters of one table, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableCounters {
    /// Number of the table.
    pub table: u8,
    /// Flows in it.
    pub flows: usize,
    /// Frames looked up.
    pub lookups: u64,
    /// Frames that matched a flow.
    pub matches: u64,
}

/// The counters of a switch, in frames; a train counts as the frames it stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SwitchCounters {
    /// Frames received.
    pub received: u64,
    /// Frames of which the decision was found in the cache.
    pub cache_hits: u64,
    /// Frames for which the tables were walked.
    pub cache_misses: u64,
    /// Tables that hold flows or were looked up.
    pub tables: Vec<TableCounters>,
    /// Frames, or copies of frames, that were not sent, by reason; reasons that did not occur are left out.
    pub drops: BTreeMap<SwitchDrop, u64>,
    /// Addresses in the table of the learning switch.
    pub stations: usize,
}

/// A switch. The fabric hands it frames and sends what it puts out; it is told the time.
///
/// Who calls it, and in which order: ports are added first; then [`receive`](Self::receive) is called for each
/// frame that arrived, in the order of their times, and what it puts into `out` is sent at once. Flows, groups and
/// ports may change between two frames. The caller asks [`next_timeout`](Self::next_timeout) after each change and
/// calls [`expire`](Self::expire) at that moment: flows do not end by themselves. A controller is spoken with
/// through [`control`], which uses the switch in between.
///
/// Invariants: `now` never goes back. A frame that came in went out, to a controller, or is in
/// [`counters`](Self::counters) with a reason. Forwarding through the cache is what a walk through the tables would
/// have done (a property test compares them), so whatever changes a table empties the cache. Nothing that can be
/// seen depends on the seed.
#[derive(Debug)]
pub struct Switch {
    config: SwitchConfig,
    pipeline: Pipeline,
    cache: Cache,
    datapath: Datapath,
    events: Events,
    received: u64,
    /// Frames that their port did not take.
    refused: u64,
    cache_hits: u64,
    /// A frame had an involved decision since [`Switch::take_stirred`] was asked.
    stirred: bool,
    /// It keeps to the spanning tree whatever its fail mode and its controllers.
    told_to_keep_to_tree: bool,
    /// Look-ups and matches of each table.
    tables: Vec<(u64, u64)>,
}

impl Switch {
    /// A switch without ports and flows.
    #[must_use]
    pub fn new(config: SwitchConfig) -> Self {
        // Three streams from one seed, so that no hash predicts another.
        let seeds = [1, 2, 3].map(|stream: u64| twinnet_packet::mix(config.seed ^ stream << 32, 0x9e37_79b9_7f4a_7c15));
        let miss = if config.fail_mode == FailMode::Standalone { Miss::Normal } else { Miss::Drop };
        let mut switch = Self {
            config,
            pipeline: Pipeline::new(seeds[0], miss),
            cache: Cache::new(seeds[1]),
            datapath: Datapath::new(seeds[2]),
            events: Events::default(),
            received: 0,
            refused: 0,
            cache_hits: 0,
            stirred: false,
            told_to_keep_to_tree: false,
            tables: Vec::new(),
        };
        switch.settle_tree();
        switch
    }

    /// Returns the configuration that the switch was made with.
    #[must_use]
    pub fn config(&self) -> &SwitchConfig {
        &self.config
    }

    /// Adds a port that is up and in the spanning tree; one with that number is replaced.
    pub fn add_port(&mut self, number: u32, name: &str, mac: [u8; 6]) {
        self.datapath.ports.add(Port { number, name: name.to_owned(), mac, up: true, in_tree: true, config: 0 });
        self.pipeline.groups.set_port_live(number, true);
        self.tell_of_port(PortReason::Add, number);
    }

    /// Number, name and address of each port.
    pub fn ports(&self) -> impl Iterator<Item = (u32, &str, [u8; 6])> {
        self.datapath.ports.iter().map(|port| (port.number, port.name.as_str(), port.mac))
    }

    /// Takes a port up or down; what was learnt at a port that goes down is forgotten. Unknown ports are ignored.
    pub fn set_port_up(&mut self, number: u32, up: bool) {
        if let Some(port) = self.datapath.ports.get_mut(number) {
            port.up = up;
            self.port_changed(number);
        }
    }

    /// Takes a port away (it is deleted for controllers), or puts one back that was taken away, its link `up` or
    /// down. Flows that name it stay, and frames that they send there are dropped meanwhile. Unknown ports are
    /// ignored.
    pub fn set_port_there(&mut self, number: u32, there: bool, up: bool) {
        if there {
            if self.datapath.ports.put_back(number, up) {
                self.port_is_live(number, up);
                self.tell_of_port(PortReason::Add, number);
            }
            return;
        }
        self.tell_of_port(PortReason::Delete, number);
        if self.datapath.ports.take_away(number) {
            self.port_is_live(number, false);
        }
    }

    /// After a port's state or configuration changed: what was learnt at a dead one is forgotten, groups and
    /// controllers are told.
    fn port_changed(&mut self, number: u32) {
        let live = self.datapath.ports.get(number).is_some_and(Port::is_live);
        self.port_is_live(number, live);
        self.tell_of_port(PortReason::Modify, number);
    }

    fn port_is_live(&mut self, number: u32, live: bool) {
        if !live {
            self.datapath.macs.forget_port(number);
        }
        if self.pipeline.groups.set_port_live(number, live) {
            self.cache.invalidate();
        }
    }

    fn tell_of_port(&mut self, reason: PortReason, number: u32) {
        if let Some(port) = self.datapath.ports.get(number).filter(|_| self.events.heard) {
            self.events.push(SwitchEvent::Port(reason, Box::new(port.clone())));
        }
    }

    /// Has the switch flood and learn by ports of the spanning tree alone, whatever its fail mode and its controllers
    /// are, as `stp_enable` does; `false`: only while it stands alone.
    pub fn keep_to_tree(&mut self, keeps: bool) {
        self.told_to_keep_to_tree = keeps;
        self.settle_tree();
    }

    /// A switch keeps to the tree while it stands alone: what no flow matches is then switched as by `normal`. What it
    /// learnt at ports outside of the tree must not outlive that.
    fn settle_tree(&mut self) {
        let keeps = self.told_to_keep_to_tree || self.pipeline.settings.miss == Miss::Normal;
        self.datapath.keeps_to_tree = keeps;
        if keeps {
            for port in self.datapath.ports.iter().filter(|port| !port.in_tree) {
                self.datapath.macs.forget_port(port.number);
            }
        }
    }

    /// Puts a port into the spanning tree or takes it out: while the switch keeps to the tree, only ports in it are
    /// flooded to and learnt from. Unknown ports are ignored.
    pub fn set_port_in_tree(&mut self, number: u32, in_tree: bool) {
        if let Some(port) = self.datapath.ports.get_mut(number) {
            port.in_tree = in_tree;
            if !in_tree {
                self.datapath.macs.forget_port(number);
            }
        }
    }

    /// Forgets the addresses that were learnt at a port. Unknown ports are ignored.
    pub fn forget_port(&mut self, number: u32) {
        self.datapath.macs.forget_port(number);
    }

    /// Takes a frame (or train) that came in by `in_port`; what is to be sent is appended to `out`.
    pub fn receive(&mut self, in_port: u32, frame: Box<Frame>, now: Time, out: &mut Vec<Output>) {
        if self.datapath.mirrors.is_empty() {
            self.forward(in_port, frame, now, out);
        } else {
            self.receive_and_mirror(in_port, frame, now, out);
        }
    }

    #[inline]
    fn forward(&mut self, in_port: u32, frame: Box<Frame>, now: Time, out: &mut Vec<Output>) {
        let frames = frame.frames();
        self.received += frames;
        let port = self.datapath.ports.get(in_port);
        if !port.is_some_and(|port| port.up && port.config == 0) {
            if let Some(reason) = self.datapath.refusal_from(in_port) {
                self.refused += frames;
                self.datapath.count_drop(reason, frames);
                return;
            }
        }
        let glance = Glance::of(in_port, &frame.bytes);
        let looked = glance.map(|glance| self.cache.look(glance, &self.pipeline));
        let found = looked.and_then(|glance| Some((self.cache.find_at_a_glance(&glance)?, glance.layout())));
        if let Some(straight) = found.and_then(|(found, _)| found.straight) {
            self.cache_hits += frames;
            return self.send_straight(straight, frame, frames, now, out);
        }
        let (decision, layout) = match found {
            Some((found, layout)) => {
                self.cache_hits += frames;
                (&found.decision, layout)
            }
            None => {
                let (key, layout) = FlowKey::extract_with_layout(in_port, &frame.bytes);
                if self.cache.find(&key).is_some() {
                    self.cache_hits += frames;
                } else {
                    let decision = translate(&self.pipeline, &key);
                    self.cache.insert(key, decision);
                }
                if let Some(glance) = glance {
                    self.cache.remember_glance(glance, &key);
                }
                let Some(decision) = self.cache.find(&key) else {
                    return impossible!("a decision that was just kept is not in the cache");
                };
                (decision, layout)
            }
        };
        let bytes = frame.link_bytes();
        for lookup in &decision.lookups[..decision.certain] {
            count_lookup(&mut self.tables, *lookup, frames);
            if let Some(flow) = lookup.flow {
                self.pipeline.credit(flow, frames, bytes, now);
            }
        }
        if decision.involved {
            self.stirred = true;
            let decision = Arc::clone(decision);
            let key = FlowKey::extract(in_port, &frame.bytes);
            return self.carry_out(&decision, (Start::Tables, key), frame, (in_port, now), out);
        }
        self.datapath.execute(&decision.steps, in_port, frame, layout, now, out);
    }

    /// Carries out a short decision on `frame`, which stands for `frames`.
    #[inline]
    fn send_straight(
        &mut self,
        straight: Straight,
        mut frame: Box<Frame>,
        frames: u64,
        now: Time,
        out: &mut Vec<Output>,
    ) {
        let bytes = frame.link_bytes();
        for (table, flow) in straight.lookups() {
            count_lookup(&mut self.tables, Lookup { table, flow: Some(flow) }, frames);
            self.pipeline.credit(flow, frames, bytes, now);
        }
        let port = straight.port.get();
        match self.datapath.refusal_of(port) {
            None => {
                frame.queue = u32::from(straight.queue);
                out.push(Output { port, frame });
            }
            Some(reason) => self.datapath.count_drop(reason, frames),
        }
    }

    /// Returns `true` if frames that came since the last call may have left more behind than frames to send: news for
    /// controllers, or flows that end sooner. All others leave [`next_timeout`](Self::next_timeout) as it is.
    pub fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred) || !self.events.is_empty()
    }

    fn credit(&mut self, lookup: Lookup, frames: u64, bytes: u64, now: Time) {
        count_lookup(&mut self.tables, lookup, frames);
        if let Some(flow) = lookup.flow {
            self.pipeline.credit(flow, frames, bytes, now);
        }
    }

    /// Adds a flow in `ovs-ofctl` syntax; one with the same table, match and priority is replaced.
    ///
    /// # Errors
    /// [`FlowSyntaxError`] points at the word that is wrong, or says that the flow overlaps another or that the
    /// switch is full; nothing is changed then.
    pub fn add_flow(&mut self, line: &str, now: Time) -> Result<(), FlowSyntaxError> {
        let mut flow = parse::flow(line)?;
        let refused = |problem: &str, remedy: &str| {
            let (token, problem, remedy) = (line.chars().take(60).collect(), problem.to_owned(), remedy.to_owned());
            FlowSyntaxError { token, column: 1, problem, remedy }
        };
        if flow.flags & CHECK_OVERLAP != 0 && self.pipeline.overlaps(flow.table, &flow.matching, flow.priority) {
            let remedy = "leave check_overlap away, or give it another priority";
            return Err(refused("overlaps a flow of the same priority", remedy));
        }
        // A wish about the addition, nothing of the flow.
        flow.flags &= !CHECK_OVERLAP;
        if !self.pipeline.add(flow, false, now) {
            return Err(refused(
                "finds the switch full",
                &format!("delete flows: a switch holds at most {MOST_FLOWS}"),
            ));
        }
        self.cache.invalidate();
        Ok(())
    }

    /// Checks a flow's syntax without a switch to add it to.
    ///
    /// # Errors
    /// As [`Switch::add_flow`].
    pub fn check_flow(line: &str) -> Result<(), FlowSyntaxError> {
        parse::flow(line).map(|_| ())
    }

    /// Deletes the flows that match within the given conditions (`table`, `cookie`, `out_port` and fields; none:
    /// all flows), and says how many.
    ///
    /// # Errors
    /// [`FlowSyntaxError`] points at the word that is wrong; nothing is deleted then.
    pub fn delete_flows(&mut self, match_line: &str, now: Time) -> Result<usize, FlowSyntaxError> {
        let selection = parse::selection(match_line)?;
        let deleted = self.pipeline.delete(&selection, RemovalReason::Delete, now, &mut self.events);
        self.cache.invalidate();
        Ok(deleted)
    }

    /// All flows as `ovs-ofctl dump-flows` prints them, by table, then priority, then age. Every line can be added
    /// again.
    #[must_use]
    pub fn dump_flows(&self, now: Time) -> Vec<String> {
        self.pipeline.dump(now)
    }

    /// Returns the time when [`Switch::expire`] is to be called next. May be early, when frames have kept a flow from
    /// its idle timeout; never late.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        self.pipeline.next_timeout()
    }

    /// Removes the flows whose time has run out; says how many.
    pub fn expire(&mut self, now: Time) -> usize {
        let expired = self.pipeline.expire(now, &mut self.events);
        if expired > 0 {
            self.cache.invalidate();
        }
        expired
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counters(&self) -> SwitchCounters {
        let drops = SwitchDrop::ALL.into_iter().zip(self.datapath.drops).filter(|(_, count)| *count > 0).collect();
        let misses = self.received - self.cache_hits - self.refused;
        let count = self.tables.len().max(if self.pipeline.is_empty() { 0 } else { 255 });
        let tables = (0..count).map(|table| {
            let (lookups, matches) = self.tables.get(table).copied().unwrap_or_default();
            TableCounters { table: table as u8, flows: self.pipeline.flows_in(table), lookups, matches }
        });
        SwitchCounters {
            received: self.received,
            cache_hits: self.cache_hits,
            cache_misses: misses,
            tables: tables.filter(|table| table.flows > 0 || table.lookups > 0).collect(),
            drops,
            stations: self.datapath.macs.len(),
        }
    }
}

fn count_lookup(tables: &mut Vec<(u64, u64)>, lookup: Lookup, frames: u64) {
    let table = usize::from(lookup.table);
    if tables.len() <= table {
        tables.resize(table + 1, (0, 0));
    }
    tables[table].0 += frames;
    if lookup.flow.is_some() {
        tables[table].1 += frames;
    }
}
