//! Whatever a controller sends: the agent never panics, keeps within bounds, and goes on with others.

use proptest::prelude::*;
use twinnet_openflow::v13;
use twinnet_packet::Frame;

use super::super::{FailMode, SwitchConfig};
use super::*;

/// Messages that os-ken and Open vSwitch wrote, of every type in both versions.
const RECORDED: &str = include_str!("../../../openflow/tests/vectors/os-ken.txt");

/// Bytes that the agent may keep for what it was sent: a flow takes 16 times its message at most, and there are
/// answers.
const MOST_BYTES_OUT: usize = 8 << 20;

struct NoLines;

impl Lines for NoLines {
    fn facts(&self, _port: u32) -> Option<PortFacts> {
        Some(PortFacts::default())
    }
}

fn recorded() -> Vec<Vec<u8>> {
    let hex = RECORDED.lines().filter_map(|line| line.split(' ').nth(2));
    let digits =
        |hex: &str| (0..hex.len()).step_by(2).filter_map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect();
    hex.map(digits).collect()
}

/// The damage done to a recorded message before it is sent.
#[derive(Clone, Debug)]
enum Damage {
    None,
    Byte(usize, u8),
    /// The length in the header follows.
    CutShort(usize),
    /// The length in the header stays: the next message is read as its end.
    HalfSent(usize),
    Xid(u32),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        3 => Just(Damage::None),
        4 => (0..200_usize, any::<u8>()).prop_map(|(at, value)| Damage::Byte(at, value)),
        2 => (8..200_usize).prop_map(Damage::CutShort),
        1 => (0..200_usize).prop_map(Damage::HalfSent),
        1 => any::<u32>().prop_map(Damage::Xid),
    ]
}

fn damaged(message: &[u8], damage: &Damage) -> Vec<u8> {
    let mut bytes = message.to_vec();
    match damage {
        Damage::None => {}
        Damage::Byte(at, value) => {
            let at = at % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = *value;
            }
        }
        Damage::CutShort(length) => {
            bytes.truncate((*length).max(8));
            let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
        }
        Damage::HalfSent(length) => bytes.truncate(*length),
        Damage::Xid(xid) => bytes[4..8].copy_from_slice(&xid.to_be_bytes()),
    }
    bytes
}

struct Attacked {
    switch: Switch,
    agent: Agent,
    now: Time,
}

impl Attacked {
    fn new(version: u8) -> Self {
        let mut switch = Switch::new(SwitchConfig { dpid: 1, fail_mode: FailMode::Secure, seed: 1 });
        for number in 1..=4 {
            switch.add_port(number, &format!("s1-eth{number}"), [2, 0, 0, 0, 0, number as u8]);
        }
        let mut attacked = Self { switch, agent: Agent::new(&[1, 4]), now: Time::ZERO };
        for connection in [1, 2] {
            attacked.agent.open(connection, Peer::Controller, Time::ZERO);
            attacked.say(connection, &[version, 0, 0, 8, 0, 0, 0, 1]);
        }
        attacked
    }

    fn say(&mut self, connection: u64, bytes: &[u8]) {
        let mut out = Vec::new();
        self.agent.receive(&mut self.switch, connection, bytes, &NoLines, (self.now, &mut out));
    }

    /// Bytes that wait to be sent; they are taken out.
    fn waiting(&mut self) -> usize {
        self.agent.tell(&mut self.switch);
        self.agent.take_output(twinnet_units::Time::ZERO).iter().map(|(_, bytes, _)| bytes.len()).sum()
    }

    fn frame(&mut self, port: u32, bytes: &[u8]) {
        let mut out = Vec::new();
        self.switch.receive(port, Box::new(Frame::new(bytes.to_vec())), self.now, &mut out);
    }

    /// The other controller still gets an answer.
    fn lives(&mut self, version: u8) {
        self.waiting();
        self.say(2, &[version, 2, 0, 12, 0, 0, 0, 9, 1, 2, 3, 4]);
        let answers = self.agent.take_output(twinnet_units::Time::ZERO);
        let echo = answers.iter().any(|(to, bytes, _)| *to == 2 && bytes.ends_with(&[0, 0, 0, 9, 1, 2, 3, 4]));
        assert!(echo, "the other controller is not answered");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_messages_between_frames(
        version in prop_oneof![Just(1_u8), Just(v13::VERSION)],
        sent in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..60),
        frames in prop::collection::vec((1_u32..6, prop::collection::vec(any::<u8>(), 0..100)), 1..6),
        piece in 1_usize..3000,
    ) {
        let recorded: Vec<Vec<u8>> = recorded().into_iter().filter(|message| message.first() == Some(&version))
            .collect();
        let mut stream = Vec::new();
        for (which, damage) in &sent {
            let message: &Vec<u8> = which.get(&recorded);
            stream.extend(damaged(message, damage));
        }
        let mut attacked = Attacked::new(version);
        for bytes in stream.chunks(piece) {
            attacked.say(1, bytes);
            for (port, frame) in &frames {
                attacked.frame(*port, frame);
            }
            attacked.now += Duration::from_ms(700);
            attacked.switch.expire(attacked.now);
            attacked.agent.tick(attacked.now);
            prop_assert!(attacked.waiting() <= MOST_BYTES_OUT);
            attacked.say(2, &[version, 2, 0, 8, 0, 0, 0, 1]);
        }
        attacked.lives(version);
    }

    #[test]
    fn bytes_without_any_order(bytes in prop::collection::vec(any::<u8>(), 0..4000), piece in 1_usize..500) {
        let mut attacked = Attacked::new(v13::VERSION);
        for bytes in bytes.chunks(piece) {
            attacked.say(1, bytes);
        }
        attacked.lives(v13::VERSION);
    }
}

#[test]
fn half_a_message_is_kept_within_the_framer_and_gone_with_its_connection() {
    let mut attacked = Attacked::new(v13::VERSION);
    // A message of 65535 bytes that never ends.
    let mut half = vec![4, 14, 0xff, 0xff, 0, 0, 0, 1];
    half.resize(60_000, 0);
    attacked.say(1, &half);
    attacked.lives(v13::VERSION);
    attacked.agent.close(&mut attacked.switch, 1);
    attacked.lives(v13::VERSION);
}

#[test]
fn a_controller_that_does_not_read_is_sent_no_more_frames() {
    let mut attacked = Attacked::new(v13::VERSION);
    let mut bytes = Vec::new();
    let to_controller = v13::Action::Output { port: v13::port_number::CONTROLLER, max_len: v13::WHOLE_FRAME };
    let change = v13::FlowMod {
        cookie: 0,
        cookie_mask: 0,
        table_id: 0,
        command: v13::FlowModCommand::Add,
        idle_timeout: 0,
        hard_timeout: 0,
        priority: 1,
        buffer_id: twinnet_openflow::NO_BUFFER,
        out_port: v13::port_number::ANY,
        out_group: v13::group_number::ANY,
        flags: v13::FlowFlags::default(),
        matching: twinnet_openflow::oxm::Match::default(),
        instructions: vec![v13::Instruction::ApplyActions(vec![to_controller])],
    };
    v13::Message::FlowMod(change).encode(1, &mut bytes).expect("short enough");
    attacked.say(2, &bytes);
    attacked.agent.take_output(twinnet_units::Time::ZERO);
    for number in 0..20_000_u32 {
        let mut frame = vec![0; 200];
        frame[20..24].copy_from_slice(&number.to_be_bytes());
        attacked.frame(1, &frame);
        attacked.agent.tell(&mut attacked.switch);
    }
    let most = 2 * (CROWDED_BYTES + 65_536);
    assert!(attacked.waiting() <= most);
}
