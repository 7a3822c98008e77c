//! BBR version 1 (Cardwell et al. 2016), as Linux's `tcp_bbr.c` has it.
//!
//! BBR measures the path - the most bandwidth that ten rounds have shown, the least round trip of ten seconds - and
//! paces at what it measured. It probes for more bandwidth in one of eight phases of a round trip each, drains in
//! the next what that has queued, and empties the pipe every ten seconds to see the round trip without a queue.

mod aggregation;
mod bandwidth;
mod policer;
mod window;

use twinnet_units::random::split_mix;
use twinnet_units::{Duration, Rate, Time};

use self::aggregation::Aggregation;
use self::bandwidth::{Bandwidth, UNIT};
use self::policer::{Account, Finding, Policer};
use self::window::LEAST_WINDOW;
use super::filter::Windowed;
use super::{Acknowledged, Algorithm, Congestion, CongestionControl, RateSample, Repair};

/// 2 / ln 2: the least gain that doubles the delivery rate in each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse drains in one round what start-up has queued.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Window in the steady state over the bandwidth-delay product: room for delayed and stretched acknowledgements.
const WINDOW_GAIN: u64 = UNIT * 2;
/// Pacing gains of the cycle: probe, drain, cruise.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Phases among which the cycle begins, at random: all but the one that drains.
const CYCLE_STARTS: u64 = 7;
/// Rounds over which the largest bandwidth is kept: a cycle and two.
const BANDWIDTH_ROUNDS: u64 = 10;
/// The time that the least round trip is believed.
const ROUND_TRIP_WINDOW: Duration = Duration::from_secs(10);
/// The time that the pipe is kept empty to measure it, at least.
const PROBE_ROUND_TRIP: Duration = Duration::from_ms(200);
/// The pipe is full when the bandwidth has not grown by a quarter in three rounds.
const FULL_GROWTH: u64 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// Round trip that is assumed before the first was measured.
const NOMINAL_ROUND_TRIP: Duration = Duration::from_ms(1);
/// The phase that BBR is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    window: u32,
    threshold: u32,
    segment_bytes: u32,
    random: u64,

    bandwidth: Windowed<Bandwidth>,
    rounds: u64,
    round_begins: bool,
    /// The round ends with a segment sent after this many were delivered.
    round_ends_at: u64,
    delivered: u64,
    lost: u64,
    least_round_trip: Option<Duration>,
    least_round_trip_at: Time,

    pacing_gain: u64,
    window_gain: u64,
    /// Bandwidth that is paced at.
    pacing: Bandwidth,
    paced_by_round_trip: bool,
    phase: usize,
    phase_began: Time,

    full_bandwidth: Bandwidth,
    full_rounds: u32,
    pipe_filled: bool,

    /// The time when the round trip has been probed for long enough; `None` until the pipe is empty.
    probe_ends: Option<Time>,
    probe_round_done: bool,
    /// Samples of segments sent while the window was held down tell nothing: counts of delivered segments, from and to.
    held_down: (u64, u64),
    restarted: bool,

    /// Window before it was cut for repair or to probe the round trip.
    good_window: u32,
    repair: Repair,
    conserves: bool,

    aggregation: Aggregation,
    policer: Policer,
}

impl Bbr {
    /// A connection begins. The phase of its gain cycle is drawn from `random`.
    #[must_use]
    pub fn new(initial_window: u32, random: u64) -> Self {
        let window = initial_window.max(1);
        let mut bbr = Self {
            mode: Mode::Startup,
            window,
            threshold: u32::MAX,
            segment_bytes: 1448,
            random,
            bandwidth: Windowed::largest(BANDWIDTH_ROUNDS, 0, Bandwidth::ZERO),
            rounds: 0,
            round_begins: false,
            round_ends_at: 0,
            delivered: 0,
            lost: 0,
            least_round_trip: None,
            least_round_trip_at: Time::ZERO,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            pacing: Bandwidth::ZERO,
            paced_by_round_trip: false,
            phase: 0,
            phase_began: Time::ZERO,
            full_bandwidth: Bandwidth::ZERO,
            full_rounds: 0,
            pipe_filled: false,
            probe_ends: None,
            probe_round_done: false,
            held_down: (u64::MAX, 0),
            restarted: false,
            good_window: 0,
            repair: Repair::Nothing,
            conserves: false,
            aggregation: Aggregation::new(Time::ZERO),
            policer: Policer::default(),
        };
        bbr.pace_by(NOMINAL_ROUND_TRIP);
        bbr
    }

    /// The estimate of the path's bandwidth.
    fn path(&self) -> Bandwidth {
        self.policer.bandwidth().unwrap_or_else(|| self.bandwidth.get())
    }

    /// Paces the window over `round_trip`, with the gain of start-up.
    fn pace_by(&mut self, round_trip: Duration) {
        self.pacing = Bandwidth::of(u64::from(self.window), round_trip).times(HIGH_GAIN).paced();
    }

    fn pace(&mut self, bandwidth: Bandwidth, gain: u64, smoothed_round_trip: Duration) {
        if !self.paced_by_round_trip && smoothed_round_trip > Duration::ZERO {
            self.paced_by_round_trip = true;
            self.pace_by(smoothed_round_trip);
        }
        let wanted = bandwidth.times(gain).paced();
        // Until the pipe has been filled the estimate is too low, and only what raises the rate is believed.
        if self.pipe_filled || wanted > self.pacing {
            self.pacing = wanted;
        }
    }

    fn account(&self, told: &Acknowledged, app_limited: bool) -> Account {
        Account {
            now: told.now,
            delivered: self.delivered,
            lost: self.lost,
            newly_lost: told.lost,
            app_limited,
            round_begins: self.round_begins,
            steady: self.mode == Mode::ProbeBandwidth,
            segment_bytes: self.segment_bytes,
        }
    }

    /// Returns `true` if the sample tells what was sent rather than what the path carries.
    fn is_app_limited(&self, sample: &RateSample) -> bool {
        let (from, to) = self.held_down;
        sample.app_limited || (from..=to).contains(&sample.delivered_before)
    }

    fn measure_bandwidth(&mut self, told: &Acknowledged, sample: &RateSample) {
        if sample.delivered_before >= self.round_ends_at {
            self.round_ends_at = self.delivered;
            self.rounds += 1;
            self.round_begins = true;
            self.conserves = false;
        }
        let app_limited = self.is_app_limited(sample);
        match self.policer.update(&self.account(told, app_limited)) {
            Finding::Nothing => {}
            Finding::Policed => self.pacing_gain = UNIT,
            Finding::ProbeAgain => self.begin_cycle(told.now),
        }
        let bandwidth = Bandwidth::of(u64::from(sample.delivered), sample.interval);
        if !app_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds, bandwidth);
        }
    }

    fn begin_cycle(&mut self, now: Time) {
        self.mode = Mode::ProbeBandwidth;
        // One draw for each cycle, all from the connection's own seed.
        let drawn = split_mix(&mut self.random);
        let back = usize::try_from(drawn % CYCLE_STARTS).unwrap_or(0);
        self.phase = CYCLE.len() - 1 - back;
        self.next_phase(now);
    }

    fn next_phase(&mut self, now: Time) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_began = now;
    }

    fn update_phase(&mut self, told: &Acknowledged) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let lasted = told.now - self.phase_began > self.least_round_trip.unwrap_or(Duration::MAX);
        let in_network = self.in_network(told.in_flight_before);
        let over = match self.pacing_gain {
            UNIT => lasted,
            // A probe goes on until it has put its surplus into the network, unless that is more than the buffer holds.
            gain if gain > UNIT => lasted && (told.lost > 0 || in_network >= self.wanted_in_flight(gain)),
            _ => lasted || in_network <= self.wanted_in_flight(UNIT),
        };
        if over {
            self.next_phase(told.now);
        }
    }

    fn look_for_full_pipe(&mut self, app_limited: bool) {
        if self.pipe_filled || !self.round_begins || app_limited {
            return;
        }
        if self.bandwidth.get() >= self.full_bandwidth.times(FULL_GROWTH) {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.pipe_filled = self.full_rounds >= FULL_ROUNDS;
    }

    fn drain(&mut self, told: &Acknowledged) {
        if self.mode == Mode::Startup && self.pipe_filled {
            self.mode = Mode::Drain;
            self.threshold = self.wanted_in_flight(UNIT);
        }
        if self.mode == Mode::Drain && self.in_network(told.in_flight) <= self.wanted_in_flight(UNIT) {
            self.begin_cycle(told.now);
        }
    }

    fn measure_round_trip(&mut self, told: &Acknowledged) {
        let expired = self.least_round_trip.is_some() && told.now - self.least_round_trip_at > ROUND_TRIP_WINDOW;
        let delayed = told.rate.is_some_and(|sample| sample.delayed);
        if let Some(round_trip) = told.round_trip {
            if self.least_round_trip.is_none_or(|least| round_trip <= least) || (expired && !delayed) {
                self.least_round_trip = Some(round_trip);
                self.least_round_trip_at = told.now;
            }
        }
        if expired && !self.restarted && self.mode != Mode::ProbeRoundTrip {
            self.mode = Mode::ProbeRoundTrip;
            self.save_window();
            self.probe_ends = None;
            self.held_down = (self.delivered, 0);
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.probe_round_trip(told);
        }
        if told.delivered > 0 {
            self.restarted = false;
        }
    }

    fn probe_round_trip(&mut self, told: &Acknowledged) {
        self.held_down.1 = self.delivered + u64::from(told.in_flight);
        match self.probe_ends {
            None if told.in_flight <= LEAST_WINDOW => {
                self.probe_ends = Some(told.now + PROBE_ROUND_TRIP);
                self.probe_round_done = false;
                self.round_ends_at = self.delivered;
            }
            None => {}
            Some(_) => {
                self.probe_round_done |= self.round_begins;
                if self.probe_round_done {
                    self.end_probe(told.now);
                }
            }
        }
    }

    /// Leaves the probe of the round trip when it has lasted long enough.
    fn end_probe(&mut self, now: Time) {
        if self.probe_ends.is_none_or(|end| now <= end) {
            return;
        }
        self.least_round_trip_at = now;
        self.window = self.window.max(self.good_window);
        if self.pipe_filled {
            self.begin_cycle(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn set_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.bandwidth().is_some() => (UNIT, WINDOW_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.phase], WINDOW_GAIN),
            Mode::ProbeRoundTrip => (UNIT, UNIT),
        };
    }

    /// The timer ran out: a round ends, and whether the pipe is full is asked anew.
    fn time_out(&mut self, in_flight: u32, now: Time) {
        self.repair = Repair::Timeout;
        self.window = 1;
        self.full_bandwidth = Bandwidth::ZERO;
        self.round_begins = true;
        self.lost += u64::from(in_flight);
        let told = Acknowledged { now, lost: 1, ..Acknowledged::default() };
        if self.policer.update(&self.account(&told, false)) == Finding::ProbeAgain {
            self.begin_cycle(now);
        }
    }
}

impl CongestionControl for Bbr {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Bbr
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn slow_start_threshold(&self) -> u32 {
        self.threshold
    }

    fn established(&mut self, round_trip: Option<Duration>, segment_bytes: u32, now: Time) {
        self.segment_bytes = segment_bytes.max(1);
        self.least_round_trip = round_trip;
        self.least_round_trip_at = now;
        self.aggregation.restart(now);
        if let Some(round_trip) = round_trip {
            self.paced_by_round_trip = true;
            self.pace_by(round_trip);
        }
    }

    fn transmission_started(&mut self, _idle: Duration, app_limited: bool, now: Time) {
        if !app_limited {
            return;
        }
        self.restarted = true;
        self.aggregation.restart(now);
        if self.mode == Mode::ProbeBandwidth {
            self.pace(self.path(), UNIT, Duration::ZERO);
        } else if self.mode == Mode::ProbeRoundTrip {
            self.end_probe(now);
        }
    }

    fn acknowledged(&mut self, told: &Acknowledged) {
        if told.segment_bytes > 0 {
            self.segment_bytes = told.segment_bytes;
        }
        self.delivered += u64::from(told.delivered);
        self.lost += u64::from(told.lost);
        self.round_begins = false;
        let sample = told.rate.filter(|sample| sample.interval > Duration::ZERO);
        if let Some(sample) = sample {
            self.delivered = sample.delivered_total;
            self.measure_bandwidth(told, &sample);
            if told.delivered > 0 {
                self.aggregation.update(told.now, told.delivered, self.path(), self.window, self.round_begins);
            }
        }
        self.update_phase(told);
        self.look_for_full_pipe(sample.is_some_and(|sample| self.is_app_limited(&sample)));
        self.drain(told);
        self.measure_round_trip(told);
        self.set_gains();
        self.pace(self.path(), self.pacing_gain, told.smoothed_round_trip);
        self.set_window(told);
    }

    fn congested(&mut self, congestion: Congestion, in_flight: u32, now: Time) {
        self.save_window();
        if congestion == Congestion::Timeout {
            self.time_out(in_flight, now);
        }
    }

    fn timed_out_again(&mut self, in_flight: u32, now: Time) {
        self.time_out(in_flight, now);
    }

    /// BBR restores the window itself, at the first acknowledgement after recovery.
    fn recovered(&mut self, _window: u32, _now: Time) {}

    fn undo(&mut self, now: Time) {
        self.full_bandwidth = Bandwidth::ZERO;
        self.full_rounds = 0;
        let account = self.account(&Acknowledged { now, ..Acknowledged::default() }, false);
        self.policer.reset(&account);
    }

    /// Nothing is forgotten in silence: what was measured holds, and pacing keeps bursts away.
    fn restarted(&mut self, _idle: Duration, _timeout: Duration, _now: Time) {}

    fn pacing_rate(&self, segment_bytes: u32) -> Option<Rate> {
        self.pacing.rate(segment_bytes)
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    /// One more than others: BBR may start up even during recovery (`bbr_sndbuf_expand`).
    fn buffered_windows(&self) -> u64 {
        3
    }
}
