"""Constrained shortest paths by a linear programme: the ancestor of OpenQoS."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.policies.applications import application_and_rest
from twinnet.policies.forwarding import Routes
from twinnet.policies.line_loads import LineLoads, lines_of_others, rate_of
from twinnet.policies.load import Load
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import TrafficClass
from twinnet.ranges import way_ps

__all__ = ["ConstrainedPaths"]

_LONGEST_SOLVING_S = 30.0
_MOST_VARIABLES = 200_000


class ConstrainedPaths(Policy):
    """Routes one application on cheapest paths whose delay is bounded and whose lines are not promised twice.

    The cost of a line is one hop and the share of it that others use, so that quiet and short ways are cheap. All pairs
    of switches between which the application is asked for are routed at once (HiGHS, through SciPy), each on one path.

    Parameters
    ----------
    application
        The application that is routed.
    longest
        The greatest propagation delay of a path, with unit.
    """

    name = "constrained-paths"
    title = "Video on constrained shortest paths, found by a linear programme"
    promise = "Each video path keeps the delay bound, and no line is promised more than it has."
    origin = (
        "Civanlar, Parlakisik, Tekalp, Gorkemli, Kaytaz and Onem, A QoS-enabled OpenFlow environment for scalable "
        "video streaming, GLOBECOM Workshops 2010"
    )
    fails = (
        "When no such paths exist: that is an error before the lab starts. Queues' delays are not part of the bound."
    )

    def __init__(self, application: str = "video", longest: str = "50 ms") -> None:
        self._application = application
        self._longest_s = way_ps(longest, "longest") / 1e12

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return the application and the rest."""
        del network
        return application_and_rest(load, self._application)

    def routes(self, network: Network, load: Load) -> Mapping[str, Routes]:
        """Return the paths of the application's demands."""
        lines = lines_of_others(network, load.demands, self._application)
        wanted = [one for one in load.demands if one.application == self._application]
        needed_bps: dict[tuple[str, str], int] = {}
        for one in wanted:
            pair = (lines.paths.of_host[one.server].switch, lines.paths.of_host[one.client].switch)
            if pair[0] != pair[1]:
                needed_bps[pair] = needed_bps.get(pair, 0) + rate_of(one)
        chosen = self._solve(lines, needed_bps) if needed_bps else {}
        found: dict[tuple[str, str], list[str]] = {}
        for one in wanted:
            pair = (lines.paths.of_host[one.server].switch, lines.paths.of_host[one.client].switch)
            switches = chosen.get(pair, [pair[0]])
            found[one.server, one.client] = switches
            found[one.client, one.server] = switches[::-1]
        return {self._application: found} if found else {}

    def _solve(self, lines: LineLoads, needed_bps: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], list[str]]:
        """One path for each pair of switches: binary flows of least cost, conserved, within delays and capacities."""
        # scipy takes most of a second to import, and carries no type hints.
        optimize, sparse = (importlib.import_module(f"scipy.{name}") for name in ("optimize", "sparse"))
        pairs, ways, switches = list(needed_bps), list(lines.lines), list(lines.paths.switches)
        count, width = len(pairs) * len(ways), len(ways)
        if count > _MOST_VARIABLES:
            raise BadPolicy(
                f"{len(pairs)} pairs of switches over {len(ways)} lines make {count} variables; at most "
                f"{_MOST_VARIABLES}",
                "use the policy openqos, which routes one demand after the other",
            )
        busy = np.array([min(1.0, lines.used_bps[way] / lines.lines[way].rate_bps) for way in ways])
        delays = np.array([lines.lines[way].delay_s for way in ways])
        row_of = {name: row for row, name in enumerate(switches)}
        height = len(pairs) * (len(switches) + 1) + len(ways)
        matrix = sparse.lil_matrix((height, count))
        low, high = np.zeros(height), np.zeros(height)
        for place, pair in enumerate(pairs):
            base = place * (len(switches) + 1)
            for column, (here, there) in enumerate(ways, start=place * width):
                matrix[base + row_of[here], column] = 1
                matrix[base + row_of[there], column] = -1
                matrix[base + len(switches), column] = delays[column - place * width]
                matrix[height - len(ways) + column - place * width, column] = needed_bps[pair] / 1e6
            low[base + row_of[pair[0]]] = high[base + row_of[pair[0]]] = 1
            low[base + row_of[pair[1]]] = high[base + row_of[pair[1]]] = -1
            low[base + len(switches)], high[base + len(switches)] = 0, self._longest_s
        high[height - len(ways) :] = [max(0, lines.spare_bps(way)) / 1e6 for way in ways]
        solved: Any = optimize.milp(
            np.tile(1 + busy, len(pairs)),
            constraints=optimize.LinearConstraint(matrix.tocsr(), low, high),
            integrality=np.ones(count),
            bounds=optimize.Bounds(0, 1),
            options={"time_limit": _LONGEST_SOLVING_S},
        )
        if solved.x is None:
            asked = ", ".join(f"{a} to {b}" for a, b in pairs[:6])
            raise BadPolicy(
                f"no paths for {self._application} ({asked}) keep within {self._longest_s * 1e3:g} ms and the lines' "
                "capacities",
                "allow a longer delay, lower the demands' rates, or add lines",
            )
        taken = np.asarray(solved.x).reshape(len(pairs), width) > 0.5
        return {
            pair: _path(pair, [way for way, used in zip(ways, row, strict=True) if used])
            for pair, row in zip(pairs, taken, strict=True)
        }


def _path(pair: tuple[str, str], ways: Sequence[tuple[str, str]]) -> list[str]:
    after = dict(ways)
    switches = [pair[0]]
    while switches[-1] != pair[1]:
        switches.append(after[switches[-1]])
    return switches
