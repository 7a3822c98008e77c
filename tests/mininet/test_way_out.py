"""The way out of Mininet: a script's network as a network file, the verdict and the page about the run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import twinnet
from twinnet.network.topology_file import load_network

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def run(folder: Path, text: str, *options: str) -> str:
    """Run the script with options of ``twinnet mininet``, and return its standard error."""
    (folder / "script.py").write_text(textwrap.dedent(text))
    done = twinnet("mininet", *options, "script.py", folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


ROUTED = """
    from mininet.link import TCLink
    from mininet.net import Mininet
    from mininet.node import OVSBridge
    net = Mininet(link=TCLink, switch=OVSBridge, controller=None)
    s1, s2 = net.addSwitch("s1"), net.addSwitch("s2")
    h1 = net.addHost("h1", ip="10.0.1.10/24", defaultRoute="via 10.0.1.1")
    h2 = net.addHost("web.2", ip="10.0.2.10/24", defaultRoute="via 10.0.2.1")
    r = net.addHost("r", ip="10.0.1.1/24")
    net.addLink(h1, s1, bw=10, delay="5ms", loss=1, max_queue_size=20)
    net.addLink(r, s1, params1={"ip": "10.0.1.1/24"}, port2=7)
    net.addLink(r, s2, params1={"ip": "10.0.2.1/24"})
    net.addLink(h2, s2)
    net.start()
    r.cmd("sysctl -w net.ipv4.ip_forward=1")
    print(h1.cmd("ping -c2 -i0.2 10.0.2.10"))
    net.stop()
    """


def test_the_file_has_what_the_script_built_and_starts_as_a_lab(tmp_path: Path) -> None:
    told = run(tmp_path, ROUTED, "--export", "network.yaml")
    assert "twinnet: the network is in " in told
    net = load_network(tmp_path / "network.yaml")
    assert [host.name for host in net.hosts] == ["h1", "web-2", "r"]
    assert net.node("h1").ip == "10.0.1.10"  # type: ignore[attr-defined]
    assert [str(link.a.node) + "-" + link.b.node for link in net.links] == ["h1-s1", "r-s1", "r-s2", "web-2-s2"]
    line = net.links[0]
    assert line.ab["rate_bps"] == 10_000_000
    assert line.ba["delay_ps"] == 5 * 10**9
    assert line.ab["loss"]["probability"] == pytest.approx(0.01)
    assert line.a.queue is not None
    assert line.a.queue.to_spec()["limit_frames"] == 20
    assert net.links[1].b.number == 7
    assert net.links[2].a.addresses == ("10.0.2.1/24",)
    again = twinnet("lab", "network.yaml", "-c", "h1 ping -c1 10.0.2.10", folder=tmp_path)
    assert ", 0% packet loss" in again.stdout or ", 100% packet loss" in again.stdout, again.stderr
    assert "web.2 is called web-2" in told


def test_two_networks_are_two_files_and_one_that_is_never_stopped_is_written_at_the_end(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.topo import LinearTopo, SingleSwitchTopo
        net = Mininet(topo=LinearTopo(2))
        net.start()
        net.stop()
        net = Mininet(topo=SingleSwitchTopo(3))
        net.start()
        """,
        "--export",
        "network.yaml",
    )
    first, second = (load_network(tmp_path / name) for name in ("network.yaml", "network-2.yaml"))
    assert [len(net.switches) for net in (first, second)] == [2, 1]
    assert "app: learning" in (tmp_path / "network.yaml").read_text()
    assert len(second.hosts) == 3


def test_the_run_ends_with_the_verdict_and_the_page_has_it_with_the_lines(tmp_path: Path) -> None:
    told = run(tmp_path, ROUTED, "--report", "run.html")
    verdict = re.search(r"twinnet: fidelity: (valid|doubtful|invalid).*, \d+ frames", told)
    assert verdict, told
    page = (tmp_path / "run.html").read_text()
    assert verdict[1] in page
    assert "<svg" in page
    assert "h1-eth0 to s1-eth1" in page


def test_a_file_in_a_folder_that_is_not_there_is_refused_before_the_script_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('ran')\n")
    for option in ("--export", "--report"):
        done = twinnet("mininet", option, "none/file", "script.py", folder=tmp_path)
        assert done.returncode == 2
        assert "there is no folder" in done.stderr
        assert done.stdout == ""


def test_a_script_without_a_network_says_so(tmp_path: Path) -> None:
    assert "the script built no network" in run(tmp_path, "print(1)", "--export", "network.yaml")
    assert not (tmp_path / "network.yaml").exists()


def test_what_a_file_cannot_have_is_said_at_its_head_and_the_file_opens(tmp_path: Path) -> None:
    """`ip rule`, `iptables` and `nft` where it is installed, and a datapath ID that two switches share."""
    told = run(
        tmp_path,
        """
        import os
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        # As the program prints them where it is installed.
        with open("iptables-save", "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as program:
            program.write("#!/bin/sh\\necho '*filter'; echo -A INPUT -p icmp -j DROP\\n")
        os.environ["PATH"] = os.getcwd() + ":" + os.environ["PATH"]
        net = Mininet(switch=OVSBridge, controller=None)
        one, other = net.addSwitch("R1"), net.addSwitch("S1", stp=True)
        h1, h2 = net.addHost("h1"), net.addHost("h2")
        net.addLink(h1, one), net.addLink(one, other), net.addLink(other, h2)
        net.start()
        h1.cmd("ip rule add from 10.0.0.1 table 100; ip route add default via 10.0.0.2 table 100")
        h1.cmd("ip -6 addr add fd00::1/64 dev h1-eth0; ip -6 route add default via fd00::2")
        net.stop()
        """,
        "--export",
        "network.yaml",
    )
    head = [line for line in (tmp_path / "network.yaml").read_text().splitlines() if line.startswith("# - ")]
    assert head == [
        "# - h1: the rule of routing 'from 10.0.0.1 lookup 100' is left out",
        "# - h1: the rule of iptables '-A INPUT -p icmp -j DROP' is left out",
        "# - h2: the rule of iptables '-A INPUT -p icmp -j DROP' is left out",
        "# - S1 has the datapath ID 0000000000000001 of R1 in the script, here 0000000000000002,"
        " for a network has each once",
    ]
    net = load_network(tmp_path / "network.yaml")
    assert [(switch.dpid, switch.spanning_tree) for switch in net.switches] == [(1, False), (2, True)]
    assert ("::/0", "fd00::2") in net.hosts[0].routes
    assert "not as in the script: h1: the rule of routing" in told
