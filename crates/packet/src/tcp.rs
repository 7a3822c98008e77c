//! TCP headers (RFC 9293, 3.1) with the options that stacks use: MSS, window scale, SACK, timestamps.

use std::fmt;

use crate::big_endian::{get_u16, get_u32, put_u16, put_u32};
use crate::checksum;
use crate::malformed::{need, Malformed};

mod field {
    pub const SOURCE_PORT: usize = 0;
    pub const DESTINATION_PORT: usize = 2;
    pub const SEQUENCE: usize = 4;
    pub const ACKNOWLEDGEMENT: usize = 8;
    pub const OFFSET_AND_FLAGS: usize = 12;
    pub const WINDOW: usize = 14;
    pub const CHECKSUM: usize = 16;
    pub const URGENT: usize = 18;
}

mod option {
    pub const END: u8 = 0;
    pub const NOTHING: u8 = 1;
    pub const MAXIMUM_SEGMENT: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// Bytes of a header without options.
pub const HEADER_LENGTH: usize = 20;
/// The protocol number of TCP.
pub const PROTOCOL: u8 = 6;
/// SACK blocks that fit into the 40 bytes of options beside timestamps.
pub const SACK_BLOCKS: usize = 3;

/// Control bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Returns `true` if all of `flags` are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These flags and those.
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

/// A view of bytes as a TCP segment. The payload may be elided.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when the header is there in full.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::Field`] for a data offset below 5.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), HEADER_LENGTH)?;
        let packet = Self(bytes);
        let header = packet.header_length();
        if header < HEADER_LENGTH {
            return Err(Malformed::Field { field: "data offset", value: header as u32 / 4 });
        }
        need(packet.0.as_ref(), header)?;
        Ok(packet)
    }

    /// Bytes of the header, options included.
    pub fn header_length(&self) -> usize {
        usize::from(self.0.as_ref()[field::OFFSET_AND_FLAGS] >> 4) * 4
    }

    /// Port it comes from.
    pub fn source_port(&self) -> u16 {
        get_u16(self.0.as_ref(), field::SOURCE_PORT)
    }

    /// Port it goes to.
    pub fn destination_port(&self) -> u16 {
        get_u16(self.0.as_ref(), field::DESTINATION_PORT)
    }

    /// Sequence number of the first byte.
    pub fn sequence(&self) -> u32 {
        get_u32(self.0.as_ref(), field::SEQUENCE)
    }

    /// Sequence number that the sender expects next.
    pub fn acknowledgement(&self) -> u32 {
        get_u32(self.0.as_ref(), field::ACKNOWLEDGEMENT)
    }

    /// Control bits.
    pub fn flags(&self) -> Flags {
        Flags(get_u16(self.0.as_ref(), field::OFFSET_AND_FLAGS) & 0x0fff)
    }

    /// Receive window, unscaled.
    pub fn window(&self) -> u16 {
        get_u16(self.0.as_ref(), field::WINDOW)
    }

    /// Returns `true` if the checksum verifies, given the sum of the pseudo-header. Elided payload counts as zeros.
    pub fn verify_checksum(&self, pseudo_header: u16) -> bool {
        checksum::add(pseudo_header, checksum::sum(self.0.as_ref())) == 0xffff
    }

    /// The options.
    ///
    /// # Errors
    /// [`Malformed::Field`] for an option whose length is impossible.
    pub fn options(&self) -> Result<Options, Malformed> {
        Options::parse(&self.0.as_ref()[HEADER_LENGTH..self.header_length()])
    }

    /// The stored part of the payload.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_length()..]
    }
}

/// The options of a header that are understood; others are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Largest segment that the sender takes (in a SYN).
    pub maximum_segment: Option<u16>,
    /// Shift of the window (in a SYN; RFC 7323), at most 14.
    pub window_scale: Option<u8>,
    /// The sender understands SACK (in a SYN; RFC 2018).
    pub sack_permitted: bool,
    /// Value and echo (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// First and one past the last sequence number of blocks received out of order; unused ones are `None`, at the end.
    pub sack: [Option<(u32, u32)>; SACK_BLOCKS],
}

impl Options {
    /// Reads options up to their end.
    ///
    /// # Errors
    /// [`Malformed::Field`] for an option whose length is impossible.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut options = Self::default();
        let mut rest = bytes;
        while let Some(&kind) = rest.first() {
            match kind {
                option::END => break,
                option::NOTHING => {
                    rest = &rest[1..];
                    continue;
                }
                _ => {}
            }
            let length = usize::from(rest.get(1).copied().unwrap_or(0));
            if length < 2 || length > rest.len() {
                return Err(Malformed::Field { field: "option length", value: length as u32 });
            }
            options.take(kind, &rest[2..length]);
            rest = &rest[length..];
        }
        Ok(options)
    }

    /// Takes an option in; one of another length than its own is skipped.
    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value.len()) {
            (option::MAXIMUM_SEGMENT, 2) => self.maximum_segment = Some(get_u16(value, 0)),
            // RFC 7323, 2.3: a shift above 14 is to be taken as 14.
            (option::WINDOW_SCALE, 1) => self.window_scale = Some(value[0].min(14)),
            (option::SACK_PERMITTED, 0) => self.sack_permitted = true,
            (option::TIMESTAMPS, 8) => self.timestamps = Some((get_u32(value, 0), get_u32(value, 4))),
            (option::SACK, length) if length % 8 == 0 => {
                for (block, bytes) in self.sack.iter_mut().zip(value.chunks_exact(8)) {
                    *block = Some((get_u32(bytes, 0), get_u32(bytes, 4)));
                }
            }
            _ => {}
        }
    }

    fn sack_blocks(&self) -> usize {
        self.sack.iter().take_while(|block| block.is_some()).count()
    }

    /// Bytes that [`Options::emit`] writes: a multiple of 4.
    #[must_use]
    pub fn len(&self) -> usize {
        let sack = match self.sack_blocks() {
            0 => 0,
            blocks => 4 + blocks * 8,
        };
        let present = |there: bool, length: usize| if there { length } else { 0 };
        present(self.maximum_segment.is_some(), 4)
            + present(self.sack_permitted, 4)
            + present(self.timestamps.is_some(), 12)
            + present(self.window_scale.is_some(), 4)
            + sack
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the options to the first [`Options::len`] of `bytes`, each padded to 4 bytes in front, as Linux does.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut at = 0;
        let mut put = |head: [u8; 4], words: &[u32]| {
            bytes[at..at + 4].copy_from_slice(&head);
            at += 4;
            for &word in words {
                put_u32(bytes, at, word);
                at += 4;
            }
        };
        if let Some(size) = self.maximum_segment {
            let [high, low] = size.to_be_bytes();
            put([option::MAXIMUM_SEGMENT, 4, high, low], &[]);
        }
        if self.sack_permitted {
            put([option::NOTHING, option::NOTHING, option::SACK_PERMITTED, 2], &[]);
        }
        if let Some((value, echo)) = self.timestamps {
            put([option::NOTHING, option::NOTHING, option::TIMESTAMPS, 10], &[value, echo]);
        }
        if let Some(shift) = self.window_scale {
            put([option::NOTHING, option::WINDOW_SCALE, 3, shift], &[]);
        }
        let blocks = self.sack_blocks();
        if blocks > 0 {
            let words: Vec<_> = self.sack.iter().flatten().take(blocks).flat_map(|&(from, to)| [from, to]).collect();
            put([option::NOTHING, option::NOTHING, option::SACK, 2 + 8 * blocks as u8], &words);
        }
    }
}

/// A TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Port it comes from.
    pub source_port: u16,
    /// Port it goes to.
    pub destination_port: u16,
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// Sequence number that the sender expects next.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: Flags,
    /// Receive window, unscaled.
    pub window: u16,
    /// Options; together at most 40 bytes.
    pub options: Options,
}

impl Repr {
    /// The header that a view shows.
    ///
    /// # Errors
    /// [`Malformed::Checksum`]; [`Malformed::Field`] for impossible options or a port 0.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>, pseudo_header: u16) -> Result<Self, Malformed> {
        if !packet.verify_checksum(pseudo_header) {
            return Err(Malformed::Checksum);
        }
        if packet.source_port() == 0 || packet.destination_port() == 0 {
            return Err(Malformed::Field { field: "port", value: 0 });
        }
        Ok(Self {
            source_port: packet.source_port(),
            destination_port: packet.destination_port(),
            sequence: packet.sequence(),
            acknowledgement: packet.acknowledgement(),
            flags: packet.flags(),
            window: packet.window(),
            options: packet.options()?,
        })
    }

    /// Bytes of the header, options included.
    #[must_use]
    pub fn header_length(&self) -> usize {
        HEADER_LENGTH + self.options.len()
    }

    /// Writes the header before the payload that `bytes` holds from [`Repr::header_length`] on, and the checksum
    /// over all.
    pub fn emit(&self, bytes: &mut [u8], pseudo_header: u16) {
        let header = self.header_length();
        put_u16(bytes, field::SOURCE_PORT, self.source_port);
        put_u16(bytes, field::DESTINATION_PORT, self.destination_port);
        put_u32(bytes, field::SEQUENCE, self.sequence);
        put_u32(bytes, field::ACKNOWLEDGEMENT, self.acknowledgement);
        put_u16(bytes, field::OFFSET_AND_FLAGS, (header as u16 / 4) << 12 | self.flags.0 & 0x0fff);
        put_u16(bytes, field::WINDOW, self.window);
        put_u16(bytes, field::CHECKSUM, 0);
        put_u16(bytes, field::URGENT, 0);
        self.options.emit(&mut bytes[HEADER_LENGTH..header]);
        let sum = !checksum::add(pseudo_header, checksum::sum(bytes));
        put_u16(bytes, field::CHECKSUM, sum);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "TCP {} > {} seq {} ack {}",
            self.source_port, self.destination_port, self.sequence, self.acknowledgement
        )?;
        let names =
            [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::RST, "RST"), (Flags::PSH, "PSH"), (Flags::ACK, "ACK")];
        names.iter().filter(|(flag, _)| self.flags.has(*flag)).try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PSEUDO_HEADER: u16 = 0x1422;

    /// The header of a Linux SYN: MSS 1460, SACK permitted, timestamps, window scale 7. Checksum left out.
    const SYN: [u8; 40] = [
        0x9c, 0x40, 0x13, 0x8a, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, // Header
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7, // Options
    ];

    #[test]
    fn the_options_of_a_linux_syn_are_understood() {
        let options = Packet::new_checked(&SYN).unwrap().options().unwrap();
        let expected = Options {
            maximum_segment: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((9, 0)),
            sack: [None; 3],
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn deconstruct_and_construct() {
        let repr = Repr {
            source_port: 40000,
            destination_port: 5002,
            sequence: 1,
            acknowledgement: 7,
            flags: Flags::ACK.with(Flags::PSH),
            window: 0xfaf0,
            options: Options {
                timestamps: Some((9, 8)),
                sack: [Some((1, 2)), Some((5, 9)), None],
                ..Options::default()
            },
        };
        let mut bytes = vec![0xff; repr.header_length()];
        bytes.extend([1, 2, 3]);
        repr.emit(&mut bytes, PSEUDO_HEADER);
        assert_eq!(&bytes[..16], &[0x9c, 0x40, 0x13, 0x8a, 0, 0, 0, 1, 0, 0, 0, 7, 0xd0, 0x18, 0xfa, 0xf0]);
        assert_eq!(&bytes[20..36], &[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1, 5, 18]);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet, PSEUDO_HEADER), Ok(repr));
        assert_eq!(packet.payload(), [1, 2, 3]);
        assert_eq!(repr.to_string(), "TCP 40000 > 5002 seq 1 ack 7 PSH ACK");
        bytes[2] ^= 1;
        assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap(), PSEUDO_HEADER), Err(Malformed::Checksum));
    }

    #[test]
    fn impossible_headers() {
        assert!(matches!(Packet::new_checked(&SYN[..39]), Err(Malformed::Truncated { given: 39, needed: 40 })));
        let with = |at: usize, value: u8| {
            let mut bytes = SYN;
            bytes[at] = value;
            bytes
        };
        assert!(matches!(
            Packet::new_checked(&with(12, 0x40)),
            Err(Malformed::Field { field: "data offset", value: 4 })
        ));
        for length in [0, 1, 21] {
            let bytes = with(21, length);
            assert!(matches!(Packet::new_checked(&bytes).unwrap().options(), Err(Malformed::Field { .. })), "{length}");
        }
    }

    proptest! {
        #[test]
        fn options_read_back(
            maximum_segment in any::<Option<u16>>(),
            window_scale in prop::option::of(0_u8..15),
            sack_permitted in any::<bool>(),
            timestamps in any::<Option<(u32, u32)>>(),
            blocks in prop::collection::vec(any::<(u32, u32)>(), 0..2),
        ) {
            let mut options = Options { maximum_segment, window_scale, sack_permitted, timestamps,
                ..Options::default() };
            for (place, block) in options.sack.iter_mut().zip(blocks) {
                *place = Some(block);
            }
            let mut bytes = vec![0; options.len()];
            options.emit(&mut bytes);
            prop_assert_eq!(Options::parse(&bytes), Ok(options));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let _ = (packet.options(), packet.payload(), Repr::parse(&packet, 0));
            }
        }
    }
}
