//! A flow as a controller wrote it, kept beside what the switch made of it: it reads back bit for bit in
//! the form in which it was written.
//!
//! The switch works with its own matches and actions, which say less: what an output to a port asks of a
//! controller, conditions that a version does not look at, masks of all ones, the order of instructions. In another
//! form, and of flows that no controller wrote, the switch tells its own.

use std::sync::Arc;

use twinnet_openflow::Verbatim;

/// In whose bytes something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// OpenFlow 1.0; Nicira's flows have actions of this form.
    V10,
    /// OpenFlow 1.3.
    V13,
    /// Nicira's extensible match, without its padding.
    Nicira,
}

/// Something that was written, as bytes; `None`: no controller wrote it.
type Part = Option<(Form, Arc<[u8]>)>;

/// The match and the actions (1.3: the instructions) of a flow as they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Written {
    pub(super) matching: Part,
    pub(super) actions: Part,
}

impl Written {
    /// Written in one message.
    pub(super) fn new(matching: (Form, Arc<[u8]>), actions: (Form, Arc<[u8]>)) -> Self {
        Self { matching: Some(matching), actions: Some(actions) }
    }

    /// Returns `true` if the flow was written in OpenFlow 1.0, with its own match or Nicira's.
    pub(super) fn is_of_v10(&self) -> bool {
        matches!(self.matching, Some((Form::V10 | Form::Nicira, _)))
    }

    /// The match for a reader of `form`, by `own` where it was not written so.
    pub(super) fn matching_in<T>(&self, form: Form, own: impl FnOnce() -> T) -> Verbatim<T> {
        read(&self.matching, form, own)
    }

    /// The actions for a reader of `form`, by `own` where they were not written so.
    pub(super) fn actions_in<T>(&self, form: Form, own: impl FnOnce() -> T) -> Verbatim<T> {
        read(&self.actions, form, own)
    }
}

fn read<T>(part: &Part, form: Form, own: impl FnOnce() -> T) -> Verbatim<T> {
    match part {
        Some((written, bytes)) if *written == form => Verbatim::Bytes(Arc::clone(bytes)),
        _ => Verbatim::Value(own()),
    }
}
