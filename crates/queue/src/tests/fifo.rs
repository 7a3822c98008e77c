//! First in, first out.

use twinnet_units::Time;

use super::super::{Backlog, DropReason};
use super::link::{build, frame, train, Link};

#[test]
fn frames_leave_in_the_order_they_came() {
    let mut link = Link::new(build(r#"{"kind":"fifo","limit_frames":100}"#), Some(1_000_000_000));
    for mark in 0..100 {
        link.offer(frame(mark % 3, 60 + mark * 7, mark));
    }
    link.run_until(Time::from_ns(10_000_000));
    let marks: Vec<u32> = link.sent.iter().map(|sent| sent.mark).collect();
    assert_eq!(marks, (0..100).collect::<Vec<_>>());
}

#[test]
fn what_comes_when_the_queue_is_full_of_frames_is_dropped() {
    let mut link = Link::new(build(r#"{"kind":"fifo","limit_frames":3}"#), None);
    for mark in 0..5 {
        link.offer(frame(0, 100, mark));
    }
    assert_eq!(link.dropped.marks, [3, 4]);
    assert_eq!(link.dropped.reasons, [DropReason::Overlimit; 2]);
    assert_eq!(link.queue.backlog(), Backlog { frames: 3, bytes: 300 });
}

#[test]
fn a_byte_limit_lets_a_short_frame_in_where_a_long_one_does_not_fit() {
    let mut link = Link::new(build(r#"{"kind":"fifo","limit_bytes":2000}"#), None);
    for (mark, bytes) in [(0, 1500), (1, 501), (2, 500), (3, 60)] {
        link.offer(frame(0, bytes, mark));
    }
    assert_eq!(link.dropped.marks, [1, 3]);
    assert_eq!(link.queue.backlog(), Backlog { frames: 2, bytes: 2000 });
}

#[test]
fn a_train_counts_as_its_frames() {
    let mut link = Link::new(build(r#"{"kind":"fifo","limit_frames":10}"#), None);
    link.offer(train(0, 10, 0));
    assert_eq!(link.queue.backlog(), Backlog { frames: 10, bytes: 15_140 });
    link.offer(frame(0, 60, 1));
    assert_eq!(link.dropped.marks, [1]);
}

#[test]
fn a_train_that_fits_in_part_keeps_its_front_and_loses_its_tail() {
    for limit in [r#""limit_frames":7"#, r#""limit_bytes":10600"#, r#""limit_frames":7,"limit_bytes":99999"#] {
        let mut link = Link::new(build(&format!(r#"{{"kind":"fifo",{limit}}}"#)), None);
        link.offer(train(0, 10, 5));
        assert_eq!(link.queue.backlog(), Backlog { frames: 7, bytes: 7 * 1514 }, "{limit}");
        assert_eq!(link.dropped.total, Backlog { frames: 3, bytes: 3 * 1514 }, "{limit}");
        link.run_until(Time::ZERO);
        assert_eq!(link.sent_total().frames, 7);
    }
}

#[test]
fn a_frame_held_by_the_class_around_counts_against_the_limit() {
    let json = r#"{"kind":"tbf","rate_bps":8000,"burst_bytes":2000,"queue":{"kind":"fifo","limit_frames":3}}"#;
    let mut link = Link::new(build(json), None);
    link.offer(frame(0, 2000, 0));
    link.run_until(Time::ZERO);
    for mark in 1..=2 {
        link.offer(frame(0, 1000, mark));
        link.run_until(Time::ZERO);
    }
    link.offer(frame(0, 1000, 3));
    link.offer(frame(0, 1000, 4));
    assert_eq!(link.dropped.marks, [4]);
    assert_eq!(link.queue.backlog(), Backlog { frames: 3, bytes: 3000 });
}
