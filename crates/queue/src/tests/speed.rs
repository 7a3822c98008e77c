//! The cost of a frame in each discipline. A measurement, to be run alone:
//! `cargo test --release -p twinnet-fabric --lib queue::tests::speed -- --ignored --nocapture`

use std::collections::VecDeque;
use std::time::Instant;

use twinnet_packet::Frame;
use twinnet_units::Time;

use super::super::{DropReason, DropSink};
use super::link::{build, packet};

/// Gives frames that were dropped back to be offered again.
struct Returned(VecDeque<Box<Frame>>);

impl DropSink for Returned {
    fn dropped(&mut self, frame: Box<Frame>, _reason: DropReason) {
        self.0.push_back(frame);
    }

    fn marked(&mut self, _frame: &Frame) {}
}

/// The best of many rounds, in nanoseconds: others may use the machine, and a short round fits between two of their
/// turns.
fn cost_of(json: &str) -> f64 {
    const TIMES: u64 = 5_000;
    let mut queue = build(json);
    let mut spare = Returned((0..64).map(|flow| packet(flow % 16, 1000, 0, 0)).collect());
    let mut step = 0;
    for _ in 0..32 {
        let frame = spare.0.pop_front().unwrap();
        queue.enqueue(frame, Time::ZERO, &mut spare);
    }
    let mut round = || {
        let begin = Instant::now();
        for _ in 0..TIMES {
            step += 1;
            let now = Time::from_ps(step * 800_000);
            if let Some(frame) = spare.0.pop_front() {
                queue.enqueue(frame, now, &mut spare);
            }
            let sent = queue.dequeue(now, &mut spare);
            spare.0.extend(sent);
        }
        begin.elapsed().as_secs_f64() * 1e9 / TIMES as f64
    };
    (0..200).map(|_| round()).fold(f64::MAX, f64::min)
}

#[test]
#[ignore = "a measurement"]
fn a_frame_goes_in_and_out_within_a_hundred_nanoseconds() {
    let costs = [
        r#"{"kind":"fifo","limit_frames":1000}"#,
        r#"{"kind":"sfq"}"#,
        r#"{"kind":"red","min_bytes":30000}"#,
        r#"{"kind":"codel"}"#,
        r#"{"kind":"fq_codel"}"#,
        r#"{"kind":"pie"}"#,
        r#"{"kind":"cbq","rate_bps":10000000000,"classes":{"0":{"rate_bps":5000000000},"1":{"rate_bps":3000000000},
            "2":{"rate_bps":2000000000}}}"#,
    ]
    .map(|json| (json, cost_of(json)));
    for (json, each_ns) in costs {
        println!("{each_ns:6.1} ns  {json}");
    }
    assert!(costs.iter().all(|(_, each_ns)| *each_ns < 100.0));
}
