//! The accuracy with which the fabric kept its own schedule.
//!
//! Lateness is counted for every frame that is handed to a real host: the wall clock at the hand-over less the moment
//! at which the frame was due, for each line and for all. What a line could not catch up with it
//! [lost](twinnet_fabric::LineRecord), and regained in part. Pauses of the loop are counted whatever was due.

use std::collections::HashMap;
use std::io;

use serde_json::{json, Value};
use twinnet_fabric::{Fabric, LineRecord, PortId};
use twinnet_packet::Frame;
use twinnet_units::{impossible, Duration, Time};

use crate::wall::busy_lines::BusyLines;
use crate::wall::pauses::Pauses;
use crate::wall::traffic::Traffic;

/// A frame that is handed over later than this is told as late.
const LATE_NS: u64 = 1_000_000;

/// Buckets whose bounds are at most 1/8 apart.
type LogBuckets = twinnet_units::LogBuckets<3>;
/// The highest bucket begins at about 68 s.
const BUCKETS: usize = LogBuckets::PER_OCTAVE * 34;

/// Counts of durations in nanoseconds, in buckets that are at most 12.5 % wide.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), total: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Counts `weight` durations of `ns` nanoseconds.
    pub fn record(&mut self, ns: u64, weight: u64) {
        self.counts[bucket(ns)] += weight;
        self.total += weight;
        self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(weight));
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds what another histogram has counted.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count += more;
        }
        self.total += other.total;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the number that was counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The least upper bound of a bucket below which at least the share `q` of all lies, in nanoseconds; never above
    /// the maximum.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        self.longest_of((q * self.total as f64).ceil() as u64)
    }

    /// The duration that a run's promise is about: of 1000 or more the one that one in 1000 exceeds, of 100 to 999 the
    /// one that one exceeds, and of fewer the largest. So never more than one in a hundred exceeds it.
    #[must_use]
    pub fn tail_ns(&self) -> u64 {
        let may_exceed = if self.total < 100 { 0 } else { (self.total / 1000).max(1) };
        self.longest_of(self.total - may_exceed)
    }

    /// The upper bound of the longest of the `wanted` shortest.
    fn longest_of(&self, wanted: u64) -> u64 {
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return upper_ns(index).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Returns how many were longer than `ns`, to the width of a bucket: those in the buckets that begin above it.
    #[must_use]
    pub fn longer_than(&self, ns: u64) -> u64 {
        self.counts.iter().skip(bucket(ns) + 1).sum()
    }

    /// Returns what was counted since `before`, an earlier state of this one. The maximum is that of its bucket.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut after = self.clone();
        for (count, earlier) in after.counts.iter_mut().zip(before.counts.iter()) {
            *count = count.saturating_sub(*earlier);
        }
        after.total = self.total.saturating_sub(before.total);
        after.sum_ns = self.sum_ns.saturating_sub(before.sum_ns);
        let highest = after.counts.iter().rposition(|count| *count > 0);
        after.max_ns = highest.map_or(0, |bucket| upper_ns(bucket).min(self.max_ns));
        after
    }

    /// As the fidelity record shows it.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn to_json(&self) -> Value {
        let occupied: Vec<Value> = self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| json!([upper_ns(index), count]))
            .collect();
        let mean = if self.total == 0 { 0.0 } else { self.sum_ns as f64 / self.total as f64 };
        json!({
            "p50": self.quantile_ns(0.5), "p90": self.quantile_ns(0.9), "p99": self.quantile_ns(0.99),
            "p999": self.quantile_ns(0.999), "max": self.max_ns, "mean": mean, "histogram": occupied,
            "count": self.total, "tail": self.tail_ns(), "late": self.longer_than(LATE_NS),
        })
    }
}

fn bucket(ns: u64) -> usize {
    LogBuckets::of(ns).min(BUCKETS - 1)
}

/// Returns the value that bucket `index` is told by: the next one's least value, or its own where it holds only one
/// below 8 ns.
fn upper_ns(index: usize) -> u64 {
    let least = LogBuckets::least(index);
    if index < LogBuckets::PER_OCTAVE {
        least
    } else {
        least + LogBuckets::width(index)
    }
}

/// The accuracy with which a thread that runs apps kept to their timers so far.
#[derive(Clone, Debug, Default)]
pub struct Timeliness {
    /// Time in seconds for which it could have run and another had the processor.
    pub waited_s: f64,
    /// The time after its moment at which each timer was served.
    pub lateness: Histogram,
    /// Senders that gave up because the machine could not follow them.
    pub overloaded_senders: u64,
    /// The largest share of its time that one of them was behind, since pauses were last forgotten.
    pub unsent_share: f64,
    /// Datagrams that the sockets of sinks had no room for.
    pub overflowed_datagrams: u64,
    /// Times for which a timer was due and nothing was served, since they were last forgotten.
    pub pauses: Pauses,
}

impl Timeliness {
    /// Returns it as the record of fidelity has it under `agent`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "timers": self.lateness.count(), "lateness_ns": self.lateness.to_json(), "waited_s": self.waited_s,
            "overloaded_senders": self.overloaded_senders, "overflowed_datagrams": self.overflowed_datagrams,
            "unsent_share": self.unsent_share, "pauses": self.pauses.to_json(),
        })
    }

    /// Returns what came to pass since `before`; pauses and the share are those since they were last forgotten.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            waited_s: self.waited_s - before.waited_s,
            lateness: self.lateness.since(&before.lateness),
            overloaded_senders: self.overloaded_senders - before.overloaded_senders,
            overflowed_datagrams: self.overflowed_datagrams - before.overflowed_datagrams,
            unsent_share: self.unsent_share,
            pauses: self.pauses,
        }
    }
}

/// The usage of a thread so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadUsage {
    /// CPU time in user and kernel mode, in seconds.
    pub cpu_s: f64,
    /// Part of it in user mode.
    pub user_s: f64,
    /// Times that it was made to wait though it could have run.
    pub involuntary_switches: u64,
}

impl ThreadUsage {
    /// Returns what both have used together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_s: self.cpu_s + other.cpu_s,
            user_s: self.user_s + other.user_s,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }

    /// Of the calling thread.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)]
    pub fn of_this_thread() -> Self {
        // SAFETY: an all-zero rusage is valid, and the call fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self {
            cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            user_s: seconds(usage.ru_utime),
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

/// Time that the machine's CPUs were taken away by a hypervisor, in seconds over all CPUs; 0 where the kernel does
/// not tell.
#[must_use]
pub fn steal_s() -> f64 {
    let Ok(text) = std::fs::read_to_string("/proc/stat") else { return 0.0 };
    // The first line: "cpu user nice system idle iowait irq softirq steal ..." in ticks of 1/100 s.
    text.lines()
        .next()
        .and_then(|line| line.split_whitespace().nth(8))
        .and_then(|field| field.parse::<f64>().ok())
        .map_or(0.0, |ticks| ticks / 100.0)
}

/// Frames that one thread handed to hosts.
#[derive(Clone, Debug, Default)]
pub struct HandOvers {
    /// The lateness of each.
    pub lateness: Histogram,
    /// The same by the port of the host.
    by_port: Vec<Option<Histogram>>,
    /// Frames that were taken.
    pub handed_over: u64,
    /// Frames that a host's interface had no room for.
    pub overload_drops: u64,
}

impl HandOvers {
    /// A frame, or a train of them, is handed to the host behind `port`, `late` after it was due.
    pub fn hand_over(&mut self, port: PortId, late: Duration) {
        self.lateness.record(late.as_ns(), 1);
        self.came_over(port, late);
    }

    /// A frame, or a train of them, came from another part of the network over the line that leads to `port`, `late`
    /// after it was due.
    pub(crate) fn came_over(&mut self, port: PortId, late: Duration) {
        let place = port.0 as usize;
        if self.by_port.len() <= place {
            self.by_port.resize_with(place + 1, || None);
        }
        self.by_port[place].get_or_insert_default().record(late.as_ns(), 1);
    }

    /// The interface answered so to `frame`.
    pub fn written(&mut self, frame: &Frame, answer: &io::Result<()>) {
        match answer {
            Ok(()) => self.handed_over += frame.frames(),
            Err(error) if is_overload(error) => self.overload_drops += frame.frames(),
            // The host has put its interface down, or refuses the frame: as a real one may.
            Err(_) => {}
        }
    }

    /// Adds what another thread handed over.
    pub fn add(&mut self, other: &Self) {
        self.lateness.add(&other.lateness);
        if self.by_port.len() < other.by_port.len() {
            self.by_port.resize_with(other.by_port.len(), || None);
        }
        for (own, theirs) in self.by_port.iter_mut().zip(&other.by_port) {
            if let Some(theirs) = theirs {
                own.get_or_insert_default().add(theirs);
            }
        }
        self.handed_over += other.handed_over;
        self.overload_drops += other.overload_drops;
    }
}

fn is_overload(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC))
}

/// The record that a lab keeps since it started, or since it was reset.
#[derive(Clone, Debug, Default)]
pub struct FidelityRecord {
    /// The time when the record began.
    pub since: Time,
    /// The hand-overs of the loop itself.
    pub hand_overs: HandOvers,
    /// Pauses of the loop.
    pub pauses: Pauses,
    /// The time in which frames moved, and what pauses took of it.
    pub traffic: Traffic,
    /// How busy the lines were.
    pub busy_lines: BusyLines,
    /// The loop's own use when the record began.
    pub usage_before: ThreadUsage,
}

impl FidelityRecord {
    /// A record that begins now.
    #[must_use]
    pub fn begin(now: Time) -> Self {
        Self { since: now, usage_before: ThreadUsage::of_this_thread(), ..Self::default() }
    }

    /// The record as it is now; to be called by the loop's thread, which it costs next to nothing.
    /// `elsewhere` is what other threads handed over, `names` are those of the ports of `fabric`.
    #[must_use]
    pub fn taken(
        &self,
        elsewhere: &HandOvers,
        fabric: &Fabric,
        names: &[String],
        now: Time,
        long_lines: usize,
        realtime: bool,
    ) -> TakenRecord {
        let mut record = self.clone();
        record.hand_overs.add(elsewhere);
        let ports = (0..names.len()).filter_map(|port| Some(PortId(u32::try_from(port).ok()?)));
        let lines = ports
            .filter_map(|port| {
                let line = fabric.line_record(port);
                let far = fabric.far_end(port)?;
                let handed = record.hand_overs.by_port.get(far.0 as usize).cloned().flatten();
                (line.is_some() || handed.is_some()).then(|| TakenLine {
                    port: names[port.0 as usize].clone(),
                    record: line.unwrap_or_default(),
                    lateness: handed.unwrap_or_default(),
                })
            })
            .collect();
        let busiest = record.busy_lines.busiest();
        let busiest = busiest.map(|(port, share)| (names.get(port.0 as usize).cloned().unwrap_or_default(), share));
        TakenRecord { record, lines, busiest, long_lines, usage: ThreadUsage::of_this_thread(), now, realtime }
    }
}

/// The record of one line's lateness.
#[derive(Clone, Debug)]
struct TakenLine {
    /// The port that sends into it.
    port: String,
    record: LineRecord,
    /// Lateness of what it handed to a real host.
    lateness: Histogram,
}

impl TakenLine {
    fn to_json(&self) -> Value {
        let (record, late) = (&self.record, &self.lateness);
        json!({
            "port": self.port,
            "lost_ps": record.lost.as_ps(),
            "missing_in_worst_second_ps": record.missing_in_worst_second().as_ps(),
            "regained_ps": record.regained.as_ps(),
            "times_late": record.times_late,
            "latest_ps": record.latest.as_ps(),
            "handed_over": late.count(),
            "lateness_ns": {
                "p50": late.quantile_ns(0.5), "p99": late.quantile_ns(0.99), "p999": late.quantile_ns(0.999),
                "max": late.max_ns, "count": late.count(), "tail": late.tail_ns(), "late": late.longer_than(LATE_NS),
            },
        })
    }
}

/// Lines that a record lists, worst first. The list is for showing: what a verdict needs is told of all lines.
const MOST_LINES: usize = 32;

/// Of all `lines`, which come with most missing first, the worst in each respect.
fn worst_lines(lines: &[&TakenLine]) -> Value {
    fn most<K: Ord>(lines: &[&TakenLine], of: impl Fn(&TakenLine) -> K) -> Value {
        lines.iter().max_by_key(|line| of(line)).map_or(Value::Null, |line| line.to_json())
    }
    json!({
        "missing": lines.first().map(|line| line.to_json()),
        "worst_second": most(lines, |line| line.record.missing_in_worst_second()),
        "latest": most(lines, |line| line.record.latest),
        "late_frames": most(lines, |line| line.lateness.tail_ns()),
    })
}

/// The loop's record at one moment, to be told elsewhere.
#[derive(Debug, Default)]
pub struct TakenRecord {
    record: FidelityRecord,
    lines: Vec<TakenLine>,
    /// The busiest line by its port, and the share of its time.
    busiest: Option<(String, f64)>,
    /// Long lines on the longest way.
    long_lines: usize,
    usage: ThreadUsage,
    now: Time,
    realtime: bool,
}

impl TakenRecord {
    /// The record of several loops that move one network together; `None` where there is none.
    pub(crate) fn joined(records: Vec<Self>) -> Option<Self> {
        let mut records = records.into_iter();
        let mut whole = records.next()?;
        let mut places: HashMap<String, usize> =
            whole.lines.iter().enumerate().map(|(place, line)| (line.port.clone(), place)).collect();
        for other in records {
            whole.record.since = whole.record.since.min(other.record.since);
            whole.record.hand_overs.add(&other.record.hand_overs);
            whole.record.pauses.add(&other.record.pauses);
            whole.record.traffic.add(&other.record.traffic);
            whole.long_lines = whole.long_lines.max(other.long_lines);
            if other.busiest.as_ref().is_some_and(|theirs| whole.busiest.as_ref().is_none_or(|own| theirs.1 > own.1)) {
                whole.busiest = other.busiest;
            }
            whole.record.usage_before = whole.record.usage_before.plus(other.record.usage_before);
            whole.usage = whole.usage.plus(other.usage);
            whole.now = whole.now.max(other.now);
            whole.realtime &= other.realtime;
            // A line that is cut has two ends to tell of.
            for line in other.lines {
                match places.get(&line.port) {
                    Some(place) => {
                        let known = &mut whole.lines[*place];
                        known.record = known.record.joined_with(&line.record);
                        known.lateness.add(&line.lateness);
                    }
                    None => {
                        places.insert(line.port.clone(), whole.lines.len());
                        whole.lines.push(line);
                    }
                }
            }
        }
        Some(whole)
    }

    /// Returns what tells this loop from others that move the same network.
    pub(crate) fn part_to_json(&self) -> Value {
        let late = &self.record.hand_overs.lateness;
        json!({
            "cpu_s": self.usage.cpu_s - self.record.usage_before.cpu_s,
            "handed_over": self.record.hand_overs.handed_over,
            "lateness_ns": {"p50": late.quantile_ns(0.5), "p99": late.quantile_ns(0.99), "max": late.max_ns},
            "pauses": self.record.pauses.to_json(),
            "realtime": self.realtime,
        })
    }

    /// The loop's share of the record that docs/reference/lab-protocol.md describes. Asks the kernel; not for the
    /// loop's thread.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (record, usage) = (&self.record, self.usage);
        let mut lines: Vec<&TakenLine> = self.lines.iter().collect();
        let missing = |record: &LineRecord| record.lost.saturating_sub(record.regained);
        lines.sort_by_key(|line| {
            let record = &line.record;
            std::cmp::Reverse((missing(record), record.missing_in_worst_second(), record.latest, line.lateness.max_ns))
        });
        let worst = lines.first().map(|line| line.record).unwrap_or_default();
        let worst_second = lines.iter().map(|line| line.record.missing_in_worst_second()).max().unwrap_or_default();
        let latest = lines.iter().map(|line| line.record.latest).max().unwrap_or_default();
        let late_lines = lines.iter().filter(|line| line.record.lost > Duration::ZERO).count();
        let cpu = usage.cpu_s - record.usage_before.cpu_s;
        let user = usage.user_s - record.usage_before.user_s;
        let mut fields = json!({
            "elapsed_ps": (self.now - record.since).as_ps(),
            "handed_over": record.hand_overs.handed_over,
            "lateness_ns": record.hand_overs.lateness.to_json(),
            "slipped_ps": worst.lost.as_ps(),
            "regained_ps": worst.regained.as_ps(),
            "slips": worst.times_late,
            "missing_in_worst_second_ps": worst_second.as_ps(),
            "longest_slip_ps": latest.as_ps(),
            "lines_that_slipped": late_lines,
            "worst_lines": worst_lines(&lines),
            "traffic": record.traffic.to_json(),
            "lines": lines.iter().take(MOST_LINES).map(|line| line.to_json()).collect::<Vec<_>>(),
            "pauses": record.pauses.to_json(),
            "busiest_line": self.busiest.as_ref().map(|(port, share)| json!({"port": port, "share": share})),
            "long_lines": self.long_lines,
            "overload_drops": record.hand_overs.overload_drops,
            "cpu_s": {"fabric": cpu, "user": user, "system": cpu - user},
            "involuntary_switches": {
                "fabric": usage.involuntary_switches - record.usage_before.involuntary_switches,
            },
            "realtime": self.realtime,
            "cores": std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            "impossible_states": impossible::met(),
        });
        // As on the virtual clock: told where there is one.
        if let (Some(fields), Some(first)) = (fields.as_object_mut(), impossible::first()) {
            fields.insert("first_impossible_state".to_owned(), first.into());
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_a_bucket_that_is_at_most_an_eighth_wide() {
        for ns in (0..64).map(|shift| 1_u64 << shift >> 1).chain([3, 9, 100, 12_345, 999_999]) {
            let upper = upper_ns(bucket(ns));
            if bucket(ns) < BUCKETS - 1 {
                assert!(upper >= ns && upper - ns <= ns / 8 + 1, "{ns} in a bucket up to {upper}");
            }
        }
    }

    #[test]
    fn quantiles_of_a_known_sample_are_within_a_bucket() {
        let mut histogram = Histogram::default();
        for ns in 1..=10_000 {
            histogram.record(ns, 1);
        }
        assert!((5000..=5000 * 9 / 8).contains(&histogram.quantile_ns(0.5)));
        assert!((9900..=10_000).contains(&histogram.quantile_ns(0.99)));
        assert_eq!(histogram.quantile_ns(1.0), 10_000);
    }

    #[test]
    fn of_few_durations_few_may_be_long() {
        for (count, long, tail_ns) in [(30, 1, 9_000_000), (99, 1, 9_000_000), (100, 1, 0), (100, 2, 9_000_000)]
            .into_iter()
            .chain([(900, 1, 0), (900, 2, 9_000_000), (5000, 5, 0), (5000, 6, 9_000_000), (900, 900, 9_000_000)])
        {
            let mut histogram = Histogram::default();
            histogram.record(0, count - long);
            histogram.record(9_000_000, long);
            assert_eq!((histogram.tail_ns(), histogram.longer_than(LATE_NS)), (tail_ns, long), "{long} of {count}");
        }
        assert_eq!(Histogram::default().tail_ns(), 0);
    }

    #[test]
    fn the_worst_of_more_lines_than_are_listed_is_told_in_each_respect() {
        let line = |number: u32| {
            let mut record = LineRecord::default();
            if number < 38 {
                record.lost = Duration::from_ms(100);
            }
            TakenLine { port: format!("s{number}-eth1"), record, lateness: Histogram::default() }
        };
        let mut taken = TakenRecord { lines: (0..40).map(line).collect(), ..TakenRecord::default() };
        taken.lines[39].record.latest = Duration::from_ms(7);
        taken.lines[38].lateness.record(9_000_000, 900);
        let told = taken.to_json();
        assert_eq!(told["lines"].as_array().unwrap().len(), MOST_LINES);
        let worst = &told["worst_lines"];
        assert_eq!((&worst["latest"]["port"], &worst["late_frames"]["port"]), (&json!("s39-eth1"), &json!("s38-eth1")));
        assert_eq!(worst["late_frames"]["lateness_ns"]["tail"], json!(9_000_000));
        assert_eq!(worst["missing"]["lost_ps"], json!(100_000_000_000_u64));
    }

    #[test]
    fn what_was_counted_before_is_taken_off() {
        let mut histogram = Histogram::default();
        histogram.record(9_000_000, 1);
        let before = histogram.clone();
        histogram.record(1000, 9);
        histogram.record(2000, 1);
        let since = histogram.since(&before);
        assert_eq!((since.count(), since.sum_ns), (10, 11_000));
        assert!((2000..=2250).contains(&since.max_ns) && since.quantile_ns(0.9) <= 1125, "{}", since.max_ns);
        assert_eq!(histogram.since(&histogram).to_json()["max"], 0);
    }

    #[test]
    fn the_thread_that_worked_has_used_cpu_time() {
        let before = ThreadUsage::of_this_thread().cpu_s;
        let mut sum = 0_u64;
        while ThreadUsage::of_this_thread().cpu_s < before + 0.01 {
            sum = sum.wrapping_add(1);
        }
        assert!(sum > 0);
    }
}
