//! The accuracy of the machine's time, and what runs beside us.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::probe::in_child;
use super::Finding;
use crate::wall::clock::monotonic_ns;
use crate::wall::parts::choice::threads_unasked;

/// Sleeps that are timed.
const SLEEPS: u32 = 200;
/// Length of each.
const SLEEP: Duration = Duration::from_micros(100);
/// Oversleep of the 99th percentile above which frames are handed over late.
const LATE_NS: u64 = 200_000;
/// Real-time priority that is asked for.
const PRIORITY: i32 = 1;
/// Part of all time that another guest took, above which measurements are wrong.
const STEAL_SHARE: f64 = 0.01;
/// Cores below which the fabric and the hosts share one.
const FEW_CORES: usize = 2;

/// Returns the findings.
pub fn findings() -> Vec<Finding> {
    vec![real_time(), timers(), cores(), clock_source(), steal()]
}

fn real_time() -> Finding {
    const ABILITY: &str = "real-time scheduling";
    let remedy =
        "run as root, or give the user a limit: \"USER - rtprio 99\" in /etc/security/limits.conf, then log in again";
    let probed = in_child(0, || {
        let parameters = libc::sched_param { sched_priority: PRIORITY };
        // SAFETY: a plain system call on this process, with valid parameters.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters) }
            < 0
        {
            return Err(format!("SCHED_FIFO: {}", io::Error::last_os_error()));
        }
        Ok("SCHED_FIFO was set".to_owned())
    });
    match probed {
        Ok(found) => Finding::good(ABILITY, found, "the fabric runs before all ordinary programs"),
        Err(error) => Finding::bad(
            ABILITY,
            error,
            "other programs can make the fabric late; each run says how late it was",
            remedy,
        ),
    }
}

fn timers() -> Finding {
    const ABILITY: &str = "timers";
    let mut late: Vec<u64> = (0..SLEEPS).map(|_| oversleep_ns()).collect();
    late.sort_unstable();
    let at = |part: usize| late[(late.len() - 1) * part / 100];
    let found = format!(
        "{SLEEPS} sleeps of {} us were over late by: median {} us, 90 % {} us, 99 % {} us, at most {} us",
        SLEEP.as_micros(),
        at(50) / 1000,
        at(90) / 1000,
        at(99) / 1000,
        at(100) / 1000
    );
    if at(99) <= LATE_NS {
        Finding::good(ABILITY, found, "the fabric wakes close before each deadline and spins the rest")
    } else {
        Finding::bad(
            ABILITY,
            found,
            "frames may be handed over late; each run says how late",
            "leave a core to the lab: stop what else runs on this machine",
        )
    }
}

/// By how much one sleep was over late.
fn oversleep_ns() -> u64 {
    let began = monotonic_ns();
    let length = libc::timespec { tv_sec: 0, tv_nsec: SLEEP.as_nanos() as libc::c_long };
    // SAFETY: the length is valid; an interrupted sleep is too short, which counts as no oversleep.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const length, std::ptr::null_mut()) };
    monotonic_ns().saturating_sub(began).saturating_sub(SLEEP.as_nanos() as u64)
}

fn cores() -> Finding {
    const ABILITY: &str = "cores";
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    if count >= FEW_CORES {
        let (wanted, why) = threads_unasked();
        let threads = if wanted == 1 { "one thread".to_owned() } else { format!("up to {wanted} threads") };
        let follows = format!("the fabric takes {threads} ({why}), the hosts' programs share the others");
        Finding::good(ABILITY, format!("{count}"), follows)
    } else {
        let follows = "the fabric and the hosts' programs share one: high rates make the fabric late";
        Finding::bad(ABILITY, format!("{count}"), follows, "run on a machine with two or more")
    }
}

fn clock_source() -> Finding {
    const ABILITY: &str = "clock source";
    const READS: u32 = 1000;
    let name =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource").unwrap_or_default();
    let began = Instant::now();
    for _ in 0..READS {
        std::hint::black_box(monotonic_ns());
    }
    let cost_ns = began.elapsed().as_nanos() / u128::from(READS);
    let name = if name.trim().is_empty() { "unknown" } else { name.trim() };
    let found = format!("{name}, {cost_ns} ns a reading");
    if cost_ns < 500 {
        Finding::good(ABILITY, found, "reading the clock costs the fabric little")
    } else {
        let remedy = "choose tsc: echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, as root";
        Finding::bad(ABILITY, found, "every reading is a system call: the fabric carries fewer frames", remedy)
    }
}

fn steal() -> Finding {
    const ABILITY: &str = "stolen time";
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let follows = "nothing that this machine runs on takes its time away";
    let Some(share) = stolen_share(&stat) else { return Finding::good(ABILITY, "not told by this kernel", follows) };
    let found = format!("{:.2} % of all time since start", share * 100.0);
    if share <= STEAL_SHARE {
        Finding::good(ABILITY, found, follows)
    } else {
        let follows = "another guest of the same machine makes the fabric late at times; runs are marked";
        Finding::bad(ABILITY, found, follows, "run on a machine, or a kind of instance, with cores of its own")
    }
}

/// The part of non-idle and idle time together that was stolen, by the first line of `/proc/stat`.
fn stolen_share(stat: &str) -> Option<f64> {
    let fields: Vec<f64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let total: f64 = fields.iter().take(8).sum();
    (fields.len() >= 8 && total > 0.0).then(|| fields[7] / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_field() {
        assert_eq!(stolen_share("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1"), Some(0.1));
        assert_eq!(stolen_share("cpu 1 2"), None);
        assert_eq!(stolen_share(""), None);
    }
}
