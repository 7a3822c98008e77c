//! Every flow that can be read is written so that it reads back as the same.

use proptest::prelude::*;

use super::super::field::{Format, MatchField, FIELDS};
use super::super::flow::CHECK_OVERLAP;
use super::super::{parse, value};
use super::properties::an_action;
use super::*;

/// The matches that make sure of the headers that other fields need.
const PROTOCOLS: [&str; 20] = [
    "",
    "ip",
    "ipv6",
    "arp",
    "rarp",
    "tcp",
    "tcp6",
    "udp",
    "udp6",
    "sctp",
    "sctp6",
    "icmp",
    "icmp6",
    "icmp6,icmp_type=135",
    "icmp6,icmp_type=136",
    "mpls",
    "mplsm",
    "dl_type=0x88e7",
    "dl_type=0x88cc",
    "ip,nw_proto=89",
];

fn one_value(field: &MatchField, bits: u128) -> String {
    let bits = bits & field.maximum();
    match field.format {
        Format::Port => value::show_port((bits as u32).clamp(1, value::PORT_MAX)),
        Format::VlanOrNone => (bits & 0xfff).to_string(),
        Format::Mac | Format::Ipv4 | Format::Ipv6 => value::show(field.format, bits),
        Format::TypeOfService => (bits << 2).to_string(),
        _ => format!("{bits:#x}"),
    }
}

/// A value, and a mask where the field takes one.
fn a_value(field: &'static MatchField) -> BoxedStrategy<String> {
    let masks = prop_oneof![Just(u128::MAX), any::<u128>(), (0..128_u32).prop_map(|zeros| u128::MAX << zeros)];
    (any::<u128>(), masks, any::<bool>())
        .prop_map(move |(bits, mask, masked)| match masked && field.maskable {
            true => format!("{}/{}", one_value(field, bits), one_value(field, mask)),
            false => one_value(field, bits),
        })
        .boxed()
}

fn a_field() -> impl Strategy<Value = &'static MatchField> {
    (0..FIELDS.len()).prop_map(|index| &FIELDS[index])
}

fn a_condition() -> impl Strategy<Value = String> {
    a_field().prop_flat_map(|field| a_value(field).prop_map(|value| format!("{}={value}", field.name)))
}

/// Bits of a field, and how many.
fn some_bits(name: &'static str, bits: u16) -> impl Strategy<Value = (String, u16)> {
    (0..bits, 0..bits, 0..3).prop_map(move |(one, other, form)| {
        let (first, last) = (one.min(other), one.max(other));
        match form {
            0 => (format!("{name}[]"), bits),
            1 => (format!("{name}[{first}]"), 1),
            _ => (format!("{name}[{first}..{last}]"), last - first + 1),
        }
    })
}

fn a_part() -> impl Strategy<Value = (String, u16)> {
    let named = a_field().prop_flat_map(|field| some_bits(field.name, field.field.bits() as u16));
    let wires = [("NXM_NX_REG3", 32), ("NXM_OF_IN_PORT", 16), ("OXM_OF_METADATA", 64), ("NXM_OF_ETH_SRC", 48)];
    prop_oneof![4 => named, 1 => prop::sample::select(wires.to_vec())
        .prop_flat_map(|(name, bits)| some_bits(name, bits))]
}

fn a_part_of_learn() -> impl Strategy<Value = String> {
    prop_oneof![
        a_condition(),
        a_part().prop_map(|(part, _)| part),
        (a_part(), a_part()).prop_map(|((to, _), (from, _))| format!("{to}={from}")),
        (a_part(), any::<u128>()).prop_map(|((to, bits), value)| format!("{to}={:#x}", value >> (128 - bits))),
        (a_part(), any::<u128>()).prop_map(|((to, bits), value)| format!("load:{:#x}->{to}", value >> (128 - bits))),
        (a_part(), a_part()).prop_map(|((from, _), (to, _))| format!("load:{from}->{to}")),
        a_part().prop_map(|(from, _)| format!("output:{from}")),
        prop::sample::select(vec![
            "table=3",
            "priority=7",
            "cookie=0x9",
            "idle_timeout=3",
            "hard_timeout=4",
            "fin_idle_timeout=1",
            "fin_hard_timeout=2",
            "send_flow_rem",
            "NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[]",
            "NXM_OF_VLAN_TCI[0..11]",
            "output:NXM_OF_IN_PORT[]",
        ])
        .prop_map(str::to_owned),
    ]
}

const HASHES: [&str; 4] = ["eth_src", "symmetric_l4", "symmetric_l3l4+udp", "nw_dst"];
const CHOICES: [&str; 4] = ["modulo_n", "hash_threshold", "hrw", "iter_hash"];

/// An extension; not every one of these can be read.
fn an_extension() -> impl Strategy<Value = String> {
    let hash = || prop::sample::select(HASHES.to_vec());
    let members = prop::collection::vec(1..0xff00_u32, 0..4)
        .prop_map(|members| members.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    let members = members.boxed();
    prop_oneof![
        (a_part(), any::<u128>()).prop_map(|((to, bits), value)| format!("load:{:#x}->{to}", value >> (128 - bits))),
        (a_part(), a_part()).prop_map(|((from, _), (to, _))| format!("move:{from}->{to}")),
        a_part().prop_map(|(from, _)| format!("output:{from}")),
        (any::<u16>(), 0..3_u16, prop::sample::select(vec!["action", "no_match", "invalid_ttl"]))
            .prop_map(|(bytes, id, reason)| format!("controller(max_len={bytes},id={id},reason={reason})")),
        prop::collection::vec(a_part_of_learn(), 0..5).prop_map(|parts| format!("learn({})", parts.join(","))),
        (hash(), any::<u16>(), prop::sample::select(CHOICES.to_vec()), 1..70_000_u32, any::<u32>(), a_part()).prop_map(
            |(hash, basis, choice, ways, argument, (to, _))| {
                format!("multipath({hash},{basis},{choice},{ways},{argument},{to})")
            }
        ),
        (hash(), any::<u16>(), 0..2_usize, members.clone()).prop_map(|(hash, basis, choice, members)| {
            format!("bundle({hash},{basis},{},ofport,members:{members})", ["hrw", "active_backup"][choice])
        }),
        (hash(), any::<u16>(), members, a_part()).prop_map(|(hash, basis, members, (to, _))| {
            format!("bundle_load({hash},{basis},hrw,ofport,{to},members:{members})")
        }),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| {
            let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("note:{}", bytes.join("."))
        }),
        (any::<u16>(), any::<u16>())
            .prop_map(|(idle, hard)| format!("fin_timeout(idle_timeout={idle},hard_timeout={hard})")),
        a_field()
            .prop_flat_map(|field| { a_value(field).prop_map(|value| format!("set_field:{value}->{}", field.name)) }),
    ]
}

prop_compose! {
    /// A flow with whatever of it can be read.
    fn any_flow()(
        protocol in prop::sample::select(PROTOCOLS.to_vec()),
        conditions in prop::collection::vec(a_condition(), 0..12),
        actions in prop::collection::vec(prop_oneof![an_extension(), an_action(0)], 0..6),
        flags in prop::sample::subsequence(vec!["send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts",
            "no_byte_counts"], 0..=5),
        (idle, hard, cookie, priority) in (any::<u16>(), 0..2_u16, any::<u64>(), any::<u16>()),
    ) -> String {
        let mut matching = protocol.to_owned();
        for condition in conditions {
            let more = format!("{matching},{condition}");
            if parse::selection(&more).is_ok() {
                matching = more;
            }
        }
        let readable = |action: &String| parse::flow(&format!("{matching},actions={action}")).is_ok();
        let actions: Vec<_> = actions.into_iter().filter(readable).collect();
        let actions = if actions.is_empty() { "drop".to_owned() } else { actions.join(",") };
        let flags = flags.join(",");
        format!("cookie={cookie},idle_timeout={idle},hard_timeout={hard},{flags},priority={priority},{matching},\
         actions={actions}")
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn what_can_be_read_is_dumped_so_that_it_reads_back_as_the_same(line in any_flow()) {
        let mut flow = parse::flow(&line).unwrap();
        let dump = secure(&[&line]).dump_flows(at(3)).remove(0);
        flow.flags &= !CHECK_OVERLAP;
        prop_assert_eq!(&parse::flow(&dump).unwrap(), &flow, "{}", dump);
        prop_assert_eq!(parse::flow(&flow.to_string()).unwrap(), flow);
    }
}

#[test]
fn extensions_and_flags_are_written_as_ovs_ofctl_writes_them() {
    // As `ovs-ofctl parse-flow` of Open vSwitch 3.1 prints them.
    for (line, expected) in [
        ("send_flow_rem,check_overlap,reset_counts,no_packet_counts,no_byte_counts,priority=5,actions=1",
         "send_flow_rem reset_counts no_packet_counts no_byte_counts priority=5 actions=output:1"),
        ("actions=move:NXM_OF_ETH_SRC[]->eth_dst[],output:reg0[0..15],controller(max_len=100,reason=no_match,id=5)",
         " actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],output:NXM_NX_REG0[0..15],controller(reason=no_match,\
          max_len=100,id=5)"),
        ("tcp,actions=fin_timeout(idle_timeout=4,hard_timeout=6)",
         "tcp actions=fin_timeout(idle_timeout=4,hard_timeout=6)"),
        ("actions=learn(table=1,idle_timeout=5,hard_timeout=6,fin_idle_timeout=1,fin_hard_timeout=2,priority=10,\
         cookie=0x1,send_flow_rem,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],eth_type=0x800,\
          reg1[0..3]=5,load:0x5->reg0[0..3],load:NXM_OF_IN_PORT[]->reg2[0..15],output:NXM_OF_IN_PORT[],\
           ip_dst=10.0.0.1)", " actions=learn(table=1,idle_timeout=5,hard_timeout=6,fin_idle_timeout=1,\
            fin_hard_timeout=2,priority=10,send_flow_rem,cookie=0x1,NXM_OF_VLAN_TCI[0..11],\
             NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],eth_type=0x800,NXM_NX_REG1[0..3]=0x5,load:0x5->NXM_NX_REG0[0..3],\
              load:NXM_OF_IN_PORT[]->NXM_NX_REG2[0..15],output:NXM_OF_IN_PORT[],ip_dst=10.0.0.1)"),
        ("actions=multipath(eth_src,50,modulo_n,2,0,reg0[0..7]),bundle(symmetric_l3l4+udp,0,hrw,ofport,members:4,8),\
         bundle_load(eth_src,0,active_backup,ofport,reg0[],slaves:4,8)", " actions=multipath(eth_src,50,modulo_n,2,\
          0,NXM_NX_REG0[0..7]),bundle(symmetric_l3l4+udp,0,hrw,ofport,members:4,8),bundle_load(eth_src,0,\
           active_backup,ofport,NXM_NX_REG0[],members:4,8)"),
        ("actions=note:01.02.03,note:01.02.03.04.05.06.07",
         " actions=note:01.02.03.00.00.00,note:01.02.03.04.05.06.07.00.00.00.00.00.00.00"),
        ("ip,actions=load:1->ip_dscp[0..1]", "ip actions=load:0x1->OXM_OF_IP_DSCP[0..1]"),
    ] {
        let dump = secure(&[line]).dump_flows(Time::ZERO).remove(0);
        assert_eq!(dump.split_once("n_bytes=0, ").unwrap().1, expected, "{line}");
    }
}

#[test]
fn what_an_extension_cannot_do_is_said() {
    for (line, expected) in [
        (
            "actions=learn(delete_learned,NXM_OF_ETH_DST[])",
            "\"delete_learned\" is not done by this switch; leave it away",
        ),
        ("actions=load:4->reg0[0..1]", "\"4\" does not fit into those bits; write a number from 0 to 0x3"),
        (
            "actions=move:reg0[0..7]->reg1[]",
            "\"reg0[0..7]\" has 8 bits, and what it goes to 32; write as many bits on either side",
        ),
        ("actions=output:nothing[]", "\"nothing\" is no field whose bits can be named"),
        ("actions=load:1->in_port[]", "\"in_port[]\" cannot be set"),
        ("actions=controller(pause=1)", "\"pause\" is nothing of controller"),
        ("actions=fin_timeout(idle_timeout=3)", "add tcp or tcp6 to the match"),
        ("actions=bundle(eth_src,0,hrw,ofport)", "is too short; write bundle("),
        ("actions=note:1", "\"1\" is no note"),
        ("send_flow_rem=1,actions=1", "follows \"send_flow_rem\", which takes no value"),
    ] {
        let error = switch(FailMode::Secure).add_flow(line, Time::ZERO).unwrap_err();
        assert!(error.to_string().contains(expected), "{line}: {error}");
    }
}

#[test]
fn a_flow_that_must_not_overlap_another_is_refused_when_it_does() {
    let mut switch = secure(&["priority=5,in_port=1,actions=2"]);
    let overlapping = "check_overlap,priority=5,dl_dst=00:00:00:00:00:01,actions=3";
    let refusal = switch.add_flow(overlapping, Time::ZERO).unwrap_err();
    assert!(refusal.to_string().contains("overlaps a flow of the same priority"), "{refusal}");
    switch.add_flow("check_overlap,priority=5,in_port=2,actions=3", Time::ZERO).unwrap();
    let dump = switch.dump_flows(Time::ZERO);
    let again: Vec<_> = dump.iter().map(String::as_str).collect();
    assert_eq!(secure(&again).dump_flows(Time::ZERO), dump);
}

#[test]
fn flows_read_from_text_learn_and_choose_ways_as_those_of_a_controller() {
    let mut switch = secure(&[
        "priority=1,actions=learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),goto_table:1",
        "table=1,priority=0,actions=load:3->reg0[0..7],output:reg0[0..7]",
    ]);
    assert_eq!(ports(&send(&mut switch, 1, &frames::tcp(1, 2, 80))), [3]);
    assert_eq!(ports(&send(&mut switch, 4, &frames::tcp(2, 1, 80))), [1]);
}
