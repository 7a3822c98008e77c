//! Properties over random flows and frames.

use std::sync::Arc;

use proptest::prelude::*;
use twinnet_packet::{Field, FlowKey, Glance, Rewrite};

use super::super::decision::Step;
use super::super::flow::Flow;
use super::super::parse;
use super::super::translate::{translate, walk, Start};
use super::frames::{arp, tagged, tcp, tcp6, udp};
use super::*;
use crate::SwitchCounters;

fn a_frame() -> impl Strategy<Value = Frame> {
    let host = 1..5_u8;
    (0..5, host.clone(), host, prop::sample::select(vec![80_u16, 81, 5002]), any::<bool>()).prop_map(
        |(kind, from, to, port, tag)| {
            let frame = match kind {
                0 => tcp(from, to, port),
                1 => tcp6(from, to, port),
                2 => udp(from, to, port),
                3 => arp(from, to),
                _ => Frame::new(tcp(from, to, port).bytes[..20 + usize::from(port % 30)].to_vec()),
            };
            if tag {
                tagged(&frame, 0x2000 | u16::from(to))
            } else {
                frame
            }
        },
    )
}

/// Match texts that are sound in themselves; few values, so that frames do match.
fn a_match() -> impl Strategy<Value = String> {
    let protocol = prop_oneof![
        Just(String::new()),
        Just("arp".to_owned()),
        (1..5).prop_map(|host| format!("arp,arp_tpa=10.0.0.{host}")),
        Just("ip,nw_frag=no".to_owned()),
        (1..5, 24..33).prop_map(|(host, length)| format!("ip,nw_src=10.0.0.{host}/{length}")),
        (1..5, 0..256).prop_map(|(host, mask)| format!("ip,nw_dst=10.0.0.{host}/255.255.0.{mask}")),
        Just("tcp,tp_dst=80".to_owned()),
        Just("tcp,tcp_flags=+ack-syn".to_owned()),
        (any::<u16>(), any::<u16>()).prop_map(|(port, mask)| format!("tcp,tp_dst={port}/{mask:#x}")),
        Just("tcp,tp_dst=5002,nw_tos=0,nw_ttl=64".to_owned()),
        Just("udp,udp_dst=81".to_owned()),
        Just("tcp6,tcp_dst=80,ipv6_dst=fd00::/64".to_owned()),
        (0..0x100_u32).prop_map(|flags| format!("tcp,tcp_flags={flags:#x}/0x12")),
        (0..0x200_u32).prop_map(|flags| format!("tcp,tcp_flags={flags}")),
        Just("icmp6,icmp_type=136,icmp_code=0,nd_target=fe80::1,nd_tll=00:00:00:00:00:01".to_owned()),
        Just("mpls,mpls_label=5,mpls_bos=1".to_owned()),
    ];
    let vlan = prop::sample::select(vec![
        "",
        "dl_vlan=2",
        "dl_vlan=0xffff",
        "vlan_tci=0x1000/0x1000",
        "dl_vlan_pcp=1",
        "vlan_vid=4099",
    ]);
    let ethernet = prop_oneof![
        Just(String::new()),
        (1..5).prop_map(|host| format!("dl_dst=00:00:00:00:00:{host:02x}")),
        (0..5, 0..8).prop_map(|(host, mask)| format!("dl_src=00:00:00:00:00:{host:02x}/00:00:00:00:00:{mask:02x}")),
    ];
    let port = prop::sample::select(vec!["", "in_port=1", "in_port=2", "metadata=1/3", "tun_id=0x0"]);
    (protocol, vlan, ethernet, port).prop_map(|(protocol, vlan, ethernet, port)| {
        [protocol.as_str(), vlan, ethernet.as_str(), port]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(",")
    })
}

pub(super) fn an_action(table: u8) -> impl Strategy<Value = String> {
    prop_oneof![
        (1..6).prop_map(|port| format!("output:{port}")),
        (1..6, 0..4).prop_map(|(port, queue)| format!("enqueue:{port}:{queue}")),
        prop::sample::select(vec![
            "FLOOD",
            "ALL",
            "IN_PORT",
            "dec_ttl",
            "pop_vlan",
            "push_vlan:0x8100",
            "set_queue:2",
            "pop_queue",
            "LOCAL",
            "CONTROLLER:128",
            "mod_nw_dst:10.0.0.3",
            "mod_tp_dst:81",
            "mod_vlan_vid:3",
            "mod_vlan_pcp:1",
            "mod_dl_dst:00:00:00:00:00:02",
            "clear_actions",
            "write_metadata:0x1/0x3",
            "write_actions(output:2,set_field:00:00:00:00:00:03->eth_dst)",
            "mod_nw_tos:8",
            "mod_nw_ttl:1",
            "set_field:0x2/0x6->metadata",
            "set_field:00:00:00:00:00:01/00:00:00:00:00:0f->eth_src",
            "resubmit(3,)",
            "NORMAL",
        ])
        .prop_map(str::to_owned),
        (0..3_u8).prop_map(move |next| format!("resubmit(,{})", table + next)),
    ]
}

prop_compose! {
    fn a_flow()(table in 0..3_u8)(
        actions in prop::collection::vec(an_action(table), 0..4),
        matching in a_match(),
        (priority, cookie, idle, hard) in (0..4, 0..3, 0..2, 0..2),
        goto in any::<bool>(),
        table in Just(table),
    ) -> String {
        // Those that the match allows.
        let allowed = |action: &String| parse::flow(&format!("table={table},{matching},actions={action}")).is_ok();
        let mut actions: Vec<_> = actions.into_iter().filter(allowed).collect();
        if goto {
            actions.push(format!("goto_table:{}", table + 1));
        }
        if actions.is_empty() {
            actions.push("drop".to_owned());
        }
        let actions = actions.join(",");
        format!("table={table},priority={priority},cookie={cookie},idle_timeout={idle},hard_timeout={hard},\
         {matching},actions={actions}")
    }
}

prop_compose! {
    /// A flow of table 0 that many frames match, with many actions.
    fn a_dense_flow()(
        matching in prop::sample::select(vec!["", "ip", "tcp", "tcp6", "udp", "arp", "dl_vlan_pcp=1"]),
        actions in prop::collection::vec(an_action(0), 1..10),
        priority in 0..3,
    ) -> String {
        let allowed = |action: &String| parse::flow(&format!("{matching},actions={action}")).is_ok();
        let actions: Vec<_> = actions.into_iter().filter(allowed).collect();
        let actions = if actions.is_empty() { "drop".to_owned() } else { actions.join(",") };
        format!("priority={priority},{matching},actions={actions}")
    }
}

fn with_flows(flows: &[String]) -> Switch {
    secure(&flows.iter().map(String::as_str).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn cached_and_fresh_decisions_agree(
        flows in prop::collection::vec(prop_oneof![a_flow(), a_dense_flow()], 0..12),
        frames in prop::collection::vec((1..4_u32, a_frame()), 1..30),
    ) {
        let mut switch = with_flows(&flows);
        for round in 0..2 {
            for (in_port, frame) in &frames {
                let out = send(&mut switch, *in_port, frame);
                let mut fresh = with_flows(&flows);
                // The learning switch remembers: only decisions are compared where it takes part.
                let key = FlowKey::extract(*in_port, &frame.bytes);
                let decision = translate(&fresh.pipeline, &key);
                let looked = Glance::of(*in_port, &frame.bytes)
                    .map(|glance| switch.cache.look(glance, &switch.pipeline));
                let glanced = looked.and_then(|glance| switch.cache.find_at_a_glance(&glance));
                let glanced = glanced.map(|found| Arc::clone(&found.decision));
                let cached = glanced.or_else(|| switch.cache.find(&key).cloned()).map(|cached| (*cached).clone());
                prop_assert_eq!(cached, Some(decision), "round {}", round);
                if !flows.iter().any(|flow| flow.contains("NORMAL")) {
                    let again = send(&mut fresh, *in_port, frame);
                    let all = |outputs: &[Output]| -> Vec<_> {
                        outputs.iter().map(|output| (output.port, output.frame.queue, output.frame.bytes.clone()))
                            .collect()
                    };
                    prop_assert_eq!(all(&out), all(&again));
                }
            }
        }
    }

    #[test]
    fn cached_decisions_count_what_walks_through_the_tables_count(
        flows in prop::collection::vec(prop_oneof![a_flow(), a_dense_flow()], 1..12),
        frames in prop::collection::vec((1..4_u32, a_frame()), 1..10),
    ) {
        let (mut cached, mut walked) = (with_flows(&flows), with_flows(&flows));
        for _ in 0..3 {
            for (in_port, frame) in &frames {
                send(&mut cached, *in_port, frame);
                walked.cache.invalidate();
                send(&mut walked, *in_port, frame);
            }
        }
        prop_assert_eq!(cached.dump_flows(Time::ZERO), walked.dump_flows(Time::ZERO));
        let counters = [cached, walked].map(|switch| {
            let SwitchCounters { received, tables, drops, .. } = switch.counters();
            (received, tables, drops)
        });
        prop_assert_eq!(&counters[0], &counters[1]);
    }

    #[test]
    fn the_tables_find_what_a_linear_search_finds(
        flows in prop::collection::vec(prop_oneof![a_flow(), a_dense_flow()], 0..20),
        frames in prop::collection::vec((1..4_u32, a_frame()), 1..20),
        deleted in a_match(),
    ) {
        let mut switch = with_flows(&flows);
        let parsed: Vec<_> = flows.iter().map(|line| parse::flow(line).unwrap()).collect();
        let mut kept: Vec<Flow> = Vec::new();
        for flow in parsed {
            kept.retain(|other| (other.table, other.priority, other.matching) != (flow.table, flow.priority,
                flow.matching));
            kept.push(flow);
        }
        let selection = parse::selection(&deleted).unwrap();
        let before = kept.len();
        kept.retain(|flow| !flow.matching.is_within(&selection.matching));
        prop_assert_eq!(switch.delete_flows(&deleted, Time::ZERO).unwrap(), before - kept.len());
        for (in_port, frame) in &frames {
            let key = FlowKey::extract(*in_port, &frame.bytes);
            for table in 0..3 {
                // The last of several maxima would win: turned round, the oldest does.
                let matching = kept.iter().rev().filter(|flow| flow.table == table && flow.matching.matches(&key));
                let expected = matching.max_by_key(|flow| flow.priority);
                let found = switch.pipeline.find(table, &key).and_then(|id| switch.pipeline.flow(id));
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_dumped_flow_reads_back_as_the_same(line in a_flow()) {
        let flow = parse::flow(&line).unwrap();
        prop_assert_eq!(&parse::flow(&flow.to_string()).unwrap(), &flow);
        let dump = with_flows(&[line]).dump_flows(at(3)).remove(0);
        prop_assert_eq!(parse::flow(&dump).unwrap(), flow);
    }

    #[test]
    fn what_a_frame_becomes_is_what_its_key_becomes(flows in prop::collection::vec(a_dense_flow(), 1..6),
        frame in a_frame()) {
        let switch = with_flows(&flows);
        let (key, mut layout) = FlowKey::extract_with_layout(1, &frame.bytes);
        let (decision, after) = walk(&switch.pipeline, &key, Start::Tables, &[]);
        let changes: Vec<_> = decision.steps.iter().filter_map(|step| match step {
            Step::Rewrite(rewrite) => Some(*rewrite),
            _ => None,
        }).collect();
        // The key knows two tags.
        let pushed = changes.iter().filter(|change| matches!(change, Rewrite::PushVlan { .. })).count();
        prop_assume!(pushed + usize::from(key.vlan_tci() != 0) <= 2);
        let whole = layout.l4().is_some();
        let mut frame = frame;
        for change in changes {
            change.apply(&mut frame, &mut layout);
        }
        let mut again = FlowKey::extract(1, &frame.bytes);
        again.set(Field::METADATA, after.get(Field::METADATA));
        if whole {
            prop_assert_eq!(again, after);
            super::frames::verify(&frame);
        }
    }

    #[test]
    fn no_bytes_panic(
        flows in prop::collection::vec(a_flow(), 0..8),
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..10),
        (mutated, place, value) in (a_frame(), any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let mut switch = with_flows(&flows);
        for bytes in frames {
            send(&mut switch, 1, &Frame::new(bytes));
        }
        let mut mutated = mutated;
        let at = place.index(mutated.bytes.len());
        mutated.bytes[at] = value;
        send(&mut switch, 2, &mutated);
    }

    #[test]
    fn no_text_panics(text in ".{0,60}", line in a_flow(), place in any::<prop::sample::Index>(),
        other in any::<char>()) {
        let _ = (parse::flow(&text), parse::selection(&text));
        let mut characters: Vec<_> = line.chars().collect();
        let at = place.index(characters.len());
        characters[at] = other;
        let _ = parse::flow(&characters.iter().collect::<String>());
        characters.remove(at);
        if let Err(error) = parse::flow(&characters.iter().collect::<String>()) {
            prop_assert!(error.column <= characters.len() + 1);
        }
    }
}
