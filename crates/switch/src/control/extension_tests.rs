//! Nicira's `learn`, `multipath`, `bundle` and `fin_timeout` with frames.

use twinnet_openflow::nicira::{
    self, Bundle, HashFields, Learn, LearnSource, LearnSpec, LearnTarget, Multipath, Subfield,
};
use twinnet_openflow::oxm::{Field as Oxm, FieldId, FieldMatch};
use twinnet_openflow::v13::{Action, BadAction, ErrorKind, Instruction, Message};
use twinnet_packet::{Field, FlowKey, Frame};

use super::super::tests::{at, frames, ports};
use super::tests::{apply, flow, to, Bench};

fn nicira(action: nicira::Action) -> Action {
    Action::Nicira(Box::new(action))
}

fn whole(field: Oxm) -> FieldId {
    FieldId::nxm(field, false)
}

/// Builds the action by which an access switch learns: frames to the source go out by the port that this one came in
/// by, in table 1.
fn learning(idle_timeout: u16) -> Learn {
    Learn {
        idle_timeout,
        hard_timeout: 0,
        priority: 50,
        cookie: 9,
        flags: 0,
        table_id: 1,
        fin_idle_timeout: 0,
        fin_hard_timeout: 0,
        specs: vec![
            LearnSpec {
                bits: 48,
                source: LearnSource::Field(whole(Oxm::EthSrc), 0),
                target: LearnTarget::Match(whole(Oxm::EthDst), 0),
            },
            LearnSpec { bits: 16, source: LearnSource::Field(whole(Oxm::NxmInPort), 0), target: LearnTarget::Output },
        ],
    }
}

fn learning_switch(learn: Learn) -> Bench {
    let mut bench = Bench::new(4);
    let learn = apply(vec![nicira(nicira::Action::Learn(Box::new(learn)))]);
    let instructions = learn.into_iter().chain([Instruction::GotoTable(1)]).collect();
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 1, vec![], instructions))), None);
    let flood = apply(vec![to(0xffff_fffb)]);
    bench.say(&Message::FlowMod(flow(1, 0, vec![], flood)));
    bench
}

#[test]
fn a_learning_switch_learns_where_stations_are() {
    let mut bench = learning_switch(learning(0));
    assert_eq!(ports(&bench.send(1, &frames::tcp(1, 2, 80))), [2, 3, 4]);
    assert_eq!(ports(&bench.send(3, &frames::tcp(2, 1, 80))), [1]);
    assert_eq!(ports(&bench.send(1, &frames::tcp(1, 2, 80))), [3]);
    // The station moves.
    bench.send(4, &frames::tcp(2, 1, 80));
    assert_eq!(ports(&bench.send(1, &frames::tcp(1, 2, 80))), [4]);
    let learnt = bench.switch.dump_flows(bench.now);
    assert_eq!(learnt.iter().filter(|line| line.starts_with(" cookie=0x9")).count(), 2, "{learnt:?}");
}

#[test]
fn what_was_learnt_stays_while_it_is_taught_and_idles_out_afterwards() {
    let mut bench = learning_switch(learning(10));
    bench.send(1, &frames::tcp(1, 2, 80));
    for second in [6, 12, 18] {
        bench.now = at(second);
        bench.switch.expire(bench.now);
        bench.send(1, &frames::tcp(1, 2, 80));
    }
    assert_eq!(ports(&bench.send(2, &frames::tcp(2, 1, 80))), [1]);
    bench.now = at(40);
    bench.switch.expire(bench.now);
    assert_eq!(ports(&bench.send(2, &frames::tcp(2, 1, 80))), [1, 3, 4]);
}

#[test]
fn a_flow_whose_match_would_lack_what_a_field_needs_is_not_learnt() {
    let mut learn = learning(0);
    learn.specs[0] = LearnSpec {
        bits: 32,
        source: LearnSource::Field(whole(Oxm::Ipv4Src), 0),
        target: LearnTarget::Match(whole(Oxm::Ipv4Dst), 0),
    };
    let mut bench = learning_switch(learn.clone());
    bench.send(1, &frames::tcp(1, 2, 80));
    assert_eq!(bench.switch.dump_flows(bench.now).len(), 2);
    // With the EtherType before it, it is.
    let eth_type = LearnSpec {
        bits: 16,
        source: LearnSource::Immediate(vec![8, 0]),
        target: LearnTarget::Match(whole(Oxm::EthType), 0),
    };
    learn.specs.insert(0, eth_type);
    let mut bench = learning_switch(learn);
    bench.send(1, &frames::tcp(1, 2, 80));
    assert_eq!(ports(&bench.send(3, &frames::tcp(2, 1, 80))), [1]);
}

#[test]
fn learn_with_what_is_not_done_is_refused() {
    let refused = Some(ErrorKind::BadAction(BadAction::BadArgument));
    for change in [
        |learn: &mut Learn| learn.flags = 2,
        |learn: &mut Learn| learn.table_id = 255,
        |learn: &mut Learn| learn.specs[0].target = LearnTarget::Match(whole(Oxm::EthDst), 1),
        |learn: &mut Learn| learn.specs[0].target = LearnTarget::Load(whole(Oxm::InPort), 0),
    ] {
        let mut learn = learning(0);
        change(&mut learn);
        let actions = apply(vec![nicira(nicira::Action::Learn(Box::new(learn)))]);
        assert_eq!(Bench::new(4).refusal(&Message::FlowMod(flow(0, 1, vec![], actions))), refused);
    }
}

/// A TCP segment of which the flags are these.
fn flagged(from: u8, to: u8, flags: u8) -> Frame {
    let mut frame = frames::tcp(from, to, 80);
    frame.bytes[47] = flags;
    frame
}

const FIN_ACK: u8 = 0x11;
const RST: u8 = 0x04;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

fn timeouts(bench: &Bench, priority: u16) -> Vec<String> {
    let flows = bench.switch.dump_flows(bench.now);
    let rule = format!("priority={priority}");
    let line = flows.iter().find(|line| line.split(", ").any(|part| part.starts_with(&rule))).unwrap();
    line.split(", ").filter(|part| part.contains("_timeout=") && !part.contains('(')).map(str::to_owned).collect()
}

#[test]
fn a_fin_or_rst_shortens_the_timeouts_of_its_flow_and_nothing_else_does() {
    for ending in [FIN_ACK, RST] {
        let mut bench = Bench::new(4);
        let shorten = nicira(nicira::Action::FinTimeout { idle_timeout: 5, hard_timeout: 0 });
        let of_tcp = vec![FieldMatch::exact(Oxm::EthType, 0x0800), FieldMatch::exact(Oxm::IpProto, 6)];
        let mut kept = flow(0, 7, of_tcp.clone(), apply(vec![shorten, to(2)]));
        (kept.idle_timeout, kept.hard_timeout) = (60, 600);
        bench.say(&Message::FlowMod(kept));
        for flags in [SYN, ACK] {
            assert_eq!(ports(&bench.send(1, &flagged(1, 2, flags))), [2]);
        }
        assert_eq!(timeouts(&bench, 7), ["idle_timeout=60", "hard_timeout=600"]);
        bench.now = at(1);
        assert_eq!(ports(&bench.send(1, &flagged(1, 2, ending))), [2]);
        assert_eq!(timeouts(&bench, 7), ["idle_timeout=5", "hard_timeout=600"]);
        // A last acknowledgement still finds it.
        bench.now = at(4);
        assert_eq!(ports(&bench.send(1, &flagged(1, 2, ACK))), [2]);
        assert_eq!(bench.switch.next_timeout(), Some(at(6)));
        assert_eq!(bench.switch.expire(at(6)), 0);
        assert_eq!(bench.switch.expire(at(9)), 1);
        assert!(bench.switch.dump_flows(at(9)).is_empty());
    }
}

#[test]
fn a_fin_gives_timeouts_to_a_flow_without_any_and_lengthens_none() {
    let mut bench = Bench::new(4);
    let shorten = nicira(nicira::Action::FinTimeout { idle_timeout: 30, hard_timeout: 40 });
    bench.say(&Message::FlowMod(flow(0, 7, vec![], apply(vec![shorten.clone(), to(2)]))));
    let mut short = flow(0, 9, vec![FieldMatch::exact(Oxm::InPort, 3)], apply(vec![shorten, to(2)]));
    (short.idle_timeout, short.hard_timeout) = (3, 4);
    bench.say(&Message::FlowMod(short));
    assert_eq!(ports(&bench.send(1, &frames::udp(1, 2, 80))), [2]);
    assert!(timeouts(&bench, 7).is_empty());
    for port in [1, 3] {
        bench.send(port, &flagged(1, 2, FIN_ACK));
    }
    assert_eq!(timeouts(&bench, 7), ["idle_timeout=30", "hard_timeout=40"]);
    assert_eq!(timeouts(&bench, 9), ["idle_timeout=3", "hard_timeout=4"]);
    assert_eq!(bench.switch.expire(at(4)), 1);
    assert_eq!(bench.switch.expire(at(30)), 1);
}

#[test]
fn what_was_learnt_goes_soon_after_the_end_of_its_connection_where_learn_says_so() {
    let mut learn = learning(100);
    learn.fin_idle_timeout = 2;
    let mut bench = learning_switch(learn);
    bench.send(3, &frames::tcp(2, 1, 80));
    assert_eq!(timeouts(&bench, 50), ["idle_timeout=100"]);
    assert_eq!(ports(&bench.send(1, &flagged(1, 2, FIN_ACK))), [3]);
    assert_eq!(timeouts(&bench, 50), ["idle_timeout=2"]);
    bench.now = at(2);
    assert!(bench.switch.expire(bench.now) >= 1);
    assert_eq!(ports(&bench.send(1, &frames::udp(1, 2, 80))), [2, 3, 4]);
}

#[test]
fn an_operation_of_arp_is_loaded_whole_and_told_so() {
    let mut bench = Bench::new(4);
    let loaded = |value| {
        let load = nicira::Action::RegisterLoad { destination: Subfield::whole(Oxm::ArpOp), value };
        let is_arp = vec![FieldMatch::exact(Oxm::EthType, 0x0806)];
        Message::FlowMod(flow(0, 1, is_arp, apply(vec![nicira(load), to(2)])))
    };
    assert_eq!(bench.refusal(&loaded(2)), None);
    let out = bench.send(1, &frames::arp(1, 2));
    assert_eq!(FlowKey::extract(2, &out[0].frame.bytes).get(Field::NW_PROTO), 2);
    // No key has it.
    assert_eq!(bench.refusal(&loaded(0x102)), Some(ErrorKind::BadAction(BadAction::BadArgument)));
}

fn spread(algorithm: u16) -> Vec<usize> {
    let mut bench = Bench::new(4);
    let multipath = Multipath {
        fields: HashFields::SymmetricL4,
        basis: 7,
        algorithm,
        max_link: 2,
        argument: 0,
        destination: Subfield::whole(Oxm::Reg0),
    };
    let choose =
        apply(vec![nicira(nicira::Action::Multipath(multipath))]).into_iter().chain([Instruction::GotoTable(1)]);
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 1, vec![], choose.collect()))), None);
    for way in 0..3_u32 {
        let fields = vec![FieldMatch::exact(Oxm::Reg0, u128::from(way))];
        assert_eq!(bench.refusal(&Message::FlowMod(flow(1, 1, fields, apply(vec![to(2 + way)])))), None);
    }
    let mut ways = vec![0; 3];
    for port in 0..600 {
        let there = ports(&bench.send(1, &frames::tcp(1, 2, 1000 + port)));
        assert_eq!(ports(&bench.send(1, &frames::tcp(1, 2, 1000 + port))), there);
        ways[there[0] as usize - 2] += 1;
    }
    ways
}

#[test]
fn multipath_spreads_flows_evenly_by_every_algorithm() {
    for algorithm in 0..4 {
        // Binomial(600, 1/3): five standard deviations are 58.
        assert!(
            spread(algorithm).iter().all(|count| (142..=258).contains(count)),
            "{algorithm}: {:?}",
            spread(algorithm)
        );
    }
}

fn bundle(algorithm: u16) -> Vec<Instruction> {
    apply(vec![nicira(nicira::Action::Bundle(Bundle {
        algorithm,
        fields: HashFields::SymmetricL4,
        basis: 0,
        member_type: 2,
        destination: None,
        members: vec![2, 3, 4],
    }))])
}

#[test]
fn an_active_backup_bundle_takes_the_first_live_member() {
    let mut bench = Bench::new(4);
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 1, vec![], bundle(0)))), None);
    let frame = frames::tcp(1, 2, 80);
    assert_eq!(ports(&bench.send(1, &frame)), [2]);
    bench.switch.set_port_up(2, false);
    assert_eq!(ports(&bench.send(1, &frame)), [3]);
    bench.switch.set_port_up(2, true);
    assert_eq!(ports(&bench.send(1, &frame)), [2]);
}

#[test]
fn a_bundle_by_weight_moves_only_the_flows_of_a_member_that_went_down() {
    let mut bench = Bench::new(4);
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 1, vec![], bundle(1)))), None);
    let ways = |bench: &mut Bench| -> Vec<u32> {
        (0..200).map(|port| ports(&bench.send(1, &frames::tcp(1, 2, 1000 + port)))[0]).collect()
    };
    let before = ways(&mut bench);
    bench.switch.set_port_up(3, false);
    let after = ways(&mut bench);
    assert!(before.contains(&2) && before.contains(&3) && before.contains(&4));
    assert!(before.iter().zip(&after).all(|(before, after)| *before == 3 || before == after));
    assert!(!after.contains(&3));
}
