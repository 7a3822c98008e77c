//! Segmentation offload of model hosts (`net.ipv4.tcp_min_tso_segs`).

use serde_json::{json, Value};

use crate::lab::{host, link, ms, switch, Lab};

const BYTES: u64 = 20_000_000;

/// Two hosts at one switch by links of 1 Gbit/s that lose `loss` of their frames; those of `offloading` have offload.
fn network(offloading: &[&str], loss: f64) -> Value {
    let way = json!({"rate_bps": 1_000_000_000, "framing": "ethernet", "delay_ps": 50_000_000, "loss": loss});
    let mut nodes = vec![
        host("h1", 1, &["10.0.0.1/8", "fd00::1/64"]),
        host("h2", 2, &["10.0.0.2/8", "fd00::2/64"]),
        switch("s1", 1, 3),
    ];
    for node in &mut nodes {
        if offloading.contains(&node["name"].as_str().unwrap()) {
            node["sysctls"] = json!({"net.ipv4.tcp_min_tso_segs": 2});
        }
    }
    json!({"seed": 1, "nodes": nodes,
        "links": [link(("h1", 0), ("s1", 0), way.clone()), link(("h2", 0), ("s1", 1), way)]})
}

/// Sends `BYTES` from h1 to `to`; how many seconds that took.
fn transfer(lab: &mut Lab, to: &str) -> f64 {
    lab.start("h2", 1, json!({"kind": "tcp_sink", "port": 5001, "interval_ps": ms(1000)}));
    let source = json!({"kind": "tcp_source", "to": to, "port": 5001, "flow": 3, "duration_ps": null, "bytes": BYTES,
        "interval_ps": ms(1000), "congestion_control": null});
    lab.start("h1", 2, source);
    lab.run_until_ms(10_000);
    assert!(lab.finished("h1", 2), "{}", lab.flow("h1", 2));
    let sink = lab.flow("h2", 1);
    assert_eq!((&sink["bytes"], &sink["errors"]), (&json!(BYTES), &json!([])));
    (sink["end_ps"].as_u64().unwrap() - sink["start_ps"].as_u64().unwrap()) as f64 / 1e12
}

#[test]
fn a_stream_takes_the_same_time_in_fewer_events() {
    for to in ["10.0.0.2", "fd00::2"] {
        let mut single = Lab::new(&network(&[], 0.0));
        let alone = transfer(&mut single, to);
        let mut offloading = Lab::new(&network(&["h1", "h2"], 0.0));
        let together = transfer(&mut offloading, to);
        // 20 MB are 0.17 s. A train that waits for its last frame is late by at most 100 us at each of two links.
        assert!((together - alone).abs() < 0.01 * alone, "{to}: {alone} and {together}");
        let (events, fewer) = (single.network.fabric.events_handled(), offloading.network.fabric.events_handled());
        assert!(fewer * 4 < events, "{to}: {events} and {fewer}");
    }
}

#[test]
fn a_stream_arrives_whole_over_lines_that_lose_and_at_a_peer_without_offload() {
    for (offloading, loss) in [(&["h1", "h2"][..], 0.005), (&["h1"][..], 0.0), (&["h2"][..], 0.005)] {
        let mut lab = Lab::new(&network(offloading, loss));
        let seconds = transfer(&mut lab, "10.0.0.2");
        // As fast as it can be, and no faster: 1448 of 1538 bytes are payload.
        assert!(seconds > 0.169, "{offloading:?}: {seconds}");
    }
}
