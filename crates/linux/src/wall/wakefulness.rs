//! Threads on the loop's processor that say to Linux how it stands there.
//!
//! **Awake.** A processor with nothing to do halts, and takes its time to come back: some 50 us where it has to leave a
//! deep idle state, several hundred where a hypervisor has lent it to another guest meanwhile. The loop sleeps between
//! frames for less than that. So while the loop is at work a thread of the class `SCHED_IDLE`, which gives way all the
//! time, occupies the loop's processor (docs/explanation/fidelity.md has what it brings). In a lab without traffic it
//! sleeps. It rests, too, while more threads want to run than there are processors. Then none of them would halt; and
//! Linux takes a processor on which this thread runs for a busy one, and leaves those that wait where they wait: a
//! browser beside a lab had one of two processors.
//!
//! **Occupied.** A loop that needs a whole processor leaves nothing of it to programs but its breaks. Linux does not
//! see that. A real-time thread counts for nothing where ordinary ones are shared out: a program that the loop wakes by
//! a frame is put on the loop's own processor if nothing else wants to run there ("the waker is about to sleep"), and
//! one that waits elsewhere is brought over while a break lasts. It then has a twentieth of a processor until Linux
//! balances its load, tens of milliseconds later. So while the loop has no time to sleep an ordinary thread of the
//! lowest share wants to run there, too, and never rests: the processor never looks free, and programs stay where they
//! can run.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;
use std::thread::{Builder, Thread};
use std::time::{Duration, Instant};

/// Turns of the loop before it gives way and looks whether it is still wanted: a microsecond or two.
const SPINS: u32 = 100;
/// From one look at who wants to run to the next.
const LOOK: Duration = Duration::from_millis(1);
/// How long it rests before it looks again.
const REST: Duration = Duration::from_micros(500);
/// No processor is to be kept.
const NONE: i32 = -1;
/// The thread is to end.
const END: i32 = -2;
/// The lowest share of an ordinary thread.
const LOWEST_NICENESS: libc::c_int = 19;

/// What a loop needs of its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: it sleeps for long.
    Nothing,
    /// It sleeps for moments and is to be back in time.
    Awake,
    /// It has no time to sleep.
    All,
}

/// Keeps the processor of a loop as it needs it. Its threads end when this is dropped.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    awake: Keeper,
    /// None on a machine with one processor: programs have to go there.
    occupied: Keeper,
}

impl Wakefulness {
    /// Threads that wait to be told; with `wanted` off there are none.
    pub(crate) fn new(wanted: bool) -> Self {
        Self::beside(wanted, Processors::of_this_machine())
    }

    fn beside(wanted: bool, processors: Processors) -> Self {
        let several = wanted && processors.count > 1;
        let rest = move || processors.are_too_few();
        Self {
            awake: if wanted { Keeper::start("awake", become_idle_class, rest) } else { Keeper::default() },
            occupied: if several { Keeper::start("occupied", take_lowest_share, || false) } else { Keeper::default() },
        }
    }

    /// The processor of which the loop needs all, as it is from moment to moment; below 0 while it needs less.
    pub(crate) fn occupied(&self) -> Arc<AtomicI32> {
        Arc::clone(&self.occupied.wanted)
    }

    /// From now on keeps the processor of the calling thread, as it needs it.
    pub(crate) fn keep(&self, need: Need) {
        // SAFETY: no pointers are passed. A kernel that does not tell gives -1, which stands for none.
        let here = if need == Need::Nothing { NONE } else { unsafe { libc::sched_getcpu() } };
        let of = |one: Need| if need == one { here } else { NONE };
        self.awake.keep(of(Need::Awake));
        self.occupied.keep(of(Need::All));
    }
}

/// A thread that runs on a processor while it is told to.
#[derive(Debug)]
struct Keeper {
    /// The processor, [`NONE`] or [`END`].
    wanted: Arc<AtomicI32>,
    /// Missing where the kernel gave no thread, or not the class: then nothing is kept.
    thread: Option<Thread>,
}

impl Default for Keeper {
    fn default() -> Self {
        Self { wanted: Arc::new(AtomicI32::new(NONE)), thread: None }
    }
}

impl Keeper {
    /// A thread of this name, which lowers itself by `lower` and rests while `rests` says so.
    fn start(name: &str, lower: fn() -> bool, rests: impl Fn() -> bool + Send + 'static) -> Self {
        let wanted = Arc::new(AtomicI32::new(NONE));
        let theirs = Arc::clone(&wanted);
        let begin = move || {
            if lower() {
                run(&theirs, &rests);
            }
        };
        let thread = Builder::new().name(name.into()).spawn(begin).ok();
        Self { wanted, thread: thread.map(|handle| handle.thread().clone()) }
    }

    fn keep(&self, processor: i32) {
        let Some(thread) = &self.thread else { return };
        let before = self.wanted.load(Ordering::Relaxed);
        if before != processor {
            self.wanted.store(processor.max(NONE), Ordering::Relaxed);
            if before == NONE {
                thread.unpark();
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.wanted.store(END, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

fn run(wanted: &AtomicI32, rests: &impl Fn() -> bool) {
    let mut at = NONE;
    let mut looked = Instant::now();
    loop {
        match wanted.load(Ordering::Relaxed) {
            END => return,
            NONE => std::thread::park(),
            processor => {
                if processor != at {
                    move_to(processor);
                    at = processor;
                }
                if looked.elapsed() >= LOOK {
                    while rests() && wanted.load(Ordering::Relaxed) == processor {
                        std::thread::park_timeout(REST);
                    }
                    looked = Instant::now();
                }
                for _ in 0..SPINS {
                    std::hint::spin_loop();
                }
                // The class alone is not enough: where another on this processor has had more than its share for the
                // moment, EEVDF gives this thread a whole time slice, 4 ms, for which the other waits.
                std::thread::yield_now();
            }
        }
    }
}

/// The machine's processors, and how many threads want them.
#[derive(Debug)]
struct Processors {
    count: usize,
    /// As `/proc/loadavg`. Missing where the kernel does not tell: then there are always enough.
    load: Option<File>,
}

impl Processors {
    fn of_this_machine() -> Self {
        // SAFETY: takes no pointers. A kernel that does not tell gives -1.
        let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        let load = File::open("/proc/loadavg").ok();
        Self { count: usize::try_from(count).unwrap_or(usize::MAX), load }
    }

    /// More threads want to run than there are processors; the calling one is counted.
    fn are_too_few(&self) -> bool {
        let mut text = [0; 64];
        let length = self.load.as_ref().and_then(|load| load.read_at(&mut text, 0).ok()).unwrap_or(0);
        runnable(&text[..length]).is_some_and(|threads| threads > self.count)
    }
}

/// How many threads run or want to: the fourth entry of `/proc/loadavg` begins with it (proc(5)).
fn runnable(load: &[u8]) -> Option<usize> {
    let (running, _) = std::str::from_utf8(load).ok()?.split(' ').nth(3)?.split_once('/')?;
    running.parse().ok()
}

/// Has the calling thread run only where nothing else wants to.
fn become_idle_class() -> bool {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid and outlives the call; 0 means the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) == 0 }
}

/// Has the calling thread be an ordinary one that has the least share of all.
fn take_lowest_share() -> bool {
    // SAFETY: no pointers are passed; 0 means the calling thread. To have less is always granted.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOWEST_NICENESS) == 0 }
}

/// Moves the calling thread to `processor`; where that is refused it stays where it is, and does no good.
fn move_to(processor: i32) {
    let Ok(processor) = usize::try_from(processor) else { return };
    // SAFETY: an all-zero set is valid; a processor beyond its size is ignored by the macro; the set outlives the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if processor < libc::CPU_SETSIZE as usize {
            libc::CPU_SET(processor, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU time of the threads of this process with this name, in the kernel's ticks.
    fn used(name: &str) -> u64 {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
        let of = |path: std::path::PathBuf| {
            let stat = std::fs::read_to_string(path.join("stat")).ok()?;
            let (named, rest) = stat.split_once(')')?;
            // The state is the first field behind the name; time in user mode and in the kernel are the 12th and 13th.
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let times = fields.get(11..13)?.iter().map(|ticks| ticks.parse::<u64>().unwrap_or(0));
            (named.split_once('(')?.1 == name).then(|| times.sum::<u64>())
        };
        threads.filter_map(|thread| of(thread.path())).sum()
    }

    fn wait_for(limit: Instant, what: &str, mut come: impl FnMut() -> bool) {
        while !come() {
            assert!(Instant::now() < limit, "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn threads_run_only_while_they_are_needed_and_the_idle_one_while_there_are_processors() {
        let path = std::env::temp_dir().join(format!("twinnet-load-{}", std::process::id()));
        std::fs::write(&path, "1.23 0.80 0.41 3/211 4321\n").unwrap();
        let load = Some(File::open(&path).unwrap());
        let kept = Wakefulness::beside(true, Processors { count: 2, load });
        let both = || (used("awake"), used("occupied"));
        assert_eq!(both(), (0, 0));
        kept.keep(Need::Awake);
        std::thread::sleep(Duration::from_millis(300));
        assert!(used("awake") < 5, "it occupies a processor that another waits for");
        assert_eq!(used("occupied"), 0);
        let limit = Instant::now() + Duration::from_secs(60);
        // One that needs all of its processor has it occupied in any case.
        kept.keep(Need::All);
        wait_for(limit, "it did not run", || used("occupied") >= 5);
        std::fs::write(&path, "1.23 0.80 0.41 2/211 4321\n").unwrap();
        kept.keep(Need::Awake);
        wait_for(limit, "it did not run", || used("awake") >= 5);
        kept.keep(Need::Nothing);
        std::thread::sleep(Duration::from_millis(50));
        let before = both();
        std::thread::sleep(Duration::from_millis(200));
        let after = both();
        assert!(after.0 <= before.0 + 1 && after.1 <= before.1 + 1, "they go on though they need not");
        std::fs::remove_file(&path).unwrap();
        let ends = [&kept.awake, &kept.occupied].map(|keeper| Arc::downgrade(&keeper.wanted));
        drop(kept);
        wait_for(limit, "a thread did not end", || ends.iter().all(|end| end.strong_count() == 0));
    }

    #[test]
    fn on_a_single_processor_programs_have_to_run_where_the_loop_does() {
        let one = Wakefulness::beside(true, Processors { count: 1, load: None });
        assert!(one.occupied.thread.is_none() && one.awake.thread.is_some());
        let none = Wakefulness::beside(false, Processors { count: 2, load: None });
        assert!(none.occupied.thread.is_none() && none.awake.thread.is_none());
    }

    #[test]
    fn how_many_want_to_run_is_read() {
        assert_eq!(runnable(b"0.00 0.01 0.05 3/211 4321\n"), Some(3));
        assert_eq!(runnable(b""), None);
        assert_eq!(runnable(b"0.00 0.01 0.05 many"), None);
        let here = Processors::of_this_machine();
        assert!(here.count >= 1);
        let file = here.load.expect("this kernel tells its load");
        let mut text = [0; 64];
        let length = file.read_at(&mut text, 0).unwrap();
        assert!(runnable(&text[..length]).unwrap() >= 1, "the thread that asks runs");
    }
}
