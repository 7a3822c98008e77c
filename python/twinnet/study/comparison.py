"""Two sets of results compared: every mean that both have, with the difference, its interval and a test."""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinnet.stats import Effect, Interval, TestResult, hedges_g, holm
from twinnet.study.analysis import Analysis, PhaseMean
from twinnet.study.machine_blocks import apart, together

__all__ = ["Compared", "Comparison", "compare_results"]


@dataclass(frozen=True)
class Compared:
    """One mean in both results.

    Attributes
    ----------
    difference
        Second minus first, with its confidence interval; without bounds where a side has a single repetition, or where
        the repetitions of neither side differ. NaN where some runs of a side have no value: what is left of them is no
        sample. The intervals of all comparisons hold together (Bonferroni).
    test, adjusted_p, effect
        Welch's test, or the t test within machines where both have runs of the same several machines on the wall clock,
        its p-value adjusted by Holm's method, Hedges' g; `None` where a side has a single repetition, or where some
        runs have no value.
    """

    first: PhaseMean
    second: PhaseMean
    difference: Interval
    test: TestResult | None
    adjusted_p: float | None
    effect: Effect | None


@dataclass(frozen=True)
class Comparison:
    """The means that two sets of results share, the numbers of means that only one has (other levels, other
    durations), and a warning if the two were made on different machines."""

    compared: list[Compared]
    only_first: int
    only_second: int
    warning: str


def compare_results(first: Analysis, second: Analysis) -> Comparison:
    """Compare the means of two results; those of the same measurement, levels, label and phase belong together."""
    of_first = {_key(one): one for one in first.means}
    of_second = {_key(one): one for one in second.means}
    pairs = [(one, of_second[key]) for key, one in of_first.items() if key in of_second]
    level = first.specification.confidence
    whole = [not a.missing and not b.missing for a, b in pairs]
    samples = [
        (b.samples, b.blocks, a.samples, a.blocks) for (a, b), all_have in zip(pairs, whole, strict=True) if all_have
    ]
    tops = [a.top for (a, _), all_have in zip(pairs, whole, strict=True) if all_have]
    tested = iter(together(samples, level, tops))
    none = Interval(math.nan, math.nan, math.nan, level, "missing"), None
    differences = [next(tested) if all_have else none for all_have in whole]
    adjusted = iter(holm([test.p_value for _, test in differences if test is not None]))
    compared = [
        Compared(a, b, interval, None, None, None)
        if test is None
        else Compared(a, b, interval, test, next(adjusted), hedges_g(b.samples, a.samples))
        for (a, b), (interval, test) in zip(pairs, differences, strict=True)
    ]
    warning = apart(first.machines, second.machines)
    return Comparison(compared, len(of_first) - len(pairs), len(of_second) - len(pairs), warning)


def _key(one: PhaseMean) -> tuple[object, ...]:
    return one.measurement, tuple(sorted(one.levels.items())), one.label, one.phase
