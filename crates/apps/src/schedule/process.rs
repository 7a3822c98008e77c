//! The times at which datagrams are due: a process of gaps, alone or in talkspurts.
//!
//! A process gives distances from one datagram to the next, exact in picoseconds; its user adds them up, so that
//! errors never accumulate. Periods of an on/off process begin with a datagram; a gap that would reach over the end
//! of its period ends there, and the next datagram is due when the next period begins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::Duration;

use crate::check::ConfigError;
use crate::schedule::distribution::Distribution;
use crate::schedule::random::Stream;

/// Gaps, and periods of talk and silence, last at most an hour: draws are cut there.
const BOUNDS_PS: (f64, f64) = (0.0, 3.6e15);
/// A period of talk lasts at least a microsecond: the shortest that that keeps a source from changing periods
/// without end.
const LEAST_ON_PS: f64 = 1e6;

/// Periods of talk and of silence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// The periods of talk.
    pub on_ps: Distribution,
    /// The periods of silence.
    pub off_ps: Distribution,
}

impl OnOff {
    pub(crate) fn check(&self, kind: &'static str) -> Result<(), ConfigError> {
        self.on_ps.check(kind, "on_ps", (LEAST_ON_PS, BOUNDS_PS.1))?;
        self.off_ps.check(kind, "off_ps", BOUNDS_PS)
    }
}

/// Refuses an impossible distribution of gaps.
pub(crate) fn check_gaps(kind: &'static str, gap: &Distribution) -> Result<(), ConfigError> {
    gap.check(kind, "gap_ps", BOUNDS_PS)
}

/// A running process.
#[derive(Clone, Debug)]
pub struct GapProcess {
    gap: Distribution,
    on_off: Option<OnOff>,
    /// The gaps' own stream, and the periods': a change of one leaves the other's draws as they were.
    gaps: Stream,
    periods: Stream,
    /// The time that is left of the period of talk.
    left_ps: u64,
}

impl GapProcess {
    /// A process that begins with a period of talk. `seed` is its own.
    #[must_use]
    pub fn new(gap: Distribution, on_off: Option<OnOff>, seed: u64) -> Self {
        let mut gaps = Stream::new(seed);
        let mut periods = Stream::new(gaps.number());
        let left_ps = on_off.map_or(0, |on_off| draw_ps(&on_off.on_ps, &mut periods, (LEAST_ON_PS, BOUNDS_PS.1)));
        Self { gap, on_off, gaps, periods, left_ps }
    }

    /// The distance to the next datagram.
    pub fn distance(&mut self) -> Duration {
        let gap = draw_ps(&self.gap, &mut self.gaps, BOUNDS_PS);
        let Some(on_off) = self.on_off else { return Duration::from_ps(gap) };
        if gap < self.left_ps {
            self.left_ps -= gap;
            return Duration::from_ps(gap);
        }
        let silence = draw_ps(&on_off.off_ps, &mut self.periods, BOUNDS_PS);
        let distance = Duration::from_ps(self.left_ps.saturating_add(silence));
        self.left_ps = draw_ps(&on_off.on_ps, &mut self.periods, (LEAST_ON_PS, BOUNDS_PS.1));
        distance
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn draw_ps(distribution: &Distribution, stream: &mut Stream, bounds: (f64, f64)) -> u64 {
    distribution.draw(stream, bounds).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::distribution::Shape;

    const MS: f64 = 1e9;

    fn voice() -> (Distribution, OnOff) {
        let exponential = |mean| Distribution { shape: Shape::Exponential { mean }, least: None, most: None };
        let on_off = OnOff { on_ps: exponential(1000.0 * MS), off_ps: exponential(1350.0 * MS) };
        (Distribution::constant(20.0 * MS), on_off)
    }

    #[test]
    fn talk_and_silence_have_their_shares_of_the_time() {
        let (gap, on_off) = voice();
        let mut process = GapProcess::new(gap, Some(on_off), 5);
        let gaps: Vec<f64> = (0..100_000).map(|_| process.distance().as_ps() as f64).collect();
        let talk = gaps.iter().filter(|gap| **gap == 20.0 * MS).count() as f64;
        let spurts = gaps.len() as f64 - talk;
        // A period of exponential length T holds 1 + floor(T / 20 ms) datagrams: 1 / (1 - exp(-20 / 1000)) in the mean.
        let expected = 1.0 / (1.0 - (-0.02_f64).exp());
        let mean = gaps.len() as f64 / spurts;
        // Five standard errors of a geometric mean over some 2000 spurts.
        assert!((mean / expected - 1.0).abs() < 5.0 / spurts.sqrt(), "{mean} datagrams a spurt");
        let cycle = gaps.iter().sum::<f64>() / spurts;
        assert!((cycle / (2350.0 * MS) - 1.0).abs() < 5.0 / spurts.sqrt(), "{cycle} ps a cycle");
    }

    #[test]
    fn periods_do_not_depend_on_what_gaps_are_drawn() {
        let (gap, on_off) = voice();
        let silences = |gap: Distribution| {
            let mut process = GapProcess::new(gap, Some(on_off), 5);
            let mut at = 0;
            let mut ends = Vec::new();
            while ends.len() < 20 {
                let before = process.periods.clone().number();
                at += process.distance().as_ps();
                if process.periods.clone().number() != before {
                    ends.push(at);
                }
            }
            ends
        };
        let other = Distribution { shape: Shape::Exponential { mean: 10.0 * MS }, least: None, most: None };
        assert_eq!(silences(gap), silences(other));
    }
}
