//! Frame bytes to flow key, in one pass that no bytes can make panic.
//!
//! Follows Open vSwitch where a header is cut short or malformed: the fields of that header and of those after it
//! are zero, those before it stay. Differences: an IP length beyond the bytes is accepted, since the payload of a
//! frame may be elided.

use crate::flow_key::{Field, FlowKey};

/// VLAN tags that are looked into; a third one is left as the EtherType.
pub(crate) const VLAN_TAGS: usize = 2;
/// IPv6 extension headers that are walked; a packet with more counts as malformed.
pub(crate) const EXTENSION_HEADERS: usize = 16;
/// The EtherType of a frame that has none (IEEE 802.3 length, no SNAP header), as Open vSwitch shows it.
pub const ETH_TYPE_NONE: u16 = 0x05ff;

/// The offsets of the headers of a frame, as far as they are there in full. 0 means: not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    l2_5: u16,
    l3: u16,
    l4: u16,
    protocol: u8,
}

impl Layout {
    /// The layout of an untagged IPv4 frame without options, up to the header of `protocol`.
    pub(crate) const fn of_ipv4(protocol: u8) -> Self {
        Self { l2_5: 0, l3: 14, l4: 34, protocol }
    }

    /// The layout of a frame's bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        FlowKey::extract_with_layout(0, bytes).1
    }

    /// Offset of the outermost MPLS label, or of a backbone bridge's tag.
    #[must_use]
    pub fn l2_5(&self) -> Option<usize> {
        (self.l2_5 != 0).then_some(usize::from(self.l2_5))
    }

    /// Offset of the well-formed IPv4, IPv6 or ARP header.
    #[must_use]
    pub fn l3(&self) -> Option<usize> {
        (self.l3 != 0).then_some(usize::from(self.l3))
    }

    /// Offset of the TCP, UDP, SCTP, ICMP or ICMPv6 header, unless this is a later fragment.
    #[must_use]
    pub fn l4(&self) -> Option<usize> {
        (self.l4 != 0).then_some(usize::from(self.l4))
    }

    /// Protocol of what stands at [`Layout::l4`].
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Moves all offsets, after bytes were inserted into (`by` > 0) or taken out of the Ethernet header.
    pub(crate) fn shift(&mut self, by: i16) {
        for offset in [&mut self.l2_5, &mut self.l3, &mut self.l4] {
            if *offset != 0 {
                *offset = offset.saturating_add_signed(by);
            }
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

/// `count` (at most 16) bytes from `at` as one number.
fn number_at(bytes: &[u8], at: usize, count: usize) -> u128 {
    let mut wide = [0; 16];
    if let Some(part) = bytes.get(at..at + count) {
        wide[16 - count..].copy_from_slice(part);
    }
    u128::from_be_bytes(wide)
}

pub(crate) const fn is_vlan_type(eth_type: u16) -> bool {
    matches!(eth_type, 0x8100 | 0x88a8)
}

impl FlowKey {
    /// The key of the frame `bytes` that came in by `in_port`.
    #[must_use]
    pub fn extract(in_port: u32, bytes: &[u8]) -> Self {
        Self::extract_with_layout(in_port, bytes).0
    }

    /// The key of a frame, and where its headers begin.
    #[must_use]
    pub fn extract_with_layout(in_port: u32, bytes: &[u8]) -> (Self, Layout) {
        let mut key = Self::ZERO;
        let mut layout = Layout::default();
        key.set(Field::IN_PORT, u128::from(in_port));
        // Offsets are 16 bits; no header that counts lies further in.
        let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
        if let Some((eth_type, at)) = ethernet(&mut key, bytes) {
            match eth_type {
                0x0800 => ipv4(&mut key, &mut layout, bytes, at),
                0x86dd => ipv6(&mut key, &mut layout, bytes, at),
                0x0806 | 0x8035 => arp(&mut key, &mut layout, bytes, at),
                0x8847 | 0x8848 => mpls(&mut key, &mut layout, bytes, at),
                0x88e7 => backbone(&mut key, &mut layout, bytes, at),
                _ => {}
            }
        }
        (key, layout)
    }
}

/// Ethernet addresses, VLAN tags and the EtherType; gives that and the offset of what follows.
fn ethernet(key: &mut FlowKey, bytes: &[u8]) -> Option<(u16, usize)> {
    let mut eth_type = u16_at(bytes, 12)?;
    key.set(Field::ETH_DST, number_at(bytes, 0, 6));
    key.set(Field::ETH_SRC, number_at(bytes, 6, 6));
    let mut at = 14;
    for field in [Field::VLAN_TCI, Field::INNER_VLAN_TCI].into_iter().take(VLAN_TAGS) {
        let (true, Some(tci), Some(inner)) = (is_vlan_type(eth_type), u16_at(bytes, at), u16_at(bytes, at + 2)) else {
            break;
        };
        key.set(field, u128::from(tci | 0x1000));
        eth_type = inner;
        at += 4;
    }
    if eth_type < 0x0600 {
        // IEEE 802.3: a length, then LLC; with SNAP and a zero organisation (RFC 1042) the EtherType follows.
        let snap = bytes.get(at..at + 6).is_some_and(|llc| llc == [0xaa, 0xaa, 0x03, 0, 0, 0]);
        eth_type = u16_at(bytes, at + 6).filter(|&inner| snap && inner >= 0x0600).unwrap_or(ETH_TYPE_NONE);
        at += 8;
    }
    key.set(Field::ETH_TYPE, u128::from(eth_type));
    Some((eth_type, at))
}

fn ipv4(key: &mut FlowKey, layout: &mut Layout, bytes: &[u8], at: usize) {
    let Some(header) = bytes.get(at..at + 20) else { return };
    let header_length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_length < 20 || bytes.len() < at + header_length {
        return;
    }
    // A total length of 0 stands for one that does not fit (Linux, "BIG TCP").
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if total != 0 && total < header_length {
        return;
    }
    let end = if total == 0 { bytes.len() } else { bytes.len().min(at + total) };
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let later = fragment & 0x1fff != 0;
    key.set(Field::NW_FRAG, u128::from(u8::from(fragment & 0x3fff != 0) | u8::from(later) << 1));
    key.set(Field::NW_SRC, number_at(header, 12, 4));
    key.set(Field::NW_DST, number_at(header, 16, 4));
    key.set(Field::NW_TOS, u128::from(header[1]));
    key.set(Field::NW_TTL, u128::from(header[8]));
    key.set(Field::NW_PROTO, u128::from(header[9]));
    layout.l3 = offset(at);
    if !later {
        transport(key, layout, &bytes[..end], at + header_length, header[9], false);
    }
}

fn ipv6(key: &mut FlowKey, layout: &mut Layout, bytes: &[u8], at: usize) {
    let Some(header) = bytes.get(at..at + 40) else { return };
    if header[0] >> 4 != 6 {
        return;
    }
    key.set(Field::IPV6_SRC, number_at(header, 8, 16));
    key.set(Field::IPV6_DST, number_at(header, 24, 16));
    // A payload length of 0 stands for a jumbogram (RFC 2675).
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let end = if payload == 0 { bytes.len() } else { bytes.len().min(at + 40 + payload) };
    let Some(Extensions { protocol, l4, fragment, seen, .. }) = extension_headers(&bytes[..end], at + 40, header[6])
    else {
        return;
    };
    key.set(Field::IPV6_EXTENSIONS, u128::from(seen));
    let first = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    key.set(Field::NW_TOS, u128::from(first >> 20 & 0xff));
    key.set(Field::IPV6_LABEL, u128::from(first & 0xf_ffff));
    key.set(Field::NW_TTL, u128::from(header[7]));
    key.set(Field::NW_PROTO, u128::from(protocol));
    key.set(Field::NW_FRAG, u128::from(fragment));
    layout.l3 = offset(at);
    if fragment & 2 == 0 {
        transport(key, layout, &bytes[..end], l4, protocol, true);
    }
}

/// The extension headers between an IPv6 header and its payload.
pub(crate) struct Extensions {
    pub(crate) protocol: u8,
    /// Offset of what `protocol` names.
    pub(crate) l4: usize,
    /// As the flow key has it.
    pub(crate) fragment: u8,
    /// The offset of the fragment in its datagram, in bytes, and whether more follow: the last three bits as they
    /// stand in the header.
    pub(crate) offset_and_more: u16,
    /// Identification of the datagram of which it is a part; 0 without a fragment header.
    pub(crate) identification: u32,
    /// As [`Field::IPV6_EXTENSIONS`] has it.
    seen: u16,
}

/// OpenFlow 1.3, A.2.3.8: the bit of each extension header, and its place in the order that RFC 2460, 4.1 recommends.
const fn extension_bit(kind: u8) -> Option<(u16, u8)> {
    Some(match kind {
        59 => (1 << 0, 9),
        50 => (1 << 1, 6),
        51 => (1 << 2, 5),
        60 => (1 << 3, 2),
        44 => (1 << 4, 4),
        43 => (1 << 5, 3),
        0 => (1 << 6, 1),
        _ => return None,
    })
}

const REPEATED: u16 = 1 << 7;
const OUT_OF_ORDER: u16 = 1 << 8;

/// Notes an extension header; destination options may come twice, before routing and last.
fn note_extension(seen: &mut u16, furthest: &mut u8, kind: u8) {
    let Some((bit, place)) = extension_bit(kind) else { return };
    let again = *seen & bit != 0;
    if again && !(kind == 60 && *seen & REPEATED == 0 && *furthest > 2) {
        *seen |= REPEATED;
    }
    // The final destination options follow all but "no next header".
    let place = if kind == 60 && *furthest >= 3 { 7 } else { place };
    if place < *furthest {
        *seen |= OUT_OF_ORDER;
    }
    *seen |= bit;
    *furthest = place.max(*furthest);
}

/// Walks IPv6 extension headers.
pub(crate) fn extension_headers(bytes: &[u8], at: usize, next: u8) -> Option<Extensions> {
    let mut furthest = 0;
    let mut found = Extensions { protocol: next, l4: at, fragment: 0, offset_and_more: 0, identification: 0, seen: 0 };
    for _ in 0..EXTENSION_HEADERS {
        let at = found.l4;
        note_extension(&mut found.seen, &mut furthest, found.protocol);
        let length = match found.protocol {
            0 | 43 | 60 => 8 + usize::from(*bytes.get(at + 1)?) * 8,
            51 => 8 + usize::from(*bytes.get(at + 1)?) * 4,
            44 => {
                let offset_and_more = u16_at(bytes, at + 2)?;
                found.fragment = u8::from(offset_and_more & 0xfff9 != 0) | u8::from(offset_and_more & 0xfff8 != 0) << 1;
                (found.offset_and_more, found.identification) = (offset_and_more, u32_at(bytes, at + 4)?);
                8
            }
            _ => return Some(found),
        };
        if bytes.len() < at + length {
            return None;
        }
        found.protocol = bytes[at];
        found.l4 += length;
        if found.fragment & 2 != 0 {
            return Some(found);
        }
    }
    None
}

fn transport(key: &mut FlowKey, layout: &mut Layout, bytes: &[u8], at: usize, protocol: u8, v6: bool) {
    let Some(header) = bytes.get(at..) else { return };
    let needed = match (protocol, v6) {
        (6, _) => 20,
        (17, _) | (1, false) => 8,
        (58, true) => 4,
        (132, _) => 12,
        _ => return,
    };
    if header.len() < needed {
        return;
    }
    layout.l4 = offset(at);
    layout.protocol = protocol;
    if matches!(protocol, 1 | 58) {
        key.set(Field::TP_SRC, u128::from(header[0]));
        key.set(Field::TP_DST, u128::from(header[1]));
        if protocol == 58 && matches!(header[0], 135 | 136) && header[1] == 0 {
            neighbour_discovery(key, header);
        }
        return;
    }
    key.set(Field::TP_SRC, number_at(header, 0, 2));
    key.set(Field::TP_DST, number_at(header, 2, 2));
    if protocol == 6 {
        key.set(Field::TCP_FLAGS, number_at(header, 12, 2) & 0x0fff);
    }
}

/// Target and link-layer addresses of a neighbour solicitation or advertisement (RFC 4861, 4.3 and 4.4).
fn neighbour_discovery(key: &mut FlowKey, message: &[u8]) {
    if message.len() < 24 {
        return;
    }
    let mut found = *key;
    found.set(Field::ND_TARGET, number_at(message, 8, 16));
    for (kind, at) in neighbour_options(message) {
        match (message[0], kind) {
            (135, 1) => found.set(Field::ARP_SHA, number_at(message, at + 2, 6)),
            (136, 2) => found.set(Field::ARP_THA, number_at(message, at + 2, 6)),
            _ => {}
        }
    }
    *key = found;
}

/// Kind and offset of the options of a neighbour discovery message that are 8 bytes long (as link-layer addresses
/// are). Ends at one that is malformed.
pub(crate) fn neighbour_options(message: &[u8]) -> impl Iterator<Item = (u8, usize)> + '_ {
    let mut at = 24;
    std::iter::from_fn(move || loop {
        let (kind, units) = (*message.get(at)?, usize::from(*message.get(at + 1)?));
        // "Nodes MUST silently discard an ND packet that contains an option with length zero" (RFC 4861, 4.6).
        if units == 0 || at + units * 8 > message.len() {
            return None;
        }
        let here = at;
        at += units * 8;
        if units == 1 {
            return Some((kind, here));
        }
    })
}

fn arp(key: &mut FlowKey, layout: &mut Layout, bytes: &[u8], at: usize) {
    let Some(packet) = bytes.get(at..at + 28) else { return };
    // Ethernet and IPv4 only.
    if packet[..6] != [0, 1, 8, 0, 6, 4] {
        return;
    }
    let operation = u16::from_be_bytes([packet[6], packet[7]]);
    key.set(Field::NW_PROTO, if operation <= 0xff { u128::from(operation) } else { 0 });
    key.set(Field::ARP_SHA, number_at(packet, 8, 6));
    key.set(Field::NW_SRC, number_at(packet, 14, 4));
    key.set(Field::ARP_THA, number_at(packet, 18, 6));
    key.set(Field::NW_DST, number_at(packet, 24, 4));
    layout.l3 = offset(at);
}

fn mpls(key: &mut FlowKey, layout: &mut Layout, bytes: &[u8], at: usize) {
    if let Some(entry) = u32_at(bytes, at) {
        key.set(Field::MPLS_LSE, u128::from(entry));
        layout.l2_5 = offset(at);
    }
}

/// The tag of a provider backbone bridge (IEEE 802.1ah, I-TAG): its service identifier.
fn backbone(key: &mut FlowKey, layout: &mut Layout, bytes: &[u8], at: usize) {
    if let Some(tag) = u32_at(bytes, at) {
        key.set(Field::PBB_ISID, u128::from(tag & 0x00ff_ffff));
        layout.l2_5 = offset(at);
    }
}

/// Offsets fit: `extract_with_layout` looks at 65535 bytes at most.
fn offset(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_key::mac_value;
    use proptest::prelude::*;

    /// A TCP SYN with ECN set-up, VLAN 10 with priority 5.
    const SYN: [u8; 58] = [
        0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x81, 0x00, 0xa0, 0x0a, 0x08,
        0x00, // Ethernet, VLAN
        0x45, 0x03, 0x00, 0x28, 0x00, 0x01, 0x40, 0x00, 0x40, 0x06, 0x26, 0xca, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00,
        0x00, 0x04, // IPv4
        0x9c, 0x40, 0x13, 0x8a, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x50, 0xc2, 0x20, 0x00, 0x00, 0x00,
        0x00, 0x00, // TCP
    ];

    #[test]
    fn every_field_of_a_tagged_tcp_segment_is_found() {
        let (key, layout) = FlowKey::extract_with_layout(3, &SYN);
        assert_eq!(key.get(Field::IN_PORT), 3);
        assert_eq!(key.eth_dst(), [0, 0, 0, 0, 0, 4]);
        assert_eq!(key.get(Field::ETH_SRC), mac_value([0, 0, 0, 0, 0, 1]));
        assert_eq!(key.vlan_tci(), 0xb00a);
        assert_eq!((key.get(Field::VLAN_VID), key.get(Field::VLAN_PCP), key.get(Field::VLAN_PRESENT)), (10, 5, 1));
        assert_eq!((key.eth_type(), key.ip_proto()), (0x0800, 6));
        assert_eq!((key.get(Field::NW_SRC), key.get(Field::NW_DST)), (0x0a00_0001, 0x0a00_0004));
        assert_eq!((key.get(Field::IP_DSCP), key.get(Field::IP_ECN), key.get(Field::NW_TTL)), (0, 3, 64));
        assert_eq!((key.get(Field::TP_SRC), key.get(Field::TP_DST), key.get(Field::TCP_FLAGS)), (40000, 5002, 0x0c2));
        assert_eq!((layout.l3(), layout.l4(), layout.protocol()), (Some(18), Some(38), 6));
    }

    #[test]
    fn a_cut_header_keeps_the_fields_of_those_before_it() {
        let (key, layout) = FlowKey::extract_with_layout(1, &SYN[..57]);
        assert_eq!((key.get(Field::NW_DST), key.get(Field::TP_DST), layout.l4()), (0x0a00_0004, 0, None));
        let key = FlowKey::extract(1, &SYN[..37]);
        assert_eq!((key.eth_type(), key.get(Field::NW_DST)), (0x0800, 0));
        let key = FlowKey::extract(1, &SYN[..17]);
        assert_eq!((key.vlan_tci(), key.eth_type()), (0, 0x8100));
        assert_eq!(FlowKey::extract(1, &SYN[..13]), FlowKey::ZERO.with(Field::IN_PORT, 1));
    }

    #[test]
    fn a_header_length_that_is_a_lie_leaves_the_ethernet_fields() {
        let mut lie = SYN;
        lie[18] = 0x43;
        let key = FlowKey::extract(1, &lie);
        assert_eq!((key.eth_type(), key.get(Field::NW_SRC), key.get(Field::NW_PROTO)), (0x0800, 0, 0));
    }

    #[test]
    fn padding_after_the_total_length_is_not_taken_for_a_transport_header() {
        let mut short = SYN;
        short[21] = 24;
        assert_eq!(FlowKey::extract(1, &short).get(Field::TP_DST), 0);
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let mut fragment = SYN;
        fragment[24..26].copy_from_slice(&[0x20, 0x00]);
        let key = FlowKey::extract(1, &fragment);
        assert_eq!((key.get(Field::NW_FRAG), key.get(Field::TP_DST)), (1, 5002));
        fragment[24..26].copy_from_slice(&[0x00, 0xb9]);
        let key = FlowKey::extract(1, &fragment);
        assert_eq!((key.get(Field::NW_FRAG), key.get(Field::TP_DST)), (3, 0));
    }

    #[test]
    fn two_tags_are_looked_into_and_a_third_is_the_ether_type() {
        let mut stack = SYN[..12].to_vec();
        stack.extend([0x88, 0xa8, 0x00, 0x07]);
        stack.extend(&SYN[12..]);
        let key = FlowKey::extract(1, &stack);
        assert_eq!((key.vlan_tci(), key.get(Field::INNER_VLAN_TCI), key.eth_type()), (0x1007, 0xb00a, 0x0800));
        stack.splice(12..12, [0x88, 0xa8, 0x00, 0x08]);
        let key = FlowKey::extract(1, &stack);
        assert_eq!((key.vlan_tci(), key.eth_type(), key.get(Field::NW_DST)), (0x1008, 0x8100, 0));
    }

    #[test]
    fn snap_frames_have_the_ether_type_inside_and_others_none() {
        let mut frame = vec![0; 12];
        frame.extend([0x00, 0x08, 0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00]);
        assert_eq!(FlowKey::extract(1, &frame).eth_type(), 0x0800);
        frame[14] = 0x42;
        assert_eq!(FlowKey::extract(1, &frame).eth_type(), ETH_TYPE_NONE);
    }

    #[test]
    fn an_arp_request_fills_the_address_fields() {
        let frame = [
            &[0xff; 6][..],
            &[0, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &[0, 0, 0, 0, 0, 1, 10, 0, 0, 1],
            &[0, 0, 0, 0, 0, 0, 10, 0, 0, 4],
        ]
        .concat();
        let key = FlowKey::extract(1, &frame);
        assert_eq!(
            (key.get(Field::NW_PROTO), key.get(Field::NW_SRC), key.get(Field::NW_DST)),
            (1, 0x0a00_0001, 0x0a00_0004)
        );
        assert_eq!((key.get(Field::ARP_SHA), key.get(Field::ARP_THA)), (1, 0));
    }

    fn neighbour_solicitation() -> Vec<u8> {
        let mut frame = vec![0x33, 0x33, 0xff, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0x86, 0xdd];
        frame.extend([0x6b, 0x81, 0x23, 0x45, 0, 40, 0, 255]); // Class 0xb8, label 0x12345, hop-by-hop first.
        frame.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        frame.extend([0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 4]);
        frame.extend([58, 0, 5, 2, 0, 0, 1, 0]);
        frame.extend([135, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]);
        frame.extend([1, 1, 0, 0, 0, 0, 0, 1]);
        frame
    }

    #[test]
    fn a_neighbour_solicitation_behind_an_extension_header_is_found() {
        let (key, layout) = FlowKey::extract_with_layout(1, &neighbour_solicitation());
        assert_eq!((key.get(Field::NW_TOS), key.get(Field::IPV6_LABEL), key.get(Field::NW_TTL)), (0xb8, 0x12345, 255));
        assert_eq!((key.ip_proto(), key.get(Field::TP_SRC), key.get(Field::TP_DST)), (58, 135, 0));
        assert_eq!(key.get(Field::ND_TARGET), 0xfe80_0000_0000_0000_0000_0000_0000_0004);
        assert_eq!((key.get(Field::ARP_SHA), layout.l4()), (1, Some(14 + 48)));
    }

    #[test]
    fn endless_extension_headers_are_not_walked_for_ever() {
        let mut frame = neighbour_solicitation()[..54].to_vec();
        frame[18..20].copy_from_slice(&[0, 0]);
        for _ in 0..1000 {
            frame.extend([0, 0, 1, 4, 0, 0, 0, 0]);
        }
        let key = FlowKey::extract(1, &frame);
        assert_eq!((key.ip_proto(), key.get(Field::NW_TTL)), (0, 0));
        assert_ne!(key.get(Field::IPV6_SRC), 0);
    }

    #[test]
    fn an_mpls_label_is_taken_apart() {
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0x47, 0x00, 0x01, 0x0b, 0x40]);
        let (key, layout) = FlowKey::extract_with_layout(1, &frame);
        let parts = [Field::MPLS_LABEL, Field::MPLS_TC, Field::MPLS_BOS, Field::MPLS_TTL].map(|field| key.get(field));
        assert_eq!((parts, layout.l2_5()), ([16, 5, 1, 64], Some(14)));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = FlowKey::extract(1, &bytes);
        }

        #[test]
        fn no_mutation_of_a_real_frame_panics(
            at in 0_usize..110, value in any::<u8>(), length in 0_usize..111, second in 0_usize..110,
                other in any::<u8>(),
        ) {
            for mut frame in [SYN.to_vec(), neighbour_solicitation()] {
                let end = frame.len();
                frame[at % end] = value;
                frame[second % end] = other;
                frame.truncate(length);
                let (_, layout) = FlowKey::extract_with_layout(1, &frame);
                prop_assert!(layout.l4().unwrap_or(0) <= frame.len());
            }
        }
    }
}
