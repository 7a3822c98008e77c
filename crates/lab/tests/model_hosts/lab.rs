//! A network of model hosts under a hand-cranked clock.

use std::collections::VecDeque;

use serde_json::{json, Value};
use twinnet_apps::AppConfig;
use twinnet_fabric::{DirectionConfig, NodeId, PortId, Way, World};
use twinnet_host::{HostCounters, ModelHost};
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::{assemble, Bodies, RunningNetwork};
use twinnet_packet::Frame;
use twinnet_units::Time;

/// The world outside: nothing of it may be called for model hosts but to show it captured frames. A real host of it
/// sends what a test gives it, and what arrives there is kept.
#[derive(Default)]
pub struct Outside {
    pub captured: Vec<(PortId, Way, Frame, Time)>,
    pub real: Option<PortId>,
    pub to_send: VecDeque<Frame>,
    pub arrived: Vec<Frame>,
}

impl World for Outside {
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, _due: Time) {
        assert_eq!(self.real, Some(port), "a frame was delivered outside");
        self.arrived.push(*frame);
    }
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        assert_eq!(self.real, Some(port), "a frame was asked for outside");
        self.to_send.pop_front().map(Box::new)
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

impl Lab {
    pub fn new(spec: &Value) -> Self {
        let network = assemble(NetworkSpec::from_json(spec).unwrap(), Bodies::Models).unwrap();
        Self { network, outside: Outside::default() }
    }

    /// A network whose host `real` is outside; the others are models.
    pub fn with_real(spec: &Value, real: &str) -> Self {
        let network = assemble(NetworkSpec::from_json(spec).unwrap(), Bodies::Described).unwrap();
        let port = network.names.ports[&format!("{real}-eth0")];
        Self { network, outside: Outside { real: Some(port), ..Outside::default() } }
    }

    /// The real host sends a frame.
    pub fn send(&mut self, frame: Frame) {
        self.outside.to_send.push_back(frame);
        let port = self.outside.real.unwrap();
        while self.network.fabric.readable(port, &mut self.outside) {}
    }

    /// Type and code of the ICMP messages that arrived at the captured port; those of the other family are left out.
    pub fn icmp_seen(&self, v6: bool) -> Vec<(u8, u8)> {
        let messages = self.outside.captured.iter().filter(|(_, way, ..)| *way == Way::In);
        messages
            .filter_map(|(_, _, frame, _)| {
                let bytes = &frame.bytes;
                let (protocol, at) = match bytes[12..14] {
                    [8, 0] if !v6 => (bytes[23] == 1, 34),
                    [0x86, 0xdd] if v6 => (bytes[20] == 58, 54),
                    _ => return None,
                };
                protocol.then(|| (bytes[at], bytes[at + 1]))
            })
            .collect()
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

    /// Asks an app to end now.
    pub fn stop(&mut self, host: &str, number: u32) {
        let node = self.node(host);
        self.network
            .fabric
            .with_model(node, &mut self.outside, |host, now, pool| host.stop_app(number, now, pool))
            .unwrap();
    }

    /// Returns what an app has counted.
    pub fn report(&self, host: &str, number: u32) -> Value {
        self.host(host).app_report(number, self.network.fabric.now()).unwrap()
    }

    /// The first flow of an app's report.
    pub fn flow(&self, host: &str, number: u32) -> Value {
        self.report(host, number)["flows"][0].clone()
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
    json!({"kind": "host", "name": name, "model": true,
        "ports": [{"name": format!("{name}-eth0"), "mac": format!("00:00:00:00:00:{number:02x}"),
        "addresses": addresses}]})
}

/// A host or router with several interfaces, each with its link's number and addresses.
pub fn router(name: &str, interfaces: &[(u8, &[&str])], routes: &[(&str, &str)]) -> Value {
    let ports: Vec<Value> = interfaces
        .iter()
        .enumerate()
        .map(|(place, (number, addresses))| {
            json!({"name": format!("{name}-eth{place}"), "mac": format!("00:00:00:00:01:{number:02x}"),
                "addresses": addresses})
        })
        .collect();
    let routes: Vec<Value> = routes.iter().map(|(to, via)| json!({"to": to, "via": via})).collect();
    json!({"kind": "host", "name": name, "model": true, "forwarding": true, "ports": ports, "routes": routes})
}

/// h1 - r1 - r2 - h2, in both families. The middle link takes packets of `mtu` bytes.
pub fn over_two_routers(mtu: u32) -> Value {
    let mut h1 = host("h1", 1, &["10.1.0.1/24", "fd01::1/64"]);
    h1["routes"] = json!([{"to": "0.0.0.0/0", "via": "10.1.0.254"}, {"to": "::/0", "via": "fd01::fe"}]);
    let mut h2 = host("h2", 2, &["10.2.0.2/24", "fd02::2/64"]);
    h2["routes"] = json!([{"to": "0.0.0.0/0", "via": "10.2.0.254"}, {"to": "::/0", "via": "fd02::fe"}]);
    let r1 = router(
        "r1",
        &[(1, &["10.1.0.254/24", "fd01::fe/64"]), (2, &["10.9.0.1/30", "fd09::1/64"])],
        &[("10.2.0.0/24", "10.9.0.2"), ("fd02::/64", "fd09::2"), ("10.66.0.0/16", "10.9.0.2")],
    );
    let r2 = router(
        "r2",
        &[(3, &["10.9.0.2/30", "fd09::2/64"]), (4, &["10.2.0.254/24", "fd02::fe/64"])],
        &[("10.1.0.0/24", "10.9.0.1"), ("fd01::/64", "fd09::1")],
    );
    let way = json!({"rate_bps": 100_000_000, "delay_ps": ms(1)});
    let mut middle = link(("r1", 1), ("r2", 0), way.clone());
    middle["mtu"] = json!(mtu);
    json!({"nodes": [h1, r1, r2, h2],
        "links": [link(("h1", 0), ("r1", 0), way.clone()), middle, link(("r2", 1), ("h2", 0), way)]})
}

/// Two hosts at one switch, each by a link of 10 Mbit/s and 1 ms.
pub fn over_a_switch(seed: u64) -> Value {
    let way = json!({"rate_bps": 10_000_000, "framing": "ethernet", "delay_ps": ms(1)});
    json!({"seed": seed,
        "nodes": [host("h1", 1, &["10.0.0.1/8", "fd00::1/64"]), host("h2", 2, &["10.0.0.2/8", "fd00::2/64"]),
        switch("s1", 1, 3)], "links": [link(("h1", 0), ("s1", 0), way.clone()), link(("h2", 0), ("s1", 1), way)]})
}

/// Time of a frame of `length` bytes without FCS over two links of [`over_a_switch`], in picoseconds: it has
/// arrived before the gap that must follow it is over.
pub const fn two_links(length: u64) -> u64 {
    let wire = if length < 60 { 60 } else { length } + 24 - 12;
    2 * (wire * 8 * 100_000 + ms(1))
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
