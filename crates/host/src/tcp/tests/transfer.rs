//! Whole transfers.

use twinnet_units::Duration;

use super::path::Pair;
use crate::tcp::TcpConfig;

#[test]
fn a_megabyte_crosses_a_lossless_path_exactly() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(10));
    pair.connect();
    let begun = pair.now;
    let ended = pair.transfer(0, 1_000_000, true, Duration::from_secs(60)).unwrap();
    // 80 ms of serialisation and some round trips of slow start.
    assert!(ended - begun < Duration::from_ms(400), "{}", ended - begun);
    assert_eq!(pair.end(0).info().retransmitted, 0);
}

#[test]
fn filler_and_real_bytes_both_survive_loss_duplication_and_reordering() {
    for loss in [0.0, 0.01, 0.1, 0.3] {
        for (real, sack, timestamps) in
            [(true, true, true), (false, true, true), (true, false, true), (true, true, false)]
        {
            let config = TcpConfig { sack, timestamps, ..TcpConfig::default() };
            let mut pair = Pair::new(&config, &config, 100, Duration::from_ms(10));
            pair.connect();
            for line in &mut pair.lines {
                line.loss = loss;
                line.duplication = 0.01;
                line.reordering = 0.05;
                line.jitter = Duration::from_ms(5);
            }
            // At 30 % in each direction the timeouts back off to two minutes; what matters is that it ends.
            let ended = pair.transfer(0, 300_000, real, Duration::from_secs(24 * 3600));
            assert!(ended.is_some(), "loss {loss}, sack {sack}: {:?}", pair.end(0).info());
        }
    }
}

#[test]
fn sequence_numbers_wrap_in_both_directions() {
    let config = TcpConfig::default();
    let mut pair = Pair::with_sequences(&config, &config, 100, Duration::from_ms(5), [u32::MAX - 50_000, u32::MAX]);
    pair.connect();
    pair.lines[0].loss = 0.02;
    assert!(pair.transfer(0, 300_000, true, Duration::from_secs(60)).is_some());
    assert!(pair.transfer(1, 300_000, true, Duration::from_secs(60)).is_some());
}

#[test]
fn autotuning_fills_a_pipe_of_100_mbit_and_100_ms() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(50));
    pair.connect();
    pair.transfer(0, 20_000_000, false, Duration::from_secs(60)).unwrap();
    let begun = pair.now;
    let ended = pair.transfer(0, 20_000_000, false, Duration::from_secs(60)).unwrap();
    // 1448 of 1500 bytes are payload; half a second for the window's last round trips.
    let ideal = 20_000_000.0 * 8.0 / (100e6 * 1448.0 / 1500.0);
    assert!((ended - begun).as_secs_f64() < ideal * 1.05 + 0.1, "{} for {ideal} s", ended - begun);
}

#[test]
fn segments_shrink_when_the_path_is_narrower() {
    let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(5));
    pair.connect();
    pair.lines[0].drop = Some(Box::new(|_, flight| flight.length() > 1200 - 52));
    assert_eq!(pair.transfer(0, 100_000, true, Duration::from_ms(30)), None);
    let now = pair.now;
    pair.end(0).packet_too_big(1200, now);
    let info = pair.end(0).info();
    pair.flush();
    let mut read = 0;
    let until = pair.now + Duration::from_secs(5);
    let mut buffer = vec![0; 65_536];
    while pair.step(until) {
        let now = pair.now;
        while let Ok(Some(count)) = pair.end(1).read(&mut buffer, now) {
            let wrong = (0..count).find(|at| buffer[*at] != ((read + at) % 251) as u8);
            assert_eq!(wrong, None);
            read += count;
        }
    }
    assert!(read >= 14_480, "{read} bytes");
    assert_eq!(pair.end(0).info().timeouts, info.timeouts);
}
