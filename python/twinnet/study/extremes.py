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
from twinnet.study.contrast import (
    ONE_REPETITION,
    Cell,
    Evaluated,
    cell_of,
    chosen_runs,
    equal_values_decide,
    grain_in,
    is_exact,
    no_step_known,
    values_of,
)
from twinnet.study.predicate import Aggregate
from twinnet.study.skew import stretch_of
from twinnet.study.value_functions import NORMALITY

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["extreme", "is_extreme"]


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


def extreme(aggregate: Aggregate, runs: Sequence[RunTables], confidence: float) -> Evaluated:
    """The least or greatest value of `aggregate` in any run that it selects, and the unit that has it.

    Its interval is that of the cell whose expected value is the least or greatest; it has no bounds where a cell has
    one run.

    Raises
    ------
    LookupError
        Nothing that it selects was measured.
    """
    chosen = chosen_runs(runs, dict(aggregate.levels))
    cells: dict[Cell, list[RunTables]] = {}
    for run in chosen:
        cells.setdefault(cell_of(run), []).append(run)
    largest = aggregate.function != "min"
    values = values_of(aggregate, chosen)
    place = int(np.argmax(values) if largest else np.argmin(values))
    of_cells = [[run.value(aggregate) for run in own] for own in cells.values()]
    exact = [_same(seen) and is_exact(own) for seen, own in zip(of_cells, cells.values(), strict=True)]
    varying = exact.count(False)
    grains = [_grain(aggregate, own) for own in cells.values()]
    bounds = [_bounds(*one, varying, confidence) for one in zip(of_cells, grains, exact, strict=True)]
    if any(math.isnan(one.low) for one in bounds):
        low = high = math.nan
    elif largest:
        low, high = max(one.low_corrected for one in bounds), max(one.high for one in bounds)
    else:
        low, high = min(one.low for one in bounds), min(one.high_corrected for one in bounds)
    why = next((one.why for one in bounds if one.why), "exact: repetitions do not differ" if not varying else "")
    interval = Interval(values[place], low, high, confidence, "extreme")
    return Evaluated(interval, len(chosen), why, _unit(aggregate, chosen, place))


def _grain(aggregate: Aggregate, runs: Sequence[RunTables]) -> float | None:
    grains = [grain_in(run, aggregate) for run in runs]
    return max(one for one in grains if one is not None) if None not in grains else None


def _bounds(values: Sequence[float], grain: float | None, exact: bool, varying: int, confidence: float) -> _Bounds:
    if exact:
        return _Bounds(values[0], values[0], values[0], values[0])
    nothing = _Bounds(math.nan, math.nan, math.nan, math.nan)
    if len(values) < 2:
        return replace(nothing, why=ONE_REPETITION)
    if not np.isfinite(values).all():
        infinite = sum(map(math.isinf, values))
        said = f"infinite in {infinite} of {len(values)} runs of a combination of levels"
        if _same(values) and equal_values_decide(len(values), confidence):
            return _Bounds(values[0], values[0], values[0], values[0], said)
        return replace(nothing, why=said)
    if grain is None and alike(values):
        return replace(nothing, why=no_step_known(len(values), confidence))
    mean, spread = float(np.mean(values)), (grain or 0.0) if alike(values) else float(np.std(values, ddof=1))
    ends: list[float] = []
    for level in (confidence, 1 - (1 - confidence) / varying):
        half = t_quantile(level, len(values) - 1) * spread / math.sqrt(len(values))
        stretch = stretch_of(values, level, grain)
        ends += [mean - stretch.below * half, mean + stretch.above * half]
    said = f"all {len(values)} runs of a combination gave the same value, to a step of what is counted"
    low, high, low_corrected, high_corrected = ends
    return _Bounds(low, high, low_corrected, high_corrected, said if alike(values) else "")


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
