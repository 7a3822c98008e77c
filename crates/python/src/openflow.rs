//! OpenFlow 1.3 messages for controllers that are written in Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use twinnet_openflow::oxm::{Field, Match};
use twinnet_openflow::v10;
use twinnet_openflow::v13::multipart::{
    FlowStats, FlowStatsRequest, GroupStatsRequest, MeterRequest, PortStats, PortStatsRequest, QueueStats,
    QueueStatsRequest, TableStats,
};
use twinnet_openflow::v13::{
    group_number, meter_number, port_number, table_number, FlowFlags, FlowModCommand, FlowRemoved, FlowRemovedReason,
    FragmentHandling, Hello, Message, MeterBand, MeterEffect, MeterFlags, MeterMod, MeterModCommand, Multipart,
    PacketIn, PacketInReason, Port, PortConfig, PortReason, PortState, ReplyBody, RequestBody, SwitchConfig,
    ALL_QUEUES, VERSION, WHOLE_FRAME,
};
use twinnet_switch::control::text;

fn encoded<'py>(py: Python<'py>, xid: u32, message: &Message) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    message.encode(xid, &mut out).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &out))
}

/// The messages of OpenFlow 1.3 between a switch and its controller.
#[pyclass(frozen, module = "twinnet._core")]
pub struct OpenFlow13;

#[pymethods]
impl OpenFlow13 {
    #[classattr]
    const VERSION: u8 = VERSION;
    #[classattr]
    const NAME: &'static str = "1.3";

    #[new]
    fn new() -> Self {
        Self
    }

    /// A message that is the same for every switch, by its name.
    fn request<'py>(&self, py: Python<'py>, kind: &str, xid: u32) -> PyResult<Bound<'py, PyBytes>> {
        let ask = |body| Message::MultipartRequest(Multipart { more: false, body });
        let message = match kind {
            // The other version of these controllers is in `openflow_10.rs`.
            "hello" => Message::Hello(Hello::offering(&[v10::VERSION, VERSION])),
            "features" => Message::FeaturesRequest,
            "whole_frames" => {
                Message::SetConfig(SwitchConfig { fragments: FragmentHandling::Normal, miss_send_len: WHOLE_FRAME })
            }
            "barrier" => Message::BarrierRequest,
            "port_description" => ask(RequestBody::PortDescription),
            "flows" => ask(RequestBody::Flow(FlowStatsRequest {
                table_id: table_number::ALL,
                out_port: port_number::ANY,
                out_group: group_number::ANY,
                cookie: 0,
                cookie_mask: 0,
                matching: Match::default(),
            })),
            "tables" => ask(RequestBody::Table),
            "ports" => ask(RequestBody::PortStats(PortStatsRequest { port_no: port_number::ANY })),
            "queues" => ask(RequestBody::Queue(QueueStatsRequest { port_no: port_number::ANY, queue_id: ALL_QUEUES })),
            "groups" => ask(RequestBody::Group(GroupStatsRequest { group_id: group_number::ALL })),
            "meters" => ask(RequestBody::Meter(MeterRequest { meter_id: meter_number::ALL })),
            other => return Err(PyValueError::new_err(format!("there is no message {other:?}"))),
        };
        encoded(py, xid, &message)
    }

    /// The answer to an echo request.
    fn echo_reply<'py>(&self, py: Python<'py>, xid: u32, data: Vec<u8>) -> PyResult<Bound<'py, PyBytes>> {
        encoded(py, xid, &Message::EchoReply(data))
    }

    /// A flow-mod: `command` is `add`, `modify` or `delete`.
    fn flow<'py>(
        &self,
        py: Python<'py>,
        command: &str,
        line: &str,
        tell_when_removed: bool,
        buffer: u32,
        xid: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let flags = if tell_when_removed { FlowFlags::SEND_FLOW_REM } else { FlowFlags::default() };
        let message = match command {
            "add" => text::flow_mod(line, FlowModCommand::Add, flags, buffer),
            "modify" => text::flow_mod(line, FlowModCommand::Modify, flags, buffer),
            "delete" => text::deletion(line),
            other => return Err(PyValueError::new_err(format!("there is no command {other:?}"))),
        };
        let message = message.map_err(|error| PyValueError::new_err(error.to_string()))?;
        encoded(py, xid, &Message::FlowMod(message))
    }

    /// A meter-mod: `command` is `add`, `modify` or `delete`; the meter drops what exceeds `rate_kbps`
    /// after `burst_kbit`.
    fn meter<'py>(
        &self,
        py: Python<'py>,
        command: &str,
        meter: u32,
        rate_kbps: u32,
        burst_kbit: u32,
        xid: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let command = match command {
            "add" => MeterModCommand::Add,
            "modify" => MeterModCommand::Modify,
            "delete" => MeterModCommand::Delete,
            other => return Err(PyValueError::new_err(format!("there is no command {other:?}"))),
        };
        let flags = MeterFlags::KBPS | MeterFlags::BURST | MeterFlags::STATS;
        let band = MeterBand { rate: rate_kbps, burst_size: burst_kbit, effect: MeterEffect::Drop };
        let bands = if command == MeterModCommand::Delete { Vec::new() } else { vec![band] };
        encoded(py, xid, &Message::MeterMod(MeterMod { command, flags, meter_id: meter, bands }))
    }

    /// A packet-out with actions in the syntax of `ovs-ofctl`.
    fn packet_out<'py>(
        &self,
        py: Python<'py>,
        in_port: u32,
        actions: &str,
        data: Vec<u8>,
        buffer: u32,
        xid: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let message = text::packet_out(in_port, actions, buffer, data);
        let message = message.map_err(|error| PyValueError::new_err(error.to_string()))?;
        encoded(py, xid, &Message::PacketOut(message))
    }

    /// Reads one whole message: its name, its transaction, and what it says.
    fn decode<'py>(&self, py: Python<'py>, message: &[u8]) -> PyResult<(&'static str, u32, Bound<'py, PyDict>)> {
        let (header, message) =
            Message::decode(message).map_err(|error| PyValueError::new_err(format!("not OpenFlow 1.3: {error}")))?;
        let said = PyDict::new(py);
        let name = tell(py, &message, &said)?;
        Ok((name, header.xid, said))
    }
}

fn tell(py: Python<'_>, message: &Message, said: &Bound<'_, PyDict>) -> PyResult<&'static str> {
    Ok(match message {
        Message::Hello(_) => "hello",
        Message::EchoRequest(data) => {
            said.set_item("data", PyBytes::new(py, data))?;
            "echo_request"
        }
        Message::EchoReply(_) => "echo_reply",
        Message::BarrierReply => "barrier_reply",
        Message::Error(error) => {
            let fault = error.kind.fault();
            said.set_item("type", fault.error_type)?;
            said.set_item("code", fault.code)?;
            said.set_item("text", format!("{:?}", error.kind))?;
            "error"
        }
        Message::FeaturesReply(features) => {
            said.set_item("dpid", features.datapath_id)?;
            said.set_item("tables", features.n_tables)?;
            "features"
        }
        Message::PacketIn(packet) => {
            tell_packet_in(py, packet, said)?;
            "packet_in"
        }
        Message::FlowRemoved(removed) => {
            tell_flow_removed(removed, said)?;
            "flow_removed"
        }
        Message::PortStatus(status) => {
            let reason = match status.reason {
                PortReason::Add => "add",
                PortReason::Delete => "delete",
                _ => "modify",
            };
            said.set_item("reason", reason)?;
            said.set_item("port", port_row(py, &status.port)?)?;
            "port_status"
        }
        Message::MultipartReply(reply) => {
            said.set_item("more", reply.more)?;
            return tell_statistics(py, &reply.body, said);
        }
        _ => "other",
    })
}

fn tell_packet_in(py: Python<'_>, packet: &PacketIn, said: &Bound<'_, PyDict>) -> PyResult<()> {
    let port = packet.matching.get(Field::InPort).and_then(|found| u32::try_from(found.value).ok());
    said.set_item("in_port", port.unwrap_or(0))?;
    said.set_item("buffer", packet.buffer_id)?;
    said.set_item("length", packet.total_len)?;
    said.set_item("table", packet.table_id)?;
    said.set_item("cookie", packet.cookie)?;
    let reason = match packet.reason {
        PacketInReason::NoMatch => "no_match",
        PacketInReason::Action => "action",
        _ => "invalid_ttl",
    };
    said.set_item("reason", reason)?;
    said.set_item("data", PyBytes::new(py, &packet.data))
}

fn tell_flow_removed(removed: &FlowRemoved, said: &Bound<'_, PyDict>) -> PyResult<()> {
    let reason = match removed.reason {
        FlowRemovedReason::IdleTimeout => "idle_timeout",
        FlowRemovedReason::HardTimeout => "hard_timeout",
        FlowRemovedReason::Delete => "delete",
        _ => "group_delete",
    };
    said.set_item("reason", reason)?;
    said.set_item("table", removed.table_id)?;
    said.set_item("priority", removed.priority)?;
    said.set_item("cookie", removed.cookie)?;
    said.set_item("match", removed.matching.value().and_then(text::match_text))?;
    said.set_item("frames", removed.packet_count)?;
    said.set_item("bytes", removed.byte_count)?;
    said.set_item("lived_s", seconds(removed.duration_sec, removed.duration_nsec))
}

fn tell_statistics(py: Python<'_>, body: &ReplyBody, said: &Bound<'_, PyDict>) -> PyResult<&'static str> {
    let rows = PyList::empty(py);
    let name = match body {
        ReplyBody::PortDescription(ports) => {
            ports.iter().try_for_each(|port| rows.append(port_row(py, port)?))?;
            "port_description"
        }
        ReplyBody::Flow(flows) => {
            flows.iter().try_for_each(|flow| rows.append(flow_row(py, flow)?))?;
            "flows"
        }
        ReplyBody::Table(tables) => {
            tables.iter().try_for_each(|table| rows.append(table_row(py, table)?))?;
            "tables"
        }
        ReplyBody::PortStats(ports) => {
            ports.iter().try_for_each(|port| rows.append(port_statistics_row(py, port)?))?;
            "ports"
        }
        ReplyBody::Queue(queues) => {
            queues.iter().try_for_each(|queue| rows.append(queue_row(py, queue)?))?;
            "queues"
        }
        ReplyBody::Group(groups) => {
            for group in groups {
                let counts = (group.packet_count, group.byte_count, seconds(group.duration_sec, group.duration_nsec));
                rows.append(counted_row(py, "group", group.group_id, counts)?)?;
            }
            "groups"
        }
        ReplyBody::Meter(meters) => {
            for meter in meters {
                let lived = seconds(meter.duration_sec, meter.duration_nsec);
                let counts = (meter.packet_in_count, meter.byte_in_count, lived);
                rows.append(counted_row(py, "meter", meter.meter_id, counts)?)?;
            }
            "meters"
        }
        _ => "other",
    };
    said.set_item("rows", rows)?;
    Ok(name)
}

pub(super) fn seconds(whole: u32, nanoseconds: u32) -> f64 {
    f64::from(whole) + f64::from(nanoseconds) / 1e9
}

pub(super) fn address_text(address: &[u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

fn port_row<'py>(py: Python<'py>, port: &Port) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("number", port.port_no)?;
    row.set_item("name", port.name.as_text())?;
    row.set_item("mac", address_text(&port.hw_addr))?;
    let down = port.state.0 & PortState::LINK_DOWN.0 != 0 || port.config.0 & PortConfig::PORT_DOWN.0 != 0;
    row.set_item("up", !down)?;
    row.set_item("rate_bps", u64::from(port.current_kbps) * 1000)?;
    Ok(row)
}

fn flow_row<'py>(py: Python<'py>, flow: &FlowStats) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("table", flow.table_id)?;
    row.set_item("priority", flow.priority)?;
    row.set_item("cookie", flow.cookie)?;
    row.set_item("match", flow.matching.value().and_then(text::match_text))?;
    row.set_item("frames", flow.packet_count)?;
    row.set_item("bytes", flow.byte_count)?;
    row.set_item("lived_s", seconds(flow.duration_sec, flow.duration_nsec))?;
    Ok(row)
}

fn table_row<'py>(py: Python<'py>, table: &TableStats) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("table", table.table_id)?;
    row.set_item("flows", table.active_count)?;
    row.set_item("lookups", table.lookup_count)?;
    row.set_item("matches", table.matched_count)?;
    Ok(row)
}

fn port_statistics_row<'py>(py: Python<'py>, port: &PortStats) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("port", port.port_no)?;
    row.set_item("received_frames", port.rx_packets)?;
    row.set_item("received_bytes", port.rx_bytes)?;
    row.set_item("sent_frames", port.tx_packets)?;
    row.set_item("sent_bytes", port.tx_bytes)?;
    row.set_item("dropped_frames", port.tx_dropped)?;
    row.set_item("lived_s", seconds(port.duration_sec, port.duration_nsec))?;
    Ok(row)
}

fn queue_row<'py>(py: Python<'py>, queue: &QueueStats) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("port", queue.port_no)?;
    row.set_item("queue", queue.queue_id)?;
    row.set_item("sent_frames", queue.tx_packets)?;
    row.set_item("sent_bytes", queue.tx_bytes)?;
    row.set_item("dropped_frames", queue.tx_errors)?;
    Ok(row)
}

fn counted_row<'py>(
    py: Python<'py>,
    key: &str,
    number: u32,
    (frames, bytes, lived_s): (u64, u64, f64),
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item(key, number)?;
    row.set_item("frames", frames)?;
    row.set_item("bytes", bytes)?;
    row.set_item("lived_s", lived_s)?;
    Ok(row)
}
