//! Two switches of one fabric with cables from port to port, as suites want them that test one switch by means of
//! another.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinnet_fabric::{DirectionConfig, Fabric, NodeId, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_switch::control::Peer;
use twinnet_switch::{FailMode, Switch, SwitchConfig};
use twinnet_units::{Duration, Time};

/// The longest payload of a frame on a cable.
const LONGEST_PAYLOAD_BYTES: u64 = 9000;

/// Messages to a controller: the switch, the connection's number, the bytes, and why the connection ends after them.
type ForController = (usize, u64, Vec<u8>, Option<String>);

/// Nothing is beside the switches and their cables.
struct Nobody;

impl World for Nobody {
    fn deliver(&mut self, _port: PortId, _frame: Box<Frame>, _due: Time) {}

    fn pull(&mut self, _port: PortId) -> Option<Box<Frame>> {
        None
    }

    fn captured(&mut self, _port: PortId, _way: Way, _frame: &Frame, _at: Time) {}

    fn carrier(&mut self, _port: PortId, _up: bool) {}

    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
}

struct Bench {
    fabric: Fabric,
    switches: [NodeId; 2],
}

/// Two switches, 0 and 1, whose ports of the same number are joined, on a clock of their own that begins at zero.
#[pyclass(frozen, module = "twinnet._core")]
pub struct CabledSwitches(Mutex<Bench>);

impl CabledSwitches {
    fn with<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut Bench) -> PyResult<T> + Send) -> PyResult<T> {
        py.detach(|| {
            let mut bench =
                self.0.lock().map_err(|_| PyValueError::new_err("the switches have failed: make new ones"))?;
            act(&mut bench)
        })
    }
}

impl Bench {
    fn node(&self, switch: usize) -> PyResult<NodeId> {
        let node = self.switches.get(switch).copied();
        node.ok_or_else(|| PyValueError::new_err(format!("switch {switch}: there are 0 and 1")))
    }
}

#[pymethods]
impl CabledSwitches {
    /// Two switches with ports 1 to `ports`, joined by cables without a rate; datapaths 1 and 2.
    #[new]
    #[pyo3(signature = (ports, *, seed = 1))]
    fn new(ports: u8, seed: u64) -> PyResult<Self> {
        let mut fabric = Fabric::new(seed);
        let switches = [1_u8, 2].map(|dpid| {
            let config = SwitchConfig { dpid: dpid.into(), fail_mode: FailMode::Secure, seed };
            let switch = fabric.add_switch(Switch::new(config), Duration::ZERO);
            fabric.add_agent(switch, &[1, 4]);
            (dpid, switch)
        });
        for number in 1..=ports {
            let [one, other] = switches.map(|(dpid, switch)| {
                fabric.add_port(switch, &format!("s{dpid}-eth{number}"), number.into(), [2, 0, 0, 0, dpid, number])
            });
            let config = DirectionConfig::default;
            fabric
                .join((one, config(), None), (other, config(), None), LONGEST_PAYLOAD_BYTES)
                .map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        fabric.advance(Time::ZERO, &mut Nobody);
        Ok(Self(Mutex::new(Bench { fabric, switches: switches.map(|(_, switch)| switch) })))
    }

    /// A controller is connected to a switch, under a number that no other connection of it has.
    fn open(&self, py: Python<'_>, switch: usize, connection: u64) -> PyResult<()> {
        self.with(py, |bench| {
            let node = bench.node(switch)?;
            bench.fabric.controller_opened(node, connection, Peer::Controller);
            Ok(())
        })
    }

    /// A connection ends.
    fn close(&self, py: Python<'_>, switch: usize, connection: u64) -> PyResult<()> {
        self.with(py, |bench| {
            let node = bench.node(switch)?;
            bench.fabric.controller_closed(node, connection);
            Ok(())
        })
    }

    /// A controller sends `data` to a switch; what is due now is done.
    fn say(&self, py: Python<'_>, switch: usize, connection: u64, data: &[u8]) -> PyResult<()> {
        self.with(py, |bench| {
            let node = bench.node(switch)?;
            bench.fabric.controller_said(node, connection, data, &mut Nobody);
            let now = bench.fabric.now();
            bench.fabric.advance(now, &mut Nobody);
            Ok(())
        })
    }

    /// The messages to controllers since the last call.
    fn heard(&self, py: Python<'_>) -> PyResult<Vec<ForController>> {
        self.with(py, |bench| {
            let switches = bench.switches;
            let place = |node| switches.iter().position(|one| *one == node).unwrap_or(switches.len());
            let output = bench.fabric.take_control_output();
            Ok(output.into_iter().map(|one| (place(one.node), one.connection, one.bytes, one.ending)).collect())
        })
    }

    /// Lets time pass.
    fn advance(&self, py: Python<'_>, nanoseconds: u64) -> PyResult<()> {
        self.with(py, |bench| {
            let until = bench.fabric.now() + Duration::from_ns(nanoseconds);
            bench.fabric.advance(until, &mut Nobody);
            Ok(())
        })
    }
}
