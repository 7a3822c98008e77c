"""Confidence intervals of correlated samples by batch means, and the distance of samples from a law.

Waiting times of frames that follow each other are correlated, so the spread of single waits says nothing of the spread
of their mean. Means of batches that are long beside the queue's memory are nearly independent, and their spread does
(Law and Kelton 2000, Simulation Modeling and Analysis, 9.5.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from twinnet.stats import t_interval

__all__ = ["LEVEL", "SIGNIFICANCE", "batch_interval", "distance_from_law", "distance_limit", "lag_one_correlation"]

LEVEL = 0.999
"""Of every interval: the table has some dozens of rows, and with 95 % one in twenty true laws would be refused."""
SIGNIFICANCE = 1 - LEVEL


def batch_interval(means: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of `means` and the bounds of its confidence interval at `LEVEL` by Student's t."""
    found = t_interval(means, LEVEL)
    return found.estimate, found.low, found.high


def lag_one_correlation(means: Sequence[float]) -> float:
    """Return the correlation of neighbouring batch means: near 0 where batches are long enough, or all are equal."""
    mean = sum(means) / len(means)
    spread = sum((one - mean) ** 2 for one in means)
    if spread == 0:
        return 0.0
    return sum((a - mean) * (b - mean) for a, b in pairwise(means)) / spread


def distance_from_law(samples: Sequence[float], cumulative: Callable[[float], float]) -> float:
    """Return Kolmogorov's distance of `samples` from a law: the largest difference of their distribution functions.

    Equal samples are taken together, and the law is asked just below each value too, so that laws with jumps are
    measured rightly.
    """
    ordered = sorted(samples)
    count = len(ordered)
    worst = 0.0
    place = 0
    while place < count:
        value = ordered[place]
        after = place
        while after < count and ordered[after] == value:
            after += 1
        below = cumulative(math.nextafter(value, -math.inf))
        worst = max(worst, abs(below - place / count), abs(cumulative(value) - after / count))
        place = after
    return worst


def distance_limit(count: int) -> float:
    """Return the distance that `count` samples of the law itself exceed with probability `SIGNIFICANCE`.

    Massey 1951, The Kolmogorov-Smirnov Test for Goodness of Fit: sqrt(-ln(a/2) / 2n) for large n. For laws with jumps
    the true probability is smaller.
    """
    return math.sqrt(-math.log(SIGNIFICANCE / 2) / 2 / count)
