//! The speed of cached look-ups. Run with `cargo test --release -p twinnet-fabric cached_lookups -- --ignored
//! --nocapture`.

use std::time::Instant;

use twinnet_packet::FlowKey;

use super::frames::tcp;
use super::*;

#[test]
#[ignore = "a measurement; meaningful in a release build only"]
fn cached_lookups_per_second() {
    const ROUNDS: usize = 2_000_000;
    // The last flow has the cache tell connections apart.
    let flows =
        ["priority=9,ip,nw_dst=10.0.0.4,actions=enqueue:4:1", "priority=1,actions=2", "tcp,tcp_dst=9,actions=3"];
    let mut switch = secure(&flows);
    let frames: Vec<_> = (0..64).map(|number| tcp(1, 4, number)).collect();
    let keys: Vec<_> = frames.iter().map(|frame| FlowKey::extract(1, &frame.bytes)).collect();
    let mut out = Vec::new();
    for frame in &frames {
        switch.receive(1, Box::new(frame.clone()), Time::ZERO, &mut out);
    }

    let start = Instant::now();
    let mut steps = 0;
    for round in 0..ROUNDS {
        steps += switch.cache.find(&keys[round % 64]).map_or(0, |decision| decision.steps.len());
    }
    println!("cache look-ups: {:.1} million/s ({steps} steps)", ROUNDS as f64 / start.elapsed().as_secs_f64() / 1e6);

    let start = Instant::now();
    let mut sum = 0;
    for round in 0..ROUNDS {
        sum += FlowKey::extract(1, &frames[round % 64].bytes).get(twinnet_packet::Field::TP_DST);
    }
    println!("flow keys extracted: {:.1} million/s ({sum})", ROUNDS as f64 / start.elapsed().as_secs_f64() / 1e6);

    // The frame that comes out goes in again: no allocation in the measured loop.
    let mut boxes: Vec<_> = frames.into_iter().map(Box::new).collect();
    let start = Instant::now();
    for round in 0..ROUNDS {
        let at = round % 64;
        out.clear();
        switch.receive(1, std::mem::take(&mut boxes[at]), Time::from_ns(round as u64), &mut out);
        boxes[at] = out.pop().map(|output| output.frame).unwrap_or_default();
    }
    println!("frames switched: {:.1} million/s", ROUNDS as f64 / start.elapsed().as_secs_f64() / 1e6);
    // Two ways a set: the cache grows where more keys than that meet, at the cost of a few misses.
    assert!(switch.counters().cache_misses < 1000, "{:?}", switch.counters());
}
