//! Parts of fields: some bits of a register, or of any other field.

use crate::error::Refusal;
use crate::layout::record;
use crate::oxm::{Field, FieldId};
use crate::wire::{Reader, Wire};

/// Some bits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subfield {
    /// The field.
    pub id: FieldId,
    /// Its first bit, counted from the least significant.
    pub offset: u16,
    /// The number of bits: 1 to 64.
    pub bits: u16,
}

impl Subfield {
    /// All bits of `field`, up to 64.
    #[must_use]
    pub fn whole(field: Field) -> Self {
        Self { id: FieldId::nxm(field, false), offset: 0, bits: u16::from(field.info().bits).min(64) }
    }

    /// Reads `ofs_nbits`, and the header that directly follows it.
    pub(super) fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let packed = reader.get::<u16>()?;
        Ok(Self { id: reader.get()?, offset: packed >> 6, bits: (packed & 0x3f) + 1 })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        (self.offset << 6 | (self.bits.wrapping_sub(1) & 0x3f)).write(out);
        self.id.write(out);
    }
}

impl Wire for Subfield {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        Self::read(reader)
    }
    fn write(&self, out: &mut Vec<u8>) {
        Self::write(self, out);
    }
}

#[cfg(any(test, feature = "arbitrary"))]
impl<'a> arbitrary::Arbitrary<'a> for Subfield {
    fn arbitrary(source: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Self { id: source.arbitrary()?, offset: source.int_in_range(0..=1023)?, bits: source.int_in_range(1..=64)? })
    }
}

record! {
    /// `NXAST_REG_MOVE`: copies bits of one field into another.
    pub struct RegisterMove {
        /// The number of bits.
        pub bits: u16;
        /// First bit in the source.
        pub source_offset: u16;
        /// First bit in the destination.
        pub destination_offset: u16;
        /// Source.
        pub source: FieldId;
        /// Destination.
        pub destination: FieldId;
    }
}
