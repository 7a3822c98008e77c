//! Actions and instructions between the wire and the pipeline.

use twinnet_openflow::nicira::{self, ControllerReason, RegisterMove, Subfield};
use twinnet_openflow::oxm::{Field as Oxm, FieldId, FieldMatch, FieldValue};
use twinnet_openflow::v10;
use twinnet_openflow::v13::{self, BadAction, BadInstruction, ErrorKind, Instruction, MeterModFailed};
use twinnet_packet::{mac_of, mac_value, Field};

use super::super::action::Action;
use super::super::event::PacketInReason;
use super::super::field::MatchField;
use super::super::matching::Match;
use super::super::parse::LAST_TABLE;
use super::super::pipeline::Pipeline;
use super::super::value;
use super::fields::{bits_in_key, bits_on_wire, ours, theirs, BAD_SET_TYPE};
use super::numbers::{from_narrow, to_narrow};

const fn bad<T>(code: BadAction) -> Result<T, ErrorKind> {
    Err(ErrorKind::BadAction(code))
}

/// Reads actions of frames that match in a certain way; the match follows what the actions change.
pub(super) struct ActionReader<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) matching: Match,
    /// In a packet-out: through the tables is a way, and nothing is known of the frame.
    pub(super) packet_out: bool,
}

impl ActionReader<'_> {
    pub(super) fn list(&mut self, actions: &[v13::Action]) -> Result<Vec<Action>, ErrorKind> {
        actions.iter().map(|action| self.one(action)).collect::<Result<Vec<_>, _>>().map(without_nothing)
    }

    pub(super) fn list_v10(&mut self, actions: &[v10::Action]) -> Result<Vec<Action>, ErrorKind> {
        actions.iter().map(|action| self.one_v10(action)).collect::<Result<Vec<_>, _>>().map(without_nothing)
    }

    fn is(&self, eth_types: &[u128]) -> Result<(), ErrorKind> {
        let known = self.matching.exact(Field::ETH_TYPE);
        if self.packet_out || known.is_some_and(|eth_type| eth_types.contains(&eth_type)) {
            return Ok(());
        }
        bad(BadAction::MatchInconsistent)
    }

    /// From here on frames have this EtherType, and nothing else is known of what follows it.
    fn becomes(&mut self, eth_type: u16) {
        let mut next = Match::default();
        next.restrict(Field::ETH_TYPE, u128::from(eth_type), Field::ETH_TYPE.maximum());
        self.matching = next;
    }

    fn output(&self, port: u32, max_len: u16) -> Result<Action, ErrorKind> {
        Ok(match port {
            value::PORT_IN_PORT => Action::InPort,
            value::PORT_TABLE if self.packet_out => Action::Table,
            value::PORT_NORMAL => Action::Normal,
            value::PORT_FLOOD => Action::Flood,
            value::PORT_ALL => Action::All,
            value::PORT_CONTROLLER => Action::Controller { max_len, id: 0, reason: None },
            value::PORT_LOCAL => Action::Local,
            1..=value::PORT_MAX => Action::Output(port),
            _ => return bad(BadAction::BadOutPort),
        })
    }

    fn one(&mut self, action: &v13::Action) -> Result<Action, ErrorKind> {
        let mpls: &[u128] = &[0x8847, 0x8848];
        let ip: &[u128] = &[0x0800, 0x86dd];
        Ok(match action {
            v13::Action::Output { port, max_len } => self.output(*port, *max_len)?,
            v13::Action::CopyTtlOut => Action::CopyTtlOut,
            v13::Action::CopyTtlIn => Action::CopyTtlIn,
            v13::Action::SetMplsTtl(ttl) => {
                self.is(mpls)?;
                Action::SetMplsTtl(*ttl)
            }
            v13::Action::DecMplsTtl => {
                self.is(mpls)?;
                Action::DecrementMplsTtl
            }
            v13::Action::PushVlan(protocol @ (0x8100 | 0x88a8)) => {
                // A tag is there from now on; what it says is not known.
                self.matching.value.set(Field::VLAN_TCI, 0x1000);
                self.matching.mask.set(Field::VLAN_TCI, 0x1000);
                Action::PushVlan(*protocol)
            }
            v13::Action::PushVlan(_) => return bad(BadAction::BadArgument),
            v13::Action::PopVlan => {
                let untagged = self.matching.mask.get(Field::VLAN_PRESENT) == 1
                    && self.matching.value.get(Field::VLAN_PRESENT) == 0;
                if untagged {
                    return bad(BadAction::MatchInconsistent);
                }
                self.matching.value.set(Field::VLAN_TCI, 0);
                self.matching.mask.set(Field::VLAN_TCI, 0);
                Action::PopVlan
            }
            v13::Action::PushMpls(protocol @ (0x8847 | 0x8848)) => {
                self.becomes(*protocol);
                Action::PushMpls(*protocol)
            }
            v13::Action::PushMpls(_) => return bad(BadAction::BadArgument),
            v13::Action::PopMpls(protocol) => {
                self.is(mpls)?;
                self.becomes(*protocol);
                Action::PopMpls(*protocol)
            }
            v13::Action::SetQueue(queue) => Action::SetQueue(*queue),
            v13::Action::Group(group) => {
                if self.pipeline.groups.get(*group).is_none() {
                    return bad(BadAction::BadOutGroup);
                }
                Action::Group(*group)
            }
            v13::Action::SetNwTtl(ttl) => {
                self.is(ip)?;
                Action::SetTtl(*ttl)
            }
            v13::Action::DecNwTtl => {
                self.is(ip)?;
                Action::DecrementTtl
            }
            v13::Action::SetField(FieldValue { field, value }) => self.set_field(*field, *value)?,
            v13::Action::PushPbb(0x88e7) => {
                self.becomes(0x88e7);
                Action::PushBackbone(0x88e7)
            }
            v13::Action::PushPbb(_) => return bad(BadAction::BadArgument),
            v13::Action::PopPbb => {
                self.is(&[0x88e7])?;
                self.matching = Match::default();
                Action::PopBackbone
            }
            v13::Action::Nicira(action) => self.nicira(action)?,
            v13::Action::Experimenter { experimenter, .. } if *experimenter == nicira::NICIRA => {
                return bad(BadAction::BadExpType)
            }
            v13::Action::Experimenter { .. } => return bad(BadAction::BadExperimenter),
        })
    }

    fn set_field(&mut self, field: Oxm, value: u128) -> Result<Action, ErrorKind> {
        let own = ours(field).filter(|own| own.settable).ok_or(BAD_SET_TYPE)?;
        let vlan = matches!(field, Oxm::VlanVid | Oxm::VlanPcp);
        let tagged = self.matching.exact(Field::VLAN_PRESENT) == Some(1);
        if !self.packet_out && (!own.needs.met(&self.matching) || vlan && !tagged) {
            return bad(BadAction::MatchInconsistent);
        }
        if value > own.field.maximum() || field == Oxm::VlanVid && value & 0x1000 == 0 {
            return bad(BadAction::BadSetArgument);
        }
        match field {
            Oxm::EthType => self.becomes(value as u16),
            Oxm::IpProto => {
                self.matching.value.set(Field::NW_PROTO, value);
                self.matching.mask.set(Field::NW_PROTO, Field::NW_PROTO.maximum());
            }
            _ => {}
        }
        Ok(Action::SetField { field: own, value, mask: own.field.maximum() })
    }

    fn load(&self, field: Option<&'static MatchField>, value: u128, mask: u128) -> Result<Action, ErrorKind> {
        let own = field.filter(|own| own.settable || own.field == Field::VLAN_TCI);
        let Some(own) = own.filter(|own| mask <= own.field.maximum()) else { return bad(BadAction::BadArgument) };
        Ok(Action::SetField { field: own, value: value & mask, mask })
    }

    fn nicira(&self, action: &nicira::Action) -> Result<Action, ErrorKind> {
        use nicira::Action as Nicira;
        let table = |table: u8| (table != 0xff).then_some(table);
        let from = |port: u16| (port != 0xfff8).then(|| from_narrow(port));
        let field = |id: FieldId| id.field().and_then(ours);
        let subfield = |part: &Subfield| {
            let own = field(part.id).filter(|own| u32::from(part.offset) + u32::from(part.bits) <= own.field.bits());
            own.ok_or(ErrorKind::BadAction(BadAction::BadArgument))
        };
        Ok(match action {
            Nicira::Resubmit(port) => Action::Resubmit { port: from(*port), table: None },
            Nicira::ResubmitTable { in_port, table_id } => {
                Action::Resubmit { port: from(*in_port), table: table(*table_id) }
            }
            Nicira::SetTunnel(tunnel) => self.load(ours(Oxm::TunnelId), u128::from(*tunnel), u128::from(u64::MAX))?,
            Nicira::SetTunnel64(tunnel) => self.load(ours(Oxm::TunnelId), u128::from(*tunnel), u128::from(u64::MAX))?,
            Nicira::SetQueue(queue) => Action::SetQueue(*queue),
            Nicira::PopQueue => Action::PopQueue,
            Nicira::RegisterMove(RegisterMove { bits, source_offset, destination_offset, source, destination }) => {
                let whole = |id: FieldId, offset: u16| {
                    let own = field(id).filter(|own| u32::from(offset) + u32::from(*bits) <= own.field.bits());
                    own.ok_or(ErrorKind::BadAction(BadAction::BadArgument))
                };
                let (from, to) = (whole(*source, *source_offset)?, whole(*destination, *destination_offset)?);
                if *bits == 0 || !to.settable {
                    return bad(BadAction::BadArgument);
                }
                Action::Move { from, from_bit: *source_offset, to, to_bit: *destination_offset, bits: *bits }
            }
            Nicira::RegisterLoad { destination, value } => {
                let wire = destination.id.field();
                let own = field(destination.id);
                let known = wire.zip(own).and_then(|(wire, own)| {
                    bits_in_key(wire, own, destination.offset, destination.bits).filter(|bits| *bits > 0)
                });
                let Some(bits) = known else { return bad(BadAction::BadArgument) };
                let ones = u128::MAX >> (128 - u32::from(bits));
                if u128::from(*value) > ones {
                    return bad(BadAction::BadArgument);
                }
                self.load(own, u128::from(*value) << destination.offset, ones << destination.offset)?
            }
            Nicira::RegisterLoadMasked(FieldMatch { field, value, mask }) => self.load(ours(*field), *value, *mask)?,
            Nicira::Note(bytes) => Action::Note(bytes.clone()),
            Nicira::OutputRegister { source, .. } => {
                Action::OutputField { field: subfield(source)?, first_bit: source.offset, bits: source.bits }
            }
            Nicira::Exit => Action::Exit,
            Nicira::DecTtl | Nicira::DecTtlNotifying(_) => Action::DecrementTtl,
            Nicira::Controller { max_len, controller_id, reason } => {
                let reason = match reason {
                    // What is usual for actions.
                    ControllerReason::Action => None,
                    ControllerReason::NoMatch => Some(PacketInReason::NoMatch),
                    ControllerReason::InvalidTtl => Some(PacketInReason::InvalidTtl),
                    ControllerReason::Unknown(_) => return bad(BadAction::BadArgument),
                };
                Action::Controller { max_len: *max_len, id: *controller_id, reason }
            }
            Nicira::PushMpls(protocol) => Action::PushMpls(*protocol),
            Nicira::PopMpls(protocol) => Action::PopMpls(*protocol),
            Nicira::SetMplsTtl(ttl) => Action::SetMplsTtl(*ttl),
            Nicira::DecMplsTtl => Action::DecrementMplsTtl,
            Nicira::SetMplsLabel(label) => self.load(ours(Oxm::MplsLabel), u128::from(*label), 0xf_ffff)?,
            Nicira::SetMplsTc(class) => self.load(ours(Oxm::MplsTc), u128::from(*class), 7)?,
            action => match super::extensions::read(action)? {
                Some(action) => action,
                None => return bad(BadAction::BadExpType),
            },
        })
    }

    fn one_v10(&mut self, action: &v10::Action) -> Result<Action, ErrorKind> {
        let modify = |name: &str, value: u128| {
            let known = super::super::action::MODIFICATIONS.iter().find(|(known, _)| *known == name);
            let found = known.and_then(|(name, field)| Some((*name, MatchField::by_name(field)?)));
            let (name, field) = found.ok_or(BAD_SET_TYPE)?;
            Ok(Action::Modify { name, field, value })
        };
        match action {
            v10::Action::Output { port, max_len } => self.output(from_narrow(*port), *max_len),
            v10::Action::SetVlanVid(vid) if *vid > 0xfff => bad(BadAction::BadArgument),
            v10::Action::SetVlanVid(vid) => modify("mod_vlan_vid", u128::from(*vid)),
            v10::Action::SetVlanPcp(priority) if *priority > 7 => bad(BadAction::BadArgument),
            v10::Action::SetVlanPcp(priority) => modify("mod_vlan_pcp", u128::from(*priority)),
            v10::Action::StripVlan => Ok(Action::PopVlan),
            v10::Action::SetDlSrc(address) => modify("mod_dl_src", mac_value(*address)),
            v10::Action::SetDlDst(address) => modify("mod_dl_dst", mac_value(*address)),
            v10::Action::SetNwSrc(address) => modify("mod_nw_src", u128::from(*address)),
            v10::Action::SetNwDst(address) => modify("mod_nw_dst", u128::from(*address)),
            v10::Action::SetNwTos(tos) if tos & 3 != 0 => bad(BadAction::BadArgument),
            v10::Action::SetNwTos(tos) => modify("mod_nw_tos", u128::from(tos >> 2)),
            v10::Action::SetTpSrc(port) => modify("mod_tp_src", u128::from(*port)),
            v10::Action::SetTpDst(port) => modify("mod_tp_dst", u128::from(*port)),
            v10::Action::Enqueue { port, queue_id } => match self.output(from_narrow(*port), 0)? {
                Action::Output(port) => Ok(Action::Enqueue { port, queue: *queue_id }),
                _ => bad(BadAction::BadOutPort),
            },
            v10::Action::Nicira(action) => self.nicira(action),
            v10::Action::Vendor { vendor, .. } if *vendor == nicira::NICIRA => bad(BadAction::BadExpType),
            v10::Action::Vendor { .. } => bad(BadAction::BadExperimenter),
        }
    }

    /// The instructions of a flow of `table`, in the order in which they are carried out (OpenFlow 1.3, 5.9).
    pub(super) fn instructions(&mut self, instructions: &[Instruction], table: u8) -> Result<Vec<Action>, ErrorKind> {
        let mut parts: [Vec<Action>; 6] = Default::default();
        let mut seen = 0_u8;
        let whole = self.matching;
        for instruction in instructions {
            let refuse = |code| Err(ErrorKind::BadInstruction(code));
            let (place, actions) = match instruction {
                Instruction::Meter(meter) => {
                    if !self.pipeline.meters.meters.contains_key(meter) {
                        return Err(ErrorKind::MeterModFailed(MeterModFailed::UnknownMeter));
                    }
                    (0, vec![Action::Meter(*meter)])
                }
                Instruction::ApplyActions(actions) => {
                    self.matching = whole;
                    (1, self.list(actions)?)
                }
                Instruction::ClearActions => (2, vec![Action::ClearActions]),
                Instruction::WriteActions(actions) => {
                    let actions = self.list(actions)?;
                    (3, vec![Action::WriteActions(actions)])
                }
                Instruction::WriteMetadata { metadata, mask } => {
                    (4, vec![Action::WriteMetadata { value: metadata & mask, mask: *mask }])
                }
                Instruction::GotoTable(next) if *next <= table || *next > LAST_TABLE => {
                    return refuse(BadInstruction::BadTableId)
                }
                Instruction::GotoTable(next) => (5, vec![Action::GotoTable(*next)]),
                Instruction::Experimenter { .. } => return refuse(BadInstruction::BadExperimenter),
            };
            // An instruction of each type at most; the version has no error of its own for that (1.4: OFPBIC_DUP_INST).
            if seen & 1 << place != 0 {
                return refuse(BadInstruction::UnknownInst);
            }
            seen |= 1 << place;
            parts[place] = actions;
        }
        Ok(parts.into_iter().flatten().collect())
    }
}

/// `drop` stands for an action without effect.
fn without_nothing(mut actions: Vec<Action>) -> Vec<Action> {
    actions.retain(|action| *action != Action::Drop);
    actions
}

/// A flow's actions as instructions.
pub(super) fn write_instructions(actions: &[Action], matching: &Match) -> Vec<Instruction> {
    let mut applied = Vec::new();
    let mut others = Vec::new();
    for action in actions {
        match action {
            Action::Meter(meter) => others.push(Instruction::Meter(*meter)),
            Action::ClearActions => others.push(Instruction::ClearActions),
            Action::WriteActions(actions) => others.push(Instruction::WriteActions(write_list(actions, matching))),
            Action::WriteMetadata { value, mask } => {
                others.push(Instruction::WriteMetadata { metadata: *value, mask: *mask });
            }
            Action::GotoTable(table) => others.push(Instruction::GotoTable(*table)),
            action => applied.extend(write(action, matching)),
        }
    }
    if !applied.is_empty() {
        let place = usize::from(matches!(others.first(), Some(Instruction::Meter(_))));
        others.insert(place, Instruction::ApplyActions(applied));
    }
    others
}

pub(super) fn write_list(actions: &[Action], matching: &Match) -> Vec<v13::Action> {
    actions.iter().filter_map(|action| write(action, matching)).collect()
}

fn to_port(port: u32, max_len: u16) -> v13::Action {
    v13::Action::Output { port, max_len }
}

fn common_nicira(action: &Action, matching: &Match) -> Option<nicira::Action> {
    let nxm = |field: &MatchField| Some(FieldId::nxm(theirs(field, matching)?, false));
    Some(match action {
        Action::Controller { max_len, id, reason } => nicira::Action::Controller {
            max_len: *max_len,
            controller_id: *id,
            reason: match reason {
                Some(PacketInReason::NoMatch) => ControllerReason::NoMatch,
                Some(PacketInReason::InvalidTtl) => ControllerReason::InvalidTtl,
                Some(PacketInReason::Action) | None => ControllerReason::Action,
            },
        },
        Action::Note(bytes) => nicira::Action::Note(bytes.clone()),
        Action::PopQueue => nicira::Action::PopQueue,
        Action::Exit => nicira::Action::Exit,
        Action::Extension(extension) => extension.wire.clone(),
        Action::Resubmit { port, table } => {
            nicira::Action::ResubmitTable { in_port: port.map_or(0xfff8, to_narrow), table_id: table.unwrap_or(0xff) }
        }
        Action::Move { from, from_bit, to, to_bit, bits } => nicira::Action::RegisterMove(RegisterMove {
            bits: *bits,
            source_offset: *from_bit,
            destination_offset: *to_bit,
            source: nxm(from)?,
            destination: nxm(to)?,
        }),
        Action::OutputField { field, first_bit, bits } => nicira::Action::OutputRegister {
            source: Subfield { id: nxm(field)?, offset: *first_bit, bits: *bits },
            max_len: 0xffff,
        },
        Action::SetField { field, value, mask } => {
            let (offset, bits) = (mask.trailing_zeros(), mask.count_ones());
            let contiguous = bits > 0 && bits <= 64 && mask >> offset == u128::MAX >> (128 - bits);
            if !contiguous {
                let (field, value, mask) = (theirs(field, matching)?, *value, *mask);
                return Some(nicira::Action::RegisterLoadMasked(FieldMatch { field, value, mask }));
            }
            let bits = bits_on_wire(theirs(field, matching)?, field, offset as u16, bits as u16);
            let destination = Subfield { id: nxm(field)?, offset: offset as u16, bits };
            nicira::Action::RegisterLoad { destination, value: (value >> offset) as u64 }
        }
        _ => return None,
    })
}

fn write(action: &Action, matching: &Match) -> Option<v13::Action> {
    Some(match action {
        Action::Output(port) => to_port(*port, 0),
        Action::InPort => to_port(value::PORT_IN_PORT, 0),
        Action::Flood => to_port(value::PORT_FLOOD, 0),
        Action::All => to_port(value::PORT_ALL, 0),
        Action::Normal => to_port(value::PORT_NORMAL, 0),
        Action::Local => to_port(value::PORT_LOCAL, 0),
        Action::Controller { max_len, id: 0, reason: None } => to_port(value::PORT_CONTROLLER, *max_len),
        Action::Table => to_port(value::PORT_TABLE, 0),
        Action::Enqueue { port, .. } => to_port(*port, 0),
        Action::SetQueue(queue) => v13::Action::SetQueue(*queue),
        Action::PushVlan(protocol) => v13::Action::PushVlan(*protocol),
        Action::PopVlan => v13::Action::PopVlan,
        Action::DecrementTtl => v13::Action::DecNwTtl,
        Action::Group(group) => v13::Action::Group(*group),
        Action::PushMpls(protocol) => v13::Action::PushMpls(*protocol),
        Action::PopMpls(protocol) => v13::Action::PopMpls(*protocol),
        Action::PushBackbone(protocol) => v13::Action::PushPbb(*protocol),
        Action::PopBackbone => v13::Action::PopPbb,
        Action::SetMplsTtl(ttl) => v13::Action::SetMplsTtl(*ttl),
        Action::DecrementMplsTtl => v13::Action::DecMplsTtl,
        Action::SetTtl(ttl) => v13::Action::SetNwTtl(*ttl),
        Action::CopyTtlIn => v13::Action::CopyTtlIn,
        Action::CopyTtlOut => v13::Action::CopyTtlOut,
        Action::SetField { field, value, mask } if *mask == field.field.maximum() => {
            v13::Action::SetField(FieldValue { field: theirs(field, matching)?, value: *value })
        }
        Action::Modify { field, value, .. } => {
            let field = theirs(field, matching)?;
            let present = if field == Oxm::VlanVid { 0x1000 } else { 0 };
            v13::Action::SetField(FieldValue { field, value: value | present })
        }
        action => v13::Action::Nicira(Box::new(common_nicira(action, matching)?)),
    })
}

/// Actions of OpenFlow 1.0; instructions and actions that it lacks are left out.
pub(super) fn write_list_v10(actions: &[Action], matching: &Match) -> Vec<v10::Action> {
    actions.iter().filter_map(|action| write_v10(action, matching)).collect()
}

fn write_v10(action: &Action, matching: &Match) -> Option<v10::Action> {
    if let Action::Modify { name, value, .. } = action {
        let value = *value;
        return Some(match *name {
            "mod_dl_src" => v10::Action::SetDlSrc(mac_of(value)),
            "mod_dl_dst" => v10::Action::SetDlDst(mac_of(value)),
            "mod_nw_src" => v10::Action::SetNwSrc(value as u32),
            "mod_nw_dst" => v10::Action::SetNwDst(value as u32),
            "mod_nw_tos" => v10::Action::SetNwTos((value as u8) << 2),
            "mod_tp_src" => v10::Action::SetTpSrc(value as u16),
            "mod_tp_dst" => v10::Action::SetTpDst(value as u16),
            "mod_vlan_vid" => v10::Action::SetVlanVid(value as u16 & 0xfff),
            "mod_vlan_pcp" => v10::Action::SetVlanPcp(value as u8),
            _ => return None,
        });
    }
    if let Action::Enqueue { port, queue } = action {
        return Some(v10::Action::Enqueue { port: to_narrow(*port), queue_id: *queue });
    }
    match write(action, matching) {
        Some(v13::Action::Output { port, max_len }) => Some(v10::Action::Output { port: to_narrow(port), max_len }),
        Some(v13::Action::PopVlan) => Some(v10::Action::StripVlan),
        Some(v13::Action::Nicira(action)) => Some(v10::Action::Nicira(action)),
        Some(v13::Action::DecNwTtl) => Some(v10::Action::Nicira(Box::new(nicira::Action::DecTtl))),
        Some(v13::Action::SetQueue(queue)) => Some(v10::Action::Nicira(Box::new(nicira::Action::SetQueue(queue)))),
        _ => Some(v10::Action::Nicira(Box::new(common_nicira(action, matching)?))),
    }
}
