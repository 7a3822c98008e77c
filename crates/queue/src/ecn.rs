//! Explicit congestion notification on the header bytes of a frame (RFC 3168): where the fields lie, and how they
//! are marked.

use twinnet_packet::{checksum, Frame};

const ETHERNET: usize = 14;
const VLAN_TAG: usize = 4;
/// The two bits of the ECN field (RFC 3168, 5): 00 is not ECN-capable, 11 says that congestion was experienced.
const ECN: u8 = 0b11;

/// Returns the offset of the network header and its EtherType, behind at most two VLAN tags.
pub fn network_header(bytes: &[u8]) -> Option<(usize, u16)> {
    let mut at = ETHERNET;
    for _ in 0..3 {
        let kind = u16::from_be_bytes([*bytes.get(at - 2)?, *bytes.get(at - 1)?]);
        if !matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
            return Some((at, kind));
        }
        at += VLAN_TAG;
    }
    None
}

/// Returns the traffic class of an IP packet (RFC 2474, 3): six bits of DSCP, then two of ECN.
pub fn traffic_class(frame: &Frame) -> Option<u8> {
    match network_header(&frame.bytes)? {
        (at, 0x0800) => frame.bytes.get(at + 1).copied(),
        (at, 0x86dd) => match frame.bytes.get(at..at + 2)? {
            [high, low] => Some(high << 4 | low >> 4),
            _ => None,
        },
        _ => None,
    }
}

/// Marks a frame (every frame of a train, which repeats the one header) as having met congestion. `false` when its
/// sender does not understand marks (RFC 3168, 5): it must be dropped instead. A frame that is marked already stays
/// so.
pub fn mark_congestion(frame: &mut Frame) -> bool {
    match network_header(&frame.bytes) {
        Some((at, 0x0800)) => mark_ipv4(&mut frame.bytes[at..]),
        Some((at, 0x86dd)) => mark_ipv6(&mut frame.bytes[at..]),
        _ => false,
    }
}

/// Returns `true` if a frame is marked as having met congestion.
pub fn is_congested(frame: &Frame) -> bool {
    match network_header(&frame.bytes) {
        Some((at, 0x0800)) => frame.bytes.get(at + 1).is_some_and(|class| class & ECN == ECN),
        Some((at, 0x86dd)) => frame.bytes.get(at + 1).is_some_and(|low| low >> 4 & ECN == ECN),
        _ => false,
    }
}

fn mark_ipv4(header: &mut [u8]) -> bool {
    if header.len() < 20 || header[0] >> 4 != 4 || header[1] & ECN == 0 {
        return false;
    }
    let (old, new) = ([header[0], header[1]], [header[0], header[1] | ECN]);
    let sum = checksum::update(u16::from_be_bytes([header[10], header[11]]), &old, &new);
    header[1] = new[1];
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    true
}

fn mark_ipv6(header: &mut [u8]) -> bool {
    // The traffic class lies across the first two bytes: its ECN bits are bits 4 and 5 of the second.
    if header.len() < 40 || header[0] >> 4 != 6 || header[1] >> 4 & ECN == 0 {
        return false;
    }
    header[1] |= ECN << 4;
    true
}
