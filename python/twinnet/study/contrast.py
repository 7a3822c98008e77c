"""A sum of means over runs with its interval, by the design of the study: levels are blocks, repetitions the sample.

The levels of a study are chosen on purpose, so what they do is no chance. A term that leaves factors out is the mean of
the means of their combinations (cells), each with the same weight, and only what repetitions of one cell differ by
makes an interval. Repetitions that do not differ are one run, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from twinnet.stats import Interval, alike, blocked_contrast, t_interval, t_quantile
from twinnet.study.machine_blocks import block_of
from twinnet.study.predicate import Aggregate, Side, is_under

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = [
    "ONE_REPETITION",
    "Cell",
    "Evaluated",
    "cell_of",
    "chosen_runs",
    "equal_values_decide",
    "is_exact",
    "sum_of_means",
]

Cell = tuple[tuple[str, str], ...]
"""The level of each factor."""
Vector = npt.NDArray[np.float64]

ONE_REPETITION = "one repetition says nothing about the spread; repeat at least twice"


@dataclass(frozen=True)
class Evaluated:
    """A side of a comparison as it was measured.

    Attributes
    ----------
    interval
        Its value with the confidence interval; without bounds (NaN) where the runs do not permit one. Its method is
        `exact` where repetitions do not differ: then both bounds are the value.
    runs
        How many runs the term with the fewest rests on.
    how
        How the interval was made, or why there is none; empty for a single cell with an interval of Student's t.
    decided_by
        Of a least or greatest value: the run, and the flow in it, that has it.
    """

    interval: Interval
    runs: int
    how: str = ""
    decided_by: str = ""


@dataclass
class _InCell:
    """The runs of one cell with the sum of the terms that speak of them."""

    runs: list[RunTables] = field(default_factory=list[Any])
    values: list[float] = field(default_factory=list[float])
    scale: float = 0.0
    """How much of what a machine changes in one run the sum holds."""

    @property
    def spread(self) -> float:
        """The variance between repetitions; what rounding leaves of equal values is none."""
        return 0.0 if alike(self.values) else float(np.var(self.values, ddof=1))


def cell_of(run: RunTables) -> Cell:
    """The cell of `run`."""
    return tuple(sorted(run.run.levels.items()))


def chosen_runs(runs: Sequence[RunTables], levels: Mapping[str, str]) -> list[RunTables]:
    """The runs under `levels`; raises `LookupError` when there is none."""
    chosen = [run for run in runs if is_under(run.run.levels, levels)]
    if not chosen:
        said = ", ".join(f"{name}={level}" for name, level in levels.items()) or "any levels"
        raise LookupError(f"no usable run with {said}")
    return chosen


def is_exact(runs: Sequence[RunTables]) -> bool:
    """True if the repetitions of a cell are one run made again: on the virtual clock, with other seeds, and all that
    was counted in them is equal. One repetition does not show that."""
    first, *others = runs
    virtual = first.run.record.get("clock") == "virtual"
    return virtual and bool(others) and all(run.fingerprint == first.fingerprint for run in others)


def equal_values_decide(count: int, confidence: float) -> bool:
    """True if so many equal values permit a verdict without a spread: by the sign test (Dixon and Mood 1946), a run is
    above or below the median by chance with 1/2 each."""
    return 0.5**count <= 1 - confidence


def sum_of_means(side: Side, runs: Sequence[RunTables], confidence: float) -> Evaluated:
    """The sum of the terms of `side`, of which none is a least or greatest value, with its confidence interval.

    Terms are added run by run, so that what varies together in a run cancels. Cells are independent samples, and their
    variances add with Satterthwaite's degrees of freedom (Welch 1947). There are three exceptions. Where cells share
    their seeds (common random numbers), the sums of each repetition are the sample. Where several machines made the
    runs, what machines differ in is taken out (`stats.blocked_contrast`). Cells of one repetition each are compared
    pair by pair of the other factors' levels, where two groups of cells are compared.

    Raises
    ------
    LookupError
        Nothing that a term selects was measured.
    """
    constant = sum(term.factor for term in side if term.aggregate is None)
    groups: dict[Cell, list[tuple[float, Aggregate]]] = {}
    for term in side:
        if term.aggregate is not None:
            groups.setdefault(term.aggregate.levels, []).append((term.factor, term.aggregate))
    if not groups:
        return Evaluated(Interval(constant, constant, constant, confidence, "constant"), 0)
    cells: dict[Cell, _InCell] = {}
    fewest = len(runs)
    for levels, terms in groups.items():
        chosen = chosen_runs(runs, dict(levels))
        fewest = min(fewest, len(chosen))
        share = 1 / len({cell_of(run) for run in chosen})
        _add(cells, chosen, [(share * factor, aggregate) for factor, aggregate in terms])
    interval, how = _interval(cells, list(groups), confidence)
    return Evaluated(_shifted(interval, constant), fewest, how)


def _add(cells: dict[Cell, _InCell], chosen: Sequence[RunTables], terms: Sequence[tuple[float, Aggregate]]) -> None:
    """Add the terms to the sums of the runs that they speak of."""
    new = {cell_of(run) for run in chosen} - set(cells)
    places: dict[Cell, int] = {}
    for run in chosen:
        cell = cells.setdefault(cell_of(run), _InCell())
        value = sum(factor * run.value(aggregate) for factor, aggregate in terms)
        if cell_of(run) in new:
            cell.runs.append(run)
            cell.values.append(value)
        else:
            place = places.get(cell_of(run), 0)
            cell.values[place] += value
            places[cell_of(run)] = place + 1
    for name in {cell_of(run) for run in chosen}:
        cells[name].scale += sum(factor for factor, _ in terms)


def _interval(cells: Mapping[Cell, _InCell], groups: Sequence[Cell], confidence: float) -> tuple[Interval, str]:
    if not all(math.isfinite(value) for cell in cells.values() for value in cell.values):
        return _of_infinite(cells, confidence)
    estimate = float(sum(np.mean(cell.values) for cell in cells.values()))
    varying = {name: cell for name, cell in cells.items() if not (alike(cell.values) and is_exact(cell.runs))}
    if not varying:
        return Interval(estimate, estimate, estimate, confidence, "exact"), "repetitions do not differ"
    blocks = {name: [block_of(run.run.record) for run in cell.runs] for name, cell in cells.items()}
    if len({machine for own in blocks.values() for machine in own}) > 1:
        samples = [np.array(cell.values) for cell in cells.values()]
        found = blocked_contrast(samples, list(blocks.values()), [cell.scale for cell in cells.values()], confidence)
        if found is not None:
            return found[0], "within machines"
    of_repetitions = _by_repetition(varying) if len(varying) > 1 else None
    if of_repetitions is not None:
        rest = estimate - float(np.mean(of_repetitions))
        if len(of_repetitions) > 1 and not alike(of_repetitions):
            return _shifted(t_interval(of_repetitions, confidence), rest), "repetition by repetition, of the same seeds"
    if any(len(cell.values) < 2 for cell in varying.values()):
        return _of_single_runs(cells, groups, estimate, confidence)
    parts = [(cell.spread / len(cell.values), len(cell.values)) for cell in varying.values()]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        count = sum(size for _, size in parts)
        if equal_values_decide(count, confidence):
            return Interval(estimate, estimate, estimate, confidence, "exact"), f"all {count} runs gave the same value"
        said = f"all {count} runs gave the same value, which shows no spread; more repetitions may decide"
        return Interval(estimate, math.nan, math.nan, confidence, "exact"), said
    degrees = variance**2 / sum(part**2 / (size - 1) for part, size in parts)
    half = t_quantile(confidence, degrees) * math.sqrt(variance)
    method = "t" if len(cells) == 1 else "Welch"
    how = f"over {len(cells)} combinations of levels" if len(cells) > len(groups) else ""
    return Interval(estimate, estimate - half, estimate + half, confidence, method), how


def _of_infinite(cells: Mapping[Cell, _InCell], confidence: float) -> tuple[Interval, str]:
    """Percentiles of delays where more was lost than they leave out: no spread is known, so that all runs of a cell
    must agree, often enough for a sign test, or be one run made again."""
    finite = [[math.isfinite(value) for value in cell.values] for cell in cells.values()]
    with np.errstate(invalid="ignore"):
        estimate = float(
            np.sum([value for cell in cells.values() for value in cell.values if not math.isfinite(value)])
        )
    runs = sum(map(len, finite))
    how = (
        f"infinite in {runs - sum(map(sum, finite))} of {runs} runs: more was lost there than the percentile leaves out"
    )
    agree = all(len(set(own)) == 1 for own in finite)
    fewest = min(map(len, finite))
    exact = all(is_exact(cell.runs) for cell in cells.values())
    if agree and not math.isnan(estimate) and (exact or equal_values_decide(fewest, confidence)):
        return Interval(estimate, estimate, estimate, confidence, "exact"), how
    return Interval(estimate, math.nan, math.nan, confidence, "exact"), f"{how}; more repetitions may decide"


def _by_repetition(cells: Mapping[Cell, _InCell]) -> list[float] | None:
    """The sum of each repetition over all cells, where each repetition has one seed and every cell has it."""
    sums: dict[object, list[float]] = {}
    for cell in cells.values():
        for run, value in zip(cell.runs, cell.values, strict=True):
            seed = run.run.record.get("seed")
            if seed is None:
                return None
            sums.setdefault(seed, []).append(value)
    if any(len(values) != len(cells) for values in sums.values()):
        return None
    return [sum(values) for values in sums.values()]


def _of_single_runs(
    cells: Mapping[Cell, _InCell], groups: Sequence[Cell], estimate: float, confidence: float
) -> tuple[Interval, str]:
    """Two groups of cells with a repetition each, compared within the levels of the other factors: the paired t test of
    a randomised block design. Elsewhere one repetition gives no interval."""
    nothing = Interval(estimate, math.nan, math.nan, confidence, "t"), ONE_REPETITION
    if len(groups) != 2 or {name for name, _ in groups[0]} != {name for name, _ in groups[1]}:
        return nothing
    named = {name for name, _ in groups[0]}
    pairs: dict[Cell, list[float]] = {}
    for levels, cell in cells.items():
        if len(cell.values) != 1:
            return nothing
        pairs.setdefault(tuple(one for one in levels if one[0] not in named), []).extend(cell.values)
    if any(len(values) != 2 for values in pairs.values()) or len(pairs) < 2:
        return nothing
    differences = [sum(values) * len(pairs) for values in pairs.values()]
    if alike(differences):
        return nothing
    found = t_interval(differences, confidence)
    return (
        Interval(found.estimate, found.low, found.high, confidence, "paired"),
        f"one repetition; paired over {len(pairs)} combinations of the other factors, as if they were drawn by chance",
    )


def _shifted(interval: Interval, by: float) -> Interval:
    return Interval(interval.estimate + by, interval.low + by, interval.high + by, interval.level, interval.method)
