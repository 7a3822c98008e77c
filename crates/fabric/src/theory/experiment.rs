//! Runs an experiment: arrivals in their order, each at its moment, and a report of what became of the frames.

use std::collections::VecDeque;

use serde::Serialize;
use twinnet_packet::Frame;
use twinnet_packet::FramePool;
use twinnet_units::random::{stream, Rng};
use twinnet_units::{Duration, Rate, Time};

use super::config::{ExperimentError, PortExperiment, SourceConfig, LEAST_BYTES};
use crate::line::DirectionConfig;
use crate::{Fabric, PortId, Way, World};

/// The results of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExperimentReport {
    /// Of each source, in their order.
    pub sources: Vec<SourceReport>,
    /// Means over all sources, part by part.
    pub batches: Vec<Batch>,
    /// Every frame in the order of arrival, where records were asked for.
    pub records: Vec<Record>,
    /// The time when the last frame had left.
    pub end_ps: u64,
}

/// The outcome of a source's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// Frames that it sent.
    pub offered: u64,
    /// Frames that arrived at the far end.
    pub delivered: u64,
    /// Their link-layer bytes.
    pub delivered_bytes: u64,
}

/// Sums over one part of the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// Frames that were sent.
    pub offered: u64,
    /// Frames that arrived at the far end.
    pub delivered: u64,
    /// The time those waited, summed: from arrival at the port to the first bit on the line.
    pub wait_ps: u64,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    /// The source, by its place.
    pub source: u32,
    /// Its link-layer bytes.
    pub bytes: u32,
    /// The time when it arrived at the port.
    pub sent_ps: u64,
    /// The time when it arrived at the far end; none when it did not.
    pub received_ps: Option<u64>,
}

impl PortExperiment {
    /// Runs it. The same experiment gives the same report on every machine.
    ///
    /// # Errors
    /// [`ExperimentError`] when a value is out of range, before anything is run.
    pub fn run(&self) -> Result<ExperimentReport, ExperimentError> {
        self.validate()?;
        let mut fabric = Fabric::new(self.seed);
        let ends = [fabric.add_host(), fabric.add_host()];
        let near = fabric.add_port(ends[0], "near", 0, [0; 6]);
        let far = fabric.add_port(ends[1], "far", 0, [0; 6]);
        let back = DirectionConfig::default();
        fabric.join((near, self.direction.clone(), Some(&self.queue)), (far, back, None), u64::from(u32::MAX))?;
        let mut ends = Ends::new(self);
        let mut sources: Vec<Source> =
            self.sources.iter().enumerate().map(|(place, config)| Source::new(config, self.seed, place)).collect();
        while let Some((place, at)) = first_of(&sources) {
            fabric.advance(at, &mut ends);
            let bytes = sources[place].send();
            ends.send(place, bytes, sources[place].config.queue, at);
            while fabric.readable(near, &mut ends) {}
        }
        while let Some(at) = fabric.next_event() {
            fabric.advance(at, &mut ends);
        }
        Ok(ends.report(fabric.now()))
    }
}

/// The source whose frame comes next, and when; of several the first.
fn first_of(sources: &[Source]) -> Option<(usize, Time)> {
    let due = sources.iter().enumerate().filter(|(_, source)| source.left > 0);
    due.min_by_key(|(place, source)| (source.next, *place)).map(|(place, source)| (place, source.next))
}

struct Source<'a> {
    config: &'a SourceConfig,
    gaps: Rng,
    sizes: Rng,
    left: u64,
    next: Time,
}

impl<'a> Source<'a> {
    fn new(config: &'a SourceConfig, seed: u64, place: usize) -> Self {
        let mut gaps = stream(seed, &format!("gaps {place}"));
        let sizes = stream(seed, &format!("sizes {place}"));
        let first = Duration::from_ps(config.gap_ps.next(&mut gaps));
        Self { config, gaps, sizes, left: config.frames, next: Time::from_ps(config.start_ps) + first }
    }

    /// The size of the frame that is due; the next one is drawn.
    fn send(&mut self) -> u32 {
        self.left -= 1;
        self.next += Duration::from_ps(self.config.gap_ps.next(&mut self.gaps));
        u32::try_from(self.config.size_bytes.next(&mut self.sizes)).unwrap_or(u32::MAX)
    }
}

/// Both hosts of the link: one sends what is put before it, the other remembers what came.
struct Ends<'a> {
    experiment: &'a PortExperiment,
    frames: u64,
    sent: Vec<Record>,
    waiting: VecDeque<Box<Frame>>,
    pool: FramePool,
    report: ExperimentReport,
}

impl<'a> Ends<'a> {
    fn new(experiment: &'a PortExperiment) -> Self {
        let batches = usize::try_from(experiment.batches).unwrap_or(usize::MAX);
        Self {
            experiment,
            frames: experiment.frames(),
            sent: Vec::new(),
            waiting: VecDeque::new(),
            pool: FramePool::default(),
            report: ExperimentReport {
                sources: vec![SourceReport::default(); experiment.sources.len()],
                batches: vec![Batch::default(); batches],
                ..ExperimentReport::default()
            },
        }
    }

    fn batch(&mut self, number: usize) -> &mut Batch {
        let place = u128::from(self.experiment.batches) * number as u128 / u128::from(self.frames.max(1));
        let last = self.report.batches.len() - 1;
        &mut self.report.batches[usize::try_from(place).unwrap_or(last).min(last)]
    }

    fn send(&mut self, place: usize, bytes: u32, queue: u32, now: Time) {
        let number = self.sent.len();
        let mut frame = self.pool.take();
        frame.bytes.extend_from_slice(&(number as u64).to_be_bytes());
        frame.elided = bytes.saturating_sub(LEAST_BYTES);
        frame.queue = queue;
        self.waiting.push_back(frame);
        let source = u32::try_from(place).unwrap_or(u32::MAX);
        self.sent.push(Record { source, bytes, sent_ps: now.as_ps(), received_ps: None });
        self.report.sources[place].offered += 1;
        self.batch(number).offered += 1;
    }

    /// Returns the time that a frame is under way when it does not wait.
    fn unqueued(&self, bytes: u32) -> Duration {
        let line = &self.experiment.direction;
        let wire = line.framing.wire_bytes(u64::from(bytes)) - line.framing.gap_bytes();
        line.rate_bps.map_or(Duration::ZERO, |rate: Rate| rate.serialise(wire)) + line.delay_ps
    }

    fn report(mut self, end: Time) -> ExperimentReport {
        if self.experiment.records {
            self.report.records = self.sent;
        }
        self.report.end_ps = end.as_ps();
        self.report
    }
}

impl World for Ends<'_> {
    fn deliver(&mut self, _port: PortId, frame: Box<Frame>, due: Time) {
        let mark = frame.bytes.first_chunk().map_or(u64::MAX, |mark| u64::from_be_bytes(*mark));
        self.pool.recycle(frame);
        let Ok(number) = usize::try_from(mark) else { return };
        // A frame whose mark was turned by corruption, or that comes a second time, is nobody's.
        let Some(record) = self.sent.get_mut(number).filter(|record| record.received_ps.is_none()) else { return };
        record.received_ps = Some(due.as_ps());
        let record = *record;
        let under_way = due.since(Time::from_ps(record.sent_ps));
        let waited = under_way.saturating_sub(self.unqueued(record.bytes));
        let source = &mut self.report.sources[record.source as usize];
        source.delivered += 1;
        source.delivered_bytes += u64::from(record.bytes);
        let batch = self.batch(number);
        batch.delivered += 1;
        batch.wait_ps = batch.wait_ps.saturating_add(waited.as_ps());
    }

    fn pull(&mut self, _port: PortId) -> Option<Box<Frame>> {
        self.waiting.pop_front()
    }

    fn captured(&mut self, _port: PortId, _way: Way, _frame: &Frame, _at: Time) {}
    fn carrier(&mut self, _port: PortId, _up: bool) {}
    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(changes: &str) -> PortExperiment {
        let mut value = serde_json::json!({
            "seed": 1,
            "direction": {"rate_bps": 8_000_000, "framing": "none", "delay_ps": 5},
            "queue": {"kind": "fifo", "limit_frames": 3},
            "sources": [{"frames": 100, "gap_ps": {"law": "constant", "value": 1_000_000_000},
                         "size_bytes": {"law": "constant", "value": 1000}}],
            "batches": 4,
            "records": true,
        });
        let changes: serde_json::Value = serde_json::from_str(changes).unwrap();
        for (key, change) in changes.as_object().unwrap() {
            value[key] = change.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn frames_that_come_as_fast_as_they_leave_never_wait() {
        let report = experiment("{}").run().unwrap();
        assert_eq!(report.sources, [SourceReport { offered: 100, delivered: 100, delivered_bytes: 100_000 }]);
        assert!(report.batches.iter().all(|batch| *batch == Batch { offered: 25, delivered: 25, wait_ps: 0 }));
        // A millisecond on the line and 5 ps of propagation.
        let under_way = |record: &Record| record.received_ps.unwrap() - record.sent_ps;
        assert!(report.records.iter().all(|record| under_way(record) == 1_000_000_005));
    }

    #[test]
    fn frames_of_one_moment_wait_for_each_other_and_what_has_no_room_is_lost() {
        let burst = r#"{"sources": [{"frames": 6, "gap_ps": {"law": "constant", "value": 1},
            "size_bytes": {"law": "constant", "value": 1000}}], "batches": 1}"#;
        let report = experiment(burst).run().unwrap();
        // One on the line, three in the queue.
        assert_eq!(report.sources[0].delivered, 4);
        assert_eq!(report.batches[0].wait_ps, (1 + 2 + 3) * 1_000_000_000 - (1 + 2 + 3));
        assert_eq!(report.records.iter().filter(|record| record.received_ps.is_none()).count(), 2);
    }

    #[test]
    fn the_same_seed_gives_the_same_report_and_a_source_more_leaves_the_draws_of_the_first() {
        let source = r#"{"frames": 50, "gap_ps": {"law": "exponential", "mean": 1e9, "least": 1, "most": 100000000000},
            "size_bytes": {"law": "exponential", "mean": 500, "least": 8, "most": 9000}}"#;
        let of = |sources: &str| experiment(&format!(r#"{{"sources": [{sources}]}}"#)).run().unwrap();
        assert_eq!(of(source), of(source));
        let sent = |report: &ExperimentReport| {
            let of_first = report.records.iter().filter(|record| record.source == 0);
            of_first.map(|record| (record.sent_ps, record.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(sent(&of(source)), sent(&of(&format!("{source},{source}"))));
    }

    #[test]
    fn values_out_of_range_are_refused_and_named() {
        for (changes, field) in [
            (r#"{"sources": []}"#, "sources"),
            (r#"{"batches": 0}"#, "batches"),
            (r#"{"batches": 101}"#, "batches"),
            (r#"{"queue": {"kind": "fifo", "limit_frames": 0}}"#, "limit_frames"),
            (r#"{"direction": {"duplicate": 2}}"#, "duplicate"),
            (
                r#"{"sources": [{"frames": 1, "gap_ps": {"law": "constant", "value": 0},
                    "size_bytes": {"law": "constant", "value": 7}}]}"#,
                "sources.0.gap_ps.value",
            ),
            (
                r#"{"sources": [{"frames": 9999999, "gap_ps": {"law": "constant", "value": 1},
                    "size_bytes": {"law": "constant", "value": 8}}]}"#,
                "frames of all sources",
            ),
        ] {
            let error = experiment(changes).run().unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }
}
