"""Lines of scripts carry frames as long as the MTUs of their interfaces say, whoever sets these and when."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

_MEANS = """
import subprocess
from mininet.fabric import FABRIC
from mininet.link import Link, TCLink
from mininet.net import Mininet
from mininet.node import OVSBridge
def passes(host, to, payload, count=1):
    return ", 0% packet loss" in host.cmd(f"ping -c {count} -i 0.05 -W 1 -M do -q -s {payload} {to.IP()}")
def oversize(name):
    return FABRIC.counters(FABRIC.interface(name))["dropped_oversize"]
""".replace("mininet.fabric", "twinnet.mininet.fabric")


def _printed(folder: Path, script: str) -> list[str]:
    lines = [*_MEANS.strip().splitlines(), *script.strip().splitlines()]
    done = run_script(folder, "\n".join(lines) + "\n")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


_TWO_SWITCHES = """
net = Mininet(controller=None, switch=OVSBridge, link={link})
h1, h2, s1, s2 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1"), net.addSwitch("s2")
net.addLink(h1, s1), net.addLink(h2, s2), net.addLink(s1, s2)
net.start()
def longer(names, mtu=9000):
    for name in names.split():
        node = net[name.split("-")[0]]
        node.cmd(f"ip link set dev {{name}} mtu {{mtu}}")
"""


@pytest.mark.parametrize("link", ["Link", "TCLink"])
def test_switches_forward_what_every_interface_of_the_way_permits(tmp_path: Path, link: str) -> None:
    script = f"""
{_TWO_SWITCHES.format(link=link)}
print(passes(h1, h2, 1472))
longer("h1-eth0 h2-eth0 s1-eth1 s2-eth1")
h1.cmd("ping -c 1 -W 0.3 -M do -s 8972", h2.IP())
print(oversize("s1-eth2"), oversize("s2-eth2"))
longer("s1-eth2")
h1.cmd("ping -c 1 -W 0.3 -M do -s 8972", h2.IP())
print(oversize("s1-eth2"))
longer("s2-eth2")
print(passes(h1, h2, 8972), oversize("s1-eth2"))
net.stop()
"""
    assert _printed(tmp_path, script) == ["True", "1 0", "2", "True 2"]


def test_a_port_that_gets_a_smaller_mtu_drops_what_is_too_long_for_it(tmp_path: Path) -> None:
    script = f"""
{_TWO_SWITCHES.format(link="Link")}
longer("h1-eth0 h2-eth0 s1-eth1 s2-eth1 s1-eth2 s2-eth2")
print(passes(h1, h2, 8972))
subprocess.run("ip link set s2-eth1 mtu 2000", shell=True, check=True)
print(passes(h1, h2, 1972))
h1.cmd("ping -c 1 -W 0.3 -M do -s 1985", h2.IP())
print(oversize("s2-eth1"))
net.stop()
"""
    assert _printed(tmp_path, script) == ["True", "True", "1"]


def test_an_mtu_that_was_set_before_the_network_started_or_a_switch_joined_is_kept(tmp_path: Path) -> None:
    script = """
net = Mininet(controller=None, switch=OVSBridge)
h1, h2, s1, s2 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1"), net.addSwitch("s2")
for one, other in ((h1, s1), (h2, s2), (s1, s2)):
    for end in net.addLink(one, other).ends():
        end.node.cmd("ip link set", end.name, "mtu 9000")
net.start()
print(passes(h1, h2, 8972))
h3 = net.addHost("h3", ip="10.0.0.3")
link = net.addLink(h3, s1)
s1.attach(link.intf2.name)
h3.configDefault()
print(passes(h1, h2, 8972), passes(h3, h2, 1472))
net.stop()
"""
    assert _printed(tmp_path, script) == ["True", "True True"]


def test_a_shaped_link_between_hosts_goes_by_the_smaller_mtu_of_both(tmp_path: Path) -> None:
    script = """
net = Mininet(controller=None, link=TCLink)
h1, h2 = net.addHost("h1"), net.addHost("h2")
net.addLink(h1, h2, bw=100)
net.start()
h1.cmd("ip link set h1-eth0 mtu 9000")
h1.cmd("ping -c 1 -W 0.3 -M do -s 8972", h2.IP())
print(oversize("h1-eth0"))
h2.cmd("ifconfig h2-eth0 mtu 9000")
print(passes(h1, h2, 8972), oversize("h1-eth0"))
net.stop()
"""
    assert _printed(tmp_path, script) == ["1", "True 1"]


def test_a_shell_takes_a_link_between_switches_down_and_up(tmp_path: Path) -> None:
    script = f"""
{_TWO_SWITCHES.format(link="Link")}
print(passes(h1, h2, 56))
for command in ("ip link set s1-eth2 {{}}", "ifconfig s2-eth2 {{}}"):
    for state in ("down", "up"):
        s1.cmd(command.format(state))
        FABRIC.settle()
        print(state, passes(h1, h2, 56))
net.stop()
"""
    assert _printed(tmp_path, script) == ["True", *["down False", "up True"] * 2]
