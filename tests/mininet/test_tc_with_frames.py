"""What lines of ``tc`` do to frames on the virtual clock: the shares of 100 000 datagrams are those asked for.

Each bound is 5 standard deviations: a share as it should be misses it once in 1.7 million times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import sqrt
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import twinnet as tn
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.line_control import LineControl
from twinnet.mininet.shaping import Shaping

DATAGRAMS = 100_000
DEVIATIONS = 5.0
FRAME_BYTES = 14 + 20 + 8 + 100
ADDRESS_BYTES = 6
"""An error in the sender's hardware address is not seen."""


@dataclass(frozen=True)
class Arrived:
    """What has arrived: the delays of datagrams in ms, their rate, and what was lost, with the bursts' mean length."""

    delays_ms: np.ndarray[Any, Any]
    per_s: float
    lost: int
    duplicates: int
    burst: float


def shaped(*commands: str) -> Shaping:
    """Return what a line is after the commands of ``tc``."""
    intf = SimpleNamespace(name="x", shaping=Shaping())
    line = SimpleNamespace(line_end=lambda _name: intf, shaping_changed=lambda _intf: None)
    lines = LineControl(cast("Fabric", line))
    for command in commands:
        lines.run(command.split())
    return intf.shaping


@cache
def arrived(words: str) -> Arrived:
    """Send datagrams over a line that has a ``netem`` of these words."""
    shaping = shaped(f"qdisc add dev x root netem {words}")
    network = tn.Network(seed=5)
    network.link(network.host("a"), network.host("b"))
    with network.simulate(seed=3) as lab:
        # The hosts know each other's addresses by then.
        lab.start(tn.apps.udp("a", "b", port=4000, packets=1, packets_per_second=1000, payload="100 B"))
        lab.run_until("1 s")
        lab.connection.link_set(link=0, direction="ab", set=shaping.direction())
        flow = lab.start(
            tn.apps.udp(
                "a",
                "b",
                packets=DATAGRAMS,
                packets_per_second=10_000,
                payload="100 B",
                record_packets=2 * DATAGRAMS,
            )
        )
        lab.run_until("13 s")
        report = flow.report()
    table = report.packet_table
    times = table["arrived_s"].to_numpy()
    per_s = (len(times) - 1) / (times.max() - times.min())
    return Arrived(table["delay_ms"].to_numpy(), per_s, report.lost, report.duplicates, report.loss_bursts.mean)


def near(found: float, share: float, trials: int = DATAGRAMS, correlated: float = 0.0) -> bool:
    """Return whether a share is within the bound; `correlated` is the sum of the covariances of a trial with others."""
    return abs(found - share) < DEVIATIONS * sqrt((share * (1 - share) + correlated) / trials)


def chain(to_bad: float, to_good: float, loss_bad: float, loss_good: float) -> tuple[float, float]:
    """Return the share of losses of a chain of Gilbert and Elliott, and the sum of its covariances."""
    bad = to_bad / (to_bad + to_good)
    stays = 1 - to_bad - to_good
    spread = bad * (1 - bad) * (loss_bad - loss_good) ** 2
    return bad * loss_bad + (1 - bad) * loss_good, 2 * spread * stays / (1 - stays)


def test_losses_are_as_many_as_asked_for() -> None:
    assert near(arrived("loss 5%").lost / DATAGRAMS, 0.05)


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("loss gemodel 1% 10% 70% 0.1%", (0.01, 0.1, 0.7, 0.001)),
        ("loss gemodel 1% 25%", (0.01, 0.25, 1.0, 0.0)),
        ("loss state 1% 25%", (0.01, 0.25, 1.0, 0.0)),
    ],
)
def test_chains_lose_as_many_in_bursts_as_long(words: str, settings: tuple[float, float, float, float]) -> None:
    found = arrived(words)
    share, correlated = chain(*settings)
    assert near(found.lost / DATAGRAMS, share, correlated=correlated)
    to_good, loss_bad = settings[1:3]
    if loss_bad == 1.0:
        # Bursts are geometric.
        bursts = found.lost / found.burst
        assert abs(found.burst - 1 / to_good) < DEVIATIONS * sqrt(1 - to_good) / to_good / sqrt(bursts)


@pytest.mark.parametrize(
    ("shape", "below_ms"),
    [
        ("", {17.5: 0.25, 20: 0.5, 22.5: 0.75}),
        ("distribution normal", {15: 0.158655, 20: 0.5, 25: 0.841345}),
        # netem's pareto is (X - 3/2) 4/3, where X is Pareto with shape 3: above 20 ms are those with X > 3/2.
        ("distribution pareto", {20: 1 - (2 / 3) ** 3, 25: 1 - (1 / 2.25) ** 3}),
        # A quarter of the normal quantile and three quarters of the Pareto one: at one half, 2 ** (1/3) - 3/2.
        ("distribution paretonormal", {20 + 5 * (2 ** (1 / 3) - 1.5): 0.5}),
    ],
)
def test_delays_have_the_distribution_that_jitter_asks_for(shape: str, below_ms: dict[float, float]) -> None:
    delays = arrived(f"delay 20ms 5ms {shape}").delays_ms
    assert len(delays) == DATAGRAMS
    for limit, share in below_ms.items():
        assert near(float(np.mean(delays < limit)), share), (limit, share)
    if not shape:
        # A nanosecond is for the rounding of the table.
        assert (delays.min() >= 15 - 1e-6, delays.max() <= 25 + 1e-6) == (True, True)


def test_reordered_frames_pass_the_delay_by() -> None:
    delays = arrived("delay 10ms reorder 25%").delays_ms
    assert near(float(np.mean(delays < 1)), 0.25)
    assert np.all((delays < 1) | (abs(delays - 10) < 1e-3))


def test_duplicates_and_errors_are_as_many_as_asked_for() -> None:
    found = arrived("duplicate 2%")
    assert near(found.duplicates / DATAGRAMS, 0.02)
    assert found.lost == 0
    # A corrupt frame has one wrong bit, which all checks see but in the sender's hardware address.
    assert near(arrived("corrupt 3%").lost / DATAGRAMS, 0.03 * (1 - ADDRESS_BYTES / FRAME_BYTES))


def test_the_rate_counts_frames_as_tc_counts() -> None:
    found = arrived("rate 2mbit")
    assert found.per_s == pytest.approx(2e6 / (8 * FRAME_BYTES), rel=1e-4)


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("u32 match ip dport 5001 0xffff", [5001]),
        ("u32 match ip dport 0x1388 fff8 match ip nofrag", [5001, 5002]),
        ("u32 match ip dport 5001 0xffff match ip mf", []),
        ("u32 match u16 5002 ffff at nexthdr+22 match ip src 10.0.0.0/24", [5002]),
        ("u32 match ip protocol 6 0xff", []),
        ("flower ip_proto udp dst_port 5001", [5001]),
        ("flower ip_proto udp dst_port 5000/0xfffc src_ip 10.0.0.1", [5001, 5002]),
        ("flower ip_proto tcp dst_port 5001", []),
        ("matchall", [5001, 5002]),
    ],
)
def test_filters_choose_the_band_of_frames(words: str, chosen: list[int]) -> None:
    shaping = shaped(
        "qdisc add dev x root handle 1: prio",
        "qdisc add dev x parent 1:3 handle 30: netem loss 100%",
        f"filter add dev x parent 1: protocol ip {words} flowid 1:3",
    )
    network = tn.Network(seed=5)
    network.link(network.host("a"), network.host("b"))
    with network.simulate(seed=3) as lab:
        lab.connection.queues_set(node="a", port=0, queue=shaping.queue)
        flows = {
            port: lab.start(tn.apps.udp("a", "b", port=port, packets=50, packets_per_second=1000, payload="100 B"))
            for port in (5001, 5002)
        }
        lab.run_until("2 s")
        # Of a flow of which nothing arrives the receiver has no report.
        sinks = {port: [one for one in flow.reports()[1].flows if one.role == "sink"] for port, flow in flows.items()}
    arrived_at = {port: sum(one.packets for one in reports) for port, reports in sinks.items()}
    assert arrived_at == {port: 0 if port in chosen else 50 for port in flows}
