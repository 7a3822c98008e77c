//! Flows: how they are changed, and how their end is reported.

use super::error::{ErrorKind, FlowModFailed};
use super::instruction::Instruction;
use crate::layout::{closed_enum, flags, open_enum, record};
use std::sync::Arc;

use crate::oxm::Match;
use crate::verbatim;
use crate::Verbatim;

/// Table numbers that stand for something else than one table.
pub mod table_number {
    /// `OFPTT_MAX`: the highest number of a table.
    pub const MAX: u8 = 0xfe;
    /// `OFPTT_ALL`: every table.
    pub const ALL: u8 = 0xff;
}

closed_enum! {
    /// The command of a change of flows.
    pub enum FlowModCommand: u8, ErrorKind::FlowModFailed(FlowModFailed::BadCommand).fault(), "the flow-mod command",
        "0 to 4" {
        Add = 0 "OFPFC_ADD", Modify = 1 "OFPFC_MODIFY", ModifyStrict = 2 "OFPFC_MODIFY_STRICT",
            Delete = 3 "OFPFC_DELETE",
        DeleteStrict = 4 "OFPFC_DELETE_STRICT",
    }
}

flags! {
    /// The behaviour of a flow.
    pub struct FlowFlags: u16, ErrorKind::FlowModFailed(FlowModFailed::BadFlags).fault(), "the flow's flags",
        "0 to 0x1f" {
        SEND_FLOW_REM = 1 << 0, "OFPFF_SEND_FLOW_REM";
        CHECK_OVERLAP = 1 << 1, "OFPFF_CHECK_OVERLAP";
        RESET_COUNTS = 1 << 2, "OFPFF_RESET_COUNTS";
        NO_PKT_COUNTS = 1 << 3, "OFPFF_NO_PKT_COUNTS";
        NO_BYT_COUNTS = 1 << 4, "OFPFF_NO_BYT_COUNTS";
    }
}

record! {
    /// `OFPT_FLOW_MOD`.
    pub struct FlowMod {
        /// Cookie to set.
        pub cookie: u64;
        /// Bits of the cookie that a flow must share to be changed or deleted; not used when adding.
        pub cookie_mask: u64;
        /// Table; [`table_number::ALL`] only when deleting.
        pub table_id: u8;
        /// The command.
        pub command: FlowModCommand;
        /// Seconds without a frame after which the flow ends; 0: never.
        pub idle_timeout: u16;
        /// Seconds after which the flow ends; 0: never.
        pub hard_timeout: u16;
        /// Priority.
        pub priority: u16;
        /// Frame that the new flow is applied to, or [`crate::NO_BUFFER`].
        pub buffer_id: u32;
        /// Delete only flows that output here; [`super::port_number::ANY`]: all.
        pub out_port: u32;
        /// Delete only flows that use this group; [`super::group_number::ANY`]: all.
        pub out_group: u32;
        /// Flags.
        pub flags: FlowFlags [2];
        /// The match: which frames.
        pub matching: Match;
        /// The instructions for them.
        pub instructions: Vec<Instruction>;
    }
}

impl FlowMod {
    /// Match and instructions as they stand in a whole message that was decoded.
    #[must_use]
    pub fn written(message: &[u8]) -> (Arc<[u8]>, Arc<[u8]>) {
        const MATCH: usize = 48;
        let rest = message.get(MATCH..).unwrap_or_default();
        let length = rest.get(2..4).map_or(0, |pair| usize::from(u16::from_be_bytes([pair[0], pair[1]])));
        (verbatim::padded(rest, length), verbatim::from(rest, length.next_multiple_of(8)))
    }
}

open_enum! {
    /// Why a flow ended.
    pub enum FlowRemovedReason: u8 {
        IdleTimeout = 0 "OFPRR_IDLE_TIMEOUT", HardTimeout = 1 "OFPRR_HARD_TIMEOUT", Delete = 2 "OFPRR_DELETE",
        GroupDelete = 3 "OFPRR_GROUP_DELETE",
    }
}

record! {
    /// `OFPT_FLOW_REMOVED`.
    pub struct FlowRemoved {
        /// Cookie.
        pub cookie: u64;
        /// Priority.
        pub priority: u16;
        /// Why.
        pub reason: FlowRemovedReason;
        /// Table.
        pub table_id: u8;
        /// Whole seconds that it lived.
        pub duration_sec: u32;
        /// Nanoseconds beyond them.
        pub duration_nsec: u32;
        /// Idle timeout in seconds.
        pub idle_timeout: u16;
        /// Hard timeout in seconds.
        pub hard_timeout: u16;
        /// Frames.
        pub packet_count: u64;
        /// Bytes.
        pub byte_count: u64;
        /// The match: which frames they were.
        pub matching: Verbatim<Match>;
    }
}
