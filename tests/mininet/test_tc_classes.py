"""Classes and filters of ``tc`` at the ends of lines: they become queues with classes, and frames go to them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script
from twinnet import _core
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.line_control import LineControl, LineRefused
from twinnet.mininet.shaping import Shaping
from twinnet.mininet.tc_commands import delay_commands, rate_commands
from twinnet.mininet.tc_grammar import read_discipline
from twinnet.mininet.tc_queues import plain_queue

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

HTB = """
    qdisc add dev x root handle 1: htb default 30
    class add dev x parent 1: classid 1:1 htb rate 10mbit burst 15k
    class add dev x parent 1:1 classid 1:10 htb rate 5mbit burst 15k prio 1
    class add dev x parent 1:1 classid 1:20 htb rate 3mbit ceil 6mbit burst 15k
    class add dev x parent 1:1 classid 1:30 htb rate 1kbit ceil 6mbit burst 15k
    qdisc add dev x parent 1:10 handle 10: sfq perturb 10
"""


def bucket(mbps: float, burst: int, limit: int) -> dict[str, Any]:
    """A token bucket in the form of the lab protocol."""
    queue = {"kind": "fifo", "limit_bytes": limit}
    return {"kind": "tbf", "rate_bps": round(mbps * 1e6), "burst_bytes": burst, "queue": queue}


class Line:
    """A fabric with the one line of the interface x."""

    def __init__(self) -> None:
        self.intf = SimpleNamespace(name="x", shaping=Shaping())
        self.rows: list[dict[str, Any]] = []

    def line_end(self, name: str) -> Any:
        return self.intf if name == "x" else None

    def counters(self, _intf: Any) -> dict[str, int]:
        return {"link_bytes": 9000, "frames": 9}

    def classes(self, _intf: Any) -> list[dict[str, Any]]:
        return self.rows

    def shaping_changed(self, _intf: Any) -> None:
        pass


@pytest.fixture
def line() -> Line:
    """The line that the commands are to change."""
    return Line()


@pytest.fixture
def lines(line: Line) -> LineControl:
    """``tc`` on that line."""
    return LineControl(cast("Fabric", line))


def run(lines: LineControl, commands: str) -> None:
    for command in commands.strip().splitlines():
        lines.run(command.split())


def queue_of(line: Line) -> dict[str, Any]:
    """The queue, which the core takes as it is."""
    _core.check_queue(json.dumps(line.intf.shaping.queue))
    return line.intf.shaping.queue


def test_filters_of_htb_choose_its_classes_and_the_default_has_the_rest(line: Line, lines: LineControl) -> None:
    run(lines, HTB)
    # Without a filter one class has all frames, and the line its rate.
    assert line.intf.shaping == Shaping(6)
    run(
        lines,
        """
        filter add dev x protocol ip parent 1:0 prio 1 u32 match ip dport 80 0xffff flowid 1:10
        filter add dev x protocol ip parent 1:0 prio 1 u32 match ip protocol 17 0xff match ip src 10.0.0.0/8 flowid 1:20
        """,
    )
    queue = queue_of(line)
    assert line.intf.shaping.bw is None
    assert [rule["number"] for rule in queue["rules"]] == [0, 1]
    assert queue["rules"][0]["header"] == [{"at": 20, "mask": 0xFFFF, "value": 80}]
    assert queue["rules"][1]["header"] == [
        {"at": 8, "mask": 0x00FF0000, "value": 0x00110000},
        {"at": 12, "mask": 0xFF000000, "value": 0x0A000000},
    ]
    assert queue["otherwise"] == 2
    shared = queue["queue"]
    assert (shared["kind"], shared["rate_bps"]) == ("htb", 10_000_000)
    rates = [(one["min_rate_bps"], one["max_rate_bps"]) for one in shared["queues"].values()]
    assert rates == [(5_000_000, 5_000_000), (3_000_000, 6_000_000), (1000, 6_000_000)]
    first = shared["queues"]["0"]
    assert (first["burst_bytes"], first["priority"], first["queue"]) == (
        15360,
        1,
        {"kind": "sfq", "perturb_ps": 10**13},
    )


def test_classes_without_one_above_share_nothing_and_frames_without_a_class_pass_them_by(
    line: Line, lines: LineControl
) -> None:
    run(
        lines,
        """
        qdisc add dev x root handle 1: htb
        class add dev x parent 1: classid 1:1 htb rate 1mbit ceil 9mbit
        class add dev x parent 1: classid 1:2 htb rate 2mbit
        filter add dev x parent 1: protocol ip prio 5 u32 match ip dst 10.0.0.3 flowid 1:2
        filter add dev x parent 1: protocol ip prio 3 u32 match ip tos 0x10 0xff flowid 1:1
        """,
    )
    queue = queue_of(line)
    assert [rule["number"] for rule in queue["rules"]] == [1, 1]
    assert queue["otherwise"] == 0
    direct, inner = queue["queue"]["bands"]
    assert direct["kind"] == "fifo"
    # The lower priority is tried first.
    assert [rule["number"] for rule in inner["rules"]] == [0, 1]
    rates = [one["max_rate_bps"] for one in inner["queue"]["queues"].values()]
    assert (rates, inner["queue"]["rate_bps"]) == ([1_000_000, 2_000_000], 3_000_000)


def test_classes_stand_within_classes(line: Line, lines: LineControl) -> None:
    run(
        lines,
        """
        qdisc add dev x root handle 1: htb default 22
        class add dev x parent 1: classid 1:1 htb rate 10mbit
        class add dev x parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit
        class add dev x parent 1:1 classid 1:20 htb rate 6mbit ceil 8mbit
        class add dev x parent 1:20 classid 1:21 htb rate 1mbit ceil 10mbit
        class add dev x parent 1:20 classid 1:22 htb rate 5mbit
        filter add dev x parent 1: protocol ip u32 match ip dport 1 0xffff flowid 1:10
        filter add dev x parent 1: protocol ip u32 match ip dport 2 0xffff flowid 1:21
        """,
    )
    queue = queue_of(line)
    # A filter without a priority goes before those that are there.
    assert [rule["number"] for rule in queue["rules"]] == [1, 0]
    assert queue["otherwise"] == 1
    inner = queue["queue"]["queues"]["1"]["queue"]
    assert ([rule["number"] for rule in inner["rules"]], inner["otherwise"]) == ([0], 1)
    assert inner["queue"]["rate_bps"] == 8_000_000
    # No class sends more than the one above it may.
    assert inner["queue"]["queues"]["0"]["max_rate_bps"] == 8_000_000


def test_bands_of_prio_have_queues_of_their_own(line: Line, lines: LineControl) -> None:
    run(
        lines,
        """
        qdisc add dev x root handle 1: prio
        qdisc add dev x parent 1:1 handle 10: pfifo limit 5
        qdisc add dev x parent 1:3 handle 30: tbf rate 1mbit burst 10k latency 100ms
        filter add dev x parent 1: protocol ip u32 match ip sport 5001 0xffff flowid 1:3
        filter add dev x parent 1: matchall classid 1:1
        """,
    )
    queue = queue_of(line)
    assert [rule["number"] for rule in queue["rules"]] == [0, 2]
    # Frames that switches forward have the priority 0, and the map's entry for it.
    assert queue["otherwise"] == 1
    first, second, third = queue["queue"]["bands"]
    assert (first["limit_frames"], second["limit_frames"]) == (5, 1000)
    assert (third["kind"], third["rate_bps"], third["queue"]["limit_bytes"]) == ("tbf", 1_000_000, 22_740)


def test_flower_is_read_too(line: Line, lines: LineControl) -> None:
    run(lines, HTB)
    command = (
        "filter add dev x parent 1: protocol ip prio 1 flower ip_proto tcp dst_ip 10.0.0.2 dst_port 5001 classid 1:10"
    )
    run(lines, command)
    assert queue_of(line)["rules"][0]["header"] == [
        {"at": 8, "mask": 0x00FF0000, "value": 0x00060000},
        {"at": 16, "mask": 0xFFFFFFFF, "value": 0x0A000002},
        {"at": 20, "mask": 0xFFFF, "value": 5001},
        # Ports are seen behind a header without options, and not in fragments.
        {"at": 0, "mask": 0x0F000000, "value": 0x05000000},
        {"at": 4, "mask": 0x3FFF, "value": 0},
    ]


@pytest.mark.parametrize(
    ("words", "header"),
    [
        # Masks are hexadecimal, and bits of one word are compared at once.
        ("match ip sport 5001 ffff match ip dport 80 0xffff", [(20, 0xFFFFFFFF, 5001 << 16 | 80)]),
        ("match ip6 src 2001:db8::/40", [(8, 0xFFFFFFFF, 0x20010DB8), (12, 0xFF000000, 0)]),
        ("match ip nofrag match ip icmp_type 8 ff", [(4, 0x3FFF, 0), (20, 0xFF000000, 0x08000000)]),
        # Without a link, nexthdr is the network header itself, as in the kernel.
        ("match u16 80 0xffff at nexthdr+22 match ip sport 9 0xffff", [(20, 0xFFFF, 80), (20, 0xFFFF0000, 9 << 16)]),
    ],
)
def test_selectors_of_u32_compare_words_of_the_header(
    line: Line, lines: LineControl, words: str, header: list[tuple[int, int, int]]
) -> None:
    run(lines, HTB)
    run(lines, f"filter add dev x parent 1: protocol all u32 {words} flowid 1:10")
    rule = queue_of(line)["rules"][0]
    assert [(word["at"], word["mask"], word["value"]) for word in rule["header"]] == header
    assert rule["ether_type"] is None


def test_filters_that_choose_no_class_give_frames_to_the_usual_one(line: Line, lines: LineControl) -> None:
    run(lines, HTB)
    run(
        lines,
        """
        filter add dev x parent 1: prio 1 protocol ip u32 match ip dport 80 0xffff flowid 1:99
        filter add dev x parent 1: prio 2 protocol ip u32 match u32 0 0 flowid 1:10
        """,
    )
    queue = queue_of(line)
    # The class 1:30 stands third.
    assert ([rule["number"] for rule in queue["rules"]], queue["otherwise"]) == ([2, 0], 2)


def test_what_was_set_is_shown_in_the_words_of_tc_with_the_counts_of_each_class(line: Line, lines: LineControl) -> None:
    run(lines, HTB)
    run(lines, "filter add dev x protocol ip parent 1: prio 1 u32 match ip dport 80 0xffff flowid 1:10")
    drops = {"overlimit": 2, "early": 1, "unclassified": 0}
    waiting = {"frames": 1, "bytes": 1514}
    line.rows = [{"class": 0, "frames": 4, "bytes": 4000, "drops": drops, "backlog": waiting}]
    shown = lines.run(["-s", "class", "show", "dev", "x"])
    assert "class htb 1:1 root rate 10Mbit ceil 10Mbit burst 15Kb cburst 1600b \n Sent 9000 bytes 9 pkt" in shown
    assert (
        "class htb 1:10 parent 1:1 leaf 10: prio 1 rate 5Mbit ceil 5Mbit burst 15Kb cburst 1600b \n"
        " Sent 4000 bytes 4 pkt (dropped 3, overlimits 0 requeues 0) \n"
        " backlog 1514b 1p requeues 0\n lended: 0 borrowed: 0 giants: 0\n"
    ) in shown
    assert (
        "qdisc sfq 10: parent 1:10 limit 127p quantum 1514b depth 127 divisor 1024 perturb 10sec \n"
        " Sent 4000 bytes 4 pkt (dropped 3," in lines.run(["-s", "qdisc", "show", "dev", "x"])
    )
    assert lines.run(["filter", "show", "dev", "x"]) == (
        "filter parent 1: protocol ip pref 1 u32 chain 0 \n"
        "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1 \n"
        "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:10 "
        "not_in_hw \n  match 00000050/0000ffff at 20\n"
    )
    run(lines, "filter del dev x parent 1: prio 1")
    assert line.intf.shaping == Shaping(6)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("filter add dev x parent 1: protocol ip handle 5 fw flowid 1:10", "marks of iptables do not reach our lines"),
        ("filter add dev x parent 1: protocol ip u32 match ip dport 80 0xffff", "u32 without flowid"),
        ("filter add dev x parent 1: protocol ip u32 match ip port 80 0xffff flowid 1:10", 'Illegal "match"'),
        ("filter add dev x parent 1: protocol ip u32 match ip dport 70000 0xffff flowid 1:10", 'Illegal "match"'),
        ("filter add dev x parent 1: protocol ip u32 match ip dst here flowid 1:10", 'Illegal "match"'),
        ("filter add dev x parent 1: protocol ip u32 flowid 1:10", "Selector not specified"),
        ("filter add dev x parent 1: protocol 802.1ad u32 match u32 0 0 flowid 1:10", "filters of protocol 802.1ad"),
        (
            "filter add dev x parent 1: protocol ip u32 match u32 0 0 police rate 1mbit flowid 1:10",
            "u32 police is not there",
        ),
        ("filter del dev x parent 1: prio 9", "Cannot find specified filter chain"),
        ("class add dev x parent 1:5 classid 1:50 htb rate 1mbit", "the parent class 1:5 is not there"),
        ("class add dev x parent 1:1 classid 1:10 htb rate 1mbit", "File exists"),
        ("class change dev x parent 1:1 classid 1:11 htb rate 1mbit", "No such file or directory"),
        ("class add dev x parent 1:1 classid 1:50 htb ceil 1mbit", '"rate" is required.'),
    ],
)
def test_what_a_line_cannot_do_is_refused_and_changes_nothing(
    line: Line, lines: LineControl, command: str, words: str
) -> None:
    run(lines, HTB)
    with pytest.raises(LineRefused, match=re.escape(words)):
        lines.run(command.split())
    assert line.intf.shaping == Shaping(6)


@machine
@pytest.mark.quiet
def test_flows_get_the_rates_of_the_classes_that_filters_choose(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os, re
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge, controller=None)
        net.start()
        h1, h2 = net.hosts
        for line in (
            "qdisc add dev s1-eth2 root handle 1: htb default 20",
            "class add dev s1-eth2 parent 1: classid 1:1 htb rate 10mbit",
            "class add dev s1-eth2 parent 1:1 classid 1:10 htb rate 2mbit ceil 2mbit",
            "class add dev s1-eth2 parent 1:1 classid 1:20 htb rate 6mbit ceil 6mbit",
            "qdisc add dev s1-eth2 parent 1:10 handle 10: pfifo limit 20",
            "qdisc add dev s1-eth2 parent 1:20 handle 20: pfifo limit 20",
            "filter add dev s1-eth2 protocol ip parent 1: prio 1 u32 match ip dport 5001 0xffff flowid 1:10",
        ):
            assert os.system("tc " + line) == 0, line
        for port in (5001, 5002):
            h2.cmd(f"iperf -s -u -p {port} &")
        client = "iperf -c 10.0.0.2 -u -b 8M -t 4 -f m -p"
        h1.cmd(f"{client} 5001 > first & {client} 5002 > second; wait %1")
        for name in ("first", "second"):
            report = open(name).read().split("Server Report")[1]
            print(re.search("([0-9.]+) Mbits/sec", report)[1])
        said = h1.cmd("tc -s class show dev s1-eth2")
        print(int(re.search("1:10 .*?Sent ([0-9]+) bytes", said, re.S)[1]) > 500000)
        """,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stdout + done.stderr
    # The server counts what datagrams of 1470 B carry, 97 % of the rate of their frames.
    assert 1.7 <= float(lines[0]) <= 2.05
    assert 5.2 <= float(lines[1]) <= 6.1
    assert lines[2] == "True"


@pytest.mark.parametrize(
    ("words", "weight"),
    [
        # The example of tc-red(8): avpkt 1000 and burst 55 with min 30k.
        ("limit 400000 min 30000 max 90000 avpkt 1000 burst 55", 2**-5),
        # Mininet's own RED, whose thresholds hold all of its burst.
        ("limit 1000000 min 30000 max 35000 avpkt 1500 burst 20", 2**-1),
        # The manual's burst where none is given: (2 * min + max) / (3 * avpkt), here 50.
        ("limit 400000 min 30000 max 90000 avpkt 1000", 2**-5),
    ],
)
def test_the_average_of_red_follows_its_burst(words: str, weight: float) -> None:
    queue = plain_queue("red", read_discipline("red", words.split()))
    assert queue["weight"] == weight
    _core.check_queue(json.dumps(queue))
    frame, burst = queue["average_frame_bytes"], int(words.split()[-1]) if "burst" in words else 50
    # The burst, filtered from an empty queue, stays below the threshold, and with the next greater weight would not.
    average = 0.0
    for length in range(1, burst + 1):
        average += weight * (length - average)
    assert average * frame <= queue["min_bytes"] + frame


@pytest.mark.parametrize("burst", ["5", "100000000"])
def test_a_burst_that_no_average_of_red_can_follow_is_refused(burst: str) -> None:
    with pytest.raises(LineRefused, match="RED: failed to calculate EWMA constant"):
        words = f"limit 400000 min 30000 max 90000 avpkt 1000 burst {burst}"
        plain_queue("red", read_discipline("red", words.split()))


def test_netem_in_one_of_several_classes_keeps_the_frames_of_that_class(line: Line, lines: LineControl) -> None:
    run(
        lines,
        """
        qdisc add dev x root handle 1: prio
        qdisc add dev x parent 1:3 handle 30: netem delay 40ms 5ms loss 2% limit 50
        filter add dev x protocol ip parent 1: prio 1 u32 match ip dst 10.0.0.3 flowid 1:3
        """,
    )
    queue = queue_of(line)
    kept = {"kind": "delay", "delay_ps": 40 * 10**9, "jitter_ps": 5 * 10**9, "loss": 0.02, "limit_frames": 50}
    assert queue["queue"]["bands"][2] == kept
    assert (line.intf.shaping.delay, line.intf.shaping.loss) == (None, None)
    assert "qdisc netem 30: parent 1:3 limit 50 delay 40ms  5ms loss 2%" in lines.run(["qdisc", "show", "dev", "x"])
    run(lines, "qdisc change dev x parent 1:3 handle 30: netem delay 10ms")
    assert queue_of(line)["queue"]["bands"][2]["delay_ps"] == 10**10


def test_netem_in_classes_of_htb_may_be_inside_of_tbf_and_not_the_other_way_round(
    line: Line, lines: LineControl
) -> None:
    run(lines, HTB)
    run(
        lines,
        """
        filter add dev x protocol ip parent 1: prio 1 u32 match ip dport 80 0xffff flowid 1:10
        qdisc add dev x parent 1:20 handle 20: tbf rate 1mbit burst 10k latency 50ms
        qdisc add dev x parent 20:1 handle 21: netem delay 7ms
        qdisc add dev x parent 1:30 handle 30: netem delay 9ms
        """,
    )
    classes = queue_of(line)["queue"]["queues"]
    assert classes["1"]["queue"]["queue"]["delay_ps"] == 7 * 10**9
    assert classes["2"]["queue"]["delay_ps"] == 9 * 10**9
    with pytest.raises(LineRefused, match="netem inside of tbf"):
        run(lines, "qdisc add dev x parent 30:1 handle 31: tbf rate 1mbit burst 10k latency 50ms")
    with pytest.raises(LineRefused, match="loss percent"):
        run(lines, "qdisc change dev x parent 1:30 handle 30: netem loss 150%")


@machine
def test_scripts_delay_what_goes_to_one_host_and_not_to_another(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import re
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo

        net = Mininet(topo=SingleSwitchTopo(3), switch=OVSBridge, controller=None, autoStaticArp=True)
        net.start()
        h1 = net["h1"]
        for line in (
            "qdisc add dev h1-eth0 root handle 1: htb default 10",
            "class add dev h1-eth0 parent 1: classid 1:1 htb rate 100mbit",
            "class add dev h1-eth0 parent 1:1 classid 1:10 htb rate 50mbit",
            "class add dev h1-eth0 parent 1:1 classid 1:20 htb rate 50mbit",
            "qdisc add dev h1-eth0 parent 1:20 handle 20: netem delay 60ms",
            "filter add dev h1-eth0 protocol ip parent 1: prio 1 u32 match ip dst 10.0.0.3 flowid 1:20",
        ):
            print(h1.cmd("tc " + line), end="")
        for host in ("h2", "h3"):
            trips = re.findall(r"time=([0-9.]+)", h1.cmd("ping -c5 -i0.2", net[host].IP()))
            print(min(map(float, trips)))
        print(h1.cmd("tc -s qdisc show dev h1-eth0 | grep -A1 netem"))
        net.stop()
        """,
    )
    near, far = (float(line) for line in done.stdout.splitlines()[:2])
    # A ping between two hosts without a delay takes well below 20 ms on an idle machine.
    assert near < 20, done.stdout + done.stderr
    assert 60 <= far < 80, done.stdout
    assert re.search(r"qdisc netem 20: parent 1:20 .*\n Sent [1-9]", done.stdout), done.stdout


def test_the_delay_below_red_is_that_of_the_line(line: Line, lines: LineControl) -> None:
    commands, below = rate_commands(10, enable_red=True)
    commands += delay_commands(below, "5ms", "1ms", 2, 100)[0]
    for command in commands:
        lines.run((command % ("", "x")).split())
    assert (line.intf.shaping.bw, line.intf.shaping.delay, line.intf.shaping.loss) == (10, "5ms", 2)
    assert queue_of(line)["kind"] == "red"
    with pytest.raises(LineRefused, match="pfifo inside of red"):
        run(lines, "qdisc replace dev x parent 6: handle 11: pfifo limit 5")


@pytest.mark.parametrize(
    ("ways", "shaped"),
    [
        ({}, Shaping(10)),
        ({"use_hfsc": True}, Shaping(10)),
        ({"use_tbf": True, "latency_ms": 20}, Shaping(queue=bucket(10, 15_000, 40_000))),
    ],
)
def test_the_commands_of_a_rate_are_what_tc_reads(
    line: Line, lines: LineControl, ways: dict[str, Any], shaped: Shaping
) -> None:
    for command in rate_commands(10, **ways)[0]:
        lines.run((command % ("", "x")).split())
    assert line.intf.shaping == shaped


@machine
def test_classes_of_scripts_may_change_the_commands_of_tc(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.cli import isReadable
        from mininet.link import Link, TCIntf
        from mininet.log import Singleton, makeListCompatible
        from mininet.net import Mininet
        from mininet.node import OVSBridge

        class Slow(TCIntf):
            def bwCmds(self, **settings):
                commands, parent = TCIntf.bwCmds(self, **settings)
                return [one.replace("rate 10.", "rate 5.") for one in commands], parent

        class SlowLink(Link):
            def __init__(self, *args, **params):
                Link.__init__(self, *args, **{"cls1": Slow, "cls2": Slow, **params})

        net = Mininet(controller=None, switch=OVSBridge)
        h1, s1 = net.addHost("h1"), net.addSwitch("s1")
        link = net.addLink(h1, s1, cls=SlowLink, bw=10, delay="3ms")
        net.start()
        print(link.intf1.shaping.bw, link.intf2.shaping.bw, link.intf1.shaping.delay)
        print(h1.cmd("tc class show dev h1-eth0"))
        link.intf1.config(bw=10, delay="4ms")
        print(link.intf1.shaping.bw, link.intf1.shaping.delay)
        net.stop()
        """,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "5.0 5.0 3ms", done.stdout + done.stderr
    assert "rate 5Mbit" in lines[1]
    assert lines[-1] == "5.0 4ms", done.stdout
