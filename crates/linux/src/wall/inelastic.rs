//! The traffic that does not slow down by itself: all but TCP (RFC 1633, 3.1, calls it inelastic).
//!
//! What a pause does to a queue depends on how fast more comes meanwhile (`busy_lines.rs`). TCP sends as its
//! acknowledgements return, so what it has under way is as much after a pause as before. Other traffic goes on by
//! the clock. The line of a host carries what that host has sent of it, the line to a host what that host was handed
//! of it, and no other line carries more of it in a second than all hosts together have sent.

use twinnet_fabric::PortId;
use twinnet_packet::Frame;

/// Bytes that a frame may take on a wire beyond those that its host wrote: FCS, preamble, the gap, tags and labels.
const MOST_FRAMING: u64 = 60;

/// Counts what the hosts have sent of such traffic.
#[derive(Clone, Debug)]
pub struct Inelastic {
    /// `false` if some traffic does not pass here.
    complete: bool,
    wire_bytes: u64,
    /// The same by the port that it came from.
    of_port: Vec<Option<u64>>,
    /// What was handed to the host at each port.
    to_port: Vec<Option<u64>>,
}

impl Inelastic {
    /// A count that is `complete` if all traffic passes by it, from interfaces at the ports for which `read` is true.
    pub(crate) fn new(complete: bool, read: impl Iterator<Item = bool>) -> Self {
        let of_port: Vec<_> = read.map(|read| read.then_some(0)).collect();
        Self { complete, wire_bytes: 0, to_port: of_port.clone(), of_port }
    }

    /// The host at `port` has sent `frame`.
    #[inline]
    pub(crate) fn came(&mut self, port: PortId, frame: &Frame) {
        let Some(bytes) = most_wire_bytes(frame) else { return };
        self.wire_bytes += bytes;
        if let Some(Some(of_port)) = self.of_port.get_mut(port.0 as usize) {
            *of_port += bytes;
        }
    }

    /// The host at `port` is handed `frame`.
    #[inline]
    pub(crate) fn went(&mut self, port: PortId, frame: &Frame) {
        if let (Some(Some(to_port)), Some(bytes)) = (self.to_port.get_mut(port.0 as usize), most_wire_bytes(frame)) {
            *to_port += bytes;
        }
    }

    /// Returns the most bytes of such traffic, as they are on the wire, that the line from `port` can have carried;
    /// `None` if they are not known. All that it carries comes to `end` at once, where that is given.
    pub(crate) fn most_on_line(&self, port: PortId, end: Option<PortId>) -> Option<u64> {
        let at = |counts: &[Option<u64>], port: PortId| counts.get(port.0 as usize).copied().flatten();
        let known = at(&self.of_port, port).or_else(|| at(&self.to_port, end?));
        known.or(self.complete.then_some(self.wire_bytes))
    }
}

/// The most bytes that `frame` takes on a wire, if it is of such traffic.
#[inline]
fn most_wire_bytes(frame: &Frame) -> Option<u64> {
    (!frame.carries_tcp()).then(|| frame.link_bytes() + frame.frames() * MOST_FRAMING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: [u8; 2], at: usize, protocol: u8) -> Frame {
        let mut bytes = vec![0; 1000];
        bytes[12..14].copy_from_slice(&kind);
        bytes[at] = protocol;
        Frame::new(bytes)
    }

    #[test]
    fn a_line_carries_at_most_what_its_host_or_all_hosts_sent_beside_tcp() {
        let mut sent = Inelastic::new(true, [true, true, false].into_iter());
        sent.came(PortId(0), &frame([0x08, 0x00], 23, 6));
        sent.came(PortId(0), &frame([0x86, 0xdd], 20, 6));
        assert_eq!(sent.most_on_line(PortId(2), None), Some(0));
        sent.came(PortId(0), &frame([0x08, 0x00], 23, 17));
        sent.came(PortId(1), &frame([0x86, 0xdd], 20, 17));
        sent.came(PortId(1), &frame([0x08, 0x06], 23, 6));
        let on_line = |port| sent.most_on_line(PortId(port), None).unwrap();
        assert_eq!([on_line(0), on_line(1), on_line(2)], [1060, 2120, 3180]);
    }

    #[test]
    fn a_part_of_a_network_knows_only_the_lines_of_its_own_hosts() {
        let mut sent = Inelastic::new(false, [true, false].into_iter());
        sent.came(PortId(0), &frame([0x08, 0x00], 23, 17));
        assert_eq!((sent.most_on_line(PortId(0), None), sent.most_on_line(PortId(1), None)), (Some(1060), None));
    }

    #[test]
    fn the_line_to_a_host_carries_what_the_host_was_handed() {
        let mut sent = Inelastic::new(true, [true, true, false].into_iter());
        sent.came(PortId(0), &frame([0x08, 0x00], 23, 17));
        sent.went(PortId(1), &frame([0x08, 0x00], 23, 6));
        let to_the_other = |sent: &Inelastic| sent.most_on_line(PortId(2), Some(PortId(1))).unwrap();
        assert_eq!(to_the_other(&sent), 0, "TCP alone, though another host sent a datagram");
        sent.went(PortId(1), &frame([0x08, 0x00], 23, 17));
        assert_eq!(to_the_other(&sent), 1060);
        // A line whose end is no host, or that is not said to bring all at once.
        assert_eq!(sent.most_on_line(PortId(2), Some(PortId(2))), Some(1060));
        assert_eq!(sent.most_on_line(PortId(1), None), Some(0));
    }
}
