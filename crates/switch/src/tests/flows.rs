//! Flows: priorities, masks, tables, timeouts, counters, queues.

use super::frames::{arp, tagged, tcp, tcp6, udp};
use super::*;

#[test]
fn the_line_of_the_first_study_puts_its_traffic_into_queue_1() {
    let mut switch = switch(FailMode::Standalone);
    switch.add_flow("priority=65535,ip,nw_dst=10.0.0.4,tcp,tp_dst=5002,actions=enqueue:4:1", Time::ZERO).unwrap();
    let out = send(&mut switch, 1, &tcp(1, 4, 5002));
    assert_eq!((out[0].port, out[0].frame.queue, out.len()), (4, 1, 1));
    // All else follows the learning switch, in the default queue.
    let out = send(&mut switch, 1, &tcp(1, 4, 8080));
    assert_eq!((ports(&out), out[0].frame.queue), (vec![2, 3, 4], 0));
    let dump = switch.dump_flows(at(5));
    assert_eq!(
        dump,
        [" cookie=0x0, duration=5.000s, table=0, n_packets=1, n_bytes=64, \
            priority=65535,tcp,nw_dst=10.0.0.4,tp_dst=5002 actions=enqueue:4:1"]
    );
}

#[test]
fn the_queue_of_the_switch_before_does_not_carry_over() {
    let mut switch = secure(&["actions=output:2"]);
    let mut frame = tcp(1, 2, 80);
    frame.queue = 9;
    assert_eq!(send(&mut switch, 1, &frame)[0].frame.queue, 0);
}

#[test]
fn set_queue_lasts_until_pop_queue() {
    let mut switch = secure(&["actions=set_queue:3,output:2,enqueue:3:5,output:4,pop_queue,in_port"]);
    let out = send(&mut switch, 1, &tcp(1, 2, 80));
    let seen: Vec<_> = out.iter().map(|output| (output.port, output.frame.queue)).collect();
    assert_eq!(seen, [(2, 3), (3, 5), (4, 3), (1, 0)]);
}

#[test]
fn the_highest_priority_wins_whatever_the_masks() {
    let mut switch = secure(&[
        "priority=10,ip,nw_dst=10.0.0.0/8,actions=2",
        "priority=20,ip,nw_dst=10.0.0.0/24,actions=3",
        "priority=5,tcp,nw_dst=10.0.0.4,tp_dst=80,actions=4",
    ]);
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [3]);
    assert_eq!(switch.delete_flows("ip,nw_dst=10.0.0.0/24", Time::ZERO).unwrap(), 2, "the one within it goes too");
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [2]);
    assert_eq!(switch.delete_flows("", Time::ZERO).unwrap(), 1);
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [0_u32; 0]);
    assert_eq!(drops(&switch, SwitchDrop::NoFlow), 1);
}

#[test]
fn the_older_of_two_equal_priorities_wins_and_the_same_match_replaces() {
    let mut switch = secure(&["priority=9,in_port=1,actions=2", "priority=9,tcp,actions=3"]);
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [2]);
    switch.add_flow("priority=9,in_port=1,actions=4", Time::ZERO).unwrap();
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [3]);
    assert_eq!(switch.dump_flows(Time::ZERO).len(), 2);
}

#[test]
fn masks_of_every_shape_match() {
    let cases: &[(&str, u32, Frame, bool)] = &[
        ("ip,nw_src=10.0.0.0/255.0.0.255", 1, tcp(1, 4, 80), false),
        ("ip,nw_src=10.0.0.1/255.0.0.255", 1, tcp(1, 4, 80), true),
        ("dl_dst=00:00:00:00:00:00/01:00:00:00:00:00", 1, tcp(1, 4, 80), true),
        ("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", 1, arp(1, 4), true),
        ("tcp,tcp_dst=0x1380/0xfff0", 1, tcp(1, 4, 0x138a), true),
        ("tcp,tcp_flags=+ack-syn", 1, tcp(1, 4, 80), true),
        ("tcp,tcp_flags=+syn", 1, tcp(1, 4, 80), false),
        ("ipv6,ipv6_dst=fd00::/16", 1, tcp6(1, 4, 80), true),
        ("tcp6,tp_dst=80", 1, tcp6(1, 4, 80), true),
        ("tcp,tp_dst=80", 1, tcp6(1, 4, 80), false),
        ("udp,udp_dst=5003", 1, udp(1, 4, 5003), true),
        ("arp,arp_op=1,arp_spa=10.0.0.1,arp_tpa=10.0.0.4,arp_sha=00:00:00:00:00:01", 1, arp(1, 4), true),
        ("arp,nw_dst=10.0.0.4", 1, arp(1, 4), true),
        ("dl_vlan=10,dl_vlan_pcp=5", 1, tagged(&arp(1, 4), 0xa00a), true),
        ("dl_vlan=10,dl_vlan_pcp=4", 1, tagged(&arp(1, 4), 0xa00a), false),
        ("dl_vlan=0xffff", 1, arp(1, 4), true),
        ("dl_vlan=0xffff", 1, tagged(&arp(1, 4), 0), false),
        ("vlan_vid=0x1000/0x1000", 1, tagged(&arp(1, 4), 7), true),
        ("vlan_tci=0x100a/0x1fff,ip", 1, tagged(&tcp(1, 4, 80), 0xa00a), true),
        ("ip,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no", 1, tcp(1, 4, 80), true),
        ("in_port=2", 1, tcp(1, 4, 80), false),
        ("metadata=0/1", 1, tcp(1, 4, 80), true),
    ];
    for (matching, in_port, frame, expected) in cases {
        let mut switch = secure(&[&format!("{matching},actions=output:3")]);
        assert_eq!(send(&mut switch, *in_port, frame).len() == 1, *expected, "{matching}");
    }
}

#[test]
fn tables_pass_metadata_on_and_carry_the_action_set_out_at_the_end() {
    let mut switch = secure(&[
        "table=0,in_port=1,actions=write_metadata:0x5/0xf,write_actions(output:2,set_queue:4),goto_table:3",
        "table=3,metadata=0x5/0xf,tcp,actions=output:3,goto_table:5",
        "table=3,priority=1,actions=clear_actions",
        "table=5,tcp,tp_dst=80,actions=write_actions(output:4)",
    ]);
    let out = send(&mut switch, 1, &tcp(1, 4, 80));
    let seen: Vec<_> = out.iter().map(|output| (output.port, output.frame.queue)).collect();
    assert_eq!(seen, [(3, 0), (4, 4)], "a later output replaces that of the action set");
    assert_eq!(ports(&send(&mut switch, 1, &udp(1, 4, 80))), [0_u32; 0]);
    assert_eq!(drops(&switch, SwitchDrop::Action), 1);
    // Nothing in table 5 matches: the packet is dropped, its action set with it; what was output before is gone
    // already.
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 81))), [3]);
    let counted: Vec<_> =
        switch.counters().tables.iter().map(|table| (table.table, table.lookups, table.matches)).collect();
    assert_eq!(counted, [(0, 3, 3), (3, 3, 3), (5, 2, 1)]);
}

#[test]
fn a_resubmit_looks_up_as_if_from_another_port_and_goes_on_after_it() {
    let mut switch = secure(&[
        "in_port=1,actions=resubmit:9,resubmit(,1),output:2",
        "in_port=9,actions=output:3",
        "table=1,in_port=1,actions=output:4",
    ]);
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [3, 4, 2]);
}

#[test]
fn resubmits_without_end_drop_the_frame() {
    let mut circle = secure(&["actions=output:2,resubmit(,0)"]);
    assert_eq!(send(&mut circle, 1, &tcp(1, 4, 80)).len(), 0);
    assert_eq!(drops(&circle, SwitchDrop::Resubmit), 1);
    // Each table resubmits twice to the next: 2^40 look-ups if nothing stopped it.
    let lines: Vec<_> = (0..40).map(|t| format!("table={t},actions=resubmit(,{0}),resubmit(,{0})", t + 1)).collect();
    let mut tree = secure(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(send(&mut tree, 1, &tcp(1, 4, 80)).len(), 0);
    assert_eq!(drops(&tree, SwitchDrop::Resubmit), 1);
}

#[test]
fn a_hard_timeout_ends_a_flow_in_use_and_an_idle_one_only_without_frames() {
    let mut switch = secure(&["in_port=1,hard_timeout=10,actions=2", "in_port=2,idle_timeout=4,actions=1"]);
    assert_eq!(switch.next_timeout(), Some(at(4)));
    send_at(&mut switch, 2, &tcp(2, 1, 80), at(3));
    send_at(&mut switch, 2, &tcp(2, 1, 80), at(3));
    assert_eq!(switch.expire(at(4)), 0);
    assert_eq!(switch.next_timeout(), Some(at(7)));
    assert_eq!(switch.expire(at(7)), 1);
    assert_eq!(ports(&send_at(&mut switch, 2, &tcp(2, 1, 80), at(7))), [0_u32; 0], "the cache forgets it too");
    assert_eq!(ports(&send_at(&mut switch, 1, &tcp(1, 2, 80), at(9))), [2]);
    assert_eq!(switch.expire(at(10)), 1);
    assert_eq!((switch.next_timeout(), switch.dump_flows(at(10)).len()), (None, 0));
}

#[test]
fn a_replaced_flow_does_not_end_at_its_predecessors_time() {
    let mut switch = secure(&["in_port=1,hard_timeout=10,actions=2"]);
    switch.add_flow("in_port=1,hard_timeout=10,actions=3", at(5)).unwrap();
    assert_eq!(switch.expire(at(10)), 0);
    assert_eq!(switch.expire(at(15)), 1);
}

#[test]
fn connections_share_what_was_decided_where_no_flow_asks_for_what_tells_them_apart() {
    let mut switch = secure(&["priority=2,ip,nw_dst=10.0.0.4,actions=2", "priority=1,ip,actions=dec_ttl,3"]);
    for port in 80..90 {
        assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, port))), [2]);
    }
    assert_eq!((switch.counters().cache_hits, switch.counters().cache_misses), (9, 1));
    // Once a decision has read more of a frame than flows match, all of it counts.
    for port in 80..90 {
        assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 3, port))), [3]);
    }
    assert_eq!((switch.counters().cache_hits, switch.counters().cache_misses), (9, 11));
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 99))), [2]);
    // And what is asked for from now on counts from now on.
    switch.add_flow("priority=3,tcp,tcp_dst=85,actions=4", Time::ZERO).unwrap();
    for port in 80..90 {
        assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, port))), [if port == 85 { 4 } else { 2 }]);
    }
}

#[test]
fn the_cache_serves_what_was_seen_and_forgets_it_when_the_tables_change() {
    let mut switch = secure(&["in_port=1,actions=2"]);
    for _ in 0..3 {
        assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [2]);
    }
    assert_eq!((switch.counters().cache_hits, switch.counters().cache_misses), (2, 1));
    switch.add_flow("priority=65000,tcp,actions=3", Time::ZERO).unwrap();
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [3]);
    assert_eq!((switch.counters().cache_hits, switch.counters().cache_misses), (2, 2));
}

#[test]
fn every_way_of_not_sending_has_its_reason() {
    for (actions, reason) in [
        ("drop", SwitchDrop::Action),
        ("output:1", SwitchDrop::ToIngress),
        ("output:77", SwitchDrop::NoPort),
        ("controller", SwitchDrop::Controller),
        ("local", SwitchDrop::Local),
        ("mod_nw_ttl:1,dec_ttl,output:2", SwitchDrop::TimeToLive),
    ] {
        let mut switch = secure(&[&format!("ip,actions={actions}")]);
        assert_eq!(send(&mut switch, 1, &tcp(1, 4, 80)).len(), 0, "{actions}");
        assert_eq!(drops(&switch, reason), 1, "{actions}: {:?}", switch.counters());
    }
    let mut down = secure(&["actions=output:2"]);
    down.set_port_up(2, false);
    assert_eq!(send(&mut down, 1, &tcp(1, 4, 80)).len(), 0);
    assert_eq!(drops(&down, SwitchDrop::PortDown), 1);
}

#[test]
fn local_is_a_port_like_others_where_the_switch_has_one() {
    let local = super::super::value::PORT_LOCAL;
    let mut switch = secure(&["in_port=1,actions=local", "in_port=local,actions=all", "in_port=2,actions=flood"]);
    switch.add_port(local, "s1", [0, 0, 0, 0, 1, 9]);
    assert_eq!(ports(&send(&mut switch, 1, &tcp(1, 4, 80))), [local]);
    assert_eq!(ports(&send(&mut switch, local, &tcp(4, 1, 80))), [1, 2, 3, 4]);
    assert_eq!(ports(&send(&mut switch, 2, &tcp(1, 4, 80))), [1, 3, 4, local]);
    switch.set_port_up(local, false);
    assert_eq!(send(&mut switch, 1, &tcp(1, 4, 80)).len(), 0);
    assert_eq!((drops(&switch, SwitchDrop::PortDown), drops(&switch, SwitchDrop::Local)), (1, 0));
}

#[test]
fn flood_keeps_to_the_tree_in_a_stand_alone_switch_and_all_does_not() {
    for (mode, reached) in [(FailMode::Standalone, vec![2, 4]), (FailMode::Secure, vec![2, 3, 4])] {
        let mut flood = switch(mode);
        flood.add_flow("in_port=1,actions=flood", Time::ZERO).unwrap();
        flood.add_flow("in_port=2,actions=all", Time::ZERO).unwrap();
        flood.set_port_in_tree(3, false);
        assert_eq!(ports(&send(&mut flood, 1, &tcp(1, 4, 80))), reached, "{mode:?}");
        assert_eq!(ports(&send(&mut flood, 2, &tcp(1, 4, 80))), [1, 3, 4], "{mode:?}");
    }
}

#[test]
fn normal_of_a_secure_switch_keeps_to_the_tree_only_where_it_is_told_to() {
    let mut normal = secure(&["actions=normal"]);
    normal.set_port_in_tree(3, false);
    assert_eq!(ports(&send(&mut normal, 1, &arp(1, 4))), [2, 3, 4]);
    send(&mut normal, 3, &arp(9, 4));
    assert_eq!(ports(&send(&mut normal, 1, &tcp(1, 9, 80))), [3], "it learns by every port");
    normal.keep_to_tree(true);
    assert_eq!(ports(&send(&mut normal, 1, &tcp(1, 9, 80))), [2, 4], "and forgets what it learnt outside of the tree");
    normal.keep_to_tree(false);
    assert_eq!(ports(&send(&mut normal, 1, &tcp(1, 9, 80))), [2, 3, 4]);
}

#[test]
fn deleting_by_cookie_table_and_port_spares_the_rest() {
    let mut switch = secure(&[
        "cookie=0x11,in_port=1,actions=2",
        "cookie=0x12,in_port=2,actions=enqueue:3:1",
        "cookie=0x21,table=1,in_port=3,actions=write_actions(output:4)",
    ]);
    assert_eq!(switch.delete_flows("out_port=4", Time::ZERO).unwrap(), 1);
    assert_eq!(switch.delete_flows("cookie=0x10/0xf0,table=0,in_port=1", Time::ZERO).unwrap(), 1);
    assert_eq!(switch.delete_flows("out_port=3", Time::ZERO).unwrap(), 1);
}
