//! The instructions of a flow for the frames that it matches.

use super::action::Action;
use super::error::{BadInstruction, ErrorKind};
use crate::error::{Fault, Refusal};
use crate::wire::{pad, pad_to_eight, set_length, Reader, Wire};

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Instruction {
    /// `OFPIT_GOTO_TABLE`: goes on in this table.
    GotoTable(u8),
    /// `OFPIT_WRITE_METADATA`.
    WriteMetadata {
        /// Bits to write.
        metadata: u64,
        /// The mask of the bits to write.
        mask: u64,
    },
    /// `OFPIT_WRITE_ACTIONS`: puts the actions into the action set.
    WriteActions(Vec<Action>),
    /// `OFPIT_APPLY_ACTIONS`: executes the actions at once.
    ApplyActions(Vec<Action>),
    /// `OFPIT_CLEAR_ACTIONS`: empties the action set.
    ClearActions,
    /// `OFPIT_METER`: measures the frame, and perhaps drops it.
    Meter(u32),
    /// `OFPIT_EXPERIMENTER`.
    Experimenter {
        /// Who.
        experimenter: u32,
        /// The data; a multiple of eight bytes.
        #[cfg_attr(any(test, feature = "arbitrary"), arbitrary(with = crate::arbitrary_parts::eights))]
        data: Vec<u8>,
    },
}

const BAD_LENGTH: Fault = ErrorKind::BadInstruction(BadInstruction::BadLen).fault();
const UNKNOWN: Fault = ErrorKind::BadInstruction(BadInstruction::UnknownInst).fault();
const EXPERIMENTER: u16 = 0xffff;

impl Instruction {
    /// `ofp_instruction_type`.
    #[must_use]
    pub const fn kind(&self) -> u16 {
        match self {
            Self::GotoTable(_) => 1,
            Self::WriteMetadata { .. } => 2,
            Self::WriteActions(_) => 3,
            Self::ApplyActions(_) => 4,
            Self::ClearActions => 5,
            Self::Meter(_) => 6,
            Self::Experimenter { .. } => EXPERIMENTER,
        }
    }
}

impl Wire for Instruction {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let mut outer = Reader::new(reader.rest(), BAD_LENGTH);
        let mut inner = outer.sized(2, 8)?;
        *reader = outer;
        if inner.remaining() % 8 != 0 {
            return Err(inner.short(inner.remaining()));
        }
        let kind = inner.get::<u16>()?;
        inner.skip(2)?;
        let instruction = match kind {
            1 => {
                let table = inner.get()?;
                inner.skip(3)?;
                Self::GotoTable(table)
            }
            2 => {
                inner.skip(4)?;
                Self::WriteMetadata { metadata: inner.get()?, mask: inner.get()? }
            }
            3..=5 => {
                inner.skip(4)?;
                match kind {
                    3 => Self::WriteActions(inner.get()?),
                    4 => Self::ApplyActions(inner.get()?),
                    _ => Self::ClearActions,
                }
            }
            6 => Self::Meter(inner.get()?),
            EXPERIMENTER => Self::Experimenter { experimenter: inner.get()?, data: inner.get()? },
            other => {
                let allowed = "1 to 6, or 0xffff (experimenter)";
                return Err(Refusal::new(UNKNOWN, "the type of an instruction", u64::from(other), allowed));
            }
        };
        inner.finish()?;
        Ok(instruction)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.kind().write(out);
        pad(out, 2);
        match self {
            Self::GotoTable(table) => [*table, 0, 0, 0].write(out),
            Self::WriteMetadata { metadata, mask } => {
                pad(out, 4);
                metadata.write(out);
                mask.write(out);
            }
            Self::WriteActions(actions) | Self::ApplyActions(actions) => {
                pad(out, 4);
                actions.write(out);
            }
            Self::ClearActions => pad(out, 4),
            Self::Meter(meter) => meter.write(out),
            Self::Experimenter { experimenter, data } => {
                experimenter.write(out);
                data.write(out);
            }
        }
        pad_to_eight(out, start);
        set_length(out, start, 2);
    }
}
