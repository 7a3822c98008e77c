//! How the agent's thread waits for a moment: asleep, then spinning; how long it spins depends on whose processor it is.
//!
//! In a lab the processors belong to the fabric and to the hosts' programs: the thread spins for 50 us at most.
//!
//! On the machine itself the thread is what the user came for. With a processor to itself it spins for up to 500 us before
//! a moment, at ordinary priority: nobody else wants the processor, and the kernel stops a real-time thread that spins all the
//! time for 50 ms in each second. When it finds that another takes the processor away from it, it asks for real-time
//! scheduling and from then on sleeps for a part of each gap before it spins, so that it stays below what the kernel grants.
//! Where moments are too dense for that it naps: what is due meanwhile leaves in one go.

use std::fs::File;
use std::os::unix::fs::FileExt;

use twinnet_units::{Duration, Time};

use crate::clock::LabClock;
use crate::pacing::Pacing;
use crate::scheduling::{become_realtime, give_up_realtime, is_realtime};

/// The longest spin in a lab.
const SPIN_IN_LAB: Duration = Duration::from_us(50);
/// The longest spin with a processor of one's own: longer than nearly all sleeps end late.
const SPIN_ALONE: Duration = Duration::from_us(500);
/// What a thread that shares its processor spins of each gap, and at most.
const SHARED_SPIN_PERCENT: u64 = 75;
const LONGEST_SHARED_SPIN: Duration = Duration::from_us(500);
/// The longest spin without a look at the sockets.
const LOOK: Duration = Duration::from_us(50);
/// A moment that is nearer than this is not disturbed by a look at the sockets.
const NEAR: Duration = Duration::from_us(10);
/// How often the thread asks for how long it had to wait for its processor.
const PERIOD: Duration = Duration::from_ms(50);
/// A spin that lost this much at once was interrupted: the thread asks then, too.
const JUMP: Duration = Duration::from_us(200);
/// How long the thread spins before a flow begins, to learn whose its processor is.
const PROBE: Duration = Duration::from_ms(50);
/// Waiting for the processor in one period that tells that another uses it: 1 %.
const SHARED_NS: u64 = 500_000;
/// A real-time thread that has not slept for this long naps, so that the kernel never has to stop it.
const RUN: Duration = Duration::from_us(150);
const NAP: Duration = Duration::from_us(20);
/// A clock that need not slip.
const NO_SLIP: Duration = Duration::from_secs(1);

/// What the thread is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look at the sockets and wait for them so long; `None`: for ever.
    Wait(Option<Duration>),
    /// The moment has come.
    Serve,
}

/// How the thread waits.
pub struct Waiting {
    /// What is known on the machine itself; nothing in a lab.
    machine: Option<OnMachine>,
    looked: Time,
}

struct OnMachine {
    schedstat: Option<File>,
    pacing: Pacing,
    /// The moment that was waited for last, and a smoothed distance of such moments.
    last_wake: Time,
    gap_ps: u64,
    /// When it last slept.
    slept: Time,
    /// When the thread first waited for a moment: it spins for [`PROBE`] from then on, to learn whose its processor is.
    begun: Time,
    since: Time,
    waited_ns: u64,
    /// The wait at the beginning of the period.
    waited_before_ns: u64,
    shared: bool,
    realtime: bool,
}

impl Waiting {
    /// In a lab.
    pub fn in_lab() -> Self {
        Self { machine: None, looked: Time::ZERO }
    }

    /// On the machine itself. [`Waiting::begin`] follows in the thread.
    pub fn on_machine() -> Self {
        let machine = OnMachine {
            schedstat: None,
            pacing: Pacing::new(NO_SLIP),
            last_wake: Time::ZERO,
            gap_ps: 0,
            begun: Time::ZERO,
            slept: Time::ZERO,
            since: Time::ZERO,
            waited_ns: 0,
            waited_before_ns: 0,
            shared: false,
            realtime: false,
        };
        Self { machine: Some(machine), looked: Time::ZERO }
    }

    /// Whether this is the machine itself.
    pub fn is_on_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// Called by the thread that will wait, first.
    pub fn begin(&mut self, now: Time) {
        if let Some(machine) = &mut self.machine {
            machine.schedstat = File::open("/proc/thread-self/schedstat").ok();
            machine.waited_ns = machine.read_waited();
            machine.waited_before_ns = machine.waited_ns;
            machine.since = now;
        }
    }

    /// A flow is planned: from now on the thread learns whose its processor is.
    pub fn probe(&mut self, now: Time) {
        if let Some(machine) = self.machine.as_mut().filter(|machine| !machine.shared) {
            machine.begun = now;
        }
    }

    /// What was found about the processor: nanoseconds of waiting for it, whether it is shared, whether scheduling is real-time.
    pub fn found(&self) -> Option<(u64, bool, bool)> {
        self.machine.as_ref().map(|machine| (machine.waited_ns, machine.shared, machine.realtime))
    }

    /// A wait for sockets has ended: `late` after the time that was asked for, where nothing else ended it.
    pub fn waited(&mut self, now: Time, late: Option<Duration>) {
        self.looked = now;
        if let Some((machine, late)) = self.machine.as_mut().zip(late) {
            machine.pacing.slept(late);
            machine.slept = now;
        }
    }

    /// What to do when some timer is to be served exactly at `wake`. Spins.
    pub fn until(&mut self, wake: Time, clock: LabClock) -> Next {
        let mut now = clock.now();
        let left = wake.since(now);
        if let Some(machine) = &mut self.machine {
            machine.expect(wake);
        }
        let spin = self.machine.as_ref().map_or(SPIN_IN_LAB, |machine| machine.spin(now));
        if left > spin {
            return Next::Wait(Some(left.saturating_sub(spin)));
        }
        if let Some(machine) = &mut self.machine {
            machine.look(now, false);
            if machine.realtime && now.since(machine.slept) > RUN {
                machine.slept = now;
                return Next::Wait(Some(NAP));
            }
        } else {
            // In a lab others want the processor more than a look at the sockets costs.
            while clock.now() < wake {
                std::hint::spin_loop();
            }
            return Next::Wait(Some(Duration::ZERO));
        }
        if left > NEAR && now.since(self.looked) >= LOOK {
            return Next::Wait(Some(Duration::ZERO));
        }
        let end = wake.min(now + LOOK);
        while now < end {
            std::hint::spin_loop();
            let after = clock.now();
            if after.since(now) > JUMP {
                if let Some(machine) = &mut self.machine {
                    machine.look(after, true);
                }
            }
            now = after;
        }
        // Sockets wait for a look at most so long, however dense the timers are.
        if now < wake || now.since(self.looked) >= LOOK + LOOK {
            Next::Wait(Some(Duration::ZERO))
        } else {
            Next::Serve
        }
    }
}

impl OnMachine {
    fn spin(&self, now: Time) -> Duration {
        if self.shared {
            Duration::from_ps(self.gap_ps / 100 * SHARED_SPIN_PERCENT).min(LONGEST_SHARED_SPIN)
        } else if self.begun > Time::ZERO && now < self.begun + PROBE {
            PROBE
        } else {
            SPIN_ALONE
        }
    }

    /// Learns how far moments are apart.
    fn expect(&mut self, wake: Time) {
        if wake > self.last_wake {
            let gap_ps = wake.since(self.last_wake).as_ps().min(LONGEST_SHARED_SPIN.as_ps() * 4);
            self.gap_ps = if self.last_wake == Time::ZERO { gap_ps } else { (self.gap_ps * 15 + gap_ps) / 16 };
            self.last_wake = wake;
        }
    }

    /// Asks, every now and then or at once, whether another takes the processor away.
    fn look(&mut self, now: Time, at_once: bool) {
        if self.realtime && self.pacing.must_give_up_realtime(now) {
            give_up_realtime();
            self.realtime = false;
        }
        if !at_once && now.since(self.since) < PERIOD {
            return;
        }
        self.waited_ns = self.read_waited();
        if !self.shared && self.waited_ns.saturating_sub(self.waited_before_ns) > SHARED_NS {
            self.shared = true;
            become_realtime();
            self.realtime = is_realtime();
        }
        if now.since(self.since) >= PERIOD {
            (self.since, self.waited_before_ns) = (now, self.waited_ns);
        }
    }

    /// The second number of `schedstat`: nanoseconds in which the thread could run and did not.
    fn read_waited(&self) -> u64 {
        let mut text = [0_u8; 96];
        let Some(length) = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()) else {
            return self.waited_ns;
        };
        let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(self.waited_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distant_moment_is_slept_for_and_a_near_one_is_spun_for() {
        let clock = LabClock::start();
        for mut waiting in [Waiting::in_lab(), Waiting::on_machine()] {
            waiting.begin(clock.now());
            let longest = if waiting.is_on_machine() { SPIN_ALONE } else { SPIN_IN_LAB };
            let wake = clock.now() + Duration::from_secs(10);
            let Next::Wait(Some(wait)) = waiting.until(wake, clock) else { panic!("served ten seconds early") };
            assert!(wait > Duration::from_secs(9) && wait + longest < Duration::from_secs(10), "{wait}");
            let near = clock.now() + Duration::from_us(5);
            waiting.waited(clock.now(), None);
            while clock.now() < near {
                waiting.until(near, clock);
            }
            assert!(clock.now() >= near);
        }
    }

    #[test]
    fn a_thread_that_waits_for_its_processor_is_told_of_it() {
        let mut waiting = Waiting::on_machine();
        waiting.begin(Time::ZERO);
        let machine = waiting.machine.as_mut().unwrap();
        machine.look(Time::from_ns(1_000), true);
        assert!(!machine.shared || machine.waited_ns > SHARED_NS);
        machine.waited_before_ns = 0;
        machine.waited_ns = SHARED_NS + 1;
        machine.schedstat = None;
        machine.look(Time::from_ns(2_000), true);
        assert!(machine.shared);
        if machine.realtime {
            give_up_realtime();
        }
    }
}
