//! Frames on the way to and from the controller.

use super::action::Action;
use crate::layout::{open_enum, record};

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
pub type PacketOut = crate::packet_out::PacketOut<u16, Action, 0>;
