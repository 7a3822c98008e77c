//! Our own method with what counters say beforehand: exact, jittered, coarse, and withheld.

use serde_json::json;

use super::estimator::{mean_and_error, Probing};
use super::framing::{Framing, Layer};
use super::method::Method;
use super::model_path::{Cross, Link, ModelPath, Run};
use crate::schedule::random::Stream;

/// How counters are read before an estimate.
#[derive(Clone, Copy, Debug)]
struct Polling {
    period_s: f64,
    /// Standard deviation of the control delay, where its arrival divides the counters' difference.
    jitter_s: f64,
}

/// Polling periods that a prior is of: as many as `AvailableBandwidth.prior` takes.
const PERIODS: u32 = 10;

/// Those periods of counters: mean, standard deviation between them (with what jitter leaves) and the tight link's
/// capacity, as `AvailableBandwidth.prior` computes them, which allows for few periods besides.
fn prior(path: &mut ModelPath, polling: Polling, random: &mut Stream) -> (f64, f64, f64) {
    let rates = path.rates();
    let mut before = path.poll(1.0);
    let mut late_s = 0.0;
    let (mut found, mut tight) = (Vec::new(), 0);
    for _ in 0..PERIODS {
        let now = path.poll(polling.period_s);
        // Uniform with that standard deviation.
        let later_s = polling.jitter_s * 12.0_f64.sqrt() * (random.uniform() - 0.5);
        let seconds = polling.period_s + later_s - late_s;
        let left = |link: usize| rates[link] - (now[link] - before[link]) / seconds;
        tight = (0..rates.len()).min_by(|one, other| left(*one).total_cmp(&left(*other))).unwrap();
        found.push(left(tight));
        (before, late_s) = (now, later_s);
    }
    let (mean, error) = mean_and_error(&found).unwrap();
    let timing = (rates[tight] - mean) * polling.jitter_s / polling.period_s;
    (mean, (error * f64::from(PERIODS).sqrt()).hypot(timing).max(1.0), rates[tight])
}

fn run(links: &[(f64, f64)], cross: Cross, polling: Option<Polling>, seed: u64) -> Run {
    let framing = Framing::new(Layer::Wire, false);
    let probing = Probing { framing, most_payload: 1472, most_rate_bps: 200e6, seed };
    let own = std::iter::once(Link::new(10e9, 0.0, cross, 1));
    let numbered = links.iter().zip(0..);
    let links = numbered.map(|((rate, load), number)| Link::new(rate * 1e6, load * 1e6, cross, 10 * seed + number));
    let mut path = ModelPath::new(own.chain(links).collect(), framing);
    let mut settings = json!({"name": "hybrid"});
    if let Some(polling) = polling {
        let (mean, deviation, capacity) = prior(&mut path, polling, &mut Stream::new(seed + 1000));
        settings["prior_bps"] = json!(mean.max(0.0));
        settings["prior_std_bps"] = json!(deviation);
        settings["prior_window_ns"] = json!(polling.period_s * 1e9);
        settings["capacity_bps"] = json!(capacity);
    }
    let method: Method = serde_json::from_value(settings).unwrap();
    path.run(&mut *method.build(probing))
}

/// With `TWINNET_GRID_RUNS=24 ... -- --nocapture` it prints the table of the documentation.
#[test]
fn hybrid_uses_counters_that_are_coarse_or_jittered_for_what_they_are_worth() {
    let count = std::env::var("TWINNET_GRID_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let exact = Polling { period_s: 1.0, jitter_s: 0.0 };
    let polled = [
        ("withheld", None),
        ("1 s", Some(exact)),
        ("1 s, 10 ms jitter", Some(Polling { jitter_s: 0.01, ..exact })),
        ("5 s", Some(Polling { period_s: 5.0, ..exact })),
        ("5 s, 10 ms jitter", Some(Polling { period_s: 5.0, jitter_s: 0.01 })),
    ];
    println!("| links (load), Mbit/s | cross traffic | counters | mean error, % | RMSE, % | covered, % | MB |");
    for (links, cross) in [
        (vec![(100.0, 50.0)], Cross::Constant),
        (vec![(100.0, 50.0)], Cross::Poisson),
        (vec![(100.0, 50.0)], Cross::ParetoOnOff),
        (vec![(100.0, 50.0); 3], Cross::Poisson),
        (vec![(1000.0, 950.0), (100.0, 20.0), (1000.0, 0.0)], Cross::Poisson),
    ] {
        for (name, polling) in polled {
            let runs: Vec<Run> = (1..=count).map(|seed| run(&links, cross, polling, seed)).collect();
            let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / count as f64;
            let rmse = mean(&|run| run.error().powi(2)).sqrt();
            let covered = mean(&|run| f64::from(u8::from(run.covers())));
            println!(
                "| {links:?} | {cross:?} | {name} | {:+.1} | {:.1} | {:.0} | {:.1} |",
                100.0 * mean(&Run::error),
                100.0 * rmse,
                100.0 * covered,
                mean(&|run| run.bits / 8e6)
            );
            if links.len() == 1 && !matches!(cross, Cross::ParetoOnOff) {
                assert!(rmse < 0.05, "{cross:?}, {name}: {rmse}");
            }
        }
    }
}
