use serde_json::json;

use crate::lab::{host, over_a_switch, two_links, udp_sink, udp_source, Lab};

#[test]
fn a_flow_arrives_in_full_and_to_the_picosecond_when_it_should() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h2", 1, udp_sink());
    // One datagram opens the way: it waits for the hardware address.
    lab.start("h1", 2, udp_source("10.0.0.2", 1, 100, 1000.0));
    lab.run_until_ms(100);
    lab.start("h1", 3, udp_source("10.0.0.2", 200, 958, 1000.0));
    lab.run_until_ms(1000);
    let report = lab.report("h2", 1);
    let flow = &report["flows"][1];
    assert_eq!((&flow["packets"], &flow["bytes"], &flow["lost"]), (&json!(200), &json!(200 * 958), &json!(0)));
    let expected = json!(two_links(1000));
    assert_eq!((&flow["delay_ps"]["min"], &flow["delay_ps"]["max"]), (&expected, &expected), "{flow}");
}

#[test]
fn a_source_faster_than_its_link_is_told_that_the_send_buffer_is_full() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h2", 1, udp_sink());
    // 20 Mbit/s into 10 Mbit/s for a second.
    lab.start("h1", 2, udp_source("10.0.0.2", 2500, 958, 2500.0));
    lab.run_until_ms(3000);
    let flow = lab.flow("h1", 2);
    assert!(flow["errors"][0].as_str().unwrap().contains("send buffer was full"), "{flow}");
    // What was taken has arrived: nothing is lost in between.
    let sink = lab.flow("h2", 1);
    assert_eq!((&sink["packets"], &sink["lost"]), (&flow["packets"], &json!(0)));
    // The buffer holds 212,992 bytes, each frame of 1000 charged with 256 more: the last of 170 waits for the one
    // being sent and for 169 others, each 0.8192 ms on the line, and is then on its own way.
    let longest = sink["delay_ps"]["max"].as_u64().unwrap();
    assert_eq!(longest, 170 * 819_200_000 + two_links(1000));
}

#[test]
fn a_host_sends_to_itself_without_its_link() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, udp_sink());
    lab.start("h1", 2, udp_source("127.0.0.1", 100, 958, 10_000.0));
    lab.run_until_ms(100);
    assert_eq!((lab.flow("h1", 1)["packets"].clone(), lab.finished("h1", 2)), (json!(100), true));
}

#[test]
fn two_sinks_cannot_have_one_port_and_a_stopped_one_frees_it() {
    let mut lab = Lab::new(&over_a_switch(1));
    lab.start("h1", 1, udp_sink());
    lab.start("h1", 2, udp_sink());
    lab.run_until_ms(1);
    assert_eq!(lab.flow("h1", 2)["errors"], json!(["address 0.0.0.0:5000 is in use on this host"]));
    lab.stop("h1", 1);
    lab.start("h1", 3, udp_sink());
    lab.run_until_ms(2);
    assert_eq!((lab.finished("h1", 1), lab.finished("h1", 2), lab.finished("h1", 3)), (true, true, false));
}

#[test]
fn a_corrupted_datagram_is_never_handed_to_an_app() {
    let mut spec = over_a_switch(3);
    spec["links"][1]["ba"]["corrupt"] = json!(0.25);
    let mut lab = Lab::new(&spec);
    lab.start("h2", 1, udp_sink());
    lab.start("h1", 2, udp_source("10.0.0.2", 1000, 958, 1000.0));
    lab.start("h1", 3, udp_source("fd00::2", 1000, 938, 100.0));
    lab.run_until_ms(12_000);
    let report = lab.report("h2", 1);
    let received: u64 = report["flows"].as_array().unwrap().iter().map(|flow| flow["packets"].as_u64().unwrap()).sum();
    let port = lab.network.names.ports["s1-eth2"];
    let corrupted = lab.network.fabric.counters(port).sent.corrupted;
    let counters = lab.counters("h2");
    // A frame whose type or hardware address is hit is none for this host, and one whose version is hit contradicts
    // itself.
    let refused = counters.corrupted + counters.ignored + counters.malformed;
    assert!(corrupted > 400, "{corrupted}");
    assert!(counters.corrupted > corrupted * 9 / 10, "{counters:?}");
    // The source's hardware address, six bytes of a thousand, is all that no checksum covers: whoever is hit there
    // arrives all the same. So does what hits an IPv6 flow label or hop limit.
    let unseen = corrupted - refused;
    assert!(unseen < corrupted / 25, "{unseen} of {corrupted}");
    assert!(received >= 2000 - corrupted && received <= 2000 - refused + 2, "{received}");
}

#[test]
fn a_code_point_is_in_every_packet_and_in_every_fragment() {
    for payload in [958, 4000] {
        let mut lab = Lab::new(&over_a_switch(1));
        lab.capture("h2-eth0");
        lab.start("h2", 1, udp_sink());
        let mut config = udp_source("10.0.0.2", 3, payload, 100.0);
        config["dscp"] = json!(46);
        lab.start("h1", 2, config);
        lab.run_until_ms(1000);
        assert_eq!(lab.flow("h2", 1)["packets"], json!(3));
        let classes: Vec<u8> = lab
            .outside
            .captured
            .iter()
            .filter(|(_, _, frame, _)| frame.bytes[12..14] == [8, 0])
            .map(|(_, _, frame, _)| frame.bytes[15])
            .collect();
        assert!(classes.len() >= 3 && classes.iter().all(|class| *class == 46 << 2), "{classes:?}");
    }
}

#[test]
fn what_is_sent_at_the_moment_of_the_start_finds_the_receiver_ready_whichever_host_comes_first() {
    for (sender, receiver, to) in [("h1", "h2", "10.0.0.2"), ("h2", "h1", "10.0.0.1")] {
        let ends = json!({"a": {"node": "h1", "port": 0}, "b": {"node": "h2", "port": 0}});
        let nodes = [host("h1", 1, &["10.0.0.1/8"]), host("h2", 2, &["10.0.0.2/8"])];
        let mut lab = Lab::new(&json!({"nodes": nodes, "links": [ends]}));
        lab.start(receiver, 1, udp_sink());
        lab.start(sender, 2, udp_source(to, 3, 100, 10.0));
        lab.run_until_ms(1000);
        assert_eq!((&lab.flow(receiver, 1)["packets"], &lab.flow(receiver, 1)["lost"]), (&json!(3), &json!(0)));
    }
}
