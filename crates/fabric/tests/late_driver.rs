//! Lines whose driver comes late: the envelope, the long-run rate and the order of frames, and what it costs whom.
//!
//! The fabric is driven as the loop on the wall clock does it: time passes by steps of random length, most of them
//! a few microseconds and some of milliseconds, and each step tells the fabric the wall clock.

use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;
use twinnet_fabric::{catch_up, DirectionConfig, Fabric, LineRecord, PortId, Way, World};
use twinnet_packet::Frame;
use twinnet_switch::{FailMode, Switch, SwitchConfig};
use twinnet_units::{Duration, Rate, Time};

/// Bytes of a frame, and what it takes on the wire with Ethernet's framing.
const BYTES: usize = 1000;
const WIRE_BYTES: u64 = 1024;
/// The MTU of all links; its full frame is what the bound of lateness follows from.
const MTU: u64 = 1500;

/// A world with a wall clock. Hosts have what a test gave them, and record when the clock showed what when a frame
/// came.
#[derive(Default)]
struct Hosts {
    wall: Time,
    to_send: HashMap<PortId, VecDeque<u32>>,
    /// By port: the clock at each frame's hand-over, and the frame's number.
    arrived: HashMap<PortId, Vec<(Time, u32)>>,
    greatest_lateness: Duration,
}

impl World for Hosts {
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, due: Time) {
        assert!(due <= self.wall, "a frame was handed over before it was due");
        self.greatest_lateness = self.greatest_lateness.max(self.wall - due);
        self.arrived.entry(port).or_default().push((self.wall, number(&frame)));
    }
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        self.to_send.get_mut(&port)?.pop_front().map(|number| Box::new(frame(number)))
    }
    fn captured(&mut self, port: PortId, way: Way, frame: &Frame, _at: Time) {
        assert_eq!(way, Way::In);
        self.arrived.entry(port).or_default().push((self.wall, number(frame)));
    }
    fn carrier(&mut self, _port: PortId, _up: bool) {}
    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
    fn wall(&mut self) -> Option<Time> {
        Some(self.wall)
    }
    fn is_on_the_wall_clock(&self) -> bool {
        true
    }
}

/// A broadcast frame that carries `number`.
fn frame(number: u32) -> Frame {
    let mut bytes = vec![0; BYTES];
    bytes[..6].copy_from_slice(&[0xff; 6]);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes[14..18].copy_from_slice(&number.to_be_bytes());
    Frame::new(bytes)
}

fn number(frame: &Frame) -> u32 {
    u32::from_be_bytes([frame.bytes[14], frame.bytes[15], frame.bytes[16], frame.bytes[17]])
}

/// Two hosts and a switch: from h1 over a line of its own interface, and from a queue at the switch to h2.
struct Net {
    fabric: Fabric,
    hosts: Hosts,
    source: PortId,
    /// The switch's port that h1's line leads to.
    middle: PortId,
    /// The switch's port whose line leads to h2.
    bottleneck: PortId,
    sink: PortId,
}

impl Net {
    fn new(first: DirectionConfig, second: DirectionConfig) -> Self {
        let mut fabric = Fabric::new(1);
        let (h1, h2) = (fabric.add_host(), fabric.add_host());
        let switch = Switch::new(SwitchConfig { dpid: 1, fail_mode: FailMode::Standalone, seed: 1 });
        let switch = fabric.add_switch(switch, Duration::ZERO);
        let source = fabric.add_port(h1, "h1-eth0", 0, [0; 6]);
        let sink = fabric.add_port(h2, "h2-eth0", 0, [0; 6]);
        let middle = fabric.add_port(switch, "s1-eth1", 1, [2, 0, 0, 0, 0, 11]);
        let bottleneck = fabric.add_port(switch, "s1-eth2", 2, [2, 0, 0, 0, 0, 12]);
        fabric.join((source, first.clone(), None), (middle, first, None), MTU).unwrap();
        fabric.join((bottleneck, second.clone(), None), (sink, second, None), MTU).unwrap();
        fabric.set_capture(middle, true);
        Self { fabric, hosts: Hosts::default(), source, middle, bottleneck, sink }
    }

    /// Lets the wall clock go on by `step` and looks at everything, as the loop does.
    fn turn(&mut self, step: Duration) {
        self.hosts.wall += step;
        while self.fabric.advance_some(self.hosts.wall, 64, &mut self.hosts) {}
        while self.fabric.readable(self.source, &mut self.hosts) {}
        while self.fabric.advance_some(self.hosts.wall, 64, &mut self.hosts) {}
    }

    fn give(&mut self, numbers: impl IntoIterator<Item = u32>) {
        self.hosts.to_send.entry(self.source).or_default().extend(numbers);
    }

    fn record(&self, port: PortId) -> LineRecord {
        self.fabric.line_record(port).unwrap_or_default()
    }
}

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).unwrap()
}

fn line(bps: u64, delay: Duration) -> DirectionConfig {
    DirectionConfig { rate_bps: Some(rate(bps)), delay_ps: delay, ..DirectionConfig::default() }
}

fn bound(bps: u64) -> Duration {
    catch_up(rate(bps).serialise(MTU + 14 + 24))
}

/// The most frames by which a window between two hand-overs exceeds what a line of `bps` may carry in it: its
/// length plus the bound of lateness, by a rate that is a thousandth higher while something is regained, beyond the
/// frame that opens the window. At most 0 when the promise is kept.
fn excess(times: &[(Time, u32)], bps: u64) -> f64 {
    let each = rate(bps).serialise(WIRE_BYTES).as_secs_f64();
    // Of a line at time t: frames so far less what the rate has allowed so far. The worst window ends where this is
    // highest above its lowest before.
    let mut lowest = f64::INFINITY;
    let mut worst = f64::NEG_INFINITY;
    for (position, (time, _)) in times.iter().enumerate() {
        let allowed = time.as_secs_f64() / 0.999 / each;
        let carried = f64::from(u32::try_from(position).unwrap()) - allowed;
        worst = worst.max(carried - lowest);
        lowest = lowest.min(carried);
    }
    worst - bound(bps).as_secs_f64() / 0.999 / each
}

fn step() -> impl Strategy<Value = Duration> {
    prop_oneof![
        60 => (100_u64..20_000).prop_map(Duration::from_ns),
        10 => (20_000_u64..500_000).prop_map(Duration::from_ns),
        1 => (500_000_u64..20_000_000).prop_map(Duration::from_ns),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_window_of_any_line_carries_more_than_its_rate_and_the_order_is_kept(
        steps in prop::collection::vec(step(), 500..3000),
        first in prop::sample::select(vec![10_000_000_u64, 100_000_000, 1_000_000_000]),
        second in prop::sample::select(vec![10_000_000_u64, 100_000_000, 1_000_000_000]),
        delay_us in prop::sample::select(vec![0_u64, 50, 3000]),
        busy in any::<bool>(),
    ) {
        let delay = Duration::from_us(delay_us);
        let mut net = Net::new(line(first, delay), line(second, delay));
        let mut sent = 0;
        for (turn, step) in steps.iter().enumerate() {
            // Busy: the interface is never empty. Otherwise bursts of three with pauses between them.
            let more = if busy { 40 } else if turn % 7 == 0 { 3 } else { 0 };
            let waiting = net.hosts.to_send.get(&net.source).map_or(0, VecDeque::len);
            if waiting < 40 {
                net.give(sent..sent + more);
                sent += more;
            }
            net.turn(*step);
        }
        for (port, bps) in [(net.middle, first), (net.sink, second)] {
            let arrived = net.hosts.arrived.get(&port).cloned().unwrap_or_default();
            prop_assert!(excess(&arrived, bps) <= 1e-6, "{} frames too many at {bps} bit/s", excess(&arrived, bps));
            prop_assert!(arrived.windows(2).all(|pair| pair[0].1 < pair[1].1), "the order changed");
        }
    }

    #[test]
    fn the_long_run_rate_of_a_busy_line_is_low_by_what_it_lost_and_did_not_regain(
        steps in prop::collection::vec(step(), 2000..4000),
        bps in prop::sample::select(vec![10_000_000_u64, 100_000_000, 1_000_000_000]),
    ) {
        let mut net = Net::new(line(bps, Duration::ZERO), line(1_000_000_000, Duration::ZERO));
        let mut sent = 0;
        for step in std::iter::once(&Duration::from_ns(1)).chain(&steps) {
            let waiting = net.hosts.to_send.get(&net.source).map_or(0, VecDeque::len);
            // More than the line takes in the longest step, so that it never runs dry.
            let more = 4000_u32.saturating_sub(u32::try_from(waiting).unwrap());
            net.give(sent..sent + more);
            sent += more;
            net.turn(*step);
        }
        let record = net.record(net.source);
        let elapsed = net.hosts.wall.as_secs_f64();
        let missing = record.lost.as_secs_f64() - record.regained.as_secs_f64();
        let each = rate(bps).serialise(WIRE_BYTES).as_secs_f64();
        let expected = (elapsed - missing) / each;
        let carried = net.hosts.arrived.get(&net.middle).map_or(0, Vec::len) as f64;
        // The frame on the line, one that is counted at its start and not at its end, and what the last turn may
        // still catch up with.
        let slack = 2.0 + bound(bps).as_secs_f64() / each;
        prop_assert!((carried - expected).abs() <= slack, "{carried} of {expected}, slack {slack}, {record:?}");
    }
}

#[test]
fn a_stall_costs_the_busy_line_its_lateness_and_the_idle_one_nothing() {
    let mut net = Net::new(line(1_000_000_000, Duration::ZERO), line(100_000_000, Duration::ZERO));
    net.give(0..2000);
    for _ in 0..2000 {
        net.turn(Duration::from_us(10));
    }
    let before = net.record(net.bottleneck);
    assert_eq!(before.lost, Duration::ZERO, "{before:?}");
    net.turn(Duration::from_ms(5));
    for _ in 0..100 {
        net.turn(Duration::from_us(10));
    }
    let (busy, idle) = (net.record(net.bottleneck), net.record(net.source));
    let expected = Duration::from_ms(5).saturating_sub(bound(100_000_000));
    // The frame that was on the line was not late from the stall's first moment on, but from its own.
    let frame = rate(100_000_000).serialise(WIRE_BYTES);
    assert!(busy.lost <= expected + Duration::from_us(10) && busy.lost + frame >= expected, "{busy:?}");
    assert_eq!(idle.lost, Duration::ZERO, "the first line had nothing to send: {idle:?}");
}

#[test]
fn events_of_many_lines_at_one_moment_cost_none_of_them_anything() {
    // Each turn comes 300 us late: too late for a line of 100 Mbit/s, and not for one of 10.
    let mut net = Net::new(line(10_000_000, Duration::ZERO), line(10_000_000, Duration::ZERO));
    net.give(0..1000);
    for _ in 0..2000 {
        net.turn(Duration::from_us(300));
    }
    assert_eq!(net.record(net.source).lost, Duration::ZERO);
    assert_eq!(net.record(net.bottleneck).lost, Duration::ZERO);
    let carried = net.hosts.arrived[&net.sink].len();
    let ideal = Duration::from_ms(600).as_secs_f64() / rate(10_000_000).serialise(WIRE_BYTES).as_secs_f64();
    assert!((carried as f64 - ideal).abs() <= 3.0, "{carried} of {ideal}");
}

#[test]
fn a_lone_frame_that_the_stall_held_up_is_late_and_nothing_is_lost() {
    let mut net = Net::new(line(100_000_000, Duration::from_us(100)), line(100_000_000, Duration::from_us(100)));
    net.give([1]);
    net.turn(Duration::from_us(1));
    net.turn(Duration::from_ms(30));
    for _ in 0..100 {
        net.turn(Duration::from_us(10));
    }
    assert_eq!(net.hosts.arrived[&net.sink].len(), 1);
    assert!(net.record(net.source).latest >= Duration::from_ms(29));
    assert_eq!(net.record(net.source).lost + net.record(net.bottleneck).lost, Duration::ZERO);
    // The second line was given the frame when the first could hand it over, and was on time itself.
    assert_eq!(net.record(net.bottleneck).times_late, 0);
}

#[test]
fn a_driver_who_is_always_late_goes_on_within_the_envelope() {
    // Each time the fabric handles four events the clock goes on by 100 us: more than lines of 100 Mbit/s can catch
    // up with.
    let bps = 100_000_000;
    let mut net = Net::new(line(bps, Duration::ZERO), line(bps, Duration::ZERO));
    net.give(0..100_000);
    for _ in 0..20_000 {
        net.hosts.wall += Duration::from_us(100);
        net.fabric.advance_some(net.hosts.wall, 4, &mut net.hosts);
        net.fabric.readable(net.source, &mut net.hosts);
    }
    let arrived = &net.hosts.arrived[&net.sink];
    // A frame takes a departure and an arrival on each of two lines, each moved once at most, with a look at the
    // interface between them: three turns of four.
    assert!(arrived.len() > 6_000, "{} frames in 20,000 turns", arrived.len());
    assert!(excess(arrived, bps) <= 1e-6, "{} frames too many", excess(arrived, bps));
}

#[test]
fn what_a_controller_says_while_the_driver_stands_still_takes_the_whole_way_all_the_same() {
    let ms = |number: u64| Time::from_ns(number * 1_000_000);
    let mut fabric = Fabric::new(1);
    let mut hosts = Hosts::default();
    let switch = Switch::new(SwitchConfig { dpid: 1, fail_mode: FailMode::Secure, seed: 1 });
    let node = fabric.add_switch(switch, Duration::ZERO);
    fabric.set_control_delay(node, "150 ms".parse().unwrap());
    fabric.add_agent(node, &[4]);
    fabric.controller_opened(node, 7, twinnet_switch::control::Peer::Controller);
    // The fabric's time is 0 while another program has its processor for 100 ms: a hello and an echo are read then.
    let (hello, echo) = ([4, 0, 0, 8, 0, 0, 0, 1], [4, 2, 0, 8, 0, 0, 0, 2]);
    hosts.wall = ms(100);
    fabric.controller_said(node, 7, &[hello, echo].concat(), &mut hosts);
    let mut answered = None;
    for now in 0..1000 {
        fabric.advance(ms(now), &mut hosts);
        let heard = fabric.take_control_output().iter().any(|output| output.bytes.windows(2).any(|two| two == [4, 3]));
        if heard && answered.is_none() {
            answered = Some(now);
        }
    }
    assert_eq!(answered, Some(100 + 2 * 150));
}
