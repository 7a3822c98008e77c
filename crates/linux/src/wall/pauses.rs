//! Pauses of the loop: time for which it looked at nothing though it had not asked for so long a sleep.
//!
//! A line that something is due on shows a pause as its own lateness. A frame that comes into an idle line's
//! interface meanwhile waits unread, and no schedule tells of it. So the loop measures itself from one wake-up to the
//! next: what that took beyond the sleep it had asked for is a pause, whatever was due. A pause that falls into a
//! sleep is seen by how far the sleep's end is overrun, so no sleep is longer than what may go unseen while frames
//! pass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use serde_json::{json, Value};
use twinnet_units::{Duration, Time};

/// Times for which the loop stood still though it had not asked to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    count: u64,
    total: Duration,
    longest: Duration,
    worst_second: Duration,
    /// The same of what each pause was longer than [`Pauses::LEAST`].
    worst_second_beyond: Duration,
    /// The same of what each was longer than each of [`OVER`], all in the second in which it ended.
    worst_second_over: [Duration; OVER.len()],
    second: Second,
}

/// A burst after a pause fills a queue by what the pause is longer than some time, which depends on how busy the line
/// is: the sums for several of them.
const OVER: [Duration; 7] = [
    Duration::from_us(1000),
    Duration::from_us(1250),
    Duration::from_us(1500),
    Duration::from_us(2000),
    Duration::from_us(3000),
    Duration::from_us(5000),
    Duration::from_us(10_000),
];

/// One second of the clock, and what of it was lost.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    number: u64,
    stood_still: Duration,
    beyond: Duration,
    over: [Duration; OVER.len()],
}

impl Pauses {
    /// Shorter ones are not counted: they move no frame by more than a valid run permits
    /// (docs/reference/fidelity.md), and what they cost a line its own record tells.
    pub const LEAST: Duration = Duration::from_ms(1);

    /// The loop went on at `now`, `late` after it wanted to. A pause that reaches over the bound of a second counts
    /// in both.
    pub fn observe(&mut self, late: Duration, now: Time) {
        if late < Self::LEAST {
            return;
        }
        self.count += 1;
        self.total += late;
        self.longest = self.longest.max(late);
        let number = now.as_ns() / SECOND.as_ns();
        let in_this = late.min(now.since(Time::ZERO + Duration::from_ns(number * SECOND.as_ns())));
        let before = late.saturating_sub(in_this);
        if before > Duration::ZERO {
            let earlier = self.second;
            self.second = if earlier.number + 1 == number { earlier } else { Second::default() };
            self.add_to_second(before.min(SECOND), before.saturating_sub(Self::LEAST).min(SECOND));
        }
        if self.second.number != number {
            self.second = Second { number, ..Second::default() };
        }
        // What is not longer than the least is taken from a pause once.
        let counted = if before > Duration::ZERO { before.min(Self::LEAST) } else { Duration::ZERO };
        self.add_to_second(in_this, in_this.saturating_sub(Self::LEAST.saturating_sub(counted)));
        let sums = self.second.over.iter_mut().zip(&mut self.worst_second_over);
        for ((sum, worst), over) in sums.zip(OVER) {
            *sum += late.saturating_sub(over);
            *worst = (*worst).max((*sum).min(SECOND));
        }
    }

    fn add_to_second(&mut self, stood_still: Duration, beyond: Duration) {
        self.second.stood_still += stood_still;
        self.second.beyond += beyond;
        self.worst_second = self.worst_second.max(self.second.stood_still.min(SECOND));
        self.worst_second_beyond = self.worst_second_beyond.max(self.second.beyond.min(SECOND));
    }

    /// Adds those of another loop. Their worst seconds need not be one and the same: the worse of both counts.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
        self.worst_second = self.worst_second.max(other.worst_second);
        self.worst_second_beyond = self.worst_second_beyond.max(other.worst_second_beyond);
        for (own, theirs) in self.worst_second_over.iter_mut().zip(other.worst_second_over) {
            *own = (*own).max(theirs);
        }
    }

    pub(crate) fn to_json(self) -> Value {
        let over: Vec<_> =
            OVER.iter().zip(self.worst_second_over).map(|(over, sum)| (over.as_ps(), sum.as_ps())).collect();
        json!({
            "worst_second_over_ps": over,
            "count": self.count,
            "total_ps": self.total.as_ps(),
            "longest_ps": self.longest.as_ps(),
            "worst_second_ps": self.worst_second.as_ps(),
            "worst_second_beyond_ps": self.worst_second_beyond.as_ps(),
        })
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The most time since the last frame passed, and the time that the loop may then sleep. After the last of them it
/// sleeps as long as it likes: an idle lab is to cost nothing.
const SLEEPS: [(Duration, Duration); 3] = [
    (Duration::from_ms(200), Duration::from_ms(1)),
    (Duration::from_secs(2), Duration::from_ms(5)),
    (Duration::from_secs(60), Duration::from_ms(20)),
];

/// Measures the loop from one wake-up to the next.
#[derive(Debug)]
pub(crate) struct Watchfulness {
    /// The time when the loop woke last.
    woke: Time,
    /// The time when a frame passed last.
    passed: Option<Time>,
    /// Frames that had passed then.
    frames: u64,
    /// `true` if a frame passed within the longest time of [`SLEEPS`]: for those who look on from beside the loop.
    at_work: Arc<AtomicBool>,
}

impl Watchfulness {
    /// Of a loop that begins `now`.
    pub(crate) fn new(now: Time) -> Self {
        Self { woke: now, passed: None, frames: 0, at_work: Arc::default() }
    }

    /// Returns whether the lab is at work.
    pub(crate) fn at_work(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.at_work)
    }

    /// The loop has slept for `asked` or been woken before that, and goes on `now`; `frames` passed so far. Returns
    /// for how long it stood still.
    pub(crate) fn woke(&mut self, asked: Duration, now: Time, frames: u64) -> Duration {
        let stood_still = now.since(self.woke).saturating_sub(asked);
        self.woke = now;
        if frames != self.frames {
            (self.frames, self.passed) = (frames, Some(now));
        }
        stood_still
    }

    /// Returns how long the loop may sleep that would sleep for `wanted`.
    pub(crate) fn sleep(&self, wanted: Duration) -> Duration {
        let longest = self.passed.and_then(|passed| {
            let idle = self.woke.since(passed);
            SLEEPS.iter().find(|(since, _)| idle < *since).map(|(_, longest)| *longest)
        });
        if longest.is_some() != self.at_work.load(Ordering::Relaxed) {
            self.at_work.store(longest.is_some(), Ordering::Relaxed);
        }
        longest.map_or(wanted, |longest| wanted.min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    #[test]
    fn a_stop_in_a_sleep_is_a_pause_though_nothing_was_due_and_an_early_wake_up_is_none() {
        let mut watch = Watchfulness::new(at(0));
        assert_eq!(watch.woke(Duration::from_ms(5), at(2), 1), Duration::ZERO);
        assert_eq!(watch.woke(Duration::from_ms(5), at(307), 1), Duration::from_ms(300));
        // The time of a turn itself counts, too: nothing was read meanwhile.
        assert_eq!(watch.woke(Duration::ZERO, at(317), 1), Duration::from_ms(10));
    }

    #[test]
    fn the_loop_sleeps_the_longer_the_longer_nothing_passed() {
        let mut watch = Watchfulness::new(at(0));
        let wanted = Duration::from_secs(1);
        watch.woke(wanted, at(10), 0);
        assert_eq!(watch.sleep(wanted), wanted);
        watch.woke(wanted, at(20), 1);
        for (now, longest) in [(100, 1), (1000, 5), (10_000, 20), (70_000, 1000)] {
            watch.woke(wanted, at(now), 1);
            assert_eq!(watch.sleep(wanted), Duration::from_ms(longest), "at {now} ms");
            assert_eq!(watch.at_work().load(Ordering::Relaxed), longest < 1000);
        }
        watch.woke(wanted, at(70_001), 2);
        assert_eq!(watch.sleep(Duration::from_us(3)), Duration::from_us(3));
    }

    #[test]
    fn pauses_are_told_by_the_longest_and_by_the_worst_second() {
        let mut pauses = Pauses::default();
        for (late, now) in [(2, 100), (3, 900), (4, 1500), (200, 3100)] {
            pauses.observe(Duration::from_ms(late), at(now));
        }
        pauses.observe(Duration::from_us(900), at(3200));
        let told = pauses.to_json();
        assert_eq!((&told["count"], &told["total_ps"]), (&json!(4), &json!(209_000_000_000_u64)));
        assert_eq!(told["longest_ps"], json!(200_000_000_000_u64));
        // Half of the last pause lies in each of two seconds.
        assert_eq!(told["worst_second_ps"], json!(100_000_000_000_u64));
        assert_eq!(told["worst_second_beyond_ps"], json!(100_000_000_000_u64));
        // What each is longer than 1.25 ms, in the second in which the last ended.
        assert_eq!(told["worst_second_over_ps"][1], json!([1_250_000_000_u64, 198_750_000_000_u64]));
    }
}
