"""Forecast of the runs of a study that will exceed what this machine carries on the wall clock, and its outcome.

What a run needs follows from its network and its traffic: the busiest moment's frames, each counted once where the
fabric takes it from its sender and once where it hands it to its receiver, and weighed by what such a frame costs
beside one of :mod:`twinnet.study.capacity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinnet.errors import UsageError
from twinnet.network.network import Network
from twinnet.network.nodes import Host, Switch
from twinnet.study.capacity import capacity_here
from twinnet.study.network_of import network_of
from twinnet.study.offered_load import Offer, busy_moments_s, offers, wire_bytes
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.policy_of import policy_unless_own
from twinnet.study.resolution import Study, with_changes
from twinnet.study.shared_lines import Way, Ways, fair_shares
from twinnet.study.store import ResultStore, StoredRun
from twinnet.study.traffic import Traffic

__all__ = [
    "CameTrue",
    "Forecast",
    "Share",
    "came_true",
    "flows_of",
    "forecast_here",
    "forecast_runs",
    "needed_frames",
    "shares_at",
]

TCP_WEIGHT = 1.5
"""A frame of TCP costs more than one of UDP: the receiving host's TCP works within the hand-over. A full segment at 100
Mbit/s with its acknowledgement takes the fabric's thread about 18 us where each is handed over alone
(docs/explanation/performance.md), 6 us for each frame in or out; of datagrams each takes 3 to 6 us."""
SUPER_SEGMENT_S = 1e-3
"""The time on the sender's line of the super-segments in which the fabric takes TCP's frames (TSO)."""
PART_S = 100e-6
"""That of the parts in which it hands them over (docs/explanation/time-and-trains.md)."""
TOGETHER_S = 40e-6
"""Frames of one line that are due within this time are handled at once: it is the least that a line catches up with."""
NEXT_WEIGHT = 0.2
"""The cost of each further such frame, relative to the first. Datagrams that leave eight at once took the fabric's
thread 2.4 to 3.3 us each (160,000 a second in 4 flows), those that leave alone 7 to 13 us (60,000 to 100,000 in 10
flows)."""
MOST_TOGETHER = 32
SWITCH_WEIGHT = 0.2
"""The cost that each switch after the first adds to a frame: the events of one more line. With three switches a
datagram took the fabric's thread 15.2 us where it took 12.1 us with one."""
_IN_AND_OUT = 2.0
"""Added by a router or an Open vSwitch on the way: the frame leaves the fabric and comes back."""
_MODEL_END = 0.2
"""In the place of 1 where the host is a model inside the fabric."""


@dataclass(frozen=True)
class Forecast:
    """The needs of runs, compared with what the machine carries.

    Parameters
    ----------
    needed
        Frames in and out a second, by the run's id.
    carried
        What the machine carries; ``None`` where it was not measured.
    side_by_side
        How many runs are made at once.
    """

    needed: Mapping[str, float]
    carried: int | None
    side_by_side: int = 1

    @property
    def exceeding(self) -> list[str]:
        """The ids of the runs that will exceed the machine."""
        return [run for run in self.needed if self.exceeds(run)]

    def exceeds(self, run: str) -> bool:
        """Return True if the forecast says that the run of this id will exceed the machine."""
        return self.carried is not None and self.needed[run] * self.side_by_side > self.carried

    def record_of(self, run: str) -> dict[str, Any]:
        """Return what is stored with the run of this id."""
        return {
            "needed_frames_per_second": round(self.needed[run]),
            "carried_frames_per_second": self.carried,
            "runs_side_by_side": self.side_by_side,
            "exceeds": self.exceeds(run) if self.carried is not None else None,
        }

    def sentence(self, study: Study) -> str:
        """Tell in one sentence which runs will exceed the machine and what helps, or that none will."""
        total, exceeding = len(self.needed), self.exceeding
        if not total:
            return ""
        chosen = [self.needed[run] for run in exceeding or self.needed]
        each = f" each, {self.side_by_side} side by side" if self.side_by_side > 1 else ""
        need = f"{_span(chosen)} frames/s{each}"
        if self.carried is None:
            return f"The runs need about {need}; `twinnet doctor` measures what this machine carries."
        carries = f"this machine carries {_rounded(self.carried)}"
        if not exceeding:
            return f"No run needs more than the machine has: about {need}; {carries}."
        share = self.carried / (max(chosen) * self.side_by_side)
        verb = "needs" if total == 1 else "need"
        runs = f"{len(exceeding)} of {total} {'run' if total == 1 else 'runs'}"
        remedy = _remedy(study, share, self.carried / self.side_by_side)
        return f"{runs} {verb} about {need}; {carries}: use --clock virtual, or {remedy}."


def forecast_here(
    study: Study, plan: Sequence[PlannedRun], store: ResultStore, side_by_side: int, tell: Callable[[str], None]
) -> Forecast | None:
    """Return the forecast for those runs of `plan` that `store` lacks and that are about to be made on the wall clock,
    ``None`` when there are none. `tell` gets which will exceed this machine, if any."""
    todo = [run for run in plan if store.find(run) is None]
    if not todo:
        return None
    capacity = capacity_here(tell)
    forecast = forecast_runs(todo, capacity.frames_per_second if capacity is not None else None, side_by_side)
    if forecast.exceeding:
        tell(forecast.sentence(study))
    return forecast


def forecast_runs(plan: Sequence[PlannedRun], carried: int | None, side_by_side: int = 1) -> Forecast:
    """Return what the runs of `plan` need beside what the machine carries; repetitions need the same."""
    by_levels: dict[tuple[tuple[str, str], ...], float] = {}
    needed: dict[str, float] = {}
    for run in plan:
        key = tuple(run.levels.items())
        if key not in by_levels:
            network = network_of(run.specification, run.levels, run.seed)
            policy = policy_unless_own(run.specification, network)
            if policy is not None:
                policy.deploy(network)
            by_levels[key] = needed_frames(network, run.specification.traffic)
        needed[run.id] = by_levels[key]
    return Forecast(needed, carried, max(1, min(side_by_side, len(plan))))


def needed_frames(network: Network, traffic: Iterable[Traffic]) -> float:
    """Return the frames in and out a second that `traffic` needs in `network` at its busiest moment, weighed.

    Flows that share a line share its rate. What has neither a rate of its own nor a line with one on its way counts
    nothing: it takes what the machine has left.
    """
    ways = Ways(network)
    traffic = list(traffic)
    flows = flows_of(traffic, ways)
    moments = sorted({moment_s for entry in traffic for moment_s in busy_moments_s(entry)})
    return max(
        (sum(_cost(ways, share) for share in shares_at(moment_s, flows, ways)) for moment_s in moments), default=0.0
    )


def flows_of(traffic: Iterable[Traffic], ways: Ways) -> list[tuple[Offer, Way]]:
    """Return the flows of `traffic` with their ways; those without a way are left out."""
    return [
        (offer, way)
        for entry in traffic
        for offer in offers(entry)
        if (way := ways.between(offer.sender, offer.receiver)) is not None
    ]


@dataclass(frozen=True)
class Share:
    """What one flow gets of its lines at one moment.

    Parameters
    ----------
    offer, way
        The flow.
    taken, handed
        Frames a second that its first line takes, and that arrive.
    frame_bits
        The size of each on the wire.
    """

    offer: Offer
    way: Way
    taken: float
    handed: float
    frame_bits: float


def shares_at(moment_s: float, flows: Sequence[tuple[Offer, Way]], ways: Ways) -> Iterator[Share]:
    """Yield what each flow gets that is active at `moment_s`, unless nothing limits it."""
    active = [(offer, way) for offer, way in flows if offer.start_s <= moment_s < offer.end_s]
    sizes = [wire_bytes(offer, way.mtu) for offer, way in active]
    asked = [
        math.inf if offer.packets_per_second is None else offer.packets_per_second * size * 8
        for (offer, _), (_, size) in zip(active, sizes, strict=True)
    ]
    routes = [way.lines for _, way in active]
    out_bps = fair_shares(asked, routes, ways.rates_bps)
    # A sender of datagrams sends what its own line takes, whatever is lost further on.
    in_bps = fair_shares(asked, [route[:1] for route in routes], ways.rates_bps)
    for (offer, way), (frames, size), entered, left in zip(active, sizes, in_bps, out_bps, strict=True):
        if math.isfinite(left):
            taken_bps = entered if offer.kind == "datagrams" and math.isfinite(entered) else left
            frame_bits = size * 8 / frames
            yield Share(offer, way, taken_bps / frame_bits, left / frame_bits, frame_bits)


def _cost(ways: Ways, share: Share) -> float:
    """The weighed frames a second of one flow, in and out."""
    offer, way, taken, handed = share.offer, share.way, share.taken, share.handed
    slowest_bps = min((ways.rates_bps[line] for line in way.lines if line in ways.rates_bps), default=math.inf)
    together = min(offer.train, MOST_TOGETHER, TOGETHER_S * slowest_bps / share.frame_bits)
    sender, receiver = (_end(ways.network, name) for name in (offer.sender, offer.receiver))
    between = _between(ways.network, way)
    there = weight(together) * (sender * taken + (receiver + between) * handed)
    if offer.kind == "echo":
        return 2 * there
    if offer.kind == "stream":
        first_bps = ways.rates_bps.get(way.lines[0], slowest_bps)
        segment = _at_once(SUPER_SEGMENT_S * first_bps / share.frame_bits)
        part = _at_once(PART_S * slowest_bps / share.frame_bits)
        out = weight(segment) * sender * taken + weight(part) * (receiver + between) * handed
        # RFC 9293, 3.8.6.3: an acknowledgement for at least every second full segment; Linux sends one for all that
        # it has joined.
        back = (sender + receiver + between) * handed / max(2.0, part)
        return TCP_WEIGHT * (out + back)
    return there


def _at_once(frames: float) -> float:
    """Return how many of `frames` that come together are handled at once."""
    return min(MOST_TOGETHER, max(1.0, frames))


def weight(together: float) -> float:
    """Return what a frame costs of which so many are handled at once, beside one that comes alone."""
    return (1 + (together - 1) * NEXT_WEIGHT) / together if together > 1 else 1.0


def _end(network: Network, name: str) -> float:
    node = network.nodes[name]
    return _MODEL_END if isinstance(node, Host) and node.model else 1.0


def _between(network: Network, way: Way) -> float:
    """Return the cost that the nodes on the way add to a frame."""
    nodes = [network.nodes[name] for name in way.nodes]
    switches = sum(isinstance(node, Switch) for node in nodes)
    outside = sum(
        (isinstance(node, Host) and not node.model) or (isinstance(node, Switch) and node.datapath != "own")
        for node in nodes
    )
    return SWITCH_WEIGHT * max(0, switches - 1) + _IN_AND_OUT * outside


def _remedy(study: Study, share: float, most: float) -> str:
    """Return the change that makes the runs fit: the study's own scale, or its rates; with the factor if that alone
    brings each run down to `most` frames a second."""
    set_by_levels = {
        name
        for factor in study.specification.factors.values()
        for level in factor.levels.values()
        for name in level.set
    }
    free = {name: one for name, one in study.parameters.items() if name not in set_by_levels}
    scale = free.get("scale")
    if scale is not None and scale.kind == "number" and scale.number > 0:
        fitting = _rounded_down(scale.number * share)
        if _fits(study, {"scale": f"{fitting:g}"}, most):
            return f"scale {fitting:g}"
    factor = _rounded_down(share)
    rates = {name: f"{one.number * factor:.0f} bit" for name, one in free.items() if one.kind == "rate"}
    if rates and _fits(study, rates, most):
        return f"multiply the rates ({', '.join(rates)}) by {factor:g}"
    return "lower the rates of links and traffic"


def _fits(study: Study, changes: Mapping[str, str], most: float) -> bool:
    """Return True if every run needs at most `most` frames a second with `changes`."""
    try:
        changed = forecast_runs(plan_study(with_changes(study, changes)), None)
    except UsageError:
        return False
    return max(changed.needed.values()) <= most


def _rounded_down(value: float) -> float:
    """With two digits, never above `value`."""
    digits = 1 - math.floor(math.log10(value)) if value > 0 else 0
    return math.floor(value * 10**digits) / 10**digits


def _rounded(frames: float) -> str:
    """With two digits: `80,000`."""
    digits = max(0, math.floor(math.log10(frames)) - 1) if frames >= 1 else 0
    return f"{round(frames, -digits):,.0f}"


def _span(frames: Sequence[float]) -> str:
    least, most = _rounded(min(frames)), _rounded(max(frames))
    return most if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class CameTrue:
    """The outcome of a forecast: of the runs expected to exceed the machine, and of the others, the number that were
    not valid."""

    exceeding: int
    exceeding_not_valid: int
    others: int
    others_not_valid: int

    def sentence(self) -> str:
        """Tell it in one sentence; nothing where no run had a forecast."""
        if not self.exceeding + self.others:
            return ""
        were = "was" if self.exceeding == 1 else "were"
        if not self.exceeding:
            return (
                "Forecast: no run was expected to exceed the machine, "
                f"and {self.others_not_valid} of {self.others} were not valid."
            )
        said = (
            f"Forecast: {self.exceeding} of {self.exceeding + self.others} runs {were} expected to exceed the machine, "
            f"and {self.exceeding_not_valid} of these were not valid"
        )
        return said + (f"; of the other {self.others} {self.others_not_valid} were not." if self.others else ".")


def came_true(runs: Iterable[StoredRun]) -> CameTrue:
    """Return what became of the forecasts that are stored with `runs`; runs without one are not counted."""
    counts = {True: [0, 0], False: [0, 0]}
    for run in runs:
        exceeds = run.forecast.get("exceeds")
        if exceeds is not None:
            counts[bool(exceeds)][0] += 1
            counts[bool(exceeds)][1] += run.verdict != "valid"
    return CameTrue(*counts[True], *counts[False])
