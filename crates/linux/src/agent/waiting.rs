//! The way the agent's thread waits for a moment: asleep, then spinning; how long it spins depends on whose processor
//! it is.
//!
//! In a lab the processors belong to the fabric and to the hosts' programs: the thread spins for 50 us at most.
//!
//! On the machine itself the thread is what the user came for. It spins for up to 1 ms before a moment, at ordinary
//! priority: where nobody else wants its processor that is all it takes. When it finds that another takes the
//! processor away from it, it asks to go before ordinary programs, and when that does not do, for real-time
//! scheduling by turns, see [`Turns`].

use twinnet_units::{Duration, Time};

use super::processor_wait::ProcessorWait;
use crate::wall::clock::LabClock;
use crate::wall::scheduling::{go_first, is_realtime, Breaks, Turns};
use crate::wall::wakefulness::{Need, Wakefulness};

/// The longest spin in a lab.
const SPIN_IN_LAB: Duration = Duration::from_us(50);
/// The longest spin on the machine itself: longer than nearly all sleeps end late (one in a thousand by 0.75 to
/// 0.93 ms on a virtual machine).
const SPIN_ON_MACHINE: Duration = Duration::from_ms(1);
/// The longest spin without a look at the sockets.
const LOOK: Duration = Duration::from_us(50);
/// A moment that is nearer than this is not disturbed by a look at the sockets.
const NEAR: Duration = Duration::from_us(10);
/// With the next moment nearer than this, the processor is kept awake until then: one that halts comes back
/// late, and a hypervisor lends it to others meanwhile.
const KEPT_AWAKE: Duration = Duration::from_ms(20);
/// The interval at which the thread asks for how long it had to wait for its processor.
const PERIOD: Duration = Duration::from_ms(50);
/// A spin that lost this much at once was interrupted: the thread asks then, too.
const JUMP: Duration = Duration::from_us(200);
/// The time that the thread spins before a flow begins, to learn whose its processor is.
const PROBE: Duration = Duration::from_ms(50);
/// Waiting for the processor in one period that tells that another uses it: 1 %.
const SHARED_NS: u64 = 500_000;

/// The next step of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look at the sockets and wait for them so long; `None`: for ever.
    Wait(Option<Duration>),
    /// The moment has come.
    Serve,
}

/// The way the thread waits.
pub struct Waiting {
    /// The facts known on the machine itself; nothing in a lab.
    machine: Option<OnMachine>,
    processor: ProcessorWait,
    looked: Time,
    /// Keeps a lab's agent that is real-time from taking its whole processor.
    breaks: Option<Breaks>,
    /// The longest spin where the thread is not on the machine itself.
    spin: Duration,
}

/// A scheduling class that the thread may ask of the kernel when another takes its processor away, in this order.
enum Standing {
    /// An ordinary program.
    Ordinary,
    /// Goes before ordinary programs.
    First,
    /// Real-time, by turns.
    Realtime(Turns),
}

struct OnMachine {
    /// The time when the thread first waited for a moment: it spins for [`PROBE`] from then on, to learn whose its
    /// processor is.
    begun: Time,
    since: Time,
    /// The wait at the beginning of the period.
    waited_before_ns: u64,
    shared: bool,
    standing: Standing,
    wakefulness: Wakefulness,
}

impl Waiting {
    /// In a lab.
    pub fn in_lab() -> Self {
        Self { machine: None, processor: ProcessorWait::default(), looked: Time::ZERO, breaks: None, spin: SPIN_IN_LAB }
    }

    /// In a guest whose time goes on by what is waited for: no sleep ends late, and a spin is the only thing that
    /// could make one.
    pub fn in_virtual_time() -> Self {
        Self { spin: Duration::ZERO, ..Self::in_lab() }
    }

    /// On the machine itself. [`Waiting::begin`] follows in the thread.
    pub fn on_machine() -> Self {
        let machine = OnMachine {
            begun: Time::ZERO,
            since: Time::ZERO,
            waited_before_ns: 0,
            shared: false,
            standing: Standing::Ordinary,
            wakefulness: Wakefulness::new(true),
        };
        Self { machine: Some(machine), ..Self::in_lab() }
    }

    /// Returns `true` if this is the machine itself.
    pub fn is_on_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// Called by the thread that will wait, first.
    pub fn begin(&mut self, now: Time) {
        self.processor = ProcessorWait::of_this_thread();
        if let Some(machine) = &mut self.machine {
            machine.waited_before_ns = self.processor.waited_ns();
            machine.since = now;
        } else {
            self.breaks = Some(Breaks::of_agent(now));
        }
    }

    /// A flow is planned: from now on the thread learns whose its processor is.
    pub fn probe(&mut self, now: Time) {
        if let Some(machine) = self.machine.as_mut().filter(|machine| !machine.shared) {
            machine.begun = now;
        }
    }

    /// Returns what was found about the processor: nanoseconds of waiting for it, whether it is shared, whether
    /// scheduling is real-time. In a lab the processors belong to others too: whether they were shared is told by the
    /// waiting alone.
    pub fn found(&mut self) -> (u64, bool, bool) {
        let (shared, realtime) =
            self.machine.as_ref().map_or((false, false), |machine| (machine.shared, machine.is_realtime()));
        (self.processor.look(), shared, realtime)
    }

    /// Nothing is to be served exactly for a while.
    pub fn rest(&mut self) {
        if let Some(machine) = &mut self.machine {
            machine.wakefulness.keep(Need::Nothing);
        }
    }

    /// A wait for sockets has ended.
    pub fn waited(&mut self, now: Time) {
        self.looked = now;
        if let Some(breaks) = &mut self.breaks {
            breaks.look(now);
        }
    }

    /// Returns what to do when some timer is to be served exactly at `wake`. Spins.
    pub fn until(&mut self, wake: Time, clock: LabClock) -> Next {
        let mut now = clock.now();
        let left = wake.since(now);
        let spin = self.machine.as_ref().map_or(self.spin, |machine| machine.spin(now));
        if let Some(machine) = &mut self.machine {
            let sleeps = spin < left && left < KEPT_AWAKE;
            machine.wakefulness.keep(if sleeps { Need::Awake } else { Need::Nothing });
        }
        if left > spin {
            return Next::Wait(Some(left.saturating_sub(spin)));
        }
        if let Some(machine) = &mut self.machine {
            machine.look(now, false, &mut self.processor);
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
        if !self.shared && self.begun > Time::ZERO && now < self.begun + PROBE {
            PROBE
        } else {
            SPIN_ON_MACHINE
        }
    }

    fn is_realtime(&self) -> bool {
        matches!(self.standing, Standing::Realtime(_))
    }

    /// Asks, every now and then or at once, whether another takes the processor away, and goes before it if so.
    fn look(&mut self, now: Time, at_once: bool, processor: &mut ProcessorWait) {
        if let Standing::Realtime(turns) = &mut self.standing {
            turns.look(now);
        }
        if !at_once && now.since(self.since) < PERIOD {
            return;
        }
        let waited_ns = processor.look();
        if waited_ns.saturating_sub(self.waited_before_ns) > SHARED_NS {
            self.shared = true;
            self.rise(now);
            (self.since, self.waited_before_ns) = (now, waited_ns);
        } else if now.since(self.since) >= PERIOD {
            (self.since, self.waited_before_ns) = (now, waited_ns);
        }
    }

    /// Asks for the next better standing; where that is refused the thread stays what it is.
    fn rise(&mut self, now: Time) {
        if matches!(self.standing, Standing::Ordinary) && go_first() {
            self.standing = Standing::First;
        } else if !self.is_realtime() {
            let turns = Turns::begin(now);
            if is_realtime() {
                self.standing = Standing::Realtime(turns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wall::scheduling::give_up_realtime;

    #[test]
    fn a_distant_moment_is_slept_for_and_a_near_one_is_spun_for() {
        let clock = LabClock::start();
        for mut waiting in [Waiting::in_lab(), Waiting::on_machine()] {
            waiting.begin(clock.now());
            let longest = if waiting.is_on_machine() { SPIN_ON_MACHINE } else { SPIN_IN_LAB };
            let wake = clock.now() + Duration::from_secs(10);
            let Next::Wait(Some(wait)) = waiting.until(wake, clock) else { panic!("served ten seconds early") };
            assert!(wait > Duration::from_secs(9) && wait + longest < Duration::from_secs(10), "{wait}");
            let near = clock.now() + Duration::from_us(5);
            waiting.waited(clock.now());
            while clock.now() < near {
                waiting.until(near, clock);
            }
            assert!(clock.now() >= near);
        }
    }

    #[test]
    fn a_thread_that_waits_for_its_processor_rises_step_by_step() {
        let mut waiting = Waiting::on_machine();
        waiting.begin(Time::ZERO);
        let machine = waiting.machine.as_mut().unwrap();
        let mut told = 0;
        let mut hear = |machine: &mut OnMachine, us: u64, more_ns: u64| {
            told += more_ns;
            machine.waited_before_ns = told - more_ns;
            machine.look(Time::ZERO + Duration::from_us(us), true, &mut ProcessorWait::that_was_told(told));
        };
        hear(machine, 1, SHARED_NS);
        assert!(!machine.shared && matches!(machine.standing, Standing::Ordinary));
        hear(machine, 2, SHARED_NS + 1);
        assert!(machine.shared);
        hear(machine, 3, SHARED_NS + 1);
        // Root, and whoever else may, has real-time scheduling now: what it says is what the kernel says.
        assert_eq!(machine.is_realtime(), is_realtime());
        hear(machine, 4, SHARED_NS + 1);
        assert_eq!(machine.is_realtime(), is_realtime());
        give_up_realtime();
    }
}
