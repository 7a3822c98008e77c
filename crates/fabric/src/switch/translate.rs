//! From flow key to decision: walks the flow tables, carrying every change of a header in the key instead of the frame.

use twinnet_packet::{mac_of, Field, FlowKey, Rewrite};

use super::action::Action;
use super::decision::{Decision, Lookup, Step, SwitchDrop};
use super::field::MatchField;
use super::mac_table::Station;
use super::pipeline::Pipeline;

/// Resubmits within resubmits, and in all; as in Open vSwitch.
const RESUBMIT_DEPTH: usize = 64;
const RESUBMITS: usize = 4096;

/// Why the walk ended before its end.
enum Halt {
    TimeToLive,
    Resubmit,
}

struct Walk<'a> {
    pipeline: &'a Pipeline,
    /// The key as the frame would have it now.
    key: FlowKey,
    /// The frame came in by this port, whatever resubmits pretend.
    in_port: u32,
    decision: Decision,
    queue: u32,
    action_set: Vec<Action>,
    resubmits: usize,
    normal_on_miss: bool,
    /// Why nothing is sent, if so.
    reason: SwitchDrop,
}

/// Decides what becomes of frames with `key`. `normal_on_miss`: what no flow of the first table matches is switched as by a
/// learning switch.
pub(super) fn translate(pipeline: &Pipeline, key: &FlowKey, normal_on_miss: bool) -> Decision {
    let (mut decision, _) = walk(pipeline, key, normal_on_miss);
    // A change after the last output changes nothing that is sent.
    while matches!(decision.steps.last(), Some(Step::Rewrite(_))) {
        decision.steps.pop();
    }
    decision
}

/// All steps in order, and the key that a frame has after them.
pub(super) fn walk(pipeline: &Pipeline, key: &FlowKey, normal_on_miss: bool) -> (Decision, FlowKey) {
    let mut walk = Walk {
        pipeline,
        key: *key,
        in_port: u32::try_from(key.get(Field::IN_PORT)).unwrap_or(0),
        decision: Decision::default(),
        queue: 0,
        action_set: Vec::new(),
        resubmits: 0,
        normal_on_miss,
        reason: SwitchDrop::Action,
    };
    let ended = walk.table(0, 0).and_then(|()| walk.run_action_set());
    match ended {
        Ok(()) => {}
        Err(Halt::TimeToLive) => walk.push(Step::Drop(SwitchDrop::TimeToLive)),
        Err(Halt::Resubmit) => {
            walk.decision.steps = vec![Step::Drop(SwitchDrop::Resubmit)];
            walk.key = *key;
        }
    }
    if walk.decision.steps.iter().all(|step| matches!(step, Step::Rewrite(_))) {
        walk.push(Step::Drop(walk.reason));
    }
    (walk.decision, walk.key)
}

impl Walk<'_> {
    /// Looks up in `table` and the tables that its flows go on to.
    fn table(&mut self, mut table: u8, depth: usize) -> Result<(), Halt> {
        loop {
            let flow = self.pipeline.find(table, &self.key);
            self.decision.lookups.push(Lookup { table, flow });
            let Some(flow) = flow.and_then(|id| self.pipeline.flow(id)) else {
                if table == 0 && depth == 0 && self.normal_on_miss {
                    self.normal();
                } else if depth == 0 {
                    // OpenFlow 1.3, 5.4: without a table-miss flow the packet is dropped, its action set with it.
                    self.action_set.clear();
                    self.reason = SwitchDrop::NoFlow;
                }
                return Ok(());
            };
            let mut next = None;
            for action in &flow.actions {
                match action {
                    Action::GotoTable(goto) => next = Some(*goto),
                    Action::Resubmit { port, table: wanted } => self.resubmit(*port, wanted.unwrap_or(table), depth)?,
                    action => self.act(action)?,
                }
            }
            // `goto_table` leads to later tables only, so this ends.
            match next {
                Some(next) if next > table => table = next,
                _ => return Ok(()),
            }
        }
    }

    fn resubmit(&mut self, port: Option<u32>, table: u8, depth: usize) -> Result<(), Halt> {
        self.resubmits += 1;
        if depth >= RESUBMIT_DEPTH || self.resubmits > RESUBMITS {
            return Err(Halt::Resubmit);
        }
        let before = self.key.get(Field::IN_PORT);
        if let Some(port) = port {
            self.key.set(Field::IN_PORT, u128::from(port));
        }
        let result = self.table(table, depth + 1);
        self.key.set(Field::IN_PORT, before);
        result
    }

    fn run_action_set(&mut self) -> Result<(), Halt> {
        let mut set = std::mem::take(&mut self.action_set);
        set.sort_by_key(Action::rank);
        set.iter().try_for_each(|action| self.act(action))
    }

    fn push(&mut self, step: Step) {
        self.decision.steps.push(step);
    }

    fn output(&mut self, port: u32, queue: u32) {
        self.push(if port == self.in_port { Step::Drop(SwitchDrop::ToIngress) } else { Step::Output { port, queue } });
    }

    fn normal(&mut self) {
        let vlan = u16::try_from(self.key.get(Field::VLAN_VID)).unwrap_or(0);
        let source = Station::new(vlan, self.key.eth_src());
        let destination = Station::new(vlan, self.key.eth_dst());
        let queue = self.queue;
        self.push(Step::Normal { source, destination, queue });
    }

    fn act(&mut self, action: &Action) -> Result<(), Halt> {
        let queue = self.queue;
        match action {
            Action::Output(port) => self.output(*port, queue),
            Action::InPort => self.push(Step::InPort { queue }),
            Action::Flood => self.push(Step::Flood { queue }),
            Action::All => self.push(Step::All { queue }),
            Action::Normal => self.normal(),
            Action::Local => self.push(Step::Drop(SwitchDrop::Local)),
            Action::Controller(_) => self.push(Step::Drop(SwitchDrop::Controller)),
            Action::Enqueue { port, queue } => self.output(*port, *queue),
            Action::SetQueue(queue) => self.queue = *queue,
            Action::PopQueue => self.queue = 0,
            Action::SetField { field, value, mask } => self.set(field, *value, *mask),
            Action::Modify { field, value, .. } => self.set(field, *value, field.field.maximum()),
            Action::PushVlan(protocol) => self.push_vlan(*protocol),
            Action::PopVlan => self.pop_vlan(),
            Action::DecrementTtl => self.decrement_ttl()?,
            Action::WriteMetadata { value, mask } => {
                let kept = self.key.get(Field::METADATA) & !u128::from(*mask);
                self.key.set(Field::METADATA, kept | u128::from(*value));
            }
            Action::WriteActions(actions) => {
                for action in actions {
                    self.action_set.retain(|other| !action.replaces(other));
                    self.action_set.push(action.clone());
                }
            }
            Action::ClearActions => self.action_set.clear(),
            // The walk itself does these.
            Action::Drop | Action::GotoTable(_) | Action::Resubmit { .. } => {}
        }
        Ok(())
    }

    fn push_vlan(&mut self, protocol: u16) {
        let outer = self.key.get(Field::VLAN_TCI);
        if outer != 0 {
            self.key.set(Field::INNER_VLAN_TCI, outer);
        }
        // As in Open vSwitch, the new tag has priority and identifier 0.
        self.key.set(Field::VLAN_TCI, 0x1000);
        self.push(Step::Rewrite(Rewrite::PushVlan { protocol, tci: 0 }));
    }

    fn pop_vlan(&mut self) {
        if self.key.get(Field::VLAN_PRESENT) == 1 {
            let inner = self.key.get(Field::INNER_VLAN_TCI);
            self.key.set(Field::VLAN_TCI, inner);
            self.key.set(Field::INNER_VLAN_TCI, 0);
            self.push(Step::Rewrite(Rewrite::PopVlan));
        }
    }

    /// RFC 1812, 5.3.1: a packet whose time to live would become zero is not forwarded.
    fn decrement_ttl(&mut self) -> Result<(), Halt> {
        if !matches!(self.key.eth_type(), 0x0800 | 0x86dd) {
            return Ok(());
        }
        let ttl = self.key.get(Field::NW_TTL);
        if ttl <= 1 {
            return Err(Halt::TimeToLive);
        }
        self.key.set(Field::NW_TTL, ttl - 1);
        self.push(Step::Rewrite(Rewrite::TimeToLive((ttl - 1) as u8)));
        Ok(())
    }

    /// Sets those bits of a field that the mask has, where the frame has the field.
    fn set(&mut self, field: &MatchField, value: u128, mask: u128) {
        let at = field.field;
        let vlan = matches!(at, Field::VLAN_VID_PRESENT | Field::VLAN_PCP);
        if vlan && self.key.get(Field::VLAN_PRESENT) == 0 {
            self.push_vlan(0x8100);
        }
        let before = self.key;
        self.key.set(at, self.key.get(at) & !mask | value & mask);
        if vlan {
            self.key.set(Field::VLAN_PRESENT, 1);
        }
        if matches!(at, Field::METADATA | Field::TUNNEL_ID) {
            return;
        }
        match rewrite_of(&self.key, at) {
            Some(rewrite) => self.push(Step::Rewrite(rewrite)),
            // A later fragment, or a header cut short: the frame has no such field.
            None => self.key = before,
        }
    }
}

/// The change that gives a frame the field as `key` has it; `None` where frames with such a key have no such field.
#[allow(clippy::cast_possible_truncation)]
fn rewrite_of(key: &FlowKey, field: Field) -> Option<Rewrite> {
    let value = key.get(field);
    let (word, byte, mac) = (value as u16, value as u8, mac_of(value));
    let v4_address = (value as u32).to_be_bytes();
    let v6_address = value.to_be_bytes();
    let eth_type = key.eth_type();
    let (v4, v6, arp) = (eth_type == 0x0800, eth_type == 0x86dd, matches!(eth_type, 0x0806 | 0x8035));
    let first = (v4 || v6) && key.get(Field::NW_FRAG) & 2 == 0;
    let protocol = key.ip_proto();
    let ports = first && matches!(protocol, 6 | 17 | 132);
    let icmp = first && (v4 && protocol == 1 || v6 && protocol == 58);
    let kind = if first && v6 && protocol == 58 { key.get(Field::TP_SRC) } else { 0 };
    Some(match field {
        Field::ETH_SRC => Rewrite::EthSrc(mac),
        Field::ETH_DST => Rewrite::EthDst(mac),
        Field::VLAN_VID_PRESENT | Field::VLAN_PCP => Rewrite::VlanTci(key.vlan_tci()),
        Field::MPLS_LABEL | Field::MPLS_TC | Field::MPLS_TTL if matches!(eth_type, 0x8847 | 0x8848) => {
            Rewrite::MplsEntry(key.get(Field::MPLS_LSE) as u32)
        }
        Field::NW_SRC if v4 => Rewrite::Ipv4Src(v4_address),
        Field::NW_DST if v4 => Rewrite::Ipv4Dst(v4_address),
        Field::NW_SRC if arp => Rewrite::ArpSpa(v4_address),
        Field::NW_DST if arp => Rewrite::ArpTpa(v4_address),
        Field::NW_PROTO if arp => Rewrite::ArpOperation(word),
        Field::ARP_SHA if arp => Rewrite::ArpSha(mac),
        Field::ARP_THA if arp => Rewrite::ArpTha(mac),
        Field::ARP_SHA if kind == 135 => Rewrite::NdSourceLink(mac),
        Field::ARP_THA if kind == 136 => Rewrite::NdTargetLink(mac),
        Field::ND_TARGET if matches!(kind, 135 | 136) => Rewrite::NdTarget(v6_address),
        Field::IPV6_SRC if v6 => Rewrite::Ipv6Src(v6_address),
        Field::IPV6_DST if v6 => Rewrite::Ipv6Dst(v6_address),
        Field::IPV6_LABEL if v6 => Rewrite::FlowLabel(value as u32),
        Field::IP_DSCP | Field::IP_ECN if v4 || v6 => Rewrite::TrafficClass(key.get(Field::NW_TOS) as u8),
        Field::NW_TTL if v4 || v6 => Rewrite::TimeToLive(byte),
        Field::TP_SRC if ports => Rewrite::SourcePort(word),
        Field::TP_DST if ports => Rewrite::DestinationPort(word),
        Field::TP_SRC if icmp => Rewrite::IcmpType(byte),
        Field::TP_DST if icmp => Rewrite::IcmpCode(byte),
        _ => return None,
    })
}
