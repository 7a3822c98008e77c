//! BBR on a path.

use twinnet_units::{Duration, Rate};

use super::super::{Algorithm, Congestion};
use super::path::{Path, Settings, SEGMENT_BYTES};

fn bbr_on(settings: Settings, seed: u64) -> Path {
    Path::new(settings, vec![Algorithm::Bbr.start(10, seed)])
}

#[test]
fn it_converges_to_the_rate_with_about_two_products_in_flight_at_most() {
    for (megabits, round_trip, buffer) in [(2, 50, 4.0), (10, 10, 4.0), (10, 50, 1.0), (100, 50, 4.0), (100, 200, 2.0)]
    {
        let settings = Settings::new(megabits, round_trip, buffer);
        let mut path = bbr_on(settings, 7);
        // Start-up is over and the acknowledgements' surplus that it saw forgotten (ten rounds); the first probe of
        // the round trip comes after ten seconds.
        path.run(Duration::from_secs(6));
        let before = path.flows[0].delivered;
        let in_flight = path.watch(Duration::from_ms(3500), Duration::from_ms(5), |path| path.flows[0].in_flight());
        #[allow(clippy::cast_precision_loss)]
        let (most, delivered) =
            (in_flight.into_iter().max().unwrap() as f64, (path.flows[0].delivered - before) as f64);
        let rate = delivered * 8.0 * f64::from(SEGMENT_BYTES) / 3.5;
        #[allow(clippy::cast_precision_loss)]
        let wanted = settings.rate.as_bps() as f64;
        assert!(rate > 0.95 * wanted, "{megabits} Mbit/s, {round_trip} ms: {rate}");
        // Twice the product of a bandwidth that a burst of acknowledgements may overrate by a few segments, three
        // quanta of a millisecond at 1.25 of the rate, and as much again for acknowledgements that come two at a
        // time.
        let quantum = (wanted / 8.0 * 1.25 / 1024.0 / f64::from(SEGMENT_BYTES)).max(2.0);
        let bound = 2.1 * settings.product() + 3.0 * quantum + 8.0;
        assert!(most <= bound, "{megabits} Mbit/s, {round_trip} ms: {most} in flight, at most {bound}");
    }
}

#[test]
fn it_drains_what_start_up_has_queued() {
    let settings = Settings::new(10, 50, 4.0);
    let mut path = bbr_on(settings, 7);
    let queues = path.watch(Duration::from_secs(2), Duration::from_ms(5), Path::queue);
    #[allow(clippy::cast_precision_loss)]
    let most = *queues.iter().max().unwrap() as f64;
    assert!(most > 0.5 * settings.product(), "start-up queues {most}");
    // What may be in flight when it has drained: the product, three quanta of two segments and one that makes the
    // window even.
    let drained = queues.iter().rposition(|&queue| queue <= 7).unwrap();
    let peak = queues.iter().position(|&queue| f64::from(u32::try_from(queue).unwrap()) >= most).unwrap();
    assert!(drained > peak, "and drains it again");
    // The steady state's queue: a quarter of the product from probing, and the segments being sent.
    path.run(Duration::from_secs(1));
    let steady = path.watch(Duration::from_secs(3), Duration::from_ms(5), Path::queue);
    #[allow(clippy::cast_precision_loss)]
    let mean = steady.iter().sum::<u64>() as f64 / steady.len() as f64;
    assert!(mean < 0.25 * settings.product() + 2.0, "{mean} of {}", settings.product());
}

#[test]
fn it_probes_the_round_trip_every_ten_seconds() {
    let settings = Settings::new(10, 50, 4.0);
    let mut path = bbr_on(settings, 7);
    let windows = path.watch(Duration::from_secs(45), Duration::from_ms(10), |path| path.flows[0].control.window());
    let begins: Vec<usize> = (1..windows.len()).filter(|&at| windows[at] == 4 && windows[at - 1] > 4).collect();
    assert!((3..=4).contains(&begins.len()), "{begins:?}");
    for pair in begins.windows(2) {
        // Ten seconds after the last look at the round trip, which was at the end of the probe: 200 ms, and the
        // time it takes for the window to empty and a round of four segments to pass.
        let apart = pair[1] - pair[0];
        assert!((1020..=1060).contains(&apart), "{apart} hundredths of a second apart");
    }
    let lasted = windows[begins[0]..].iter().take_while(|&&window| window == 4).count();
    assert!((20..=40).contains(&lasted), "held down for {lasted} hundredths of a second");
    assert!(f64::from(windows[begins[0] + lasted + 10]) > settings.product(), "and the window comes back");
}

#[test]
fn a_probe_at_a_small_round_trip_does_not_make_it_forget_the_bandwidth() {
    // 200 ms are forty rounds of 5 ms: four times as long as the bandwidth is remembered.
    let mut path = bbr_on(Settings::new(10, 5, 8.0), 7);
    path.run(Duration::from_secs(5));
    let goodput = path.goodput(0, Duration::from_secs(10));
    // The probe costs at most 2 % and a quarter of a second of the ten.
    assert!(goodput > 0.95e7, "{goodput}");
}

#[test]
fn it_goes_on_at_the_measured_rate_after_a_pause() {
    let settings = Settings::new(10, 50, 1.0);
    let mut path = bbr_on(settings, 7);
    path.run(Duration::from_secs(5));
    path.set_sending(0, false);
    path.run(Duration::from_secs(3));
    assert_eq!(path.flows[0].in_flight(), 0);
    let lost = path.flows[0].lost;
    path.set_sending(0, true);
    let goodput = path.goodput(0, Duration::from_secs(1));
    // All but the first round trip of the second.
    assert!(goodput > 0.9e7, "{goodput}");
    assert_eq!(path.flows[0].lost, lost, "paced, it overflows nothing");
}

#[test]
fn a_policer_is_found_and_its_rate_is_kept_to() {
    let policed = Rate::from_bps(5_000_000).unwrap();
    let settings = Settings { policer: Some((policed, 50.0)), ..Settings::new(50, 40, 2.0) };
    let mut path = bbr_on(settings, 7);
    path.run(Duration::from_secs(3));
    let (delivered, lost) = (path.flows[0].delivered, path.flows[0].lost);
    path.run(Duration::from_secs(30));
    #[allow(clippy::cast_precision_loss)]
    let (delivered, lost) = ((path.flows[0].delivered - delivered) as f64, (path.flows[0].lost - lost) as f64);
    let rate = delivered * 8.0 * f64::from(SEGMENT_BYTES) / 30.0;
    // It keeps to the rate for 48 rounds (2 s) and then tries for more, for the best part of a second: a tenth may
    // be lost to that.
    assert!(rate > 0.9 * 5e6, "{rate}");
    assert!(lost / delivered < 0.12, "{} lost for each delivered", lost / delivered);
}

#[test]
fn two_flows_share_a_bottleneck() {
    let settings = Settings::new(20, 40, 2.0);
    let mut path = bbr_on(settings, 7);
    path.run(Duration::from_secs(3));
    path.add(Algorithm::Bbr.start(10, 8));
    path.run(Duration::from_secs(25));
    let before: Vec<u64> = path.flows.iter().map(|flow| flow.delivered).collect();
    path.run(Duration::from_secs(40));
    #[allow(clippy::cast_precision_loss)]
    let shares: Vec<f64> =
        path.flows.iter().zip(before).map(|(flow, before)| (flow.delivered - before) as f64).collect();
    let jain = (shares[0] + shares[1]).powi(2) / (2.0 * (shares[0].powi(2) + shares[1].powi(2)));
    // Both see the same round trip when they probe it together; 60 and 40 percent make 0.96.
    assert!(jain > 0.96, "{shares:?}");
    let rate = (shares[0] + shares[1]) * 8.0 * f64::from(SEGMENT_BYTES) / 40.0;
    assert!(rate > 0.95 * 20e6, "{rate}");
}

#[test]
fn it_conserves_packets_in_the_first_round_of_recovery_and_restores_the_window() {
    use super::super::{Acknowledged, RateSample, Repair};
    use twinnet_units::Time;
    let mut control = Algorithm::Bbr.start(10, 7);
    control.established(Some(Duration::from_ms(50)), SEGMENT_BYTES, Time::ZERO);
    let told = |delivered_total: u64, repair, lost| Acknowledged {
        now: Time::from_ns(50_000_000 + delivered_total * 1_000_000),
        acknowledged: 2,
        delivered: 2,
        lost,
        in_flight_before: 40,
        in_flight: 38,
        round_trip: Some(Duration::from_ms(50)),
        in_recovery: repair == Repair::Losses,
        repair,
        rate: Some(RateSample {
            delivered: 20,
            interval: Duration::from_ms(50),
            delivered_before: delivered_total.saturating_sub(20),
            delivered_total,
            app_limited: false,
            delayed: false,
        }),
        ..Acknowledged::default()
    };
    (1..=20).for_each(|n| control.acknowledged(&told(2 * n, Repair::Nothing, 0)));
    let good = control.window();
    assert!(good > 42, "{good}");
    control.congested(Congestion::Loss, 40, Time::ZERO);
    control.acknowledged(&told(42, Repair::Losses, 3));
    assert_eq!(control.window(), 40, "as many may be sent as were delivered");
    control.acknowledged(&told(44, Repair::Nothing, 0));
    assert!(control.window() >= good, "{} after repair", control.window());
}

#[test]
fn a_timeout_cuts_the_window_to_one_and_start_up_grows_it_again() {
    let mut path = bbr_on(Settings::new(10, 50, 1.0), 7);
    path.run(Duration::from_secs(5));
    let now = path.now;
    let control = &mut path.flows[0].control;
    control.congested(Congestion::Timeout, 60, now);
    assert_eq!(control.window(), 1);
    path.run(Duration::from_secs(1));
    assert!(path.goodput(0, Duration::from_secs(2)) > 0.95e7);
}

#[test]
fn the_seed_alone_decides_the_phase() {
    let trace = |seed| {
        let mut path = bbr_on(Settings::new(10, 50, 1.0), seed);
        path.watch(Duration::from_secs(3), Duration::from_ms(10), |path| {
            path.flows[0].control.pacing_rate(SEGMENT_BYTES).map(Rate::as_bps)
        })
    };
    assert_eq!(trace(7), trace(7));
    let others = (8..16).filter(|&seed| trace(seed) != trace(7)).count();
    assert!(others >= 4, "one seed in seven agrees by chance: {others} of eight differ");
}
