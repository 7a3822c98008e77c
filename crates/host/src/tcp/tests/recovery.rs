//! Tests with segments lost, late, doubled or marked.

use std::collections::HashSet;

use twinnet_units::Duration;

use super::path::Pair;
use crate::tcp::{Ecn, TcpConfig, TcpInfo};

/// 3 MB over 100 Mbit/s and 20 ms, of which the segments `lost` are lost the first time.
fn with_losses(config: &TcpConfig, lost: &[u64]) -> (TcpInfo, Duration) {
    let mut pair = Pair::new(config, config, 100, Duration::from_ms(10));
    pair.connect();
    let lost: HashSet<_> = lost.iter().copied().collect();
    pair.lines[0].drop = Some(Box::new(move |ordinal, _| lost.contains(&ordinal)));
    let begun = pair.now;
    let ended = pair.transfer(0, 3_000_000, true, Duration::from_secs(60)).unwrap();
    (pair.end(0).info(), ended - begun)
}

#[test]
fn losses_within_a_window_are_repaired_without_a_timeout() {
    let two: [u64; 2] = [500, 501];
    let ten: Vec<u64> = (0..10).map(|at| 500 + 7 * at).collect();
    for lost in [&[500][..], &two, &ten] {
        let (info, _) = with_losses(&TcpConfig::default(), lost);
        assert_eq!((info.timeouts, info.retransmitted, info.reductions), (0, lost.len() as u64, 1), "{lost:?}");
    }
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(10));
    pair.connect();
    let mut left = 2;
    let mut victim = None;
    pair.lines[0].drop = Some(Box::new(move |ordinal, flight| {
        if ordinal == 500 {
            victim = Some(flight.header.sequence);
        }
        let hit = victim == Some(flight.header.sequence) && left > 0;
        left -= i32::from(hit);
        hit
    }));
    pair.transfer(0, 3_000_000, true, Duration::from_secs(60)).unwrap();
    let info = pair.end(0).info();
    assert_eq!((info.timeouts, info.retransmitted), (0, 2));
}

#[test]
fn without_sack_new_reno_repairs_one_loss_a_round() {
    let config = TcpConfig { sack: false, ..TcpConfig::default() };
    for lost in [&[500][..], &[500, 510, 520]] {
        let (info, _) = with_losses(&config, lost);
        assert_eq!((info.timeouts, info.retransmitted), (0, lost.len() as u64), "{lost:?}");
    }
}

#[test]
fn a_lost_tail_is_found_by_a_probe() {
    for lost in 1..=3 {
        let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(10));
        pair.connect();
        // 144,800 bytes are 100 segments.
        pair.lines[0].drop = Some(Box::new(move |ordinal, _| (100 - lost..100).contains(&ordinal)));
        let begun = pair.now;
        let ended = pair.transfer(0, 144_800, true, Duration::from_secs(60)).unwrap();
        let info = pair.end(0).info();
        assert_eq!((info.timeouts, info.tail_probes), (0, 1), "{lost} lost");
        // Four round trips of slow start, two until the probe, two of repair; a single segment is given 200 ms
        // more, for its acknowledgement may be delayed.
        let most = if lost == 1 { 380 } else { 250 };
        assert!(ended - begun < Duration::from_ms(most), "{lost} lost: {}", ended - begun);
    }
}

#[test]
fn a_timeout_for_nothing_is_undone() {
    for (sack, timestamps) in [(true, true), (true, false), (false, true)] {
        let config = TcpConfig { sack, timestamps, ..TcpConfig::default() };
        let mut pair = Pair::new(&config, &config, 100, Duration::from_ms(10));
        pair.connect();
        pair.transfer(0, 500_000, false, Duration::from_secs(10)).unwrap();
        let before = pair.end(0).info();
        // The path holds everything back for half a second, then goes on as it was.
        pair.lines[0].delay = Duration::from_ms(510);
        let ended = pair.transfer(0, 1_000_000, true, Duration::from_secs(20));
        let after = pair.end(0).info();
        assert!(ended.is_some());
        assert!(after.timeouts > before.timeouts, "sack {sack}: the timer has run out");
        assert!(after.undone > before.undone, "sack {sack}, timestamps {timestamps}: {after:?}");
        assert!(after.congestion_window >= before.congestion_window, "{before:?} then {after:?}");
    }
}

#[test]
fn reordering_does_not_cost_the_window() {
    let time = |reordering: f64| {
        let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(20));
        pair.connect();
        pair.lines[0].reordering = reordering;
        // Less than the quarter of the round trip that RACK waits for what is late.
        pair.lines[0].jitter = Duration::from_ms(4);
        let begun = pair.now;
        let ended = pair.transfer(0, 20_000_000, false, Duration::from_secs(60)).unwrap();
        let info = pair.end(0).info();
        assert!(info.retransmitted < 70, "{info:?}");
        ended - begun
    };
    let (ordered, reordered) = (time(0.0).as_secs_f64(), time(0.01).as_secs_f64());
    assert!(reordered < ordered * 1.2, "{reordered} s against {ordered} s");
}

#[test]
fn reordering_beyond_the_window_of_rack_is_learnt_from_duplicates() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(20));
    pair.connect();
    pair.lines[0].reordering = 0.01;
    pair.lines[0].jitter = Duration::from_ms(15);
    pair.transfer(0, 10_000_000, false, Duration::from_secs(60)).unwrap();
    let half = pair.end(0).info();
    pair.transfer(0, 10_000_000, false, Duration::from_secs(60)).unwrap();
    let info = pair.end(0).info();
    assert!(info.undone > 0, "{info:?}");
    // One in a hundred of about 6900 segments is late: 69 would be sent again by a sender that learns nothing.
    assert!(info.retransmitted - half.retransmitted < 40, "{half:?} then {info:?}");
}

#[test]
fn a_mark_reduces_the_window_once_a_round_and_loses_nothing() {
    let config = TcpConfig { ecn: Ecn::Ask, ..TcpConfig::default() };
    let mut pair = Pair::new(&config, &config, 10, Duration::from_ms(20));
    pair.connect();
    pair.lines[0].mark_above = 30_000;
    pair.record = Some(Vec::new());
    let begun = pair.now;
    pair.transfer(0, 5_000_000, false, Duration::from_secs(60)).unwrap();
    let rounds = ((pair.now - begun).as_secs_f64() / 0.04) as u64;
    let info = pair.end(0).info();
    assert_eq!(info.retransmitted, 0);
    assert!((2..rounds).contains(&info.reductions), "{info:?} in {rounds} rounds");
    let record = pair.record.take().unwrap();
    let reduced = twinnet_packet::tcp::Flags::CWR;
    let told = record.iter().filter(|(_, from, flight)| *from == 0 && flight.header.flags.has(reduced)).count() as u64;
    assert!(told.abs_diff(info.reductions) <= 1, "{told} segments tell of {} reductions", info.reductions);
}

#[test]
fn marks_are_agreed_upon_when_one_asks_and_the_other_is_willing() {
    for (client, server, agreed) in [
        (Ecn::Ask, Ecn::WhenAsked, true),
        (Ecn::Ask, Ecn::Ask, true),
        (Ecn::Ask, Ecn::Never, false),
        (Ecn::WhenAsked, Ecn::Ask, false),
        (Ecn::WhenAsked, Ecn::WhenAsked, false),
    ] {
        let of = |ecn| TcpConfig { ecn, ..TcpConfig::default() };
        let mut pair = Pair::new(&of(client), &of(server), 10, Duration::from_ms(20));
        pair.connect();
        pair.lines[0].mark_above = 30_000;
        pair.transfer(0, 1_000_000, false, Duration::from_secs(60)).unwrap();
        assert_eq!(pair.end(0).info().reductions > 0, agreed, "{client:?} to {server:?}");
    }
}

#[test]
fn a_drop_tail_buffer_gives_a_saw_tooth_that_keeps_the_line_busy() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 10, Duration::from_ms(25));
    pair.connect();
    pair.lines[0].buffer = 62_500;
    pair.transfer(0, 2_000_000, false, Duration::from_secs(60)).unwrap();
    let begun = pair.now;
    let ended = pair.transfer(0, 10_000_000, false, Duration::from_secs(60)).unwrap();
    let goodput = 80e6 / (ended - begun).as_secs_f64();
    assert!(goodput > 0.85 * 10e6, "{goodput} bit/s");
    assert_eq!(pair.end(0).info().timeouts, 0, "{:?}", pair.end(0).info());
}

#[test]
fn a_peer_that_falls_silent_is_given_up_in_bounded_time() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(10));
    pair.connect();
    pair.lines[0].drop = Some(Box::new(|_, _| true));
    let begun = pair.now;
    pair.end(0).send(twinnet_apps::Chunk::Filler(100_000), begun).unwrap();
    pair.run(Duration::from_secs(1100));
    assert_eq!(pair.signals[0].failed, Some(crate::tcp::Failure::TimedOut));
    assert!(pair.next_time().is_none(), "nothing more will happen after {begun}");
}
