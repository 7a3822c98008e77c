//! Flow syntax: what is read, how it is written, and how mistakes are told.

use super::*;

/// The rule of a flow as it is dumped.
fn dumped(line: &str) -> String {
    let switch = secure(&[line]);
    let dump = switch.dump_flows(Time::ZERO).remove(0);
    dump.split_once("n_bytes=0, ").map(|(_, rule)| rule.to_owned()).unwrap()
}

#[test]
fn flows_are_written_as_ovs_ofctl_writes_them() {
    // As `ovs-ofctl parse-flow` prints them, with the instructions of OpenFlow 1.3 where it would print Nicira's.
    for (line, expected) in [
        ("priority=65535,ip,nw_dst=10.0.0.4,tcp,tp_dst=5002,actions=enqueue:4:1",
         "priority=65535,tcp,nw_dst=10.0.0.4,tp_dst=5002 actions=enqueue:4:1"),
        ("actions=normal", " actions=NORMAL"),
        ("priority=0 actions=drop", "priority=0 actions=drop"),
        ("in_port=1,dl_type=0x800,nw_proto=17,nw_src=10.1.2.3/255.255.0.0,actions=2,flood,all,in_port",
         "udp,in_port=1,nw_src=10.1.0.0/16 actions=output:2,FLOOD,ALL,IN_PORT"),
        ("dl_vlan=5,dl_vlan_pcp=3,eth_dst=1:2:3:4:5:6,actions=strip_vlan,output:3",
         "dl_vlan=5,dl_vlan_pcp=3,dl_dst=01:02:03:04:05:06 actions=pop_vlan,output:3"),
        ("dl_type=0x88cc,actions=controller", "dl_type=0x88cc actions=CONTROLLER:65535"),
        ("arp,arp_tpa=10.0.0.4,arp_op=2,actions=local", "arp,arp_tpa=10.0.0.4,arp_op=2 actions=LOCAL"),
        ("icmp6,icmp_type=135,nd_target=fe80::4,actions=drop", "icmp6,icmp_type=135,nd_target=fe80::4 actions=drop"),
        ("ip,nw_tos=184,nw_ecn=1,nw_ttl=64,nw_frag=later,actions=drop",
         "ip,nw_tos=184,nw_ecn=1,nw_ttl=64,nw_frag=later actions=drop"),
        ("ip,ip_dscp=46,actions=drop", "ip,nw_tos=184 actions=drop"),
("tcp,tcp_flags=0x12,actions=drop", "tcp,tcp_flags=syn|ack actions=drop"),
        ("tcp,tcp_flags=0/0x12,tp_dst=0/0xff00,actions=drop", "tcp,tp_dst=0x0/0xff00,tcp_flags=-syn-ack actions=drop"),
        ("ipv6,ipv6_label=0,tun_id=0,metadata=0/1,actions=write_metadata:0/1",
         "ipv6,tun_id=0,metadata=0/0x1,ipv6_label=0x00000 actions=write_metadata:0/0x1"),
                ("tcp,tcp_flags=+syn-ack,actions=drop", "tcp,tcp_flags=+syn-ack actions=drop"),
        ("table=2,tcp,tp_src=0x10/0xfff0,actions=set_field:10.0.0.9->ip_dst,goto_table:4", "tcp,tp_src=0x10/0xfff0 \
            actions=set_field:10.0.0.9->ip_dst,goto_table:4"),
        ("vlan_tci=0x1000/0x1000,actions=resubmit(,3),resubmit:2", "vlan_tci=0x1000/0x1000 \
            actions=resubmit(,3),resubmit:2"),
        ("idle_timeout=5,hard_timeout=7,cookie=3,metadata=5/7,actions=write_actions(set_queue:1,output(2)),pop_queue",
         "idle_timeout=5, hard_timeout=7, metadata=0x5/0x7 actions=write_actions(set_queue:1,output:2),pop_queue"),
        ("ip,actions=enqueue(4,1),mod_nw_tos:4,push_vlan:0x88a8,write_metadata:1/3,clear_actions",
         "ip actions=enqueue:4:1,mod_nw_tos:4,push_vlan:0x88a8,write_metadata:0x1/0x3,clear_actions"),
    ] {
        assert_eq!(dumped(line), expected, "{line}");
    }
}

#[test]
fn an_error_names_the_word_its_place_and_the_remedy() {
    for (line, expected) in [
        (
            "priority=5,tcp,tp_dts=80,actions=1",
            r#"column 16: "tp_dts" is neither a field nor a property of a flow; did you mean "tp_dst"?"#,
        ),
        (
            "tp_dst=80,actions=1",
            "column 1: \"tp_dst\" has no meaning without its protocol; add tcp, udp or sctp (tcp6, udp6, sctp6) to \
             the match",
        ),
        (
            "tcp,udp_dst=80,actions=1",
            r#"column 5: "udp_dst" has no meaning without its protocol; add udp or udp6 to the match"#,
        ),
        (
            "tcp,udp,actions=1",
            r#"column 5: "udp" contradicts an earlier condition of this flow; keep only one of them"#,
        ),
        (
            "ip,nw_dst=10.0.0.300,actions=1",
            "column 11: \"10.0.0.300\" is no valid nw_dst; write an IPv4 address such as 10.0.0.4, with an optional \
             /prefix or /mask",
        ),
        ("priority=70000,actions=1", r#"column 10: "70000" is no valid priority; write a number from 0 to 65535"#),
        ("tcp", r#"column 4: "" ends without actions; end the flow with actions=..., for example actions=drop"#),
        ("tcp,actions=", r#"column 13: "" holds no action; write drop to drop the frames"#),
        ("actions=outptu:1", r#"column 9: "outptu" is no action; did you mean "output"?"#),
        ("actions=forward:1", r#"column 9: "forward" is no action; did you mean "output" or "normal"?"#),
        ("actions=steer:1", r#"column 9: "steer" is no action; the nearest are "meter", "learn", "move""#),
        (
            "tcp,dport=80,actions=1",
            r#"column 5: "dport" is neither a field nor a property of a flow; did you mean "tp_dst"?"#,
        ),
        (
            "ip,ipv4_src=10.0.0.1,actions=1",
            r#"column 4: "ipv4_src" is neither a field nor a property of a flow; did you mean "nw_src"?"#,
        ),
        ("actions=enqueue:4", r#"column 17: "4" names no queue; write enqueue:PORT:QUEUE"#),
        ("actions=output:0", r#"column 16: "0" is no port; write a port number from 1 to 4294967040, or LOCAL"#),
        (
            "table=3,actions=goto_table:3",
            r#"column 28: "3" is not a later table; go to a table above 3, the flow's own"#,
        ),
        (
            "actions=goto_table:3,output:1",
            "column 22: \"output\" follows goto_table:3, which ends the actions; write it before that, or leave it \
             away",
        ),
        (
            "actions=write_actions(output:1",
            "column 9: \"write_actions\" has an opening parenthesis without its closing one; add the \")\" that is \
             missing",
        ),
        (
            "actions=set_field:10.0.0.1->ip_dst",
            r#"column 29: "ip_dst" changes a header that the frames that match need not have; add ip to the match"#,
        ),
        (
            "actions=mod_tp_dst:1,2",
            "column 9: \"mod_tp_dst\" changes a header that the frames that match need not have; add tcp, udp or \
             sctp (tcp6, udp6, sctp6) to the match",
        ),
        (
            "arp,actions=dec_ttl,2",
            "column 13: \"dec_ttl\" changes a header that the frames that match need not have; add ip or ipv6 to the \
             match",
        ),
        ("actions=1,drop", r#"column 11: "drop" does not go together with other actions; write drop alone"#),
        (
            "ip,nw_tos=5,actions=1",
            "column 11: \"5\" is no valid nw_tos; write a number from 0 to 252 that is a multiple of 4 (the two ECN \
             bits are nw_ecn)",
        ),
    ] {
        let error = switch(FailMode::Secure).add_flow(line, Time::ZERO).unwrap_err();
        assert_eq!(error.to_string(), expected, "{line}");
    }
}

#[test]
fn a_refused_flow_changes_nothing() {
    let mut switch = secure(&["in_port=1,actions=2"]);
    assert!(switch.add_flow("in_port=1,actions=3,nonsense", Time::ZERO).is_err());
    assert!(switch.delete_flows("in_port=one", Time::ZERO).is_err());
    assert!(switch.delete_flows("in_port=1,actions=drop", Time::ZERO).is_err());
    assert_eq!(switch.dump_flows(Time::ZERO).len(), 1);
}
