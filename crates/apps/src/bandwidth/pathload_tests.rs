//! What Pathload makes of the streams that it hears: the next rate, fleets that disagree, losses, and senders that do
//! not keep their gaps.

use super::estimator::{Estimator, Finding, Probing, Step};
use super::framing::{Framing, Layer};
use super::pathload::{Pathload, PathloadConfig};
use super::train::{Plan, Train};

const FRAMING: Framing = Framing::new(Layer::Wire, false);
const MBPS: f64 = 1e6;

/// The delays of a stream.
#[derive(Clone, Copy, PartialEq)]
enum Delays {
    Rise,
    Flat,
    /// Most medians are above the one before, and the last is as the first: the two tests contradict each other.
    Saw,
}
use Delays::{Flat, Rise, Saw};

impl Delays {
    fn of(self, place: usize) -> i64 {
        match self {
            Rise => 20_000 * place as i64,
            Flat => 0,
            Saw => 10_000 * [0, 1, 2, 3, 4, 0, 1, 2, 3, 0][place / 10 % 10],
        }
    }
}

fn probing(most_rate_bps: f64) -> Probing {
    Probing { framing: FRAMING, most_payload: 1472, most_rate_bps, seed: 7 }
}

fn asked(pathload: &mut Pathload) -> (Plan, f64) {
    match pathload.next() {
        Step::Send { plan, idle_ns } => (plan, idle_ns),
        Step::Done => panic!("it has ended: {:?}", pathload.finding()),
    }
}

/// The train as it was asked for, with these delays.
fn train(plan: Plan, delays: Delays) -> Train {
    let sent_ns: Vec<i64> = plan.packets.iter().map(|packet| packet.at_ns as i64).collect();
    let arrived_ns =
        sent_ns.iter().enumerate().map(|(place, sent)| Some(sent + 5_000_000 + delays.of(place))).collect();
    Train { plan, sent_ns, arrived_ns, ..Train::default() }
}

/// The train with its gaps stretched, as by a slow sender.
fn stretched(plan: Plan, by: f64, delays: Delays) -> Train {
    let mut slow = train(plan, delays);
    for place in 0..slow.sent_ns.len() {
        slow.sent_ns[place] = (slow.sent_ns[place] as f64 * by) as i64;
        slow.arrived_ns[place] = Some(slow.sent_ns[place] + 5_000_000 + delays.of(place));
    }
    slow
}

/// The train without `count` of its packets.
fn lossy(mut train: Train, count: usize) -> Train {
    for arrived in train.arrived_ns.iter_mut().skip(30).take(count) {
        *arrived = None;
    }
    train
}

/// Answers the first train, sent at once, at `rate_bps`.
fn disperse(pathload: &mut Pathload, rate_bps: f64) {
    let mut first = train(asked(pathload).0, Flat);
    for (place, arrived) in first.arrived_ns.iter_mut().enumerate() {
        *arrived = Some((place as f64 * 12_304e9 / rate_bps).round() as i64);
    }
    pathload.hear(&first);
}

/// As published, so that gaps do not vary, behind a path of 100 Mbit/s.
fn published() -> Pathload {
    let mut pathload = Pathload::new(PathloadConfig::published(), probing(1000.0 * MBPS));
    disperse(&mut pathload, 100.0 * MBPS);
    pathload
}

/// Answers twelve streams, each as `answer` says by its number; the rate that was asked for, in Mbit/s.
fn fleet(pathload: &mut Pathload, mut answer: impl FnMut(usize, Plan) -> Train) -> f64 {
    let mut rates = Vec::new();
    for number in 0..12 {
        let (plan, _) = asked(pathload);
        rates.push(plan.rate_bps(FRAMING).unwrap() / MBPS);
        pathload.hear(&answer(number, plan));
    }
    assert!(rates.iter().all(|rate| (rate / rates[0] - 1.0).abs() < 1e-6), "one rate for a fleet: {rates:?}");
    rates[0]
}

/// Answers a fleet whose first streams have one kind of delays, and the rest another.
fn split(pathload: &mut Pathload, first: usize, delays: [Delays; 2]) -> f64 {
    fleet(pathload, |number, plan| train(plan, delays[usize::from(number >= first)]))
}

/// Answers fleets that are wholly of one kind, or half of each for [`Saw`]; the rates that were asked for.
fn fleets(pathload: &mut Pathload, of: &[Delays]) -> Vec<f64> {
    let halves = |delays| if delays == Saw { [Rise, Flat] } else { [delays, delays] };
    of.iter().map(|delays| split(pathload, 6, halves(*delays))).collect()
}

/// The rate of the next stream, in Mbit/s.
fn next_rate(pathload: &mut Pathload) -> f64 {
    asked(pathload).0.rate_bps(FRAMING).unwrap() / MBPS
}

fn near(found: f64, wanted: f64) -> bool {
    // Payloads are whole bytes, and times whole nanoseconds.
    (found / wanted - 1.0).abs() < 0.002
}

fn assert_near(found: &[f64], wanted: &[f64]) {
    assert!(
        found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| near(*found, *wanted)),
        "{found:?} for {wanted:?}"
    );
}

/// Low end, estimate and high end in Mbit/s.
fn range(finding: &Finding) -> [f64; 3] {
    [finding.low_bps, finding.estimate_bps, finding.high_bps].map(|one| one.unwrap_or(f64::NAN) / MBPS)
}

#[test]
fn the_first_train_leaves_at_once_and_is_shorter_each_time_that_it_is_lossy() {
    let mut pathload = Pathload::new(PathloadConfig::published(), probing(1000.0 * MBPS));
    for count in [50, 45, 40, 35, 30] {
        let (plan, idle_ns) = asked(&mut pathload);
        assert_eq!((plan.packets.len(), plan.duration_ns(), idle_ns), (count, 0, 100e6));
        assert!(plan.packets.iter().all(|packet| packet.payload == 1472));
        let mut heard = train(plan, Flat);
        // 123.04 Mbit/s, and the last is lost. Of the fifth train that is good enough.
        heard.arrived_ns =
            (0..count as i64).map(|place| (place + 1 < count as i64).then_some(100_000 * place)).collect();
        pathload.hear(&heard);
    }
    assert_near(&[next_rate(&mut pathload)], &[123.04]);
}

#[test]
fn a_path_that_lets_four_packets_through_is_given_up_after_five_trains() {
    let mut pathload = Pathload::new(PathloadConfig::published(), probing(1000.0 * MBPS));
    for _ in 0..5 {
        let mut heard = train(asked(&mut pathload).0, Rise);
        for arrived in heard.arrived_ns.iter_mut().skip(4) {
            *arrived = None;
        }
        pathload.hear(&heard);
    }
    assert_eq!(pathload.next(), Step::Done);
    let finding = pathload.finding();
    assert!(finding.gave_up.unwrap().contains("the path loses almost all of them"));
    assert_eq!((finding.estimate_bps, finding.low_bps, finding.high_bps), (None, None, None));
}

#[test]
fn a_first_rate_out_of_what_can_be_sent_is_replaced_by_the_middle() {
    // The least rate is that of the shortest packets 200 ms apart: 10.64 kbit/s.
    for (dispersion, most, first) in [(123.04, 100.0, 50.005), (0.005, 1000.0, 500.005), (99.0, 100.0, 99.0)] {
        let mut pathload = Pathload::new(PathloadConfig::published(), probing(most * MBPS));
        disperse(&mut pathload, dispersion * MBPS);
        assert_near(&[next_rate(&mut pathload)], &[first]);
    }
    // Full packets at the shortest gap, 7 us, are 1757.7 Mbit/s.
    let mut pathload = Pathload::new(PathloadConfig::published(), probing(10_000.0 * MBPS));
    disperse(&mut pathload, 2000.0 * MBPS);
    assert_near(&[next_rate(&mut pathload)], &[878.86]);
}

#[test]
fn a_stream_has_the_usual_gap_where_its_packets_can_have_the_length_for_it() {
    for (rate, payload, gap_us) in [
        (1.0, 200, 2128.0),
        (20.0, 200, 106.4),
        (60.01, 534, 80.0),
        (149.05, 1424, 80.0),
        (170.0, 1471, 72.329),
        // Here gaps are whole nanoseconds, and the payload follows; from 600 Mbit/s on it is the longest.
        (300.0, 1471, 40.987),
        (700.0, 1472, 17.577),
        (1500.0, 1472, 8.203),
    ] {
        let mut pathload = Pathload::new(PathloadConfig::published(), probing(10_000.0 * MBPS));
        disperse(&mut pathload, rate * MBPS);
        let (plan, idle_ns) = asked(&mut pathload);
        assert_eq!((plan.packets.len(), plan.packets[0].payload), (100, payload), "{rate}");
        assert!(near(plan.duration_ns() as f64 / 99e3, gap_us), "{rate}: {} ns", plan.duration_ns());
        // The mean load while it probes is a tenth of the rate.
        assert!((idle_ns / plan.duration_ns() as f64 - 9.0).abs() < 1e-9, "{rate}: {idle_ns}");
    }
}

#[test]
fn gaps_and_silences_vary_by_as_much_as_they_are_told_to() {
    let mut pathload = Pathload::new(PathloadConfig::default(), probing(1000.0 * MBPS));
    disperse(&mut pathload, 5.0 * MBPS);
    let (mut shares, mut silences) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        let (plan, idle_ns) = asked(&mut pathload);
        let planned = FRAMING.gap_ns(plan.packets[0].payload, 5.0 * MBPS);
        shares.extend(plan.packets.windows(2).map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64 / planned));
        silences.push(idle_ns / plan.duration_ns() as f64);
        pathload.hear(&train(plan, Rise));
    }
    let ends = |of: &[f64]| of.iter().fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(*one), high.max(*one)));
    // Of 1188 even draws the least and the greatest are within a hundredth of their bounds; of 12 within a half.
    let (low, high) = ends(&shares);
    assert!((0.799..0.81).contains(&low) && (1.19..1.201).contains(&high), "{low} to {high}");
    let (low, high) = ends(&silences);
    assert!((9.0..9.5).contains(&low) && (9.5..=10.0).contains(&high), "{low} to {high}");
}

#[test]
fn fleets_that_agree_halve_the_range_until_it_is_fine_enough() {
    let mut pathload = published();
    let rates = fleets(&mut pathload, &[Rise, Flat, Rise, Rise, Flat, Flat, Rise]);
    assert_near(&rates, &[100.0, 50.005, 75.0, 62.5, 56.25, 59.38, 60.94]);
    // Two per cent of the dispersion rate.
    assert_eq!(pathload.next(), Step::Done);
    let finding = pathload.finding();
    assert_near(&range(&finding), &[59.38, 60.16, 60.94]);
    assert_eq!((finding.gave_up, finding.notes), (None, vec![]));
}

#[test]
fn what_fleets_disagree_on_is_the_answer_when_both_sides_of_it_are_known() {
    let mut pathload = published();
    let rates = fleets(&mut pathload, &[Rise, Flat, Saw, Rise, Saw, Rise, Flat, Flat, Flat]);
    assert_near(&rates, &[100.0, 50.005, 75.0, 87.5, 81.25, 84.38, 62.5, 68.75, 71.875]);
    assert_eq!(pathload.next(), Step::Done);
    assert_near(&range(&pathload.finding()), &[75.0, 78.125, 81.25]);
}

#[test]
fn what_may_remain_beside_the_grey_region_is_at_most_12_mbps() {
    let mut pathload = Pathload::new(PathloadConfig::published(), probing(10_000.0 * MBPS));
    disperse(&mut pathload, 1000.0 * MBPS);
    let rates = fleets(&mut pathload, &[Rise, Flat, Saw, Rise, Rise, Rise, Rise, Rise]);
    assert_near(&rates, &[1000.0, 500.0, 750.0, 875.0, 812.5, 781.25, 765.6, 757.8]);
    assert_near(&[next_rate(&mut pathload)], &[625.0]);
}

#[test]
fn the_side_of_the_grey_region_that_is_not_fine_is_searched_next() {
    let mut pathload = published();
    fleets(&mut pathload, &[Rise, Flat, Flat, Saw]);
    // The sender is slow, so that this fleet is close below the grey region; above it nothing is known to 100 Mbit/s.
    fleet(&mut pathload, |_, plan| stretched(plan, 93.75 / 84.0, Flat));
    assert_near(&[next_rate(&mut pathload)], &[93.75]);
}

#[test]
fn the_least_rate_is_that_of_the_shortest_packets_200_ms_apart() {
    let mut pathload = Pathload::new(PathloadConfig::published(), probing(1000.0 * MBPS));
    disperse(&mut pathload, 0.03 * MBPS);
    assert_near(&fleets(&mut pathload, &[Rise, Rise]), &[0.03, 0.02032]);
}

#[test]
fn a_fleet_that_contradicts_the_grey_region_makes_it_forgotten() {
    let mut above = published();
    fleets(&mut above, &[Rise, Flat, Saw]);
    assert_near(&fleets(&mut above, &[Flat, Flat]), &[87.5, 93.75]);
    let mut below = published();
    fleets(&mut below, &[Rise, Flat, Saw, Rise, Saw, Rise]);
    assert_near(&fleets(&mut below, &[Rise, Rise]), &[62.5, 56.25]);
}

#[test]
fn bounds_that_a_later_fleet_contradicts_are_forgotten() {
    // The sender sends at other rates than it is told to; the rate that counts is that at which it sent.
    let mut slow = published();
    fleets(&mut slow, &[Rise, Flat]);
    fleet(&mut slow, |_, plan| stretched(plan, 2.5, Rise));
    assert_eq!(slow.next(), Step::Done);
    assert_near(&range(&slow.finding()), &[30.0, 30.0, 30.0]);
    let mut fast = published();
    fleets(&mut fast, &[Rise, Flat]);
    fleet(&mut fast, |_, plan| stretched(plan, 0.5, Flat));
    assert_near(&fleets(&mut fast, &[Rise]), &[150.0]);
    assert_near(&range(&fast.finding()), &[150.0, 150.0, 150.0]);
}

#[test]
fn a_range_that_is_not_settled_is_that_of_the_bounds() {
    let mut pathload = published();
    assert_eq!(pathload.finding(), Finding::default());
    fleets(&mut pathload, &[Rise, Saw]);
    assert_near(&range(&pathload.finding())[1..], &[50.0, 100.0]);
    let few = PathloadConfig { fleets: 2, ..PathloadConfig::published() };
    let mut pathload = Pathload::new(few, probing(1000.0 * MBPS));
    disperse(&mut pathload, 100.0 * MBPS);
    fleets(&mut pathload, &[Rise, Flat]);
    assert_eq!(pathload.next(), Step::Done);
    let finding = pathload.finding();
    assert_eq!(finding.gave_up.as_deref(), Some("the search had not ended after 2 fleets"));
    assert_near(&range(&finding), &[50.005, 75.0, 100.0]);
}

#[test]
fn a_fleet_decides_by_three_of_five_of_the_streams_that_can_be_judged() {
    // (rising, of the other kind, the next rate): 50 after a fleet that rises, 200 after one that does not, and half as
    // much again where streams disagree.
    for (rising, rest, next) in
        [(8, Flat, 50.005), (7, Flat, 150.0), (7, Saw, 150.0), (4, Flat, 200.0), (5, Flat, 150.0), (4, Saw, 150.0)]
    {
        let mut pathload = published();
        split(&mut pathload, rising, [Rise, rest]);
        assert_near(&[next_rate(&mut pathload)], &[next]);
    }
    // Two whose clock was set are left out: six of ten rise, or do not.
    for (six, four, next) in [(Rise, Flat, 50.005), (Flat, Rise, 200.0)] {
        let mut pathload = published();
        fleet(&mut pathload, |number, plan| {
            let delays = if number < 6 { six } else { four };
            Train { clock_stepped: number >= 10, ..train(plan, delays) }
        });
        assert_near(&[next_rate(&mut pathload)], &[next]);
    }
}

#[test]
fn the_longest_piece_that_the_sender_did_not_interrupt_is_judged() {
    let interrupted = |plan: Plan, places: &[usize], delays: Delays| {
        let mut train = train(plan, delays);
        for place in places {
            for later in *place..train.sent_ns.len() {
                train.sent_ns[later] += 3_000_000;
                train.arrived_ns[later] = train.arrived_ns[later].map(|at| at + 3_000_000);
            }
        }
        train
    };
    // The first 40 packets rise, the other 60 do not.
    let mut pathload = published();
    fleet(&mut pathload, |_, plan| {
        let mut train = interrupted(plan, &[40], Flat);
        for place in 0..40 {
            train.arrived_ns[place] = train.arrived_ns[place].map(|at| at + Rise.of(place));
        }
        train
    });
    assert_near(&[next_rate(&mut pathload)], &[200.0]);
    assert_eq!(pathload.finding().notes, ["12 gaps in which the sender lost its processor"]);
    // Pieces of 35, 35 and 30 are too short: a fleet of them is sent again, and not a third time.
    let mut pathload = published();
    for _ in 0..2 {
        let rate = fleet(&mut pathload, |number, plan| {
            let places: &[usize] = if number < 7 { &[35, 70] } else { &[] };
            interrupted(plan, places, Rise)
        });
        assert_near(&[rate], &[100.0]);
    }
    assert_eq!(pathload.next(), Step::Done);
    assert!(pathload.finding().gave_up.unwrap().contains("the sender loses its processor"));
    // Half of them is enough, and pieces of 36 are long enough.
    for (places, count) in [([35, 70], 6), ([36, 72], 12)] {
        let mut pathload = published();
        fleet(&mut pathload, |number, plan| interrupted(plan, if number < count { &places[..] } else { &[] }, Rise));
        assert_near(&[next_rate(&mut pathload)], &[50.005]);
    }
    // A fleet that could be used lets the next one be repeated again.
    let mut pathload = published();
    let broken = |pathload: &mut Pathload| fleet(pathload, |_, plan| interrupted(plan, &[35, 70], Rise));
    broken(&mut pathload);
    fleets(&mut pathload, &[Rise]);
    broken(&mut pathload);
    assert_near(&[next_rate(&mut pathload)], &[50.005]);
}

#[test]
fn losses_take_a_stream_for_one_that_is_too_fast() {
    // One stream of 15 lost packets is enough.
    let mut pathload = published();
    let (plan, _) = asked(&mut pathload);
    pathload.hear(&lossy(train(plan, Flat), 15));
    assert_near(&[next_rate(&mut pathload)], &[50.005]);
    // Of three lost packets it takes half of the fleet: at the sixth it ends.
    let mut pathload = published();
    for _ in 0..6 {
        assert_near(&[next_rate(&mut pathload)], &[100.0]);
        let (plan, _) = asked(&mut pathload);
        pathload.hear(&lossy(train(plan, Flat), 3));
    }
    assert_near(&[next_rate(&mut pathload)], &[50.005]);
    // Five of 14 lost packets, or all of two, say nothing by their losses.
    for (streams, lost) in [(5, 14), (12, 2)] {
        let mut pathload = published();
        fleet(&mut pathload, |number, plan| lossy(train(plan, Flat), if number < streams { lost } else { 0 }));
        assert_near(&[next_rate(&mut pathload)], &[200.0]);
    }
    let one = PathloadConfig { streams: 1, ..PathloadConfig::published() };
    let mut pathload = Pathload::new(one, probing(1000.0 * MBPS));
    disperse(&mut pathload, 100.0 * MBPS);
    let (plan, _) = asked(&mut pathload);
    pathload.hear(&lossy(train(plan, Flat), 3));
    assert_near(&[next_rate(&mut pathload)], &[50.005]);
}

#[test]
fn the_rate_of_a_fleet_is_that_at_which_it_was_sent() {
    let mut pathload = published();
    fleet(&mut pathload, |_, plan| stretched(plan, 1.25, Rise));
    assert_near(&[next_rate(&mut pathload)], &[40.005]);
    assert_eq!(pathload.finding().notes, ["asked for 100.000 Mbit/s, the sender generated 80.000 Mbit/s"]);
    // Gaps of a sender that was held up now and then do not count, where they make the stream longer by a twentieth...
    let held = |plan: Plan, by_ns: i64, every: usize| {
        let mut train = train(plan, Rise);
        for place in (5..train.sent_ns.len()).step_by(every) {
            for later in place..train.sent_ns.len() {
                train.sent_ns[later] += by_ns;
                train.arrived_ns[later] = train.arrived_ns[later].map(|at| at + by_ns);
            }
        }
        train
    };
    let mut pathload = published();
    fleet(&mut pathload, |_, plan| held(plan, 900_000, 10));
    assert_near(&[next_rate(&mut pathload)], &[50.005]);
    assert_eq!(pathload.finding().notes.len(), 0);
    // What is left is the mean gap, and not the least, where gaps vary.
    let mut uneven = Pathload::new(PathloadConfig::default(), probing(1000.0 * MBPS));
    disperse(&mut uneven, 100.0 * MBPS);
    for _ in 0..12 {
        let (plan, _) = asked(&mut uneven);
        uneven.hear(&held(plan, 900_000, 10));
    }
    let (plan, _) = asked(&mut uneven);
    assert!((plan.rate_bps(FRAMING).unwrap() / (50.4 * MBPS) - 1.0).abs() < 0.06, "{:?}", plan.rate_bps(FRAMING));
    // ... and do where they do not: 4 % longer is 4 % slower.
    let mut pathload = published();
    fleet(&mut pathload, |_, plan| {
        let by_ns = plan.duration_ns() as i64 / 25;
        held(plan, by_ns, 1000)
    });
    assert_near(&[next_rate(&mut pathload)], &[48.08]);
}

#[test]
fn a_rate_above_what_can_be_sent_is_tried_once_and_the_bound_is_told() {
    let mut pathload = Pathload::new(PathloadConfig::published(), probing(120.0 * MBPS));
    disperse(&mut pathload, 100.0 * MBPS);
    assert_near(&fleets(&mut pathload, &[Flat, Flat]), &[100.0, 120.0]);
    assert_eq!(pathload.next(), Step::Done);
    let finding = pathload.finding();
    let why = finding.gave_up.clone().unwrap();
    assert!(why.contains("above 120.0 Mbit/s") && why.contains("gap of 7000 ns"), "{why}");
    assert_eq!((finding.estimate_bps, finding.high_bps), (None, None));
    assert_near(&[finding.low_bps.unwrap() / MBPS], &[120.0]);
}

#[test]
fn streams_that_arrive_in_batches_are_told() {
    let batched = |plan: Plan, of: usize, apart_ns: i64| {
        let mut train = train(plan, Flat);
        // The first of so many waits for the last.
        for place in 0..train.sent_ns.len() {
            let last = (place / of * of + of - 1).min(train.sent_ns.len() - 1);
            train.arrived_ns[place] = Some(train.sent_ns[last] + apart_ns * (place % of) as i64);
        }
        train
    };
    // Of batches of three two in three arrivals are within 7 us of the one before, of pairs one in two.
    let told = "12 streams arrived in batches (interrupt coalescence or offload)";
    for (of, apart_ns, notes) in [(3, 6000, vec![told]), (3, 8000, vec![]), (2, 6000, vec![])] {
        let mut pathload = published();
        fleet(&mut pathload, |_, plan| batched(plan, of, apart_ns));
        assert_eq!(pathload.finding().notes, notes);
    }
}
