//! PIE: the delay that it holds, its burst allowance, its marks.

use twinnet_units::Time;

use super::super::DropReason;
use super::link::{build, packet, Link};

const LINE_BPS: u64 = 10_000_000;

/// Offers 1000-byte frames at `offered_bps` for `seconds`; gives the mean delay in milliseconds over the second half.
fn overload(json: &str, offered_bps: u64, seconds: u64, ecn: u8) -> (f64, Link) {
    let mut link = Link::new(build(json), Some(LINE_BPS));
    let gap_ps = 8_000 * 1_000_000_000_000 / offered_bps;
    let frames = u32::try_from(seconds * 1_000_000_000_000 / gap_ps).unwrap();
    for mark in 0..frames {
        link.run_until(Time::from_ps(u64::from(mark) * gap_ps));
        link.offer(packet(0, 1000, mark, ecn));
    }
    let late = link.sent.iter().filter(|sent| sent.mark > frames / 2);
    let delays: Vec<f64> =
        late.map(|sent| sent.at.since(Time::from_ps(u64::from(sent.mark) * gap_ps)).as_secs_f64() * 1e3).collect();
    (delays.iter().sum::<f64>() / delays.len() as f64, link)
}

#[test]
fn a_steady_overload_is_held_at_the_target() {
    for (offered_bps, target_ms) in [(11_000_000, 15.0), (13_000_000, 15.0), (20_000_000, 15.0), (13_000_000, 40.0)] {
        let target_ps = target_ms as u64 * 1_000_000_000;
        let json = format!(r#"{{"kind":"pie","target_ps":{target_ps}}}"#);
        let (delay, link) = overload(&json, offered_bps, 60, 0);
        assert!((delay - target_ms).abs() < 0.15 * target_ms, "{offered_bps}: {delay} ms instead of {target_ms}");
        let share = link.dropped.total.frames as f64 / link.offered.frames as f64;
        let excess = 1.0 - LINE_BPS as f64 / offered_bps as f64;
        assert!((share - excess).abs() < 0.02, "{share} instead of {excess}");
    }
}

#[test]
fn a_burst_within_the_allowance_passes_whole() {
    let mut link = Link::new(build(r#"{"kind":"pie"}"#), Some(LINE_BPS));
    for mark in 0..100 {
        link.offer(packet(0, 1000, mark, 0));
    }
    for number in 1..140_u64 {
        link.run_until(Time::from_ps(number * 1_000_000_000));
        link.offer(packet(0, 1000, 0, 0));
    }
    assert_eq!(link.dropped.total.frames, 0, "80 ms wait for 140 ms");
}

#[test]
fn marks_replace_drops_only_while_the_probability_is_below_a_tenth() {
    let (_, link) = overload(r#"{"kind":"pie","ecn":true}"#, 13_000_000, 20, 1);
    assert!(link.marked() >= 5, "{}", link.marked());
    assert!(link.dropped.total.frames > 1000, "a source that does not react is dropped in the end");
    assert!(link.dropped.reasons.contains(&DropReason::Early));
}

#[test]
fn below_the_rate_of_the_line_nothing_is_dropped() {
    let (_, link) = overload(r#"{"kind":"pie"}"#, 9_900_000, 20, 0);
    assert_eq!(link.dropped.total.frames, 0);
}
