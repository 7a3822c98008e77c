//! Parts of messages that cannot take any value, built from arbitrary bytes: for the tests here, and by the feature
//! `arbitrary` for those of a switch.

use arbitrary::{Arbitrary, Unstructured};

use crate::oxm::{Field, FieldMatch, FieldValue, Match, Prerequisite};

/// Bytes whose number is a multiple of eight.
pub(crate) fn eights(source: &mut Unstructured) -> arbitrary::Result<Vec<u8>> {
    bytes(source, 0)
}

/// The bytes of a note: the subtype before them is two.
pub(crate) fn note(source: &mut Unstructured) -> arbitrary::Result<Vec<u8>> {
    bytes(source, 6)
}

fn bytes(source: &mut Unstructured, more: usize) -> arbitrary::Result<Vec<u8>> {
    let count = more + 8 * source.int_in_range(0..=3)?;
    (0..count).map(|_| source.arbitrary()).collect()
}

fn any_field(source: &mut Unstructured) -> arbitrary::Result<Field> {
    source.choose(Field::ALL).copied()
}

impl<'a> Arbitrary<'a> for FieldMatch {
    fn arbitrary(source: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let field = any_field(source)?;
        let value = source.arbitrary::<u128>()? & field.maximum();
        let info = field.info();
        let maskable = [info.oxm, info.nxm].into_iter().flatten().any(|number| number.maskable);
        if maskable && source.arbitrary()? {
            return Ok(Self::masked(field, value, source.arbitrary::<u128>()? & field.maximum()));
        }
        Ok(Self::exact(field, value))
    }
}

impl<'a> Arbitrary<'a> for FieldValue {
    fn arbitrary(source: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let field = any_field(source)?;
        let field = if field.is_settable() { field } else { Field::EthDst };
        Ok(Self { field, value: source.arbitrary::<u128>()? & field.maximum() })
    }
}

impl<'a> Arbitrary<'a> for Match {
    /// A match that a switch takes: every field after those that it needs, and none twice.
    fn arbitrary(source: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let mut matching = Self::default();
        for _ in 0..source.int_in_range(0..=5)? {
            let condition = source.arbitrary()?;
            add(&mut matching, condition);
        }
        Ok(matching)
    }
}

/// Adds `condition` after what it needs; leaves it out when that contradicts what is there.
fn add(matching: &mut Match, condition: FieldMatch) {
    let before = matching.clone();
    for prerequisite in condition.field.info().prerequisites {
        let field = prerequisite.field();
        if matching.get(field).is_none() {
            let value = match prerequisite {
                Prerequisite::Present(_) => 1,
                Prerequisite::OneOf(_, values) => values[0],
                Prerequisite::Not(_, excluded) => excluded + 1,
            };
            add(matching, FieldMatch::exact(field, value));
        }
    }
    matching.fields.push(condition);
    if matching.check().is_err() {
        *matching = before;
    }
}
