"""Programs of the machine see at ports between switches what the lines there carry: captures in both directions, and
the kernel's counters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

_SCRIPT = """
    import json, socket, time
    from mininet.link import TCLink
    from mininet.net import Mininet
    from mininet.node import OVSBridge

    def opened(name):
        heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        heard.bind((name, 0))
        heard.setblocking(False)
        return heard

    def echoes(heard):
        # Echo requests and replies that left and that came, by type and direction, with their lengths.
        found = {}
        while True:
            try:
                frame, (_, _, kind, _, _) = heard.recvfrom(70000)
            except BlockingIOError:
                return found
            except OSError:  # told once: the interface went down
                continue
            if frame[12:14] == b"\\x08\\x00" and frame[23] == 1:
                key = f"{'request' if frame[34] == 8 else 'reply'} {'out' if kind == 4 else 'in'}"
                found.setdefault(key, []).append(len(frame))

    def counters(name, what):
        return int(open(f"/sys/class/net/{name}/statistics/{what}").read())

    net = Mininet(switch=OVSBridge, link=TCLink, controller=None)
    h1, h2, s1, s2 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1"), net.addSwitch("s2")
    net.addLink(h1, s1)
    net.addLink(s1, s2, **LINE)
    net.addLink(s2, h2)
    net.start()
    h1.cmd("ping -c1 -W2", h2.IP())
    names = ("s1-eth1", "s1-eth2", "s2-eth1", "s2-eth2")
    heard = {name: opened(name) for name in names}
    time.sleep(0.3)
    before = {name: [counters(name, f"{way}_bytes") for way in ("tx", "rx")] for name in names}
    SENDS
    time.sleep(1)
    after = {name: [counters(name, f"{way}_bytes") for way in ("tx", "rx")] for name in names}
    grown = {name: [now - then for now, then in zip(after[name], before[name])] for name in names}
    print(json.dumps([{name: echoes(one) for name, one in heard.items()}, grown]))
    net.stop()
    """


def _script(line: str, sends: str) -> str:
    return _SCRIPT.replace("LINE", line).replace("SENDS", sends)


@pytest.mark.parametrize("line", ["{'bw': 10, 'delay': '5ms'}", "{}"], ids=["shaped", "unshaped"])
def test_a_capture_has_both_directions_and_the_counters_grow(tmp_path: Path, line: str) -> None:
    done = run_script(tmp_path, _script(line, 'h1.cmd("ping -c5 -i0.05 -s1000", h2.IP())'))
    seen, grown = json.loads(done.stdout.splitlines()[-1])
    five = [1042] * 5
    towards_h2, towards_h1 = {"request out": five, "reply in": five}, {"request in": five, "reply out": five}
    # The ports at the hosts, too.
    assert seen == {"s1-eth1": towards_h1, "s1-eth2": towards_h2, "s2-eth1": towards_h1, "s2-eth2": towards_h2}
    # The kernel sends a few frames of its own there.
    for name, ways in grown.items():
        assert all(5 * 1042 <= count < 5 * 1042 + 1000 for count in ways), (name, grown)


def test_what_a_line_loses_is_not_seen_and_a_link_that_is_down_shows_nothing(tmp_path: Path) -> None:
    lost = run_script(tmp_path, _script("{'loss': 100}", 'h1.cmd("ping -c3 -i0.05 -W1", h2.IP())'))
    seen, _ = json.loads(lost.stdout.splitlines()[-1])
    assert all(not seen[name] for name in ("s1-eth2", "s2-eth1", "s2-eth2")), lost.stderr
    sends = 's1.cmd("ip link set s1-eth2 down"); h1.cmd("ping -c3 -i0.05 -W1", h2.IP())'
    down = run_script(tmp_path, _script("{}", sends))
    seen, _ = json.loads(down.stdout.splitlines()[-1])
    assert all(not seen[name] for name in ("s1-eth2", "s2-eth1", "s2-eth2")), down.stderr


def test_tcp_of_a_fast_link_is_counted_whole(tmp_path: Path) -> None:
    """Its bytes in super-segments, on a link that is not shaped; what there was no time for would be told."""
    sends = """h2.cmd("iperf -s > /dev/null 2>&1 &"); time.sleep(0.5); h1.cmd("iperf -n 20M -c", h2.IP())"""
    done = run_script(tmp_path, _script("{}", sends))
    _, grown = json.loads(done.stdout.splitlines()[-1])
    sent, received = grown["s1-eth2"][0], grown["s2-eth1"][1]
    assert "were too many for captures" in done.stderr or (sent >= 20 << 20 and received >= 20 << 20), done.stderr
