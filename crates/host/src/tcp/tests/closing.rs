//! Ending: in every order, by a reset, and against forged segments.

use twinnet_apps::{Chunk, HostError};
use twinnet_packet::tcp::{Flags, Options};
use twinnet_units::Duration;

use super::path::Pair;
use crate::tcp::connection::State;
use crate::tcp::{Failure, Segment, TcpConfig};

fn connected() -> Pair {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(10));
    pair.connect();
    pair
}

fn segment(pair: &mut Pair, flags: Flags, offset: i64) -> Segment<'static> {
    let sequence = (pair.end(0).incoming.next() as i64 + offset) as u32;
    let acknowledgement = pair.end(0).send.next as u32;
    Segment {
        sequence,
        acknowledgement,
        flags,
        window: 500,
        options: Options::default(),
        payload: &[],
        elided: 0,
        congestion_experienced: false,
    }
}

#[test]
fn one_side_ends_then_the_other_and_the_first_waits_a_minute() {
    let mut pair = connected();
    let now = pair.now;
    pair.end(0).close(now);
    pair.run(Duration::from_ms(100));
    assert_eq!((pair.end(0).state, pair.end(1).state), (State::FinWait2, State::CloseWait));
    let now = pair.now;
    assert_eq!(pair.end(1).discard(1, now), Ok(Some(0)));
    pair.end(1).close(now);
    pair.run(Duration::from_ms(100));
    assert_eq!((pair.end(0).state, pair.signals[1].gone, pair.signals[0].gone), (State::TimeWait, true, false));
    pair.run(Duration::from_secs(61));
    assert!(pair.signals[0].gone && pair.signals[0].failed.is_none() && pair.signals[1].failed.is_none());
}

#[test]
fn both_end_at_once() {
    let mut pair = connected();
    let now = pair.now;
    pair.end(0).close(now);
    pair.end(1).close(now);
    pair.run(Duration::from_ms(15));
    assert!([State::Closing, State::TimeWait].contains(&pair.end(0).state));
    pair.run(Duration::from_ms(100));
    assert_eq!((pair.end(0).state, pair.end(1).state), (State::TimeWait, State::TimeWait));
    pair.run(Duration::from_secs(61));
    assert!(pair.signals[0].gone && pair.signals[1].gone);
}

#[test]
fn half_a_connection_goes_on() {
    let mut pair = connected();
    let now = pair.now;
    pair.end(0).finish(now);
    pair.run(Duration::from_ms(50));
    let now = pair.now;
    assert_eq!(pair.end(0).send(Chunk::Filler(1), now), Err(HostError::Reset));
    assert_eq!(pair.end(1).discard(1, now), Ok(Some(0)));
    assert!(pair.transfer(1, 500_000, true, Duration::from_secs(5)).is_some());
    let now = pair.now;
    pair.end(1).finish(now);
    pair.run(Duration::from_ms(100));
    let now = pair.now;
    assert_eq!(pair.end(0).discard(1, now), Ok(Some(0)));
    assert_eq!((pair.end(0).state, pair.end(1).state), (State::TimeWait, State::Closed));
    assert!(pair.signals[1].gone);
}

#[test]
fn everything_given_before_the_end_arrives_even_when_ends_are_lost() {
    for seed in 0..20 {
        let mut pair = connected();
        pair.seed(seed);
        pair.lines[0].loss = 0.3;
        pair.lines[1].loss = 0.3;
        let now = pair.now;
        let taken = pair.end(0).send(Chunk::Filler(50_000), now).unwrap();
        pair.end(0).finish(now);
        pair.end(1).finish(now);
        let mut read = 0;
        let until = pair.now + Duration::from_secs(7200);
        while pair.step(until) {
            let now = pair.now;
            read += pair.end(1).discard(u64::MAX, now).ok().flatten().unwrap_or(0);
            let _ = pair.end(0).discard(1, now);
        }
        assert_eq!(read, taken, "seed {seed}");
        assert!(pair.signals[0].gone && pair.signals[1].gone, "seed {seed}: {:?}", pair.ends);
    }
}

#[test]
fn a_socket_closed_with_unread_data_resets() {
    let mut pair = connected();
    let now = pair.now;
    pair.end(0).send(Chunk::Filler(5000), now).unwrap();
    pair.run(Duration::from_ms(50));
    let now = pair.now;
    pair.end(1).close(now);
    pair.run(Duration::from_ms(50));
    assert_eq!(pair.signals[0].failed, Some(Failure::Reset));
    assert!(pair.signals[0].gone && pair.signals[1].gone && pair.signals[1].failed.is_none());
    let now = pair.now;
    assert_eq!(pair.end(0).discard(1, now), Err(HostError::Reset));
}

#[test]
fn data_for_a_closed_socket_is_answered_by_a_reset() {
    let mut pair = connected();
    let now = pair.now;
    pair.end(1).close(now);
    pair.run(Duration::from_ms(50));
    let now = pair.now;
    pair.end(0).send(Chunk::Filler(5000), now).unwrap();
    pair.run(Duration::from_ms(50));
    assert_eq!(pair.signals[0].failed, Some(Failure::Reset));
    assert!(pair.signals[1].gone);
}

#[test]
fn a_blind_reset_is_challenged_and_an_exact_one_believed() {
    let mut pair = connected();
    let now = pair.now;
    for offset in [1, 30_000, -1, 1 << 30] {
        let reset = segment(&mut pair, Flags::RST, offset);
        pair.end(0).receive(&reset, now);
        assert_eq!(pair.end(0).state, State::Established, "at {offset}");
    }
    let mut bytes = Vec::new();
    assert!(pair.end(0).poll_send(now, &mut bytes).is_some(), "a challenge goes out");
    assert!(pair.end(0).poll_send(now, &mut bytes).is_none(), "one, not four");
    let reset = segment(&mut pair, Flags::RST, 0);
    pair.end(0).receive(&reset, now);
    assert_eq!(pair.end(0).take_signals().failed, Some(Failure::Reset));
}

#[test]
fn a_blind_syn_and_an_acknowledgement_of_the_future_are_challenged() {
    let mut pair = connected();
    let now = pair.now;
    let syn = segment(&mut pair, Flags::SYN, 0);
    pair.end(0).receive(&syn, now);
    let mut future = segment(&mut pair, Flags::ACK, 0);
    future.acknowledgement = future.acknowledgement.wrapping_add(100_000);
    pair.end(0).receive(&future, now);
    assert_eq!(pair.end(0).state, State::Established);
    assert_eq!(pair.end(0).take_signals().failed, None);
    assert!(pair.end(0).wants_to_send(now));
}

#[test]
fn an_abandoned_connection_whose_peer_is_silent_ends() {
    let mut pair = connected();
    let now = pair.now;
    pair.end(0).send(Chunk::Filler(80_000), now).unwrap();
    pair.end(0).close(now);
    pair.lines[1].drop = Some(Box::new(|_, _| true));
    pair.run(Duration::from_secs(400));
    assert!(pair.signals[0].gone);
}
