//! MPLS label stack entries (RFC 3032, 2.1).

use std::fmt;

use crate::big_endian::{get_u32, put_u32};
use crate::malformed::{need, Malformed};

/// Bytes of an entry.
pub const ENTRY_LENGTH: usize = 4;

/// One label stack entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits (RFC 5462).
    pub traffic_class: u8,
    /// `true` if it is the last of the stack.
    pub bottom: bool,
    /// Time to live.
    pub time_to_live: u8,
}

impl Repr {
    /// Reads the entry at the front of `bytes`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        need(bytes, ENTRY_LENGTH)?;
        let entry = get_u32(bytes, 0);
        let [_, _, middle, time_to_live] = entry.to_be_bytes();
        Ok(Self { label: entry >> 12, traffic_class: middle >> 1 & 7, bottom: middle & 1 == 1, time_to_live })
    }

    /// Writes the entry to the first [`ENTRY_LENGTH`] of `bytes`; bits beyond label and class are cut off.
    pub fn emit(&self, bytes: &mut [u8]) {
        let class = u32::from(self.traffic_class & 7) << 9;
        let entry = self.label << 12 | class | u32::from(self.bottom) << 8 | u32::from(self.time_to_live);
        put_u32(bytes, 0, entry);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MPLS label {} class {} ttl {}", self.label, self.traffic_class, self.time_to_live)
    }
}

/// The entries of a stack at the front of `bytes`, outermost first, up to the bottom or to where it is cut short.
pub fn stack(bytes: &[u8]) -> impl Iterator<Item = Repr> + '_ {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let here = rest?;
        let entry = Repr::parse(here).ok()?;
        rest = (!entry.bottom).then(|| &here[ENTRY_LENGTH..]);
        Some(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 9] = [0x00, 0x01, 0x0a, 0x40, 0xff, 0xff, 0xf1, 0x01, 0x45];

    #[test]
    fn deconstruct_and_construct() {
        let entries: Vec<_> = stack(&BYTES).collect();
        assert_eq!(
            entries,
            [
                Repr { label: 16, traffic_class: 5, bottom: false, time_to_live: 64 },
                Repr { label: 0xfffff, traffic_class: 0, bottom: true, time_to_live: 1 },
            ]
        );
        let mut bytes = [0; 8];
        entries[0].emit(&mut bytes);
        entries[1].emit(&mut bytes[4..]);
        assert_eq!(bytes, BYTES[..8]);
        assert_eq!(entries[0].to_string(), "MPLS label 16 class 5 ttl 64");
    }

    #[test]
    fn a_stack_without_bottom_ends_with_the_bytes() {
        assert_eq!(stack(&BYTES[..7]).count(), 1);
        assert_eq!(Repr::parse(&BYTES[..3]).unwrap_err(), Malformed::Truncated { given: 3, needed: 4 });
    }
}
