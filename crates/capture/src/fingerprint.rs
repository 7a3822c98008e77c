//! The part of a packet that stays the same on its way: a number by which it is known again in another capture.
//!
//! Routers lower the time to live and mark the traffic class; cards fill in checksums; links add VLAN tags and
//! tunnels: none of that counts. What counts is the innermost packet: addresses, protocol, identification, place in
//! its datagram, ports, sequence numbers and the first bytes of payload.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::decode::{decode, Layer, Transport};
use crate::reader::Record;

/// A packet known by what stays the same of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The same for the same packet; equal for different packets once in 2^64.
    pub print: u64,
    /// The same for all packets of one direction of a conversation.
    pub flow: u64,
    /// `true` if fewer bytes of payload were captured than are looked at.
    pub cut: bool,
}

/// Takes fingerprints.
#[derive(Clone, Copy, Debug)]
pub struct Prints {
    /// Bytes of payload that are looked at.
    pub payload_bytes: usize,
}

/// A stronger end of the hash than the table's: all 64 bits are compared.
fn finished(value: u64) -> u64 {
    let value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

impl Prints {
    /// The fingerprint of a record with its innermost network packet; `None` where there is none.
    #[must_use]
    pub fn of<'a>(&self, record: &Record<'a>) -> Option<(Fingerprint, Layer<'a>)> {
        let mut innermost = None;
        decode(record.link.ok()?, record.bytes, |layer| innermost = Some(*layer));
        let layer = innermost?;
        let mut hasher = FxHasher::default();
        for address in [layer.source, layer.destination] {
            hasher.write_u64((address >> 64) as u64);
            hasher.write_u64(address as u64);
        }
        hasher.write_u8(layer.protocol);
        let (source, destination) = layer.transport.ports();
        hasher.write_u32(u32::from(source) << 16 | u32::from(destination));
        let flow = finished(hasher.finish());
        let mut hasher = FxHasher::default();
        hasher.write_u64(flow);
        hasher.write_u32(layer.identification);
        hasher.write_u32(layer.payload_length);
        hasher.write_u32(layer.fragment.map_or(u32::MAX, |fragment| fragment.offset << 1 | u32::from(fragment.more)));
        if let Transport::Tcp { sequence, acknowledgement, flags, window, .. } = layer.transport {
            hasher.write_u64(u64::from(sequence) << 32 | u64::from(acknowledgement));
            // Routers may set the two bits of congestion notification nowhere but in the IP header.
            hasher.write_u32(u32::from(flags) << 16 | u32::from(window));
        }
        let (header, length) = layer.transport.payload().unwrap_or((0, layer.payload_length));
        let wanted =
            self.payload_bytes.min(length as usize).min((layer.payload_length as usize).saturating_sub(header));
        let begin = layer.payload.get(header..).unwrap_or(&[]);
        let begin = &begin[..begin.len().min(wanted)];
        // The type of ICMP and the checksum after it belong to the payload here; neither changes on the way.
        hasher.write(begin);
        let fingerprint = Fingerprint { print: finished(hasher.finish()), flow, cut: begin.len() < wanted };
        Some((fingerprint, layer))
    }
}
