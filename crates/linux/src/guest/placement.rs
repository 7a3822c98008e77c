//! The processor on which a guest and the thread that drives it take turns.
//!
//! Never do both run at once. On one processor, the turn goes from one to the other by a switch of processes; on two,
//! a processor that sleeps has to be woken each time, which takes several times as long in a virtual machine. So both
//! stay on one processor, which changes where others keep it busy and another one is free.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity, CpuSet};

/// The real time between two looks at how busy processors are.
const LOOK: Duration = Duration::from_millis(400);
/// Guests that began together do not look together, or all would go to the free processor at once.
const LOOKS_APART: Duration = Duration::from_millis(37);
/// A move is worth it where the other processor was busy for so much less of the time.
const WORTH_IT: f64 = 0.25;

/// Where a guest and the thread that drives it run.
#[derive(Debug)]
pub struct Placement {
    processor: usize,
    /// The processors of the thread that drives it, while it does.
    allowed: Option<CpuSet>,
    interval: Duration,
    looked: Instant,
    /// What was seen then: the time for which each processor has been busy, and both of ours have run.
    busy: Vec<Duration>,
    ran: Duration,
}

impl Placement {
    /// Of a guest that is not started yet: it begins on the processor on which the calling thread is.
    pub fn new() -> Self {
        let interval = LOOK + LOOKS_APART * (std::process::id() % 8);
        let (looked, busy) = (Instant::now(), Vec::new());
        Self { processor: sched_getcpu(), allowed: None, interval, looked, busy, ran: Duration::ZERO }
    }

    /// Brings the calling thread to the guest, until [`leave`](Self::leave). A machine that does not let it leaves all
    /// where they are.
    pub fn join(&mut self) {
        let Ok(allowed) = sched_getaffinity(None) else { return };
        if allowed.count() < 2 {
            return;
        }
        if allowed.is_set(self.processor) && sched_setaffinity(None, &only(self.processor)).is_ok() {
            self.allowed = Some(allowed);
        }
    }

    /// The calling thread, which has joined, may run wherever it might before.
    pub fn leave(&mut self) {
        if let Some(allowed) = self.allowed.take() {
            let _ = sched_setaffinity(None, &allowed);
        }
    }

    /// Returns `true` if it is time for [`look`](Self::look).
    pub fn is_due(&self) -> bool {
        self.allowed.is_some() && self.looked.elapsed() >= self.interval
    }

    /// Moves the guest, whose `processes` (parents first) have `computed` for so long, and the calling thread to a
    /// processor that is free, if others keep this one busy.
    pub fn look(&mut self, computed: Duration, processes: impl Iterator<Item = Pid>) {
        let elapsed = self.looked.elapsed();
        let ran = computed + time_of_this_thread();
        let busy = busy_times(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let since = std::mem::replace(&mut self.busy, busy);
        let by_us = ran.saturating_sub(std::mem::replace(&mut self.ran, ran));
        self.looked = Instant::now();
        let Some(allowed) = self.allowed else { return };
        let shares: Vec<f64> = (self.busy.iter().zip(&since))
            .map(|(now, before)| now.saturating_sub(*before).as_secs_f64() / elapsed.as_secs_f64())
            .collect();
        let ours = by_us.as_secs_f64() / elapsed.as_secs_f64();
        if let Some(better) = better(self.processor, &shares, ours, |processor| allowed.is_set(processor)) {
            if sched_setaffinity(None, &only(better)).is_ok() {
                self.processor = better;
                for process in processes {
                    let _ = sched_setaffinity(Some(process), &only(better));
                }
            }
        }
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The processor to move to from the one `at`, if any: each was busy for its share of the time, and that one by us for
/// the share `ours`.
fn better(at: usize, shares: &[f64], ours: f64, allowed: impl Fn(usize) -> bool) -> Option<usize> {
    let others = shares.get(at)? - ours;
    let candidates = shares.iter().enumerate().filter(|(processor, _)| *processor != at && allowed(*processor));
    let (processor, share) = candidates.min_by(|one, other| one.1.total_cmp(other.1))?;
    (share + WORTH_IT < others).then_some(processor)
}

/// For how long each processor has been busy, by its number, as `/proc/stat` tells it (proc_stat(5)).
fn busy_times(stat: &str) -> Vec<Duration> {
    let mut times = Vec::new();
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let Some(Ok(processor)) = words.next().and_then(|name| name.strip_prefix("cpu")).map(str::parse::<usize>)
        else {
            continue;
        };
        // Time in user mode, of low priority, in the kernel, idle twice, in interrupts twice, and stolen.
        let ticks: Vec<u64> = words.take(8).filter_map(|ticks| ticks.parse().ok()).collect();
        let busy = ticks.iter().enumerate().filter(|(field, _)| !matches!(field, 3 | 4)).map(|(_, ticks)| ticks).sum();
        times.resize(times.len().max(processor + 1), Duration::ZERO);
        times[processor] = super::kernel::of_ticks(busy);
    }
    times
}

fn only(processor: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(processor);
    set
}

fn time_of_this_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_moves_only_to_a_processor_that_is_clearly_freer() {
        let any = |_| true;
        assert_eq!(better(0, &[1.0, 0.0], 0.5, any), Some(1), "another program has half of it");
        assert_eq!(better(0, &[1.0, 0.0], 1.0, any), None, "nobody else is there");
        assert_eq!(better(0, &[1.0, 0.4], 0.5, any), None, "it would be little better there");
        assert_eq!(better(1, &[0.3, 1.0, 0.1], 0.2, any), Some(2), "the freest of all");
        assert_eq!(better(1, &[0.3, 1.0, 0.1], 0.2, |processor| processor < 2), Some(0), "the freest that may be");
        assert_eq!(better(3, &[1.0, 0.0], 0.0, any), None, "a processor that the kernel does not tell of");
    }

    #[test]
    fn the_times_of_processors_are_read_by_their_numbers() {
        let second = Duration::from_secs(1).as_millis() / super::super::kernel::of_ticks(1).as_millis();
        let stat = format!(
            "cpu 9 9 9 9 9 9 9 9\ncpu0 {second} 0 {second} 7 7 0 0 0 3 3\ncpu2 0 0 0 5 5 0 0 {second}\nintr 5\n"
        );
        assert_eq!(busy_times(&stat), [Duration::from_secs(2), Duration::ZERO, Duration::from_secs(1)]);
        assert!(busy_times("").is_empty());
        let here = busy_times(&fs::read_to_string("/proc/stat").unwrap());
        assert!(here.iter().any(|busy| !busy.is_zero()), "{here:?}");
    }

    #[test]
    fn a_thread_that_has_left_may_run_where_it_might_before() {
        let before = sched_getaffinity(None).unwrap();
        let mut placement = Placement::new();
        placement.join();
        let joined = sched_getaffinity(None).unwrap();
        assert_eq!(joined.count(), 1, "one processor, where there are several and where there is one");
        placement.look(Duration::ZERO, std::iter::empty());
        placement.look(Duration::ZERO, std::iter::empty());
        placement.leave();
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
