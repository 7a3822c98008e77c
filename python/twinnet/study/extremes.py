"""The least and greatest of a quantity over all that a statement names: packets, flows, runs, levels.

"Every", "worst" and "at most" speak of each unit, so the value is that of the one unit that is worst, and no mean hides
it. The interval is of the worst combination's expected value: where k combinations vary, its bound on the far side is
the farthest of theirs (an intersection-union test, Berger 1982, which needs no correction), and on the near side the
farthest of theirs at a level corrected for k (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from twinnet.stats import Interval, alike, t_quantile
from twinnet.study.cells import (
    Cell,
    cell_of,
    chosen_runs,
    equal_values_decide,
    grain_in,
    is_exact,
    no_step_known,
    one_repetition,
    top_in,
    values_and_missing,
)
from twinnet.study.contrast import Evaluated, skewed_in_words
from twinnet.study.predicate import Aggregate
from twinnet.study.skew import NORMAL, Stretch, stretch_of
from twinnet.study.value_functions import NORMALITY

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["extreme", "is_extreme"]

_EXPECTED = "judged by the mean over the runs of the worst combination"


def is_extreme(aggregate: Aggregate | None) -> bool:
    """True if `aggregate` is a least or greatest value: of a test of normality, the greatest p-value."""
    return aggregate is not None and aggregate.function in ("min", "max", NORMALITY)


@dataclass(frozen=True)
class _Bounds:
    """The bounds of a cell's expected extreme: by the whole confidence level, and corrected for the number of cells."""

    low: float
    high: float
    low_corrected: float
    high_corrected: float
    why: str = ""
    stretch: Stretch = NORMAL


def extreme(aggregate: Aggregate, runs: Sequence[RunTables], confidence: float) -> Evaluated:
    """The least or greatest value of `aggregate` in any run that it selects, and the unit that has it.

    Its interval is that of the cell whose expected value is the least or greatest; it has no bounds where a cell has
    one run, and where a run has no value. The least or greatest of the others then still refutes a claim of every unit.

    Raises
    ------
    LookupError
        Nothing that it selects was measured.
    """
    everything = chosen_runs(runs, dict(aggregate.levels))
    largest = aggregate.function != "min"
    values, missing = values_and_missing(aggregate, everything)
    if not values:
        raise LookupError(missing[0])
    chosen = [run for place, run in enumerate(everything) if place not in missing]
    cells: dict[Cell, list[RunTables]] = {}
    for run in chosen:
        cells.setdefault(cell_of(run), []).append(run)
    place = int(np.argmax(values) if largest else np.argmin(values))
    unit = _unit(aggregate, chosen, place)
    if missing:
        why = f"{len(missing)} of {len(everything)} runs have no value: {next(iter(missing.values()))}"
        return Evaluated(Interval(values[place], math.nan, math.nan, confidence, "extreme"), len(chosen), why, unit)
    of_cells = [[run.value(aggregate) for run in own] for own in cells.values()]
    exact = [_same(seen) and is_exact(own) for seen, own in zip(of_cells, cells.values(), strict=True)]
    varying = exact.count(False)
    bounds = [
        _bounds(aggregate, seen, own, varying if not is_one else 0, confidence)
        for seen, own, is_one in zip(of_cells, cells.values(), exact, strict=True)
    ]
    unknown = [one for one in bounds if math.isnan(one.low)]
    if unknown:
        return Evaluated(
            Interval(values[place], math.nan, math.nan, confidence, "extreme"), len(chosen), unknown[0].why, unit
        )
    pick = max if largest else min
    of_low = pick(bounds, key=lambda one: one.low_corrected if largest else one.low)
    of_high = pick(bounds, key=lambda one: one.high if largest else one.high_corrected)
    low, high = (of_low.low_corrected, of_high.high) if largest else (of_low.low, of_high.high_corrected)
    said = ["exact: repetitions do not differ"] if not varying else []
    deciding = [one for one in (of_low, of_high) if one.why or one.low < one.high]
    if deciding:
        said = [_EXPECTED, *dict.fromkeys(one.why for one in deciding if one.why)]
        said += skewed_in_words([one.stretch for one in deciding])
    return Evaluated(Interval(values[place], low, high, confidence, "extreme"), len(chosen), "; ".join(said), unit)


def _bounds(
    aggregate: Aggregate, values: Sequence[float], runs: Sequence[RunTables], varying: int, confidence: float
) -> _Bounds:
    """Those of one cell, of `varying` that vary; of none where it is one run made again."""
    if not varying:
        return _Bounds(values[0], values[0], values[0], values[0])
    nothing = _Bounds(math.nan, math.nan, math.nan, math.nan)
    if len(values) < 2:
        return replace(nothing, why=one_repetition(runs))
    infinite = [value for value in values if math.isinf(value)]
    if infinite:
        said = f"infinite in {len(infinite)} of {len(values)} runs of a combination of levels"
        if _same(values) and equal_values_decide(len(values), confidence):
            return _Bounds(values[0], values[0], values[0], values[0], said)
        rest = [(value, run) for value, run in zip(values, runs, strict=True) if math.isfinite(value)]
        if len(rest) < 2 or len(set(infinite)) > 1:
            return replace(nothing, why=said)
        # The mean of those that are finite is no further than that of all.
        found = _bounds(aggregate, [value for value, _ in rest], [run for _, run in rest], varying, confidence)
        upward = infinite[0] > 0
        end = (
            {"high": math.inf, "high_corrected": math.inf} if upward else {"low": -math.inf, "low_corrected": -math.inf}
        )
        return found if math.isnan(found.low) else replace(found, why=said, **end)
    grains = [grain_in(run, aggregate) for run in runs]
    grain = max(one for one in grains if one is not None) if None not in grains else None
    if grain is None and alike(values):
        return replace(nothing, why=no_step_known(len(values), confidence))
    mean, spread = float(np.mean(values)), (grain or 0.0) if alike(values) else float(np.std(values, ddof=1))
    ends: list[float] = []
    stretch = NORMAL
    for level in (confidence, 1 - (1 - confidence) / varying):
        half = t_quantile(level, len(values) - 1) * spread / math.sqrt(len(values))
        stretch = stretch_of(values, level, grain, top_in(runs, aggregate))
        ends += [mean - stretch.below * half, mean + stretch.above * half]
    low, high, low_corrected, high_corrected = ends
    said = f"all {len(values)} runs of a combination gave the same value, to a step of what is counted"
    return _Bounds(low, high, low_corrected, high_corrected, said if alike(values) else "", stretch)


def _same(values: Sequence[float]) -> bool:
    """True if `values` do not differ; infinite ones are the same, too."""
    return len(set(values)) == 1 or (bool(np.isfinite(values).all()) and alike(values))


def _unit(aggregate: Aggregate, chosen: Sequence[RunTables], place: int) -> str:
    """Name the run that has the value and the flow in it, as far as there are several."""
    run = chosen[place]
    levels = {name: {one.run.levels[name] for one in chosen} for name in run.run.levels}
    said = [f"{name}={run.run.levels[name]}" for name, seen in levels.items() if len(seen) > 1]
    if len({one.run.repetition for one in chosen}) > 1:
        said.append(f"repetition {run.run.repetition}")
    flow = run.flow_of(replace(aggregate, levels=()))
    return ", ".join([*said, *([flow] if flow else [])])
