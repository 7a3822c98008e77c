//! Whole transfers.

use twinnet_units::Duration;

use super::path::Pair;
use crate::host::tcp::TcpConfig;

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
        for real in [true, false] {
            let mut pair = Pair::new(&TcpConfig::default(), &TcpConfig::default(), 100, Duration::from_ms(10));
            pair.connect();
            for line in &mut pair.lines {
                line.loss = loss;
                line.duplication = 0.01;
                line.reordering = 0.05;
                line.jitter = Duration::from_ms(5);
            }
            let ended = pair.transfer(0, 1_000_000, real, Duration::from_secs(3600));
            assert!(ended.is_some(), "loss {loss}: {:?}", pair.end(0).info());
        }
    }
}
