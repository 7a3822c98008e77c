//! ICMP echo on raw sockets: the filter, what the sender must fill in, what the receiver must check.

use std::io;
use std::os::fd::BorrowedFd;

use libc::c_int;
use twinnet_apps::Chunk;

use super::system;

/// `ICMP_FILTER` of `linux/icmp.h`: a bit for each type that is kept out.
const ICMP_FILTER: c_int = 1;
/// `ICMPV6_FILTER` of `linux/icmpv6.h`.
const ICMPV6_FILTER: c_int = 1;
/// Type of an ICMP echo reply (RFC 792).
const ECHO_REPLY: u8 = 0;
/// Type of an ICMPv6 echo reply (RFC 4443).
const ECHO_REPLY_V6: u8 = 129;
const CHECKSUM: std::ops::Range<usize> = 2..4;
const IDENTIFIER: std::ops::Range<usize> = 4..6;
/// Bytes of an echo header.
const HEADER: usize = 8;

/// Lets echo replies pass and nothing else.
pub fn only_echo_replies(fd: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    if v6 {
        let mut kept_out = [u32::MAX; 8];
        kept_out[usize::from(ECHO_REPLY_V6 >> 5)] &= !(1 << (ECHO_REPLY_V6 & 31));
        return system::set_option(fd, libc::IPPROTO_ICMPV6, ICMPV6_FILTER, kept_out);
    }
    system::set_option(fd, libc::SOL_RAW, ICMP_FILTER, !(1_u32 << ECHO_REPLY))
}

/// The bytes of a message with the identifier and, for ICMP, the checksum (RFC 1071). For ICMPv6 the kernel sums
/// (RFC 3542, 3.1).
pub fn complete(message: Chunk<'_>, identifier: u16, v6: bool) -> Vec<u8> {
    let mut bytes = match message {
        Chunk::Bytes(bytes) => bytes.to_vec(),
        Chunk::Padded(bytes, padding) => {
            let mut whole = bytes.to_vec();
            whole.resize(bytes.len() + padding as usize, 0);
            whole
        }
        Chunk::Filler(length) => vec![0; usize::try_from(length).unwrap_or(0)],
    };
    if bytes.len() < HEADER {
        bytes.resize(HEADER, 0);
    }
    bytes[IDENTIFIER].copy_from_slice(&identifier.to_be_bytes());
    if !v6 {
        bytes[CHECKSUM].fill(0);
        let sum = checksum(&bytes);
        bytes[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// The Internet checksum.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    #[allow(clippy::cast_possible_truncation)]
    let folded = sum as u16;
    !folded
}

/// The bytes that come before the ICMP message in what a raw socket gives: the IPv4 header. `None` when it is no
/// echo reply to us.
pub fn offset_of_reply(bytes: &[u8], identifier: u16, v6: bool) -> Option<usize> {
    let offset = if v6 { 0 } else { usize::from(bytes.first()? & 0x0f) * 4 };
    let message = bytes.get(offset..)?;
    let expected = if v6 { ECHO_REPLY_V6 } else { ECHO_REPLY };
    let ours = message.get(IDENTIFIER)? == identifier.to_be_bytes() && *message.first()? == expected;
    ours.then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completed_message_sums_to_zero() {
        // The sum of a message with its checksum is 0xffff (RFC 1071), so its complement is 0.
        for length in [0_u32, 1, 56, 1471] {
            let bytes = complete(Chunk::Padded(&[8, 0, 0, 0, 0, 0, 0x12, 0x34], length), 0xbeef, false);
            assert_eq!(bytes.len(), 8 + length as usize);
            assert_eq!(checksum(&bytes), 0);
        }
    }

    #[test]
    fn only_replies_with_our_identifier_are_taken() {
        let mut packet = vec![0x45; 20];
        packet.extend([0, 0, 1, 2, 0xbe, 0xef, 0, 1]);
        assert_eq!(offset_of_reply(&packet, 0xbeef, false), Some(20));
        assert_eq!(offset_of_reply(&packet, 0xbeee, false), None);
        assert_eq!(offset_of_reply(&packet[..22], 0xbeef, false), None);
        assert_eq!(offset_of_reply(&[], 0xbeef, false), None);
        packet[20] = 8;
        assert_eq!(offset_of_reply(&packet, 0xbeef, false), None);
    }
}
