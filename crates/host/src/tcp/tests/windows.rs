//! Receive windows: slow readers, shut windows, Nagle, small queues.

use twinnet_apps::Chunk;
use twinnet_units::{Duration, Time};

use super::path::{address, Pair};
use crate::tcp::congestion::Algorithm;
use crate::tcp::{Connection, TcpConfig};

fn connected(delay: Duration) -> Pair {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, delay);
    pair.connect();
    pair
}

/// A receiver whose window is smaller than what the sender's buffer holds.
fn connected_to_a_small_buffer() -> Pair {
    let small = TcpConfig { receive_buffer: [4096, 65_536, 65_536], ..TcpConfig::default() };
    let mut pair = Pair::new(&TcpConfig::default(), &small, 100, Duration::from_ms(10));
    pair.connect();
    pair
}

#[test]
fn a_reader_that_stops_shuts_the_window_and_probes_go_on_until_it_reads() {
    let mut pair = connected_to_a_small_buffer();
    let now = pair.now;
    let taken = pair.end(0).send(Chunk::Filler(1_000_000), now).unwrap();
    pair.run(Duration::from_secs(2));
    let held = pair.end(1).incoming.unread();
    // 168/256 of the buffer are window.
    assert!((30_000..=43_008).contains(&held), "{held} bytes in a buffer of 64 KiB");
    pair.record = Some(Vec::new());
    pair.run(Duration::from_secs(600));
    let record = pair.record.take().unwrap();
    let probes: Vec<_> = record.iter().filter(|(_, from, _)| *from == 0).map(|(at, ..)| at.as_secs_f64()).collect();
    assert!((8..20).contains(&probes.len()), "{probes:?}");
    assert!(record.iter().all(|(_, _, flight)| flight.length() == 0), "no data into a shut window");
    assert!(pair.signals[0].failed.is_none());
    // It reads all: the window opens at once, without waiting for a probe.
    let begun = pair.now;
    let mut read = 0;
    while read < taken {
        let now = pair.now;
        read += pair.end(1).discard(u64::MAX, now).unwrap().unwrap_or(0);
        assert!(pair.step(begun + Duration::from_secs(3)) || read == taken, "{read} of {taken}");
    }
}

#[test]
fn a_lost_window_update_is_made_good_by_a_probe() {
    let mut pair = connected_to_a_small_buffer();
    let now = pair.now;
    let taken = pair.end(0).send(Chunk::Filler(1_000_000), now).unwrap();
    pair.run(Duration::from_secs(2));
    let now = pair.now;
    let mut read = pair.end(1).discard(u64::MAX, now).unwrap().unwrap_or(0);
    let mut first = true;
    pair.lines[1].drop = Some(Box::new(move |_, _| std::mem::take(&mut first)));
    let until = pair.now + Duration::from_secs(10);
    while read < taken && pair.step(until) {
        let now = pair.now;
        read += pair.end(1).discard(u64::MAX, now).unwrap().unwrap_or(0);
    }
    assert_eq!(read, taken);
    assert_eq!(pair.lines[1].lost, 1);
}

#[test]
fn a_slow_reader_sets_the_pace_without_silly_windows() {
    let mut pair = connected(Duration::from_ms(5));
    pair.record = Some(Vec::new());
    let (mut offered, mut read) = (0, 0);
    for _ in 0..2000 {
        let now = pair.now;
        offered += pair.end(0).send(Chunk::Filler(4_000_000 - offered), now).unwrap();
        read += pair.end(1).discard(1000, now).unwrap().unwrap_or(0);
        pair.run(Duration::from_ms(1));
    }
    assert!(read > 1_900_000, "{read} bytes at 1 MB/s for 2 s");
    let record = pair.record.take().unwrap();
    let sizes: Vec<_> = record.iter().map(|(_, _, flight)| flight.length()).filter(|length| *length > 0).collect();
    let crumbs = sizes.iter().filter(|length| **length < 700).count();
    assert!(crumbs * 50 < sizes.len(), "{crumbs} small segments of {}", sizes.len());
}

#[test]
fn small_writes_are_gathered_while_one_is_on_its_way() {
    let mut pair = connected(Duration::from_ms(50));
    pair.record = Some(Vec::new());
    for _ in 0..100 {
        let now = pair.now;
        assert_eq!(pair.end(0).send(Chunk::Bytes(b"0123456789"), now), Ok(10));
        pair.run(Duration::from_ms(1));
    }
    pair.run(Duration::from_secs(1));
    let record = pair.record.take().unwrap();
    let sizes: Vec<_> = record.iter().map(|(_, _, flight)| flight.length()).filter(|length| *length > 0).collect();
    assert!(sizes.len() <= 3 && sizes[0] == 10 && sizes.iter().sum::<u32>() == 1000, "{sizes:?}");
}

#[test]
fn a_slow_interface_holds_about_a_millisecond_of_data() {
    let mut pair = connected(Duration::from_ms(5));
    pair.transfer(0, 2_000_000, false, Duration::from_secs(10)).unwrap();
    let now = pair.now;
    pair.end(0).send(Chunk::Filler(1_000_000), now).unwrap();
    let mut waiting = 0;
    let mut bytes = Vec::new();
    while let Some(outgoing) = pair.end(0).poll_send(now, &mut bytes) {
        waiting += u64::from(outgoing.payload);
    }
    // 100 Mbit/s are 12.5 KB a millisecond, and the pace allowed is up to twice that in slow start.
    assert!((2896..60_000).contains(&waiting), "{waiting} bytes");
    let mut more = 0;
    pair.end(0).left_host(20_000);
    while let Some(outgoing) = pair.end(0).poll_send(now, &mut bytes) {
        more += outgoing.payload;
    }
    assert!(more >= 14_480, "{more} bytes");
}

#[test]
fn the_send_buffer_takes_what_linux_takes_and_tells_of_room() {
    let mut pair = connected(Duration::from_ms(10));
    let now = pair.now;
    let taken = pair.end(0).send(Chunk::Filler(u64::MAX), now).unwrap();
    assert_eq!(taken, 87_040);
    assert_eq!(pair.end(0).send(Chunk::Filler(1), now), Ok(0));
    pair.signals[0].writable = false;
    let until = pair.now + Duration::from_secs(1);
    while !pair.signals[0].writable && pair.step(until) {
        let now = pair.now;
        pair.end(1).discard(u64::MAX, now).unwrap();
    }
    let now = pair.now;
    assert!(pair.signals[0].writable && pair.end(0).send(Chunk::Filler(u64::MAX), now).unwrap() > 0);
}

#[test]
fn with_bbr_the_send_buffer_takes_three_windows() {
    let bbr = TcpConfig { congestion_control: Algorithm::Bbr, ..TcpConfig::default() };
    let mut pair = Pair::new(&bbr, &TcpConfig::default(), 100, Duration::from_ms(10));
    pair.connect();
    let now = pair.now;
    assert_eq!(pair.end(0).send(Chunk::Filler(u64::MAX), now), Ok(130_560));
}

#[test]
fn the_window_restarts_after_a_pause() {
    let mut pair = connected(Duration::from_ms(10));
    pair.transfer(0, 2_000_000, false, Duration::from_secs(10)).unwrap();
    let busy = pair.end(0).info().congestion_window;
    pair.run(Duration::from_secs(30));
    let now = pair.now;
    pair.end(0).send(Chunk::Filler(10_000), now).unwrap();
    let idle = pair.end(0).info().congestion_window;
    assert!(busy > 100 && idle == 10, "{busy} then {idle}");
}

#[test]
fn a_connection_that_nobody_polls_asks_for_nothing_in_the_past() {
    let mut connection = Connection::connect(&TcpConfig::default(), address(0), address(1), 1500, 9, Time::ZERO);
    let mut now = Time::ZERO;
    let mut calls = 0;
    while let Some(deadline) = connection.deadline() {
        assert!(deadline > now);
        now = deadline;
        connection.timer(now);
        calls += 1;
        assert!(calls < 100);
    }
}
