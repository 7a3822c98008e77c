//! The facts that a capture tells of RTP by its header alone: whether a datagram is some, and what its payload is.

use twinnet_packet::rtp::Header;

/// The header of a UDP payload of `length` bytes that begins with `bytes`, if it can be RTP.
#[inline]
pub(crate) fn parse(bytes: &[u8], length: u32) -> Option<Header> {
    // Contributing sources must fit.
    Header::parse(bytes).filter(|header| !header.may_be_rtcp() && length as usize >= header.length())
}

/// The clock rate of a static payload type (RFC 3551, tables 4 and 5); `None` for dynamic and unassigned ones.
pub(crate) fn static_clock_rate(payload_type: u8) -> Option<u32> {
    match payload_type {
        0..=5 | 7..=9 | 12 | 13 | 15 | 18 | 19 => Some(8000),
        6 => Some(16_000),
        10 | 11 => Some(44_100),
        16 => Some(11_025),
        17 => Some(22_050),
        14 | 25 | 26 | 28 | 31..=34 => Some(90_000),
        _ => None,
    }
}

/// The name of a static payload type.
pub(crate) fn payload_name(payload_type: u8) -> String {
    match payload_type {
        0 => "PCMU",
        3 => "GSM",
        4 => "G723",
        5 | 6 | 16 | 17 => "DVI4",
        7 => "LPC",
        8 => "PCMA",
        9 => "G722",
        10 | 11 => "L16",
        12 => "QCELP",
        13 | 19 => "CN",
        14 => "MPA",
        15 => "G728",
        18 => "G729",
        25 => "CelB",
        26 => "JPEG",
        28 => "nv",
        31 => "H261",
        32 => "MPV",
        33 => "MP2T",
        34 => "H263",
        other => return other.to_string(),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_told_from_rtcp_and_noise() {
        let bytes = [0x80, 0xa1, 0x12, 0x34, 0, 0, 0, 9, 0xde, 0xad, 0xbe, 0xef];
        let header = parse(&bytes, 1328).unwrap();
        assert_eq!((header.marker, header.payload_type, header.sequence), (true, 33, 0x1234));
        assert_eq!((header.timestamp, header.source), (9, 0xdead_beef));
        let with = |at: usize, value: u8| {
            let mut changed = bytes;
            changed[at] = value;
            parse(&changed, 24)
        };
        assert_eq!(with(0, 0x40), None);
        assert_eq!(with(1, 200), None);
        assert_eq!(with(0, 0x84), None);
        assert!(with(0, 0x83).is_some());
        assert_eq!(parse(&bytes[..11], 11), None);
    }
}
