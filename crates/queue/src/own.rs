//! Disciplines that whoever runs the lab brings along: a [`Judge`], found by name, says which frame goes next and which
//! are dropped or marked. The frames stay here, and are counted here; the judge knows them by their numbers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::{Brought, Time};

use super::config::Site;
use super::ecn::{mark_congestion, traffic_class};
use super::flow::flow_hash;
use super::ranges::{refuse, QueueError};
use super::train::for_each_frame;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

/// `{"kind": "own", ...}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnConfig {
    /// The name under which the discipline was brought along.
    pub code: String,
    /// Its settings, a JSON object.
    #[serde(default = "no_settings")]
    pub settings: String,
}

fn no_settings() -> String {
    "{}".to_owned()
}

impl OwnConfig {
    pub(super) fn build_at(&self, path: &str, site: Site<'_>) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        let Some(start) = KNOWN.find(&self.code) else {
            return refuse(
                &format!("{path}.code"),
                format!("{:?}", self.code),
                "a discipline that was brought along, which is so on the virtual clock alone",
            );
        };
        Ok(Box::new(Own {
            start,
            settings: self.settings.clone(),
            seed: site.salt(path),
            judge: None,
            waiting: BTreeMap::new(),
            next_number: 0,
            bytes: 0,
            again: None,
        }))
    }
}

/// What a judge is told of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its number at this discipline: the next one has the next.
    pub number: u64,
    /// Link-layer bytes.
    pub bytes: u64,
    /// The queue number that flow rules have given it.
    pub queue: u32,
    /// A hash of its flow.
    pub flow: u64,
    /// DSCP and ECN; `None` for what is not IP.
    pub traffic_class: Option<u8>,
}

/// What a judge decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The frame that goes now; only when it is asked for one.
    pub send: Option<u64>,
    /// Frames that are dropped.
    pub dropped: Vec<u64>,
    /// Frames that are marked as having met congestion, if their senders understand it.
    pub marked: Vec<u64>,
    /// When it wants to be asked again, where it sends none of those that wait.
    pub again: Option<Time>,
}

/// The decisions of a discipline. One that cannot go on lets the frames go in the order in which they came.
pub trait Judge: Send {
    /// A frame arrived.
    fn arrived(&mut self, now: Time, frame: &Arrived) -> Decision;

    /// Which frame goes now? Asked when the line is free and frames wait.
    fn next(&mut self, now: Time) -> Decision;
}

/// Makes a judge from its settings, which are JSON, and a seed.
pub type StartJudge = dyn Fn(&str, u64) -> Box<dyn Judge> + Send + Sync;

static KNOWN: Brought<StartJudge> = Brought::new();

/// Makes the discipline `name` known in this process; one of that name is replaced.
pub fn register(name: &str, start: Arc<StartJudge>) {
    KNOWN.add(name, start);
}

/// The discipline around a judge.
struct Own {
    start: Arc<StartJudge>,
    settings: String,
    seed: u64,
    /// Made when the first frame comes: a configuration that is only checked runs no code.
    judge: Option<Box<dyn Judge>>,
    /// In the order in which they came.
    waiting: BTreeMap<u64, Box<Frame>>,
    next_number: u64,
    bytes: u64,
    again: Option<Time>,
}

impl Own {
    fn take(&mut self, number: u64) -> Option<Box<Frame>> {
        let frame = self.waiting.remove(&number)?;
        self.bytes -= Backlog::of(&frame).bytes;
        Some(frame)
    }

    /// Drops and marks as `decision` says; what does not wait is passed over.
    fn carry_out(&mut self, decision: &Decision, drops: &mut dyn DropSink) {
        for number in &decision.marked {
            if let Some(frame) = self.waiting.get_mut(number) {
                if mark_congestion(frame) {
                    drops.marked(frame);
                }
            }
        }
        for number in &decision.dropped {
            if let Some(frame) = self.take(*number) {
                drops.dropped(frame, DropReason::Early);
            }
        }
        self.again = decision.again;
    }
}

impl QueueDiscipline for Own {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let mut frames = Vec::with_capacity(1);
        for_each_frame(frame, |one| frames.push(one));
        for frame in frames {
            let arrived = Arrived {
                number: self.next_number,
                bytes: Backlog::of(&frame).bytes,
                queue: frame.queue,
                flow: flow_hash(&frame, self.seed),
                traffic_class: traffic_class(&frame),
            };
            self.next_number += 1;
            self.bytes += arrived.bytes;
            self.waiting.insert(arrived.number, frame);
            let judge = self.judge.get_or_insert_with(|| (self.start)(&self.settings, self.seed));
            let decision = judge.arrived(now, &arrived);
            self.carry_out(&decision, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        if self.waiting.is_empty() {
            return None;
        }
        let decision = self.judge.as_mut()?.next(now);
        self.carry_out(&decision, drops);
        self.take(decision.send?)
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        (!self.waiting.is_empty()).then(|| self.again.map_or(now, |again| again.max(now)))
    }

    fn backlog(&self) -> Backlog {
        Backlog { frames: self.waiting.len() as u64, bytes: self.bytes }
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        (self.judge, self.again, self.bytes) = (None, None, 0);
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::QueueConfig;
    use super::*;

    /// The newest first, of at most two; the frame that is older than those is marked and dropped.
    #[derive(Default)]
    struct Newest(Vec<u64>);

    impl Judge for Newest {
        fn arrived(&mut self, _now: Time, frame: &Arrived) -> Decision {
            self.0.push(frame.number);
            let dropped = if self.0.len() > 2 { vec![self.0.remove(0)] } else { Vec::new() };
            Decision { marked: dropped.clone(), dropped, ..Decision::default() }
        }

        fn next(&mut self, now: Time) -> Decision {
            if now < Time::from_ns(10) {
                return Decision { again: Some(Time::from_ns(10)), ..Decision::default() };
            }
            Decision { send: self.0.pop(), ..Decision::default() }
        }
    }

    #[derive(Default)]
    struct Lost(Vec<u8>);

    impl DropSink for Lost {
        fn dropped(&mut self, frame: Box<Frame>, reason: DropReason) {
            assert_eq!(reason, DropReason::Early);
            self.0.push(frame.bytes[0]);
        }

        fn marked(&mut self, _frame: &Frame) {
            panic!("no sender here understands marks");
        }
    }

    #[test]
    fn frames_go_in_the_order_that_the_judge_says_and_each_is_counted_once() {
        register("newest", Arc::new(|_: &str, _: u64| Box::<Newest>::default() as Box<dyn Judge>));
        let config: QueueConfig =
            serde_json::from_value(json!({"kind": "own", "code": "newest", "settings": "{}"})).unwrap();
        let (mut queue, mut lost) = (config.build().unwrap(), Lost::default());
        for number in 1..=3 {
            queue.enqueue(Box::new(Frame::new(vec![number; 60])), Time::ZERO, &mut lost);
        }
        assert_eq!((queue.backlog(), &lost.0), (Backlog { frames: 2, bytes: 120 }, &vec![1]));
        assert!(queue.dequeue(Time::ZERO, &mut lost).is_none());
        assert_eq!(queue.next_ready(Time::ZERO), Some(Time::from_ns(10)));
        let later = Time::from_ns(10);
        assert_eq!(queue.dequeue(later, &mut lost).unwrap().bytes[0], 3);
        let left: Vec<u8> = queue.drain().iter().map(|frame| frame.bytes[0]).collect();
        assert_eq!((left, queue.backlog(), queue.next_ready(later)), (vec![2], Backlog::default(), None));
    }

    #[test]
    fn one_that_was_not_brought_along_is_refused() {
        let config: QueueConfig =
            serde_json::from_value(json!({"kind": "own", "code": "nobody", "settings": "{}"})).unwrap();
        assert!(config.build().err().unwrap().to_string().contains("virtual clock"));
    }
}
