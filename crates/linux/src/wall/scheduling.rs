//! Real-time scheduling of the fabric's thread: asked for, watched and given up.

use std::io;

use twinnet_units::{Duration, Time};

use crate::wall::clock::thread_cpu_ns;
use crate::wall::delivery;

/// Name of the loop's thread, by which an owner finds it.
pub(crate) const THREAD_NAME: &str = "fabric";
/// Name of the thread that runs apps on real sockets, by which an owner finds it.
pub(crate) const AGENT_THREAD_NAME: &str = "agent";

/// Real-time priorities. The fabric goes before the agent, and the kernel moves a real-time thread that another holds
/// up to the next processor at once; an ordinary one waits there for milliseconds.
const FABRIC_PRIORITY: i32 = 2;
const AGENT_PRIORITY: i32 = 1;

/// Niceness of the agent where it is not real-time: the programs of hosts have 0.
const AGENT_NICENESS: i32 = -10;
/// Niceness of the whole lab, with the programs of its hosts, among the sessions of the machine.
const SESSION_NICENESS: i32 = -10;
/// For how long the agent runs at most before another ordinary thread has its turn: the shortest that the kernel
/// grants. Who asks for less at once waits less for it (EEVDF), and has no smaller share.
const AGENT_SLICE: std::time::Duration = std::time::Duration::from_micros(100);
/// The highest share that an ordinary thread can have.
const HIGHEST_NICENESS: i32 = -20;

/// Asks for `SCHED_FIFO` at the priority of the fabric for the calling thread. Inside a user namespace the kernel
/// grants it only below `RLIMIT_RTPRIO`; where that cannot be raised, the owner asks for it from outside: see
/// [`promote`].
pub(crate) fn become_realtime() {
    // A refusal is seen by `is_realtime`, and told in the record of fidelity.
    let _ = schedule_fifo(0, FABRIC_PRIORITY);
}

/// Returns `true` if the calling thread has real-time scheduling.
pub(crate) fn is_realtime() -> bool {
    // SAFETY: no pointers are passed; 0 means the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
}

/// Gives up real-time scheduling. The thread keeps the highest share that an ordinary one has, where its owner gave
/// it that.
pub(crate) fn give_up_realtime() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // The flag stays: an ordinary thread may give up its policy, but not that flag.
    let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter is valid and outlives the call; giving up is always granted then.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
}

/// Has the calling thread go before ordinary programs, where it may; returns whether it does. With one processor it
/// does not: the others would have next to nothing.
pub(crate) fn go_first() -> bool {
    // SAFETY: no pointers are passed; 0 means the calling thread.
    std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
        && unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST_NICENESS) } == 0
}

/// Real-time scheduling by turns, for a thread that spins all the time: the kernel stops a real-time thread that uses
/// more than 95 % of a second for the rest of it, 50 ms at once. A thread that is ordinary for a part of each tenth
/// of a second is never stopped, and as it goes first among the ordinary ones, others seldom take the processor
/// meanwhile, for one time slice.
#[derive(Debug)]
pub(crate) struct Turns {
    since: Time,
    used_ns: u64,
    /// `true` if the thread used so much in the last period that the kernel might stop it in this one.
    busy: bool,
    ordinary: bool,
}

/// The time that two turns take together, and the first of them, which is real-time.
const TURNS: Duration = Duration::from_ms(100);
const REALTIME_TURN: Duration = Duration::from_ms(88);
/// Of its processor: a thread that used no more needs no ordinary turn.
const BUSY_PERCENT: u64 = 80;

impl Turns {
    /// The calling thread asks for real-time scheduling and takes turns from now on.
    pub(crate) fn begin(now: Time) -> Self {
        become_realtime();
        Self { since: now, used_ns: thread_cpu_ns(), busy: true, ordinary: false }
    }

    /// Called often by the thread: changes its scheduling when that is due.
    pub(crate) fn look(&mut self, now: Time) {
        let elapsed = now - self.since;
        if elapsed >= TURNS {
            let used_ns = thread_cpu_ns();
            self.busy = used_ns.saturating_sub(self.used_ns) > elapsed.as_ns() / 100 * BUSY_PERCENT;
            (self.since, self.used_ns) = (now, used_ns);
            if std::mem::take(&mut self.ordinary) {
                become_realtime();
            }
        } else if self.busy && !self.ordinary && elapsed >= REALTIME_TURN {
            self.ordinary = true;
            give_up_realtime();
        }
    }
}

/// Breaks of a real-time thread that has work all the time: the kernel stops one that leaves next to nothing of a
/// second to ordinary threads for the rest of it, 50 ms at once. Many short breaks leave as much, and none is long
/// enough to be late by. An ordinary thread takes none: the kernel shares the processor out by itself.
#[derive(Debug)]
pub(crate) struct Breaks {
    since: Time,
    used_ns: u64,
    /// The time that the breaks of this period took.
    paused_ns: u64,
    need: BreakNeed,
    rest: Rest,
    /// `true` if scheduling is given up where breaks are not enough.
    gives_up: bool,
}

/// The interval at which it is looked whether breaks are needed.
const BREAKS_PERIOD: Duration = Duration::from_ms(50);
/// Share of the processor above which they are.
const BREAKS_ABOVE: f64 = 0.9;
/// The same for the agent, which shares its processor with the programs of hosts and with the fabric's second thread.
const AGENT_BREAKS_ABOVE: f64 = 0.6;
/// The time of a break in which no other thread runs: that of two changes from one to another.
const CHANGES_NS: i64 = 6_000;

/// How a thread takes its breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Manner {
    /// The length that a break is asked for, in nanoseconds. A line that is looked at so late, and by the way back
    /// from a break, catches up also at 1 Gbit/s (40 us).
    length_ns: i64,
    /// The share of all time that other threads have in breaks, in thousandths.
    permille: i64,
    /// Busy periods after which they are taken, and periods with less to do after which they end.
    after: u32,
    end_after: u32,
}

/// As little as the kernel needs to see: with the time of the changes a little more than the twentieth that it would
/// take. A thread that only spins too much has stopped that before they are taken.
const SCARCE: Manner = Manner { length_ns: 30_000, permille: 46, after: 4, end_after: 1 };
/// While an ordinary thread always wants to run on the processor. Linux (since 6.12) then sees to it that such threads
/// have a twentieth, and if they had less it stops the real-time one, in each second anew, until breaks are more than
/// enough. Shorter ones leave a line of 1 Gbit/s more for what else holds the thread up. They begin before the kernel
/// misses its twentieth, and a single period with less to do ends none: the thread may have been stopped.
const AMPLE: Manner = Manner { length_ns: 20_000, permille: 85, after: 2, end_after: 4 };

impl Breaks {
    /// For the calling thread, from now on.
    pub(crate) fn begin(now: Time) -> Self {
        Self::above(BREAKS_ABOVE, now)
    }

    /// For the agent, which is the calling thread: it takes them earlier, and is an ordinary thread from the time on
    /// at which it has too much to do in spite of them.
    pub(crate) fn of_agent(now: Time) -> Self {
        Self { gives_up: true, ..Self::above(AGENT_BREAKS_ABOVE, now) }
    }

    fn above(above: f64, now: Time) -> Self {
        let need = BreakNeed { above, ..BreakNeed::default() };
        Self { since: now, used_ns: thread_cpu_ns(), paused_ns: 0, need, rest: Rest::from(now), gives_up: false }
    }

    /// Returns `true` while breaks are taken.
    pub(crate) fn are_taken(&self) -> bool {
        self.need.is_there()
    }

    /// From now on the breaks are to be enough for an ordinary thread that always wants to run on the processor, or
    /// not.
    pub(crate) fn are_ample(&mut self, ample: bool) {
        self.rest.manner = if ample { AMPLE } else { SCARCE };
    }

    /// Called often by the thread: takes a break when one is due.
    pub(crate) fn look(&mut self, now: Time) {
        let elapsed = now - self.since;
        if elapsed >= BREAKS_PERIOD {
            let used_ns = thread_cpu_ns();
            let share = share_outside_breaks(used_ns.saturating_sub(self.used_ns), elapsed.as_ns(), self.paused_ns);
            self.need.follow(share, is_realtime(), self.rest.manner);
            if self.gives_up && self.need.is_there() && share > BREAKS_ABOVE {
                give_up_realtime();
            }
            (self.since, self.used_ns, self.paused_ns) = (now, used_ns, 0);
        }
        if self.rest.is_due(now) && self.are_taken() {
            let begin = std::time::Instant::now();
            std::thread::sleep(std::time::Duration::from_nanos(self.rest.manner.length_ns.unsigned_abs()));
            let paused_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.paused_ns += paused_ns;
            self.rest.took(paused_ns);
        }
    }
}

/// The time that a busy thread owes to others. Its turns last as long as their work, and its sleeps end late, so
/// that breaks at fixed intervals would not be a fixed share.
#[derive(Debug)]
struct Rest {
    manner: Manner,
    looked: Time,
    /// In nanoseconds; below 0 where a break lasted longer than it was to.
    owed: i64,
}

impl Rest {
    /// A break that lasted longer, because another thread had the processor, pays for no more than this.
    const MOST: i64 = 100_000;

    fn from(now: Time) -> Self {
        Self { manner: SCARCE, looked: now, owed: 0 }
    }

    /// Returns `true` if as much is owed as a break gives. More than two of them are never owed.
    fn is_due(&mut self, now: Time) -> bool {
        let passed = i64::try_from((now - self.looked).as_ns()).unwrap_or(i64::MAX);
        self.looked = now;
        let more = passed.saturating_mul(self.manner.permille) / 1000;
        self.owed = self.owed.saturating_add(more).min(2 * self.manner.length_ns);
        self.owed >= self.manner.length_ns
    }

    /// A break paused the thread for so many nanoseconds.
    fn took(&mut self, paused_ns: u64) {
        let others_had = i64::try_from(paused_ns).unwrap_or(i64::MAX).saturating_sub(CHANGES_NS).max(0);
        self.owed -= others_had.min(Self::MOST);
    }
}

/// The share of the processor that a thread used of the time in which it took no break. Breaks make a thread that has
/// too much to do use less of the whole, so that the share of the whole would end them at once. One that has less to
/// do makes up for its breaks between them: this share is that much higher, so breaks that take a twelfth, begun
/// above 0.9 of the processor, end below 0.83 of it.
fn share_outside_breaks(used_ns: u64, elapsed_ns: u64, paused_ns: u64) -> f64 {
    used_ns as f64 / elapsed_ns.saturating_sub(paused_ns).max(1) as f64
}

/// The need of a thread for breaks.
#[derive(Debug)]
struct BreakNeed {
    /// The share of its processor above which a period is busy.
    above: f64,
    is_there: bool,
    /// Periods in a row that say the opposite.
    otherwise: u32,
}

impl Default for BreakNeed {
    fn default() -> Self {
        Self { above: BREAKS_ABOVE, is_there: false, otherwise: 0 }
    }
}

impl BreakNeed {
    /// The thread used this `share` of a period outside its breaks, and is a real-time one or not.
    fn follow(&mut self, share: f64, realtime: bool, manner: Manner) {
        if !realtime {
            (self.is_there, self.otherwise) = (false, 0);
            return;
        }
        self.otherwise = if (share > self.above) == self.is_there { 0 } else { self.otherwise + 1 };
        if self.otherwise >= if self.is_there { manner.end_after } else { manner.after } {
            (self.is_there, self.otherwise) = (!self.is_there, 0);
        }
    }

    fn is_there(&self) -> bool {
        self.is_there
    }
}

/// Gives the fabric's thread of the lab process `pid` real-time scheduling, as a caller with the right to do so
/// outside of the lab's user namespace can; returns whether that was granted. The thread that hands frames over
/// beside it gets the same. The agent, whose apps send and receive by the clock too, gets the next lower priority where
/// there are several processors, and goes before ordinary programs in any case. The lab with its hosts' programs goes
/// before other sessions.
#[must_use]
pub fn promote(pid: i32) -> bool {
    // Should the fabric ever have to give up real-time scheduling, it keeps the highest share of an ordinary thread.
    let promoted = |thread: libc::pid_t| {
        favour(thread, HIGHEST_NICENESS);
        schedule_fifo(thread, FABRIC_PRIORITY).is_ok()
    };
    // An ordinary thread that the real-time loop wakes is put behind it, on the same processor; a real-time one is
    // given another.
    threads_of(pid, delivery::THREAD_NAME).for_each(|thread| {
        promoted(thread);
    });
    // With one processor nothing would be left for the hosts' programs.
    let several = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    threads_of(pid, AGENT_THREAD_NAME).for_each(|thread| {
        favour(thread, AGENT_NICENESS);
        if several {
            // A refusal leaves it what it is.
            let _ = schedule_fifo(thread, AGENT_PRIORITY);
        }
    });
    favour_session(pid);
    // A network in parts has several.
    let granted: Vec<bool> = threads_of(pid, THREAD_NAME).map(promoted).collect();
    !granted.is_empty() && granted.into_iter().all(|granted| granted)
}

/// Has the calling thread, an ordinary one that does a little at once, wait less for its processor. The kernel has
/// heeded that since Linux 6.12, and older ones leave it as it is.
pub(crate) fn take_short_turns() {
    /// `struct sched_attr` (sched_setattr(2)) as it first was.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        /// Of an ordinary thread: its slice in nanoseconds (Documentation/scheduler/sched-eevdf.rst).
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let slice = u64::try_from(AGENT_SLICE.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: no pointers are passed; 0 means the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: slice,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the attributes are valid, tell their size and outlive the call. A refusal leaves the thread as it is.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Sets the niceness of the session of the lab process `pid` among the others, where the kernel groups threads by
/// session (sched(7), autogroup): there the niceness of a thread counts within its session only. A lab is the leader
/// of one. Without such groups, or without the right, all stays as it is.
fn favour_session(pid: i32) {
    let _ = std::fs::write(format!("/proc/{pid}/autogroup"), SESSION_NICENESS.to_string());
}

/// The threads of the process `pid` that have this name.
pub(crate) fn threads_of(pid: i32, name: &'static str) -> impl Iterator<Item = libc::pid_t> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    threads
        .filter(move |thread| {
            std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        })
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
}

/// Sets the niceness of `thread`; where that is refused it stays as it is.
fn favour(thread: libc::pid_t, niceness: i32) {
    // SAFETY: no pointers are passed.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, niceness) };
}

fn schedule_fifo(thread: libc::pid_t, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // What the thread starts itself (the writers of captures) is not to run ahead of the hosts' programs.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter is valid and outlives the call.
    match unsafe { libc::sched_setscheduler(thread, policy, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wall::clock::LabClock;

    /// Takes turns for three periods; returns of how many looks the thread was real-time in, of all.
    fn looks(mut pass: impl FnMut()) -> (u32, u32) {
        let clock = LabClock::start();
        let begin = clock.now();
        let mut turns = Turns::begin(begin);
        let (mut realtime, mut all) = (0, 0);
        while clock.now() - begin < Duration::from_ms(300) {
            turns.look(clock.now());
            realtime += u32::from(is_realtime());
            all += 1;
            pass();
        }
        give_up_realtime();
        (realtime, all)
    }

    #[test]
    fn a_thread_that_spins_is_ordinary_now_and_then_and_one_that_sleeps_is_not() {
        become_realtime();
        let granted = is_realtime();
        give_up_realtime();
        let (realtime, all) = looks(std::hint::spin_loop);
        if !granted {
            assert_eq!(realtime, 0);
            return;
        }
        assert!(all / 2 < realtime && realtime < all, "{realtime} of {all}");
        let sleep = || std::thread::sleep(std::time::Duration::from_millis(2));
        let (realtime, all) = looks(sleep);
        // The first period takes turns in any case: what the thread will use is not known yet.
        assert!(all * 9 / 10 <= realtime, "{realtime} of {all}");
    }

    #[test]
    fn short_turns_are_what_the_kernel_has_noted_and_leave_the_niceness_as_it_is() {
        let slice_ns = || {
            let mut attributes = [0_u64; 6];
            // SAFETY: the kernel writes at most the 48 bytes that there are; 0 means the calling thread.
            let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, attributes.as_mut_ptr(), 48, 0) };
            assert_eq!(done, 0);
            attributes[3]
        };
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
        let kernel = (numbers.next().unwrap(), numbers.next().unwrap());
        // The thread ends with the test, and with it what it was given.
        std::thread::spawn(move || {
            // SAFETY: no pointers are passed; 0 means the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 3) };
            take_short_turns();
            // SAFETY: as above.
            assert_eq!(unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }, 3);
            if kernel >= (6, 12) {
                assert_eq!(slice_ns(), 100_000);
            }
        })
        .join()
        .unwrap();
    }

    /// In how many of `periods` a real-time thread with a `load` of its processor needs breaks of this manner, which
    /// then take a `pause` of each period.
    fn periods_with_breaks(need: &mut BreakNeed, manner: Manner, load: f64, pause: f64, periods: u32) -> u32 {
        follow(need, manner, load, pause, periods, true)
    }

    fn follow(need: &mut BreakNeed, manner: Manner, load: f64, pause: f64, periods: u32, realtime: bool) -> u32 {
        let ns = |share: f64| (share * BREAKS_PERIOD.as_ns() as f64) as u64;
        let mut with_breaks = 0;
        for _ in 0..periods {
            let paused = if need.is_there() { pause } else { 0.0 };
            with_breaks += u32::from(need.is_there());
            // Work that a break holds up is done after it, as far as there is time.
            let used = load.min(1.0 - paused);
            need.follow(share_outside_breaks(ns(used), BREAKS_PERIOD.as_ns(), ns(paused)), realtime, manner);
        }
        with_breaks
    }

    #[test]
    fn breaks_of_a_thread_with_too_much_to_do_go_on_though_they_lower_its_share() {
        for manner in [SCARCE, AMPLE] {
            for load in [0.95, 1.0, 1.5] {
                for pause in [0.05, 0.12] {
                    let with_breaks = periods_with_breaks(&mut BreakNeed::default(), manner, load, pause, 100);
                    assert_eq!(with_breaks, 100 - manner.after, "load {load}, breaks of {pause}");
                }
            }
        }
    }

    #[test]
    fn breaks_end_when_the_load_does_and_do_not_flutter_near_the_bound() {
        for manner in [SCARCE, AMPLE] {
            let mut need = BreakNeed::default();
            let mut with_breaks = |load, periods| periods_with_breaks(&mut need, manner, load, 0.05, periods);
            assert_eq!(with_breaks(0.89, 100), 0, "a load below the bound");
            assert!(with_breaks(0.95, 10) > 0);
            assert_eq!(with_breaks(0.88, 100), 100, "a little less: as before");
            assert_eq!(with_breaks(0.8, 100), manner.end_after, "much less: no more of them");
            assert_eq!(with_breaks(0.88, 100), 0);
        }
    }

    #[test]
    fn beside_programs_a_period_in_which_the_thread_was_stopped_ends_no_breaks() {
        let mut need = BreakNeed::default();
        assert!(periods_with_breaks(&mut need, AMPLE, 1.0, 0.05, 10) > 0);
        for _ in 0..20 {
            assert_eq!(periods_with_breaks(&mut need, AMPLE, 0.1, 0.05, 1), 1);
            assert_eq!(periods_with_breaks(&mut need, AMPLE, 1.0, 0.05, 19), 19);
        }
    }

    #[test]
    fn breaks_begin_at_once_when_programs_come_to_a_thread_that_was_busy_long_enough_for_them() {
        let mut need = BreakNeed::default();
        assert_eq!(periods_with_breaks(&mut need, SCARCE, 1.0, 0.05, 3), 0);
        assert_eq!(periods_with_breaks(&mut need, AMPLE, 1.0, 0.05, 10), 9);
    }

    #[test]
    fn others_have_their_share_however_long_turns_last_and_however_late_sleeps_end() {
        for manner in [SCARCE, AMPLE] {
            for (turn_us, late_us) in [(2, 3), (2, 60), (120, 6), (200, 20)] {
                let (mut now, mut rested_ns) = (Time::ZERO, 0);
                let mut rest = Rest { manner, ..Rest::from(now) };
                while now < Time::ZERO + Duration::from_secs(1) {
                    now += Duration::from_us(turn_us);
                    if rest.is_due(now) {
                        let paused_ns = manner.length_ns + 1000 * late_us;
                        rest.took(paused_ns.unsigned_abs());
                        rested_ns += paused_ns - CHANGES_NS;
                        now += Duration::from_ns(paused_ns.unsigned_abs());
                    }
                }
                let off = rested_ns as f64 / 1e6 - manner.permille as f64;
                assert!(off.abs() < 1.0, "{off} with turns of {turn_us} us, sleeps {late_us} us too long");
            }
        }
        let mut rest = Rest::from(Time::ZERO);
        assert!(rest.is_due(Time::ZERO + Duration::from_secs(60)));
        rest.took(50_000_000);
        assert!(!rest.is_due(Time::ZERO + Duration::from_secs(60)), "a long break pays for what was owed");
        assert!(rest.is_due(Time::ZERO + Duration::from_secs(60) + Duration::from_ms(3)), "and not for what comes");
    }

    #[test]
    fn the_agent_takes_breaks_earlier_and_is_ordinary_when_they_are_not_enough() {
        std::thread::spawn(|| {
            let clock = LabClock::start();
            become_realtime();
            let granted = is_realtime();
            let mut breaks = Breaks::of_agent(clock.now());
            assert_eq!(follow(&mut breaks.need, SCARCE, 0.7, 0.05, 100, granted), if granted { 96 } else { 0 });
            let end = clock.now() + Duration::from_ms(600);
            while clock.now() < end && (!granted || is_realtime()) {
                breaks.look(clock.now());
            }
            assert!(!is_realtime(), "it has used all of its processor for 0.6 s");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn an_ordinary_thread_takes_no_breaks_and_one_that_gives_up_its_scheduling_ends_them() {
        let mut need = BreakNeed::default();
        assert_eq!(follow(&mut need, SCARCE, 1.0, 0.05, 100, false), 0);
        assert!(periods_with_breaks(&mut need, SCARCE, 1.0, 0.05, 10) > 0);
        assert_eq!(follow(&mut need, SCARCE, 1.0, 0.05, 100, false), 1);
    }
}
