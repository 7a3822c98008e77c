"""Statistics of measurements: descriptions, intervals, tests and effect sizes, each with its source.

scipy is imported by the functions that need it: it takes most of a second to import.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = [
    "Description",
    "Effect",
    "Interval",
    "Samples",
    "TestResult",
    "alike",
    "anderson_darling",
    "bootstrap_interval",
    "cliffs_delta",
    "describe",
    "hedges_g",
    "holm",
    "kolmogorov_smirnov",
    "mann_whitney_u",
    "quantile",
    "shapiro_wilk",
    "student_t_test",
    "t_interval",
    "t_quantile",
    "welch_interval",
    "welch_t_test",
]

Samples = Sequence[float] | npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Attributes
    ----------
    estimate, low, high
        In the unit of the samples; `low` and `high` are NaN where the samples do not allow an interval.
    level
        The confidence level, between 0 and 1.
    method
        How it was computed.
    """

    estimate: float
    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True, slots=True)
class Description:
    """The descriptive statistics of a sample; all but `count` in the unit of the samples."""

    count: int
    mean: float
    std: float
    min: float
    p25: float
    median: float
    p75: float
    max: float


@dataclass(frozen=True, slots=True)
class TestResult:
    """The outcome of a statistical test.

    Attributes
    ----------
    name
        The test.
    statistic
        Its statistic.
    p_value
        Probability of a statistic at least as extreme under the null hypothesis.
    degrees_of_freedom
        Where the test has them.
    """

    __test__ = False

    name: str
    statistic: float
    p_value: float
    degrees_of_freedom: float | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """The size of a difference, with the word that its source gives to that size."""

    name: str
    value: float
    magnitude: Literal["negligible", "small", "medium", "large"]


def _vector(samples: Samples, least: int, what: str) -> Vector:
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"{what} takes one-dimensional samples, not an array of shape {values.shape}")
    if values.size < least:
        raise ValueError(f"{what} needs at least {least} samples, not {values.size}")
    if not np.isfinite(values).all():
        raise ValueError(f"{what} takes finite samples; leave out NaN and infinity first")
    return values


def _scipy(name: str) -> Any:
    """A module of scipy, imported when it is first needed; scipy carries no type hints."""
    return importlib.import_module(name)


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, for example 0.95; {level!r} does not")


def quantile(samples: Samples, probability: float) -> float:
    """The quantile at `probability`, linear between order statistics (Hyndman and Fan 1996, definition 7)."""
    return float(np.quantile(_vector(samples, 1, "a quantile"), probability))


def describe(samples: Samples) -> Description:
    """Describe `samples`; the standard deviation is the unbiased one (n - 1), NaN for a single sample.

    Examples
    --------
    >>> describe([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).mean
    5.0
    """
    values = _vector(samples, 1, "a description")
    p25, median, p75 = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    std = float(np.std(values, ddof=1)) if values.size > 1 else math.nan
    return Description(
        int(values.size), float(values.mean()), std, float(values.min()), p25, median, p75, float(values.max())
    )


def alike(samples: Samples) -> bool:
    """True if samples differ by no more than rounding leaves: such are one value, and tell no spread."""
    values = _vector(samples, 1, "a comparison of samples")
    return float(np.ptp(values)) <= 1e-12 * float(np.abs(values).max())


def t_interval(samples: Samples, level: float = 0.95) -> Interval:
    """Confidence interval of the mean from Student's t (Student 1908).

    One sample gives an interval with NaN bounds: it says nothing about the spread.

    Raises
    ------
    ValueError
        No samples, a sample that is not finite, or a level outside of (0, 1).
    """
    _check_level(level)
    values = _vector(samples, 1, "an interval of the mean")
    mean = float(values.mean())
    if values.size == 1:
        return Interval(mean, math.nan, math.nan, level, "t")
    half = t_quantile(level, values.size - 1) * float(np.std(values, ddof=1)) / math.sqrt(values.size)
    return Interval(mean, mean - half, mean + half, level, "t")


def t_quantile(level: float, degrees_of_freedom: float) -> float:
    """The half width of a two-sided interval at `level` in standard errors: Student's t at `degrees_of_freedom`."""
    special = _scipy("scipy.special")
    return float(special.stdtrit(degrees_of_freedom, 0.5 + level / 2))


def welch_interval(first: Samples, second: Samples, level: float = 0.95) -> Interval:
    """Confidence interval of `mean(first) - mean(second)`, unequal variances (Welch 1947, Satterthwaite 1946)."""
    _check_level(level)
    a, b = (_vector(first, 1, "a difference of means"), _vector(second, 1, "a difference of means"))
    difference = float(a.mean() - b.mean())
    if a.size < 2 or b.size < 2:
        return Interval(difference, math.nan, math.nan, level, "Welch")
    error, degrees = _welch(a, b)
    half = t_quantile(level, degrees) * error if error > 0 else 0.0
    return Interval(difference, difference - half, difference + half, level, "Welch")


def _welch(a: Vector, b: Vector) -> tuple[float, float]:
    """Standard error of the difference and Satterthwaite's degrees of freedom."""
    u, v = float(np.var(a, ddof=1)) / a.size, float(np.var(b, ddof=1)) / b.size
    if u + v == 0:
        return 0.0, float(a.size + b.size - 2)
    return math.sqrt(u + v), (u + v) ** 2 / (u**2 / (a.size - 1) + v**2 / (b.size - 1))


def bootstrap_interval(
    samples: Samples,
    statistic: Callable[[Vector], float] | None = None,
    level: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
    method: Literal["bca", "percentile"] = "bca",
) -> Interval:
    """Bootstrap confidence interval of `statistic` (the mean unless given), repeatable by its `seed`.

    `bca` is bias-corrected and accelerated (Efron 1987, J. Am. Stat. Assoc. 82); `percentile` is Efron's first (1979).
    Samples that are all alike give an interval without width.
    """
    _check_level(level)
    values = _vector(samples, 2, "a bootstrap")
    if not 100 <= resamples <= 1_000_000:
        raise ValueError(f"a bootstrap takes 100 to 1000000 resamples, not {resamples}")
    generator = np.random.default_rng(seed)
    if statistic is None:
        estimate = float(values.mean())
        draws = np.concatenate(
            [
                values[generator.integers(0, values.size, (min(1000, resamples - begin), values.size))].mean(axis=1)
                for begin in range(0, resamples, 1000)
            ]
        )
        jackknife = (values.sum() - values) / (values.size - 1)
    else:
        estimate = float(statistic(values))
        draws = np.array([statistic(values[generator.integers(0, values.size, values.size)]) for _ in range(resamples)])
        jackknife = np.array([statistic(np.delete(values, index)) for index in range(values.size)])
    tails = (0.5 - level / 2, 0.5 + level / 2)
    if np.ptp(draws) == 0:
        return Interval(estimate, estimate, estimate, level, f"bootstrap {method}")
    if method == "bca":
        tails = _bca_tails(draws, jackknife, estimate, tails)
    low, high = (float(value) for value in np.quantile(draws, tails))
    return Interval(estimate, low, high, level, f"bootstrap {method}")


def _bca_tails(draws: Vector, jackknife: Vector, estimate: float, tails: tuple[float, float]) -> tuple[float, float]:
    special = _scipy("scipy.special")
    below = (float(np.sum(draws < estimate)) + 0.5 * float(np.sum(draws == estimate))) / draws.size
    bias = float(special.ndtri(min(max(below, 0.5 / draws.size), 1 - 0.5 / draws.size)))
    deviation = jackknife.mean() - jackknife
    spread = float(np.sum(deviation**2)) ** 1.5
    acceleration = float(np.sum(deviation**3)) / (6 * spread) if spread > 0 else 0.0

    def adjusted(tail: float) -> float:
        z = bias + float(special.ndtri(tail))
        return float(special.ndtr(bias + z / (1 - acceleration * z)))

    return adjusted(tails[0]), adjusted(tails[1])


def shapiro_wilk(samples: Samples) -> TestResult:
    """Shapiro-Wilk test of normality (Shapiro and Wilk 1965; Royston 1995, AS R94); 3 to 5000 samples."""
    stats = _scipy("scipy.stats")
    values = _vector(samples, 3, "the Shapiro-Wilk test")
    if values.size > 5000:
        raise ValueError(f"the Shapiro-Wilk test takes at most 5000 samples, not {values.size}; use Anderson-Darling")
    if np.ptp(values) == 0:
        return TestResult("Shapiro-Wilk", 1.0, 1.0)
    result = stats.shapiro(values)
    return TestResult("Shapiro-Wilk", float(result.statistic), float(result.pvalue))


_LARGEST_ANDERSON_DARLING = 13.0
"""The largest statistic for which the fit of the p-value holds (D'Agostino and Stephens 1986)."""


def anderson_darling(samples: Samples) -> TestResult:
    """Anderson-Darling test of normality, mean and variance estimated from the samples.

    The statistic is adjusted for the sample's size, the p-value from D'Agostino and Stephens 1986, Goodness-of-Fit
    Techniques, table 4.9 (case 3).
    """
    special = _scipy("scipy.special")
    values = np.sort(_vector(samples, 8, "the Anderson-Darling test"))
    spread = float(np.std(values, ddof=1))
    if spread == 0:
        raise ValueError("the Anderson-Darling test needs samples that differ")
    z = (values - values.mean()) / spread
    n = values.size
    rank = np.arange(1, n + 1)
    square = -n - float(np.sum((2 * rank - 1) * (special.log_ndtr(z) + special.log_ndtr(-z[::-1])))) / n
    adjusted = square * (1 + 0.75 / n + 2.25 / n**2)
    if adjusted > _LARGEST_ANDERSON_DARLING:
        # The fit below turns back upwards there; at this statistic it is below 1e-30.
        p = 0.0
    elif adjusted >= 0.6:
        p = math.exp(1.2937 - 5.709 * adjusted + 0.0186 * adjusted**2)
    elif adjusted >= 0.34:
        p = math.exp(0.9177 - 4.279 * adjusted - 1.38 * adjusted**2)
    elif adjusted > 0.2:
        p = 1 - math.exp(-8.318 + 42.796 * adjusted - 59.938 * adjusted**2)
    else:
        p = 1 - math.exp(-13.436 + 101.14 * adjusted - 223.73 * adjusted**2)
    return TestResult("Anderson-Darling", adjusted, min(max(p, 0.0), 1.0))


def _two_sided_t(name: str, difference: float, error: float, degrees: float) -> TestResult:
    special = _scipy("scipy.special")
    if error == 0:
        same = difference == 0
        return TestResult(name, 0.0 if same else math.copysign(math.inf, difference), 1.0 if same else 0.0, degrees)
    t = difference / error
    return TestResult(name, t, float(2 * special.stdtr(degrees, -abs(t))), degrees)


def student_t_test(first: Samples, second: Samples) -> TestResult:
    """Student's two-sample t test, equal variances, two-sided (Student 1908, Fisher 1925)."""
    a, b = _vector(first, 2, "Student's t test"), _vector(second, 2, "Student's t test")
    degrees = a.size + b.size - 2
    pooled = (float(np.var(a, ddof=1)) * (a.size - 1) + float(np.var(b, ddof=1)) * (b.size - 1)) / degrees
    error = math.sqrt(pooled * (1 / a.size + 1 / b.size))
    return _two_sided_t("Student's t", float(a.mean() - b.mean()), error, float(degrees))


def welch_t_test(first: Samples, second: Samples) -> TestResult:
    """Welch's two-sample t test, unequal variances, two-sided (Welch 1947)."""
    a, b = _vector(first, 2, "Welch's t test"), _vector(second, 2, "Welch's t test")
    error, degrees = _welch(a, b)
    return _two_sided_t("Welch's t", float(a.mean() - b.mean()), error, degrees)


def t_test_of_means(difference: float, *errors: tuple[float, float]) -> TestResult:
    """Welch's t test of a `difference` of two means of which only the standard errors are known, two-sided.

    Parameters
    ----------
    difference
        Of the means.
    errors
        The standard error of each mean, in the same unit, and its degrees of freedom: samples less one. A mean without
        an error is taken as exact.
    """
    squares = [(error**2, degrees) for error, degrees in errors if error > 0]
    total = sum(square for square, _ in squares)
    degrees = total**2 / sum(square**2 / max(of, 1) for square, of in squares) if squares else 1.0
    return _two_sided_t("Welch's t", difference, math.sqrt(total), degrees)


def mann_whitney_u(first: Samples, second: Samples) -> TestResult:
    """Mann-Whitney U test, two-sided (Mann and Whitney 1947): exact for small samples without ties, else normal."""
    stats = _scipy("scipy.stats")
    a, b = (_vector(first, 1, "the Mann-Whitney test"), _vector(second, 1, "the Mann-Whitney test"))
    result = stats.mannwhitneyu(a, b, alternative="two-sided", method="auto")
    return TestResult("Mann-Whitney U", float(result.statistic), float(result.pvalue))


def kolmogorov_smirnov(first: Samples, second: Samples) -> TestResult:
    """Kolmogorov-Smirnov test of two samples, two-sided (Smirnov 1939): exact for up to 200 samples, else asymptotic.

    The statistic is the largest distance of the two empirical distribution functions.
    """
    stats = _scipy("scipy.stats")
    what = "the Kolmogorov-Smirnov test"
    a, b = _vector(first, 1, what), _vector(second, 1, what)
    result = stats.ks_2samp(a, b, method="exact" if max(a.size, b.size) <= 200 else "asymp")
    return TestResult("Kolmogorov-Smirnov", float(result.statistic), float(result.pvalue))


def hedges_g(first: Samples, second: Samples) -> Effect:
    """Hedges' g: the difference of means in pooled standard deviations, corrected for small samples.

    Hedges 1981, J. Educ. Stat. 6, with the exact correction; magnitudes as Cohen 1988 (0.2, 0.5, 0.8).
    """
    a, b = _vector(first, 2, "Hedges' g"), _vector(second, 2, "Hedges' g")
    degrees = a.size + b.size - 2
    pooled = (float(np.var(a, ddof=1)) * (a.size - 1) + float(np.var(b, ddof=1)) * (b.size - 1)) / degrees
    difference = float(a.mean() - b.mean())
    if pooled == 0:
        value = 0.0 if difference == 0 else math.copysign(math.inf, difference)
    else:
        correction = (
            math.exp(math.lgamma(degrees / 2) - 0.5 * math.log(degrees / 2) - math.lgamma((degrees - 1) / 2))
            if degrees > 1
            else 0.0
        )
        value = correction * difference / math.sqrt(pooled)
    return Effect("Hedges' g", value, _magnitude(abs(value), (0.2, 0.5, 0.8)))


def cliffs_delta(first: Samples, second: Samples) -> Effect:
    """Cliff's delta: P(first > second) - P(first < second) (Cliff 1993).

    Magnitudes as Romano et al. 2006 (0.147, 0.33, 0.474).
    """
    a, b = (np.sort(_vector(first, 1, "Cliff's delta")), np.sort(_vector(second, 1, "Cliff's delta")))
    less = int(np.searchsorted(b, a, side="left").sum())
    less_or_equal = int(np.searchsorted(b, a, side="right").sum())
    greater = a.size * b.size - less_or_equal
    value = (less - greater) / (a.size * b.size)
    return Effect("Cliff's delta", value, _magnitude(abs(value), (0.147, 0.33, 0.474)))


def _magnitude(value: float, bounds: tuple[float, float, float]) -> Literal["negligible", "small", "medium", "large"]:
    if value < bounds[0]:
        return "negligible"
    if value < bounds[1]:
        return "small"
    return "medium" if value < bounds[2] else "large"


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment for several comparisons (Holm 1979), in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    if any(not 0.0 <= p <= 1.0 for p in p_values):
        raise ValueError(f"p-values lie between 0 and 1: {list(p_values)!r}")
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for place, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = running
    return adjusted
