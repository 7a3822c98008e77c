//! One switch of the fabric with nothing around it but who asks: controllers are byte strings, hosts are lists of
//! frames, and time passes when it is told to.

use std::collections::VecDeque;
use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinnet_fabric::{DirectionChange, DirectionConfig, Fabric, NodeId, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_queue::QueueConfig;
use twinnet_switch::control::Peer;
use twinnet_switch::{FailMode, Switch, SwitchConfig};
use twinnet_units::{Duration, Rate, Time};

/// The longest payload of a frame at a port.
const LONGEST_PAYLOAD_BYTES: u64 = 9000;

/// Messages to a controller: its connection's number, the bytes, and why the connection ends after them.
type ForController = (u64, Vec<u8>, Option<String>);

/// The hosts at the ports: what they want to send, and what has come to them.
#[derive(Default)]
struct Hosts {
    sending: Vec<VecDeque<Box<Frame>>>,
    arrived: Vec<(u32, Vec<u8>)>,
    /// The host's port by its number less one.
    ports: Vec<PortId>,
}

impl Hosts {
    fn index(&self, port: PortId) -> Option<usize> {
        self.ports.iter().position(|one| *one == port)
    }
}

impl World for Hosts {
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, _due: Time) {
        let Some(index) = self.index(port) else { return };
        self.arrived.push((u32::try_from(index + 1).unwrap_or(u32::MAX), frame.bytes.clone()));
    }

    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        let index = self.index(port)?;
        self.sending[index].pop_front()
    }

    fn captured(&mut self, _port: PortId, _way: Way, _frame: &Frame, _at: Time) {}

    fn carrier(&mut self, _port: PortId, _up: bool) {}

    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
}

struct Bench {
    fabric: Fabric,
    hosts: Hosts,
    switch: NodeId,
    /// The switch's side of each port.
    sides: Vec<PortId>,
}

/// A switch with `ports` ports, numbered from 1, on a clock of its own that begins at zero.
#[pyclass(frozen, module = "twinnet._core")]
pub struct BareSwitch(Mutex<Bench>);

impl BareSwitch {
    fn with<T>(&self, py: Python<'_>, act: impl FnOnce(&mut Bench) -> PyResult<T> + Send) -> PyResult<T>
    where
        T: Send,
    {
        py.detach(|| {
            let mut bench =
                self.0.lock().map_err(|_| PyValueError::new_err("the switch has failed: make a new one"))?;
            act(&mut bench)
        })
    }
}

impl Bench {
    fn index(&self, port: u32) -> PyResult<usize> {
        let count = self.sides.len();
        (port as usize)
            .checked_sub(1)
            .filter(|index| *index < count)
            .ok_or_else(|| PyValueError::new_err(format!("port {port}: this switch has the ports 1 to {count}")))
    }
}

#[pymethods]
impl BareSwitch {
    /// A switch that speaks these wire versions (1: OpenFlow 1.0, 4: 1.3), its ports at lines of `rate_bps` or of none.
    #[new]
    #[pyo3(signature = (ports, *, dpid = 1, versions = vec![1, 4], standalone = false, rate_bps = None, seed = 1))]
    fn new(
        ports: u8,
        dpid: u64,
        versions: Vec<u8>,
        standalone: bool,
        rate_bps: Option<u64>,
        seed: u64,
    ) -> PyResult<Self> {
        let refuse = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let fail_mode = if standalone { FailMode::Standalone } else { FailMode::Secure };
        let mut fabric = Fabric::new(seed);
        let switch = fabric.add_switch(Switch::new(SwitchConfig { dpid, fail_mode, seed }), Duration::ZERO);
        fabric.add_agent(switch, &versions);
        let mut hosts = Hosts::default();
        let mut sides = Vec::new();
        let rate = rate_bps.and_then(Rate::from_bps);
        for number in 1..=ports {
            let side = fabric.add_port(switch, &format!("s1-eth{number}"), number.into(), [2, 0, 0, 0, 1, number]);
            let host = fabric.add_host();
            let end = fabric.add_port(host, &format!("h{number}-eth0"), 1, [2, 0, 0, 0, 2, number]);
            let config = || DirectionConfig { rate_bps: rate, ..DirectionConfig::default() };
            fabric
                .join((side, config(), None), (end, config(), None), LONGEST_PAYLOAD_BYTES)
                .map_err(|error| refuse(&error))?;
            hosts.sending.push(VecDeque::new());
            hosts.ports.push(end);
            sides.push(side);
        }
        fabric.advance(Time::ZERO, &mut hosts);
        Ok(Self(Mutex::new(Bench { fabric, hosts, switch, sides })))
    }

    /// A controller is connected, under a number that no other connection has.
    fn open(&self, py: Python<'_>, connection: u64) -> PyResult<()> {
        self.with(py, |bench| {
            bench.fabric.controller_opened(bench.switch, connection, Peer::Controller);
            Ok(())
        })
    }

    /// A connection ends.
    fn close(&self, py: Python<'_>, connection: u64) -> PyResult<()> {
        self.with(py, |bench| {
            bench.fabric.controller_closed(bench.switch, connection);
            Ok(())
        })
    }

    /// A controller sends `data`.
    fn say(&self, py: Python<'_>, connection: u64, data: &[u8]) -> PyResult<()> {
        self.with(py, |bench| {
            let Bench { fabric, hosts, switch, .. } = bench;
            fabric.controller_said(*switch, connection, data, hosts);
            let now = fabric.now();
            fabric.advance(now, hosts);
            Ok(())
        })
    }

    /// The messages to controllers since the last call.
    fn heard(&self, py: Python<'_>) -> PyResult<Vec<ForController>> {
        self.with(py, |bench| {
            let output = bench.fabric.take_control_output();
            Ok(output.into_iter().map(|one| (one.connection, one.bytes, one.ending)).collect())
        })
    }

    /// The host at `port` sends a frame.
    fn send(&self, py: Python<'_>, port: u32, frame: Vec<u8>) -> PyResult<()> {
        self.with(py, |bench| {
            let index = bench.index(port)?;
            let Bench { fabric, hosts, .. } = bench;
            hosts.sending[index].push_back(Box::new(Frame::new(frame)));
            let end = hosts.ports[index];
            while fabric.readable(end, hosts) {}
            let now = fabric.now();
            fabric.advance(now, hosts);
            Ok(())
        })
    }

    /// The host at `port` sends frames one after the other, without a pause; what comes of them is thrown away.
    /// Says how many came out.
    fn send_all(&self, py: Python<'_>, port: u32, frames: Vec<Vec<u8>>) -> PyResult<usize> {
        self.with(py, |bench| {
            let index = bench.index(port)?;
            let Bench { fabric, hosts, .. } = bench;
            let end = hosts.ports[index];
            let mut came = 0;
            for frame in frames {
                hosts.sending[index].push_back(Box::new(Frame::new(frame)));
                while fabric.readable(end, hosts) {}
                let now = fabric.now();
                fabric.advance(now, hosts);
                came += hosts.arrived.len();
                hosts.arrived.clear();
            }
            Ok(came)
        })
    }

    /// The frames that have come to the hosts since the last call, each with its port's number, in order.
    fn arrived(&self, py: Python<'_>) -> PyResult<Vec<(u32, Vec<u8>)>> {
        self.with(py, |bench| Ok(std::mem::take(&mut bench.hosts.arrived)))
    }

    /// Lets time pass.
    fn advance(&self, py: Python<'_>, nanoseconds: u64) -> PyResult<()> {
        self.with(py, |bench| {
            let until = bench.fabric.now() + Duration::from_ns(nanoseconds);
            bench.fabric.advance(until, &mut bench.hosts);
            Ok(())
        })
    }

    /// Takes the link at `port` up or down.
    fn set_link(&self, py: Python<'_>, port: u32, up: bool) -> PyResult<()> {
        self.with(py, |bench| {
            let index = bench.index(port)?;
            let Bench { fabric, hosts, sides, .. } = bench;
            for end in [sides[index], hosts.ports[index]] {
                let change = DirectionChange { up: Some(up), ..DirectionChange::default() };
                fabric.change(end, change, hosts).map_err(|error| PyValueError::new_err(error.to_string()))?;
            }
            Ok(())
        })
    }

    /// Gives `port` another queue discipline (JSON, as in docs/reference/lab-protocol.md).
    fn set_queue(&self, py: Python<'_>, port: u32, queue: &str) -> PyResult<()> {
        let queue: QueueConfig =
            serde_json::from_str(queue).map_err(|error| PyValueError::new_err(format!("queue: {error}")))?;
        self.with(py, |bench| {
            let index = bench.index(port)?;
            let Bench { fabric, hosts, sides, .. } = bench;
            fabric.set_queue(sides[index], &queue, hosts).map_err(|error| PyValueError::new_err(error.to_string()))
        })
    }
}
