//! Delays and losses of a class: exact, even, independent, and of that class alone.

use twinnet_units::{Duration, Time};

use super::super::DropReason;
use super::link::{build, frame, train, Link};

const MS_PS: u64 = 1_000_000_000;

fn delays_ms(link: &Link, every: Duration) -> Vec<f64> {
    let since = |mark: u32| Time::ZERO + Duration::from_ps(u64::from(mark) * every.as_ps());
    link.sent.iter().map(|sent| (sent.at - since(sent.mark)).as_ps() as f64 / MS_PS as f64).collect()
}

/// A thousand frames, one each `every`, through a discipline on a line without a rate.
fn thousand(json: &str, every: Duration) -> Link {
    let mut link = Link::new(build(json), None);
    for mark in 0..1000 {
        link.run_until(Time::ZERO + Duration::from_ps(u64::from(mark) * every.as_ps()));
        link.offer(frame(0, 1000, mark));
    }
    link.run_until(Time::MAX);
    link
}

#[test]
fn every_frame_waits_for_the_delay_to_the_picosecond() {
    let every = Duration::from_us(100);
    let link = thousand(r#"{"kind":"delay","delay_ps":10000000000}"#, every);
    assert_eq!(link.sent.len(), 1000);
    assert!(delays_ms(&link, every).iter().all(|delay| *delay == 10.0));
}

#[test]
fn jitter_is_even_on_both_sides_and_reorders() {
    let every = Duration::from_us(100);
    let link = thousand(r#"{"kind":"delay","delay_ps":10000000000,"jitter_ps":4000000000}"#, every);
    let delays = delays_ms(&link, every);
    let mean = delays.iter().sum::<f64>() / 1000.0;
    // The mean of 1000 draws from -4 to 4 ms has a standard deviation of 8 / sqrt(12 x 1000) = 0.073 ms; four of them.
    assert!((mean - 10.0).abs() < 0.3, "{mean}");
    assert!(delays.iter().all(|delay| (6.0..=14.0).contains(delay)));
    assert!(delays.iter().any(|delay| *delay < 6.5) && delays.iter().any(|delay| *delay > 13.5));
    assert!(link.sent.windows(2).any(|pair| pair[0].mark > pair[1].mark), "80 frames are on their way at once");
}

#[test]
fn a_delay_is_never_below_zero() {
    let every = Duration::from_us(100);
    let link = thousand(r#"{"kind":"delay","jitter_ps":1000000000}"#, every);
    let at_once = delays_ms(&link, every).iter().filter(|delay| **delay == 0.0).count();
    // A half of 1000 frames, give or take four standard deviations of 16.
    assert!((436..=564).contains(&at_once), "{at_once}");
}

#[test]
fn losses_are_as_many_as_the_probability_says_and_count_as_early_drops() {
    let link = thousand(r#"{"kind":"delay","loss":0.2}"#, Duration::from_us(100));
    let lost = link.dropped.reasons.len();
    // Four standard deviations of sqrt(1000 x 0.2 x 0.8) = 12.6.
    assert!((150..=250).contains(&lost), "{lost}");
    assert!(link.dropped.reasons.iter().all(|reason| *reason == DropReason::Early));
    assert_eq!(link.sent.len() + lost, 1000);
    assert!(thousand(r#"{"kind":"delay","loss":1.0}"#, Duration::from_us(100)).sent.is_empty());
}

#[test]
fn what_comes_when_the_limit_is_reached_is_dropped_and_trains_count_as_their_frames() {
    let mut link = Link::new(build(r#"{"kind":"delay","delay_ps":1000000000,"limit_frames":5}"#), None);
    link.offer(train(0, 7, 0));
    assert_eq!((link.queue.backlog().frames, link.dropped.total.frames), (5, 2));
    assert_eq!(link.dropped.reasons, [DropReason::Overlimit; 2]);
}

#[test]
fn classes_of_htb_and_bands_keep_their_frames_for_delays_of_their_own() {
    for json in [
        r#"{"kind":"htb","rate_bps":1000000000,"queues":{
            "0":{"queue":{"kind":"delay","delay_ps":30000000000}},
            "1":{"queue":{"kind":"delay","delay_ps":5000000000}}}}"#,
        r#"{"kind":"priority","bands":[
            {"kind":"delay","delay_ps":30000000000},{"kind":"delay","delay_ps":5000000000}]}"#,
    ] {
        let mut link = Link::new(build(json), None);
        link.offer(frame(0, 100, 1));
        link.offer(frame(1, 100, 2));
        link.run_until(Time::MAX);
        let left: Vec<_> = link.sent.iter().map(|sent| (sent.mark, sent.at.as_ps() / MS_PS)).collect();
        assert_eq!(left, [(2, 5), (1, 30)], "{json}");
    }
}
