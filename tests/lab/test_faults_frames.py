"""Hosts that send nonsense: the fabric carries it, drops it and counts it, and goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import twinnet as tn
from twinnet.errors import LabError
from twinnet.lab.lab import Lab

NOISE = str(Path(__file__).parents[1] / "support" / "frame_noise.py")
COUNT = 6000
FLOWS = [
    "table=0,priority=50,tcp,tp_dst=80,actions=mod_nw_dst:10.0.0.3,mod_tp_dst:8080,output:3",
    "table=0,priority=40,udp,actions=mod_nw_tos:184,dec_ttl,enqueue:2:1",
    "table=0,priority=40,udp6,actions=dec_ttl,output:2",
    "table=0,priority=30,vlan_tci=0x1000/0x1000,actions=pop_vlan,goto_table:1",
    "table=0,priority=20,arp,actions=normal",
    "table=0,priority=10,icmp,actions=normal",
    "table=0,priority=10,icmp6,actions=normal",
    "table=0,priority=0,actions=push_vlan:0x8100,set_field:5->vlan_vid,goto_table:1",
    "table=1,priority=5,ip,actions=pop_vlan,normal",
    "table=1,priority=0,actions=flood",
]  # fmt: skip


def network() -> tn.Network:
    net = tn.Network(seed=5)
    flowing, learning = net.switch("s1", flows=FLOWS), net.switch("s2")
    for number in (1, 2, 3):
        queue = (
            tn.qos.Htb("1 Gbit", {0: tn.qos.HtbQueue("1 Mbit"), 1: tn.qos.HtbQueue("1 Mbit")}) if number == 2 else None
        )
        net.link(
            f"h{number}" if f"h{number}" in net else net.host(f"h{number}"),
            flowing,
            mtu=9000,
            rate="1 Gbit",
            queue_b=queue,
        )
    net.link(flowing, learning, mtu=9000, corrupt="5 %", duplicate="5 %", jitter="10 us", reorder=True)
    for number in (4, 5):
        net.link(net.host(f"h{number}"), learning, mtu=9000, loss="1 %")
    return net


def reaches(lab: Lab, a: str, b: str) -> bool:
    """Whether `a` reaches `b`; links here lose and corrupt a little, so that one echo of several must come."""
    return lab[a].run(f"ping -c 5 -i 0.1 -W 2 {b}", timeout="20 s").returncode == 0


@pytest.mark.parametrize("interface", ["tap", "veth"])
def test_a_lab_lives_on_when_hosts_send_malformed_frames(interface: str, tmp_path: Path) -> None:
    try:
        lab = network().emulate(interface=interface).open()
    except LabError as error:
        pytest.skip(f"this machine permits no such lab: {error}")
    try:
        capture = lab.capture("s1-eth2", str(tmp_path / "noise.pcapng"), limit="1 MB")
        for host in ("h1", "h4"):
            before = received(lab, host)
            for seed, kind in enumerate(["plain", "vnet"]):
                done = lab[host].run(
                    [sys.executable, NOISE, f"{host}-eth0", str(COUNT), str(seed), kind], timeout="60 s"
                )
                assert done.returncode == 0, done.stderr
                # Some of the lies the kernel of the host refuses; what it takes, the fabric gets.
                assert int(done.stdout) > COUNT / 10
            assert received(lab, host) - before > COUNT / 2
        capture.stop()
        assert lab.running
        assert reaches(lab, "h1", "h2")
        assert reaches(lab, "h4", "h5")
        assert reaches(lab, "h5", "h1")
        assert any("n_packets=" in line and "n_packets=0" not in line for line in lab.switch("s1").dump_flows())
        assert lab.fidelity().handed_over > COUNT
    finally:
        lab.stop()


def received(lab: Lab, host: str) -> int:
    """Frames that the fabric took from the host's interface."""
    port = next(port for port in lab.ports() if port["port"] == f"{host}-eth0")
    return int(port["counters"]["frames"])
