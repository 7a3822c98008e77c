//! How fast interfaces hand frames over in virtual time where no line limits them.
//!
//! Computing takes no time there. Without a limit a line without a rate would carry hundreds of gigabits a second, more
//! than any machine does, and each of these seconds would take the machine as long as so many frames do. So an
//! interface at such a line hands over as a fast machine's would.

use twinnet_fabric::PortId;
use twinnet_units::{Duration, Time};

/// What a frame or segment takes, however short it is.
const EACH: Duration = Duration::from_us(1);
/// What each of its bytes takes: 20 Gbit/s.
const BYTE: Duration = Duration::from_ps(400);
/// What is handed over at once, before it waits: a turn of the loop is more than a frame.
const BURST: Duration = Duration::from_us(100);

/// When each interface may be read again.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// By port: the time by which what it has handed over is through; `None` where a line limits it.
    through: Vec<Option<Time>>,
    /// The ports that have to wait, and until when.
    waiting: Vec<(Time, PortId)>,
}

impl Pace {
    /// For ports whose lines have a rate or not.
    pub(crate) fn of(rated: impl Iterator<Item = bool>) -> Self {
        Self { through: rated.map(|rated| (!rated).then_some(Time::ZERO)).collect(), waiting: Vec::new() }
    }

    /// The line from `port` has a rate from now on, or none.
    pub(crate) fn change(&mut self, port: PortId, rated: bool) {
        if let Some(through) = self.through.get_mut(port.0 as usize) {
            *through = if rated { None } else { through.or(Some(Time::ZERO)) };
        }
    }

    /// Returns `true` if `port` is not to be read now; it is [due](Self::due) when it is.
    pub(crate) fn holds(&mut self, port: PortId, now: Time) -> bool {
        let Some(Some(through)) = self.through.get(port.0 as usize) else { return false };
        let holds = *through > now + BURST;
        if holds && !self.waiting.iter().any(|(_, one)| *one == port) {
            self.waiting.push((*through, port));
        }
        holds
    }

    /// `port` has handed over `bytes` in one piece.
    pub(crate) fn took(&mut self, port: PortId, bytes: usize, now: Time) {
        if let Some(Some(through)) = self.through.get_mut(port.0 as usize) {
            *through = (*through).max(now) + EACH + Duration::from_ps(BYTE.as_ps() * bytes as u64);
        }
    }

    /// The time at which a port is due next.
    pub(crate) fn next(&self) -> Option<Time> {
        self.waiting.iter().map(|(until, _)| *until).min()
    }

    /// Takes out a port that may be read again.
    pub(crate) fn due(&mut self, now: Time) -> Option<PortId> {
        let at = self.waiting.iter().position(|(until, _)| *until <= now)?;
        Some(self.waiting.remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_a_limit_hands_over_twenty_gigabits_and_one_with_a_limit_what_it_has() {
        let (slow, fast) = (PortId(0), PortId(1));
        let mut pace = Pace::of([true, false].into_iter());
        let (mut now, end, mut bytes) = (Time::ZERO, Time::ZERO + Duration::from_ms(10), 0_u64);
        while now < end {
            assert!(!pace.holds(slow, now));
            pace.took(slow, 65_000, now);
            while !pace.holds(fast, now) {
                pace.took(fast, 65_000, now);
                bytes += 65_000;
            }
            now = pace.next().unwrap();
            assert_eq!(pace.due(now), Some(fast));
            assert_eq!(pace.due(now), None);
        }
        // 26 us for the bytes of each segment and one for itself, and a burst at the end.
        let gigabits = bytes as f64 * 8.0 / 10e-3 / 1e9;
        assert!((19.2..19.5).contains(&gigabits), "{gigabits}");
    }

    #[test]
    fn a_line_that_gets_a_rate_limits_by_itself_from_then_on() {
        let mut pace = Pace::of([false].into_iter());
        pace.took(PortId(0), 1_000_000, Time::ZERO);
        assert!(pace.holds(PortId(0), Time::ZERO));
        pace.change(PortId(0), true);
        assert!(!pace.holds(PortId(0), Time::ZERO));
        pace.change(PortId(0), false);
        assert!(!pace.holds(PortId(0), Time::ZERO));
    }
}
