//! The flow that a frame belongs to, as a hash: addresses, protocol and ports.

use twinnet_packet::Frame;
use twinnet_units::random::mix;

use super::ecn::network_header;

/// A hash of the frame's flow under `salt`. Fragments go by their addresses and protocol, and what is not IP by its
/// Ethernet addresses and type. Marks, hop counts and TCP flags do not matter.
pub fn flow_hash(frame: &Frame, salt: u64) -> u64 {
    let bytes = &frame.bytes[..];
    match network_header(bytes) {
        Some((at, 0x0800)) if bytes.len() >= at + 20 => ipv4(&bytes[at..], salt),
        Some((at, 0x86dd)) if bytes.len() >= at + 40 => ipv6(&bytes[at..], salt),
        _ => {
            let mut head = [0; 16];
            let known = bytes.len().min(14);
            head[..known].copy_from_slice(&bytes[..known]);
            mix(mix(salt ^ word(&head, 0)) ^ word(&head, 8))
        }
    }
}

fn ipv4(header: &[u8], salt: u64) -> u64 {
    let protocol = header[9];
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let ports = if is_fragment { 0 } else { ports(protocol, header, usize::from(header[0] & 0x0f) * 4) };
    mix(mix(salt ^ word(header, 12)) ^ (u64::from(ports) << 8 | u64::from(protocol)))
}

fn ipv6(header: &[u8], salt: u64) -> u64 {
    let protocol = header[6];
    let addresses = [8, 16, 24, 32].iter().fold(salt, |hash, &at| mix(hash ^ word(header, at)));
    mix(addresses ^ (u64::from(ports(protocol, header, 40)) << 8 | u64::from(protocol)))
}

/// Both ports of TCP, UDP and SCTP, which begin alike.
fn ports(protocol: u8, header: &[u8], at: usize) -> u32 {
    match (protocol, header.get(at..at + 4)) {
        (6 | 17 | 132, Some(&[a, b, c, d])) => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}
