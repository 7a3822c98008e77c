"""Interfaces are set by calls of the kernel as the program would set them, and go at once when a network stops."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_addresses_states_and_hardware_addresses_are_those_that_ifconfig_sets(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        net = Mininet(controller=None)
        h1, h2 = net.addHost("h1"), net.addHost("h2")
        net.addLink(h1, h2)
        def told():
            return h1.cmd("ip -4 -o addr show h1-eth0; ip -o link show h1-eth0 | grep -o 'link/ether [^ ]*'; "
                          "ip route; grep -c UP /dev/null; ip -o link show h1-eth0 | grep -c ',UP'").split()
        for words in ("10.0.0.1/8", "10.1.2.3/24 up", "192.168.7.1/30", "hw ether 00:00:00:00:0a:01", "down", "up"):
            h1.intf().ifconfig(*words.split())
            ours = told()
            h1.cmd("ifconfig h1-eth0", words)
            print(words, ours == told())
        print(h1.intf().ifconfig("nonsense") != "")
        h1.config()
        h1.intf().rename("renamed")
        h1.setIP("10.5.5.5/16")
        print("10.5.5.5/16" in h1.cmd("ip -4 -o addr show renamed"), "inet 127.0.0.1" in h1.cmd("ip addr show lo"))
        """,
    )
    assert [line.split()[-1] for line in done.stdout.splitlines()[:6]] == ["True"] * 6, done.stdout + done.stderr
    assert done.stdout.splitlines()[6:] == ["True", "True True"], done.stdout


def test_a_network_with_the_same_names_starts_as_soon_as_the_first_has_stopped(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import LinearTopo
        for link in (None, TCLink):
            for _ in range(2):
                net = Mininet(topo=LinearTopo(3), switch=OVSBridge, controller=None, **({"link": link} if link else {}))
                net.start()
                print(net.ping([net["h1"], net["h3"]]))
                net.stop()
                print(sorted(os.listdir("/sys/class/net")), len(net["s1"].intfs))
        """,
    )
    assert done.stdout.splitlines() == ["0.0", "['lo'] 1"] * 4, done.stdout + done.stderr
