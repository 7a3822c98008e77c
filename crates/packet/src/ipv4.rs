//! IPv4 headers (RFC 791).

use std::fmt;
use std::net::Ipv4Addr;

use crate::big_endian::{array, get_u16, put_u16};
use crate::checksum;
use crate::malformed::{need, Malformed};

mod field {
    pub const VERSION_AND_LENGTH: usize = 0;
    pub const TRAFFIC_CLASS: usize = 1;
    pub const TOTAL_LENGTH: usize = 2;
    pub const IDENTIFICATION: usize = 4;
    pub const FRAGMENT: usize = 6;
    pub const TIME_TO_LIVE: usize = 8;
    pub const PROTOCOL: usize = 9;
    pub const CHECKSUM: usize = 10;
    pub const SOURCE: usize = 12;
    pub const DESTINATION: usize = 16;
}

/// Bytes of a header without options.
pub const HEADER_LENGTH: usize = 20;

/// A view of bytes as an IPv4 packet. The payload may be elided: the stored bytes may be fewer than the total length.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when the header is there in full.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::Field`] for another version or a header length below 20.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), HEADER_LENGTH)?;
        let packet = Self(bytes);
        let first = packet.0.as_ref()[field::VERSION_AND_LENGTH];
        if first >> 4 != 4 {
            return Err(Malformed::Field { field: "version", value: u32::from(first >> 4) });
        }
        let (header, total) = (packet.header_length(), usize::from(packet.total_length()));
        if header < HEADER_LENGTH {
            return Err(Malformed::Field { field: "header length", value: u32::from(first & 0x0f) });
        }
        need(packet.0.as_ref(), header)?;
        if total != 0 && total < header {
            return Err(Malformed::Field { field: "total length", value: packet.total_length().into() });
        }
        Ok(packet)
    }

    /// Bytes of the header, options included.
    pub fn header_length(&self) -> usize {
        usize::from(self.0.as_ref()[field::VERSION_AND_LENGTH] & 0x0f) * 4
    }

    /// Differentiated services code point and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.0.as_ref()[field::TRAFFIC_CLASS]
    }

    /// Bytes of header and payload; 0 in a super-segment that is too long to say.
    pub fn total_length(&self) -> u16 {
        get_u16(self.0.as_ref(), field::TOTAL_LENGTH)
    }

    /// Identification, for reassembly.
    pub fn identification(&self) -> u16 {
        get_u16(self.0.as_ref(), field::IDENTIFICATION)
    }

    /// Returns `true` if routers may not fragment it.
    pub fn dont_fragment(&self) -> bool {
        get_u16(self.0.as_ref(), field::FRAGMENT) & 0x4000 != 0
    }

    /// Returns `true` if more fragments follow.
    pub fn more_fragments(&self) -> bool {
        get_u16(self.0.as_ref(), field::FRAGMENT) & 0x2000 != 0
    }

    /// Returns the offset of this fragment in the payload, in bytes.
    pub fn fragment_offset(&self) -> u16 {
        (get_u16(self.0.as_ref(), field::FRAGMENT) & 0x1fff) << 3
    }

    /// Time to live.
    pub fn time_to_live(&self) -> u8 {
        self.0.as_ref()[field::TIME_TO_LIVE]
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> u8 {
        self.0.as_ref()[field::PROTOCOL]
    }

    /// Returns the source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.0.as_ref(), field::SOURCE))
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.0.as_ref(), field::DESTINATION))
    }

    /// Returns `true` if the header's checksum verifies.
    pub fn verify_checksum(&self) -> bool {
        checksum::checksum(&self.0.as_ref()[..self.header_length()]) == 0
    }

    /// The stored part of the payload: without the padding of a short frame.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.0.as_ref();
        let total = usize::from(self.total_length());
        let end = if total == 0 { bytes.len() } else { total.min(bytes.len()) };
        &bytes[self.header_length()..end]
    }
}

/// A header without options, of a packet that is no fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The source address.
    pub source: Ipv4Addr,
    /// The destination address.
    pub destination: Ipv4Addr,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Differentiated services code point and ECN.
    pub traffic_class: u8,
    /// Identification.
    pub identification: u16,
    /// `true` if routers may not fragment it.
    pub dont_fragment: bool,
    /// Time to live.
    pub time_to_live: u8,
    /// Bytes of the payload, at most 65515.
    pub payload_length: u16,
}

impl Repr {
    /// The header that a view shows; options are skipped.
    ///
    /// # Errors
    /// [`Malformed::Checksum`]; [`Malformed::Field`] for a fragment.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Malformed> {
        if !packet.verify_checksum() {
            return Err(Malformed::Checksum);
        }
        if packet.more_fragments() || packet.fragment_offset() != 0 {
            return Err(Malformed::Field { field: "fragment offset", value: packet.fragment_offset().into() });
        }
        // The header is at most 60 bytes long.
        let header = u16::try_from(packet.header_length()).unwrap_or(u16::MAX);
        Ok(Self {
            source: packet.source(),
            destination: packet.destination(),
            protocol: packet.protocol(),
            traffic_class: packet.traffic_class(),
            identification: packet.identification(),
            dont_fragment: packet.dont_fragment(),
            time_to_live: packet.time_to_live(),
            payload_length: packet.total_length().saturating_sub(header),
        })
    }

    /// Writes the header and its checksum to the first [`HEADER_LENGTH`] of `bytes`.
    pub fn emit(&self, bytes: &mut [u8]) {
        bytes[field::VERSION_AND_LENGTH] = 0x45;
        bytes[field::TRAFFIC_CLASS] = self.traffic_class;
        // A length that does not fit is written as 0, as for super-segments.
        put_u16(bytes, field::TOTAL_LENGTH, self.payload_length.checked_add(20).unwrap_or(0));
        put_u16(bytes, field::IDENTIFICATION, self.identification);
        put_u16(bytes, field::FRAGMENT, if self.dont_fragment { 0x4000 } else { 0 });
        bytes[field::TIME_TO_LIVE] = self.time_to_live;
        bytes[field::PROTOCOL] = self.protocol;
        put_u16(bytes, field::CHECKSUM, 0);
        bytes[field::SOURCE..field::DESTINATION].copy_from_slice(&self.source.octets());
        bytes[field::DESTINATION..HEADER_LENGTH].copy_from_slice(&self.destination.octets());
        let sum = checksum::checksum(&bytes[..HEADER_LENGTH]);
        put_u16(bytes, field::CHECKSUM, sum);
    }

    /// The sum of the pseudo-header for the payload.
    #[must_use]
    pub fn pseudo_header(&self) -> u16 {
        let (source, destination) = (self.source.octets(), self.destination.octets());
        checksum::pseudo_header_v4(source, destination, self.protocol, self.payload_length.into())
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv4 {} > {} protocol {} ttl {}", self.source, self.destination, self.protocol, self.time_to_live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 26] = [
        0x45, 0xb8, 0x00, 0x18, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0x13, 0xe5, 10, 0, 0, 1, 10, 0, 0, 4, //
        1, 2, 3, 4, 0, 0, // Payload, and padding of the frame.
    ];

    fn repr() -> Repr {
        Repr {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 4),
            protocol: 17,
            traffic_class: 0xb8,
            identification: 0x1234,
            dont_fragment: true,
            time_to_live: 64,
            payload_length: 4,
        }
    }

    #[test]
    fn deconstruct_and_construct() {
        let packet = Packet::new_checked(&BYTES).unwrap();
        assert_eq!(Repr::parse(&packet).unwrap(), repr());
        assert_eq!(packet.payload(), [1, 2, 3, 4]);
        let mut bytes = BYTES;
        bytes[..20].fill(0xff);
        repr().emit(&mut bytes);
        assert_eq!(bytes, BYTES);
        assert_eq!(repr().to_string(), "IPv4 10.0.0.1 > 10.0.0.4 protocol 17 ttl 64");
    }

    #[test]
    fn impossible_headers() {
        let with = |at: usize, value: u8| {
            let mut bytes = BYTES;
            bytes[at] = value;
            bytes
        };
        assert!(matches!(Packet::new_checked(&BYTES[..19]), Err(Malformed::Truncated { .. })));
        assert!(matches!(Packet::new_checked(&with(0, 0x65)), Err(Malformed::Field { field: "version", .. })));
        assert!(matches!(Packet::new_checked(&with(0, 0x44)), Err(Malformed::Field { field: "header length", .. })));
        assert!(matches!(Packet::new_checked(&with(0, 0x4f)), Err(Malformed::Truncated { needed: 60, .. })));
        assert!(matches!(Packet::new_checked(&with(3, 19)), Err(Malformed::Field { field: "total length", .. })));
        let corrupt = with(8, 63);
        assert_eq!(Repr::parse(&Packet::new_checked(&corrupt).unwrap()), Err(Malformed::Checksum));
    }

    #[test]
    fn a_fragment_is_seen_and_not_taken_for_a_packet() {
        let mut bytes = BYTES;
        put_u16(&mut bytes, 6, 0x2001);
        put_u16(&mut bytes, 10, 0);
        let sum = checksum::checksum(&bytes[..20]);
        put_u16(&mut bytes, 10, sum);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!((packet.more_fragments(), packet.fragment_offset()), (true, 8));
        assert!(matches!(Repr::parse(&packet), Err(Malformed::Field { value: 8, .. })));
    }
}
