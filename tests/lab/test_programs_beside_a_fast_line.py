"""A line of 1 Gbit/s beside real programs: they keep off the fabric's processor, and the line has its rate at once."""

from __future__ import annotations

import shutil
import time
from statistics import median

import pytest
import twinnet as tn
from labs_here import can_run_labs
from means import MEANS

pytestmark = [
    pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor"),
    pytest.mark.skipif(shutil.which("iperf") is None, reason="iperf not installed"),
    pytest.mark.skipif(not MEANS["two-processors"].is_here(), reason="one processor cannot be taken from the lab"),
]

RATE_BPS = 1e9
FRAME_BYTES = 1470 + 42 + 24
"""A datagram of iperf 2 with its headers and the framing."""
INTERVAL_MS = 10
MOST_LOST = 0.05
"""The median of three such seconds. Of twenty on two processors the worst lost 3.4 %, the median 0.4 %. Where a sender
stays behind the fabric, a tenth of a second loses 62 %, and a fabric that Linux stops loses 5 % of each second."""


def lost_in_the_first_second(net: tn.Network, port: str) -> float:
    """Return what `port` did not carry of its rate in the second that begins with its first busy interval."""
    full = RATE_BPS * INTERVAL_MS / 1000 / (8 * FRAME_BYTES)
    with net.emulate() as lab:
        lab["h2"].popen("iperf -s -u", stdout=tn.lab.DEVNULL)
        time.sleep(0.5)
        with lab.sample([port], f"{INTERVAL_MS} ms") as sampler:
            lab["h1"].run("iperf -c h2 -u -l 1470 -b 2000M -t 1.5", check=True)
        frames = sampler.read()[port].frames
    begin = next(at for at, sent in enumerate(frames) if sent > full / 10)
    second = frames[begin + 1 : begin + 1 + 1000 // INTERVAL_MS]
    assert len(second) == 1000 // INTERVAL_MS
    return 1 - sum(second) / (full * len(second))


@pytest.mark.judged(processors=1.8)
def test_a_source_at_twice_the_rate_leaves_the_line_its_rate() -> None:
    net = tn.Network()
    switch = net.switch("s1")
    net.link(net.host("h1"), switch)
    net.link(switch, net.host("h2"), rate="1 Gbit")
    assert median(lost_in_the_first_second(net, "s1-eth2") for _ in range(3)) < MOST_LOST


@pytest.mark.judged(processors=1.8)
def test_a_source_that_its_own_line_holds_back_fills_it() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="1 Gbit")
    assert median(lost_in_the_first_second(net, "h1-eth0") for _ in range(3)) < MOST_LOST
