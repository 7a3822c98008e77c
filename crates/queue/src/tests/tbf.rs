//! Token bucket: the envelope holds, and nothing is held back that conforms.

use proptest::prelude::*;
use twinnet_units::Time;

use super::link::{build, frame, train, Link};

fn tbf(rate_bps: u64, burst_bytes: u64) -> Link {
    let json = format!(r#"{{"kind":"tbf","rate_bps":{rate_bps},"burst_bytes":{burst_bytes}}}"#);
    Link::new(build(&json), None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_window_carries_more_than_burst_plus_rate_times_its_length(
        rate_bps in 1_000_u64..10_000_000_000,
        burst_bytes in 1_518_u64..20_000,
        arrivals in prop::collection::vec((0_u64..50_000_000, 14_u32..3_000, 1_u32..20), 1..60),
    ) {
        let mut link = tbf(rate_bps, burst_bytes);
        let mut at = Time::ZERO;
        for (gap_ps, bytes, frames) in arrivals {
            at = Time::from_ps(at.as_ps() + gap_ps);
            link.run_until(at);
            link.offer(if frames > 10 { train(0, frames, 0) } else { frame(0, bytes, 0) });
        }
        link.run_until(Time::MAX);
        // Every window that begins with one departure and ends with another; in units of bit x 1e-12, so exactly.
        for (first, begin) in link.sent.iter().enumerate() {
            let mut carried = 0_u128;
            for end in &link.sent[first..] {
                carried += u128::from(end.bytes) * 8_000_000_000_000;
                let window_ps = u128::from((end.at - begin.at).as_ps());
                let allowed = u128::from(burst_bytes) * 8_000_000_000_000 + window_ps * u128::from(rate_bps);
                prop_assert!(carried <= allowed, "{carried} in {window_ps} ps, allowed {allowed}");
            }
        }
        let kept = link.offered.bytes - link.dropped.total.bytes;
        prop_assert_eq!(link.sent_total().bytes, kept);
    }
}

#[test]
fn a_backlog_leaves_at_the_rate_to_the_picosecond() {
    let mut link = tbf(7_000_000, 2_000);
    for mark in 0..1000 {
        link.offer(frame(0, 1000, mark));
    }
    link.run_until(Time::MAX);
    assert_eq!(link.sent.len(), 1000);
    assert_eq!(link.sent[1].at, Time::ZERO);
    // Frame n leaves when (n - 1) x 1000 bytes have come in, rounded up once and not once a frame: no drift.
    for (index, sent) in link.sent.iter().enumerate().skip(2) {
        let bits_ps = (index as u128 - 1) * 8_000 * 1_000_000_000_000;
        assert_eq!(u128::from(sent.at.as_ps()), bits_ps.div_ceil(7_000_000));
    }
}

#[test]
fn a_frame_longer_than_the_burst_is_dropped_and_counted() {
    let mut link = tbf(1_000_000, 1_600);
    link.offer(frame(0, 1_601, 0));
    link.offer(frame(0, 1_600, 1));
    assert_eq!(link.dropped.marks, [0]);
    assert_eq!(link.queue.class_counters()[0]["drops"]["overlimit"], 1);
    link.run_until(Time::MAX);
    assert_eq!(link.sent.len(), 1);
}
