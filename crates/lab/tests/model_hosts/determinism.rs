use serde_json::{json, Value};

use crate::lab::{host, link, ms, over_a_switch, ping, udp_sink, udp_source, Lab};

/// Poisson traffic both ways, and pings: what of it is drawn at random is seen in the reports.
fn run(spec: &Value) -> (u64, Vec<Value>) {
    let mut lab = Lab::new(spec);
    let poisson = |to: &str| {
        let mut source = udp_source(to, 300, 400, 300.0);
        source["process"] = json!("poisson");
        source
    };
    lab.start("h2", 1, udp_sink());
    lab.start("h1", 2, udp_sink());
    lab.start("h1", 3, poisson("10.0.0.2"));
    lab.start("h2", 4, poisson("fd00::1"));
    lab.start("h1", 5, ping("10.0.0.2", 10, 56));
    lab.run_until_ms(3000);
    let reports = [("h2", 1), ("h1", 2), ("h1", 3), ("h2", 4), ("h1", 5)];
    (lab.network.fabric.trace_hash(), reports.iter().map(|(host, number)| lab.report(host, *number)).collect())
}

#[test]
fn two_runs_go_the_same_way_and_another_seed_goes_another() {
    let (first, second, other) = (run(&over_a_switch(1)), run(&over_a_switch(1)), run(&over_a_switch(2)));
    assert_eq!(first, second);
    assert_ne!(first.0, other.0);
}

#[test]
fn an_idle_host_more_changes_nothing_for_the_others() {
    let mut more = over_a_switch(1);
    more["nodes"].as_array_mut().unwrap().insert(0, host("idle", 9, &["10.0.0.9/8", "fd00::9/64"]));
    let way = json!({"rate_bps": 10_000_000, "delay_ps": ms(1)});
    more["links"].as_array_mut().unwrap().insert(0, link(("idle", 0), ("s1", 2), way));
    assert_eq!(run(&over_a_switch(1)).1, run(&more).1);
}
