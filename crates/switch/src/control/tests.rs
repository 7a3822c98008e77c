//! The agent with a controller's bytes on one side and frames on the other.

use twinnet_openflow::oxm::{Field as Oxm, FieldMatch, FieldValue, Match as OxmMatch};
use twinnet_openflow::v13::{
    self, Action, BadAction, BadRequest, Bucket, ErrorKind, FlowFlags, FlowMod, FlowModCommand, FlowModFailed,
    GroupModFailed, Instruction, Message, MeterEffect, RoleRequestFailed,
};
use twinnet_openflow::{v10, Framer, NO_BUFFER};
use twinnet_packet::Frame;

use super::super::tests::{at, frames, ports, send_at};
use super::super::{FailMode, SwitchConfig};
use super::*;

struct NoLines;

impl Lines for NoLines {
    fn facts(&self, _port: u32) -> Option<PortFacts> {
        Some(PortFacts::default())
    }
}

/// A switch with ports 1 to 4 and one controller that speaks this version.
pub(super) struct Bench {
    pub(super) switch: Switch,
    pub(super) agent: Agent,
    version: u8,
    pub(super) now: Time,
}

impl Bench {
    pub(super) fn new(version: u8) -> Self {
        let mut switch = Switch::new(SwitchConfig { dpid: 9, fail_mode: FailMode::Secure, seed: 1 });
        for number in 1..=4 {
            switch.add_port(number, &format!("s1-eth{number}"), [0, 0, 0, 0, 1, number as u8]);
        }
        let mut bench = Self { switch, agent: Agent::new(&[1, 4]), version, now: Time::ZERO };
        bench.join(1);
        bench
    }

    pub(super) fn join(&mut self, number: u64) {
        self.agent.open(number, Peer::Controller, self.now);
        self.raw(number, &[self.version, 0, 0, 8, 0, 0, 0, 1]);
        self.agent.take_output(Time::ZERO);
    }

    pub(super) fn raw(&mut self, number: u64, bytes: &[u8]) -> Vec<Output> {
        let mut out = Vec::new();
        self.agent.receive(&mut self.switch, number, bytes, &NoLines, (self.now, &mut out));
        out
    }

    pub(super) fn say_from(&mut self, number: u64, message: &Message) -> Vec<Output> {
        let mut bytes = Vec::new();
        message.encode(7, &mut bytes).unwrap();
        self.raw(number, &bytes)
    }

    pub(super) fn say(&mut self, message: &Message) -> Vec<Output> {
        self.say_from(1, message)
    }

    /// Returns what the controller got, less what is not of its version.
    pub(super) fn heard_by(&mut self, number: u64) -> Vec<Message> {
        self.agent.tell(&mut self.switch);
        let mut framer = Framer::new();
        let mut heard = Vec::new();
        for (to, bytes, _) in self.agent.take_output(Time::ZERO) {
            if to == number {
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    rest = &rest[framer.push(rest)..];
                    while let Some(message) = framer.next_message().unwrap() {
                        heard.push(Message::decode(message).unwrap().1);
                    }
                }
            }
        }
        heard
    }

    fn heard(&mut self) -> Vec<Message> {
        self.heard_by(1)
    }

    fn ask(&mut self, message: &Message) -> Vec<Message> {
        self.say(message);
        self.heard()
    }

    /// The error that answers a message; `None` when it is obeyed.
    pub(super) fn refusal(&mut self, message: &Message) -> Option<ErrorKind> {
        self.ask(message).into_iter().find_map(|reply| match reply {
            Message::Error(error) => Some(error.kind),
            _ => None,
        })
    }

    pub(super) fn send(&mut self, in_port: u32, frame: &Frame) -> Vec<Output> {
        let now = self.now;
        send_at(&mut self.switch, in_port, frame, now)
    }
}

pub(super) fn flow(table_id: u8, priority: u16, fields: Vec<FieldMatch>, instructions: Vec<Instruction>) -> FlowMod {
    FlowMod {
        cookie: 0,
        cookie_mask: 0,
        table_id,
        command: FlowModCommand::Add,
        idle_timeout: 0,
        hard_timeout: 0,
        priority,
        buffer_id: NO_BUFFER,
        out_port: v13::port_number::ANY,
        out_group: v13::group_number::ANY,
        flags: FlowFlags::default(),
        matching: OxmMatch::new(fields),
        instructions,
    }
}

pub(super) fn to(port: u32) -> Action {
    Action::Output { port, max_len: 0xffff }
}

pub(super) fn apply(actions: Vec<Action>) -> Vec<Instruction> {
    vec![Instruction::ApplyActions(actions)]
}

fn tcp_fields(port: u16) -> Vec<FieldMatch> {
    vec![
        FieldMatch::exact(Oxm::EthType, 0x0800),
        FieldMatch::exact(Oxm::IpProto, 6),
        FieldMatch::exact(Oxm::TcpDst, u128::from(port)),
    ]
}

fn group(
    command: v13::GroupModCommand,
    kind: v13::GroupType,
    id: u32,
    buckets: Vec<(u16, u32, Vec<Action>)>,
) -> Message {
    let buckets = buckets.into_iter().map(|(weight, watch_port, actions)| Bucket {
        weight,
        watch_port,
        watch_group: v13::group_number::ANY,
        actions,
    });
    Message::GroupMod(v13::GroupMod { command, group_type: kind, group_id: id, buckets: buckets.collect() })
}

const ADD_GROUP: v13::GroupModCommand = v13::GroupModCommand::Add;
const ANY: u32 = u32::MAX;

#[test]
fn a_controller_learns_what_the_switch_is() {
    let mut bench = Bench::new(4);
    let heard = bench.ask(&Message::FeaturesRequest);
    let Message::FeaturesReply(features) = &heard[0] else { panic!("{heard:?}") };
    assert_eq!((features.datapath_id, features.n_tables), (9, 255));
}

#[test]
fn the_highest_common_version_is_agreed_on_and_none_is_an_error() {
    for (version, name) in [(1, "1.0"), (4, "1.3")] {
        let mut bench = Bench::new(version);
        assert_eq!(bench.agent.state()[0].version, None, "its hello says only what it could speak");
        bench.raw(1, &[version, 2, 0, 8, 0, 0, 0, 2]);
        assert_eq!(bench.agent.state()[0].version, Some(name));
        assert_eq!(bench.agent.misunderstanding(1), None);
    }
    let mut bench = Bench::new(4);
    bench.agent.versions = vec![4];
    bench.agent.open(2, Peer::Controller, Time::ZERO);
    bench.raw(2, &[1, 0, 0, 8, 0, 0, 0, 1]);
    let output = bench.agent.take_output(Time::ZERO);
    let (_, bytes, ending) = output.iter().find(|(number, ..)| *number == 2).unwrap();
    let both = "no OpenFlow version in common: this switch speaks 1.3, the controller up to 1.0";
    assert_eq!(ending.as_deref(), Some(both));
    // The last message: version 1, error, type 0 (hello failed), code 0 (incompatible).
    let error = bytes.len() - usize::from(u16::from_be_bytes([bytes[18], bytes[19]]));
    assert_eq!((bytes[error], bytes[error + 1], &bytes[error + 8..error + 12]), (1, 1, &[0, 0, 0, 0][..]));
}

#[test]
fn a_controller_of_another_version_never_joins_and_both_sides_offers_are_known() {
    let mut bench = Bench::new(4);
    // An application of 1.4 without a bitmap: by the letter both agree on 1.3, until it refuses (hello failed).
    bench.agent.open(2, Peer::Controller, Time::ZERO);
    bench.raw(2, &[5, 0, 0, 8, 0, 0, 0, 1]);
    bench.raw(2, &[4, 1, 0, 12, 0, 0, 0, 2, 0, 0, 0, 0]);
    assert_eq!(bench.agent.state()[1].version, None);
    let why = "the controller closed it after the hellos: this switch speaks 1.0 and 1.3, the controller up to 1.4";
    assert_eq!(bench.agent.misunderstanding(2).as_deref(), Some(why));
    // With a bitmap (version 5 alone) the switch itself finds nothing in common.
    bench.agent.open(3, Peer::Controller, Time::ZERO);
    bench.raw(3, &[5, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x20]);
    let output = bench.agent.take_output(Time::ZERO);
    let (.., ending) = output.iter().find(|(number, ..)| *number == 3).unwrap();
    let both = "no OpenFlow version in common: this switch speaks 1.0 and 1.3, the controller 1.4";
    assert_eq!(ending.as_deref(), Some(both));
}

#[test]
fn a_missed_frame_goes_to_the_controller_of_a_table_miss_flow_and_comes_back_by_its_buffer() {
    let mut bench = Bench::new(4);
    let miss = vec![Action::Output { port: v13::port_number::CONTROLLER, max_len: 20 }];
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 0, vec![], apply(miss)))), None);
    assert!(bench.send(2, &frames::tcp(1, 2, 80)).is_empty());
    let heard = bench.heard();
    let Message::PacketIn(packet) = &heard[0] else { panic!("{heard:?}") };
    assert_eq!((packet.reason, packet.data.len()), (v13::PacketInReason::NoMatch, 20));
    assert_eq!(packet.matching.get(Oxm::InPort).unwrap().value, 2);
    let answer = v13::PacketOut { buffer_id: packet.buffer_id, in_port: 2, actions: vec![to(3)], data: vec![] };
    let out = bench.say(&Message::PacketOut(answer.clone()));
    assert_eq!((ports(&out), &out[0].frame.bytes), (vec![3], &frames::tcp(1, 2, 80).bytes));
    assert_eq!(bench.refusal(&Message::PacketOut(answer)), Some(ErrorKind::BadRequest(BadRequest::BufferEmpty)));
}

#[test]
fn a_packet_out_through_the_tables_meets_the_flows() {
    let mut bench = Bench::new(4);
    bench.say(&Message::FlowMod(flow(0, 1, tcp_fields(80), apply(vec![to(4)]))));
    let data = frames::tcp(1, 2, 80).bytes;
    let actions = vec![to(v13::port_number::TABLE)];
    let out = bench.say(&Message::PacketOut(v13::PacketOut { buffer_id: NO_BUFFER, in_port: 1, actions, data }));
    assert_eq!(ports(&out), [4]);
}

#[test]
fn an_overlap_is_refused_only_when_it_is_asked_for_and_real() {
    let mut bench = Bench::new(4);
    bench.say(&Message::FlowMod(flow(0, 5, tcp_fields(80), apply(vec![to(2)]))));
    let mut wider = flow(0, 5, vec![FieldMatch::exact(Oxm::InPort, 1)], apply(vec![to(3)]));
    wider.flags = FlowFlags::CHECK_OVERLAP;
    let overlap = ErrorKind::FlowModFailed(FlowModFailed::Overlap);
    assert_eq!(bench.refusal(&Message::FlowMod(wider.clone())), Some(overlap));
    wider.priority = 6;
    assert_eq!(bench.refusal(&Message::FlowMod(wider)), None);
}

#[test]
fn flows_go_by_cookie_port_and_group_and_say_so() {
    let mut bench = Bench::new(4);
    bench.say(&group(ADD_GROUP, v13::GroupType::Indirect, 5, vec![(0, ANY, vec![to(2)])]));
    let mut first = flow(0, 5, tcp_fields(80), apply(vec![to(2)]));
    (first.cookie, first.flags) = (0x11, FlowFlags::SEND_FLOW_REM);
    let mut second = flow(1, 5, tcp_fields(81), apply(vec![Action::Group(5)]));
    (second.cookie, second.flags) = (0x21, FlowFlags::SEND_FLOW_REM);
    bench.say(&Message::FlowMod(first));
    bench.say(&Message::FlowMod(second));
    let mut delete = flow(0xff, 0, vec![], vec![]);
    (delete.command, delete.cookie, delete.cookie_mask) = (FlowModCommand::Delete, 0x10, 0xf0);
    let heard = bench.ask(&Message::FlowMod(delete.clone()));
    let removed = |heard: &[Message]| match heard {
        [Message::FlowRemoved(removed)] => (removed.cookie, removed.reason),
        other => panic!("{other:?}"),
    };
    assert_eq!(removed(&heard), (0x11, v13::FlowRemovedReason::Delete));
    (delete.cookie_mask, delete.out_group) = (0, 6);
    assert!(bench.ask(&Message::FlowMod(delete)).is_empty());
    let heard = bench.ask(&group(v13::GroupModCommand::Delete, v13::GroupType::All, 5, vec![]));
    assert_eq!(removed(&heard), (0x21, v13::FlowRemovedReason::GroupDelete));
}

#[test]
fn a_flow_that_idles_out_tells_its_life_to_the_nanosecond() {
    let mut bench = Bench::new(4);
    let mut change = flow(0, 5, tcp_fields(80), apply(vec![to(2)]));
    (change.idle_timeout, change.hard_timeout, change.flags) = (2, 9, FlowFlags::SEND_FLOW_REM);
    bench.say(&Message::FlowMod(change));
    bench.now = Time::from_ns(1_500_000_001);
    bench.send(1, &frames::tcp(1, 2, 80));
    let due = Time::from_ns(3_500_000_001);
    bench.switch.expire(at(2));
    assert!(bench.heard().is_empty());
    bench.switch.expire(due);
    let heard = bench.heard();
    let Message::FlowRemoved(removed) = &heard[0] else { panic!("{heard:?}") };
    assert_eq!((removed.reason, removed.packet_count), (v13::FlowRemovedReason::IdleTimeout, 1));
    assert_eq!((removed.duration_sec, removed.duration_nsec), (3, 500_000_001));
}

#[test]
fn a_group_of_all_copies_each_bucket_from_the_same_frame() {
    let mut bench = Bench::new(4);
    let set = |value| Action::SetField(FieldValue { field: Oxm::EthDst, value });
    let buckets = vec![(0, ANY, vec![set(7), to(2)]), (0, ANY, vec![to(3)])];
    assert_eq!(bench.refusal(&group(ADD_GROUP, v13::GroupType::All, 1, buckets)), None);
    bench.say(&Message::FlowMod(flow(0, 1, vec![], apply(vec![Action::Group(1), to(4)]))));
    let frame = frames::tcp(1, 2, 80);
    for _ in 0..2 {
        let out = bench.send(1, &frame);
        assert_eq!(ports(&out), [2, 3, 4]);
        assert_eq!(out[0].frame.bytes[..6], [0, 0, 0, 0, 0, 7]);
        assert_eq!((&out[1].frame.bytes, &out[2].frame.bytes), (&frame.bytes, &frame.bytes));
    }
}

#[test]
fn a_select_group_keeps_a_flow_on_its_way_and_shares_by_weight() {
    let mut bench = Bench::new(4);
    let buckets = vec![(3, ANY, vec![to(2)]), (1, ANY, vec![to(3)])];
    bench.say(&group(ADD_GROUP, v13::GroupType::Select, 1, buckets));
    bench.say(&Message::FlowMod(flow(0, 1, vec![], apply(vec![Action::Group(1)]))));
    let mut heavy = 0;
    for port in 0..2000 {
        let frame = frames::tcp(1, 2, 1000 + port);
        let way = ports(&bench.send(1, &frame));
        assert_eq!(ports(&bench.send(1, &frame)), way);
        heavy += usize::from(way == [2]);
    }
    // Binomial(2000, 3/4): five standard deviations are 97.
    assert!((1403..=1597).contains(&heavy), "{heavy}");
}

#[test]
fn a_fast_failover_group_takes_the_next_live_bucket_at_once() {
    let mut bench = Bench::new(4);
    let buckets = vec![(0, 2, vec![to(2)]), (0, 3, vec![to(3)])];
    bench.say(&group(ADD_GROUP, v13::GroupType::FastFailover, 1, buckets));
    bench.say(&Message::FlowMod(flow(0, 1, vec![], apply(vec![Action::Group(1)]))));
    let frame = frames::tcp(1, 2, 80);
    assert_eq!(ports(&bench.send(1, &frame)), [2]);
    bench.switch.set_port_up(2, false);
    assert_eq!(ports(&bench.send(1, &frame)), [3]);
    bench.switch.set_port_up(2, true);
    assert_eq!(ports(&bench.send(1, &frame)), [2]);
    let heard = bench.heard();
    let states: Vec<_> = heard
        .iter()
        .filter_map(|message| match message {
            Message::PortStatus(status) => {
                Some((status.port.port_no, status.port.state.contains(v13::PortState::LINK_DOWN)))
            }
            _ => None,
        })
        .collect();
    assert_eq!(states.len(), 2);
}

#[test]
fn a_port_that_is_taken_away_is_deleted_and_comes_back_as_a_new_one() {
    let mut bench = Bench::new(4);
    let frame = frames::tcp(1, 2, 80);
    bench.say(&Message::FlowMod(flow(0, 1, vec![], apply(vec![to(2), to(3)]))));
    let buckets = vec![(0, 2, vec![to(2)]), (0, 4, vec![to(4)])];
    bench.say(&group(ADD_GROUP, v13::GroupType::FastFailover, 1, buckets));
    assert_eq!(ports(&bench.send(1, &frame)), [2, 3]);
    bench.switch.set_port_there(2, false, false);
    bench.switch.set_port_there(2, false, false);
    bench.switch.set_port_up(2, false);
    assert_eq!(ports(&bench.send(1, &frame)), [3]);
    assert!(bench.send(2, &frame).is_empty());
    assert_eq!(bench.switch.ports().map(|(number, ..)| number).collect::<Vec<_>>(), [1, 3, 4]);
    bench.say(&Message::FlowMod(flow(0, 2, vec![], apply(vec![Action::Group(1)]))));
    assert_eq!(ports(&bench.send(1, &frame)), [4]);
    bench.switch.set_port_there(2, true, true);
    bench.switch.set_port_there(2, true, true);
    assert_eq!(ports(&bench.send(1, &frame)), [2]);
    let told: Vec<_> = bench
        .heard()
        .iter()
        .filter_map(|message| match message {
            Message::PortStatus(status) => Some((status.reason, status.port.port_no)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(v13::PortReason::Delete, 2), (v13::PortReason::Add, 2)]);
}

#[test]
fn groups_that_cannot_be_are_refused_with_the_code_that_says_why() {
    let mut bench = Bench::new(4);
    let failed = |code| Some(ErrorKind::GroupModFailed(code));
    let two = vec![(0, ANY, vec![]), (0, ANY, vec![])];
    assert_eq!(
        bench.refusal(&group(ADD_GROUP, v13::GroupType::Indirect, 1, two)),
        failed(GroupModFailed::InvalidGroup)
    );
    assert_eq!(bench.refusal(&group(ADD_GROUP, v13::GroupType::All, 1, vec![])), None);
    assert_eq!(bench.refusal(&group(ADD_GROUP, v13::GroupType::All, 1, vec![])), failed(GroupModFailed::GroupExists));
    let chained = vec![(0, ANY, vec![Action::Group(1)])];
    assert_eq!(bench.refusal(&group(ADD_GROUP, v13::GroupType::All, 2, chained)), None);
    let back = vec![(0, ANY, vec![Action::Group(2)])];
    let modify = v13::GroupModCommand::Modify;
    assert_eq!(bench.refusal(&group(modify, v13::GroupType::All, 1, back)), failed(GroupModFailed::Loop));
    let delete = v13::GroupModCommand::Delete;
    assert_eq!(bench.refusal(&group(delete, v13::GroupType::All, 1, vec![])), failed(GroupModFailed::ChainedGroup));
    assert_eq!(bench.refusal(&group(modify, v13::GroupType::All, 9, vec![])), failed(GroupModFailed::UnknownGroup));
    let missing = vec![(0, ANY, vec![Action::Group(77)])];
    let bad_out = Some(ErrorKind::BadAction(BadAction::BadOutGroup));
    assert_eq!(bench.refusal(&group(ADD_GROUP, v13::GroupType::All, 3, missing)), bad_out);
    assert_eq!(
        bench.refusal(&group(ADD_GROUP, v13::GroupType::FastFailover, 4, vec![(0, ANY, vec![])])),
        failed(GroupModFailed::BadWatch)
    );
}

fn meter(band: v13::MeterBand) -> Message {
    let flags = v13::MeterFlags::PKTPS | v13::MeterFlags::BURST;
    Message::MeterMod(v13::MeterMod { command: v13::MeterModCommand::Add, flags, meter_id: 1, bands: vec![band] })
}

#[test]
fn a_meter_drops_what_exceeds_its_rate_from_the_cache_too() {
    let mut bench = Bench::new(4);
    bench.say(&meter(v13::MeterBand { rate: 10, burst_size: 3, effect: MeterEffect::Drop }));
    let metered = vec![Instruction::Meter(1), Instruction::ApplyActions(vec![to(2)])];
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 1, vec![], metered))), None);
    let frame = frames::tcp(1, 2, 80);
    let passed: usize = (0..10).map(|_| bench.send(1, &frame).len()).sum();
    assert_eq!(passed, 3);
    bench.now = Time::from_ns(100_000_000);
    assert_eq!(bench.send(1, &frame).len(), 1);
    assert_eq!(bench.send(1, &frame).len(), 0);
}

#[test]
fn a_remarked_frame_meets_the_flows_of_its_new_class() {
    let mut bench = Bench::new(4);
    bench.say(&meter(v13::MeterBand { rate: 1, burst_size: 1, effect: MeterEffect::DscpRemark(1) }));
    let set = Action::SetField(FieldValue { field: Oxm::IpDscp, value: 10 });
    let ip = || vec![FieldMatch::exact(Oxm::EthType, 0x0800)];
    bench.say(&Message::FlowMod(flow(
        0,
        1,
        ip(),
        vec![Instruction::ApplyActions(vec![set]), Instruction::GotoTable(1)],
    )));
    bench.say(&Message::FlowMod(flow(1, 1, ip(), vec![Instruction::Meter(1), Instruction::GotoTable(2)])));
    for (dscp, port) in [(10, 2), (12, 3)] {
        let fields = vec![FieldMatch::exact(Oxm::EthType, 0x0800), FieldMatch::exact(Oxm::IpDscp, dscp)];
        bench.say(&Message::FlowMod(flow(2, 1, fields, apply(vec![to(port)]))));
    }
    let frame = frames::tcp(1, 2, 80);
    assert_eq!(ports(&bench.send(1, &frame)), [2]);
    let out = bench.send(1, &frame);
    assert_eq!((ports(&out), out[0].frame.bytes[15] >> 2), (vec![3], 12));
    frames::verify(&out[0].frame);
}

#[test]
fn what_a_popped_label_covered_is_matched_behind_it() {
    let mut bench = Bench::new(4);
    let ip = vec![FieldMatch::exact(Oxm::EthType, 0x0800)];
    let push = vec![Action::PushMpls(0x8847), Action::SetField(FieldValue { field: Oxm::MplsLabel, value: 77 }), to(2)];
    bench.say(&Message::FlowMod(flow(0, 1, ip, apply(push))));
    let label = vec![FieldMatch::exact(Oxm::EthType, 0x8847), FieldMatch::exact(Oxm::MplsLabel, 77)];
    let pop = vec![Instruction::ApplyActions(vec![Action::PopMpls(0x0800)]), Instruction::GotoTable(1)];
    bench.say(&Message::FlowMod(flow(0, 1, label, pop)));
    bench.say(&Message::FlowMod(flow(1, 1, tcp_fields(80), apply(vec![Action::DecNwTtl, to(3)]))));
    let frame = frames::tcp(1, 2, 80);
    let labelled = bench.send(1, &frame);
    assert_eq!(ports(&labelled), [2]);
    for _ in 0..2 {
        let out = bench.send(4, &labelled[0].frame);
        assert_eq!(ports(&out), [3]);
        assert_eq!(out[0].frame.bytes[22], frame.bytes[22] - 1);
        frames::verify(&out[0].frame);
    }
}

#[test]
fn a_slave_may_look_but_not_touch_and_an_old_generation_elects_nobody() {
    let mut bench = Bench::new(4);
    bench.join(2);
    let role = |role, generation_id| Message::RoleRequest(v13::RoleMessage { role, generation_id });
    bench.say(&role(Role::Master, 5));
    bench.say_from(2, &role(Role::Master, 6));
    let is_slave = Some(ErrorKind::BadRequest(BadRequest::IsSlave));
    bench.agent.take_output(Time::ZERO);
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 1, vec![], vec![]))), is_slave);
    let stale = Some(ErrorKind::RoleRequestFailed(RoleRequestFailed::Stale));
    assert_eq!(bench.refusal(&role(Role::Master, 5)), stale);
    assert!(matches!(bench.ask(&Message::BarrierRequest)[..], [Message::BarrierReply]));
}

#[test]
fn actions_that_the_match_does_not_allow_are_refused() {
    let mut bench = Bench::new(4);
    let set = Action::SetField(FieldValue { field: Oxm::TcpDst, value: 5 });
    let refusal = bench.refusal(&Message::FlowMod(flow(0, 1, vec![], apply(vec![set]))));
    assert_eq!(refusal, Some(ErrorKind::BadAction(BadAction::MatchInconsistent)));
    let backwards = vec![Instruction::GotoTable(3)];
    let refusal = bench.refusal(&Message::FlowMod(flow(3, 1, vec![], backwards)));
    assert_eq!(refusal, Some(ErrorKind::BadInstruction(v13::BadInstruction::BadTableId)));
}

#[test]
fn every_question_is_answered() {
    let mut bench = Bench::new(4);
    bench.say(&Message::FlowMod(flow(0, 5, tcp_fields(80), apply(vec![to(2)]))));
    bench.say(&group(ADD_GROUP, v13::GroupType::Select, 1, vec![(1, ANY, vec![to(2)])]));
    bench.say(&meter(v13::MeterBand { rate: 10, burst_size: 3, effect: MeterEffect::Drop }));
    use v13::multipart as m;
    use v13::RequestBody as Ask;
    let flows = || m::FlowStatsRequest {
        table_id: 0xff,
        out_port: ANY,
        out_group: ANY,
        cookie: 0,
        cookie_mask: 0,
        matching: OxmMatch::default(),
    };
    let questions = [
        Ask::Description,
        Ask::Flow(flows()),
        Ask::Aggregate(flows()),
        Ask::Table,
        Ask::PortStats(m::PortStatsRequest { port_no: ANY }),
        Ask::Queue(m::QueueStatsRequest { port_no: ANY, queue_id: ANY }),
        Ask::Group(m::GroupStatsRequest { group_id: v13::group_number::ALL }),
        Ask::GroupDescription,
        Ask::GroupFeatures,
        Ask::Meter(m::MeterRequest { meter_id: ANY }),
        Ask::MeterConfig(m::MeterRequest { meter_id: ANY }),
        Ask::MeterFeatures,
        Ask::TableFeatures(vec![]),
        Ask::PortDescription,
    ];
    for body in questions {
        let kind = format!("{body:?}");
        let heard = bench.ask(&Message::MultipartRequest(v13::Multipart { more: false, body }));
        assert!(!heard.is_empty(), "{kind}");
        let more: Vec<bool> = heard
            .iter()
            .map(|message| match message {
                Message::MultipartReply(reply) => reply.more,
                other => panic!("{kind}: {other:?}"),
            })
            .collect();
        assert!(more[..more.len() - 1].iter().all(|more| *more) && !more[more.len() - 1], "{kind}");
    }
}

#[test]
fn the_features_of_the_tables_can_be_written_back_as_they_were_read() {
    let mut bench = Bench::new(4);
    let ask = |body, more| Message::MultipartRequest(v13::Multipart { more, body });
    let heard = bench.ask(&ask(v13::RequestBody::TableFeatures(vec![]), false));
    let mut parts = heard.into_iter().filter_map(|message| match message {
        Message::MultipartReply(v13::Multipart { more, body: v13::ReplyBody::TableFeatures(rows) }) => {
            Some((more, rows))
        }
        _ => None,
    });
    let (_, mut first) = parts.next().unwrap();
    first[0].name = twinnet_openflow::Text::new("vlan").unwrap();
    assert_eq!(bench.refusal(&ask(v13::RequestBody::TableFeatures(first), false)), None);
    assert_eq!(bench.agent.tables.written().unwrap().next().unwrap().name.as_text(), "vlan");
}

#[test]
fn a_controller_of_version_1_0_gets_what_misses_and_its_emergencies_are_refused() {
    let mut bench = Bench::new(1);
    bench.switch.pipeline.settings.miss_send_len = 20;
    bench.send(3, &frames::tcp(1, 2, 80));
    bench.agent.tell(&mut bench.switch);
    let (_, bytes, _) = bench.agent.take_output(Time::ZERO).remove(0);
    let v10::Message::PacketIn(packet) = v10::Message::decode(&bytes).unwrap().1 else { panic!("{bytes:?}") };
    assert_eq!((packet.in_port, packet.reason), (3, v10::PacketInReason::NoMatch));
    let mut change = v10::FlowMod {
        matching: v10::Match::any(),
        cookie: 0,
        table_id: 0,
        command: v10::FlowModCommand::Add,
        idle_timeout: 0,
        hard_timeout: 0,
        priority: 1,
        buffer_id: packet.buffer_id,
        out_port: v10::port_number::NONE,
        flags: v10::FlowFlags::default(),
        actions: vec![v10::Action::SetVlanVid(5), v10::Action::Enqueue { port: 2, queue_id: 3 }],
    };
    let mut bytes = Vec::new();
    v10::Message::FlowMod(change.clone()).encode(1, &mut bytes).unwrap();
    let out = bench.raw(1, &bytes);
    assert_eq!((ports(&out), out[0].frame.queue), (vec![2], 3));
    assert_eq!(out[0].frame.bytes[12..16], [0x81, 0, 0, 5]);
    (change.flags, change.buffer_id) = (v10::FlowFlags::EMERG, NO_BUFFER);
    let mut bytes = Vec::new();
    v10::Message::FlowMod(change).encode(1, &mut bytes).unwrap();
    bench.raw(1, &bytes);
    let (_, bytes, _) = bench.agent.take_output(Time::ZERO).remove(0);
    let v10::Message::Error(error) = v10::Message::decode(&bytes).unwrap().1 else { panic!("{bytes:?}") };
    assert_eq!(error.kind, v10::ErrorKind::FlowModFailed(v10::FlowModFailed::AllTablesFull));
}

/// What a switch of version 1.0 answers to a question about its state.
fn told_in_1_0(bench: &mut Bench, body: v10::RequestBody) -> v10::ReplyBody {
    let mut bytes = Vec::new();
    v10::Message::StatsRequest(v10::Statistics { more: false, body }).encode(1, &mut bytes).unwrap();
    bench.raw(1, &bytes);
    let (_, bytes, _) = bench.agent.take_output(Time::ZERO).remove(0);
    let v10::Message::StatsReply(reply) = v10::Message::decode(&bytes).unwrap().1 else { panic!("{bytes:?}") };
    reply.body
}

#[test]
fn ports_are_described_in_version_1_0_as_open_vswitch_does() {
    let mut bench = Bench::new(1);
    let v10::ReplyBody::PortDescription(ports) = told_in_1_0(&mut bench, v10::RequestBody::PortDescription) else {
        panic!("another answer");
    };
    assert_eq!(ports.iter().map(|port| port.port_no).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let missing = v10::statistics::PortStatsRequest { port_no: 77 };
    let told = told_in_1_0(&mut bench, v10::RequestBody::Port(missing));
    assert!(matches!(&told, v10::ReplyBody::Port(rows) if rows.is_empty()), "{told:?}");
}

#[test]
fn a_silent_controller_is_probed_and_then_given_up() {
    let mut bench = Bench::new(4);
    bench.agent.tick(at(5));
    assert!(matches!(bench.heard()[..], [Message::EchoRequest(_)]));
    bench.agent.tick(at(10));
    assert_eq!(bench.agent.next_timeout(), None);
    assert!(bench.agent.take_output(Time::ZERO)[0].2.is_some());
}
