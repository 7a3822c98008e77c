//! Acknowledgements: how many, and when.

use twinnet_apps::Chunk;
use twinnet_units::{Duration, Time};

use super::path::{Flight, Pair};
use crate::tcp::TcpConfig;

fn recorded(run: impl FnOnce(&mut Pair)) -> Vec<(Time, usize, Flight)> {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(10));
    pair.connect();
    pair.record = Some(Vec::new());
    run(&mut pair);
    pair.record.take().unwrap()
}

#[test]
fn every_segment_is_acknowledged_at_first_and_every_second_later() {
    // A buffer that does not grow: while the window opens, every segment is acknowledged, to tell of it.
    let fixed = TcpConfig { receive_buffer: [4096, 131_072, 131_072], ..TcpConfig::default() };
    let mut pair = Pair::new(&TcpConfig::default(), &fixed, 100, Duration::from_ms(10));
    pair.connect();
    pair.record = Some(Vec::new());
    pair.transfer(0, 2_896_000, false, Duration::from_secs(10)).unwrap();
    let record = pair.record.take().unwrap();
    let data = record.iter().filter(|(_, from, flight)| *from == 0 && flight.length() > 0).count();
    let acks = record.iter().filter(|(_, from, _)| *from == 1).count();
    assert_eq!(data, 2000);
    // 16 at once, then one for two. The last segment of what leaves at once asks for one of its own when it is a
    // first one.
    assert!((990..=1200).contains(&acks), "{acks} acknowledgements of {data} segments");
}

#[test]
fn while_the_window_opens_every_segment_is_acknowledged() {
    let record = recorded(|pair| {
        pair.transfer(0, 2_896_000, false, Duration::from_secs(10)).unwrap();
    });
    let data = record.iter().filter(|(_, from, flight)| *from == 0 && flight.length() > 0).count();
    let acks = record.iter().filter(|(_, from, _)| *from == 1).count();
    assert_eq!(data, 2000);
    assert!(acks > 1200, "{acks} acknowledgements of {data} segments");
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_ms() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(10));
    pair.connect();
    // Quick acknowledgements are used up.
    for _ in 0..40 {
        pair.transfer(0, 1448, false, Duration::from_secs(1)).unwrap();
        pair.run(Duration::from_ms(100));
    }
    pair.record = Some(Vec::new());
    let now = pair.now;
    pair.end(0).send(Chunk::Filler(1448), now).unwrap();
    pair.run(Duration::from_ms(300));
    let record = pair.record.take().unwrap();
    let answer = record.iter().find(|(_, from, _)| *from == 1).unwrap().0 - now;
    // 10 ms there, and the delay.
    assert!((45..=60).contains(&(answer.as_ns() / 1_000_000)), "{answer}");
    assert_eq!(record.iter().filter(|(_, from, flight)| *from == 0 && flight.length() > 0).count(), 1);
}

/// The moments of the selective acknowledgements of a single loss, of one segment each 0.115 ms at 100 Mbit/s and a
/// round trip of 10 ms.
fn selective_after_a_loss(config: &TcpConfig) -> Vec<Time> {
    let mut pair = Pair::new(config, config, 100, Duration::from_ms(5));
    pair.connect();
    pair.transfer(0, 1_448_000, false, Duration::from_secs(10)).unwrap();
    let mut dropped = false;
    pair.lines[0].drop = Some(Box::new(move |_, _| !std::mem::replace(&mut dropped, true)));
    pair.record = Some(Vec::new());
    pair.transfer(0, 144_800, false, Duration::from_secs(10)).unwrap();
    let record = pair.record.take().unwrap();
    record
        .iter()
        .filter(|(_, from, flight)| *from == 1 && flight.header.options.sack[0].is_some())
        .map(|(at, ..)| *at)
        .collect()
}

/// Microseconds between neighbours.
fn gaps_us(moments: &[Time]) -> Vec<u64> {
    moments.windows(2).map(|pair| (pair[1] - pair[0]).as_ns() / 1000).collect()
}

#[test]
fn three_times_a_gap_is_told_of_at_once_and_then_for_several_segments_together() {
    // A buffer that cannot grow.
    let config = TcpConfig { receive_buffer: [4096, 400_000, 400_000], ..TcpConfig::default() };
    let gaps = gaps_us(&selective_after_a_loss(&config));
    // A third of the round trip is more than a millisecond: that and the timer's slack, counted from the first segment
    // that is kept back.
    assert!(gaps[..2].iter().all(|us| (110..=130).contains(us)), "{gaps:?}");
    assert!(gaps[2..6].iter().all(|us| (1010..=1180).contains(us)), "{gaps:?}");
}

#[test]
fn without_selective_acknowledgements_each_segment_behind_a_gap_is_answered() {
    let config = TcpConfig { sack: false, ..TcpConfig::default() };
    let mut pair = Pair::new(&config, &config, 100, Duration::from_ms(5));
    pair.connect();
    pair.transfer(0, 1_448_000, false, Duration::from_secs(10)).unwrap();
    let mut dropped = false;
    pair.lines[0].drop = Some(Box::new(move |_, _| !std::mem::replace(&mut dropped, true)));
    pair.record = Some(Vec::new());
    pair.transfer(0, 144_800, false, Duration::from_secs(10)).unwrap();
    let record = pair.record.take().unwrap();
    let answers: Vec<u32> =
        record.iter().filter(|(_, from, _)| *from == 1).map(|(_, _, flight)| flight.header.acknowledgement).collect();
    let same = answers.iter().filter(|number| **number == answers[0]).count();
    assert!(same >= 90, "{same} duplicate acknowledgements of 99 segments behind the gap");
}

#[test]
fn an_answer_carries_the_acknowledgement() {
    let record = recorded(|pair| {
        for _ in 0..30 {
            pair.transfer(0, 100, true, Duration::from_secs(1)).unwrap();
            pair.transfer(1, 100, true, Duration::from_secs(1)).unwrap();
        }
    });
    let bare = record.iter().filter(|(_, _, flight)| flight.length() == 0).count();
    assert!(bare <= 35, "{bare} bare acknowledgements for 30 requests and answers");
}
