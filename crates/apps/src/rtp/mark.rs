//! The mark that our sources put behind the [header of RTP](twinnet_packet::rtp).
//!
//! The payload is a transport stream (RFC 2250, payload type 33): whole packets of 188 bytes. Its first packet is a
//! null packet (ISO 13818-1, PID 0x1fff) whose content is our mark: flow, send time, and which frames the RTP
//! packet carries parts of. A player passes over it; a sink that finds none counts what RTP alone tells.

use twinnet_packet::rtp::{Header, HEADER_LENGTH};

/// Bytes of a packet of a transport stream.
pub const TS_LENGTH: u32 = 188;
/// Packets of the transport stream in one of RTP.
pub const TS_PER_PACKET: u32 = 7;
/// Parts of frames that a packet can hold: each takes a packet of the transport stream.
pub const MOST_PARTS: usize = TS_PER_PACKET as usize;
/// The header of a null packet: sync byte, PID 0x1fff, payload only.
const NULL_PACKET: [u8; 4] = [0x47, 0x1f, 0xff, 0x10];
const MAGIC: [u8; 4] = *b"twR1";
const MARK_START: usize = HEADER_LENGTH + NULL_PACKET.len() + MAGIC.len();
const PART_LENGTH: usize = 9;
/// Bytes of a packet that [`Mark::emit_behind`] fills at most.
const FRONT_LENGTH: usize = MARK_START + 13 + MOST_PARTS * PART_LENGTH;

/// A part of a frame in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The frame's number.
    pub frame: u32,
    /// Packets of the transport stream that are here.
    pub here: u8,
    /// And that the frame has in all.
    pub whole: u32,
}

/// The mark that our source sets in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The flow's number.
    pub flow: u32,
    /// The time when it was sent, ns of the lab's clock.
    pub sent_ns: u64,
    /// Parts of frames; the first `parts` count.
    pub content: [Part; MOST_PARTS],
    /// The number of parts.
    pub parts: u8,
}

impl Mark {
    /// The packet's front: `header` and this mark.
    #[must_use]
    pub fn emit_behind(&self, header: &Header) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FRONT_LENGTH);
        bytes.extend_from_slice(&header.emit());
        bytes.extend_from_slice(&NULL_PACKET);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.flow.to_be_bytes());
        bytes.extend_from_slice(&self.sent_ns.to_be_bytes());
        bytes.push(self.parts);
        for part in self.content.iter().take(usize::from(self.parts)) {
            bytes.extend_from_slice(&part.frame.to_be_bytes());
            bytes.push(part.here);
            bytes.extend_from_slice(&part.whole.to_be_bytes());
        }
        bytes
    }

    /// Reads the mark of a packet whose payload begins at `start`; `None` for foreign ones.
    #[must_use]
    pub fn parse(bytes: &[u8], start: usize) -> Option<Self> {
        let rest = bytes.get(start..)?.strip_prefix(&NULL_PACKET)?.strip_prefix(&MAGIC)?;
        let (flow, rest) = rest.split_first_chunk::<4>()?;
        let (sent, rest) = rest.split_first_chunk::<8>()?;
        let (&parts, mut rest) = rest.split_first()?;
        if usize::from(parts) > MOST_PARTS {
            return None;
        }
        let mut content = [Part::default(); MOST_PARTS];
        for part in content.iter_mut().take(usize::from(parts)) {
            let (one, after) = rest.split_first_chunk::<PART_LENGTH>()?;
            let [a, b, c, d, here, e, f, g, h] = *one;
            *part = Part { frame: u32::from_be_bytes([a, b, c, d]), here, whole: u32::from_be_bytes([e, f, g, h]) };
            rest = after;
        }
        Some(Self { flow: u32::from_be_bytes(*flow), sent_ns: u64::from_be_bytes(*sent), content, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: Header = Header {
        padded: false,
        extended: false,
        contributing: 0,
        marker: false,
        payload_type: 33,
        sequence: 65_535,
        timestamp: 7,
        source: 0x1234_5678,
    };

    #[test]
    fn a_packet_is_read_from_the_bytes_that_were_written() {
        let mut content = [Part::default(); MOST_PARTS];
        content[0] = Part { frame: 9, here: 5, whole: 1000 };
        content[1] = Part { frame: 10, here: 2, whole: 2 };
        let mark = Mark { flow: 3, sent_ns: 1_000_000_007, content, parts: 2 };
        let bytes = mark.emit_behind(&HEADER);
        assert_eq!(bytes[..12], [0x80, 33, 0xff, 0xff, 0, 0, 0, 7, 0x12, 0x34, 0x56, 0x78]);
        assert_eq!(Header::parse(&bytes), Some(HEADER));
        assert_eq!(Mark::parse(&bytes, 12), Some(mark));
        assert!((0..bytes.len()).all(|cut| Mark::parse(&bytes[..cut], 12).is_none()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120), start in 0_usize..200) {
            let _ = Header::parse(&bytes).and_then(|header| header.payload_start(&bytes, bytes.len()));
            let _ = Mark::parse(&bytes, start);
        }
    }
}
