//! A flow: where it stands in the pipeline, what it matches, what it does.

use std::fmt;

use super::action::{Action, List};
use super::matching::Match;

/// The priority of a flow that names none (`OFP_DEFAULT_PRIORITY`).
const DEFAULT_PRIORITY: u16 = 32768;

/// `OFPFF_SEND_FLOW_REM`.
pub(super) const TELL_WHEN_REMOVED: u16 = 1;
/// `OFPFF_NO_PKT_COUNTS`.
pub(super) const NO_FRAME_COUNT: u16 = 1 << 3;
/// `OFPFF_NO_BYT_COUNTS`.
pub(super) const NO_BYTE_COUNT: u16 = 1 << 4;

/// A flow as it was added; what it counted is kept beside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flow {
    pub(super) table: u8,
    pub(super) priority: u16,
    pub(super) cookie: u64,
    /// Seconds without a frame after which it goes; 0: never.
    pub(super) idle_timeout_s: u16,
    /// Seconds after which it goes in any case; 0: never.
    pub(super) hard_timeout_s: u16,
    /// `OFPFF_*` of OpenFlow 1.3.
    pub(super) flags: u16,
    pub(super) matching: Match,
    pub(super) actions: Vec<Action>,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            table: 0,
            priority: DEFAULT_PRIORITY,
            cookie: 0,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: 0,
            matching: Match::default(),
            actions: Vec::new(),
        }
    }
}

impl Flow {
    /// Writes priority, match and actions, as the end of a line of `ovs-ofctl dump-flows`.
    pub(super) fn write_rule(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let priority = (self.priority != DEFAULT_PRIORITY).then(|| format!("priority={}", self.priority));
        let parts: Vec<_> = priority.into_iter().chain(self.matching.parts()).collect();
        write!(f, "{} actions={}", parts.join(","), List(&self.actions))
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cookie={:#x}, table={}, ", self.cookie, self.table)?;
        if self.idle_timeout_s != 0 {
            write!(f, "idle_timeout={}, ", self.idle_timeout_s)?;
        }
        if self.hard_timeout_s != 0 {
            write!(f, "hard_timeout={}, ", self.hard_timeout_s)?;
        }
        self.write_rule(f)
    }
}
