//! The way a line keeps its promise when it is looked at late.
//!
//! On the wall clock whoever drives the fabric may come late: the machine was busy elsewhere. The promise is that *no
//! window of a line carries more than its rate plus one frame*. So a line that is looked at late may catch up with a
//! little ([`catch_up`]); what it is later than that it gives up: the frames on it move back, each no closer to the
//! one before than the line rate allows. A gap between frames absorbs the move, and a line that nothing waits for
//! loses nothing. What a busy line did lose it regains afterwards by a thousandth of its rate. Each line has a
//! schedule of its own: that one is late costs no other anything. On the virtual clock nothing is ever late.

use twinnet_units::{Duration, Time};

/// While a line is behind it sends faster by one part in so many: less than one frame in 10 ms up to 1 Gbit/s, and
/// within the bound of the long-run rate.
const REGAINED_ONE_IN: u64 = 1000;

/// The least and the greatest time of [`catch_up`].
const CATCH_UP_RANGE: (Duration, Duration) = (Duration::from_us(40), Duration::from_us(500));

/// Returns the lateness at which a line may be looked at and still catch up: a third of the time that a frame of full
/// size takes on it, so that catching up never adds a frame to what the rate allows. At least 40 us, because the
/// kernel's timer tick alone takes the processor for 10 to 20 us a thousand times a second, and a line that gave that
/// up each time would lose 2 % of a gigabit; there catching up may add up to four frames
/// (docs/explanation/fidelity.md). At most 500 us: nothing is gained by more.
#[must_use]
pub fn catch_up(full_frame: Duration) -> Duration {
    Duration::from_ps(full_frame.as_ps() / 3).clamp(CATCH_UP_RANGE.0, CATCH_UP_RANGE.1)
}

/// The record of a line's lateness that it could not catch up with, since the record began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineRecord {
    /// The number of times it was looked at too late.
    pub times_late: u64,
    /// The latest that it was looked at.
    pub latest: Duration,
    /// Time for which frames waited and the line gave it up.
    pub lost: Duration,
    /// The time it made good since: by going faster, and by standing idle, where all that waited was sent. What it
    /// lost and did not regain is missing from its rate.
    pub regained: Duration,
    /// The most that was lost and not regained in one of the seconds before that of `second`.
    worst_before: Duration,
    /// The second that is counted.
    second: Second,
}

/// The time lost and regained in one second of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Second {
    number: u64,
    lost: Duration,
    regained: Duration,
}

impl LineRecord {
    /// The most that was lost and not regained in one second of the clock.
    #[must_use]
    pub fn missing_in_worst_second(&self) -> Duration {
        self.worst_before.max(self.second.lost.saturating_sub(self.second.regained))
    }

    /// Returns what a line did whose ends two fabrics have. The seconds in which most was missing need not be one and
    /// the same: their sum is the most that can have been.
    #[must_use]
    pub fn joined_with(&self, other: &Self) -> Self {
        Self {
            times_late: self.times_late + other.times_late,
            latest: self.latest.max(other.latest),
            lost: self.lost + other.lost,
            regained: self.regained + other.regained,
            worst_before: self.missing_in_worst_second() + other.missing_in_worst_second(),
            second: Second::default(),
        }
    }

    fn turn_to(&mut self, now: Time) {
        let number = now.as_ns() / 1_000_000_000;
        if number > self.second.number {
            self.worst_before = self.missing_in_worst_second();
            self.second = Second { number, ..Second::default() };
        }
    }

    fn lose(&mut self, lost: Duration, now: Time) {
        self.turn_to(now);
        self.second.lost += lost;
        self.lost += lost;
    }

    fn regain(&mut self, regained: Duration, now: Time) {
        self.turn_to(now);
        self.second.regained += regained;
        self.regained += regained;
    }
}

/// The schedule of one line.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The lateness at which the line may be looked at and still catch up.
    catch_up: Duration,
    /// The moment up to which all that the serialiser had to begin was moved already.
    excused_start: Time,
    /// Arrivals up to this moment were.
    excused_arrival: Time,
    /// By how much the serialiser was held back that is not known for a loss yet: it is one if a frame waits when it
    /// is free.
    held: Duration,
    /// The time that was lost and is not regained.
    behind: Duration,
    record: Option<Box<LineRecord>>,
}

impl Schedule {
    /// A schedule without a rate to keep: nothing is too late.
    pub(super) const UNRATED: Self = Self {
        catch_up: Duration::MAX,
        excused_start: Time::ZERO,
        excused_arrival: Time::ZERO,
        held: Duration::ZERO,
        behind: Duration::ZERO,
        record: None,
    };

    pub(super) fn set_catch_up(&mut self, catch_up: Duration) {
        self.catch_up = catch_up;
    }

    /// The moment to which what is due at `due` and looked at when the clock shows `wall` has to move; `None` while
    /// it can catch up.
    #[inline]
    pub(super) fn too_late(&self, due: Time, wall: Time) -> Option<Time> {
        if wall.since(due) <= self.catch_up {
            return None;
        }
        Some(Time::from_ps(wall.as_ps() - self.catch_up.as_ps()))
    }

    /// The same for what the serialiser begins. What was moved before happens now, however late, so that a driver who
    /// can never be on time goes on all the same.
    #[inline]
    pub(super) fn too_late_to_start(&self, due: Time, wall: Time) -> Option<Time> {
        self.too_late(due, wall).filter(|_| due > self.excused_start)
    }

    /// The serialiser begins at `moment` what it could not begin in time.
    pub(super) fn excuse_start(&mut self, moment: Time) {
        self.excused_start = self.excused_start.max(moment);
    }

    /// Returns `true` if an arrival that was due at `due` was moved before.
    pub(super) fn arrival_is_excused(&self, due: Time) -> bool {
        due <= self.excused_arrival
    }

    /// The line was looked at `late`.
    pub(super) fn note(&mut self, late: Duration) {
        let record = self.record.get_or_insert_default();
        record.times_late += 1;
        record.latest = record.latest.max(late);
    }

    /// Notes that what was to arrive until `moment` has been moved.
    pub(super) fn excuse_arrival(&mut self, moment: Time) {
        self.excused_arrival = self.excused_arrival.max(moment);
    }

    /// The serialiser is held back by `time`.
    pub(super) fn hold(&mut self, time: Duration) {
        self.held += time;
    }

    /// Returns `true` if something was lost that is not regained, or may be.
    pub(super) fn is_behind(&self) -> bool {
        self.held > Duration::ZERO || self.behind > Duration::ZERO
    }

    /// A frame that takes `serialisation` is begun at `now`, where the one before ended at `free_since`; returns how
    /// long the serialiser is busy.
    #[inline]
    pub(super) fn begin(&mut self, now: Time, free_since: Time, serialisation: Duration) -> Duration {
        if self.held == Duration::ZERO && self.behind == Duration::ZERO {
            return serialisation;
        }
        self.begin_behind(now, free_since, serialisation)
    }

    #[cold]
    fn begin_behind(&mut self, now: Time, free_since: Time, serialisation: Duration) -> Duration {
        let held = std::mem::take(&mut self.held);
        if now == free_since {
            self.record.get_or_insert_default().lose(held, now);
            self.behind += held;
        } else if self.behind > Duration::ZERO {
            self.behind = absorb(self.record.get_or_insert_default(), self.behind, now, free_since);
        }
        let regained = Duration::from_ps(serialisation.as_ps() / REGAINED_ONE_IN).min(self.behind);
        if regained > Duration::ZERO {
            self.behind = self.behind.saturating_sub(regained);
            self.record.get_or_insert_default().regain(regained, now);
        }
        serialisation.saturating_sub(regained)
    }

    /// The record as it stands at `now`, when the serialiser has been or will be free from `free_since` on.
    pub(super) fn record(&self, now: Time, free_since: Time) -> Option<LineRecord> {
        let mut record = self.record.as_deref().copied()?;
        absorb(&mut record, self.behind, now, free_since);
        Some(record)
    }

    /// Begins the record anew: what was lost before is regained in no record.
    pub(super) fn forget(&mut self) {
        self.record = None;
        self.behind = Duration::ZERO;
    }
}

/// Idle time until `now` makes good what a line was `behind`: nothing waited for the serialiser. Returns what is left
/// of it.
fn absorb(record: &mut LineRecord, behind: Duration, now: Time, free_since: Time) -> Duration {
    let absorbed = behind.min(now.since(free_since));
    if absorbed > Duration::ZERO {
        record.regain(absorbed, free_since + absorbed);
    }
    behind.saturating_sub(absorbed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_us(us)
    }

    fn at(moment: u64) -> Time {
        Time::ZERO + us(moment)
    }

    fn schedule() -> Schedule {
        let mut schedule = Schedule::UNRATED;
        schedule.set_catch_up(us(41));
        schedule
    }

    #[test]
    fn a_slow_line_may_catch_up_with_more_than_a_fast_one() {
        assert_eq!(catch_up(us(1230)), us(410));
        assert_eq!((catch_up(us(12)), catch_up(us(12_300))), (us(40), us(500)));
    }

    #[test]
    fn what_is_late_within_the_bound_stays_and_what_is_later_moves_to_the_bound() {
        let schedule = schedule();
        assert_eq!(schedule.too_late(at(100), at(141)), None);
        assert_eq!(schedule.too_late(at(100), at(142)), Some(at(101)));
        assert_eq!(schedule.too_late(at(100), Time::ZERO), None);
        assert_eq!(Schedule::UNRATED.too_late(at(0), at(u64::from(u32::MAX))), None);
    }

    #[test]
    fn a_hold_is_a_loss_only_where_a_frame_waited() {
        let mut idle = schedule();
        idle.hold(us(7));
        assert_eq!(idle.begin(at(20), at(10), us(123)), us(123));
        assert_eq!(idle.record(at(20), at(143)), None);
        let mut busy = schedule();
        busy.hold(us(7));
        busy.begin(at(10), at(10), us(123));
        assert_eq!(busy.record(at(20), at(133)).unwrap().lost, us(7));
    }

    #[test]
    fn what_was_lost_is_regained_by_a_thousandth_and_no_further() {
        let mut schedule = schedule();
        schedule.hold(Duration::from_ns(200));
        let mut now = at(0);
        let mut total = Duration::ZERO;
        for _ in 0..10 {
            let busy = schedule.begin(now, now, us(100));
            assert!(busy >= Duration::from_ns(99_900), "{busy:?}");
            now += busy;
            total += busy;
        }
        assert_eq!(total, Duration::from_ns(1_000_000 - 200));
        assert_eq!(schedule.record(now, now).unwrap().regained, Duration::from_ns(200));
    }

    #[test]
    fn a_line_that_stands_idle_after_a_loss_has_made_it_good() {
        let mut schedule = schedule();
        schedule.hold(us(500));
        let busy = schedule.begin(at(0), at(0), us(100));
        let free = Time::ZERO + busy;
        // Nothing came for longer than was lost: all was sent that there was to send, in the same second.
        let record = schedule.record(at(10_000), free).unwrap();
        assert_eq!((record.lost, record.regained), (us(500), us(500)));
        assert_eq!(record.missing_in_worst_second(), Duration::ZERO);
        // The same seen at the next frame, which goes at the line's own rate again.
        assert_eq!(schedule.begin(at(10_000), free, us(100)), us(100));
        assert_eq!(schedule.record(at(10_000), at(10_100)).unwrap(), record);
        // A frame that waited is no idle time, and what is due later is none, either.
        schedule.hold(us(30));
        schedule.begin(at(10_100), at(10_100), us(1));
        assert_eq!(
            schedule.record(at(10_100), at(10_101)).unwrap().missing_in_worst_second(),
            Duration::from_ns(29_999)
        );
    }

    #[test]
    fn the_worst_second_is_told() {
        let mut schedule = schedule();
        for (ms, lost) in [(100, 3), (900, 4), (1100, 5), (2500, 1)] {
            schedule.hold(us(lost));
            let now = Time::ZERO + Duration::from_ms(ms);
            // Shorter than what a thousandth can be regained of.
            schedule.begin(now, now, Duration::from_ps(1));
        }
        let now = Time::ZERO + Duration::from_ms(2500);
        let record = schedule.record(now, now).unwrap();
        assert_eq!((record.lost, record.missing_in_worst_second()), (us(13), us(7)));
    }
}
