"""Published figures beside what was measured: by how much they differ, and whether that says anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinnet.stats import Interval, TestResult, t_quantile, t_test_of_means
from twinnet.study.published_rows import PublishedSides
from twinnet.study.specification import Published
from twinnet.study.verdict import evaluate_side

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["AS_PUBLISHED_SHARE", "PublishedResult", "published_result", "share_above"]

AS_PUBLISHED_SHARE = 0.05
"""A figure that differs by at most this share of the published one is as published."""
_ALPHA = 0.05


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
        The unit of all three.
    why
        Why it was not measured.
    """

    published: Published
    value: float
    deviation: float
    measured: Interval | None
    runs: int
    unit: str
    why: str = ""

    @property
    def difference(self) -> float:
        """By how much what was measured is above the published value, as a share of it; of a quantity over another,
        by how much their ratio is. NaN where that has no meaning."""
        whole = abs(self._whole)
        return math.nan if self.measured is None or whole == 0 else (self.measured.estimate - self.value) / whole

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
        """``as published`` where the figures differ by at most 5 %; ``comparable`` with the p-value where a test does
        not tell them apart at 5 %; without a published number of samples, ``within the published deviation``; else
        ``differs``. Empty where nothing was measured."""
        if self.measured is None:
            return ""
        difference = self.measured.estimate - self.value
        if abs(difference) <= AS_PUBLISHED_SHARE * abs(self._whole):
            return "as published"
        test = self.test
        if test is not None:
            return f"comparable (p = {test.p_value:.2g})" if test.p_value > _ALPHA else "differs"
        return "within the published deviation" if abs(difference) <= self.deviation else "differs"


def published_result(
    published: Published, sides: PublishedSides, unit: str, runs: Sequence[RunTables], confidence: float
) -> PublishedResult:
    """Set `published` beside what `runs` measured; both are in `unit`."""
    value = sum(term.factor for term in sides.value)
    deviation = sum(term.factor for term in sides.deviation) if sides.deviation else math.nan
    try:
        seen = evaluate_side(sides.measured, runs, confidence)
        interval, count = seen.interval, seen.runs
        if sides.over:
            over = evaluate_side(sides.over, runs, confidence)
            interval, count = share_above(interval, over.interval), min(count, over.runs)
    except LookupError as error:
        return PublishedResult(published, value, deviation, None, 0, unit, str(error.args[0]))
    return PublishedResult(published, value, deviation, interval, count, unit)


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
