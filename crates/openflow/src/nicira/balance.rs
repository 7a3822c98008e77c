//! Choosing one of several ways by a hash of the frame.

use super::register::Subfield;
use crate::error::Refusal;
use crate::layout::{open_enum, record};
use crate::wire::{pad, pad_to_eight, Reader, Wire};

open_enum! {
    /// The fields that the hash is taken of.
    pub enum HashFields: u16 {
        EthSrc = 0 "NX_HASH_FIELDS_ETH_SRC", SymmetricL4 = 1 "NX_HASH_FIELDS_SYMMETRIC_L4",
        SymmetricL3L4 = 2 "NX_HASH_FIELDS_SYMMETRIC_L3L4", SymmetricL3L4Udp = 3 "NX_HASH_FIELDS_SYMMETRIC_L3L4_UDP",
        NwSrc = 4 "NX_HASH_FIELDS_NW_SRC", NwDst = 5 "NX_HASH_FIELDS_NW_DST",
            SymmetricL3 = 6 "NX_HASH_FIELDS_SYMMETRIC_L3",
    }
}

record! {
    /// `NXAST_MULTIPATH`: writes the number of the way.
    pub struct Multipath {
        /// The fields that the hash is taken of.
        pub fields: HashFields;
        /// Start of the hash.
        pub basis: u16 [2];
        /// `NX_MP_ALG_*`.
        pub algorithm: u16;
        /// Number of the last way.
        pub max_link: u16;
        /// Argument of the algorithm.
        pub argument: u32 [2];
        /// The bits that the number is written to.
        pub destination: Subfield;
    }
}

/// `NXAST_BUNDLE` and `NXAST_BUNDLE_LOAD`: chooses one of several ports that are up, and outputs to it or writes
/// its number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Bundle {
    /// `NX_BD_ALG_*`.
    pub algorithm: u16,
    /// The fields that the hash is taken of.
    pub fields: HashFields,
    /// Start of the hash.
    pub basis: u16,
    /// Header of the field that members are values of: `NXM_OF_IN_PORT`.
    pub member_type: u32,
    /// The bits that the number is written to; `None`: the frame is output there.
    pub destination: Option<Subfield>,
    /// The ports.
    pub members: Vec<u16>,
}

impl Bundle {
    /// Reads what follows the subtype; `load` is whether that is `NXAST_BUNDLE_LOAD`.
    pub(super) fn read(reader: &mut Reader, load: bool) -> Result<Self, Refusal> {
        let (algorithm, fields, basis) = (reader.get()?, reader.get()?, reader.get()?);
        let (member_type, count) = (reader.get()?, usize::from(reader.get::<u16>()?));
        let destination = reader.get::<Subfield>()?;
        reader.skip(4)?;
        let members = reader.part(2 * count, crate::Fault::BAD_ACTION_LENGTH)?.get()?;
        reader.skip_padding(2 * count);
        Ok(Self { algorithm, fields, basis, member_type, destination: load.then_some(destination), members })
    }

    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.algorithm.write(out);
        self.fields.write(out);
        self.basis.write(out);
        self.member_type.write(out);
        (self.members.len() as u16).write(out);
        match &self.destination {
            Some(destination) => destination.write(out),
            None => pad(out, 6),
        }
        pad(out, 4);
        let start = out.len();
        self.members.write(out);
        pad_to_eight(out, start);
    }
}
