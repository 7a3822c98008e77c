//! `OFPT_PACKET_OUT` of both versions.

use crate::error::{Fault, Refusal};
use crate::wire::{pad, Reader, Wire};

/// `OFPT_PACKET_OUT`. A port's number is a `Number`, and `PAD` bytes of padding stand behind the actions' length.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct PacketOut<Number, Action, const PAD: usize> {
    /// The buffer in which the switch keeps the frame, or [`crate::NO_BUFFER`].
    pub buffer_id: u32,
    /// Port that the frame counts as having come in by: [`crate::v10::port_number::NONE`] or
    /// [`crate::v13::port_number::CONTROLLER`] when it has come by none.
    pub in_port: Number,
    /// The actions on it.
    pub actions: Vec<Action>,
    /// The frame, unless the switch keeps it.
    pub data: Vec<u8>,
}

impl<Number: Wire, Action: Wire, const PAD: usize> Wire for PacketOut<Number, Action, PAD> {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (buffer_id, in_port) = (reader.get()?, reader.get()?);
        let actions_len = reader.get::<u16>()?;
        reader.skip(PAD)?;
        let actions = reader.part(usize::from(actions_len), Fault::BAD_LENGTH)?.get()?;
        Ok(Self { buffer_id, in_port, actions, data: reader.get()? })
    }

    #[allow(clippy::cast_possible_truncation)]
    fn write(&self, out: &mut Vec<u8>) {
        self.buffer_id.write(out);
        self.in_port.write(out);
        let length_at = out.len();
        pad(out, 2 + PAD);
        let start = out.len();
        self.actions.write(out);
        let length = (out.len() - start) as u16;
        out[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        self.data.write(out);
    }
}
