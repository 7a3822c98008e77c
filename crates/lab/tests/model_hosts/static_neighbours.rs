//! Networks whose hosts know each other's hardware addresses beforehand.

use serde_json::{json, Value};

use crate::lab::{host, link, switch, udp_sink, udp_source, Lab};

/// Two hosts behind one switch with links that take no time.
fn two_hosts(is_static: bool) -> Value {
    json!({"seed": 1, "static_neighbours": is_static,
        "nodes": [host("h1", 1, &["10.0.0.1/8"]), host("h2", 2, &["10.0.0.2/8"]), switch("s1", 1, 2)],
        "links": [link(("h1", 0), ("s1", 0), json!({"rate_bps": 1000000})),
        link(("h2", 0), ("s1", 1), json!({"rate_bps": 1000000}))]})
}

/// Returns what the second host's interface has received once a datagram was sent to it.
fn frames_after_a_datagram(network: &Value) -> u64 {
    let mut lab = Lab::new(network);
    lab.start("h2", 1, udp_sink());
    lab.start("h1", 2, udp_source("10.0.0.2", 1, 100, 1000.0));
    lab.run_until_ms(100);
    assert_eq!(lab.flow("h2", 1)["packets"], 1);
    lab.network.fabric.counters(lab.network.names.ports["h2-eth0"]).received_frames
}

#[test]
fn nobody_asks_for_a_hardware_address_that_is_known_beforehand() {
    assert_eq!(frames_after_a_datagram(&two_hosts(false)), 2, "a request and the datagram");
    assert_eq!(frames_after_a_datagram(&two_hosts(true)), 1, "the datagram alone");
}

#[test]
fn an_address_of_several_hosts_is_asked_for_as_always() {
    let mut network = two_hosts(true);
    let also = host("h3", 3, &["10.0.0.2/8"]);
    network["nodes"].as_array_mut().unwrap().push(also);
    assert_eq!(frames_after_a_datagram(&network), 2);
}
