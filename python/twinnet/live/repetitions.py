"""Repetitions of one combination of levels, as one run whose curves are means with their confidence bands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from twinnet.errors import BadValue
from twinnet.live.watch import DROPS, more_of_way, with_more
from twinnet.results.series import band

__all__ = ["means_of"]

_QUANTITIES = (0, 2, 3)
"""The places of rate, queue and drops in a way (:func:`~twinnet.live.watch.way_record`)."""
_CLOSE_S = 1e-6
_ORDER = ("valid", "doubtful", "invalid")

Tick = Mapping[str, Any]


def means_of(runs: Sequence[Sequence[Tick]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the ticks of the mean of `runs`, whose names are `names`, as far as all of them have them.

    Each has besides ``bands``: of each way the low and the high edge of the 95 % confidence interval of the mean
    (Student's t) of its rate in bit/s, its queue in frames and its drops in frames; ``None`` where nothing was counted.
    The verdict is the worst, and late is when one of them was late.

    Raises
    ------
    BadValue
        Their intervals are not the same.
    """
    count = min(map(len, runs))
    ticks: list[dict[str, Any]] = []
    for at in range(count):
        same = [run[at] for run in runs]
        if any(abs(one["now_s"] - same[0]["now_s"]) > _CLOSE_S for one in same):
            raise BadValue(f"{names[0]} and others of these runs have different intervals", "choose runs of one study")
        ways = [_mean([one["ways"][place] for one in same]) for place in range(len(same[0]["ways"]))]
        verdicts = [one["verdict"] for one in same]
        worst = max(verdicts, key=lambda verdict: _ORDER.index(verdict["state"]))
        latest = max(verdicts, key=lambda verdict: verdict["late_s"])
        verdict = worst | {name: latest[name] for name in ("at_s", "late_s")}
        mean = {"now_s": same[0]["now_s"], "elapsed_s": same[0]["elapsed_s"], "verdict": verdict}
        ticks.append(mean | {"ways": [way for way, _ in ways], "bands": [edges for _, edges in ways]})
    return ticks


def _mean_more(known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of what is behind the numbers."""

    def mean(values: Iterable[float]) -> float:
        return round(sum(values) / len(known), 3)

    drops = {reason: mean(one.get("drops", {}).get(reason, 0) for one in known) for reason in DROPS}
    return more_of_way(drops, mean(one.get("marks", 0) for one in known), any(one.get("lossy") for one in known))


def _mean(ways: Sequence[Sequence[Any] | None]) -> tuple[list[Any] | None, list[float] | None]:
    known = [way for way in ways if way is not None]
    if len(known) < len(ways):
        return None, None
    loads = [way[1] for way in known]
    rate, queue, drops = (float(np.mean([way[place] for way in known])) for place in _QUANTITIES)
    load = None if None in loads else round(float(np.mean(loads)), 4)
    lines = {way[5] for way in known}
    values = np.array([[way[place] for place in _QUANTITIES] for way in known], dtype=float)
    edges = band(np.zeros(len(_QUANTITIES)), list(values))
    mean = [round(rate), load, round(queue, 2), round(drops, 3), all(way[4] for way in known), None]
    mean[5] = lines.pop() if len(lines) == 1 else None
    pairs = zip(edges.low, edges.high, strict=True)
    more = _mean_more([way[6] if len(way) > 6 else {} for way in known])
    return with_more(mean, more), [round(float(max(0.0, edge)), 3) for pair in pairs for edge in pair]
