//! Classes by the bytes of the header.

use twinnet_packet::Frame;

use super::link::{build, Link};

/// UDP to port 53 and the network 10.1.0.0/16 have classes of their own, ARP another; the rest keeps its number.
const JSON: &str = r#"{"kind":"classify","rules":[
    {"number":1,"ether_type":2048,"header":[{"at":8,"mask":16711680,"value":1114112},
        {"at":20,"mask":65535,"value":53}]},
    {"number":2,"ether_type":2048,"header":[{"at":16,"mask":4294901760,"value":167837696}]},
    {"number":3,"ether_type":2054}],
    "queue":{"kind":"priority","bands":[{"kind":"fifo","limit_frames":9},{"kind":"fifo","limit_frames":9},
    {"kind":"fifo","limit_frames":9},{"kind":"fifo","limit_frames":9},{"kind":"fifo","limit_frames":9}]}}"#;

fn packet(tag: bool, kind: u16, protocol: u8, to: [u8; 4], port: u16) -> Box<Frame> {
    let mut bytes = vec![0; 12];
    if tag {
        bytes.extend([0x81, 0x00, 0x00, 0x05]);
    }
    bytes.extend(kind.to_be_bytes());
    let mut header = vec![0; 46];
    header[0] = 0x45;
    header[9] = protocol;
    header[16..20].copy_from_slice(&to);
    header[22..24].copy_from_slice(&port.to_be_bytes());
    bytes.extend(header);
    Box::new(Frame::new(bytes))
}

fn class_of(frame: Box<Frame>) -> u32 {
    let mut link = Link::new(build(JSON), Some(1_000_000));
    link.offer(frame);
    link.send_now().map(|sent| sent.queue).expect("it is sent")
}

#[test]
fn the_first_rule_of_which_all_words_match_gives_the_class() {
    assert_eq!(class_of(packet(false, 0x0800, 17, [10, 1, 0, 9], 53)), 1);
    assert_eq!(class_of(packet(true, 0x0800, 17, [10, 2, 0, 9], 53)), 1);
    assert_eq!(class_of(packet(false, 0x0800, 6, [10, 1, 7, 9], 53)), 2);
    assert_eq!(class_of(packet(false, 0x0806, 17, [10, 1, 0, 9], 53)), 3);
}

#[test]
fn a_frame_that_no_rule_matches_keeps_its_number_or_gets_the_one_for_others() {
    let mut frame = packet(false, 0x0800, 6, [10, 2, 0, 9], 80);
    frame.queue = 4;
    assert_eq!(class_of(frame), 4);
    let json = JSON.replace(r#""queue":{"kind":"priority""#, r#""otherwise":2,"queue":{"kind":"priority""#);
    let mut link = Link::new(build(&json), Some(1_000_000));
    link.offer(packet(false, 0x0800, 6, [10, 2, 0, 9], 80));
    assert_eq!(link.send_now().map(|sent| sent.queue), Some(2));
}

#[test]
fn words_beyond_the_end_and_frames_without_a_header_match_nothing() {
    for length in [0, 12, 13, 14, 20, 35] {
        let bytes = packet(false, 0x0800, 17, [10, 1, 0, 9], 53).bytes[..length].to_vec();
        assert!(matches!(class_of(Box::new(Frame::new(bytes))), 0 | 2), "{length}");
    }
}
