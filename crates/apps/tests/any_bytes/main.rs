//! Runs what the fuzz target does, with bytes from proptest: wholly random ones, and messages with a few bytes changed.

mod exercise;
#[path = "../../../packet/tests/any_bytes/kept.rs"]
mod kept;

use proptest::prelude::*;
use twinnet_apps::BandwidthMessage;

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = [
        BandwidthMessage::Hello { nonce: 7 },
        BandwidthMessage::Welcome { nonce: 7, cookie: 9, most_rate_bps: 1_000_000_000 },
        BandwidthMessage::Probe { cookie: 9, train: 3, place: 20 },
        BandwidthMessage::Ask { cookie: 9, train: 3, place: 20 },
    ]
    .iter()
    .map(BandwidthMessage::emit)
    .collect();
    // Stamps of two packets, of which the second is lost.
    let mut stamps = b"twinbw\x01\x05".to_vec();
    stamps.extend([0; 7]);
    stamps.extend([9, 0, 0, 0, 3, 0, 20, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
    stamps.extend([0; 16]);
    stamps.extend([0, 0, 0, 5, 255, 255, 255, 255]);
    assert!(BandwidthMessage::parse(&stamps, stamps.len()).is_some());
    seeds.push(stamps);
    seeds
}

proptest! {
    #[test]
    fn random_bytes_harm_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0_u8..8) {
        exercise::bandwidth_message(&bytes);
        exercise::bandwidth_message(&[&b"twinbw\x01"[..], &[kind], &bytes].concat());
    }

    #[test]
    fn changed_messages_harm_nothing(
        seed in prop::sample::select(seeds()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = seed;
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        exercise::bandwidth_message(&bytes);
        exercise::bandwidth_message(&bytes[..end.index(bytes.len())]);
    }
}

#[test]
fn what_fuzzing_has_kept_harms_nothing() {
    kept::inputs(include_str!("kept.txt")).iter().for_each(|input| exercise::bandwidth_message(input));
}
