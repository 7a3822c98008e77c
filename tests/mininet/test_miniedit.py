"""Files of MiniEdit: what was drawn is built, started and left by the prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from labs_here import can_run_labs
from mininet_scripts import twinnet
from twinnet.network.topology_file import load_network

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def drawn(**others: Any) -> dict[str, Any]:
    def place(name: str, number: int, **opts: Any) -> dict[str, Any]:
        return {"number": str(number), "opts": {"hostname": name, "nodeNum": number, **opts}, "x": "1", "y": "2"}

    return {
        "application": {
            "ipBase": "10.1.0.0/16",
            "dpctl": "",
            "switchType": "ovs",
            "openFlowVersions": {"ovsOf13": "1"},
        },
        "controllers": [{"opts": {"hostname": "c0", "controllerType": "ref", "remotePort": 6633}, "x": "1", "y": "1"}],
        "hosts": [
            place("h1", 1, sched="host", startCommand="echo begins > begun"),
            place("h2", 2, ip="10.1.0.20/16", defaultRoute="10.1.0.1", stopCommand="echo ended >> begun"),
        ],
        "switches": [
            place("s1", 1, controllers=["c0"], switchType="default"),
            place("s2", 2, controllers=[], switchType="legacySwitch"),
            place("r3", 3, switchType="legacyRouter"),
        ],
        "links": [
            {"src": "h1", "dest": "s1", "opts": {"bw": 10, "delay": "5ms"}},
            {"src": "s1", "dest": "s2", "opts": {}},
            {"src": "s2", "dest": "h2", "opts": {}},
            {"src": "r3", "dest": "s2", "opts": {}},
        ],
        "version": "2",
        **others,
    }


def test_a_drawn_network_is_built_and_its_commands_run(tmp_path: Path) -> None:
    (tmp_path / "drawn.mn").write_text(json.dumps(drawn()))
    lines = "py net.waitConnected(20)\nh1 ping -c2 -W5 h2\nh2 ip route\nr3 cat /proc/sys/net/ipv4/ip_forward\n"
    done = twinnet("mininet", "--export", "network.yaml", "drawn.mn", folder=tmp_path, given=lines)
    assert done.returncode == 0, done.stderr
    assert ", 0% packet loss" in done.stderr
    assert "default via 10.1.0.1" in done.stderr
    assert "\n1\r\n" in done.stderr or "\n1\n" in done.stderr
    assert (tmp_path / "begun").read_text() == "begins\nended\n"
    net = load_network(tmp_path / "network.yaml")
    assert net.links[0].ab["rate_bps"] == 10_000_000
    assert {switch.name: switch.fail_mode for switch in net.switches} == {"s1": "standalone", "s2": "standalone"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is no file of MiniEdit"),
        ("[]", "is no file of MiniEdit: it lacks a list of"),
        ("[" * 100_000, "is no file of MiniEdit: its lists are too deep"),
        (json.dumps(drawn(links=[{"src": "h1", "dest": "s9"}])), "the link h1 - s9: KeyError"),
    ],
)
def test_another_file_is_refused_with_what_is_wrong(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "drawn.mn").write_text(content)
    done = twinnet("mininet", "drawn.mn", folder=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_device_is_no_script(tmp_path: Path) -> None:
    done = twinnet("mininet", "/dev/zero", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "twinnet: /dev/zero: it is a device, and not a regular file\n")
