//! The engine against what theory says, under a hand-cranked clock.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;

use twinnet_fabric::{Coalescing, DirectionChange, DirectionConfig, Fabric, PortCounters, PortId, Way, World};
use twinnet_packet::{Checksum, Frame, Offload, Segmentation};
use twinnet_queue::QueueConfig;
use twinnet_switch::{FailMode, Switch, SwitchConfig};
use twinnet_units::{Duration, Time};

/// Hosts that send what a test gives them and keep what arrives.
#[derive(Default)]
struct Hosts {
    to_send: HashMap<PortId, VecDeque<Frame>>,
    arrived: Vec<(PortId, Time, Frame)>,
    captured: Vec<(PortId, Way, Time, u64)>,
    carrier: Vec<(PortId, bool)>,
    reconfigured: Vec<(PortId, Option<twinnet_units::Rate>)>,
}

impl World for Hosts {
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, due: Time) {
        self.arrived.push((port, due, *frame));
    }
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        self.to_send.get_mut(&port)?.pop_front().map(Box::new)
    }
    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, at: Time) {
        self.captured.push((port, way, at, frame.length()));
    }
    fn carrier(&mut self, port: PortId, up: bool) {
        self.carrier.push((port, up));
    }
    fn reconfigured(&mut self, port: PortId, config: &DirectionConfig) {
        self.reconfigured.push((port, config.rate_bps));
    }
}

struct Bench {
    fabric: Fabric,
    hosts: Hosts,
}

impl Bench {
    fn new(seed: u64) -> Self {
        Self { fabric: Fabric::new(seed), hosts: Hosts::default() }
    }

    fn host(&mut self, name: &str) -> PortId {
        let node = self.fabric.add_host();
        self.fabric.add_port(node, name, 0, [0; 6])
    }

    fn switch(&mut self, dpid: u64, ports: u32) -> (twinnet_fabric::NodeId, Vec<PortId>) {
        let switch = Switch::new(SwitchConfig { dpid, fail_mode: FailMode::Standalone, seed: 1 });
        let node = self.fabric.add_switch(switch, Duration::ZERO);
        let ports = (1..=ports)
            .map(|number| self.fabric.add_port(node, &format!("s{dpid}-eth{number}"), number, [2, 0, 0, 0, 0, 1]))
            .collect();
        (node, ports)
    }

    fn join(&mut self, a: PortId, b: PortId, config: &DirectionConfig) {
        self.fabric.join((a, config.clone(), None), (b, config.clone(), None), 9000).unwrap();
    }

    /// The host behind `port` offers `frame` at `at`.
    fn send(&mut self, at: Time, port: PortId, frame: Frame) {
        self.fabric.advance(at, &mut self.hosts);
        self.hosts.to_send.entry(port).or_default().push_back(frame);
        while self.fabric.readable(port, &mut self.hosts) {}
    }

    fn finish(&mut self, at: Time) {
        self.fabric.advance(at, &mut self.hosts);
    }
}

fn link(rate: &str, delay: &str) -> DirectionConfig {
    DirectionConfig { rate_bps: Some(rate.parse().unwrap()), delay_ps: delay.parse().unwrap(), ..Default::default() }
}

/// An Ethernet frame of `length` bytes without FCS from host `from` to host `to` (0: broadcast).
fn frame(from: u8, to: u8, length: usize) -> Frame {
    let mut bytes = vec![0; length];
    bytes[..6].copy_from_slice(&if to == 0 { [0xff; 6] } else { [0, 0, 0, 0, 0, to] });
    bytes[6..12].copy_from_slice(&[0, 0, 0, 0, 0, from]);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    Frame::new(bytes)
}

#[test]
fn a_lone_frame_takes_its_serialisation_time_then_the_delay() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    bench.join(a, b, &link("2 Mbit", "10 ms"));
    bench.send(Time::ZERO, a, frame(1, 2, 1512));
    bench.finish(Time::from_ns(1_000_000_000));
    // (1512 + 24 bytes of framing) * 8 / 2 Mbit/s = 6.144 ms; the frame is there before the 12 bytes of gap, 48 us,
    // are over.
    assert_eq!(bench.hosts.arrived[0].1, Time::from_ns(16_144_000 - 48_000));
}

#[test]
fn a_card_tells_of_frames_together_when_its_timer_ends_or_enough_wait() {
    let mut bench = Bench::new(1);
    let a = bench.host("h1-eth0");
    let receiver = bench.fabric.add_host();
    let b = bench.fabric.add_port(receiver, "h2-eth0", 0, [0; 6]);
    bench.join(a, b, &link("100 Mbit", "0 s"));
    let told = |bench: &Bench| bench.hosts.arrived.iter().map(|(_, at, _)| at.as_ns()).collect::<Vec<_>>();
    bench.fabric.set_coalescing(receiver, Some(Coalescing { delay_ps: Duration::from_us(200), frames: None }));
    for _ in 0..3 {
        bench.send(Time::ZERO, a, frame(1, 2, 1514));
    }
    bench.finish(Time::from_ns(1_000_000));
    // A frame takes 123.04 us with its gap, and is whole 0.96 us before that ends. The timer begins with the first
    // of them.
    let first = 123_040 - 960;
    assert_eq!(told(&bench), [first + 200_000, first + 200_000, 3 * 123_040 - 960 + 200_000]);

    bench.hosts.arrived.clear();
    bench
        .fabric
        .set_coalescing(receiver, Some(Coalescing { delay_ps: Duration::from_ms(50), frames: NonZeroU64::new(2) }));
    let begin = Time::from_ns(1_000_000);
    for _ in 0..2 {
        bench.send(begin, a, frame(1, 2, 1514));
    }
    bench.finish(Time::from_ns(2_000_000));
    let second = 1_000_000 + 2 * 123_040 - 960;
    assert_eq!(told(&bench), [second, second]);

    // Without it each frame is told of when it is there.
    bench.hosts.arrived.clear();
    bench.fabric.set_coalescing(receiver, None);
    bench.send(Time::from_ns(2_000_000), a, frame(1, 2, 1514));
    bench.finish(Time::from_ns(3_000_000));
    assert_eq!(told(&bench), [2_000_000 + first]);
}

#[test]
fn no_frame_of_a_burst_goes_faster_than_the_line_not_even_the_first() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    bench.join(a, b, &link("100 Mbit", "0 s"));
    for _ in 0..100 {
        bench.send(Time::ZERO, a, frame(1, 2, 1514));
    }
    bench.finish(Time::from_ns(1_000_000_000));
    for (index, (_, at, _)) in bench.hosts.arrived.iter().enumerate() {
        assert_eq!(at.as_ps(), 123_040_000 * (index as u64 + 1) - 960_000);
    }
    assert_eq!(bench.hosts.arrived.len(), 100);
}

/// A train of `count` TCP segments of 1460 bytes from host 1 to host 2, as a host's offload hands it over.
fn train(count: u32) -> Frame {
    let mut train = frame(1, 2, 54);
    train.bytes[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    (train.bytes[23], train.bytes[46]) = (6, 0x50);
    train.elided = 1460 * count;
    train.offload = Some(Offload { kind: Segmentation::Tcp4, segment: 1460, header: 54, ecn: false });
    train.checksum = Checksum::Partial { start: 34, offset: 16 };
    train
}

#[test]
fn a_queue_keeps_as_many_frames_of_trains_as_of_frames_that_come_one_by_one() {
    // One frame on the line and two that wait: what more comes at once is lost, however it was put together.
    for pieces in [vec![1; 6], vec![2, 2, 2], vec![3, 3], vec![1, 2, 3], vec![2, 4], vec![6]] {
        let mut bench = Bench::new(1);
        let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
        let (_, ports) = bench.switch(1, 2);
        bench.join(a, ports[0], &DirectionConfig::default());
        bench.join(ports[1], b, &link("10 Mbit", "0 s"));
        let queue: QueueConfig = serde_json::from_str(r#"{"kind":"fifo","limit_frames":2}"#).unwrap();
        bench.fabric.set_queue(ports[1], &queue, &mut bench.hosts).unwrap();
        for count in &pieces {
            bench.send(Time::ZERO, a, train(*count));
        }
        // The first frame takes 1.23 ms: what comes when it has left finds room for one.
        bench.finish(Time::from_ns(1_500_000));
        for _ in 0..3 {
            bench.send(Time::from_ns(1_500_000), a, train(1));
        }
        bench.finish(Time::from_ns(1_000_000_000));
        let arrived: u64 = bench.hosts.arrived.iter().map(|(_, _, frame)| frame.frames()).sum();
        assert_eq!(arrived, 4, "{pieces:?}");
    }
}

/// When the frames of a train of three are there, behind a switch: between two lines of 1 Gbit/s, or one of `second`.
fn told_of_a_train(exact: bool, second: &str, queue: Option<&QueueConfig>) -> Vec<(u64, u64)> {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    let (_, ports) = bench.switch(1, 2);
    bench.join(a, ports[0], &link("1 Gbit", "0 s"));
    bench.join(ports[1], b, &link(second, "0 s"));
    if exact {
        bench.fabric.keep_trains_exact();
    }
    if let Some(queue) = queue {
        bench.fabric.set_queue(ports[1], queue, &mut bench.hosts).unwrap();
    }
    bench.send(Time::ZERO, a, train(3));
    bench.finish(Time::from_ns(10_000_000));
    let arrived = bench.hosts.arrived.iter();
    arrived.map(|(_, at, frame)| (at.as_ns(), frame.frames())).collect()
}

#[test]
fn a_train_before_a_slower_line_or_a_described_queue_is_exact_where_that_is_asked_for() {
    // A full frame takes 12.304 us, or at half the rate 24.608 us, of which the gap is 0.096 or 0.192 us.
    let together = 3 * 12_304 - 96;
    assert_eq!(told_of_a_train(false, "1 Gbit", None), [(2 * together, 3)]);
    assert_eq!(told_of_a_train(true, "1 Gbit", None), [(2 * together, 3)]);
    assert_eq!(told_of_a_train(false, "500 Mbit", None), [(together + 3 * 24_608 - 192, 3)]);
    let slower = [1, 2, 3].map(|count| (12_208 + count * 24_608 - 192, 1));
    assert_eq!(told_of_a_train(true, "500 Mbit", None), slower);
    let queue: QueueConfig = serde_json::from_str(r#"{"kind":"fifo","limit_frames":2}"#).unwrap();
    let alike = [1, 2, 3].map(|count| (count * 12_304 - 96 + 12_208, 1));
    assert_eq!(told_of_a_train(true, "1 Gbit", Some(&queue)), alike);
}

#[test]
fn over_a_chain_of_switches_the_delays_add_up_to_the_picosecond() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    let rates = ["10 Mbit", "100 Mbit", "1 Gbit", "3 Mbit", "7 Gbit"];
    let mut left = a;
    for (index, rate) in rates.iter().enumerate() {
        let config = link(rate, "3 us");
        if index == 4 {
            bench.join(left, b, &config);
        } else {
            let (_, ports) = bench.switch(index as u64 + 1, 2);
            bench.join(left, ports[0], &config);
            left = ports[1];
        }
    }
    bench.send(Time::ZERO, a, frame(1, 2, 1000));
    bench.finish(Time::from_ns(1_000_000_000));
    let expected: u64 = rates
        .iter()
        .map(|rate| rate.parse::<twinnet_units::Rate>().unwrap().serialise(1024 - 12).as_ps() + 3_000_000)
        .sum();
    assert_eq!(bench.hosts.arrived.len(), 1);
    assert_eq!(bench.hosts.arrived[0].1.as_ps(), expected);
}

/// Pollaczek-Khinchine: in M/D/1 the mean wait is rho / (2 (1 - rho)) service times.
#[test]
fn poisson_arrivals_wait_as_m_d_1_says() {
    for (load, tolerance) in [(0.3, 0.02), (0.6, 0.02), (0.8, 0.04)] {
        let mut bench = Bench::new(1);
        let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
        let config = link("100 Mbit", "0 s");
        let queue: QueueConfig = serde_json::from_str(r#"{"kind":"fifo","limit_frames":100000}"#).unwrap();
        bench.fabric.join((a, config.clone(), Some(&queue)), (b, config, None), 1500).unwrap();
        let service = 100e-6; // 1226 + 24 bytes at 100 Mbit/s
        let gap = 0.96e-6; // of which 12 bytes come after the frame
        let mut random = 88_172_645_463_325_252_u64;
        let mut now = 0.0_f64;
        let mut offered = Vec::new();
        for _ in 0..200_000 {
            // xorshift64 (Marsaglia 2003) into an exponential gap.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let uniform = (random >> 11) as f64 / (1_u64 << 53) as f64;
            now += -(1.0 - uniform).ln() * service / load;
            let at = Time::ZERO + Duration::from_secs_f64(now);
            offered.push(at);
            bench.send(at, a, frame(1, 2, 1226));
        }
        bench.finish(Time::from_ns(1_000_000_000_000));
        assert_eq!(bench.hosts.arrived.len(), offered.len());
        let waits = bench.hosts.arrived.iter().zip(&offered);
        let mean =
            waits.map(|((_, at, _), from)| (*at - *from).as_secs_f64() - (service - gap)).sum::<f64>() / 200_000.0;
        let theory = load / (2.0 * (1.0 - load)) * service;
        // The relative standard error of 200,000 correlated waits stays below a third of each tolerance.
        assert!((mean / theory - 1.0).abs() < tolerance, "load {load}: {mean} against {theory}");
    }
}

#[test]
fn sources_in_step_share_an_overloaded_port_evenly() {
    const SOURCES: u8 = 8;
    let mut bench = Bench::new(3);
    let (_, ports) = bench.switch(1, u32::from(SOURCES) + 1);
    let config = link("100 Mbit", "0 s");
    let hosts: Vec<PortId> = (0..SOURCES).map(|index| bench.host(&format!("h{index}-eth0"))).collect();
    for (host, port) in hosts.iter().zip(&ports) {
        bench.join(*host, *port, &config);
    }
    let sink = bench.host("sink-eth0");
    bench.join(sink, ports[SOURCES as usize], &config);
    bench.send(Time::ZERO, sink, frame(99, 0, 60));
    for _ in 0..40_000 {
        for (index, host) in hosts.iter().enumerate() {
            bench.hosts.to_send.entry(*host).or_default().push_back(frame(index as u8 + 1, 99, 1226));
        }
    }
    bench.fabric.advance(Time::from_ns(1_000_000), &mut bench.hosts);
    for host in &hosts {
        bench.fabric.readable(*host, &mut bench.hosts);
    }
    bench.finish(Time::from_ns(4_000_000_000));
    let mut shares = [0_u32; SOURCES as usize];
    for (port, _, frame) in &bench.hosts.arrived {
        if *port == sink {
            shares[frame.bytes[11] as usize - 1] += 1;
        }
    }
    let mean = f64::from(shares.iter().sum::<u32>()) / f64::from(SOURCES);
    assert!(mean > 4000.0, "{shares:?}");
    for share in shares {
        // 5000 draws with a chance of 1/8 each: three standard errors are 4 %.
        assert!((f64::from(share) / mean - 1.0).abs() < 0.05, "{shares:?}");
    }
}

#[test]
fn a_broadcast_in_a_triangle_of_switches_reaches_every_host_once() {
    let mut bench = Bench::new(1);
    let config = link("1 Gbit", "1 us");
    let switches: Vec<Vec<PortId>> = (1..=3).map(|dpid| bench.switch(dpid, 3).1).collect();
    bench.join(switches[0][0], switches[1][0], &config);
    bench.join(switches[1][1], switches[2][0], &config);
    bench.join(switches[2][1], switches[0][1], &config);
    let hosts: Vec<PortId> = (0..3).map(|index| bench.host(&format!("h{index}-eth0"))).collect();
    for (host, switch) in hosts.iter().zip(&switches) {
        bench.join(*host, switch[2], &config);
    }
    bench.send(Time::ZERO, hosts[0], frame(1, 0, 60));
    bench.finish(Time::from_ns(1_000_000_000));
    let mut reached: Vec<PortId> = bench.hosts.arrived.iter().map(|(port, ..)| *port).collect();
    reached.sort();
    assert_eq!(reached, [hosts[1], hosts[2]]);
    assert_eq!(bench.fabric.next_event(), None, "nothing goes on circling");
}

#[test]
fn a_loop_made_by_flow_entries_ends_at_the_hop_limit() {
    let mut bench = Bench::new(1);
    let config = link("1 Gbit", "1 us");
    let (first, a) = bench.switch(1, 2);
    let (second, b) = bench.switch(2, 2);
    bench.join(a[0], b[0], &config);
    let host = bench.host("h1-eth0");
    bench.join(host, a[1], &config);
    for node in [first, second] {
        bench
            .fabric
            .with_switch(node, |switch, now| switch.add_flow("in_port=1,actions=in_port", now))
            .unwrap()
            .unwrap();
    }
    bench.fabric.with_switch(first, |switch, now| switch.add_flow("in_port=2,actions=output:1", now)).unwrap().unwrap();
    bench.send(Time::ZERO, host, frame(1, 2, 60));
    bench.finish(Time::from_ns(1_000_000_000));
    assert_eq!(bench.fabric.next_event(), None);
    let looped = bench.fabric.counters(a[0]).dropped_loop + bench.fabric.counters(b[0]).dropped_loop;
    assert_eq!(looped, 1);
}

#[test]
fn a_redundant_path_takes_over_when_a_link_goes_down() {
    let mut bench = Bench::new(1);
    let config = link("1 Gbit", "1 us");
    let (_, a) = bench.switch(1, 3);
    let (_, b) = bench.switch(2, 3);
    bench.join(a[0], b[0], &config);
    bench.join(a[1], b[1], &config);
    let (left, right) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    bench.join(left, a[2], &config);
    bench.join(right, b[2], &config);
    bench.send(Time::ZERO, right, frame(2, 0, 60));
    bench.send(Time::from_ns(1_000_000), left, frame(1, 2, 60));
    let down = || DirectionChange { up: Some(false), ..DirectionChange::default() };
    bench.fabric.change_at(Time::from_ns(2_000_000), vec![(a[0], down()), (b[0], down())]).unwrap();
    bench.send(Time::from_ns(3_000_000), left, frame(1, 2, 60));
    bench.finish(Time::from_ns(1_000_000_000));
    let at_right = bench.hosts.arrived.iter().filter(|(port, ..)| *port == right).count();
    assert_eq!(at_right, 2);
}

#[test]
fn what_was_learnt_over_the_old_tree_is_forgotten_with_it() {
    let mut bench = Bench::new(1);
    let config = link("1 Gbit", "1 us");
    let switches: Vec<Vec<PortId>> = (1..=3).map(|dpid| bench.switch(dpid, 3).1).collect();
    bench.join(switches[0][0], switches[1][0], &config);
    bench.join(switches[0][1], switches[2][0], &config);
    bench.join(switches[1][1], switches[2][1], &config);
    let hosts: Vec<PortId> = (0..3).map(|index| bench.host(&format!("h{}-eth0", index + 1))).collect();
    for (host, switch) in hosts.iter().zip(&switches) {
        bench.join(*host, switch[2], &config);
    }
    // The third switch learns that the second host is behind the first switch, which will reach it by the third only.
    bench.send(Time::ZERO, hosts[1], frame(2, 0, 60));
    let down = || DirectionChange { up: Some(false), ..DirectionChange::default() };
    let ends = vec![(switches[0][0], down()), (switches[1][0], down())];
    bench.fabric.change_at(Time::from_ns(1_000_000), ends).unwrap();
    bench.send(Time::from_ns(2_000_000), hosts[0], frame(1, 2, 60));
    bench.finish(Time::from_ns(1_000_000_000));
    assert!(bench.hosts.arrived.iter().any(|(port, at, _)| *port == hosts[1] && *at > Time::from_ns(2_000_000)));
}

#[test]
fn a_link_that_goes_down_loses_what_is_on_it_and_tells_the_hosts() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    bench.join(a, b, &link("1 Gbit", "10 ms"));
    bench.send(Time::ZERO, a, frame(1, 2, 1000));
    bench.fabric.advance(Time::from_ns(5_000_000), &mut bench.hosts);
    bench
        .fabric
        .change(a, DirectionChange { up: Some(false), ..DirectionChange::default() }, &mut bench.hosts)
        .unwrap();
    bench.send(Time::from_ns(6_000_000), a, frame(1, 2, 1000));
    bench.fabric.change(a, DirectionChange { up: Some(true), ..DirectionChange::default() }, &mut bench.hosts).unwrap();
    bench.send(Time::from_ns(7_000_000), a, frame(1, 2, 1001));
    bench.finish(Time::from_ns(1_000_000_000));
    assert_eq!(bench.hosts.arrived.len(), 1);
    assert_eq!(bench.hosts.arrived[0].2.length(), 1001);
    assert_eq!(bench.fabric.counters(a).sent.dropped_down, 2);
    assert_eq!(bench.hosts.carrier, [(a, false), (b, false), (a, true), (b, true)]);
}

#[test]
fn a_change_of_rate_spares_the_frame_whose_first_bit_has_left() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    bench.join(a, b, &link("10 Mbit", "0 s"));
    let faster = DirectionChange { config: Some(link("100 Mbit", "0 s")), ..DirectionChange::default() };
    bench.fabric.change_at(Time::from_ns(500_000), vec![(a, faster)]).unwrap();
    bench.send(Time::ZERO, a, frame(1, 2, 1226));
    bench.send(Time::ZERO, a, frame(1, 2, 1226));
    bench.finish(Time::from_ns(1_000_000_000));
    let times: Vec<u64> = bench.hosts.arrived.iter().map(|(_, at, _)| at.as_ns()).collect();
    assert_eq!(times, [1_000_000 - 9600, 1_100_000 - 960]);
    assert_eq!(bench.hosts.reconfigured, [(a, twinnet_units::Rate::from_bps(100_000_000))]);
}

#[test]
fn frames_longer_than_the_mtu_are_counted_and_dropped() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    let config = link("1 Gbit", "0 s");
    bench.fabric.join((a, config.clone(), None), (b, config, None), 1500).unwrap();
    bench.send(Time::ZERO, a, frame(1, 2, 1514));
    bench.send(Time::ZERO, a, frame(1, 2, 1600));
    bench.finish(Time::from_ns(1_000_000_000));
    assert_eq!(bench.hosts.arrived.len(), 1);
    assert_eq!(bench.fabric.counters(a).sent.dropped_oversize, 1);
}

#[test]
fn a_line_goes_by_the_mtu_that_it_is_given_while_it_runs() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    let config = link("1 Gbit", "0 s");
    bench.fabric.join((a, config.clone(), None), (b, config, None), 1500).unwrap();
    let at = |ms: u64| Time::from_ns(ms * 1_000_000);
    let mtu = |mtu: u64| DirectionChange { mtu: Some(mtu), ..DirectionChange::default() };
    bench.fabric.change_at(at(1), vec![(a, mtu(9000))]).unwrap();
    bench.fabric.change_at(at(3), vec![(a, mtu(1400))]).unwrap();
    bench.send(at(2), a, frame(1, 2, 9014));
    bench.send(at(2), a, frame(1, 2, 9023));
    bench.send(at(4), a, frame(1, 2, 1422));
    bench.send(at(4), a, frame(1, 2, 1423));
    bench.finish(at(1000));
    let lengths: Vec<_> = bench.hosts.arrived.iter().map(|(_, _, frame)| frame.length()).collect();
    assert_eq!(lengths, [9014, 1422]);
    assert_eq!(bench.fabric.counters(a).sent.dropped_oversize, 2);
    assert_eq!(bench.fabric.counters(b).sent.dropped_oversize, 0);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let trace = |seed: u64| {
        let mut bench = Bench::new(seed);
        let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
        let mut config = link("10 Mbit", "1 ms");
        config.impair =
            serde_json::from_str(r#"{"jitter":{"distribution":"normal","scale_ps":100000000},"reorder":true}"#)
                .unwrap();
        bench.join(a, b, &config);
        for step in 0..100 {
            bench.send(Time::from_ns(step * 1000), a, frame(1, 2, 500));
        }
        bench.finish(Time::from_ns(1_000_000_000));
        assert_eq!(bench.hosts.arrived.len(), 100);
        bench.fabric.trace_hash()
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}

#[test]
fn samples_add_up_to_the_counters_and_never_exceed_the_rate() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    bench.join(a, b, &link("10 Mbit", "0 s"));
    let sampler = bench.fabric.sample_ports(Duration::from_ms(10), &[a]);
    for _ in 0..1000 {
        bench.send(Time::ZERO, a, frame(1, 2, 1226));
    }
    bench.finish(Time::from_ns(2_000_000_000));
    let (_, samples) = bench.fabric.samples(sampler).unwrap();
    let series = &samples.ports[0].1;
    assert_eq!(series.iter().map(|sample| sample.sent.frames).sum::<u64>(), 1000);
    assert_eq!(series.iter().map(|sample| sample.sent.wire_bytes).max(), Some(12_500));
    assert_eq!(bench.fabric.counters(a).sent.wire_bytes, 1_250_000);
}

#[test]
fn samples_tell_both_ways_why_frames_were_dropped_and_what_waits() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    let config = link("10 Mbit", "0 s");
    let queue: QueueConfig = serde_json::from_str(r#"{"kind":"fifo","limit_frames":99}"#).unwrap();
    bench.fabric.join((a, config.clone(), Some(&queue)), (b, config, None), 1500).unwrap();
    let sampler = bench.fabric.sample_ports(Duration::from_ms(10), &[a, b]);
    for _ in 0..150 {
        bench.send(Time::ZERO, a, frame(1, 2, 1226));
    }
    bench.finish(Time::from_ns(2_000_000_000));
    let (interval, samples) = bench.fabric.stop_samples(sampler).unwrap();
    assert_eq!(interval, Duration::from_ms(10));
    let (sent, received) = (&samples.ports[0].1, &samples.ports[1].1);
    let total = |series: &[PortCounters], of: fn(&PortCounters) -> u64| series.iter().map(of).sum::<u64>();
    // The queue keeps 99 frames, one is on the line when the rest come.
    assert_eq!(total(sent, |one| one.sent.dropped_overlimit), 50);
    assert_eq!((sent[0].sent.dropped_overlimit, sent[0].sent.dropped_early, sent[1].sent.dropped()), (50, 0, 0));
    assert_eq!(total(received, |one| one.received_frames), total(sent, |one| one.sent.frames));
    assert_eq!(total(received, |one| one.received_bytes), total(sent, |one| one.sent.link_bytes));
    // Ten frames leave in 10 ms, and one is on its way.
    assert_eq!((sent[0].sent.frames, sent[0].backlog_bytes), (10, sent[0].backlog_frames * 1226));
    assert_eq!(sent[0].backlog_frames - sent[1].backlog_frames, 10);
    // What was stopped is gone.
    assert!(bench.fabric.samples(sampler).is_none() && bench.fabric.stop_samples(sampler).is_none());
}

#[test]
fn a_sampler_keeps_no_more_than_it_may_and_says_so() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    bench.join(a, b, &link("10 Mbit", "0 s"));
    let sampler = bench.fabric.sample_ports_up_to(Duration::from_ms(10), &[a, b], 11);
    bench.finish(Time::from_ns(40_000_000));
    assert!(!bench.fabric.samples(sampler).unwrap().1.full);
    bench.finish(Time::from_ns(1_000_000_000));
    let (_, samples) = bench.fabric.samples(sampler).unwrap();
    assert_eq!((samples.ports[0].1.len(), samples.ports[1].1.len(), samples.full), (5, 5, true));
}

#[test]
fn a_capture_sees_a_frame_leave_and_arrive_one_propagation_delay_apart() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    bench.join(a, b, &link("10 Mbit", "7 ms"));
    bench.fabric.set_capture(a, true);
    bench.fabric.set_capture(b, true);
    bench.send(Time::ZERO, a, frame(1, 2, 1226));
    bench.finish(Time::from_ns(1_000_000_000));
    let seen: Vec<_> = bench.hosts.captured.iter().map(|(port, way, at, _)| (*port, *way, at.as_ns())).collect();
    assert_eq!(seen, [(a, Way::Out, 990_400), (b, Way::In, 7_990_400)]);
}

#[test]
fn a_bit_that_is_flipped_in_an_elided_payload_is_there_to_be_found() {
    let mut bench = Bench::new(1);
    let (a, b) = (bench.host("h1-eth0"), bench.host("h2-eth0"));
    let impair = twinnet_impair::ImpairConfig { corrupt: 1.0, ..Default::default() };
    bench.join(a, b, &DirectionConfig { impair, ..Default::default() });
    for _ in 0..20 {
        bench.send(Time::ZERO, a, Frame { elided: 1000, ..frame(1, 2, 60) });
    }
    bench.finish(Time::from_ns(1));
    for (_, _, arrived) in &bench.hosts.arrived {
        let flipped: u32 =
            arrived.bytes.iter().zip(frame(1, 2, 1060).bytes).map(|(found, sent)| (found ^ sent).count_ones()).sum();
        assert_eq!((flipped, arrived.length()), (1, 1060));
    }
    assert_eq!(bench.hosts.arrived.len(), 20);
}
