//! The wall clock of a lab: `CLOCK_MONOTONIC`, counted from the moment the lab started.
//!
//! In a guest whose kernel travels in time, computing takes none. A thread that waits for events and handles them holds
//! the clock still from one wait to the next ([`LabClock::hold_at`]): to look at it would be a system call each time,
//! and would itself make it late.

use std::cell::Cell;

use twinnet_units::Time;

thread_local! {
    /// The reading of `CLOCK_MONOTONIC` at which this thread holds its clocks.
    static HELD_NS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Tells the lab's time. Copies share the same zero.
#[derive(Clone, Copy, Debug)]
pub struct LabClock {
    zero_ns: u64,
}

impl LabClock {
    /// A clock whose zero is now.
    #[must_use]
    pub fn start() -> Self {
        Self { zero_ns: monotonic_ns() }
    }

    /// The machine's own clock: its zero is that of `CLOCK_MONOTONIC`, the same for all programs of the machine.
    #[must_use]
    pub const fn of_machine() -> Self {
        Self { zero_ns: 0 }
    }

    /// A clock that shows zero when `CLOCK_MONOTONIC` of this machine shows `zero_ns`: so the clocks of several
    /// machines are set to one another.
    #[must_use]
    pub const fn with_zero(zero_ns: u64) -> Self {
        Self { zero_ns }
    }

    /// The lab's time now; in a thread that [holds](Self::hold_at) it, the time when it did so last.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_ns(HELD_NS.get().unwrap_or_else(monotonic_ns).saturating_sub(self.zero_ns))
    }

    /// From now on this thread's clocks show `time`, or what it is now, until it calls this again.
    pub(crate) fn hold_at(&self, time: Option<Time>) {
        HELD_NS.set(Some(time.map_or_else(monotonic_ns, |time| self.monotonic_ns_at(time))));
    }

    /// The lab's time at `CLOCK_MONOTONIC` = `ns`; zero when that was before the lab started.
    #[must_use]
    pub fn at_monotonic_ns(&self, ns: u64) -> Time {
        Time::from_ns(ns.saturating_sub(self.zero_ns))
    }

    /// `CLOCK_MONOTONIC` in nanoseconds at the lab's time `time`.
    #[must_use]
    pub fn monotonic_ns_at(&self, time: Time) -> u64 {
        self.zero_ns.saturating_add(time.as_ns())
    }

    /// `CLOCK_REALTIME` in nanoseconds at the lab's time `time`, by the offset between both clocks as it is now.
    #[must_use]
    pub fn realtime_ns_at(&self, time: Time) -> u64 {
        let ago = monotonic_ns().saturating_sub(self.monotonic_ns_at(time));
        read(libc::CLOCK_REALTIME).saturating_sub(ago)
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Processor time of the calling thread in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns `true` in a guest whose kernel travels in time: no sleep ends late there, and computing takes no time.
#[must_use]
pub fn time_is_virtual() -> bool {
    let clock = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    clock.is_ok_and(|name| name.starts_with("time-travel"))
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec for the call to fill; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
