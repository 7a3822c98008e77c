//! Runs what the fuzz target does, with bytes from proptest: wholly random ones behind a right header, and real
//! messages with a few bytes changed.

mod exercise;
#[path = "../../../packet/tests/any_bytes/kept.rs"]
mod kept;

use proptest::prelude::*;

const VECTORS: &str = include_str!("../vectors/os-ken.txt");

/// Messages of every kind, those of table features left out for their length.
fn seeds() -> Vec<Vec<u8>> {
    let bytes = |hex: &str| {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
        (0..hex.len()).step_by(2).map(digit).collect::<Vec<u8>>()
    };
    let seeds: Vec<_> = VECTORS.lines().filter_map(|line| line.split(' ').nth(2)).map(bytes).collect();
    seeds.into_iter().filter(|seed| seed.len() < 2000).collect()
}

/// Makes the header's length fit.
fn with_length(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_bytes_harm_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise::connection(&bytes);
    }

    #[test]
    fn a_header_and_random_bytes_harm_nothing(
        version in prop::sample::select(vec![1_u8, 4]),
        kind in 0_u8..31,
        body in prop::collection::vec(prop_oneof![3 => Just(0_u8), 1 => 0_u8..32, 1 => any::<u8>()], 4..300),
    ) {
        exercise::connection(&with_length([&[version, kind, 0, 0][..], &body].concat()));
    }

    #[test]
    fn real_messages_with_some_bytes_changed_harm_nothing(
        seed in prop::sample::select(seeds()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0_u8..64, any::<u8>()]), 0..5),
        cut in 0_usize..200,
    ) {
        let mut bytes = seed;
        for (place, value) in changes {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(bytes.len().saturating_sub(cut / 2).max(8));
        exercise::connection(&bytes);
        exercise::connection(&with_length(bytes));
    }

    #[test]
    fn several_messages_in_one_stream_harm_nothing(seeds in prop::collection::vec(prop::sample::select(seeds()),
        0..6)) {
        exercise::connection(&seeds.concat());
    }
}

#[test]
fn what_fuzzing_has_kept_harms_nothing() {
    kept::inputs(include_str!("kept.txt")).iter().for_each(|input| exercise::connection(input));
}
