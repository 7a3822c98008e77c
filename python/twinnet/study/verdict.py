"""Statements set against what was measured: supported, not supported or undecided, with the numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from twinnet.stats import Interval, blocked_contrast, t_interval, t_quantile
from twinnet.study.machine_blocks import block_of
from twinnet.study.predicate import Aggregate, Check, Comparison, Side
from twinnet.study.specification import Statement

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["ComparisonResult", "StatementResult", "Verdict", "evaluate_side", "judge"]

Verdict = Literal["supported", "not supported", "undecided"]
Levels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ComparisonResult:
    """One comparison of a check.

    Attributes
    ----------
    left, right
        Each side with its confidence interval; a side of numbers only has no width.
    difference
        Left minus right with its interval, from which the verdict follows.
    why
        Why it is undecided; empty otherwise.
    """

    comparison: Comparison
    verdict: Verdict
    left: Interval
    right: Interval
    difference: Interval
    repetitions: int
    why: str


@dataclass(frozen=True)
class StatementResult:
    """A statement with its verdict and the comparisons that it rests on."""

    statement: Statement
    verdict: Verdict
    comparisons: tuple[ComparisonResult, ...]


def judge(statement: Statement, check: Check, runs: Sequence[RunTables], confidence: float) -> StatementResult:
    """Judge `statement` by `runs`.

    A comparison is supported when the whole confidence interval of the difference of its sides lies on the side that it
    claims, not supported when the whole interval lies on the other, undecided between. All comparisons of a check must
    be supported; one that is not decides against it.
    """
    results = tuple(_compare(comparison, runs, confidence) for comparison in check)
    verdicts = {result.verdict for result in results}
    verdict: Verdict = "supported"
    if "not supported" in verdicts:
        verdict = "not supported"
    elif "undecided" in verdicts:
        verdict = "undecided"
    return StatementResult(statement, verdict, results)


def _compare(comparison: Comparison, runs: Sequence[RunTables], confidence: float) -> ComparisonResult:
    nothing = Interval(math.nan, math.nan, math.nan, confidence, "t")
    negative = tuple(type(term)(-term.factor, term.aggregate) for term in comparison.right)
    try:
        left, _ = evaluate_side(comparison.left, runs, confidence)
        right, _ = evaluate_side(comparison.right, runs, confidence)
        difference, repetitions = evaluate_side((*comparison.left, *negative), runs, confidence)
    except LookupError as error:
        return ComparisonResult(comparison, "undecided", nothing, nothing, nothing, 0, str(error.args[0]))
    low, high = difference.low, difference.high
    if comparison.operator in ("<", "<="):
        low, high = -high, -low
    strict = comparison.operator in ("<", ">")
    why = ""
    verdict: Verdict = "undecided"
    if math.isnan(low):
        why = "one repetition says nothing about the spread; repeat at least twice"
    elif low > 0 or (low == 0 and not strict):
        verdict = "supported"
    elif high < 0 or (high == 0 and strict):
        verdict = "not supported"
    else:
        why = "the confidence interval of the difference holds zero; more repetitions may decide"
    return ComparisonResult(comparison, verdict, left, right, difference, repetitions, why)


def evaluate_side(side: Side, runs: Sequence[RunTables], confidence: float) -> tuple[Interval, int]:
    """The mean over runs of a sum of terms with its confidence interval, and the number of runs it rests on.

    Terms on the same levels are added run by run, so that what varies together cancels; sums on different levels are
    independent samples, and their variances add with Satterthwaite's degrees of freedom (Welch 1947). Where several
    machines made the runs on the wall clock, what machines differ in is taken out (`stats.blocked_contrast`).

    Raises
    ------
    LookupError
        Nothing that a term selects was measured.
    """
    constant = sum(term.factor for term in side if term.aggregate is None)
    groups: dict[Levels, list[tuple[float, Aggregate]]] = {}
    for term in side:
        if term.aggregate is not None:
            groups.setdefault(term.aggregate.levels, []).append((term.factor, term.aggregate))
    if not groups:
        return Interval(constant, constant, constant, confidence, "constant"), 0
    chosen = [_chosen(runs, dict(levels)) for levels in groups]
    samples = [_sums(terms, own) for terms, own in zip(groups.values(), chosen, strict=True)]
    fewest = min(values.size for values in samples)
    if len(samples) == 1:
        interval = t_interval(samples[0], confidence)
        return _shifted(interval, constant), fewest
    mean = float(sum(values.mean() for values in samples)) + constant
    if fewest < 2:
        return Interval(mean, math.nan, math.nan, confidence, "Welch"), fewest
    blocks = [[block_of(run.run.record) for run in own] for own in chosen]
    if len({name for own in blocks for name in own}) > 1:
        scales = [sum(factor for factor, _ in terms) for terms in groups.values()]
        in_blocks = blocked_contrast(samples, blocks, scales, confidence)
        if in_blocks is not None:
            return _shifted(in_blocks[0], constant), fewest
    parts = [(float(values.var(ddof=1)) / values.size, values.size) for values in samples]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return Interval(mean, mean, mean, confidence, "Welch"), fewest
    degrees = variance**2 / sum(part**2 / (size - 1) for part, size in parts)
    half = t_quantile(confidence, degrees) * math.sqrt(variance)
    return Interval(mean, mean - half, mean + half, confidence, "Welch"), fewest


def _shifted(interval: Interval, by: float) -> Interval:
    return Interval(interval.estimate + by, interval.low + by, interval.high + by, interval.level, interval.method)


def _chosen(runs: Sequence[RunTables], levels: Mapping[str, str]) -> list[RunTables]:
    chosen = [run for run in runs if all(run.run.levels.get(name) == level for name, level in levels.items())]
    if not chosen:
        said = ", ".join(f"{name}={level}" for name, level in levels.items()) or "any levels"
        raise LookupError(f"no usable run with {said}")
    return chosen


def _sums(
    terms: Sequence[tuple[float, Aggregate]], runs: Sequence[RunTables]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(
        [sum(factor * run.value(aggregate) for factor, aggregate in terms) for run in runs], dtype=np.float64
    )
