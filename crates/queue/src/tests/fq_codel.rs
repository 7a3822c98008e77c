//! FQ-CoDel: equal shares, sparse flows first, the longest queue pays.

use twinnet_units::Time;

use super::super::DropReason;
use super::link::{build, packet, Link};

const LINE_BPS: u64 = 10_000_000;

#[test]
fn flows_of_different_frame_lengths_get_equal_rates() {
    let mut link = Link::new(build(r#"{"kind":"fq_codel"}"#), Some(LINE_BPS));
    let make = |flow, bytes| packet(flow, bytes, 0, 0);
    link.run_greedy_with(make, &[(1, 200), (2, 800), (3, 1514)], Time::from_ns(10_000_000_000));
    for flow in 1..=3 {
        let rate = link.rate_of(flow, Time::ZERO);
        assert!((rate / (LINE_BPS as f64 / 3.0) - 1.0).abs() < 0.01, "flow {flow}: {rate}");
    }
}

#[test]
fn a_sparse_flow_waits_for_no_more_than_the_frame_on_the_line() {
    let mut link = Link::new(build(r#"{"kind":"fq_codel"}"#), Some(LINE_BPS));
    for mark in 0..500 {
        link.offer(packet(1, 1514, mark, 0));
    }
    let frame_time = 1514 * 8 * 100_000_u64;
    for number in 1..=50_u64 {
        let came = Time::from_ps(number * 7_777_777_777);
        link.run_until(came);
        link.offer(packet(2, 100, 0, 0));
        link.run_until(came + twinnet_units::Duration::from_ps(2 * frame_time));
        let sent = link.sent.iter().rev().find(|sent| sent.queue == 2).unwrap();
        assert!(sent.at >= came && sent.at.since(came).as_ps() <= frame_time, "frame {number}");
    }
}

#[test]
fn when_all_is_full_the_head_of_the_longest_queue_is_dropped() {
    let mut link = Link::new(build(r#"{"kind":"fq_codel","limit_frames":100}"#), None);
    for mark in 0..5 {
        link.offer(packet(2, 1000, 1000 + mark, 0));
    }
    for mark in 0..96 {
        link.offer(packet(1, 1000, mark, 0));
    }
    // Half of the 96 frames of the longest.
    assert_eq!(link.dropped.marks, (0..48).collect::<Vec<_>>());
    assert!(link.dropped.reasons.iter().all(|reason| *reason == DropReason::Overlimit));
    for _ in 0..10_000 {
        link.offer(packet(1, 1000, 0, 0));
        assert!(link.queue.backlog().frames <= 100);
    }
    link.run_until(Time::ZERO);
    assert_eq!(link.sent.iter().filter(|sent| sent.queue == 2).count(), 5);
}

#[test]
fn each_flow_has_a_codel_of_its_own() {
    let mut link = Link::new(build(r#"{"kind":"fq_codel","ecn":false}"#), Some(LINE_BPS));
    for mark in 0..400 {
        link.offer(packet(1, 1000, mark, 0));
    }
    for number in 0..300_u64 {
        link.run_until(Time::from_ps(number * 1_000_000_000));
        if number % 10 == 0 {
            link.offer(packet(2, 100, 5000, 0));
        }
    }
    assert!(!link.dropped.marks.is_empty());
    assert!(link.dropped.reasons.iter().all(|reason| *reason == DropReason::Early));
    assert!(!link.dropped.marks.contains(&5000));
}
