//! Answers to questions about the state of the switch, in OpenFlow 1.0, and in Nicira's form of its flows.

use twinnet_openflow::v10::{
    self, statistics::FlowStats, statistics::FlowStatsRequest, statistics::PortStats, statistics::QueueStats,
    statistics::TableStats, statistics::VendorStats, Message, ReplyBody, RequestBody, Statistics, Wildcards,
};
use twinnet_openflow::v13::{self, BadRequest, ErrorKind, QueueOpFailed};
use twinnet_openflow::{nicira, Text};

use super::super::event::{lived, seconds_and_nanoseconds};
use super::super::parse::Selection;
use super::super::pipeline::Entry;
use super::super::written::Form;
use super::actions::write_list_v10;
use super::connection::Connection;
use super::fields::{read_filter_v10, read_match, write_match, write_match_v10};
use super::numbers::{from_narrow, to_narrow};
use super::statistics::{aggregate, described, send_in_parts};
use super::table_features::TABLE_FLOWS;
use super::Context;

fn send_list<T: Clone>(connection: &mut Connection, xid: u32, items: Vec<T>, body: impl Fn(Vec<T>) -> ReplyBody) {
    let mut send = |items: &[T], more: bool| {
        let message = Message::StatsReply(Statistics { more, body: body(items.to_vec()) });
        connection.send_v10(xid, &message)
    };
    send_in_parts(items, false, &mut send);
}

fn selection(table: u8, out_port: u16, matching: super::super::matching::Match) -> Selection {
    Selection {
        table: (table != v13::table_number::ALL).then_some(table),
        out_port: (out_port != v10::port_number::NONE).then_some(from_narrow(out_port)),
        matching,
        ..Selection::default()
    }
}

impl Context<'_> {
    pub(super) fn statistics_v10(
        &mut self,
        connection: &mut Connection,
        xid: u32,
        request: RequestBody,
    ) -> Result<(), ErrorKind> {
        let asked = |request: &FlowStatsRequest| {
            selection(request.table_id, request.out_port, read_filter_v10(&request.matching))
        };
        let single = match request {
            RequestBody::Description => ReplyBody::Description(Box::new(described(self.switch.config.dpid))),
            RequestBody::Flow(request) => {
                let entries = self.entries(&asked(&request));
                let rows = entries.into_iter().map(|entry| self.flow_stats_v10(entry)).collect();
                send_list(connection, xid, rows, ReplyBody::Flow);
                return Ok(());
            }
            RequestBody::Aggregate(request) => ReplyBody::Aggregate(aggregate(&self.entries(&asked(&request)))),
            RequestBody::Table => {
                send_list(connection, xid, self.table_stats_v10(), ReplyBody::Table);
                return Ok(());
            }
            RequestBody::Port(request) => {
                let any = from_narrow(v10::port_number::NONE);
                // No error is named for a port that is not there: as with Open vSwitch, the list is empty.
                let ports = self.ports(from_narrow(request.port_no), any).unwrap_or_default();
                let rows = ports.into_iter().map(|port| self.port_stats_v10(port)).collect();
                send_list(connection, xid, rows, ReplyBody::Port);
                return Ok(());
            }
            RequestBody::Queue(request) => {
                let bad = |code| ErrorKind::QueueOpFailed(code);
                let any = from_narrow(v10::port_number::ALL);
                let ports = self.ports(from_narrow(request.port_no), any).map_err(|_| bad(QueueOpFailed::BadPort))?;
                let mut rows = Vec::new();
                for port in ports {
                    let queues = self.queues_of(port).into_iter();
                    let wanted =
                        queues.filter(|one| request.queue_id == v13::ALL_QUEUES || one.queue == request.queue_id);
                    rows.extend(wanted.map(|one| QueueStats {
                        port_no: to_narrow(port),
                        queue_id: one.queue,
                        tx_bytes: one.bytes,
                        tx_packets: one.frames,
                        tx_errors: one.drops,
                    }));
                }
                if rows.is_empty() && request.queue_id != v13::ALL_QUEUES {
                    return Err(bad(QueueOpFailed::BadQueue));
                }
                send_list(connection, xid, rows, ReplyBody::Queue);
                return Ok(());
            }
            RequestBody::PortDescription => {
                send_list(connection, xid, self.ports_v10(), ReplyBody::PortDescription);
                return Ok(());
            }
            RequestBody::Vendor(request) if request.vendor == nicira::NICIRA => {
                return self.statistics_nicira(connection, xid, &request.data);
            }
            RequestBody::Vendor(_) => return Err(ErrorKind::BadRequest(BadRequest::BadExperimenter)),
        };
        connection.send_v10(xid, &Message::StatsReply(Statistics { more: false, body: single }));
        Ok(())
    }

    fn flow_stats_v10(&self, entry: &Entry) -> FlowStats {
        let (duration_sec, duration_nsec) = seconds_and_nanoseconds(lived(entry.added, self.now));
        let flow = &entry.flow;
        FlowStats {
            table_id: flow.table,
            matching: flow.written.matching_in(Form::V10, || write_match_v10(&flow.matching)),
            duration_sec,
            duration_nsec,
            priority: flow.priority,
            idle_timeout: flow.idle_timeout_s,
            hard_timeout: flow.hard_timeout_s,
            cookie: flow.cookie,
            packet_count: entry.frames,
            byte_count: entry.bytes,
            actions: flow.written.actions_in(Form::V10, || write_list_v10(&flow.actions, &flow.matching)),
        }
    }

    fn table_stats_v10(&self) -> Vec<TableStats> {
        (0..super::TABLES)
            .map(|table| {
                let (active_count, lookup_count, matched_count) = self.table_counts(table);
                TableStats {
                    table_id: table,
                    name: Text::default(),
                    wildcards: Wildcards::ALL,
                    max_entries: TABLE_FLOWS,
                    active_count,
                    lookup_count,
                    matched_count,
                }
            })
            .collect()
    }

    fn port_stats_v10(&self, port: u32) -> PortStats {
        let row = self.port_stats(port);
        PortStats {
            port_no: to_narrow(port),
            rx_packets: row.rx_packets,
            tx_packets: row.tx_packets,
            rx_bytes: row.rx_bytes,
            tx_bytes: row.tx_bytes,
            rx_dropped: row.rx_dropped,
            tx_dropped: row.tx_dropped,
            rx_errors: 0,
            tx_errors: 0,
            rx_frame_errors: 0,
            rx_over_errors: 0,
            rx_crc_errors: 0,
            collisions: 0,
        }
    }

    fn statistics_nicira(&mut self, connection: &mut Connection, xid: u32, data: &[u8]) -> Result<(), ErrorKind> {
        let request = nicira::StatsRequest::decode(data).map_err(|refusal| ErrorKind::from(refusal.fault))?;
        let vendor = |reply: &nicira::StatsReply| {
            ReplyBody::Vendor(VendorStats { vendor: nicira::NICIRA, data: reply.encode() })
        };
        let meant = |request: &nicira::FlowStatsRequest| {
            Ok::<_, ErrorKind>(selection(request.table_id, request.out_port, read_match(&request.matching)?))
        };
        match request {
            nicira::StatsRequest::Flow(request) => {
                let entries = self.entries(&meant(&request)?);
                let rows: Vec<_> = entries.into_iter().map(|entry| self.flow_stats_nicira(entry)).collect();
                send_list(connection, xid, rows, |rows| vendor(&nicira::StatsReply::Flow(rows)));
            }
            nicira::StatsRequest::Aggregate(request) => {
                let sums = aggregate(&self.entries(&meant(&request)?));
                let body = vendor(&nicira::StatsReply::Aggregate(sums));
                connection.send_v10(xid, &Message::StatsReply(Statistics { more: false, body }));
            }
        }
        Ok(())
    }

    fn flow_stats_nicira(&self, entry: &Entry) -> nicira::FlowStats {
        let (duration_sec, duration_nsec) = seconds_and_nanoseconds(lived(entry.added, self.now));
        let flow = &entry.flow;
        nicira::FlowStats {
            table_id: flow.table,
            duration_sec,
            duration_nsec,
            priority: flow.priority,
            idle_timeout: flow.idle_timeout_s,
            hard_timeout: flow.hard_timeout_s,
            idle_age: 0,
            hard_age: 0,
            cookie: flow.cookie,
            packet_count: entry.frames,
            byte_count: entry.bytes,
            matching: flow.written.matching_in(Form::Nicira, || write_match(&flow.matching)),
            actions: flow.written.actions_in(Form::V10, || write_list_v10(&flow.actions, &flow.matching)),
        }
    }
}
