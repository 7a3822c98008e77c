//! Nicira's `multipath`, `bundle`, `learn` and `fin_timeout` from the wire, checked.

use twinnet_openflow::nicira::{self, LearnSource, LearnTarget, Subfield};
use twinnet_openflow::oxm::FieldId;
use twinnet_openflow::v13::{BadAction, ErrorKind};

use super::super::action::Action;
use super::super::extension::{Choice, Extension, Hashed, Kind, Part, Source, Target};
use super::super::parse::LAST_TABLE;
use super::fields::ours;
use super::numbers::from_narrow;

const BAD_ARGUMENT: ErrorKind = ErrorKind::BadAction(BadAction::BadArgument);
/// `NX_LEARN_F_SEND_FLOW_REM`.
const SEND_FLOW_REMOVED: u16 = 1;

fn part(id: FieldId, first_bit: u16, bits: u16) -> Result<Part, ErrorKind> {
    let field = id.field().and_then(ours).ok_or(BAD_ARGUMENT)?;
    let fits = bits > 0 && u32::from(first_bit) + u32::from(bits) <= field.field.bits();
    fits.then_some(Part { field, first_bit, bits }).ok_or(BAD_ARGUMENT)
}

fn settable(part: Part) -> Result<Part, ErrorKind> {
    if part.field.settable {
        Ok(part)
    } else {
        Err(BAD_ARGUMENT)
    }
}

fn loadable(part: Part) -> Result<Part, ErrorKind> {
    if part.is_loadable() {
        Ok(part)
    } else {
        Err(BAD_ARGUMENT)
    }
}

fn destination(subfield: &Subfield) -> Result<Part, ErrorKind> {
    settable(part(subfield.id, subfield.offset, subfield.bits)?)
}

fn hashed(fields: nicira::HashFields, basis: u16) -> Result<Hashed, ErrorKind> {
    if fields.number() > nicira::HashFields::SymmetricL3.number() {
        return Err(BAD_ARGUMENT);
    }
    Ok(Hashed { fields, basis })
}

/// One of these actions; `None` for any other.
pub(crate) fn read(action: &nicira::Action) -> Result<Option<Action>, ErrorKind> {
    let kind = match action {
        nicira::Action::Multipath(multipath) => read_multipath(multipath)?,
        nicira::Action::Bundle(bundle) => read_bundle(bundle)?,
        nicira::Action::Learn(learn) => read_learn(learn)?,
        nicira::Action::FinTimeout { idle_timeout, hard_timeout } => {
            Kind::FinTimeout { idle_s: *idle_timeout, hard_s: *hard_timeout }
        }
        _ => return Ok(None),
    };
    Ok(Some(Action::Extension(Box::new(Extension { kind, wire: action.clone() }))))
}

fn read_multipath(multipath: &nicira::Multipath) -> Result<Kind, ErrorKind> {
    let to = destination(&multipath.destination)?;
    let choice = match multipath.algorithm {
        0 => Choice::Modulo,
        1 => Choice::Threshold,
        2 => Choice::HighestWeight,
        3 => Choice::Iterate(multipath.argument),
        _ => return Err(BAD_ARGUMENT),
    };
    if u128::from(multipath.max_link) > to.ones() {
        return Err(BAD_ARGUMENT);
    }
    let ways = u32::from(multipath.max_link) + 1;
    Ok(Kind::Multipath { hashed: hashed(multipath.fields, multipath.basis)?, choice, ways, to })
}

fn read_bundle(bundle: &nicira::Bundle) -> Result<Kind, ErrorKind> {
    let to = bundle.destination.as_ref().map(destination).transpose()?;
    let by_weight = match bundle.algorithm {
        0 => false,
        1 => true,
        _ => return Err(BAD_ARGUMENT),
    };
    let members = bundle.members.iter().map(|member| from_narrow(*member)).collect();
    Ok(Kind::Bundle { hashed: hashed(bundle.fields, bundle.basis)?, by_weight, members, to })
}

fn read_learn(learn: &nicira::Learn) -> Result<Kind, ErrorKind> {
    // Deleting what was learnt with the flow, and timeouts of their own after the end of a connection, are not done.
    let done = learn.flags & !SEND_FLOW_REMOVED == 0;
    if !done || learn.table_id > LAST_TABLE {
        return Err(BAD_ARGUMENT);
    }
    let mut parts = Vec::with_capacity(learn.specs.len());
    for spec in &learn.specs {
        if spec.bits > 128 {
            return Err(BAD_ARGUMENT);
        }
        let source = match &spec.source {
            LearnSource::Field(id, first_bit) => Source::Field(part(*id, *first_bit, spec.bits)?),
            LearnSource::Immediate(bytes) => {
                let value = bytes.iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
                Source::Immediate(value & u128::MAX >> (128 - spec.bits))
            }
        };
        let target = match spec.target {
            LearnTarget::Match(id, first_bit) => Target::Match(part(id, first_bit, spec.bits)?),
            LearnTarget::Load(id, first_bit) => Target::Load(loadable(part(id, first_bit, spec.bits)?)?),
            LearnTarget::Output => Target::Output,
        };
        parts.push((source, target));
    }
    Ok(Kind::Learn { learn: learn.clone(), parts })
}
