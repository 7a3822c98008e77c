//! CBQ: the link-sharing goals of Floyd and Jacobson 1995.

use twinnet_units::Time;

use super::link::{build, frame, Link};

const LINE_BPS: u64 = 10_000_000;
const END: Time = Time::from_ns(20_000_000_000);

/// Two agencies with half the link each: A (classes 1 and 2 with 3 and 2 Mbit/s) and B (class 3 with 5 Mbit/s).
fn agencies(of_1: &str, of_2: &str, of_3: &str) -> Link {
    let json = format!(
        r#"{{"kind":"cbq","rate_bps":{LINE_BPS},"classes":{{"10":{{"rate_bps":5000000}},"20":{{"rate_bps":5000000}},
        "1":{{"parent":10,"rate_bps":3000000{of_1}}},"2":{{"parent":10,"rate_bps":2000000{of_2}}},
        "3":{{"parent":20,"rate_bps":5000000{of_3}}}}}}}"#
    );
    Link::new(build(&json), Some(LINE_BPS))
}

/// The estimator's filter and the granularity of frames make shares exact to a percent or two over 20 s.
#[track_caller]
fn assert_rates(link: &Link, expected_mbps: &[(u32, f64)]) {
    for (class, mbps) in expected_mbps {
        let rate = link.rate_of(*class, Time::ZERO) / 1e6;
        assert!((rate - mbps).abs() <= 0.02 * mbps, "class {class}: {rate} Mbit/s instead of {mbps}");
    }
}

#[test]
fn all_classes_get_their_allotments_when_all_have_traffic() {
    let mut link = agencies("", "", "");
    link.run_greedy(&[(1, 1000), (2, 1000), (3, 1000)], END);
    assert_rates(&link, &[(1, 3.0), (2, 2.0), (3, 5.0)]);
}

#[test]
fn allotments_hold_across_priorities_and_frame_lengths() {
    let mut link = agencies(r#","priority":7"#, "", r#","priority":3"#);
    link.run_greedy(&[(1, 1500), (2, 200), (3, 700)], END);
    // While all wait for their estimators the first in priority borrows what the line has left, and its average
    // forgets some of it.
    for (class, mbps) in [(1, 3.0), (2, 2.0), (3, 5.0)] {
        let rate = link.rate_of(class, Time::ZERO) / 1e6;
        assert!((rate / mbps - 1.0).abs() < 0.04, "class {class}: {rate}");
    }
}

#[test]
fn what_a_class_leaves_goes_to_its_own_agency_first() {
    let mut link = agencies("", "", "");
    link.run_greedy(&[(1, 1000), (3, 1000)], END);
    assert_rates(&link, &[(1, 5.0), (3, 5.0)]);
    let counters = link.queue.class_counters();
    assert!(counters[0]["borrowed_frames"].as_u64() > Some(1000), "{counters}");
}

#[test]
fn a_class_alone_borrows_the_whole_link() {
    let mut link = agencies("", "", "");
    link.run_greedy(&[(2, 1000)], END);
    assert_rates(&link, &[(2, 10.0)]);
}

#[test]
fn a_bounded_class_is_regulated_to_its_allotment_and_never_borrows() {
    let mut link = agencies(r#","bounded":true"#, "", "");
    link.run_greedy(&[(1, 1000)], END);
    assert_rates(&link, &[(1, 3.0)]);
    assert_eq!(link.queue.class_counters()[0]["borrowed_frames"], 0);
}

#[test]
fn what_a_bounded_class_cannot_use_does_not_keep_others_from_borrowing() {
    let mut link = agencies(r#","bounded":true"#, "", "");
    link.run_greedy(&[(1, 1000), (3, 1000)], END);
    assert_rates(&link, &[(1, 3.0), (3, 7.0)]);
}

#[test]
fn an_isolated_class_does_not_lend() {
    let mut link = agencies("", "", r#","isolated":true"#);
    link.run_greedy(&[(1, 1000), (2, 1000)], END);
    assert_rates(&link, &[(1, 3.0), (2, 2.0)]);
}

#[test]
fn an_isolated_class_may_borrow_and_the_lender_is_charged() {
    let json = format!(
        r#"{{"kind":"cbq","rate_bps":{LINE_BPS},"classes":{{"1":{{"rate_bps":2000000,"isolated":true}},
        "2":{{"rate_bps":8000000}}}}}}"#
    );
    let mut link = Link::new(build(&json), Some(LINE_BPS));
    link.run_greedy(&[(1, 1000)], END);
    assert_rates(&link, &[(1, 10.0)]);
}

#[test]
fn a_class_of_high_priority_within_its_allotment_waits_for_one_frame_at_most() {
    let mut link = agencies(r#","priority":0"#, r#","priority":1"#, r#","priority":1"#);
    for _ in 0..900 {
        link.offer(frame(2, 1500, 0));
        link.offer(frame(3, 1500, 0));
    }
    for number in 1..200_u64 {
        let came = Time::from_ps(number * 9_000_000_000);
        link.run_until(came);
        link.offer(frame(1, 1000, 0));
        link.run_until(Time::from_ps(came.as_ps() + 3_000_000_000));
        let sent = link.sent.iter().rev().find(|sent| sent.queue == 1).unwrap();
        assert!(sent.at >= came && sent.at.since(came).as_ps() <= 1_200_000_000, "frame {number}");
    }
}

#[test]
fn a_class_that_returns_takes_its_allotment_back() {
    let mut link = agencies("", "", "");
    link.run_greedy(&[(1, 1000)], END);
    let begin = Time::from_ns(21_000_000_000);
    link.run_greedy(&[(1, 1000), (2, 1000), (3, 1000)], begin);
    link.run_greedy(&[(1, 1000), (2, 1000), (3, 1000)], Time::from_ns(41_000_000_000));
    for (class, mbps) in [(1, 3.0), (2, 2.0), (3, 5.0)] {
        let rate = link.rate_of(class, begin) / 1e6;
        assert!((rate / mbps - 1.0).abs() < 0.03, "class {class}: {rate}");
    }
}

#[test]
fn structures_that_contradict_themselves_are_refused() {
    use super::super::QueueConfig;
    for (classes, path) in [
        (r#"{}"#, "queue.classes"),
        (r#"{"1":{"rate_bps":6},"2":{"rate_bps":5}}"#, "queue.classes"),
        (r#"{"1":{"rate_bps":6},"2":{"rate_bps":7,"parent":1}}"#, "queue.classes"),
        (r#"{"1":{"rate_bps":11}}"#, "queue.classes.1.rate_bps"),
        (r#"{"1":{"rate_bps":1,"parent":1}}"#, "queue.classes.1.parent"),
        (r#"{"1":{"rate_bps":1,"parent":2},"2":{"rate_bps":1,"parent":1}}"#, "queue.classes.1.parent"),
        (r#"{"1":{"rate_bps":1,"parent":3}}"#, "queue.classes.1.parent"),
        (r#"{"1":{"rate_bps":1,"priority":8}}"#, "queue.classes.1.priority"),
        (r#"{"1":{"rate_bps":2,"queue":{"kind":"sfq"}},"2":{"rate_bps":1,"parent":1}}"#, "queue.classes.1.queue"),
        (r#"{"1":{"rate_bps":2,"queue":{"kind":"sfq","buckets":126}}}"#, "queue.classes.1.queue.buckets"),
    ] {
        let json = format!(r#"{{"kind":"cbq","rate_bps":10,"classes":{classes}}}"#);
        let error = serde_json::from_str::<QueueConfig>(&json).unwrap().build().map(drop).unwrap_err();
        assert_eq!(error.path, path, "{classes}: {error}");
    }
}

/// The agencies of the paper under another guideline.
fn agencies_by(link_sharing: &str, of_1: &str, of_3: &str) -> Link {
    let json = format!(
        r#"{{"kind":"cbq","rate_bps":{LINE_BPS},"link_sharing":"{link_sharing}","classes":{{"10":{{"rate_bps":5000000}},
        "20":{{"rate_bps":5000000}},"1":{{"parent":10,"rate_bps":3000000{of_1}}},"2":{{"parent":10,"rate_bps":2000000}},
        "3":{{"parent":20,"rate_bps":5000000{of_3}}}}}}}"#
    );
    Link::new(build(&json), Some(LINE_BPS))
}

/// Offers each of `queues` 20 Mbit/s, whether or not it may send: frames of 1000 bytes, 0.4 ms apart.
fn run_steadily(link: &mut Link, queues: &[u32], end: Time) {
    while link.now < end {
        for &queue in queues {
            link.offer(frame(queue, 1000, 0));
        }
        link.run_until(Time::from_ps(link.now.as_ps() + 400_000_000));
    }
}

#[test]
fn all_guidelines_give_each_busy_class_its_allotment_and_lend_one_alone_the_link() {
    for guideline in ["formal", "ancestor_only", "top_level"] {
        let mut link = agencies_by(guideline, "", "");
        run_steadily(&mut link, &[1, 2, 3], END);
        for (class, mbps) in [(1, 3.0), (2, 2.0), (3, 5.0)] {
            let rate = link.rate_of(class, Time::ZERO) / 1e6;
            assert!((rate / mbps - 1.0).abs() < 0.02, "{guideline}: class {class} has {rate} Mbit/s");
        }
        let mut link = agencies_by(guideline, "", "");
        run_steadily(&mut link, &[2], END);
        assert_rates(&link, &[(2, 10.0)]);
    }
}

#[test]
fn what_a_class_leaves_goes_to_its_own_agency_by_the_formal_and_the_top_level_guideline_alone() {
    // Class 2 is silent, and its 2 Mbit/s are class 1's, of the same agency. By ancestors alone class 3 borrows
    // from the link as readily, and round robin by allotments divides it 3 to 5, for nobody asks who is
    // unsatisfied.
    let rates = |guideline: &str| {
        let mut link = agencies_by(guideline, "", "");
        run_steadily(&mut link, &[1, 3], END);
        [1, 3].map(|class| link.rate_of(class, Time::ZERO) / 1e6)
    };
    for guideline in ["formal", "top_level"] {
        let [first, third] = rates(guideline);
        assert!((first - 5.0).abs() < 0.15 && (third - 5.0).abs() < 0.15, "{guideline}: {first} and {third} Mbit/s");
    }
    let [first, third] = rates("ancestor_only");
    assert!((first - 3.75).abs() < 0.1 && (third - 6.25).abs() < 0.1, "ancestor_only: {first} and {third} Mbit/s");
}

#[test]
fn a_class_under_its_limit_is_kept_waiting_by_one_of_higher_priority_that_borrows_by_ancestors_alone() {
    let third = |guideline: &str| {
        let mut link = agencies_by(guideline, r#","priority":0"#, r#","priority":7"#);
        run_steadily(&mut link, &[1, 3], END);
        link.rate_of(3, Time::ZERO) / 1e6
    };
    let (formal, ancestors, top_level) = (third("formal"), third("ancestor_only"), third("top_level"));
    assert!((formal - 5.0).abs() < 0.25, "formal: {formal}");
    assert!((top_level - 5.0).abs() < 0.25, "top-level: {top_level}");
    assert!(ancestors < 1.0, "ancestor-only: {ancestors}");
}

#[test]
fn a_guideline_that_is_none_is_refused() {
    let json = r#"{"kind":"cbq","rate_bps":1000,"link_sharing":"best","classes":{"1":{"rate_bps":1000}}}"#;
    let refusal = serde_json::from_str::<crate::QueueConfig>(json).unwrap_err().to_string();
    assert!(refusal.contains("ancestor_only"), "{refusal}");
}
