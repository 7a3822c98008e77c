//! Every method against a path whose truth is known.

use std::ops::RangeInclusive;

use serde_json::json;

use super::estimator::Probing;
use super::framing::{Framing, Layer};
use super::method::Method;
use super::model_path::{Cross, Link, ModelPath, Run};

/// The rows of Aceto and others, *SOMETIME*, TMA 2017: capacity and cross traffic in Mbit/s.
const ROWS: [(f64, f64); 8] =
    [(3.0, 1.5), (5.0, 1.5), (10.0, 2.0), (10.0, 4.0), (20.0, 6.0), (100.0, 74.0), (100.0, 76.0), (1000.0, 74.0)];

fn method(value: serde_json::Value) -> Method {
    let method: Method = serde_json::from_value(value).unwrap();
    method.validate().unwrap();
    method
}

fn run(method: &Method, capacity: f64, load: f64, cross: Cross, seed: u64) -> Run {
    let framing = Framing::new(Layer::Wire, false);
    // The host's own link is ten times as fast.
    let links = vec![
        Link::new(capacity * 10e6, 0.0, cross, 1),
        Link::new(capacity * 1e6, load * 1e6, cross, seed.wrapping_mul(77) + 3),
    ];
    let probing = Probing { framing, most_payload: 1472, most_rate_bps: 2.0 * capacity * 1e6, seed };
    ModelPath::new(links, framing).run(&mut *method.build(probing))
}

/// The greatest error of `count` runs, as a share of the truth, and the mean of bytes.
fn worst(method: &Method, (capacity, load): (f64, f64), cross: Cross, count: u64) -> (f64, f64) {
    let runs: Vec<Run> = (1..=count).map(|seed| run(method, capacity, load, cross, seed)).collect();
    let bytes = runs.iter().map(|run| run.bits / 8.0).sum::<f64>() / count as f64;
    // Without an estimate the error is no number, and no less than any.
    let worst = runs.iter().map(|run| if run.error().is_nan() { f64::INFINITY } else { run.error().abs() });
    (worst.fold(0.0, f64::max), bytes)
}

#[test]
fn the_four_published_tools_are_within_a_tenth_on_every_published_row() {
    for name in ["pathload", "yaz", "assolo", "stab"] {
        for row in ROWS {
            let (worst, _) = worst(&method(json!({"name": name})), row, Cross::Constant, 8);
            assert!(worst <= 0.10, "{name} on {row:?}: {:.1} %", 100.0 * worst);
        }
    }
}

#[test]
fn hybrid_is_within_a_twentieth_on_every_published_row_at_a_fraction_of_pathloads_bytes() {
    for row in ROWS {
        let (error, bytes) = worst(&method(json!({"name": "hybrid"})), row, Cross::Constant, 10);
        assert!(error <= 0.05, "{row:?}: {:.1} %", 100.0 * error);
        let (_, pathload) = worst(&method(json!({"name": "pathload"})), row, Cross::Constant, 10);
        // Of these, 0.03 are what it costs to see that the tight link is not the narrow one.
        assert!(bytes < 0.18 * pathload, "{row:?}: {bytes:.0} of {pathload:.0} bytes");
        // About as exact as Pathload is with fewer trains.
        let (error, bytes) = worst(&method(json!({"name": "hybrid", "least_trains": 3})), row, Cross::Constant, 10);
        assert!(error <= 0.06 && bytes < 0.13 * pathload, "{row:?}: {error}, {bytes:.0} of {pathload:.0} bytes");
    }
}

#[test]
fn hybrid_stays_right_where_traffic_is_random() {
    for row in ROWS {
        let runs: Vec<Run> =
            (1..=20).map(|seed| run(&method(json!({"name": "hybrid"})), row.0, row.1, Cross::Poisson, seed)).collect();
        let rmse = (runs.iter().map(|run| run.error().powi(2)).sum::<f64>() / 20.0).sqrt();
        assert!(rmse < 0.10, "{row:?}: {:.1} %", 100.0 * rmse);
    }
}

#[test]
fn hybrid_stays_right_where_traffic_comes_in_bursts() {
    for row in [(10.0, 2.0), (20.0, 6.0), (1000.0, 74.0)] {
        let bursts = |seed| run(&method(json!({"name": "hybrid"})), row.0, row.1, Cross::ParetoOnOff, seed);
        let rmse = ((1..=20).map(|seed| bursts(seed).error().powi(2)).sum::<f64>() / 20.0).sqrt();
        assert!(rmse < 0.10, "{row:?}: {:.1} %", 100.0 * rmse);
    }
}

#[test]
fn a_loaded_link_that_is_not_the_tight_one_does_not_mislead_hybrid() {
    // 1G/100M/1G with 900, 20 and 900 Mbit/s: 100, 80 and 100 are available.
    let framing = Framing::new(Layer::Wire, false);
    let probing = Probing { framing, most_payload: 1472, most_rate_bps: 1e9, seed: 5 };
    let links = [(1e9, 900e6), (100e6, 20e6), (1e9, 900e6)];
    let links =
        links.iter().zip(1..).map(|((rate, load), seed)| Link::new(*rate, *load, Cross::Constant, seed)).collect();
    let run = ModelPath::new(links, framing).run(&mut *method(json!({"name": "hybrid"})).build(probing));
    assert!(run.error().abs() < 0.1, "{run:?}");
}

#[test]
fn stab_finds_the_tight_link() {
    let framing = Framing::new(Layer::Wire, false);
    let probing = Probing { framing, most_payload: 1472, most_rate_bps: 1e9, seed: 5 };
    let links = [(100e6, 10e6), (100e6, 70e6), (100e6, 20e6)];
    let links =
        links.iter().zip(1..).map(|((rate, load), seed)| Link::new(*rate, *load, Cross::Constant, seed)).collect();
    let run = ModelPath::new(links, framing).run(&mut *method(json!({"name": "stab"})).build(probing));
    let thin: Vec<bool> = run.finding.hops.iter().map(|hop| hop.thin > 0.5).collect();
    assert_eq!(thin, [true, true, false], "{:?}", run.finding);
    assert!(run.error().abs() < 0.1, "{run:?}");
}

#[test]
fn spruce_without_a_capacity_says_so() {
    let none = run(&method(json!({"name": "spruce"})), 10.0, 4.0, Cross::Constant, 1);
    assert!(none.finding.estimate_bps.is_none() && none.finding.gave_up.unwrap().contains("give capacity"));
}

#[test]
fn hybrids_interval_covers_the_truth_about_as_often_as_it_says() {
    for (cross, least) in [(Cross::Constant, 0.9), (Cross::Poisson, 0.9)] {
        let covered = |row: &(f64, f64)| {
            let runs = (1..=25).map(|seed| run(&method(json!({"name": "hybrid"})), row.0, row.1, cross, seed));
            runs.filter(Run::covers).count()
        };
        let covered: Vec<usize> = ROWS.iter().map(covered).collect();
        let share = covered.iter().sum::<usize>() as f64 / (25.0 * ROWS.len() as f64);
        println!("{cross:?}: {share:.3} {covered:?}");
        assert!((least..=1.0).contains(&share), "{cross:?}: {share}, {covered:?} of 25 each");
    }
}

/// The results of runs under one kind of cross traffic.
struct Point {
    mean: f64,
    rmse: f64,
    within_a_tenth: f64,
    covered: f64,
    half_width: f64,
    bytes: f64,
}

fn point(capacity: f64, load: f64, cross: Cross, count: u64) -> Point {
    let hybrid = method(json!({"name": "hybrid"}));
    let runs: Vec<Run> = (1..=count).map(|seed| run(&hybrid, capacity, capacity * load, cross, seed)).collect();
    let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / count as f64;
    let width = |run: &Run| (run.finding.high_bps.unwrap() - run.finding.low_bps.unwrap()) / run.truth;
    Point {
        mean: mean(&Run::error),
        rmse: mean(&|run| run.error().powi(2)).sqrt(),
        within_a_tenth: mean(&|run| f64::from(u8::from(run.error().abs() <= 0.1))),
        covered: mean(&|run| f64::from(u8::from(run.covers()))),
        half_width: mean(&|run| width(run) / 2.0),
        bytes: mean(&|run| run.bits / 8.0),
    }
}

/// With `TWINNET_GRID_RUNS=200 ... -- --nocapture` it prints the table of the documentation.
#[test]
fn hybrid_is_right_and_says_how_right_at_every_load() {
    let count = std::env::var("TWINNET_GRID_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    println!(
        "| cross traffic | load, % | mean error, % | RMSE, % | within 10 %, % | covered, % | half width, % | MB |"
    );
    for cross in [Cross::Constant, Cross::Poisson, Cross::ParetoOnOff] {
        let mut covered = Vec::new();
        for load in [0.1, 0.3, 0.5, 0.7, 0.8, 0.9] {
            let found = point(100.0, load, cross, count);
            println!(
                "| {cross:?} | {:.0} | {:+.1} | {:.1} | {:.0} | {:.1} | {:.1} | {:.1} |",
                100.0 * load,
                100.0 * found.mean,
                100.0 * found.rmse,
                100.0 * found.within_a_tenth,
                100.0 * found.covered,
                100.0 * found.half_width,
                found.bytes / 1e6
            );
            // Silences of Pareto's law may be longer than an estimate; at 70 % and more some are.
            let least = if matches!(cross, Cross::ParetoOnOff) && load > 0.6 { 0.4 } else { 0.85 };
            assert!(found.within_a_tenth >= least, "{cross:?} at {load}: {}", found.within_a_tenth);
            covered.push(found.covered);
        }
        let share = covered.iter().sum::<f64>() / covered.len() as f64;
        // 48 runs of a true 95 % leave a standard error of 3 %; three of them below.
        assert!(share >= 0.86, "{cross:?}: {share}, {covered:?}");
    }
}

/// The root of the mean square of errors, and the mean of bytes, over runs with `seeds`.
fn error_and_bytes(method: &Method, load: f64, cross: Cross, seeds: RangeInclusive<u64>) -> (f64, f64) {
    let runs: Vec<Run> = seeds.map(|seed| run(method, 100.0, 100.0 * load, cross, seed)).collect();
    // Who gives no estimate is as wrong as who says that nothing is available.
    let square = |run: &Run| if run.error().is_nan() { 1.0 } else { run.error().powi(2) };
    let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    (mean(&square).sqrt(), mean(&|run| run.bits / 8.0))
}

/// The settings of `hybrid` that are tried, from the cheapest on: the least number of trains, and the precision.
const HYBRIDS: [(u32, f64); 8] = [(3, 0.3), (3, 0.2), (3, 0.1), (6, 0.1), (6, 0.05), (6, 0.03), (6, 0.02), (6, 0.01)];

/// The setting of `hybrid` is chosen on loads of 30, 50 and 70 % and held to other seeds, there and at 40 and 60 %,
/// where nothing was chosen. With `-- --nocapture` it prints the table of the documentation.
#[test]
fn hybrid_needs_fewer_bytes_than_pathload_for_the_same_error() {
    let count = std::env::var("TWINNET_GRID_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let hybrid = |(least, precision): (u32, f64)| {
        method(json!({"name": "hybrid", "least_trains": least, "precision": precision, "trains": 600}))
    };
    let pathload = [method(json!({"name": "pathload"})), Method::published("pathload").unwrap()];
    println!(
        "| cross traffic | load, % | pathload: RMSE, % | MB | as published | MB | hybrid | MB | share | of published |"
    );
    for cross in [Cross::Poisson, Cross::ParetoOnOff] {
        let mut chosen = HYBRIDS[0];
        for load in [0.3, 0.4, 0.5, 0.6, 0.7] {
            // At 40 and 60 % the setting of the load before.
            if !matches!(load, 0.4 | 0.6) {
                let wanted = error_and_bytes(&pathload[0], load, cross, 1..=count).0;
                chosen = HYBRIDS
                    .into_iter()
                    .find(|one| error_and_bytes(&hybrid(*one), load, cross, 1..=count).0 <= wanted)
                    .unwrap_or(HYBRIDS[7]);
            }
            let held = 1001..=1000 + count;
            let theirs = pathload.each_ref().map(|one| error_and_bytes(one, load, cross, held.clone()));
            let (ours, sent) = error_and_bytes(&hybrid(chosen), load, cross, held);
            let [(error, bytes), (published_error, published_bytes)] = theirs;
            println!(
                "| {cross:?} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.0} | {:.0} |",
                100.0 * load,
                100.0 * error,
                bytes / 1e6,
                100.0 * published_error,
                published_bytes / 1e6,
                100.0 * ours,
                sent / 1e6,
                100.0 * sent / bytes,
                100.0 * sent / published_bytes
            );
            // Of the goal, a tenth of the data, chance takes something on seeds that nothing was chosen on.
            let told = format!("{cross:?} at {load}: {ours} with {sent}, beside {error} with {bytes}");
            assert!(ours <= error && sent < 0.25 * bytes, "{told}");
        }
    }
}

#[test]
fn hybrid_says_that_several_links_are_tight() {
    let count = std::env::var("TWINNET_GRID_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    println!("| links | packets at once | after them | mean error, % | RMSE, % | covered, % | told, % | MB |");
    // The last row is one tight link behind a sender's link that is no faster.
    for (loads, burst, packets) in [
        ([50e6, 50e6, 50e6], 5, 18),
        ([50e6, 50e6, 50e6], 5, 200),
        ([50e6, 50e6, 50e6], 64, 100),
        ([0.0, 50e6, 0.0], 5, 18),
    ] {
        let hybrid = method(json!({"name": "hybrid", "burst": burst, "packets": packets}));
        let runs: Vec<Run> = (1..=count)
            .map(|seed| {
                let framing = Framing::new(Layer::Wire, false);
                let probing = Probing { framing, most_payload: 1472, most_rate_bps: 200e6, seed };
                let links = loads.iter().zip(0..).map(|(load, number)| {
                    let seed = 3 * seed + number;
                    Link::new(100e6, *load, Cross::Poisson, seed)
                });
                ModelPath::new(links.collect(), framing).run(&mut *hybrid.build(probing))
            })
            .collect();
        let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / count as f64;
        let told = mean(&|run| {
            let said = run.finding.notes.iter().any(|note| note.starts_with("several links"));
            f64::from(u8::from(said))
        });
        let covered = mean(&|run| f64::from(u8::from(run.covers())));
        println!(
            "| {loads:?} | {burst} | {packets} | {:+.1} | {:.1} | {:.0} | {:.0} | {:.1} |",
            100.0 * mean(&Run::error),
            100.0 * mean(&|run| run.error().powi(2)).sqrt(),
            100.0 * covered,
            100.0 * told,
            mean(&|run| run.bits / 8e6)
        );
        if loads[0] > 0.0 && burst == 5 {
            assert!(told >= 0.5 && covered >= 0.5, "{loads:?}: {covered}, {told}");
        }
    }
}

/// Links of a path: their rates and loads in Mbit/s.
fn path(links: &[(f64, f64)], cross: Cross, seed: u64) -> Vec<Link> {
    let numbered = links.iter().zip(0..);
    numbered.map(|((rate, load), number)| Link::new(rate * 1e6, load * 1e6, cross, 10 * seed + number)).collect()
}

/// With `TWINNET_GRID_RUNS=24 ... -- --nocapture` it prints the table of the documentation.
#[test]
fn hybrid_is_not_silently_wrong_where_the_tight_link_is_not_the_narrow_one() {
    let count = std::env::var("TWINNET_GRID_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let hybrid = method(json!({"name": "hybrid"}));
    println!("| cross traffic | links (load), Mbit/s | mean error, % | RMSE, % | covered, % | told, % | MB |");
    for cross in [Cross::Constant, Cross::Poisson] {
        for (links, tight) in [
            ([(1000.0, 950.0), (100.0, 20.0), (1000.0, 0.0)], true),
            ([(1000.0, 900.0), (200.0, 20.0), (1000.0, 300.0)], true),
            ([(100.0, 20.0), (1000.0, 0.0), (1000.0, 950.0)], true),
            ([(300.0, 250.0), (100.0, 20.0), (1000.0, 0.0)], true),
            ([(50.0, 10.0), (400.0, 375.0), (100.0, 20.0)], true),
            ([(1000.0, 900.0), (100.0, 20.0), (1000.0, 900.0)], false),
            ([(1000.0, 500.0), (100.0, 60.0), (1000.0, 200.0)], false),
        ] {
            let runs: Vec<Run> = (1..=count)
                .map(|seed| {
                    let framing = Framing::new(Layer::Wire, false);
                    let probing = Probing { framing, most_payload: 1472, most_rate_bps: 200e6, seed };
                    let links = std::iter::once(Link::new(10e9, 0.0, cross, 1)).chain(path(&links, cross, seed));
                    ModelPath::new(links.collect(), framing).run(&mut *hybrid.build(probing))
                })
                .collect();
            let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / count as f64;
            let told = mean(&|run| {
                let said = |note: &String| note.contains("tight link is not") || note.contains("may be the tight one");
                f64::from(u8::from(run.finding.notes.iter().any(said)))
            });
            let covered = mean(&|run| f64::from(u8::from(run.covers())));
            println!(
                "| {cross:?} | {links:?} | {:+.1} | {:.1} | {:.0} | {:.0} | {:.1} |",
                100.0 * mean(&Run::error),
                100.0 * mean(&|run| run.error().powi(2)).sqrt(),
                100.0 * covered,
                100.0 * told,
                mean(&|run| run.bits / 8e6)
            );
            let said = format!("{cross:?}, {links:?}: {covered}, {told}");
            if matches!(cross, Cross::Constant) {
                assert!(covered >= 0.8 && (told > 0.9) == tight, "{said}");
            } else {
                // By random traffic the estimate may be half too high, and then its interval and a note say so. A note
                // where the narrow link is the tight one is no error.
                assert!(covered >= 0.8 && (told >= 0.8 || !tight), "{said}");
            }
        }
    }
}
