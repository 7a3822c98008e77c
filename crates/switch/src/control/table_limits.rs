//! The abilities that a controller has written for the tables: nothing else is taken from then on.

use std::collections::BTreeMap;

use twinnet_openflow::oxm::{Field as Oxm, Match as OxmMatch};
use twinnet_openflow::v13::multipart::{FieldListing, TableFeatures, TableProperty, TypeId};
use twinnet_openflow::v13::{self, BadAction, BadInstruction, BadMatch, ErrorKind, FlowModFailed, Instruction};

/// The tables as they were written, by number; the pipeline has no others. Without any, all are there and can do
/// everything.
#[derive(Debug, Default)]
pub(super) struct TableLimits {
    tables: Option<BTreeMap<u8, TableFeatures>>,
}

/// The kind of a property without its bit for table-miss flows.
const fn purpose(property: &TableProperty) -> u16 {
    property.kind() & !1
}

const fn is_for_misses(property: &TableProperty) -> bool {
    property.kind() & 1 == 1
}

fn as_for_misses(property: &TableProperty) -> TableProperty {
    let miss = true;
    match property.clone() {
        TableProperty::Instructions { ids, .. } => TableProperty::Instructions { miss, ids },
        TableProperty::NextTables { tables, .. } => TableProperty::NextTables { miss, tables },
        TableProperty::WriteActions { ids, .. } => TableProperty::WriteActions { miss, ids },
        TableProperty::ApplyActions { ids, .. } => TableProperty::ApplyActions { miss, ids },
        TableProperty::WriteSetField { ids, .. } => TableProperty::WriteSetField { miss, ids },
        TableProperty::ApplySetField { ids, .. } => TableProperty::ApplySetField { miss, ids },
        other => other,
    }
}

/// `written` over what the table can do at most: what it does not mention stays, and what it says of flows holds
/// for table-miss flows too unless it says something of these.
fn completed(written: &TableFeatures, most: Vec<TableProperty>) -> Vec<TableProperty> {
    most.into_iter()
        .map(|property| {
            let same = |one: &&TableProperty| one.kind() == property.kind();
            let wider = |one: &&TableProperty| purpose(one) == purpose(&property) && !is_for_misses(one);
            let given = written.properties.iter().find(same);
            let meant = given.cloned().or_else(|| written.properties.iter().find(wider).map(as_for_misses));
            meant.unwrap_or(property)
        })
        .collect()
}

impl TableLimits {
    /// The tables that were written; `None`: none was.
    pub(super) fn written(&self) -> Option<impl Iterator<Item = &TableFeatures>> {
        self.tables.as_ref().map(|tables| tables.values())
    }

    /// Takes over tables that were found possible; `most` says what each can do at most.
    pub(super) fn write(&mut self, tables: &[TableFeatures], most: impl Fn(u8) -> Vec<TableProperty>) {
        let completed = tables.iter().map(|table| {
            let properties = completed(table, most(table.table_id));
            (table.table_id, TableFeatures { properties, ..table.clone() })
        });
        self.tables = Some(completed.collect());
    }

    /// Refuses a flow that its table cannot hold.
    pub(super) fn check(
        &self,
        table: u8,
        priority: u16,
        matching: &OxmMatch,
        instructions: &[Instruction],
    ) -> Result<(), ErrorKind> {
        let Some(tables) = &self.tables else { return Ok(()) };
        let Some(table) = tables.get(&table) else {
            return Err(ErrorKind::FlowModFailed(FlowModFailed::BadTableId));
        };
        let miss = priority == 0 && matching.fields.is_empty();
        let of_this_flow =
            |property: &&TableProperty| matches!(property, TableProperty::Match(_)) || is_for_misses(property) == miss;
        for property in table.properties.iter().filter(of_this_flow) {
            match property {
                TableProperty::Match(fields) => check_fields(fields, matching)?,
                TableProperty::Instructions { ids, .. } => {
                    if !instructions.iter().all(|one| lists(ids, one.kind())) {
                        return Err(ErrorKind::BadInstruction(BadInstruction::UnsupInst));
                    }
                }
                TableProperty::NextTables { tables, .. } => {
                    let leads_elsewhere =
                        |one: &Instruction| matches!(one, Instruction::GotoTable(next) if !tables.contains(next));
                    if instructions.iter().any(leads_elsewhere) {
                        return Err(ErrorKind::BadInstruction(BadInstruction::BadTableId));
                    }
                }
                TableProperty::ApplyActions { ids, .. } => check_actions(ids, applied(instructions))?,
                TableProperty::WriteActions { ids, .. } => check_actions(ids, written(instructions))?,
                TableProperty::ApplySetField { ids, .. } => check_set_fields(ids, applied(instructions))?,
                TableProperty::WriteSetField { ids, .. } => check_set_fields(ids, written(instructions))?,
                TableProperty::Wildcards(_) | TableProperty::Experimenter { .. } => {}
            }
        }
        Ok(())
    }
}

fn lists(ids: &[TypeId], kind: u16) -> bool {
    ids.iter().any(|id| id.kind == kind)
}

fn applied(instructions: &[Instruction]) -> impl Iterator<Item = &v13::Action> {
    instructions.iter().flat_map(|one| if let Instruction::ApplyActions(actions) = one { &actions[..] } else { &[] })
}

fn written(instructions: &[Instruction]) -> impl Iterator<Item = &v13::Action> {
    instructions.iter().flat_map(|one| if let Instruction::WriteActions(actions) = one { &actions[..] } else { &[] })
}

fn check_actions<'a>(ids: &[TypeId], mut actions: impl Iterator<Item = &'a v13::Action>) -> Result<(), ErrorKind> {
    if actions.all(|action| lists(ids, action.kind())) {
        Ok(())
    } else {
        Err(ErrorKind::BadAction(BadAction::BadType))
    }
}

fn check_set_fields<'a>(
    ids: &[FieldListing],
    mut actions: impl Iterator<Item = &'a v13::Action>,
) -> Result<(), ErrorKind> {
    let can = |field: Oxm| ids.iter().any(|listing| listing.id.field() == Some(field));
    if actions.all(|action| if let v13::Action::SetField(set) = action { can(set.field) } else { true }) {
        Ok(())
    } else {
        Err(ErrorKind::BadAction(BadAction::BadSetType))
    }
}

fn check_fields(fields: &[FieldListing], matching: &OxmMatch) -> Result<(), ErrorKind> {
    for condition in &matching.fields {
        let listed = fields.iter().find(|listing| listing.id.field() == Some(condition.field));
        match listed {
            Some(listing) if listing.id.has_mask() || condition.is_exact() => {}
            Some(_) => return Err(ErrorKind::BadMatch(BadMatch::BadMask)),
            // What a listed field needs before it comes with the field.
            None if fields.iter().filter_map(|listing| listing.id.field()).any(|one| needs(one, condition.field)) => {}
            None => return Err(ErrorKind::BadMatch(BadMatch::BadField)),
        }
    }
    Ok(())
}

/// Returns `true` if `field` can be matched only beside `other`.
fn needs(field: Oxm, other: Oxm) -> bool {
    let before = field.info().prerequisites.iter().map(|prerequisite| prerequisite.field());
    before.into_iter().any(|one| one == other || needs(one, other))
}
