//! Stand-alone: learning, ageing, flooding over the tree.

use twinnet_packet::Frame;

use super::frames::{arp, tagged, tcp, tcp_train, udp};
use super::*;

#[test]
fn an_unknown_destination_is_flooded_and_a_learnt_one_is_not() {
    let mut switch = switch(FailMode::Standalone);
    assert_eq!(ports(&send(&mut switch, 1, &arp(1, 4))), [2, 3, 4]);
    assert_eq!(ports(&send(&mut switch, 4, &tcp(4, 1, 80))), [1]);
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [4]);
}

#[test]
fn a_host_that_moves_is_found_at_its_new_port() {
    let mut switch = switch(FailMode::Standalone);
    send(&mut switch, 1, &arp(1, 4));
    send(&mut switch, 2, &arp(1, 4));
    assert_eq!(ports(&send(&mut switch, 4, &tcp(4, 1, 80))), [2]);
}

#[test]
fn an_address_that_aged_is_flooded_again() {
    let mut switch = switch(FailMode::Standalone);
    send_at(&mut switch, 1, &arp(1, 4), Time::ZERO);
    assert_eq!(ports(&send_at(&mut switch, 4, &tcp(4, 1, 80), at(299))), [1]);
    assert_eq!(ports(&send_at(&mut switch, 4, &tcp(4, 1, 80), at(300))), [1, 2, 3]);
}

#[test]
fn what_was_learnt_is_told_with_its_port_vlan_and_age_until_it_is_forgotten() {
    let mut switch = switch(FailMode::Standalone);
    send_at(&mut switch, 4, &tagged(&tcp(4, 1, 80), 10), at(1));
    send_at(&mut switch, 2, &arp(1, 4), at(2));
    send_at(&mut switch, 3, &arp(1, 4), at(5));
    let told = |now| switch.learnt(at(now)).iter().map(|one| (one.port, one.vlan, one.age)).collect::<Vec<_>>();
    assert_eq!(told(8), [(3, 0, Duration::from_secs(3)), (4, 10, Duration::from_secs(7))]);
    assert_eq!(told(301), [(3, 0, Duration::from_secs(296))]);
    assert!(told(305).is_empty());
    assert_eq!(switch.forget_learnt(), 2);
    assert!(switch.learnt(at(8)).is_empty());
    send_at(&mut switch, 2, &arp(1, 4), at(9));
    assert_eq!(switch.learnt(at(9)).len(), 1);
}

#[test]
fn vlans_learn_apart() {
    let mut switch = switch(FailMode::Standalone);
    send(&mut switch, 1, &tagged(&arp(1, 4), 10));
    assert_eq!(ports(&send(&mut switch, 4, &tagged(&tcp(4, 1, 80), 10))), [1]);
    assert_eq!(ports(&send(&mut switch, 4, &tagged(&tcp(4, 1, 80), 11))), [1, 2, 3]);
}

#[test]
fn ports_outside_of_the_tree_are_neither_flooded_to_nor_learnt_from() {
    let mut switch = switch(FailMode::Standalone);
    switch.set_port_in_tree(3, false);
    assert_eq!(ports(&send(&mut switch, 1, &arp(1, 4))), [2, 4]);
    send(&mut switch, 3, &arp(9, 4));
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 9, 80))), [2, 4]);
}

#[test]
fn a_port_that_goes_down_is_forgotten_and_not_sent_to() {
    let mut switch = switch(FailMode::Standalone);
    send(&mut switch, 1, &arp(1, 4));
    switch.set_port_up(1, false);
    assert_eq!(ports(&send(&mut switch, 4, &tcp(4, 1, 80))), [2, 3]);
    assert_eq!(ports(&send(&mut switch, 1, &arp(1, 4))), [0_u32; 0]);
    assert_eq!(drops(&switch, SwitchDrop::Ingress), 1);
    switch.set_port_up(1, true);
    assert_eq!(ports(&send(&mut switch, 4, &tcp(4, 1, 80))), [1, 2, 3]);
}

#[test]
fn a_frame_for_a_station_at_its_own_port_is_dropped() {
    let mut switch = switch(FailMode::Standalone);
    send(&mut switch, 1, &arp(1, 2));
    send(&mut switch, 1, &arp(2, 1));
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 2, 80))), [0_u32; 0]);
    assert_eq!(drops(&switch, SwitchDrop::ToIngress), 1);
}

#[test]
fn bridge_protocol_addresses_are_not_forwarded() {
    let mut switch = switch(FailMode::Standalone);
    let mut frame = tcp(1, 2, 80);
    frame.bytes[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    assert_eq!(send(&mut switch, 1, &frame).len(), 0);
    assert_eq!(drops(&switch, SwitchDrop::Reserved), 1);
}

/// An MLDv2 report (type 143) or a general query (type 130) behind the hop-by-hop header that both carry.
fn mld(kind: u8, group: u8) -> Frame {
    let mut bytes = vec![0x33, 0x33, 0, 0, 0, group, 0, 0, 0, 0, 0, 1, 0x86, 0xdd];
    bytes.extend_from_slice(&[0x60, 0, 0, 0, 0, 32, 0, 1]);
    bytes.extend_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend_from_slice(&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, group]);
    bytes.extend_from_slice(&[58, 0, 5, 2, 0, 0, 1, 0]);
    bytes.extend_from_slice(&[kind; 1]);
    bytes.extend_from_slice(&[0; 23]);
    Frame::new(bytes)
}

#[test]
fn reports_of_membership_go_to_multicast_routers_only() {
    let mut switch = switch(FailMode::Standalone);
    assert_eq!(ports(&send_at(&mut switch, 1, &mld(143, 0x16), Time::ZERO)), [0_u32; 0]);
    assert_eq!(drops(&switch, SwitchDrop::Membership), 1);
    assert_eq!(ports(&send_at(&mut switch, 3, &mld(130, 1), Time::ZERO)), [1, 2, 4]);
    assert_eq!(ports(&send_at(&mut switch, 1, &mld(143, 0x16), at(200))), [3]);
    assert_eq!(ports(&send_at(&mut switch, 1, &mld(143, 0x16), at(256))), [0_u32; 0]);
}

#[test]
fn a_train_counts_as_its_frames() {
    let mut switch = switch(FailMode::Standalone);
    switch.add_flow("tcp,actions=output:4,output:1", Time::ZERO).unwrap();
    let out = send(&mut switch, 1, &tcp_train(1, 4, 80, 14480));
    assert_eq!((ports(&out), out[0].frame.frames()), (vec![4], 10));
    assert_eq!(drops(&switch, SwitchDrop::ToIngress), 10);
    let dump = switch.dump_flows(Time::ZERO);
    assert!(dump[0].contains(&format!("n_packets=10, n_bytes={}", 14480 + 540)), "{dump:?}");
}

#[test]
fn a_frame_too_short_to_have_addresses_does_no_harm() {
    let mut switch = switch(FailMode::Standalone);
    for length in 0..14 {
        send(&mut switch, 1, &Frame::new(vec![0; length]));
    }
    assert_eq!(switch.counters().received, 14);
}

#[test]
fn a_switch_can_move_to_another_thread() {
    let mut switch = switch(FailMode::Standalone);
    let ports = std::thread::spawn(move || ports(&send(&mut switch, 1, &arp(1, 4)))).join().unwrap();
    assert_eq!(ports, [2, 3, 4]);
}

#[test]
fn a_frame_is_followed_with_the_reasons() {
    let switch = secure(&[
        "priority=9,tcp,tp_dst=80,actions=mod_nw_dst:10.0.0.3,resubmit(,1)",
        "table=1,ip,actions=set_queue:2,output:3",
        "table=1,priority=5,actions=output:9",
    ]);
    let told = |frame: Frame| -> Vec<String> {
        let followed = switch.follow(1, frame, Time::ZERO);
        let steps = followed.steps.iter().map(|step| {
            let text = step.text.as_deref().map_or("-", |text| text.rsplit(", ").next().unwrap_or(text));
            format!("{:?} {:?} {text}", step.kind, step.number)
        });
        steps.chain(followed.outputs.iter().map(|out| format!("{}:{}", out.port, out.frame.queue))).collect()
    };
    let tcp_rule = "Table Some(0) priority=9,tcp,tp_dst=80 actions=mod_nw_dst:10.0.0.3,resubmit(,1)";
    let changed = "Rewrite None nw_dst=10.0.0.3";
    assert_eq!(told(tcp(1, 2, 80)), [tcp_rule, "Table Some(1) ip actions=set_queue:2,output:3", changed, "3:2"]);
    assert_eq!(told(udp(1, 2, 80)), ["Table Some(0) -", "Drop None no_flow"]);
    let learning = super::switch(FailMode::Standalone);
    let followed = learning.follow(1, udp(1, 2, 80), Time::ZERO);
    assert_eq!(followed.steps.last().map(|step| step.kind), Some(crate::FollowedKind::Normal));
    assert_eq!(ports(&followed.outputs), [2, 3, 4]);
    assert_eq!(learning.counters().stations, 0, "nothing is learnt");
}
