//! Messages of OpenFlow 1.0: what each does to the switch, and what it is answered.

use twinnet_openflow::v10::{
    self, Capabilities, FlowFlags, FlowModCommand, FragmentHandling, Message, QueueConfigReply,
};
use twinnet_openflow::v13::{self, BadRequest, ErrorKind, FlowModFailed, QueueOpFailed, Role};
use twinnet_openflow::{nicira, Header};

use super::super::action::Action;
use super::super::flow::Flow;
use super::super::matching::Match;
use super::super::written::{Form, Written};
use super::actions::ActionReader;
use super::buffers::BUFFERS;
use super::changes::{Command, FlowChange};
use super::connection::Connection;
use super::fields::{read_filter_v10, read_match, read_match_v10};
use super::numbers::from_narrow;
use super::roles::{self, xid_of};
use super::statistics::port_v10;
use super::{Context, TABLES};

/// Bits of the actions by their types: all twelve.
const EVERY_ACTION: u32 = 0xfff;

const fn command(wire: FlowModCommand) -> Command {
    match wire {
        FlowModCommand::Add => Command::Add,
        FlowModCommand::Modify => Command::Modify { strict: false },
        FlowModCommand::ModifyStrict => Command::Modify { strict: true },
        FlowModCommand::Delete => Command::Delete { strict: false },
        FlowModCommand::DeleteStrict => Command::Delete { strict: true },
    }
}

/// The part that the flow-mods of 1.0 and of Nicira have in common.
struct NarrowFlowMod<'a> {
    matching: Match,
    cookie: u64,
    table: u8,
    command: FlowModCommand,
    idle_timeout: u16,
    hard_timeout: u16,
    priority: u16,
    buffer: u32,
    out_port: u16,
    flags: FlowFlags,
    actions: &'a [v10::Action],
    written: Written,
}

impl Context<'_> {
    pub(super) fn handle_v10(mut self, connection: &mut Connection, bytes: &[u8]) {
        if connection.role == Role::Slave && roles::is_denied_to_slaves(v10::VERSION, bytes) {
            return connection.refuse(xid_of(bytes), ErrorKind::BadRequest(BadRequest::Eperm), bytes);
        }
        match Message::decode(bytes) {
            Err(error) => {
                // These numbers are of 1.0 already.
                connection.errors += 1;
                let refusal = v10::Error::refusing(&error, bytes);
                connection.send_v10(error.xid, &Message::Error(refusal));
            }
            Ok((header, message)) => {
                if let Err(kind) = self.obey_v10(connection, header, message, bytes) {
                    connection.refuse(header.xid, kind, bytes);
                }
            }
        }
    }

    fn obey_v10(
        &mut self,
        connection: &mut Connection,
        header: Header,
        message: Message,
        bytes: &[u8],
    ) -> Result<(), ErrorKind> {
        let reply = match message {
            Message::EchoRequest(data) => Message::EchoReply(data),
            Message::FeaturesRequest => self.features_v10(),
            Message::GetConfigRequest => {
                let settings = &self.switch.pipeline.settings;
                let fragments = if settings.drop_fragments { FragmentHandling::Drop } else { FragmentHandling::Normal };
                Message::GetConfigReply(v10::SwitchConfig { fragments, miss_send_len: settings.miss_send_len })
            }
            Message::SetConfig(config) => {
                // The version has no error for what cannot be: frames are left as they are then.
                let fragments = match config.fragments {
                    FragmentHandling::Drop => v13::FragmentHandling::Drop,
                    _ => v13::FragmentHandling::Normal,
                };
                return self.configure(connection, fragments, config.miss_send_len);
            }
            Message::PacketOut(packet) => {
                let v10::PacketOut { buffer_id, in_port, actions, data } = packet;
                return self.send_out(buffer_id, from_narrow(in_port), data, |reader| reader.list_v10(&actions));
            }
            Message::FlowMod(change) => {
                let table = if connection.table_in_command { change.table_id } else { 0 };
                if !connection.table_in_command && change.table_id != 0 {
                    return Err(ErrorKind::FlowModFailed(FlowModFailed::BadCommand));
                }
                // What is deleted are flows of whatever version, unless one is named exactly.
                let is_filter = matches!(change.command, FlowModCommand::Delete);
                let matching =
                    if is_filter { read_filter_v10(&change.matching) } else { read_match_v10(&change.matching) };
                // "An exact-match entry always has the highest priority": one without any wildcard (1.0, 3.4).
                let exact = change.matching.wildcards.0 & v10::Wildcards::ALL.0 == 0;
                let written = v10::FlowMod::written(bytes);
                let written = Written::new((Form::V10, written.0), (Form::V10, written.1));
                return self.flow_mod_v10(
                    connection,
                    NarrowFlowMod {
                        matching,
                        cookie: change.cookie,
                        table,
                        command: change.command,
                        idle_timeout: change.idle_timeout,
                        hard_timeout: change.hard_timeout,
                        priority: if exact { u16::MAX } else { change.priority },
                        written,
                        buffer: change.buffer_id,
                        out_port: change.out_port,
                        flags: change.flags,
                        actions: &change.actions,
                    },
                );
            }
            Message::PortMod(change) => {
                let number = from_narrow(change.port_no);
                return self.change_port(number, change.hw_addr, change.config.0, change.mask.0);
            }
            Message::StatsRequest(request) => return self.statistics_v10(connection, header.xid, request.body),
            // Everything before it has taken effect.
            Message::BarrierRequest => Message::BarrierReply,
            Message::QueueConfigRequest(request) => {
                let port = from_narrow(request.port);
                if self.switch.datapath.ports.get(port).is_none() {
                    return Err(ErrorKind::QueueOpFailed(QueueOpFailed::BadPort));
                }
                let queues = self.queues_of(port).into_iter();
                let queues =
                    queues.map(|queue| v10::PacketQueue { queue_id: queue.queue, properties: queue.properties_v10() });
                Message::QueueConfigReply(QueueConfigReply { port: request.port, queues: queues.collect() })
            }
            Message::Vendor(message) if message.vendor == nicira::NICIRA => {
                let decoded = nicira::Message::decode(&message.data);
                let decoded = decoded.map_err(|refusal| ErrorKind::from(refusal.fault))?;
                if let Some(answer) = self.obey_nicira(connection, decoded, bytes)? {
                    connection.send_v10(header.xid, &Message::Vendor(answer.to_vendor()));
                }
                return Ok(());
            }
            Message::Vendor(_) => return Err(ErrorKind::BadRequest(BadRequest::BadExperimenter)),
            Message::Hello(_) | Message::EchoReply(_) | Message::Error(_) => return Ok(()),
            // A switch's own messages.
            _ => return Err(ErrorKind::BadRequest(BadRequest::BadType)),
        };
        connection.send_v10(header.xid, &reply);
        Ok(())
    }

    /// What is said of each port.
    pub(super) fn ports_v10(&self) -> Vec<v10::Port> {
        let ports = self.switch.datapath.ports.iter();
        ports.map(|port| port_v10(port, self.lines.facts(port.number).as_ref())).collect()
    }

    fn features_v10(&self) -> Message {
        Message::FeaturesReply(v10::FeaturesReply {
            datapath_id: self.switch.config.dpid,
            n_buffers: BUFFERS,
            n_tables: TABLES,
            capabilities: Capabilities::FLOW_STATS
                | Capabilities::TABLE_STATS
                | Capabilities::PORT_STATS
                | Capabilities::QUEUE_STATS
                | Capabilities::ARP_MATCH_IP,
            actions: EVERY_ACTION,
            ports: self.ports_v10(),
        })
    }

    fn flow_mod_v10(&mut self, connection: &Connection, change: NarrowFlowMod<'_>) -> Result<(), ErrorKind> {
        // Emergency flows are an option that this switch has not: all tables for them are full.
        if change.flags.contains(FlowFlags::EMERG) {
            let timeouts = change.idle_timeout != 0 || change.hard_timeout != 0;
            let code = if timeouts { FlowModFailed::BadTimeout } else { FlowModFailed::TableFull };
            return Err(ErrorKind::FlowModFailed(code));
        }
        let command = command(change.command);
        let deletes = matches!(command, Command::Delete { .. });
        let actions: Vec<Action> = if deletes {
            Vec::new()
        } else {
            let matching = change.matching;
            ActionReader { pipeline: &self.switch.pipeline, matching, packet_out: false }.list_v10(change.actions)?
        };
        let every = deletes && (change.table == v13::table_number::ALL || !connection.table_in_command);
        let told = if change.flags.contains(FlowFlags::SEND_FLOW_REM) { v13::FlowFlags::SEND_FLOW_REM.0 } else { 0 };
        let table = if change.table == v13::table_number::ALL { 0 } else { change.table };
        let strict = matches!(command, Command::Delete { strict: true });
        self.change_flows(FlowChange {
            command,
            table: if every && !strict { None } else { Some(table) },
            flow: Flow {
                table,
                priority: change.priority,
                cookie: change.cookie,
                idle_timeout_s: change.idle_timeout,
                hard_timeout_s: change.hard_timeout,
                flags: told,
                matching: change.matching,
                actions,
                written: change.written,
            },
            cookie: (0, 0),
            out_port: (change.out_port != v10::port_number::NONE).then_some(from_narrow(change.out_port)),
            out_group: None,
            check_overlap: change.flags.contains(FlowFlags::CHECK_OVERLAP),
            reset_counts: command == Command::Add,
            modify_adds: true,
            buffer: change.buffer,
        })
    }

    pub(super) fn flow_mod_nicira(
        &mut self,
        connection: &Connection,
        change: &nicira::FlowMod,
        bytes: &[u8],
    ) -> Result<(), ErrorKind> {
        let written = nicira::FlowMod::written(bytes);
        self.flow_mod_v10(
            connection,
            NarrowFlowMod {
                matching: read_match(&change.matching)?,
                cookie: change.cookie,
                table: if connection.table_in_command { change.table_id } else { 0 },
                command: change.command,
                idle_timeout: change.idle_timeout,
                hard_timeout: change.hard_timeout,
                priority: change.priority,
                buffer: change.buffer_id,
                out_port: change.out_port,
                flags: change.flags,
                actions: &change.actions,
                written: Written::new((Form::Nicira, written.0), (Form::V10, written.1)),
            },
        )
    }
}
