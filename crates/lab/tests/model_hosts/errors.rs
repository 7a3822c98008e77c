use serde_json::json;

use crate::lab::{over_a_switch, over_two_routers, ping, udp_source, Lab};

#[test]
fn a_packet_whose_time_to_live_runs_out_is_answered_by_the_router_it_died_at() {
    let mut spec = over_two_routers(1500);
    spec["nodes"][0]["sysctls"] = json!({"net.ipv4.ip_default_ttl": 2});
    let mut lab = Lab::new(&spec);
    lab.capture("h1-eth0");
    lab.start("h1", 1, ping("10.2.0.2", 2, 56));
    lab.start("h1", 2, ping("fd02::2", 2, 56));
    lab.start("h1", 3, ping("10.9.0.2", 1, 56));
    lab.run_until_ms(3000);
    assert_eq!((lab.flow("h1", 1)["lost"].clone(), lab.flow("h1", 2)["lost"].clone()), (json!(2), json!(2)));
    // Two hops away is just near enough.
    assert_eq!(lab.flow("h1", 3)["lost"], 0);
    assert_eq!((lab.counters("r1").expired, lab.counters("r2").expired), (0, 4));
    assert_eq!(lab.icmp_seen(false).iter().filter(|seen| **seen == (11, 0)).count(), 2);
    assert_eq!(lab.icmp_seen(true).iter().filter(|seen| **seen == (3, 0)).count(), 2);
}

#[test]
fn no_route_is_told_to_the_app_by_its_host_and_to_the_host_by_a_router() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, ping("11.0.0.1", 1, 56));
    lab.run_until_ms(10);
    assert_eq!(lab.flow("h1", 1)["errors"], json!(["unreachable: 11.0.0.1:0: no route from this host"]));

    let mut lab = Lab::new(&over_two_routers(1500));
    lab.capture("h1-eth0");
    // r1 knows a way to 10.66.0.0/16, r2 does not.
    lab.start("h1", 1, ping("10.66.0.1", 1, 56));
    lab.start("h1", 2, ping("fd66::1", 1, 56));
    lab.run_until_ms(2000);
    assert_eq!(lab.counters("r2").unreachable, 1);
    assert_eq!(lab.icmp_seen(false), [(3, 0)]);
    assert!(lab.icmp_seen(true).contains(&(1, 0)));
}

#[test]
fn a_host_that_does_not_answer_is_reported_by_the_last_router() {
    let mut lab = Lab::new(&over_two_routers(1500));
    lab.capture("h1-eth0");
    lab.start("h1", 1, ping("10.2.0.77", 1, 56));
    lab.start("h1", 2, ping("fd02::77", 1, 56));
    lab.run_until_ms(2900);
    assert_eq!(lab.icmp_seen(false), []);
    // Three requests a second apart, and a second for the last answer.
    lab.run_until_ms(3100);
    assert_eq!(lab.icmp_seen(false), [(3, 1)]);
    assert!(lab.icmp_seen(true).contains(&(1, 3)));
    assert_eq!(lab.counters("r2").unreachable, 2);
}

#[test]
fn a_port_where_nobody_waits_is_reported_at_a_limited_rate() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.capture("h1-eth0");
    // 100 datagrams in 2 s: six errors at once, then one a second.
    lab.start("h1", 1, udp_source("10.0.0.2", 100, 100, 50.0));
    lab.run_until_ms(3000);
    assert_eq!(lab.counters("h2").unwanted, 100);
    let errors = lab.icmp_seen(false);
    assert!(errors.iter().all(|seen| *seen == (3, 3)));
    assert!((7..=8).contains(&errors.len()), "{}", errors.len());
    assert_eq!(lab.counters("h2").errors_limited as usize, 100 - errors.len());
    // The app is not told: its socket is not connected.
    assert_eq!(lab.flow("h1", 1)["errors"], json!([]));
}

#[test]
fn broadcast_and_multicast_addresses_are_refused() {
    let mut lab = Lab::new(&over_a_switch(1));
    for (number, to) in ["10.255.255.255", "255.255.255.255", "224.0.0.1", "ff02::1"].iter().enumerate() {
        let number = u32::try_from(number).unwrap() + 1;
        lab.start("h1", number, ping(to, 1, 56));
        lab.run_until_ms(u64::from(number));
        let error = lab.flow("h1", number)["errors"][0].as_str().unwrap().to_owned();
        assert!(error.contains("broadcast or multicast"), "{error}");
    }
}
