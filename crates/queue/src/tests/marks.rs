//! Marks on header bytes, and what becomes of frames whose sender does not understand them.

use proptest::prelude::*;
use twinnet_packet::checksum;

use super::super::ecn::mark_congestion;
use super::super::flow::flow_hash;
use super::link::{build, packet, train, Link};

#[test]
fn a_marked_ipv4_header_has_both_bits_and_a_right_checksum() {
    for ecn in 1..=3 {
        let mut frame = packet(7, 1000, 0, 0xb8 | ecn);
        assert!(mark_congestion(&mut frame));
        assert_eq!(frame.bytes[15], 0xbb, "the code point stays");
        assert_eq!(checksum::checksum(&frame.bytes[14..34]), 0);
    }
}

#[test]
fn what_is_not_ecn_capable_or_not_ip_is_left_alone() {
    let mut plain = packet(7, 1000, 0, 0xb8);
    let before = plain.bytes.clone();
    assert!(!mark_congestion(&mut plain));
    assert_eq!(plain.bytes, before);
    let mut arp = packet(7, 1000, 0, 1);
    arp.bytes[13] = 0x06;
    assert!(!mark_congestion(&mut arp));
}

#[test]
fn ipv6_is_marked_behind_a_vlan_tag_too() {
    let mut frame = packet(7, 1000, 0, 0);
    frame.bytes.truncate(12);
    frame.bytes.extend([0x81, 0x00, 0, 5, 0x86, 0xdd, 0x6b, 0x8a, 0xbc, 0xde]);
    frame.bytes.extend([0; 36]);
    assert!(!mark_congestion(&mut frame), "the traffic class is 0xb8, and its last two bits are 00");
    frame.bytes[19] = 0xaa;
    assert!(mark_congestion(&mut frame));
    assert_eq!(frame.bytes[18..22], [0x6b, 0xba, 0xbc, 0xde]);
}

#[test]
fn every_frame_of_a_train_bears_the_mark() {
    let mut train = train(0, 5, 0);
    train.bytes[15] = 2;
    assert!(mark_congestion(&mut train));
    assert!(train.into_frames().all(|frame| frame.bytes[15] & 3 == 3));
}

#[test]
fn a_train_is_judged_frame_by_frame() {
    let mut link = Link::new(build(r#"{"kind":"codel","limit_frames":3}"#), None);
    link.offer(train(0, 10, 0));
    assert_eq!((link.queue.backlog().frames, link.dropped.total.frames), (3, 7));
}

#[test]
fn classes_count_marks_and_early_drops() {
    let json = r#"{"kind":"priority","bands":[{"kind":"red","min_bytes":1000,"max_bytes":9000,"limit_bytes":90000,
        "weight":1.0,"max_probability":1.0,"gentle":false,"ecn":true}]}"#;
    let mut link = Link::new(build(json), None);
    for mark in 0..8 {
        link.offer(packet(0, 1000, mark, 2));
    }
    for mark in 8..20 {
        link.offer(packet(0, 1000, mark, 0));
    }
    let counters = &link.queue.class_counters()[0];
    assert!(link.marked() > 0);
    assert_eq!(counters["marked"], link.marked());
    assert_eq!(counters["drops"]["early"], link.dropped.total.frames);
    assert!(link.dropped.total.frames > 0);
}

proptest! {
    #[test]
    fn any_bytes_are_marked_and_hashed_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut frame = twinnet_packet::Frame::new(bytes);
        let before = flow_hash(&frame, 1);
        mark_congestion(&mut frame);
        prop_assert_eq!(flow_hash(&frame, 1), before);
    }
}
