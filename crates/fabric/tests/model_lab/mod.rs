//! A network of model hosts under a hand-cranked clock.

use serde_json::{json, Value};
use twinnet_apps::AppConfig;
use twinnet_fabric::host::{HostCounters, ModelHost};
use twinnet_fabric::lab::network::NetworkSpec;
use twinnet_fabric::lab::{assemble, Bodies, RunningNetwork};
use twinnet_fabric::{DirectionConfig, NodeId, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_units::Time;

/// The world outside: nothing of it may be called for model hosts but to show it captured frames.
#[derive(Default)]
pub struct Outside {
    pub captured: Vec<(PortId, Way, Frame, Time)>,
}

impl World for Outside {
    fn deliver(&mut self, port: PortId, _frame: Box<Frame>, _due: Time) {
        panic!("a frame was delivered outside, at {port:?}");
    }
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        panic!("a frame was asked for outside, at {port:?}");
    }
    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, at: Time) {
        self.captured.push((port, way, frame.clone(), at));
    }
    fn carrier(&mut self, port: PortId, _up: bool) {
        panic!("a carrier was told outside, at {port:?}");
    }
    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
}

/// A running network.
pub struct Lab {
    pub network: RunningNetwork,
    pub outside: Outside,
}

#[allow(dead_code)]
impl Lab {
    pub fn new(spec: &Value) -> Self {
        let network = assemble(NetworkSpec::from_json(spec).unwrap(), Bodies::Models).unwrap();
        Self { network, outside: Outside::default() }
    }

    pub fn node(&self, host: &str) -> NodeId {
        self.network.names.nodes[host]
    }

    pub fn host(&self, host: &str) -> &ModelHost {
        self.network.fabric.model(self.node(host)).unwrap()
    }

    pub fn counters(&self, host: &str) -> HostCounters {
        *self.host(host).counters()
    }

    /// Starts an app at the time it is.
    pub fn start(&mut self, host: &str, number: u32, config: Value) {
        let config: AppConfig = serde_json::from_value(config).unwrap();
        config.validate().unwrap();
        let node = self.node(host);
        self.network
            .fabric
            .with_model(node, &mut self.outside, |host, now, _| host.start_app(number, &config, now, 1))
            .unwrap();
    }

    pub fn run_until_ms(&mut self, ms: u64) {
        self.network.fabric.advance(Time::from_ns(ms * 1_000_000), &mut self.outside);
    }

    /// The first flow of an app's report.
    pub fn flow(&self, host: &str, number: u32) -> Value {
        self.host(host).app_report(number, self.network.fabric.now()).unwrap()["flows"][0].clone()
    }

    pub fn finished(&self, host: &str, number: u32) -> bool {
        self.host(host).app_finished(number).unwrap()
    }

    /// Shows all frames that pass the interface.
    pub fn capture(&mut self, interface: &str) -> PortId {
        let port = self.network.names.ports[interface];
        self.network.fabric.set_capture(port, true);
        port
    }
}

/// A host with one interface.
pub fn host(name: &str, number: u8, addresses: &[&str]) -> Value {
    json!({"kind": "host", "name": name,
        "ports": [{"name": format!("{name}-eth0"), "mac": format!("00:00:00:00:00:{number:02x}"), "addresses": addresses}]})
}

/// A switch that learns.
pub fn switch(name: &str, dpid: u64, ports: u32) -> Value {
    let ports: Vec<Value> =
        (1..=ports).map(|number| json!({"name": format!("{name}-eth{number}"), "number": number})).collect();
    json!({"kind": "switch", "name": name, "dpid": dpid, "ports": ports})
}

/// A link between ports, the same in both directions.
pub fn link(a: (&str, usize), b: (&str, usize), way: Value) -> Value {
    json!({"a": {"node": a.0, "port": a.1}, "b": {"node": b.0, "port": b.1}, "ab": way.clone(), "ba": way})
}

/// A number of picoseconds, from milliseconds.
pub const fn ms(ms: u64) -> u64 {
    ms * 1_000_000_000
}

/// A ping of `count` requests, 100 ms apart.
pub fn ping(to: &str, count: u64, payload: u32) -> Value {
    json!({"kind": "ping", "to": to, "flow": 1, "count": count, "interval_ps": ms(100),
        "payload_bytes": payload, "timeout_ps": ms(1000)})
}

/// A constant-rate flow of `packets` datagrams.
pub fn udp_source(to: &str, packets: u64, payload: u32, packets_per_second: f64) -> Value {
    json!({"kind": "udp_source", "to": to, "port": 5000, "flow": 7, "payload_bytes": payload, "process": "constant",
        "rate_bps": null, "packets_per_second": packets_per_second, "duration_ps": null, "packets": packets})
}

pub fn udp_sink() -> Value {
    json!({"kind": "udp_sink", "port": 5000, "interval_ps": ms(1000)})
}
