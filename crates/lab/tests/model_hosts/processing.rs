use serde_json::{json, Value};
use twinnet_fabric::Way;
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::{assemble, Bodies};

use crate::lab::{ms, over_a_switch, ping, two_links, udp_sink, udp_source, Lab};

fn with_processing(processing: Value) -> Value {
    let mut spec = over_a_switch(1);
    spec["nodes"][1]["processing"] = processing;
    spec
}

#[test]
fn each_frame_waits_for_as_long_as_the_host_takes() {
    let mut lab = Lab::new(&with_processing(json!({"delay_ps": ms(3)})));
    lab.start("h1", 1, ping("10.0.0.2", 5, 56));
    lab.run_until_ms(2000);
    assert_eq!(lab.flow("h1", 1)["rtt_ps"]["min"], 2 * two_links(98) + ms(3));
    // The first waits for the hardware address too: a request that the host takes as long for.
    assert_eq!(lab.flow("h1", 1)["rtt_ps"]["max"], 2 * two_links(98) + 2 * two_links(60) + 2 * ms(3));
}

#[test]
fn jitter_spreads_the_times_and_lets_no_frame_overtake_another() {
    let jitter = json!({"distribution": "uniform", "scale_ps": ms(2)});
    let mut lab = Lab::new(&with_processing(json!({"delay_ps": ms(2), "jitter": jitter})));
    lab.start("h2", 1, udp_sink());
    lab.start("h1", 2, udp_source("10.0.0.2", 500, 100, 2000.0));
    lab.run_until_ms(2000);
    let flow = lab.flow("h2", 1);
    assert_eq!((&flow["packets"], &flow["reordered"]), (&json!(500), &json!(0)), "{flow}");
    let (least, most) = (flow["delay_ps"]["min"].as_u64().unwrap(), flow["delay_ps"]["max"].as_u64().unwrap());
    assert!(least >= two_links(142) && most - least > ms(3), "{flow}");
}

#[test]
fn what_the_host_takes_changes_nothing_of_what_others_draw() {
    let seen = |spec: &Value| {
        let mut lab = Lab::new(spec);
        let port = lab.capture("s1-eth1");
        lab.start("h1", 1, ping("10.0.0.2", 3, 56));
        lab.run_until_ms(1000);
        let asked = |frame: &(_, Way, _, _)| frame.0 == port && frame.1 == Way::In;
        lab.outside.captured.iter().filter(|frame| asked(frame)).map(|frame| frame.2.bytes.clone()).collect::<Vec<_>>()
    };
    assert_eq!(seen(&over_a_switch(1)), seen(&with_processing(json!({"delay_ps": ms(1)}))));
}

#[test]
fn a_jitter_without_values_is_refused_with_the_host() {
    let spec = with_processing(json!({"delay_ps": 0, "jitter": {"distribution": "table", "values_ps": []}}));
    let refused = assemble(NetworkSpec::from_json(&spec).unwrap(), Bodies::Models).err().unwrap();
    assert!(refused.message.contains("host \"h2\": processing: jitter.values_ps: got 0 values"), "{}", refused.message);
}
