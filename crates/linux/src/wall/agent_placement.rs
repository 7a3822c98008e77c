//! Keeps the agent off the processor that the loop works on.
//!
//! The loop is real-time and spins before what is due, so an ordinary thread that the kernel puts on its processor
//! waits until it is moved: for some milliseconds. Where there is another processor the agent stays away from the
//! loop's while that is at work, and may run anywhere while it is not.

use std::sync::atomic::{AtomicI32, Ordering};

use twinnet_units::{Duration, Time};

/// The agent's thread; 0 while there is none.
static AGENT: AtomicI32 = AtomicI32::new(0);
/// How often the loop's processor is looked at: it seldom changes, and then stays for long.
const PERIOD: Duration = Duration::from_ms(20);

/// The calling thread is the agent.
pub(crate) fn i_am_the_agent() {
    // SAFETY: no pointers are passed; it cannot fail.
    AGENT.store(unsafe { libc::gettid() }, Ordering::Relaxed);
}

/// Where the agent may run.
pub(crate) struct AgentPlacement {
    /// The processors that the lab may use, where there are several; else the agent is left alone.
    processors: Option<libc::cpu_set_t>,
    looked: Time,
    /// The agent's thread and the processor that it stays away from.
    placed: Option<(i32, usize)>,
}

impl AgentPlacement {
    /// Leaves the agent alone unless it is `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        let processors = wanted.then(allowed).flatten().filter(|set| count(set) > 1);
        Self { processors, looked: Time::ZERO, placed: None }
    }

    /// Called often by the loop's thread, which is `at_work` or not.
    pub(crate) fn follow(&mut self, at_work: bool, now: Time) {
        let Some(processors) = &self.processors else { return };
        if now - self.looked < PERIOD {
            return;
        }
        self.looked = now;
        let agent = AGENT.load(Ordering::Relaxed);
        // SAFETY: no pointers are passed. A kernel that does not tell gives -1: then the agent is left alone.
        let processor = usize::try_from(unsafe { libc::sched_getcpu() }).ok().filter(|_| at_work && agent > 0);
        let wanted = processor.map(|processor| (agent, processor));
        if wanted == self.placed {
            return;
        }
        let mut set = *processors;
        if let Some(processor) = processor {
            // SAFETY: the set is valid; a number beyond it changes nothing.
            unsafe { libc::CPU_CLR(processor, &mut set) };
        }
        let thread = wanted.or(self.placed).map_or(0, |(thread, _)| thread);
        if thread > 0 {
            // SAFETY: the set is valid and outlives the call. A refusal leaves the agent where it is.
            unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const set) };
        }
        self.placed = wanted;
    }
}

/// The processors that the calling thread may use.
fn allowed() -> Option<libc::cpu_set_t> {
    // SAFETY: an all-zero set is valid, and the call fills it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) == 0).then_some(set)
    }
}

fn count(set: &libc::cpu_set_t) -> i32 {
    // SAFETY: the set is valid.
    unsafe { libc::CPU_COUNT(set) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_stays_off_the_processor_of_a_loop_at_work_and_is_free_again_after() {
        let Some(before) = allowed().filter(|set| count(set) > 1) else { return };
        let agent = std::thread::spawn(move || {
            i_am_the_agent();
            while AGENT.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
        });
        while AGENT.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let thread = AGENT.load(Ordering::Relaxed);
        let processors = || {
            // SAFETY: as in `allowed`.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::sched_getaffinity(thread, size_of::<libc::cpu_set_t>(), &raw mut set);
                count(&set)
            }
        };
        let mut placement = AgentPlacement::new(true);
        let at = |ms| Time::ZERO + Duration::from_ms(ms);
        placement.follow(true, at(100));
        assert_eq!(processors(), count(&before) - 1);
        placement.follow(false, at(101));
        assert_eq!(processors(), count(&before) - 1, "it is looked at now and then only");
        placement.follow(false, at(200));
        assert_eq!(processors(), count(&before));
        AGENT.store(0, Ordering::Relaxed);
        agent.join().unwrap();
    }
}
