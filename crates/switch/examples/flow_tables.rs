//! Measures how fast flows are installed through the agent, how much memory a flow takes, and what a look-up among ten
//! thousand rules costs beside one among ten. `cargo run --release -p twinnet-switch --example flow_tables`.

use std::time::Instant;

use twinnet_openflow::oxm::{Field, FieldMatch, Match};
use twinnet_openflow::v13::{self, Action, FlowFlags, FlowMod, FlowModCommand, Instruction, Message};
use twinnet_openflow::NO_BUFFER;
use twinnet_packet::Frame;
use twinnet_switch::control::{Agent, Lines, Peer, PortFacts};
use twinnet_switch::{FailMode, Output, Switch, SwitchConfig};
use twinnet_units::Time;

const ROUND: u32 = 100_000;
const ROUNDS: u32 = 10;

struct NoLines;

impl Lines for NoLines {
    fn facts(&self, _port: u32) -> Option<PortFacts> {
        None
    }
}

struct Controlled {
    switch: Switch,
    agent: Agent,
}

impl Controlled {
    fn new() -> Self {
        let mut switch = Switch::new(SwitchConfig { dpid: 1, fail_mode: FailMode::Secure, seed: 1 });
        for number in 1..=4 {
            switch.add_port(number, &format!("s1-eth{number}"), [2, 0, 0, 0, 0, number as u8]);
        }
        let mut controlled = Self { switch, agent: Agent::new(&[4]) };
        controlled.agent.open(1, Peer::Controller, Time::ZERO);
        controlled.say(&[4, 0, 0, 8, 0, 0, 0, 1]);
        controlled
    }

    fn say(&mut self, bytes: &[u8]) {
        let mut out = Vec::new();
        for piece in bytes.chunks(16 * 1024) {
            self.agent.receive(&mut self.switch, 1, piece, &NoLines, (Time::ZERO, &mut out));
        }
    }

    /// Seconds for the messages and a barrier.
    fn install(&mut self, flows: impl Iterator<Item = FlowMod>) -> f64 {
        let mut bytes = Vec::new();
        for (flow, xid) in flows.zip(2..) {
            Message::FlowMod(flow).encode(xid, &mut bytes).expect("a short message");
        }
        Message::BarrierRequest.encode(1, &mut bytes).expect("a short message");
        self.agent.take_output(twinnet_units::Time::ZERO);
        let begin = Instant::now();
        self.say(&bytes);
        let elapsed = begin.elapsed().as_secs_f64();
        let replies = self.agent.take_output(twinnet_units::Time::ZERO);
        assert_eq!(replies.iter().map(|(_, bytes, _)| bytes.len()).sum::<usize>(), 8, "a barrier reply and no error");
        elapsed
    }
}

fn flow(priority: u16, address: FieldMatch) -> FlowMod {
    FlowMod {
        cookie: 0,
        cookie_mask: 0,
        table_id: 0,
        command: FlowModCommand::Add,
        idle_timeout: 0,
        hard_timeout: 0,
        priority,
        buffer_id: NO_BUFFER,
        out_port: v13::port_number::ANY,
        out_group: v13::group_number::ANY,
        flags: FlowFlags::default(),
        matching: Match::new(vec![FieldMatch::exact(Field::EthType, 0x0800), address]),
        instructions: vec![Instruction::ApplyActions(vec![Action::Output { port: 2, max_len: 0 }])],
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Nanoseconds for a frame of a flow that the cache does not know, with so many rules of four prefix lengths.
fn look_up(rules: u32) -> f64 {
    let mut controlled = Controlled::new();
    controlled.install((0..rules).map(|index| {
        let length = 16 + index % 4 * 4;
        let mask = u128::from(u32::MAX << (32 - length));
        // Distinct prefixes, in four lengths.
        let address = u128::from(0x0a00_0000 + index / 4 * 0x0001_0000 % 0x4000_0000 + index / 4 % 256 * 0x100);
        flow(100 + (index % 7) as u16, FieldMatch::masked(Field::Ipv4Dst, address, mask))
    }));
    let mut bytes = vec![0_u8; 60];
    bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
    bytes[16..18].copy_from_slice(&46_u16.to_be_bytes());
    (bytes[22], bytes[23]) = (64, 17);
    let mut out: Vec<Output> = Vec::new();
    let count = 200_000_u32;
    let begin = Instant::now();
    for index in 0..count {
        bytes[26..30].copy_from_slice(&index.to_be_bytes());
        bytes[30..34].copy_from_slice(&(0x0a00_0000 + index.wrapping_mul(2_654_435_761) % 0x0200_0000).to_be_bytes());
        controlled.switch.receive(1, Box::new(Frame::new(bytes.clone())), Time::ZERO, &mut out);
        out.clear();
    }
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

fn main() {
    let mut controlled = Controlled::new();
    let before = resident_bytes();
    let seconds: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let exact = |index| FieldMatch::exact(Field::Ipv4Dst, u128::from(round * ROUND + index));
            controlled.install((0..ROUND).map(|index| flow(5, exact(index))))
        })
        .collect();
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    println!("{ROUND} flow-mods and a barrier: {:.3} s, the slowest of {ROUNDS} rounds {longest:.3} s", seconds[0]);
    let flows = u64::from(ROUND * ROUNDS);
    println!("{flows} flows: {} bytes each", resident_bytes().saturating_sub(before) / flows);
    let (few, many) = (look_up(10), look_up(10_000));
    println!("uncached frame: {few:.0} ns among 10 rules, {many:.0} ns among 10,000 ({:.2} times)", many / few);
}
