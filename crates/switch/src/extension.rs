//! Nicira's actions that choose a way by a hash (`multipath`, `bundle`), make a flow of the frame (`learn`), or
//! shorten their flow's timeouts at the end of a connection (`fin_timeout`).

use std::fmt;

use twinnet_openflow::nicira;
use twinnet_packet::{Field, FlowKey};

use super::action::Action;
use super::extension_syntax;
use super::field::MatchField;
use super::flow::{Flow, TELL_WHEN_REMOVED};
use super::group::Groups;
use super::matching::Match;
use super::value;
use super::written::Written;

/// Tries of `iter_hash` before the first way is taken.
const MOST_TRIES: u32 = 64;

/// Some bits of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) field: &'static MatchField,
    pub(super) first_bit: u16,
    pub(super) bits: u16,
}

impl Part {
    pub(super) fn ones(&self) -> u128 {
        u128::MAX.checked_shr(128 - u32::from(self.bits.clamp(1, 128))).unwrap_or(u128::MAX)
    }

    /// Returns `true` if a constant may be written there; the whole tag of a VLAN can only be written so.
    pub(super) fn is_loadable(&self) -> bool {
        self.field.settable || self.field.field == Field::VLAN_TCI
    }

    fn of(&self, key: &FlowKey) -> u128 {
        key.get(self.field.field) >> self.first_bit & self.ones()
    }
}

/// The input of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hashed {
    pub(super) fields: nicira::HashFields,
    pub(super) basis: u16,
}

impl Hashed {
    /// A hash; of both directions the same where the fields are called symmetric.
    fn of(self, key: &FlowKey) -> u32 {
        use nicira::HashFields as Fields;
        let mut flow = FlowKey::ZERO;
        let mut take = |fields: &[Field]| fields.iter().for_each(|field| flow.set(*field, key.get(*field)));
        let ports = match self.fields {
            Fields::EthSrc => {
                take(&[Field::ETH_SRC]);
                false
            }
            Fields::NwSrc => {
                take(&[Field::NW_SRC, Field::IPV6_SRC]);
                false
            }
            Fields::NwDst => {
                take(&[Field::NW_DST, Field::IPV6_DST]);
                false
            }
            Fields::SymmetricL4 => {
                take(&[Field::VLAN_VID, Field::ETH_TYPE, Field::NW_PROTO]);
                flow.set(Field::ETH_SRC, key.get(Field::ETH_SRC) ^ key.get(Field::ETH_DST));
                matches!(key.ip_proto(), 6 | 132)
            }
            Fields::SymmetricL3L4 => {
                take(&[Field::ETH_TYPE, Field::NW_PROTO]);
                matches!(key.ip_proto(), 6 | 132)
            }
            Fields::SymmetricL3L4Udp => {
                take(&[Field::ETH_TYPE, Field::NW_PROTO]);
                matches!(key.ip_proto(), 6 | 17 | 132)
            }
            _ => {
                take(&[Field::ETH_TYPE]);
                false
            }
        };
        if !matches!(self.fields, Fields::EthSrc | Fields::NwSrc | Fields::NwDst) {
            flow.set(Field::NW_SRC, key.get(Field::NW_SRC) ^ key.get(Field::NW_DST));
            flow.set(Field::IPV6_SRC, key.get(Field::IPV6_SRC) ^ key.get(Field::IPV6_DST));
        }
        if ports {
            flow.set(Field::TP_SRC, key.get(Field::TP_SRC) ^ key.get(Field::TP_DST));
        }
        (flow.digest(u64::from(self.basis) << 32 | 0x5eed) >> 16) as u32
    }
}

fn weight(hash: u32, way: u32) -> u64 {
    twinnet_packet::mix(u64::from(hash) << 32 | u64::from(way), 0x9e37_79b9_7f4a_7c15)
}

/// The way one of several is chosen by a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Modulo,
    Threshold,
    HighestWeight,
    /// Hashes anew until the number is that of a way: with room for so many.
    Iterate(u32),
}

impl Choice {
    /// One of the numbers below `ways`, which is not zero.
    fn choose(self, hash: u32, ways: u32) -> u32 {
        match self {
            Self::Modulo => hash % ways,
            Self::Threshold => ((u64::from(hash) * u64::from(ways)) >> 32) as u32,
            Self::HighestWeight => (0..ways).max_by_key(|way| weight(hash, *way)).unwrap_or(0),
            Self::Iterate(room) => {
                let room = room.max(ways);
                (0..MOST_TRIES)
                    .map(|again| (weight(hash, again) >> 32) as u32 % room)
                    .find(|way| *way < ways)
                    .unwrap_or(0)
            }
        }
    }
}

/// The source of the bits of a part of a learnt flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    Field(Part),
    Immediate(u128),
}

impl Source {
    fn of(&self, key: &FlowKey) -> u128 {
        match self {
            Self::Field(part) => part.of(key),
            Self::Immediate(value) => *value,
        }
    }
}

/// The target of those bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    Match(Part),
    Load(Part),
    Output,
}

/// The kind of an action, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Multipath {
        hashed: Hashed,
        choice: Choice,
        ways: u32,
        to: Part,
    },
    /// To the first member that is live, or the live one with the highest weight; its number is written `to` a
    /// field or output to.
    Bundle {
        hashed: Hashed,
        by_weight: bool,
        members: Vec<u32>,
        to: Option<Part>,
    },
    Learn {
        learn: nicira::Learn,
        parts: Vec<(Source, Target)>,
    },
    /// A FIN or RST shortens the timeouts of the flow that it follows to these seconds; 0: leaves that one.
    FinTimeout {
        idle_s: u16,
        hard_s: u16,
    },
}

/// FIN and RST among TCP's flags.
const ENDING: u128 = 0b101;
const TCP: u8 = 6;

/// One of these actions, and how it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Extension {
    pub(super) kind: Kind,
    pub(super) wire: nicira::Action,
}

/// The effect of an action on a frame.
pub(super) enum Effect {
    Set(Part, u128),
    Output(u32),
    Nothing,
    Learn(Box<Flow>),
    /// The timeouts of the flow become no longer than these seconds, idle and hard.
    Shorten(u16, u16),
}

impl Extension {
    /// Timeouts in seconds for after a FIN or RST.
    pub(super) fn fin_timeout(idle_s: u16, hard_s: u16) -> Self {
        let wire = nicira::Action::FinTimeout { idle_timeout: idle_s, hard_timeout: hard_s };
        Self { kind: Kind::FinTimeout { idle_s, hard_s }, wire }
    }

    /// Returns what the action does for a frame with `key`.
    pub(super) fn effect(&self, key: &FlowKey, groups: &Groups) -> Effect {
        match &self.kind {
            Kind::Multipath { hashed, choice, ways, to } => {
                Effect::Set(*to, u128::from(choice.choose(hashed.of(key), *ways)))
            }
            Kind::Bundle { hashed, by_weight, members, to } => {
                let hash = hashed.of(key);
                let mut live = members.iter().copied().filter(|member| groups.is_port_live(*member));
                let chosen = if *by_weight { live.max_by_key(|member| weight(hash, *member)) } else { live.next() };
                match (to, chosen) {
                    (Some(to), chosen) => Effect::Set(*to, u128::from(chosen.unwrap_or(value::PORT_ANY)) & to.ones()),
                    (None, Some(member)) => Effect::Output(member),
                    (None, None) => Effect::Nothing,
                }
            }
            Kind::FinTimeout { idle_s, hard_s } => {
                let ends = key.ip_proto() == TCP && key.get(Field::TCP_FLAGS) & ENDING != 0;
                if ends {
                    Effect::Shorten(*idle_s, *hard_s)
                } else {
                    Effect::Nothing
                }
            }
            Kind::Learn { learn, parts } => {
                learnt(learn, parts, key).map_or(Effect::Nothing, |flow| Effect::Learn(Box::new(flow)))
            }
        }
    }
}

/// The flow that a frame with `key` teaches; `None`: its match would lack what a field needs.
fn learnt(learn: &nicira::Learn, parts: &[(Source, Target)], key: &FlowKey) -> Option<Flow> {
    let mut matching = Match::default();
    let mut actions = Vec::new();
    for (source, target) in parts {
        let bits = source.of(key);
        match target {
            Target::Match(to) => {
                let met = to.field.needs.met(&matching);
                if !met || !matching.restrict(to.field.field, bits << to.first_bit, to.ones() << to.first_bit) {
                    return None;
                }
            }
            Target::Load(to) => {
                let (value, mask) = (bits << to.first_bit, to.ones() << to.first_bit);
                actions.push(Action::SetField { field: to.field, value, mask });
            }
            Target::Output => {
                let port = u32::try_from(bits).ok().filter(|port| (1..=value::PORT_MAX).contains(port))?;
                actions.push(Action::Output(port));
            }
        }
    }
    let (idle_s, hard_s) = (learn.fin_idle_timeout, learn.fin_hard_timeout);
    if (idle_s, hard_s) != (0, 0) {
        actions.push(Action::Extension(Box::new(Extension::fin_timeout(idle_s, hard_s))));
    }
    Some(Flow {
        table: learn.table_id,
        priority: learn.priority,
        cookie: learn.cookie,
        idle_timeout_s: learn.idle_timeout,
        hard_timeout_s: learn.hard_timeout,
        flags: learn.flags & TELL_WHEN_REMOVED,
        matching,
        actions,
        written: Written::default(),
    })
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        extension_syntax::write(&self.wire, f)
    }
}
