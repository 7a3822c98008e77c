use std::sync::Arc;

use serde_json::json;
use twinnet_fabric::Way;
use twinnet_host::StaticNeighbours;

use crate::lab::{over_a_switch, ping, udp_sink, udp_source, Lab};

const ARP: [u8; 2] = [8, 6];

/// ARP packets that left the captured port.
fn requests(lab: &Lab) -> usize {
    lab.outside.captured.iter().filter(|(_, way, frame, _)| *way == Way::Out && frame.bytes[12..14] == ARP).count()
}

#[test]
fn an_unknown_neighbour_is_asked_for_three_times_and_few_packets_wait() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.capture("h1-eth0");
    lab.start("h1", 1, udp_source("10.0.0.99", 150, 100, 100.0));
    lab.run_until_ms(2900);
    assert_eq!(requests(&lab), 3);
    assert_eq!((lab.counters("h1").overflowed, lab.counters("h1").unreachable), (49, 0));
    lab.run_until_ms(3100);
    assert_eq!((lab.counters("h1").overflowed, lab.counters("h1").unreachable), (49, 101));
}

#[test]
fn packets_that_waited_arrive_in_order_and_complete() {
    let mut spec = over_a_switch(1);
    // The answer takes two seconds.
    spec["links"][1]["ba"]["delay_ps"] = json!(1_999_000_000_000_u64);
    let mut lab = Lab::new(&spec);
    lab.start("h2", 1, udp_sink());
    lab.start("h1", 2, udp_source("10.0.0.2", 100, 100, 100.0));
    lab.run_until_ms(8000);
    let flow = lab.flow("h2", 1);
    assert_eq!((&flow["packets"], &flow["lost"], &flow["reordered"]), (&json!(100), &json!(0), &json!(0)));
}

#[test]
fn a_neighbour_in_use_is_asked_again_by_unicast_when_its_answer_is_old() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.capture("h1-eth0");
    lab.start("h2", 1, udp_sink());
    lab.start("h1", 2, udp_source("10.0.0.2", 400, 100, 10.0));
    lab.run_until_ms(29_000);
    assert_eq!(requests(&lab), 1);
    lab.run_until_ms(40_000);
    let (_, _, probe, _) =
        lab.outside.captured.iter().rfind(|(_, way, frame, _)| *way == Way::Out && frame.bytes[12..14] == ARP).unwrap();
    assert_eq!((requests(&lab), &probe.bytes[..6]), (2, &[0, 0, 0, 0, 0, 2][..]));
    assert_eq!(lab.flow("h2", 1)["lost"], 0);
}

#[test]
fn known_addresses_are_not_asked_for() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.capture("h1-eth0");
    let mut known = StaticNeighbours::default();
    known.insert("10.0.0.1".parse().unwrap(), [0, 0, 0, 0, 0, 1]);
    known.insert("10.0.0.2".parse().unwrap(), [0, 0, 0, 0, 0, 2]);
    let known = Arc::new(known);
    for host in ["h1", "h2"] {
        let (node, known) = (lab.node(host), Arc::clone(&known));
        lab.network.fabric.with_model(node, &mut lab.outside, |host, _, _| host.use_static_neighbours(known)).unwrap();
    }
    lab.start("h1", 1, ping("10.0.0.2", 3, 56));
    lab.run_until_ms(1000);
    assert_eq!((lab.flow("h1", 1)["lost"].clone(), requests(&lab)), (json!(0), 0));
}

#[test]
fn when_the_link_goes_down_neighbours_are_forgotten() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.capture("h1-eth0");
    lab.start("h1", 1, ping("10.0.0.2", 1, 56));
    lab.run_until_ms(500);
    assert_eq!(requests(&lab), 1);
    let ports = lab.network.names.links[0];
    for up in [false, true] {
        for port in [ports.0, ports.1] {
            let change = twinnet_fabric::DirectionChange { up: Some(up), ..twinnet_fabric::DirectionChange::default() };
            lab.network.fabric.change(port, change, &mut lab.outside).unwrap();
        }
    }
    lab.start("h1", 2, ping("10.0.0.2", 1, 56));
    lab.run_until_ms(1500);
    assert_eq!((requests(&lab), lab.flow("h1", 2)["lost"].clone()), (2, json!(0)));
}
