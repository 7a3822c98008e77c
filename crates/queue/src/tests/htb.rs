//! HTB: guarantees, ceilings, the sharing of what is spare.

use twinnet_units::Time;

use super::super::Backlog;
use super::link::{build, frame, train, Link};

const GIGABIT: u64 = 1_000_000_000;
const ONE_SECOND: Time = Time::from_ns(1_000_000_000);

/// Long-run shares must meet theory within 0.1 %; windows are long enough for 4000 frames of each class, so that
/// the burst at the start and the frame cut off at the end weigh less than that.
#[track_caller]
fn assert_near(measured_bps: f64, expected_bps: f64) {
    let error = (measured_bps / expected_bps - 1.0).abs();
    assert!(error < 0.001, "{measured_bps} bit/s instead of {expected_bps}: off by {:.3} %", error * 100.0);
}

fn saturated(rate_bps: u64, queues: &str, line_bps: u64, sources: &[(u32, u32)]) -> Link {
    let json = format!(r#"{{"kind":"htb","rate_bps":{rate_bps},"queues":{queues}}}"#);
    let mut link = Link::new(build(&json), Some(line_bps));
    link.run_greedy(sources, ONE_SECOND);
    link
}

#[test]
fn each_queue_gets_its_guaranteed_rate_under_overload() {
    let queues = r#"{"0":{"min_rate_bps":100000000},"1":{"min_rate_bps":300000000},"2":{"min_rate_bps":600000000}}"#;
    let link = saturated(GIGABIT, queues, GIGABIT, &[(0, 1514), (1, 1514), (2, 1514)]);
    assert_near(link.rate_of(0, Time::ZERO), 1e8);
    assert_near(link.rate_of(1, Time::ZERO), 3e8);
    assert_near(link.rate_of(2, Time::ZERO), 6e8);
}

#[test]
fn a_guarantee_holds_against_a_queue_of_higher_priority() {
    let queues = r#"{"0":{"min_rate_bps":100000000,"priority":0},"1":{"min_rate_bps":300000000,"priority":7}}"#;
    let link = saturated(GIGABIT, queues, GIGABIT, &[(0, 1514), (1, 200)]);
    assert_near(link.rate_of(1, Time::ZERO), 3e8);
    assert_near(link.rate_of(0, Time::ZERO), 7e8);
}

#[test]
fn a_queue_alone_is_held_at_its_ceiling() {
    let queues = r#"{"1":{"min_rate_bps":10000000,"max_rate_bps":123456789}}"#;
    let link = saturated(GIGABIT, queues, GIGABIT, &[(1, 1514)]);
    assert_near(link.rate_of(1, Time::ZERO), 123_456_789.0);
}

#[test]
fn the_port_is_held_at_its_rate_on_a_faster_line() {
    let queues = r#"{"0":{"min_rate_bps":10000000},"1":{"min_rate_bps":10000000}}"#;
    let link = saturated(100_000_000, queues, GIGABIT, &[(0, 1514), (1, 1514)]);
    assert_near(link.rate_of(0, Time::ZERO) + link.rate_of(1, Time::ZERO), 1e8);
}

#[test]
fn spare_capacity_of_equal_priority_is_shared_by_quantum() {
    // Quanta are a tenth of a second of the guaranteed rate: 12,500 and 37,500 bytes. Spare is 100 - 4 = 96 Mbit/s.
    let queues = r#"{"1":{"min_rate_bps":1000000},"2":{"min_rate_bps":3000000}}"#;
    let json = format!(r#"{{"kind":"htb","rate_bps":100000000,"queues":{queues}}}"#);
    let mut link = Link::new(build(&json), Some(GIGABIT));
    link.run_greedy(&[(1, 1514), (2, 700)], Time::from_ns(10_000_000_000));
    assert_near(link.rate_of(1, Time::ZERO), 25e6);
    assert_near(link.rate_of(2, Time::ZERO), 75e6);
}

#[test]
fn spare_capacity_goes_to_the_higher_priority_up_to_its_ceiling() {
    let queues = r#"{"1":{"min_rate_bps":10000000,"max_rate_bps":50000000,"priority":1},
        "2":{"min_rate_bps":10000000,"priority":2},"3":{"min_rate_bps":10000000,"priority":3}}"#;
    let json = format!(r#"{{"kind":"htb","rate_bps":100000000,"queues":{queues}}}"#);
    let mut link = Link::new(build(&json), Some(GIGABIT));
    link.run_greedy(&[(1, 1514), (2, 1514), (3, 1514)], Time::from_ns(10_000_000_000));
    assert_near(link.rate_of(1, Time::ZERO), 50e6);
    assert_near(link.rate_of(2, Time::ZERO), 40e6);
    assert_near(link.rate_of(3, Time::ZERO), 10e6);
}

#[test]
fn what_a_queue_borrowed_is_not_held_against_its_guarantee() {
    let queues = r#"{"1":{"min_rate_bps":30000000,"priority":1},"2":{"min_rate_bps":10000000,"priority":0}}"#;
    let mut link = saturated(100_000_000, queues, GIGABIT, &[(1, 1514)]);
    assert_near(link.rate_of(1, Time::ZERO), 1e8);
    link.run_greedy(&[(1, 1514), (2, 1514)], Time::from_ns(3_000_000_000));
    assert_near(link.rate_of(1, ONE_SECOND), 3e7);
    assert_near(link.rate_of(2, ONE_SECOND), 7e7);
}

const STUDY: &str = r#"{"0":{"min_rate_bps":1000000000,"max_rate_bps":1000000000},
    "1":{"min_rate_bps":512000000,"max_rate_bps":512000000},"2":{"min_rate_bps":512000000,"max_rate_bps":512000000}}"#;
/// The rate that a gigabit line carries at the link layer in frames of 1514 bytes that cost 1538 on the wire.
const LINE_BPS: u64 = GIGABIT / 1538 * 1514;

#[test]
fn two_queues_of_512_mbit_share_a_gigabit_port_equally() {
    let link = saturated(GIGABIT, STUDY, LINE_BPS, &[(1, 1514), (2, 1514)]);
    assert_near(link.rate_of(1, Time::ZERO), LINE_BPS as f64 / 2.0);
    assert_near(link.rate_of(2, Time::ZERO), LINE_BPS as f64 / 2.0);
}

#[test]
fn a_queue_of_512_mbit_alone_on_a_gigabit_port_gets_512_mbit() {
    let link = saturated(GIGABIT, STUDY, LINE_BPS, &[(1, 1514)]);
    assert_near(link.rate_of(1, Time::ZERO), 512e6);
}

#[test]
fn the_default_queue_takes_what_a_slow_guaranteed_queue_leaves() {
    let link = saturated(GIGABIT, STUDY, LINE_BPS, &[(0, 1514), (1, 1514)]);
    // Both can send whenever the line is free, and their quanta are equal at the largest: the ceiling of queue 1
    // lies above half.
    assert_near(link.rate_of(0, Time::ZERO) + link.rate_of(1, Time::ZERO), LINE_BPS as f64);
    assert!(link.rate_of(1, Time::ZERO) <= 512e6 * 1.001);
}

#[test]
fn frames_for_a_queue_that_does_not_exist_go_to_queue_0() {
    let json = r#"{"kind":"htb","rate_bps":1000000000,"queues":{"0":{},"1":{}}}"#;
    let mut link = Link::new(build(json), None);
    link.offer(frame(7, 100, 0));
    assert_eq!(link.queue.class_counters()[0]["backlog"]["frames"], 1);
    link.run_until(ONE_SECOND);
    assert_eq!(link.sent.len(), 1);
}

#[test]
fn without_a_queue_0_one_of_the_defaults_is_made() {
    let json = r#"{"kind":"htb","rate_bps":100000000,"queues":{"4":{"min_rate_bps":60000000,"priority":0}}}"#;
    let mut link = Link::new(build(json), Some(GIGABIT));
    link.run_greedy(&[(0, 1514)], ONE_SECOND);
    assert_near(link.rate_of(0, Time::ZERO), 1e8);
    assert_eq!(link.queue.class_counters()[0]["class"], 0);
    assert_eq!(link.queue.class_counters()[1]["class"], 4);
}

#[test]
fn trains_are_shaped_frame_by_frame() {
    let queues = r#"{"0":{"min_rate_bps":300000000,"max_rate_bps":300000000},"1":{"min_rate_bps":1000000}}"#;
    let json = format!(r#"{{"kind":"htb","rate_bps":{GIGABIT},"queues":{queues}}}"#);
    let mut link = Link::new(build(&json), Some(GIGABIT));
    for _ in 0..300 {
        link.offer(train(0, 3, 0));
        link.offer(train(1, 3, 0));
    }
    link.run_until(Time::from_ns(60_000_000));
    assert!(link.sent.iter().all(|sent| sent.frames == 1));
    let of_first: Vec<_> = link.sent.iter().filter(|sent| sent.queue == 0).collect();
    assert_eq!(of_first.len(), 900);
    // The ceiling's bucket of 1564 bytes lets one frame more through at once; a frame may then wait for one of the
    // other queue.
    let last = of_first[899].at.as_secs_f64();
    let at_ceiling = (898.0 * 1514.0 - 50.0) * 8.0 / 3e8;
    assert!((0.0..2.0 * 1514.0 * 8.0 / 1e9).contains(&(last - at_ceiling)), "{last} instead of {at_ceiling}");
}

#[test]
fn jumbo_frames_lose_no_rate_to_a_burst_meant_for_1500_bytes() {
    let queues = r#"{"0":{"min_rate_bps":400000000},"1":{"min_rate_bps":600000000}}"#;
    let json = format!(r#"{{"kind":"htb","rate_bps":{GIGABIT},"queues":{queues}}}"#);
    let mut link = Link::new(build(&json), Some(GIGABIT));
    link.run_greedy(&[(0, 9014), (1, 9014)], Time::from_ns(4_000_000_000));
    assert_near(link.rate_of(0, Time::ZERO), 4e8);
    assert_near(link.rate_of(1, Time::ZERO), 6e8);
}

#[test]
fn counters_tell_what_each_queue_sent_dropped_and_keeps() {
    let json = r#"{"kind":"htb","rate_bps":1000000000,
        "queues":{"0":{},"1":{"queue":{"kind":"fifo","limit_frames":2}}}}"#;
    let mut link = Link::new(build(json), None);
    for mark in 0..4 {
        link.offer(frame(1, 1000, mark));
    }
    link.send_now();
    let counters = link.queue.class_counters();
    assert_eq!(counters[1]["frames"], 1);
    assert_eq!(counters[1]["bytes"], 1000);
    assert_eq!(counters[1]["drops"]["overlimit"], 2);
    assert_eq!(counters[1]["dropped_bytes"], 2000);
    assert_eq!(counters[1]["backlog"]["frames"], 1);
    assert_eq!(link.queue.backlog(), Backlog { frames: 1, bytes: 1000 });
}

#[test]
fn the_rates_of_each_queue_are_told() {
    let json = r#"{"kind":"htb","rate_bps":1000000000,
        "queues":{"0":{},"4":{"min_rate_bps":100000000,"max_rate_bps":400000000}}}"#;
    let rates = Link::new(build(json), None).queue.class_rates();
    let told: Vec<_> = rates.iter().map(|rates| (rates.class, rates.min_rate_bps, rates.max_rate_bps)).collect();
    assert_eq!(told, [(0, 12_000, 1_000_000_000), (4, 100_000_000, 400_000_000)]);
}
