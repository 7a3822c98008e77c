//! Nicira's actions.

use super::balance::{Bundle, Multipath};
use super::learn::Learn;
use super::register::{RegisterMove, Subfield};
use super::NICIRA;
use crate::error::{Fault, Refusal};
use crate::layout::open_enum;
use crate::oxm::{FieldId, FieldMatch, Flavour, Tlv};
use crate::wire::{pad, Reader, Wire};

open_enum! {
    /// The reason that a packet-in of `NXAST_CONTROLLER` states.
    pub enum ControllerReason: u8 { NoMatch = 0 "OFPR_NO_MATCH", Action = 1 "OFPR_ACTION",
        InvalidTtl = 2 "OFPR_INVALID_TTL" }
}

/// An action of Nicira. Ports have 16 bits in both versions: the upper ones of OpenFlow 1.3 are those of 1.0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Action {
    /// `NXAST_RESUBMIT`: looks the frame up again in the same table, as if from this port.
    Resubmit(u16),
    /// `NXAST_RESUBMIT_TABLE`: looks the frame up again.
    ResubmitTable {
        /// As if from this port; 0xfff8: the one that it came in by.
        in_port: u16,
        /// Table; 0xff: the same.
        table_id: u8,
    },
    /// `NXAST_SET_TUNNEL` with 32 bits.
    SetTunnel(u32),
    /// `NXAST_SET_TUNNEL64`.
    SetTunnel64(u64),
    /// `NXAST_SET_QUEUE`.
    SetQueue(u32),
    /// `NXAST_POP_QUEUE`: back to the queue before [`Action::SetQueue`].
    PopQueue,
    /// `NXAST_REG_MOVE`.
    RegisterMove(RegisterMove),
    /// `NXAST_REG_LOAD`: writes a constant.
    RegisterLoad {
        /// The bits that are written.
        destination: Subfield,
        /// The value that is written.
        value: u64,
    },
    /// `NXAST_REG_LOAD2`: writes a constant into the bits of the mask.
    RegisterLoadMasked(FieldMatch),
    /// `NXAST_NOTE`: bytes without effect.
    Note(#[cfg_attr(any(test, feature = "arbitrary"), arbitrary(with = crate::arbitrary_parts::note))] Vec<u8>),
    /// `NXAST_MULTIPATH`.
    Multipath(Multipath),
    /// `NXAST_BUNDLE` and `NXAST_BUNDLE_LOAD`.
    Bundle(Bundle),
    /// `NXAST_OUTPUT_REG`: outputs to the port that a field names.
    OutputRegister {
        /// The field.
        source: Subfield,
        /// Bytes that go to the controller, when that is the port.
        max_len: u16,
    },
    /// `NXAST_OUTPUT_TRUNC`: outputs the beginning of the frame.
    OutputTruncated {
        /// Port.
        port: u16,
        /// Bytes.
        max_len: u32,
    },
    /// `NXAST_LEARN`.
    Learn(Box<Learn>),
    /// `NXAST_EXIT`: ends the actions, of resubmitted lookups too.
    Exit,
    /// `NXAST_DEC_TTL`.
    DecTtl,
    /// `NXAST_DEC_TTL_CNT_IDS`: tells these controllers of a frame whose TTL runs out.
    DecTtlNotifying(Vec<u16>),
    /// `NXAST_FIN_TIMEOUT`: other timeouts once a FIN or RST was seen.
    FinTimeout {
        /// Idle timeout in seconds.
        idle_timeout: u16,
        /// Hard timeout in seconds.
        hard_timeout: u16,
    },
    /// `NXAST_CONTROLLER`.
    Controller {
        /// Bytes that go to the controller.
        max_len: u16,
        /// The ID of the controller.
        controller_id: u16,
        /// Reason that the packet-in states.
        reason: ControllerReason,
    },
    /// `NXAST_PUSH_MPLS`.
    PushMpls(u16),
    /// `NXAST_POP_MPLS`.
    PopMpls(u16),
    /// `NXAST_SET_MPLS_TTL`.
    SetMplsTtl(u8),
    /// `NXAST_DEC_MPLS_TTL`.
    DecMplsTtl,
    /// `NXAST_SET_MPLS_LABEL`.
    SetMplsLabel(u32),
    /// `NXAST_SET_MPLS_TC`.
    SetMplsTc(u8),
    /// `NXAST_STACK_PUSH`.
    StackPush(StackItem),
    /// `NXAST_STACK_POP`.
    StackPop(StackItem),
    /// `NXAST_CONJUNCTION`: the flow is one of several that match together.
    Conjunction {
        /// The index of the clause, from 0.
        clause: u8,
        /// The number of clauses.
        clauses: u8,
        /// The value that [`crate::oxm::Field::ConjId`] then has.
        id: u32,
    },
    /// `NXAST_CT_CLEAR`: forgets the connection tracking state.
    ConnectionClear,
}

/// Bits of a field on the way to or from the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct StackItem {
    /// First bit.
    pub offset: u16,
    /// The field.
    pub id: FieldId,
    /// The number of bits.
    pub bits: u16,
}

impl Wire for StackItem {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        Ok(Self { offset: reader.get()?, id: reader.get()?, bits: reader.get()? })
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.offset.write(out);
        self.id.write(out);
        self.bits.write(out);
    }
}

impl Action {
    /// Reads what follows the vendor; `None` when it is another vendor's, or a subtype without a name here.
    pub(crate) fn decode(vendor: u32, data: &[u8]) -> Result<Option<Self>, Refusal> {
        if vendor != NICIRA {
            return Ok(None);
        }
        let mut reader = Reader::new(data, Fault::BAD_ACTION_LENGTH);
        let subtype = reader.get()?;
        let Some(action) = Self::read_body(subtype, &mut reader)? else { return Ok(None) };
        let used = data.len() - reader.remaining();
        // The type, length and vendor are eight bytes themselves.
        reader.skip_padding(used);
        reader.finish()?;
        Ok(Some(action))
    }

    fn read_body(subtype: u16, reader: &mut Reader) -> Result<Option<Self>, Refusal> {
        Ok(Some(match subtype {
            1 => Self::Resubmit(reader.get()?),
            2 => Self::SetTunnel(after_padding(reader, 2)?),
            4 => Self::SetQueue(after_padding(reader, 2)?),
            5 => Self::PopQueue,
            6 => Self::RegisterMove(reader.get()?),
            7 => Self::RegisterLoad { destination: reader.get()?, value: reader.get()? },
            8 => Self::Note(reader.get()?),
            9 => Self::SetTunnel64(after_padding(reader, 6)?),
            10 => Self::Multipath(reader.get()?),
            12 => Self::Bundle(Bundle::read(reader, false)?),
            13 => Self::Bundle(Bundle::read(reader, true)?),
            14 => Self::ResubmitTable { in_port: reader.get()?, table_id: reader.get()? },
            15 => Self::OutputRegister { source: reader.get()?, max_len: reader.get()? },
            16 => Self::Learn(reader.get()?),
            17 => Self::Exit,
            18 => Self::DecTtl,
            19 => Self::FinTimeout { idle_timeout: reader.get()?, hard_timeout: reader.get()? },
            20 => Self::Controller { max_len: reader.get()?, controller_id: reader.get()?, reason: reader.get()? },
            21 => {
                let count = usize::from(reader.get::<u16>()?);
                reader.skip(4)?;
                Self::DecTtlNotifying(reader.part(2 * count, Fault::BAD_ACTION_LENGTH)?.get()?)
            }
            23 => Self::PushMpls(reader.get()?),
            24 => Self::PopMpls(reader.get()?),
            25 => Self::SetMplsTtl(reader.get()?),
            26 => Self::DecMplsTtl,
            27 => Self::StackPush(reader.get()?),
            28 => Self::StackPop(reader.get()?),
            30 => Self::SetMplsLabel(after_padding(reader, 2)?),
            31 => Self::SetMplsTc(reader.get()?),
            33 => Self::RegisterLoadMasked(constant(reader)?),
            34 => Self::Conjunction { clause: reader.get()?, clauses: reader.get()?, id: reader.get()? },
            39 => Self::OutputTruncated { port: reader.get()?, max_len: reader.get()? },
            43 => Self::ConnectionClear,
            _ => return Ok(None),
        }))
    }

    const fn subtype(&self) -> u16 {
        match self {
            Self::Resubmit(_) => 1,
            Self::SetTunnel(_) => 2,
            Self::SetQueue(_) => 4,
            Self::PopQueue => 5,
            Self::RegisterMove(_) => 6,
            Self::RegisterLoad { .. } => 7,
            Self::Note(_) => 8,
            Self::SetTunnel64(_) => 9,
            Self::Multipath(_) => 10,
            Self::Bundle(Bundle { destination: None, .. }) => 12,
            Self::Bundle(_) => 13,
            Self::ResubmitTable { .. } => 14,
            Self::OutputRegister { .. } => 15,
            Self::Learn(_) => 16,
            Self::Exit => 17,
            Self::DecTtl => 18,
            Self::FinTimeout { .. } => 19,
            Self::Controller { .. } => 20,
            Self::DecTtlNotifying(_) => 21,
            Self::PushMpls(_) => 23,
            Self::PopMpls(_) => 24,
            Self::SetMplsTtl(_) => 25,
            Self::DecMplsTtl => 26,
            Self::StackPush(_) => 27,
            Self::StackPop(_) => 28,
            Self::SetMplsLabel(_) => 30,
            Self::SetMplsTc(_) => 31,
            Self::RegisterLoadMasked(_) => 33,
            Self::Conjunction { .. } => 34,
            Self::OutputTruncated { .. } => 39,
            Self::ConnectionClear => 43,
        }
    }

    /// Writes the subtype and what follows it; the caller pads to eight bytes.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.subtype().write(out);
        match self {
            Self::PopQueue | Self::Exit | Self::DecTtl | Self::DecMplsTtl | Self::ConnectionClear => pad(out, 6),
            Self::Resubmit(number) | Self::PushMpls(number) | Self::PopMpls(number) => number.write(out),
            Self::SetTunnel(number) | Self::SetQueue(number) | Self::SetMplsLabel(number) => {
                pad(out, 2);
                number.write(out);
            }
            Self::SetTunnel64(number) => {
                pad(out, 6);
                number.write(out);
            }
            Self::SetMplsTtl(number) | Self::SetMplsTc(number) => number.write(out),
            Self::RegisterMove(change) => change.write(out),
            Self::RegisterLoad { destination, value } => {
                destination.write(out);
                value.write(out);
            }
            Self::RegisterLoadMasked(constant) => constant.write(out, Flavour::Nxm),
            Self::Note(note) => note.write(out),
            Self::Multipath(multipath) => multipath.write(out),
            Self::Bundle(bundle) => bundle.write(out),
            Self::ResubmitTable { in_port, table_id } => {
                in_port.write(out);
                table_id.write(out);
            }
            Self::OutputRegister { source, max_len } => {
                source.write(out);
                max_len.write(out);
                pad(out, 6);
            }
            Self::OutputTruncated { port, max_len } => {
                port.write(out);
                max_len.write(out);
            }
            Self::Learn(learn) => learn.write(out),
            Self::DecTtlNotifying(controllers) => {
                (controllers.len() as u16).write(out);
                pad(out, 4);
                controllers.write(out);
            }
            Self::FinTimeout { idle_timeout, hard_timeout } => {
                idle_timeout.write(out);
                hard_timeout.write(out);
            }
            Self::Controller { max_len, controller_id, reason } => {
                max_len.write(out);
                controller_id.write(out);
                reason.write(out);
            }
            Self::StackPush(item) | Self::StackPop(item) => item.write(out),
            Self::Conjunction { clause, clauses, id } => {
                clause.write(out);
                clauses.write(out);
                id.write(out);
            }
        }
    }
}

fn after_padding<T: Wire>(reader: &mut Reader, padding: usize) -> Result<T, Refusal> {
    reader.skip(padding)?;
    reader.get()
}

/// The field, constant and mask of a load.
fn constant(reader: &mut Reader) -> Result<FieldMatch, Refusal> {
    let argument = |refusal: Refusal| Refusal { fault: Fault::BAD_ACTION_ARGUMENT, ..refusal };
    match Tlv::read(reader).map_err(argument)? {
        Tlv::Known(constant) => Ok(constant),
        Tlv::Unknown(unknown) => Err(argument(Refusal::new(
            Fault::BAD_ACTION_ARGUMENT,
            "the header of a loaded field",
            u64::from(unknown.id.0),
            "a known field",
        ))),
    }
}
