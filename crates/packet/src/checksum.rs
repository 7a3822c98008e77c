//! The Internet checksum (RFC 1071): sums, pseudo-headers, and updates that need only what changed (RFC 1624).
//!
//! A *sum* is the folded one's complement sum of 16-bit words; a *checksum* is its complement, as headers carry it.

/// Reduces an accumulated sum to 16 bits, adding the carries back.
const fn fold(mut sum: u64) -> u16 {
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The one's complement sum of `bytes`; an odd last byte is followed by a zero.
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    // "The sum of 16-bit integers can be computed in either byte order" (RFC 1071, 2.B): words are read as this machine
    // stores them and the order is mended once, at the end.
    let mut accumulated = 0_u64;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        accumulated += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
    let rest = words.remainder();
    let mut last = [0_u8; 4];
    last[..rest.len()].copy_from_slice(rest);
    accumulated += u64::from(u32::from_ne_bytes(last));
    u16::from_be(fold(accumulated))
}

/// The one's complement sum of two sums.
#[must_use]
pub const fn add(a: u16, b: u16) -> u16 {
    fold(a as u64 + b as u64)
}

/// The checksum of `bytes`: the complement of their sum.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// The sum of the pseudo-header of TCP or UDP over IPv4 (RFC 9293, 3.1): `length` bytes of `protocol`.
#[must_use]
pub fn pseudo_header_v4(source: [u8; 4], destination: [u8; 4], protocol: u8, length: u32) -> u16 {
    let addresses = add(sum(&source), sum(&destination));
    add(addresses, fold(u64::from(length) + u64::from(protocol)))
}

/// The sum of the pseudo-header of an upper layer over IPv6 (RFC 8200, 8.1).
#[must_use]
pub fn pseudo_header_v6(source: &[u8; 16], destination: &[u8; 16], protocol: u8, length: u32) -> u16 {
    let addresses = add(sum(source), sum(destination));
    add(addresses, fold(u64::from(length) + u64::from(protocol)))
}

/// A sum after `old` in what it covers became `new`. Both have the same even length and lie at an even offset.
#[must_use]
pub fn update_sum(before: u16, old: &[u8], new: &[u8]) -> u16 {
    add(before, add(!sum(old), sum(new)))
}

/// A checksum after `old` in what it covers became `new`: `HC' = ~(~HC + ~m + m')` (RFC 1624, equation 3).
#[must_use]
pub fn update(before: u16, old: &[u8], new: &[u8]) -> u16 {
    !update_sum(!before, old, new)
}

/// CRC-32C of `chunks` one after another and then `zeros` bytes of zero, as SCTP carries it (RFC 9260, appendix A);
/// written to the header little-endian.
#[must_use]
pub fn crc32c(chunks: &[&[u8]], zeros: u64) -> u32 {
    let step = |crc: u32, byte: u8| (crc >> 8) ^ CRC32C[((crc ^ u32::from(byte)) & 0xff) as usize];
    let crc = chunks.iter().copied().flatten().fold(u32::MAX, |crc, &byte| step(crc, byte));
    !(0..zeros).fold(crc, |crc, _| step(crc, 0))
}

const CRC32C: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0x82f6_3b78 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071_sums_to_ddf2() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn an_odd_byte_counts_as_the_high_half_of_a_word() {
        assert_eq!(sum(&[0x12, 0x34, 0x56]), 0x1234 + 0x5600);
    }

    #[test]
    fn the_example_of_rfc_1624_updates_to_zero() {
        // RFC 1624, section 4: HC = 0xDD2F, m = 0x5555, m' = 0x3285 gives 0x0000.
        assert_eq!(update(0xdd2f, &[0x55, 0x55], &[0x32, 0x85]), 0x0000);
    }

    #[test]
    fn crc32c_of_the_usual_check_string() {
        assert_eq!(crc32c(&[b"1234", b"56789"], 0), 0xe306_9283);
        assert_eq!(crc32c(&[b"1234"], 3), crc32c(&[b"1234\0\0\0"], 0));
    }

    fn plain(bytes: &[u8]) -> u16 {
        let mut total = 0_u32;
        for pair in bytes.chunks(2) {
            total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    proptest! {
        #[test]
        fn the_fast_sum_is_the_plain_one(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(sum(&bytes), plain(&bytes));
        }

        #[test]
        fn an_update_agrees_with_a_new_computation(
            mut bytes in prop::collection::vec(any::<u8>(), 40..60),
            new in prop::array::uniform4(any::<u8>()),
            word in 0_usize..18,
        ) {
            bytes[39] |= 1; // A header of nothing but zeros does not exist; 0 and 0xffff would be told apart.
            let before = checksum(&bytes);
            let old: [u8; 4] = bytes[word * 2..word * 2 + 4].try_into().unwrap();
            bytes[word * 2..word * 2 + 4].copy_from_slice(&new);
            prop_assert_eq!(update(before, &old, &new), checksum(&bytes));
        }
    }
}
