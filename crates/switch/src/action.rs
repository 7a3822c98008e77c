//! The actions of a flow on a frame, and how they are written.

use std::fmt;

use super::event::PacketInReason;
use super::extension::Extension;
use super::field::MatchField;
use super::subfield;
use super::value;

/// One action or instruction of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Output(u32),
    InPort,
    Flood,
    All,
    Normal,
    Local,
    /// To the controllers of this number; the reason is what they are told, else the usual one.
    Controller {
        max_len: u16,
        id: u16,
        reason: Option<PacketInReason>,
    },
    Drop,
    Enqueue {
        port: u32,
        queue: u32,
    },
    SetQueue(u32),
    PopQueue,
    /// Changes those bits of a field that the mask has.
    SetField {
        field: &'static MatchField,
        value: u128,
        mask: u128,
    },
    /// `mod_*`: sets a field, in the words of OpenFlow 1.0.
    Modify {
        name: &'static str,
        field: &'static MatchField,
        value: u128,
    },
    PushVlan(u16),
    PopVlan,
    DecrementTtl,
    GotoTable(u8),
    WriteMetadata {
        value: u64,
        mask: u64,
    },
    WriteActions(Vec<Action>),
    ClearActions,
    /// Looks the frame up again as if it came in by `port` (none: as it did), in `table` (none: in this one).
    Resubmit {
        port: Option<u32>,
        table: Option<u8>,
    },
    Group(u32),
    Meter(u32),
    PushMpls(u16),
    /// The EtherType is what the frame then has.
    PopMpls(u16),
    PushBackbone(u16),
    PopBackbone,
    SetMplsTtl(u8),
    DecrementMplsTtl,
    SetTtl(u8),
    CopyTtlIn,
    CopyTtlOut,
    /// Copies bits of one field into another.
    Move {
        from: &'static MatchField,
        from_bit: u16,
        to: &'static MatchField,
        to_bit: u16,
        bits: u16,
    },
    /// Outputs to the port that bits of a field name.
    OutputField {
        field: &'static MatchField,
        first_bit: u16,
        bits: u16,
    },
    /// `multipath`, `bundle`, `learn` or `fin_timeout`.
    Extension(Box<Extension>),
    /// Bytes without effect: two, and a multiple of eight less.
    Note(Vec<u8>),
    /// Ends all actions, those of earlier look-ups too.
    Exit,
    /// Submits the frame to the tables (packet-out only).
    Table,
}

/// The `mod_*` actions and the fields that they set.
pub(super) static MODIFICATIONS: &[(&str, &str)] = &[
    ("mod_dl_src", "dl_src"),
    ("mod_dl_dst", "dl_dst"),
    ("mod_nw_src", "nw_src"),
    ("mod_nw_dst", "nw_dst"),
    ("mod_nw_tos", "nw_tos"),
    ("mod_nw_ecn", "nw_ecn"),
    ("mod_nw_ttl", "nw_ttl"),
    ("mod_tp_src", "tp_src"),
    ("mod_tp_dst", "tp_dst"),
    ("mod_vlan_vid", "dl_vlan"),
    ("mod_vlan_pcp", "vlan_pcp"),
];

/// Names of actions, for error messages.
pub(super) const ACTION_NAMES: &str = "output:N (or N), in_port, flood, all, normal, local, controller, drop, \
    enqueue:PORT:QUEUE, set_queue:N, pop_queue, set_field:VALUE->FIELD, mod_dl_src, mod_dl_dst, mod_nw_src, \
    mod_nw_dst, mod_nw_tos, mod_nw_ecn, mod_nw_ttl, mod_tp_src, mod_tp_dst, mod_vlan_vid, mod_vlan_pcp, strip_vlan, \
    pop_vlan, push_vlan:PROTOCOL, dec_ttl, load:VALUE->FIELD[A..B], move:FIELD[A..B]->FIELD[C..D], \
    output:FIELD[A..B], controller(...), learn(...), multipath(...), bundle(...), bundle_load(...), \
    fin_timeout(...), note:BYTES, goto_table:N, write_metadata:VALUE/MASK, write_actions(...), clear_actions, \
    resubmit(PORT,TABLE), group:N, meter:N, push_mpls:PROTOCOL, pop_mpls:PROTOCOL, push_pbb:PROTOCOL, pop_pbb, \
    set_mpls_ttl:N, dec_mpls_ttl, set_nw_ttl:N, copy_ttl_in, copy_ttl_out, exit";

impl Action {
    /// Returns `true` if it sends the frame somewhere.
    pub(super) fn is_output(&self) -> bool {
        matches!(
            self,
            Self::Output(_)
                | Self::InPort
                | Self::Flood
                | Self::All
                | Self::Normal
                | Self::Local
                | Self::Controller { .. }
                | Self::Enqueue { .. }
                | Self::OutputField { .. }
        )
    }

    /// Returns `true` if it depends on the headers that the frame has now.
    pub(super) fn reads_headers(&self) -> bool {
        !matches!(
            self,
            Self::Output(_)
                | Self::InPort
                | Self::Flood
                | Self::All
                | Self::Local
                | Self::Controller { .. }
                | Self::Enqueue { .. }
                | Self::SetQueue(_)
                | Self::PopQueue
                | Self::WriteMetadata { .. }
                | Self::WriteActions(_)
                | Self::ClearActions
                | Self::GotoTable(_)
                | Self::Exit
                | Self::Drop
                | Self::Note(_)
        )
    }

    /// Returns its place in the order in which an action set is carried out (OpenFlow 1.3, 5.10).
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::CopyTtlIn => 0,
            Self::PopVlan | Self::PopMpls(_) | Self::PopBackbone => 1,
            Self::PushMpls(_) => 2,
            Self::PushBackbone(_) => 3,
            Self::PushVlan(_) => 4,
            Self::CopyTtlOut => 5,
            Self::DecrementTtl | Self::DecrementMplsTtl => 6,
            Self::SetQueue(_) | Self::PopQueue => 8,
            Self::Group(_) => 9,
            action if action.is_output() => 10,
            _ => 7,
        }
    }

    /// Returns `true` if an action set holds only one of both: the later one.
    pub(super) fn replaces(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SetField { field, .. }, Self::SetField { field: other, .. }) => field.field == other.field,
            (Self::Modify { field, .. }, Self::Modify { field: other, .. }) => field.field == other.field,
            (one, other) if one.rank() == 8 || one.rank() == 10 => one.rank() == other.rank(),
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(port) => write!(f, "output:{}", value::show_port(*port)),
            Self::InPort => f.write_str("IN_PORT"),
            Self::Flood => f.write_str("FLOOD"),
            Self::All => f.write_str("ALL"),
            Self::Normal => f.write_str("NORMAL"),
            Self::Local => f.write_str("LOCAL"),
            Self::Controller { max_len, id: 0, reason: None } => write!(f, "CONTROLLER:{max_len}"),
            Self::Controller { max_len, id, reason } => {
                let word = match reason {
                    Some(PacketInReason::NoMatch) => "reason=no_match,",
                    Some(PacketInReason::InvalidTtl) => "reason=invalid_ttl,",
                    Some(PacketInReason::Action) | None => "",
                };
                write!(f, "controller({word}max_len={max_len},id={id})")
            }
            Self::Note(bytes) => {
                let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                write!(f, "note:{}", bytes.join("."))
            }
            Self::Drop => f.write_str("drop"),
            Self::Enqueue { port, queue } => write!(f, "enqueue:{}:{queue}", value::show_port(*port)),
            Self::SetQueue(queue) => write!(f, "set_queue:{queue}"),
            Self::PopQueue => f.write_str("pop_queue"),
            Self::SetField { field, value, mask } if is_loaded(field, *value, *mask) => {
                let first_bit = mask.trailing_zeros();
                let to = subfield::show_own(field, first_bit as u16, mask.count_ones() as u16);
                write!(f, "load:{}->{to}", value::hexadecimal(value >> first_bit))
            }
            Self::SetField { field, value, mask } => {
                write!(f, "set_field:{}->{}", value::show_masked(field, *value, *mask), field.name)
            }
            Self::Modify { name, field, value } => write!(f, "{name}:{}", value::show(field.format, *value)),
            Self::PushVlan(protocol) => write!(f, "push_vlan:{protocol:#06x}"),
            Self::PopVlan => f.write_str("pop_vlan"),
            Self::DecrementTtl => f.write_str("dec_ttl"),
            Self::GotoTable(table) => write!(f, "goto_table:{table}"),
            Self::WriteMetadata { value, mask: u64::MAX } => {
                write!(f, "write_metadata:{}", value::hexadecimal((*value).into()))
            }
            Self::WriteMetadata { value, mask } => {
                write!(f, "write_metadata:{}/{mask:#x}", value::hexadecimal((*value).into()))
            }
            Self::WriteActions(actions) => write!(f, "write_actions({})", List(actions)),
            Self::ClearActions => f.write_str("clear_actions"),
            Self::Group(group) => write!(f, "group:{group}"),
            Self::Meter(meter) => write!(f, "meter:{meter}"),
            Self::PushMpls(protocol) => write!(f, "push_mpls:{protocol:#06x}"),
            Self::PopMpls(protocol) => write!(f, "pop_mpls:{protocol:#06x}"),
            Self::PushBackbone(protocol) => write!(f, "push_pbb:{protocol:#06x}"),
            Self::PopBackbone => f.write_str("pop_pbb"),
            Self::SetMplsTtl(ttl) => write!(f, "set_mpls_ttl:{ttl}"),
            Self::DecrementMplsTtl => f.write_str("dec_mpls_ttl"),
            Self::SetTtl(ttl) => write!(f, "set_nw_ttl:{ttl}"),
            Self::CopyTtlIn => f.write_str("copy_ttl_in"),
            Self::CopyTtlOut => f.write_str("copy_ttl_out"),
            Self::Move { from, from_bit, to, to_bit, bits } => {
                let (from, to) = (subfield::show_own(from, *from_bit, *bits), subfield::show_own(to, *to_bit, *bits));
                write!(f, "move:{from}->{to}")
            }
            Self::OutputField { field, first_bit, bits } => {
                write!(f, "output:{}", subfield::show_own(field, *first_bit, *bits))
            }
            Self::Extension(extension) => extension.fmt(f),
            Self::Exit => f.write_str("exit"),
            Self::Table => f.write_str("TABLE"),
            Self::Resubmit { port: Some(port), table: None } => write!(f, "resubmit:{}", value::show_port(*port)),
            Self::Resubmit { port, table } => {
                let port = port.map_or(String::new(), value::show_port);
                write!(f, "resubmit({port},{})", table.map_or(String::new(), |table| table.to_string()))
            }
        }
    }
}

/// Returns `true` if `set_field` cannot say it and `load` can: some bits in a row of a field that takes no mask, or one
/// that is only loaded.
fn is_loaded(field: &MatchField, value: u128, mask: u128) -> bool {
    let in_a_row = mask != 0 && (mask >> mask.trailing_zeros()).wrapping_add(1) & (mask >> mask.trailing_zeros()) == 0;
    let unsaid = !field.settable || !field.maskable && mask != field.field.maximum();
    in_a_row && value & !mask == 0 && unsaid
}

/// Actions, separated by commas; `drop` when there are none.
pub(super) struct List<'a>(pub(super) &'a [Action]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("drop");
        }
        for (index, action) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{action}")?;
        }
        Ok(())
    }
}
