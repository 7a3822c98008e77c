//! Frames on the way to and from the controller.

use super::action::Action;
use crate::error::{Fault, Refusal};
use crate::layout::{open_enum, record};
use crate::wire::{pad, Reader, Wire};

open_enum! {
    /// Why a frame goes to the controller.
    pub enum PacketInReason: u8 { NoMatch = 0 "OFPR_NO_MATCH", Action = 1 "OFPR_ACTION" }
}

record! {
    /// `OFPT_PACKET_IN`.
    pub struct PacketIn {
        /// The buffer in which the switch keeps the frame, or [`crate::NO_BUFFER`].
        pub buffer_id: u32;
        /// Bytes of the whole frame.
        pub total_len: u16;
        /// Port that it came in by.
        pub in_port: u16;
        /// Why.
        pub reason: PacketInReason [1];
        /// The frame, or its beginning.
        pub data: Vec<u8>;
    }
}

/// `OFPT_PACKET_OUT`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct PacketOut {
    /// The buffer in which the switch keeps the frame, or [`crate::NO_BUFFER`].
    pub buffer_id: u32,
    /// Port that the frame counts as having come in by, or [`super::port_number::NONE`].
    pub in_port: u16,
    /// The actions on it.
    pub actions: Vec<Action>,
    /// The frame, unless the switch keeps it.
    pub data: Vec<u8>,
}

impl Wire for PacketOut {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (buffer_id, in_port) = (reader.get()?, reader.get()?);
        let actions_len = reader.get::<u16>()?;
        let actions = reader.part(usize::from(actions_len), Fault::BAD_LENGTH)?.get()?;
        Ok(Self { buffer_id, in_port, actions, data: reader.get()? })
    }

    #[allow(clippy::cast_possible_truncation)]
    fn write(&self, out: &mut Vec<u8>) {
        self.buffer_id.write(out);
        self.in_port.write(out);
        pad(out, 2);
        let start = out.len();
        self.actions.write(out);
        let length = (out.len() - start) as u16;
        out[start - 2..start].copy_from_slice(&length.to_be_bytes());
        self.data.write(out);
    }
}
