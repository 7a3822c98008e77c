"""Hosts of a script reach what is beyond its machine by a gateway, and nothing of that stays."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import COMMAND
from outside_servers import ASKS, CARRIED, outside_of, path_without

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
no_tun = not os.access("/dev/net/tun", os.R_OK | os.W_OK)
no_iptables = pytest.mark.skipif(shutil.which("iptables") is None, reason="iptables is not installed")
WAYS = [
    pytest.param(
        ["slirp4netns", "iptables"],
        65535,
        id="ours, which translates by itself",
        marks=[pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")],
    ),
    pytest.param(["slirp4netns"], 65535, id="ours", marks=no_iptables),
    pytest.param(
        [],
        1500,
        id="slirp4netns",
        marks=[
            no_iptables,
            pytest.mark.skipif(
                shutil.which("slirp4netns") is None or no_tun,
                reason="slirp4netns is not installed, or has no /dev/net/tun",
            ),
        ],
    ),
]
SCRIPT = """
import sys
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
net = Mininet(SingleSwitchTopo(2), controller=None)
net.addNAT().configDefault()
net["s1"].failMode = "standalone"
net.start()
print(net["h2"].cmd(sys.executable + " asks.py"), flush=True)
print(net["h1"].cmd("ping -c 1 -W 5 192.0.2.1"), flush=True)
print("mtu", open("/sys/class/net/way0/mtu").read(), flush=True)
"""


@pytest.mark.parametrize(("missing", "mtu"), WAYS)
@pytest.mark.parametrize("ending", ["net.stop()", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_hosts_reach_servers_outside_by_a_gateway_and_nothing_stays(
    tmp_path: Path, missing: list[str], mtu: int, ending: str
) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    (tmp_path / "script.py").write_text(SCRIPT + ending + "\n")
    path = path_without(tmp_path / "programs", missing)
    told = outside_of(tmp_path, *COMMAND, "mininet", "script.py", path=path)
    for line in CARRIED:
        assert line in told, told
    assert "1 received" in told, told
    # The MTU tells them apart.
    assert f"mtu {mtu}\n" in told, told
    assert "left: []" in told
    assert "reaches nothing beyond" not in told


def test_the_machine_itself_is_out_of_reach_of_hosts(tmp_path: Path) -> None:
    text = """
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo
        net = Mininet(SingleSwitchTopo(1), controller=None)
        net.addNAT().configDefault()
        net["s1"].failMode = "standalone"
        net.start()
        asks = "import socket; socket.create_connection(('198.18.53.2', 8001), 20)"
        print(net["h1"].cmd("python3", "-c", f'"{asks}"'))
        net.stop()
        """
    (tmp_path / "script.py").write_text(textwrap.dedent(text))
    path = path_without(tmp_path / "programs", ["slirp4netns", "iptables"])
    told = outside_of(tmp_path, *COMMAND, "mininet", "script.py", path=path)
    assert "ConnectionRefusedError" in told, told


def test_the_option_of_mn_gives_hosts_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    (tmp_path / "lines").write_text(f"h1 {sys.executable} asks.py\n")
    settings = ("--switch", "ovsbr", "--controller", "none", "--test", "none", "--post", "lines")
    told = outside_of(tmp_path, *COMMAND, "mn", "--nat", *settings)
    for line in CARRIED:
        assert line in told, told
