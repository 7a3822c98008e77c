//! Flows: how they are changed, and how their end is reported.

use super::action::Action;
use super::error::{ErrorKind, FlowModFailed};
use super::flow_match::Match;
use std::sync::Arc;

use crate::layout::{closed_enum, flags, open_enum, record};
use crate::verbatim;
use crate::Verbatim;

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
    /// The behaviour of a flow. Other bits are kept: the version has no error for them.
    pub struct FlowFlags: u16 {
        SEND_FLOW_REM = 1 << 0, "OFPFF_SEND_FLOW_REM";
        CHECK_OVERLAP = 1 << 1, "OFPFF_CHECK_OVERLAP";
        EMERG = 1 << 2, "OFPFF_EMERG";
    }
}

record! {
    /// `OFPT_FLOW_MOD`.
    pub struct FlowMod {
        /// The match: which frames.
        pub matching: Match;
        /// Cookie to set.
        pub cookie: u64;
        /// Table: Nicira's extension ([`crate::nicira::Message::FlowModTableId`]) has it in the upper half of the
        /// command's 16 bits. While that is off, a switch answers anything but 0 with `OFPFMFC_BAD_COMMAND`.
        pub table_id: u8;
        /// The command.
        pub command: FlowModCommand;
        /// Seconds without a frame after which the flow ends; 0: never.
        pub idle_timeout: u16;
        /// Seconds after which the flow ends; 0: never.
        pub hard_timeout: u16;
        /// Priority; a flow without wildcards comes before all others.
        pub priority: u16;
        /// Frame that the new flow is applied to, or [`crate::NO_BUFFER`].
        pub buffer_id: u32;
        /// Delete only flows that output here; [`super::port_number::NONE`]: all.
        pub out_port: u16;
        /// Flags.
        pub flags: FlowFlags;
        /// The actions on the frames; none: they are dropped.
        pub actions: Vec<Action>;
    }
}

impl FlowMod {
    /// Match and actions as they stand in a whole message that was decoded.
    #[must_use]
    pub fn written(message: &[u8]) -> (Arc<[u8]>, Arc<[u8]>) {
        const MATCH: usize = 8;
        const ACTIONS: usize = 72;
        (verbatim::padded(message.get(MATCH..).unwrap_or_default(), 40), verbatim::from(message, ACTIONS))
    }
}

open_enum! {
    /// Why a flow ended.
    pub enum FlowRemovedReason: u8 {
        IdleTimeout = 0 "OFPRR_IDLE_TIMEOUT", HardTimeout = 1 "OFPRR_HARD_TIMEOUT", Delete = 2 "OFPRR_DELETE",
    }
}

record! {
    /// `OFPT_FLOW_REMOVED`.
    pub struct FlowRemoved {
        /// The match: which frames they were.
        pub matching: Verbatim<Match>;
        /// Cookie.
        pub cookie: u64;
        /// Priority.
        pub priority: u16;
        /// Why.
        pub reason: FlowRemovedReason [1];
        /// Whole seconds that it lived.
        pub duration_sec: u32;
        /// Nanoseconds beyond them.
        pub duration_nsec: u32;
        /// Idle timeout in seconds.
        pub idle_timeout: u16 [2];
        /// Frames.
        pub packet_count: u64;
        /// Bytes.
        pub byte_count: u64;
    }
}
