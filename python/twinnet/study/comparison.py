"""Two sets of results compared: every mean that both have, with the difference, its interval and a test."""

from __future__ import annotations

from dataclasses import dataclass

from twinnet.stats import Effect, Interval, TestResult, hedges_g, holm, welch_interval, welch_t_test
from twinnet.study.analysis import Analysis, PhaseMean

__all__ = ["Compared", "Comparison", "compare_results"]


@dataclass(frozen=True)
class Compared:
    """One mean in both results.

    Attributes
    ----------
    difference
        Second minus first, with its confidence interval; without one where a side has a single repetition.
    test, adjusted_p, effect
        Welch's test, its p-value adjusted by Holm's method, Hedges' g; `None` where a side has a single repetition.
    """

    first: PhaseMean
    second: PhaseMean
    difference: Interval
    test: TestResult | None
    adjusted_p: float | None
    effect: Effect | None


@dataclass(frozen=True)
class Comparison:
    """What both have, and how many means only one has (other levels, other durations)."""

    compared: list[Compared]
    only_first: int
    only_second: int


def compare_results(first: Analysis, second: Analysis) -> Comparison:
    """Compare the means of two results; those of the same measurement, levels, label and phase belong together."""
    of_first = {_key(one): one for one in first.means}
    of_second = {_key(one): one for one in second.means}
    pairs = [(one, of_second[key]) for key, one in of_first.items() if key in of_second]
    tested = [len(a.samples) > 1 and len(b.samples) > 1 for a, b in pairs]
    tests = [welch_t_test(b.samples, a.samples) for (a, b), test in zip(pairs, tested, strict=True) if test]
    adjusted = iter(zip(tests, holm([test.p_value for test in tests]), strict=True))
    level = first.specification.confidence
    compared: list[Compared] = []
    for (a, b), test in zip(pairs, tested, strict=True):
        result, p_value = next(adjusted) if test else (None, None)
        effect = hedges_g(b.samples, a.samples) if test else None
        compared.append(Compared(a, b, welch_interval(b.samples, a.samples, level), result, p_value, effect))
    return Comparison(compared, len(of_first) - len(pairs), len(of_second) - len(pairs))


def _key(one: PhaseMean) -> tuple[object, ...]:
    return one.measurement, tuple(sorted(one.levels.items())), one.label, one.phase
