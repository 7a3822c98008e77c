//! Headers between Ethernet's addresses and the network layer that come and go as a whole: MPLS entries and
//! backbone bridges' tags.
//!
//! What lies behind a tag is not looked at while the tag is there; [`Layout`] is found anew after each change.

use crate::checksum;
use crate::extract::Layout;
use crate::frame::Frame;
use crate::rewrite::{put, shift};

/// Ethernet addresses, EtherType and tag of a backbone bridge's header.
const BACKBONE_BYTES: usize = 18;
const ADDRESSES: usize = 12;
const BACKBONE_TYPE: u16 = 0x88e7;

fn type_before(frame: &Frame, at: usize) -> Option<u16> {
    frame.bytes.get(at.checked_sub(2)?..at).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

fn is_mpls(frame: &Frame, at: usize) -> bool {
    matches!(type_before(frame, at), Some(0x8847 | 0x8848))
}

pub(crate) fn push_mpls(frame: &mut Frame, layout: &mut Layout, eth_type: u16, entry: u32) {
    if frame.bytes.len() < ADDRESSES + 2 {
        return;
    }
    put(frame, ADDRESSES, &eth_type.to_be_bytes());
    let at = ADDRESSES + 2;
    frame.bytes.splice(at..at, entry.to_be_bytes());
    shift(frame, layout, 4);
    *layout = Layout::of(&frame.bytes);
}

pub(crate) fn pop_mpls(frame: &mut Frame, layout: &mut Layout, eth_type: u16) {
    let Some(at) = layout.l2_5().filter(|&at| is_mpls(frame, at)) else { return };
    put(frame, at - 2, &eth_type.to_be_bytes());
    frame.bytes.drain(at..at + 4);
    shift(frame, layout, -4);
    *layout = Layout::of(&frame.bytes);
}

pub(crate) fn push_backbone(frame: &mut Frame, layout: &mut Layout, tag: u32) {
    let Some(addresses) = frame.bytes.first_chunk::<ADDRESSES>().copied() else { return };
    let header = addresses.into_iter().chain(BACKBONE_TYPE.to_be_bytes()).chain(tag.to_be_bytes());
    frame.bytes.splice(0..0, header);
    shift(frame, layout, BACKBONE_BYTES as i16);
    *layout = Layout::of(&frame.bytes);
}

pub(crate) fn pop_backbone(frame: &mut Frame, layout: &mut Layout) {
    let Some(at) = layout.l2_5().filter(|&at| type_before(frame, at) == Some(BACKBONE_TYPE)) else { return };
    if frame.bytes.len() < at + 4 + ADDRESSES + 2 {
        return;
    }
    // VLAN tags before the backbone's stay, in front of what it carried.
    let vlan_tags = frame.bytes[ADDRESSES..at - 2].to_vec();
    let addresses: Vec<u8> = frame.bytes[at + 4..at + 4 + ADDRESSES].to_vec();
    frame.bytes.splice(0..at + 4 + ADDRESSES, addresses.into_iter().chain(vlan_tags));
    shift(frame, layout, -(BACKBONE_BYTES as i16));
    *layout = Layout::of(&frame.bytes);
}

pub(crate) fn set_service(frame: &mut Frame, layout: Layout, service: u32) {
    if let Some(at) = layout.l2_5().filter(|&at| type_before(frame, at) == Some(BACKBONE_TYPE)) {
        let [_, high, middle, low] = service.to_be_bytes();
        put(frame, at + 1, &[high, middle, low]);
    }
}

/// Copies a time to live between the outermost MPLS entry and the header after it.
pub(crate) fn copy_ttl(frame: &mut Frame, layout: Layout, inwards: bool) {
    let Some(at) = layout.l2_5().filter(|&at| is_mpls(frame, at)) else { return };
    let Some(inner) = inner_ttl(frame, at) else { return };
    if !inwards {
        let ttl = frame.bytes[inner];
        put(frame, at + 3, &[ttl]);
        return;
    }
    let ttl = frame.bytes[at + 3];
    let header = at + 4;
    if inner == header + 8 && frame.bytes[header] >> 4 == 4 && frame.bytes[at + 2] & 1 == 1 {
        let before = u16::from_be_bytes([frame.bytes[header + 10], frame.bytes[header + 11]]);
        let (old, new) = ([frame.bytes[inner], frame.bytes[inner + 1]], [ttl, frame.bytes[inner + 1]]);
        put(frame, header + 10, &checksum::update(before, &old, &new).to_be_bytes());
    }
    put(frame, inner, &[ttl]);
}

/// Offset of the time to live in the header after the MPLS entry at `at`: another entry, or IP when that one is the
/// last.
fn inner_ttl(frame: &Frame, at: usize) -> Option<usize> {
    let header = frame.bytes.get(at + 4..)?;
    if frame.bytes[at + 2] & 1 == 0 {
        return (header.len() >= 4).then_some(at + 4 + 3);
    }
    match header.first()? >> 4 {
        4 if header.len() >= 20 => Some(at + 4 + 8),
        6 if header.len() >= 40 => Some(at + 4 + 7),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_key::{Field, FlowKey};
    use crate::rewrite::Rewrite;

    fn ipv4() -> Frame {
        let mut bytes = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0x08, 0x00];
        bytes.extend([0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = checksum::checksum(&bytes[14..]);
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        bytes.extend([0, 80, 0, 81, 0, 8, 0, 0]);
        Frame::new(bytes)
    }

    fn apply(frame: &mut Frame, change: Rewrite) {
        let mut layout = Layout::of(&frame.bytes);
        change.apply(frame, &mut layout);
        assert_eq!(layout, Layout::of(&frame.bytes));
    }

    #[test]
    fn a_label_that_is_pushed_and_popped_leaves_no_trace() {
        let mut frame = ipv4();
        apply(&mut frame, Rewrite::PushMpls { eth_type: 0x8847, entry: 0x0001_0140 });
        let key = FlowKey::extract(1, &frame.bytes);
        assert_eq!((key.eth_type(), key.get(Field::MPLS_LABEL), key.get(Field::MPLS_BOS)), (0x8847, 16, 1));
        apply(&mut frame, Rewrite::PopMpls(0x0800));
        assert_eq!(frame.bytes, ipv4().bytes);
    }

    #[test]
    fn a_backbone_header_carries_the_frame_whole() {
        let mut frame = ipv4();
        apply(&mut frame, Rewrite::PushBackbone(0));
        apply(&mut frame, Rewrite::BackboneService(0x12_3456));
        let key = FlowKey::extract(1, &frame.bytes);
        assert_eq!((key.eth_type(), key.get(Field::PBB_ISID)), (0x88e7, 0x12_3456));
        apply(&mut frame, Rewrite::PopBackbone);
        assert_eq!(frame.bytes, ipv4().bytes);
    }

    #[test]
    fn a_time_to_live_copied_inwards_keeps_the_checksum_right() {
        let mut frame = ipv4();
        apply(&mut frame, Rewrite::PushMpls { eth_type: 0x8847, entry: 0x0001_0107 });
        apply(&mut frame, Rewrite::CopyTtlIn);
        apply(&mut frame, Rewrite::PopMpls(0x0800));
        assert_eq!(FlowKey::extract(1, &frame.bytes).get(Field::NW_TTL), 7);
        assert_eq!(checksum::checksum(&frame.bytes[14..34]), 0);
    }

    #[test]
    fn an_ether_type_is_that_behind_the_vlan_tags() {
        let mut frame = ipv4();
        apply(&mut frame, Rewrite::PushVlan { protocol: 0x8100, tci: 5 });
        apply(&mut frame, Rewrite::PushVlan { protocol: 0x88a8, tci: 6 });
        apply(&mut frame, Rewrite::EthType(0x88b5));
        let key = FlowKey::extract(1, &frame.bytes);
        assert_eq!((key.eth_type(), frame.bytes[20..22].to_vec()), (0x88b5, vec![0x88, 0xb5]));
    }

    #[test]
    fn a_protocol_of_ipv4_keeps_the_checksum_right() {
        let mut frame = ipv4();
        apply(&mut frame, Rewrite::Protocol(200));
        assert_eq!(FlowKey::extract(1, &frame.bytes).ip_proto(), 200);
        assert_eq!(checksum::checksum(&frame.bytes[14..34]), 0);
    }

    #[test]
    fn a_protocol_of_ipv6_stands_behind_the_extension_headers() {
        let mut bytes = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 16, 0, 64];
        bytes.extend([0; 32]);
        // Hop-by-hop options, then a routing header, then an unassigned protocol.
        bytes.extend([43, 0, 1, 4, 0, 0, 0, 0, 200, 0, 253, 0, 0, 0, 0, 0]);
        let mut frame = Frame::new(bytes);
        apply(&mut frame, Rewrite::Protocol(201));
        assert_eq!((frame.bytes[20], frame.bytes[54], frame.bytes[62]), (0, 43, 201));
        assert_eq!(FlowKey::extract(1, &frame.bytes).ip_proto(), 201);
    }

    #[test]
    fn a_time_to_live_copied_outwards_comes_from_the_next_label() {
        let mut frame = ipv4();
        apply(&mut frame, Rewrite::PushMpls { eth_type: 0x8847, entry: 0x0001_0109 });
        apply(&mut frame, Rewrite::PushMpls { eth_type: 0x8847, entry: 0x0001_0005 });
        apply(&mut frame, Rewrite::CopyTtlOut);
        assert_eq!(FlowKey::extract(1, &frame.bytes).get(Field::MPLS_TTL), 9);
    }
}
