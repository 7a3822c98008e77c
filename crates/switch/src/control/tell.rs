//! Messages that controllers get unasked: frames, flows that ended, ports that changed.

use twinnet_openflow::oxm::{Field as Oxm, FieldMatch, Match as OxmMatch};
use twinnet_openflow::v13::{self, FlowRemovedReason, PacketInReason, PortReason};
use twinnet_openflow::{nicira, v10, NO_BUFFER};

use super::super::event::{
    seconds_and_nanoseconds, FlowRemovedEvent, PacketInEvent, PacketInReason as Reason, RemovalReason, SwitchEvent,
};
use super::super::port::Port;
use super::super::written::Form;
use super::fields::{write_match, write_match_v10};
use super::numbers::to_narrow;
use super::statistics::{port_v10, port_v13};
use super::{Agent, CROWDED_BYTES};

impl Agent {
    pub(super) fn tell_event(&mut self, event: &SwitchEvent) {
        match event {
            SwitchEvent::PacketIn(packet) => self.tell_packet_in(packet),
            SwitchEvent::FlowRemoved(removed) => self.tell_flow_removed(removed),
            SwitchEvent::Port(reason, port) => self.tell_port(*reason, port),
        }
    }

    fn tell_packet_in(&mut self, packet: &PacketInEvent) {
        let reason = match packet.reason {
            Reason::NoMatch => PacketInReason::NoMatch,
            Reason::Action => PacketInReason::Action,
            Reason::InvalidTtl => PacketInReason::InvalidTtl,
        };
        let mut buffer = None;
        let Self { connections, buffers, .. } = self;
        for connection in connections.values_mut() {
            let wanted = connection.mask_of(&connection.told.packet_in) >> reason.number() & 1 == 1;
            let crowded = connection.out.len() + connection.backlog > CROWDED_BYTES;
            // Only OpenFlow 1.0 has frames sent that no flow matches.
            let for_it = connection.version == v10::VERSION || (connection.version != 0 && !packet.missed);
            let for_it = for_it && connection.controller == packet.controller;
            if !wanted || crowded || !for_it {
                continue;
            }
            let limit = usize::from(packet.max_len);
            let cut = packet.max_len != v13::WHOLE_FRAME && packet.bytes.len() > limit;
            let (buffer_id, data) = if cut {
                let number = *buffer.get_or_insert_with(|| buffers.keep(packet.in_port, &packet.bytes));
                (number, packet.bytes[..limit].to_vec())
            } else {
                (NO_BUFFER, packet.bytes.clone())
            };
            let total_len = u16::try_from(packet.bytes.len()).unwrap_or(u16::MAX);
            let matching = pipeline_fields(packet);
            connection.packet_ins += 1;
            let xid = 0;
            if connection.version == v13::VERSION {
                let (table_id, cookie) = (packet.table, packet.cookie);
                let message = v13::PacketIn { buffer_id, total_len, reason, table_id, cookie, matching, data };
                connection.send_v13(xid, &v13::Message::PacketIn(message));
            } else if connection.extensible_packet_ins {
                let (table_id, cookie) = (packet.table, packet.cookie);
                let message = nicira::PacketIn { buffer_id, total_len, reason, table_id, cookie, matching, data };
                let vendor = nicira::Message::PacketIn(message).to_vendor();
                connection.send_v10(xid, &v10::Message::Vendor(vendor));
            } else {
                let reason = match packet.reason {
                    Reason::NoMatch => v10::PacketInReason::NoMatch,
                    Reason::Action | Reason::InvalidTtl => v10::PacketInReason::Action,
                };
                let in_port = to_narrow(packet.in_port);
                let message = v10::PacketIn { buffer_id, total_len, in_port, reason, data };
                connection.send_v10(xid, &v10::Message::PacketIn(message));
            }
        }
    }

    fn tell_flow_removed(&mut self, removed: &FlowRemovedEvent) {
        let reason = match removed.reason {
            RemovalReason::Idle => FlowRemovedReason::IdleTimeout,
            RemovalReason::Hard => FlowRemovedReason::HardTimeout,
            RemovalReason::Delete => FlowRemovedReason::Delete,
            RemovalReason::GroupDelete => FlowRemovedReason::GroupDelete,
        };
        let (duration_sec, duration_nsec) = seconds_and_nanoseconds(removed.lived);
        let flow = &removed.flow;
        for connection in self.connections.values_mut() {
            if connection.version == 0 || connection.mask_of(&connection.told.flow_removed) >> reason.number() & 1 == 0
            {
                continue;
            }
            if connection.version == v13::VERSION {
                let message = v13::FlowRemoved {
                    cookie: flow.cookie,
                    priority: flow.priority,
                    reason,
                    table_id: flow.table,
                    duration_sec,
                    duration_nsec,
                    idle_timeout: flow.idle_timeout_s,
                    hard_timeout: flow.hard_timeout_s,
                    packet_count: removed.frames,
                    byte_count: removed.bytes,
                    matching: flow.written.matching_in(Form::V13, || write_match(&flow.matching)),
                };
                connection.send_v13(0, &v13::Message::FlowRemoved(message));
            } else {
                let message = v10::FlowRemoved {
                    matching: flow.written.matching_in(Form::V10, || write_match_v10(&flow.matching)),
                    cookie: flow.cookie,
                    priority: flow.priority,
                    reason: v10::FlowRemovedReason::from_number(reason.number().min(2)),
                    duration_sec,
                    duration_nsec,
                    idle_timeout: flow.idle_timeout_s,
                    packet_count: removed.frames,
                    byte_count: removed.bytes,
                };
                connection.send_v10(0, &v10::Message::FlowRemoved(message));
            }
        }
    }

    fn tell_port(&mut self, reason: PortReason, port: &Port) {
        for connection in self.connections.values_mut() {
            if connection.version == 0 || connection.mask_of(&connection.told.port_status) >> reason.number() & 1 == 0 {
                continue;
            }
            if connection.version == v13::VERSION {
                let message = v13::PortStatus { reason, port: port_v13(port, None) };
                connection.send_v13(0, &v13::Message::PortStatus(message));
            } else {
                let message = v10::PortStatus {
                    reason: v10::PortReason::from_number(reason.number()),
                    port: port_v10(port, None),
                };
                connection.send_v10(0, &v10::Message::PortStatus(message));
            }
        }
    }
}

fn pipeline_fields(packet: &PacketInEvent) -> OxmMatch {
    let mut fields = vec![FieldMatch::exact(Oxm::InPort, u128::from(packet.in_port))];
    if packet.metadata != 0 {
        fields.push(FieldMatch::exact(Oxm::Metadata, u128::from(packet.metadata)));
    }
    if packet.tunnel != 0 {
        fields.push(FieldMatch::exact(Oxm::TunnelId, u128::from(packet.tunnel)));
    }
    OxmMatch::new(fields)
}
