"""Intervals of means of values that are skewed: Student's, wider on the side where few values lie far out.

Student's interval holds the truth as often as it says for values that are near normal. Of skewed ones (losses, tails,
completion times) a small sample rarely has the values that lie far out: its mean is too low, and so is its deviation.
Where positive values look more like a lognormal law than a normal one, the interval reaches as far as that of the
lognormal mean too.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Sequence
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
    "NORMAL",
    "Part",
    "Stretch",
    "difference_interval",
    "lognormal_bounds",
    "mean_interval",
    "permutation_test",
    "stretch_of",
    "stretch_of_sum",
]

_QUANTILES = 400
_PERMUTATIONS = 5000
_MOST = 100.0
"""Half widths of Student's interval: beyond so many, the sample bounds the mean in no useful way."""
_NARROW = 0.25
"""A coefficient of variation up to which the two laws are alike."""
_FEWEST, _FEW = 5, 10
_WIDE = 0.5
"""A coefficient of variation above which fewer than `_FEW` values do not show of which law they are; fewer than
`_FEWEST` never do."""
_ENOUGH = 8
"""Values that show a skew by themselves, also above a base that all have."""
_NINE_OF_TEN = 1.2816
"""The quantile of the normal law."""
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
class Part:
    """One term of a sum: its value in each run, with its sign; its least step; and of a share the greatest value."""

    values: Sequence[float]
    grain: float | None = None
    top: float | None = None


def mean_interval(samples: Samples, level: float, grain: float | None = None) -> Interval:
    """The interval of the mean by Student's t, stretched where the values are skewed (:func:`stretch_of`)."""
    return stretch_of(samples, level, grain).of(t_interval(samples, level))


def stretch_of(samples: Samples, level: float, grain: float | None = None, top: float | None = None) -> Stretch:
    """How far the interval of the mean of `samples` reaches beyond Student's.

    Where values are all of one sign and vary by more than a quarter of their mean, and either are more likely under a
    lognormal law than under a normal one, both with the deviation that fits them best, or are too few to show which:
    fewer than ten that vary by more than half of it, or fewer than five. Values of any sign, or above a base that all
    have, where there are eight or more and their skewness shows. Otherwise, and where there are two, not at all.

    Parameters
    ----------
    samples
        The values.
    level
        The confidence level.
    grain
        The least step of a value: values that are zero are moved by it.
    top
        The greatest possible value of a share, whose distance from it may be what is skewed.
    """
    values = np.asarray(samples, dtype=np.float64)
    if values.size < 3 or alike(values):
        return NORMAL
    if values.max() <= 0:
        return stretch_of(-values, level, grain, None if top is None else -top).turned
    if top is not None and values.mean() > top / 2 >= 0 and values.min() >= 0:
        return stretch_of(top - values, level, grain).turned
    if values.min() == 0 and grain is not None:
        values = values + grain
    least = float(values.min())
    found = Stretch(1.0, _reach(values, level)) if least > 0 and _may_be_skewed(values) else NORMAL
    if found != NORMAL and least <= float(np.median(values)) - least:
        # No base is below them.
        return found
    return found.at_least(Stretch(_reach_of_shifted(-values, level), _reach_of_shifted(values, level)))


def _reach(values: Vector, level: float) -> float:
    """How far the upper bound of the mean of a lognormal law is from the mean, over half of Student's interval."""
    half = t_quantile(level, values.size - 1) * float(np.std(values, ddof=1)) / math.sqrt(values.size)
    return _seen((lognormal_bounds(values, level)[1] - float(values.mean())) / half)


def _reach_of_shifted(values: Vector, level: float) -> float:
    """The same of a lognormal law that begins a little below the least value, where many values are skewed to above:
    further than the skewness of nine normal samples of ten (its deviation: Fisher 1930)."""
    size = values.size
    if size < _ENOUGH:
        return 1.0
    apart = values - values.mean()
    skewness = float((apart**3).mean() / (apart**2).mean() ** 1.5)
    if skewness < _NINE_OF_TEN * math.sqrt(6 * (size - 2) / ((size + 1) * (size + 3))):
        return 1.0
    least = float(values.min())
    below = max(_BELOW * (float(np.median(values)) - least), _OF_DEVIATION * float(values.std()))
    return _reach(values - least + below, level)


def stretch_of_sum(sums: Samples, parts: Sequence[Part], level: float) -> Stretch:
    """That of a sum in each run: its own, and that of each of its parts, as far as the part's spread is in the sum."""
    found = stretch_of(sums, level) if len(parts) > 1 else NORMAL
    total = float(np.var(sums))
    for part in parts:
        own = float(np.var(part.values))
        if own > 0:
            found = found.at_least(stretch_of(part.values, level, part.grain, part.top), min(1.0, total / own))
    return found


def _may_be_skewed(values: Vector) -> bool:
    """The ratio of likelihoods of the two laws (Cox 1961); with few values that are far apart it decides nothing."""
    deviation, mean, logs = float(values.std()), float(values.mean()), np.log(values)
    if values.size == 2 or deviation <= _NARROW * mean:
        return False
    few = values.size < _FEWEST or (values.size < _FEW and deviation > _WIDE * mean)
    return few or math.log(deviation) > math.log(float(logs.std())) + float(logs.mean())


def difference_interval(first: Samples, second: Samples, level: float) -> tuple[Interval, TestResult]:
    """The difference of two means, first minus second, with its test: Welch's, and where a side is skewed, its interval
    stretched (:func:`stretch_of`) and the test by permutations (:func:`permutation_test`)."""
    stretches = stretch_of(first, level), stretch_of(second, level)
    found = welch_interval(first, second, level)
    if stretches == (NORMAL, NORMAL):
        return found, welch_t_test(first, second)
    errors = [math.sqrt(float(np.var(side, ddof=1)) / len(side)) for side in (first, second)]
    quantile = (found.high - found.low) / 2 / math.hypot(*errors)
    turned = stretches[0], stretches[1].turned
    below = quantile * math.hypot(*(one.below * error for one, error in zip(turned, errors, strict=True)))
    above = quantile * math.hypot(*(one.above * error for one, error in zip(turned, errors, strict=True)))
    low, high = found.estimate - below, found.estimate + above
    return Interval(found.estimate, low, high, level, "Welch, skewed"), permutation_test(first, second)


def permutation_test(first: Samples, second: Samples, seed: int = 0) -> TestResult:
    """Two-sided test that two samples are of one law, by Welch's statistic under permutations (Janssen 1997, Statistics
    and Probability Letters 36, 9-21): of all of them up to 5000, else of 4999 that are drawn, repeatable by `seed`."""
    a, b = (np.asarray(side, dtype=np.float64) for side in (first, second))
    both = np.concatenate([a, b])
    if math.comb(both.size, a.size) <= _PERMUTATIONS:
        chosen = np.array(list(itertools.combinations(range(both.size), a.size)))
    else:
        generator = np.random.default_rng(seed)
        drawn = [generator.permutation(both.size)[: a.size] for _ in range(_PERMUTATIONS - 1)]
        chosen = np.array([np.arange(a.size), *drawn])
    inside = np.zeros((len(chosen), both.size), dtype=bool)
    np.put_along_axis(inside, chosen, values=True, axis=1)
    (mean, variance), (other_mean, other_variance) = _moments(both, inside), _moments(both, ~inside)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.abs(mean - other_mean) / np.sqrt(variance / a.size + other_variance / b.size)
    seen = float(statistics[0])
    return TestResult("permutations", seen, float((np.nan_to_num(statistics) >= seen * (1 - 1e-9)).mean()))


def _moments(values: Vector, inside: npt.NDArray[np.bool_]) -> tuple[Vector, Vector]:
    """The mean and the variance of the `values` that each row of `inside` chooses."""
    counts = inside.sum(axis=1)
    means = inside @ values / counts
    squares = (inside * (values - means[:, None]) ** 2).sum(axis=1)
    return means, squares / (counts - 1)


def lognormal_bounds(values: Sequence[float] | Vector, level: float) -> tuple[float, float]:
    """The bounds of the mean of a lognormal law: its generalised confidence interval (Krishnamoorthy and Mathew 2003,
    Journal of Statistical Planning and Inference 115, 103-121).

    The pivot `m - Z s / sqrt(n) / sqrt(U / (n - 1)) + s^2 / (2 U / (n - 1))` of the logarithm of the mean, with Z
    standard normal and U chi-squared with n - 1 degrees of freedom, is integrated over U, and not drawn.
    """
    return _lognormal_bounds(tuple(map(float, values)), level)


@lru_cache(maxsize=1024)
def _lognormal_bounds(values: tuple[float, ...], level: float) -> tuple[float, float]:
    logs = np.log(np.array(values))
    mean, deviation = float(logs.mean()), float(logs.std(ddof=1))
    variances = _chi_squared(logs.size - 1) / (logs.size - 1)
    centres = mean + deviation**2 / (2 * variances)
    errors = deviation / math.sqrt(logs.size) / np.sqrt(variances)
    least, most = float((centres - 10 * errors).min()), float((centres + 10 * errors).max())
    below, find = _scipy("special").ndtr, _scipy("optimize").brentq

    def bound(share: float) -> float:
        def beyond(at: float) -> float:
            return float(below((at - centres) / errors).mean()) - share

        return math.exp(min(float(find(beyond, least, most, xtol=1e-6)), 700.0))

    return bound(0.5 - level / 2), bound(0.5 + level / 2)


def _scipy(name: str) -> Any:
    """A module of scipy, which carries no type hints and is imported when it is first needed."""
    return importlib.import_module(f"scipy.{name}")


@lru_cache(maxsize=64)
def _chi_squared(degrees: int) -> Vector:
    """Quantiles of the law in the middle of equal shares."""
    shares = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.asarray(_scipy("special").chdtri(degrees, 1 - shares), dtype=np.float64)
