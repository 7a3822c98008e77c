"""A sum of means over runs with its interval, by the design of the study: levels are blocks, repetitions the sample.

The levels of a study are chosen on purpose, so what they do is no chance. A term that leaves factors out is the mean of
the means of their combinations (cells), each with the same weight, and only what repetitions of one cell differ by
makes an interval. Repetitions that do not differ are one run, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from twinnet.stats import Interval, alike, blocked_contrast, t_interval, t_quantile
from twinnet.study.machine_blocks import block_of
from twinnet.study.predicate import Aggregate, Side, is_under
from twinnet.study.skew import NORMAL, Part, Stretch, stretch_of_sum

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = [
    "ONE_REPETITION",
    "Cell",
    "Evaluated",
    "cell_of",
    "chosen_runs",
    "counted_the_same",
    "equal_values_decide",
    "grain_in",
    "is_exact",
    "no_step_known",
    "sum_of_means",
    "values_of",
]

Cell = tuple[tuple[str, str], ...]
"""The level of each factor."""
Vector = npt.NDArray[np.float64]

_ROUNDING = 1e-12
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
    grain: float | None = 0.0
    """The least step of the sum; `None` where that of a term is not known."""
    parts: list[Part] = field(default_factory=list[Any])
    """The terms one by one, each with its value in every run."""

    @property
    def is_bounded(self) -> bool:
        """True if the repetitions tell a spread: they differ, or their step is known."""
        return self.grain is not None or not alike(self.values)

    @property
    def magnitude(self) -> float:
        """The greatest size of what was added up; rounding leaves no less than its share of that."""
        return max(float(np.abs(part.values).max()) for part in self.parts)

    def spread(self, level: float) -> tuple[float, Stretch]:
        """The variance between repetitions, of equal ones that of a step, and how far an interval at `level` reaches
        beyond Student's."""
        stretch = stretch_of_sum(self.values, self.parts, level)
        return (self.grain or 0.0) ** 2 if alike(self.values) else float(np.var(self.values, ddof=1)), stretch


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


def counted_the_same(runs: Sequence[RunTables]) -> bool:
    """True if all that was counted in these runs is equal."""
    return len({run.fingerprint for run in runs}) == 1


def is_exact(runs: Sequence[RunTables]) -> bool:
    """True if the repetitions of a cell are one run made again: on the virtual clock, with other seeds, where nothing
    is drawn by chance, or all that was counted is equal. One repetition does not show that."""
    if len(runs) < 2 or runs[0].run.record.get("clock") != "virtual":
        return False
    return not runs[0].is_drawn or counted_the_same(runs)


def equal_values_decide(count: int, confidence: float) -> bool:
    """True if so many infinite values permit a verdict: by the sign test (Dixon and Mood 1946), a run is above or below
    the median by chance with 1/2 each."""
    return 0.5**count <= 1 - confidence


def no_step_known(count: int, confidence: float) -> str:
    """Why `count` equal values bound no mean: they bound the share of runs that have another, by Clopper and Pearson
    (1934), and not how far that other is away."""
    share = 1 - (1 - confidence) ** (1 / count)
    return (
        f"all {count} runs gave the same value although chance has a part in them: at most {100 * share:.2g} % of runs "
        "give another, and that bounds no mean"
    )


def values_of(aggregate: Aggregate, runs: Sequence[RunTables]) -> list[float]:
    """The value of `aggregate` in each of `runs`.

    Raises
    ------
    LookupError
        Some run has none: the message says how many of them, for others may have.
    """
    values: list[float] = []
    missing: list[str] = []
    for run in runs:
        try:
            values.append(run.value(aggregate))
        except LookupError as error:
            missing.append(str(error.args[0]))
    if missing:
        raise LookupError(f"{len(missing)} of {len(runs)} runs have no value: {missing[0]}" if values else missing[0])
    return values


def grain_in(run: RunTables, aggregate: Aggregate) -> float | None:
    """The least step of the value of `aggregate` in `run`; `None` where it is not known."""
    try:
        return run.grain(aggregate)
    except LookupError:
        return None


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
    magnitude = abs(constant) + sum(cell.magnitude for cell in cells.values())
    return Evaluated(without_rounding(_shifted(interval, constant), magnitude), fewest, how)


def without_rounding(interval: Interval, magnitude: float) -> Interval:
    """`interval` with 0 for what rounding leaves of a sum of parts that are as large as `magnitude` together."""
    if not math.isfinite(magnitude):
        return interval
    ends = (interval.estimate, interval.low, interval.high)
    estimate, low, high = (0.0 if abs(end) <= _ROUNDING * magnitude else end for end in ends)
    return replace(interval, estimate=estimate, low=low, high=high)


def _add(cells: dict[Cell, _InCell], chosen: Sequence[RunTables], terms: Sequence[tuple[float, Aggregate]]) -> None:
    """Add the terms to the sums of the runs that they speak of."""
    of_terms = [[factor * value for value in values_of(aggregate, chosen)] for factor, aggregate in terms]
    for name in dict.fromkeys(map(cell_of, chosen)):
        places = [place for place, run in enumerate(chosen) if cell_of(run) == name]
        cell = cells.setdefault(name, _InCell())
        cell.runs = cell.runs or [chosen[place] for place in places]
        cell.values = cell.values or [0.0] * len(places)
        for (factor, aggregate), values in zip(terms, of_terms, strict=True):
            own = [values[place] for place in places]
            cell.values = [total + value for total, value in zip(cell.values, own, strict=True)]
            cell.scale += factor
            steps = [grain_in(run, aggregate) for run in cell.runs]
            known = [abs(factor) * step for step in steps if step is not None]
            step = max(known) if len(known) == len(steps) else None
            cell.grain = None if step is None or cell.grain is None else cell.grain + step
            cell.parts.append(Part(own, step, factor if aggregate.bound is not None else None))


def _interval(cells: Mapping[Cell, _InCell], groups: Sequence[Cell], confidence: float) -> tuple[Interval, str]:
    if not all(math.isfinite(value) for cell in cells.values() for value in cell.values):
        return _of_infinite(cells, confidence)
    estimate = float(sum(np.mean(cell.values) for cell in cells.values()))
    varying = {name: cell for name, cell in cells.items() if not (alike(cell.values) and is_exact(cell.runs))}
    if not varying:
        return Interval(estimate, estimate, estimate, confidence, "exact"), "exact: repetitions do not differ"
    for cell in varying.values():
        if not cell.is_bounded and len(cell.values) > 1:
            return Interval(estimate, math.nan, math.nan, confidence, "t"), no_step_known(len(cell.values), confidence)
    return _of_varying(cells, varying, groups, estimate, confidence)


def _of_varying(
    cells: Mapping[Cell, _InCell],
    varying: Mapping[Cell, _InCell],
    groups: Sequence[Cell],
    estimate: float,
    confidence: float,
) -> tuple[Interval, str]:
    blocks = {name: [block_of(run.run.record) for run in cell.runs] for name, cell in cells.items()}
    if len({machine for own in blocks.values() for machine in own}) > 1:
        samples = [np.array(cell.values) for cell in cells.values()]
        found = blocked_contrast(samples, list(blocks.values()), [cell.scale for cell in cells.values()], confidence)
        if found is not None:
            return _of_differences(found[0], varying, "within machines")
    of_repetitions = _by_repetition(varying) if len(varying) > 1 else None
    if of_repetitions is not None:
        sums, left_out = of_repetitions
        rest = sum(float(np.mean(cell.values)) for name, cell in cells.items() if name not in varying)
        said = "repetition by repetition, of the same seeds"
        said += f"; {left_out} runs of repetitions that not all levels have are left out" if left_out else ""
        return _of_differences(_shifted(t_interval(sums, confidence), rest), varying, said)
    if any(len(cell.values) < 2 for cell in varying.values()):
        return _of_single_runs(cells, groups, estimate, confidence)
    parts = [(*cell.spread(confidence), len(cell.values)) for cell in varying.values()]
    errors = [(spread / size, size) for spread, _, size in parts]
    variance = sum(part for part, _ in errors)
    if variance == 0 or not math.isfinite(variance):
        # Terms times zero, and values whose squares are no numbers.
        bound = estimate if variance == 0 else math.nan
        how = "nothing that is counted changes it" if variance == 0 else "the values are too large to be squared"
        return Interval(estimate, bound, bound, confidence, "exact"), how
    degrees = 1 / sum((part / variance) ** 2 / (size - 1) for part, size in errors)
    quantile = t_quantile(confidence, degrees)
    below = quantile * math.sqrt(sum(stretch.below**2 * spread / size for spread, stretch, size in parts))
    above = quantile * math.sqrt(sum(stretch.above**2 * spread / size for spread, stretch, size in parts))
    said = [f"over {len(cells)} combinations of levels"] if len(cells) > len(groups) else []
    if all(alike(cell.values) for cell in varying.values()):
        said.append(f"all {sum(size for _, _, size in parts)} runs gave the same value, to a step of what is counted")
    said += _skewed([stretch for _, stretch, _ in parts])
    method = "t" if len(cells) == 1 else "Welch"
    return Interval(estimate, estimate - below, estimate + above, confidence, method), "; ".join(said)


def _of_differences(interval: Interval, varying: Mapping[Cell, _InCell], how: str) -> tuple[Interval, str]:
    """`interval`, of what is left when something common was taken out, stretched where a part of it is skewed. Where
    nothing is left of the spread, each cell has that of a step."""
    half = interval.high - interval.estimate
    size = min(len(cell.values) for cell in varying.values())
    magnitude = sum(cell.magnitude for cell in varying.values())
    if half <= _ROUNDING * magnitude:
        steps = [cell.grain for cell in varying.values()]
        if None in steps or size < 2:
            nothing = replace(interval, low=math.nan, high=math.nan)
            return nothing, f"{how}; no difference is left between runs, and no step of the value is known"
        total = sum((step or 0.0) ** 2 / len(cell.values) for step, cell in zip(steps, varying.values(), strict=True))
        half = t_quantile(interval.level, size - 1) * math.sqrt(total)
        return replace(interval, low=interval.estimate - half, high=interval.estimate + half), how
    spread = (half / t_quantile(interval.level, max(1, size - 1))) ** 2
    stretch = NORMAL
    for cell in varying.values():
        own = float(np.var(cell.values, ddof=1)) / len(cell.values) if len(cell.values) > 1 else 0.0
        if own > 0:
            stretch = stretch.at_least(stretch_of_sum(cell.values, cell.parts, interval.level), min(1.0, spread / own))
    return stretch.of(interval), "; ".join([how, *_skewed([stretch])])


def _skewed(stretches: Sequence[Stretch]) -> list[str]:
    """That values are skewed, where they are seen to be."""
    most = max((max(one.below, one.above) for one in stretches), default=1.0)
    if not any(one.is_seen for one in stretches):
        return []
    return [f"skewed or few values: the interval reaches up to {most:.2g} times as far as Student's"]


def _of_infinite(cells: Mapping[Cell, _InCell], confidence: float) -> tuple[Interval, str]:
    """Percentiles of delays where more was lost than they leave out, and times of transfers that had not ended: no
    spread is known, so that all runs of a cell must agree, often enough for a sign test, or be one run made again."""
    finite = [[math.isfinite(value) for value in cell.values] for cell in cells.values()]
    with np.errstate(invalid="ignore"):
        estimate = float(
            np.sum([value for cell in cells.values() for value in cell.values if not math.isfinite(value)])
        )
    runs = sum(map(len, finite))
    many = runs - sum(map(sum, finite))
    how = f"infinite in {many} of {runs} runs: too much was lost there, or a transfer had not ended"
    agree = all(len(set(own)) == 1 for own in finite)
    if not agree:
        how += "; no mean is known then: compare shares, such as share(x < 3 s), which are never infinite"
        return Interval(estimate, math.nan, math.nan, confidence, "exact"), how
    fewest = min(map(len, finite))
    exact = all(is_exact(cell.runs) for cell in cells.values())
    if not math.isnan(estimate) and (exact or equal_values_decide(fewest, confidence)):
        return Interval(estimate, estimate, estimate, confidence, "exact"), how
    return Interval(estimate, math.nan, math.nan, confidence, "exact"), f"{how}; more repetitions may decide"


def _by_repetition(cells: Mapping[Cell, _InCell]) -> tuple[list[float], int] | None:
    """The sum of each repetition that every cell has, over all cells, and how many runs are of others; `None` where
    repetitions do not share their seeds, or fewer than two are whole."""
    sums: dict[object, list[float]] = {}
    for cell in cells.values():
        for run, value in zip(cell.runs, cell.values, strict=True):
            seed = run.run.record.get("seed")
            if seed is None:
                return None
            sums.setdefault(seed, []).append(value)
    whole = [sum(values) for values in sums.values() if len(values) == len(cells)]
    left_out = sum(len(values) for values in sums.values() if len(values) != len(cells))
    return (whole, left_out) if len(whole) > 1 else None


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
