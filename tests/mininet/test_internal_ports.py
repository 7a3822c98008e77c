"""Interfaces of type internal: ``ovs-vsctl`` makes them in the script's machine, and they go with their ports."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

NETWORK = """
    import os, subprocess
    from mininet.net import Mininet
    from mininet.node import OVSSwitch
    from mininet.topo import SingleSwitchTopo
    net = Mininet(topo=SingleSwitchTopo(2), controller=None)
    for name in net.topo.switches():
        net[name].failMode = "standalone"
    net.start()
    h1, h2 = net.hosts

    def do(line):
        return subprocess.getoutput(line).strip()

    def received(line):
        return "1 received" in do(line)

    def there():
        return sorted(set(os.listdir("/sys/class/net")) - {"lo", "s1", "s1-eth1", "s1-eth2"})
"""


def test_an_internal_interface_of_a_vlan_reaches_the_hosts_of_it(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        NETWORK
        + """
    do("ovs-vsctl set port s1-eth1 tag=10")
    print(do("ovs-vsctl add-port s1 vlan10 -- set interface vlan10 type=internal -- set port vlan10 tag=10"), there())
    print(do("ovs-vsctl get interface vlan10 type admin_state").split())
    do("ip addr add 10.0.0.100/8 dev vlan10; ip link set vlan10 up")
    print(received("ping -c 1 -W 2 10.0.0.1"), received("ping -c 1 -W 0.3 10.0.0.2"))
    print("1 received" in h1.cmd("ping -c 1 -W 2 10.0.0.100"))
    print(do("ovs-vsctl get interface vlan10 type admin_state ofport").split())
    shown = do("ovs-vsctl show")
    print("Port vlan10\\n            tag: 10\\n            Interface vlan10\\n                type: internal" in shown)
    do("ovs-vsctl del-port s1 vlan10")
    print(there(), do("ovs-vsctl list-ports s1").split())
    net.stop()
        """,
    )
    assert done.stdout.splitlines() == [
        " ['vlan10']",
        "['internal', 'down']",
        "True False",
        "True",
        "['internal', 'up', '3']",
        "True",
        "[] ['s1-eth1', 's1-eth2']",
    ], done.stdout + done.stderr


def test_internal_interfaces_come_in_two_lines_and_go_with_bridge_and_network(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        NETWORK
        + """
    print(do("ovs-vsctl add-port s1 v5"), there())
    print(do("ovs-vsctl set Interface v5 type=internal"), there())
    print("constraint" in do("ovs-vsctl add-port s1 v6 -- set int v6 type=internal -- set port v6 tag=5000"), there())
    do("ovs-vsctl add-br b2 -- add-port b2 v7 -- set int v7 type=internal")
    print(there())
    do("ovs-vsctl del-br b2")
    print(there())
    net.stop()
    print(os.listdir("/sys/class/net"))
        """,
    )
    assert done.stdout.splitlines() == [
        "ovs-vsctl: Error detected while setting up 'v5': could not open network device v5 (No such device) []",
        " ['v5']",
        "True ['v5']",
        "['b2', 'v5', 'v7']",
        "['v5']",
        "['lo']",
    ], done.stdout + done.stderr


@pytest.mark.skipif(not Path("/usr/bin/ovs-vsctl").exists(), reason="ovs-vsctl is not installed")
def test_clients_of_the_database_make_internal_interfaces_too(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        NETWORK
        + """
    print(do("/usr/bin/ovs-vsctl add-port s1 in2 -- set interface in2 type=internal"), there())
    do("ip addr add 10.0.0.101/8 dev in2; ip link set in2 up")
    print(received("ping -c 1 -W 2 10.0.0.2"), do("/usr/bin/ovs-vsctl get interface in2 type ofport").split())
    print(do("/usr/bin/ovs-vsctl del-port in2"), there())
    net.stop()
        """,
    )
    assert done.stdout.splitlines() == [" ['in2']", "True ['internal', '3']", " []"], done.stdout + done.stderr
