//! A switch with its cache does, frame by frame, what one does that decides every frame anew: with groups, meters,
//! tags that go and timeouts among the flows.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::action::Action;
use super::super::group::{Bucket, GroupKind, NOTHING_WATCHED};
use super::super::meter::{Band, Effect, Meter, BURST, PACKETS};
use super::super::parse;
use super::frames::{arp, tagged, tcp, tcp6, udp};
use super::*;
use crate::FollowedKind;

fn an_action() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "output:2",
        "output:3",
        "IN_PORT",
        "group:1",
        "group:2",
        "group:3",
        "meter:1",
        "meter:2",
        "push_mpls:0x8847",
        "pop_mpls:0x0800",
        "dec_mpls_ttl",
        "set_mpls_ttl:9",
        "copy_ttl_in",
        "copy_ttl_out",
        "push_pbb:0x88e7",
        "pop_pbb",
        "push_vlan:0x8100",
        "pop_vlan",
        "dec_ttl",
        "set_nw_ttl:2",
        "mod_tp_dst:81",
        "mod_nw_tos:40",
        "write_actions(group:1,set_field:00:00:00:00:00:03->eth_dst)",
        "write_actions(output:4,push_mpls:0x8847)",
        "clear_actions",
        "CONTROLLER:64",
        "set_field:7->reg1",
        "resubmit(,1)",
        "exit",
    ])
}

fn a_flow(table: u8) -> impl Strategy<Value = String> {
    let matching = prop::sample::select(vec![
        "",
        "ip",
        "tcp",
        "tcp,tp_dst=81",
        "mpls",
        "dl_type=0x88e7",
        "ip,nw_tos=48",
        "reg1=7",
    ]);
    (matching, prop::collection::vec(an_action(), 1..6), 0..3, any::<bool>(), 0..2).prop_map(
        move |(matching, actions, priority, goto, idle)| {
            let allowed = |action: &&str| parse::flow(&format!("{matching},actions={action}")).is_ok();
            let mut actions: Vec<&str> = actions.into_iter().filter(allowed).collect();
            if goto && table == 0 {
                actions.push("goto_table:1");
            }
            let actions = if actions.is_empty() { "drop".to_owned() } else { actions.join(",") };
            format!("table={table},priority={priority},idle_timeout={idle},{matching},actions={actions}")
        },
    )
}

fn a_frame() -> impl Strategy<Value = Frame> {
    (0..4, 1..4_u8, 1..4_u8, prop::sample::select(vec![80_u16, 81]), any::<bool>()).prop_map(
        |(kind, from, to, port, tag)| {
            let frame = match kind {
                0 => tcp(from, to, port),
                1 => tcp6(from, to, port),
                2 => udp(from, to, port),
                _ => arp(from, to),
            };
            if tag {
                tagged(&frame, 5)
            } else {
                frame
            }
        },
    )
}

fn bucket(weight: u16, watch_port: u32, actions: Vec<Action>) -> Bucket {
    Bucket { weight, watch_port, watch_group: NOTHING_WATCHED, actions, frames: 0, bytes: 0 }
}

fn shown(outputs: Vec<Output>) -> Vec<(u32, u32, Vec<u8>)> {
    outputs.into_iter().map(|output| (output.port, output.frame.queue, output.frame.bytes)).collect()
}

/// A switch with these flows, three groups and two meters.
fn furnished(flows: &[String]) -> Switch {
    let mut switch = secure(&flows.iter().map(String::as_str).collect::<Vec<_>>());
    let any = NOTHING_WATCHED;
    let groups = &mut switch.pipeline.groups;
    let select =
        vec![bucket(2, any, vec![Action::Output(2)]), bucket(1, any, vec![Action::DecrementTtl, Action::Output(3)])];
    groups.put(1, GroupKind::Select, (select, Arc::default()), false, Time::ZERO).unwrap();
    let all =
        vec![bucket(0, any, vec![Action::PopMpls(0x0800), Action::Output(4)]), bucket(0, any, vec![Action::Group(1)])];
    groups.put(2, GroupKind::All, (all, Arc::default()), false, Time::ZERO).unwrap();
    let failover =
        vec![bucket(0, 2, vec![Action::Output(2)]), bucket(0, 3, vec![Action::PushVlan(0x8100), Action::Output(3)])];
    groups.put(3, GroupKind::FastFailover, (failover, Arc::default()), false, Time::ZERO).unwrap();
    let flags = PACKETS | BURST;
    for (id, effect) in [(1, Effect::Drop), (2, Effect::Remark(1))] {
        let (bands, written) = (vec![Band::new(1, 2, effect, flags)], Arc::default());
        let meter = Meter { flags, bands, written, added: Time::ZERO, frames: 0, bytes: 0 };
        switch.pipeline.meters.meters.insert(id, meter);
    }
    switch
}

proptest! {
    #[test]
    fn with_and_without_the_cache_the_same_leaves(
        flows in prop::collection::vec(prop_oneof![a_flow(0), a_flow(1)], 1..8),
        frames in prop::collection::vec((1..4_u32, a_frame(), 0..400_u64, 0..12_u8), 1..40),
    ) {
        let (mut cached, mut fresh) = (furnished(&flows), furnished(&flows));
        let mut now = Time::ZERO;
        for (in_port, frame, pause_ms, incident) in frames {
            now += Duration::from_ms(pause_ms);
            for switch in [&mut cached, &mut fresh] {
                switch.expire(now);
                if incident < 2 {
                    switch.set_port_up(2, incident == 0);
                }
            }
            fresh.cache.invalidate();
            let (one, other) = (send_at(&mut cached, in_port, &frame, now), send_at(&mut fresh, in_port, &frame, now));
            prop_assert_eq!(shown(one), shown(other));
        }
        prop_assert_eq!(cached.dump_flows(now), fresh.dump_flows(now));
        prop_assert_eq!(cached.counters().drops, fresh.counters().drops);
    }
    #[test]
    fn what_is_followed_is_what_is_done(
        flows in prop::collection::vec(prop_oneof![a_flow(0), a_flow(1)], 1..8),
        frames in prop::collection::vec((1..6_u32, a_frame()), 1..10),
        up in any::<bool>(),
    ) {
        let mut switch = furnished(&flows);
        switch.set_port_up(3, up);
        // A meter is taken to let frames pass.
        switch.pipeline.meters.meters.values_mut().for_each(|meter| meter.bands.clear());
        for (in_port, frame) in frames {
            let counted = |switch: &Switch| {
                let counters = switch.counters();
                let lookups: u64 = counters.tables.iter().map(|table| table.lookups).sum();
                (lookups, counters.drops.values().sum::<u64>())
            };
            let before = counted(&switch);
            let followed = switch.follow(in_port, frame.clone(), Time::ZERO);
            prop_assert_eq!(counted(&switch), before);
            let sent = send(&mut switch, in_port, &frame);
            prop_assert_eq!(shown(followed.outputs), shown(sent));
            let of = |kinds: &[FollowedKind]| followed.steps.iter().filter(|step| kinds.contains(&step.kind)).count();
            let looked_up = of(&[FollowedKind::Table]);
            let dropped = of(&[FollowedKind::Drop, FollowedKind::Controller]);
            let after = counted(&switch);
            // No controller is there to take what is meant for it.
            prop_assert_eq!((looked_up as u64, dropped as u64), (after.0 - before.0, after.1 - before.1));
        }
    }
}
