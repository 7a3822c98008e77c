"""Whether a link keeps its rate, in the first moment and in the long run, frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np
import twinnet as tn

from bench.arrivals import Arrivals, lone_frames, offered
from bench.figure import Figure
from bench.machine import missing
from bench.quiet import Quiet
from bench.rounds import rounds
from bench.sites import Site, kernel_site, lab_site

TITLE = "Links driven at twice their rate, and a lone frame"
MEASURES = ("bench/line_rate.py", "crates/fabric", "crates/linux", "crates/queue")

RATES_BPS = (10_000_000, 100_000_000, 1_000_000_000)
LONE_RATE_BPS = 2_000_000
PAYLOAD = 1470
_NO_LINK_BPS = 1e15
_ETHERNET_OVERHEAD = 24
"""Preamble, frame check sequence and inter-frame gap, which our links count and the kernel's disciplines do not."""

_GAP = 12
"""Bytes of that overhead that come after the frame, when it has arrived already."""

SiteFor = Callable[[int], AbstractContextManager[Site]]


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    if absent := missing("bare"):
        yield Figure("line rate", "", [], note=absent)
        return
    seconds, repetitions, lone = (1, 1, 50) if quick else (2, 5, 150)
    sites: dict[str, tuple[SiteFor, int]] = {
        "ours": (_ours, _ETHERNET_OVERHEAD),
        "ours, sender held back": (_ours_held_back, _ETHERNET_OVERHEAD),
    }
    if missing("kernel") is None:
        sites["HTB as Mininet"] = (partial(_kernel, "HTB as Mininet", htb_as_mininet), 0)
        sites["TBF as Mininet"] = (partial(_kernel, "TBF as Mininet", tbf_as_mininet), 0)

    def at(rate_bps: int, measured: Callable[[Site, int], Arrivals]) -> dict[str, list[Arrivals]]:
        opened = {name: partial(site_for, rate_bps) for name, (site_for, _) in sites.items()}
        return rounds(opened, repetitions, quiet, lambda site: measured(site, sites[site.name][1]))

    for rate_bps in RATES_BPS:
        runs = at(rate_bps, partial(_offered, rate_bps, seconds))
        yield from _rate_figures(rate_bps, runs)
    late = at(LONE_RATE_BPS, partial(_lone, LONE_RATE_BPS, lone))
    alone: list[float] = []
    if missing("kernel") is None:
        unlimited = {"veth pair alone": lambda: kernel_site("veth pair alone")}
        passed = rounds(unlimited, repetitions, quiet, lambda site: _lone(_NO_LINK_BPS, lone, site, 0))
        alone = [float(np.median(run.late_us())) for run in passed["veth pair alone"]]
    yield from _lone_figures(late, alone)


def _offered(rate_bps: int, seconds: int, site: Site, overhead: int) -> Arrivals:
    return offered(site, rate_bps, seconds, PAYLOAD, overhead)


def _lone(rate_bps: float, count: int, site: Site, overhead: int) -> Arrivals:
    return lone_frames(site, rate_bps, count, PAYLOAD, max(0, overhead - _GAP), 20)


def htb_as_mininet(rate_bps: int) -> list[str]:
    """Return the commands that Mininet 2.3's ``TCIntf`` gives for a rate."""
    return [
        "qdisc add dev DEV root handle 5:0 htb default 1",
        f"class add dev DEV parent 5:0 classid 5:1 htb rate {rate_bps / 1e6:f}Mbit burst 15k",
    ]


def tbf_as_mininet(rate_bps: int) -> list[str]:
    """Return the commands that Mininet 2.3's ``TCIntf`` gives for a rate with ``use_tbf``."""
    mbit = rate_bps / 1e6
    return [f"qdisc add dev DEV root handle 5: tbf rate {mbit:f}Mbit burst 15000 latency {15.0 * 8 / mbit:f}ms"]


def _ours(rate_bps: int) -> AbstractContextManager[Site]:
    """The rated link leads away from a switch: nothing holds the source back."""
    net = tn.Network()
    switch = net.switch("s1")
    net.link(net.host("h1"), switch)
    net.link(switch, net.host("h2"), rate=tn.units.BitsPerSecond(rate_bps))
    return lab_site("ours", net)


def _ours_held_back(rate_bps: int) -> AbstractContextManager[Site]:
    """The rated link is the sender's own: a full interface makes it wait."""
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate=tn.units.BitsPerSecond(rate_bps))
    return lab_site("ours, sender held back", net)


def _kernel(name: str, discipline: Callable[[int], Sequence[str]], rate_bps: int) -> AbstractContextManager[Site]:
    return kernel_site(name, discipline(rate_bps))


def _rate_figures(rate_bps: int, runs: dict[str, list[Arrivals]]) -> Iterator[Figure]:
    def each(measured: Callable[[Arrivals], float]) -> tuple[list[float], dict[str, list[float]]]:
        found = {name: [measured(run) for run in of] for name, of in runs.items()}
        return found.pop("ours"), found

    rate = f"{rate_bps / 1e6:g} Mbit/s"
    excess, theirs = each(Arrivals.largest_excess_frames)
    yield Figure(
        f"{rate}: fullest 10 ms beyond rate + 1 frame",
        "frames",
        excess,
        theirs,
        "at most 0",
        max(excess) <= 0,
        summary="worst",
        goal="fullest 10 ms: at most 0 beyond rate + 1 frame",
        # Of the one frame that is allowed.
        strain=1 + max(excess),
    )
    error, theirs = each(Arrivals.rate_error_percent)
    strain = float(np.median(error)) / 0.1
    name, goal = f"{rate}: long-run rate off by", "long-run rate: within 0.1 %"
    yield Figure(name, "%", error, theirs, "within 0.1", strain <= 1, goal=goal, strain=strain)
    even, theirs = each(Arrivals.even_gaps_percent)
    judged = rate_bps == 100_000_000
    yield Figure(
        f"{rate}: gaps within 10 % of ideal",
        "%",
        even,
        theirs,
        "at least 99.9" if judged else "",
        float(np.median(even)) >= 99.9 if judged else None,
        # Of the gaps that may be uneven.
        strain=(100 - float(np.median(even))) / (100 - 99.9) if judged else None,
    )


def _lone_figures(late: dict[str, list[Arrivals]], alone: list[float]) -> Iterator[Figure]:
    def each(percentile: float, size: bool) -> tuple[list[float], dict[str, list[float]]]:
        found = {
            name: [float(np.percentile(np.abs(run.late_us()) if size else run.late_us(), percentile)) for run in runs]
            for name, runs in late.items()
        }
        return found.pop("ours"), found

    frame = f"lone {PAYLOAD + 42}-byte frame over 2 Mbit/s"
    median, theirs = each(50, False)
    strain = abs(float(np.median(median))) / 20
    name = f"{frame}, off the ideal, median"
    yield Figure(name, "us", median, theirs, "within 20", strain <= 1, strain=strain)
    high, theirs = each(99, True)
    strain = float(np.median(high)) / 100
    yield Figure(f"{frame}, off the ideal, 99 %", "us", high, theirs, "within 100", strain <= 1, strain=strain)
    if alone:
        yield Figure(
            "the same frame without any link, median",
            "us",
            [],
            {"veth pair alone": alone},
            note="the way through the sockets and interfaces of two hosts, which is part of the two figures above",
        )
