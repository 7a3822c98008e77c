//! The actions on a frame.

use crate::error::{Fault, Refusal};
use crate::nicira::{self, NICIRA};
use crate::v13::{next_action, EXPERIMENTER};
use crate::wire::{pad, pad_to_eight, set_length, Reader, Wire};
use crate::MacAddress;

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Action {
    /// `OFPAT_OUTPUT`.
    Output {
        /// Port.
        port: u16,
        /// Bytes that go to the controller, when that is the port.
        max_len: u16,
    },
    /// `OFPAT_SET_VLAN_VID`.
    SetVlanVid(u16),
    /// `OFPAT_SET_VLAN_PCP`.
    SetVlanPcp(u8),
    /// `OFPAT_STRIP_VLAN`.
    StripVlan,
    /// `OFPAT_SET_DL_SRC`.
    SetDlSrc(MacAddress),
    /// `OFPAT_SET_DL_DST`.
    SetDlDst(MacAddress),
    /// `OFPAT_SET_NW_SRC`.
    SetNwSrc(u32),
    /// `OFPAT_SET_NW_DST`.
    SetNwDst(u32),
    /// `OFPAT_SET_NW_TOS`: the DSCP in the upper six bits.
    SetNwTos(u8),
    /// `OFPAT_SET_TP_SRC`.
    SetTpSrc(u16),
    /// `OFPAT_SET_TP_DST`.
    SetTpDst(u16),
    /// `OFPAT_ENQUEUE`.
    Enqueue {
        /// Port.
        port: u16,
        /// Queue.
        queue_id: u32,
    },
    /// `OFPAT_VENDOR` of Nicira.
    Nicira(Box<nicira::Action>),
    /// `OFPAT_VENDOR` of someone else, or one of Nicira's that this crate has no name for.
    Vendor {
        /// Who.
        vendor: u32,
        /// The data; a multiple of eight bytes.
        #[cfg_attr(any(test, feature = "arbitrary"), arbitrary(with = crate::arbitrary_parts::eights))]
        data: Vec<u8>,
    },
}

impl Action {
    /// `ofp_action_type`.
    #[must_use]
    pub const fn kind(&self) -> u16 {
        match self {
            Self::Output { .. } => 0,
            Self::SetVlanVid(_) => 1,
            Self::SetVlanPcp(_) => 2,
            Self::StripVlan => 3,
            Self::SetDlSrc(_) => 4,
            Self::SetDlDst(_) => 5,
            Self::SetNwSrc(_) => 6,
            Self::SetNwDst(_) => 7,
            Self::SetNwTos(_) => 8,
            Self::SetTpSrc(_) => 9,
            Self::SetTpDst(_) => 10,
            Self::Enqueue { .. } => 11,
            Self::Nicira(_) | Self::Vendor { .. } => EXPERIMENTER,
        }
    }

    /// Reads what follows type and length; padding is left for the caller, who checks the length.
    fn read_body(kind: u16, inner: &mut Reader) -> Result<Self, Refusal> {
        Ok(match kind {
            0 => Self::Output { port: inner.get()?, max_len: inner.get()? },
            1 => Self::SetVlanVid(inner.get()?),
            2 => Self::SetVlanPcp(inner.get()?),
            3 => Self::StripVlan,
            4 => Self::SetDlSrc(inner.get()?),
            5 => Self::SetDlDst(inner.get()?),
            6 => Self::SetNwSrc(inner.get()?),
            7 => Self::SetNwDst(inner.get()?),
            8 => Self::SetNwTos(inner.get()?),
            9 => Self::SetTpSrc(inner.get()?),
            10 => Self::SetTpDst(inner.get()?),
            11 => {
                let port = inner.get()?;
                inner.skip(6)?;
                Self::Enqueue { port, queue_id: inner.get()? }
            }
            EXPERIMENTER => {
                let vendor = inner.get()?;
                let data = inner.rest();
                match nicira::Action::decode(vendor, data)? {
                    Some(action) => Self::Nicira(Box::new(action)),
                    None => Self::Vendor { vendor, data: data.to_vec() },
                }
            }
            other => {
                let allowed = "0 to 11, or 0xffff (vendor)";
                return Err(Refusal::new(Fault::BAD_ACTION_TYPE, "the type of an action", u64::from(other), allowed));
            }
        })
    }
}

impl Wire for Action {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (kind, mut inner) = next_action(reader)?;
        let length = 4 + inner.remaining();
        let expected = match kind {
            4 | 5 | 11 => 16,
            0..=10 => 8,
            _ => length,
        };
        if length != expected {
            return Err(inner.short(length));
        }
        Self::read_body(kind, &mut inner)
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
            Self::SetVlanVid(number) | Self::SetTpSrc(number) | Self::SetTpDst(number) => number.write(out),
            Self::SetVlanPcp(number) | Self::SetNwTos(number) => number.write(out),
            Self::StripVlan => pad(out, 4),
            Self::SetDlSrc(address) | Self::SetDlDst(address) => address.write(out),
            Self::SetNwSrc(address) | Self::SetNwDst(address) => address.write(out),
            Self::Enqueue { port, queue_id } => {
                port.write(out);
                pad(out, 6);
                queue_id.write(out);
            }
            Self::Nicira(action) => {
                NICIRA.write(out);
                action.write(out);
            }
            Self::Vendor { vendor, data } => {
                vendor.write(out);
                data.write(out);
            }
        }
        pad_to_eight(out, start);
        set_length(out, start, 2);
    }
}
