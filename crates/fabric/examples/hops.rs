//! Measures how many frame-hops a second the engine moves: ten constant-rate sources over two switches, three links
//! each. `cargo run --release -p twinnet-fabric --example hops [SECONDS]`.

use std::time::Instant;

use twinnet_fabric::{DirectionConfig, Fabric, PortId, Way, World};
use twinnet_packet::{Frame, FramePool};
use twinnet_switch::{FailMode, Switch, SwitchConfig};
use twinnet_units::{Duration, Time};

struct Sources {
    /// The frames that a port sends, and whether for ever.
    templates: Vec<Option<(Vec<u8>, bool)>>,
    pool: FramePool,
    arrived: u64,
}

impl World for Sources {
    fn deliver(&mut self, _port: PortId, frame: Box<Frame>, _due: Time) {
        self.arrived += 1;
        self.pool.recycle(frame);
    }
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        // A sink speaks once, so that the switches learn where it is.
        let slot = &mut self.templates[port.0 as usize];
        let (template, for_ever) = slot.as_ref()?;
        let mut frame = self.pool.take();
        frame.bytes.extend_from_slice(template);
        frame.elided = 1000 - 16;
        if !for_ever {
            *slot = None;
        }
        Some(frame)
    }
    fn captured(&mut self, _port: PortId, _way: Way, _frame: &Frame, _at: Time) {}
    fn carrier(&mut self, _port: PortId, _up: bool) {}
    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
}

fn udp(from: u8, to: u8) -> Vec<u8> {
    let mut bytes = vec![0; 42 + 16];
    bytes[5] = to;
    bytes[11] = from;
    bytes[12] = 8;
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&1028_u16.to_be_bytes());
    bytes[22] = 64;
    bytes[23] = 17;
    bytes[26..30].copy_from_slice(&[10, 0, 0, from]);
    bytes[30..34].copy_from_slice(&[10, 0, 0, to]);
    bytes[35] = from;
    bytes[37] = to;
    bytes[38..40].copy_from_slice(&1008_u16.to_be_bytes());
    bytes
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let mut fabric = Fabric::new(1);
    let mut sources = Sources { templates: Vec::new(), pool: FramePool::default(), arrived: 0 };
    let switches: Vec<_> = (1..=2)
        .map(|dpid| {
            fabric.add_switch(
                Switch::new(SwitchConfig { dpid, fail_mode: FailMode::Standalone, seed: 1 }),
                Duration::ZERO,
            )
        })
        .collect();
    let rate = |text: &str| DirectionConfig { rate_bps: Some(text.parse().expect("a rate")), ..Default::default() };
    for number in 1..=20_u8 {
        let host = fabric.add_host();
        let at = fabric.add_port(host, &format!("h{number}-eth0"), 0, [0; 6]);
        let template = if number <= 10 { (udp(number, number + 10), true) } else { (udp(number, number - 10), false) };
        let switch = usize::from(number > 10);
        let port = fabric.add_port(switches[switch], &format!("s{switch}-eth{number}"), u32::from(number), [2; 6]);
        sources.templates.extend([Some(template), None]);
        fabric.join((at, rate("9 Mbit"), None), (port, rate("1 Gbit"), None), 1500).expect("a sound link");
    }
    let ends: Vec<_> =
        switches.iter().map(|switch| fabric.add_port(*switch, &format!("trunk{}", switch.0), 100, [2; 6])).collect();
    sources.templates.extend([None, None]);
    let trunk = || DirectionConfig { delay_ps: Duration::from_ms(5), ..rate("100 Mbit") };
    fabric.join((ends[0], trunk(), None), (ends[1], trunk(), None), 1500).expect("a sound link");
    for port in 0..sources.templates.len() {
        fabric.readable(PortId(u32::try_from(port).expect("few ports")), &mut sources);
    }
    let begin = Instant::now();
    fabric.advance(Time::from_ns(seconds * 1_000_000_000), &mut sources);
    let elapsed = begin.elapsed().as_secs_f64();
    let hops = sources.arrived * 3;
    println!(
        "{} frames, {hops} hops, {:.2} million hops/s, {:.2} million events/s, trace {:016x}",
        sources.arrived,
        hops as f64 / elapsed / 1e6,
        fabric.events_handled() as f64 / elapsed / 1e6,
        fabric.trace_hash()
    );
}
