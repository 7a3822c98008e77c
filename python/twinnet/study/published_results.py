"""Published figures beside what was measured: by how much they differ, and whether that says anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from twinnet.stats import Interval, TestResult, t_quantile, t_test_of_means
from twinnet.study.measured_quantity import SHARE_LESS_ONE, WITH_SIGN
from twinnet.study.natural_range import clipped, range_of_side
from twinnet.study.predicate import Term
from twinnet.study.published_rows import PublishedSides
from twinnet.study.specification import Published
from twinnet.study.verdict import evaluate_side

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = [
    "ABOUT_SHARE",
    "AS_PUBLISHED",
    "AS_PUBLISHED_SHARE",
    "BOUND_WORDS",
    "COMPARABLE",
    "DIFFERS",
    "LEVEL_OF_TESTS",
    "WORDS",
    "PublishedResult",
    "published_result",
    "share_above",
    "told_apart",
]

AS_PUBLISHED_SHARE = 0.05
"""A figure that differs by at most this share of the published one is as published."""
ABOUT_SHARE = 0.1
"""The same of a figure that was published as about so much."""
LEVEL_OF_TESTS = 0.05
"""Where the p-value of a test is above it, both means are comparable."""
AS_PUBLISHED, DIFFERS, UNTOLD = "as published", "differs", "cannot be told"
COMPARABLE, _WITHIN_DEVIATION = "comparable", "within the published deviation"
_WITHIN_RANGE, _KEPT, _BROKEN = "within the published range", "bound kept", "bound broken"
WORDS = (AS_PUBLISHED, COMPARABLE, _WITHIN_DEVIATION, _WITHIN_RANGE, _KEPT, DIFFERS, _BROKEN, UNTOLD)
"""All that can be said of a published figure that was measured here."""
BOUND_WORDS = {AS_PUBLISHED: _KEPT, DIFFERS: _BROKEN}
"""What is said of a bound instead of what would be said of a value."""


def told_apart(measured: Interval, value: tuple[float, float], allowed: float = 0.0) -> str:
    """Say whether what was measured is as published.

    Parameters
    ----------
    measured
        With its interval; bounds that are not known are NaN.
    value
        The least and the greatest that the published figure may be: the same number where it is one.
    allowed
        How far beyond these it may be.

    Returns
    -------
    str
        ``as published`` where the whole interval is near enough, ``differs`` where the estimate is not and the interval
        excludes the published value, ``cannot be told`` between. Without an interval the estimate shows what is as
        published, and nothing differs.
    """
    least, most = value[0] - allowed, value[1] + allowed
    # What rounding adds to an end is no distance.
    slack = 1e-9 * max((abs(end) for end in (least, most, measured.estimate) if math.isfinite(end)), default=0.0)
    known = not math.isnan(measured.low)
    low, high = (measured.low, measured.high) if known else (measured.estimate, measured.estimate)
    if least - slack <= low and high <= most + slack:
        return AS_PUBLISHED
    is_near = least - slack <= measured.estimate <= most + slack
    excludes = low > value[1] or high < value[0]
    return DIFFERS if known and excludes and not is_near else UNTOLD


@dataclass(frozen=True)
class PublishedResult:
    """A published figure beside what was measured.

    Attributes
    ----------
    published
        The figure, as the study's file has it.
    value, deviation
        The published value and its standard deviation, in `unit`; the deviation is NaN where none was published.
    measured
        The same quantity here, with its interval over runs; `None` where it was not measured.
    runs
        How many runs it is of.
    unit
        The unit of all.
    why
        Why it was not measured.
    top
        The upper end of a published range; else the value.
    ends
        The least and the greatest that the quantity can be.
    spread
        The standard deviation here, where one was published: of the values within a run, the mean over runs. NaN where
        there is none.
    """

    published: Published
    value: float
    deviation: float
    measured: Interval | None
    runs: int
    unit: str
    why: str = ""
    top: float = math.nan
    ends: tuple[float, float] = WITH_SIGN
    spread: float = math.nan

    @property
    def is_range(self) -> bool:
        """True if a range was published."""
        return not math.isnan(self.top)

    @property
    def is_bound(self) -> bool:
        """True if no value was published but what it is below or above."""
        return self.published.sense in ("below", "above")

    @property
    def shown(self) -> Interval | None:
        """What was measured, with an interval that does not leave what the quantity can be."""
        return None if self.measured is None else clipped(self.measured, self.ends)

    @property
    def difference(self) -> float:
        """By how much what was measured is above the published value, as a share of it; of a quantity over another,
        by how much their ratio is. NaN where that has no meaning, as of a bound or a range."""
        whole = abs(self._whole)
        if self.measured is None or whole == 0 or self.is_bound or self.is_range:
            return math.nan
        return (self.measured.estimate - self.value) / whole

    @property
    def _whole(self) -> float:
        """What a difference is a share of: the published value, or the ratio that it stands for."""
        return 1 + self.value if self.published.over else self.value

    @property
    def test(self) -> TestResult | None:
        """Welch's t test of both means, where the published one has a deviation and a number of samples.

        The error of the mean here is that over runs, none where they are one run or do not differ.
        """
        if self.measured is None or self.published.n is None or not self.deviation >= 0:
            return None
        half = (self.measured.high - self.measured.low) / 2
        error = half / t_quantile(self.measured.level, self.runs - 1) if self.runs > 1 and half > 0 else 0.0
        theirs = self.deviation / math.sqrt(self.published.n)
        difference = self.measured.estimate - self.value
        return t_test_of_means(difference, (error, self.runs - 1), (theirs, self.published.n - 1))

    @property
    def word(self) -> str:
        """One of `WORDS`, ``comparable`` with its p-value; empty where nothing was measured.

        A value is ``as published`` where the interval is within 5 % of it (10 % of one that is about so much);
        ``comparable`` where a test does not tell both apart at 5 %; without a published number of samples, ``within the
        published deviation``; else ``differs`` or ``cannot be told`` (:func:`told_apart`). A bound is kept or broken,
        and a range holds what was measured or not, by the same rule.
        """
        if self.measured is None:
            return ""
        if self.is_bound:
            allowed = (-math.inf, self.value) if self.published.sense == "below" else (self.value, math.inf)
            found = told_apart(self.measured, allowed)
            return BOUND_WORDS.get(found, found)
        if self.is_range:
            found = told_apart(self.measured, (self.value, self.top))
            return _WITHIN_RANGE if found == AS_PUBLISHED else found
        near = (ABOUT_SHARE if self.published.sense == "about" else AS_PUBLISHED_SHARE) * abs(self._whole)
        found = told_apart(self.measured, (self.value, self.value), near)
        if found == AS_PUBLISHED:
            return found
        test = self.test
        if test is not None and test.p_value > LEVEL_OF_TESTS:
            return f"{COMPARABLE} (p = {test.p_value:.2g})"
        if test is None and self.deviation >= 0:
            found = told_apart(self.measured, (self.value, self.value), max(near, self.deviation))
            return _WITHIN_DEVIATION if found == AS_PUBLISHED else found
        return found


def published_result(
    published: Published, sides: PublishedSides, unit: str, runs: Sequence[RunTables], confidence: float
) -> PublishedResult:
    """Set `published` beside what `runs` measured; both are in `unit`."""
    value = sum(term.factor for term in sides.value)
    deviation = sum(term.factor for term in sides.deviation) if sides.deviation else math.nan
    top = sum(term.factor for term in sides.to) if sides.to else math.nan
    try:
        seen = evaluate_side(sides.measured, runs, confidence)
        interval, count = seen.interval, seen.runs
        ends = range_of_side(sides.measured, runs[0].measurements)
        if sides.over:
            over = evaluate_side(sides.over, runs, confidence)
            interval, count = share_above(interval, over.interval), min(count, over.runs)
            has_sign = min(ends[0], range_of_side(sides.over, runs[0].measurements)[0]) < 0
            ends = WITH_SIGN if has_sign else SHARE_LESS_ONE
    except LookupError as error:
        return PublishedResult(published, value, deviation, None, 0, unit, str(error.args[0]), top)
    return PublishedResult(
        published, value, deviation, interval, count, unit, "", top, ends, _spread(sides, runs, confidence)
    )


def _spread(sides: PublishedSides, runs: Sequence[RunTables], confidence: float) -> float:
    """The deviation of the values of which `sides` measures the mean; NaN where it is no mean, or there is none."""
    if not sides.deviation or len(sides.measured) != 1:
        return math.nan
    (term,) = sides.measured
    if term.aggregate is None or term.aggregate.function != "mean":
        return math.nan
    try:
        side = (Term(abs(term.factor), replace(term.aggregate, function="std")),)
        return evaluate_side(side, runs, confidence).interval.estimate
    except LookupError:
        return math.nan


def share_above(first: Interval, second: Interval) -> Interval:
    """The share by which `first` is above `second`.

    Its interval is by the delta method, as of independent means (Casella and Berger, Statistical Inference, 5.5.4):
    where both vary together, it is too wide.

    Raises
    ------
    LookupError
        The second is zero, of which there is no share.
    """
    if second.estimate == 0:
        raise LookupError("what it is put over is zero")
    ratio = first.estimate / second.estimate
    halves = [(one.high - one.low) / 2 for one in (first, second)]
    half = math.hypot(halves[0], ratio * halves[1]) / abs(second.estimate)
    return Interval(ratio - 1, ratio - 1 - half, ratio - 1 + half, first.level, "delta")
