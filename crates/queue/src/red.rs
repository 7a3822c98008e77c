//! Random early detection: S. Floyd and V. Jacobson, *Random Early Detection Gateways for Congestion Avoidance*,
//! IEEE/ACM Transactions on Networking, 1993; its *gentle* variant (Floyd 2000); marks instead of drops as RFC 3168
//! has them.
//!
//! The queue is averaged by an exponential filter, which also decays over the time that the line was idle, as if
//! frames of the usual length had found an empty queue. Between two thresholds a frame is dropped with a
//! probability that grows with the average and with the frames since the last drop, so that drops come at uniformly
//! distributed distances (section 7, method 2). All arithmetic is fixed-point with 32 binary places.

use std::collections::VecDeque;

use rand::RngExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::random::Rng;
use twinnet_units::{Duration, Rate, Time};

use super::config::Site;
use super::ecn::mark_congestion;
use super::ranges::{check_bytes, check_rate, check_share, refuse, QueueError, HIGHEST_RATE_BPS, MOST_BYTES};
use super::stamped::StampedQueue;
use super::train::for_each_frame;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

/// 1 in fixed-point numbers.
const ONE: u64 = 1 << 32;
/// The rate by which idle time is measured where neither the configuration nor the line tells one: that of the
/// kernel's `red`.
const DEFAULT_RATE_BPS: u64 = 10_000_000;

/// `{"kind": "red", ...}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedConfig {
    /// Below this average nothing is dropped.
    #[schemars(range(min = 1, max = MOST_BYTES))]
    pub min_bytes: u64,
    /// The average at which the probability reaches `max_probability`; null is three times `min_bytes`.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_BYTES))]
    pub max_bytes: Option<u64>,
    /// Link-layer bytes it keeps; null is four times `max_bytes`.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_BYTES))]
    pub limit_bytes: Option<u64>,
    /// Probability at `max_bytes`.
    #[serde(default = "default_probability")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub max_probability: f64,
    /// Weight of the newest length in the average.
    #[serde(default = "default_weight")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub weight: f64,
    /// The usual frame, by which idle time is counted.
    #[serde(default = "default_frame")]
    #[schemars(range(min = 1, max = MOST_BYTES))]
    pub average_frame_bytes: u64,
    /// The rate, by which idle time is counted; null is that of the line.
    #[serde(default)]
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    pub rate_bps: Option<u64>,
    /// From `max_bytes` to twice that, the probability grows to 1 instead of leaping to it.
    #[serde(default = "default_gentle")]
    pub gentle: bool,
    /// Marks frames whose sender understands it, instead of dropping them early.
    #[serde(default)]
    pub ecn: bool,
}

const fn default_probability() -> f64 {
    0.1
}

const fn default_weight() -> f64 {
    0.002
}

const fn default_frame() -> u64 {
    1000
}

const fn default_gentle() -> bool {
    true
}

impl RedConfig {
    pub(super) fn build_at(&self, path: &str, site: Site<'_>) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        check_bytes(&format!("{path}.min_bytes"), self.min_bytes)?;
        let max_bytes = self.max_bytes.unwrap_or(self.min_bytes.saturating_mul(3));
        check_bytes(&format!("{path}.max_bytes"), max_bytes)?;
        if max_bytes <= self.min_bytes {
            let allowed = format!("more than min_bytes, {}", self.min_bytes);
            return refuse(&format!("{path}.max_bytes"), max_bytes.to_string(), allowed);
        }
        let limit_bytes = self.limit_bytes.unwrap_or(max_bytes.saturating_mul(4));
        check_bytes(&format!("{path}.limit_bytes"), limit_bytes)?;
        if limit_bytes < max_bytes {
            let allowed = format!("at least max_bytes, {max_bytes}");
            return refuse(&format!("{path}.limit_bytes"), limit_bytes.to_string(), allowed);
        }
        check_share(&format!("{path}.max_probability"), self.max_probability)?;
        check_share(&format!("{path}.weight"), self.weight)?;
        check_bytes(&format!("{path}.average_frame_bytes"), self.average_frame_bytes)?;
        let rate_bps = self.rate_bps.or(site.rate_bps).unwrap_or(DEFAULT_RATE_BPS);
        check_rate(&format!("{path}.rate_bps"), rate_bps, HIGHEST_RATE_BPS)?;
        let frame_time =
            Rate::from_bps(rate_bps).map_or(Duration::MAX, |rate| rate.serialise(self.average_frame_bytes));
        Ok(Box::new(Red {
            queue: StampedQueue::default(),
            held_bytes: 0,
            limit_bytes,
            average: Average::new(fixed(self.weight), frame_time),
            curve: Curve {
                min_bytes: self.min_bytes,
                max_bytes,
                peak: fixed(self.max_probability),
                gentle: self.gentle,
            },
            ecn: self.ecn,
            since_last: 0,
            random: site.random(path),
        }))
    }
}

/// `share`, from 0 to 1, in fixed point.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn fixed(share: f64) -> u64 {
    ((share * ONE as f64).round() as u64).clamp(1, ONE)
}

/// The filtered length of the queue in bytes, in fixed point.
struct Average {
    level: u64,
    weight: u64,
    frame_time: Duration,
    idle_since: Option<Time>,
}

impl Average {
    fn new(weight: u64, frame_time: Duration) -> Self {
        Self { level: 0, weight, frame_time, idle_since: Some(Time::ZERO) }
    }

    /// A frame arrives at `now` and finds `bytes` in the queue. `bytes` is below 2^31, so that no level overflows.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn notice(&mut self, bytes: u64, now: Time) {
        if bytes == 0 {
            let since = *self.idle_since.get_or_insert(now);
            let frames = now.since(since).as_ps() / self.frame_time.as_ps().max(1);
            if frames > 0 {
                // What is left of a frame's time counts the next time, or arrivals that are all dropped would stop
                // the decay.
                self.idle_since = Some(since + Duration::from_ps(frames * self.frame_time.as_ps()));
                self.level = times(self.level, power(ONE - self.weight, frames));
            }
        } else {
            let change = (i128::from(bytes) << 32) - i128::from(self.level);
            self.level = (i128::from(self.level) + ((change * i128::from(self.weight)) >> 32)) as u64;
        }
    }
}

/// `base` to the power of `exponent`, both base and result from 0 to 1 in fixed point.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 && result > 0 {
        if exponent & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    result
}

/// The product of two fixed-point numbers, one of them at most 1.
#[allow(clippy::cast_possible_truncation)]
fn times(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 32) as u64
}

/// The probability as a function of the average.
struct Curve {
    min_bytes: u64,
    max_bytes: u64,
    peak: u64,
    gentle: bool,
}

/// The action that the average asks for.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    /// Drop or mark with this probability, in fixed point.
    Maybe(u64),
    Drop,
}

impl Curve {
    #[allow(clippy::cast_possible_truncation)]
    fn verdict(&self, level: u64) -> Verdict {
        let (min, max) = (self.min_bytes << 32, self.max_bytes << 32);
        let share =
            |above: u64, range: u64, height: u64| (u128::from(above) * u128::from(height) / u128::from(range)) as u64;
        if level < min {
            Verdict::Keep
        } else if level < max {
            Verdict::Maybe(share(level - min, max - min, self.peak))
        } else if self.gentle && level - max < max {
            Verdict::Maybe(self.peak + share(level - max, max, ONE - self.peak))
        } else {
            Verdict::Drop
        }
    }
}

/// The discipline.
pub struct Red {
    queue: StampedQueue,
    held_bytes: u64,
    limit_bytes: u64,
    average: Average,
    curve: Curve,
    ecn: bool,
    /// Frames since the last one that was dropped or marked early.
    since_last: u64,
    random: Rng,
}

impl Red {
    /// Returns `true` if chance hits a frame that finds the probability `base`: with base / (1 - count x base), which
    /// makes the distance between two hits uniform on 1 to 1/base.
    fn hits(&mut self, base: u64) -> bool {
        let sum = self.since_last.saturating_mul(base);
        let draw = u64::from(self.random.random::<u32>());
        let hit = sum >= ONE || u128::from(draw) * u128::from(ONE - sum) < u128::from(base) << 32;
        self.since_last = if hit { 0 } else { self.since_last + 1 };
        hit
    }

    fn enqueue_one(&mut self, mut frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let waiting = self.queue.backlog().bytes + self.held_bytes;
        self.average.notice(waiting, now);
        match self.curve.verdict(self.average.level) {
            Verdict::Keep => self.since_last = 0,
            Verdict::Maybe(base) => {
                if self.hits(base) {
                    if !(self.ecn && mark_congestion(&mut frame)) {
                        drops.dropped(frame, DropReason::Early);
                        return;
                    }
                    drops.marked(&frame);
                }
            }
            // RFC 3168, 7: above the upper threshold frames are dropped, not marked.
            Verdict::Drop => {
                self.since_last = 0;
                drops.dropped(frame, DropReason::Early);
                return;
            }
        }
        if waiting + frame.link_bytes() > self.limit_bytes {
            drops.dropped(frame, DropReason::Overlimit);
        } else {
            self.average.idle_since = None;
            self.queue.push(frame, now);
        }
    }
}

impl QueueDiscipline for Red {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        for_each_frame(frame, |frame| self.enqueue_one(frame, now, drops));
    }

    fn dequeue(&mut self, now: Time, _drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        let (_, frame) = self.queue.pop()?;
        if self.queue.is_empty() {
            self.average.idle_since = Some(now);
        }
        Some(frame)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        (self.average.level, self.average.idle_since) = (0, Some(Time::ZERO));
        self.queue.drain()
    }

    fn hold(&mut self, held: Backlog) {
        self.held_bytes = held.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: Curve = Curve { min_bytes: 10_000, max_bytes: 30_000, peak: ONE / 10, gentle: true };

    #[test]
    fn the_probability_grows_from_nothing_to_its_peak_and_gently_on_to_one() {
        let at = |bytes: u64| CURVE.verdict(bytes << 32);
        assert_eq!(at(9_999), Verdict::Keep);
        assert_eq!(at(10_000), Verdict::Maybe(0));
        assert_eq!(at(20_000), Verdict::Maybe(ONE / 20));
        assert_eq!(at(30_000), Verdict::Maybe(ONE / 10));
        let Verdict::Maybe(middle) = at(45_000) else { panic!("the gentle region drops by chance") };
        assert!(middle.abs_diff(ONE / 20 * 11) <= 20, "0.55 is half way from 0.1 to 1");
        assert_eq!(at(60_000), Verdict::Drop);
        assert_eq!(Curve { gentle: false, ..CURVE }.verdict(30_000 << 32), Verdict::Drop);
    }

    #[test]
    fn the_average_follows_the_filter_of_the_paper() {
        let mut average = Average::new(fixed(0.002), Duration::from_us(100));
        let mut expected = 0.0_f64;
        for step in 0..2000_u64 {
            average.notice(50_000, Time::from_ns(step));
            expected += 0.002 * (50_000.0 - expected);
        }
        let level = average.level as f64 / ONE as f64;
        assert!((level - expected).abs() < 0.01, "{level} instead of {expected}");
    }

    #[test]
    fn the_average_decays_over_idle_time_as_over_frames_that_find_nothing() {
        let mut average = Average::new(fixed(0.002), Duration::from_us(100));
        for _ in 0..3000 {
            average.notice(50_000, Time::ZERO);
        }
        let before = average.level as f64;
        average.idle_since = Some(Time::ZERO);
        average.notice(0, Time::ZERO + Duration::from_us(100 * 700 + 50));
        let decay = average.level as f64 / before;
        assert!((decay - 0.998_f64.powi(700)).abs() < 1e-6, "{decay}");
    }

    #[test]
    fn the_average_decays_also_under_arrivals_that_come_faster_than_frames_leave_and_find_nothing() {
        let mut average = Average::new(fixed(0.002), Duration::from_us(100));
        average.level = ONE * 50_000;
        for number in 0..7000_u64 {
            average.notice(0, Time::ZERO + Duration::from_us(30 * number));
        }
        let decay = average.level as f64 / (ONE as f64 * 50_000.0);
        assert!((decay - 0.998_f64.powi(2099)).abs() < 1e-4, "{decay}");
    }

    #[test]
    fn distances_between_drops_are_uniform_up_to_the_inverse_of_the_probability() {
        let json = r#"{"min_bytes":1000}"#;
        let config: RedConfig = serde_json::from_str(json).unwrap();
        assert!(config.build_at("queue", Site::default()).is_ok());
        let mut red = Red {
            queue: StampedQueue::default(),
            held_bytes: 0,
            limit_bytes: 1,
            average: Average::new(1, Duration::from_us(1)),
            curve: CURVE,
            ecn: false,
            since_last: 0,
            random: twinnet_units::random::stream(7, "test"),
        };
        let base = ONE / 20;
        let (mut counts, mut distance) = ([0_u32; 21], 0_usize);
        for _ in 0..420_000 {
            distance += 1;
            if red.hits(base) {
                counts[distance.min(20)] += 1;
                distance = 0;
            }
        }
        // 40,000 drops, 2000 for each distance from 1 to 20: five standard deviations are 218.
        assert_eq!(counts[0], 0);
        for (distance, count) in counts.iter().enumerate().skip(1) {
            assert!(count.abs_diff(2000) < 218, "distance {distance} came {count} times");
        }
    }
}
