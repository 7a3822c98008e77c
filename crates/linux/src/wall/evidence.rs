//! The other effects of the machine on a run, looked at once a second outside of the loop: threads and programs that
//! could have run and had no processor, quotas, pressure, and time that a hypervisor took.
//!
//! Each quantity is a time. It is told in all and for the worst second; what the kernel does not tell is 0.

use std::collections::HashMap;
use std::fs::{read_dir, read_to_string};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{json, Value};

use crate::wall::delivery;
use crate::wall::scheduling::{threads_of, AGENT_THREAD_NAME, THREAD_NAME};

/// Threads of programs that are looked at. With more of them a look would cost the machine what it looks for.
const MOST_THREADS: usize = 512;

/// The quantities, as the record names them.
const NAMES: [&str; 8] = [
    "fabric_waited",
    "agent_waited",
    "programs_waited",
    "processor_pressure",
    "memory_pressure",
    "throttled",
    "steal",
    "program_waited_longest",
];

/// Seconds of each quantity, in the order of [`NAMES`].
type Times = [f64; NAMES.len()];

/// The counters of the kernel so far.
#[derive(Clone, Debug, Default)]
struct Reading {
    /// All but those of programs.
    times: Times,
    /// By thread; `None` where there are too many.
    programs: Option<HashMap<i32, u64>>,
}

impl Reading {
    fn now() -> Self {
        let mut times = Times::default();
        // The fabric hands frames over by a thread of its own, too.
        times[0] = waited_by_threads(THREAD_NAME) + waited_by_threads(delivery::THREAD_NAME);
        times[1] = waited_by_threads(AGENT_THREAD_NAME);
        times[3] = pressure("cpu");
        times[4] = pressure("memory");
        times[5] = throttled_s();
        times[6] = super::fidelity::steal_s();
        Self { times, programs: programs() }
    }

    /// Returns what came since `before`, and the thread that waited longest.
    fn since(&self, before: &Self) -> (Times, Option<i32>) {
        // A count that a group's change or a thread's end takes back has grown by nothing.
        let mut grown: Times = std::array::from_fn(|place| (self.times[place] - before.times[place]).max(0.0));
        let mut longest = None;
        let (Some(now), Some(before)) = (&self.programs, &before.programs) else { return (grown, None) };
        for (thread, waited) in now {
            let seconds = waited.saturating_sub(before.get(thread).copied().unwrap_or(0)) as f64 / 1e9;
            grown[2] += seconds;
            if seconds > grown[7] {
                (grown[7], longest) = (seconds, Some(*thread));
            }
        }
        (grown, longest)
    }
}

/// The times since a moment, in all and for the worst second.
#[derive(Debug)]
struct Account {
    last: Reading,
    total: Times,
    worst: Times,
    /// The second that is counted: when it began, and its times.
    since: Instant,
    second: Times,
    /// The name of the program that waited longest.
    longest: String,
    /// `true` if every look saw all programs.
    all_programs_seen: bool,
}

impl Account {
    fn begin() -> Self {
        let last = Reading::now();
        let (since, all_programs_seen) = (Instant::now(), last.programs.is_some());
        let [total, worst, second] = [Times::default(); 3];
        Self { last, total, worst, since, second, longest: String::new(), all_programs_seen }
    }

    fn look(&mut self) {
        let reading = Reading::now();
        self.all_programs_seen &= reading.programs.is_some();
        let (grown, thread) = reading.since(&self.last);
        self.last = reading;
        let elapsed = self.since.elapsed().as_secs_f64();
        if self.enter(&grown, elapsed) {
            self.since = Instant::now();
        }
        if let Some(thread) = thread.filter(|_| grown[7] >= self.worst[7]) {
            self.longest = read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default().trim_end().to_owned();
        }
    }

    /// Counts what has `grown` in a second that began `elapsed` seconds ago; whether that is over. A look that comes
    /// late itself covers more than a second, and its share counts.
    fn enter(&mut self, grown: &Times, elapsed: f64) -> bool {
        let over = elapsed >= 0.95;
        let counted = self.total.iter_mut().zip(&mut self.second).zip(&mut self.worst);
        for (((total, second), worst), grown) in counted.zip(grown) {
            *total += grown;
            *second += grown;
            *worst = worst.max(*second / elapsed.max(1.0));
        }
        if over {
            self.second = Times::default();
        }
        over
    }

    fn to_json(&self) -> Value {
        let both = |place: usize| json!({"total_s": self.total[place], "worst_second_s": self.worst[place]});
        let mut told: serde_json::Map<String, Value> =
            NAMES.iter().enumerate().take(7).map(|(place, name)| ((*name).to_owned(), both(place))).collect();
        // The sum over programs says little of each: the worst second is that of the one which waited longest.
        told["programs_waited"]["worst_second_s"] = self.worst[7].into();
        told["programs_waited"]["program"] = self.longest.as_str().into();
        told["programs_waited"]["all_seen"] = self.all_programs_seen.into();
        Value::Object(told)
    }
}

/// The account of a lab, to be looked at from several threads.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    account: Arc<Mutex<Account>>,
    at_work: Arc<AtomicBool>,
}

impl Evidence {
    /// Begins an account. While the lab is not `at_work`, looks of each second cost nothing.
    pub(crate) fn begin(at_work: Arc<AtomicBool>) -> Self {
        Self { account: Arc::new(Mutex::new(Account::begin())), at_work }
    }

    /// To be called once a second.
    pub(crate) fn look_at_second(&self) {
        if self.at_work.load(Ordering::Relaxed) {
            self.account.lock().unwrap_or_else(PoisonError::into_inner).look();
        }
    }

    /// Begins anew.
    pub(crate) fn forget(&self) {
        *self.account.lock().unwrap_or_else(PoisonError::into_inner) = Account::begin();
    }

    /// As the record of fidelity tells it.
    pub(crate) fn to_json(&self) -> Value {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        account.look();
        account.to_json()
    }
}

/// For how long the threads of this process with this name could have run and did not, in seconds.
fn waited_by_threads(name: &'static str) -> f64 {
    let of = |thread| waited_ns(&format!("/proc/self/task/{thread}/schedstat")).unwrap_or(0);
    // The process's own identifier is 1 in its namespace, but not where a test runs it.
    let own = i32::try_from(std::process::id()).unwrap_or(1);
    threads_of(own, name).map(of).sum::<u64>() as f64 / 1e9
}

/// The second number of a `schedstat` (Documentation/scheduler/sched-stats.rst).
fn waited_ns(path: &str) -> Option<u64> {
    read_to_string(path).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Waiting of the threads of all other processes of the lab's namespace, by thread.
fn programs() -> Option<HashMap<i32, u64>> {
    let own = i32::try_from(std::process::id()).unwrap_or(1);
    let mut waited = HashMap::new();
    for process in numbers("/proc").filter(|process| *process != own) {
        for thread in numbers(&format!("/proc/{process}/task")) {
            if waited.len() == MOST_THREADS {
                return None;
            }
            if let Some(ns) = waited_ns(&format!("/proc/{process}/task/{thread}/schedstat")) {
                waited.insert(thread, ns);
            }
        }
    }
    Some(waited)
}

fn numbers(folder: &str) -> impl Iterator<Item = i32> {
    let entries = read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Time in seconds for which some task waited for `resource`: "some avg10=... total=MICROSECONDS"
/// (Documentation/accounting/psi.rst).
fn pressure(resource: &str) -> f64 {
    let text = read_to_string(format!("/proc/pressure/{resource}")).unwrap_or_default();
    let total = text.lines().find(|line| line.starts_with("some")).and_then(|line| line.rsplit_once("total="));
    total.and_then(|(_, us)| us.trim().parse::<f64>().ok()).map_or(0.0, |us| us / 1e6)
}

/// Time in seconds for which the quota of this process's control group, or of one above it, kept its processors from
/// it.
fn throttled_s() -> f64 {
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().filter_map(cpu_group).map(|(mount, path)| throttled_at_or_above(mount, path)).sum()
}

/// Returns where the controller of processors is, in version 2 or 1, and the group there: lines such as `0::/lab` and
/// `3:cpu,cpuacct:/lab`.
fn cpu_group(line: &str) -> Option<(&'static str, &str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    match controllers {
        "" => Some(("/sys/fs/cgroup", path)),
        _ if controllers.split(',').any(|controller| controller == "cpu") => Some(("/sys/fs/cgroup/cpu", path)),
        _ => None,
    }
}

fn throttled_at_or_above(mount: &str, path: &str) -> f64 {
    let groups = std::path::Path::new(path).ancestors().filter_map(|group| group.to_str());
    let stat = |group: &str| read_to_string(format!("{mount}{}/cpu.stat", group.trim_end_matches('/'))).ok();
    groups.filter_map(stat).map(|text| throttled_in(&text)).sum()
}

/// `throttled_usec` of version 2, `throttled_time` in nanoseconds of version 1.
fn throttled_in(stat: &str) -> f64 {
    let of = |line: &str| match line.split_once(' ')? {
        ("throttled_usec", us) => us.trim().parse::<f64>().ok().map(|us| us / 1e6),
        ("throttled_time", ns) => ns.trim().parse::<f64>().ok().map(|ns| ns / 1e9),
        _ => None,
    };
    stat.lines().find_map(of).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quota_of_both_versions_is_read() {
        assert!((throttled_in("nr_periods 7\nnr_throttled 2\nthrottled_usec 1500000\n") - 1.5).abs() < 1e-9);
        assert!((throttled_in("nr_periods 7\nnr_throttled 2\nthrottled_time 2500000000\n") - 2.5).abs() < 1e-9);
        assert!(throttled_in("usage_usec 5").abs() < 1e-9);
        assert_eq!(cpu_group("0::/lab/a"), Some(("/sys/fs/cgroup", "/lab/a")));
        assert_eq!(cpu_group("3:cpu,cpuacct:/lab"), Some(("/sys/fs/cgroup/cpu", "/lab")));
        assert_eq!(cpu_group("4:memory:/lab"), None);
    }

    #[test]
    fn the_program_that_waited_longest_is_found_and_a_count_that_falls_has_grown_by_nothing() {
        let before = Reading { times: [1.0; 8], programs: Some(HashMap::from([(2, 100), (3, 5_000_000_000)])) };
        let programs = HashMap::from([(2, 1_000_000_100), (3, 7_000_000_000), (4, 250_000_000)]);
        let (grown, longest) = Reading { times: [0.5; 8], programs: Some(programs) }.since(&before);
        assert_eq!(longest, Some(3));
        assert!((grown[2] - 3.25).abs() < 1e-9 && (grown[7] - 2.0).abs() < 1e-9 && grown[0].abs() < 1e-9, "{grown:?}");
    }

    #[test]
    fn the_worst_second_is_told_beside_the_whole() {
        let mut account = Account::begin();
        let grown = |seconds: f64| [seconds; NAMES.len()];
        // Two looks within one second add up; a late look's share counts; a second that is not over counts as it is.
        assert!(!account.enter(&grown(0.2), 0.5));
        assert!(account.enter(&grown(0.2), 1.0));
        assert!(account.enter(&grown(0.6), 2.0));
        assert!(!account.enter(&grown(0.1), 0.2));
        assert!((account.total[0] - 1.1).abs() < 1e-9 && (account.worst[0] - 0.4).abs() < 1e-9, "{account:?}");
    }

    #[test]
    fn what_this_machine_tells_can_be_read() {
        let evidence = Evidence::begin(Arc::new(AtomicBool::new(true)));
        evidence.look_at_second();
        let told = evidence.to_json();
        for name in &NAMES[..7] {
            let (total, worst) =
                (told[name]["total_s"].as_f64().unwrap(), told[name]["worst_second_s"].as_f64().unwrap());
            assert!(total >= 0.0 && worst >= 0.0, "{name}: {told}");
        }
    }
}
