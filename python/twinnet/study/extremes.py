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

from twinnet.stats import Interval, alike, t_interval
from twinnet.study.contrast import (
    ONE_REPETITION,
    Cell,
    Evaluated,
    cell_of,
    chosen_runs,
    equal_values_decide,
    is_exact,
)
from twinnet.study.predicate import Aggregate
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
    values = [run.value(aggregate) for run in chosen]
    place = int(np.argmax(values) if largest else np.argmin(values))
    of_cells = [[run.value(aggregate) for run in own] for own in cells.values()]
    exact = [alike(seen) and is_exact(own) for seen, own in zip(of_cells, cells.values(), strict=True)]
    varying = exact.count(False)
    bounds = [_bounds(seen, same, varying, confidence) for seen, same in zip(of_cells, exact, strict=True)]
    if any(math.isnan(one.low) for one in bounds):
        low = high = math.nan
    elif largest:
        low, high = max(one.low_corrected for one in bounds), max(one.high for one in bounds)
    else:
        low, high = min(one.low for one in bounds), min(one.high_corrected for one in bounds)
    why = next((one.why for one in bounds if one.why), "repetitions do not differ" if not varying else "")
    interval = Interval(values[place], low, high, confidence, "extreme")
    return Evaluated(interval, len(chosen), why, _unit(aggregate, chosen, place))


def _bounds(values: Sequence[float], exact: bool, varying: int, confidence: float) -> _Bounds:
    if exact:
        return _Bounds(values[0], values[0], values[0], values[0])
    if len(values) < 2:
        return _Bounds(math.nan, math.nan, math.nan, math.nan, ONE_REPETITION)
    if alike(values):
        said = f"all {len(values)} runs of a combination gave the same value"
        if equal_values_decide(len(values), confidence):
            return _Bounds(values[0], values[0], values[0], values[0], said)
        return _Bounds(math.nan, math.nan, math.nan, math.nan, f"{said}; more repetitions may decide")
    whole = t_interval(values, confidence)
    corrected = t_interval(values, 1 - (1 - confidence) / varying)
    return _Bounds(whole.low, whole.high, corrected.low, corrected.high)


def _unit(aggregate: Aggregate, chosen: Sequence[RunTables], place: int) -> str:
    """Name the run that has the value and the flow in it, as far as there are several."""
    run = chosen[place]
    levels = {name: {one.run.levels[name] for one in chosen} for name in run.run.levels}
    said = [f"{name}={run.run.levels[name]}" for name, seen in levels.items() if len(seen) > 1]
    if len({one.run.repetition for one in chosen}) > 1:
        said.append(f"repetition {run.run.repetition}")
    flow = run.flow_of(replace(aggregate, levels=()))
    return ", ".join([*said, *([flow] if flow else [])])
