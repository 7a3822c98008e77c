//! The actions on a frame.

use crate::error::{Fault, Refusal};
use crate::nicira::{self, NICIRA};
use crate::oxm::FieldValue;
use crate::wire::{pad, pad_to_eight, set_length, Reader, Wire};

/// `OFPCML_MAX`: the greatest number of bytes that an output to the controller may ask for.
pub const MAXIMUM_OUTPUT_BYTES: u16 = 0xffe5;
/// `OFPCML_NO_BUFFER`: the whole frame goes to the controller, and none is kept.
pub const WHOLE_FRAME: u16 = 0xffff;

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Action {
    /// `OFPAT_OUTPUT`.
    Output {
        /// Port.
        port: u32,
        /// Bytes that go to the controller, when that is the port.
        max_len: u16,
    },
    /// `OFPAT_COPY_TTL_OUT`: from the next header to the outermost.
    CopyTtlOut,
    /// `OFPAT_COPY_TTL_IN`: from the outermost header to the next.
    CopyTtlIn,
    /// `OFPAT_SET_MPLS_TTL`.
    SetMplsTtl(u8),
    /// `OFPAT_DEC_MPLS_TTL`.
    DecMplsTtl,
    /// `OFPAT_PUSH_VLAN`, with the tag's EtherType.
    PushVlan(u16),
    /// `OFPAT_POP_VLAN`.
    PopVlan,
    /// `OFPAT_PUSH_MPLS`, with the frame's new EtherType.
    PushMpls(u16),
    /// `OFPAT_POP_MPLS`, with the frame's new EtherType.
    PopMpls(u16),
    /// `OFPAT_SET_QUEUE`.
    SetQueue(u32),
    /// `OFPAT_GROUP`.
    Group(u32),
    /// `OFPAT_SET_NW_TTL`.
    SetNwTtl(u8),
    /// `OFPAT_DEC_NW_TTL`.
    DecNwTtl,
    /// `OFPAT_SET_FIELD`.
    SetField(FieldValue),
    /// `OFPAT_PUSH_PBB`, with the tag's EtherType.
    PushPbb(u16),
    /// `OFPAT_POP_PBB`.
    PopPbb,
    /// `OFPAT_EXPERIMENTER` of Nicira.
    Nicira(Box<nicira::Action>),
    /// `OFPAT_EXPERIMENTER` of someone else, or one of Nicira's that this crate has no name for.
    Experimenter {
        /// Who.
        experimenter: u32,
        /// The data; a multiple of eight bytes.
        #[cfg_attr(any(test, feature = "arbitrary"), arbitrary(with = crate::arbitrary_parts::eights))]
        data: Vec<u8>,
    },
}

/// `OFPAT_EXPERIMENTER`.
pub(crate) const EXPERIMENTER: u16 = 0xffff;

impl Action {
    /// `ofp_action_type`.
    #[must_use]
    pub const fn kind(&self) -> u16 {
        match self {
            Self::Output { .. } => 0,
            Self::CopyTtlOut => 11,
            Self::CopyTtlIn => 12,
            Self::SetMplsTtl(_) => 15,
            Self::DecMplsTtl => 16,
            Self::PushVlan(_) => 17,
            Self::PopVlan => 18,
            Self::PushMpls(_) => 19,
            Self::PopMpls(_) => 20,
            Self::SetQueue(_) => 21,
            Self::Group(_) => 22,
            Self::SetNwTtl(_) => 23,
            Self::DecNwTtl => 24,
            Self::SetField(_) => 25,
            Self::PushPbb(_) => 26,
            Self::PopPbb => 27,
            Self::Nicira(_) | Self::Experimenter { .. } => EXPERIMENTER,
        }
    }

    /// Reads what follows type and length.
    fn read_body(kind: u16, inner: &mut Reader) -> Result<Self, Refusal> {
        Ok(match kind {
            0 => {
                let (port, max_len) = (inner.get()?, inner.get()?);
                inner.skip(6)?;
                Self::Output { port, max_len }
            }
            11 => bare(inner, Self::CopyTtlOut)?,
            12 => bare(inner, Self::CopyTtlIn)?,
            15 => Self::SetMplsTtl(padded(inner, 3)?),
            16 => bare(inner, Self::DecMplsTtl)?,
            17 => Self::PushVlan(padded(inner, 2)?),
            18 => bare(inner, Self::PopVlan)?,
            19 => Self::PushMpls(padded(inner, 2)?),
            20 => Self::PopMpls(padded(inner, 2)?),
            21 => Self::SetQueue(inner.get()?),
            22 => Self::Group(inner.get()?),
            23 => Self::SetNwTtl(padded(inner, 3)?),
            24 => bare(inner, Self::DecNwTtl)?,
            25 => {
                let set = FieldValue::read(inner)?;
                inner.skip_padding(8 + usize::from(set.field.info().bytes));
                Self::SetField(set)
            }
            26 => Self::PushPbb(padded(inner, 2)?),
            27 => bare(inner, Self::PopPbb)?,
            EXPERIMENTER => {
                let experimenter = inner.get()?;
                let data = inner.rest();
                match nicira::Action::decode(experimenter, data)? {
                    Some(action) => Self::Nicira(Box::new(action)),
                    None => Self::Experimenter { experimenter, data: data.to_vec() },
                }
            }
            other => {
                let allowed = "0, 11, 12, 15 to 27, or 0xffff (experimenter)";
                return Err(Refusal::new(Fault::BAD_ACTION_TYPE, "the type of an action", u64::from(other), allowed));
            }
        })
    }
}

fn bare(inner: &mut Reader, action: Action) -> Result<Action, Refusal> {
    inner.skip(4)?;
    Ok(action)
}

fn padded<T: Wire>(inner: &mut Reader, padding: usize) -> Result<T, Refusal> {
    let value = inner.get()?;
    inner.skip(padding)?;
    Ok(value)
}

/// Takes the next action of either version from `reader`: its type, and what follows type and length.
pub(crate) fn next_action<'a>(reader: &mut Reader<'a>) -> Result<(u16, Reader<'a>), Refusal> {
    let mut outer = Reader::new(reader.rest(), Fault::BAD_ACTION_LENGTH);
    let mut inner = outer.sized(2, 8)?;
    *reader = outer;
    if inner.remaining() % 8 != 0 {
        return Err(inner.short(inner.remaining()));
    }
    let kind = inner.get()?;
    inner.skip(2)?;
    Ok((kind, inner))
}

impl Wire for Action {
    #[inline]
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (kind, mut inner) = next_action(reader)?;
        let action = Self::read_body(kind, &mut inner)?;
        inner.finish()?;
        Ok(action)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.kind().write(out);
        pad(out, 2);
        match self {
            Self::Output { port, max_len } => {
                port.write(out);
                max_len.write(out);
            }
            Self::CopyTtlOut | Self::CopyTtlIn | Self::DecMplsTtl | Self::PopVlan | Self::DecNwTtl | Self::PopPbb => {
                pad(out, 4);
            }
            Self::SetMplsTtl(number) | Self::SetNwTtl(number) => number.write(out),
            Self::PushVlan(number) | Self::PushMpls(number) | Self::PopMpls(number) | Self::PushPbb(number) => {
                number.write(out);
            }
            Self::SetQueue(number) | Self::Group(number) => number.write(out),
            Self::SetField(set) => set.write(out),
            Self::Nicira(action) => {
                NICIRA.write(out);
                action.write(out);
            }
            Self::Experimenter { experimenter, data } => {
                experimenter.write(out);
                data.write(out);
            }
        }
        pad_to_eight(out, start);
        set_length(out, start, 2);
    }
}
