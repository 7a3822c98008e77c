"""Available bandwidth by port counters: a controller that probes nothing.

Megyesi, Botta, Aceto, Pescape, Molnar, *Available bandwidth measurement in software defined networks*, SAC 2016, and
its extension in Computer Communications 2016: capacity less what counters say, least over the links of a path.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Literal, NotRequired, TypedDict

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import Statistics
from twinnet.control.topology import Topology
from twinnet.deliveries import TracedCapacity, capacity_of
from twinnet.errors import BadValue, NotAvailable
from twinnet.ranges import run_time_ps
from twinnet.stats import t_quantile

__all__ = ["AvailableBandwidth", "BandwidthPrior", "CountedLink", "PassiveBandwidth", "PriorSettings"]

_AROUND_FRAME_BYTES = 24
"""Frame check sequence, preamble and gap of an Ethernet frame, which no counter has (IEEE 802.3)."""
_ETHERNET_HEADER_BYTES = 14
_QUANTILE = 1.96
_CLOCK_STEP_S = 1e-9
"""OpenFlow 1.3 gives durations in nanoseconds."""
Direction = Literal["sent", "received"]


@dataclass(frozen=True)
class CountedLink:
    """A link of a path as one port counts it.

    Parameters
    ----------
    switch, port
        The port that counts.
    direction
        Whether the path's traffic is what it sends or what it receives (of the first link, whose sender is a host).
    capacity_bps
        The link's rate; of a link that follows a trace, the mean over the trace.
    traced
        The trace that the link follows, if it does: its capacity is then the one over the time of an estimate.
    """

    switch: str
    port: int
    direction: Direction
    capacity_bps: float
    traced: TracedCapacity | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class PassiveBandwidth:
    """Available bandwidth of a path by counters.

    Parameters
    ----------
    available_bps
        The least over the links of capacity less traffic.
    error_bps
        Half of the interval: what the timing of the counters leaves, by the error model.
    error_model
        The model in words.
    start_s, end_s
        The averaging window on the lab's clock, as far as control delays let it be known.
    layer
        ``wire`` or ``network``.
    tight
        The link with the least.
    links
        Available bandwidth of each.
    """

    available_bps: float
    error_bps: float
    error_model: str
    start_s: float
    end_s: float
    layer: str
    tight: CountedLink
    links: Mapping[CountedLink, float]


class PriorSettings(TypedDict):
    """Keyword arguments of an estimate by `hybrid`."""

    prior: str
    prior_std: str
    prior_window: str
    capacity: NotRequired[str]


@dataclass(frozen=True)
class BandwidthPrior:
    """What counters say beforehand of a path that is to be probed.

    Parameters
    ----------
    mean_bps, std_bps
        Mean and standard deviation of the available bandwidth over single polling periods.
    tight
        The link that had the least most often.
    period_s
        The length of a polling period: over less time, available bandwidth varies by more.
    """

    mean_bps: float
    std_bps: float
    tight: CountedLink
    period_s: float

    def settings(self) -> PriorSettings:
        """Return keyword arguments of ``tn.apps.bandwidth`` with the method ``hybrid``: ``prior``, ``prior_std``,
        ``prior_window`` and (unless the tight link follows a trace) ``capacity``."""
        found: PriorSettings = {
            "prior": f"{max(self.mean_bps, 1.0):.0f} bit",
            "prior_std": f"{max(self.std_bps, 1.0):.0f} bit",
            "prior_window": f"{self.period_s * 1e9:.0f} ns",
        }
        if self.tight.traced is None:
            found["capacity"] = f"{self.tight.capacity_bps:.0f} bit"
        return found


@dataclass(frozen=True)
class _Reading:
    time_s: float
    lived_s: float
    counts: Mapping[str, int]


class AvailableBandwidth(Controller):
    """Asks all switches for their port counters every `interval` of the lab's time.

    Parameters
    ----------
    interval
        The polling period.
    clock
        Which clock divides the counters' difference: the ``switch``'s own durations, which OpenFlow 1.3 sends beside
        the counters, or the arrival of its answers at the ``controller``, as with OpenFlow 1.0, which sends none.
    keep
        How many answers of each port are kept.

    Examples
    --------
    >>> counters = AvailableBandwidth("1 s")
    """

    def __init__(
        self, interval: str = "1 s", *, clock: Literal["switch", "controller"] = "switch", keep: int = 3600
    ) -> None:
        run_time_ps(interval, "interval")
        if clock not in ("switch", "controller"):
            raise BadValue(f"the clock is {clock!r}; allowed are 'switch' and 'controller'")
        if not 2 <= keep <= 1_000_000:
            raise BadValue(f"keep is {keep}; allowed are 2 to 1000000 answers")
        self._interval, self._clock, self._keep = interval, clock, keep
        self._readings: dict[tuple[str, int], deque[_Reading]] = {}
        self._links: dict[tuple[str, str], CountedLink] = {}
        # Others may ask from threads of their own while answers come in.
        self._lock = threading.Lock()

    def on_start(self) -> None:
        """Begin anew."""
        self._readings, self._links = {}, {}
        self.every(self._interval, self._ask)

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Refuse a switch that has no clock to divide by; raises `NotAvailable`."""
        if self._clock == "switch" and switch.version == "1.0":
            raise NotAvailable(
                f"{switch.name} speaks OpenFlow 1.0 alone, which does not tell for how long it has counted",
                f'give clock="controller", or add OpenFlow13 to the protocols of {switch.name}',
            )

    def _ask(self) -> None:
        for switch in self.switches.values():
            switch.statistics("ports")

    def on_statistics(self, event: Statistics) -> None:
        """Keep the counters."""
        if event.kind != "ports":
            return
        for row in event.rows:
            key = (event.switch.name, int(row["port"]))
            readings = self._readings.setdefault(key, deque(maxlen=self._keep))
            counts = {
                name: int(row[name]) for name in ("sent_frames", "sent_bytes", "received_frames", "received_bytes")
            }
            with self._lock:
                readings.append(_Reading(self.now, float(row["lived_s"] or 0.0), counts))

    def path(self, nodes: Sequence[str]) -> list[CountedLink]:
        """Return the links along `nodes` (host, switches, host) and the ports that count them.

        Raises
        ------
        BadValue
            Neighbours have no link, no switch counts it, or it has neither a rate nor a trace.
        """
        found: list[CountedLink] = []
        for here, there in itertools.pairwise(nodes):
            if (here, there) not in self._links:
                self._links[here, there] = _counted(self.stage.spec, here, there)
            found.append(self._links[here, there])
        return found

    def shortest_path(self, source: str, target: str) -> list[str]:
        """Return the nodes from host `source` to host `target` over the fewest switches.

        Raises
        ------
        BadValue
            One of them is no host at a switch, or there is no way.
        """
        spec = self.stage.spec
        topology = Topology(spec)
        here, there = (_switch_of(spec, topology, host) for host in (source, target))
        distances = topology.distances(there)
        if here not in distances:
            raise BadValue(f"there is no way from {source} to {target} over switches")
        nodes = [source, here]
        while nodes[-1] != there:
            near = nodes[-1]
            ways = [place.switch for _, place in topology.lines(near)]
            nodes.append(min(way for way in ways if distances.get(way, 1 << 30) < distances[near]))
        return [*nodes, target]

    def estimate(
        self,
        nodes: Sequence[str] | Sequence[CountedLink],
        *,
        since_s: float | None = None,
        until_s: float | None = None,
        probe_bytes: int = 0,
        jitter_s: float = 0.0,
        delay_s: float = 0.0,
        layer: Literal["wire", "network"] = "wire",
    ) -> PassiveBandwidth:
        """Return what counters say of the path along `nodes`.

        Parameters
        ----------
        nodes
            Host, switches, host, as :meth:`shortest_path` gives them; or the links, as
            :meth:`LinkDiscovery.path` has found them.
        since_s, until_s
            The time over which is averaged, on the lab's clock; answers nearest to its ends count. The last two answers
            by default.
        probe_bytes
            Bytes of probes in that time (at `layer`) that are not to count as traffic.
        jitter_s
            By how much the delay of answers varies: with the controller's clock it is the error of the window's length.
        delay_s
            How old the counters are when they arrive. It matters for links that follow a trace: theirs is the capacity
            of the time at which they were counted.
        layer
            ``wire`` or ``network``.

        Raises
        ------
        BadValue
            Fewer than two answers of a port are there.
        """
        links: dict[CountedLink, float] = {}
        spans: list[tuple[float, float, float]] = []
        traced = False
        counted = [one for one in nodes if isinstance(one, CountedLink)]
        for link in counted or self.path([one for one in nodes if isinstance(one, str)]):
            first, last = self._ends((link.switch, link.port), since_s, until_s)
            seconds = self._between(link, first, last)
            carried = _carried_bytes(first, last, link.direction, layer)
            used_bps = max(0.0, (carried - probe_bytes) * 8 / seconds)
            step_s = 2 * _CLOCK_STEP_S if self._clock == "switch" else jitter_s
            capacity_bps, doubt_bps = link.capacity_bps, 0.0
            if link.traced is not None:
                traced = True
                start_s = max(first.time_s - delay_s, 0.0)
                capacity_bps, doubt_bps = _capacity_over(link.traced, start_s, seconds, jitter_s)
            spans.append((first.time_s, last.time_s, used_bps * step_s / seconds + doubt_bps))
            links[link] = capacity_bps - used_bps
        tight = min(links, key=links.__getitem__)
        error = max(error for _, _, error in spans)
        words = self._error_model(jitter_s, traced)
        start, end = min(start for start, _, _ in spans), max(end for _, end, _ in spans)
        return PassiveBandwidth(links[tight], error, words, start, end, layer, tight, links)

    def _between(self, link: CountedLink, first: _Reading, last: _Reading) -> float:
        """The seconds from one answer to another, by the clock that divides."""
        seconds = last.lived_s - first.lived_s if self._clock == "switch" else last.time_s - first.time_s
        if seconds <= 0 or any(last.counts[name] < first.counts[name] for name in last.counts):
            raise BadValue(
                f"the counters of port {link.port} of {link.switch} went back: the port was made anew",
                "ask again after two more answers",
            )
        return seconds

    def _error_model(self, jitter_s: float, traced: bool) -> str:
        if self._clock == "switch":
            words = "traffic x 2 ns / period: the switch's clock divides, so control delays do not matter"
        else:
            words = f"traffic x {jitter_s * 1e3:g} ms / period: the arrival of answers divides"
        if traced:
            words += f"; of traces: two packets, and what {jitter_s * 1e3:g} ms earlier or later change"
        return words

    def prior(
        self,
        nodes: Sequence[str] | Sequence[CountedLink],
        *,
        periods: int = 10,
        jitter_s: float = 0.0,
        delay_s: float = 0.0,
        layer: Literal["wire", "network"] = "wire",
    ) -> BandwidthPrior:
        """Return what the last polling periods say of the path along `nodes` before it is probed.

        The standard deviation is that between periods, larger by as much as so few periods leave unknown (Student's t),
        with what the timing of the counters leaves. An estimate by probes that takes about as long as a period varies
        as much, and a shorter one by more: `hybrid` allows for that.

        Parameters
        ----------
        nodes, jitter_s, delay_s, layer
            As for :meth:`estimate`.
        periods
            How many periods count at most, 3 or more.

        Raises
        ------
        BadValue
            Fewer than four answers of a port are there.
        """
        if periods < 3:
            raise BadValue(f"periods is {periods}; allowed are 3 and more")
        counted = [one for one in nodes if isinstance(one, CountedLink)]
        links = counted or self.path([one for one in nodes if isinstance(one, str)])
        with self._lock:
            ports = [list(self._readings.get((link.switch, link.port), ())) for link in links]
        if min(len(readings) for readings in ports) < 4:
            raise BadValue(
                "three polling periods of each port are needed to know how available bandwidth varies",
                "let four polling periods pass",
            )
        times = [one.time_s for one in ports[0][-periods - 1 :]]
        estimates = [
            self.estimate(links, since_s=since_s, until_s=until_s, jitter_s=jitter_s, delay_s=delay_s, layer=layer)
            for since_s, until_s in itertools.pairwise(times)
        ]
        available = [one.available_bps for one in estimates]
        tight = [one.tight for one in estimates]
        # The next period differs from the mean of these by more than they do: their mean and their spread are those of
        # a few. Student's t for a prediction, as a normal deviation with the same 95 % interval.
        few = math.sqrt(1 + 1 / len(estimates)) * t_quantile(0.95, len(estimates) - 1) / _QUANTILE
        std_bps = math.hypot(stdev(available) * few, estimates[-1].error_bps / _QUANTILE)
        period_s = fmean(one.end_s - one.start_s for one in estimates)
        return BandwidthPrior(fmean(available), std_bps, max(tight, key=tight.count), period_s)

    def between_all(
        self, hosts: Sequence[str], *, layer: Literal["wire", "network"] = "wire"
    ) -> dict[tuple[str, str], float]:
        """Return the available bandwidth in bit/s between all pairs of `hosts`, by the last two answers.

        Paths are those over the fewest switches, as of :meth:`shortest_path`. Each link is counted once, however many
        paths it is in, so that a fleet of estimates costs little.

        Raises
        ------
        BadValue
            A host is at no switch, or a port has not answered twice.
        """
        spec = self.stage.spec
        topology = Topology(spec)
        places = {host: _switch_of(spec, topology, host) for host in hosts}
        available: dict[tuple[str, str], float] = {}

        def left(here: str, there: str) -> float:
            if (here, there) not in available:
                found = self.estimate([here, there], layer=layer)
                available[here, there] = found.available_bps
            return available[here, there]

        into = {switch: _ways_to(topology, switch) for switch in set(places.values())}
        between: dict[tuple[str, str], float] = {}
        for near in set(places.values()):
            for far, ways in into.items():
                least, here = float("inf"), near
                while here != far and here in ways:
                    least = min(least, left(here, ways[here]))
                    here = ways[here]
                if here == far:
                    between[near, far] = least
        found: dict[tuple[str, str], float] = {}
        for source, near in places.items():
            for target, far in places.items():
                if source != target and (near, far) in between:
                    ends = min(left(source, near), left(far, target))
                    found[source, target] = min(between[near, far], ends)
        return found

    def _ends(self, key: tuple[str, int], since_s: float | None, until_s: float | None) -> tuple[_Reading, _Reading]:
        with self._lock:
            readings = list(self._readings.get(key, ()))
        if len(readings) < 2:
            raise BadValue(
                f"port {key[1]} of {key[0]} has answered {len(readings)} times; two answers are needed",
                "let two polling periods pass",
            )
        if since_s is None or until_s is None:
            return readings[-2], readings[-1]
        first = min(readings[:-1], key=lambda one: abs(one.time_s - since_s))
        later = [one for one in readings if one.time_s > first.time_s]
        return first, min(later, key=lambda one: abs(one.time_s - until_s))


def _carried_bytes(first: _Reading, last: _Reading, direction: Direction, layer: str) -> int:
    frames = last.counts[f"{direction}_frames"] - first.counts[f"{direction}_frames"]
    octets = last.counts[f"{direction}_bytes"] - first.counts[f"{direction}_bytes"]
    return octets + frames * (_AROUND_FRAME_BYTES if layer == "wire" else -_ETHERNET_HEADER_BYTES)


def _counted(spec: Mapping[str, Any], here: str, there: str) -> CountedLink:
    """Return the link from `here` to `there` with the port that counts it."""
    known = {node["name"]: node for node in spec["nodes"]}
    link, forward = _link(spec, here, there)
    ends = [link["a"], link["b"]] if forward else [link["b"], link["a"]]
    sender = known[ends[0]["node"]]["ports"][ends[0]["port"]]
    capacity = capacity_of(link["ab" if forward else "ba"], sender.get("queue"))
    if capacity is None:
        raise BadValue(f"the link from {here} to {there} has no rate", "give it one: it has no capacity else")
    rate_bps, traced = (capacity.mean_bps(), capacity) if isinstance(capacity, TracedCapacity) else (capacity, None)
    ways: tuple[Direction, Direction] = ("sent", "received")
    for end, direction in zip(ends, ways, strict=True):
        node = known[end["node"]]
        if node["kind"] == "switch":
            number = int(node["ports"][end["port"]]["number"])
            return CountedLink(node["name"], number, direction, rate_bps, traced)
    raise BadValue(f"no switch counts the link from {here} to {there}", "name a path through switches")


def _capacity_over(traced: TracedCapacity, start_s: float, seconds: float, jitter_s: float) -> tuple[float, float]:
    """Return the capacity over that time in bit/s, and how far it may be off: two packets stand at the ends, and the
    window may be `jitter_s` away."""

    def over(moved_s: float) -> float:
        begin_s = max(start_s + moved_s, 0.0)
        return traced.over_bps(begin_s * 1e12, (begin_s + seconds) * 1e12)

    middle = over(0.0)
    moved = max(abs(over(-jitter_s) - middle), abs(over(jitter_s) - middle))
    return middle, moved + traced.packets_bps(2, seconds)


def _link(spec: Mapping[str, Any], here: str, there: str) -> tuple[Mapping[str, Any], bool]:
    for link in spec["links"]:
        ends = link["a"]["node"], link["b"]["node"]
        if ends == (here, there):
            return link, True
        if ends == (there, here):
            return link, False
    raise BadValue(f"there is no link between {here} and {there}", "name neighbours")


def _ways_to(topology: Topology, target: str) -> dict[str, str]:
    """The next switch on the way to `target`, of every switch from which it can be reached."""
    distances = topology.distances(target)
    return {
        here: min(place.switch for _, place in topology.lines(here) if distances.get(place.switch, 1 << 30) < far)
        for here, far in distances.items()
        if here != target
    }


def _switch_of(spec: Mapping[str, Any], topology: Topology, host: str) -> str:
    for node in spec["nodes"]:
        if node["name"] == host and node["kind"] == "host":
            for port in node["ports"]:
                place = topology.hosts.get(port["mac"])
                if place is not None:
                    return place.switch
    raise BadValue(f"{host!r} is no host at a switch")
