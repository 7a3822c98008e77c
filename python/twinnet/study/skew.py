"""Intervals of means of values that are skewed: Student's, wider on the side where few values lie far out.

Student's interval holds the truth as often as it says for values that are near normal. Of skewed ones (losses, tails,
completion times) a small sample rarely has the values that lie far out: its mean is too low, and so is its deviation.
Where positive values look more like a lognormal law than a normal one, the interval reaches as far as that of the
lognormal mean too. A p-value belongs to the interval that is shown: it is below 5 % where that of 95 % leaves out zero.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from twinnet.stats import Interval, TestResult, alike, t_interval, t_quantile, welch_interval, welch_t_test

if TYPE_CHECKING:
    import numpy.typing as npt

    from twinnet.stats import Samples

    Vector = npt.NDArray[np.float64]

__all__ = [
    "MOST_SUMS",
    "NORMAL",
    "Part",
    "Sample",
    "Stretch",
    "difference_interval",
    "difference_with_test",
    "interval_of_sum",
    "lognormal_bounds",
    "mean_interval",
    "stretch_of",
    "stretch_of_rest",
    "stretch_of_sum",
    "tested_by",
]

_QUANTILES = 400
_STEPS_OF_P, _LEAST_P = 11, 1e-6
"""How often the logarithm of a p-value is halved, so that it is known to half a percent, and its least."""
_MOST = 100.0
"""Half widths of Student's interval: beyond so many, the sample bounds the mean in no useful way."""
_NARROW = 0.25
"""A coefficient of variation up to which the two laws are alike."""
_NARROW_OF_TWO = 0.1
"""The same of two values: these are often near each other by chance, also under laws with few values far out."""
_LARGEST_SIGMA = 2.0
"""Two values bound the sigma of a lognormal law in no useful way. With this one, values differ by a factor of 50 from
the middle to one of forty."""
_LEVEL_OF_TWO = 0.95
"""The least level for two values: at a lower one the bound of so large a sigma would not count."""
_FEWEST, _FEW = 5, 10
_WIDE = 0.4
"""A coefficient of variation above which fewer than `_FEW` values do not show of which law they are; fewer than
`_FEWEST` never do."""
_ENOUGH = 8
"""Values that show a skew by themselves, also above a base that all have."""
_NINE_OF_TEN, MOST_SUMS = 1.2816, 1.96
"""Quantiles of the normal law: the skewness of so many normal samples is less, to one side. Fewer of sums and of what
is left within machines are taken for skewed, for much of their skew is lost already."""
_BELOW, _OF_DEVIATION = 0.3, 0.2
"""Where the law of skewed values begins: so much of the distance from the least to the median below the least, and of
the deviation at least."""
_SEEN = 1.1
"""Less than this is no skew that matters: the interval stays Student's."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """How many times as far as Student's an interval reaches: below its estimate and above it, each at least 1."""

    below: float = 1.0
    above: float = 1.0

    @property
    def is_seen(self) -> bool:
        """True if it is wider: then the values are skewed, or too few to tell."""
        return self != NORMAL

    @property
    def turned(self) -> Stretch:
        """That of the values with their sign changed."""
        return Stretch(self.above, self.below)

    def of(self, interval: Interval) -> Interval:
        """`interval`, which reaches equally far to both sides, with both stretched."""
        half = interval.high - interval.estimate
        method = f"{interval.method}, skewed" if self.is_seen else interval.method
        low, high = interval.estimate - self.below * half, interval.estimate + self.above * half
        return Interval(interval.estimate, low, high, interval.level, method)

    def at_least(self, other: Stretch, share: float = 1.0) -> Stretch:
        """This, or `other` where that reaches further, of which a `share` counts."""
        below, above = (1 + (reach - 1) * share for reach in (other.below, other.above))
        return Stretch(_seen(max(self.below, below)), _seen(max(self.above, above)))


def _seen(reach: float) -> float:
    """`reach`, or 1 where it is too little to matter, and no more than what is of use."""
    return min(_MOST, reach) if reach > _SEEN else 1.0


NORMAL = Stretch()


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the samples whose means are added: the variance of its values, their number, and how far an interval of
    the sum reaches for it."""

    variance: float
    size: int
    stretch: Stretch = NORMAL


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a sum: its value in each run, with its sign; its least step; and the greatest that it can be, where
    there is one."""

    values: Sequence[float]
    grain: float | None = None
    top: float | None = None


def mean_interval(samples: Samples, level: float, grain: float | None = None, top: float | None = None) -> Interval:
    """The interval of the mean by Student's t, stretched where the values are skewed (:func:`stretch_of`)."""
    return stretch_of(samples, level, grain, top).of(t_interval(samples, level))


def stretch_of(
    samples: Samples,
    level: float,
    grain: float | None = None,
    top: float | None = None,
    alone: bool = True,
    shape: float = _NINE_OF_TEN,
) -> Stretch:
    """How far the interval of the mean of `samples` reaches beyond Student's.

    Where values are all of one sign and vary by more than a quarter of their mean, and either are more likely under a
    lognormal law than under a normal one, both with the deviation that fits them best, or are too few to show which:
    fewer than ten that vary by more than four tenths of it, or fewer than five. Two values that stand `alone`, if they
    vary by more than a tenth. Values of any sign, or above a base that all have, where there are eight or more and
    their skewness shows. Otherwise not at all.

    Parameters
    ----------
    samples
        The values.
    level
        The confidence level.
    grain
        The least step of a value: values that are zero are moved by it.
    top
        The greatest possible value, of a share or an index: the distance from it may be what is skewed.
    alone
        False for one sample of several of one kind: two values then count if they vary by more than four tenths, for
        not all samples are near by chance.
    shape
        The quantile of the skewness of normal samples beyond which many values are skewed by their shape.
    """
    values = np.asarray(samples, dtype=np.float64)
    if values.size < 2 or alike(values):
        return NORMAL
    if values.max() <= 0:
        return stretch_of(-values, level, grain, None if top is None else -top, alone, shape).turned
    if top is not None and values.mean() > top / 2 >= 0 and values.min() >= 0:
        return stretch_of(top - values, level, grain, None, alone, shape).turned
    if values.min() == 0 and grain is not None:
        values = values + grain
    least = float(values.min())
    found = Stretch(1.0, _reach(values, level)) if least > 0 and _may_be_skewed(values, alone) else NORMAL
    if found != NORMAL and least <= float(np.median(values)) - least:
        # No base is below them.
        return found
    return found.at_least(Stretch(_reach_of_shifted(-values, level, shape), _reach_of_shifted(values, level, shape)))


def _reach(values: Vector, level: float) -> float:
    """How far the upper bound of the mean of a lognormal law is from the mean, over half of Student's interval."""
    half = t_quantile(level, values.size - 1) * float(np.std(values, ddof=1)) / math.sqrt(values.size)
    largest, level = (_LARGEST_SIGMA, max(level, _LEVEL_OF_TWO)) if values.size == 2 else (math.inf, level)
    bound = _lognormal_bound(tuple(values.tolist()), 0.5 + level / 2, largest)
    return _seen((bound - float(values.mean())) / half)


def _reach_of_shifted(values: Vector, level: float, shape: float) -> float:
    """The same of a lognormal law that begins a little below the least value, where many values are skewed to above:
    further than the skewness of nine normal samples of ten (its deviation: Fisher 1930)."""
    size = values.size
    if size < _ENOUGH:
        return 1.0
    apart = values - values.mean()
    skewness = float((apart**3).mean() / (apart**2).mean() ** 1.5)
    if skewness < shape * math.sqrt(6 * (size - 2) / ((size + 1) * (size + 3))):
        return 1.0
    least = float(values.min())
    below = max(_BELOW * (float(np.median(values)) - least), _OF_DEVIATION * float(values.std()))
    return _reach(values - least + below, level)


def stretch_of_sum(
    sums: Samples, parts: Sequence[Part], level: float, alone: bool = True, shape: float = _NINE_OF_TEN
) -> Stretch:
    """That of a sum in each run: its own, and that of each of its parts, as far as the part's spread is in the sum. The
    shape of many values is that of the sum."""
    grain, top = (parts[0].grain, parts[0].top) if len(parts) == 1 else (None, None)
    found = stretch_of(sums, level, grain, top, alone, shape)
    total = float(np.var(sums))
    for part in parts if len(parts) > 1 else ():
        own = float(np.var(part.values))
        if own > 0:
            of_part = stretch_of(part.values, level, part.grain, part.top, alone, math.inf)
            found = found.at_least(of_part, min(1.0, total / own))
    return found


def stretch_of_rest(rest: Samples, values: Samples, parts: Sequence[Part], level: float) -> Stretch:
    """That of the `rest` of `values` when something common was taken out, which may leave few values of one sign: that
    of the values themselves, too, as far as their spread is left."""
    found, own = stretch_of_sum(rest, parts, level, shape=MOST_SUMS), float(np.var(values))
    if own == 0:
        return found
    return found.at_least(stretch_of_sum(values, parts, level, shape=math.inf), min(1.0, float(np.var(rest)) / own))


def _may_be_skewed(values: Vector, alone: bool) -> bool:
    """The ratio of likelihoods of the two laws (Cox 1961); with few values that are far apart it decides nothing."""
    deviation, mean, logs = float(values.std()), float(values.mean()), np.log(values)
    of_two = _NARROW_OF_TWO if alone else _WIDE
    if deviation <= (of_two if values.size == 2 else _NARROW) * mean:
        return False
    few = values.size < _FEWEST or (values.size < _FEW and deviation > _WIDE * mean)
    return few or math.log(deviation) > math.log(float(logs.std())) + float(logs.mean())


def interval_of_sum(estimate: float, samples: Sequence[Sample], level: float, method: str) -> Interval:
    """The interval of a sum of the means of independent samples, stretched by what each of them adds.

    Degrees of freedom are Satterthwaite's (Welch 1947). Where a sample has two values, they are no more than samples
    with equal variances have: two that are near each other by chance leave the spread to the larger samples.
    """
    errors = [sample.variance / sample.size for sample in samples]
    quantile = t_quantile(level, _degrees(samples))
    below = quantile * math.sqrt(sum(one.stretch.below**2 * error for one, error in zip(samples, errors, strict=True)))
    above = quantile * math.sqrt(sum(one.stretch.above**2 * error for one, error in zip(samples, errors, strict=True)))
    return Interval(estimate, estimate - below, estimate + above, level, method)


def _degrees(samples: Sequence[Sample]) -> float:
    found = _satterthwaite([(one.variance / one.size, one.size) for one in samples])
    if min(one.size for one in samples) > 2:
        return found
    return min(found, _satterthwaite([(1 / one.size, one.size) for one in samples]))


def _satterthwaite(errors: Sequence[tuple[float, int]]) -> float:
    """The degrees of freedom of the sum of squared standard errors of samples of these sizes (Satterthwaite 1946)."""
    total = sum(error for error, _ in errors)
    return 1 / sum((error / total) ** 2 / (size - 1) for error, size in errors) if total > 0 else math.inf


def difference_interval(first: Samples, second: Samples, level: float, top: float | None = None) -> Interval:
    """The difference of two means, first minus second: Welch's interval, and where a side is skewed or has two values a
    wider one (:func:`interval_of_sum`).

    Parameters
    ----------
    first, second
        The values of both sides, two or more of each.
    level
        The confidence level.
    top
        The greatest possible value, where there is one.
    """
    plain = welch_interval(first, second, level)
    stretches = stretch_of(first, level, None, top), stretch_of(second, level, None, top).turned
    samples = [
        Sample(float(np.var(side, ddof=1)), len(side), stretch)
        for side, stretch in zip((first, second), stretches, strict=True)
    ]
    found = interval_of_sum(plain.estimate, samples, level, "Welch, wider")
    # What rounding does is no other interval.
    return found if found.high - found.low > (plain.high - plain.low) * (1 + 1e-9) else plain


def difference_with_test(
    first: Samples, second: Samples, level: float, top: float | None = None
) -> tuple[Interval, TestResult]:
    """The difference of two means with its interval (:func:`difference_interval`) and the test that it is zero:
    Welch's, or where the interval is wider than Welch's, the test by that (:func:`tested_by`)."""
    found, plain = difference_interval(first, second, level, top), welch_t_test(first, second)
    if found.method == "Welch":
        return found, plain
    return found, tested_by(lambda level: difference_interval(first, second, level, top), plain, level)


def tested_by(interval_at: Callable[[float], Interval], plain: TestResult, level: float) -> TestResult:
    """The test by an interval: the p-value is the least at which the interval at 1 less it leaves out zero.

    Parameters
    ----------
    interval_at
        The interval at a confidence level.
    plain
        The test of the interval that is not stretched, whose statistic it has.
    level
        The level of the interval that is shown: the p-value is below 1 less it where that leaves out zero.
    """
    least, most = math.log(_LEAST_P), 0.0

    def holds_zero(log: float) -> bool:
        found = interval_at(1 - math.exp(log))
        return found.low <= 0 <= found.high

    shown = math.log1p(-level)
    least, most = (shown, most) if holds_zero(shown) else (least, shown)
    for _ in range(_STEPS_OF_P):
        middle = (least + most) / 2
        least, most = (middle, most) if holds_zero(middle) else (least, middle)
    return TestResult(f"wider {plain.name}", plain.statistic, math.exp(least if shown >= most else most))


def lognormal_bounds(values: Sequence[float] | Vector, level: float, largest: float = math.inf) -> tuple[float, float]:
    """The bounds of the mean of a lognormal law: its generalised confidence interval (Krishnamoorthy and Mathew 2003,
    Journal of Statistical Planning and Inference 115, 103-121).

    The pivot `m - Z T / sqrt(n) + T^2 / 2` of the logarithm of the mean, with `T = s / sqrt(U / (n - 1))`, Z standard
    normal and U chi-squared with n - 1 degrees of freedom, is integrated over U, and not drawn. `largest`: the sigma of
    the law, which T stands for, is no larger, if that of the sample is not.
    """
    given = tuple(map(float, values))
    return _lognormal_bound(given, 0.5 - level / 2, largest), _lognormal_bound(given, 0.5 + level / 2, largest)


@lru_cache(maxsize=1024)
def _lognormal_bound(values: tuple[float, ...], share: float, largest: float) -> float:
    """The bound that the mean is below with the probability `share`."""
    logs = np.log(np.array(values))
    mean, deviation = float(logs.mean()), float(logs.std(ddof=1))
    variances = _chi_squared(logs.size - 1) / (logs.size - 1)
    sigmas = np.minimum(deviation / np.sqrt(variances), max(largest, deviation))
    centres = mean + sigmas**2 / 2
    errors = sigmas / math.sqrt(logs.size)
    below, find = _scipy("special").ndtr, _scipy("optimize").brentq

    def beyond(at: float) -> float:
        return float(below((at - centres) / errors).mean()) - share

    least, most = float((centres - 10 * errors).min()), float((centres + 10 * errors).max())
    return math.exp(min(float(find(beyond, least, most, xtol=1e-6)), 700.0))


def _scipy(name: str) -> Any:
    """A module of scipy, which carries no type hints and is imported when it is first needed."""
    return importlib.import_module(f"scipy.{name}")


@lru_cache(maxsize=64)
def _chi_squared(degrees: int) -> Vector:
    """Quantiles of the law in the middle of equal shares."""
    shares = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.asarray(_scipy("special").chdtri(degrees, 1 - shares), dtype=np.float64)
