//! Writing captures in the pcapng format (draft-ietf-opsawg-pcapng), block by block into a buffer.
//!
//! A capture begins with [`section_header`], then one [`interface_description`] for each interface, counted from 0
//! in that order; then any number of [`enhanced_packet`]. Blocks are little-endian.

use twinnet_units::Time;

use crate::frame::Frame;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINK_TYPE_ETHERNET: u16 = 1;

const END_OF_OPTIONS: u16 = 0;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const TIMESTAMP_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// The direction in which a frame passed an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The interface received it.
    Inbound,
    /// The interface sent it.
    Outbound,
}

/// Appends a block of `kind` with what `body` writes.
fn block(into: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    into.extend(kind.to_le_bytes());
    into.extend([0; 4]);
    body(into);
    // A block is a body and twelve bytes; a frame's length is a u32, and captured bytes are cut to fit.
    let length = u32::try_from(into.len() - start + 4).unwrap_or(u32::MAX).to_le_bytes();
    into.extend(length);
    into[start + 4..start + 8].copy_from_slice(&length);
}

fn pad(into: &mut Vec<u8>, length: usize) {
    into.extend(std::iter::repeat_n(0, length.next_multiple_of(4) - length));
}

fn option(into: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    into.extend(code.to_le_bytes());
    into.extend((value.len() as u16).to_le_bytes());
    into.extend(value);
    pad(into, value.len());
}

/// Appends the section header that begins a capture.
pub fn section_header(into: &mut Vec<u8>, application: &str) {
    block(into, SECTION_HEADER, |into| {
        into.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        into.extend(1_u16.to_le_bytes());
        into.extend(0_u16.to_le_bytes());
        into.extend(u64::MAX.to_le_bytes()); // The section's length is not known.
        option(into, SECTION_APPLICATION, application.as_bytes());
        option(into, END_OF_OPTIONS, &[]);
    });
}

/// Appends the description of the next Ethernet interface, whose timestamps are in nanoseconds. `snap` is the most
/// that is captured of a frame; 0 means all.
pub fn interface_description(into: &mut Vec<u8>, name: &str, snap: u32) {
    block(into, INTERFACE_DESCRIPTION, |into| {
        into.extend(LINK_TYPE_ETHERNET.to_le_bytes());
        into.extend(0_u16.to_le_bytes());
        into.extend(snap.to_le_bytes());
        option(into, INTERFACE_NAME, name.as_bytes());
        option(into, TIMESTAMP_RESOLUTION, &[9]);
        option(into, END_OF_OPTIONS, &[]);
    });
}

/// Appends one frame that passed `interface` at `time`, `epoch_ns` being the lab's zero in nanoseconds since 1970.
/// At most `snap` bytes are kept (0: all). Elided payload shows as an original length beyond the captured one.
///
/// A train and an unfinished checksum are written as they are: see [`Frame::into_frames`] and
/// [`Frame::finish_checksum`].
pub fn enhanced_packet(
    into: &mut Vec<u8>,
    interface: u32,
    time: Time,
    epoch_ns: u64,
    frame: &Frame,
    direction: Direction,
    snap: u32,
) {
    let most = if snap == 0 { u32::MAX } else { snap } as usize;
    let captured = &frame.bytes[..frame.bytes.len().min(most).min(i32::MAX as usize)];
    let timestamp = epoch_ns.saturating_add(time.as_ns());
    block(into, ENHANCED_PACKET, |into| {
        into.extend(interface.to_le_bytes());
        into.extend(((timestamp >> 32) as u32).to_le_bytes());
        into.extend((timestamp as u32).to_le_bytes());
        into.extend((captured.len() as u32).to_le_bytes());
        into.extend(u32::try_from(frame.length()).unwrap_or(u32::MAX).to_le_bytes());
        into.extend(captured);
        pad(into, captured.len());
        let flags: u32 = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        option(into, PACKET_FLAGS, &flags.to_le_bytes());
        option(into, END_OF_OPTIONS, &[]);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn an_interface_has_its_name_and_nanoseconds() {
        let mut bytes = Vec::new();
        interface_description(&mut bytes, "s1-eth1", 96);
        let expected = [
            &[1, 0, 0, 0, 44, 0, 0, 0, 1, 0, 0, 0, 96, 0, 0, 0, 2, 0, 7, 0][..],
            b"s1-eth1\0",
            &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn elided_payload_shows_in_the_original_length() {
        let mut frame = Frame::new(vec![7; 54]);
        frame.elided = 1446;
        let mut bytes = Vec::new();
        enhanced_packet(&mut bytes, 3, Time::from_ns(5), 1 << 32, &frame, Direction::Outbound, 0);
        let words: Vec<_> = (0..7).map(|index| word(&bytes, index * 4)).collect();
        assert_eq!(words, [6, bytes.len() as u32, 3, 1, 5, 54, 1500]);
        assert_eq!(&bytes[28 + 56..], &[2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn blocks_can_be_walked_from_both_ends(
            name in "[a-z0-9-]{0,20}", lengths in prop::collection::vec(0_usize..100, 0..5), snap in 0_u32..50,
        ) {
            let mut bytes = Vec::new();
            section_header(&mut bytes, &name);
            interface_description(&mut bytes, &name, snap);
            for &length in &lengths {
                enhanced_packet(&mut bytes, 0, Time::ZERO, 0, &Frame::new(vec![1; length]), Direction::Inbound, snap);
            }
            let mut at = 0;
            let mut blocks = 0;
            while at < bytes.len() {
                let length = word(&bytes, at + 4) as usize;
                prop_assert_eq!(length % 4, 0);
                prop_assert_eq!(word(&bytes, at + length - 4) as usize, length);
                at += length;
                blocks += 1;
            }
            prop_assert_eq!(blocks, 2 + lengths.len());
        }
    }
}
