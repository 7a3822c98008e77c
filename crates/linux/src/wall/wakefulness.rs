//! A thread that keeps the loop's processor from halting while a lab is at work.
//!
//! A processor with nothing to do halts, and takes its time to come back: some 50 us where it has to leave a deep
//! idle state, several hundred where a hypervisor has lent it to another guest meanwhile. The loop sleeps between
//! frames for less than that. So while the loop is at work a thread of the class `SCHED_IDLE`, which gives way all the
//! time, occupies the loop's processor (docs/explanation/fidelity.md has what it brings). In a lab without traffic it
//! sleeps.
//!
//! It rests, too, while more threads want to run than there are processors. Then none of them would halt; and Linux
//! takes a processor on which this thread runs for a busy one, and leaves those that wait where they wait: a browser
//! beside a lab had one of two processors.

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
/// No processor is to be kept awake.
const NONE: i32 = -1;
/// The thread is to end.
const END: i32 = -2;

/// Keeps a processor awake while it is told to. Its thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    /// The processor to keep awake, [`NONE`] or [`END`].
    wanted: Arc<AtomicI32>,
    /// Missing where the kernel gave no thread, or not the class: then nothing is kept awake.
    thread: Option<Thread>,
}

impl Wakefulness {
    /// A thread that waits to be told; with `wanted` off there is none.
    pub(crate) fn new(wanted: bool) -> Self {
        Self::beside(wanted, Processors::of_this_machine)
    }

    fn beside(wanted: bool, processors: impl FnOnce() -> Processors + Send + 'static) -> Self {
        let at = Arc::new(AtomicI32::new(NONE));
        let theirs = Arc::clone(&at);
        let begin = move || keep_awake(&theirs, &processors());
        let thread = wanted.then(|| Builder::new().name("awake".into()).spawn(begin).ok());
        Self { wanted: at, thread: thread.flatten().map(|handle| handle.thread().clone()) }
    }

    /// From now on keeps awake the processor of the calling thread, or none.
    pub(crate) fn keep(&self, awake: bool) {
        let Some(thread) = &self.thread else { return };
        // SAFETY: no pointers are passed. A kernel that does not tell gives -1, which stands for none.
        let processor = if awake { unsafe { libc::sched_getcpu() } } else { NONE };
        let before = self.wanted.load(Ordering::Relaxed);
        if before != processor {
            self.wanted.store(processor.max(NONE), Ordering::Relaxed);
            if before == NONE {
                thread.unpark();
            }
        }
    }
}

impl Drop for Wakefulness {
    fn drop(&mut self) {
        self.wanted.store(END, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

fn keep_awake(wanted: &AtomicI32, processors: &Processors) {
    if !become_idle_class() {
        return;
    }
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
                    while processors.are_too_few() && wanted.load(Ordering::Relaxed) == processor {
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

    /// CPU time of the threads named "awake" in this process, in the kernel's ticks.
    fn used() -> u64 {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
        let of = |path: std::path::PathBuf| {
            let stat = std::fs::read_to_string(path.join("stat")).ok()?;
            let (name, rest) = stat.split_once(')')?;
            // The state is the first field behind the name; time in user mode and in the kernel are the 12th and 13th.
            let times = rest.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap_or(0));
            name.ends_with("(awake").then(|| times.sum::<u64>())
        };
        threads.filter_map(|thread| of(thread.path())).sum()
    }

    #[test]
    fn it_occupies_a_processor_only_while_told_to_and_while_there_are_enough() {
        let path = std::env::temp_dir().join(format!("twinnet-load-{}", std::process::id()));
        std::fs::write(&path, "1.23 0.80 0.41 3/211 4321\n").unwrap();
        let load = Some(File::open(&path).unwrap());
        let awake = Wakefulness::beside(true, move || Processors { count: 2, load });
        assert_eq!(used(), 0);
        awake.keep(true);
        std::thread::sleep(Duration::from_millis(300));
        assert!(used() < 5, "it occupies a processor that another waits for");
        std::fs::write(&path, "1.23 0.80 0.41 2/211 4321\n").unwrap();
        let limit = Instant::now() + Duration::from_secs(60);
        while used() < 5 {
            assert!(Instant::now() < limit, "it did not run");
            std::thread::sleep(Duration::from_millis(10));
        }
        awake.keep(false);
        std::thread::sleep(Duration::from_millis(50));
        let before = used();
        std::thread::sleep(Duration::from_millis(200));
        assert!(used() <= before + 1, "it goes on though it need not");
        std::fs::remove_file(&path).unwrap();
        let ends = Arc::downgrade(&awake.wanted);
        drop(awake);
        while ends.strong_count() > 0 {
            assert!(Instant::now() < limit, "its thread did not end");
            std::thread::sleep(Duration::from_millis(1));
        }
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
