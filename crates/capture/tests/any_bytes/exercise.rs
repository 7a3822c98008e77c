//! The code that any bytes must not break: the reader, the whole analysis, and matching with themselves.

use std::io::Cursor;

use twinnet_capture::{analyze, match_captures, Options, Prints, Reader};

/// Reads and analyses `bytes` as a capture. Nothing may panic, and no count may exceed what the bytes can hold.
pub fn capture(bytes: &[u8]) {
    let input = || -> Box<dyn std::io::Read + Send> { Box::new(Cursor::new(bytes.to_vec())) };
    let Ok(mut reader) = Reader::new(input()) else { return };
    let mut kept = 0;
    while let Ok(Some(record)) = reader.next_record() {
        kept += record.bytes.len() + 12;
        assert!(record.original_length as usize >= record.bytes.len());
    }
    assert!(reader.ending().is_some());
    assert!(bytes[..2] == [0x1f, 0x8b] || kept <= bytes.len());
    let options = Options {
        rtp_ports: vec![5004],
        clock_rates: vec![(96, 90_000)],
        interval_ns: 1_000_000,
        every_packet: true,
        most_conversations: 4,
        most_packets: 16,
        ..Options::default()
    };
    let _ = analyze(input(), &options, &mut |_| true);
    if let Ok(matched) = match_captures(vec![input(), input()], Prints { payload_bytes: 64 }, true, &mut |_| true) {
        // A capture loses nothing on the way to itself.
        let sum = |name: &str| match matched.segments.column(name) {
            Some(twinnet_capture::Column::Whole(values)) => {
                values.iter().filter(|value| **value != i64::MIN).sum::<i64>()
            }
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!((sum("lost"), sum("appeared"), sum("sent")), (0, 0, sum("matched")));
    }
}
