//! Frames on the way to and from the controller.

use super::action::Action;
use crate::layout::{open_enum, record};
use crate::oxm::Match;

open_enum! {
    /// Why a frame goes to the controller.
    pub enum PacketInReason: u8 { NoMatch = 0 "OFPR_NO_MATCH", Action = 1 "OFPR_ACTION",
        InvalidTtl = 2 "OFPR_INVALID_TTL" }
}

record! {
    /// `OFPT_PACKET_IN`.
    pub struct PacketIn {
        /// The buffer in which the switch keeps the frame, or [`crate::NO_BUFFER`].
        pub buffer_id: u32;
        /// Bytes of the whole frame.
        pub total_len: u16;
        /// Why.
        pub reason: PacketInReason;
        /// Table whose flow it was.
        pub table_id: u8;
        /// Cookie of that flow.
        pub cookie: u64;
        /// Pipeline fields: the port, the metadata, the tunnel.
        pub matching: Match [2];
        /// The frame, or its beginning.
        pub data: Vec<u8>;
    }
}

/// `OFPT_PACKET_OUT`.
pub type PacketOut = crate::packet_out::PacketOut<u32, Action, 6>;
