//! CoDel: the schedule of drops, and what it leaves alone.

use twinnet_units::Time;

use super::super::DropReason;
use super::link::{build, packet, Link};

const MILLISECOND: u64 = 1_000_000_000;
/// 1000 bytes at 100 Mbit/s.
const FRAME_TIME: u64 = 80_000_000;

/// Offers 1000-byte frames every `gap_ps` on 100 Mbit/s from a backlog of `start` frames on; tells when frames were
/// dropped or marked.
fn losses(json: &str, start: u32, gap_ps: u64, end_ps: u64, ecn: u8) -> (Vec<u64>, Link) {
    let mut link = Link::new(build(json), Some(100_000_000));
    for mark in 0..start {
        link.offer(packet(0, 1000, mark, ecn));
    }
    let (mut moments, mut at) = (Vec::new(), 0);
    while at < end_ps {
        let before = link.dropped.total.frames + link.marked();
        link.run_until(Time::from_ps(at));
        for _ in before..link.dropped.total.frames + link.marked() {
            moments.push(at);
        }
        link.offer(packet(0, 1000, 0, ecn));
        at += gap_ps;
    }
    (moments, link)
}

#[test]
fn drops_of_a_standing_queue_come_at_intervals_that_shrink_with_the_root_of_their_count() {
    // The line just keeps up: 200 frames wait, 16 ms.
    let (drops, link) = losses(r#"{"kind":"codel"}"#, 200, FRAME_TIME, 500 * MILLISECOND, 0);
    assert!(drops.len() >= 7, "{drops:?}");
    // Delay passes the target of 5 ms at 5 ms; the first drop is due an interval of 100 ms later.
    assert!(drops[0].abs_diff(105 * MILLISECOND) <= 2 * FRAME_TIME, "{}", drops[0]);
    let mut due = drops[0] as f64;
    for (count, at) in (1_u32..).zip(&drops).take(drops.len() - 1) {
        due += 100.0 * MILLISECOND as f64 / f64::from(count).sqrt();
        let next = drops[count as usize] as f64;
        assert!(
            (next - due).abs() <= 2.0 * FRAME_TIME as f64,
            "drop {count} at {at}, the next at {next} instead of {due}"
        );
    }
    assert!(link.dropped.reasons.iter().all(|reason| *reason == DropReason::Early));
}

#[test]
fn marks_keep_the_same_schedule_and_drop_nothing() {
    let json = r#"{"kind":"codel","ecn":true}"#;
    let (marks, link) = losses(json, 200, FRAME_TIME, 400 * MILLISECOND, 2);
    assert_eq!(link.dropped.total.frames, 0);
    assert!(link.marked() >= 5);
    assert!((marks[1] - marks[0]).abs_diff(100 * MILLISECOND) <= 2 * FRAME_TIME);
    assert!((marks[2] - marks[1]).abs_diff(70_710_678_118) <= 2 * FRAME_TIME);
}

#[test]
fn a_standing_queue_below_the_target_is_left_alone() {
    let (drops, _) = losses(r#"{"kind":"codel"}"#, 60, FRAME_TIME, 1000 * MILLISECOND, 0);
    assert!(drops.is_empty(), "60 frames are 4.8 ms: {drops:?}");
}

#[test]
fn a_burst_that_is_gone_within_an_interval_is_left_alone() {
    let (drops, _) = losses(r#"{"kind":"codel"}"#, 900, 2 * FRAME_TIME, 90 * MILLISECOND, 0);
    assert!(drops.is_empty(), "{drops:?}");
}

#[test]
fn dropping_stops_when_the_delay_is_below_the_target() {
    let (drops, link) = losses(r#"{"kind":"codel"}"#, 200, FRAME_TIME, 8000 * MILLISECOND, 0);
    // From 200 frames to the 62 that are 5 ms: no more than it takes, and none in the seconds after.
    assert!((130..=150).contains(&drops.len()), "{}", drops.len());
    assert!(link.queue.backlog().frames >= 50, "{:?}", link.queue.backlog());
    assert!(drops.last().is_some_and(|last| *last < 6000 * MILLISECOND), "{:?}", drops.last());
}

#[test]
fn the_tail_is_dropped_at_the_limit() {
    let mut link = Link::new(build(r#"{"kind":"codel","limit_frames":2}"#), None);
    for mark in 0..3 {
        link.offer(packet(0, 1000, mark, 0));
    }
    assert_eq!((link.dropped.marks.as_slice(), link.dropped.reasons[0]), (&[2][..], DropReason::Overlimit));
}
