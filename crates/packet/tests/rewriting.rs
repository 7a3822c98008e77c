//! Rewriting a header field changes that field, keeps every checksum right, and nothing else.

use proptest::prelude::*;
use twinnet_packet::{checksum, mac_value, Checksum, Field, FlowKey, Frame, Layout, Rewrite};

fn ipv4(protocol: u8, transport: &[u8]) -> Vec<u8> {
    let length = (20 + transport.len()) as u16;
    let mut bytes = vec![0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0x03];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 4]);
    let header = checksum::checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&header.to_be_bytes());
    bytes.extend(transport);
    bytes
}

fn ipv6(protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0x12, 0x34, 0x56];
    bytes.extend((transport.len() as u16).to_be_bytes());
    bytes.extend([protocol, 64]);
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]);
    bytes.extend(transport);
    bytes
}

/// The checksum's offset in the transport header.
fn checksum_offset(protocol: u8) -> usize {
    match protocol {
        6 => 16,
        17 => 6,
        _ => 2,
    }
}

fn pseudo_header(bytes: &[u8], layout: Layout) -> u16 {
    let (l3, l4) = (layout.l3().unwrap(), layout.l4().unwrap());
    let length = (bytes.len() - l4) as u32;
    let at = |from: usize| &bytes[l3 + from..];
    match (bytes[l3] >> 4, layout.protocol()) {
        (_, 1) => 0,
        (4, protocol) => checksum::pseudo_header_v4(
            at(12)[..4].try_into().unwrap(),
            at(16)[..4].try_into().unwrap(),
            protocol,
            length,
        ),
        (_, protocol) => checksum::pseudo_header_v6(
            at(8)[..16].try_into().unwrap(),
            at(24)[..16].try_into().unwrap(),
            protocol,
            length,
        ),
    }
}

fn sample(v6: bool, protocol: u8, partial: bool, payload: &[u8]) -> Frame {
    let header: &[u8] = match protocol {
        6 => &[0x9c, 0x40, 0x13, 0x8a, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 0x20, 0, 0, 0, 0, 0],
        17 => &[0x9c, 0x40, 0x13, 0x8b, 0, 0, 0, 0],
        1 => &[8, 0, 0, 0, 0, 1, 0, 1],
        _ => &[
            135, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 1, 0, 0, 0, 0, 0, 1, //
        ],
    };
    let mut transport = header.to_vec();
    if protocol != 58 {
        transport.extend(payload);
    }
    if protocol == 17 {
        let length = transport.len() as u16;
        transport[4..6].copy_from_slice(&length.to_be_bytes());
    }
    let mut frame = Frame::new(if v6 { ipv6(protocol, &transport) } else { ipv4(protocol, &transport) });
    let layout = Layout::of(&frame.bytes);
    let l4 = layout.l4().unwrap();
    let offset = checksum_offset(protocol);
    let sum = pseudo_header(&frame.bytes, layout);
    frame.bytes[l4 + offset..l4 + offset + 2].copy_from_slice(&sum.to_be_bytes());
    frame.checksum = Checksum::Partial { start: l4 as u16, offset: offset as u16 };
    if !partial {
        frame.finish_checksum();
    }
    frame
}

fn verify(mut frame: Frame) {
    frame.finish_checksum();
    let layout = Layout::of(&frame.bytes);
    let (l3, l4) = (layout.l3().unwrap(), layout.l4().unwrap());
    if frame.bytes[l3] >> 4 == 4 {
        assert_eq!(checksum::checksum(&frame.bytes[l3..l3 + 20]), 0, "IPv4 header checksum");
    }
    let total = checksum::add(pseudo_header(&frame.bytes, layout), checksum::sum(&frame.bytes[l4..]));
    assert_eq!(total, 0xffff, "transport checksum");
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u128::from(byte))
}

/// A change and what it does to the flow key.
fn a_rewrite(v6: bool, protocol: u8) -> BoxedStrategy<(Rewrite, Field, u128)> {
    let mac = any::<[u8; 6]>();
    let mut all = vec![
        mac.prop_map(|mac| (Rewrite::EthSrc(mac), Field::ETH_SRC, mac_value(mac))).boxed(),
        mac.prop_map(|mac| (Rewrite::EthDst(mac), Field::ETH_DST, mac_value(mac))).boxed(),
        any::<u8>().prop_map(|class| (Rewrite::TrafficClass(class), Field::NW_TOS, class.into())).boxed(),
        any::<u8>().prop_map(|ttl| (Rewrite::TimeToLive(ttl), Field::NW_TTL, ttl.into())).boxed(),
    ];
    if v6 {
        let address = any::<[u8; 16]>();
        all.push(address.prop_map(|a| (Rewrite::Ipv6Src(a), Field::IPV6_SRC, number(&a))).boxed());
        all.push(address.prop_map(|a| (Rewrite::Ipv6Dst(a), Field::IPV6_DST, number(&a))).boxed());
        all.push((0_u32..1 << 20).prop_map(|l| (Rewrite::FlowLabel(l), Field::IPV6_LABEL, l.into())).boxed());
    } else {
        let address = any::<[u8; 4]>();
        all.push(address.prop_map(|a| (Rewrite::Ipv4Src(a), Field::NW_SRC, number(&a))).boxed());
        all.push(address.prop_map(|a| (Rewrite::Ipv4Dst(a), Field::NW_DST, number(&a))).boxed());
    }
    match protocol {
        6 | 17 => {
            all.push(any::<u16>().prop_map(|p| (Rewrite::SourcePort(p), Field::TP_SRC, p.into())).boxed());
            all.push(any::<u16>().prop_map(|p| (Rewrite::DestinationPort(p), Field::TP_DST, p.into())).boxed());
        }
        1 => {
            all.push(any::<u8>().prop_map(|kind| (Rewrite::IcmpType(kind), Field::TP_SRC, kind.into())).boxed());
            all.push(any::<u8>().prop_map(|code| (Rewrite::IcmpCode(code), Field::TP_DST, code.into())).boxed());
        }
        _ => {
            let target = any::<[u8; 16]>();
            all.push(target.prop_map(|a| (Rewrite::NdTarget(a), Field::ND_TARGET, number(&a))).boxed());
            all.push(mac.prop_map(|mac| (Rewrite::NdSourceLink(mac), Field::ARP_SHA, mac_value(mac))).boxed());
        }
    }
    prop::strategy::Union::new(all).boxed()
}

fn a_case() -> impl Strategy<Value = (bool, u8, Vec<(Rewrite, Field, u128)>)> {
    prop::sample::select(vec![(false, 6), (false, 17), (false, 1), (true, 6), (true, 17), (true, 58)]).prop_flat_map(
        |(v6, protocol)| {
            prop::collection::vec(a_rewrite(v6, protocol), 1..6).prop_map(move |changes| (v6, protocol, changes))
        },
    )
}

proptest! {
    #[test]
    fn the_key_shows_the_change_and_the_checksums_verify(
        (v6, protocol, changes) in a_case(), partial in any::<bool>(),
         payload in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut frame = sample(v6, protocol, partial, &payload);
        let (mut expected, mut layout) = FlowKey::extract_with_layout(1, &frame.bytes);
        for (rewrite, field, value) in changes {
            rewrite.apply(&mut frame, &mut layout);
            expected.set(field, value);
        }
        prop_assert_eq!(FlowKey::extract(1, &frame.bytes), expected);
        verify(frame);
    }

    #[test]
    fn pushing_and_popping_a_tag_is_identity(tci in any::<u16>(), v6 in any::<bool>(), partial in any::<bool>()) {
        let original = sample(v6, 6, partial, &[1, 2, 3]);
        let mut frame = original.clone();
        let mut layout = Layout::of(&frame.bytes);
        Rewrite::PushVlan { protocol: 0x8100, tci }.apply(&mut frame, &mut layout);
        prop_assert_eq!(layout, Layout::of(&frame.bytes));
        prop_assert_eq!(FlowKey::extract(1, &frame.bytes).vlan_tci(), tci | 0x1000);
        verify(frame.clone());
        Rewrite::VlanTci(!tci).apply(&mut frame, &mut layout);
        prop_assert_eq!(FlowKey::extract(1, &frame.bytes).vlan_tci(), !tci | 0x1000);
        Rewrite::PopVlan.apply(&mut frame, &mut layout);
        prop_assert_eq!(&frame.bytes, &original.bytes);
        prop_assert_eq!(frame.checksum, original.checksum);
        Rewrite::PopVlan.apply(&mut frame, &mut layout);
        prop_assert_eq!(frame.bytes, original.bytes);
    }

    #[test]
    fn no_change_of_any_bytes_panics(bytes in prop::collection::vec(any::<u8>(), 0..100), (_, _, changes) in a_case()) {
        let mut frame = Frame::new(bytes);
        let mut layout = Layout::of(&frame.bytes);
        let length = frame.bytes.len();
        for (rewrite, _, _) in changes {
            rewrite.apply(&mut frame, &mut layout);
        }
        prop_assert_eq!(frame.bytes.len(), length);
    }
}

#[test]
fn a_udp_sender_without_checksum_keeps_none() {
    let mut frame = sample(false, 17, false, &[1, 2, 3]);
    frame.bytes[40..42].copy_from_slice(&[0, 0]);
    let mut layout = Layout::of(&frame.bytes);
    Rewrite::Ipv4Dst([192, 168, 0, 1]).apply(&mut frame, &mut layout);
    assert_eq!(&frame.bytes[40..42], &[0, 0]);
}

#[test]
fn an_sctp_port_change_computes_the_crc_anew() {
    let mut transport = vec![0x9c, 0x40, 0x13, 0x8b, 0, 0, 0, 7, 0, 0, 0, 0, 1, 2, 3, 4];
    let mut frame = Frame::new(ipv4(132, &transport));
    let mut layout = Layout::of(&frame.bytes);
    Rewrite::DestinationPort(9).apply(&mut frame, &mut layout);
    transport[2..4].copy_from_slice(&[0, 9]);
    assert_eq!(&frame.bytes[42..46], &checksum::crc32c(&[&transport], 0).to_le_bytes());
}

#[test]
fn the_address_of_a_later_fragment_changes_without_touching_its_payload() {
    let mut frame = sample(false, 17, false, &[1, 2, 3, 4]);
    frame.bytes[20..22].copy_from_slice(&[0, 9]);
    let payload = frame.bytes[34..].to_vec();
    let mut layout = Layout::of(&frame.bytes);
    Rewrite::Ipv4Src([10, 0, 0, 9]).apply(&mut frame, &mut layout);
    assert_eq!(&frame.bytes[26..30], &[10, 0, 0, 9]);
    assert_eq!(&frame.bytes[34..], payload);
}
