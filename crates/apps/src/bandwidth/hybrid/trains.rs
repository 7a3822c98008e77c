//! The trains that are sent: their shape, their rate, and when they become faster or longer.

use std::cmp::Ordering;

use super::super::estimator::Step;
use super::super::train::Plan;
use super::looks::State;
use super::ratio::{MORE_IRREGULAR, SPAN};
use super::Hybrid;

/// Where several links are loaded: packets after those that are sent at once.
const SEVERAL_PACKETS: u32 = 150;
/// The amount that idle times may add to the estimate at most, as a share of it, before trains are sent that leave less
/// of them.
const UNKNOWN: f64 = 0.04;
/// The same once so many trains were counted: to forget so many costs more than idle times of a little more leave.
const LATE: usize = 40;
pub(super) const LATE_UNKNOWN: f64 = 0.12;
/// The same where looks are to tell what is available, and trains are only compared with them.
const COARSE_UNKNOWN: f64 = 0.3;
/// Packets sent at once at most where a longer queue is needed.
const MOST_BURST: u32 = 32;
/// Packets of a train at the link's own rate, of which the first are sent at once.
const FAST_BURST: u32 = 3;
const FAST_PACKETS: u32 = 9;
/// So many times as many of them are sent at most, for as many bytes where their packets are full.
pub(super) const MORE_FAST: u32 = 4;
/// Their packets are so many times shorter than full ones, where they can still be sent so far apart: more short looks
/// at bursts and silences tell more than fewer long ones.
pub(super) const SHORTER: u32 = 3;
const LEAST_FAST_GAP_NS: f64 = 20_000.0;
const LEAST_FAST_PAYLOAD: u32 = 200;
/// Trains that only search for the rate are not counted, up to so many.
pub(super) const MOST_SEARCH: u32 = 12;

impl Hybrid {
    /// The next train that counts.
    pub(super) fn next_train(&mut self) -> Step {
        let full = self.probing.most_payload;
        let fast = !self.overload.is_finite();
        let payload = if fast { self.fast_payload() } else { full };
        let count = if !fast {
            MORE_FAST * SHORTER
        } else if payload < full {
            1
        } else {
            SHORTER
        };
        self.sent += count;
        let most = self.capacity().unwrap_or(f64::INFINITY).min(self.probing.most_rate_bps).max(1_000.0);
        let rate = (self.guess * self.overload).clamp(1_000.0, most);
        let gap = self.probing.framing.gap_ns(payload, rate);
        let (burst, packets) = self.shape();
        // The sender's own link, which may be as slow as the tight one, has to be done with the burst before stamps
        // of sending are those of arriving at the tight link.
        let pause = gap.max(f64::from(burst) * self.probing.framing.gap_ns(payload, most));
        let place_gap = |place: u32| match place.cmp(&burst) {
            Ordering::Less => 0.0,
            Ordering::Equal => pause,
            Ordering::Greater => gap,
        };
        let plan = Plan::by_gaps(payload, (1..burst + packets).map(place_gap));
        // The queue is gone a while after the train; that time belongs to it.
        let busy = plan.duration_ns() as f64 + f64::from(burst) * gap;
        // Short looks are spread evenly, by chance within half a step, so that none of what they look at weighs more.
        let idle_ns = if fast {
            let mean = self.config.idle_ns * f64::from(count) / f64::from(SHORTER);
            mean * (0.5 + self.random.uniform())
        } else {
            -self.idle_to_span_ns() * self.random.uniform().ln()
        };
        let idle_ns = idle_ns + 2.0 * busy;
        Step::Send { plan, idle_ns }
    }

    /// The mean silence between trains, in nanoseconds: longer between long trains, so that as many of them as are
    /// needed in any case span as much of the window as they have to.
    fn idle_to_span_ns(&self) -> f64 {
        let Some((begun, counted)) = self.begun_ns.zip(self.counted_ns).filter(|_| self.several) else {
            return self.config.idle_ns;
        };
        let needed = f64::from(self.config.least_trains) * MORE_IRREGULAR as f64;
        let span = SPAN / (1.0 - SPAN) * (counted - begun) as f64;
        self.config.idle_ns.max(span / needed)
    }

    /// The time after which the queue that a train made is gone, in nanoseconds.
    pub(super) fn queue_of_train_ns(&self) -> f64 {
        2.0 * f64::from(self.shape().0)
            * self.probing.framing.gap_ns(self.probing.most_payload, self.guess.max(1_000.0))
    }

    /// Makes a longer queue where the tight link may have been idle for too long, then sends faster, and forgets
    /// what was sent before.
    pub(super) fn raise(&mut self, capacity: f64) {
        let Some(ratio) = self.ratio() else { return };
        let most = capacity.min(self.probing.most_rate_bps);
        let sent = self.guess * self.overload;
        let bound = if self.looks.state == State::Open && ratio.random {
            COARSE_UNKNOWN.max(3.0 * self.config.precision)
        } else if self.samples.len() < LATE {
            UNKNOWN
        } else {
            LATE_UNKNOWN
        };
        if ratio.unknown <= bound * ratio.available.max(0.01 * capacity) {
            return;
        }
        if self.burst < MOST_BURST && sent < 0.99 * most {
            self.burst = (2 * self.burst).min(MOST_BURST);
        } else if sent < 0.99 * most {
            self.overload *= 1.5;
            if self.overload * self.guess >= most {
                // As fast as packets can leave the link, whatever is found.
                self.overload = f64::INFINITY;
            }
        } else {
            return;
        }
        self.forget();
    }

    /// Packets sent at once, and packets after them.
    pub(super) fn shape(&self) -> (u32, u32) {
        if self.overload.is_finite() {
            let packets = if self.several { self.config.packets.max(SEVERAL_PACKETS) } else { self.config.packets };
            (self.burst, packets)
        } else {
            // Nothing empties the queue before such a train; more of them say more than longer ones.
            (FAST_BURST.min(self.config.burst), FAST_PACKETS.min(self.config.packets))
        }
    }

    /// The payload of packets of trains at the link's own rate.
    fn fast_payload(&self) -> u32 {
        let full = self.probing.most_payload;
        let framing = self.probing.framing;
        let short = framing.payload(framing.bits(full) / f64::from(SHORTER)).max(LEAST_FAST_PAYLOAD).min(full);
        let most = self.capacity().unwrap_or(f64::INFINITY).min(self.probing.most_rate_bps);
        if framing.gap_ns(short, most) >= LEAST_FAST_GAP_NS {
            short
        } else {
            full
        }
    }

    /// Begins to count anew.
    pub(super) fn forget(&mut self) {
        self.forgotten += self.samples.len() as u32;
        self.samples.clear();
        self.counted_ns = None;
        self.searched = MOST_SEARCH;
        self.looked = 0;
    }
}
