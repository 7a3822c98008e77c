//! A glance at a frame: for the frames that are most of all traffic, the few bytes that decide the whole flow key.

use crate::extract::Layout;
use crate::flow_key::{mix, Field, FlowKey};

/// The bytes that decide the flow key and the layout of an untagged, unfragmented IPv4 frame with TCP or UDP and
/// without IP options: two such frames with equal glances have equal keys. Four words are quicker to gather and to
/// compare than the key's sixteen. Also used as the mask of a glance: one bits where it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance([u64; 4]);

/// TCP or UDP: in every mask, because it decides the layout.
const IS_TCP: u64 = 1 << 12;
/// The port that the frame came in by.
const IN_PORT: u64 = u32::MAX as u64;

impl Glance {
    /// The mask of all bits.
    pub const EVERYTHING: Self = Self([u64::MAX; 4]);
    /// The mask of the Ethernet addresses.
    pub const ETHERNET: Self = Self([u64::MAX, IS_TCP | (u32::MAX as u64) << 32, 0, IN_PORT]);

    /// The mask of those bits that decide the bits of a flow key that `mask` has. The layout and the port that a frame
    /// came in by are always in it.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn mask_of(mask: &FlowKey) -> Self {
        let bits = |field: Field| mask.get(field) as u64;
        let (to, from) = (bits(Field::ETH_DST), bits(Field::ETH_SRC));
        let rest = bits(Field::NW_TOS) << 24 | bits(Field::NW_TTL) << 16 | IS_TCP | bits(Field::TCP_FLAGS);
        let ports = bits(Field::TP_SRC) << 16 | bits(Field::TP_DST);
        Self([
            to << 16 | from >> 32,
            (from & u64::from(u32::MAX)) << 32 | rest,
            bits(Field::NW_SRC) << 32 | bits(Field::NW_DST),
            ports << 32 | IN_PORT,
        ])
    }

    /// The glance with only those bits that `mask` has.
    #[inline]
    #[must_use]
    pub fn masked(self, mask: &Self) -> Self {
        let [a, b, c, d] = self.0;
        let [e, f, g, h] = mask.0;
        Self([a & e, b & f, c & g, d & h])
    }

    /// All bits that this or `other` has.
    #[must_use]
    pub fn union(self, other: &Self) -> Self {
        let [a, b, c, d] = self.0;
        let [e, f, g, h] = other.0;
        Self([a | e, b | f, c | g, d | h])
    }

    /// The glance at the frame `bytes` that came in by `in_port`; `None` for frames of other kinds.
    #[inline]
    #[must_use]
    pub fn of(in_port: u32, bytes: &[u8]) -> Option<Self> {
        let head: &[u8; 42] = bytes.first_chunk()?;
        // EtherType, version and header length.
        if head[12..15] != [0x08, 0x00, 0x45] {
            return None;
        }
        let transport_length = match head[23] {
            17 => 8,
            6 if bytes.len() >= 54 => 20,
            _ => return None,
        };
        let total = u16::from_be_bytes([head[16], head[17]]);
        let is_fragment = u16::from_be_bytes([head[20], head[21]]) & 0x3fff != 0;
        if is_fragment || (total != 0 && total < 20 + transport_length) {
            return None;
        }
        let is_tcp = head[23] == 6;
        // Twelve bits of TCP flags; a UDP frame has none.
        let flags = if is_tcp { u64::from(u16::from_be_bytes([bytes[46], bytes[47]]) & 0x0fff) } else { 0 };
        let transport = if is_tcp { IS_TCP } else { 0 };
        let rest = u64::from(head[15]) << 24 | u64::from(head[22]) << 16 | transport | flags;
        Some(Self([
            word(head, 0),
            half(head, 8) << 32 | rest,
            word(head, 26),
            half(head, 34) << 32 | u64::from(in_port),
        ]))
    }

    /// Returns the offsets at which the headers of a frame with this glance begin.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout::of_ipv4(if self.0[1] & IS_TCP != 0 { 6 } else { 17 })
    }

    /// A hash of the glance.
    #[inline]
    #[must_use]
    pub fn digest(&self, seed: u64) -> u64 {
        let [a, b, c, d] = self.0;
        mix(mix(a ^ seed, b ^ 0x9e37_79b9_7f4a_7c15), mix(c ^ seed.rotate_left(32), d ^ 0xd1b5_4a32_d192_ed03))
    }
}

/// Eight bytes from `at`.
#[inline]
fn word(head: &[u8; 42], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&head[at..at + 8]);
    u64::from_be_bytes(bytes)
}

/// Four bytes from `at`.
#[inline]
fn half(head: &[u8; 42], at: usize) -> u64 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&head[at..at + 4]);
    u64::from(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame() -> impl Strategy<Value = Vec<u8>> {
        // Frames that are nearly always of the kind in question, with each byte that could matter drawn from few
        // values.
        (prop::collection::vec(0..3_u8, 54..60), prop::sample::select(vec![6_u8, 17, 1, 132]), 0..3_usize).prop_map(
            |(mut bytes, protocol, strange)| {
                bytes[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
                bytes[16..18].copy_from_slice(&[0, 40]);
                bytes[20] = if strange == 0 { bytes[20] << 5 } else { 0x40 };
                bytes[21] = 0;
                bytes[23] = protocol;
                if strange == 1 {
                    bytes[17] = bytes[17].wrapping_sub(bytes[0] * 9);
                }
                bytes
            },
        )
    }

    proptest! {
        #[test]
        fn frames_with_equal_glances_have_equal_keys_and_layouts(one in frame(), other in frame(), port in 0..2_u32) {
            let (a, b) = (Glance::of(port, &one), Glance::of(1, &other));
            let (key, layout) = FlowKey::extract_with_layout(port, &one);
            if let Some(a) = a {
                prop_assert_eq!(a.layout(), layout);
                if Some(a) == b {
                    prop_assert_eq!((key, layout), FlowKey::extract_with_layout(1, &other));
                }
            }
        }

        #[test]
        fn a_byte_that_changes_the_key_changes_the_glance(one in frame(), at in 0..54_usize, with in any::<u8>()) {
            let mut other = one.clone();
            other[at] = with;
            if let (Some(a), Some(b)) = (Glance::of(1, &one), Glance::of(1, &other)) {
                prop_assert_eq!(a == b, FlowKey::extract(1, &one) == FlowKey::extract(1, &other));
            }
        }

        #[test]
        fn frames_whose_masked_glances_are_equal_have_equal_masked_keys(one in frame(), at in 0..54_usize,
            with in any::<u8>(), fields in prop::collection::vec(prop::sample::select(vec![
                Field::ETH_DST, Field::ETH_SRC, Field::NW_TOS, Field::IP_DSCP, Field::NW_TTL, Field::TCP_FLAGS,
                Field::NW_SRC, Field::NW_DST, Field::TP_SRC, Field::TP_DST, Field::IN_PORT,
            ]), 0..4), bits in any::<u128>()) {
            let mut other = one.clone();
            other[at] = with;
            let mask = fields.into_iter().fold(FlowKey::ZERO, |mask, field| mask.with(field, bits & field.maximum()));
            if let (Some(a), Some(b)) = (Glance::of(1, &one), Glance::of(1, &other)) {
                let of = Glance::mask_of(&mask);
                let keys = [&one, &other].map(|bytes| FlowKey::extract(1, bytes).masked(&mask));
                prop_assert_eq!(a.masked(&of).layout(), a.layout());
                // In the other direction but for the layout, which a mask always has.
                if a.layout() == b.layout() {
                    prop_assert_eq!(a.masked(&of) == b.masked(&of), keys[0] == keys[1]);
                } else {
                    prop_assert_ne!(a.masked(&of), b.masked(&of));
                }
            }
        }

        #[test]
        fn any_bytes_are_looked_at_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Glance::of(1, &bytes);
        }
    }
}
