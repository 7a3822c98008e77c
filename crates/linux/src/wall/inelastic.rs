//! The traffic that does not slow down by itself: all but TCP (RFC 1633, 3.1, calls it inelastic).
//!
//! What a pause does to a queue depends on how fast more comes meanwhile (`busy_lines.rs`). TCP sends as its
//! acknowledgements return, so what it has under way is as much after a pause as before. Other traffic goes on by
//! the clock. The line of a host carries what that host has sent of it, and no other line carries more of it in a
//! second than all hosts together have sent.

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
}

impl Inelastic {
    /// A count that is `complete` if all traffic passes by it, from interfaces at the ports for which `read` is true.
    pub(crate) fn new(complete: bool, read: impl Iterator<Item = bool>) -> Self {
        Self { complete, wire_bytes: 0, of_port: read.map(|read| read.then_some(0)).collect() }
    }

    /// The host at `port` has sent `frame`.
    #[inline]
    pub(crate) fn came(&mut self, port: PortId, frame: &Frame) {
        if frame.carries_tcp() {
            return;
        }
        let bytes = frame.link_bytes() + frame.frames() * MOST_FRAMING;
        self.wire_bytes += bytes;
        if let Some(Some(of_port)) = self.of_port.get_mut(port.0 as usize) {
            *of_port += bytes;
        }
    }

    /// Returns the most bytes of such traffic, as they are on the wire, that the line from `port` can have carried;
    /// `None` if they are not known.
    pub(crate) fn most_on_line(&self, port: PortId) -> Option<u64> {
        let of_port = self.of_port.get(port.0 as usize).copied().flatten();
        of_port.or(self.complete.then_some(self.wire_bytes))
    }
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
        assert_eq!(sent.most_on_line(PortId(2)), Some(0));
        sent.came(PortId(0), &frame([0x08, 0x00], 23, 17));
        sent.came(PortId(1), &frame([0x86, 0xdd], 20, 17));
        sent.came(PortId(1), &frame([0x08, 0x06], 23, 6));
        let on_line = |port| sent.most_on_line(PortId(port)).unwrap();
        assert_eq!([on_line(0), on_line(1), on_line(2)], [1060, 2120, 3180]);
    }

    #[test]
    fn a_part_of_a_network_knows_only_the_lines_of_its_own_hosts() {
        let mut sent = Inelastic::new(false, [true, false].into_iter());
        sent.came(PortId(0), &frame([0x08, 0x00], 23, 17));
        assert_eq!((sent.most_on_line(PortId(0)), sent.most_on_line(PortId(1))), (Some(1060), None));
    }
}
