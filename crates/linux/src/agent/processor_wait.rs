//! For how long the calling thread could have run while another had its processor, as the kernel counts it.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The count of one thread; it stands still where the kernel does not tell.
#[derive(Debug, Default)]
pub struct ProcessorWait {
    schedstat: Option<File>,
    waited_ns: u64,
}

impl ProcessorWait {
    /// Of the calling thread.
    pub fn of_this_thread() -> Self {
        let mut wait = Self { schedstat: File::open("/proc/thread-self/schedstat").ok(), waited_ns: 0 };
        wait.look();
        wait
    }

    /// Asks the kernel; nanoseconds since the thread began.
    pub fn look(&mut self) -> u64 {
        let mut text = [0_u8; 96];
        // The second of the file's numbers (Documentation/scheduler/sched-stats.rst).
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let told =
            read.and_then(|length| std::str::from_utf8(&text[..length]).ok()?.split_whitespace().nth(1)?.parse().ok());
        self.waited_ns = told.unwrap_or(self.waited_ns);
        self.waited_ns
    }

    /// A count that stands at `waited_ns`.
    #[cfg(test)]
    pub const fn that_was_told(waited_ns: u64) -> Self {
        Self { schedstat: None, waited_ns }
    }

    /// Returns what the kernel said last.
    pub const fn waited_ns(&self) -> u64 {
        self.waited_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_shares_one_processor_with_another_has_waited_for_it() {
        let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let pin = || {
            // SAFETY: an all-zero set is valid, and the call reads it; a refusal leaves the thread where it is.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(0, &mut set);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
            }
        };
        let rival_ended = std::sync::Arc::clone(&ended);
        let rival = std::thread::spawn(move || {
            pin();
            while !rival_ended.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let told = std::thread::spawn(move || {
            pin();
            let mut wait = ProcessorWait::of_this_thread();
            let before = wait.waited_ns();
            let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while wait.look() == before && std::time::Instant::now() < patience {}
            wait.waited_ns() > before
        });
        let told = told.join().unwrap();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        rival.join().unwrap();
        assert!(told);
    }
}
