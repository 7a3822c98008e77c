"""The machine as a blocking factor: levels are compared within machines, and named where no machine had both."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from twinnet.stats import Interval, TestResult, alike
from twinnet.study.blocked_contrast import BlockedContrast, blocked_contrast
from twinnet.study.machine import machine_of
from twinnet.study.skew import Part, Stretch, difference_with_test, mean_interval, stretch_of_rest, tested_by

__all__ = [
    "apart",
    "block_of",
    "confounded_levels",
    "difference_in_blocks",
    "mean_of_repetitions",
    "stretched",
    "together",
]

_NO_BLOCK = ""
_MOST_PAIRS = 3
_MOST_NAMED = 4


def block_of(record: Mapping[str, Any]) -> str:
    """The machine that made a run on the wall clock; empty on the virtual clock, where a run is the same everywhere."""
    return machine_of(record) if record.get("clock") == "wall" else _NO_BLOCK


def mean_of_repetitions(samples: Sequence[float], level: float, top: float | None = None) -> Interval:
    """The mean with Student's interval, wider where values are skewed; without bounds for one repetition, for several
    that do not differ, and where one is infinite; NaN where none has a value. No value is greater than `top`."""
    if not len(samples):
        return Interval(math.nan, math.nan, math.nan, level, "missing")
    if not np.isfinite(samples).all() or alike(samples):
        return Interval(float(np.mean(samples)), math.nan, math.nan, level, "exact")
    return mean_interval(samples, level, None, top)


def stretched(found: BlockedContrast, stretches: Sequence[Stretch], level: float) -> Interval:
    """The interval of a sum within blocks, as far as each group is stretched: by what its errors may add to the square
    of the standard error, also where the residuals of other groups have a part of them."""
    plain, square = found.interval(level), sum(found.variances)
    if square == 0 or not any(stretch.is_seen for stretch in stretches):
        return plain
    shares = [variance / own / square for variance, own in zip(found.variances, found.own, strict=True)]
    below, above = (
        math.sqrt(1 + sum((reach**2 - 1) * share for reach, share in zip(reaches, shares, strict=True)))
        for reaches in ([one.below for one in stretches], [one.above for one in stretches])
    )
    return Stretch(below, above).of(plain)


def difference_in_blocks(
    first: Sequence[float],
    first_blocks: Sequence[str],
    second: Sequence[float],
    second_blocks: Sequence[str],
    level: float,
    top: float | None = None,
) -> tuple[Interval, TestResult | None]:
    """The difference of two means, first minus second, with its test.

    Where the runs are of several machines, and some machine has runs of both sides, what machines differ in is taken
    out (`blocked_contrast`). Otherwise this is Welch's. Both are wider where a side is skewed, and the test is that of
    the interval. A side with a single value gives no test, and an interval without bounds; so do two sides whose values
    do not differ, for these are no samples, and infinite values. No value is greater than `top`.
    """
    if not np.isfinite([*first, *second]).all():
        sides = float(np.mean(first)), float(np.mean(second))
        apart = math.nan if math.isinf(sides[0]) and sides[0] == sides[1] else sides[0] - sides[1]
        return Interval(apart, math.nan, math.nan, level, "infinite"), None
    if not _has_spread(first, second):
        difference = float(np.mean(first) - np.mean(second))
        return Interval(difference, math.nan, math.nan, level, "Welch"), None
    if len({*first_blocks, *second_blocks}) > 1:
        parts = [Part(first, None, top), Part([-value for value in second], None, None if top is None else -top)]
        found = blocked_contrast([part.values for part in parts], [first_blocks, second_blocks], [1.0, -1.0])
        if found is not None:

            def at(level: float) -> Interval:
                of_sides = zip(found.values, parts, strict=True)
                return stretched(
                    found,
                    [stretch_of_rest(left.tolist(), part.values, [part], level) for left, part in of_sides],
                    level,
                )

            interval = at(level)
            return interval, found.test if interval.method == "blocks" else tested_by(at, found.test, level)
    return difference_with_test(first, second, level, top)


def together(
    pairs: Sequence[tuple[Sequence[float], Sequence[str], Sequence[float], Sequence[str]]],
    level: float,
    tops: Sequence[float | None] = (),
) -> list[tuple[Interval, TestResult | None]]:
    """The difference of each pair of samples and blocks, with intervals that all hold at once with the probability
    `level` (Bonferroni: Dunn 1961); the p-values are those of single comparisons. `tops`: the greatest that the values
    of each pair can be."""
    tested = sum(_has_spread(first, second) for first, _, second, _ in pairs)
    each = 1 - (1 - level) / max(1, tested)
    found: list[tuple[Interval, TestResult | None]] = []
    for (first, first_blocks, second, second_blocks), top in zip(pairs, tops or [None] * len(pairs), strict=True):
        found.append(difference_in_blocks(first, first_blocks, second, second_blocks, each, top))
    return found


def _has_spread(first: Sequence[float], second: Sequence[float]) -> bool:
    """True if two sides are samples whose means can be compared."""
    repeated = min(len(first), len(second)) > 1
    return repeated and bool(np.isfinite([*first, *second]).all()) and not (alike(first) and alike(second))


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
