"""A sum of means of groups whose values are of several blocks, such as machines, by least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from twinnet.stats import Interval, Samples, TestResult, t_quantile, t_test_of_means

__all__ = ["BlockedContrast", "blocked_contrast"]

Vector = npt.NDArray[np.float64]
_FREE = 1e-9
"""The share of a value's error that is left in its residual, below which it is none."""


@dataclass(frozen=True)
class BlockedContrast:
    """The sum of groups' means with the effects of blocks taken out.

    Attributes
    ----------
    estimate
        The sum.
    values
        The values of each group without the effects of blocks, as far apart as they are if their own errors alone make
        the residuals.
    variances
        What each group adds to the square of the standard error of the sum.
    own
        How much of the errors of a group is left in its residuals, beside none of blocks: half of them where there is
        one value of each of two groups in every block, for the other half is in those of the other group.
    degrees_of_freedom
        Those of that square.
    """

    estimate: float
    values: tuple[Vector, ...]
    variances: tuple[float, ...]
    own: tuple[float, ...]
    degrees_of_freedom: float

    def interval(self, level: float = 0.95) -> Interval:
        """The confidence interval of the sum by Student's t."""
        half = t_quantile(level, self.degrees_of_freedom) * math.sqrt(sum(self.variances))
        return Interval(self.estimate, self.estimate - half, self.estimate + half, level, "blocks")

    @property
    def test(self) -> TestResult:
        """The test that the sum is zero."""
        found = t_test_of_means(self.estimate, (math.sqrt(sum(self.variances)), self.degrees_of_freedom))
        return replace(found, name="t in blocks")


def blocked_contrast(
    samples: Sequence[Samples], blocks: Sequence[Sequence[str]], scales: Sequence[float]
) -> BlockedContrast | None:
    """The sum of the groups' means with the blocks' effects taken out: a randomised block design, by least squares.

    The model is additive: a value of group g in block b is `mean_g + scale_g * effect_b` and an error (Searle 1971,
    Linear Models, chapter 7). Each value may have a variance of its own: the standard error is HC2 (MacKinnon and White
    1985, Journal of Econometrics 29), and its degrees of freedom are Satterthwaite's (Bell and McCaffrey 2002, Survey
    Methodology 28) with one variance for each group. Blocks need not hold all groups, nor as many values of each. With
    two groups and one value of each in every block this is the paired t test, and with one block Welch's.

    Parameters
    ----------
    samples
        The values of each group; for the difference of two groups the second with its sign changed.
    blocks
        The block of each value.
    scales
        How much of a block's effect the values of each group hold: 1 and -1 for a difference.

    Returns
    -------
    BlockedContrast or None
        `None` where the blocks do not permit it: no block says the groups apart, or nothing is left to tell the spread
        from.
    """
    values = np.concatenate([np.asarray(one, dtype=np.float64) for one in samples])
    group_of = np.repeat(np.arange(len(samples)), [len(one) for one in samples])
    names = np.array([name for one in blocks for name in one])
    if names.size != values.size:
        raise ValueError(f"{values.size} values have {names.size} blocks; give one for each")
    groups = (group_of[:, None] == np.arange(len(samples))).astype(np.float64)
    inside = (names[:, None] == np.unique(names)).astype(np.float64)
    # Centred: where a block's effect does not cancel, the sum is given for the mean of the blocks as they were used.
    of_blocks = np.asarray(scales, dtype=np.float64)[group_of, None] * (inside - inside.mean(axis=0))
    design = np.hstack([groups, of_blocks])
    inverse = np.linalg.pinv(design)
    wanted = np.concatenate([np.ones(len(samples)), np.zeros(inside.shape[1])])
    rank = int(np.linalg.matrix_rank(design))
    if values.size <= rank or not np.allclose(wanted @ inverse @ design, wanted, atol=1e-8):
        return None
    fitted, weights = inverse @ values, wanted @ inverse
    residuals = values - design @ fitted
    # What rounding leaves of values that are all alike is no spread.
    if (residuals**2).mean() <= (1e-12 * float(np.abs(values).max(initial=0.0))) ** 2:
        residuals = np.zeros(values.size)
    base = np.linalg.svd(design, full_matrices=False)[0][:, :rank]
    # A value that the model meets whatever it is tells nothing of its own error.
    free = 1 - (base**2).sum(axis=1)
    is_free = free > _FREE
    inverse_free = np.where(is_free, 1 / np.where(is_free, free, 1.0), 0.0)
    squares = np.where(is_free, residuals**2, 0.0)
    left, sizes = groups.T @ np.where(is_free, free, 0.0), groups.sum(axis=0)
    shared = float(squares.sum()) / (values.size - rank)
    of_groups = groups.T @ squares / np.maximum(left, _FREE)
    of_groups[left <= _FREE] = shared
    spreads: Vector = of_groups[group_of]
    errors = weights**2 * np.where(is_free, squares * inverse_free, spreads)
    degrees = _degrees_of_squares(base, spreads, weights**2 * inverse_free)
    alone = (1 - 1 / sizes)[group_of] * inverse_free
    without = fitted[group_of] + residuals * alone
    own = np.clip(left / np.maximum(sizes - 1, 1), _FREE, 1.0)
    places = [group_of == place for place in range(len(samples))]
    return BlockedContrast(
        float(wanted @ fitted),
        tuple(without[place] for place in places),
        tuple(float(errors[place].sum()) for place in places),
        tuple(own.tolist()),
        min(degrees, float(values.size - rank)),
    )


def _degrees_of_squares(base: Vector, spreads: Vector, weights: Vector) -> float:
    """Satterthwaite's degrees of freedom of the sum of the squares of residuals with these weights: twice the square of
    its mean over its variance, of normal errors with the variances `spreads`. The model is spanned by the orthonormal
    `base`, and no square matrix of all values is made."""
    scaled = spreads[:, None] * base
    between = base.T @ scaled
    # The residuals' covariance is that of the errors and a part of low rank, P G P'.
    size = base.shape[1]
    parts = np.hstack([base, scaled])
    middle = np.block([[between, -np.eye(size)], [-np.eye(size), np.zeros((size, size))]])
    low = ((parts @ middle) * parts).sum(axis=1)
    mean = float((weights * (spreads + low)).sum())
    crossed = (parts.T * weights) @ parts @ middle
    half_variance = float((weights**2 * spreads**2).sum() + 2 * (weights**2 * spreads * low).sum())
    half_variance += float(np.trace(crossed @ crossed))
    return max(1.0, mean**2 / half_variance) if half_variance > 0 and mean > 0 else math.inf
