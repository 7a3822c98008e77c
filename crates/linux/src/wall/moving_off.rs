//! Programs that wait behind a loop which needs all of its processor are moved to another one.
//!
//! Linux leaves them there. It takes a thread that ran within the last half millisecond for one whose data are in that
//! processor's cache, and such a program runs for a moment in each break of the loop: a receiver was seen to wait for
//! nine tenths of ten seconds while another processor had nothing to do for a third of them.
//!
//! The same happens when traffic begins. A frame wakes the loop where it ran last, and if that is where the sender
//! runs, the two share that processor until Linux balances its load: a line of 1 Gbit/s had a third of its rate for
//! 10 to 130 ms. The loop notices that it has become busy ([`Onset`]), and whoever waits behind it then is moved off.

use std::collections::HashMap;
use std::time;

use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use twinnet_units::{Duration, Time};

use super::programs::Turns;

/// The interval in which the loop counts frames, and how many make it busy: at that rate a frame that is late for a
/// change of processes is late by much of its own time.
const INTERVAL: Duration = Duration::from_ms(1);
const BUSY: u64 = 5;
/// A loop that was busy within this time has not become busy now.
const ANEW_AFTER: Duration = Duration::from_ms(20);
/// The least time from one look at who waits to the next, and the time after which it is looked again while the loop
/// stays busy: twice as long each time, for it is unlikely that somebody has come to wait meanwhile.
const LEAST_APART: Duration = Duration::from_ms(50);
const AGAIN_AFTER: Duration = Duration::from_ms(250);
const MOST_AGAIN: u32 = 4;
/// For how many intervals it is looked at most, and the share of one for which a program waits that is moved off.
const LOOKS: u32 = 5;
const UNTIL_NEXT: time::Duration = time::Duration::from_millis(2);
const WAITS: f64 = 0.4;
/// A look that takes longer, as with hundreds of programs, helps nobody.
const LONGEST_LOOK: time::Duration = time::Duration::from_micros(500);

/// Says when to look who waits behind a loop: when it becomes busy, and now and then while it is.
#[derive(Debug, Default)]
pub(super) struct Onset {
    since: Time,
    /// Frames that had passed then.
    frames: u64,
    busy: Option<Time>,
    looked: Option<Time>,
    /// How often it was looked since it became busy, at most [`MOST_AGAIN`].
    again: u32,
}

impl Onset {
    /// The loop goes on `now`; `frames` passed so far. Returns `true` if it is to be looked who waits.
    pub(super) fn woke(&mut self, now: Time, frames: u64) -> bool {
        let elapsed = now.since(self.since);
        if elapsed < INTERVAL {
            return false;
        }
        let passed = frames - self.frames;
        (self.since, self.frames) = (now, frames);
        if passed < BUSY {
            return false;
        }
        let apart = |since: Option<Time>, least: Duration| since.is_none_or(|since| now.since(since) >= least);
        let begins = apart(self.busy.replace(now), ANEW_AFTER) && apart(self.looked, LEAST_APART);
        let look = begins || apart(self.looked, Duration::from_ps(AGAIN_AFTER.as_ps() << self.again));
        if look {
            self.looked = Some(now);
            self.again = if begins { 0 } else { MOST_AGAIN.min(self.again + 1) };
        }
        look
    }
}

/// Looks who waits, by the `turns` that programs had, again while somebody does, and moves off what waits behind the
/// thread `busy` of this process.
pub(super) fn move_off_waiters(busy: i32, turns: impl Fn() -> HashMap<i32, Turns>) {
    let begin = time::Instant::now();
    let mut before = turns();
    if begin.elapsed() > LONGEST_LOOK {
        return;
    }
    for _ in 0..LOOKS {
        let since = time::Instant::now();
        std::thread::sleep(UNTIL_NEXT);
        let now = turns();
        let most_ns = since.elapsed().as_nanos() as f64 * WAITS;
        let processor = processor_of(&format!("/proc/self/task/{busy}/stat")).unwrap_or(-1);
        let waits = |thread: &i32| now[thread].since(before.get(thread)).waited_ns as f64 > most_ns;
        let waiting: Vec<i32> = now.keys().copied().filter(waits).collect();
        if waiting.is_empty() {
            return;
        }
        waiting.into_iter().for_each(|thread| move_off(thread, processor));
        before = now;
    }
}

/// The processor on which a thread ran last: the 39th field of its `stat`, of which the first two end with the last
/// bracket (proc(5)).
fn processor_of(stat: &str) -> Option<i32> {
    std::fs::read_to_string(stat).ok()?.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

/// Moves `thread` off `processor`, if it waits there and may run elsewhere. Where it may run stays as it was: it is
/// changed for two system calls, and a thread that changes it itself just then is the one case that loses.
pub(super) fn move_off(thread: i32, processor: i32) {
    let (Some(thread), Ok(processor)) = (Pid::from_raw(thread), usize::try_from(processor)) else { return };
    // One that has ended, or that belongs to another user, stays as it is.
    let Ok(allowed) = sched_getaffinity(Some(thread)) else { return };
    let mut others = allowed;
    others.unset(processor);
    if allowed.is_set(processor) && others.count() > 0 && sched_setaffinity(Some(thread), &others).is_ok() {
        let _ = sched_setaffinity(Some(thread), &allowed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::Command;

    use rustix::thread::CpuSet;

    use super::*;

    fn at(pid: u32) -> i32 {
        processor_of(&format!("/proc/{pid}/stat")).unwrap()
    }

    /// The milliseconds in which it is looked who waits, of a loop through which so many frames pass in each.
    fn looks(passed: impl Fn(u64) -> u64) -> Vec<u64> {
        let (mut onset, mut frames) = (Onset::default(), 0);
        let mut woke = |now: u64| {
            frames += passed(now);
            onset.woke(Time::from_ns(now * 1_000_000), frames)
        };
        (1..1000).filter(|now| woke(*now)).collect()
    }

    #[test]
    fn it_is_looked_who_waits_when_traffic_begins_and_now_and_then_while_it_lasts() {
        assert!(looks(|_| BUSY - 1).is_empty(), "a few frames keep nobody waiting");
        assert_eq!(looks(|now| if now < 300 { 0 } else { 80 }), [300, 550]);
        // After pauses of 60 ms it begins anew.
        assert_eq!(looks(|now| if now % 100 < 40 { 8 } else { 0 }), [1, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
        // Gaps of a few milliseconds are no new beginning.
        assert_eq!(looks(|now| if now % 10 < 5 { 8 } else { 0 }), [1, 251, 751]);
    }

    #[test]
    fn it_is_looked_again_while_somebody_waits_and_where_programs_may_run_stays_as_it_was() {
        let mut program = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = i32::try_from(program.id()).unwrap();
        let allowed = sched_getaffinity(Pid::from_raw(pid)).unwrap();
        let looked = Cell::new(0_u32);
        let waiting = |most: u32| {
            looked.set(0);
            // SAFETY: takes no pointers and cannot fail.
            let own = unsafe { libc::gettid() };
            move_off_waiters(own, || {
                looked.set(looked.get() + 1);
                let waited_ns = u64::from(looked.get().min(most)) * 1_000_000_000;
                HashMap::from([(pid, Turns { waited_ns, ..Turns::default() })])
            });
            looked.get()
        };
        assert_eq!([1, 2, 100].map(waiting), [2, 3, LOOKS + 1]);
        assert_eq!(sched_getaffinity(Pid::from_raw(pid)).unwrap(), allowed);
        program.kill().unwrap();
        program.wait().unwrap();
    }

    #[test]
    fn a_busy_program_leaves_the_processor_and_may_return_unless_it_is_bound_to_it() {
        let mut program = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = i32::try_from(program.id()).unwrap();
        let thread = Pid::from_raw(pid);
        let allowed = sched_getaffinity(thread).unwrap();
        if allowed.count() > 1 {
            // Linux may bring it back at any time.
            let left = (0..1000).any(|_| {
                let here = at(program.id());
                move_off(pid, here);
                at(program.id()) != here
            });
            assert!(left);
            assert_eq!(sched_getaffinity(thread).unwrap(), allowed);
        }
        let here = usize::try_from(at(program.id())).unwrap();
        let mut only = CpuSet::new();
        only.set(here);
        sched_setaffinity(thread, &only).unwrap();
        move_off(pid, i32::try_from(here).unwrap());
        assert_eq!(sched_getaffinity(thread).unwrap(), only, "its user has bound it");
        program.kill().unwrap();
        program.wait().unwrap();
        move_off(pid, 0);
    }
}
