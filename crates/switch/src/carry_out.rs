//! Carrying out decisions that take more than the frame and the ports: copies for a group's buckets, meters,
//! headers that show themselves only when a tag is gone, and frames for the controllers.
//!
//! A decision depends on nothing but the flow key and the tables. Where the way goes on in dependence of something
//! else - a meter's bucket, a header behind a tag that was popped - it has a *stop*. At a stop the outcome is noted
//! and, unless it is the one that the decision was made for, the tables are walked once more with all outcomes so
//! far. The walk comes by the same stops in the same order, so that its steps are the same up to here, and the
//! frame goes on with the new ones.

use std::sync::Arc;

use twinnet_packet::{Field, FlowKey, Frame, Layout, Rewrite};
use twinnet_units::Time;

use super::action::Action;
use super::decision::{Decision, Outcome, Step, SwitchDrop};
use super::event::PacketInEvent;
use super::execute::Sender;
use super::flow::Flow;
use super::meter::Effect;
use super::port::NO_PACKET_IN;
use super::translate::{decide, Start};
use super::{Output, Switch};

/// A copy of the frame is being dealt with; afterwards the original goes on.
struct Fork {
    /// The step that began it.
    at: usize,
    original: Option<(Box<Frame>, Layout)>,
    /// Frames and bytes of the original.
    extent: (u64, u64),
}

/// A frame on its way through a decision.
struct Journey<'a> {
    start: Start<'a>,
    in_port: u32,
    /// The key that the frame came with.
    key: FlowKey,
    decision: Arc<Decision>,
    outcomes: Vec<Outcome>,
    forks: Vec<Fork>,
    next: usize,
    /// Frames and bytes of what is on its way, also when the last of it was sent.
    extent: (u64, u64),
    now: Time,
}

impl Journey<'_> {
    /// Returns the place where the steps of the innermost fork end, or all.
    fn end(&self) -> usize {
        let inner = self.forks.last().and_then(|fork| match self.decision.steps.get(fork.at) {
            Some(Step::Fork(length)) => Some(fork.at + 1 + usize::from(*length)),
            _ => None,
        });
        inner.unwrap_or(self.decision.steps.len())
    }
}

impl Switch {
    /// Carries out what was decided for the frame, which came with `key`.
    pub(super) fn carry_out(
        &mut self,
        decision: &Arc<Decision>,
        (start, key): (Start<'_>, FlowKey),
        frame: Box<Frame>,
        (in_port, now): (u32, Time),
        out: &mut Vec<Output>,
    ) {
        let mut rest = frame;
        // The frames of a train may meet different fates.
        while decision.steps.iter().any(Step::is_stop) {
            let Some(single) = rest.split_front(1) else { break };
            self.carry_out_one(decision, (start, key), single, (in_port, now), out);
        }
        self.carry_out_one(decision, (start, key), rest, (in_port, now), out);
    }

    fn carry_out_one(
        &mut self,
        decision: &Arc<Decision>,
        (start, key): (Start<'_>, FlowKey),
        frame: Box<Frame>,
        (in_port, now): (u32, Time),
        out: &mut Vec<Output>,
    ) {
        let mut layout = Layout::of(&frame.bytes);
        let mut journey = Journey {
            start,
            in_port,
            key,
            decision: Arc::clone(decision),
            outcomes: Vec::new(),
            forks: Vec::new(),
            next: 0,
            extent: (0, 0),
            now,
        };
        let mut sender = Sender { frame: Some(frame), out };
        loop {
            if journey.next >= journey.end() {
                let Some(fork) = journey.forks.pop() else { return };
                journey.extent = fork.extent;
                let (frame, place) = fork.original.unzip();
                (sender.frame, layout) = (frame, place.unwrap_or(layout));
                continue;
            }
            if !self.take_step(&mut journey, &mut sender, &mut layout) {
                return;
            }
        }
    }

    /// Takes the next step; false when the frame's way ends here.
    fn take_step(&mut self, journey: &mut Journey<'_>, sender: &mut Sender<'_>, layout: &mut Layout) -> bool {
        let at = journey.next;
        journey.next += 1;
        let step = journey.decision.steps[at];
        let there = sender.frame.as_ref().map(|frame| (frame.frames(), frame.link_bytes()));
        let (frames, bytes) = there.unwrap_or(journey.extent);
        journey.extent = (frames, bytes);
        match step {
            Step::Fork(length) => {
                let after = at + 1 + usize::from(length);
                let needed = journey.decision.steps[after.min(journey.end())..journey.end()].iter().any(Step::sends);
                let original = sender.frame.as_ref().filter(|_| needed).map(|frame| (frame.clone(), *layout));
                journey.forks.push(Fork { at, original, extent: journey.extent });
            }
            Step::Lookup(index) => {
                if let Some(lookup) = journey.decision.lookups.get(usize::from(index)).copied() {
                    self.credit(lookup, frames, bytes, journey.now);
                }
            }
            Step::Group { group, bucket } => {
                self.pipeline.groups.credit(group, bucket.map(usize::from), frames, bytes);
            }
            Step::Meter(meter) => {
                let Some(frame) = &sender.frame else { return true };
                let outcome = match self.pipeline.meters.measure(meter, frame, journey.now) {
                    None => Outcome::Passed,
                    Some(Effect::Remark(steps)) => Outcome::Remarked(steps),
                    Some(Effect::Drop) => {
                        self.datapath.count_drop(SwitchDrop::Meter, frames);
                        return false;
                    }
                };
                journey.outcomes.push(outcome);
                if outcome != Outcome::Passed || journey.outcomes.iter().any(|earlier| *earlier != Outcome::Passed) {
                    self.decide_again(journey);
                }
            }
            Step::Learn(place) => {
                if let Some(flow) = journey.decision.learnt.get(usize::from(place)).cloned() {
                    self.learn(flow, journey.now);
                }
            }
            Step::Shorten { lookup, idle_s, hard_s } => {
                let lookup = journey.decision.lookups.get(usize::from(lookup));
                if let Some(flow) = lookup.and_then(|lookup| lookup.flow) {
                    self.pipeline.shorten(flow, idle_s, hard_s);
                }
            }
            Step::Reparse => {
                let Some(frame) = &sender.frame else { return true };
                journey.outcomes.push(Outcome::Parsed(FlowKey::extract(journey.in_port, &frame.bytes)));
                self.decide_again(journey);
            }
            Step::Controller { max_len, controller, lookup, reason, missed, metadata, tunnel } => {
                let lookup = journey.decision.lookups.get(usize::from(lookup)).copied();
                let cookie = lookup.and_then(|lookup| self.pipeline.flow(lookup.flow?)).map_or(0, |flow| flow.cookie);
                let silent =
                    self.datapath.ports.get(journey.in_port).is_some_and(|port| port.config & NO_PACKET_IN != 0);
                let event = PacketInEvent {
                    reason,
                    controller,
                    missed,
                    table: lookup.map_or(0, |lookup| lookup.table),
                    cookie,
                    in_port: journey.in_port,
                    metadata,
                    tunnel,
                    max_len,
                    bytes: Vec::new(),
                };
                let frame = sender.frame.as_ref().filter(|_| !silent).cloned();
                self.tell_controllers(&event, frame, frames);
            }
            step => {
                let rest = &journey.decision.steps[journey.next.min(journey.end())..journey.end()];
                let last = step.sends() && !rest.iter().any(Step::sends);
                if let Some(reason) = self.datapath.step(step, sender, layout, journey.in_port, last, journey.now) {
                    self.datapath.count_drop(reason, frames);
                }
            }
        }
        true
    }

    /// Walks the tables again with what came out at the stops so far, and goes on after the last of them.
    fn decide_again(&self, journey: &mut Journey<'_>) {
        let decision = decide(&self.pipeline, &journey.key, journey.start, &journey.outcomes);
        journey.next = decision.after_stop(journey.outcomes.len());
        journey.decision = Arc::new(decision);
    }

    /// Adds a flow that a frame taught; one that does the same already is only used once more, so that it does not
    /// idle out.
    fn learn(&mut self, flow: Flow, now: Time) {
        if !self.pipeline.renew(&flow, now) && self.pipeline.add(flow, true, now) {
            self.cache.invalidate();
        }
    }

    /// Puts the frames of a train aside for the controllers, each by itself, as the bytes that a wire would carry.
    fn tell_controllers(&mut self, event: &PacketInEvent, frame: Option<Box<Frame>>, frames: u64) {
        let mut told = 0;
        if let Some(mut rest) = frame {
            loop {
                let single = rest.split_front(1);
                let is_last = single.is_none();
                let mut frame = single.unwrap_or_else(|| std::mem::take(&mut rest));
                frame.finish_checksum();
                let mut bytes = frame.bytes;
                bytes.resize(bytes.len() + frame.elided as usize, 0);
                told += u64::from(self.events.push_packet_in(PacketInEvent { bytes, ..event.clone() }));
                if is_last {
                    break;
                }
            }
        }
        if told < frames {
            let reason = if event.missed { SwitchDrop::NoFlow } else { SwitchDrop::Controller };
            self.datapath.count_drop(reason, frames - told);
        }
    }

    /// Carries out `actions` on a frame that a controller sends, as if it had come in by `in_port`.
    pub(super) fn act_on(
        &mut self,
        actions: &[Action],
        in_port: u32,
        frame: Box<Frame>,
        now: Time,
        out: &mut Vec<Output>,
    ) {
        let key = FlowKey::extract(in_port, &frame.bytes);
        let start = Start::Actions(actions);
        let decision = Arc::new(decide(&self.pipeline, &key, start, &[]));
        let (frames, bytes) = (frame.frames(), frame.link_bytes());
        for lookup in &decision.lookups[..decision.certain] {
            self.credit(*lookup, frames, bytes, now);
        }
        let first = out.len();
        self.carry_out(&decision, (start, key), frame, (in_port, now), out);
        self.mirror_sent(first, out);
    }
}

/// The rewriting that raises the drop precedence of a frame with `key`, whose key it changes alike.
pub(super) fn remark(key: &mut FlowKey, steps: u8) -> Option<Rewrite> {
    if !matches!(key.eth_type(), 0x0800 | 0x86dd) {
        return None;
    }
    let dscp = super::meter::raised_precedence(key.get(Field::IP_DSCP) as u8, steps);
    key.set(Field::IP_DSCP, u128::from(dscp));
    Some(Rewrite::TrafficClass(key.get(Field::NW_TOS) as u8))
}
