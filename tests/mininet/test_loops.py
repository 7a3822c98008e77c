"""Links between switches: switches that keep to the fabric's spanning tree flood without a storm, others do as they are
told; and links follow what scripts do to their ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


_WITH_TREE = "waitConnected=True, switch=partial(OVSSwitch, failMode='standalone', stp=True)"


@pytest.mark.parametrize("controller", ["controller=None, switch=OVSBridge", _WITH_TREE])
def test_a_torus_of_switches_floods_without_a_storm(tmp_path: Path, controller: str) -> None:
    done = run_script(
        tmp_path,
        f"""
        from mininet.net import Mininet
        from functools import partial
        from mininet.node import OVSBridge, OVSSwitch
        from mininet.topolib import TorusTopo
        net = Mininet(topo=TorusTopo(3, 3), {controller})
        net.start()
        # A controller may say what to do a moment after it has joined.
        print(min(net.pingAll() for _ in range(3)))
        """,
    )
    assert done.stdout == "0.0\n", done.stderr


_TRIANGLE = """
    import sys
    from mininet.net import Mininet
    net = Mininet(controller=None)
    switches = [net.addSwitch(f"s{place}") for place in (1, 2, 3)]
    hosts = [net.addHost(f"h{place}") for place in (1, 2, 3)]
    for host, switch in zip(hosts, switches):
        net.addLink(host, switch)
    for near, far in ((0, 1), (1, 2), (2, 0)):
        net.addLink(switches[near], switches[far])
    net.start()
    if sys.argv[1] == "no-flood":
        for switch in (switches[0], switches[2]):
            print(switch.cmd(f"ovs-ofctl mod-port {switch.name} 3 no-flood"), end="")
    if sys.argv[1] == "stp":
        for switch in switches:
            print(switch.cmd(f"ovs-vsctl set bridge {switch.name} stp_enable=true"), end="")
    for switch in switches:
        switch.cmd(f"ovs-ofctl add-flow {switch.name} actions=flood")
"""


@pytest.mark.parametrize("broken_by", ["no-flood", "stp"])
def test_secure_switches_flood_everywhere_but_where_the_loop_is_broken(tmp_path: Path, broken_by: str) -> None:
    done = run_script(tmp_path, _TRIANGLE + '    print(net.pingAll("1"))', broken_by)
    assert done.stdout == "0.0\n", done.stderr
    assert "frames circle" not in done.stderr


def test_ports_tell_what_the_spanning_tree_makes_of_them(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import subprocess
        from mininet.net import Mininet
        from mininet.node import OVSSwitch
        net = Mininet(controller=None)
        switches = [net.addSwitch(name, cls=OVSSwitch, failMode="standalone") for name in ("s1", "s2", "s3")]
        for near, far in ((0, 1), (1, 2), (2, 0)):
            net.addLink(switches[near], switches[far])
        net.addLink(net.addHost("h1"), switches[0])
        net.start()

        def told(column):
            ports = [f"s{switch}-eth{port}" for switch in (1, 2, 3) for port in (1, 2)]
            return [subprocess.getoutput(f"ovs-vsctl get port {port} status:stp_{column}") for port in ports]

        print(subprocess.getoutput("ovs-vsctl get port s1-eth1 status; ovs-vsctl get port s1-eth1 status:stp_state"))
        for switch in switches:
            subprocess.getoutput(f"ovs-vsctl set bridge {switch} stp_enable=true")
        print(*told("state"))
        print(*told("role"))
        print(subprocess.getoutput("ovs-vsctl get port s1-eth3 status; ovs-vsctl get interface s1-eth3 status"))
        net.configLinkStatus("s1", "s2", "down")
        print(*told("state"))
        subprocess.getoutput("ovs-vsctl set bridge s3 stp_enable=false rstp_enable=true")
        print(subprocess.getoutput("ovs-vsctl get port s3-eth1 status; ovs-vsctl get port s3-eth2 rstp_status"))
        net.stop()
        """,
    )
    assert done.stdout.splitlines() == [
        "{}",
        'ovs-vsctl: no key "stp_state" in Port record "s1-eth1" column status',
        "forwarding forwarding forwarding forwarding blocking forwarding",
        "designated designated root designated alternate root",
        '{stp_port_id="32771", stp_role=designated, stp_sec_in_state="0", stp_state=forwarding}',
        "{}",
        "disabled forwarding disabled forwarding forwarding forwarding",
        "{}",
        '{rstp_port_id="8002", rstp_port_role=Root, rstp_port_state=Forwarding}',
    ], done.stdout + done.stderr


@pytest.mark.parametrize("protocol", ["OpenFlow10", "OpenFlow13"])
def test_ports_stay_as_they_were_configured_when_the_network_grows(tmp_path: Path, protocol: str) -> None:
    done = run_script(
        tmp_path,
        f"""
        from mininet.net import Mininet
        net = Mininet(controller=None)
        s1 = net.addSwitch("s1", protocols="{protocol}")
        for place in (1, 2):
            net.addLink(net.addHost(f"h{{place}}"), s1)
        net.start()
        for word in ("no-receive", "no-forward", "no-packet-in") + ("no-flood",) * ("{protocol}" != "OpenFlow13"):
            print(s1.cmd("ovs-ofctl -O {protocol} mod-port s1 1", word), end="")
        link = net.addLink(net.addHost("h3"), s1)
        s1.attach(link.intf2)
        print(s1.cmd("ovs-ofctl -O {protocol} show s1 | grep config:"))
        net.stop()
        """,
    )
    flood = "" if protocol == "OpenFlow13" else " NO_FLOOD"
    assert f"config:     NO_RECV{flood} NO_FWD NO_PACKET_IN" in done.stdout, done.stdout + done.stderr
    # The two other ports, and the switch's own.
    assert done.stdout.count("config:     0") == 3, done.stdout + done.stderr


def test_a_storm_of_secure_switches_leaves_the_script_alive_and_is_told_at_its_end(tmp_path: Path) -> None:
    # A frame has made its 255 hops after some hundredths of a second; the storm lasts as long as the pings, a second.
    pings = '    hosts[0].cmd("ping -c 6 -i 0.2", hosts[1].IP())\n'
    done = run_script(tmp_path, _TRIANGLE + pings + '    print(hosts[0].cmd("echo alive"))', "")
    assert (done.stdout.strip(), done.returncode) == ("alive", 0), done.stderr
    assert "twinnet: frames circle: " in done.stderr


def test_a_link_between_switches_is_shaped_goes_down_and_up_and_is_counted(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        net = Mininet(switch=OVSBridge, link=TCLink, controller=None)
        s1, s2 = net.addSwitch("s1"), net.addSwitch("s2")
        h1, h2 = net.addHost("h1"), net.addHost("h2")
        net.addLink(h1, s1)
        middle = net.addLink(s1, s2, delay="15ms", bw=100)
        net.addLink(h2, s2)
        net.start()
        h1.cmd("ping -c1 10.0.0.2")
        trip = lambda: float(h1.cmd("ping -c1 10.0.0.2").split("min/avg/max/mdev = ")[1].split("/")[0])
        print(30 <= trip() < 32)
        middle.intf1.config(delay="35ms")
        print(50 <= trip() < 52)
        print(" 0 pkt" not in s1.cmd("tc -s qdisc show dev s1-eth2"))
        net.configLinkStatus("s1", "s2", "down")
        print(net.ping([h1, h2], timeout="0.5"))
        net.configLinkStatus("s1", "s2", "up")
        print(net.ping([h1, h2]))
        """,
    )
    assert done.stdout.split() == ["True", "True", "True", "100.0", "0.0"], done.stdout + done.stderr
