//! The extensible match: type, class, field, mask and value, as OpenFlow 1.2 took it over from Nicira's.

mod conditions;
mod field;
mod tlv;

pub use conditions::Match;
pub use field::{
    Field, FieldInfo, Prerequisite, WireNumber, CLASS_EXPERIMENTER, CLASS_NXM_NICIRA, CLASS_NXM_OPENFLOW,
    CLASS_OPENFLOW_BASIC, CLASS_PACKET_REGISTERS,
};
pub use tlv::{FieldId, FieldMatch, FieldValue, UnknownField};

pub(crate) use tlv::{Flavour, Tlv};
