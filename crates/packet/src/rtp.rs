//! The fixed header of RTP (RFC 3550, section 5.1).
//!
//! ```text
//!  0               1               2               4               8              12
//! +---------------+---------------+---------------+---------------+---------------+
//! | V=2 P X CC    | M  PT         | sequence      | timestamp     | SSRC          |
//! +---------------+---------------+---------------+---------------+---------------+
//! ```

/// Bytes of the header without contributing sources.
pub const HEADER_LENGTH: usize = 12;

/// Payload types that would be RTCP's packet types 192 to 223 with the marker bit (RFC 5761, section 4).
const RTCP: std::ops::RangeInclusive<u8> = 64..=95;

/// The fixed header's fields; the version is 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// P: the payload ends with padding.
    pub padded: bool,
    /// X: an extension follows the contributing sources.
    pub extended: bool,
    /// CC: how many contributing sources of 4 bytes follow, 0 to 15.
    pub contributing: u8,
    /// M: the profile's marker.
    pub marker: bool,
    /// PT: payload type, 0 to 127.
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp in units of the payload's clock.
    pub timestamp: u32,
    /// SSRC: synchronisation source.
    pub source: u32,
}

impl Header {
    /// Reads the fixed header from the first bytes of a datagram; `None` when they are too few or of another version.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let fixed: &[u8; HEADER_LENGTH] = bytes.first_chunk()?;
        (fixed[0] >> 6 == 2).then(|| Self {
            padded: fixed[0] & 0x20 != 0,
            extended: fixed[0] & 0x10 != 0,
            contributing: fixed[0] & 0x0f,
            marker: fixed[1] & 0x80 != 0,
            payload_type: fixed[1] & 0x7f,
            sequence: u16::from_be_bytes([fixed[2], fixed[3]]),
            timestamp: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            source: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        })
    }

    /// Returns `true` if a packet of RTCP on the same port would look so (RFC 5761, section 4).
    #[inline]
    #[must_use]
    pub fn may_be_rtcp(&self) -> bool {
        self.marker && RTCP.contains(&self.payload_type)
    }

    /// Bytes of this header and its contributing sources, without the extension.
    #[inline]
    #[must_use]
    pub fn length(&self) -> usize {
        HEADER_LENGTH + usize::from(self.contributing) * 4
    }

    /// Returns the offset of the payload, behind the extension if there is one, in a datagram of `length` bytes of
    /// which `bytes` are the first; `None` when the datagram ends before.
    #[must_use]
    pub fn payload_start(&self, bytes: &[u8], length: usize) -> Option<usize> {
        let mut start = self.length();
        if self.extended {
            let length = bytes.get(start + 2..start + 4)?;
            start += 4 + usize::from(u16::from_be_bytes([length[0], length[1]])) * 4;
        }
        (start <= length).then_some(start)
    }

    /// The header as bytes; contributing sources and extension are the caller's to add.
    #[must_use]
    pub fn emit(&self) -> [u8; HEADER_LENGTH] {
        let [s0, s1] = self.sequence.to_be_bytes();
        let [t0, t1, t2, t3] = self.timestamp.to_be_bytes();
        let [i0, i1, i2, i3] = self.source.to_be_bytes();
        let first = 0x80 | u8::from(self.padded) << 5 | u8::from(self.extended) << 4 | (self.contributing & 0x0f);
        let second = u8::from(self.marker) << 7 | (self.payload_type & 0x7f);
        [first, second, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 12] = [0x80, 0xa1, 0x12, 0x34, 0, 0, 0, 9, 0xde, 0xad, 0xbe, 0xef];

    #[test]
    fn a_header_is_deconstructed_and_constructed() {
        let header = Header::parse(&BYTES).unwrap();
        let expected = Header {
            marker: true,
            payload_type: 33,
            sequence: 0x1234,
            timestamp: 9,
            source: 0xdead_beef,
            ..Header::default()
        };
        assert_eq!(header, expected);
        assert_eq!(header.emit(), BYTES);
    }

    #[test]
    fn every_first_byte_of_version_2_comes_back() {
        for first in 0x80..=0xbf {
            let mut bytes = BYTES;
            bytes[0] = first;
            assert_eq!(Header::parse(&bytes).unwrap().emit(), bytes);
        }
    }

    #[test]
    fn short_headers_and_other_versions_are_none() {
        assert_eq!(Header::parse(&BYTES[..11]), None);
        for version in [0x00, 0x40, 0xc0] {
            let mut bytes = BYTES;
            bytes[0] = version;
            assert_eq!(Header::parse(&bytes), None);
        }
    }

    #[test]
    fn sender_reports_are_told_from_marked_packets() {
        let mut bytes = BYTES;
        bytes[1] = 200;
        assert!(Header::parse(&bytes).unwrap().may_be_rtcp());
        assert!(!Header::parse(&BYTES).unwrap().may_be_rtcp());
    }

    #[test]
    fn the_payload_begins_behind_contributing_sources_and_extension() {
        let mut bytes = vec![0x92, 33];
        bytes.extend_from_slice(&[0; 10 + 8]);
        bytes.extend_from_slice(&[0xbe, 0xde, 0, 1, 0, 0, 0, 0]);
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.length(), header.payload_start(&bytes, bytes.len())), (20, Some(28)));
        for end in HEADER_LENGTH..bytes.len() {
            assert_eq!(header.payload_start(&bytes[..end], end), None, "{end} bytes");
        }
        // What the caller did not keep of a long datagram need not be there.
        let plain = Header { extended: false, ..header };
        assert_eq!(plain.payload_start(&bytes[..12], 1328), Some(20));
    }
}
