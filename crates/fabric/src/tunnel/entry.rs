//! The entry of a tunnel: each becomes the outer frames that the underlay's queue and line see.

use std::collections::VecDeque;

use twinnet_packet::{Fragment, Frame};
use twinnet_queue::ecn::network_header;

use super::config::{OuterFragment, TunnelConfig};

/// The entry of a tunnel, at the sending port of a direction.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) config: TunnelConfig,
    /// Identification of the next packet (RFC 791).
    identification: u16,
    /// Outer frames of what was taken from a host's interface, of which the first is next to be sent.
    pub(crate) waiting: VecDeque<Box<Frame>>,
}

impl Entry {
    pub(crate) fn new(config: TunnelConfig) -> Self {
        Self { config, identification: 0, waiting: VecDeque::new() }
    }

    /// The outer frames that carry `frame`, frame by frame where it is a train. The second value counts the frames
    /// that are too long to go whole and may not be cut.
    pub(crate) fn encapsulate(&mut self, frame: Box<Frame>) -> (VecDeque<Box<Frame>>, u64) {
        let mut outer = VecDeque::with_capacity(2);
        let mut refused = 0;
        for single in frame.into_frames() {
            if self.config.takes(single.length()) {
                self.wrap(single, &mut outer);
            } else {
                refused += 1;
            }
        }
        (outer, refused)
    }

    fn wrap(&mut self, frame: Box<Frame>, outer: &mut VecDeque<Box<Frame>>) {
        let length = frame.length();
        let pieces = self.config.pieces(length);
        let whole_payload = length + u64::from(self.config.header_bytes());
        let mut fragment = OuterFragment {
            offset: 0,
            payload: 0,
            whole_payload,
            identification: self.identification,
            traffic_class: traffic_class(&frame),
        };
        self.identification = self.identification.wrapping_add(1);
        for payload in self.config.payloads(length) {
            fragment.payload = payload;
            let mut wrapped = Frame { queue: frame.queue, ..Frame::default() };
            self.config.emit_headers(fragment, &frame, &mut wrapped.bytes);
            // The headers of a tunnel fit into the first fragment unless the underlay's MTU is below 84 bytes.
            let end = usize::try_from(payload).unwrap_or(0) + 34;
            wrapped.bytes.truncate(end);
            wrapped.elided = u32::try_from(end - wrapped.bytes.len()).unwrap_or(0);
            outer.push_back(Box::new(wrapped));
            fragment.offset += payload;
        }
        let first = outer.len() - pieces.len();
        for (wrapped, carried) in outer.range_mut(first..).zip(Fragment::all(frame, &pieces)) {
            wrapped.fragment = Some(carried);
        }
    }
}

/// The traffic class of the packet in `frame`; 0 when it is not IP.
fn traffic_class(frame: &Frame) -> u8 {
    match network_header(&frame.bytes) {
        Some((at, 0x0800)) => frame.bytes.get(at + 1).copied().unwrap_or(0),
        Some((at, 0x86dd)) => match frame.bytes.get(at..at + 2) {
            Some(&[high, low]) => high << 4 | low >> 4,
            _ => 0,
        },
        _ => 0,
    }
}
