//! How the agent's thread waits for a moment: asleep, then spinning; how long it spins depends on whose processor it is.
//!
//! In a lab the processors belong to the fabric and to the hosts' programs: the thread spins for 50 us at most.
//!
//! On the machine itself the thread is what the user came for. With a processor to itself it spins for up to 500 us before
//! a moment, at ordinary priority: nobody else wants the processor, and the kernel stops a real-time thread that spins all the
//! time for 50 ms in each second. When it finds that another takes the processor away from it, it asks for real-time
//! scheduling and from then on sleeps for a part of each gap before it spins, so that it stays below what the kernel grants.
//! Where moments are too dense for that it naps: what is due meanwhile leaves in one go.

use twinnet_units::{Duration, Time};

use super::processor_wait::ProcessorWait;
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
/// A real-time thread that has not slept for this long naps, so that the kernel never has to stop it: where gaps leave no time
/// to sleep in.
const RUN: Duration = Duration::from_us(150);
const NAP: Duration = Duration::from_us(20);
/// The same where the thread sleeps for a part of each gap anyway, and naps only for a row of short gaps: a nap ends late, and
/// what is due meanwhile leaves late.
const LONG_RUN: Duration = Duration::from_ms(2);
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
    processor: ProcessorWait,
    looked: Time,
}

struct OnMachine {
    pacing: Pacing,
    /// The moment that was waited for last, and a smoothed distance of such moments.
    last_wake: Time,
    gap_ps: u64,
    /// When it last slept.
    slept: Time,
    /// When the thread first waited for a moment: it spins for [`PROBE`] from then on, to learn whose its processor is.
    begun: Time,
    since: Time,
    /// The wait at the beginning of the period.
    waited_before_ns: u64,
    shared: bool,
    realtime: bool,
}

impl Waiting {
    /// In a lab.
    pub fn in_lab() -> Self {
        Self { machine: None, processor: ProcessorWait::default(), looked: Time::ZERO }
    }

    /// On the machine itself. [`Waiting::begin`] follows in the thread.
    pub fn on_machine() -> Self {
        let machine = OnMachine {
            pacing: Pacing::new(NO_SLIP),
            last_wake: Time::ZERO,
            gap_ps: 0,
            begun: Time::ZERO,
            slept: Time::ZERO,
            since: Time::ZERO,
            waited_before_ns: 0,
            shared: false,
            realtime: false,
        };
        Self { machine: Some(machine), processor: ProcessorWait::default(), looked: Time::ZERO }
    }

    /// Whether this is the machine itself.
    pub fn is_on_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// Called by the thread that will wait, first.
    pub fn begin(&mut self, now: Time) {
        self.processor = ProcessorWait::of_this_thread();
        if let Some(machine) = &mut self.machine {
            machine.waited_before_ns = self.processor.waited_ns();
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
    /// In a lab the processors belong to others too: whether they were shared is told by the waiting alone.
    pub fn found(&mut self) -> (u64, bool, bool) {
        let (shared, realtime) =
            self.machine.as_ref().map_or((false, false), |machine| (machine.shared, machine.realtime));
        (self.processor.look(), shared, realtime)
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
            machine.look(now, false, &mut self.processor);
            if machine.must_nap(now) {
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
                    machine.look(after, true, &mut self.processor);
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

    /// Whether it is to nap before the kernel stops it.
    fn must_nap(&self, now: Time) -> bool {
        let left_of_gap = Duration::from_ps(self.gap_ps / 100 * (100 - SHARED_SPIN_PERCENT));
        let run = if left_of_gap >= NAP { LONG_RUN } else { RUN };
        self.realtime && now.since(self.slept) > run
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
    fn look(&mut self, now: Time, at_once: bool, processor: &mut ProcessorWait) {
        if self.realtime && self.pacing.must_give_up_realtime(now) {
            give_up_realtime();
            self.realtime = false;
        }
        if !at_once && now.since(self.since) < PERIOD {
            return;
        }
        let waited_ns = processor.look();
        if !self.shared && waited_ns.saturating_sub(self.waited_before_ns) > SHARED_NS {
            self.shared = true;
            become_realtime();
            self.realtime = is_realtime();
        }
        if now.since(self.since) >= PERIOD {
            (self.since, self.waited_before_ns) = (now, waited_ns);
        }
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
        machine.look(Time::from_ns(1_000), true, &mut ProcessorWait::of_this_thread());
        machine.waited_before_ns = 0;
        machine.look(Time::from_ns(2_000), true, &mut ProcessorWait::that_was_told(SHARED_NS + 1));
        assert!(machine.shared);
        if machine.realtime {
            give_up_realtime();
        }
    }

    #[test]
    fn a_real_time_thread_naps_where_gaps_leave_no_sleep_and_not_where_they_do() {
        let mut waiting = Waiting::on_machine();
        let machine = waiting.machine.as_mut().unwrap();
        (machine.realtime, machine.slept) = (true, Time::ZERO + Duration::from_ms(1));
        let after = |us| machine.slept + Duration::from_us(us);
        let (soon, late) = (after(300), after(2100));
        machine.gap_ps = Duration::from_us(20).as_ps();
        assert!(machine.must_nap(soon));
        machine.gap_ps = Duration::from_us(500).as_ps();
        assert!(!machine.must_nap(soon) && machine.must_nap(late));
        machine.realtime = false;
        assert!(!machine.must_nap(late));
    }
}
