//! The abilities of the tables, told and written. All are alike and can do everything, until a controller writes what
//! they are to be able to do.

use twinnet_openflow::oxm::FieldId;
use twinnet_openflow::v13::multipart::{FieldListing, TableFeatures, TableProperty, TypeId};
use twinnet_openflow::v13::{ErrorKind, TableFeaturesFailed};
use twinnet_openflow::Text;

use super::super::event::RemovalReason;
use super::super::parse::Selection;
use super::actions::write_instructions;
use super::fields::{supported, write_match};
use super::{Context, TABLES};

/// Flows that are told to fit into a table.
pub(super) const TABLE_FLOWS: u32 = 1_000_000;
const INSTRUCTIONS: std::ops::RangeInclusive<u16> = 1..=6;

fn actions() -> impl Iterator<Item = u16> {
    [0, 11, 12].into_iter().chain(15..=27)
}

fn properties(table: u8) -> Vec<TableProperty> {
    let fields = || supported().filter(|(field, _)| field.info().oxm.is_some());
    let listed = |masked: bool| -> Vec<FieldListing> {
        let number = |masked: bool| move |field| FieldListing::of(FieldId::oxm(field, masked));
        fields()
            .map(|(field, own)| {
                let mask = masked && own.maskable && field.info().oxm.is_some_and(|number| number.maskable);
                number(mask)(field)
            })
            .collect()
    };
    let set: Vec<FieldListing> = fields()
        .filter(|(field, own)| own.settable && field.is_settable())
        .map(|(field, _)| FieldListing::of(FieldId::oxm(field, false)))
        .collect();
    let types = |kinds: &mut dyn Iterator<Item = u16>| kinds.map(TypeId::of).collect::<Vec<_>>();
    let mut all = vec![TableProperty::Match(listed(true)), TableProperty::Wildcards(listed(false))];
    for miss in [false, true] {
        let goto = |kind: &u16| *kind != 1 || table + 1 < TABLES;
        all.push(TableProperty::Instructions { miss, ids: types(&mut INSTRUCTIONS.filter(goto)) });
        all.push(TableProperty::NextTables { miss, tables: (table + 1..TABLES).collect() });
        all.push(TableProperty::WriteActions { miss, ids: types(&mut actions()) });
        all.push(TableProperty::ApplyActions { miss, ids: types(&mut actions()) });
        all.push(TableProperty::WriteSetField { miss, ids: set.clone() });
        all.push(TableProperty::ApplySetField { miss, ids: set.clone() });
    }
    all
}

impl Context<'_> {
    pub(super) fn table_features(&self) -> Vec<TableFeatures> {
        if let Some(tables) = self.agent.tables.written() {
            return tables.cloned().collect();
        }
        (0..TABLES)
            .map(|table_id| TableFeatures {
                table_id,
                // As of Open vSwitch: its tables have numbers alone, and tools print those.
                name: Text::default(),
                metadata_match: u64::MAX,
                metadata_write: u64::MAX,
                config: 0,
                max_entries: TABLE_FLOWS,
                properties: properties(table_id),
            })
            .collect()
    }

    /// Takes over what a controller says the tables are to be.
    pub(super) fn write_table_features(&mut self, tables: &[TableFeatures]) -> Result<(), ErrorKind> {
        let refuse = |code| Err(ErrorKind::TableFeaturesFailed(code));
        let mut seen = [false; 256];
        for table in tables {
            if !Self::is_table(table.table_id) || std::mem::replace(&mut seen[usize::from(table.table_id)], true) {
                return refuse(TableFeaturesFailed::BadTable);
            }
            for property in &table.properties {
                let possible = match property {
                    TableProperty::Instructions { ids, .. } => ids.iter().all(|id| INSTRUCTIONS.contains(&id.kind)),
                    TableProperty::NextTables { tables, .. } => tables.iter().all(|next| *next > table.table_id),
                    TableProperty::WriteActions { ids, .. } | TableProperty::ApplyActions { ids, .. } => {
                        ids.iter().all(|id| id.kind == 0xffff || actions().any(|kind| kind == id.kind))
                    }
                    TableProperty::Match(ids)
                    | TableProperty::Wildcards(ids)
                    | TableProperty::WriteSetField { ids, .. }
                    | TableProperty::ApplySetField { ids, .. } => ids
                        .iter()
                        .all(|listing| listing.id.field().is_some_and(|field| super::fields::ours(field).is_some())),
                    TableProperty::Experimenter { .. } => true,
                };
                if !possible {
                    return refuse(TableFeaturesFailed::BadArgument);
                }
            }
        }
        if !tables.is_empty() {
            self.agent.tables.write(tables, properties);
            self.delete_what_no_table_holds();
        }
        Ok(())
    }

    /// "Flow entries from flow tables that have been removed, or that have features that are not supported any
    /// more, are deleted" (7.3.5.5).
    fn delete_what_no_table_holds(&mut self) {
        let switch = &mut *self.switch;
        let misfits: Vec<Selection> = switch
            .pipeline
            .select(&Selection::default())
            .into_iter()
            .filter_map(|id| {
                let flow = &switch.pipeline.entry(id)?.flow;
                let (matching, instructions) =
                    (write_match(&flow.matching), write_instructions(&flow.actions, &flow.matching));
                let held = self.agent.tables.check(flow.table, flow.priority, &matching, &instructions).is_ok();
                (!held).then(|| Selection {
                    table: Some(flow.table),
                    strict: Some(flow.priority),
                    matching: flow.matching,
                    ..Selection::default()
                })
            })
            .collect();
        for selection in &misfits {
            switch.pipeline.delete(selection, RemovalReason::Delete, self.now, &mut switch.events);
        }
        switch.cache.invalidate();
    }
}
