"""Statements set against what was measured: supported, not supported or undecided, with the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from twinnet.stats import Interval
from twinnet.study.contrast import Evaluated, sum_of_means, without_rounding
from twinnet.study.extremes import extreme, is_extreme
from twinnet.study.natural_range import clipped, range_of_side
from twinnet.study.predicate import Check, Comparison, Side, Term
from twinnet.study.specification import Statement

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["ComparisonResult", "StatementResult", "Verdict", "compare", "evaluate_side", "judge"]

Verdict = Literal["supported", "not supported", "undecided"]
_BY_RANGE = "by what it can be, whatever is measured"


@dataclass(frozen=True)
class ComparisonResult:
    """One comparison of a check.

    Attributes
    ----------
    left, right
        Each side with its confidence interval; a side of numbers only has no width.
    difference
        Left minus right with its interval, from which the verdict follows.
    repetitions
        How many runs the term with the fewest rests on.
    why
        Why it is undecided, or which run decided against it; empty otherwise.
    how
        How the interval was made, and which unit has the least or greatest value.
    """

    comparison: Comparison
    verdict: Verdict
    left: Interval
    right: Interval
    difference: Interval
    repetitions: int
    why: str
    how: str = ""


@dataclass(frozen=True)
class StatementResult:
    """A statement with its verdict and the comparisons that it rests on."""

    statement: Statement
    verdict: Verdict
    comparisons: tuple[ComparisonResult, ...]


def judge(statement: Statement, check: Check, runs: Sequence[RunTables], confidence: float) -> StatementResult:
    """Judge `statement` by `runs`.

    A comparison is supported when the whole confidence interval of the difference of its sides lies on the side that it
    claims, not supported when the whole interval lies on the other, undecided between. The interval is no wider than
    what the difference can be: a loss is at most 100 %, whatever is measured. A claim about every unit
    (`max(...) < x`, `min(...) > x`) is not supported either when one run contradicts it. All comparisons of a check
    must be supported (an intersection-union test, which needs no correction); one that is not decides against it.
    """
    results = tuple(compare(comparison, runs, confidence) for comparison in check)
    verdicts = {result.verdict for result in results}
    verdict: Verdict = "supported"
    if "not supported" in verdicts:
        verdict = "not supported"
    elif "undecided" in verdicts:
        verdict = "undecided"
    return StatementResult(statement, verdict, results)


def evaluate_side(side: Side, runs: Sequence[RunTables], confidence: float) -> Evaluated:
    """The value of a sum of terms with its confidence interval.

    Means are over runs, by the design of the study (:func:`~twinnet.study.contrast.sum_of_means`); least and greatest
    values are those of the worst unit (:func:`~twinnet.study.extremes.extreme`). The bounds of both kinds are added,
    each at a level that leaves the sum the whole one (Bonferroni).

    Raises
    ------
    LookupError
        Nothing that a term selects was measured.
    """
    extremes = [term for term in side if is_extreme(term.aggregate)]
    if not extremes:
        return sum_of_means(side, runs, confidence)
    means = tuple(term for term in side if not is_extreme(term.aggregate))
    random = len(extremes) + any(term.aggregate is not None for term in means)
    level = 1 - (1 - confidence) / random
    total = sum_of_means(means, runs, level)
    parts = [total] if any(term.aggregate is not None for term in means) else []
    estimate, low, high = total.interval.estimate, total.interval.low, total.interval.high
    magnitude = abs(estimate)
    for term in extremes:
        if term.aggregate is None:
            continue
        found = extreme(term.aggregate, runs, level)
        ends = sorted((term.factor * found.interval.low, term.factor * found.interval.high))
        estimate, low, high = estimate + term.factor * found.interval.estimate, low + ends[0], high + ends[1]
        parts.append(found)
        magnitude += abs(term.factor * found.interval.estimate)
    how = "; ".join(dict.fromkeys(one.how for one in parts if one.how))
    units = "; ".join(dict.fromkeys(one.decided_by for one in parts if one.decided_by))
    interval = without_rounding(Interval(estimate, low, high, confidence, "extreme"), magnitude)
    return Evaluated(interval, min(one.runs for one in parts), how, units)


def compare(comparison: Comparison, runs: Sequence[RunTables], confidence: float) -> ComparisonResult:
    """Judge one comparison by `runs`, as :func:`judge` does."""
    nothing = Interval(math.nan, math.nan, math.nan, confidence, "t")
    try:
        left = evaluate_side(comparison.left, runs, confidence)
        right = evaluate_side(comparison.right, runs, confidence)
        if comparison.operator == "=":
            return _equivalent(comparison, left, right, runs, confidence)
        side = _less(comparison.left, comparison.right)
        difference = _clipped_side(side, runs, confidence)
    except LookupError as error:
        return ComparisonResult(comparison, "undecided", nothing, nothing, nothing, 0, str(error.args[0]))
    upward, strict = comparison.operator in (">", ">="), comparison.operator in ("<", ">")
    least, most = _range(side, runs)
    can_be = replace(difference.interval, low=least, high=most)
    verdict, why, how = _by_sign(can_be, upward, strict), "", _BY_RANGE
    if verdict == "undecided":
        verdict, how = _by_sign(difference.interval, upward, strict), difference.how
        why = _why_undecided(difference, can_be, upward) if verdict == "undecided" else ""
    if verdict != "not supported" and _speaks_of_every_unit(comparison, upward):
        seen = difference.interval.estimate if upward else -difference.interval.estimate
        if seen < 0 or (seen == 0 and strict):
            verdict, why = "not supported", "one run that contradicts it is enough"
    units = difference.decided_by or left.decided_by or right.decided_by
    how = "; ".join(one for one in (f"decided by {units}" if units else "", "" if why else how) if one)
    return ComparisonResult(
        comparison, verdict, left.interval, right.interval, difference.interval, difference.runs, why, how
    )


def _range(side: Side, runs: Sequence[RunTables]) -> tuple[float, float]:
    """The least and the greatest that `side` can be."""
    return range_of_side(side, runs[0].measurements if runs else {})


def _clipped_side(side: Side, runs: Sequence[RunTables], confidence: float) -> Evaluated:
    """`side` with its interval no wider than what it can be."""
    found = evaluate_side(side, runs, confidence)
    return replace(found, interval=clipped(found.interval, _range(side, runs)))


def _by_sign(difference: Interval, upward: bool, strict: bool) -> Verdict:
    low, high = (difference.low, difference.high) if upward else (-difference.high, -difference.low)
    if low > 0 or (low == 0 and not strict):
        return "supported"
    if high < 0 or (high == 0 and strict):
        return "not supported"
    return "undecided"


def _why_undecided(difference: Evaluated, can_be: Interval, upward: bool) -> str:
    if not math.isfinite(difference.interval.high - difference.interval.low):
        return difference.how
    how = f"{difference.how}; " if "skewed" in difference.how else ""
    if (can_be.high if upward else -can_be.low) <= 0:
        return f"{how}it cannot be beyond the bound, so no number of repetitions supports this: claim that it is near"
    return f"{how}the confidence interval of the difference holds zero; more repetitions may decide"


def _equivalent(
    comparison: Comparison, left: Evaluated, right: Evaluated, runs: Sequence[RunTables], confidence: float
) -> ComparisonResult:
    """Two one-sided tests (Schuirmann 1987), each at 1 - confidence: the interval at twice that lies within bounds."""
    level = 1 - 2 * (1 - confidence)
    apart, margin = _less(comparison.left, comparison.right), comparison.margin
    difference = _clipped_side(apart, runs, level)
    if evaluate_side(margin, runs, level).interval.estimate < 0:
        # A share of a side that is below zero.
        margin = _less((), margin)
    above = _clipped_side(_less(apart, margin), runs, level)
    below = _clipped_side((*apart, *margin), runs, level)
    sides = (_by_sign(above.interval, upward=False, strict=False), _by_sign(below.interval, upward=True, strict=False))
    verdict: Verdict = "undecided"
    if "not supported" in sides:
        verdict = "not supported"
    elif sides == ("supported", "supported"):
        verdict = "supported"
    why = ""
    if verdict == "undecided":
        how = f"{difference.how}; " if "skewed" in difference.how else ""
        is_known = math.isfinite(above.interval.high - above.interval.low)
        across = f"{how}the interval of the difference reaches across the bound; more repetitions may decide"
        why = across if is_known else difference.how
    how = "; ".join(one for one in ("two one-sided tests", "" if why else difference.how) if one)
    return ComparisonResult(
        comparison, verdict, left.interval, right.interval, difference.interval, difference.runs, why, how
    )


def _less(first: Side, second: Side) -> Side:
    return (*first, *(Term(-term.factor, term.aggregate) for term in second))


def _speaks_of_every_unit(comparison: Comparison, upward: bool) -> bool:
    """True if the claim is about every unit: one that contradicts refutes it. No mean is in it."""
    found = False
    for term in _less(comparison.left, comparison.right):
        if term.aggregate is None:
            continue
        if not is_extreme(term.aggregate):
            return False
        grows = term.factor > 0
        if (term.aggregate.function == "min") != (grows == upward):
            return False
        found = True
    return found
