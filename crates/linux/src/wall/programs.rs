//! One look at the threads of the lab's programs: how long each has waited for a processor, and what holds it.
//!
//! A thread that is held neither runs nor waits to run, and looks like one that sleeps. Its state tells: `t` is a stop
//! for a tracer, `T` one by a signal (proc(5)), and a frozen control group tells itself. Version 2 of control groups
//! freezes threads as sleepers; since Linux 6.18 it counts for how long (`frozen_usec` of `cgroup.stat.local`), and
//! before that says only that it does (`cgroup.events`). Version 1 shows them as waiting for a disk.

use std::collections::HashMap;
use std::fs::{read_dir, read_to_string};
use std::time::Duration;

/// Threads of programs that are looked at. With more of them a look would cost the machine what it looks for.
const MOST_THREADS: usize = 4096;
/// Beginning of the name that the first process of a host has.
const OWN_NAME: &str = "twinnet: ";
/// Where version 2 of control groups is: beside version 1, or alone.
const VERSION_2: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
const VERSION_1: &str = "/sys/fs/cgroup/freezer";
/// Beginning of the name of a group in which the lab's owner limits processors or memory, before its number.
const OWN_GROUP: &str = "twinnet-";

/// For how long a thread has had a processor and waited for one so far, and how often it had one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    pub(super) ran_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) count: u64,
    /// `true` if the lab itself limits its processor time: that it waits then is wanted.
    pub(super) limited: bool,
}

impl Turns {
    /// Returns what came since `before`. A number that another thread has now may have counted more then.
    pub(super) fn since(&self, before: Option<&Self>) -> Self {
        let before = before.copied().unwrap_or_default();
        Self {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
            count: self.count.saturating_sub(before.count),
            limited: self.limited,
        }
    }
}

/// What keeps a thread from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Tracer,
    Group,
    Signal,
}

impl Holder {
    /// As the record names it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tracer => "tracer",
            Self::Group => "frozen",
            Self::Signal => "signal",
        }
    }
}

/// What a look found.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    /// By thread.
    pub(super) turns: HashMap<i32, Turns>,
    /// A thread that is held, if one is.
    pub(super) held: Option<(i32, Holder)>,
    /// By control group: for how long it was frozen so far, and a process of it.
    pub(super) frozen: HashMap<String, (Duration, i32)>,
}

impl Look {
    /// Looks at all processes of the lab's namespace, of which the lab is `own`: it is held as programs are, and told
    /// apart for how long it waits. `None` where there are too many threads.
    pub(super) fn now(own: i32) -> Option<Self> {
        let mut look = Self::default();
        for process in numbers("/proc") {
            let groups = read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
            let limited = is_limited(&groups);
            look.see_frozen(process, &groups);
            for thread in numbers(&format!("/proc/{process}/task")) {
                if look.turns.len() == MOST_THREADS {
                    return None;
                }
                look.see_thread(process, thread);
                if process == own {
                    continue;
                }
                if let Some(turns) = turns(&format!("/proc/{process}/task/{thread}/schedstat")) {
                    look.turns.insert(thread, Turns { limited, ..turns });
                }
            }
        }
        Some(look)
    }

    fn see_thread(&mut self, process: i32, thread: i32) {
        if self.held.is_some() {
            return;
        }
        let place = format!("/proc/{process}/task/{thread}");
        let told = read_to_string(format!("{place}/stat")).unwrap_or_default();
        let Some((state, parent)) = state_and_parent(&told) else { return };
        let holder = match state {
            't' => Some(Holder::Tracer),
            // A host's first process hears of stops of the programs that it has started, and tells their length.
            'T' => (!is_first_process(parent)).then_some(Holder::Signal),
            'D' => is_frozen_in_version_1(&place).then_some(Holder::Group),
            // A tracer of the same namespace is seen also while it lets the thread run.
            _ if thread == process => has_tracer(&place).then_some(Holder::Tracer),
            _ => None,
        };
        self.held = holder.map(|holder| (thread, holder));
    }

    fn see_frozen(&mut self, process: i32, groups: &str) {
        // The root can not be frozen.
        let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::")).filter(|group| *group != "/") else {
            return;
        };
        if self.frozen.contains_key(group) {
            return;
        }
        let read = |name: &str| VERSION_2.iter().find_map(|at| read_to_string(format!("{at}{group}/{name}")).ok());
        if let Some(frozen) = read("cgroup.stat.local").as_deref().and_then(frozen_in) {
            self.frozen.insert(group.to_owned(), (frozen, process));
        } else if read("cgroup.events").is_some_and(|told| told.lines().any(|line| line == "frozen 1")) {
            self.held.get_or_insert((process, Holder::Group));
        }
    }
}

/// The name of a thread.
pub(super) fn name_of(thread: i32) -> String {
    read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// What a look would find in [`Look::turns`], in a third of its time. Nothing is limited.
pub(super) fn turns_of_programs(own: i32) -> HashMap<i32, Turns> {
    let threads = numbers("/proc").filter(|process| *process != own).flat_map(|process| {
        numbers(&format!("/proc/{process}/task")).map(move |thread| (process, thread)).collect::<Vec<_>>()
    });
    let told = threads
        .take(MOST_THREADS)
        .filter_map(|(process, thread)| Some((thread, turns(&format!("/proc/{process}/task/{thread}/schedstat"))?)));
    told.collect()
}

/// The three numbers of a `schedstat` (Documentation/scheduler/sched-stats.rst).
pub(super) fn turns(path: &str) -> Option<Turns> {
    let told = read_to_string(path).ok()?;
    let mut numbers = told.split_whitespace().map_while(|number| number.parse().ok());
    Some(Turns { ran_ns: numbers.next()?, waited_ns: numbers.next()?, count: numbers.next()?, limited: false })
}

fn numbers(folder: &str) -> impl Iterator<Item = i32> {
    let entries = read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The third and fourth field of a `stat`, behind the name, which may have brackets itself.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn is_first_process(process: i32) -> bool {
    read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|told| told.starts_with(OWN_NAME))
}

/// Returns `true` if one of the control groups, as `/proc/PID/cgroup` lists them, limits processors for the lab.
fn is_limited(groups: &str) -> bool {
    groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':')).any(|(controllers, group)| {
        let limits = controllers.is_empty() || controllers.split(',').any(|controller| controller == "cpu");
        let mut names = group.split('/').filter_map(|name| name.strip_prefix(OWN_GROUP));
        limits && names.any(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    })
}

fn has_tracer(place: &str) -> bool {
    read_to_string(format!("{place}/status")).is_ok_and(|told| is_traced(&told))
}

fn is_traced(status: &str) -> bool {
    status.lines().find_map(|line| line.strip_prefix("TracerPid:")).is_some_and(|tracer| tracer.trim() != "0")
}

fn is_frozen_in_version_1(place: &str) -> bool {
    let groups = read_to_string(format!("{place}/cgroup")).unwrap_or_default();
    let group = groups.lines().find_map(freezer_group);
    let state = group.and_then(|group| read_to_string(format!("{VERSION_1}{group}/freezer.state")).ok());
    state.is_some_and(|state| matches!(state.trim_end(), "FROZEN" | "FREEZING"))
}

/// The group of a line such as `6:freezer:/a`.
fn freezer_group(line: &str) -> Option<&str> {
    let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
    controllers.split(',').any(|controller| controller == "freezer").then_some(group)
}

/// `frozen_usec` of `cgroup.stat.local`, since Linux 6.18 (Documentation/admin-guide/cgroup-v2.rst).
fn frozen_in(stat: &str) -> Option<Duration> {
    let us = stat.lines().find_map(|line| line.strip_prefix("frozen_usec "))?;
    us.trim().parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_behind_names_with_brackets_and_blanks() {
        assert_eq!(state_and_parent("7 (a) b) t 3 7 7 0 -1"), Some(('t', 3)));
        assert_eq!(state_and_parent("7 (sleep) S 1 7"), Some(('S', 1)));
        assert_eq!(state_and_parent("7 (sleep"), None);
        assert!(is_traced("Name:\tx\nState:\tS (sleeping)\nTracerPid:\t12\n"));
        assert!(!is_traced("Name:\tx\nTracerPid:\t0\n") && !is_traced("Name:\tx\n"));
    }

    #[test]
    fn frozen_groups_are_read_of_both_versions() {
        assert_eq!(frozen_in("frozen_usec 112620\n"), Some(Duration::from_micros(112_620)));
        assert_eq!(frozen_in("nr_descendants 1\n"), None);
        assert_eq!(freezer_group("6:freezer:/docker/a"), Some("/docker/a"));
        assert_eq!(freezer_group("4:memory:/a"), None);
        assert_eq!(freezer_group("0::/a"), None);
    }

    #[test]
    fn only_groups_in_which_the_lab_limits_processors_are_wanted_limits() {
        assert!(is_limited("3:cpu,cpuacct:/twinnet-12/h1\n0::/\n"));
        assert!(is_limited("0::/twinnet-12-7f00/h1\n"));
        assert!(!is_limited("4:memory:/twinnet-12/h1\n3:cpu:/docker/a\n0::/twinnet-bench-1\n"));
    }

    #[test]
    fn a_stopped_program_is_held_by_a_signal_and_its_turns_are_counted() {
        let mut program = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(program.id()).unwrap();
        let place = format!("/proc/{pid}/stat");
        // SAFETY: a plain system call; the child has not been waited for.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        while state_and_parent(&read_to_string(&place).unwrap()).unwrap().0 != 'T' {
            std::thread::yield_now();
        }
        let mut look = Look::default();
        look.see_thread(pid, pid);
        assert_eq!(look.held, Some((pid, Holder::Signal)));
        assert!(turns(&format!("/proc/{pid}/schedstat")).unwrap().count > 0);
        program.kill().unwrap();
        program.wait().unwrap();
    }
}
