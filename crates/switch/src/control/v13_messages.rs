//! Messages of OpenFlow 1.3: what each does to the switch, and what it is answered.

use twinnet_openflow::v13::{
    self, BadRequest, Capabilities, ErrorKind, FlowFlags, FlowModCommand, FragmentHandling, Message, PortFeatures,
    QueueOpFailed, Role, RoleRequestFailed, SwitchConfigFailed, TableModFailed,
};
use twinnet_openflow::{nicira, Header};

use super::super::flow::Flow;
use super::super::written::{Form, Written};
use super::actions::ActionReader;
use super::buffers::BUFFERS;
use super::changes::{Command, FlowChange};
use super::connection::Connection;
use super::fields::read_match;
use super::roles::{self, xid_of};
use super::{Context, TABLES};

/// Types of messages that switches send and controllers do not: whatever is in one, it is refused for its type.
const fn of_switches(kind: u8) -> bool {
    matches!(kind, 6 | 8 | 10..=12 | 19 | 21 | 23 | 25 | 27)
}

impl Context<'_> {
    pub(super) fn handle_v13(mut self, connection: &mut Connection, bytes: &[u8]) {
        if bytes.get(1).is_some_and(|kind| of_switches(*kind)) {
            return connection.refuse(xid_of(bytes), ErrorKind::BadRequest(BadRequest::BadType), bytes);
        }
        if connection.role == Role::Slave && roles::is_denied_to_slaves(v13::VERSION, bytes) {
            return connection.refuse(xid_of(bytes), ErrorKind::BadRequest(BadRequest::IsSlave), bytes);
        }
        match Message::decode(bytes) {
            Err(error) => connection.refuse(error.xid, error.refusal.fault.into(), bytes),
            Ok((header, message)) => {
                if let Err(kind) = self.obey_v13(connection, header, message, bytes) {
                    connection.refuse(header.xid, kind, bytes);
                }
            }
        }
    }

    fn obey_v13(
        &mut self,
        connection: &mut Connection,
        header: Header,
        message: Message,
        bytes: &[u8],
    ) -> Result<(), ErrorKind> {
        let reply = match message {
            Message::EchoRequest(data) => Message::EchoReply(data),
            Message::FeaturesRequest => self.features_v13(),
            Message::GetConfigRequest => {
                let settings = &self.switch.pipeline.settings;
                let fragments = if settings.drop_fragments { FragmentHandling::Drop } else { FragmentHandling::Normal };
                Message::GetConfigReply(v13::SwitchConfig { fragments, miss_send_len: settings.miss_send_len })
            }
            Message::SetConfig(config) => return self.configure(connection, config.fragments, config.miss_send_len),
            Message::PacketOut(packet) => {
                let v13::PacketOut { buffer_id, in_port, actions, data } = packet;
                return self.send_out(buffer_id, in_port, data, |reader| reader.list(&actions));
            }
            Message::FlowMod(change) => return self.flow_mod_v13(&change, bytes),
            Message::GroupMod(change) => return self.change_group(&change, v13::GroupMod::written(bytes)),
            Message::MeterMod(change) => return self.change_meter(&change, v13::MeterMod::written(bytes)),
            Message::PortMod(change) => {
                if change.advertise != PortFeatures::default() {
                    return Err(ErrorKind::PortModFailed(v13::PortModFailed::BadAdvertise));
                }
                if change.mask.0 & !v13::PortConfig::ALL.0 != 0 {
                    return Err(ErrorKind::PortModFailed(v13::PortModFailed::BadConfig));
                }
                return self.change_port(change.port_no, change.hw_addr, change.config.0, change.mask.0);
            }
            Message::TableMod(change) => {
                // "This configuration is deprecated": its only bits have no meaning in 1.3.
                let known = Self::is_table(change.table_id) || change.table_id == v13::table_number::ALL;
                return if known { Ok(()) } else { Err(ErrorKind::TableModFailed(TableModFailed::BadTable)) };
            }
            Message::MultipartRequest(request) => return self.multipart(connection, header.xid, request),
            // Everything before it has taken effect.
            Message::BarrierRequest => Message::BarrierReply,
            Message::QueueConfigRequest(request) => self.queue_config_v13(request.port)?,
            Message::RoleRequest(request) => {
                let generation = self.change_role(connection, request.role, request.generation_id)?;
                Message::RoleReply(v13::RoleMessage { role: connection.role, generation_id: generation })
            }
            Message::GetAsyncRequest => Message::GetAsyncReply(connection.told.clone()),
            Message::SetAsync(told) => {
                connection.told = told;
                return Ok(());
            }
            Message::Experimenter(message) if message.experimenter == nicira::NICIRA => {
                let decoded = nicira::Message::decode_experimenter(&message);
                let decoded = decoded.map_err(|refusal| ErrorKind::from(refusal.fault))?;
                if let Some(answer) = self.obey_nicira(connection, decoded, bytes)? {
                    connection.send_v13(header.xid, &Message::Experimenter(answer.to_experimenter()));
                }
                return Ok(());
            }
            Message::Experimenter(_) => return Err(ErrorKind::BadRequest(BadRequest::BadExperimenter)),
            Message::Hello(_) | Message::EchoReply(_) | Message::Error(_) => return Ok(()),
            _ => return Err(ErrorKind::BadRequest(BadRequest::BadType)),
        };
        connection.send_v13(header.xid, &reply);
        Ok(())
    }

    fn features_v13(&self) -> Message {
        Message::FeaturesReply(v13::FeaturesReply {
            datapath_id: self.switch.config.dpid,
            n_buffers: BUFFERS,
            n_tables: TABLES,
            auxiliary_id: 0,
            capabilities: Capabilities::FLOW_STATS
                | Capabilities::TABLE_STATS
                | Capabilities::PORT_STATS
                | Capabilities::GROUP_STATS
                | Capabilities::QUEUE_STATS,
            reserved: 0,
        })
    }

    pub(super) fn configure(
        &mut self,
        connection: &mut Connection,
        fragments: FragmentHandling,
        miss_send_len: u16,
    ) -> Result<(), ErrorKind> {
        let drop_fragments = match fragments {
            FragmentHandling::Normal => false,
            FragmentHandling::Drop => true,
            // IP_REASM is no capability of this switch.
            FragmentHandling::Reassemble => {
                return Err(ErrorKind::SwitchConfigFailed(SwitchConfigFailed::BadFlags));
            }
        };
        if miss_send_len > 0 {
            connection.tell_all();
        }
        let settings = &mut self.switch.pipeline.settings;
        (settings.drop_fragments, settings.miss_send_len) = (drop_fragments, miss_send_len);
        self.switch.cache.invalidate();
        Ok(())
    }

    fn flow_mod_v13(&mut self, change: &v13::FlowMod, bytes: &[u8]) -> Result<(), ErrorKind> {
        let command = match change.command {
            FlowModCommand::Add => Command::Add,
            FlowModCommand::Modify => Command::Modify { strict: false },
            FlowModCommand::ModifyStrict => Command::Modify { strict: true },
            FlowModCommand::Delete => Command::Delete { strict: false },
            FlowModCommand::DeleteStrict => Command::Delete { strict: true },
        };
        let matching = read_match(&change.matching)?;
        let deletes = matches!(command, Command::Delete { .. });
        let actions = if deletes {
            Vec::new()
        } else {
            let v13::FlowMod { table_id, priority, matching: wire, instructions, .. } = change;
            self.agent.tables.check(*table_id, *priority, wire, instructions)?;
            let mut reader = ActionReader { pipeline: &self.switch.pipeline, matching, packet_out: false };
            reader.instructions(&change.instructions, change.table_id)?
        };
        let written = v13::FlowMod::written(bytes);
        let flow = Flow {
            table: change.table_id,
            priority: change.priority,
            cookie: change.cookie,
            idle_timeout_s: change.idle_timeout,
            hard_timeout_s: change.hard_timeout,
            flags: change.flags.0,
            matching,
            actions,
            written: Written::new((Form::V13, written.0), (Form::V13, written.1)),
        };
        self.change_flows(FlowChange {
            command,
            table: (change.table_id != v13::table_number::ALL).then_some(change.table_id),
            flow,
            cookie: if command == Command::Add { (0, 0) } else { (change.cookie, change.cookie_mask) },
            out_port: (change.out_port != v13::port_number::ANY).then_some(change.out_port),
            out_group: (change.out_group != v13::group_number::ANY).then_some(change.out_group),
            check_overlap: change.flags.contains(FlowFlags::CHECK_OVERLAP),
            reset_counts: change.flags.contains(FlowFlags::RESET_COUNTS),
            modify_adds: false,
            buffer: change.buffer_id,
        })
    }

    /// Gives a connection a role (OpenFlow 1.3, 6.3.4); answers with the present generation.
    pub(super) fn change_role(
        &mut self,
        connection: &mut Connection,
        role: Role,
        generation: u64,
    ) -> Result<u64, ErrorKind> {
        if matches!(role, Role::Master | Role::Slave) {
            // "A generation_id that is smaller than a previously seen one ... as the distance between them, a
            // signed 64 bit number."
            let stale = self.agent.generation.is_some_and(|seen| (generation.wrapping_sub(seen) as i64) < 0);
            if stale {
                return Err(ErrorKind::RoleRequestFailed(RoleRequestFailed::Stale));
            }
            self.agent.generation = Some(generation);
        }
        self.take_role(connection, role);
        Ok(self.agent.generation.unwrap_or(u64::MAX))
    }

    fn take_role(&mut self, connection: &mut Connection, role: Role) {
        if role == Role::Master {
            self.agent.depose();
        }
        if role != Role::NoChange {
            connection.role = role;
        }
    }

    fn queue_config_v13(&self, port: u32) -> Result<Message, ErrorKind> {
        let known = port == v13::port_number::ANY || self.switch.datapath.ports.get(port).is_some();
        if !known {
            return Err(ErrorKind::QueueOpFailed(QueueOpFailed::BadPort));
        }
        let ports = self.switch.datapath.ports.iter().filter(|one| port == v13::port_number::ANY || one.number == port);
        let queues = ports.flat_map(|port| {
            let classes = self.queues_of(port.number);
            let number = port.number;
            classes.into_iter().map(move |queue| v13::PacketQueue {
                queue_id: queue.queue,
                port: number,
                properties: queue.properties_v13(),
            })
        });
        Ok(Message::QueueConfigReply(v13::QueueConfigReply { port, queues: queues.collect() }))
    }

    /// Nicira's messages, which both versions carry; `None`: nothing is answered.
    pub(super) fn obey_nicira(
        &mut self,
        connection: &mut Connection,
        message: nicira::Message,
        bytes: &[u8],
    ) -> Result<Option<nicira::Message>, ErrorKind> {
        match message {
            nicira::Message::RoleRequest(role) => {
                let wanted = match role {
                    nicira::Role::Other => Role::Equal,
                    nicira::Role::Master => Role::Master,
                    nicira::Role::Slave => Role::Slave,
                };
                self.take_role(connection, wanted);
                return Ok(Some(nicira::Message::RoleReply(role)));
            }
            nicira::Message::SetFlowFormat(format) => connection.extensible_flows = format == nicira::FlowFormat::Nxm,
            nicira::Message::SetPacketInFormat(format) => {
                connection.extensible_packet_ins = format == nicira::PacketInFormat::Nxm;
            }
            nicira::Message::FlowModTableId(on) => connection.table_in_command = on,
            nicira::Message::SetAsyncConfig(told) => {
                let nicira::AsyncConfig { packet_in, port_status, flow_removed } = told;
                connection.told = v13::AsyncConfig { packet_in, port_status, flow_removed };
            }
            nicira::Message::FlowMod(change) => self.flow_mod_nicira(connection, &change, bytes)?,
            nicira::Message::SetControllerId(number) => connection.controller = number,
            nicira::Message::FlowAge => {}
            _ => return Err(ErrorKind::BadRequest(BadRequest::BadExpType)),
        }
        Ok(None)
    }
}
