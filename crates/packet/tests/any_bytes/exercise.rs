//! All that a frame from outside meets: nothing of it may panic, whatever the bytes.

use twinnet_packet::{
    arp, ethernet, icmpv4, icmpv6, ipv4, ipv6, mpls, sctp, tcp, udp, vlan, Checksum, FlowKey, Frame, Layout, Offload,
    Rewrite, Segmentation,
};

/// Takes `bytes` for a frame and for every header.
pub fn frame(bytes: &[u8]) {
    let (_, layout) = FlowKey::extract_with_layout(1, bytes);
    for offset in [layout.l2_5(), layout.l3(), layout.l4()].into_iter().flatten() {
        assert!(offset <= bytes.len());
        views(&bytes[offset..]);
    }
    views(bytes);
    rewrites(bytes, layout);
    cuts(bytes);
}

/// Reads all that every view shows.
fn views(bytes: &[u8]) {
    if let Ok(packet) = ethernet::Packet::new_checked(bytes) {
        let _ = (ethernet::Repr::parse(&packet).map(|repr| repr.to_string()), packet.payload());
        vlan::stack(packet.ether_type(), packet.payload()).for_each(|tag| drop(tag.to_string()));
    }
    mpls::stack(bytes).for_each(|entry| drop(entry.to_string()));
    if let Ok(packet) = arp::Packet::new_checked(bytes) {
        let _ = arp::Repr::parse(&packet).to_string();
    }
    if let Ok(packet) = ipv4::Packet::new_checked(bytes) {
        let _ = (ipv4::Repr::parse(&packet).map(|repr| repr.to_string()), packet.payload());
    }
    if let Ok(packet) = ipv6::Packet::new_checked(bytes) {
        let _ = (ipv6::Repr::parse(&packet).to_string(), packet.payload(), packet.upper_layer());
    }
    if let Ok(packet) = icmpv4::Packet::new_checked(bytes) {
        let _ = (icmpv4::Repr::parse(&packet), packet.payload(), packet.rest());
    }
    if let Ok(packet) = icmpv6::Packet::new_checked(bytes) {
        // A sum with which the checksum verifies, so that the rest is read too.
        let fitting = !twinnet_packet::checksum::sum(bytes);
        let _ = (icmpv6::Repr::parse(&packet, fitting), packet.payload(), packet.target());
    }
    if let Ok(packet) = udp::Packet::new_checked(bytes) {
        let _ = (udp::Repr::parse(&packet, 0), packet.payload());
    }
    if let Ok(packet) = tcp::Packet::new_checked(bytes) {
        let _ = (tcp::Repr::parse(&packet, !twinnet_packet::checksum::sum(bytes)), packet.options(), packet.payload());
    }
    let _ = sctp::Repr::parse(bytes);
}

/// Changes every field, one after the other.
fn rewrites(bytes: &[u8], mut layout: Layout) {
    let mut frame = Frame::new(bytes.to_vec());
    for rewrite in [
        Rewrite::PushVlan { protocol: 0x8100, tci: 7 },
        Rewrite::EthSrc([1; 6]),
        Rewrite::EthDst([2; 6]),
        Rewrite::EthType(0x86dd),
        Rewrite::EthType(0x0800),
        Rewrite::Protocol(6),
        Rewrite::VlanTci(0xffff),
        Rewrite::MplsEntry(5),
        Rewrite::Ipv4Src([1; 4]),
        Rewrite::Ipv4Dst([2; 4]),
        Rewrite::Ipv6Src([1; 16]),
        Rewrite::Ipv6Dst([2; 16]),
        Rewrite::FlowLabel(9),
        Rewrite::TrafficClass(8),
        Rewrite::TimeToLive(3),
        Rewrite::SourcePort(1),
        Rewrite::DestinationPort(2),
        Rewrite::IcmpType(1),
        Rewrite::IcmpCode(1),
        Rewrite::ArpOperation(2),
        Rewrite::ArpSpa([1; 4]),
        Rewrite::ArpTpa([2; 4]),
        Rewrite::ArpSha([1; 6]),
        Rewrite::ArpTha([2; 6]),
        Rewrite::NdTarget([3; 16]),
        Rewrite::NdSourceLink([4; 6]),
        Rewrite::NdTargetLink([5; 6]),
        Rewrite::PopVlan,
    ] {
        rewrite.apply(&mut frame, &mut layout);
    }
    assert_eq!(frame.bytes.len(), bytes.len());
}

/// Takes the frame for a train, with the first bytes as the claim about it.
fn cuts(bytes: &[u8]) {
    let Some((claim, bytes)) = bytes.split_first_chunk::<6>() else { return };
    let kind = [Segmentation::Tcp4, Segmentation::Tcp6, Segmentation::Udp][usize::from(claim[0]) % 3];
    let layout = Layout::of(bytes);
    let l4 = layout.l4().unwrap_or(0) as u16;
    let header = if claim[1] & 1 == 0 { l4 + 8 * (1 + u16::from(claim[1] >> 6)) } else { u16::from(claim[2]) };
    let mut frame = Frame::new(bytes.to_vec());
    frame.elided = u32::from(claim[3]) * 100;
    frame.offload = Some(Offload { kind, segment: u16::from(claim[4]), header, ecn: claim[1] & 2 == 0 });
    if claim[1] & 4 == 0 {
        let start = if claim[1] & 8 == 0 { l4 } else { u16::from(claim[5]) };
        frame.checksum = Checksum::Partial { start, offset: if kind == Segmentation::Udp { 6 } else { 16 } };
    }
    let length = frame.link_bytes();
    let pieces: Vec<_> = Box::new(frame.clone()).into_frames().collect();
    if pieces.len() > 1 {
        assert_eq!(pieces.iter().map(|piece| piece.length()).sum::<u64>(), length);
    }
    let _ = frame.split_front(u64::from(claim[5]) % 4);
    frame.finish_checksum();
}
