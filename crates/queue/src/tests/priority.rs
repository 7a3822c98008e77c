//! Strict priority.

use twinnet_units::{Rate, Time};

use super::link::{build, frame, train, Link};

const THREE_BANDS: &str = r#"{"kind":"priority","bands":[{"kind":"fifo","limit_frames":100},
    {"kind":"fifo","limit_frames":100},{"kind":"fifo","limit_frames":100}]}"#;

#[test]
fn a_band_is_served_only_when_those_before_it_are_empty() {
    let mut link = Link::new(build(THREE_BANDS), Some(1_000_000));
    for (mark, band) in [2, 1, 0, 2, 0, 1].into_iter().enumerate() {
        link.offer(frame(band, 1000, mark as u32));
    }
    link.run_until(Time::from_ns(1_000_000_000));
    let order: Vec<(u32, u32)> = link.sent.iter().map(|sent| (sent.queue, sent.mark)).collect();
    assert_eq!(order, [(0, 2), (0, 4), (1, 1), (1, 5), (2, 0), (2, 3)]);
}

#[test]
fn a_saturating_band_starves_those_after_it() {
    let mut link = Link::new(build(THREE_BANDS), Some(100_000_000));
    link.run_greedy(&[(1, 1514), (2, 1514)], Time::from_ns(100_000_000));
    assert!(link.sent.iter().all(|sent| sent.queue == 1));
}

#[test]
fn a_queue_number_without_a_band_goes_to_band_0() {
    let mut link = Link::new(build(THREE_BANDS), Some(1_000_000));
    link.offer(frame(2, 100, 0));
    link.offer(frame(9, 100, 1));
    assert_eq!(link.send_now().unwrap().mark, 1);
}

#[test]
fn an_urgent_frame_waits_for_one_frame_of_a_train_and_not_for_the_train() {
    let mut link = Link::new(build(THREE_BANDS), Some(10_000_000));
    link.offer(train(2, 44, 0));
    assert_eq!(link.send_now().unwrap().frames, 1);
    link.offer(frame(0, 100, 1));
    link.run_until(Time::from_ns(100_000_000));
    assert_eq!(link.sent[1].mark, 1);
    assert_eq!(link.sent[1].at, Time::ZERO + Rate::from_bps(10_000_000).unwrap().serialise(1514));
    assert_eq!(link.sent_total().frames, 45);
}

#[test]
fn a_shaped_band_lets_the_next_one_send_meanwhile() {
    let json = r#"{"kind":"priority","bands":[{"kind":"tbf","rate_bps":8000000,"burst_bytes":1518},
        {"kind":"fifo","limit_frames":100}]}"#;
    let mut link = Link::new(build(json), Some(80_000_000));
    link.run_greedy(&[(0, 1000), (1, 1000)], Time::from_ns(1_000_000_000));
    // A tenth of the line, and the burst once.
    assert!((link.rate_of(0, Time::ZERO) - 8e6).abs() < 2.0 * 1518.0 * 8.0);
    assert!((link.rate_of(1, Time::ZERO) - 72e6).abs() < 2.0 * 1518.0 * 8.0);
}
