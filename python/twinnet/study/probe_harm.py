"""What probes of available bandwidth do to others: delay and loss of datagrams in the window of an estimate, less those
outside of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from twinnet.results.bandwidth_report import Bandwidth
from twinnet.results.flow_report import FlowReport

__all__ = ["Harm", "harm_to_others"]


@dataclass(frozen=True)
class Harm:
    """What others suffered.

    Parameters
    ----------
    delay_ms
        The median over intervals of the mean one-way delay, in the window less outside of it; ``None`` where one of
        both has no whole interval.
    loss
        The share of lost datagrams in the window less that outside of it; ``None`` likewise.
    """

    delay_ms: float | None
    loss: float | None


def harm_to_others(estimate: Bandwidth, others: Iterable[FlowReport]) -> Harm:
    """Return what the probes of `estimate` did to datagrams, by the intervals of those who received them.

    Parameters
    ----------
    estimate
        Tells the window.
    others
        Reports of flows; those that have delays in intervals count.
    """
    begin_ps, end_ps = estimate.window_start_ps, estimate.window_end_ps
    if begin_ps is None or end_ps is None:
        return Harm(None, None)
    within, apart = _Counts(), _Counts()
    for report in others:
        found = report.intervals
        if report.role != "sink" or found is None or not found.delays_ps:
            continue
        # Neither the first nor the last interval of a flow is whole.
        for place in range(1, len(found.delays_ps) - 1):
            start_ps = (found.first + place) * found.interval_ps
            lost = found.lost[place] if found.lost else 0
            if begin_ps <= start_ps and start_ps + found.interval_ps <= end_ps:
                within.add(found.delays_ps[place], found.packets[place], lost)
            elif start_ps + found.interval_ps <= begin_ps or end_ps <= start_ps:
                apart.add(found.delays_ps[place], found.packets[place], lost)
    if not (within.delays_ps and apart.delays_ps):
        return Harm(None, None)
    return Harm((median(within.delays_ps) - median(apart.delays_ps)) / 1e9, within.loss - apart.loss)


class _Counts:
    """What arrived in some intervals."""

    def __init__(self) -> None:
        self.delays_ps: list[float] = []
        self.arrived = 0
        self.lost = 0

    def add(self, delay_ps: float | None, arrived: int, lost: int) -> None:
        if delay_ps is not None:
            self.delays_ps.append(delay_ps)
        self.arrived += arrived
        self.lost += lost

    @property
    def loss(self) -> float:
        return self.lost / max(1, self.lost + self.arrived)
