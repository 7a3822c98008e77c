//! The meaning of the fields of messages: bytes of another implementation, and the values that it was given for them.
//! That the bytes come back (`vectors.rs`) would not show two fields that are taken for each other.

use twinnet_openflow::oxm::{Field, FieldMatch};
use twinnet_openflow::v13::multipart::{MeterBandCounter, PortStats};
use twinnet_openflow::{nicira, v10, v13, NO_BUFFER};

const VECTORS: &str = include_str!("vectors/os-ken.txt");

fn bytes(version: &str, name: &str) -> Vec<u8> {
    let line = VECTORS.lines().find(|line| line.split(' ').take(2).eq([version, name])).expect("a vector of that name");
    let hex = line.split(' ').nth(2).expect("three words");
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn of_1_0(name: &str) -> v10::Message {
    v10::Message::decode(&bytes("1.0", name)).expect("a message").1
}

fn of_1_3(name: &str) -> v13::Message {
    v13::Message::decode(&bytes("1.3", name)).expect("a message").1
}

#[test]
fn a_flow_mod_of_1_0_and_its_actions() {
    use v10::Action::*;
    let v10::Message::FlowMod(change) = of_1_0("flow-mod") else { panic!("a flow-mod") };
    let matching = &change.matching;
    assert_eq!((matching.in_port, matching.dl_type, matching.nw_proto, matching.tp_dst), (1, 0x0800, 6, 80));
    assert_eq!((matching.nw_src, matching.nw_src_mask()), (0x0a00_0001, u32::MAX));
    assert_eq!((matching.nw_dst, matching.nw_dst_mask()), (0x0a01_0000, 0xffff_0000));
    assert!(
        matching.wildcards.contains(v10::Wildcards::TP_SRC) && !matching.wildcards.contains(v10::Wildcards::TP_DST)
    );
    assert_eq!((change.cookie, change.table_id, change.command), (3, 0, v10::FlowModCommand::Add));
    assert_eq!((change.idle_timeout, change.hard_timeout, change.priority), (5, 6, 7));
    assert_eq!((change.buffer_id, change.out_port), (NO_BUFFER, v10::port_number::NONE));
    assert_eq!(change.flags, v10::FlowFlags::SEND_FLOW_REM);
    let expected = [
        Output { port: 1, max_len: 64 },
        SetVlanVid(5),
        SetVlanPcp(3),
        StripVlan,
        SetDlSrc([2, 0, 0, 0, 0, 1]),
        SetDlDst([2, 0, 0, 0, 0, 2]),
        SetNwSrc(0x0a00_0003),
        SetNwDst(0x0a00_0004),
        SetNwTos(0xb8),
        SetTpSrc(1000),
        SetTpDst(2000),
        Enqueue { port: 4, queue_id: 1 },
    ];
    assert_eq!(change.actions, expected);
}

#[test]
fn statistics_of_1_0() {
    let v10::Message::StatsReply(v10::Statistics { more: false, body: v10::ReplyBody::Flow(flows) }) =
        of_1_0("flow-stats-reply")
    else {
        panic!("statistics of flows")
    };
    let [flow, second] = &flows[..] else { panic!("two flows") };
    assert_eq!(flow, second);
    assert_eq!((flow.table_id, flow.duration_sec, flow.duration_nsec, flow.priority), (1, 10, 11, 12));
    assert_eq!((flow.idle_timeout, flow.hard_timeout, flow.cookie), (13, 14, 15));
    assert_eq!((flow.packet_count, flow.byte_count), (16, 17));
    assert_eq!(flow.actions.value(), Some(&vec![v10::Action::Output { port: 2, max_len: 0 }]));

    let v10::Message::FlowRemoved(removed) = of_1_0("flow-removed") else { panic!("a flow-removed") };
    assert_eq!((removed.cookie, removed.priority, removed.reason), (5, 6, v10::FlowRemovedReason::HardTimeout));
    assert_eq!((removed.duration_sec, removed.duration_nsec, removed.idle_timeout), (7, 8, 9));
    assert_eq!((removed.packet_count, removed.byte_count), (10, 11));
}

#[test]
fn features_and_ports_of_1_0() {
    let v10::Message::FeaturesReply(features) = of_1_0("features-reply") else { panic!("features") };
    assert_eq!((features.datapath_id, features.n_buffers, features.n_tables), (0x1122, 256, 2));
    assert_eq!((features.capabilities, features.actions), (v10::Capabilities(0x87), 0xfff));
    let [port, _] = &features.ports[..] else { panic!("two ports") };
    assert_eq!((port.port_no, port.hw_addr, &*port.name.as_text()), (2, [2, 0, 0, 0, 0, 7], "eth1"));
    assert_eq!((port.config, port.state), (v10::PortConfig::NO_FLOOD, v10::PortState::STP_FORWARD));
    assert_eq!((port.current.0, port.advertised.0, port.supported.0, port.peer.0), (0x840, 0x40, 0x80, 0x100));
}

#[test]
fn a_flow_mod_of_nicira() {
    let v10::Message::Vendor(vendor) = of_1_0("nicira-flow-mod") else { panic!("a vendor message") };
    let Ok(nicira::Message::FlowMod(change)) = nicira::Message::decode(&vendor.data) else { panic!("a flow-mod") };
    assert_eq!((change.cookie, change.priority, change.table_id), (5, 7, 0));
    let expected = [
        FieldMatch::exact(Field::NxmInPort, 3),
        FieldMatch::exact(Field::EthType, 0x0800),
        FieldMatch::masked(Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000),
        FieldMatch::exact(Field::TunnelId, 0x99),
        FieldMatch::exact(Field::Reg2, 0x77),
    ];
    assert_eq!(change.matching.fields, expected);
}

#[test]
fn every_field_of_1_3_with_its_mask() {
    let matched = |index: usize| {
        let v13::Message::FlowMod(change) = of_1_3(&format!("match-{index}")) else { panic!("a flow-mod") };
        assert_eq!((change.cookie, change.priority), (index as u64, 9));
        change.matching.fields
    };
    let mac = 0x0200_0000_0000;
    let cases = [
        (0, FieldMatch::exact(Field::InPhyPort, 8)),
        (1, FieldMatch::masked(Field::Metadata, 0x1200, 0xff00)),
        (1, FieldMatch::masked(Field::TunnelId, 0x55, 0xff)),
        (2, FieldMatch::masked(Field::EthDst, 1 << 40, 1 << 40)),
        (2, FieldMatch::masked(Field::VlanVid, 0x1000, 0x1000)),
        (3, FieldMatch::exact(Field::VlanPcp, 5)),
        (4, FieldMatch::exact(Field::IpDscp, 46)),
        (4, FieldMatch::exact(Field::IpEcn, 2)),
        (4, FieldMatch::exact(Field::TcpDst, 80)),
        (5, FieldMatch::masked(Field::Ipv4Src, 0x0a01_0000, 0xffff_0000)),
        (6, FieldMatch::exact(Field::SctpDst, 6)),
        (7, FieldMatch::exact(Field::Icmpv4Type, 8)),
        (8, FieldMatch::exact(Field::ArpOp, 2)),
        (8, FieldMatch::masked(Field::ArpTha, mac, 0xffff_ff00_0000)),
        (9, FieldMatch::masked(Field::Ipv6Src, 0xfd00 << 112, 0xffff << 112)),
        (9, FieldMatch::masked(Field::Ipv6Flabel, 0x12300, 0xfff00)),
        (9, FieldMatch::exact(Field::Ipv6NdTarget, 0xfd00 << 112 | 3)),
        (9, FieldMatch::exact(Field::Ipv6NdSll, mac | 3)),
        (10, FieldMatch::exact(Field::Ipv6NdTll, mac | 4)),
        (10, FieldMatch::masked(Field::Ipv6Exthdr, 0x40, 0x1c0)),
        (11, FieldMatch::exact(Field::MplsLabel, 0xabcde)),
        (11, FieldMatch::exact(Field::MplsBos, 1)),
        (12, FieldMatch::masked(Field::PbbIsid, 0x12_3400, 0xff_ff00)),
    ];
    for (index, expected) in cases {
        let fields = matched(index);
        assert!(fields.contains(&expected), "{expected:?} in {fields:?}");
    }
}

#[test]
fn every_instruction_and_action_of_1_3() {
    use v13::Action::*;
    use v13::Instruction::{self, GotoTable, WriteActions, WriteMetadata};
    let v13::Message::FlowMod(change) = of_1_3("instructions") else { panic!("a flow-mod") };
    let [Instruction::Meter(6), Instruction::ApplyActions(actions), Instruction::ClearActions, rest @ ..] =
        &change.instructions[..]
    else {
        panic!("a meter and actions first in {:?}", change.instructions)
    };
    let [WriteActions(written), WriteMetadata { metadata: 0x10, mask: 0xf0 }, GotoTable(7)] = rest else {
        panic!("six instructions in {:?}", change.instructions)
    };
    assert_eq!(written, &[Output { port: 1, max_len: 0xffe5 }]);
    let expected = [
        Output { port: 3, max_len: 128 },
        CopyTtlOut,
        CopyTtlIn,
        SetMplsTtl(9),
        DecMplsTtl,
        PushVlan(0x88a8),
        PopVlan,
        PushMpls(0x8847),
        PopMpls(0x0800),
        SetQueue(4),
        Group(5),
        SetNwTtl(64),
        DecNwTtl,
        PushPbb(0x88e7),
        PopPbb,
        Experimenter { experimenter: 0x4f4e_4600, data: b"01234567".to_vec() },
    ];
    assert_eq!(actions[actions.len() - expected.len()..], expected);
    let set = actions.iter().filter(|action| matches!(action, SetField(_))).count();
    assert_eq!(set, actions.len() - expected.len());
}

#[test]
fn statistics_of_1_3() {
    let v13::Message::MultipartReply(v13::Multipart { body: v13::ReplyBody::Meter(meters), .. }) =
        of_1_3("4-50-ofp_meter_stats_reply")
    else {
        panic!("statistics of meters")
    };
    let [meter] = &meters[..] else { panic!("one meter") };
    assert_eq!((meter.meter_id, meter.flow_count), (100, 0));
    assert_eq!((meter.packet_in_count, meter.byte_in_count), (0, 0));
    assert_eq!((meter.duration_sec, meter.duration_nsec), (0, 480_000));
    assert_eq!(meter.bands, [MeterBandCounter { packet_count: 0, byte_count: 0 }]);

    let v13::Message::MultipartReply(v13::Multipart { body: v13::ReplyBody::PortStats(ports), .. }) =
        of_1_3("4-30-ofp_port_stats_reply")
    else {
        panic!("statistics of ports")
    };
    let [PortStats { port_no: 7, rx_bytes, .. }, PortStats { port_no: 6, .. }] = ports[..] else { panic!("two ports") };
    assert_eq!(rx_bytes, 0);
}
