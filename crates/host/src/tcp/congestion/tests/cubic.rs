//! CUBIC against RFC 9438's formulas.

use twinnet_units::{Duration, Time};

use super::super::{Acknowledged, Algorithm, Congestion, CongestionControl, Cubic, NewReno};
use super::path::{Path, Settings};

const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// A sender whose every segment is delivered, one round trip later, evenly over the round: no queue, no burst.
struct Ideal {
    control: Box<dyn CongestionControl>,
    round_trip: Duration,
    at_once: u32,
    now: Time,
}

impl Ideal {
    /// A connection after a loss at `peak` segments.
    fn after_loss(control: Box<dyn CongestionControl>, peak: u32, round_trip: Duration, at_once: u32) -> Self {
        let mut ideal = Self { control, round_trip, at_once, now: Time::from_ns(1_000_000_000) };
        assert_eq!(ideal.control.window(), peak);
        ideal.lose();
        ideal
    }

    fn lose(&mut self) {
        let window = self.control.window();
        self.control.congested(Congestion::Loss, window, self.now);
        self.control.recovered(self.control.slow_start_threshold(), self.now);
    }

    /// The window after `span`.
    fn after(&mut self, span: Duration) -> f64 {
        let end = self.now + span;
        while self.now < end {
            let gap = self.round_trip.as_ps() * u64::from(self.at_once) / u64::from(self.control.window());
            self.now += Duration::from_ps(gap);
            self.control.acknowledged(&Acknowledged {
                now: self.now,
                acknowledged: self.at_once,
                delivered: self.at_once,
                window_limited: true,
                round_trip: Some(self.round_trip),
                least_round_trip: self.round_trip,
                smoothed_round_trip: self.round_trip,
                segment_bytes: 1448,
                ..Acknowledged::default()
            });
        }
        f64::from(self.control.window())
    }
}

fn cubic(peak: u32) -> Box<dyn CongestionControl> {
    Box::new(Cubic::new(peak))
}

#[test]
fn the_window_follows_the_cubic_function_with_delayed_acknowledgements_and_without() {
    for at_once in [1, 2] {
        let (peak, round_trip) = (2000, Duration::from_ms(100));
        let mut sender = Ideal::after_loss(cubic(peak), peak, round_trip, at_once);
        let peak = f64::from(peak);
        let until_peak = (peak * (1.0 - BETA) / C).cbrt();
        assert!((until_peak - 11.447).abs() < 0.001);
        for second in 1..=16_u32 {
            let window = sender.after(Duration::from_secs(1));
            let expected = C * (f64::from(second) - until_peak).powi(3) + peak;
            // The window tends to the function's value a round trip ahead and gets there a round trip later; C as
            // 410/1024, K and the time in 1024ths of a second and a whole count of segments for each step err by
            // less. One part in a hundred covers 0.1 s of the steepest slope (3 C K^2 = 157 segments a second) at
            // its lowest window (1400).
            assert!((window / expected - 1.0).abs() < 0.012, "{window} for {expected:.0} at {second} s");
        }
    }
}

#[test]
fn at_a_small_round_trip_it_grows_as_fast_as_reno_on_average() {
    // RFC 9438, 4.3: with alpha = 3 (1 - beta) / (1 + beta) the average of the saw-tooth between beta W and W is
    // Reno's.
    let (peak, round_trip) = (60, Duration::from_ms(10));
    let mut sender = Ideal::after_loss(cubic(peak), peak, round_trip, 1);
    let begin = sender.control.window();
    let rounds = 60_u32;
    let grown = sender.after(Duration::from_ms(10 * u64::from(rounds))) - f64::from(begin);
    let alpha = 3.0 * (1.0 - BETA) / (1.0 + BETA);
    // One segment for 15/8 of a window is 0.533 where the RFC says 0.529, which makes 0.2 segments in 60 rounds;
    // the window takes a round to follow what Reno's would be (half a segment), and a segment is the grain of both.
    assert!((grown - alpha * f64::from(rounds)).abs() <= 2.7, "{grown} in {rounds} rounds");
    let mut reno = Ideal::after_loss(Box::new(NewReno::new(60)), 60, round_trip, 1);
    assert!((reno.after(Duration::from_ms(160)) - 46.0).abs() <= 1.0);
}

#[test]
fn a_flow_that_did_not_get_back_makes_room() {
    let mut sender = Ideal::after_loss(cubic(1000), 1000, Duration::from_ms(100), 1);
    sender.lose();
    // The second loss comes at 700, below the maximum of 1000: the plateau is at 700 (1 + 0.7) / 2 = 595, the
    // window at 490, and K = cbrt((595 - 490) / 0.4) = 6.4 s.
    assert_eq!(sender.control.slow_start_threshold(), 490);
    let at_plateau = sender.after(Duration::from_ms(6400));
    assert!((at_plateau / 595.0 - 1.0).abs() < 0.012, "{at_plateau}");
    let flat = sender.after(Duration::from_ms(500)) - at_plateau;
    assert!(flat <= 2.0, "grew by {flat} at the plateau");
}

#[test]
fn growth_is_limited_to_half_a_window_a_round() {
    // At a round trip of 2 s the cubic function asks for ten times the window within a few rounds.
    let mut sender = Ideal::after_loss(cubic(10), 10, Duration::from_secs(2), 1);
    let windows: Vec<f64> = (0..12).map(|_| sender.after(Duration::from_secs(2))).collect();
    let growths: Vec<f64> = windows.windows(2).map(|pair| pair[1] / pair[0]).collect();
    // One segment for two delivered is half as much again for each window that is delivered. This sender is a
    // continuous one, which sends the new segments in the same round: the square root of e, and a segment or two at
    // either end of the round.
    let most = 0.5_f64.exp();
    assert!(growths.iter().any(|&growth| growth > 0.98 * most), "{growths:?}");
    assert!(growths.iter().zip(windows).all(|(&growth, window)| growth <= most + 2.0 / window), "{growths:?}");
}

#[test]
fn time_without_anything_in_flight_does_not_age_the_epoch() {
    let grown_after_pause = |told: bool| {
        let mut sender = Ideal::after_loss(cubic(400), 400, Duration::from_ms(50), 1);
        let before = sender.after(Duration::from_secs(2));
        sender.now += Duration::from_secs(20);
        if told {
            sender.control.transmission_started(Duration::from_secs(20), true, sender.now);
        }
        sender.after(Duration::from_ms(50)) - before
    };
    assert!(grown_after_pause(true) < 10.0);
    assert!(grown_after_pause(false) > 50.0, "the test can tell");
}

#[test]
fn a_timeout_forgets_the_path_and_an_undo_brings_the_window_back() {
    let mut sender = Ideal::after_loss(cubic(100), 100, Duration::from_ms(50), 1);
    sender.control.congested(Congestion::Timeout, 70, sender.now);
    assert_eq!((sender.control.window(), sender.control.slow_start_threshold()), (1, 49));
    sender.control.undo(sender.now);
    assert_eq!((sender.control.window(), sender.control.slow_start_threshold()), (70, 70));
}

/// The window, in bandwidth-delay products, at which CUBIC leaves slow start for the first time.
fn slow_start_ends_at(megabits: u64, round_trip_ms: u64, acknowledged_at_once: u32) -> f64 {
    let settings = Settings { acknowledged_at_once, ..Settings::new(megabits, round_trip_ms, 8.0) };
    let mut path = Path::new(settings, vec![Algorithm::Cubic.start(10, 1)]);
    let left = path.watch(Duration::from_secs(10), Duration::from_ms(1), |path| {
        let control = &path.flows[0].control;
        (control.slow_start_threshold() < u32::MAX).then(|| (control.window(), path.flows[0].lost))
    });
    let (window, lost) = left.into_iter().flatten().next().unwrap();
    assert_eq!(lost, 0, "no loss ended it");
    f64::from(window) / settings.product()
}

#[test]
fn a_train_of_acknowledgements_ends_slow_start_near_the_bandwidth_delay_product() {
    for (megabits, round_trip, at_once) in [(10, 50, 1), (10, 200, 1), (100, 50, 2), (100, 200, 2), (100, 20, 1)] {
        let ratio = slow_start_ends_at(megabits, round_trip, at_once);
        // A round whose window is at least half the product gives a train of half a round trip, in which half a
        // product is acknowledged: from half to one product to begin with and half a product grown. The allowance
        // of half a millisecond and the millisecond between two looks grow it by another tenth at the shortest
        // round trip.
        assert!((0.9..=1.65).contains(&ratio), "left at {ratio} of the product, {megabits} Mbit/s and {round_trip} ms");
    }
}

#[test]
fn a_queue_ends_slow_start_where_acknowledgements_are_too_sparse_for_a_train() {
    // Two segments of 1.2 ms for each acknowledgement leave gaps beyond the 2 ms of a train.
    for round_trip in [50, 100, 200] {
        let ratio = slow_start_ends_at(10, round_trip, 2);
        let product = Settings::new(10, round_trip, 1.0).product();
        // The first segments of a round see the queue that the window before has left, an eighth of a round trip at
        // least: that window is between 1.125 and 2.25 products, has doubled when they are acknowledged, and nine
        // samples are two segments each.
        let most = 4.5 + 18.0 / product;
        assert!((2.0..=most).contains(&ratio), "left at {ratio} of the product at {round_trip} ms");
    }
}

#[test]
fn one_flow_fills_a_link_with_a_buffer_of_one_product() {
    for algorithm in [Algorithm::Cubic, Algorithm::Reno] {
        let mut path = Path::new(Settings::new(10, 50, 1.0), vec![algorithm.start(10, 1)]);
        path.run(Duration::from_secs(10));
        let goodput = path.goodput(0, Duration::from_secs(50));
        // A buffer of one product keeps the link busy through a halving (Appenzeller et al. 2004), and the more so
        // through 0.7.
        assert!(goodput > 0.99e7, "{algorithm:?}: {goodput}");
    }
}

#[test]
fn two_flows_that_begin_apart_share_fairly() {
    let mut path = Path::new(Settings::new(10, 40, 1.0), vec![Algorithm::Cubic.start(10, 1)]);
    path.run(Duration::from_secs(20));
    path.add(Algorithm::Cubic.start(10, 2));
    path.run(Duration::from_secs(60));
    let before: Vec<u64> = path.flows.iter().map(|flow| flow.delivered).collect();
    path.run(Duration::from_secs(120));
    #[allow(clippy::cast_precision_loss)]
    let shares: Vec<f64> =
        path.flows.iter().zip(before).map(|(flow, before)| (flow.delivered - before) as f64).collect();
    let jain = (shares[0] + shares[1]).powi(2) / (2.0 * (shares[0].powi(2) + shares[1].powi(2)));
    // Jain's index of shares of 60 and 40 percent is 0.96.
    assert!(jain > 0.96, "{shares:?}");
}
