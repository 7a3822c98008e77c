//! Nicira's `learn`, `multipath`, `bundle` and `fin_timeout` in the syntax of `ovs-ofctl`: read, and written.

use std::fmt;

use twinnet_openflow::nicira::{self, HashFields, Learn, LearnSource, LearnSpec, LearnTarget};
use twinnet_openflow::oxm::{Field as Oxm, FieldId};

use super::action::Action;
use super::control::extensions;
use super::control::numbers::{from_narrow, to_narrow};
use super::field::{Format, Needs};
use super::flow::{DEFAULT_PRIORITY, TELL_WHEN_REMOVED};
use super::matching::Match;
use super::parse::{number_in, value_of, Parsed, LAST_TABLE};
use super::subfield::{self, Subfield};
use super::syntax::{Item, Items, Word};
use super::value;

/// `NXM_OF_IN_PORT`, the field that the members of a bundle are values of.
const MEMBERS_ARE_PORTS: u32 = 2;
/// The table that is learnt into when none is said.
const LEARN_TABLE: u8 = 1;

const HASHES: [(&str, HashFields); 7] = [
    ("eth_src", HashFields::EthSrc),
    ("symmetric_l4", HashFields::SymmetricL4),
    ("symmetric_l3l4", HashFields::SymmetricL3L4),
    ("symmetric_l3l4+udp", HashFields::SymmetricL3L4Udp),
    ("nw_src", HashFields::NwSrc),
    ("nw_dst", HashFields::NwDst),
    ("symmetric_l3", HashFields::SymmetricL3),
];
const MULTIPATH_CHOICES: [&str; 4] = ["modulo_n", "hash_threshold", "hrw", "iter_hash"];
const BUNDLE_CHOICES: [&str; 2] = ["active_backup", "hrw"];

/// Reads the arguments of the action `name`; a field that is read must be one that `matching` makes sure of, which
/// `require` looks at.
pub(super) fn read(
    name: &str,
    word: Word<'_>,
    matching: &Match,
    require: &dyn Fn(Word<'_>, Needs) -> Parsed<()>,
) -> Parsed<Action> {
    let wire = match name {
        "fin_timeout" => {
            require(word, Needs::Tcp)?;
            fin_timeout(word)?
        }
        "multipath" => multipath(word, matching, require)?,
        "learn" => learn(word, matching, require)?,
        _ => bundle(word, name == "bundle_load", matching, require)?,
    };
    match extensions::read(&wire) {
        Ok(Some(action)) => Ok(action),
        _ => {
            Err(word
                .error(format!("asks for a {name} that this switch cannot do"), "see the reference of the flow syntax"))
        }
    }
}

/// The next of the words that commas separate.
fn next<'a>(rest: &mut Option<Word<'a>>, whole: Word<'a>, syntax: &str) -> Parsed<Word<'a>> {
    let here = rest.take().ok_or_else(|| whole.error("is too short", format!("write {syntax}")))?;
    let (word, after) = match here.split_once(",") {
        Some((word, after)) => (word, Some(after)),
        None => (here, None),
    };
    *rest = after;
    Ok(word.trimmed())
}

fn one_of(word: Word<'_>, names: &[&str]) -> Parsed<u16> {
    let place = names.iter().position(|name| *name == word.text).and_then(|place| u16::try_from(place).ok());
    place.ok_or_else(|| word.error("is no choice", format!("write {}", names.join(", "))))
}

fn hash(word: Word<'_>) -> Parsed<HashFields> {
    let found = HASHES.iter().find(|(name, _)| *name == word.text).map(|(_, fields)| *fields);
    found.ok_or_else(|| {
        let names: Vec<_> = HASHES.iter().map(|(name, _)| *name).collect();
        word.error("is nothing that a hash is taken of", format!("write {}", names.join(", ")))
    })
}

/// Bits that a value is written to.
fn destination(
    word: Word<'_>,
    matching: &Match,
    require: &dyn Fn(Word<'_>, Needs) -> Parsed<()>,
) -> Parsed<nicira::Subfield> {
    let found = subfield::parse(word, matching)?;
    require(word, found.needs())?;
    if !found.part.field.settable || found.part.bits > 64 {
        return Err(word.error("cannot be written", "write bits of a field that can be set, 64 at most"));
    }
    Ok(nicira::Subfield { id: id(&found), offset: found.part.first_bit, bits: found.part.bits })
}

fn id(found: &Subfield) -> FieldId {
    FieldId::nxm(found.wire, false)
}

fn fin_timeout(word: Word<'_>) -> Parsed<nicira::Action> {
    let (mut idle_timeout, mut hard_timeout) = (0, 0);
    let mut items = Items::of_actions(word);
    while let Some(item) = items.next()? {
        match item.name.text {
            "idle_timeout" => idle_timeout = number_in(value_of(item)?, "idle_timeout", 0, 0xffff)?,
            "hard_timeout" => hard_timeout = number_in(value_of(item)?, "hard_timeout", 0, 0xffff)?,
            _ => return Err(item.name.error("is nothing of fin_timeout", "write idle_timeout=S and hard_timeout=S")),
        }
    }
    Ok(nicira::Action::FinTimeout { idle_timeout, hard_timeout })
}

fn multipath(
    word: Word<'_>,
    matching: &Match,
    require: &dyn Fn(Word<'_>, Needs) -> Parsed<()>,
) -> Parsed<nicira::Action> {
    let syntax = "multipath(FIELDS,BASIS,ALGORITHM,WAYS,ARGUMENT,FIELD[A..B])";
    let mut rest = Some(word);
    let fields = hash(next(&mut rest, word, syntax)?)?;
    let basis = number_in(next(&mut rest, word, syntax)?, "basis", 0, 0xffff)?;
    let algorithm = one_of(next(&mut rest, word, syntax)?, &MULTIPATH_CHOICES)?;
    let ways: u32 = number_in(next(&mut rest, word, syntax)?, "number of ways", 1, 0x1_0000)?;
    let argument = number_in(next(&mut rest, word, syntax)?, "argument", 0, u64::from(u32::MAX))?;
    let to = next(&mut rest, word, syntax)?;
    let destination = destination(to, matching, require)?;
    if let Some(more) = rest {
        return Err(more.error("is one argument too many", format!("write {syntax}")));
    }
    if u128::from(ways - 1) > u128::MAX >> (128 - destination.bits) {
        return Err(to.error("has no room for the number of the way", "write more bits, or fewer ways"));
    }
    let max_link = u16::try_from(ways - 1).unwrap_or(u16::MAX);
    Ok(nicira::Action::Multipath(nicira::Multipath { fields, basis, algorithm, max_link, argument, destination }))
}

fn bundle(
    word: Word<'_>,
    load: bool,
    matching: &Match,
    require: &dyn Fn(Word<'_>, Needs) -> Parsed<()>,
) -> Parsed<nicira::Action> {
    let syntax = match load {
        true => "bundle_load(FIELDS,BASIS,ALGORITHM,ofport,FIELD[A..B],members:PORT,PORT)",
        false => "bundle(FIELDS,BASIS,ALGORITHM,ofport,members:PORT,PORT)",
    };
    let mut rest = Some(word);
    let fields = hash(next(&mut rest, word, syntax)?)?;
    let basis = number_in(next(&mut rest, word, syntax)?, "basis", 0, 0xffff)?;
    let algorithm = one_of(next(&mut rest, word, syntax)?, &BUNDLE_CHOICES)?;
    one_of(next(&mut rest, word, syntax)?, &["ofport"])?;
    let destination = match load {
        true => Some(destination(next(&mut rest, word, syntax)?, matching, require)?),
        false => None,
    };
    let first = next(&mut rest, word, syntax)?;
    // `slaves` is what older versions of ovs-ofctl write.
    let after = ["members:", "slaves:"]
        .iter()
        .find_map(|key| first.split_once(key).filter(|(before, _)| before.text.is_empty()));
    let mut member = after.map(|(_, member)| member);
    let mut members = Vec::new();
    while let Some(word) = member.take() {
        if !word.text.is_empty() || rest.is_some() {
            let port = value::port(word.text).map(to_narrow).filter(|port| *port < 0xff00);
            members.push(port.ok_or_else(|| word.error("is no port of a bundle", "write a number from 1 to 65279"))?);
        }
        if rest.is_some() {
            member = Some(next(&mut rest, word, syntax)?);
        }
    }
    if after.is_none() {
        return Err(first.error("does not name the members", format!("write {syntax}")));
    }
    Ok(nicira::Action::Bundle(nicira::Bundle {
        algorithm,
        fields,
        basis,
        member_type: MEMBERS_ARE_PORTS,
        destination,
        members,
    }))
}

fn learn(word: Word<'_>, matching: &Match, require: &dyn Fn(Word<'_>, Needs) -> Parsed<()>) -> Parsed<nicira::Action> {
    let mut learn = Learn {
        idle_timeout: 0,
        hard_timeout: 0,
        priority: DEFAULT_PRIORITY,
        cookie: 0,
        flags: 0,
        table_id: LEARN_TABLE,
        fin_idle_timeout: 0,
        fin_hard_timeout: 0,
        specs: Vec::new(),
    };
    let mut items = Items::of_actions(word);
    while let Some(item) = items.next()? {
        let name = item.name.text;
        let seconds = || number_in(value_of(item)?, name, 0, 0xffff);
        match name {
            "table" => learn.table_id = number_in(value_of(item)?, name, 0, u64::from(LAST_TABLE))?,
            "priority" => learn.priority = number_in(value_of(item)?, name, 0, 0xffff)?,
            "cookie" => learn.cookie = number_in(value_of(item)?, name, 0, u64::MAX)?,
            "idle_timeout" => learn.idle_timeout = seconds()?,
            "hard_timeout" => learn.hard_timeout = seconds()?,
            "fin_idle_timeout" => learn.fin_idle_timeout = seconds()?,
            "fin_hard_timeout" => learn.fin_hard_timeout = seconds()?,
            "send_flow_rem" if item.value.is_none() => learn.flags |= TELL_WHEN_REMOVED,
            "delete_learned" | "limit" | "result_dst" => {
                return Err(item.name.error("is not done by this switch", "leave it away"));
            }
            "output" => {
                let from = source(value_of(item)?, matching, require)?;
                learn.specs.push(spec(&from, LearnTarget::Output));
            }
            "load" => learn.specs.push(load(value_of(item)?, matching, require)?),
            _ => learn.specs.push(condition(item, matching, require)?),
        }
    }
    Ok(nicira::Action::Learn(Box::new(learn)))
}

fn source(word: Word<'_>, matching: &Match, require: &dyn Fn(Word<'_>, Needs) -> Parsed<()>) -> Parsed<Subfield> {
    let found = subfield::parse(word, matching)?;
    require(word, found.needs())?;
    Ok(found)
}

fn spec(from: &Subfield, target: LearnTarget) -> LearnSpec {
    LearnSpec { bits: from.part.bits, source: LearnSource::Field(id(from), from.part.first_bit), target }
}

/// `value` as `bits` bits: two bytes for every sixteen begun.
fn immediate(word: Word<'_>, value: Option<u128>, bits: u16, target: LearnTarget) -> Parsed<LearnSpec> {
    let most = u128::MAX >> (128 - bits);
    let Some(value) = value.filter(|value| *value <= most) else {
        return Err(word.error("does not fit into those bits", format!("write a number from 0 to {most:#x}")));
    };
    let bytes = 2 * usize::from(bits.div_ceil(16));
    Ok(LearnSpec { bits, source: LearnSource::Immediate(value.to_be_bytes()[16 - bytes..].to_vec()), target })
}

fn load(word: Word<'_>, matching: &Match, require: &dyn Fn(Word<'_>, Needs) -> Parsed<()>) -> Parsed<LearnSpec> {
    let (from, to) =
        word.split_once("->").ok_or_else(|| word.error("says not where to", "write load:VALUE->FIELD[A..B]"))?;
    let target = subfield::parse(to, matching)?;
    if !target.part.is_loadable() {
        return Err(to.error("cannot be written", "write bits of a field that can be set"));
    }
    let goes = LearnTarget::Load(id(&target), target.part.first_bit);
    if from.text.starts_with(|first: char| first.is_ascii_digit()) {
        return immediate(from, value::number(from.text), target.part.bits, goes);
    }
    let origin = source(from, matching, require)?;
    same_length(from, &origin, &target)?;
    Ok(spec(&origin, goes))
}

fn same_length(word: Word<'_>, one: &Subfield, other: &Subfield) -> Parsed<()> {
    if one.part.bits == other.part.bits {
        return Ok(());
    }
    let problem = format!("has {} bits, and what it goes to {}", one.part.bits, other.part.bits);
    Err(word.error(problem, "write as many bits on either side"))
}

/// `FIELD[A..B]` (the same of the frame), `FIELD[A..B]=FIELD[C..D]`, `FIELD[A..B]=NUMBER` or `FIELD=VALUE`.
fn condition(item: Item<'_>, matching: &Match, require: &dyn Fn(Word<'_>, Needs) -> Parsed<()>) -> Parsed<LearnSpec> {
    let target = subfield::parse(item.name, matching)?;
    let goes = LearnTarget::Match(id(&target), target.part.first_bit);
    let Some(word) = item.value else {
        require(item.name, target.needs())?;
        return Ok(spec(&target, goes));
    };
    if !item.name.text.contains('[') {
        if let Some((value, mask)) = value::parse(target.part.field, word.text) {
            if mask == target.part.field.field.maximum() {
                return immediate(word, Some(value), target.part.bits, goes);
            }
        }
    }
    if word.text.starts_with(|first: char| first.is_ascii_digit()) {
        return immediate(word, value::number(word.text), target.part.bits, goes);
    }
    let origin = source(word, matching, require)?;
    same_length(word, &origin, &target)?;
    Ok(spec(&origin, goes))
}

/// Writes one of these actions.
pub(super) fn write(action: &nicira::Action, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match action {
        nicira::Action::FinTimeout { idle_timeout, hard_timeout } => {
            let parts = [("idle_timeout", idle_timeout), ("hard_timeout", hard_timeout)];
            let said: Vec<_> = parts
                .iter()
                .filter(|(_, seconds)| **seconds != 0)
                .map(|(name, seconds)| format!("{name}={seconds}"))
                .collect();
            write!(f, "fin_timeout({})", said.join(","))
        }
        nicira::Action::Multipath(one) => {
            let choice = MULTIPATH_CHOICES.get(usize::from(one.algorithm)).copied().unwrap_or("?");
            let (ways, to) =
                (u32::from(one.max_link) + 1, bits(one.destination.id, one.destination.offset, one.destination.bits));
            write!(f, "multipath({},{},{choice},{ways},{},{to})", hash_name(one.fields), one.basis, one.argument)
        }
        nicira::Action::Bundle(one) => {
            let choice = BUNDLE_CHOICES.get(usize::from(one.algorithm)).copied().unwrap_or("?");
            let (name, to) = match &one.destination {
                Some(to) => ("bundle_load", format!("{},", bits(to.id, to.offset, to.bits))),
                None => ("bundle", String::new()),
            };
            let members: Vec<_> = one.members.iter().map(|member| value::show_port(from_narrow(*member))).collect();
            let (fields, basis) = (hash_name(one.fields), one.basis);
            write!(f, "{name}({fields},{basis},{choice},ofport,{to}members:{})", members.join(","))
        }
        nicira::Action::Learn(learn) => write!(f, "learn({})", learn_parts(learn).join(",")),
        other => write!(f, "{other:?}"),
    }
}

fn hash_name(fields: HashFields) -> &'static str {
    HASHES.iter().find(|(_, known)| *known == fields).map_or("?", |(name, _)| name)
}

fn bits(id: FieldId, first_bit: u16, bits: u16) -> String {
    id.field().map_or_else(|| "?".to_owned(), |field| subfield::show(field, first_bit, bits))
}

fn learn_parts(learn: &Learn) -> Vec<String> {
    let mut parts = vec![format!("table={}", learn.table_id)];
    for (name, seconds) in [
        ("idle_timeout", learn.idle_timeout),
        ("hard_timeout", learn.hard_timeout),
        ("fin_idle_timeout", learn.fin_idle_timeout),
        ("fin_hard_timeout", learn.fin_hard_timeout),
    ] {
        if seconds != 0 {
            parts.push(format!("{name}={seconds}"));
        }
    }
    if learn.priority != DEFAULT_PRIORITY {
        parts.push(format!("priority={}", learn.priority));
    }
    if learn.flags & TELL_WHEN_REMOVED != 0 {
        parts.push("send_flow_rem".to_owned());
    }
    if learn.cookie != 0 {
        parts.push(format!("cookie={:#x}", learn.cookie));
    }
    parts.extend(learn.specs.iter().map(learn_part));
    parts
}

fn learn_part(spec: &LearnSpec) -> String {
    let from = match &spec.source {
        LearnSource::Field(id, first_bit) => bits(*id, *first_bit, spec.bits),
        LearnSource::Immediate(bytes) => {
            let value = bytes.iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
            if let LearnTarget::Match(id, 0) = spec.target {
                if let Some(text) = id.field().and_then(|field| whole(field, spec.bits, value)) {
                    return text;
                }
            }
            value::hexadecimal(value)
        }
    };
    match spec.target {
        LearnTarget::Output => format!("output:{from}"),
        LearnTarget::Load(id, first_bit) => format!("load:{from}->{}", bits(id, first_bit, spec.bits)),
        LearnTarget::Match(id, first_bit) => {
            let to = bits(id, first_bit, spec.bits);
            if to == from {
                to
            } else {
                format!("{to}={from}")
            }
        }
    }
}

/// `FIELD=VALUE` where all bits of a field are said whose values are written in one way only.
fn whole(field: Oxm, bits: u16, value: u128) -> Option<String> {
    let own = super::control::fields::ours(field)?;
    let plain = matches!(own.format, Format::Decimal | Format::Hexadecimal | Format::Mac | Format::Ipv4 | Format::Ipv6);
    let all = bits == u16::from(field.info().bits) && u32::from(bits) == own.field.bits() && field != Oxm::VlanVid;
    let name = match own.name {
        "ip_proto" => "nw_proto",
        "ip_ecn" => "nw_ecn",
        "tunnel_id" => "tun_id",
        name => name,
    };
    (plain && all).then(|| format!("{name}={}", value::show(own.format, value)))
}
