//! The new form of captures (draft-ietf-opsawg-pcapng): sections and interfaces, each with its byte order and its
//! clock.

use std::io;

use crate::reader::{Found, LONGEST_RECORD};
use crate::source::Source;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;
const OPTION_DROPPED: u16 = 5;

/// Type, length, and the length again at the end.
const FRAME: usize = 12;
/// Interfaces of one section that are remembered.
const MOST_INTERFACES: usize = 65_536;

/// The description of an interface in a block.
#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    snap: u32,
    /// The resolution as the option has it: a power of ten, or of two when the highest bit is set.
    resolution: u8,
    offset_s: i64,
}

impl Interface {
    /// Nanoseconds since 1970.
    #[inline]
    fn time_ns(&self, ticks: u64) -> Option<i64> {
        let exponent = u32::from(self.resolution & 0x7f);
        if self.resolution == 9 && self.offset_s == 0 {
            return i64::try_from(ticks).ok();
        }
        let ticks = u128::from(ticks);
        let nanoseconds = if self.resolution & 0x80 != 0 {
            (ticks * 1_000_000_000).checked_shr(exponent)?
        } else if exponent <= 9 {
            ticks * 10_u128.pow(9 - exponent)
        } else {
            10_u128.checked_pow(exponent - 9).map_or(0, |divisor| ticks / divisor)
        };
        let whole = i128::try_from(nanoseconds).ok()? + i128::from(self.offset_s) * 1_000_000_000;
        i64::try_from(whole).ok()
    }
}

/// The section that is being read.
#[derive(Default)]
pub(crate) struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
    lost_by_capture: u64,
    without_interface: u64,
}

impl Pcapng {
    #[inline]
    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    }

    fn half(&self, bytes: &[u8], at: usize) -> u16 {
        let two = [bytes[at], bytes[at + 1]];
        if self.big_endian {
            u16::from_be_bytes(two)
        } else {
            u16::from_le_bytes(two)
        }
    }

    pub(crate) fn next_packet(&mut self, source: &mut Source) -> io::Result<Found> {
        loop {
            if !source.need(FRAME)? {
                return Ok(if source.window().is_empty() { Found::End } else { Found::CutOff });
            }
            let window = source.window();
            // A section's type reads alike in both byte orders; its third word tells which it is.
            if window[..4] == SECTION_HEADER.to_be_bytes() {
                self.big_endian = match u32::from_be_bytes([window[8], window[9], window[10], window[11]]) {
                    BYTE_ORDER_MAGIC => true,
                    magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => false,
                    magic => return Ok(Found::Damaged(format!("a section has the byte-order mark {magic:08x}"))),
                };
                self.interfaces.clear();
            }
            let (kind, length) = (self.word(window, 0), self.word(window, 4));
            if length < FRAME as u32 || length % 4 != 0 {
                return Ok(Found::Damaged(format!(
                    "a block claims {length} bytes; at least 12, a multiple of 4, can be"
                )));
            }
            let looked_into = matches!(
                kind,
                INTERFACE_DESCRIPTION | OLD_PACKET | SIMPLE_PACKET | INTERFACE_STATISTICS | ENHANCED_PACKET
            );
            if !looked_into {
                if !source.discard(u64::from(length))? {
                    return Ok(Found::CutOff);
                }
                continue;
            }
            if length > LONGEST_RECORD + 65_536 {
                return Ok(Found::Damaged(format!("a block of type {kind} claims {length} bytes")));
            }
            let length = length as usize;
            if !source.need(length)? {
                return Ok(Found::CutOff);
            }
            let block = &source.window()[..length];
            if self.word(block, length - 4) as usize != length {
                return Ok(Found::Damaged(format!("a block of {length} bytes does not repeat its length at its end")));
            }
            let found = self.block(kind, length, &block[8..length - 4]);
            source.consume(length);
            match found {
                None => {}
                Some(found) => return Ok(found),
            }
        }
    }

    /// Returns what a block of `whole` bytes with `body` gives.
    fn block(&mut self, kind: u32, whole: usize, body: &[u8]) -> Option<Found> {
        let short = |need: usize| body.len() < need;
        let cannot_be = || Some(Found::Damaged(format!("a block of type {kind} has {} bytes, too few", body.len())));
        match kind {
            INTERFACE_DESCRIPTION if short(8) => cannot_be(),
            INTERFACE_DESCRIPTION => {
                let mut interface = Interface {
                    link: u32::from(self.half(body, 0)),
                    snap: self.word(body, 4),
                    resolution: 6,
                    offset_s: 0,
                };
                self.options(&body[8..], |section, code, value| match (code, value.len()) {
                    (OPTION_RESOLUTION, 1..) => interface.resolution = value[0],
                    (OPTION_OFFSET, 8..) => interface.offset_s = section.signed(value),
                    _ => {}
                });
                if self.interfaces.len() < MOST_INTERFACES {
                    self.interfaces.push(interface);
                }
                None
            }
            INTERFACE_STATISTICS if !short(12) => {
                let mut lost = 0;
                self.options(&body[12..], |section, code, value| {
                    if code == OPTION_DROPPED && value.len() >= 8 {
                        lost = section.signed(value).unsigned_abs();
                    }
                });
                self.lost_by_capture = self.lost_by_capture.saturating_add(lost);
                None
            }
            ENHANCED_PACKET if short(20) => cannot_be(),
            ENHANCED_PACKET => self.packet(self.word(body, 0), body, whole, 20),
            OLD_PACKET if short(20) => cannot_be(),
            OLD_PACKET => self.packet(u32::from(self.half(body, 0)), body, whole, 20),
            SIMPLE_PACKET if short(4) => cannot_be(),
            SIMPLE_PACKET => {
                let Some(interface) = self.interfaces.first() else {
                    self.without_interface += 1;
                    return None;
                };
                let original = self.word(body, 0);
                let kept = if interface.snap == 0 { original } else { original.min(interface.snap) };
                let length = (kept as usize).min(body.len() - 4);
                let after = whole - 12 - length;
                Some(Found::Packet { time_ns: None, link: interface.link, original_length: original, length, after })
            }
            _ => None,
        }
    }

    /// A packet whose bytes begin at `header`, with time, captured and original length in the words before.
    #[inline]
    fn packet(&mut self, interface: u32, body: &[u8], whole: usize, header: usize) -> Option<Found> {
        let captured = self.word(body, 12);
        if captured as usize > body.len() - header || captured > LONGEST_RECORD {
            let room = body.len() - header;
            return Some(Found::Damaged(format!(
                "a packet claims {captured} captured bytes in a block with room for {room}"
            )));
        }
        let Some(described) = self.interfaces.get(interface as usize) else {
            self.without_interface += 1;
            return None;
        };
        let ticks = u64::from(self.word(body, 4)) << 32 | u64::from(self.word(body, 8));
        let length = captured as usize;
        Some(Found::Packet {
            time_ns: described.time_ns(ticks),
            link: described.link,
            original_length: self.word(body, 16).max(captured),
            length,
            after: whole - 8 - header - length,
        })
    }

    fn signed(&self, value: &[u8]) -> i64 {
        let mut eight = [0; 8];
        eight.copy_from_slice(&value[..8]);
        if self.big_endian {
            i64::from_be_bytes(eight)
        } else {
            i64::from_le_bytes(eight)
        }
    }

    /// Walks options; one that is cut short ends the walk.
    fn options(&self, mut bytes: &[u8], mut each: impl FnMut(&Self, u16, &[u8])) {
        while bytes.len() >= 4 {
            let (code, length) = (self.half(bytes, 0), usize::from(self.half(bytes, 2)));
            let Some(value) = bytes.get(4..4 + length) else { return };
            if code == 0 {
                return;
            }
            each(self, code, value);
            bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.lost_by_capture > 0 {
            remarks.push(format!(
                "the capturing program says that it missed {} packets: counts are too low, and losses may be its own",
                self.lost_by_capture
            ));
        }
        if self.without_interface > 0 {
            remarks.push(format!(
                "{} packets name an interface that the file does not describe; they are left out",
                self.without_interface
            ));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(resolution: u8, offset_s: i64) -> Interface {
        Interface { link: 1, snap: 0, resolution, offset_s }
    }

    #[test]
    fn every_resolution_becomes_nanoseconds() {
        assert_eq!(interface(6, 0).time_ns(1_500_000), Some(1_500_000_000));
        assert_eq!(interface(9, 0).time_ns(7), Some(7));
        assert_eq!(interface(12, 0).time_ns(7_999), Some(7));
        assert_eq!(interface(0x80 | 10, 0).time_ns(1536), Some(1_500_000_000));
        assert_eq!(interface(0, 5).time_ns(3), Some(8_000_000_000));
        assert_eq!(interface(9, -1).time_ns(5), Some(-999_999_995));
    }

    #[test]
    fn times_that_do_not_fit_are_none() {
        assert_eq!(interface(9, 0).time_ns(u64::MAX), None);
        assert_eq!(interface(0, 0).time_ns(u64::MAX), None);
        assert_eq!(interface(9, i64::MAX).time_ns(0), None);
        assert_eq!(interface(127, 0).time_ns(u64::MAX), Some(0));
        assert_eq!(interface(0xff, 0).time_ns(u64::MAX), Some(0));
    }
}
