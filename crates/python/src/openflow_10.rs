//! OpenFlow 1.0 messages for controllers that are written in Python: the same words as those of 1.3.

use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use twinnet_openflow::v10;
use twinnet_openflow::v10::statistics::{
    FlowStats, FlowStatsRequest, PortStats, PortStatsRequest, QueueStats, QueueStatsRequest, TableStats,
};
use twinnet_openflow::v10::{
    port_number, FlowFlags, FlowModCommand, FlowRemoved, FlowRemovedReason, FragmentHandling, Match, Message,
    PacketInReason, Port, PortConfig, PortFeatures, PortReason, PortState, ReplyBody, RequestBody, Statistics,
    SwitchConfig,
};
use twinnet_openflow::v13::{table_number, ALL_QUEUES, WHOLE_FRAME};
use twinnet_switch::control::from_narrow;
use twinnet_switch::control::text_v10::{self, FlowWriter, V10TextError};

use super::openflow::{address_text, seconds};

/// The messages of OpenFlow 1.0 between a switch and its controller. It knows which flows were written: make one for
/// each connection.
#[pyclass(module = "twinnet._core")]
pub struct OpenFlow10 {
    flows: FlowWriter,
}

#[pymethods]
impl OpenFlow10 {
    #[classattr]
    const VERSION: u8 = v10::VERSION;
    #[classattr]
    const NAME: &'static str = "1.0";

    #[new]
    fn new() -> Self {
        Self { flows: FlowWriter::default() }
    }

    /// A message that is the same for every switch, by its name.
    #[allow(clippy::unused_self)]
    fn request<'py>(&self, py: Python<'py>, kind: &str, xid: u32) -> PyResult<Bound<'py, PyBytes>> {
        let ask = |body| Message::StatsRequest(Statistics { more: false, body });
        let message = match kind {
            "features" => Message::FeaturesRequest,
            "whole_frames" => {
                Message::SetConfig(SwitchConfig { fragments: FragmentHandling::Normal, miss_send_len: WHOLE_FRAME })
            }
            "barrier" => Message::BarrierRequest,
            "flows" => ask(RequestBody::Flow(FlowStatsRequest {
                matching: Match::any(),
                table_id: table_number::ALL,
                out_port: port_number::NONE,
            })),
            "tables" => ask(RequestBody::Table),
            "ports" => ask(RequestBody::Port(PortStatsRequest { port_no: port_number::NONE })),
            "queues" => ask(RequestBody::Queue(QueueStatsRequest { port_no: port_number::ALL, queue_id: ALL_QUEUES })),
            "groups" | "meters" => return Err(lacks(kind)),
            other => return Err(PyValueError::new_err(format!("there is no message {other:?}"))),
        };
        encoded(py, xid, &[message])
    }

    /// The answer to an echo request.
    #[allow(clippy::unused_self)]
    fn echo_reply<'py>(&self, py: Python<'py>, xid: u32, data: Vec<u8>) -> PyResult<Bound<'py, PyBytes>> {
        encoded(py, xid, &[Message::EchoReply(data)])
    }

    /// A flow-mod, or several: `command` is `add`, `modify` or `delete`.
    fn flow<'py>(
        &mut self,
        py: Python<'py>,
        command: &str,
        line: &str,
        tell_when_removed: bool,
        buffer: u32,
        xid: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let flags = if tell_when_removed { FlowFlags::SEND_FLOW_REM } else { FlowFlags::default() };
        let mut changed = |command| self.flows.flow_mod(line, command, flags, buffer).map(|change| vec![change]);
        let changes = match command {
            "add" => changed(FlowModCommand::Add),
            "modify" => changed(FlowModCommand::Modify),
            "delete" => self.flows.deletions(line),
            other => return Err(PyValueError::new_err(format!("there is no command {other:?}"))),
        };
        let messages: Vec<_> = changes.map_err(refused)?.into_iter().map(Message::FlowMod).collect();
        encoded(py, xid, &messages)
    }

    /// Refuses: the version has no meters.
    #[allow(clippy::unused_self)]
    fn meter<'py>(
        &self,
        _py: Python<'py>,
        _command: &str,
        _meter: u32,
        _rate_kbps: u32,
        _burst_kbit: u32,
        _xid: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Err(lacks("meters"))
    }

    /// A packet-out with actions in the syntax of `ovs-ofctl`.
    #[allow(clippy::unused_self)]
    fn packet_out<'py>(
        &self,
        py: Python<'py>,
        in_port: u32,
        actions: &str,
        data: Vec<u8>,
        buffer: u32,
        xid: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let message = text_v10::packet_out(in_port, actions, buffer, data).map_err(refused)?;
        encoded(py, xid, &[Message::PacketOut(message)])
    }

    /// Reads one whole message: its name, its transaction, and what it says.
    #[allow(clippy::unused_self)]
    fn decode<'py>(&self, py: Python<'py>, message: &[u8]) -> PyResult<(&'static str, u32, Bound<'py, PyDict>)> {
        let (header, message) =
            Message::decode(message).map_err(|error| PyValueError::new_err(format!("not OpenFlow 1.0: {error}")))?;
        let said = PyDict::new(py);
        let name = tell(py, &message, &said)?;
        Ok((name, header.xid, said))
    }
}

fn lacks(what: &str) -> PyErr {
    refused(V10TextError::NotInVersion(what.to_owned()))
}

fn refused(error: V10TextError) -> PyErr {
    match error {
        V10TextError::Syntax(error) => PyValueError::new_err(error.to_string()),
        error @ V10TextError::NotInVersion(_) => PyNotImplementedError::new_err(error.to_string()),
    }
}

fn encoded<'py>(py: Python<'py>, xid: u32, messages: &[Message]) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    for message in messages {
        message.encode(xid, &mut out).map_err(|error| PyValueError::new_err(error.to_string()))?;
    }
    Ok(PyBytes::new(py, &out))
}

fn tell(py: Python<'_>, message: &Message, said: &Bound<'_, PyDict>) -> PyResult<&'static str> {
    Ok(match message {
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
            let ports = features.ports.iter().map(|port| port_row(py, port)).collect::<PyResult<Vec<_>>>()?;
            said.set_item("ports", ports)?;
            "features"
        }
        Message::PacketIn(packet) => {
            said.set_item("in_port", from_narrow(packet.in_port))?;
            said.set_item("buffer", packet.buffer_id)?;
            said.set_item("length", packet.total_len)?;
            // The version does not tell by which flow it came.
            said.set_item("table", 0)?;
            said.set_item("cookie", 0)?;
            let reason = if packet.reason == PacketInReason::NoMatch { "no_match" } else { "action" };
            said.set_item("reason", reason)?;
            said.set_item("data", PyBytes::new(py, &packet.data))?;
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
        Message::StatsReply(reply) => {
            said.set_item("more", reply.more)?;
            return tell_statistics(py, &reply.body, said);
        }
        _ => "other",
    })
}

fn tell_flow_removed(removed: &FlowRemoved, said: &Bound<'_, PyDict>) -> PyResult<()> {
    let reason = match removed.reason {
        FlowRemovedReason::IdleTimeout => "idle_timeout",
        FlowRemovedReason::HardTimeout => "hard_timeout",
        _ => "delete",
    };
    said.set_item("reason", reason)?;
    said.set_item("table", 0)?;
    said.set_item("priority", removed.priority)?;
    said.set_item("cookie", removed.cookie)?;
    said.set_item("match", removed.matching.value().map(text_v10::match_text))?;
    said.set_item("frames", removed.packet_count)?;
    said.set_item("bytes", removed.byte_count)?;
    said.set_item("lived_s", seconds(removed.duration_sec, removed.duration_nsec))
}

fn tell_statistics(py: Python<'_>, body: &ReplyBody, said: &Bound<'_, PyDict>) -> PyResult<&'static str> {
    let rows = PyList::empty(py);
    let name = match body {
        ReplyBody::Flow(flows) => {
            flows.iter().try_for_each(|flow| rows.append(flow_row(py, flow)?))?;
            "flows"
        }
        ReplyBody::Table(tables) => {
            tables.iter().try_for_each(|table| rows.append(table_row(py, table)?))?;
            "tables"
        }
        ReplyBody::Port(ports) => {
            ports.iter().try_for_each(|port| rows.append(port_statistics_row(py, port)?))?;
            "ports"
        }
        ReplyBody::Queue(queues) => {
            queues.iter().try_for_each(|queue| rows.append(queue_row(py, queue)?))?;
            "queues"
        }
        _ => "other",
    };
    said.set_item("rows", rows)?;
    Ok(name)
}

/// The rate that a port's features tell, in bit/s; 0: none.
fn rate_bps(features: PortFeatures) -> u64 {
    [
        (PortFeatures::RATE_10GB_FD, 10_000_000_000),
        (PortFeatures::RATE_1GB_FD | PortFeatures::RATE_1GB_HD, 1_000_000_000),
        (PortFeatures::RATE_100MB_FD | PortFeatures::RATE_100MB_HD, 100_000_000),
        (PortFeatures::RATE_10MB_FD | PortFeatures::RATE_10MB_HD, 10_000_000),
    ]
    .into_iter()
    .find_map(|(bits, rate)| (features.0 & bits.0 != 0).then_some(rate))
    .unwrap_or(0)
}

fn port_row<'py>(py: Python<'py>, port: &Port) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("number", from_narrow(port.port_no))?;
    row.set_item("name", port.name.as_text())?;
    row.set_item("mac", address_text(&port.hw_addr))?;
    let down = port.state.0 & PortState::LINK_DOWN.0 != 0 || port.config.0 & PortConfig::PORT_DOWN.0 != 0;
    row.set_item("up", !down)?;
    row.set_item("rate_bps", rate_bps(port.current))?;
    Ok(row)
}

fn flow_row<'py>(py: Python<'py>, flow: &FlowStats) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("table", flow.table_id)?;
    row.set_item("priority", flow.priority)?;
    row.set_item("cookie", flow.cookie)?;
    row.set_item("match", flow.matching.value().map(text_v10::match_text))?;
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
    row.set_item("port", from_narrow(port.port_no))?;
    row.set_item("received_frames", port.rx_packets)?;
    row.set_item("received_bytes", port.rx_bytes)?;
    row.set_item("sent_frames", port.tx_packets)?;
    row.set_item("sent_bytes", port.tx_bytes)?;
    row.set_item("dropped_frames", port.tx_dropped)?;
    // The version does not tell for how long they were counted.
    row.set_item("lived_s", None::<f64>)?;
    Ok(row)
}

fn queue_row<'py>(py: Python<'py>, queue: &QueueStats) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("port", from_narrow(queue.port_no))?;
    row.set_item("queue", queue.queue_id)?;
    row.set_item("sent_frames", queue.tx_packets)?;
    row.set_item("sent_bytes", queue.tx_bytes)?;
    row.set_item("dropped_frames", queue.tx_errors)?;
    Ok(row)
}
