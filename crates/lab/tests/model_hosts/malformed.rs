use proptest::prelude::*;
use serde_json::{json, Value};
use twinnet_packet::{checksum, Checksum, Frame};

use crate::lab::{host, link, ping, udp_sink, Lab};

/// A model router with a real host on its link, which may send anything.
fn beside_a_real_host() -> Value {
    let mut model = host("h1", 1, &["10.0.0.1/8", "fd00::1/64"]);
    model["forwarding"] = json!(true);
    let mut real = host("x", 2, &["10.0.0.2/8", "fd00::2/64"]);
    real["model"] = json!(false);
    json!({"nodes": [model, real], "links": [link(("h1", 0), ("x", 0), json!({}))]})
}

fn lab() -> Lab {
    let mut lab = Lab::with_real(&beside_a_real_host(), "x");
    lab.start("h1", 1, udp_sink());
    lab.start("h1", 2, json!({"kind": "http_server", "port": 80, "congestion_control": null}));
    lab.start("h1", 3, ping("10.0.0.2", 3, 56));
    lab.run_until_ms(1);
    lab
}

/// An Ethernet frame from the real host to the model.
fn frame(ether_type: u16, payload: &[u8]) -> Frame {
    let mut bytes = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2];
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend(payload);
    Frame::new(bytes)
}

fn ipv4(protocol: u8, fragment: u16, ttl: u8, to: [u8; 4], payload: &[u8]) -> Frame {
    let [high, low] = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let [place, more] = fragment.to_be_bytes();
    let mut ip = vec![0x45, 0, high, low, 0, 7, place, more, ttl, protocol, 0, 0, 10, 0, 0, 2];
    ip.extend(to);
    let sum = checksum::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(payload);
    frame(0x0800, &ip)
}

fn ipv6(next: u8, payload: &[u8]) -> Frame {
    let [high, low] = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let mut ip = vec![0x60, 0, 0, 0, high, low, next, 255];
    ip.extend("fd00::2".parse::<std::net::Ipv6Addr>().unwrap().octets());
    ip.extend("fd00::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    ip.extend(payload);
    frame(0x86dd, &ip)
}

/// A frame that makes sense down to some layer, and beyond it is anything.
fn half_sensible() -> impl Strategy<Value = Frame> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..120);
    let protocols = prop::sample::select(vec![1_u8, 6, 17, 58, 44, 0, 43, 60, 99]);
    prop_oneof![
        bytes().prop_map(Frame::new),
        (prop::sample::select(vec![0x0800_u16, 0x0806, 0x86dd, 0x8100]), bytes())
            .prop_map(|(kind, bytes)| frame(kind, &bytes)),
        (
            protocols.clone(),
            prop::sample::select(vec![0_u16, 0x2000, 1, 0x2001, 0x1fff, 0x4000]),
            0_u8..3,
            any::<bool>(),
            bytes()
        )
            .prop_map(|(protocol, place, ttl, own, bytes)| {
                ipv4(protocol, place, ttl, if own { [10, 0, 0, 1] } else { [10, 0, 0, 3] }, &bytes)
            }),
        (protocols, bytes()).prop_map(|(next, bytes)| ipv6(next, &bytes)),
        // Checksums left to the wire: what is inside is believed.
        (prop::sample::select(vec![6_u8, 17]), bytes()).prop_map(|(protocol, mut bytes)| {
            bytes.resize(bytes.len().max(20), 0);
            (bytes[2], bytes[3]) = if protocol == 6 { (0, 80) } else { (0x13, 0x88) };
            Frame {
                checksum: Checksum::Partial { start: 34, offset: 6 },
                ..ipv4(protocol, 0, 64, [10, 0, 0, 1], &bytes)
            }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn no_frame_brings_a_host_to_a_halt(
        frames in prop::collection::vec((half_sensible(), 0_u32..2000, any::<u16>(), any::<u8>(), any::<bool>()),
            1..60),
    ) {
        let mut lab = lab();
        for (step, (mut frame, elided, place, value, mutate)) in frames.into_iter().enumerate() {
            frame.elided = if value & 1 == 0 { 0 } else { elided };
            let place = usize::from(place) % frame.bytes.len().max(1);
            if let Some(byte) = frame.bytes.get_mut(place).filter(|_| mutate) {
                *byte = value;
            }
            lab.send(frame);
            lab.run_until_ms(2 + step as u64 * 500);
        }
        lab.run_until_ms(200_000);
        prop_assert!(lab.host("h1").app_report(1, lab.network.fabric.now()).is_some());
    }
}

#[test]
fn a_wrong_checksum_is_counted_and_a_right_one_is_heard() {
    let mut lab = lab();
    let mut echo = [8, 0, 0, 0, 0, 9, 0, 1, 1, 2, 3, 4];
    let sum = checksum::checksum(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    let good = ipv4(1, 0, 64, [10, 0, 0, 1], &echo);
    for place in [14 + 8, 34 + 2, 34 + 9] {
        let mut bad = good.clone();
        bad.bytes[place] ^= 0x10;
        lab.send(bad);
    }
    lab.run_until_ms(10);
    assert_eq!(lab.counters("h1").corrupted, 3);
    lab.outside.arrived.clear();
    lab.send(good);
    lab.run_until_ms(20);
    // It must ask who has the sender's address before it can answer; nobody answered that yet.
    assert_eq!(lab.counters("h1").corrupted, 3);
    let mut told = vec![0, 1, 8, 0, 6, 4, 0, 2, 0, 0, 0, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0, 0, 0, 1, 10, 0, 0, 1];
    lab.send(frame(0x0806, &std::mem::take(&mut told)));
    lab.run_until_ms(30);
    let reply =
        lab.outside.arrived.iter().rfind(|frame| frame.bytes[12..14] == [8, 0] && frame.bytes[34] == 0).unwrap();
    assert_eq!(&reply.bytes[42..46], [1, 2, 3, 4]);
}

#[test]
fn a_flood_of_fragments_takes_bounded_memory() {
    let mut lab = lab();
    for number in 0..60_000_u32 {
        let [_, _, high, low] = number.to_be_bytes();
        let mut fragment = ipv4(17, 0x2000, 64, [10, 0, 0, 1], &[0; 800]);
        // Another identification each time; the checksum follows.
        fragment.bytes[18..20].copy_from_slice(&[high, low]);
        fragment.bytes[24..26].fill(0);
        let sum = checksum::checksum(&fragment.bytes[14..34]);
        fragment.bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        lab.send(fragment);
    }
    lab.run_until_ms(20);
    // 4 MiB hold some 4500 of them; the others were thrown away.
    assert!(lab.counters("h1").fragments_dropped > 55_000, "{:?}", lab.counters("h1"));
}
