//! Tunnelled links under a hand-cranked clock: times to the picosecond, and what is counted.

use std::collections::{HashMap, VecDeque};

use twinnet_fabric::{DirectionChange, DirectionConfig, Fabric, PortId, TunnelConfig, Way, World};
use twinnet_impair::{ImpairConfig, LossConfig};
use twinnet_packet::{Checksum, Frame, Offload, Segmentation};
use twinnet_queue::QueueConfig;
use twinnet_units::{Duration, Time};

const GRE: TunnelConfig = TunnelConfig::Gre { key: Some(5), checksum: false, mtu: 1500, fragment: true };
const LATER: Time = Time::from_ns(10_000_000_000);

#[derive(Default)]
struct Hosts {
    to_send: HashMap<PortId, VecDeque<Frame>>,
    arrived: Vec<(Time, Frame)>,
    captured: Vec<(Way, Time, u64)>,
}

impl World for Hosts {
    fn deliver(&mut self, _port: PortId, frame: Box<Frame>, due: Time) {
        self.arrived.push((due, *frame));
    }
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        self.to_send.get_mut(&port)?.pop_front().map(Box::new)
    }
    fn captured(&mut self, _port: PortId, way: Way, frame: &Frame, at: Time) {
        self.captured.push((way, at, frame.length()));
    }
    fn carrier(&mut self, _port: PortId, _up: bool) {}
    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
}

struct Bench {
    fabric: Fabric,
    hosts: Hosts,
    from: PortId,
    to: PortId,
}

impl Bench {
    /// Two hosts and a link of 100 Mbit/s and 1 ms through `tunnel`.
    fn new(tunnel: TunnelConfig, queue: Option<&QueueConfig>, impair: ImpairConfig) -> Self {
        let mut fabric = Fabric::new(1);
        let (a, b) = (fabric.add_host(), fabric.add_host());
        let (from, to) = (fabric.add_port(a, "h1-eth0", 0, [0; 6]), fabric.add_port(b, "h2-eth0", 0, [0; 6]));
        let config = DirectionConfig {
            rate_bps: Some("100 Mbit".parse().unwrap()),
            delay_ps: Duration::from_ms(1),
            tunnel: Some(tunnel),
            impair,
            ..DirectionConfig::default()
        };
        fabric.join((from, config.clone(), queue), (to, config, None), 9000).unwrap();
        Self { fabric, hosts: Hosts::default(), from, to }
    }

    fn plain(tunnel: TunnelConfig) -> Self {
        Self::new(tunnel, None, ImpairConfig::default())
    }

    fn send(&mut self, frames: impl IntoIterator<Item = Frame>) {
        self.hosts.to_send.entry(self.from).or_default().extend(frames);
        while self.fabric.readable(self.from, &mut self.hosts) {}
    }

    fn finish(&mut self) {
        self.fabric.advance(LATER, &mut self.hosts);
    }
}

fn frame(length: usize) -> Frame {
    let mut bytes = vec![0; length];
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    Frame::new(bytes)
}

/// A super-segment of TCP over IPv4 that stands for frames of 1514 bytes.
fn train(payload: usize) -> Frame {
    let mut bytes = vec![0; 54 + payload];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&u16::try_from(40 + payload).unwrap().to_be_bytes());
    bytes[23] = 6;
    bytes[46] = 0x50;
    let offload = Offload::of_headers(&bytes, Segmentation::Tcp4, 1460, false);
    Frame { bytes, offload, checksum: Checksum::Partial { start: 34, offset: 16 }, ..Frame::default() }
}

const fn ps(microseconds_x100: u64) -> u64 {
    microseconds_x100 * 10_000
}

#[test]
fn a_frame_is_there_when_the_last_fragment_is() {
    let mut bench = Bench::plain(GRE);
    bench.send([frame(1514)]);
    bench.finish();
    // 8 + 1514 bytes in the IP payload: fragments of 1480 and 42. On the wire 34 + 1480 + 24 and 34 + 42 + 24, 1638
    // in all; the last gap of 12 does not count: 1626 * 8 bit / 100 Mbit/s = 130.08 us, and 1 ms of delay.
    let [(at, arrived)] = &bench.hosts.arrived[..] else { panic!("{:?}", bench.hosts.arrived) };
    assert_eq!((at.as_ps(), arrived.length()), (ps(100_000 + 13_008), 1514));
    let counters = bench.fabric.counters(bench.from).sent;
    assert_eq!((counters.frames, counters.link_bytes, counters.wire_bytes), (1, 1514, 1638));
    let received = bench.fabric.counters(bench.to);
    assert_eq!((received.received_frames, received.received_bytes), (1, 1514));
}

#[test]
fn a_frame_that_fits_goes_in_one_packet_and_the_shortest_is_not_padded() {
    let mut bench = Bench::plain(TunnelConfig::Vxlan { vni: 42, mtu: 1500, fragment: true });
    bench.send([frame(60), frame(1464)]);
    bench.finish();
    // 34 + 16 + 60 + 24 = 134 on the wire; 34 + 16 + 1464 + 24 = 1538, the underlay's longest.
    let times: Vec<u64> = bench.hosts.arrived.iter().map(|(at, _)| at.as_ps() - ps(100_000)).collect();
    assert_eq!(times, [ps(976), ps(1072 + 12_208)]);
}

#[test]
fn frames_follow_each_other_at_the_wires_rate_over_many_fragments() {
    let mut bench = Bench::plain(GRE);
    bench.send((0..100).map(|_| frame(8013)));
    bench.finish();
    // 8021 bytes: five fragments of 1480 and one of 621: 5 * 1538 + 679 = 8369 bytes, 669.52 us a frame.
    let times: Vec<u64> = bench.hosts.arrived.iter().map(|(at, _)| at.as_ps()).collect();
    assert_eq!(times.len(), 100);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == ps(66_952)));
}

#[test]
fn a_train_is_cut_into_its_frames_before_each_is_carried() {
    let mut bench = Bench::plain(GRE);
    bench.send([train(10 * 1460 - 500)]);
    bench.finish();
    assert_eq!(bench.hosts.arrived.len(), 10);
    assert!(bench.hosts.arrived.iter().all(|(_, frame)| frame.offload.is_none()));
    // The last of 1014 bytes goes whole: 34 + 8 + 1014 + 24.
    let counters = bench.fabric.counters(bench.from).sent;
    assert_eq!((counters.frames, counters.wire_bytes), (10, 9 * 1638 + 1080));
    assert_eq!(counters.link_bytes, 9 * 1514 + 1014);
}

#[test]
fn what_may_not_be_cut_is_dropped_and_counted_by_its_reason() {
    let mut bench = Bench::plain(TunnelConfig::Gre { key: Some(5), checksum: false, mtu: 1500, fragment: false });
    bench.send([frame(1473), frame(1472), frame(9014), frame(9030)]);
    bench.finish();
    assert_eq!(bench.hosts.arrived.len(), 1);
    let counters = bench.fabric.counters(bench.from).sent;
    assert_eq!((counters.dropped_unfragmentable, counters.dropped_oversize, counters.dropped()), (2, 1, 3));
}

#[test]
fn a_queue_counts_outer_frames_and_a_frame_is_lost_once() {
    let queue = QueueConfig::Fifo { limit_frames: Some(4), limit_bytes: None };
    let mut bench = Bench::new(GRE, Some(&queue), ImpairConfig::default());
    bench.send((0..4).map(|_| frame(1514)));
    // On the serialiser: the first fragment. Waiting: its other half, the second frame's two and the third's first:
    // the other half of the third, and all of the fourth, find no room.
    let counters = bench.fabric.counters(bench.from);
    assert_eq!((counters.backlog_frames, counters.backlog_bytes), (4, 76 + 1514 + 76 + 1514));
    assert_eq!(counters.sent.dropped_overlimit, 2);
    bench.finish();
    assert_eq!(bench.hosts.arrived.len(), 2);
    let sent = bench.fabric.counters(bench.from).sent;
    // The third's first fragment went over the wire for nothing.
    assert_eq!((sent.frames, sent.wire_bytes), (2, 2 * 1638 + 1538));
}

#[test]
fn a_lost_fragment_loses_the_frame() {
    let loss = Some(LossConfig::Bernoulli { probability: 0.1 });
    let mut bench = Bench::new(GRE, None, ImpairConfig { loss, ..ImpairConfig::default() });
    for _ in 0..4000 {
        bench.send([frame(1514)]);
        bench.fabric.advance(bench.fabric.now() + Duration::from_us(200), &mut bench.hosts);
    }
    bench.finish();
    let sent = bench.fabric.counters(bench.from).sent;
    assert_eq!((sent.frames, sent.lost + bench.hosts.arrived.len() as u64), (4000, 4000));
    // Two fragments: 1 - 0.9^2 = 0.19; four standard deviations of 4000 draws are 0.025.
    let share = sent.lost as f64 / 4000.0;
    assert!((share - 0.19).abs() < 0.025, "{share}");
}

#[test]
fn only_a_packet_in_one_piece_arrives_twice() {
    let impair = || ImpairConfig { duplicate: 1.0, ..ImpairConfig::default() };
    for (length, arrivals) in [(500, 2), (1514, 1)] {
        let mut bench = Bench::new(GRE, None, impair());
        bench.send([frame(length)]);
        bench.finish();
        assert_eq!(bench.hosts.arrived.len(), arrivals, "{length} bytes");
        assert_eq!(bench.fabric.counters(bench.from).sent.duplicated, arrivals as u64 - 1);
    }
}

#[test]
fn a_turned_bit_is_in_the_frame_or_keeps_it_from_its_receiver() {
    let mut bench = Bench::new(GRE, None, ImpairConfig { corrupt: 1.0, ..ImpairConfig::default() });
    for _ in 0..500 {
        bench.send([frame(100)]);
        bench.fabric.advance(bench.fabric.now() + Duration::from_us(200), &mut bench.hosts);
    }
    bench.finish();
    let turned = |frame: &Frame| frame.bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
    let sound = turned(&frame(100));
    assert!(bench.hosts.arrived.iter().all(|(_, frame)| turned(frame).abs_diff(sound) == 1));
    let sent = bench.fabric.counters(bench.from).sent;
    assert_eq!((sent.corrupted, sent.lost + bench.hosts.arrived.len() as u64), (500, 500));
    // 42 of 142 bytes are headers of the tunnel: 0.296, four standard deviations 0.08.
    assert!((sent.lost as f64 / 500.0 - 0.296).abs() < 0.08, "{}", sent.lost);
}

#[test]
fn a_capture_at_the_port_shows_the_frame_when_the_last_of_it_has_left() {
    let mut bench = Bench::plain(GRE);
    bench.fabric.set_capture(bench.from, true);
    bench.fabric.set_capture(bench.to, true);
    bench.send([frame(1514)]);
    bench.finish();
    let left = Time::from_ps(ps(13_008));
    let arrived = left + Duration::from_ms(1);
    assert_eq!(bench.hosts.captured, [(Way::Out, left, 1514), (Way::In, arrived, 1514)]);
}

#[test]
fn a_link_that_goes_down_loses_each_frame_once() {
    let mut bench = Bench::plain(GRE);
    bench.send((0..5).map(|_| frame(1514)));
    bench.fabric.advance(Time::from_ns(150_000), &mut bench.hosts);
    let down = DirectionChange { up: Some(false), ..DirectionChange::default() };
    bench.fabric.change(bench.from, down, &mut bench.hosts).unwrap();
    bench.finish();
    // The first has left and is on its way, the second on the serialiser; the other three are in the interface still.
    assert_eq!((bench.hosts.arrived.len(), bench.fabric.counters(bench.from).sent.dropped_down), (0, 2));
}

#[test]
fn a_change_of_the_rate_leaves_the_tunnel_as_it_is() {
    let mut bench = Bench::plain(GRE);
    let faster = DirectionConfig { rate_bps: Some("1 Gbit".parse().unwrap()), ..DirectionConfig::default() };
    bench
        .fabric
        .change(bench.from, DirectionChange { config: Some(faster), ..DirectionChange::default() }, &mut bench.hosts)
        .unwrap();
    bench.send([frame(1514)]);
    bench.finish();
    assert_eq!(bench.hosts.arrived[0].0.as_ps(), ps(1_301) - 2_000);
    assert_eq!(bench.fabric.counters(bench.from).sent.wire_bytes, 1638);
}
