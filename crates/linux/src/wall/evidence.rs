//! The other effects of the machine on a run, looked at once a second outside of the loop: threads and programs that
//! could have run and had no processor, quotas, pressure, and time that a hypervisor took. Programs are looked at more
//! often, as far as that costs next to nothing: one that waits for 8 ms in each tenth of a second waits little of a
//! second, and answers late all the same. So does one that waits long for each of few turns, and one that a debugger or
//! a frozen control group holds, which waits for nothing.
//!
//! Each quantity is a time. It is told in all and for the worst second. What the kernel does not tell is 0, and
//! `sources` says which of them it tells: that nothing was counted and that nothing came to pass are two things.

use std::collections::HashMap;
use std::fs::read_to_string;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::wall::delivery;
use crate::wall::fidelity::ThreadUsage;
use crate::wall::held::Holds;
use crate::wall::moving_off::move_off;
use crate::wall::programs::{name_of, turns, Look, Turns};
use crate::wall::scheduling::{threads_of, AGENT_THREAD_NAME, THREAD_NAME};

/// The interval of looks at everything.
const SECOND: Duration = Duration::from_secs(1);
/// The shortest interval of looks at programs.
const WINDOW: Duration = Duration::from_millis(50);
/// The time until the next look where one has just found a program that is held: so its end is known more closely.
const SOON: Duration = Duration::from_millis(5);
/// Looks at programs may take one part in so many of a processor.
const COST_ONE_IN: f64 = 200.0;
/// The shortest time that a share is one of: in less the kernel's own ticks are large shares.
const LEAST_SHARED_S: f64 = 0.1;
/// A thread whose turns in a window began later than this, on average, waited long for them. Programs that share a
/// quiet machine with the lab wait for some tens of microseconds each time. A server that is asked each 3 ms, beside a
/// real-time program of 3.5 ms in each 20 ms, has six turns in that time, and waits for 2 ms of it: 0.3 ms each.
const LATE_TURN_NS: u64 = 200_000;

/// Turns at a processor in a window from which on programs are said to run: a few hundred in a second.
const AT_WORK_TURNS: u64 = 20;
/// Share of a window for which they are said to run, too, or to want to: one that sends as much as there is room for
/// has few turns, and long ones.
const AT_WORK_SHARE: f64 = 0.05;
/// Share of a window for which a program waits that is moved off the processor of a busy loop.
const STUCK: f64 = 0.2;

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

/// The counters that the kernel and the hypervisor offer.
#[derive(Clone, Copy, Debug, Default)]
struct Sources {
    /// How long threads wait for a processor.
    thread_waits: bool,
    processor_pressure: bool,
    memory_pressure: bool,
    /// What a quota took from the lab's control group.
    quota: bool,
    steal: bool,
}

impl Sources {
    fn to_json(self, all_programs_seen: bool) -> Value {
        json!({
            "thread_waits": self.thread_waits, "processor_pressure": self.processor_pressure,
            "memory_pressure": self.memory_pressure, "quota": self.quota, "steal": self.steal,
            "programs": all_programs_seen,
        })
    }
}

/// The counters of the kernel so far.
#[derive(Clone, Debug, Default)]
struct Reading {
    sources: Sources,
    /// All but those of programs.
    times: Times,
    /// By thread; `None` where there are too many.
    programs: Option<HashMap<i32, Turns>>,
}

impl Reading {
    /// `programs` is what a look at them found.
    fn now(programs: Option<HashMap<i32, Turns>>) -> Self {
        let mut times = Times::default();
        // The fabric hands frames over by a thread of its own, too.
        let fabric = [THREAD_NAME, delivery::THREAD_NAME].map(waited_by_threads);
        let (processor, memory, throttled) = (pressure("cpu"), pressure("memory"), throttled_s());
        times[0] = fabric.iter().flatten().sum();
        times[1] = waited_by_threads(AGENT_THREAD_NAME).unwrap_or(0.0);
        times[3] = processor.unwrap_or(0.0);
        times[4] = memory.unwrap_or(0.0);
        times[5] = throttled.unwrap_or(0.0);
        times[6] = super::fidelity::steal_s();
        let sources = Sources {
            thread_waits: own_wait_is_told(),
            processor_pressure: processor.is_some(),
            memory_pressure: memory.is_some(),
            quota: throttled.is_some(),
            // A hypervisor that has never told of any is held not to tell.
            steal: times[6] > 0.0 || !is_guest(),
        };
        Self { sources, times, programs }
    }

    /// Returns what came since `before`, and the thread that waited longest.
    fn since(&self, before: &Self) -> (Times, Option<i32>) {
        // A count that a group's change or a thread's end takes back has grown by nothing.
        let mut grown: Times = std::array::from_fn(|place| (self.times[place] - before.times[place]).max(0.0));
        let mut longest = None;
        let (Some(now), Some(before)) = (&self.programs, &before.programs) else { return (grown, None) };
        for (thread, turns) in now {
            let seconds = turns.since(before.get(thread)).waited_ns as f64 / 1e9;
            grown[2] += seconds;
            if seconds > grown[7] {
                (grown[7], longest) = (seconds, Some(*thread));
            }
        }
        (grown, longest)
    }
}

/// The program that waited for the largest share of one short window.
#[derive(Clone, Debug, Default)]
struct WorstWindow {
    waited_s: f64,
    window_s: f64,
    program: String,
}

impl WorstWindow {
    fn share(&self) -> f64 {
        self.waited_s / self.window_s.max(WINDOW.as_secs_f64())
    }
}

/// The times since a moment, in all and for the worst second.
#[derive(Debug)]
struct Account {
    begun: Instant,
    last: Reading,
    total: Times,
    worst: Times,
    /// The second that is counted: when it began, and its times.
    since: Instant,
    second: Times,
    /// The name of the program that waited longest.
    longest: String,
    /// The last look at programs, and the window in which one waited longest.
    looked: (Instant, Option<HashMap<i32, Turns>>),
    worst_window: WorstWindow,
    /// For how long each thread waited in windows in which its turns were late, and the name of the one that did most.
    late_turns_s: HashMap<i32, f64>,
    latest: String,
    holds: Holds,
    /// `true` if every look saw all programs.
    all_programs_seen: bool,
    /// `true` if programs ran in the last window.
    programs_run: bool,
}

impl Account {
    fn begin() -> Self {
        let look = Look::now(own_process());
        let begun = Instant::now();
        let holds = Holds::begin(look.as_ref(), begun);
        let last = Reading::now(look.map(|look| look.turns));
        let all_programs_seen = last.programs.is_some();
        let [total, worst, second] = [Times::default(); 3];
        let (looked, worst_window) = ((begun, last.programs.clone()), WorstWindow::default());
        Self {
            begun,
            last,
            total,
            worst,
            since: begun,
            second,
            longest: String::new(),
            looked,
            worst_window,
            late_turns_s: HashMap::new(),
            latest: String::new(),
            holds,
            all_programs_seen,
            programs_run: false,
        }
    }

    /// Looks at everything; returns the programs that waited for much of the window.
    fn look(&mut self) -> Vec<i32> {
        let programs = Look::now(own_process());
        let reading = Reading::now(programs.as_ref().map(|look| look.turns.clone()));
        let stuck = self.enter_programs(programs);
        let (grown, thread) = reading.since(&self.last);
        self.last = reading;
        if self.enter(&grown, self.since.elapsed().as_secs_f64(), self.begun.elapsed().as_secs_f64()) {
            self.since = Instant::now();
        }
        if let Some(thread) = thread.filter(|_| grown[7] >= self.worst[7]) {
            self.longest = name_of(thread);
        }
        stuck
    }

    /// Counts how long programs had waited by now, and what held them, as far as they were seen. Returns those that
    /// waited for much of the window.
    fn enter_programs(&mut self, look: Option<Look>) -> Vec<i32> {
        self.all_programs_seen &= look.is_some();
        if let Some(look) = &look {
            self.holds.enter(look, Instant::now());
        }
        let looked = (Instant::now(), look.map(|look| look.turns));
        let (since, before) = std::mem::replace(&mut self.looked, looked);
        let window_s = (self.looked.0 - since).as_secs_f64();
        let (Some(before), Some(now)) = (&before, &self.looked.1) else { return Vec::new() };
        let (mut stuck, mut all_turns, mut wanted_ns) = (Vec::new(), 0, 0);
        let grown = now.iter().map(|(thread, turns)| (*thread, turns.since(before.get(thread))));
        let mut longest: Option<(i32, u64)> = None;
        for (thread, turns) in grown {
            all_turns += turns.count;
            wanted_ns += turns.ran_ns + turns.waited_ns;
            if turns.waited_ns as f64 / 1e9 > STUCK * window_s {
                stuck.push(thread);
            }
            if longest.is_none_or(|(_, most)| turns.waited_ns > most) {
                longest = Some((thread, turns.waited_ns));
            }
            if !turns.limited && turns.waited_ns > LATE_TURN_NS.saturating_mul(turns.count) {
                let most = self.late_turns_s.values().copied().fold(0.0, f64::max);
                let sum = self.late_turns_s.entry(thread).or_default();
                *sum += turns.waited_ns as f64 / 1e9;
                if *sum > most {
                    self.latest = name_of(thread);
                }
            }
        }
        self.programs_run = all_turns >= AT_WORK_TURNS || wanted_ns as f64 / 1e9 > AT_WORK_SHARE * window_s;
        let Some((thread, waited_ns)) = longest else { return stuck };
        let window = WorstWindow { waited_s: waited_ns as f64 / 1e9, window_s, program: String::new() };
        if window.share() > self.worst_window.share() {
            self.worst_window = WorstWindow { program: name_of(thread), ..window };
        }
        stuck
    }

    /// Counts what has `grown` in a second that began `elapsed` seconds ago, in a record that began `whole` seconds
    /// ago; whether that second is over. A look that comes late itself covers more than a second, and its share counts.
    /// Of a record that is shorter than a second the share of the record does.
    fn enter(&mut self, grown: &Times, elapsed: f64, whole: f64) -> bool {
        let over = elapsed >= 0.95;
        let shared = elapsed.max(whole.min(1.0)).max(LEAST_SHARED_S);
        let counted = self.total.iter_mut().zip(&mut self.second).zip(&mut self.worst);
        for (((total, second), worst), grown) in counted.zip(grown) {
            *total += grown;
            *second += grown;
            *worst = worst.max(*second / shared);
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
        let worst = &self.worst_window;
        told["programs_waited"]["worst_window"] = json!({
            "waited_s": worst.waited_s, "window_s": worst.window_s, "share": worst.share().min(1.0),
            "program": worst.program,
        });
        told["programs_waited"]["late_turns"] = json!({
            "waited_s": self.late_turns_s.values().copied().fold(0.0, f64::max), "program": self.latest,
        });
        told.insert("programs_held".to_owned(), self.holds.to_json());
        told.insert("sources".to_owned(), self.last.sources.to_json(self.all_programs_seen));
        Value::Object(told)
    }
}

/// The account of a lab, to be looked at from several threads.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    account: Arc<Mutex<Account>>,
    at_work: Arc<AtomicBool>,
    /// The processor of which the loop needs all; below 0 while it needs less.
    occupied: Arc<AtomicI32>,
    programs_run: Arc<AtomicBool>,
}

impl Evidence {
    /// Begins an account. While the lab is not `at_work`, a look is one load of that flag: it comes as often as at
    /// work, so that the first window of a run that begins now is as short as the others. What waits while the loop
    /// needs all of the `occupied` processor is moved off it.
    pub(crate) fn begin(at_work: Arc<AtomicBool>, occupied: Arc<AtomicI32>) -> Self {
        Self { account: Arc::new(Mutex::new(Account::begin())), at_work, occupied, programs_run: Arc::default() }
    }

    /// Returns `true` if programs of hosts have run lately, as far as was seen.
    pub(crate) fn programs_run(&self) -> bool {
        self.programs_run.load(Ordering::Relaxed)
    }

    /// Looks at what is due; returns how long nothing is.
    pub(crate) fn look(&self) -> Duration {
        if !self.at_work.load(Ordering::Relaxed) {
            return WINDOW;
        }
        // Not the time that it took: on a busy machine most of that is waiting.
        let used_s = || ThreadUsage::of_this_thread().cpu_s;
        let before_s = used_s();
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stuck = Vec::new();
        if account.since.elapsed() >= SECOND {
            stuck = account.look();
        } else if account.looked.0.elapsed() >= WINDOW {
            stuck = account.enter_programs(Look::now(own_process()));
        } else if let Some(look) = Look::now(own_process()) {
            account.holds.enter(&look, Instant::now());
        }
        self.programs_run.store(account.programs_run, Ordering::Relaxed);
        let occupied = self.occupied.load(Ordering::Relaxed);
        stuck.into_iter().for_each(|thread| move_off(thread, occupied));
        if account.holds.have_just_begun() {
            return SOON;
        }
        Duration::from_secs_f64((used_s() - before_s).max(0.0) * COST_ONE_IN).clamp(WINDOW, SECOND)
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

/// For how long the threads of this process with this name could have run and did not, in seconds; `None` where there
/// is no such thread, or the kernel does not tell.
fn waited_by_threads(name: &'static str) -> Option<f64> {
    let waits =
        threads_of(own_process(), name).filter_map(|thread| turns(&format!("/proc/self/task/{thread}/schedstat")));
    waits.map(|turns| turns.waited_ns as f64 / 1e9).reduce(|sum, one| sum + one)
}

/// The process's own identifier: 1 in a lab's namespace, but not where a test runs it.
pub(super) fn own_process() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(1)
}

/// Returns `true` if the kernel counts how long threads wait: it has counted how often the calling one ran.
fn own_wait_is_told() -> bool {
    let told = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split_whitespace().nth(2).is_some_and(|times| times != "0")
}

/// Returns `true` if a hypervisor says that it is there.
fn is_guest() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let told = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = told.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        flags.split_whitespace().any(|flag| flag == "hypervisor")
    })
}

/// Time in seconds for which some task waited for `resource`: "some avg10=... total=MICROSECONDS"
/// (Documentation/accounting/psi.rst).
fn pressure(resource: &str) -> Option<f64> {
    let text = read_to_string(format!("/proc/pressure/{resource}")).ok()?;
    let (_, us) = text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?;
    Some(us.trim().parse::<f64>().ok()? / 1e6)
}

/// Time in seconds for which the quota of this process's control group, or of one above it, kept its processors from
/// it; `None` where there are such groups and none tells. A kernel without groups has no quotas.
fn throttled_s() -> Option<f64> {
    let Ok(groups) = read_to_string("/proc/self/cgroup") else { return Some(0.0) };
    let times = groups.lines().filter_map(cpu_group).filter_map(|(mount, path)| throttled_at_or_above(mount, path));
    times.reduce(|sum, one| sum + one)
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

fn throttled_at_or_above(mount: &str, path: &str) -> Option<f64> {
    let groups = std::path::Path::new(path).ancestors().filter_map(|group| group.to_str());
    let stat = |group: &str| read_to_string(format!("{mount}{}/cpu.stat", group.trim_end_matches('/'))).ok();
    groups.filter_map(stat).map(|text| throttled_in(&text)).reduce(|sum, one| sum + one)
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

    fn turns_of(waited_ns: u64, count: u64) -> Turns {
        Turns { ran_ns: 0, waited_ns, count, limited: false }
    }

    fn look<const N: usize>(threads: [(i32, u64, u64); N]) -> Look {
        let turns = threads.map(|(thread, waited_ns, count)| (thread, turns_of(waited_ns, count))).into();
        Look { turns, ..Look::default() }
    }

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
        let before = Reading {
            times: [1.0; 8],
            programs: Some(HashMap::from([(2, turns_of(100, 1)), (3, turns_of(5_000_000_000, 1))])),
            ..Reading::default()
        };
        let programs =
            [(2, turns_of(1_000_000_100, 2)), (3, turns_of(7_000_000_000, 2)), (4, turns_of(250_000_000, 2))];
        let (grown, longest) =
            Reading { times: [0.5; 8], programs: Some(programs.into()), ..Reading::default() }.since(&before);
        assert_eq!(longest, Some(3));
        assert!((grown[2] - 3.25).abs() < 1e-9 && (grown[7] - 2.0).abs() < 1e-9 && grown[0].abs() < 1e-9, "{grown:?}");
    }

    #[test]
    fn the_worst_second_is_told_beside_the_whole() {
        let mut account = Account::begin();
        let grown = |seconds: f64| [seconds; NAMES.len()];
        // Two looks within one second add up; a late look's share counts; a second that is not over counts as it is.
        assert!(!account.enter(&grown(0.2), 0.5, 2.0));
        assert!(account.enter(&grown(0.2), 1.0, 2.5));
        assert!(account.enter(&grown(0.6), 2.0, 4.5));
        assert!(!account.enter(&grown(0.1), 0.2, 4.7));
        assert!((account.total[0] - 1.1).abs() < 1e-9 && (account.worst[0] - 0.4).abs() < 1e-9, "{account:?}");
        // Of a record of a fifth of a second a share is that of the record.
        let mut account = Account::begin();
        account.enter(&grown(0.05), 0.2, 0.2);
        assert!((account.worst[0] - 0.25).abs() < 1e-9, "{account:?}");
    }

    #[test]
    fn a_program_that_waits_in_short_pieces_is_seen_by_its_worst_window() {
        let mut account = Account::begin();
        for waited_ms in [0, 1, 9, 9] {
            account.enter_programs(Some(look([(2, waited_ms * 1_000_000, 1), (3, 500, 1)])));
        }
        // Looks that follow at once count as those of a whole window.
        assert!((account.worst_window.share() - 0.16).abs() < 0.01, "{:?}", account.worst_window);
        account.enter_programs(None);
        assert_eq!(account.to_json()["sources"]["programs"], json!(false));
    }

    #[test]
    fn a_program_that_waits_for_most_of_a_window_is_stuck_and_one_that_shares_a_processor_is_not() {
        let mut account = Account::begin();
        account.enter_programs(Some(look([(2, 0, 0), (3, 0, 0)])));
        std::thread::sleep(WINDOW);
        let ns = |part: f64| (account.looked.0.elapsed().as_nanos() as f64 * part) as u64;
        let mut waited = [(2, ns(0.9), 1), (3, ns(0.1), 1), (4, 0, 1)];
        assert_eq!(account.enter_programs(Some(look(waited))), [2]);
        assert!(account.programs_run, "they wanted to, most of the time");
        account.enter_programs(Some(look(waited)));
        assert!(!account.programs_run, "no turns since");
        waited[2].2 += AT_WORK_TURNS;
        account.enter_programs(Some(look(waited)));
        assert!(account.programs_run, "they had many turns");
        assert!(account.enter_programs(None).is_empty());
    }

    #[test]
    fn long_waits_for_few_turns_count_and_short_ones_for_many_do_not() {
        let mut account = Account::begin();
        account.enter_programs(Some(look([(2, 0, 0), (3, 0, 0)])));
        // A thread that had 500 turns and waited for 8 us each, and one that waited for 0.33 ms each of 6.
        account.enter_programs(Some(look([(2, 4_000_000, 500), (3, 2_000_000, 6)])));
        account.enter_programs(Some(look([(2, 8_000_000, 1000), (3, 2_100_000, 12)])));
        let late_s = account.to_json()["programs_waited"]["late_turns"]["waited_s"].as_f64().unwrap();
        assert!((late_s - 0.002).abs() < 1e-9, "{late_s}");
    }

    #[test]
    fn what_this_machine_tells_can_be_read() {
        let evidence = Evidence::begin(Arc::new(AtomicBool::new(true)), Arc::new(AtomicI32::new(-1)));
        assert!((WINDOW..=SECOND).contains(&evidence.look()));
        let told = evidence.to_json();
        for name in &NAMES[..7] {
            let (total, worst) =
                (told[name]["total_s"].as_f64().unwrap(), told[name]["worst_second_s"].as_f64().unwrap());
            assert!(total >= 0.0 && worst >= 0.0, "{name}: {told}");
        }
    }
}
