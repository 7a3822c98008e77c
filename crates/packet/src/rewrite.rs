//! Changing header fields of a frame in place, its checksums with them (RFC 1624).
//!
//! Works on trains too: every frame of a train repeats the one header. A change that the frame has no header for
//! does nothing.

use crate::checksum;
use crate::extract::{is_vlan_type, neighbour_options, Layout, VLAN_TAGS};
use crate::frame::{Checksum, Frame};
use crate::tags;

/// One change of a header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Ethernet source.
    EthSrc([u8; 6]),
    /// Ethernet destination.
    EthDst([u8; 6]),
    /// The EtherType behind all VLAN tags: what follows counts as another header from now on.
    EthType(u16),
    /// The outermost VLAN tag's priority and identifier (the bit between them is written as 0).
    VlanTci(u16),
    /// A new outermost VLAN tag.
    PushVlan {
        /// Tag protocol: 0x8100 or 0x88a8.
        protocol: u16,
        /// Priority and identifier.
        tci: u16,
    },
    /// Takes the outermost VLAN tag off.
    PopVlan,
    /// The outermost MPLS label stack entry, whole.
    MplsEntry(u32),
    /// A new MPLS label stack entry, right after the Ethernet addresses: "it should be the outermost tag inserted,
    /// immediately after the Ethernet header and before other tags" (OpenFlow 1.3, 5.11).
    PushMpls {
        /// EtherType of the frame from now on: 0x8847 or 0x8848.
        eth_type: u16,
        /// The entry.
        entry: u32,
    },
    /// Takes the outermost MPLS label stack entry off; the EtherType is what the frame then has.
    PopMpls(u16),
    /// A new header of a provider backbone bridge before the frame's own, with its addresses and this priority and
    /// service identifier.
    PushBackbone(u32),
    /// Takes the outermost header of a provider backbone bridge off.
    PopBackbone,
    /// Service identifier of the backbone bridge's tag.
    BackboneService(u32),
    /// Copies the time to live of the outermost MPLS entry into the next header, an entry or IP.
    CopyTtlIn,
    /// Copies the time to live of the header after the outermost MPLS entry into that entry.
    CopyTtlOut,
    /// IPv4 source.
    Ipv4Src([u8; 4]),
    /// IPv4 destination.
    Ipv4Dst([u8; 4]),
    /// IPv6 source.
    Ipv6Src([u8; 16]),
    /// IPv6 destination.
    Ipv6Dst([u8; 16]),
    /// IPv6 flow label (20 bits).
    FlowLabel(u32),
    /// IPv4 type of service or IPv6 traffic class, ECN included.
    TrafficClass(u8),
    /// IPv4 time to live or IPv6 hop limit.
    TimeToLive(u8),
    /// IPv4 protocol, or next header of IPv6 behind the extension headers. What follows is not changed, its
    /// checksum neither.
    Protocol(u8),
    /// Source port of TCP, UDP or SCTP.
    SourcePort(u16),
    /// Destination port of TCP, UDP or SCTP.
    DestinationPort(u16),
    /// Type of ICMP or ICMPv6.
    IcmpType(u8),
    /// Code of ICMP or ICMPv6.
    IcmpCode(u8),
    /// Operation of ARP.
    ArpOperation(u16),
    /// Sender protocol address of ARP.
    ArpSpa([u8; 4]),
    /// Target protocol address of ARP.
    ArpTpa([u8; 4]),
    /// Sender hardware address of ARP.
    ArpSha([u8; 6]),
    /// Target hardware address of ARP.
    ArpTha([u8; 6]),
    /// Target of neighbour discovery.
    NdTarget([u8; 16]),
    /// Source link-layer address option of neighbour discovery, where there is one.
    NdSourceLink([u8; 6]),
    /// Target link-layer address option of neighbour discovery, where there is one.
    NdTargetLink([u8; 6]),
}

/// The transport checksum over a changed place, beside the IPv4 header's own checksum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Covered {
    /// Nothing of the transport.
    No,
    /// The transport's pseudo-header.
    PseudoHeader,
    /// The transport's checksum itself.
    Transport,
}

impl Rewrite {
    /// Changes `frame`, whose headers lie as `layout` says; `layout` follows where they move.
    pub fn apply(&self, frame: &mut Frame, layout: &mut Layout) {
        match *self {
            Self::EthDst(mac) => put(frame, 0, &mac),
            Self::EthSrc(mac) => put(frame, 6, &mac),
            Self::EthType(eth_type) => {
                if let Some(at) = eth_type_at(frame) {
                    put(frame, at, &eth_type.to_be_bytes());
                    *layout = Layout::of(&frame.bytes);
                }
            }
            Self::Protocol(protocol) => {
                set_protocol(frame, *layout, protocol);
                *layout = Layout::of(&frame.bytes);
            }
            Self::VlanTci(tci) if frame.vlan_control().is_some() => put(frame, 14, &(tci & 0xefff).to_be_bytes()),
            Self::PushVlan { protocol, tci } => push_vlan(frame, layout, protocol, tci & 0xefff),
            Self::PopVlan if frame.vlan_control().is_some() => pop_vlan(frame, layout),
            Self::MplsEntry(entry) => {
                if let Some(at) = layout.l2_5() {
                    put(frame, at, &entry.to_be_bytes());
                }
            }
            Self::PushMpls { eth_type, entry } => tags::push_mpls(frame, layout, eth_type, entry),
            Self::PopMpls(eth_type) => tags::pop_mpls(frame, layout, eth_type),
            Self::PushBackbone(tag) => tags::push_backbone(frame, layout, tag),
            Self::PopBackbone => tags::pop_backbone(frame, layout),
            Self::BackboneService(service) => tags::set_service(frame, *layout, service),
            Self::CopyTtlIn => tags::copy_ttl(frame, *layout, true),
            Self::CopyTtlOut => tags::copy_ttl(frame, *layout, false),
            _ => {
                if let Some(l3) = layout.l3() {
                    self.apply_to_network(frame, *layout, l3);
                }
            }
        }
    }

    fn apply_to_network(&self, frame: &mut Frame, layout: Layout, l3: usize) {
        // ARP begins with its hardware type, 1: version 0.
        match (*self, frame.bytes.get(l3).map_or(0, |first| first >> 4)) {
            (Self::Ipv4Src(address), 4) => set_ipv4(frame, layout, l3, 12, &address, Covered::PseudoHeader),
            (Self::Ipv4Dst(address), 4) => set_ipv4(frame, layout, l3, 16, &address, Covered::PseudoHeader),
            (Self::TrafficClass(class), 4) => {
                let word = [frame.bytes[l3], class];
                set_ipv4(frame, layout, l3, 0, &word, Covered::No);
            }
            (Self::TimeToLive(ttl), 4) => {
                let word = [ttl, frame.bytes[l3 + 9]];
                set_ipv4(frame, layout, l3, 8, &word, Covered::No);
            }
            (Self::Ipv6Src(address), 6) => change(frame, layout, l3 + 8, &address, Covered::PseudoHeader),
            (Self::Ipv6Dst(address), 6) => change(frame, layout, l3 + 24, &address, Covered::PseudoHeader),
            (Self::TrafficClass(class), 6) => {
                frame.bytes[l3] = 0x60 | class >> 4;
                frame.bytes[l3 + 1] = class << 4 | frame.bytes[l3 + 1] & 0x0f;
            }
            (Self::TimeToLive(limit), 6) => frame.bytes[l3 + 7] = limit,
            (Self::FlowLabel(label), 6) => {
                let [_, high, middle, low] = label.to_be_bytes();
                let class = frame.bytes[l3 + 1] & 0xf0;
                put(frame, l3 + 1, &[class | high & 0x0f, middle, low]);
            }
            (Self::ArpOperation(operation), 0) => put(frame, l3 + 6, &operation.to_be_bytes()),
            (Self::ArpSha(mac), 0) => put(frame, l3 + 8, &mac),
            (Self::ArpSpa(address), 0) => put(frame, l3 + 14, &address),
            (Self::ArpTha(mac), 0) => put(frame, l3 + 18, &mac),
            (Self::ArpTpa(address), 0) => put(frame, l3 + 24, &address),
            (_, 4 | 6) => {
                if let Some(l4) = layout.l4() {
                    self.apply_to_transport(frame, layout, l4);
                }
            }
            _ => {}
        }
    }

    fn apply_to_transport(&self, frame: &mut Frame, layout: Layout, l4: usize) {
        let icmp = matches!(layout.protocol(), 1 | 58);
        match *self {
            Self::SourcePort(port) if !icmp => change(frame, layout, l4, &port.to_be_bytes(), Covered::Transport),
            Self::DestinationPort(port) if !icmp => {
                change(frame, layout, l4 + 2, &port.to_be_bytes(), Covered::Transport);
            }
            Self::IcmpType(kind) if icmp => {
                let word = [kind, frame.bytes[l4 + 1]];
                change(frame, layout, l4, &word, Covered::Transport);
            }
            Self::IcmpCode(code) if icmp => {
                let word = [frame.bytes[l4], code];
                change(frame, layout, l4, &word, Covered::Transport);
            }
            Self::NdTarget(target) if is_neighbour_discovery(frame, layout, l4) => {
                change(frame, layout, l4 + 8, &target, Covered::Transport);
            }
            Self::NdSourceLink(mac) => set_link_address(frame, layout, l4, (135, 1), &mac),
            Self::NdTargetLink(mac) => set_link_address(frame, layout, l4, (136, 2), &mac),
            _ => {}
        }
    }
}

/// Returns the offset of the EtherType that a flow key has: behind the VLAN tags that are looked into.
fn eth_type_at(frame: &Frame) -> Option<usize> {
    let mut at = 12;
    for _ in 0..VLAN_TAGS {
        let &[high, low] = frame.bytes.get(at..at + 2)? else { return None };
        if !is_vlan_type(u16::from_be_bytes([high, low])) {
            break;
        }
        at += 4;
    }
    Some(at)
}

fn set_protocol(frame: &mut Frame, layout: Layout, protocol: u8) {
    let Some(l3) = layout.l3() else { return };
    match frame.bytes.get(l3).map_or(0, |first| first >> 4) {
        4 => {
            let word = [frame.bytes[l3 + 8], protocol];
            set_ipv4(frame, layout, l3, 8, &word, Covered::No);
        }
        6 => {
            let at = last_next_header(&frame.bytes, l3);
            put(frame, at, &[protocol]);
        }
        _ => {}
    }
}

/// Returns the offset of the number of what follows the extension headers of IPv6.
fn last_next_header(bytes: &[u8], l3: usize) -> usize {
    let (mut at, mut next) = (l3 + 6, l3 + 40);
    while let (Some(&kind), Some(&[_, units])) = (bytes.get(at), bytes.get(next..next + 2)) {
        // RFC 8200, 4; the length of an authentication header counts in words (RFC 4302, 2.2).
        let length = match kind {
            0 | 43 | 60 => 8 + 8 * usize::from(units),
            44 => 8,
            51 => 8 + 4 * usize::from(units),
            _ => break,
        };
        (at, next) = (next, next + length);
    }
    at
}

pub(crate) fn put(frame: &mut Frame, at: usize, new: &[u8]) {
    if let Some(place) = frame.bytes.get_mut(at..at + new.len()) {
        place.copy_from_slice(new);
    }
}

fn push_vlan(frame: &mut Frame, layout: &mut Layout, protocol: u16, tci: u16) {
    if frame.bytes.len() < 14 {
        return;
    }
    let ([a, b], [c, d]) = (protocol.to_be_bytes(), tci.to_be_bytes());
    frame.bytes.splice(12..12, [a, b, c, d]);
    shift(frame, layout, 4);
}

fn pop_vlan(frame: &mut Frame, layout: &mut Layout) {
    frame.bytes.drain(12..16);
    shift(frame, layout, -4);
}

/// All that counts offsets from the start of the frame follows a change of the Ethernet header's length.
pub(crate) fn shift(frame: &mut Frame, layout: &mut Layout, by: i16) {
    layout.shift(by);
    if let Some(offload) = &mut frame.offload {
        offload.header = offload.header.saturating_add_signed(by);
    }
    if let Checksum::Partial { start, .. } = &mut frame.checksum {
        *start = start.saturating_add_signed(by);
    }
}

/// Changes a place in the IPv4 header and its checksum, and what of the transport's sums the place.
fn set_ipv4(frame: &mut Frame, layout: Layout, l3: usize, at: usize, new: &[u8], covered: Covered) {
    let header = &mut frame.bytes[l3..];
    let before = u16::from_be_bytes([header[10], header[11]]);
    let after = checksum::update(before, &header[at..at + new.len()], new);
    header[10..12].copy_from_slice(&after.to_be_bytes());
    change(frame, layout, l3 + at, new, covered);
}

/// Changes a place and what of the transport's checksum sums it.
fn change(frame: &mut Frame, layout: Layout, at: usize, new: &[u8], covered: Covered) {
    let Some(old) = frame.bytes.get(at..at + new.len()) else { return };
    let sums = match (layout.protocol(), covered) {
        (_, Covered::No) => None,
        // The pseudo-header is no part of ICMP's checksum, nor of SCTP's.
        (1 | 132, Covered::PseudoHeader) => None,
        (6, _) => Some(16),
        (17, _) => Some(6),
        (1 | 58, _) => Some(2),
        _ => None,
    };
    if let (Some(offset), Some(l4)) = (sums, layout.l4()) {
        let field = l4 + offset;
        if let Some(&[high, low]) = frame.bytes.get(field..field + 2) {
            let before = u16::from_be_bytes([high, low]);
            let after = match (frame.checksum, covered) {
                // The bytes from the transport header on are still to be summed: only the pseudo-header is in the
                // field.
                (Checksum::Partial { .. }, Covered::Transport) => before,
                (Checksum::Partial { .. }, _) => checksum::update_sum(before, old, new),
                // A UDP sender that used no checksum (RFC 768).
                (Checksum::Complete, _) if layout.protocol() == 17 && before == 0 => 0,
                (Checksum::Complete, _) => match checksum::update(before, old, new) {
                    0 if layout.protocol() == 17 => 0xffff,
                    after => after,
                },
            };
            put(frame, field, &after.to_be_bytes());
        }
    }
    put(frame, at, new);
    if layout.protocol() == 132 && covered == Covered::Transport {
        finish_sctp(frame, layout);
    }
}

/// Computes SCTP's CRC anew: it has no cheap update worth its code. The elided payload counts as zeros.
fn finish_sctp(frame: &mut Frame, layout: Layout) {
    let (Some(l4), Checksum::Complete) = (layout.l4(), frame.checksum) else { return };
    let headers = [&frame.bytes[l4..l4 + 8], &[0; 4], &frame.bytes[l4 + 12..]];
    let crc = checksum::crc32c(&headers, u64::from(frame.elided));
    put(frame, l4 + 8, &crc.to_le_bytes());
}

fn is_neighbour_discovery(frame: &Frame, layout: Layout, l4: usize) -> bool {
    layout.protocol() == 58 && frame.bytes.len() >= l4 + 24 && matches!(frame.bytes[l4], 135 | 136)
}

fn set_link_address(frame: &mut Frame, layout: Layout, l4: usize, (message, option): (u8, u8), mac: &[u8; 6]) {
    if !is_neighbour_discovery(frame, layout, l4) || frame.bytes[l4] != message {
        return;
    }
    let places: Vec<_> = neighbour_options(&frame.bytes[l4..]).filter(|&(kind, _)| kind == option).collect();
    for (_, at) in places {
        change(frame, layout, l4 + at + 2, mac, Covered::Transport);
    }
}
