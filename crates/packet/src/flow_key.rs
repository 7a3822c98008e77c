//! The flow key: every header field that a flow table can match, in one fixed array that is quick to mask, hash and
//! compare.

use std::fmt;

/// Words of a flow key.
pub const FLOW_KEY_WORDS: usize = 24;
/// Words that a frame's headers fill: the registers, which follow them, are zero in every key that was extracted
/// from a frame.
const HEADER_WORDS: usize = 16;

/// The position of a field in the flow key: `bits` bits from `shift` in word `word`; above 64 bits, in that word and
/// the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Field {
    word: u8,
    shift: u8,
    bits: u8,
}

impl Field {
    const fn at(word: u8, shift: u8, bits: u8) -> Self {
        Self { word, shift, bits }
    }

    /// Port that the frame came in by.
    pub const IN_PORT: Self = Self::at(0, 32, 32);
    /// EtherType of what follows the VLAN tags; 0x05ff when there is none (an IEEE 802.3 length without SNAP).
    pub const ETH_TYPE: Self = Self::at(0, 16, 16);
    /// Outermost VLAN tag: priority 3 bits, present 1 bit, identifier 12 bits; 0 without a tag.
    pub const VLAN_TCI: Self = Self::at(0, 0, 16);
    /// Outermost VLAN tag's identifier.
    pub const VLAN_VID: Self = Self::at(0, 0, 12);
    /// The flag that is set if there is a VLAN tag.
    pub const VLAN_PRESENT: Self = Self::at(0, 12, 1);
    /// Identifier with the present bit above it (OpenFlow 1.3 `OXM_OF_VLAN_VID`).
    pub const VLAN_VID_PRESENT: Self = Self::at(0, 0, 13);
    /// Outermost VLAN tag's priority.
    pub const VLAN_PCP: Self = Self::at(0, 13, 3);
    /// Ethernet destination.
    pub const ETH_DST: Self = Self::at(1, 16, 48);
    /// Ethernet source.
    pub const ETH_SRC: Self = Self::at(2, 16, 48);
    /// Source port of TCP, UDP or SCTP; type of ICMP and ICMPv6.
    pub const TP_SRC: Self = Self::at(1, 0, 16);
    /// Destination port of TCP, UDP or SCTP; code of ICMP and ICMPv6.
    pub const TP_DST: Self = Self::at(2, 0, 16);
    /// IPv4 source; sender protocol address of ARP.
    pub const NW_SRC: Self = Self::at(3, 32, 32);
    /// IPv4 destination; target protocol address of ARP.
    pub const NW_DST: Self = Self::at(3, 0, 32);
    /// Protocol of IPv4; last next header of IPv6; operation of ARP.
    pub const NW_PROTO: Self = Self::at(4, 56, 8);
    /// IPv4 type of service or IPv6 traffic class: DSCP and ECN.
    pub const NW_TOS: Self = Self::at(4, 48, 8);
    /// Differentiated services code point.
    pub const IP_DSCP: Self = Self::at(4, 50, 6);
    /// Explicit congestion notification.
    pub const IP_ECN: Self = Self::at(4, 48, 2);
    /// IPv4 time to live or IPv6 hop limit.
    pub const NW_TTL: Self = Self::at(4, 40, 8);
    /// Fragmentation: bit 0 a fragment, bit 1 not the first one.
    pub const NW_FRAG: Self = Self::at(4, 32, 2);
    /// TCP flags, from FIN up; the three above CWR are reserved (and NS).
    pub const TCP_FLAGS: Self = Self::at(4, 16, 12);
    /// The VLAN tag inside the outermost one, laid out alike.
    pub const INNER_VLAN_TCI: Self = Self::at(4, 0, 16);
    /// The flag that is set if there is a VLAN tag inside the outermost one.
    pub const INNER_VLAN_PRESENT: Self = Self::at(4, 12, 1);
    /// OpenFlow metadata.
    pub const METADATA: Self = Self::at(5, 0, 64);
    /// Tunnel identifier.
    pub const TUNNEL_ID: Self = Self::at(6, 0, 64);
    /// IPv6 source.
    pub const IPV6_SRC: Self = Self::at(7, 0, 128);
    /// IPv6 destination.
    pub const IPV6_DST: Self = Self::at(9, 0, 128);
    /// Target of a neighbour solicitation or advertisement.
    pub const ND_TARGET: Self = Self::at(11, 0, 128);
    /// Sender hardware address of ARP; source link-layer address of neighbour discovery.
    pub const ARP_SHA: Self = Self::at(13, 16, 48);
    /// Target hardware address of ARP; target link-layer address of neighbour discovery.
    pub const ARP_THA: Self = Self::at(14, 16, 48);
    /// Outermost MPLS label stack entry, whole.
    pub const MPLS_LSE: Self = Self::at(15, 32, 32);
    /// Outermost MPLS label.
    pub const MPLS_LABEL: Self = Self::at(15, 44, 20);
    /// Outermost MPLS traffic class.
    pub const MPLS_TC: Self = Self::at(15, 41, 3);
    /// The flag that is set if the outermost MPLS label is the bottom of the stack.
    pub const MPLS_BOS: Self = Self::at(15, 40, 1);
    /// Outermost MPLS time to live.
    pub const MPLS_TTL: Self = Self::at(15, 32, 8);
    /// IPv6 flow label.
    pub const IPV6_LABEL: Self = Self::at(15, 0, 20);
    /// The IPv6 extension headers that are present, as OpenFlow's `ofp_ipv6exthdr_flags`.
    pub const IPV6_EXTENSIONS: Self = Self::at(15, 20, 9);
    /// Service identifier of a provider backbone bridge's tag (EtherType 0x88e7); in the place of IPv4's source,
    /// which such a frame has not.
    pub const PBB_ISID: Self = Self::at(3, 32, 24);

    /// Register `number` of the pipeline (Nicira's `reg0` to `reg15`); two beginning with an even one are a 64-bit
    /// register.
    #[must_use]
    pub const fn register(number: u8) -> Self {
        Self::at(HEADER_WORDS as u8 + (number & 15) / 2, if number % 2 == 0 { 32 } else { 0 }, 32)
    }

    /// 64-bit register `number` (`xreg0` to `xreg7`).
    #[must_use]
    pub const fn wide_register(number: u8) -> Self {
        Self::at(HEADER_WORDS as u8 + (number & 7), 0, 64)
    }

    /// 128-bit register `number` (`xxreg0` to `xxreg3`).
    #[must_use]
    pub const fn widest_register(number: u8) -> Self {
        Self::at(HEADER_WORDS as u8 + (number & 3) * 2, 0, 128)
    }

    /// Returns `true` if it is one of the registers, which no frame has.
    #[must_use]
    pub const fn is_register(self) -> bool {
        self.word as usize >= HEADER_WORDS
    }

    /// Bits that the field has.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits as u32
    }

    /// The largest value of the field: all its bits set.
    #[must_use]
    pub const fn maximum(self) -> u128 {
        u128::MAX >> (128 - self.bits as u32)
    }
}

/// Every header field that a flow table can match. Also used as the mask of a match: one bits where it matters.
///
/// Filled by [`FlowKey::extract`]; fields that the frame does not have, or whose header is cut short, are zero.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub struct FlowKey {
    words: [u64; FLOW_KEY_WORDS],
}

impl FlowKey {
    /// A key (or mask) of nothing but zeros.
    pub const ZERO: Self = Self { words: [0; FLOW_KEY_WORDS] };

    /// The words, to hash and compare.
    #[must_use]
    pub const fn words(&self) -> &[u64; FLOW_KEY_WORDS] {
        &self.words
    }

    /// The value of `field`.
    #[inline]
    #[must_use]
    pub const fn get(&self, field: Field) -> u128 {
        let word = field.word as usize;
        if field.bits > 64 {
            return (self.words[word] as u128) << 64 | self.words[word + 1] as u128;
        }
        ((self.words[word] >> field.shift) & (u64::MAX >> (64 - field.bits as u32))) as u128
    }

    /// Sets `field` to `value`; bits that the field does not have are cut off.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub const fn set(&mut self, field: Field, value: u128) {
        let word = field.word as usize;
        if field.bits > 64 {
            self.words[word] = (value >> 64) as u64;
            self.words[word + 1] = value as u64;
            return;
        }
        let mask = u64::MAX >> (64 - field.bits as u32);
        self.words[word] &= !(mask << field.shift);
        self.words[word] |= (value as u64 & mask) << field.shift;
    }

    /// As [`FlowKey::set`], returning the key: to build one in an expression.
    #[must_use]
    pub const fn with(mut self, field: Field, value: u128) -> Self {
        self.set(field, value);
        self
    }

    /// The key with only those bits that `mask` has.
    #[inline]
    #[must_use]
    pub fn masked(&self, mask: &Self) -> Self {
        let mut words = self.words;
        for (word, mask) in words.iter_mut().zip(&mask.words) {
            *word &= mask;
        }
        Self { words }
    }

    /// All bits that this or `other` has.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut words = self.words;
        for (word, other) in words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        Self { words }
    }

    /// Returns `true` if no bit is set.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// A hash of the key less its registers. Good enough that its low bits can index a table; different for every
    /// `seed`.
    #[inline]
    #[must_use]
    pub fn digest(&self, seed: u64) -> u64 {
        // Four independent chains of folded multiplications, so that their latencies overlap.
        let words = &self.words[..HEADER_WORDS];
        let mut sums = [seed, seed ^ K[0], seed ^ K[1], seed ^ K[2]];
        for (pair, sum) in words.chunks_exact(2).zip([0, 1, 2, 3, 0, 1, 2, 3]) {
            sums[sum] = mix(pair[0] ^ sums[sum] ^ K[sum], pair[1] ^ K[3]);
        }
        mix(sums[0] ^ sums[1].rotate_left(23), sums[2] ^ sums[3].rotate_left(41) ^ K[0])
    }

    /// The Ethernet destination.
    #[must_use]
    pub const fn eth_dst(&self) -> [u8; 6] {
        mac_of(self.get(Field::ETH_DST))
    }

    /// The Ethernet source.
    #[must_use]
    pub const fn eth_src(&self) -> [u8; 6] {
        mac_of(self.get(Field::ETH_SRC))
    }

    /// The EtherType.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub const fn eth_type(&self) -> u16 {
        self.get(Field::ETH_TYPE) as u16
    }

    /// The outermost VLAN tag with its present bit.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub const fn vlan_tci(&self) -> u16 {
        self.get(Field::VLAN_TCI) as u16
    }

    /// The IP protocol.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub const fn ip_proto(&self) -> u8 {
        self.get(Field::NW_PROTO) as u8
    }
}

const K: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3];

/// The 128-bit product of both, folded to 64 bits.
#[inline]
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub const fn mix(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    product as u64 ^ (product >> 64) as u64
}

/// The 48 low bits of `value` as an Ethernet address.
#[must_use]
pub const fn mac_of(value: u128) -> [u8; 6] {
    let bytes = value.to_be_bytes();
    [bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]]
}

/// An Ethernet address as the number that the flow key holds.
#[must_use]
pub const fn mac_value(mac: [u8; 6]) -> u128 {
    u64::from_be_bytes([0, 0, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]]) as u128
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowKey[")?;
        for (index, word) in self.words.iter().enumerate().filter(|(_, &word)| word != 0) {
            write!(f, " {index}:{word:016x}")?;
        }
        f.write_str(" ]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [Field; 27] = [
        Field::IN_PORT,
        Field::ETH_TYPE,
        Field::VLAN_TCI,
        Field::ETH_DST,
        Field::ETH_SRC,
        Field::TP_SRC,
        Field::TP_DST,
        Field::NW_SRC,
        Field::NW_DST,
        Field::NW_PROTO,
        Field::NW_TOS,
        Field::NW_TTL,
        Field::NW_FRAG,
        Field::TCP_FLAGS,
        Field::INNER_VLAN_TCI,
        Field::METADATA,
        Field::TUNNEL_ID,
        Field::IPV6_SRC,
        Field::IPV6_DST,
        Field::ND_TARGET,
        Field::ARP_SHA,
        Field::ARP_THA,
        Field::MPLS_LSE,
        Field::IPV6_LABEL,
        Field::IPV6_EXTENSIONS,
        Field::register(0),
        Field::register(15),
    ];

    #[test]
    fn fields_do_not_overlap() {
        let mut all = FlowKey::ZERO;
        for field in FIELDS {
            assert_eq!(all.get(field), 0, "{field:?} overlaps another");
            all.set(field, field.maximum());
            assert_eq!(all.get(field), field.maximum());
        }
    }

    #[test]
    fn setting_a_field_leaves_its_neighbours() {
        let all = FIELDS.iter().fold(FlowKey::ZERO, |key, &field| key.with(field, field.maximum()));
        for field in FIELDS {
            let changed = all.with(field, 0);
            for other in FIELDS.iter().filter(|&&other| other != field) {
                assert_eq!(changed.get(*other), other.maximum());
            }
        }
    }

    #[test]
    fn digests_of_keys_that_differ_in_one_bit_differ_in_their_low_bits() {
        let mut seen = std::collections::HashSet::new();
        for field in &FIELDS[..25] {
            for bit in 0..field.bits() {
                seen.insert(FlowKey::ZERO.with(*field, 1 << bit).digest(7) & 0xf_ffff);
            }
        }
        // About 850 draws from a million: a handful of collisions by the birthday bound (850^2 / 2 / 2^20 = 0.35).
        let bits: u32 = FIELDS[..25].iter().map(|field| field.bits()).sum();
        assert!(seen.len() as u32 + 4 >= bits, "{} distinct of {bits}", seen.len());
    }
}
