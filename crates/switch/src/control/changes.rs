//! Changes by controllers, in either version: flows, groups, meters, ports; and the frames that they send.

use std::sync::Arc;

use twinnet_openflow::v13::{
    self, BadAction, BadRequest, ErrorKind, FlowModFailed, GroupModFailed, MeterEffect, MeterModFailed, PortModFailed,
};
use twinnet_openflow::NO_BUFFER;
use twinnet_packet::Frame;

use super::super::action::Action;
use super::super::event::RemovalReason;
use super::super::flow::Flow;
use super::super::group::{Bucket, GroupKind, GroupRefusal};
use super::super::matching::Match;
use super::super::meter::{Band, Effect, Meter, BURST, MOST_BANDS, MOST_METERS, PACKETS};
use super::super::parse::{Selection, LAST_TABLE};
use super::super::value;
use super::actions::ActionReader;
use super::{Context, TABLES};

/// The command of a change of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Add,
    Modify { strict: bool },
    Delete { strict: bool },
}

/// A change of flows, whatever version it came in.
#[derive(Debug)]
pub(super) struct FlowChange {
    pub(super) command: Command,
    /// `None`: all tables.
    pub(super) table: Option<u8>,
    pub(super) flow: Flow,
    /// Cookie and mask that flows must agree with to be changed.
    pub(super) cookie: (u64, u64),
    pub(super) out_port: Option<u32>,
    pub(super) out_group: Option<u32>,
    pub(super) check_overlap: bool,
    /// Counters begin anew in a flow that is replaced or modified.
    pub(super) reset_counts: bool,
    /// OpenFlow 1.0: a modification that meets no flow adds one.
    pub(super) modify_adds: bool,
    pub(super) buffer: u32,
}

impl Context<'_> {
    pub(super) fn change_flows(&mut self, change: FlowChange) -> Result<(), ErrorKind> {
        let refuse = |code| Err(ErrorKind::FlowModFailed(code));
        let deletes = matches!(change.command, Command::Delete { .. });
        if change.table.is_some_and(|table| table > LAST_TABLE) || (change.table.is_none() && !deletes) {
            return refuse(FlowModFailed::BadTableId);
        }
        let strict = matches!(change.command, Command::Modify { strict: true } | Command::Delete { strict: true });
        let selection = Selection {
            table: change.table,
            cookie: (change.cookie.0 & change.cookie.1, change.cookie.1),
            out_port: change.out_port.filter(|_| deletes),
            out_group: change.out_group.filter(|_| deletes),
            meter: None,
            strict: strict.then_some(change.flow.priority),
            matching: change.flow.matching,
        };
        self.switch.cache.invalidate();
        match change.command {
            Command::Delete { .. } => {
                let switch = &mut *self.switch;
                switch.pipeline.delete(&selection, RemovalReason::Delete, self.now, &mut switch.events);
                return Ok(());
            }
            Command::Modify { .. } => {
                let found = self.switch.pipeline.select(&selection);
                if !found.is_empty() || !change.modify_adds {
                    self.switch.pipeline.modify(&found, &change.flow, change.reset_counts);
                    return self.release(change.buffer);
                }
            }
            Command::Add => {}
        }
        let Flow { table, priority, matching, .. } = change.flow;
        if change.check_overlap && self.switch.pipeline.overlaps(table, &matching, priority) {
            return refuse(FlowModFailed::Overlap);
        }
        if !self.switch.pipeline.add(change.flow, !change.reset_counts, self.now) {
            return refuse(FlowModFailed::TableFull);
        }
        self.release(change.buffer)
    }

    /// Sends a kept frame through the tables, which now hold the flow that it was kept for.
    fn release(&mut self, buffer: u32) -> Result<(), ErrorKind> {
        if buffer == NO_BUFFER {
            return Ok(());
        }
        let (in_port, bytes) = self.agent.buffers.take(buffer)?;
        self.switch.act_on(&[Action::Table], in_port, Box::new(Frame::new(bytes)), self.now, self.out);
        Ok(())
    }

    /// Carries out actions on a frame that the controller sends, or that was kept for it.
    pub(super) fn send_out(
        &mut self,
        buffer: u32,
        in_port: u32,
        data: Vec<u8>,
        read: impl FnOnce(&mut ActionReader<'_>) -> Result<Vec<Action>, ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let special = matches!(in_port, value::PORT_CONTROLLER | value::PORT_LOCAL | value::PORT_ANY | 0);
        if !special && self.switch.datapath.ports.get(in_port).is_none() {
            return Err(ErrorKind::BadRequest(BadRequest::BadPort));
        }
        let mut reader = ActionReader { pipeline: &self.switch.pipeline, matching: Match::default(), packet_out: true };
        let actions = read(&mut reader)?;
        let bytes = if buffer == NO_BUFFER { data } else { self.agent.buffers.take(buffer)?.1 };
        if bytes.len() < 14 {
            return Err(ErrorKind::BadRequest(BadRequest::BadPacket));
        }
        self.switch.act_on(&actions, in_port, Box::new(Frame::new(bytes)), self.now, self.out);
        Ok(())
    }

    pub(super) fn change_group(&mut self, change: &v13::GroupMod, written: Arc<[u8]>) -> Result<(), ErrorKind> {
        let refuse = |code| Err(ErrorKind::GroupModFailed(code));
        let id = change.group_id;
        self.switch.cache.invalidate();
        if change.command == v13::GroupModCommand::Delete {
            let gone = match id {
                v13::group_number::ALL => self.switch.pipeline.groups.clear(),
                _ if id > v13::group_number::MAX => return refuse(GroupModFailed::InvalidGroup),
                _ => match self.switch.pipeline.groups.remove(id) {
                    Ok(found) => found.then_some(id).into_iter().collect(),
                    Err(refusal) => return Err(group_error(refusal)),
                },
            };
            for group in gone {
                let selection = Selection { out_group: Some(group), ..Selection::default() };
                let switch = &mut *self.switch;
                switch.pipeline.delete(&selection, RemovalReason::GroupDelete, self.now, &mut switch.events);
            }
            return Ok(());
        }
        if id > v13::group_number::MAX {
            return refuse(GroupModFailed::InvalidGroup);
        }
        let kind = match change.group_type {
            v13::GroupType::All => GroupKind::All,
            v13::GroupType::Select => GroupKind::Select,
            v13::GroupType::Indirect => GroupKind::Indirect,
            v13::GroupType::FastFailover => GroupKind::FastFailover,
        };
        let mut buckets = Vec::with_capacity(change.buckets.len());
        for bucket in &change.buckets {
            let leads_back = bucket.actions.contains(&v13::Action::Group(id));
            if leads_back {
                return refuse(GroupModFailed::Loop);
            }
            // The frames are not known here: what an action needs is looked at when it is carried out.
            let mut reader =
                ActionReader { pipeline: &self.switch.pipeline, matching: Match::default(), packet_out: true };
            let actions = reader.list(&bucket.actions)?;
            if actions.contains(&Action::Table) {
                return Err(ErrorKind::BadAction(BadAction::BadOutPort));
            }
            let (watch_port, watch_group) = (bucket.watch_port, bucket.watch_group);
            let watched = self.switch.datapath.ports.get(watch_port).is_some();
            if !watched && !matches!(watch_port, value::PORT_ANY | value::PORT_LOCAL) {
                return refuse(GroupModFailed::BadWatch);
            }
            buckets.push(Bucket { weight: bucket.weight, watch_port, watch_group, actions, frames: 0, bytes: 0 });
        }
        let modify = change.command == v13::GroupModCommand::Modify;
        self.switch.pipeline.groups.put(id, kind, (buckets, written), modify, self.now).map_err(group_error)
    }

    pub(super) fn change_meter(&mut self, change: &v13::MeterMod, written: Arc<[u8]>) -> Result<(), ErrorKind> {
        let refuse = |code| Err(ErrorKind::MeterModFailed(code));
        let id = change.meter_id;
        self.switch.cache.invalidate();
        if change.command == v13::MeterModCommand::Delete {
            let meters = &mut self.switch.pipeline.meters.meters;
            let gone: Vec<u32> = match id {
                v13::meter_number::ALL => std::mem::take(meters).into_keys().collect(),
                _ => meters.remove(&id).map(|_| id).into_iter().collect(),
            };
            for meter in gone {
                let selection = Selection { meter: Some(meter), ..Selection::default() };
                let switch = &mut *self.switch;
                switch.pipeline.delete(&selection, RemovalReason::Delete, self.now, &mut switch.events);
            }
            return Ok(());
        }
        let modify = change.command == v13::MeterModCommand::Modify;
        let known = self.switch.pipeline.meters.meters.get(&id).map(|meter| meter.added);
        match known {
            _ if id == 0 || id > 0xffff_0000 => return refuse(MeterModFailed::InvalidMeter),
            None if modify => return refuse(MeterModFailed::UnknownMeter),
            Some(_) if !modify => return refuse(MeterModFailed::MeterExists),
            None if self.switch.pipeline.meters.meters.len() >= MOST_METERS => {
                return refuse(MeterModFailed::OutOfMeters)
            }
            _ => {}
        }
        let flags = change.flags.0;
        // Exactly one unit; kbit/s when none is said.
        if flags & 1 != 0 && flags & PACKETS != 0 {
            return refuse(MeterModFailed::BadFlags);
        }
        if change.bands.len() > MOST_BANDS {
            return refuse(MeterModFailed::OutOfBands);
        }
        let mut bands = Vec::with_capacity(change.bands.len());
        for band in &change.bands {
            let effect = match &band.effect {
                MeterEffect::Drop => Effect::Drop,
                MeterEffect::DscpRemark(steps) => Effect::Remark(*steps),
                MeterEffect::Experimenter { .. } => return refuse(MeterModFailed::BadBand),
            };
            if band.rate == 0 {
                return refuse(MeterModFailed::BadRate);
            }
            if flags & BURST != 0 && band.burst_size == 0 {
                return refuse(MeterModFailed::BadBurst);
            }
            bands.push(Band::new(band.rate, band.burst_size, effect, flags));
        }
        let added = known.unwrap_or(self.now);
        let meter = Meter { flags, bands, written, added, frames: 0, bytes: 0 };
        self.switch.pipeline.meters.meters.insert(id, meter);
        Ok(())
    }

    /// Takes over those bits of a port's configuration that the mask has.
    pub(super) fn change_port(
        &mut self,
        number: u32,
        address: [u8; 6],
        config: u32,
        mask: u32,
    ) -> Result<(), ErrorKind> {
        let refuse = |code| Err(ErrorKind::PortModFailed(code));
        let Some(port) = self.switch.datapath.ports.get_mut(number) else {
            return refuse(PortModFailed::BadPort);
        };
        if port.mac != address {
            return refuse(PortModFailed::BadHwAddr);
        }
        let after = port.config & !mask | config & mask;
        if after != port.config {
            port.config = after;
            self.switch.cache.invalidate();
            self.switch.port_changed(number);
        }
        Ok(())
    }

    pub(super) const fn is_table(table: u8) -> bool {
        table < TABLES
    }
}

const fn group_error(refusal: GroupRefusal) -> ErrorKind {
    ErrorKind::GroupModFailed(match refusal {
        GroupRefusal::Exists => GroupModFailed::GroupExists,
        GroupRefusal::Unknown => GroupModFailed::UnknownGroup,
        GroupRefusal::Invalid => GroupModFailed::InvalidGroup,
        GroupRefusal::Loop => GroupModFailed::Loop,
        GroupRefusal::Chained => GroupModFailed::ChainedGroup,
        GroupRefusal::BadWatch => GroupModFailed::BadWatch,
        GroupRefusal::TooMany => GroupModFailed::OutOfGroups,
        GroupRefusal::BadOutGroup => return ErrorKind::BadAction(BadAction::BadOutGroup),
    })
}
