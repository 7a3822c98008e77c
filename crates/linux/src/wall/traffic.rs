//! The time in which frames moved, and what pauses of the loop took of it.
//!
//! A run can be much shorter than a second, and so can its traffic. A pause of 5 ms is half a percent of a second, and
//! 5 % of the frames of a tenth of a second.

use serde_json::{json, Value};
use twinnet_units::{Duration, Time};

use crate::wall::pauses::Pauses;

/// The time in which frames moved since the record began, and what pauses took of it. The loop tells it each turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Between frames that passed one after the other, of each gap at most [`Traffic::NEAR`].
    moving: Duration,
    /// Pauses with a frame that passed shortly before or after them.
    paused: Duration,
    /// Of each of them what was longer than [`Pauses::LEAST`].
    beyond: Duration,
    /// Frames that had passed at the last look, and when one passed last.
    frames: Option<u64>,
    passed: Option<Time>,
    /// Pauses since then, after which no frame has passed yet, and the end of the last of them.
    open: Option<(Time, Duration, Duration)>,
    /// The greatest shares of the parts that were added.
    others: (f64, f64),
}

impl Traffic {
    /// A gap between frames is time of traffic up to this length.
    const NEAR: Duration = Duration::from_ms(100);

    /// The loop goes on at `now` after it `stood_still`; `frames` passed so far.
    #[inline]
    pub(crate) fn observe(&mut self, frames: u64, stood_still: Duration, now: Time) {
        let passed = frames != self.frames.unwrap_or(frames);
        self.frames = Some(frames);
        if passed || stood_still >= Pauses::LEAST {
            self.enter(passed, stood_still, now);
        }
    }

    fn enter(&mut self, passed: bool, stood_still: Duration, now: Time) {
        if passed {
            if let Some((ended, paused, beyond)) = self.open.take() {
                if now.since(ended) < Self::NEAR + stood_still {
                    self.paused += paused;
                    self.beyond += beyond;
                }
            }
            self.moving += self.passed.map_or(Duration::ZERO, |before| now.since(before).min(Self::NEAR));
            self.passed = Some(now);
        }
        if stood_still < Pauses::LEAST {
            return;
        }
        let beyond = stood_still.saturating_sub(Pauses::LEAST);
        if passed || self.passed.is_some_and(|before| now.since(before) < Self::NEAR + stood_still) {
            self.paused += stood_still;
            self.beyond += beyond;
        } else {
            let kept = self.open.filter(|(ended, ..)| now.since(*ended) < Self::NEAR + stood_still);
            let (_, before, beyond_before) = kept.unwrap_or_default();
            self.open = Some((now, before + stood_still, beyond_before + beyond));
        }
    }

    /// Adds what another loop of the same network saw: the greater share of both counts.
    pub(crate) fn add(&mut self, other: &Self) {
        let (own, theirs) = (self.shares(), other.shares());
        self.others = (own.0.max(theirs.0), own.1.max(theirs.1));
        self.moving = self.moving.max(other.moving);
    }

    /// The shares of the time of traffic that pauses took, and what of them was beyond the least. A time that is
    /// shorter than [`Traffic::NEAR`] counts as that: of a single frame nothing can be a share.
    #[allow(clippy::cast_precision_loss)]
    fn shares(&self) -> (f64, f64) {
        let moving = self.moving.max(Self::NEAR).as_ps() as f64;
        let of = |time: Duration| (time.as_ps() as f64 / moving).min(1.0);
        (of(self.paused).max(self.others.0), of(self.beyond).max(self.others.1))
    }

    pub(crate) fn to_json(self) -> Value {
        let (paused, beyond) = self.shares();
        json!({"moving_ps": self.moving.as_ps(), "paused_share": paused, "paused_beyond_share": beyond})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    /// A frame each 10 ms from `from` for `ms`; the loop stands still for `stop` in the middle.
    fn frames(traffic: &mut Traffic, from: u64, ms: u64, stop: u64) {
        for step in 0..ms / 10 {
            let stood_still = if step == ms / 20 { stop } else { 0 };
            let frames = traffic.frames.unwrap_or(0) + 1;
            traffic.observe(frames, Duration::from_ms(stood_still), at(from + step * 10));
        }
    }

    #[test]
    fn a_stop_in_a_short_run_is_a_large_share_of_its_traffic_also_after_an_idle_second() {
        for idle in [0, 1000] {
            let mut traffic = Traffic::default();
            traffic.observe(0, Duration::ZERO, at(0));
            frames(&mut traffic, 10 + idle, 200, 6);
            let told = traffic.to_json();
            assert!((told["paused_share"].as_f64().unwrap() - 6.0 / 190.0).abs() < 1e-9, "{told}");
            assert!((told["paused_beyond_share"].as_f64().unwrap() - 5.0 / 190.0).abs() < 1e-9, "{told}");
        }
    }

    #[test]
    fn a_pause_counts_if_a_frame_passes_shortly_before_or_after_it() {
        let stop = Duration::from_ms(5);
        for (stopped_at, then, counts) in [(1000, 1050, true), (1000, 1150, false), (1000, 5000, false)] {
            let mut traffic = Traffic::default();
            traffic.observe(0, Duration::ZERO, at(0));
            traffic.observe(0, stop, at(stopped_at));
            traffic.observe(1, Duration::ZERO, at(then));
            assert_eq!(traffic.paused > Duration::ZERO, counts, "{then}");
        }
        let mut traffic = Traffic::default();
        traffic.observe(0, Duration::ZERO, at(0));
        traffic.observe(1, Duration::ZERO, at(10));
        traffic.observe(1, stop, at(60));
        traffic.observe(1, stop, at(400));
        assert_eq!(traffic.paused, stop);
    }

    #[test]
    fn of_two_loops_the_greater_share_counts() {
        let (mut long, mut short) = (Traffic::default(), Traffic::default());
        long.observe(0, Duration::ZERO, at(0));
        short.observe(0, Duration::ZERO, at(0));
        frames(&mut long, 10, 5000, 6);
        frames(&mut short, 10, 200, 6);
        let alone = short.to_json();
        long.add(&short);
        assert_eq!(long.to_json()["paused_share"], alone["paused_share"]);
        assert_eq!(long.to_json()["moving_ps"], json!(4_990_000_000_000_u64));
    }
}
