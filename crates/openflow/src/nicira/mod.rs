//! Nicira's extensions, as Open vSwitch speaks them and controllers use them: actions in both versions, and
//! messages around OpenFlow 1.0.
//!
//! Faults here have numbers that both versions share, so that the answer is right in either.

mod action;
mod balance;
mod flow;
mod learn;
mod message;
mod register;
mod statistics;

pub use action::{Action, ControllerReason};
pub use balance::{Bundle, HashFields, Multipath};
pub use flow::{FlowMod, FlowRemoved, PacketIn};
pub use learn::{Learn, LearnSource, LearnSpec, LearnTarget};
pub use message::{AsyncConfig, FlowFormat, Message, PacketInFormat, Role};
pub use register::{RegisterMove, Subfield};
pub use statistics::{FlowStats, FlowStatsRequest, StatsReply, StatsRequest};

/// Nicira's number among vendors and experimenters.
pub const NICIRA: u32 = 0x0000_2320;

use crate::error::{Fault, Refusal};

/// A refusal of a match inside a message, which OpenFlow 1.0 has no error type for: a bad length, or else a vendor
/// subtype that is not supported (with what it holds).
const fn in_message(refusal: Refusal) -> Refusal {
    let bad_length = crate::v13::ErrorKind::BadMatch(crate::v13::BadMatch::BadLen).fault();
    let fault = if refusal.fault.error_type != bad_length.error_type {
        refusal.fault
    } else if refusal.fault.code == bad_length.code {
        Fault::BAD_LENGTH
    } else {
        BAD_SUBTYPE
    };
    Refusal { fault, ..refusal }
}

/// `OFPBRC_BAD_SUBTYPE` of 1.0, `OFPBRC_BAD_EXP_TYPE` of 1.3.
const BAD_SUBTYPE: Fault = crate::v13::ErrorKind::BadRequest(crate::v13::BadRequest::BadExpType).fault();
