"""``tc`` at the ends of lines: its commands become settings of the line, and the line is shown in its words."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script
from twinnet.errors import TwinnetError
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.line_control import LineControl, LineRefused, NoLine
from twinnet.mininet.shaping import Shaping

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


class Line:
    """A fabric with the one line of the interface x, which has counted something."""

    def __init__(self, shaping: Shaping | None = None) -> None:
        self.intf = SimpleNamespace(name="x", shaping=shaping or Shaping())
        self.followed = 0

    def line_end(self, name: str) -> Any:
        return self.intf if name == "x" else None

    def counters(self, _intf: Any) -> dict[str, int]:
        dropped = {"dropped_overlimit": 5, "lost": 1}
        return {"link_bytes": 3000, "frames": 2, "backlog_bytes": 1514, "backlog_frames": 1, **dropped}

    def classes(self, _intf: Any) -> list[dict[str, Any]]:
        return []

    def shaping_changed(self, _intf: Any) -> None:
        self.followed += 1


def control(shaping: Shaping | None = None) -> tuple[LineControl, Line]:
    line = Line(shaping)
    return LineControl(cast("Fabric", line)), line


def test_the_second_backlog_of_a_shaped_line_is_that_of_netem() -> None:
    lines, _ = control(Shaping.of(10, "5ms", None, None, 100))
    assert lines.run(["-s", "qdisc", "show", "dev", "x"]) == (
        "qdisc htb 5: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000\n"
        " Sent 3000 bytes 2 pkt (dropped 6, overlimits 0 requeues 0) \n"
        " backlog 1514b 1p requeues 0\n"
        "qdisc netem 10: parent 5:1 limit 100 delay 5ms\n"
        " Sent 3000 bytes 2 pkt (dropped 6, overlimits 0 requeues 0) \n"
        " backlog 1514b 1p requeues 0\n"
    )
    assert lines.run(["class", "show", "dev", "x"]).startswith(
        "class htb 5:1 root leaf 10: prio 0 rate 10Mbit ceil 10Mbit "
    )
    assert control()[0].run(["qdisc", "show", "dev", "x"]) == "qdisc noqueue 0: root refcnt 2 \n"


@pytest.mark.parametrize(
    ("commands", "shaping"),
    [
        (["qdisc add dev x root netem delay 100ms 10ms loss 2%"], Shaping(None, "100ms", "10ms", 2)),
        (
            ["qdisc add dev x root netem limit 20 loss random 0.5%"],
            Shaping(loss=0.5, queue={"kind": "fifo", "limit_frames": 20}),
        ),
        (
            ["qdisc add dev x root tbf rate 5mbit burst 15000 latency 40ms"],
            Shaping(
                queue={
                    "kind": "tbf",
                    "rate_bps": 5_000_000,
                    "burst_bytes": 15_000,
                    "queue": {"kind": "fifo", "limit_bytes": 40_000},
                }
            ),
        ),
        (
            [
                "qdisc add dev x root handle 1: htb default 10",
                "class add dev x parent 1: classid 1:10 htb rate 2mbit ceil 3mbit",
                "qdisc add dev x parent 1:10 handle 20: netem delay 5ms",
            ],
            # Nobody is above the class from whom it could borrow up to its ceiling.
            Shaping(2, "5ms"),
        ),
        (
            ["qdisc add dev x root netem delay 1ms", "qdisc change dev x root netem delay 2ms"],
            Shaping(delay="2ms"),
        ),
        (["qdisc add dev x root netem delay 1ms", "qdisc del dev x root"], Shaping()),
        (
            ["qdisc replace dev x root fq_codel limit 100 target 4ms"],
            Shaping(queue={"kind": "fq_codel", "limit_frames": 100, "target_ps": 4 * 10**9}),
        ),
    ],
)
def test_commands_become_the_settings_of_the_line(commands: list[str], shaping: Shaping) -> None:
    lines, line = control()
    for command in commands:
        lines.run(command.split())
    assert line.intf.shaping == shaping
    assert line.followed == len(commands)


def test_deleting_the_root_takes_all_below_it_away() -> None:
    lines, line = control(Shaping.of(10, "5ms", None, 1, 100))
    lines.run(["qdisc", "del", "dev", "x", "root"])
    assert line.intf.shaping == Shaping()
    lines.run(["qdisc", "add", "dev", "x", "root", "pfifo", "limit", "7"])
    assert line.intf.shaping.queue == {"kind": "fifo", "limit_frames": 7}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("qdisc add dev x root netem delay soon", "Illegal"),
        ("qdisc add dev x root netem curropt 1%", 'What is "curropt"?'),
        ("qdisc add dev x root tbf rate quick burst 1k", 'tbf: illegal value for "rate": "quick"'),
        ("qdisc add dev x root cake", "qdisc cake is not there"),
        ("qdisc del dev x root", "Cannot delete qdisc"),
        ("qdisc change dev x root netem delay 1ms", "Qdisc not found"),
        ("qdisc add dev x ingress", "ingress is not there"),
        ("filter add dev x parent 1: protocol ip u32 match ip dst 1.2.3.4 flowid 1:1", "Parent Qdisc doesn't exist"),
        ("-j qdisc show dev x", "tc -j is not there"),
        ("qdisc add dev x root codel buckets 5", 'What is "buckets"?\nOur codel has limit, target, interval, ecn'),
        ("class add dev x parent 1: classid 1:1 htb rate 1mbit", "No such file or directory"),
        ("qdisc turn dev x root netem", '"turn" is unknown'),
    ],
)
def test_what_cannot_be_done_is_refused(command: str, words: str) -> None:
    lines, line = control()
    with pytest.raises(LineRefused, match=re.escape(words)):
        lines.run(command.split())
    assert line.intf.shaping == Shaping()


def test_what_the_fabric_refuses_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, line = control(Shaping(delay="3ms"))

    def refuse(_intf: Any) -> None:
        raise TwinnetError("too long")

    monkeypatch.setattr(line, "shaping_changed", refuse)
    before = lines.run(["qdisc", "show", "dev", "x"])
    with pytest.raises(TwinnetError):
        lines.run(["qdisc", "replace", "dev", "x", "root", "netem", "delay", "200s"])
    assert (line.intf.shaping, lines.run(["qdisc", "show", "dev", "x"])) == (Shaping(delay="3ms"), before)


@pytest.mark.parametrize("command", ["qdisc show dev other", "qdisc show", "-V", "actions list", ""])
def test_other_interfaces_are_left_to_the_kernel(command: str) -> None:
    with pytest.raises(NoLine):
        control()[0].run(command.split())


@machine
def test_tc_changes_lines_while_they_run_and_leaves_others_to_the_kernel(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge, controller=None)
        net.start()
        h1, h2 = net.hosts
        def trip():
            return float(h1.cmd("ping -c1", h2.IP()).split("min/avg/max/mdev = ")[1].split("/")[0])
        h1.cmd("ping -c1", h2.IP())
        os.system("tc qdisc add dev s1-eth2 root netem delay 30ms")
        h1.cmd("tc qdisc add dev h1-eth0 root netem delay 20ms")
        print(50 <= trip() < 55, os.system("tc qdisc add dev s1-eth2 root netem delay 30ms") >> 8)
        os.system("tc qdisc del dev s1-eth2 root")
        print(20 <= trip() < 25, "netem" in h1.cmd("tc qdisc show dev h1-eth0"), "lo" in h1.cmd("tc qdisc show"))
        """,
    )
    assert done.stdout.splitlines() == ["True 2", "True True True"], done.stdout + done.stderr


@machine
def test_the_disciplines_of_all_interfaces_have_those_of_lines_among_the_kernels(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.util import quietRun
        net = Mininet(controller=None, link=TCLink, switch=OVSBridge)
        ends = net.addHost("h1"), net.addSwitch("s1")
        net.addLink(*ends, bw=10, delay="5ms")
        net.start()
        for line in "tc qdisc show", "tc -s qdisc", "tc qdisc ls":
            for said in ends[0].cmd(line), quietRun(line):
                print([word for word in said.splitlines() if word.startswith("qdisc") and " dev lo " not in word])
        all_of_them, one = (ends[0].cmd(f"tc -s qdisc show {dev}") for dev in ("", "dev h1-eth0"))
        print(one in all_of_them.replace(" dev h1-eth0", ""))
        print(quietRun("ovs-vsctl get interface s1-eth1 admin_state link_state mac_in_use").split())
        print(quietRun("cat /sys/class/net/s1-eth1/address").strip())
        net.stop()
        """,
    )
    lines = done.stdout.splitlines()
    for name, rows in zip(["h1-eth0", "s1-eth1"] * 3, lines, strict=False):
        assert f"qdisc htb 5: dev {name} root" in rows and f"qdisc netem 10: dev {name} parent 5:1" in rows, lines
        assert "noqueue" not in rows
    address = lines[8]
    assert lines[6:8] == ["True", str(["up", "up", f'"{address}"'])]
