"""Published figures beside what was measured: by how much they differ, and whether that says anything."""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinnet.stats import Interval, TestResult, t_quantile, t_test_of_means
from twinnet.study.specification import Published

__all__ = ["AS_PUBLISHED_SHARE", "PublishedResult"]

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
        """By how much what was measured is above the published value, as a share of it; NaN where that has no
        meaning."""
        if self.measured is None or self.value == 0:
            return math.nan
        return (self.measured.estimate - self.value) / abs(self.value)

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
        if abs(difference) <= AS_PUBLISHED_SHARE * abs(self.value):
            return "as published"
        test = self.test
        if test is not None:
            return f"comparable (p = {test.p_value:.2g})" if test.p_value > _ALPHA else "differs"
        return "within the published deviation" if abs(difference) <= self.deviation else "differs"
