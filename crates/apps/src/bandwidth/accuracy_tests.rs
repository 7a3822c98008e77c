//! Every method against a path whose truth is known.

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

#[test]
#[ignore = "prints"]
fn table() {
    for (cross, name) in [(Cross::Constant, "cbr"), (Cross::Poisson, "poisson"), (Cross::ParetoOnOff, "pareto")] {
        for (capacity, load) in ROWS {
            for given in [
                json!({"name": "pathload"}),
                json!({"name": "yaz"}),
                json!({"name": "pathchirp"}),
                json!({"name": "assolo"}),
                json!({"name": "stab"}),
                json!({"name": "spruce", "capacity_bps": capacity * 1e6}),
                json!({"name": "igi"}),
                json!({"name": "ptr"}),
                json!({"name": "kalman"}),
                json!({"name": "hybrid"}),
            ] {
                let method = method(given);
                let runs: Vec<Run> = (1..=10).map(|seed| run(&method, capacity, load, cross, seed)).collect();
                let count = runs.len() as f64;
                let mean = runs.iter().map(Run::error).sum::<f64>() / count;
                let rmse = (runs.iter().map(|run| run.error().powi(2)).sum::<f64>() / count).sqrt();
                let covers = runs.iter().filter(|run| run.covers()).count();
                let mb = runs.iter().map(|run| run.bits / 8e6).sum::<f64>() / count;
                let time = runs.iter().map(|run| run.seconds).sum::<f64>() / count;
                println!(
                    "{name:8} {capacity:5}/{load:4} {:10} bias {:6.1} % rmse {:6.1} % covers {covers:2}/10 {mb:8.3} MB {time:6.1} s {:?}",
                    method.name(),
                    100.0 * mean,
                    100.0 * rmse,
                    runs[0].finding.gave_up
                );
            }
        }
    }
}

#[test]
#[ignore = "prints"]
fn hybrid_in_bursts() {
    for (capacity, load) in [(100.0, 74.0), (3.0, 1.5)] {
        for seed in 1..=10 {
            let run = run(&method(json!({"name": "hybrid"})), capacity, load, Cross::ParetoOnOff, seed);
            println!("{capacity} {seed} truth {:.2} {:?}", run.truth / 1e6, run.finding);
        }
    }
}
