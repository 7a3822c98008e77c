//! RED: what an average between the thresholds, above them and after an idle time does.

use twinnet_units::Time;

use super::super::DropReason;
use super::link::{build, packet, Link};

const ONE_SECOND: u64 = 1_000_000_000_000;

/// The average is the length itself: thresholds can be met exactly.
fn unfiltered(ecn: bool, gentle: bool) -> Link {
    let json = format!(
        r#"{{"kind":"red","min_bytes":10000,"max_bytes":30000,"limit_bytes":200000,"weight":1.0,"max_probability":0.5,
        "gentle":{gentle},"ecn":{ecn}}}"#
    );
    Link::new(build(&json), None)
}

fn offer(link: &mut Link, frames: u32, ecn: u8) {
    for mark in 0..frames {
        link.offer(packet(0, 1000, mark, ecn));
    }
}

#[test]
fn nothing_is_dropped_below_the_lower_threshold() {
    let mut link = unfiltered(false, true);
    offer(&mut link, 10, 0);
    assert_eq!((link.queue.backlog().frames, link.dropped.total.frames), (10, 0));
}

#[test]
fn without_the_gentle_region_the_queue_never_passes_the_upper_threshold() {
    let mut link = unfiltered(false, false);
    offer(&mut link, 200, 0);
    assert_eq!(link.queue.backlog().bytes, 30_000);
    assert!(link.dropped.reasons.iter().all(|reason| *reason == DropReason::Early));
}

#[test]
fn the_gentle_region_ends_at_twice_the_upper_threshold() {
    let mut link = unfiltered(false, true);
    offer(&mut link, 2000, 0);
    let bytes = link.queue.backlog().bytes;
    assert!((40_000..=60_000).contains(&bytes), "{bytes}");
}

#[test]
fn frames_whose_sender_understands_marks_are_marked_until_they_must_be_dropped() {
    let mut link = unfiltered(true, false);
    offer(&mut link, 30, 2);
    assert_eq!(link.dropped.total.frames, 0);
    assert!(link.marked() >= 3, "{}", link.marked());
    offer(&mut link, 5, 2);
    assert_eq!(link.dropped.total.frames, 5, "above the threshold marks are not enough (RFC 3168, 7)");
}

#[test]
fn the_byte_limit_is_told_from_early_drops() {
    let json = r#"{"kind":"red","min_bytes":10000,"max_bytes":30000,"limit_bytes":30000,"weight":0.000001}"#;
    let mut link = Link::new(build(json), None);
    offer(&mut link, 31, 0);
    assert_eq!(link.dropped.reasons, [DropReason::Overlimit]);
}

#[test]
fn a_steady_overload_is_dropped_early_and_the_average_lies_where_the_curve_has_its_share() {
    // 11 Mbit/s into 10: a share of 1/11 must go. With peak 0.2 that is where the average is 0.4545 of the way up.
    let json = r#"{"kind":"red","min_bytes":20000,"max_bytes":60000,"max_probability":0.2,"rate_bps":10000000}"#;
    let mut link = Link::new(build(json), Some(10_000_000));
    let (mut bytes, mut samples) = (0, 0);
    for mark in 0..40_000_u32 {
        link.run_until(Time::from_ps(u64::from(mark) * 727_272_727));
        link.offer(packet(0, 1000, mark, 0));
        if mark > 10_000 {
            bytes += link.queue.backlog().bytes;
            samples += 1;
        }
    }
    assert!(link.dropped.reasons.iter().all(|reason| *reason == DropReason::Early));
    let share = link.dropped.total.frames as f64 / 40_000.0;
    assert!((share - 1.0 / 11.0).abs() < 0.004, "{share}");
    // Drops at uniform distances come with 2 p / (1 + p): the base probability is 0.0476, 0.238 of the way.
    let mean = f64::from(u32::try_from(bytes / samples).unwrap());
    assert!((mean - (20_000.0 + 0.238 * 40_000.0)).abs() < 1500.0, "{mean}");
}

#[test]
fn after_an_idle_time_bursts_pass_again() {
    let json = r#"{"kind":"red","min_bytes":5000,"max_bytes":10000,"weight":0.1,"gentle":false,"rate_bps":10000000}"#;
    let mut link = Link::new(build(json), Some(10_000_000));
    offer(&mut link, 100, 0);
    let dropped = link.dropped.total.frames;
    assert!(dropped > 0);
    link.run_until(Time::from_ps(ONE_SECOND));
    offer(&mut link, 5, 0);
    assert_eq!(link.dropped.total.frames, dropped);
}
