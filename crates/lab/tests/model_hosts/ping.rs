use serde_json::json;

use crate::lab::{over_a_switch, over_two_routers, ping, two_links, Lab};

#[test]
fn over_a_switch_it_takes_the_time_of_the_links_in_both_families() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, ping("10.0.0.2", 5, 56));
    lab.run_until_ms(1050);
    lab.start("h1", 2, ping("fd00::2", 5, 56));
    lab.run_until_ms(3000);
    for (number, headers) in [(1, 14 + 20 + 8), (2, 14 + 40 + 8)] {
        assert!(lab.finished("h1", number));
        let flow = lab.flow("h1", number);
        assert_eq!((&flow["packets"], &flow["lost"]), (&json!(5), &json!(0)), "{flow}");
        assert_eq!(flow["rtt_ps"]["min"], 2 * two_links(headers + 56), "{flow}");
    }
    // Only the first waits for the hardware address: a request and an answer, each as short as a frame can be.
    assert_eq!(lab.flow("h1", 1)["rtt_ps"]["max"], 2 * two_links(98) + 2 * two_links(60));
}

#[test]
fn over_two_routers_replies_come_back_in_both_families() {
    let mut lab = Lab::new(&over_two_routers(1500));
    lab.start("h1", 1, ping("10.2.0.2", 5, 56));
    lab.start("h1", 2, ping("fd02::2", 5, 56));
    lab.run_until_ms(3000);
    for number in [1, 2] {
        let flow = lab.flow("h1", number);
        assert_eq!((&flow["packets"], &flow["lost"], &flow["errors"]), (&json!(5), &json!(0), &json!([])), "{flow}");
    }
    assert_eq!((lab.counters("r1").forwarded, lab.counters("r2").forwarded), (20, 20));
}

#[test]
fn routers_and_link_local_addresses_answer_too() {
    let mut lab = Lab::new(&over_two_routers(1500));
    for (number, to) in ["10.1.0.254", "10.9.0.2", "fd09::2", "fe80::200:ff:fe00:101"].iter().enumerate() {
        lab.start("h1", u32::try_from(number).unwrap() + 1, ping(to, 2, 0));
    }
    lab.run_until_ms(3000);
    for number in 1..=4 {
        let flow = lab.flow("h1", number);
        assert_eq!((&flow["rtt_ps"]["count"], &flow["lost"]), (&json!(2), &json!(0)), "{flow}");
    }
}

#[test]
fn a_host_reaches_itself_by_all_its_addresses() {
    let mut lab = Lab::new(&over_a_switch(1));
    for (number, to) in ["10.0.0.1", "127.0.0.1", "fd00::1", "::1"].iter().enumerate() {
        lab.start("h1", u32::try_from(number).unwrap() + 1, ping(to, 3, 2000));
    }
    lab.run_until_ms(3000);
    for number in 1..=4 {
        assert_eq!(lab.flow("h1", number)["rtt_ps"]["count"], 3);
    }
    let port = lab.network.names.ports["h1-eth0"];
    assert_eq!(lab.network.fabric.counters(port).sent.frames, 0);
}

#[test]
fn while_the_link_is_down_pings_are_lost_and_afterwards_they_are_not() {
    let mut spec = over_a_switch(1);
    spec["links"][1]["up"] = json!(false);
    let mut lab = Lab::new(&spec);
    lab.start("h1", 1, ping("10.0.0.2", 3, 56));
    // By then the host has given up asking for the hardware address.
    lab.run_until_ms(3500);
    assert_eq!(lab.flow("h1", 1)["lost"], 3);
    let ports = lab.network.names.links[1];
    for port in [ports.0, ports.1] {
        let up = twinnet_fabric::DirectionChange { up: Some(true), ..twinnet_fabric::DirectionChange::default() };
        lab.network.fabric.change(port, up, &mut lab.outside).unwrap();
    }
    lab.start("h1", 2, ping("10.0.0.2", 3, 56));
    lab.run_until_ms(6000);
    assert_eq!(lab.flow("h1", 2)["lost"], 0);
}
