use serde_json::{json, Value};
use twinnet_fabric::Way;

use crate::lab::{host, link, ms, over_a_switch, over_two_routers, switch, udp_source, Lab};

fn tcp_source(to: &str, bytes: u64) -> Value {
    json!({"kind": "tcp_source", "to": to, "port": 5001, "flow": 3, "duration_ps": null, "bytes": bytes,
        "interval_ps": ms(1000), "congestion_control": null})
}

fn tcp_sink() -> Value {
    json!({"kind": "tcp_sink", "port": 5001, "interval_ps": ms(1000)})
}

fn http_client(to: &str, bytes: u64, count: u64, connections: u32) -> Value {
    json!({"kind": "http_client", "to": to, "port": 80, "flow": 4, "bytes": bytes, "count": count,
        "connections": connections, "interval_ps": ms(1000)})
}

#[test]
fn a_stream_arrives_whole_at_the_rate_of_its_link_in_both_families() {
    for to in ["10.0.0.2", "fd00::2"] {
        let mut lab = Lab::new(&over_a_switch(1));
        lab.start("h2", 1, tcp_sink());
        lab.start("h1", 2, tcp_source(to, 5_000_000));
        lab.run_until_ms(10_000);
        assert!(lab.finished("h1", 2), "{}", lab.flow("h1", 2));
        let (source, sink) = (lab.flow("h1", 2), lab.flow("h2", 1));
        assert_eq!((&source["errors"], &sink["bytes"]), (&json!([]), &json!(5_000_000)), "{to}: {sink}");
        // 1448 (IPv6: 1428) of 1538 bytes on the wire are payload: 5 MB take 4.25 (4.31) s, and the handshake and
        // the beginning of slow start at a round trip of 4 ms some hundredth of that.
        let seconds = (sink["end_ps"].as_u64().unwrap() - sink["start_ps"].as_u64().unwrap()) as f64 / 1e12;
        assert!((4.24..4.45).contains(&seconds), "{to}: {seconds}");
    }
}

#[test]
fn a_stream_over_a_narrower_link_learns_what_it_takes() {
    for to in ["10.2.0.2", "fd02::2"] {
        let mut lab = Lab::new(&over_two_routers(1300));
        lab.start("h2", 1, tcp_sink());
        lab.start("h1", 2, tcp_source(to, 3_000_000));
        lab.run_until_ms(10_000);
        assert_eq!(lab.flow("h2", 1)["bytes"], 3_000_000, "{to}");
        assert!(lab.counters("r1").too_big > 0);
        assert_eq!(lab.counters("h2").reassembled, 0);
    }
}

#[test]
fn pages_are_fetched_over_many_connections() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h2", 1, json!({"kind": "http_server", "port": 80, "congestion_control": null}));
    lab.start("h1", 2, http_client("10.0.0.2", 20_000, 40, 8));
    lab.start("h1", 3, http_client("fd00::2", 100, 40, 1));
    lab.run_until_ms(10_000);
    for (number, bytes) in [(2, 20_000 * 40), (3, 100 * 40)] {
        let flow = lab.flow("h1", number);
        assert!(lab.finished("h1", number), "{flow}");
        assert_eq!((&flow["errors"], &flow["bytes"]), (&json!([]), &json!(bytes)), "{flow}");
    }
}

#[test]
fn a_host_serves_itself() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, json!({"kind": "http_server", "port": 80, "congestion_control": null}));
    lab.start("h1", 2, http_client("127.0.0.1", 1_000_000, 5, 2));
    lab.run_until_ms(1000);
    assert_eq!((lab.finished("h1", 2), lab.flow("h1", 2)["bytes"].clone()), (true, json!(5_000_000)));
}

#[test]
fn where_nobody_listens_a_connection_is_refused_at_once() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, tcp_source("10.0.0.2", 1000));
    lab.run_until_ms(50);
    assert_eq!((lab.finished("h1", 1), lab.flow("h1", 1)["errors"].clone()), (true, json!(["connection refused"])));
}

#[test]
fn where_nobody_is_a_connection_fails_when_the_neighbour_has_not_answered() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, tcp_source("10.0.0.99", 1000));
    lab.run_until_ms(2900);
    assert!(!lab.finished("h1", 1));
    lab.run_until_ms(3200);
    let error = lab.flow("h1", 1)["errors"][0].as_str().unwrap().to_owned();
    assert!(lab.finished("h1", 1) && error.contains("unreachable: 10.0.0.99:5001"), "{error}");
}

#[test]
fn two_streams_share_a_port_that_both_need() {
    let way = json!({"rate_bps": 10_000_000, "delay_ps": ms(5)});
    let mut spec = json!({"nodes": [host("h1", 1, &["10.0.0.1/8"]), host("h2", 2, &["10.0.0.2/8"]),
        host("h3", 3, &["10.0.0.3/8"]),
        switch("s1", 1, 3)]});
    spec["links"] = json!([
        link(("h1", 0), ("s1", 0), way.clone()),
        link(("h2", 0), ("s1", 1), way.clone()),
        link(("h3", 0), ("s1", 2), way)
    ]);
    let mut lab = Lab::new(&spec);
    lab.start("h3", 1, tcp_sink());
    for (host, number) in [("h1", 2), ("h2", 3)] {
        let mut source = tcp_source("10.0.0.3", 1);
        (source["bytes"], source["duration_ps"]) = (json!(null), json!(ms(20_000)));
        lab.start(host, number, source);
    }
    lab.run_until_ms(30_000);
    let report = lab.report("h3", 1);
    let bytes: Vec<u64> =
        report["flows"].as_array().unwrap().iter().map(|flow| flow["bytes"].as_u64().unwrap()).collect();
    // 20 s of 10 Mbit/s carry 23.5 MB of payload; a few percent go to the beginning and to losses.
    assert_eq!(bytes.len(), 2);
    assert!(bytes.iter().sum::<u64>() > 22_000_000, "{bytes:?}");
}

#[test]
fn a_paced_stream_goes_on_when_the_host_has_sent_what_was_queued_before_it() {
    let way = json!({"rate_bps": 10_000_000, "framing": "ethernet", "delay_ps": ms(200)});
    let ends = [host("h1", 1, &["10.0.0.1/8"]), host("h2", 2, &["10.0.0.2/8"])];
    let mut lab = Lab::new(&json!({"seed": 1, "static_neighbours": true, "nodes": ends,
        "links": [link(("h1", 0), ("h2", 0), way)]}));
    lab.capture("h1-eth0");
    lab.start("h2", 1, tcp_sink());
    let mut source = tcp_source("10.0.0.2", 5_000_000);
    source["congestion_control"] = json!("bbr");
    lab.start("h1", 2, source);
    // At 800 ms the acknowledgements of the first window come in. Just before, 82 datagrams of 1538 bytes on the
    // wire, 101 ms, enter the queue, and what TCP sends stands behind them until no more of it may wait in the
    // host.
    lab.run_until_ms(795);
    lab.start("h1", 3, udp_source("10.0.0.2", 82, 1472, 100_000.0));
    lab.run_until_ms(1100);
    let left: Vec<u64> = lab
        .outside
        .captured
        .iter()
        .filter(|(_, way, frame, at)| *way == Way::Out && frame.bytes[23] == 6 && at.as_ps() > ms(850))
        .map(|(.., at)| at.as_ps())
        .collect();
    assert!(left.len() > 10 && left[0] > ms(895), "{left:?}");
    // The peer is silent till 1300 ms. What goes on is BBR's pace: 2.89 windows of ten segments in a round trip of
    // 400 ms, one each 13.9 ms.
    assert!(left.windows(2).all(|pair| pair[1] - pair[0] < ms(14)), "{left:?}");
}
