//! VLAN tags (IEEE 802.1Q, 9.6), one or a stack of them.

use std::fmt;

use crate::big_endian::{get_u16, put_u16};
use crate::ethernet::{PROVIDER_VLAN, VLAN};
use crate::malformed::{need, Malformed};

mod field {
    pub const CONTROL: usize = 0;
    pub const ETHER_TYPE: usize = 2;
}

/// Bytes of a tag after its EtherType: control information and the EtherType of what follows.
pub const TAG_LENGTH: usize = 4;

/// A view of what follows the EtherType [`VLAN`] or [`PROVIDER_VLAN`].
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view, when there are enough bytes for the tag.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        need(bytes.as_ref(), TAG_LENGTH)?;
        Ok(Self(bytes))
    }

    fn control(&self) -> u16 {
        get_u16(self.0.as_ref(), field::CONTROL)
    }

    /// Priority code point.
    pub fn priority(&self) -> u8 {
        (self.control() >> 13) as u8
    }

    /// Returns `true` if the frame may be dropped first.
    pub fn drop_eligible(&self) -> bool {
        self.control() & 0x1000 != 0
    }

    /// VLAN identifier.
    pub fn identifier(&self) -> u16 {
        self.control() & 0x0fff
    }

    /// EtherType of what follows the tag.
    pub fn ether_type(&self) -> u16 {
        get_u16(self.0.as_ref(), field::ETHER_TYPE)
    }

    /// Returns the payload: what follows the tag.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[TAG_LENGTH..]
    }
}

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// `true` if the frame may be dropped first.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 to 4095.
    pub identifier: u16,
    /// EtherType of what follows.
    pub ether_type: u16,
}

impl Repr {
    /// The tag that a view shows.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            priority: packet.priority(),
            drop_eligible: packet.drop_eligible(),
            identifier: packet.identifier(),
            ether_type: packet.ether_type(),
        }
    }

    /// Writes the tag to the first [`TAG_LENGTH`] of `bytes`; bits beyond priority and identifier are cut off.
    pub fn emit(&self, bytes: &mut [u8]) {
        let flags = u16::from(self.priority & 7) << 13 | u16::from(self.drop_eligible) << 12;
        put_u16(bytes, field::CONTROL, flags | self.identifier & 0x0fff);
        put_u16(bytes, field::ETHER_TYPE, self.ether_type);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VLAN {} priority {} type {:#06x}", self.identifier, self.priority, self.ether_type)
    }
}

/// The tags of a frame whose Ethernet header says `ether_type` and is followed by `bytes`, outermost first. Ends at
/// what is no tag or is cut short.
pub fn stack(ether_type: u16, bytes: &[u8]) -> impl Iterator<Item = Repr> + '_ {
    let (mut ether_type, mut rest) = (ether_type, bytes);
    std::iter::from_fn(move || {
        let tagged = matches!(ether_type, VLAN | PROVIDER_VLAN);
        let packet = Packet::new_checked(rest).ok().filter(|_| tagged)?;
        ether_type = packet.ether_type();
        rest = &rest[TAG_LENGTH..];
        Some(Repr::parse(&packet))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 9] = [0xb0, 0x0a, 0x81, 0x00, 0x0f, 0xff, 0x08, 0x00, 0x45];

    #[test]
    fn deconstruct_and_construct() {
        let tags: Vec<_> = stack(PROVIDER_VLAN, &BYTES).collect();
        assert_eq!(
            tags,
            [
                Repr { priority: 5, drop_eligible: true, identifier: 10, ether_type: VLAN },
                Repr { priority: 0, drop_eligible: false, identifier: 4095, ether_type: 0x0800 },
            ]
        );
        let mut bytes = [0; 4];
        tags[0].emit(&mut bytes);
        assert_eq!(bytes, BYTES[..4]);
        assert_eq!(tags[0].to_string(), "VLAN 10 priority 5 type 0x8100");
    }

    #[test]
    fn a_stack_that_is_cut_short_ends() {
        assert_eq!(stack(VLAN, &BYTES[..7]).count(), 1);
        assert_eq!(stack(0x0800, &BYTES).count(), 0);
        assert!(Packet::new_checked(&BYTES[..3]).is_err());
    }
}
