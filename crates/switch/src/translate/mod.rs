//! From flow key to decision: walks the flow tables, carrying every change of a header in the key instead of the frame.

mod headers;

use twinnet_packet::{Field, FlowKey, Glance, Rewrite};

use crate::action::Action;
use crate::carry_out::remark;
use crate::decision::{Decision, Lookup, Outcome, Step, SwitchDrop};
use crate::event::PacketInReason;
use crate::extension::Effect;
use crate::mac_table::Station;
use crate::pipeline::Pipeline;
use crate::value::PORT_LOCAL;

/// Resubmits within resubmits, and in all; as in Open vSwitch.
const RESUBMIT_DEPTH: usize = 64;
const RESUBMITS: usize = 4096;
/// Groups within groups, and steps of a decision before a group is not entered any more.
const GROUP_DEPTH: usize = 32;
const MOST_STEPS: usize = 16_384;

/// Why the walk ended before its end.
enum Halt {
    TimeToLive,
    Resubmit,
    /// The actions said so.
    Exit,
    /// The headers have to be looked at anew first.
    Reparse,
}

/// The treatment of frames that no flow matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    Drop,
    /// In the first table: as by a learning switch.
    Normal,
    /// Some controller speaks OpenFlow 1.0, which has them sent to it.
    Controller,
}

/// The settings of a walk beside the flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) miss: Miss,
    pub(crate) drop_fragments: bool,
    /// Bytes of a frame that go to the controllers when no action says how many.
    pub(crate) miss_send_len: u16,
    /// `true` if some controller wants frames whose time to live ran out.
    pub(crate) tell_invalid_ttl: bool,
}

/// The place where a walk begins.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// At the first table.
    Tables,
    /// With these actions.
    Actions(&'a [Action]),
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
    /// The outcomes of the stops that are behind the frame.
    outcomes: &'a [Outcome],
    /// Stops so far.
    stops: usize,
    /// `true` if the key no longer tells what headers the frame has.
    stale: bool,
    /// `true` if the flow that is being carried out is a table-miss flow.
    table_miss: bool,
    /// Groups within groups.
    depth: usize,
    /// Why nothing is sent, if so.
    reason: SwitchDrop,
}

/// Decides what becomes of frames with `key`.
pub(crate) fn translate(pipeline: &Pipeline, key: &FlowKey) -> Decision {
    decide(pipeline, key, Start::Tables, &[])
}

/// Decides what becomes of frames with `key` for which stops had these `outcomes`.
pub(crate) fn decide(pipeline: &Pipeline, key: &FlowKey, start: Start<'_>, outcomes: &[Outcome]) -> Decision {
    let (mut decision, _) = walk(pipeline, key, start, outcomes);
    // A change after the last output changes nothing that is sent.
    while matches!(decision.steps.last(), Some(Step::Rewrite(_))) && !decision.steps.iter().any(Step::is_involved) {
        decision.steps.pop();
    }
    let uncertain = decision.steps.iter().filter(|step| matches!(step, Step::Lookup(_))).count();
    decision.certain = decision.lookups.len() - uncertain;
    decision.involved = decision.steps.iter().any(Step::is_involved);
    decision
}

/// All steps in order, and the key that a frame has after them.
pub(crate) fn walk(pipeline: &Pipeline, key: &FlowKey, start: Start<'_>, outcomes: &[Outcome]) -> (Decision, FlowKey) {
    let mut walk = Walk {
        pipeline,
        key: *key,
        in_port: u32::try_from(key.get(Field::IN_PORT)).unwrap_or(0),
        decision: Decision::default(),
        queue: 0,
        action_set: Vec::new(),
        resubmits: 0,
        outcomes,
        stops: 0,
        stale: false,
        table_miss: false,
        depth: 0,
        reason: SwitchDrop::Action,
    };
    if pipeline.settings.drop_fragments && key.get(Field::NW_FRAG) != 0 {
        walk.push(Step::Drop(SwitchDrop::Fragment));
        return (walk.decision, walk.key);
    }
    let ended = match start {
        Start::Tables => walk.table(0, 0).and_then(|()| walk.run_action_set()),
        Start::Actions(actions) => walk.list(actions),
    };
    match ended {
        Ok(()) | Err(Halt::Exit) => {}
        Err(Halt::Reparse) => return (walk.decision, walk.key),
        Err(Halt::TimeToLive) => walk.invalid_ttl(),
        Err(Halt::Resubmit) => {
            walk.decision.steps = vec![Step::Drop(SwitchDrop::Resubmit)];
            walk.decision.learnt.clear();
            walk.key = *key;
        }
    }
    let does_nothing = |step: &Step| step.stays_inside() || matches!(step, Step::Rewrite(_));
    if walk.decision.steps.iter().all(does_nothing) {
        walk.push(Step::Drop(walk.reason));
    }
    (walk.decision, walk.key)
}

impl Walk<'_> {
    /// Looks up in `table` and the tables that its flows go on to.
    fn table(&mut self, mut table: u8, depth: usize) -> Result<(), Halt> {
        loop {
            self.look_again()?;
            let found = self.pipeline.find(table, &self.key);
            if self.stops > 0 {
                self.push(Step::Lookup(u16::try_from(self.decision.lookups.len()).unwrap_or(u16::MAX)));
            }
            self.decision.lookups.push(Lookup { table, flow: found });
            let Some(flow) = found.and_then(|id| self.pipeline.flow(id)) else {
                self.missed(table, depth);
                return Ok(());
            };
            self.table_miss = flow.is_table_miss();
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

    fn missed(&mut self, table: u8, depth: usize) {
        if depth > 0 {
            return;
        }
        match self.pipeline.settings.miss {
            Miss::Normal if table == 0 => self.normal(),
            Miss::Controller => {
                self.action_set.clear();
                let max_len = self.pipeline.settings.miss_send_len;
                self.tell_controllers((max_len, 0), PacketInReason::NoMatch, true);
            }
            _ => {
                // OpenFlow 1.3, 5.4: without a table-miss flow the packet is dropped, its action set with it.
                self.action_set.clear();
                self.reason = SwitchDrop::NoFlow;
            }
        }
    }

    fn tell_controllers(&mut self, (max_len, controller): (u16, u16), reason: PacketInReason, missed: bool) {
        let lookup = u16::try_from(self.decision.lookups.len().saturating_sub(1)).unwrap_or(u16::MAX);
        let metadata = self.key.get(Field::METADATA) as u64;
        let tunnel = self.key.get(Field::TUNNEL_ID) as u64;
        self.push(Step::Controller { max_len, controller, lookup, reason, missed, metadata, tunnel });
    }

    /// The frame is gone; controllers that asked for such frames get it.
    fn invalid_ttl(&mut self) {
        self.push(Step::Drop(SwitchDrop::TimeToLive));
        if self.pipeline.settings.tell_invalid_ttl {
            let max_len = self.pipeline.settings.miss_send_len;
            self.tell_controllers((max_len, 0), PacketInReason::InvalidTtl, false);
        }
    }

    /// Takes a stale key from the frame anew; ends the walk where the frame has not come so far yet.
    fn look_again(&mut self) -> Result<(), Halt> {
        if !self.stale {
            return Ok(());
        }
        self.push(Step::Reparse);
        self.stops += 1;
        let Some(Outcome::Parsed(found)) = self.outcomes.get(self.stops - 1) else { return Err(Halt::Reparse) };
        let before = std::mem::replace(&mut self.key, *found);
        for field in [Field::METADATA, Field::TUNNEL_ID, Field::IN_PORT] {
            self.key.set(field, before.get(field));
        }
        for number in 0..4 {
            self.key.set(Field::widest_register(number), before.get(Field::widest_register(number)));
        }
        self.stale = false;
        Ok(())
    }

    fn meter(&mut self, meter: u32) {
        self.push(Step::Meter(meter));
        self.stops += 1;
        if let Some(Outcome::Remarked(steps)) = self.outcomes.get(self.stops - 1) {
            if let Some(rewrite) = remark(&mut self.key, *steps) {
                self.push(Step::Rewrite(rewrite));
            }
        }
    }

    /// Carries out `work` on a copy of the frame.
    fn fork(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Halt>) -> Result<(), Halt> {
        let at = self.decision.steps.len();
        self.push(Step::Fork(0));
        let (key, queue, stale) = (self.key, self.queue, self.stale);
        let set = std::mem::take(&mut self.action_set);
        let result = work(self);
        let length = u16::try_from(self.decision.steps.len() - at - 1).unwrap_or(u16::MAX);
        self.decision.steps[at] = Step::Fork(length);
        (self.key, self.queue, self.stale, self.action_set) = (key, queue, stale, set);
        match result {
            Err(Halt::TimeToLive) => {
                self.invalid_ttl();
                let length = u16::try_from(self.decision.steps.len() - at - 1).unwrap_or(u16::MAX);
                self.decision.steps[at] = Step::Fork(length);
                Ok(())
            }
            other => other,
        }
    }

    fn group(&mut self, group: u32) -> Result<(), Halt> {
        if self.depth >= GROUP_DEPTH || self.decision.steps.len() > MOST_STEPS {
            return Err(Halt::Resubmit);
        }
        self.look_again()?;
        self.push(Step::Group { group, bucket: None });
        let taken = self.pipeline.groups.taken(group, &self.key);
        if taken.is_empty() {
            self.push(Step::Drop(SwitchDrop::NoBucket));
        }
        let pipeline = self.pipeline;
        for index in taken {
            let Some(bucket) = pipeline.groups.get(group).and_then(|group| group.buckets.get(index)) else { continue };
            self.push(Step::Group { group, bucket: u16::try_from(index).ok() });
            self.depth += 1;
            let result = self.fork(|walk| {
                for action in &bucket.actions {
                    walk.write(action);
                }
                walk.run_action_set()
            });
            self.depth -= 1;
            result?;
        }
        Ok(())
    }

    /// Puts an action into the action set.
    fn write(&mut self, action: &Action) {
        self.action_set.retain(|other| !action.replaces(other));
        self.action_set.push(action.clone());
    }

    /// Carries out a list of actions.
    fn list(&mut self, actions: &[Action]) -> Result<(), Halt> {
        actions.iter().try_for_each(|action| match action {
            Action::Resubmit { port, table } => self.resubmit(*port, table.unwrap_or(0), 0),
            action => self.act(action),
        })
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
        // "If both an output action and a group action are specified in an action set, the output action is
        // ignored" (5.10).
        if set.iter().any(|action| matches!(action, Action::Group(_))) {
            set.retain(|action| !action.is_output());
        }
        set.iter().try_for_each(|action| self.act(action))
    }

    fn push(&mut self, step: Step) {
        self.decision.steps.push(step);
    }

    fn output(&mut self, port: u32, queue: u32) {
        self.push(if port == self.in_port { Step::Drop(SwitchDrop::ToIngress) } else { Step::Output { port, queue } });
    }

    fn normal(&mut self) {
        self.decision.reads = self.decision.reads.union(&Glance::ETHERNET);
        let vlan = u16::try_from(self.key.get(Field::VLAN_VID)).unwrap_or(0);
        let source = Station::new(vlan, self.key.eth_src());
        let destination = Station::new(vlan, self.key.eth_dst());
        let queue = self.queue;
        self.push(Step::Normal { source, destination, queue });
    }

    fn act(&mut self, action: &Action) -> Result<(), Halt> {
        let queue = self.queue;
        if action.reads_headers() {
            self.look_again()?;
            if *action != Action::Normal {
                self.decision.reads = Glance::EVERYTHING;
            }
        }
        match action {
            Action::Output(port) => self.output(*port, queue),
            Action::InPort => self.push(Step::InPort { queue }),
            Action::Flood => self.push(Step::Flood { queue }),
            Action::All => self.push(Step::All { queue }),
            Action::Normal => self.normal(),
            Action::Local => self.output(PORT_LOCAL, queue),
            Action::Controller { max_len, id, reason } => {
                let usual = if self.table_miss { PacketInReason::NoMatch } else { PacketInReason::Action };
                self.tell_controllers((*max_len, *id), reason.unwrap_or(usual), false);
            }
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
                    self.write(action);
                }
            }
            Action::Group(group) => self.group(*group)?,
            Action::Meter(meter) => self.meter(*meter),
            Action::PushMpls(protocol) => self.push_mpls(*protocol),
            Action::PopMpls(protocol) if matches!(self.key.eth_type(), 0x8847 | 0x8848) => {
                self.push(Step::Rewrite(Rewrite::PopMpls(*protocol)));
                self.stale = true;
            }
            Action::PushBackbone(_) => {
                let service = if self.key.eth_type() == 0x88e7 { self.key.get(Field::PBB_ISID) } else { 0 };
                let priority = self.key.get(Field::VLAN_PCP) as u32;
                self.push(Step::Rewrite(Rewrite::PushBackbone(priority << 29 | service as u32)));
                self.stale = true;
            }
            Action::PopBackbone if self.key.eth_type() == 0x88e7 => {
                self.push(Step::Rewrite(Rewrite::PopBackbone));
                self.stale = true;
            }
            Action::SetMplsTtl(ttl) => self.set_mpls_ttl(u128::from(*ttl)),
            Action::DecrementMplsTtl if matches!(self.key.eth_type(), 0x8847 | 0x8848) => {
                let ttl = self.key.get(Field::MPLS_TTL);
                if ttl <= 1 {
                    return Err(Halt::TimeToLive);
                }
                self.set_mpls_ttl(ttl - 1);
            }
            Action::SetTtl(ttl) if matches!(self.key.eth_type(), 0x0800 | 0x86dd) => {
                self.key.set(Field::NW_TTL, u128::from(*ttl));
                self.push(Step::Rewrite(Rewrite::TimeToLive(*ttl)));
            }
            Action::CopyTtlIn => self.push(Step::Rewrite(Rewrite::CopyTtlIn)),
            Action::CopyTtlOut => {
                self.push(Step::Rewrite(Rewrite::CopyTtlOut));
                self.stale |= matches!(self.key.eth_type(), 0x8847 | 0x8848);
            }
            Action::Move { from, from_bit, to, to_bit, bits } => {
                let ones = ones(*bits);
                let value = self.key.get(from.field) >> from_bit & ones;
                self.set(to, value << to_bit, ones << to_bit);
            }
            Action::OutputField { field, first_bit, bits } => {
                let port = self.key.get(field.field) >> first_bit & ones(*bits);
                self.output(u32::try_from(port).unwrap_or(u32::MAX), queue);
            }
            Action::Extension(extension) => match extension.effect(&self.key, &self.pipeline.groups) {
                Effect::Set(to, value) => self.set(to.field, value << to.first_bit, to.ones() << to.first_bit),
                Effect::Output(port) => self.output(port, queue),
                Effect::Nothing => {}
                Effect::Learn(flow) => {
                    if let Ok(place) = u16::try_from(self.decision.learnt.len()) {
                        self.push(Step::Learn(place));
                        self.decision.learnt.push(*flow);
                    }
                }
                Effect::Shorten(idle_s, hard_s) => {
                    let lookup = u16::try_from(self.decision.lookups.len().saturating_sub(1)).unwrap_or(u16::MAX);
                    self.push(Step::Shorten { lookup, idle_s, hard_s });
                }
            },
            Action::Exit => return Err(Halt::Exit),
            Action::Table => {
                self.resubmits += 1;
                if self.resubmits > RESUBMITS {
                    return Err(Halt::Resubmit);
                }
                self.fork(|walk| walk.table(0, 0).and_then(|()| walk.run_action_set()))?;
            }
            Action::ClearActions => self.action_set.clear(),
            // The walk itself does these.
            Action::Drop | Action::Note(_) | Action::GotoTable(_) | Action::Resubmit { .. } => {}
            // The frame has no such tag.
            Action::PopMpls(_) | Action::PopBackbone | Action::DecrementMplsTtl | Action::SetTtl(_) => {}
        }
        Ok(())
    }
}

/// So many one bits.
fn ones(bits: u16) -> u128 {
    u128::MAX.checked_shr(128 - u32::from(bits.clamp(1, 128))).unwrap_or(u128::MAX)
}
