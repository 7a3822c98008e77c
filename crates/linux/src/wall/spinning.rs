//! The time before an event at which the loop stops sleeping and spins: by how late sleeps end here, and by what the
//! processor can spare.

use twinnet_units::{Duration, Time};

use crate::wall::clock::thread_cpu_ns;

/// The longest time before an event at which the loop stops sleeping; below, it follows how late sleeps end on this
/// machine.
const LONGEST_SPIN: Duration = Duration::from_us(250);
/// Shares of the processor between which the loop holds itself by spinning less or more: spinning makes hand-overs
/// exact to a microsecond instead of some tens, and is not worth being stopped for.
const DUTY_RANGE: (f64, f64) = (0.75, 0.88);
/// The most multiples of the usual oversleep that the loop spins, where the processor is free for it: a few sleeps in a
/// thousand end many times later than the others.
const MOST_EAGER: f64 = 8.0;
/// Below this share of the margin there is next to no spinning left. From [`MOST_EAGER`] it takes five periods to get
/// there: with [`PATIENCE`] that is half of the kernel's second.
const LEAST_EAGER: f64 = 0.1;
/// Share of the processor above which real-time scheduling is taken by [turns](crate::wall::scheduling::Turns): the
/// kernel stops a real-time thread that uses more than 95 % of a second for the rest of it, 50 ms at once.
const HIGHEST_DUTY: f64 = 0.9;
/// The oversleep that most sleeps keep on any machine: rare ones that end later are not worth spinning all the time
/// for.
const USUAL_OVERSLEEP: Duration = Duration::from_us(100);
/// Shares of the processor between which the loop is at work, and leaves something to be kept awake.
const AT_WORK: std::ops::Range<f64> = 0.02..HIGHEST_DUTY;
/// The interval at which the share is looked at.
const DUTY_PERIOD: Duration = Duration::from_ms(50);
/// Periods in a row with too high a share, and without spinning, after which that begins: before the kernel's second
/// is over.
const PATIENCE: u32 = 4;

/// The facts that the loop has learnt about sleeping and spinning.
#[derive(Debug)]
pub(crate) struct SpinControl {
    oversleep: Oversleep,
    duty: Duty,
    slip_after: Duration,
}

impl SpinControl {
    /// For a loop whose clock slips when it is later than `slip_after`.
    pub(crate) fn new(slip_after: Duration) -> Self {
        Self { oversleep: Oversleep::default(), duty: Duty::default(), slip_after }
    }

    /// A sleep has ended `late`.
    pub(crate) fn slept(&mut self, late: Duration) {
        self.oversleep.observe(late);
    }

    /// Returns how long before an event to stop sleeping: as long as sleeps end late, or less to spare the processor,
    /// but never so little that a sleep would make the clock slip.
    pub(crate) fn margin(&self) -> Duration {
        let margin = self.oversleep.margin();
        let wanted = Duration::from_ps((margin.as_ps() as f64 * self.duty.eagerness) as u64);
        wanted.min(LONGEST_SPIN).max(margin.min(USUAL_OVERSLEEP).saturating_sub(self.slip_after))
    }

    /// Called in every turn of the loop.
    pub(crate) fn observe(&mut self, now: Time) {
        self.duty.observe(now);
    }

    /// Returns `true` if the thread sleeps and wakes all the time: there is something to do, and it does not take the
    /// whole processor.
    pub(crate) fn is_at_work(&self) -> bool {
        AT_WORK.contains(&self.duty.share)
    }
}

/// The share of the processor that the loop's thread uses, and what follows from it.
#[derive(Debug)]
struct Duty {
    since: Time,
    used_ns: u64,
    /// The multiple of the margin that is spent spinning before an event, from 0 to [`MOST_EAGER`].
    eagerness: f64,
    too_high: u32,
    takes_turns: bool,
    /// The share in the last period.
    share: f64,
}

impl Default for Duty {
    fn default() -> Self {
        Self { since: Time::ZERO, used_ns: 0, eagerness: 1.0, too_high: 0, takes_turns: false, share: 0.0 }
    }
}

impl Duty {
    /// Looks at the share when it is time to.
    fn observe(&mut self, now: Time) {
        let elapsed = now - self.since;
        if elapsed < DUTY_PERIOD {
            return;
        }
        let used_ns = thread_cpu_ns();
        let share = used_ns.saturating_sub(self.used_ns) as f64 / elapsed.as_ns() as f64;
        (self.since, self.used_ns) = (now, used_ns);
        self.follow(share);
    }

    fn follow(&mut self, share: f64) {
        self.share = share;
        // While the loop still spins, that is what takes too much: it spins less at once, and the scheduling is not
        // at stake.
        let spins = self.eagerness > LEAST_EAGER;
        if share > DUTY_RANGE.1 {
            self.eagerness *= 0.4;
        } else if share < DUTY_RANGE.0 {
            self.eagerness = (self.eagerness * 1.2 + 0.01).min(MOST_EAGER);
        }
        self.too_high = if share > HIGHEST_DUTY && !spins { self.too_high + 1 } else { 0 };
        self.takes_turns = self.too_high >= PATIENCE || (self.takes_turns && share > DUTY_RANGE.0);
    }
}

/// The lateness at which sleeps end: an estimate that most of them keep.
#[derive(Debug)]
struct Oversleep {
    estimate_ns: u64,
}

impl Default for Oversleep {
    fn default() -> Self {
        Self { estimate_ns: 50_000 }
    }
}

impl Oversleep {
    /// Learns from a sleep that ended late by `late`: up fast, down slowly, so that most sleeps end in time.
    fn observe(&mut self, late: Duration) {
        let late = late.as_ns().min(LONGEST_SPIN.as_ns());
        if late > self.estimate_ns {
            self.estimate_ns += (late - self.estimate_ns) / 2;
        } else {
            self.estimate_ns -= (self.estimate_ns - late) / 16;
        }
    }

    /// Returns how long before an event to stop sleeping.
    fn margin(&self) -> Duration {
        Duration::from_ns(self.estimate_ns + self.estimate_ns / 8).min(LONGEST_SPIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_follows_how_late_sleeps_end() {
        let mut oversleep = Oversleep::default();
        for _ in 0..500 {
            oversleep.observe(Duration::from_us(2));
        }
        assert!(oversleep.margin() < Duration::from_us(5), "{}", oversleep.margin());
        for _ in 0..10 {
            oversleep.observe(Duration::from_us(90));
        }
        assert!(
            (Duration::from_us(80)..Duration::from_us(110)).contains(&oversleep.margin()),
            "{}",
            oversleep.margin()
        );
        oversleep.observe(Duration::from_secs(1));
        assert!(oversleep.margin() <= LONGEST_SPIN);
    }

    #[test]
    fn a_loop_that_uses_too_much_spins_less_and_spins_again_when_it_may() {
        let mut duty = Duty::default();
        for _ in 0..20 {
            duty.follow(0.9);
        }
        assert!(duty.eagerness < 0.01, "{}", duty.eagerness);
        assert_eq!(duty.too_high, 0);
        for _ in 0..40 {
            duty.follow(0.2);
        }
        assert!((duty.eagerness - MOST_EAGER).abs() < 1e-9);
        // As long as it spins less for it, its work may need no more than there is.
        while duty.eagerness > LEAST_EAGER {
            duty.follow(0.97);
            assert!(!duty.takes_turns);
        }
        for _ in 0..PATIENCE {
            duty.follow(0.97);
        }
        assert!(duty.takes_turns);
        duty.follow(0.8);
        assert!(duty.takes_turns, "it has to do still");
        duty.follow(0.7);
        assert!(!duty.takes_turns);
    }
}
