//! A network moved by several fabrics, each a part of it: what it does is what one fabric does with the whole.

use std::collections::{BTreeMap, HashMap, VecDeque};

use proptest::prelude::*;
use twinnet_fabric::{catch_up, DirectionChange, DirectionConfig, Fabric, NodeId, PortCounters, PortId, Way, World};
use twinnet_impair::{ImpairConfig, LossConfig};
use twinnet_packet::Frame;
use twinnet_switch::{FailMode, Switch, SwitchConfig};
use twinnet_units::{Duration, Rate, Time};

const SWITCHES: usize = 4;
/// The delay of the links between switches. Fabrics that look at the clock more often than that hear of every frame
/// before it is due.
const TRUNK_DELAY: Duration = Duration::from_us(100);
const STEP: Duration = Duration::from_us(40);
const TRUNK_BPS: u64 = 100_000_000;
const BYTES: usize = 1000;
const MTU: u64 = 1500;

/// The frames that a fabric's surroundings saw.
#[derive(Default)]
struct Hosts {
    on_the_wall: Option<Time>,
    to_send: HashMap<PortId, VecDeque<Frame>>,
    arrived: Vec<(Time, PortId, Vec<u8>)>,
    captured: Vec<(PortId, bool, Time)>,
    /// The times that the clock showed as frames of this port came in.
    seen: Vec<(PortId, Time)>,
    crossing: Vec<(PortId, Box<Frame>, Time)>,
}

impl World for Hosts {
    fn deliver(&mut self, port: PortId, frame: Box<Frame>, due: Time) {
        self.arrived.push((due, port, frame.bytes.to_vec()));
    }
    fn pull(&mut self, port: PortId) -> Option<Box<Frame>> {
        self.to_send.get_mut(&port)?.pop_front().map(Box::new)
    }
    fn captured(&mut self, port: PortId, way: Way, _frame: &Frame, at: Time) {
        self.captured.push((port, way == Way::In, at));
        if let (Way::In, Some(now)) = (way, self.on_the_wall) {
            self.seen.push((port, now));
        }
    }
    fn carrier(&mut self, _port: PortId, _up: bool) {}
    fn reconfigured(&mut self, _port: PortId, _config: &DirectionConfig) {}
    fn wall(&mut self) -> Option<Time> {
        self.on_the_wall
    }
    fn is_on_the_wall_clock(&self) -> bool {
        self.on_the_wall.is_some()
    }
    fn cross(&mut self, port: PortId, frame: Box<Frame>, arrival: Time) {
        self.crossing.push((port, frame, arrival));
    }
}

/// Switches in a row with a host each, in as many fabrics as there are parts.
struct Net {
    fabrics: Vec<(Fabric, Hosts)>,
    part_of_switch: Vec<usize>,
    /// By switch: its host's port.
    hosts: Vec<PortId>,
    /// By link between switches: the ports at both ends.
    trunks: Vec<(PortId, PortId)>,
    messages: usize,
    late: usize,
}

impl Net {
    fn new(part_of_switch: &[usize], trunk: &DirectionConfig) -> Self {
        let parts = part_of_switch.iter().max().unwrap() + 1;
        let mut net = Self {
            fabrics: Vec::new(),
            part_of_switch: part_of_switch.to_vec(),
            hosts: Vec::new(),
            trunks: Vec::new(),
            messages: 0,
            late: 0,
        };
        for part in 0..parts {
            let mut fabric = Fabric::new(7);
            let (hosts, trunks, part_of) = build(&mut fabric, part_of_switch, trunk);
            let leading_away = fabric.keep_part(|node| part_of[&node] == part);
            assert_eq!(leading_away.is_empty(), parts == 1);
            for (a, b) in &trunks {
                fabric.set_capture(*a, true);
                fabric.set_capture(*b, true);
            }
            (net.hosts, net.trunks) = (hosts, trunks);
            net.fabrics.push((fabric, Hosts::default()));
        }
        net
    }

    /// Lets time pass for all of them, and hands over what crosses.
    fn pass(&mut self, until: Time) {
        let mut now = self.fabrics[0].0.now();
        while now < until {
            now = (now + STEP).min(until);
            for (fabric, hosts) in &mut self.fabrics {
                fabric.advance(now, hosts);
            }
            self.exchange();
        }
    }

    fn exchange(&mut self) {
        for from in 0..self.fabrics.len() {
            for (port, frame, arrival) in std::mem::take(&mut self.fabrics[from].1.crossing) {
                let to = self.far_part(port);
                assert_ne!(to, from);
                self.messages += 1;
                let late = self.fabrics[to].0.take_crossing(port, frame, arrival);
                self.late += usize::from(late > Duration::ZERO);
            }
        }
    }

    /// The part at the far end of a trunk's line.
    fn far_part(&self, port: PortId) -> usize {
        let ends = self
            .trunks
            .iter()
            .enumerate()
            .find_map(|(left, (a, b))| (*a == port).then_some(left + 1).or_else(|| (*b == port).then_some(left)));
        self.part_of_switch[ends.unwrap()]
    }

    fn send(&mut self, from: usize, frame: Frame) {
        let (fabric, hosts) = &mut self.fabrics[self.part_of_switch[from]];
        hosts.to_send.entry(self.hosts[from]).or_default().push_back(frame);
        while fabric.readable(self.hosts[from], hosts) {}
        self.exchange();
    }

    /// Changes both directions of a trunk, in all fabrics.
    fn set_up(&mut self, trunk: usize, up: bool) {
        let (a, b) = self.trunks[trunk];
        for (fabric, hosts) in &mut self.fabrics {
            for port in [a, b] {
                fabric.change(port, DirectionChange { up: Some(up), ..DirectionChange::default() }, hosts).unwrap();
            }
        }
    }

    fn arrived(&self) -> Vec<(Time, PortId, Vec<u8>)> {
        let mut all: Vec<_> = self.fabrics.iter().flat_map(|(_, hosts)| hosts.arrived.clone()).collect();
        all.sort();
        all
    }

    fn captured(&self) -> Vec<(PortId, bool, Time)> {
        let mut all: Vec<_> = self.fabrics.iter().flat_map(|(_, hosts)| hosts.captured.clone()).collect();
        all.sort();
        all
    }

    fn counters(&self, port: PortId) -> PortCounters {
        let each = self.fabrics.iter().map(|(fabric, _)| fabric.counters(port));
        each.fold(PortCounters::default(), |sum, counters| sum.plus(&counters))
    }
}

type Built = (Vec<PortId>, Vec<(PortId, PortId)>, BTreeMap<NodeId, usize>);

fn build(fabric: &mut Fabric, part_of_switch: &[usize], trunk: &DirectionConfig) -> Built {
    let (mut hosts, mut trunks, mut part_of, mut left) = (Vec::new(), Vec::new(), BTreeMap::new(), None);
    for (number, part) in part_of_switch.iter().enumerate() {
        let switch = SwitchConfig { dpid: number as u64 + 1, fail_mode: FailMode::Standalone, seed: 1 };
        let switch = fabric.add_switch(Switch::new(switch), Duration::ZERO);
        let host = fabric.add_host();
        part_of.extend([(switch, *part), (host, *part)]);
        let port = |fabric: &mut Fabric, at: u32| {
            fabric.add_port(switch, &format!("s{number}-eth{at}"), at, [2, 0, 0, 0, number as u8, at as u8])
        };
        let [access, west, east] = [1, 2, 3].map(|at| port(fabric, at));
        let interface = fabric.add_port(host, &format!("h{number}-eth0"), 0, [0; 6]);
        let quick = DirectionConfig { rate_bps: Some(Rate::from_bps(1_000_000_000).unwrap()), ..Default::default() };
        fabric.join((interface, quick.clone(), None), (access, quick, None), MTU).unwrap();
        hosts.push(interface);
        if let Some(before) = left.replace(east) {
            fabric.join((before, trunk.clone(), None), (west, trunk.clone(), None), MTU).unwrap();
            trunks.push((before, west));
        }
    }
    (hosts, trunks, part_of)
}

fn trunk() -> DirectionConfig {
    DirectionConfig {
        rate_bps: Some(Rate::from_bps(TRUNK_BPS).unwrap()),
        delay_ps: TRUNK_DELAY,
        ..DirectionConfig::default()
    }
}

/// A frame from one host to another, with a number.
fn frame(from: usize, to: usize, number: u32) -> Frame {
    let mut bytes = vec![0; BYTES];
    bytes[..6].copy_from_slice(&[2, 1, 0, 0, 0, to as u8]);
    bytes[6..12].copy_from_slice(&[2, 1, 0, 0, 0, from as u8]);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes[14..18].copy_from_slice(&number.to_be_bytes());
    Frame::new(bytes)
}

/// An event of a test: after so many microseconds a host sends some frames to another, or a trunk goes down or up.
#[derive(Clone, Debug)]
enum Step {
    Send { after_us: u64, from: usize, to: usize, frames: u32 },
    Trunk { after_us: u64, trunk: usize, up: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let hosts = (0..SWITCHES, 1..SWITCHES).prop_map(|(from, away)| (from, (from + away) % SWITCHES));
    prop_oneof![
        6 => (0..400_u64, hosts, 1..6_u32)
            .prop_map(|(after_us, (from, to), frames)| Step::Send { after_us, from, to, frames }),
        1 => (0..400_u64, 0..SWITCHES - 1, any::<bool>())
            .prop_map(|(after_us, trunk, up)| Step::Trunk { after_us, trunk, up }),
    ]
}

fn play(net: &mut Net, steps: &[Step]) -> u32 {
    let (mut now, mut sent) = (Time::ZERO, 0);
    for step in steps {
        let (Step::Send { after_us, .. } | Step::Trunk { after_us, .. }) = step;
        now += Duration::from_us(*after_us);
        net.pass(now);
        match step {
            Step::Send { from, to, frames, .. } => {
                for _ in 0..*frames {
                    net.send(*from, frame(*from, *to, sent));
                    sent += 1;
                }
            }
            Step::Trunk { trunk, up, .. } => net.set_up(*trunk, *up),
        }
    }
    net.pass(now + Duration::from_ms(50));
    sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_do_what_the_whole_does_to_the_picosecond(
        steps in prop::collection::vec(step(), 1..40), loss in prop_oneof![Just(0.0), Just(0.1)],
        parts in prop_oneof![Just([0, 0, 1, 1]), Just([0, 1, 2, 3]), Just([0, 1, 0, 1])],
    ) {
        let loss = (loss > 0.0).then_some(LossConfig::Bernoulli { probability: loss });
        let impair = ImpairConfig { loss, ..Default::default() };
        let config = DirectionConfig { impair, ..trunk() };
        let (mut whole, mut divided) = (Net::new(&[0; SWITCHES], &config), Net::new(&parts, &config));
        play(&mut whole, &steps);
        play(&mut divided, &steps);
        prop_assert_eq!(divided.late, 0);
        prop_assert_eq!(whole.arrived(), divided.arrived());
        prop_assert_eq!(whole.captured(), divided.captured());
        for port in (0..2 * SWITCHES as u32 + 2 * SWITCHES as u32).map(PortId) {
            prop_assert_eq!(whole.counters(port), divided.counters(port), "port {}", port.0);
        }
    }

    /// Two fabrics with a clock each that is late at random, as loops are whose threads others keep from their
    /// processors.
    #[test]
    fn a_cut_line_keeps_its_envelope_its_order_and_all_its_frames_however_late_its_ends_are(
        lateness_us in prop::collection::vec((prop_oneof![9 => 1..60_u64, 1 => 200..5000_u64], any::<bool>()), 400)
    ) {
        let mut net = Net::new(&[0, 1], &trunk());
        let (sender, receiver) = net.trunks[0];
        let frames = 200;
        for number in 0..frames {
            net.fabrics[0].1.to_send.entry(net.hosts[0]).or_default().push_back(frame(0, 1, number));
        }
        let mut now = Time::ZERO;
        let look = |net: &mut Net, part: usize, now: Time| {
            let access = net.hosts[part];
            let (fabric, hosts) = &mut net.fabrics[part];
            hosts.on_the_wall = Some(now);
            while fabric.advance_some(now, 64, hosts) {}
            while fabric.readable(access, hosts) {}
            while fabric.advance_some(now, 64, hosts) {}
            net.exchange();
        };
        for (step, first) in lateness_us {
            now += Duration::from_us(step);
            // One of both is late by more than the other.
            look(&mut net, usize::from(!first), now);
        }
        for _ in 0..4000 {
            now += Duration::from_us(20);
            look(&mut net, 0, now);
            look(&mut net, 1, now);
        }
        let sent = net.counters(sender).sent;
        prop_assert_eq!((sent.frames, sent.dropped()), (u64::from(frames), 0));
        prop_assert_eq!(net.counters(receiver).received_frames, u64::from(frames));
        let numbers: Vec<u32> =
            net.fabrics[1].1.arrived.iter().map(|(.., bytes)| sequence(bytes)).collect();
        prop_assert_eq!(numbers, (0..frames).collect::<Vec<_>>());
        // No window of the line carries more than its rate, one frame, and what its far end may catch up with.
        let seen: Vec<Time> =
            net.fabrics[1].1.seen.iter().filter(|(port, _)| *port == receiver).map(|(_, at)| *at).collect();
        let rate = Rate::from_bps(TRUNK_BPS).unwrap();
        let wire = rate.serialise(BYTES as u64 + 24);
        let bound = catch_up(rate.serialise(MTU + 14 + 24));
        for (first, begin) in seen.iter().enumerate() {
            for (last, end) in seen.iter().enumerate().skip(first + 1).take(50) {
                let carried = wire.as_ps() as f64 * (last - first) as f64;
                // It regains a thousandth of its rate.
                let allowed = (*end - *begin).as_ps() as f64 * 1.001 + wire.as_ps() as f64 + bound.as_ps() as f64;
                prop_assert!(carried <= allowed, "{} frames in {}", last - first + 1, *end - *begin);
            }
        }
    }
}

#[test]
fn what_is_on_a_cut_line_that_goes_down_is_lost_and_counted() {
    let mut net = Net::new(&[0, 1], &trunk());
    for number in 0..5 {
        net.send(0, frame(0, 1, number));
    }
    // The first frame is on the wire, and others wait.
    net.pass(Time::ZERO + Duration::from_us(120));
    net.set_up(0, false);
    net.pass(Time::ZERO + Duration::from_ms(5));
    let (sender, receiver) = net.trunks[0];
    let (sent, received) = (net.counters(sender).sent, net.counters(receiver).received_frames);
    assert_eq!(sent.dropped_down + received, 5, "{sent:?}");
    assert!(sent.dropped_down > 0);
    net.set_up(0, true);
    net.send(0, frame(0, 1, 9));
    net.pass(Time::ZERO + Duration::from_ms(10));
    assert_eq!(net.counters(receiver).received_frames, received + 1);
}

#[test]
fn each_frame_on_a_cut_link_is_one_message_and_no_other_is_any() {
    let mut net = Net::new(&[0, 0, 1, 1], &trunk());
    // First frames are flooded, and all switches learn where their senders are.
    for (position, host) in [0, 3, 1].into_iter().enumerate() {
        net.send(host, frame(host, (host + 1) % SWITCHES, 0));
        net.pass(Time::ZERO + Duration::from_ms(3 * (position as u64 + 1)));
    }
    let before = net.messages;
    for number in 0..10 {
        net.send(0, frame(0, 3, number));
        net.send(0, frame(0, 1, number));
    }
    net.pass(Time::ZERO + Duration::from_ms(20));
    assert_eq!((net.messages - before, net.late), (10, 0));
}

/// The number that a frame carries behind its Ethernet header.
fn sequence(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[14..18].try_into().unwrap())
}
