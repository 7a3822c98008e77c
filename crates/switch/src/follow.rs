//! What would become of a frame, and why: its way through the tables without sending, counting or learning anything.

use schemars::JsonSchema;
use serde::Serialize;
use twinnet_packet::{FlowKey, Frame, Layout};
use twinnet_units::Time;

use super::decision::{Decision, Lookup, Outcome, Step, SwitchDrop};
use super::execute::Sender;
use super::field::{MatchField, FIELDS};
use super::translate::{decide, Start};
use super::value;
use super::{Output, Switch};

/// The way of one frame through a switch.
#[derive(Debug, Default)]
pub struct Followed {
    /// What is done with it, in order.
    pub steps: Vec<FollowedStep>,
    /// Where it leaves; copies for mirrors are left out.
    pub outputs: Vec<Output>,
}

/// One thing that is done with a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FollowedStep {
    /// What it is.
    pub kind: FollowedKind,
    /// The number of the table, group, meter or controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The flow entry, the new values of fields, the bucket of a group, or why the frame is dropped. A table without:
    /// no flow matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A kind of thing that is done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FollowedKind {
    /// It is looked up in a table.
    Table,
    /// It passes a group, or one of its buckets.
    Group,
    /// It is measured by a meter, which is taken to let it pass.
    Meter,
    /// Fields of it get other values.
    Rewrite,
    /// It teaches a flow.
    Learn,
    /// It is switched as by a learning switch.
    Normal,
    /// It goes to a controller.
    Controller,
    /// It, or a copy of it, is dropped.
    Drop,
}

/// A frame that is followed.
struct Follower<'a> {
    switch: &'a Switch,
    in_port: u32,
    now: Time,
    /// The key that the frame came with.
    key: FlowKey,
    decision: Decision,
    outcomes: Vec<Outcome>,
    /// The next step.
    next: usize,
    seen: Followed,
}

impl Switch {
    /// Says what would become of `frame` if it came in by `in_port` at `now`. Nothing changes.
    #[must_use]
    pub fn follow(&self, in_port: u32, frame: Frame, now: Time) -> Followed {
        let key = FlowKey::extract(in_port, &frame.bytes);
        let decision = decide(&self.pipeline, &key, Start::Tables, &[]);
        let (outcomes, seen) = (Vec::new(), Followed::default());
        let mut follower = Follower { switch: self, in_port, now, key, decision, outcomes, next: 0, seen };
        match self.datapath.refusal_from(in_port) {
            Some(reason) => follower.drop(reason),
            None => {
                for at in 0..follower.decision.certain {
                    follower.look_up(follower.decision.lookups[at]);
                }
                let layout = Layout::of(&frame.bytes);
                follower.walk(Box::new(frame), layout, None);
            }
        }
        follower.seen
    }
}

impl Follower<'_> {
    fn note(&mut self, kind: FollowedKind, number: Option<u32>, text: Option<String>) {
        self.seen.steps.push(FollowedStep { kind, number, text });
    }

    fn drop(&mut self, reason: SwitchDrop) {
        let name = serde_json::to_value(reason).ok().and_then(|name| name.as_str().map(str::to_owned));
        self.note(FollowedKind::Drop, None, name);
    }

    fn look_up(&mut self, lookup: Lookup) {
        let rule = lookup.flow.and_then(|flow| self.switch.pipeline.flow(flow)).map(ToString::to_string);
        self.note(FollowedKind::Table, Some(u32::from(lookup.table)), rule);
    }

    /// Returns the place where the steps end that the one at `fork` has for a copy, or all.
    fn end(&self, fork: Option<usize>) -> usize {
        match fork.and_then(|at| Some((at, self.decision.steps.get(at)?))) {
            Some((at, Step::Fork(length))) => at + 1 + usize::from(*length),
            _ => self.decision.steps.len(),
        }
    }

    /// Takes the steps for a copy that begin at `fork`, or all.
    fn walk(&mut self, mut frame: Box<Frame>, mut layout: Layout, fork: Option<usize>) {
        while self.next < self.end(fork) {
            let at = self.next;
            self.next += 1;
            match self.decision.steps[at] {
                Step::Fork(_) => {
                    self.walk(frame.clone(), layout, Some(at));
                    self.next = self.next.max(self.end(Some(at)));
                }
                Step::Lookup(index) => {
                    if let Some(lookup) = self.decision.lookups.get(usize::from(index)).copied() {
                        self.look_up(lookup);
                    }
                }
                Step::Group { group, bucket } => {
                    self.note(FollowedKind::Group, Some(group), bucket.map(|bucket| bucket.to_string()));
                }
                Step::Meter(meter) => {
                    self.note(FollowedKind::Meter, Some(meter), None);
                    self.outcomes.push(Outcome::Passed);
                    self.decide_again();
                }
                Step::Reparse => {
                    self.outcomes.push(Outcome::Parsed(FlowKey::extract(self.in_port, &frame.bytes)));
                    self.decide_again();
                }
                Step::Learn(place) => {
                    let learnt = self.decision.learnt.get(usize::from(place)).map(ToString::to_string);
                    self.note(FollowedKind::Learn, None, learnt);
                }
                Step::Shorten { .. } => {}
                Step::Controller { controller, .. } => {
                    self.note(FollowedKind::Controller, Some(u32::from(controller)), None);
                }
                Step::Rewrite(rewrite) => {
                    let before = FlowKey::extract(self.in_port, &frame.bytes);
                    rewrite.apply(&mut frame, &mut layout);
                    let changes = changes(&before, &FlowKey::extract(self.in_port, &frame.bytes));
                    self.note(FollowedKind::Rewrite, None, Some(changes));
                }
                step => self.send(step, &frame, &layout),
            }
        }
    }

    fn send(&mut self, step: Step, frame: &Frame, layout: &Layout) {
        let Self { in_port, now, .. } = *self;
        if let Step::Normal { .. } = step {
            self.note(FollowedKind::Normal, None, None);
        }
        let mut sender = Sender { frame: Some(Box::new(frame.clone())), out: &mut self.seen.outputs };
        if let Some(reason) = self.switch.datapath.send(step, &mut sender, layout, (in_port, now), false) {
            self.drop(reason);
        }
    }

    /// Walks the tables again with what came out at the stops so far, and goes on after the last of them.
    fn decide_again(&mut self) {
        self.decision = decide(&self.switch.pipeline, &self.key, Start::Tables, &self.outcomes);
        self.next = self.decision.after_stop(self.outcomes.len());
    }
}

/// The fields that have other values in `after`, with these.
fn changes(before: &FlowKey, after: &FlowKey) -> String {
    let first = |name: &MatchField| FIELDS.iter().find(|one| one.field == name.field).is_some_and(|one| one == name);
    let changed = FIELDS.iter().filter(|one| first(one) && before.get(one.field) != after.get(one.field));
    changed
        .map(|one| format!("{}={}", one.name, value::show(one.format, after.get(one.field))))
        .collect::<Vec<_>>()
        .join(",")
}
