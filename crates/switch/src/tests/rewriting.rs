//! Changes of headers on the way through, and their checksums.

use twinnet_packet::{Field, FlowKey};

use super::frames::{arp, tagged, tcp, tcp6, tcp_train, udp, verify};
use super::*;

fn key(frame: &Frame) -> FlowKey {
    FlowKey::extract(0, &frame.bytes)
}

#[test]
fn addresses_and_ports_are_rewritten_with_valid_checksums() {
    let mut switch = secure(&[
        "tcp,actions=mod_dl_dst:00:00:00:00:00:09,mod_nw_dst:10.9.9.9,mod_nw_src:10.8.8.8,mod_tp_dst:99,\
         mod_tp_src:98,mod_nw_tos:184,dec_ttl,output:2",
        "udp,actions=set_field:10.9.9.9->ip_dst,set_field:0x0->udp_dst,output:2",
        "tcp6,actions=set_field:fd00::9->ipv6_dst,set_field:99->tcp_dst,set_field:0x12345->ipv6_label,dec_ttl,output:2",
    ]);
    for frame in [tcp(1, 4, 80), tcp_train(1, 4, 80, 14480), udp(1, 4, 80), tcp6(1, 4, 80)] {
        let out = send(&mut switch, 1, &frame);
        verify(&out[0].frame);
    }
    let out = send(&mut switch, 1, &tcp(1, 4, 80));
    let seen = key(&out[0].frame);
    assert_eq!(seen.eth_dst(), [0, 0, 0, 0, 0, 9]);
    assert_eq!((seen.get(Field::NW_SRC), seen.get(Field::NW_DST)), (0x0a08_0808, 0x0a09_0909));
    assert_eq!((seen.get(Field::TP_SRC), seen.get(Field::TP_DST)), (98, 99));
    assert_eq!((seen.get(Field::NW_TOS), seen.get(Field::NW_TTL)), (184, 63));
    let out = send(&mut switch, 1, &tcp6(1, 4, 80));
    let seen = key(&out[0].frame);
    assert_eq!((seen.get(Field::TP_DST), seen.get(Field::IPV6_LABEL), seen.get(Field::NW_TTL)), (99, 0x12345, 63));
}

#[test]
fn each_output_sends_the_frame_as_it_is_at_that_point() {
    let mut switch = secure(&["actions=output:2,mod_dl_dst:00:00:00:00:00:09,output:3,mod_dl_dst:00:00:00:00:00:08"]);
    let out = send(&mut switch, 1, &tcp(1, 4, 80));
    let seen: Vec<_> = out.iter().map(|output| (output.port, key(&output.frame).eth_dst()[5])).collect();
    assert_eq!(seen, [(2, 4), (3, 9)]);
}

#[test]
fn a_masked_set_field_leaves_the_other_bits() {
    let mut switch = secure(&["ip,actions=set_field:0.0.5.0/0.0.255.0->ip_dst,output:2"]);
    let out = send(&mut switch, 1, &tcp(1, 4, 80));
    assert_eq!(key(&out[0].frame).get(Field::NW_DST), 0x0a00_0504);
    verify(&out[0].frame);
}

#[test]
fn tags_are_pushed_set_and_popped_and_later_tables_see_it() {
    let mut switch = secure(&[
        "in_port=1,actions=push_vlan:0x8100,set_field:4106->vlan_vid,mod_vlan_pcp:5,output:2,goto_table:1",
        "table=1,dl_vlan=10,dl_vlan_pcp=5,actions=pop_vlan,output:3,goto_table:2",
        "table=2,dl_vlan=0xffff,tcp,actions=mod_vlan_vid:11,output:4",
        "in_port=2,actions=strip_vlan,output:1",
    ]);
    for frame in [tcp(1, 4, 80), tcp_train(1, 4, 80, 2896)] {
        let out = send(&mut switch, 1, &frame);
        let seen: Vec<_> = out.iter().map(|output| (output.port, key(&output.frame).vlan_tci())).collect();
        assert_eq!(seen, [(2, 0xb00a), (3, 0), (4, 0x100b)]);
        out.iter().for_each(|output| verify(&output.frame));
        assert!(out.iter().all(|output| output.frame.offload_is_sound()), "the header's length follows the tags");
    }
    let plain = tcp(2, 1, 80);
    let twice = tagged(&tagged(&plain, 7), 8);
    assert_eq!(key(&send(&mut switch, 2, &twice)[0].frame).vlan_tci(), 0x1007);
    assert_eq!(send(&mut switch, 2, &plain)[0].frame.bytes, plain.bytes);
}

#[test]
fn arp_can_be_answered_by_rewriting() {
    let mut switch = secure(&["arp,arp_op=1,actions=set_field:2->arp_op,set_field:00:00:00:00:00:04->arp_sha,\
                               set_field:10.0.0.4->arp_spa,set_field:10.0.0.1->arp_tpa,in_port"]);
    let out = send(&mut switch, 1, &arp(1, 4));
    let seen = key(&out[0].frame);
    assert_eq!((out[0].port, seen.get(Field::NW_PROTO), seen.get(Field::NW_SRC)), (1, 2, 0x0a00_0004));
    assert_eq!((seen.get(Field::ARP_SHA), seen.get(Field::NW_DST)), (4, 0x0a00_0001));
}

#[test]
fn arp_is_answered_by_the_flow_of_openstack() {
    let mut switch = secure(&["table=0,arp,arp_op=1,arp_tpa=10.0.0.4,\
                               actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:00:00:00:00:00:09,\
                               load:0x2->NXM_OF_ARP_OP[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],\
                               load:0x000000000009->NXM_NX_ARP_SHA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],\
                               load:0x0a000004->NXM_OF_ARP_SPA[],in_port"]);
    let out = send(&mut switch, 1, &arp(1, 4));
    let seen = key(&out[0].frame);
    assert_eq!((out[0].port, seen.get(Field::ETH_SRC), seen.get(Field::ETH_DST)), (1, 9, 1));
    assert_eq!((seen.get(Field::NW_PROTO), seen.get(Field::ARP_SHA), seen.get(Field::ARP_THA)), (2, 9, 1));
    assert_eq!((seen.get(Field::NW_SRC), seen.get(Field::NW_DST)), (0x0a00_0004, 0x0a00_0001));
}

#[test]
fn the_ports_of_a_later_fragment_are_not_there_to_be_changed() {
    let mut switch = secure(&["udp,actions=mod_tp_dst:7,mod_nw_dst:10.9.9.9,output:2"]);
    let mut fragment = udp(1, 4, 80);
    fragment.bytes[20..22].copy_from_slice(&[0, 9]);
    let out = send(&mut switch, 1, &fragment);
    assert_eq!(&out[0].frame.bytes[30..34], &[10, 9, 9, 9]);
    assert_eq!(out[0].frame.bytes[34..], fragment.bytes[34..]);
}
