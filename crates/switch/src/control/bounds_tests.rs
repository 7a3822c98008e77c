//! Tests of what a controller cannot get: more life than whole messages show, more flows than there is room for, what
//! is meant for others.

use twinnet_openflow::nicira;
use twinnet_openflow::v13::{self, ErrorKind, FlowModFailed, Message};

use super::super::tests::{at, frames};
use super::tests::{apply, flow, to, Bench};

#[test]
fn a_message_that_never_ends_is_no_sign_of_life() {
    let mut bench = Bench::new(4);
    // A barrier that says it has 4096 bytes, and then a byte every second.
    bench.raw(1, &[4, 20, 0x10, 0, 0, 0, 0, 9]);
    let mut ended = None;
    for second in 1..=12 {
        bench.now = at(second);
        bench.raw(1, &[0]);
        bench.agent.tick(bench.now);
        let why = bench.agent.take_output(twinnet_units::Time::ZERO).into_iter().find_map(|(_, _, ending)| ending);
        ended = ended.or(why.map(|why| (second, why)));
    }
    assert_eq!(ended, Some((10, "it did not answer for 10 s".to_owned())));
}

#[test]
fn whole_messages_keep_a_connection_that_answers_no_probe_by_the_letter() {
    let mut bench = Bench::new(4);
    for second in (3..40).step_by(3) {
        bench.now = at(second);
        bench.say(&Message::BarrierRequest);
        bench.agent.tick(bench.now);
        assert!(bench.agent.take_output(twinnet_units::Time::ZERO).iter().all(|(_, _, ending)| ending.is_none()));
    }
}

#[test]
fn a_full_switch_takes_a_flow_in_the_place_of_another_and_no_more() {
    let mut bench = Bench::new(4);
    bench.switch.pipeline.most_flows = 2;
    for priority in [1, 2] {
        assert_eq!(bench.refusal(&Message::FlowMod(flow(0, priority, vec![], apply(vec![to(1)])))), None);
    }
    let full = Some(ErrorKind::FlowModFailed(FlowModFailed::TableFull));
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 3, vec![], apply(vec![to(1)])))), full);
    assert_eq!(bench.refusal(&Message::FlowMod(flow(0, 2, vec![], apply(vec![to(2)])))), None);
    assert!(bench.switch.dump_flows(bench.now)[0].ends_with("priority=2 actions=output:2"));
    // By text likewise.
    assert!(bench.switch.add_flow("priority=1,actions=3", bench.now).is_ok());
    let refusal = bench.switch.add_flow("priority=4,actions=3", bench.now).unwrap_err();
    assert!(refusal.to_string().contains("finds the switch full"), "{refusal}");
    assert_eq!(bench.switch.dump_flows(bench.now).len(), 2);
}

#[test]
fn frames_for_a_controller_by_number_reach_only_that_one_with_their_reason() {
    let mut bench = Bench::new(4);
    bench.join(2);
    let message = nicira::Message::SetControllerId(5).to_experimenter();
    bench.say_from(2, &Message::Experimenter(message));
    bench.switch.add_flow("priority=1,actions=controller(reason=no_match,id=5,max_len=20)", bench.now).unwrap();
    bench.send(1, &frames::tcp(1, 2, 80));
    bench.agent.tell(&mut bench.switch);
    let told: Vec<_> = bench.agent.take_output(twinnet_units::Time::ZERO);
    let [(2, bytes, None)] = &told[..] else { panic!("{told:?}") };
    let Ok((_, Message::PacketIn(told))) = Message::decode(bytes) else { panic!("{bytes:?}") };
    assert_eq!((told.reason, told.data.len()), (v13::PacketInReason::NoMatch, 20));
    // Without a number it is for those that have none.
    bench.switch.add_flow("priority=2,actions=controller", bench.now).unwrap();
    bench.send(1, &frames::tcp(1, 2, 80));
    assert_eq!(bench.heard_by(1).len(), 1);
    bench.send(1, &frames::tcp(1, 2, 80));
    assert_eq!(bench.heard_by(2).len(), 0);
}
