"""The times at which the two clocks part, and the fidelity measured at that moment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.stats import welch_interval
from twinnet.study.store import StoredRun
from twinnet.study.tolerance import Tolerance

__all__ = ["AtThatMoment", "Parting", "fidelity_between", "find_parting"]

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AtThatMoment:
    """The fidelity measured in a span of the wall clock's runs, in the worst run; `None` if no run has the value.

    Attributes
    ----------
    lateness_p99_ms
        One frame in a hundred was later.
    slipped_ms, lost_frames, steal_ms
        By how much the schedule moved, what was lost by overload, and what the hypervisor took.
    """

    lateness_p99_ms: float | None
    slipped_ms: float | None
    lost_frames: int | None
    steal_ms: float | None


@dataclass(frozen=True)
class Parting:
    """Two series compared, interval by interval. An interval parts when the difference of the means is beyond the
    tolerance by more than its confidence interval (by anything, with one repetition).

    Attributes
    ----------
    interval_s
        The length of an interval.
    worst_s, worst_difference
        The interval with the largest difference over what is allowed there, wall minus virtual.
    first_s
        The first interval that parts; `None` when none does, like the next two.
    sustained_from_s, sustained_s
        The longest unbroken time for which they are apart.
    share
        The share of the intervals that part.
    """

    interval_s: float
    worst_s: float
    worst_difference: float
    first_s: float | None
    sustained_from_s: float | None
    sustained_s: float | None
    share: float


def find_parting(
    start_s: Vector, wall: Sequence[Vector], virtual: Sequence[Vector], tolerance: Tolerance, level: float
) -> Parting | None:
    """Compare series of repetitions on both clocks, whose intervals begin at `start_s`; `None` without intervals."""
    if start_s.size == 0 or not wall or not virtual:
        return None
    interval_s = float(start_s[1] - start_s[0]) if start_s.size > 1 else math.nan
    first, second = np.vstack(list(wall)), np.vstack(list(virtual))
    means = (first.mean(axis=0), second.mean(axis=0))
    difference = means[0] - means[1]
    allowed = np.maximum(tolerance.share * np.maximum(np.abs(means[0]), np.abs(means[1])), tolerance.amount)
    apart = np.abs(difference) - _half_width(first, second, level) > allowed
    # Where nothing is allowed and nothing differs, both are zero.
    excess = np.divide(np.abs(difference), allowed, out=np.where(difference == 0, 0.0, np.inf), where=allowed > 0)
    worst = int(excess.argmax())
    begin, length = _longest(apart)
    some = bool(apart.any())
    return Parting(
        interval_s,
        float(start_s[worst]),
        float(difference[worst]),
        float(start_s[int(apart.argmax())]) if some else None,
        float(start_s[begin]) if some else None,
        length * interval_s if some else None,
        float(apart.mean()),
    )


def _half_width(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], level: float) -> Vector:
    """Half of Welch's interval of the difference at each interval; zero with one repetition."""
    if first.shape[0] < 2 or second.shape[0] < 2:
        nothing: Vector = np.zeros(len(first[0]), dtype=np.float64)
        return nothing
    half = [
        welch_interval(first[:, place], second[:, place], level).high - float(difference)
        for place, difference in enumerate(first.mean(axis=0) - second.mean(axis=0))
    ]
    return np.array(half, dtype=np.float64)


def _longest(flags: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Begin and length of the longest run of true."""
    best: tuple[int, int] = (0, 0)
    begin = -1
    for place in range(flags.size + 1):
        inside = place < flags.size and bool(flags[place])
        if inside and begin < 0:
            begin = place
        elif not inside and begin >= 0:
            if place - begin > best[1]:
                best = (begin, place - begin)
            begin = -1
    return best


def fidelity_between(runs: Iterable[StoredRun], begin_s: float, end_s: float) -> AtThatMoment:
    """Return the fidelity measured in `runs` between two times, in the worst of them."""
    seen: list[dict[str, float | None]] = []
    for run in runs:
        rows = run.table("fidelity")
        here = rows.filter((pl.col("start_s") < end_s) & (pl.col("start_s") + pl.col("length_s") > begin_s))
        if not here.is_empty():
            late = here["lateness_p99_ms"].drop_nulls().to_list()
            seen.append(
                {
                    "late": max(late, default=None),
                    "slipped": float(here["slipped_ms"].sum()),
                    "lost": float(here["lost_frames"].sum()),
                    "steal": float(here["steal_ms"].sum()),
                }
            )

    def worst(name: str) -> float | None:
        return max((value for one in seen if (value := one[name]) is not None), default=None)

    lost = worst("lost")
    return AtThatMoment(worst("late"), worst("slipped"), None if lost is None else int(lost), worst("steal"))
