//! `NXAST_LEARN`: a flow that adds another flow, made of the frame.

use crate::error::{Fault, Refusal};
use crate::oxm::FieldId;
use crate::wire::{pad, Reader, Wire};

/// A flow to add, or to modify when there is one with the same match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Learn {
    /// Idle timeout in seconds.
    pub idle_timeout: u16,
    /// Hard timeout in seconds.
    pub hard_timeout: u16,
    /// Priority.
    pub priority: u16,
    /// Cookie.
    pub cookie: u64,
    /// `NX_LEARN_F_*`: 1 sends flow-removed, 2 deletes what was learnt when this flow is deleted.
    pub flags: u16,
    /// Table.
    pub table_id: u8,
    /// Idle timeout once a FIN or RST was seen.
    pub fin_idle_timeout: u16,
    /// Hard timeout once a FIN or RST was seen.
    pub fin_hard_timeout: u16,
    /// The parts of the flow: what it matches and does.
    pub specs: Vec<LearnSpec>,
}

/// Bits that become a condition or an action of the flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnSpec {
    /// The number of bits: 1 to 1023.
    pub bits: u16,
    /// The source of the bits.
    pub source: LearnSource,
    /// The target of the bits.
    pub target: LearnTarget,
}

/// The source of the bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LearnSource {
    /// `NX_LEARN_SRC_FIELD`: a field of the frame, from this bit on.
    Field(FieldId, u16),
    /// `NX_LEARN_SRC_IMMEDIATE`: these bytes, two for every sixteen bits begun.
    Immediate(Vec<u8>),
}

/// The target of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnTarget {
    /// `NX_LEARN_DST_MATCH`: the flow matches on them, in this field from this bit on.
    Match(FieldId, u16),
    /// `NX_LEARN_DST_LOAD`: the flow loads them into this field from this bit on.
    Load(FieldId, u16),
    /// `NX_LEARN_DST_OUTPUT`: the flow outputs to the port with that number.
    Output,
}

const BITS: u16 = 0x3ff;
const IMMEDIATE: u16 = 1 << 13;
const TARGET: u16 = 3 << 11;
const LOAD: u16 = 1 << 11;
const OUTPUT: u16 = 2 << 11;

/// Bytes of an immediate value of `bits` bits.
const fn immediate_bytes(bits: u16) -> usize {
    2 * (bits as usize).div_ceil(16)
}

impl LearnSpec {
    fn read(reader: &mut Reader, header: u16) -> Result<Self, Refusal> {
        let bits = header & BITS;
        if bits == 0 || header & !(BITS | IMMEDIATE | TARGET) != 0 || header & TARGET == TARGET {
            let allowed = "1 to 1023 bits from a field or immediate, to match, load or output";
            return Err(Refusal::new(Fault::BAD_ACTION_ARGUMENT, "a part of learn", u64::from(header), allowed));
        }
        let source = if header & IMMEDIATE == 0 {
            LearnSource::Field(reader.get()?, reader.get()?)
        } else {
            LearnSource::Immediate(reader.take(immediate_bytes(bits))?.to_vec())
        };
        let target = match header & TARGET {
            OUTPUT => LearnTarget::Output,
            LOAD => LearnTarget::Load(reader.get()?, reader.get()?),
            _ => LearnTarget::Match(reader.get()?, reader.get()?),
        };
        Ok(Self { bits, source, target })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let source = if matches!(self.source, LearnSource::Immediate(_)) { IMMEDIATE } else { 0 };
        let target = match self.target {
            LearnTarget::Match(..) => 0,
            LearnTarget::Load(..) => LOAD,
            LearnTarget::Output => OUTPUT,
        };
        (source | target | (self.bits & BITS)).write(out);
        match &self.source {
            LearnSource::Field(id, offset) => {
                id.write(out);
                offset.write(out);
            }
            LearnSource::Immediate(value) => {
                let start = out.len();
                value.write(out);
                out.resize(start + immediate_bytes(self.bits & BITS), 0);
            }
        }
        if let LearnTarget::Match(id, offset) | LearnTarget::Load(id, offset) = self.target {
            id.write(out);
            offset.write(out);
        }
    }
}

impl Wire for Learn {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (idle_timeout, hard_timeout, priority) = (reader.get()?, reader.get()?, reader.get()?);
        let (cookie, flags, table_id) = (reader.get()?, reader.get()?, reader.get()?);
        reader.skip(1)?;
        let (fin_idle_timeout, fin_hard_timeout) = (reader.get()?, reader.get()?);
        let mut specs = Vec::new();
        while reader.remaining() >= 2 {
            let header = reader.get::<u16>()?;
            if header == 0 {
                break;
            }
            specs.push(LearnSpec::read(reader, header)?);
        }
        if reader.remaining() >= 8 || reader.rest().iter().any(|byte| *byte != 0) {
            let allowed = "zeros up to a multiple of eight bytes";
            return Err(Refusal::new(Fault::BAD_ACTION_ARGUMENT, "what follows the parts of learn", 1, allowed));
        }
        Ok(Self {
            idle_timeout,
            hard_timeout,
            priority,
            cookie,
            flags,
            table_id,
            fin_idle_timeout,
            fin_hard_timeout,
            specs,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.idle_timeout.write(out);
        self.hard_timeout.write(out);
        self.priority.write(out);
        self.cookie.write(out);
        self.flags.write(out);
        self.table_id.write(out);
        pad(out, 1);
        self.fin_idle_timeout.write(out);
        self.fin_hard_timeout.write(out);
        self.specs.iter().for_each(|spec| spec.write(out));
    }
}

#[cfg(any(test, feature = "arbitrary"))]
impl<'a> arbitrary::Arbitrary<'a> for LearnSpec {
    fn arbitrary(source: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let bits = source.int_in_range(1..=128)?;
        let from = if source.arbitrary()? {
            LearnSource::Field(source.arbitrary()?, source.arbitrary()?)
        } else {
            LearnSource::Immediate((0..immediate_bytes(bits)).map(|_| source.arbitrary()).collect::<Result<_, _>>()?)
        };
        let target = match source.int_in_range(0..=2)? {
            0 => LearnTarget::Match(source.arbitrary()?, source.arbitrary()?),
            1 => LearnTarget::Load(source.arbitrary()?, source.arbitrary()?),
            _ => LearnTarget::Output,
        };
        Ok(Self { bits, source: from, target })
    }
}
