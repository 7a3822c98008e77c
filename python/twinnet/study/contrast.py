"""A sum of means over runs with its interval, by the design of the study: levels are blocks, repetitions the sample.

The levels of a study are chosen on purpose, so what they do is no chance. A term that leaves factors out is the mean of
the means of their combinations (cells), each with the same weight, and only what repetitions of one cell differ by
makes an interval. Repetitions that do not differ are one run, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from twinnet.stats import Interval, alike, t_interval, t_quantile
from twinnet.study.blocked_contrast import BlockedContrast, blocked_contrast
from twinnet.study.cells import (
    Cell,
    InCell,
    cell_of,
    chosen_runs,
    equal_values_decide,
    is_exact,
    no_step_known,
    one_repetition,
    values_of,
)
from twinnet.study.machine_blocks import block_of, stretched
from twinnet.study.predicate import Aggregate, Side
from twinnet.study.skew import (
    MOST_SUMS,
    NORMAL,
    Part,
    Stretch,
    interval_of_sum,
    stretch_of,
    stretch_of_rest,
    stretch_of_sum,
)

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["Evaluated", "skewed_in_words", "sum_of_means", "without_rounding"]

_ROUNDING = 1e-12


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


def sum_of_means(side: Side, runs: Sequence[RunTables], confidence: float) -> Evaluated:
    """The sum of the terms of `side`, of which none is a least or greatest value, with its confidence interval.

    Terms are added run by run, so that what varies together in a run cancels. Cells are independent samples, and their
    variances add with Satterthwaite's degrees of freedom (Welch 1947). There are three exceptions. Where cells share
    their seeds (common random numbers), the sums of each repetition are the sample. Where several machines made the
    runs, what machines differ in is taken out (`blocked_contrast`). Cells of one repetition each are compared
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
    cells: dict[Cell, InCell] = {}
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


def _add(cells: dict[Cell, InCell], chosen: Sequence[RunTables], terms: Sequence[tuple[float, Aggregate]]) -> None:
    """Add the terms to the sums of the runs that they speak of."""
    of_terms = [values_of(aggregate, chosen) for _, aggregate in terms]
    for name in dict.fromkeys(map(cell_of, chosen)):
        places = [place for place, run in enumerate(chosen) if cell_of(run) == name]
        cell = cells.setdefault(name, InCell([chosen[place] for place in places]))
        for (factor, aggregate), values in zip(terms, of_terms, strict=True):
            cell.add(factor, aggregate, [values[place] for place in places])


def _interval(cells: Mapping[Cell, InCell], groups: Sequence[Cell], confidence: float) -> tuple[Interval, str]:
    if not all(math.isfinite(value) for cell in cells.values() for value in cell.values):
        return _of_infinite(cells, groups, confidence)
    estimate = float(sum(np.mean(cell.values) for cell in cells.values()))
    varying = {name: cell for name, cell in cells.items() if not (alike(cell.values) and is_exact(cell.runs))}
    if not varying:
        return Interval(estimate, estimate, estimate, confidence, "exact"), "exact: repetitions do not differ"
    for cell in varying.values():
        if not cell.is_bounded and len(cell.values) > 1:
            return Interval(estimate, math.nan, math.nan, confidence, "t"), no_step_known(len(cell.values), confidence)
    return _of_varying(cells, varying, groups, estimate, confidence)


def _of_varying(
    cells: Mapping[Cell, InCell],
    varying: Mapping[Cell, InCell],
    groups: Sequence[Cell],
    estimate: float,
    confidence: float,
) -> tuple[Interval, str]:
    blocks = {name: [block_of(run.run.record) for run in cell.runs] for name, cell in cells.items()}
    if len({machine for own in blocks.values() for machine in own}) > 1:
        scales = [cell.scale for cell in cells.values()]
        found = blocked_contrast([cell.values for cell in cells.values()], list(blocks.values()), scales)
        if found is not None:
            return _within_machines(found, cells, confidence)
    of_repetitions = _by_repetition(varying) if len(varying) > 1 else None
    if of_repetitions is not None:
        sums, left_out = of_repetitions
        rest = sum(float(np.mean(cell.values)) for name, cell in cells.items() if name not in varying)
        said = "repetition by repetition, of the same seeds"
        said += f"; {left_out} runs of repetitions that not all levels have are left out" if left_out else ""
        return _of_sums(sums, varying, rest, confidence, said)
    if any(len(cell.values) < 2 for cell in varying.values()):
        return _of_single_runs(cells, groups, estimate, confidence)
    samples = [cell.sample(confidence, alone=len(cells) == len(groups)) for cell in varying.values()]
    variance = sum(one.variance / one.size for one in samples)
    if variance == 0 or not math.isfinite(variance):
        # Terms times zero, and values whose squares are no numbers.
        bound = estimate if variance == 0 else math.nan
        how = "nothing that is counted changes it" if variance == 0 else "the values are too large to be squared"
        return Interval(estimate, bound, bound, confidence, "exact"), how
    said = [f"over {len(cells)} combinations of levels"] if len(cells) > len(groups) else []
    if all(alike(cell.values) for cell in varying.values()):
        said.append(f"all {sum(one.size for one in samples)} runs gave the same value, to a step of what is counted")
    said += skewed_in_words([one.stretch for one in samples])
    interval = interval_of_sum(estimate, samples, confidence, "t" if len(cells) == 1 else "Welch")
    return interval, "; ".join(said)


def _within_machines(found: BlockedContrast, cells: Mapping[Cell, InCell], confidence: float) -> tuple[Interval, str]:
    """What machines differ in taken out; each cell stretched as its values without that are."""
    how = "within machines"
    plain = found.interval(confidence)
    if _is_nothing(plain, cells):
        return _of_steps(plain, cells, how)
    stretches = [
        NORMAL if alike(rest) else stretch_of_rest(rest.tolist(), cell.values, cell.parts, confidence)
        for rest, cell in zip(found.values, cells.values(), strict=True)
    ]
    return stretched(found, stretches, confidence), "; ".join([how, *skewed_in_words(stretches)])


def _of_sums(
    sums: Sequence[float], varying: Mapping[Cell, InCell], rest: float, confidence: float, how: str
) -> tuple[Interval, str]:
    """The interval of the mean of `sums` of several cells, and `rest`: stretched where the sums are skewed, or a cell,
    as far as its spread is left in them."""
    plain = t_interval(sums, confidence)
    if _is_nothing(plain, varying):
        return _of_steps(_shifted(plain, rest), varying, how)
    stretch = stretch_of(sums, confidence, shape=MOST_SUMS)
    spread = float(np.var(sums, ddof=1)) / len(sums)
    for cell in varying.values():
        own = float(np.var(cell.values, ddof=1)) / len(cell.values) if len(cell.values) > 1 else 0.0
        if own > 0:
            of_cell = stretch_of_sum(cell.values, cell.parts, confidence, shape=math.inf)
            stretch = stretch.at_least(of_cell, min(1.0, spread / own))
    return _shifted(stretch.of(plain), rest), "; ".join([how, *skewed_in_words([stretch])])


def _is_nothing(interval: Interval, cells: Mapping[Cell, InCell]) -> bool:
    """True if no more is left of a spread than rounding leaves."""
    return interval.high - interval.estimate <= _ROUNDING * sum(cell.magnitude for cell in cells.values())


def _of_steps(interval: Interval, cells: Mapping[Cell, InCell], how: str) -> tuple[Interval, str]:
    """`interval`, of which nothing is left, where each cell has the spread of a step."""
    steps, size = [cell.grain for cell in cells.values()], min(len(cell.values) for cell in cells.values())
    if None in steps or size < 2:
        nothing = replace(interval, low=math.nan, high=math.nan)
        return nothing, f"{how}; no difference is left between runs, and no step of the value is known"
    total = sum((step or 0.0) ** 2 / len(cell.values) for step, cell in zip(steps, cells.values(), strict=True))
    half = t_quantile(interval.level, size - 1) * math.sqrt(total)
    return replace(interval, low=interval.estimate - half, high=interval.estimate + half), how


def skewed_in_words(stretches: Sequence[Stretch]) -> list[str]:
    """That values are skewed, where they are seen to be."""
    most = max((max(one.below, one.above) for one in stretches), default=1.0)
    if not any(one.is_seen for one in stretches):
        return []
    times = f"{most:.2g}" if most < 99.5 else f"{most:.0f}"
    return [f"skewed or few values: the interval reaches up to {times} times as far as Student's"]


def _of_infinite(cells: Mapping[Cell, InCell], groups: Sequence[Cell], confidence: float) -> tuple[Interval, str]:
    """Percentiles of delays where more was lost than they leave out, and times of transfers that had not ended: no
    spread is known. All runs of a cell must agree, often enough for a sign test, or be one run made again. Else the
    runs that are finite give one bound: their mean is no greater than that of all."""
    finite = [[math.isfinite(value) for value in cell.values] for cell in cells.values()]
    with np.errstate(invalid="ignore"):
        estimate = float(
            np.sum([value for cell in cells.values() for value in cell.values if not math.isfinite(value)])
        )
    runs = sum(map(len, finite))
    many = runs - sum(map(sum, finite))
    how = f"infinite in {many} of {runs} runs: too much was lost there, or a transfer had not ended"
    nothing = Interval(estimate, math.nan, math.nan, confidence, "exact")
    agree = all(len(set(own)) == 1 for own in finite)
    if agree:
        fewest = min(map(len, finite))
        exact = all(is_exact(cell.runs) for cell in cells.values())
        if not math.isnan(estimate) and (exact or equal_values_decide(fewest, confidence)):
            return Interval(estimate, estimate, estimate, confidence, "exact"), how
        return nothing, f"{how}; more repetitions may decide"
    shares = "compare shares, such as share(x < 3 s), which are never infinite"
    if math.isinf(estimate) and all(map(any, finite)):
        places = [[place for place, is_finite in enumerate(own) if is_finite] for own in finite]
        rest = {name: cell.only(own) for (name, cell), own in zip(cells.items(), places, strict=True)}
        of_rest, _ = _interval(rest, groups, confidence)
        if not math.isnan(of_rest.low):
            ends, word = ((of_rest.low, math.inf), "less") if estimate > 0 else ((-math.inf, of_rest.high), "more")
            how += f"; the mean is no {word} than that of the others, and its other end is not known: {shares}"
            return Interval(estimate, *ends, confidence, "of finite runs"), how
    return nothing, f"{how}; no mean is known then: {shares}"


def _by_repetition(cells: Mapping[Cell, InCell]) -> tuple[list[float], int] | None:
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
    cells: Mapping[Cell, InCell], groups: Sequence[Cell], estimate: float, confidence: float
) -> tuple[Interval, str]:
    """Two groups of cells with a repetition each, compared within the levels of the other factors: the paired t test of
    a randomised block design. Elsewhere one repetition gives no interval."""
    why = one_repetition([run for cell in cells.values() for run in cell.runs])
    nothing = Interval(estimate, math.nan, math.nan, confidence, "t"), why
    if len(groups) != 2 or {name for name, _ in groups[0]} != {name for name, _ in groups[1]}:
        return nothing
    named = {name for name, _ in groups[0]}
    pairs: dict[Cell, list[InCell]] = {}
    for levels, cell in cells.items():
        if len(cell.values) != 1:
            return nothing
        pairs.setdefault(tuple(one for one in levels if one[0] not in named), []).append(cell)
    if any(len(pair) != 2 for pair in pairs.values()) or len(pairs) < 2:
        return nothing
    differences = [sum(cell.values[0] for cell in pair) * len(pairs) for pair in pairs.values()]
    if alike(differences):
        return nothing
    sides = [_side_of_pairs(side, len(pairs)) for side in zip(*pairs.values(), strict=True)]
    stretch = stretch_of_sum(differences, sides, confidence, shape=MOST_SUMS)
    found = stretch.of(t_interval(differences, confidence))
    said = (
        f"one repetition; paired over {len(pairs)} combinations of the other factors, as if they were drawn by chance"
    )
    return replace(found, method="paired"), "; ".join([said, *skewed_in_words([stretch])])


def _side_of_pairs(cells: Sequence[InCell], pairs: int) -> Part:
    """The values of one side of pairs, as large as they are in the difference."""
    steps, tops = [cell.grain for cell in cells], [cell.parts[0].top for cell in cells if len(cell.parts) == 1]
    step = None if None in steps else pairs * max(one or 0.0 for one in steps)
    top = tops[0] if len(tops) == len(cells) else None
    return Part([pairs * cell.values[0] for cell in cells], step, None if top is None else pairs * top)


def _shifted(interval: Interval, by: float) -> Interval:
    return Interval(interval.estimate + by, interval.low + by, interval.high + by, interval.level, interval.method)
