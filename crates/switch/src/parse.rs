//! A flow from its text, in the syntax of `ovs-ofctl`.
//!
//! Differences to `ovs-ofctl`, all on the strict side: a condition whose prerequisite is missing (`tp_dst` without
//! `tcp`) or that contradicts another is an error where `ovs-ofctl` drops or overrides it.

use twinnet_packet::Field;

use super::action::{Action, ACTION_NAMES, MODIFICATIONS};
use super::event::PacketInReason;
use super::extension_syntax;
use super::field::{Format, MatchField, Needs, FIELDS, SHORTHANDS};
use super::flow::{Flow, FLAGS};
use super::matching::Match;
use super::nearest;
use super::subfield::{self, Subfield};
use super::syntax::{FlowSyntaxError, Item, Items, Word};
use super::value;

/// The last table of the pipeline (OpenFlow 1.3: 255 stands for all).
pub(super) const LAST_TABLE: u8 = 254;
/// Bytes that a note may have.
const MOST_NOTE_BYTES: usize = 1024;
/// Actions that one flow may have.
const MOST_ACTIONS: usize = 256;

/// The flows that a deletion means.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Selection {
    pub(super) table: Option<u8>,
    /// Value and mask.
    pub(super) cookie: (u64, u64),
    pub(super) out_port: Option<u32>,
    pub(super) out_group: Option<u32>,
    /// Flows that this meter measures.
    pub(super) meter: Option<u32>,
    /// Only the flow with exactly this match and this priority.
    pub(super) strict: Option<u16>,
    pub(super) matching: Match,
}

pub(super) type Parsed<T> = Result<T, FlowSyntaxError>;

/// Conditions as they are gathered, with the words whose prerequisites are to be checked at the end.
#[derive(Default)]
struct Conditions<'a> {
    matching: Match,
    needs: Vec<(Word<'a>, Needs)>,
}

/// Reads a whole flow.
pub(super) fn flow(line: &str) -> Parsed<Flow> {
    let mut flow = Flow::default();
    let mut conditions = Conditions::default();
    let mut actions = None;
    let mut items = Items::of_flow(Word::whole(line));
    while let Some(item) = items.next()? {
        match item.name.text {
            "table" => flow.table = table(item)?,
            "priority" => flow.priority = integer(item, 0, u64::from(u16::MAX))?,
            "idle_timeout" => flow.idle_timeout_s = integer(item, 0, u64::from(u16::MAX))?,
            "hard_timeout" => flow.hard_timeout_s = integer(item, 0, u64::from(u16::MAX))?,
            "cookie" => flow.cookie = integer(item, 0, u64::MAX)?,
            "actions" | "action" => actions = Some(value_of(item)?),
            name if FLAGS.iter().any(|(flag, _)| *flag == name) => flow.flags |= flag(item)?,
            // What a dump shows beside the flow itself.
            "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => {
                value_of(item)?;
            }
            _ => conditions.add(item)?,
        }
    }
    let Some(actions) = actions else {
        let end = Word { text: "", column: line.chars().count() + 1 };
        return Err(end.error("ends without actions", "end the flow with actions=..., for example actions=drop"));
    };
    flow.matching = conditions.checked()?;
    flow.actions = Reader { matching: flow.matching, table: flow.table, nested: false }.actions(actions)?;
    Ok(flow)
}

/// Reads the text that selects flows to delete; an empty one selects all.
pub(super) fn selection(line: &str) -> Parsed<Selection> {
    let mut selection = Selection::default();
    let mut conditions = Conditions::default();
    let mut items = Items::of_flow(Word::whole(line));
    while let Some(item) = items.next()? {
        match item.name.text {
            "table" => selection.table = Some(table(item)?),
            "cookie" => selection.cookie = cookie_with_mask(item)?,
            "out_port" => selection.out_port = Some(port(value_of(item)?)?),
            "actions" | "action" | "priority" | "idle_timeout" | "hard_timeout" => {
                let remedy = "write conditions only: every flow that matches within them is deleted";
                return Err(item.name.error("does not select flows to delete", remedy));
            }
            _ => conditions.add(item)?,
        }
    }
    selection.matching = conditions.checked()?;
    Ok(selection)
}

/// Reads the actions of a frame that a controller sends.
pub(super) fn actions(text: &str) -> Parsed<Vec<Action>> {
    Reader { matching: Match::default(), table: 0, nested: true }.actions(Word::whole(text))
}

pub(super) fn value_of(item: Item<'_>) -> Parsed<Word<'_>> {
    item.value.ok_or_else(|| item.name.error("needs a value", format!("write {}=VALUE", item.name.text)))
}

/// The value of `item` as a number from `least` to `most`.
fn integer<T: TryFrom<u128>>(item: Item<'_>, least: u64, most: u64) -> Parsed<T> {
    number_in(value_of(item)?, item.name.text, least, most)
}

pub(super) fn number_in<T: TryFrom<u128>>(word: Word<'_>, name: &str, least: u64, most: u64) -> Parsed<T> {
    let value = value::number(word.text).filter(|value| (u128::from(least)..=u128::from(most)).contains(value));
    let value = value.and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| word.error(format!("is no valid {name}"), format!("write a number from {least} to {most}")))
}

fn flag(item: Item<'_>) -> Parsed<u16> {
    let name = item.name.text;
    if let Some(value) = item.value {
        return Err(value.error(format!("follows {name:?}, which takes no value"), format!("write {name} alone")));
    }
    Ok(FLAGS.iter().find(|(flag, _)| *flag == name).map_or(0, |(_, bit)| *bit))
}

fn table(item: Item<'_>) -> Parsed<u8> {
    integer(item, 0, u64::from(LAST_TABLE))
}

fn cookie_with_mask(item: Item<'_>) -> Parsed<(u64, u64)> {
    let word = value_of(item)?;
    match word.split_once("/") {
        Some((value, mask)) if mask.text == "-1" => Ok((number_in(value, "cookie", 0, u64::MAX)?, u64::MAX)),
        Some((value, mask)) => {
            let mask: u64 = number_in(mask, "cookie mask", 0, u64::MAX)?;
            Ok((number_in::<u64>(value, "cookie", 0, u64::MAX)? & mask, mask))
        }
        None => Ok((number_in(word, "cookie", 0, u64::MAX)?, u64::MAX)),
    }
}

fn port(word: Word<'_>) -> Parsed<u32> {
    value::port(word.text)
        .ok_or_else(|| word.error("is no port", format!("write a port number from 1 to {}, or LOCAL", value::PORT_MAX)))
}

impl<'a> Conditions<'a> {
    fn add(&mut self, item: Item<'a>) -> Parsed<()> {
        let name = item.name.text;
        if let Some(&(_, eth_type, protocol)) = SHORTHANDS.iter().find(|(shorthand, ..)| *shorthand == name) {
            if let Some(value) = item.value {
                return Err(
                    value.error(format!("follows {name:?}, which takes no value"), format!("write {name} alone"))
                );
            }
            self.restrict(item.name, Field::ETH_TYPE, (u128::from(eth_type), Field::ETH_TYPE.maximum()))?;
            if let Some(protocol) = protocol {
                self.restrict(item.name, Field::NW_PROTO, (u128::from(protocol), Field::NW_PROTO.maximum()))?;
            }
            return Ok(());
        }
        let Some(field) = MatchField::by_name(name) else {
            return Err(item.name.error("is neither a field nor a property of a flow", unknown_name_remedy(name)));
        };
        let word = value_of(item)?;
        let wrong = || word.error(format!("is no valid {name}"), format!("write {}", value::allowed(field)));
        self.needs.push((item.name, field.needs));
        match field.format {
            Format::VlanOrNone => match value::number(word.text) {
                Some(0xffff) => self.restrict(item.name, Field::VLAN_TCI, (0, Field::VLAN_TCI.maximum())),
                Some(vid @ 0..=0xfff) => self.restrict(item.name, field.field, (vid | 0x1000, field.field.maximum())),
                _ => Err(wrong()),
            },
            Format::VlanPriority => {
                let value = value::parse(field, word.text).ok_or_else(wrong)?;
                self.restrict(item.name, field.field, value)?;
                self.restrict(item.name, Field::VLAN_PRESENT, (1, 1))
            }
            _ => {
                let value = value::parse(field, word.text).ok_or_else(wrong)?;
                self.restrict(item.name, field.field, value)
            }
        }
    }

    fn restrict(&mut self, word: Word<'a>, field: Field, (value, mask): (u128, u128)) -> Parsed<()> {
        if self.matching.restrict(field, value, mask) {
            return Ok(());
        }
        Err(word.error("contradicts an earlier condition of this flow", "keep only one of them"))
    }

    /// The match, when every field in it has a meaning.
    fn checked(self) -> Parsed<Match> {
        for (word, needs) in self.needs {
            if !needs.met(&self.matching) {
                let remedy = format!("add {} to the match", needs.remedy());
                return Err(word.error("has no meaning without its protocol", remedy));
            }
        }
        Ok(self.matching)
    }
}

fn unknown_name_remedy(name: &str) -> String {
    let names = FIELDS.iter().map(|field| field.name).chain(SHORTHANDS.iter().map(|shorthand| shorthand.0));
    let properties = ["table", "priority", "cookie", "idle_timeout", "hard_timeout", "actions"];
    nearest::remedy(name, names.chain(properties).chain(FLAGS.iter().map(|(flag, _)| *flag)))
}

fn unknown_action(word: Word<'_>) -> FlowSyntaxError {
    // Without their arguments: what stands behind a name begins with a colon, a parenthesis or a space.
    let names = ACTION_NAMES.split(", ").map(|name| name.split([':', '(', ' ']).next().unwrap_or(name));
    word.error("is no action", nearest::remedy(word.text, names))
}

/// Reads the actions of a flow with a certain match in a certain table.
struct Reader {
    matching: Match,
    table: u8,
    /// Inside `write_actions(...)`.
    nested: bool,
}

impl Reader {
    fn actions(&self, text: Word<'_>) -> Parsed<Vec<Action>> {
        let mut items = Items::of_actions(text);
        let mut actions = Vec::new();
        while let Some(item) = items.next()? {
            if let Some(last @ (Action::GotoTable(_) | Action::Drop)) = actions.last() {
                return Err(item.name.error(
                    format!("follows {last}, which ends the actions"),
                    "write it before that, or leave it away",
                ));
            }
            let action = self.action(item)?;
            if action == Action::Drop && !actions.is_empty() {
                return Err(item.name.error("does not go together with other actions", "write drop alone"));
            }
            actions.push(action);
            if actions.len() > MOST_ACTIONS {
                return Err(item.name.error("is one action too many", format!("a flow has at most {MOST_ACTIONS}")));
            }
        }
        if actions.is_empty() {
            return Err(text.error("holds no action", "write drop to drop the frames"));
        }
        actions.retain(|action| *action != Action::Drop);
        Ok(actions)
    }

    fn action(&self, item: Item<'_>) -> Parsed<Action> {
        let name = item.name.text.to_ascii_lowercase();
        if let Some(action) = plain_action(&name) {
            if action == Action::DecrementTtl {
                self.require(item.name, Needs::Ip)?;
            }
            return match item.value {
                Some(value) if !value.text.is_empty() => {
                    Err(value
                        .error(format!("follows {name:?}, which takes no argument"), format!("write {name} alone")))
                }
                _ => self.allowed_here(item, action),
            };
        }
        let action = match name.as_str() {
            "output" => {
                let word = value_of(item)?;
                match plain_action(&word.text.to_ascii_lowercase()) {
                    _ if word.text.contains('[') => self.output_field(word)?,
                    Some(action) if action.is_output() => action,
                    _ => output(port(word)?),
                }
            }
            "controller" => controller(item.value.filter(|value| !value.text.is_empty()))?,
            "load" => self.load(value_of(item)?)?,
            "move" => self.copy(value_of(item)?)?,
            "note" => note(value_of(item)?)?,
            "learn" | "multipath" | "bundle" | "bundle_load" | "fin_timeout" => {
                let require = |word: Word<'_>, needs| self.require(word, needs);
                extension_syntax::read(&name, value_of(item)?, &self.matching, &require)?
            }
            "enqueue" => {
                let word = value_of(item)?;
                let halves = word.split_once(":").or_else(|| word.split_once(","));
                let (number, queue) = halves.ok_or_else(|| word.error("names no queue", "write enqueue:PORT:QUEUE"))?;
                Action::Enqueue { port: port(number.trimmed())?, queue: queue_number(queue.trimmed())? }
            }
            "set_queue" => Action::SetQueue(queue_number(value_of(item)?)?),
            "set_field" => self.set_field(value_of(item)?)?,
            "push_vlan" => match value::number(value_of(item)?.text) {
                Some(0x8100) => Action::PushVlan(0x8100),
                Some(0x88a8) => Action::PushVlan(0x88a8),
                _ => return Err(value_of(item)?.error("is no VLAN tag protocol", "write 0x8100 or 0x88a8")),
            },
            "group" => Action::Group(number_in(value_of(item)?, "group", 0, 0xffff_ff00)?),
            "meter" => Action::Meter(number_in(value_of(item)?, "meter", 1, 0xffff_0000)?),
            "set_mpls_ttl" => Action::SetMplsTtl(number_in(value_of(item)?, "time to live", 0, 255)?),
            "set_nw_ttl" => Action::SetTtl(number_in(value_of(item)?, "time to live", 0, 255)?),
            "push_mpls" => match number_in(value_of(item)?, "protocol", 0, 0xffff)? {
                protocol @ (0x8847 | 0x8848) => Action::PushMpls(protocol),
                _ => return Err(value_of(item)?.error("is no MPLS protocol", "write 0x8847 or 0x8848")),
            },
            "pop_mpls" => Action::PopMpls(number_in(value_of(item)?, "protocol", 0, 0xffff)?),
            "push_pbb" => Action::PushBackbone(number_in(value_of(item)?, "protocol", 0x88e7, 0x88e7)?),
            "goto_table" => {
                let next: u8 = number_in(value_of(item)?, "table", 0, u64::from(LAST_TABLE))?;
                if next <= self.table {
                    let remedy = format!("go to a table above {}, the flow's own", self.table);
                    return Err(value_of(item)?.error("is not a later table", remedy));
                }
                Action::GotoTable(next)
            }
            "write_metadata" => write_metadata(value_of(item)?)?,
            "write_actions" => Action::WriteActions(Self { nested: true, ..*self }.actions(value_of(item)?)?),
            "resubmit" => resubmit(value_of(item)?)?,
            _ => match MODIFICATIONS.iter().find(|(known, _)| *known == name) {
                Some(&(name, field)) => {
                    let modification = modify(name, field, value_of(item)?)?;
                    if let Action::Modify { field, .. } = modification {
                        self.require(item.name, field.needs)?;
                    }
                    modification
                }
                None if item.value.is_none() => match value::port(item.name.text) {
                    Some(port) => output(port),
                    None => return Err(unknown_action(item.name)),
                },
                None => return Err(unknown_action(item.name)),
            },
        };
        self.allowed_here(item, action)
    }

    fn allowed_here(&self, item: Item<'_>, action: Action) -> Parsed<Action> {
        let instruction = matches!(
            action,
            Action::GotoTable(_)
                | Action::WriteMetadata { .. }
                | Action::WriteActions(_)
                | Action::ClearActions
                | Action::Resubmit { .. }
                | Action::Meter(_)
        );
        if self.nested && instruction {
            return Err(item.name.error("cannot stand in write_actions", "write it beside write_actions"));
        }
        Ok(action)
    }

    /// A change of a header is allowed where the match makes sure that there is one, as Open vSwitch has it.
    fn require(&self, word: Word<'_>, needs: Needs) -> Parsed<()> {
        if needs.met(&self.matching) {
            return Ok(());
        }
        let remedy = format!("add {} to the match", needs.remedy());
        Err(word.error("changes a header that the frames that match need not have", remedy))
    }

    fn output_field(&self, word: Word<'_>) -> Parsed<Action> {
        let Subfield { part, .. } = subfield::parse(word, &self.matching)?;
        self.require(word, part.field.needs)?;
        Ok(Action::OutputField { field: part.field, first_bit: part.first_bit, bits: part.bits })
    }

    /// A constant for bits of a field.
    fn load(&self, word: Word<'_>) -> Parsed<Action> {
        let arrow = || word.error("names no bits to set", "write load:VALUE->FIELD[A..B]");
        let (text, to) = word.split_once("->").ok_or_else(arrow)?;
        let Subfield { part, .. } = subfield::parse(to, &self.matching)?;
        self.require(to, part.field.needs)?;
        if !part.is_loadable() {
            return Err(to.error("cannot be set", "write bits of a field that can"));
        }
        let value = value::number(text.text).filter(|value| *value <= part.ones()).ok_or_else(|| {
            text.error("does not fit into those bits", format!("write a number from 0 to {:#x}", part.ones()))
        })?;
        Ok(Action::SetField { field: part.field, value: value << part.first_bit, mask: part.ones() << part.first_bit })
    }

    /// Bits of one field into another.
    fn copy(&self, word: Word<'_>) -> Parsed<Action> {
        let arrow = || word.error("does not say where to", "write move:FIELD[A..B]->FIELD[C..D]");
        let (from_word, to_word) = word.split_once("->").ok_or_else(arrow)?;
        let from = subfield::parse(from_word, &self.matching)?.part;
        let to = subfield::parse(to_word, &self.matching)?.part;
        self.require(from_word, from.field.needs)?;
        self.require(to_word, to.field.needs)?;
        if !to.field.settable {
            return Err(to_word.error("cannot be set", "write bits of a field that can"));
        }
        if from.bits != to.bits {
            let problem = format!("has {} bits, and what it goes to {}", from.bits, to.bits);
            return Err(from_word.error(problem, "write as many bits on either side"));
        }
        let (from_bit, to_bit, bits) = (from.first_bit, to.first_bit, to.bits);
        Ok(Action::Move { from: from.field, from_bit, to: to.field, to_bit, bits })
    }

    fn set_field(&self, word: Word<'_>) -> Parsed<Action> {
        let syntax = || word.error("names no field to set", "write set_field:VALUE->FIELD");
        let (text, name) = word.split_once("->").ok_or_else(syntax)?;
        let field = MatchField::by_name(name.text).filter(|field| field.settable).ok_or_else(|| {
            let names = FIELDS.iter().filter(|field| field.settable).map(|field| field.name);
            name.error("is no field that can be set", nearest::remedy(name.text, names))
        })?;
        self.require(name, field.needs)?;
        let (value, mask) = value::parse(field, text.text).ok_or_else(|| {
            text.error(format!("is no valid {}", field.name), format!("write {}", value::allowed(field)))
        })?;
        Ok(Action::SetField { field, value: value & mask, mask })
    }
}

fn plain_action(name: &str) -> Option<Action> {
    Some(match name {
        "in_port" => Action::InPort,
        "flood" => Action::Flood,
        "all" => Action::All,
        "normal" => Action::Normal,
        "local" => Action::Local,
        "drop" => Action::Drop,
        "pop_queue" => Action::PopQueue,
        "strip_vlan" | "pop_vlan" => Action::PopVlan,
        "dec_ttl" => Action::DecrementTtl,
        "clear_actions" => Action::ClearActions,
        "pop_pbb" => Action::PopBackbone,
        "dec_mpls_ttl" => Action::DecrementMplsTtl,
        "copy_ttl_in" => Action::CopyTtlIn,
        "copy_ttl_out" => Action::CopyTtlOut,
        "exit" => Action::Exit,
        _ => return None,
    })
}

fn output(port: u32) -> Action {
    if port == value::PORT_LOCAL {
        return Action::Local;
    }
    Action::Output(port)
}

fn queue_number(word: Word<'_>) -> Parsed<u32> {
    number_in(word, "queue", 0, u64::from(u32::MAX - 1))
}

/// `controller`, `controller:BYTES` or `controller(max_len=BYTES,reason=REASON,id=NUMBER)`.
fn controller(word: Option<Word<'_>>) -> Parsed<Action> {
    let (mut max_len, mut id, mut reason) = (u16::MAX, 0, None);
    match word {
        None => {}
        Some(word) if !word.text.contains('=') => max_len = number_in(word, "length", 0, u64::from(u16::MAX))?,
        Some(word) => {
            let mut items = Items::of_actions(word);
            while let Some(item) = items.next()? {
                let word = value_of(item)?;
                match item.name.text {
                    "max_len" => max_len = number_in(word, "length", 0, u64::from(u16::MAX))?,
                    "id" => id = number_in(word, "controller", 0, u64::from(u16::MAX))?,
                    "reason" => {
                        reason = match word.text {
                            "action" => None,
                            "no_match" => Some(PacketInReason::NoMatch),
                            "invalid_ttl" => Some(PacketInReason::InvalidTtl),
                            _ => return Err(word.error("is no reason", "write action, no_match or invalid_ttl")),
                        }
                    }
                    _ => return Err(item.name.error("is nothing of controller", "write max_len=N, reason=R or id=N")),
                }
            }
        }
    }
    Ok(Action::Controller { max_len, id, reason })
}

/// Bytes in hexadecimal, with zeros behind them as messages have them.
fn note(word: Word<'_>) -> Parsed<Action> {
    let wrong = || word.error("is no note", "write bytes of two hexadecimal digits, such as note:01.ff");
    let mut bytes = Vec::new();
    for pair in word.text.split('.').filter(|_| !word.text.is_empty()) {
        let plain = pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(pair, 16).ok().filter(|_| plain).ok_or_else(wrong)?);
    }
    if bytes.len() > MOST_NOTE_BYTES {
        return Err(word.error("is too long", format!("write at most {MOST_NOTE_BYTES} bytes")));
    }
    // Ten bytes of header go before them.
    bytes.resize((bytes.len() + 10).next_multiple_of(8).max(16) - 10, 0);
    Ok(Action::Note(bytes))
}

fn write_metadata(word: Word<'_>) -> Parsed<Action> {
    let (value, mask) = match word.split_once("/") {
        Some((value, mask)) => (value, number_in(mask, "metadata mask", 0, u64::MAX)?),
        None => (word, u64::MAX),
    };
    Ok(Action::WriteMetadata { value: number_in::<u64>(value, "metadata", 0, u64::MAX)? & mask, mask })
}

fn resubmit(word: Word<'_>) -> Parsed<Action> {
    let Some((first, second)) = word.split_once(",") else {
        return Ok(Action::Resubmit { port: Some(port(word.trimmed())?), table: None });
    };
    let (first, second) = (first.trimmed(), second.trimmed());
    let port =
        if first.text.is_empty() || first.text.eq_ignore_ascii_case("in_port") { None } else { Some(port(first)?) };
    let table = match second.text {
        "" => None,
        _ => Some(number_in(second, "table", 0, u64::from(LAST_TABLE))?),
    };
    Ok(Action::Resubmit { port, table })
}

fn modify(name: &'static str, field: &str, word: Word<'_>) -> Parsed<Action> {
    let field = MatchField::by_name(field).ok_or_else(|| word.error("is set in an unknown field", ACTION_NAMES))?;
    let value = match field.format {
        Format::VlanOrNone => value::number(word.text).filter(|&vid| vid <= 0xfff),
        _ if word.text.contains('/') => None,
        _ => value::parse(field, word.text).map(|(value, _)| value),
    };
    let value =
        value.ok_or_else(|| word.error(format!("is no valid {name}"), format!("write {}", value::allowed(field))))?;
    Ok(Action::Modify { name, field, value })
}
