//! The abilities of a table, read and written.

use crate::error::{Fault, Refusal};
use crate::layout::record;
use crate::oxm::FieldId;
use crate::v13::{ErrorKind, TableFeaturesFailed};
use crate::wire::{pad_to_eight, set_length, Reader, Text, Wire};

record! {
    /// The abilities of a table.
    pub struct TableFeatures sized 0, 64 {
        [2];
        /// Number.
        pub table_id: u8 [5];
        /// Name.
        pub name: Text<32>;
        /// Bits of the metadata that it can match.
        pub metadata_match: u64;
        /// Bits of the metadata that it can write.
        pub metadata_write: u64;
        /// `ofp_table_config`, which 1.3 leaves at 0 but for its deprecated bits.
        pub config: u32;
        /// Flows that fit.
        pub max_entries: u32;
        /// Properties.
        pub properties: Vec<TableProperty>;
    }
}

/// An instruction or action by its type alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId {
    /// The type.
    pub kind: u16,
    /// Who, when the type is 0xffff; 0 otherwise, and not on the wire.
    pub experimenter: u32,
}

impl TypeId {
    /// The instruction or action of type `kind`.
    #[must_use]
    pub const fn of(kind: u16) -> Self {
        Self { kind, experimenter: 0 }
    }
}

/// A field by its header alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldListing {
    /// The header.
    pub id: FieldId,
    /// Who, when the header's class is the experimenters'; 0 otherwise, and not on the wire.
    pub experimenter: u32,
}

impl FieldListing {
    /// The field with this header.
    #[must_use]
    pub const fn of(id: FieldId) -> Self {
        Self { id, experimenter: 0 }
    }
}

/// A property of a table. `miss` says that it is about the table-miss flow; without such a property that flow is
/// like the others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
#[allow(missing_docs)]
pub enum TableProperty {
    /// `OFPTFPT_INSTRUCTIONS`: instructions of a flow.
    Instructions { miss: bool, ids: Vec<TypeId> },
    /// `OFPTFPT_NEXT_TABLES`: tables that a flow can go to.
    NextTables { miss: bool, tables: Vec<u8> },
    /// `OFPTFPT_WRITE_ACTIONS`: actions that a flow can write.
    WriteActions { miss: bool, ids: Vec<TypeId> },
    /// `OFPTFPT_APPLY_ACTIONS`: actions that a flow can apply.
    ApplyActions { miss: bool, ids: Vec<TypeId> },
    /// `OFPTFPT_MATCH`: fields that can be matched.
    Match(Vec<FieldListing>),
    /// `OFPTFPT_WILDCARDS`: fields that can be left out of a match.
    Wildcards(Vec<FieldListing>),
    /// `OFPTFPT_WRITE_SETFIELD`: fields that a written action can set.
    WriteSetField { miss: bool, ids: Vec<FieldListing> },
    /// `OFPTFPT_APPLY_SETFIELD`: fields that an applied action can set.
    ApplySetField { miss: bool, ids: Vec<FieldListing> },
    /// `OFPTFPT_EXPERIMENTER`.
    Experimenter { miss: bool, experimenter: u32, experimenter_type: u32, data: Vec<u8> },
}

const BAD_LENGTH: Fault = ErrorKind::TableFeaturesFailed(TableFeaturesFailed::BadLen).fault();
const BAD_TYPE: Fault = ErrorKind::TableFeaturesFailed(TableFeaturesFailed::BadType).fault();
const EXPERIMENTER: u16 = 0xfffe;

impl TableProperty {
    /// `ofp_table_feature_prop_type`.
    #[must_use]
    pub const fn kind(&self) -> u16 {
        match self {
            Self::Instructions { miss, .. } => *miss as u16,
            Self::NextTables { miss, .. } => 2 + *miss as u16,
            Self::WriteActions { miss, .. } => 4 + *miss as u16,
            Self::ApplyActions { miss, .. } => 6 + *miss as u16,
            Self::Match(_) => 8,
            Self::Wildcards(_) => 10,
            Self::WriteSetField { miss, .. } => 12 + *miss as u16,
            Self::ApplySetField { miss, .. } => 14 + *miss as u16,
            Self::Experimenter { miss, .. } => EXPERIMENTER + *miss as u16,
        }
    }
}

impl Wire for TableProperty {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let mut outer = Reader::new(reader.rest(), BAD_LENGTH);
        let mut inner = outer.sized(2, 4)?;
        outer.skip_padding(inner.remaining());
        *reader = outer;
        let kind = inner.get::<u16>()?;
        inner.skip(2)?;
        let miss = kind & 1 == 1;
        Ok(match kind {
            0 | 1 => Self::Instructions { miss, ids: inner.get()? },
            2 | 3 => Self::NextTables { miss, tables: inner.get()? },
            4 | 5 => Self::WriteActions { miss, ids: inner.get()? },
            6 | 7 => Self::ApplyActions { miss, ids: inner.get()? },
            8 => Self::Match(inner.get()?),
            10 => Self::Wildcards(inner.get()?),
            12 | 13 => Self::WriteSetField { miss, ids: inner.get()? },
            14 | 15 => Self::ApplySetField { miss, ids: inner.get()? },
            EXPERIMENTER.. => Self::Experimenter {
                miss,
                experimenter: inner.get()?,
                experimenter_type: inner.get()?,
                data: inner.get()?,
            },
            other => {
                let allowed = "0 to 8, 10, 12 to 15, 0xfffe or 0xffff";
                return Err(Refusal::new(BAD_TYPE, "the type of a table feature property", u64::from(other), allowed));
            }
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.kind().write(out);
        0_u16.write(out);
        match self {
            Self::Instructions { ids, .. } | Self::WriteActions { ids, .. } | Self::ApplyActions { ids, .. } => {
                ids.write(out);
            }
            Self::NextTables { tables, .. } => tables.write(out),
            Self::Match(ids) | Self::Wildcards(ids) => ids.write(out),
            Self::WriteSetField { ids, .. } | Self::ApplySetField { ids, .. } => ids.write(out),
            Self::Experimenter { experimenter, experimenter_type, data, .. } => {
                experimenter.write(out);
                experimenter_type.write(out);
                data.write(out);
            }
        }
        set_length(out, start, 2);
        pad_to_eight(out, start);
    }
}

impl Wire for TypeId {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (kind, length) = (reader.get::<u16>()?, reader.get::<u16>()?);
        let expected = if kind == 0xffff { 8 } else { 4 };
        if length != expected {
            let allowed = "4, or 8 for an experimenter's";
            return Err(Refusal::new(BAD_LENGTH, "the length of a listed type", u64::from(length), allowed));
        }
        Ok(Self { kind, experimenter: if kind == 0xffff { reader.get()? } else { 0 } })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.kind.write(out);
        if self.kind == 0xffff {
            8_u16.write(out);
            self.experimenter.write(out);
        } else {
            4_u16.write(out);
        }
    }
}

impl Wire for FieldListing {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let id = reader.get::<FieldId>()?;
        Ok(Self { id, experimenter: if id.is_experimenter() { reader.get()? } else { 0 } })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.id.write(out);
        if self.id.is_experimenter() {
            self.experimenter.write(out);
        }
    }
}

#[cfg(any(test, feature = "arbitrary"))]
impl<'a> arbitrary::Arbitrary<'a> for TypeId {
    fn arbitrary(source: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let kind = if source.ratio(1, 8)? { 0xffff } else { source.int_in_range(0..=27)? };
        Ok(Self { kind, experimenter: if kind == 0xffff { source.arbitrary()? } else { 0 } })
    }
}

#[cfg(any(test, feature = "arbitrary"))]
impl<'a> arbitrary::Arbitrary<'a> for FieldListing {
    fn arbitrary(source: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let id: FieldId = source.arbitrary()?;
        Ok(Self { id, experimenter: if id.is_experimenter() { source.arbitrary()? } else { 0 } })
    }
}
