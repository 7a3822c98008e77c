//! SFQ: shares of flows, collisions and what perturbation does to them, who pays when all is full.

use std::collections::BTreeMap;

use twinnet_units::Time;

use super::super::DropReason;
use super::link::{build, packet, Link};

const LINE_BPS: u64 = 10_000_000;

/// R. Jain's index of the rates of 40 flows over 20 s: 1 when all are equal.
fn fairness(perturb_ps: u64) -> f64 {
    let json = format!(r#"{{"kind":"sfq","buckets":127,"limit_frames":1000,"perturb_ps":{perturb_ps}}}"#);
    let mut link = Link::new(build(&json), Some(LINE_BPS));
    let flows: Vec<(u32, u32)> = (1..=40).map(|flow| (flow, 1000)).collect();
    link.run_greedy_with(|flow, bytes| packet(flow, bytes, 0, 0), &flows, Time::from_ns(20_000_000_000));
    let rates: Vec<f64> = flows.iter().map(|(flow, _)| link.rate_of(*flow, Time::ZERO)).collect();
    let sum: f64 = rates.iter().sum();
    sum * sum / (40.0 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

#[test]
fn flows_that_meet_in_a_bucket_share_it_and_perturbation_parts_them() {
    let (fixed, perturbed) = (fairness(0), fairness(200_000_000_000));
    // 40 flows in 127 buckets: about 6 pairs meet, and each of these has half a share.
    assert!(fixed < 0.96, "{fixed}");
    assert!(perturbed > 0.99, "{perturbed}");
}

#[test]
fn a_flow_with_long_frames_gets_no_more_than_one_with_short_ones() {
    let mut link = Link::new(build(r#"{"kind":"sfq"}"#), Some(LINE_BPS));
    link.run_greedy_with(|flow, bytes| packet(flow, bytes, 0, 0), &[(1, 200), (2, 1514)], Time::from_ns(5_000_000_000));
    for flow in [1, 2] {
        let rate = link.rate_of(flow, Time::ZERO);
        assert!((rate / (LINE_BPS as f64 / 2.0) - 1.0).abs() < 0.01, "flow {flow}: {rate}");
    }
}

#[test]
fn no_flow_changes_its_order_when_the_hash_changes() {
    let mut link = Link::new(build(r#"{"kind":"sfq","limit_frames":500,"perturb_ps":5000000000}"#), Some(LINE_BPS));
    for mark in 0..400 {
        link.run_until(Time::from_ps(u64::from(mark) * 700_000_000));
        link.offer(packet(mark % 7, 1000, mark, 0));
    }
    link.run_until(Time::from_ns(1_000_000_000));
    assert_eq!(link.sent.len(), 400);
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    for sent in &link.sent {
        let before = last.insert(sent.queue, sent.mark);
        assert!(before.is_none_or(|before| before < sent.mark), "flow {}", sent.queue);
    }
}

#[test]
fn the_tail_of_the_longest_bucket_is_dropped() {
    let mut link = Link::new(build(r#"{"kind":"sfq","limit_frames":20}"#), None);
    for mark in 0..18 {
        link.offer(packet(1, 1000, mark, 0));
    }
    for mark in 100..112 {
        link.offer(packet(2, 1000, mark, 0));
    }
    assert_eq!(link.dropped.reasons, [DropReason::Overlimit; 10]);
    // From 18 down to 10, and then the two lengths alternate.
    assert_eq!(link.dropped.marks[..8], [17, 16, 15, 14, 13, 12, 11, 10]);
    assert_eq!(link.queue.backlog().frames, 20);
    link.run_until(Time::ZERO);
    assert!(link.sent.iter().filter(|sent| sent.queue == 2).count().abs_diff(10) <= 1);
}

#[test]
fn the_hash_comes_from_the_seed_the_port_and_the_place_of_the_discipline() {
    use super::super::{QueueConfig, Site};
    let order = |seed, port| {
        let config: QueueConfig = serde_json::from_str(r#"{"kind":"sfq","buckets":127}"#).unwrap();
        let mut link = Link::new(config.build_for(Site { seed, port, rate_bps: None }).unwrap(), None);
        for mark in 0..100 {
            link.offer(packet(mark % 50, 1000, mark, 0));
        }
        link.run_until(Time::ZERO);
        link.sent.iter().map(|sent| sent.mark).collect::<Vec<_>>()
    };
    assert_eq!(order(1, "s1-eth1"), order(1, "s1-eth1"));
    assert_ne!(order(1, "s1-eth1"), order(2, "s1-eth1"));
    assert_ne!(order(1, "s1-eth1"), order(1, "s1-eth2"));
}
