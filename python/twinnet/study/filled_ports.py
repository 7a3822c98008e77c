"""The ports that the traffic of a study fills, known before its runs: there queues build up, and nowhere else."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from twinnet.network.network import Network
from twinnet.network.nodes import Port
from twinnet.qos.queue import Queue, optional_spec
from twinnet.study.forecast import flows_of, shares_at
from twinnet.study.network_of import network_of
from twinnet.study.offered_load import busy_moments_s, offers, wire_bytes
from twinnet.study.policy_of import policy_unless_own
from twinnet.study.shared_lines import Line, Ways
from twinnet.study.traffic import Traffic
from twinnet.units import format_rate

if TYPE_CHECKING:
    from twinnet.study.plan import PlannedRun
    from twinnet.study.specification import StudySpecification

__all__ = ["PortLoad", "StudyLoads", "loads_at", "port_loads"]

_LITTLE = 0.5
"""Up to that load of a line its queue is seldom longer than a frame or two, unless what comes is in bursts."""
_MOST_COMBINATIONS = 100
_MOST_PORTS = 12
_ROUNDING = 1e-6


@dataclass(frozen=True)
class PortLoad:
    """What traffic asks of the line of a port.

    Attributes
    ----------
    port, to
        The port, and the node that it sends to.
    rate_bps
        What its line carries in bits per second; ``None`` for all.
    load
        The greatest share of that which comes for it: of datagrams what is sent, as fast as the lines before it
        permit, and of TCP its share of its bottleneck. More than 1 cannot be carried; 0 without a rate.
    filled_by
        The names of the traffic that passes it when more could come than it carries, all of which is then taken.
    has_little_to_do
        True if its queue, or that of each of its classes, hardly has to hold a frame. Bursts are not known.
    """

    port: Port
    to: str
    rate_bps: float | None
    load: float
    filled_by: tuple[str, ...]
    has_little_to_do: bool

    @property
    def words(self) -> str:
        """The port, as in ``s1-eth4 (s1 to h4, port 4, 1 Gbit/s)``."""
        number = f", port {self.port.number}" if self.port.number is not None else ""
        rate = f", {format_rate(round(self.rate_bps))}" if self.rate_bps is not None else ""
        return f"{self.port.name} ({self.port.node} to {self.to}{number}{rate})"

    def record(self) -> dict[str, Any]:
        """Return it for programs."""
        place = {"port": self.port.name, "node": self.port.node, "number": self.port.number, "to": self.to}
        return place | {"rate_bps": self.rate_bps, "load": self.load, "filled_by": list(self.filled_by)}


def port_loads(network: Network, traffic: Iterable[Traffic]) -> list[PortLoad]:
    """Return what `traffic` asks of each port of `network`, there and back of each link: over the ways with the fewest
    links, and without the acknowledgements and echoes that come back."""
    ways = Ways(network)
    traffic = list(traffic)
    of_entries = {entry.name: flows_of([entry], ways) for entry in traffic}
    flows = [flow for ones in of_entries.values() for flow in ones]
    # Two entries may have equal offers.
    names = {id(offer): name for name, ones in of_entries.items() for offer, _ in ones}
    greatest: dict[Line, float] = defaultdict(float)
    filled_by: dict[Line, dict[str, None]] = defaultdict(dict)
    for moment_s in {moment_s for entry in traffic for moment_s in busy_moments_s(entry)}:
        coming: dict[Line, float] = defaultdict(float)
        possible: dict[Line, dict[Line | None, float]] = defaultdict(lambda: defaultdict(float))
        passing: dict[Line, dict[str, None]] = defaultdict(dict)
        for share in shares_at(moment_s, flows, ways):
            offer, pace = share.offer, share.offer.packets_per_second
            most_bps = math.inf if pace is None else pace * wire_bytes(offer, share.way.mtu)[1] * 8
            before: Line | None = None
            for line in share.way.lines:
                coming[line] += share.handed * share.frame_bits if offer.kind == "stream" else most_bps
                possible[line][before] += most_bps
                passing[line][names[id(offer)]] = None
                most_bps, before = min(most_bps, ways.rates_bps.get(line, math.inf)), line
        for line, bps in coming.items():
            greatest[line] = max(greatest[line], bps)
            rate_bps = ways.rates_bps.get(line, math.inf)
            # A line that is as fast as the one before it is full with it, and nothing waits for it.
            most_bps = sum(
                min(sent, ways.rates_bps.get(before, math.inf) if before is not None else math.inf)
                for before, sent in possible[line].items()
            )
            if bps >= rate_bps * (1 - _ROUNDING) and most_bps > rate_bps * (1 + _ROUNDING):
                filled_by[line] |= passing[line]
    # What the schedule of the network makes of its links is not looked at.
    is_steady = not network.to_spec()["schedule"]
    return [
        _load(port, other.node, ways.rates_bps.get(line), greatest[line], tuple(filled_by[line]), is_steady)
        for link in network.links
        for line, port, other in (((link.index, "ab"), link.a, link.b), ((link.index, "ba"), link.b, link.a))
    ]


def _load(
    port: Port, to: str, rate_bps: float | None, bps: float, filled_by: tuple[str, ...], is_steady: bool
) -> PortLoad:
    least_bps = min([rate_bps or math.inf, *_rates_within(port.queue)])
    little = is_steady and rate_bps is not None and bps < _LITTLE * least_bps
    return PortLoad(port, to, rate_bps, bps / rate_bps if rate_bps else 0.0, filled_by, little)


def _is_unknown(entry: Traffic) -> bool:
    # What stays in its host loads no port.
    return entry.to not in entry.sources and not any(offers(entry))


def _rates_within(queue: Queue | None) -> Iterator[float]:
    """All greatest rates within a discipline: a class may be full although the line is not. 0 where each frame may have
    to wait: for a delay, or as code of one's own decides."""

    def rates(spec: Any) -> Iterator[float]:
        if isinstance(spec, Mapping):
            for key, value in cast("Mapping[str, Any]", spec).items():
                if key in ("rate_bps", "max_rate_bps") and value:
                    yield float(value)
                elif key == "kind" and value in ("delay", "own"):
                    yield 0.0
                yield from rates(value)
        elif isinstance(spec, list):
            for one in cast("list[Any]", spec):
                yield from rates(one)

    return rates(optional_spec(queue))


def loads_at(specification: StudySpecification, levels: Mapping[str, str], seed: int) -> list[PortLoad]:
    """Return what the traffic of a run asks of each port of its network, there and back of each link; the traffic of
    `specification` is that of the run."""
    network = network_of(specification, levels, seed)
    policy = policy_unless_own(specification, network)
    if policy is not None:
        policy.deploy(network)
    return port_loads(network, specification.traffic)


@dataclass(frozen=True)
class StudyLoads:
    """The loads of a study's ports under its levels.

    Attributes
    ----------
    cases
        Of each combination of levels that was looked at: the levels, and the loads by the names of ports.
    combinations
        How many combinations there are.
    unknown
        The names of traffic of which it is not known what it sends: estimators and applications of one's own.
    has_policy
        True if a policy may choose other ways and sets queues when a run begins.
    """

    cases: Sequence[tuple[Mapping[str, str], Mapping[str, PortLoad]]]
    combinations: int
    unknown: tuple[str, ...]
    has_policy: bool

    @classmethod
    def of(cls, plan: Sequence[PlannedRun]) -> StudyLoads:
        """Return those of the runs in `plan`, of which one of each combination of levels counts."""
        by_levels = {tuple(run.levels.items()): run for run in reversed(plan)}
        chosen = list(reversed(by_levels.values()))[:_MOST_COMBINATIONS]
        cases = [
            (run.levels, {one.port.name: one for one in loads_at(run.specification, run.levels, run.seed)})
            for run in chosen
        ]
        entries = [entry for run in chosen for entry in run.specification.traffic]
        unknown = dict.fromkeys(entry.name for entry in entries if _is_unknown(entry))
        has_policy = any(run.specification.policy is not None for run in chosen)
        return cls(cases, len(by_levels), tuple(unknown), has_policy)

    @property
    def filled(self) -> list[tuple[PortLoad, list[Mapping[str, str]]]]:
        """The ports that traffic fills, each at its greatest load, with the levels under which it does; those of most
        levels first. A port whose rate the levels change is there with each of its rates."""
        found: dict[tuple[str, float | None], list[tuple[PortLoad, Mapping[str, str]]]] = {}
        for levels, loads in self.cases:
            for name, load in loads.items():
                if load.filled_by:
                    found.setdefault((name, load.rate_bps), []).append((load, levels))
        ports = [
            (max((load for load, _ in one), key=lambda load: load.load), [levels for _, levels in one])
            for one in found.values()
        ]
        return sorted(ports, key=lambda one: (-len(one[1]), -one[0].load))

    @property
    def little(self) -> dict[str, float]:
        """The ports whose queues have little to do under all levels, with their greatest load; none where that is not
        known: with a policy, traffic of one's own, or more combinations than are looked at."""
        if self.unknown or self.has_policy or len(self.cases) < self.combinations:
            return {}
        by_port: dict[str, list[PortLoad]] = {}
        for _, loads in self.cases:
            for name, load in loads.items():
                by_port.setdefault(name, []).append(load)
        return {
            name: max(load.load for load in loads)
            for name, loads in by_port.items()
            if all(load.has_little_to_do for load in loads)
        }

    def words(self) -> list[str]:
        """Return a line for each port that traffic fills: the port, that traffic, and under which levels."""
        filled = self.filled
        lines = [
            f"Traffic fills {load.words}: {', '.join(load.filled_by)}{self._under(levels)}"
            for load, levels in filled[:_MOST_PORTS]
        ]
        left = len(filled) - _MOST_PORTS
        lines += [f"Traffic fills {left} more ports."] if left > 0 else []
        loads = [load for _, by_port in self.cases for load in by_port.values()]
        fullest = max(loads, key=lambda load: load.load, default=None)
        if not filled and fullest is not None and fullest.load > 0:
            lines = [f"Traffic fills no port. The fullest is {fullest.words}: {100 * fullest.load:.0f} % of its line."]
        if self.unknown:
            lines.append(f"Not known beforehand is what is sent by {', '.join(self.unknown)}.")
        if lines and self.has_policy:
            lines.append("This holds for the shortest ways; a policy may choose others.")
        if lines and len(self.cases) < self.combinations:
            lines.append(f"Looked at are the first {len(self.cases)} of {self.combinations} combinations of levels.")
        return lines

    def record(self) -> list[dict[str, Any]]:
        """Return the filled ports of each combination of levels for programs."""
        return [
            {"levels": dict(levels), "ports": [load.record() for load in loads.values() if load.filled_by]}
            for levels, loads in self.cases
        ]

    def _under(self, levels: Sequence[Mapping[str, str]]) -> str:
        """The levels under which something holds, in parentheses; empty for all."""
        if len(levels) == len(self.cases):
            return ""
        own = {name: list(dict.fromkeys(one[name] for one in levels)) for name in levels[0]}
        if math.prod(map(len, own.values())) > len(levels):
            return f" (under {len(levels)} of {len(self.cases)} combinations of levels)"
        every = {name: {one[name] for one, _ in self.cases} for name in own}
        said = [f"{name}: {', '.join(ones)}" for name, ones in own.items() if len(ones) < len(every[name])]
        return f" ({'; '.join(said)})"
