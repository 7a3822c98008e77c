"""Flows as our switch dumps them: ``ovs-ofctl`` reads them, and prints what Open vSwitch would."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import twinnet as tn
from twinnet.errors import TwinnetError

pytestmark = pytest.mark.skipif(shutil.which("ovs-ofctl") is None, reason="ovs-ofctl is not installed")

FLOWS = [
    "send_flow_rem,reset_counts,no_packet_counts,no_byte_counts,priority=5,in_port=1,actions=2,flood,all,in_port",
    "check_overlap,idle_timeout=5,hard_timeout=7,cookie=0x3,metadata=5/7,actions=write_actions(set_queue:1,output:2)",
    "priority=65535,ip,nw_dst=10.0.0.4,tcp,tp_dst=5002,actions=enqueue:4:1",
    "table=2,tcp,tp_src=0x10/0xfff0,tcp_flags=+syn-ack,actions=set_field:10.0.0.9->ip_dst,goto_table:4",
    "dl_vlan=5,dl_vlan_pcp=3,eth_dst=1:2:3:4:5:6,actions=strip_vlan,output:3",
    "vlan_tci=0x1000/0x1000,actions=resubmit(,3),resubmit:2,resubmit(3,4)",
    "arp,arp_tpa=10.0.0.4,arp_op=2,actions=move:arp_sha[]->eth_dst[],load:2->arp_op[0..7],in_port",
    "icmp6,icmp_type=135,nd_target=fe80::4,nd_sll=00:00:00:00:00:01,actions=controller:128",
    "ip,nw_tos=184,nw_ecn=1,nw_ttl=64,nw_frag=later,actions=mod_nw_tos:4,mod_nw_ttl:9,dec_ttl,normal",
    "ip,actions=load:1->ip_dscp[0..1],load:0x7->reg3[4..7],set_field:0x2/0x6->reg1,set_field:0x5->metadata,"
    "output:reg3[]",
    "actions=push_vlan:0x8100,set_field:4099->vlan_vid,set_queue:3,output:1,pop_queue,local",
    "mpls,mpls_label=5,mpls_bos=1,actions=set_mpls_ttl:4,dec_mpls_ttl,pop_mpls:0x0800,2",
    "udp6,ipv6_src=fd00::/64,tp_src=53,actions=set_field:fd00::1->ipv6_dst,mod_tp_dst:54,2",
    "tcp,actions=fin_timeout(idle_timeout=4,hard_timeout=6),2",
    "actions=learn(table=1,idle_timeout=5,priority=10,send_flow_rem,cookie=0x1,NXM_OF_VLAN_TCI[0..11],"
    "NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:0->NXM_OF_VLAN_TCI[],output:NXM_OF_IN_PORT[])",
    "tcp,actions=learn(eth_type=0x800,ip_proto=6,ip_dst=10.0.0.1,tcp_src[]=tcp_dst[],"
    "load:NXM_OF_IN_PORT[]->reg2[0..15])",
    "actions=multipath(symmetric_l4,50,hrw,4,0,reg0[0..7]),bundle(eth_src,0,active_backup,ofport,members:1,2),"
    "bundle_load(nw_src,7,hrw,ofport,reg1[],members:3,4)",
    "actions=controller(max_len=100,reason=no_match,id=5),note:01.02.03,exit",
    "xreg1=0x5/0xff,xxreg3=0x7,reg4=1,tun_id=9,actions=drop",
]


def dumped(flows: list[str]) -> list[str]:
    """What a switch of the virtual clock dumps when each of the flows is its only one."""
    net = tn.Network()
    net.link(net.host("h1"), net.switch("s1"))
    found: list[str] = []
    with net.simulate() as lab:
        switch = lab.switch("s1")
        for flow in flows:
            switch.add_flow(flow)
            found += switch.dump_flows()
            switch.delete_flows()
    return found


def parsed(flows: list[str]) -> subprocess.CompletedProcess[str]:
    """What ovs-ofctl makes of the flows, as messages of OpenFlow 1.3."""
    command = ["ovs-ofctl", "-O", "OpenFlow13", "parse-flows", "-"]
    return subprocess.run(command, input="\n".join(flows), capture_output=True, text=True, check=False)


def test_ovs_ofctl_reads_every_line_of_a_dump() -> None:
    lines = dumped(FLOWS)
    assert len(lines) == len(FLOWS)
    for line in lines:
        result = parsed([line])
        assert result.returncode == 0 and "FLOW_MOD" in result.stdout, f"{line}\n{result.stderr}"


def test_extensions_are_dumped_as_ovs_ofctl_prints_them_and_read_from_that() -> None:
    extensions = [
        flow for flow in FLOWS if any(word in flow for word in ("learn(", "bundle", "move:", "note:", "fin_"))
    ]
    for line in dumped(extensions):
        conditions, _, actions = line.partition(" actions=")
        printed = parsed([line]).stdout.partition(" actions=")[2].strip()
        assert actions == printed, line
        (again,) = dumped([f"{conditions} actions={printed}"])
        assert again == line


def test_a_text_that_asks_for_too_much_says_what() -> None:
    with pytest.raises(TwinnetError, match="delete_learned"):
        dumped(["actions=learn(delete_learned,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])"])
