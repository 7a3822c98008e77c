//! The cost of a segment. Not run by default: a measurement, not a test of behaviour.

use std::time::Instant;

use twinnet_apps::Chunk;
use twinnet_packet::tcp::Packet;
use twinnet_units::{Duration, Time};

use super::path::address;
use crate::tcp::{Connection, Outgoing, Segment, TcpConfig};

/// Hands what `from` has sent to `to`, without a copy.
fn hand_over(bytes: &[u8], outgoing: Outgoing, to: &mut Connection, now: Time) {
    let packet = Packet::new_checked(bytes).unwrap();
    let segment = Segment {
        sequence: packet.sequence(),
        acknowledgement: packet.acknowledgement(),
        flags: packet.flags(),
        window: packet.window(),
        options: packet.options().unwrap(),
        payload: packet.payload(),
        elided: outgoing.elided,
        congestion_experienced: false,
    };
    to.receive(&segment, now);
}

/// Nanoseconds for each data segment and its share of acknowledgements, with every `lossy`th segment lost.
fn measure(segments: u64, lossy: u64) -> (f64, u32) {
    let config = TcpConfig::default();
    let mut now = Time::ZERO;
    let mut bytes = Vec::with_capacity(2000);
    let mut source = Connection::connect(&config, address(0), address(1), 1500, 1, now);
    let outgoing = source.poll_send(now, &mut bytes).unwrap();
    let syn = Packet::new_checked(&bytes).unwrap();
    let syn = Segment {
        sequence: 1,
        acknowledgement: 0,
        flags: syn.flags(),
        window: syn.window(),
        options: syn.options().unwrap(),
        payload: &[],
        elided: outgoing.elided,
        congestion_experienced: false,
    };
    let mut sink = Connection::accept(&config, address(1), address(0), 1500, 1, &syn, now);
    let (mut sent, mut widest) = (0, 0);
    let begun = Instant::now();
    let mut answers: Vec<u8> = Vec::new();
    let mut lengths: Vec<usize> = Vec::new();
    while sent < segments {
        now += Duration::from_ms(5);
        for connection in [&mut source, &mut sink] {
            if connection.deadline().is_some_and(|deadline| deadline <= now) {
                connection.timer(now);
            }
        }
        let _ = source.send(Chunk::Filler(1 << 24), now);
        answers.clear();
        lengths.clear();
        loop {
            bytes.clear();
            if let Some(outgoing) = source.poll_send(now, &mut bytes) {
                source.left_host(outgoing.payload);
                sent += u64::from(outgoing.payload > 0);
                if lossy == 0 || sent % lossy > 0 {
                    hand_over(&bytes, outgoing, &mut sink, now + Duration::from_ms(2));
                    let _ = sink.discard(u64::MAX, now);
                }
            } else {
                break;
            }
            let before = answers.len();
            if sink.poll_send(now, &mut answers).is_some() {
                lengths.push(answers.len() - before);
            }
        }
        widest = widest.max(source.info().congestion_window);
        now += Duration::from_ms(5);
        let before = answers.len();
        if sink.poll_send(now, &mut answers).is_some() {
            lengths.push(answers.len() - before);
        }
        let mut at = 0;
        for length in &lengths {
            let nothing = Outgoing { elided: 0, ecn_capable: false, payload: 0 };
            hand_over(&answers[at..at + length], nothing, &mut source, now);
            at += length;
        }
    }
    (begun.elapsed().as_nanos() as f64 / sent as f64, widest)
}

#[test]
#[ignore = "a measurement"]
fn what_a_segment_costs() {
    for lossy in [0, 10_000, 1000] {
        let (nanoseconds, widest) = measure(2_000_000, lossy);
        println!("one of {lossy} lost: {nanoseconds:.0} ns for a segment, window up to {widest}");
    }
}
