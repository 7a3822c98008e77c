//! Congestion controls in Python, in model hosts on the virtual clock.

use std::fmt;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use twinnet_host::tcp::congestion::{self, Acknowledged, Algorithm, Congestion, CongestionControl};
use twinnet_units::{Duration, Rate, Time};

use crate::own_code;

const PS_PER_S: f64 = 1e12;

/// What acknowledgements told: of one, or of all since the last call where it is called once a round trip.
#[pyclass(frozen, get_all, module = "twinnet._core")]
pub struct Acknowledgement {
    /// The lab's time in seconds.
    now_s: f64,
    /// Segments newly acknowledged cumulatively.
    acknowledged: u32,
    /// Segments newly acknowledged, cumulatively or selectively.
    delivered: u32,
    /// Segments newly found lost.
    lost: u32,
    /// Segments in flight now.
    in_flight: u32,
    /// The newest round trip, or the least since the last call.
    round_trip_s: Option<f64>,
    /// The least round trip of the connection so far.
    least_round_trip_s: Option<f64>,
    /// The smoothed round trip.
    smoothed_round_trip_s: Option<f64>,
    /// The delivery rate of payload.
    rate_bps: Option<f64>,
    /// True if the app, and not the network, limited that rate.
    app_limited: bool,
    /// True if the window limited the sender.
    window_limited: bool,
    /// True while losses are repaired.
    in_recovery: bool,
    /// The payload of a full segment.
    segment_bytes: u32,
}

/// Lets model hosts of this process use the congestion control `name`; `start` is called for each connection, with its
/// initial window and a seed, and returns its state.
#[pyfunction]
pub fn register_congestion_control(name: String, start: Py<PyAny>) -> PyResult<()> {
    let called = name.clone();
    let begin = move |algorithm: Algorithm, initial_window: u32, random: u64| -> Box<dyn CongestionControl> {
        Box::new(OwnControl::begin(&called, &start, algorithm, initial_window, random))
    };
    congestion::register(&name, Arc::new(begin)).map_err(PyValueError::new_err)
}

/// A congestion control whose decisions are made in Python. What it decided last stands where its code has failed; the
/// lab then stops.
struct OwnControl {
    name: String,
    algorithm: Algorithm,
    object: Option<Py<PyAny>>,
    window: u32,
    threshold: u32,
    pacing: Option<Rate>,
    /// Where it is called once a round trip: segments delivered when the round began, and what came since.
    rounds: Option<(u64, Acknowledged)>,
}

impl fmt::Debug for OwnControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnControl").field("name", &self.name).field("window", &self.window).finish_non_exhaustive()
    }
}

impl OwnControl {
    fn begin(name: &str, start: &Py<PyAny>, algorithm: Algorithm, initial_window: u32, random: u64) -> Self {
        let mut own = Self {
            name: name.to_owned(),
            algorithm,
            object: None,
            window: initial_window,
            threshold: u32::MAX,
            pacing: None,
            rounds: None,
        };
        let begun = own_code::run(name, |py| {
            let object = start.bind(py).call1((initial_window, random))?;
            let each_round: bool = object.getattr("once_a_round_trip")?.is_truthy()?;
            Ok((object.unbind(), each_round))
        });
        if let Ok((object, each_round)) = begun {
            own.object = Some(object);
            own.rounds = each_round.then(|| (0, Acknowledged::default()));
            own.decide(|_| Ok(()));
        }
        own
    }

    /// Lets the object do something, and takes its decisions.
    fn decide(&mut self, what: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let Some(object) = &self.object else { return };
        let decided = own_code::run(&self.name, |py| {
            let object = object.bind(py);
            what(object)?;
            Ok((
                segments(object.getattr(intern!(py, "window"))?.extract::<f64>()?, "window")?,
                match object.getattr(intern!(py, "threshold"))?.extract::<Option<f64>>()? {
                    Some(threshold) => segments(threshold, "threshold")?,
                    None => u32::MAX,
                },
                object.getattr(intern!(py, "pacing_bps"))?.extract::<Option<f64>>()?.map(pacing).transpose()?,
            ))
        });
        match decided {
            Ok((window, threshold, pacing)) => {
                (self.window, self.threshold, self.pacing) = (window, threshold, pacing);
            }
            Err(_) => self.object = None,
        }
    }

    fn congested_by(&mut self, why: &str, in_flight: u32, now: Time) {
        self.decide(|object| {
            object.call_method1(intern!(object.py(), "congested"), (why, in_flight, seconds(now)))?;
            Ok(())
        });
    }
}

impl CongestionControl for OwnControl {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn slow_start_threshold(&self) -> u32 {
        self.threshold
    }

    fn established(&mut self, round_trip: Option<Duration>, segment_bytes: u32, now: Time) {
        let round_trip_s = round_trip.map(|time| time.as_ps() as f64 / PS_PER_S);
        self.decide(|object| {
            let told = (round_trip_s, segment_bytes, seconds(now));
            object.call_method1(intern!(object.py(), "established"), told)?;
            Ok(())
        });
    }

    fn acknowledged(&mut self, told: &Acknowledged) {
        let told = match &mut self.rounds {
            None => *told,
            Some((end, gathered)) => {
                *gathered = together(gathered, told);
                // A round is over when something is delivered that was sent after it began.
                let Some(rate) = told.rate.filter(|rate| rate.delivered_before >= *end) else { return };
                *end = rate.delivered_total;
                std::mem::take(gathered)
            }
        };
        self.decide(|object| {
            let told = Bound::new(object.py(), acknowledgement(&told))?;
            object.call_method1(intern!(object.py(), "acknowledged"), (told,))?;
            Ok(())
        });
    }

    fn congested(&mut self, congestion: Congestion, in_flight: u32, now: Time) {
        let why = match congestion {
            Congestion::Loss => "loss",
            Congestion::Marked => "mark",
            Congestion::Timeout => "timeout",
        };
        self.congested_by(why, in_flight, now);
    }

    fn timed_out_again(&mut self, in_flight: u32, now: Time) {
        self.congested_by("timeout", in_flight, now);
    }

    /// The object rules its window in recovery too.
    fn recovered(&mut self, _window: u32, _now: Time) {}

    fn undo(&mut self, now: Time) {
        self.decide(|object| {
            object.call_method1(intern!(object.py(), "undone"), (seconds(now),))?;
            Ok(())
        });
    }

    fn restarted(&mut self, _idle: Duration, _timeout: Duration, _now: Time) {}

    fn pacing_rate(&self, _segment_bytes: u32) -> Option<Rate> {
        self.pacing
    }

    fn rules_recovery(&self) -> bool {
        true
    }
}

/// What `told` adds to what was gathered before: sums, the least round trip, and otherwise the newest.
fn together(gathered: &Acknowledged, told: &Acknowledged) -> Acknowledged {
    Acknowledged {
        acknowledged: gathered.acknowledged.saturating_add(told.acknowledged),
        delivered: gathered.delivered.saturating_add(told.delivered),
        lost: gathered.lost.saturating_add(told.lost),
        round_trip: match (gathered.round_trip, told.round_trip) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        },
        window_limited: gathered.window_limited || told.window_limited,
        rate: told.rate.or(gathered.rate),
        ..*told
    }
}

fn acknowledgement(told: &Acknowledged) -> Acknowledgement {
    let seconds_of = |time: Duration| time.as_ps() as f64 / PS_PER_S;
    let measured = |time: Duration| (time > Duration::ZERO).then(|| seconds_of(time));
    let bits = |segments: u32| f64::from(segments) * f64::from(told.segment_bytes) * 8.0;
    Acknowledgement {
        now_s: seconds(told.now),
        acknowledged: told.acknowledged,
        delivered: told.delivered,
        lost: told.lost,
        in_flight: told.in_flight,
        round_trip_s: told.round_trip.map(seconds_of),
        least_round_trip_s: measured(told.least_round_trip),
        smoothed_round_trip_s: measured(told.smoothed_round_trip),
        rate_bps: told
            .rate
            .filter(|rate| rate.interval > Duration::ZERO)
            .map(|rate| bits(rate.delivered) / seconds_of(rate.interval)),
        app_limited: told.rate.is_some_and(|rate| rate.app_limited),
        window_limited: told.window_limited,
        in_recovery: told.in_recovery,
        segment_bytes: told.segment_bytes,
    }
}

fn seconds(at: Time) -> f64 {
    at.as_ps() as f64 / PS_PER_S
}

/// A window or a threshold, in whole segments.
fn segments(given: f64, what: &str) -> PyResult<u32> {
    if given.is_finite() && given >= 1.0 && given < f64::from(u32::MAX) {
        return Ok(given as u32);
    }
    Err(PyValueError::new_err(format!("{what} is {given}; a number of segments from 1 is allowed")))
}

fn pacing(given: f64) -> PyResult<Rate> {
    let allowed = given.is_finite() && (1.0..1e15).contains(&given);
    allowed
        .then(|| Rate::from_bps(given as u64))
        .flatten()
        .ok_or_else(|| PyValueError::new_err(format!("pacing_bps is {given}; a rate from 1 bit/s is allowed, or None")))
}
