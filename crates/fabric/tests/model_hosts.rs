//! Model hosts over the public interface: what their apps see of each other through switches, routers and bad links.

mod model_lab;

use model_lab::{host, link, ms, ping, switch, udp_sink, udp_source, Lab};
use serde_json::{json, Value};

/// Two hosts at one switch, each by a link of 10 Mbit/s and 1 ms.
fn over_a_switch(seed: u64) -> Value {
    let way = json!({"rate_bps": 10_000_000, "framing": "ethernet", "delay_ps": ms(1)});
    json!({"seed": seed,
        "nodes": [host("h1", 1, &["10.0.0.1/8", "fd00::1/64"]), host("h2", 2, &["10.0.0.2/8", "fd00::2/64"]), switch("s1", 1, 2)],
        "links": [link(("h1", 0), ("s1", 0), way.clone()), link(("h2", 0), ("s1", 1), way)]})
}

/// Time of a frame of `length` bytes without FCS over two links of [`over_a_switch`], in picoseconds: it has arrived before the gap
/// that must follow it is over.
const fn two_links(length: u64) -> u64 {
    let wire = if length < 60 { 60 } else { length } + 24 - 12;
    2 * (wire * 8 * 100_000 + ms(1))
}

#[test]
fn a_ping_over_a_switch_takes_the_time_of_its_links_in_both_families() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, ping("10.0.0.2", 5, 56));
    lab.start("h1", 2, ping("fd00::2", 5, 56));
    lab.run_until_ms(3000);
    for (number, headers) in [(1, 14 + 20 + 8), (2, 14 + 40 + 8)] {
        assert!(lab.finished("h1", number));
        let flow = lab.flow("h1", number);
        assert_eq!((&flow["packets"], &flow["lost"]), (&json!(5), &json!(0)), "{flow}");
        // The first waits for the hardware address, and for the requests of the other family; the others only for the links.
        assert_eq!(flow["rtt_ps"]["count"], 5);
        assert!(flow["rtt_ps"]["min"].as_u64().unwrap() >= 2 * two_links(headers + 56), "{flow}");
    }
}

#[test]
fn a_udp_flow_arrives_in_full_and_to_the_picosecond_when_it_should() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h2", 1, udp_sink());
    // One datagram opens the way: it waits for the hardware address.
    lab.start("h1", 2, udp_source("10.0.0.2", 1, 100, 1000.0));
    lab.run_until_ms(100);
    lab.start("h1", 3, udp_source("10.0.0.2", 200, 958, 1000.0));
    lab.run_until_ms(1000);
    let report = lab.host("h2").app_report(1, twinnet_units::Time::ZERO).unwrap();
    let flow = &report["flows"][1];
    assert_eq!((&flow["packets"], &flow["bytes"], &flow["lost"]), (&json!(200), &json!(200 * 958), &json!(0)));
    let expected = json!(two_links(1000));
    assert_eq!((&flow["delay_ps"]["min"], &flow["delay_ps"]["max"]), (&expected, &expected), "{flow}");
}
