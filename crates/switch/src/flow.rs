//! A flow: where it stands in the pipeline, what it matches, what it does.

use std::fmt;

use super::action::{Action, List};
use super::matching::Match;
use super::written::Written;

/// The priority of a flow that names none (`OFP_DEFAULT_PRIORITY`).
pub(super) const DEFAULT_PRIORITY: u16 = 32768;

/// `OFPFF_SEND_FLOW_REM`.
pub(super) const TELL_WHEN_REMOVED: u16 = 1;
/// `OFPFF_CHECK_OVERLAP`.
pub(super) const CHECK_OVERLAP: u16 = 1 << 1;
/// `OFPFF_RESET_COUNTS`.
const RESET_COUNTS: u16 = 1 << 2;
/// `OFPFF_NO_PKT_COUNTS`.
pub(super) const NO_FRAME_COUNT: u16 = 1 << 3;
/// `OFPFF_NO_BYT_COUNTS`.
pub(super) const NO_BYTE_COUNT: u16 = 1 << 4;

/// The flags by the words of `ovs-ofctl`.
pub(super) static FLAGS: [(&str, u16); 5] = [
    ("send_flow_rem", TELL_WHEN_REMOVED),
    ("check_overlap", CHECK_OVERLAP),
    ("reset_counts", RESET_COUNTS),
    ("no_packet_counts", NO_FRAME_COUNT),
    ("no_byte_counts", NO_BYTE_COUNT),
];

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
    /// Match and actions as a controller wrote them.
    pub(super) written: Written,
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
            written: Written::default(),
        }
    }
}

impl Flow {
    /// "The table-miss flow entry wildcards all match fields and has the lowest priority (0)" (OpenFlow 1.3, 5.4).
    /// Version 1.0 knows none: there it is a flow like any other.
    pub(super) fn is_table_miss(&self) -> bool {
        self.priority == 0 && self.matching.mask.is_zero() && !self.written.is_of_v10()
    }

    /// Writes timeouts, flags, priority, match and actions, as the end of a line of `ovs-ofctl dump-flows`. That it
    /// was not to overlap others when it was added is left out: a dump can be added again.
    pub(super) fn write_rule(&self, f: &mut impl fmt::Write) -> fmt::Result {
        for (name, seconds) in [("idle_timeout", self.idle_timeout_s), ("hard_timeout", self.hard_timeout_s)] {
            if seconds != 0 {
                write!(f, "{name}={seconds}, ")?;
            }
        }
        for (name, _) in FLAGS.iter().filter(|(_, flag)| self.flags & flag & !CHECK_OVERLAP != 0) {
            write!(f, "{name} ")?;
        }
        let priority = (self.priority != DEFAULT_PRIORITY).then(|| format!("priority={}", self.priority));
        let parts: Vec<_> = priority.into_iter().chain(self.matching.parts()).collect();
        write!(f, "{} actions={}", parts.join(","), List(&self.actions))
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cookie={:#x}, table={}, ", self.cookie, self.table)?;
        self.write_rule(f)
    }
}
