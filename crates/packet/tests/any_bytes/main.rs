//! Runs what the fuzz target does, with bytes from proptest: wholly random ones, and real frames with a few bytes
//! changed.

mod exercise;
mod kept;

use proptest::prelude::*;

/// One frame of each protocol; the first bytes are the claim that `exercise` takes a train by.
fn seeds() -> Vec<Vec<u8>> {
    let ethernet = |eth_type: [u8; 2]| [&[0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1][..], &eth_type].concat();
    let v4 = |protocol: u8| vec![0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 4];
    let v6 = |next: u8| [&[0x60, 0, 0, 0, 0, 40, next, 64][..], &[0xfd; 32]].concat();
    let tcp = [&[0x9c, 0x40, 0x13, 0x8a, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 0x18, 0x20, 0, 0, 0, 0, 0][..], &[1, 1, 8, 10]]
        .concat();
    let udp = vec![0x9c, 0x40, 0x13, 0x8b, 0, 40, 0, 0];
    let neighbour = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &[0xfe; 16], &[1, 1, 0, 0, 0, 0, 0, 1]].concat();
    let rest = vec![0; 40];
    vec![
        [ethernet([8, 0]), v4(6), tcp.clone(), rest.clone()].concat(),
        [ethernet([8, 0]), v4(17), udp.clone(), rest.clone()].concat(),
        [ethernet([8, 0]), v4(1), rest.clone()].concat(),
        [ethernet([8, 0]), v4(132), rest.clone()].concat(),
        [ethernet([0x86, 0xdd]), v6(6), tcp, rest.clone()].concat(),
        [ethernet([0x86, 0xdd]), v6(58), neighbour].concat(),
        [ethernet([0x86, 0xdd]), v6(0), vec![44, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0], udp].concat(),
        [ethernet([8, 6]), vec![0, 1, 8, 0, 6, 4, 0, 1], rest.clone()].concat(),
        [ethernet([0x88, 0x47]), rest.clone()].concat(),
        [ethernet([0x81, 0]), vec![0, 7, 0x88, 0xa8, 0, 8, 8, 0], v4(6), rest].concat(),
    ]
}

proptest! {
    #[test]
    fn random_bytes_harm_nothing(bytes in prop::collection::vec(any::<u8>(), 0..150)) {
        exercise::frame(&bytes);
    }

    #[test]
    fn real_frames_with_some_bytes_changed_harm_nothing(
        seed in prop::sample::select(seeds()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        claim in any::<[u8; 6]>(),
        as_train in any::<bool>(),
        length in 0_usize..130,
    ) {
        let mut bytes = if as_train { [&claim[..], &seed].concat() } else { seed };
        for (place, value) in changes {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(bytes.len().saturating_sub(length / 2));
        exercise::frame(&bytes);
    }
}

#[test]
fn what_fuzzing_has_kept_harms_nothing() {
    kept::inputs(include_str!("kept.txt")).iter().for_each(|input| exercise::frame(input));
}
