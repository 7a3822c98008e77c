"""The port of a switch that leads to the machine itself (``LOCAL``), and the flow that switches begin with."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import path_without_open_vswitch, run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

START = """
import os, re, time
from mininet.net import Mininet
from mininet.node import OVSBridge, OVSSwitch
from mininet.topo import LinearTopo, SingleSwitchTopo

def ours():
    return sorted(name for name in os.listdir("/sys/class/net") if name in ("s1", "s2", "x9"))

def reach(node, address, wait=2):
    node.cmd("ip neighbour flush all")
    return "1 received" in node.cmd("ping -c1 -W", wait, address)
"""


def told(tmp_path: Path, script: str) -> list[str]:
    done = run_script(tmp_path, START + script)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_machine_is_reached_by_the_interface_of_the_switch(tmp_path: Path) -> None:
    lines = told(
        tmp_path,
        """
net = Mininet(topo=LinearTopo(2), switch=OVSBridge, controller=None)
net.start()
s1, h1, h2 = net.get("s1", "h1", "h2")
print(ours(), reach(h1, "10.0.0.100", 0.5))
s1.cmd("ifconfig s1 10.0.0.100/8 up")
print([reach(h, "10.0.0.100") for h in (h1, h2)], reach(s1, "10.0.0.2"))
counts = s1.cmd("ovs-ofctl dump-ports s1 LOCAL")
print([int(count) > 2 for count in re.findall("pkts=(\\\\d+)", counts)])
s1.cmd("ip link set s1 down")
time.sleep(0.2)
print(reach(h1, "10.0.0.100", 0.5))
net.stop()
print(ours())
""",
    )
    assert lines == ["['s1', 's2'] False", "[True, True] True", "[True, True]", "False", "[]"]


def test_flows_send_to_and_match_the_own_port(tmp_path: Path) -> None:
    lines = told(
        tmp_path,
        """
net = Mininet(topo=SingleSwitchTopo(2), controller=None)
net.start()
s1, h1, h2 = net.get("s1", "h1", "h2")
s1.cmd("ifconfig s1 10.0.0.100/8 up")
print(s1.cmd("ovs-ofctl add-flow s1 in_port=1,actions=LOCAL; ovs-ofctl add-flow s1 in_port=LOCAL,actions=output:1"))
print(reach(h1, "10.0.0.100"), reach(h2, "10.0.0.100", 0.5), reach(h1, "10.0.0.2", 0.5))
print(s1.cmd("ovs-ofctl dump-flows s1").count("LOCAL"))
net.stop()
""",
    )
    assert lines == ["", "True False False", "2"]


def test_bridges_of_ovs_vsctl_have_it_while_they_live(tmp_path: Path) -> None:
    lines = told(
        tmp_path,
        """
net = Mininet(topo=SingleSwitchTopo(1), switch=OVSBridge, controller=None)
net.start()
s1 = net["s1"]
s1.cmd("ovs-vsctl add-br x9")
print(ours(), s1.cmd("ovs-vsctl get interface x9 type ofport admin_state").split())
print(s1.cmd("ovs-vsctl list-ports x9; ovs-vsctl del-port x9 x9").strip())
s1.cmd("ip link set x9 up")
time.sleep(0.2)
print(s1.cmd("ovs-vsctl get interface x9 admin_state").strip())
s1.cmd("ovs-vsctl del-br x9")
print(ours())
net.stop()
""",
    )
    assert lines[0] == "['s1', 'x9'] ['internal', '65534', 'down']"
    assert "cannot delete port x9 because it is the local port for bridge x9" in lines[1]
    assert lines[2:] == ["up", "['s1']"]


def test_a_switch_that_stands_alone_forwards_by_a_flow(tmp_path: Path) -> None:
    lines = told(
        tmp_path,
        """
net = Mininet(topo=SingleSwitchTopo(2), switch=OVSSwitch, controller=None)
net.addSwitch("s2", failMode="standalone")
net.start()
s1, h1 = net.get("s1", "h1")

def flows():
    lines = s1.cmd("ovs-ofctl dump-flows s1").splitlines()
    return [line.split(", ")[-1].strip() for line in lines if "actions=" in line]

print(flows(), reach(h1, "10.0.0.2", 0.5))
s1.cmd("ovs-vsctl set-fail-mode s1 standalone")
print(flows(), reach(h1, "10.0.0.2"))
s1.cmd("ovs-ofctl del-flows s1")
print(flows(), reach(h1, "10.0.0.2", 0.5))
s1.cmd("ovs-ofctl add-flow s1 in_port=1,actions=drop")
s1.cmd("ovs-vsctl set-controller s1 tcp:127.0.0.1:7999")
print(flows())
s1.cmd("ovs-vsctl del-controller s1")
print(flows(), reach(h1, "10.0.0.2"))
net.stop()
""",
    )
    alone = "['priority=0 actions=NORMAL']"
    assert lines == ["[] False", f"{alone} True", "[] False", "[]", f"{alone} True"]


@pytest.mark.parametrize("protocol", ["OpenFlow10", "OpenFlow13"])
def test_controllers_are_told_the_addresses_of_the_interfaces(
    tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path_without_open_vswitch(tmp_path / "bin"))
    lines = told(
        tmp_path,
        f"""
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.tool_connection import OPENFLOW_10, OPENFLOW_13

net = Mininet(topo=SingleSwitchTopo(2), controller=None)
net.start()
there = [open(f"/sys/class/net/{{name}}/address").read().strip() for name in ("s1-eth1", "s1-eth2", "s1")]
with FABRIC.connection("s1", OPENFLOW_10 if "{protocol}" == "OpenFlow10" else OPENFLOW_13) as connection:
    rows = connection.statistics(13).hex(":")
shown = net["s1"].cmd("ovs-ofctl -O {protocol} show s1").partition("LOCAL(s1)")
print([address in rows for address in there], ["LINK_DOWN" in part for part in shown])
net.stop()
""",
    )
    assert lines == ["[True, True, True] [False, False, True]"]
