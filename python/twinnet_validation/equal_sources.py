"""Equal sources that send in step into an overloaded port."""

from __future__ import annotations

from collections.abc import Sequence

import twinnet as tn

from twinnet_validation.law import Law, Row
from twinnet_validation.port import Source, constant, run_port

__all__ = ["LAW", "shares_in_fixed_order", "shares_on_the_clock"]

_SOURCES = 10
_TOLERANCE = 0.05


def shares_on_the_clock(seconds: int) -> list[float]:
    """Return what each of ten equal UDP sources delivered, over their mean, through a port of half their rate."""
    network = tn.Network(seed=11)
    switch = network.switch("s1")
    network.link(switch, network.host("sink"), rate="5 Mbit", queue=tn.qos.Fifo(20))
    for number in range(1, _SOURCES + 1):
        network.link(network.host(f"h{number}"), switch, rate="100 Mbit")
    with network.simulate(static_neighbours=True) as lab:
        flows = [
            lab.start(tn.apps.udp(f"h{number}", "sink", rate="1 Mbit", payload="1000 B", duration=f"{seconds} s"))
            for number in range(1, _SOURCES + 1)
        ]
        lab.run_until(f"{seconds + 2} s")
        received = [flow.report().bytes or 0 for flow in flows]
    return [one * _SOURCES / sum(received) for one in received]


def shares_in_fixed_order(seconds: int) -> list[float]:
    """Return the same for a port at which frames of one moment always come in the order of their sources."""
    frames = seconds * 125
    sources = [Source(frames, constant(8 * 10**9), constant(1000)) for _ in range(_SOURCES)]
    run = run_port(sources, {"kind": "fifo", "limit_frames": 20}, rate_bps=5_000_000, records=True)
    received = [0] * _SOURCES
    for one in run.records:
        received[one.source] += one.received_ps is not None
    return [one * _SOURCES / sum(received) for one in received]


def _measure(quick: bool) -> Sequence[Row]:
    seconds = 60
    rows: list[Row] = []
    for setting, shares, fair in (
        (f"seeded order, {seconds} s", shares_on_the_clock(seconds), True),
        (f"fixed order, for comparison, {seconds} s", shares_in_fixed_order(10 if quick else seconds), False),
    ):
        worst = max(shares, key=lambda share: abs(share - 1))
        rows.append(
            Row(
                f"ten sources at twice the port's rate; {setting}",
                "share furthest from equal, over equal",
                "",
                1.0 if fair else None,
                worst,
                f"{_TOLERANCE * 100:g} %: 7500 ties broken independently leave a share a spread of about 1 %"
                if fair
                else "more than 50 % off, or the artefact that the rule is against would not be there",
                (abs(worst - 1) <= _TOLERANCE) == fair and (fair or abs(worst - 1) > 0.5),
            )
        )
    return rows


LAW = Law(
    "equal-sources",
    "Equal sources have equal shares",
    "Sources in step arrive at the same picosecond, period after period. Where ties always fall the same way the same "
    "sources find the queue full each time; broken by a hash of seed and moment, each wins its share.",
    "Floyd and Jacobson 1991, Traffic phase effects in packet-switched gateways",
    _measure,
)
