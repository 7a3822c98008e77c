use serde_json::json;

use crate::lab::{over_a_switch, over_two_routers, ping, udp_sink, udp_source, Lab};

#[test]
fn datagrams_longer_than_the_link_takes_arrive_whole_in_both_families() {
    for (to, headers) in [("10.0.0.2", 20), ("fd00::2", 48)] {
        let mut lab = Lab::new(&over_a_switch(1));
        lab.start("h2", 1, udp_sink());
        lab.start("h1", 2, udp_source(to, 20, 4000, 50.0));
        lab.run_until_ms(1000);
        let flow = lab.flow("h2", 1);
        let expected = (json!(20), json!(80_000), json!(0));
        assert_eq!((flow["packets"].clone(), flow["bytes"].clone(), flow["lost"].clone()), expected, "{to}: {flow}");
        assert_eq!(lab.counters("h2").reassembled, 20);
        // 4008 bytes in three packets, each with its own headers.
        let sent = lab.network.fabric.counters(lab.network.names.ports["h1-eth0"]).sent;
        assert!(sent.link_bytes >= 20 * (4008 + 3 * (14 + headers)), "{sent:?}");
        assert!(sent.frames >= 60);
    }
}

#[test]
fn a_long_ping_is_cut_and_its_reply_too() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, ping("10.0.0.2", 3, 20_000));
    lab.start("h1", 2, ping("fd00::2", 3, 20_000));
    lab.run_until_ms(3000);
    for number in [1, 2] {
        assert_eq!(lab.flow("h1", number)["rtt_ps"]["count"], 3);
    }
    assert_eq!((lab.counters("h1").reassembled, lab.counters("h2").reassembled), (6, 6));
}

#[test]
fn a_router_says_what_its_link_takes_and_the_sender_then_cuts() {
    for (to, v6, message) in [("10.2.0.2", false, (3, 4)), ("fd02::2", true, (2, 0))] {
        let mut lab = Lab::new(&over_two_routers(1400));
        lab.capture("h1-eth0");
        lab.start("h2", 1, udp_sink());
        lab.start("h1", 2, udp_source(to, 5, 1440, 20.0));
        lab.run_until_ms(2000);
        // The first is lost: its sender learns by it.
        let flow = lab.flow("h2", 1);
        assert_eq!((&flow["packets"], &flow["lost"]), (&json!(4), &json!(1)), "{to}: {flow}");
        let errors: Vec<_> = lab.icmp_seen(v6).into_iter().filter(|seen| *seen == message).collect();
        assert_eq!((errors.len(), lab.counters("r1").too_big), (1, 1));
        assert_eq!(lab.counters("h2").reassembled, 4);
    }
}

#[test]
fn a_router_cuts_what_may_be_cut() {
    // A long reply may be fragmented on its way, as Linux's: the request is cut by its sender, the reply by the
    // router behind the narrow link.
    let mut lab = Lab::new(&over_two_routers(1300));
    lab.start("h1", 1, ping("10.2.0.2", 3, 2000));
    lab.run_until_ms(4000);
    assert_eq!(lab.flow("h1", 1)["rtt_ps"]["count"], 3, "{}", lab.flow("h1", 1));
    assert_eq!((lab.counters("r1").too_big, lab.counters("r2").too_big), (0, 0));
}

#[test]
fn of_a_packet_whose_rest_is_lost_nothing_arrives_and_its_sender_is_told() {
    let mut spec = over_a_switch(5);
    spec["links"][1]["ba"]["loss"] = json!({"model": "bernoulli", "probability": 0.5});
    let mut lab = Lab::new(&spec);
    lab.capture("h1-eth0");
    lab.start("h2", 1, udp_sink());
    lab.start("h1", 2, udp_source("10.0.0.2", 40, 4000, 40.0));
    lab.run_until_ms(40_000);
    let counters = lab.counters("h2");
    assert!(counters.fragments_dropped > 10, "{counters:?}");
    assert_eq!(lab.flow("h2", 1)["packets"].as_u64().unwrap(), counters.reassembled);
    assert!(lab.icmp_seen(false).contains(&(11, 1)));
}
