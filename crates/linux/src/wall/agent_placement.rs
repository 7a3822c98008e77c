//! Keeps the agent off the processor that the loop works on.
//!
//! The loop is real-time and spins before what is due, so an ordinary thread that the kernel puts on its processor
//! waits until it is moved: for some milliseconds. Where there is another processor the agent stays away from the
//! loop's while that is at work, and may run anywhere while it is not. A thread that the agent started would stay away
//! with it: it starts none.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;

use twinnet_units::{Duration, Time};

/// The thread of a lab's agent, as the loop of the same lab is to know it: none until the agent has begun, and none
/// after it has ended. Copies tell of the same thread.
#[derive(Clone, Debug, Default)]
pub struct AgentThread(Arc<AtomicI32>);

impl AgentThread {
    /// The calling thread is the agent until what is returned is dropped.
    pub(crate) fn is_me(&self) -> WhileItRuns {
        // SAFETY: no pointers are passed; it cannot fail.
        self.0.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        WhileItRuns(self.clone())
    }

    /// Its number.
    fn number(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|number| *number > 0)
    }
}

/// Held by the agent's thread while it runs: another thread may get its number after that.
#[must_use]
pub(crate) struct WhileItRuns(AgentThread);

impl Drop for WhileItRuns {
    fn drop(&mut self) {
        self.0 .0.store(0, Ordering::Relaxed);
    }
}

/// The interval at which the loop's processor is looked at: it seldom changes, and then stays for long.
const PERIOD: Duration = Duration::from_ms(20);

/// The processors on which the agent may run.
pub(crate) struct AgentPlacement {
    agent: AgentThread,
    /// The processors that the lab may use, where there are several; else the agent is left alone.
    processors: Option<libc::cpu_set_t>,
    looked: Time,
    /// The agent's thread and the processor that it stays away from.
    placed: Option<(i32, usize)>,
}

impl AgentPlacement {
    /// Leaves the `agent` alone unless it is `wanted` otherwise.
    pub(crate) fn new(agent: AgentThread, wanted: bool) -> Self {
        let processors = wanted.then(allowed).flatten().filter(|set| count(set) > 1);
        Self { agent, processors, looked: Time::ZERO, placed: None }
    }

    /// Called often by the loop's thread, which is `at_work` or not.
    pub(crate) fn follow(&mut self, at_work: bool, now: Time) {
        let Some(processors) = &self.processors else { return };
        if now - self.looked < PERIOD {
            return;
        }
        self.looked = now;
        let Some(agent) = self.agent.number() else {
            self.placed = None;
            return;
        };
        // SAFETY: no pointers are passed. A kernel that does not tell gives -1: then the agent is left alone.
        let processor = usize::try_from(unsafe { libc::sched_getcpu() }).ok().filter(|_| at_work);
        let wanted = processor.map(|processor| (agent, processor));
        if wanted == self.placed {
            return;
        }
        let mut set = *processors;
        if let Some(processor) = processor {
            // SAFETY: the set is valid; a number beyond it changes nothing.
            unsafe { libc::CPU_CLR(processor, &mut set) };
        }
        // SAFETY: the set is valid and outlives the call. A refusal leaves the agent where it is.
        unsafe { libc::sched_setaffinity(agent, size_of::<libc::cpu_set_t>(), &raw const set) };
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
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_agent_stays_off_the_processor_of_a_loop_at_work_and_is_free_again_after() {
        let Some(before) = allowed().filter(|set| count(set) > 1) else { return };
        let agent = AgentThread::default();
        let (theirs, ended) = (agent.clone(), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let _running = theirs.is_me();
            while !until.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        let number = loop {
            if let Some(number) = agent.number() {
                break number;
            }
            std::thread::yield_now();
        };
        let processors = || {
            // SAFETY: as in `allowed`.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::sched_getaffinity(number, size_of::<libc::cpu_set_t>(), &raw mut set);
                count(&set)
            }
        };
        let mut placement = AgentPlacement::new(agent.clone(), true);
        let at = |ms| Time::ZERO + Duration::from_ms(ms);
        placement.follow(true, at(100));
        assert_eq!(processors(), count(&before) - 1);
        placement.follow(false, at(101));
        assert_eq!(processors(), count(&before) - 1, "it is looked at now and then only");
        placement.follow(false, at(200));
        assert_eq!(processors(), count(&before));
        ended.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        assert_eq!(agent.number(), None, "another thread may have that number now");
    }
}
