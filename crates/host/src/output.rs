//! The last steps of every packet that this host sends: lengths, identification, and fragments where it is longer
//! than the path takes.

use twinnet_packet::{checksum, Checksum, Frame};

use super::fragments;
use super::interface::Charge;
use super::path::{Path, L3};
use super::stack::{Stack, Turn};

impl Stack {
    /// Sends a frame that begins with the headers of `path`. Like Linux's sockets by default, it asks routers not
    /// to fragment it, unless it must be fragmented here already.
    pub(super) fn ship(&mut self, frame: Box<Frame>, path: &Path, charge: Charge, turn: &mut Turn<'_>) {
        self.ship_as(frame, path, 0, charge, turn);
    }

    /// As [`Stack::ship`], with a traffic class.
    pub(super) fn ship_as(
        &mut self,
        mut frame: Box<Frame>,
        path: &Path,
        traffic_class: u8,
        charge: Charge,
        turn: &mut Turn<'_>,
    ) {
        let length = frame.length();
        let payload = length - path.header_length() as u64;
        if length - L3 as u64 <= u64::from(path.mtu) {
            path.seal(&mut frame.bytes, payload as u16, 0, true, traffic_class);
            self.transmit(frame, path, charge, turn);
        } else {
            self.ship_in_fragments(frame, path, traffic_class, charge, turn);
        }
    }

    /// As [`Stack::ship`], for messages that routers may fragment: answers to echo requests, and ICMP errors.
    pub(super) fn ship_loosely(&mut self, mut frame: Box<Frame>, path: &Path, traffic_class: u8, turn: &mut Turn<'_>) {
        let length = frame.length();
        if length - L3 as u64 > u64::from(path.mtu) {
            return self.ship_in_fragments(frame, path, traffic_class, Charge::NONE, turn);
        }
        let identification = (self.next_identification() & 0xffff) as u16;
        let payload = (length - path.header_length() as u64) as u16;
        path.seal(&mut frame.bytes, payload, identification, false, traffic_class);
        self.transmit(frame, path, Charge::NONE, turn);
    }

    fn ship_in_fragments(
        &mut self,
        mut frame: Box<Frame>,
        path: &Path,
        traffic_class: u8,
        charge: Charge,
        turn: &mut Turn<'_>,
    ) {
        // The checksum covers the whole; the fragments carry it as it is.
        frame.finish_checksum();
        frame.checksum = Checksum::Complete;
        let identification = self.next_identification();
        let payload = (frame.length() - path.header_length() as u64).min(u64::from(u16::MAX)) as u16;
        path.seal(&mut frame.bytes, payload, (identification & 0xffff) as u16, false, traffic_class);
        let pieces = if path.source.is_ipv4() {
            fragments::cut_v4(&frame, path.mtu)
        } else {
            fragments::cut_v6(&frame, path.mtu, identification)
        };
        turn.pool.recycle(frame);
        // All is charged to the last: the socket has room again when the whole has left.
        let last = pieces.len().saturating_sub(1);
        if pieces.is_empty() {
            self.counters.too_big += 1;
            self.credit(charge);
        }
        for (place, piece) in pieces.into_iter().enumerate() {
            self.transmit(Box::new(piece), path, if place == last { charge } else { Charge::NONE }, turn);
        }
    }
}

/// Adds `length` to the pseudo-header's sum `sum`, over a finished message in `bytes`: its checksum.
pub(super) fn finished_checksum(sum: u16, bytes: &[u8]) -> u16 {
    !checksum::add(sum, checksum::sum(bytes))
}
