//! Proportional integral controller enhanced: R. Pan, P. Natarajan, F. Baker and G. White, *Proportional Integral
//! Controller Enhanced (PIE)*, RFC 8033.
//!
//! Arriving frames are dropped with a probability that is set every `update_ps` from how far the delay lies from
//! its target and where it goes. The delay is that of the frame at the head, by its time stamp (RFC 8033, 4.3,
//! allows stamps in place of an estimated rate). Left out: the switching on and off and the derandomisation of
//! sections 5.3 and 5.4, which are optional. Probabilities are fixed-point numbers with 56 binary places. There is
//! no timer: updates that are due are made before the next frame comes or goes, each with the delay of its own
//! moment.

use std::collections::VecDeque;

use rand::RngExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_packet::Frame;
use twinnet_units::random::Rng;
use twinnet_units::{Duration, Time};

use super::config::{Site, DEFAULT_LIMIT_FRAMES};
use super::ecn::mark_congestion;
use super::ranges::{
    check_frames, check_range, check_span, QueueError, LONGEST_SPAN_PS, MOST_FRAMES, SHORTEST_SPAN_PS,
};
use super::stamped::StampedQueue;
use super::train::for_each_frame;
use super::{Backlog, DropReason, DropSink, QueueDiscipline};

/// 1 in fixed-point numbers.
const ONE: i128 = 1 << 56;
/// `alpha` is 1/8 and `beta` 10/8 for each second of delay (RFC 8033, 6).
const EIGHTHS_OF_SECOND_PS: i128 = 8_000_000_000_000;
const BETA_OVER_ALPHA: i128 = 10;
/// A millisecond: bounds the updates that are to be made up for after a stall.
const SHORTEST_UPDATE_PS: u64 = 1_000_000_000;
/// RFC 8033, 4.1: two packets of a usual length are always let in.
const SMALL_BACKLOG_BYTES: u64 = 2 * 1514;

/// `{"kind": "pie", ...}`; the defaults are those of RFC 8033, 4, and the limit the kernel's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PieConfig {
    /// Frames it keeps.
    #[schemars(range(min = 1, max = MOST_FRAMES))]
    pub limit_frames: u64,
    /// The delay that is aimed at.
    #[schemars(range(min = SHORTEST_SPAN_PS, max = LONGEST_SPAN_PS))]
    pub target_ps: u64,
    /// The period after which the probability is set.
    #[schemars(range(min = SHORTEST_UPDATE_PS, max = LONGEST_SPAN_PS))]
    pub update_ps: u64,
    /// For so long after a quiet time nothing is dropped.
    #[schemars(range(min = SHORTEST_SPAN_PS, max = LONGEST_SPAN_PS), extend("or_zero" = true))]
    pub burst_ps: u64,
    /// Marks frames whose sender understands it while the probability is below 10 %.
    pub ecn: bool,
}

impl Default for PieConfig {
    fn default() -> Self {
        Self {
            limit_frames: DEFAULT_LIMIT_FRAMES,
            target_ps: 15_000_000_000,
            update_ps: 15_000_000_000,
            burst_ps: 150_000_000_000,
            ecn: false,
        }
    }
}

impl PieConfig {
    pub(super) fn build_at(&self, path: &str, site: Site<'_>) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        check_frames(&format!("{path}.limit_frames"), self.limit_frames)?;
        check_span(&format!("{path}.target_ps"), self.target_ps)?;
        check_range(&format!("{path}.update_ps"), self.update_ps, SHORTEST_UPDATE_PS, LONGEST_SPAN_PS)?;
        if self.burst_ps > 0 {
            check_span(&format!("{path}.burst_ps"), self.burst_ps)?;
        }
        Ok(Box::new(Pie {
            queue: StampedQueue::default(),
            held_frames: 0,
            limit_frames: self.limit_frames,
            ecn: self.ecn,
            controller: Controller::new(
                Duration::from_ps(self.target_ps),
                Duration::from_ps(self.update_ps),
                Duration::from_ps(self.burst_ps),
            ),
            random: site.random(path),
        }))
    }
}

/// The probability and what sets it.
struct Controller {
    target: Duration,
    period: Duration,
    burst: Duration,
    probability: i128,
    delay_before: Duration,
    burst_left: Duration,
    next_update: Time,
}

impl Controller {
    fn new(target: Duration, period: Duration, burst: Duration) -> Self {
        Self {
            target,
            period,
            burst,
            probability: 0,
            delay_before: Duration::ZERO,
            burst_left: burst,
            next_update: Time::ZERO + period,
        }
    }

    /// Makes all updates that are due; `head_came` is when the frame at the head came, `None` for an empty queue:
    /// nothing has come or gone since the update before.
    fn catch_up(&mut self, head_came: Option<Time>, now: Time) {
        while self.next_update <= now && self.next_update < Time::MAX {
            let at = self.next_update;
            let delay = head_came.map_or(Duration::ZERO, |came| at.since(came));
            let before = (self.probability, self.delay_before, self.burst_left);
            self.update(delay);
            self.next_update = at + self.period;
            let settled = if head_came.is_some() {
                self.probability == ONE && before.0 == ONE && self.burst_left == Duration::ZERO && delay > self.target
            } else {
                before == (self.probability, self.delay_before, self.burst_left)
            };
            if settled {
                self.skip_to(head_came, now);
            }
        }
    }

    /// Further updates would change nothing but the remembered delay.
    fn skip_to(&mut self, head_came: Option<Time>, now: Time) {
        if self.next_update > now {
            return;
        }
        let skipped = now.since(self.next_update).as_ps() / self.period.as_ps().max(1);
        let last = self.next_update + Duration::from_ps(skipped * self.period.as_ps());
        self.delay_before = head_came.map_or(Duration::ZERO, |came| last.since(came));
        self.next_update = last + self.period;
    }

    /// One update with the present delay (RFC 8033, 4.2, 4.4 and 5.5).
    fn update(&mut self, delay: Duration) {
        let off_target = i128::from(delay.as_ps()) - i128::from(self.target.as_ps());
        let trend = i128::from(delay.as_ps()) - i128::from(self.delay_before.as_ps());
        // Within +-2^56 for each eighth of a second of delay: delays of centuries fit.
        let mut step = (off_target + BETA_OVER_ALPHA * trend) * (ONE / EIGHTHS_OF_SECOND_PS)
            + (off_target + BETA_OVER_ALPHA * trend) * (ONE % EIGHTHS_OF_SECOND_PS) / EIGHTHS_OF_SECOND_PS;
        step /= Self::damping(self.probability);
        if self.probability >= ONE / 10 {
            step = step.min(ONE / 50);
        }
        self.probability += step;
        if delay == Duration::ZERO && self.delay_before == Duration::ZERO {
            self.probability = self.probability * 98 / 100;
        }
        self.probability = self.probability.clamp(0, ONE);
        let half = Duration::from_ps(self.target.as_ps() / 2);
        self.burst_left = self.burst_left.saturating_sub(self.period);
        if self.probability == 0 && delay < half && self.delay_before < half {
            self.burst_left = self.burst;
        }
        self.delay_before = delay;
    }

    /// The auto-tuning of RFC 8033, 4.2: the smaller the probability, the smaller the steps.
    fn damping(probability: i128) -> i128 {
        const STEPS: [(i128, i128); 6] =
            [(1_000_000, 2048), (100_000, 512), (10_000, 128), (1000, 32), (100, 8), (10, 2)];
        STEPS.into_iter().find(|(inverse, _)| probability * inverse < ONE).map_or(1, |(_, damping)| damping)
    }

    /// Returns `true` if an arriving frame may be dropped at all.
    fn may_drop(&self, backlog_bytes: u64) -> bool {
        let half = Duration::from_ps(self.target.as_ps() / 2);
        let is_calm = self.delay_before < half && self.probability < ONE / 5;
        self.burst_left == Duration::ZERO && !is_calm && backlog_bytes > SMALL_BACKLOG_BYTES
    }
}

/// The discipline.
pub struct Pie {
    queue: StampedQueue,
    held_frames: u64,
    limit_frames: u64,
    ecn: bool,
    controller: Controller,
    random: Rng,
}

impl Pie {
    fn enqueue_one(&mut self, mut frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        let backlog = self.queue.backlog();
        if backlog.frames + self.held_frames >= self.limit_frames {
            drops.dropped(frame, DropReason::Overlimit);
            return;
        }
        let controller = &self.controller;
        if controller.may_drop(backlog.bytes) && i128::from(self.random.random::<u64>() >> 8) < controller.probability {
            // RFC 8033, 5.1: a probability above a tenth means that marks do not help.
            if !(self.ecn && controller.probability < ONE / 10 && mark_congestion(&mut frame)) {
                drops.dropped(frame, DropReason::Early);
                return;
            }
            drops.marked(&frame);
        }
        self.queue.push(frame, now);
    }
}

impl QueueDiscipline for Pie {
    fn enqueue(&mut self, frame: Box<Frame>, now: Time, drops: &mut dyn DropSink) {
        self.controller.catch_up(self.queue.head_came(), now);
        for_each_frame(frame, |frame| self.enqueue_one(frame, now, drops));
    }

    fn dequeue(&mut self, now: Time, _drops: &mut dyn DropSink) -> Option<Box<Frame>> {
        self.controller.catch_up(self.queue.head_came(), now);
        self.queue.pop().map(|(_, frame)| frame)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn drain(&mut self) -> VecDeque<Box<Frame>> {
        self.queue.drain()
    }

    fn hold(&mut self, held: Backlog) {
        self.held_frames = held.frames;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> Controller {
        Controller::new(Duration::from_ms(15), Duration::from_ms(15), Duration::from_ms(150))
    }

    fn share(probability: i128) -> f64 {
        probability as f64 / ONE as f64
    }

    #[test]
    fn each_step_is_that_of_the_rfc_and_damped_by_how_small_the_probability_is() {
        for (start, damping) in [
            (0.0, 2048.0),
            (5e-6, 512.0),
            (5e-5, 128.0),
            (5e-4, 32.0),
            (5e-3, 8.0),
            (5e-2, 2.0),
            (0.1, 1.0),
            (0.5, 1.0),
        ] {
            let mut controller = controller();
            controller.probability = (start * ONE as f64) as i128;
            controller.delay_before = Duration::from_ms(20);
            controller.update(Duration::from_ms(25));
            // alpha x (25 - 15 ms) + beta x (25 - 20 ms)
            let step = (0.125 * 0.010 + 1.25 * 0.005) / damping;
            let taken = share(controller.probability) - start;
            assert!((taken - step).abs() < 1e-12, "from {start}: {taken} instead of {step}");
        }
    }

    #[test]
    fn a_high_probability_grows_by_two_percent_at_most() {
        let mut controller = controller();
        controller.probability = ONE / 5;
        controller.update(Duration::from_ms(500));
        assert!((share(controller.probability) - 0.22).abs() < 1e-12);
    }

    #[test]
    fn an_idle_queue_decays_by_a_fiftieth_beside_the_controller() {
        let mut controller = controller();
        controller.probability = ONE / 2;
        controller.update(Duration::ZERO);
        assert!((share(controller.probability) - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
    }

    #[test]
    fn the_burst_allowance_lasts_150_ms_and_comes_back_after_a_quiet_time() {
        let mut controller = controller();
        for _ in 0..9 {
            controller.update(Duration::from_ms(100));
        }
        assert!(controller.burst_left > Duration::ZERO && !controller.may_drop(100_000));
        controller.update(Duration::from_ms(100));
        assert!(controller.may_drop(100_000));
        assert!(!controller.may_drop(SMALL_BACKLOG_BYTES));
        for _ in 0..1000 {
            controller.update(Duration::ZERO);
        }
        assert_eq!((controller.probability, controller.burst_left), (0, Duration::from_ms(150)));
    }

    #[test]
    fn updates_that_were_missed_are_made_up_for_however_many_they_are() {
        for head in [None, Some(Time::from_ns(1_000_000))] {
            let (mut at_once, mut one_by_one) = (controller(), controller());
            for starting in [&mut at_once, &mut one_by_one] {
                starting.probability = ONE / 3;
            }
            let end = Time::ZERO + Duration::from_secs(40) + Duration::from_ms(7);
            at_once.catch_up(head, end);
            let mut at = Time::ZERO;
            while at < end {
                at = (at + Duration::from_ms(15)).min(end);
                one_by_one.catch_up(head, at);
            }
            assert_eq!(at_once.probability, one_by_one.probability);
            assert_eq!(at_once.next_update, one_by_one.next_update);
            assert_eq!(at_once.delay_before, one_by_one.delay_before);
        }
        let mut centuries = controller();
        centuries.catch_up(Some(Time::ZERO), Time::from_ps(u64::MAX - 1_000_000_000_000));
        assert_eq!(centuries.probability, ONE);
    }
}
