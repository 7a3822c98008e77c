//! For every discipline, under random traffic: what went in has come out, was dropped or waits; and `next_ready`
//! keeps its word (the link checks that at every step).

use proptest::prelude::*;
use twinnet_units::Time;

use super::super::Backlog;
use super::link::{build, frame, train, Link};

const DISCIPLINES: [&str; 20] = [
    r#"{"kind":"fifo","limit_frames":20}"#,
    r#"{"kind":"fifo","limit_bytes":30000}"#,
    r#"{"kind":"priority","bands":[{"kind":"fifo","limit_frames":9},{"kind":"fifo","limit_bytes":9000}]}"#,
    r#"{"kind":"drr","classes":[{"quantum_bytes":100,"queue":{"kind":"fifo","limit_frames":9}},
        {"quantum_bytes":5000,"queue":{"kind":"fifo","limit_frames":9}},{"quantum_bytes":1500}]}"#,
    r#"{"kind":"tbf","rate_bps":50000000,"burst_bytes":4000,"queue":{"kind":"fifo","limit_frames":9}}"#,
    r#"{"kind":"htb","rate_bps":50000000,"queues":{"0":{"min_rate_bps":1000000,"max_rate_bps":20000000,
        "queue":{"kind":"fifo","limit_frames":9}},"1":{"priority":3},
        "2":{"min_rate_bps":9000000,"max_rate_bps":9000000}}}"#,
    r#"{"kind":"tbf","rate_bps":30000000,"burst_bytes":4000,"queue":{"kind":"priority","bands":[
        {"kind":"fifo","limit_frames":5},{"kind":"fifo","limit_frames":5}]}}"#,
    r#"{"kind":"htb","rate_bps":90000000,"queues":{"0":{"queue":{"kind":"tbf","rate_bps":4000000,"burst_bytes":2000,
        "queue":{"kind":"fifo","limit_frames":4}}},"1":{"queue":{"kind":"drr","classes":[{"quantum_bytes":9},
        {"quantum_bytes":99}]}}}}"#,
    r#"{"kind":"drr","classes":[{"quantum_bytes":500,"queue":{"kind":"tbf","rate_bps":4000000,"burst_bytes":2000}},
        {"quantum_bytes":700,"queue":{"kind":"htb","rate_bps":9000000,"queues":{"1":{"priority":1}}}}]}"#,
    r#"{"kind":"sfq","limit_frames":20,"perturb_ps":1000000000,"quantum_bytes":300}"#,
    r#"{"kind":"red","min_bytes":2000,"weight":0.2,"ecn":true}"#,
    r#"{"kind":"codel","limit_frames":60,"target_ps":100000000,"interval_ps":300000000}"#,
    r#"{"kind":"fq_codel","limit_frames":60,"target_ps":100000000,"interval_ps":300000000,"quantum_bytes":300}"#,
    r#"{"kind":"pie","limit_frames":60,"target_ps":100000000,"update_ps":1000000000,"burst_ps":0}"#,
    r#"{"kind":"cbq","rate_bps":90000000,"classes":{"9":{"rate_bps":60000000},"0":{"parent":9,"rate_bps":9000000,
        "queue":{"kind":"codel","target_ps":100000000,"interval_ps":300000000}},"1":{"parent":9,"rate_bps":30000000,
        "bounded":true,"priority":3},"2":{"rate_bps":30000000,"isolated":true,"burst_frames":0}}}"#,
    r#"{"kind":"cbq","rate_bps":50000000,"classes":{"0":{"rate_bps":5000000,"bounded":true,"queue":{"kind":"sfq"}},
        "1":{"rate_bps":9000000,"queue":{"kind":"tbf","rate_bps":4000000,"burst_bytes":2000}},
        "2":{"rate_bps":1000000}}}"#,
    r#"{"kind":"tbf","rate_bps":30000000,"burst_bytes":4000,"queue":{"kind":"priority","bands":[{"kind":"fq_codel"},
        {"kind":"pie","limit_frames":9},{"kind":"red","min_bytes":3000,"limit_bytes":20000}]}}"#,
    r#"{"kind":"classify","rules":[{"number":1,"header":[{"at":0,"mask":1,"value":1}]}],"queue":{"kind":"priority",
        "bands":[{"kind":"fifo","limit_frames":9},{"kind":"classify","rules":[],"otherwise":2,"queue":{"kind":"htb",
        "rate_bps":50000000,"queues":{"2":{"max_rate_bps":9000000}}}}]}}"#,
    r#"{"kind":"delay","delay_ps":30000000,"jitter_ps":90000000,"limit_frames":30}"#,
    r#"{"kind":"htb","rate_bps":50000000,"queues":{"0":{"queue":{"kind":"delay","delay_ps":90000000}},"1":{"queue":
        {"kind":"delay","jitter_ps":200000000,"limit_frames":9}},"2":{"max_rate_bps":9000000}}}"#,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_drained_discipline_gives_all_that_waited_and_works_on(
        arrivals in prop::collection::vec((0_u64..100_000_000, 0_u32..4, 14_u32..1_515, 0_u32..30), 1..40),
    ) {
        for json in DISCIPLINES {
            let mut link = Link::new(build(json), Some(100_000_000));
            let mut at = Time::ZERO;
            for (gap_ps, queue, bytes, frames) in &arrivals {
                at = Time::from_ps(at.as_ps() + gap_ps);
                link.run_until(at);
                link.offer(if *frames > 20 { train(*queue, *frames, 0) } else { frame(*queue, *bytes, 0) });
            }
            let waiting = link.queue.backlog();
            let drained: Backlog = link
                .queue
                .drain()
                .iter()
                .map(|frame| Backlog { frames: frame.frames(), bytes: frame.link_bytes() })
                .sum();
            prop_assert_eq!(drained, waiting, "{}", json);
            prop_assert_eq!(link.queue.backlog(), Backlog::default());
            prop_assert_eq!(link.queue.next_ready(at), None);
            link.offer(frame(0, 1000, 7));
            link.run_until(Time::MAX);
            prop_assert_eq!(link.sent.last().map(|sent| sent.mark), Some(7));
        }
    }

    #[test]
    fn nothing_is_made_or_lost(
        arrivals in prop::collection::vec((0_u64..300_000_000, 0_u32..4, 14_u32..1_515, 0_u32..30), 1..80),
    ) {
        for json in DISCIPLINES {
            let mut link = Link::new(build(json), Some(100_000_000));
            let mut at = Time::ZERO;
            for (gap_ps, queue, bytes, frames) in &arrivals {
                at = Time::from_ps(at.as_ps() + gap_ps);
                link.run_until(at);
                link.offer(if *frames > 20 { train(*queue, *frames, 0) } else { frame(*queue, *bytes, 0) });
                let accounted = link.sent_total() + link.dropped.total + link.queue.backlog();
                prop_assert_eq!(accounted, link.offered, "{}", json);
            }
            link.run_until(Time::MAX);
            prop_assert_eq!(link.queue.backlog().frames, 0, "{}", json);
            prop_assert_eq!(link.sent_total() + link.dropped.total, link.offered, "{}", json);
        }
    }
}
