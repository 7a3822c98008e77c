//! Opening.

use twinnet_apps::Chunk;
use twinnet_packet::tcp::Flags;
use twinnet_units::{Duration, Time};

use super::path::{address, Pair};
use crate::tcp::{Connection, Ecn, Failure, TcpConfig};

fn config(bits: u32) -> TcpConfig {
    let on = |bit: u32| bits & 1 << bit != 0;
    TcpConfig {
        sack: on(0),
        timestamps: on(1),
        window_scaling: on(2),
        ecn: if on(3) { Ecn::Ask } else { Ecn::Never },
        ..TcpConfig::default()
    }
}

#[test]
fn every_combination_of_options_agrees_and_carries_data() {
    for client in 0..16 {
        for server in 0..16 {
            let mut pair = Pair::new(&config(client), &config(server), 100, Duration::from_ms(5));
            pair.record = Some(Vec::new());
            pair.connect();
            let both = client & server;
            let agreed = pair.end(0).agreed;
            let bits = [agreed.sack, agreed.timestamps, agreed.scaling, agreed.ecn];
            let expected = [0, 1, 2, 3].map(|bit| both & 1 << bit != 0);
            assert_eq!(bits, expected, "client {client:04b}, server {server:04b}");
            assert!(pair.transfer(0, 40_000, true, Duration::from_secs(10)).is_some());
            let record = pair.record.take().unwrap();
            let data: Vec<_> = record.iter().filter(|(_, from, flight)| *from == 0 && flight.length() > 0).collect();
            let largest = data.iter().map(|(_, _, flight)| flight.length()).max();
            assert_eq!(largest, Some(if expected[1] { 1448 } else { 1460 }));
            assert!(data.iter().all(|(_, _, flight)| flight.ecn_capable == expected[3]));
        }
    }
}

#[test]
fn a_lost_syn_is_sent_again_after_1_3_and_7_seconds_and_given_up_after_127() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(5));
    pair.record = Some(Vec::new());
    pair.lines[0].drop = Some(Box::new(|_, _| true));
    pair.run(Duration::from_secs(1000));
    let seconds: Vec<_> = pair.record.take().unwrap().iter().map(|(at, ..)| at.as_secs_f64()).collect();
    assert_eq!(seconds, [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0]);
    assert_eq!((pair.signals[0].failed, pair.signals[0].gone), (Some(Failure::TimedOut), true));
}

#[test]
fn a_lost_answer_to_the_syn_is_repaired() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(5));
    let mut first = true;
    pair.lines[1].drop = Some(Box::new(move |_, _| std::mem::take(&mut first)));
    pair.run(Duration::from_ms(1500));
    assert!(pair.signals[0].connected && pair.signals[1].connected);
}

#[test]
fn the_last_ack_of_the_handshake_may_be_lost_when_data_follows() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(5));
    pair.lines[0].drop = Some(Box::new(|_, flight| flight.length() == 0 && !flight.header.flags.has(Flags::SYN)));
    pair.run(Duration::from_ms(20));
    assert!(pair.signals[0].connected && !pair.signals[1].connected);
    assert!(pair.transfer(0, 100_000, true, Duration::from_secs(5)).is_some());
    assert!(pair.signals[1].connected);
}

#[test]
fn data_given_before_the_handshake_is_over_is_sent_after_it() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(5));
    assert_eq!(pair.end(0).send(Chunk::Bytes(b"early"), Time::ZERO), Ok(5));
    pair.run(Duration::from_ms(30));
    let mut buffer = [0; 10];
    let now = pair.now;
    assert_eq!(pair.end(1).read(&mut buffer, now), Ok(Some(5)));
    assert_eq!(&buffer[..5], b"early");
}

#[test]
fn a_reset_refuses_and_a_forged_one_does_not() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(5));
    let mut bytes = Vec::new();
    pair.end(0).poll_send(Time::ZERO, &mut bytes).unwrap();
    let reset = |acknowledgement| crate::tcp::Segment {
        sequence: 0,
        acknowledgement,
        flags: Flags::RST.with(Flags::ACK),
        window: 0,
        options: Default::default(),
        payload: &[],
        elided: 0,
        congestion_experienced: false,
    };
    pair.end(0).receive(&reset(77), Time::ZERO);
    assert_eq!(pair.end(0).take_signals().failed, None);
    pair.end(0).receive(&reset(1001), Time::ZERO);
    let signals = pair.end(0).take_signals();
    assert_eq!((signals.failed, signals.gone), (Some(Failure::Refused), true));
}

#[test]
fn both_may_open_at_once() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(5));
    pair.ends[1] =
        Some(Connection::connect(&TcpConfig::default(), address(1), address(0), 1500, 5_000_000, Time::ZERO));
    pair.run(Duration::from_ms(100));
    assert!(pair.signals[0].connected && pair.signals[1].connected);
    assert!(pair.transfer(0, 100_000, true, Duration::from_secs(5)).is_some());
}

#[test]
fn an_unreachable_peer_fails_an_attempt_but_not_a_connection() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(5));
    pair.connect();
    let now = pair.now;
    pair.end(0).unreachable(now);
    assert_eq!(pair.end(0).take_signals().failed, None);
    let mut attempt = Connection::connect(&TcpConfig::default(), address(0), address(1), 1500, 1, Time::ZERO);
    attempt.unreachable(Time::ZERO);
    assert_eq!(attempt.take_signals().failed, Some(Failure::Unreachable));
}
