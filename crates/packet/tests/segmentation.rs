//! Super-segments: every cut has headers and checksums as the sender's network card would have made them.

use proptest::prelude::*;
use twinnet_packet::{checksum, Checksum, Field, FlowKey, Frame, Layout, Offload, Segmentation};

/// Ethernet, IPv4 and TCP headers (seq 0xfffffff0, flags CWR, ACK, PSH, FIN, timestamps) of a super-segment.
const TCP4: [u8; 66] = [
    0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
    0x45, 0x02, 0x00, 0x00, 0xff, 0xff, 0x40, 0x00, 0x40, 0x06, 0x00, 0x00, 10, 0, 0, 1, 10, 0, 0, 4, // IPv4
    0x9c, 0x40, 0x13, 0x8a, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9, 0x80, 0x99, 0x20, 0x00, 0, 0, 0, 0, // TCP
    1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, // NOP, NOP, timestamps
];

fn udp6_header() -> Vec<u8> {
    let mut header = vec![0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 17, 64];
    header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]);
    header.extend([0x9c, 0x40, 0x13, 0x8b, 0, 0, 0, 0]);
    header
}

/// A train with `payload`, of which the last `elided` bytes are not stored; its checksum partial.
fn train(kind: Segmentation, payload: &[u8], elided: usize, segment: u16) -> Frame {
    let header = if kind == Segmentation::Udp { udp6_header() } else { TCP4.to_vec() };
    let layout = Layout::of(&[header.as_slice(), &[0; 4]].concat());
    let l4 = layout.l4().unwrap();
    let offset = if kind == Segmentation::Udp { 6 } else { 16 };
    let mut bytes = header.clone();
    bytes.extend(&payload[..payload.len() - elided]);
    Frame {
        bytes,
        elided: elided as u32,
        offload: Some(Offload { kind, segment, header: header.len() as u16, ecn: kind == Segmentation::Tcp4 }),
        checksum: Checksum::Partial { start: l4 as u16, offset },
        ..Frame::default()
    }
}

/// The bytes of a finished frame with its elided payload as zeros.
fn on_the_wire(frame: &Frame) -> Vec<u8> {
    assert_eq!(frame.frames(), 1);
    let mut frame = frame.clone();
    frame.finish_checksum();
    frame.bytes.extend(vec![0; frame.elided as usize]);
    frame.bytes
}

/// Checks that all checksums and lengths of a whole frame are right.
fn verify(bytes: &[u8]) {
    let layout = Layout::of(bytes);
    let (l3, l4) = (layout.l3().unwrap(), layout.l4().unwrap());
    let transport = &bytes[l4..];
    let pseudo = if bytes[l3] >> 4 == 4 {
        assert_eq!(checksum::checksum(&bytes[l3..l4]), 0, "IPv4 header checksum");
        assert_eq!(usize::from(u16::from_be_bytes([bytes[l3 + 2], bytes[l3 + 3]])), bytes.len() - l3);
        let addresses = (bytes[l3 + 12..l3 + 16].try_into().unwrap(), bytes[l3 + 16..l3 + 20].try_into().unwrap());
        checksum::pseudo_header_v4(addresses.0, addresses.1, layout.protocol(), transport.len() as u32)
    } else {
        assert_eq!(usize::from(u16::from_be_bytes([bytes[l3 + 4], bytes[l3 + 5]])), bytes.len() - l3 - 40);
        let addresses = (bytes[l3 + 8..l3 + 24].try_into().unwrap(), bytes[l3 + 24..l3 + 40].try_into().unwrap());
        checksum::pseudo_header_v6(&addresses.0, &addresses.1, layout.protocol(), transport.len() as u32)
    };
    if layout.protocol() == 17 {
        assert_eq!(usize::from(u16::from_be_bytes([transport[4], transport[5]])), transport.len());
    }
    assert_eq!(checksum::add(pseudo, checksum::sum(transport)), 0xffff, "transport checksum");
}

fn flags(bytes: &[u8]) -> u128 {
    FlowKey::extract(0, bytes).get(Field::TCP_FLAGS)
}

#[test]
fn three_tcp_segments_have_their_own_sequence_identification_and_flags() {
    let payload: Vec<u8> = (0..25).collect();
    let frames: Vec<_> = Box::new(train(Segmentation::Tcp4, &payload, 0, 10)).into_frames().collect();
    let wires: Vec<_> = frames.iter().map(|frame| on_the_wire(frame)).collect();
    wires.iter().for_each(|bytes| verify(bytes));
    assert_eq!(
        wires.iter().map(|bytes| bytes[38..42].to_vec()).collect::<Vec<_>>(),
        [vec![0xff, 0xff, 0xff, 0xf0], vec![0xff, 0xff, 0xff, 0xfa], vec![0, 0, 0, 4]]
    );
    assert_eq!(
        wires.iter().map(|bytes| u16::from_be_bytes([bytes[18], bytes[19]])).collect::<Vec<_>>(),
        [0xffff, 0, 1]
    );
    // CWR on the first only, PSH and FIN on the last only, ACK on all.
    assert_eq!(wires.iter().map(|bytes| flags(bytes)).collect::<Vec<_>>(), [0x090, 0x010, 0x019]);
    assert_eq!(&wires[2][66..], &payload[20..]);
}

#[test]
fn without_the_ecn_mark_cwr_stays_on_every_frame() {
    let mut frame = train(Segmentation::Tcp4, &[7; 20], 0, 10);
    frame.offload = frame.offload.map(|offload| Offload { ecn: false, ..offload });
    let wires: Vec<_> = Box::new(frame).into_frames().map(|frame| flags(&frame.bytes)).collect();
    assert_eq!(wires, [0x090, 0x099]);
}

#[test]
fn a_complete_checksum_stays_complete_in_every_piece() {
    let mut frame = train(Segmentation::Udp, &[9; 25], 0, 10);
    frame.bytes[61] = 1; // Any value but "no checksum".
    frame.checksum = Checksum::Complete;
    for piece in Box::new(frame).into_frames() {
        assert_eq!(piece.checksum, Checksum::Complete);
        verify(&piece.bytes);
    }
}

#[test]
fn a_udp_sender_without_checksums_keeps_none() {
    let mut frame = train(Segmentation::Udp, &[9; 25], 0, 10);
    frame.checksum = Checksum::Complete;
    for piece in Box::new(frame).into_frames() {
        assert_eq!(&piece.bytes[60..62], &[0, 0]);
    }
}

#[test]
fn nothing_is_taken_off_where_there_is_nothing_to_take() {
    let mut frame = train(Segmentation::Tcp4, &[1; 25], 0, 10);
    assert!(frame.split_front(0).is_none());
    assert!(frame.split_front(3).is_none());
    assert!(Frame::new(TCP4.to_vec()).split_front(1).is_none());
    assert_eq!(frame.frames(), 3);
}

#[test]
fn a_claim_that_the_headers_do_not_bear_out_is_unsound_and_not_cut() {
    let sound = train(Segmentation::Tcp4, &[1; 25], 0, 10);
    assert!(sound.offload_is_sound());
    let claim = sound.offload.unwrap();
    for wrong in [
        Offload { kind: Segmentation::Udp, ..claim },
        Offload { kind: Segmentation::Tcp6, ..claim },
        Offload { header: 54, ..claim },
        Offload { header: 4000, ..claim },
        Offload { header: 0, ..claim },
        Offload { segment: 0, ..claim },
    ] {
        let mut frame = Frame { offload: Some(wrong), ..sound.clone() };
        assert!(!frame.offload_is_sound(), "{wrong:?}");
        assert!(frame.split_front(1).is_none());
        assert_eq!(Box::new(frame).into_frames().count(), 1);
    }
    let stray = Frame { checksum: Checksum::Partial { start: 60000, offset: 60000 }, ..sound };
    assert!(!stray.offload_is_sound());
}

#[test]
fn the_header_of_a_super_segment_is_found_in_its_bytes() {
    let train = train(Segmentation::Tcp4, &[1; 25], 0, 10);
    assert_eq!(Offload::of_headers(&train.bytes, Segmentation::Tcp4, 10, true), train.offload);
    assert_eq!(Offload::of_headers(&train.bytes, Segmentation::Udp, 10, true), None);
    assert_eq!(Offload::of_headers(&train.bytes, Segmentation::Tcp4, 0, true), None);
    assert_eq!(Offload::of_headers(&train.bytes[..60], Segmentation::Tcp4, 10, true), None);
}

#[test]
fn a_partial_checksum_outside_of_the_frame_is_forgotten() {
    let mut frame = Frame::new(vec![0; 20]);
    frame.checksum = Checksum::Partial { start: 19, offset: 0 };
    frame.finish_checksum();
    assert_eq!((frame.checksum, frame.bytes), (Checksum::Complete, vec![0; 20]));
}

/// Cuts at random places until single frames are left, in order.
fn cut_down(frame: Box<Frame>, cuts: &mut impl Iterator<Item = u64>, into: &mut Vec<Frame>) {
    let mut rest = frame;
    while rest.frames() > 1 {
        let take = 1 + cuts.next().unwrap_or(0) % (rest.frames() - 1);
        let front = rest.split_front(take).unwrap();
        assert_eq!(front.frames(), take);
        cut_down(front, cuts, into);
    }
    into.push(*rest);
}

proptest! {
    #[test]
    fn cutting_and_joining_is_identity_and_every_checksum_verifies(
        mut payload in prop::collection::vec(any::<u8>(), 1..400),
        segment in 1_u16..120,
        elided in 0_usize..400,
        cuts in prop::collection::vec(any::<u64>(), 50),
        kind in prop::sample::select(vec![Segmentation::Tcp4, Segmentation::Udp]),
        complete in any::<bool>(),
    ) {
        let elided = elided.min(payload.len());
        let stored = payload.len() - elided;
        payload[stored..].fill(0);
        let mut train = train(kind, &payload, elided, segment);
        if complete {
            train.bytes[50] |= 1;
            train.bytes[61] |= 1;
            train.checksum = Checksum::Complete;
        }
        let count = train.frames();
        let at_once: Vec<_> = Box::new(train.clone()).into_frames().map(|frame| on_the_wire(&frame)).collect();
        let mut pieces = Vec::new();
        cut_down(Box::new(train.clone()), &mut cuts.into_iter(), &mut pieces);
        let one_by_one: Vec<_> = pieces.iter().map(on_the_wire).collect();
        prop_assert_eq!(&at_once, &one_by_one);
        prop_assert_eq!(at_once.len() as u64, count);
        prop_assert_eq!(at_once.iter().map(|bytes| bytes.len() as u64).sum::<u64>(), train.link_bytes());
        let header = usize::from(train.offload.unwrap().header);
        let joined: Vec<u8> = at_once.iter().flat_map(|bytes| bytes[header..].iter().copied()).collect();
        prop_assert_eq!(joined, payload);
        if count > 1 {
            at_once.iter().for_each(|bytes| verify(bytes));
        }
    }

    #[test]
    fn no_offload_claim_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        real in any::<bool>(),
        (segment, header, take, elided) in (any::<u16>(), 0_u16..130, 0_u64..5, 0_u32..100_000),
        (start, offset) in (0_u16..130, 0_u16..130),
        kind in prop::sample::select(vec![Segmentation::Tcp4, Segmentation::Tcp6, Segmentation::Udp]),
    ) {
        let bytes = if real { [&TCP4[..], &bytes].concat() } else { bytes };
        let mut frame = Frame {
            bytes,
            elided,
            offload: Some(Offload { kind, segment, header, ecn: true }),
            checksum: Checksum::Partial { start, offset },
            ..Frame::default()
        };
        let _ = frame.split_front(take);
        frame.clone().finish_checksum();
        let _ = Box::new(frame).into_frames().take(10).count();
    }
}
