//! The costs of the agent's thread, published by itself for others to read at any time.

use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use twinnet_units::{Duration as LabDuration, Time};

use crate::wall::fidelity::Histogram;
use crate::wall::pauses::Pauses;

/// Processor time and switches of the agent's thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentUsage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Times that it was taken off the processor though it could have gone on.
    pub involuntary_switches: u64,
    /// Times that it waited.
    pub voluntary_switches: u64,
    /// Time for which it could have run and another had the processor.
    pub waited: Duration,
    /// `true` if it found that it shares its processor with others.
    pub shared: bool,
    /// `true` if it has real-time scheduling for that reason.
    pub realtime: bool,
}

/// The figures as atomics. Each is exact; together they may be of neighbouring moments.
#[derive(Default)]
pub struct PublishedUsage {
    user_us: AtomicU64,
    system_us: AtomicU64,
    involuntary: AtomicU64,
    voluntary: AtomicU64,
    waited_ns: AtomicU64,
    overloaded_senders: AtomicU64,
    /// The largest share, in millionths.
    unsent_ppm: AtomicU64,
    overflowed_datagrams: AtomicU64,
    shared: AtomicBool,
    realtime: AtomicBool,
    lateness: Mutex<Histogram>,
    pauses: Mutex<Pauses>,
}

impl PublishedUsage {
    /// Publishes the calling thread's figures.
    pub fn publish(&self) {
        // SAFETY: zero is a valid `rusage`, and the call fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let microseconds = |time: libc::timeval| number(time.tv_sec) * 1_000_000 + number(time.tv_usec);
        self.user_us.store(microseconds(usage.ru_utime), Ordering::Relaxed);
        self.system_us.store(microseconds(usage.ru_stime), Ordering::Relaxed);
        self.involuntary.store(number(usage.ru_nivcsw), Ordering::Relaxed);
        self.voluntary.store(number(usage.ru_nvcsw), Ordering::Relaxed);
    }

    /// Publishes what the thread found about its processor.
    pub fn publish_processor(&self, waited_ns: u64, shared: bool, realtime: bool) {
        self.waited_ns.store(waited_ns, Ordering::Relaxed);
        self.shared.store(shared, Ordering::Relaxed);
        self.realtime.store(realtime, Ordering::Relaxed);
    }

    /// Counts a sender that gave up because the machine could not follow it, behind by this share of its time.
    pub fn count_overloaded_sender(&self, behind: f64) {
        self.overloaded_senders.fetch_add(1, Ordering::Relaxed);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        self.unsent_ppm.fetch_max((behind * 1e6).ceil() as u64, Ordering::Relaxed);
    }

    /// The largest share of its time that a sender was behind when it gave up, since it was last forgotten.
    #[allow(clippy::cast_precision_loss)]
    pub fn unsent_share(&self) -> f64 {
        self.unsent_ppm.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Senders that gave up so far.
    pub fn overloaded_senders(&self) -> u64 {
        self.overloaded_senders.load(Ordering::Relaxed)
    }

    /// Counts datagrams that the socket of a sink had no room for.
    pub fn count_overflowed_datagrams(&self, datagrams: u64) {
        self.overflowed_datagrams.fetch_add(datagrams, Ordering::Relaxed);
    }

    /// Datagrams that sockets had no room for so far.
    pub fn overflowed_datagrams(&self) -> u64 {
        self.overflowed_datagrams.load(Ordering::Relaxed)
    }

    /// Publishes how late timers were served.
    pub fn publish_lateness(&self, lateness: &Histogram) {
        self.lateness.lock().unwrap_or_else(PoisonError::into_inner).clone_from(lateness);
    }

    /// Returns how late timers were served, as last published.
    pub fn lateness(&self) -> Histogram {
        self.lateness.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a time `late` until `now` for which a timer was due and the thread did not serve it.
    pub fn note_pause(&self, late: LabDuration, now: Time) {
        if late >= Pauses::LEAST {
            self.pauses.lock().unwrap_or_else(PoisonError::into_inner).observe(late, now);
        }
    }

    /// Returns the pauses since they were last forgotten.
    pub fn pauses(&self) -> Pauses {
        *self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the pauses so far, and the largest share that was not sent.
    pub fn forget_pauses(&self) {
        self.unsent_ppm.store(0, Ordering::Relaxed);
        *self.pauses.lock().unwrap_or_else(PoisonError::into_inner) = Pauses::default();
    }

    /// The figures last published.
    pub fn read(&self) -> AgentUsage {
        AgentUsage {
            user: Duration::from_micros(self.user_us.load(Ordering::Relaxed)),
            system: Duration::from_micros(self.system_us.load(Ordering::Relaxed)),
            involuntary_switches: self.involuntary.load(Ordering::Relaxed),
            voluntary_switches: self.voluntary.load(Ordering::Relaxed),
            waited: Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed)),
            shared: self.shared.load(Ordering::Relaxed),
            realtime: self.realtime.load(Ordering::Relaxed),
        }
    }
}

fn number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
