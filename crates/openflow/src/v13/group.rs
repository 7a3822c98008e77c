//! Groups: how they are changed.

use super::action::Action;
use super::error::{ErrorKind, GroupModFailed};
use std::sync::Arc;

use crate::layout::{closed_enum, record};
use crate::verbatim;

/// Group numbers that stand for something else than one group.
pub mod group_number {
    /// `OFPG_MAX`: the highest number of a group.
    pub const MAX: u32 = 0xffff_ff00;
    /// `OFPG_ALL`: every group (deleting, and statistics).
    pub const ALL: u32 = 0xffff_fffc;
    /// `OFPG_ANY`: any group, where a group restricts something.
    pub const ANY: u32 = 0xffff_ffff;
}

closed_enum! {
    /// The command of a change of a group.
    pub enum GroupModCommand: u16, ErrorKind::GroupModFailed(GroupModFailed::BadCommand).fault(),
        "the group-mod command", "0 to 2" {
        Add = 0 "OFPGC_ADD", Modify = 1 "OFPGC_MODIFY", Delete = 2 "OFPGC_DELETE",
    }
}

closed_enum! {
    /// The rule for which of a group's buckets are used.
    pub enum GroupType: u8, ErrorKind::GroupModFailed(GroupModFailed::BadType).fault(), "the group's type", "0 to 3" {
        All = 0 "OFPGT_ALL", Select = 1 "OFPGT_SELECT", Indirect = 2 "OFPGT_INDIRECT", FastFailover = 3 "OFPGT_FF",
    }
}

record! {
    /// A bucket: an action set, and what it depends on.
    pub struct Bucket sized 0, 16 {
        [2];
        /// Share of the traffic; select groups only.
        pub weight: u16;
        /// Port whose liveness the bucket shares; [`super::port_number::ANY`]: none.
        pub watch_port: u32;
        /// Group whose liveness the bucket shares; [`group_number::ANY`]: none.
        pub watch_group: u32 [4];
        /// The actions, executed as an action set.
        pub actions: Vec<Action>;
    }
}

record! {
    /// `OFPT_GROUP_MOD`.
    pub struct GroupMod {
        /// The command.
        pub command: GroupModCommand;
        /// The rule for which buckets are used.
        pub group_type: GroupType [1];
        /// Number; [`group_number::ALL`] only when deleting.
        pub group_id: u32;
        /// Buckets.
        pub buckets: Vec<Bucket>;
    }
}

impl GroupMod {
    /// The buckets as they stand in a whole message that was decoded.
    #[must_use]
    pub fn written(message: &[u8]) -> Arc<[u8]> {
        verbatim::from(message, 16)
    }
}
