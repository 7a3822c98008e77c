//! Deficit round robin: shares by quantum, within what the paper proves.

use twinnet_units::Time;

use super::link::{build, frame, train, Link};

fn drr(quanta: &[u64]) -> String {
    let classes: Vec<String> = quanta.iter().map(|quantum| format!(r#"{{"quantum_bytes":{quantum}}}"#)).collect();
    format!(r#"{{"kind":"drr","classes":[{}]}}"#, classes.join(","))
}

/// Bytes that each class has sent.
fn bytes_by_class(link: &Link, classes: u32) -> Vec<i64> {
    let of = |class| link.sent.iter().filter(|sent| sent.queue == class).map(|sent| sent.bytes as i64).sum();
    (0..classes).map(of).collect()
}

/// Shreedhar and Varghese, theorem 1: after any number of rounds a backlogged class has sent its quanta but for one
/// maximal frame.
#[track_caller]
fn assert_shares_by_quantum(link: &Link, quanta: &[u64], longest: i64) {
    let sent = bytes_by_class(link, quanta.len() as u32);
    for (i, a) in quanta.iter().enumerate() {
        for (j, b) in quanta.iter().enumerate() {
            // Rounds of both differ by at most one, and each is off by less than one frame.
            let (a, b) = (*a as f64, *b as f64);
            let difference = (sent[i] as f64 / a - sent[j] as f64 / b).abs();
            let allowed = 1.0 + longest as f64 / a + longest as f64 / b;
            assert!(difference <= allowed, "classes {i} and {j}: {difference} rounds apart, allowed are {allowed}");
        }
    }
}

#[test]
fn shares_follow_the_quanta_whatever_the_lengths_of_frames() {
    let quanta = [1514, 3028, 6000];
    let mut link = Link::new(build(&drr(&quanta)), Some(1_000_000_000));
    link.run_greedy(&[(0, 1514), (1, 64), (2, 777)], Time::from_ns(50_000_000));
    assert_shares_by_quantum(&link, &quanta, 1514);
    assert!(bytes_by_class(&link, 3)[0] > 500_000);
}

#[test]
fn quanta_far_below_a_frame_share_as_exactly() {
    let quanta = [1, 2, 7];
    let mut link = Link::new(build(&drr(&quanta)), Some(1_000_000_000));
    link.run_greedy(&[(0, 1514), (1, 1000), (2, 1514)], Time::from_ns(50_000_000));
    assert_shares_by_quantum(&link, &quanta, 1514);
}

#[test]
fn trains_share_as_their_frames_would() {
    let quanta = [3000, 3000];
    let mut link = Link::new(build(&drr(&quanta)), Some(1_000_000_000));
    for mark in 0..20 {
        link.offer(train(0, 44, mark));
    }
    for mark in 0..880 {
        link.offer(frame(1, 1514, mark));
    }
    link.run_until(Time::from_ns(10_000_000));
    assert_shares_by_quantum(&link, &quanta, 1514);
    assert!(link.sent.iter().all(|sent| sent.bytes <= 2 * 1514 + 1460));
}

#[test]
fn an_idle_class_saves_nothing_up() {
    let mut link = Link::new(build(&drr(&[3000, 3000])), Some(1_000_000_000));
    // Class 1 is idle but for short frames that use little of its quantum, a thousand times.
    for step in 1..=1000 {
        link.offer(frame(1, 100, 0));
        link.run_until(Time::from_ns(step * 10_000));
    }
    link.sent.clear();
    link.run_greedy(&[(0, 1514), (1, 1514)], Time::from_ns(20_000_000));
    let sent = bytes_by_class(&link, 2);
    assert!((sent[0] - sent[1]).abs() <= 3000 + 2 * 1514, "{sent:?}");
}

#[test]
fn a_class_that_shapes_does_not_hold_up_the_others() {
    let json = r#"{"kind":"drr","classes":[{"quantum_bytes":1514},
        {"quantum_bytes":1514,"queue":{"kind":"tbf","rate_bps":1000000,"burst_bytes":1600}}]}"#;
    let mut link = Link::new(build(json), Some(100_000_000));
    link.run_greedy(&[(0, 1514), (1, 1514)], Time::from_ns(1_000_000_000));
    let (free, shaped) = (link.rate_of(0, Time::ZERO), link.rate_of(1, Time::ZERO));
    // One burst and the frame in flight beyond the rate; the line never idles.
    assert!((1e6..1.03e6).contains(&shaped), "{shaped}");
    assert!((free + shaped - 1e8).abs() < 2.0 * 1514.0 * 8.0, "{free}");
}
