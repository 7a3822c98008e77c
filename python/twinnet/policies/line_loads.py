"""Capacities of the lines between switches and the load on them, for policies that choose routes."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.policies.load import Demand
from twinnet.policies.paths import Paths
from twinnet.ranges import line_rate_bps

__all__ = ["Line", "LineLoads", "lines_of_others", "rate_of"]

_UNSAID_BPS = 1_000_000


@dataclass(frozen=True)
class Line:
    """One direction of a link between two switches.

    Parameters
    ----------
    here, there
        The switches.
    rate_bps
        Its line rate.
    delay_s
        Its propagation delay.
    """

    here: str
    there: str
    rate_bps: int
    delay_s: float


def rate_of(demand: Demand) -> int:
    """Return the rate that a demand needs, in bit/s; default: 1 Mbit/s."""
    return _UNSAID_BPS if demand.rate is None else line_rate_bps(demand.rate)


class LineLoads:
    """The lines of `network`, and how much of each is spoken for.

    Raises
    ------
    BadPolicy
        When a line between switches has no rate.
    """

    def __init__(self, network: Network) -> None:
        self.paths: Paths = Paths(network)
        self.lines: dict[tuple[str, str], Line] = {}
        for here, lines in self.paths.lines.items():
            for _, there, link in lines:
                way = link.ab if link.a.node == here else link.ba
                if way.get("rate_bps") is None:
                    raise BadPolicy(
                        f"the line from {here} to {there} has no rate, and the policy routes by capacities",
                        "give the link a rate",
                    )
                line = Line(here, there, int(way["rate_bps"]), way.get("delay_ps", 0) / 1e12)
                self.lines.setdefault((here, there), line)
        self.used_bps: dict[tuple[str, str], int] = dict.fromkeys(self.lines, 0)

    def shortest(self, source: str, target: str) -> list[str]:
        """Return the switches of the shortest path between two hosts."""
        return [switch for switch, _ in self.paths.hops(source, target)]

    def put(self, switches: Sequence[str], rate_bps: int) -> None:
        """Count `rate_bps` on every line of a path."""
        for pair in itertools.pairwise(switches):
            self.used_bps[pair] += rate_bps

    def spare_bps(self, pair: tuple[str, str]) -> int:
        """Return what is left of a line; below zero where it is promised twice."""
        return self.lines[pair].rate_bps - self.used_bps[pair]

    def widest(self, source: str, target: str) -> list[str]:
        """Return the switches of the path whose narrowest line has most to spare; of equally wide ones the shortest.

        Dijkstra's algorithm with the width in the place of the length (Pollack 1960).
        """
        start, end = self.paths.of_host[source].switch, self.paths.of_host[target].switch
        best: dict[str, tuple[float, int]] = {start: (float("inf"), 0)}
        before: dict[str, str] = {}
        waiting: list[tuple[float, int, str]] = [(-float("inf"), 0, start)]
        while waiting:
            negative, hops, here = heapq.heappop(waiting)
            if here == end:
                break
            if (-negative, hops) != best[here]:
                continue
            for _, there, _ in self.paths.lines[here]:
                width = min(-negative, float(self.spare_bps((here, there))))
                known = best.get(there)
                if known is None or (width, -hops - 1) > (known[0], -known[1]):
                    best[there], before[there] = (width, hops + 1), here
                    heapq.heappush(waiting, (-width, hops + 1, there))
        return _walked(before, start, end)


def _walked(before: dict[str, str], start: str, end: str) -> list[str]:
    switches = [end]
    while switches[-1] != start:
        switches.append(before[switches[-1]])
    return switches[::-1]


def lines_of_others(network: Network, demands: Iterable[Demand], application: str) -> LineLoads:
    """Return the lines of `network` with each demand on its shortest path that is not for `application`."""
    lines = LineLoads(network)
    for one in demands:
        if one.application != application:
            lines.put(lines.shortest(one.server, one.client), rate_of(one))
    return lines
