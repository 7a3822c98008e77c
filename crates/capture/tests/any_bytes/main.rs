//! Runs what the fuzz target does, with bytes from proptest: wholly random ones, and real captures with a few bytes
//! changed.

mod exercise;
#[path = "../../../packet/tests/any_bytes/kept.rs"]
mod kept;
#[allow(dead_code)]
#[path = "../forms/write.rs"]
mod write;

use proptest::prelude::*;
use write::{frame, packets, pcap, pcapng, rtp, Order, Packet};

/// Captures of every form, with RTP, TCP, tunnels and fragments in them.
fn seeds() -> Vec<Vec<u8>> {
    let mut all = packets();
    all.truncate(6);
    let mut add = |bytes: Vec<u8>| all.push((1_700_000_000_500_000_000, bytes));
    let udp = frame(&rtp(9));
    let v4 = |protocol: u8, payload: &[u8]| {
        let mut bytes = udp[..34].to_vec();
        bytes[23] = protocol;
        bytes[16..18].copy_from_slice(&((20 + payload.len()) as u16).to_be_bytes());
        [&bytes[..], payload].concat()
    };
    for flags in [2, 18, 16, 24, 17, 4] {
        add(v4(
            6,
            &[&[0x9c, 0x40, 0x13, 0x8a, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0x20, 0, 0, 0, 0, 0][..], &[1; 9]]
                .concat(),
        ));
    }
    add(v4(47, &[&[0x30, 0, 0x65, 0x58, 0, 0, 0, 0, 0, 0, 0, 0][..], &udp].concat()));
    let mut vxlan = frame(&[&[8, 0, 0, 0, 0, 0, 5, 0][..], &udp].concat());
    vxlan[36..38].copy_from_slice(&4789_u16.to_be_bytes());
    add(vxlan);
    let mut fragment = udp.clone();
    fragment[20..22].copy_from_slice(&[0x20, 0]);
    add(fragment);
    add([
        &[0; 12][..],
        &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 48, 44, 64],
        &[0xfd; 32],
        &[17, 0, 0, 1, 0, 0, 0, 1],
        &udp[34..74],
    ]
    .concat());
    let all: Vec<Packet> = all;
    vec![pcap(Order::Little, true, &all), pcap(Order::Big, false, &all), pcapng(&all)]
}

proptest! {
    #[test]
    fn random_bytes_harm_nothing(
        magic in prop::sample::select(vec![
            vec![], vec![0xd4, 0xc3, 0xb2, 0xa1], vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
                vec![0x1f, 0x8b, 8, 0],
        ]),
        bytes in prop::collection::vec(any::<u8>(), 4..300),
    ) {
        exercise::capture(&[magic, bytes].concat());
    }

    #[test]
    fn real_captures_with_some_bytes_changed_harm_nothing(
        seed in prop::sample::select(seeds()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        keep in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = seed;
        for (place, value) in changes {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(4 + keep.index(bytes.len() - 4));
        }
        exercise::capture(&bytes);
    }
}

#[test]
fn what_fuzzing_has_kept_harms_nothing() {
    kept::inputs(include_str!("kept.txt")).iter().for_each(|input| exercise::capture(input));
}
