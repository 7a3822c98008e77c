"""The machine as a blocking factor: levels are compared within machines, and named where no machine had both."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from twinnet.stats import Interval, TestResult, alike, blocked_contrast
from twinnet.study.machine import machine_of
from twinnet.study.skew import difference_interval, mean_interval

__all__ = ["apart", "block_of", "confounded_levels", "difference_in_blocks", "mean_of_repetitions", "together"]

_NO_BLOCK = ""
_MOST_PAIRS = 3
_MOST_NAMED = 4


def block_of(record: Mapping[str, Any]) -> str:
    """The machine that made a run on the wall clock; empty on the virtual clock, where a run is the same everywhere."""
    return machine_of(record) if record.get("clock") == "wall" else _NO_BLOCK


def mean_of_repetitions(samples: Sequence[float], level: float) -> Interval:
    """The mean with Student's interval, wider where values are skewed; without bounds for one repetition, for several
    that do not differ, and where one is infinite; NaN where none has a value."""
    if not len(samples):
        return Interval(math.nan, math.nan, math.nan, level, "missing")
    if not np.isfinite(samples).all() or alike(samples):
        return Interval(float(np.mean(samples)), math.nan, math.nan, level, "exact")
    return mean_interval(samples, level)


def difference_in_blocks(
    first: Sequence[float],
    first_blocks: Sequence[str],
    second: Sequence[float],
    second_blocks: Sequence[str],
    level: float,
) -> tuple[Interval, TestResult | None]:
    """The difference of two means, first minus second, with its test.

    Where the runs are of several machines, and some machine has runs of both sides, what machines differ in is taken
    out (`stats.blocked_contrast`). Otherwise this is Welch's, wider and with a test by permutations where a side is
    skewed. A side with a single value gives no test, and an interval without bounds; so do two sides whose values do
    not differ, for these are no samples, and infinite values.
    """
    if not np.isfinite([*first, *second]).all():
        sides = float(np.mean(first)), float(np.mean(second))
        apart = math.nan if math.isinf(sides[0]) and sides[0] == sides[1] else sides[0] - sides[1]
        return Interval(apart, math.nan, math.nan, level, "infinite"), None
    if len(first) < 2 or len(second) < 2 or (alike(first) and alike(second)):
        difference = float(np.mean(first) - np.mean(second))
        return Interval(difference, math.nan, math.nan, level, "Welch"), None
    if len({*first_blocks, *second_blocks}) > 1:
        turned = [-value for value in second]
        found = blocked_contrast([first, turned], [first_blocks, second_blocks], [1.0, -1.0], level)
        if found is not None:
            return found
    return difference_interval(first, second, level)


def together(
    pairs: Sequence[tuple[Sequence[float], Sequence[str], Sequence[float], Sequence[str]]], level: float
) -> list[tuple[Interval, TestResult | None]]:
    """The difference of each pair of samples and blocks, with intervals that all hold at once with the probability
    `level` (Bonferroni: Dunn 1961); the p-values are those of single comparisons."""
    tested = sum(difference_in_blocks(*pair, level)[1] is not None for pair in pairs)
    return [difference_in_blocks(*pair, 1 - (1 - level) / max(1, tested)) for pair in pairs]


def confounded_levels(runs: Iterable[tuple[Mapping[str, str], str]]) -> list[str]:
    """Sentences about levels that no machine had in common: their difference may be that of the machines.

    Parameters
    ----------
    runs
        The levels of each run and the machine that made it.
    """
    of_level: dict[str, dict[str, set[str]]] = {}
    of_combination: dict[tuple[tuple[str, str], ...], set[str]] = {}
    for levels, machine in runs:
        for factor, level in levels.items():
            of_level.setdefault(factor, {}).setdefault(level, set()).add(machine)
        of_combination.setdefault(tuple(levels.items()), set()).add(machine)
    pairs: list[str] = []
    for factor, machines_of in of_level.items():
        for (one, first), (other, second) in itertools.combinations(machines_of.items(), 2):
            if not first & second:
                pairs.append(f"{factor}={one} ran only on {_named(first)}, {factor}={other} only on {_named(second)}")
    if not pairs:
        for (one, first), (other, second) in itertools.combinations(of_combination.items(), 2):
            if not first & second:
                pairs.append(f"{_worded(one)} ran only on {_named(first)}, {_worded(other)} only on {_named(second)}")
    if not pairs:
        return []
    said = "; ".join(pairs[:_MOST_PAIRS])
    said += f"; and {len(pairs) - _MOST_PAIRS} more pairs" if len(pairs) > _MOST_PAIRS else ""
    return [
        f"Warning: machines and levels are confounded: {said}. A difference between them "
        "may be that of the machines. Make all levels of a repetition on one machine (--deal repetition)."
    ]


def apart(first: Iterable[str], second: Iterable[str]) -> str:
    """A warning where two results on the wall clock have no machine in common; empty otherwise."""
    one, other = set(first), set(second)
    if not one or not other or one & other:
        return ""
    return (
        f"Warning: the first was made on {_named(one)}, the second on {_named(other)}: a difference between them may be"
        " that of the machines"
    )


def _named(machines: Iterable[str]) -> str:
    ordered = sorted(machines)
    more = f" and {len(ordered) - _MOST_NAMED} more" if len(ordered) > _MOST_NAMED else ""
    return ", ".join(ordered[:_MOST_NAMED]) + more


def _worded(levels: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in levels)
