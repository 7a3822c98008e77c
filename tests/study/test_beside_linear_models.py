"""A mean over levels beside the contrast of a linear model, as statsmodels 0.15 fits it.

The numbers of statsmodels are those of ``OLS(delay, cells).fit(cov_type="HC2", use_t=True).t_test(row)``, where the
row is the mean of the three cells of CoDel less that of the three of FIFO.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from twinnet.stats import t_quantile
from twinnet.study.contrast import sum_of_means
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Aggregate, Term

CELLS = {
    ("codel", "low"): (10.1, 9.8, 10.4, 10.0),
    ("codel", "middle"): (12.2, 11.7, 12.9, 12.4),
    ("codel", "high"): (15.3, 14.1, 16.0, 15.2),
    ("fifo", "low"): (10.3, 10.0, 10.6, 9.9),
    ("fifo", "middle"): (18.5, 17.2, 19.9, 18.8),
    ("fifo", "high"): (41.0, 35.5, 46.2, 39.7),
}
"""Delays in ms of a design of two by three, whose factors interact."""
MEASURED = {"delay": Measurement(of="delay")}


def codel_less_fifo(counts: tuple[int, ...]) -> Any:
    """The difference over all loads where the cells have so many repetitions."""
    runs: list[Any] = []
    for ((queue, load), values), count in zip(CELLS.items(), counts, strict=True):
        for place, value in enumerate(values[:count]):
            record = {"clock": "virtual", "seed": hash((queue, load, place))}
            run = SimpleNamespace(levels={"queue": queue, "load": load}, record=record)
            given = {"fingerprint": (queue, load, place), "value": lambda _, value=value: value}
            runs.append(SimpleNamespace(run=run, is_drawn=True, grain=lambda _: None, measurements=MEASURED, **given))
    sides = ((1.0, "codel"), (-1.0, "fifo"))
    terms = tuple(Term(factor, Aggregate("mean", "delay", (), None, (("queue", one),))) for factor, one in sides)
    return sum_of_means(terms, runs, 0.95).interval


@pytest.mark.parametrize(
    ("counts", "estimate", "standard_error"),
    [((4, 4, 4, 4, 4, 4), -10.625, 0.7764919927564063), ((4, 2, 3, 2, 4, 3), -10.83055555555556, 1.067711438568204)],
    ids=["balanced", "unbalanced"],
)
def test_a_mean_over_levels_is_the_contrast_of_the_model_with_interactions(
    counts: tuple[int, ...], estimate: float, standard_error: float
) -> None:
    """The same estimate, and the standard error of ``cov_type="HC2"``: each cell has a variance of its own."""
    found = codel_less_fifo(counts)
    cells = [np.array(values[:count]) for values, count in zip(CELLS.values(), counts, strict=True)]
    parts = np.array([cell.var(ddof=1) / cell.size / 9 for cell in cells])
    degrees = float(parts.sum() ** 2 / (parts**2 / (np.array(counts) - 1)).sum())
    assert found.estimate == pytest.approx(estimate, rel=1e-6)
    assert (found.high - found.low) / 2 / t_quantile(0.95, degrees) == pytest.approx(standard_error, rel=1e-6)


@pytest.mark.parametrize(
    ("deviations", "counts", "own_variances", "one_variance"),
    [
        ((1, 1, 1, 1, 1, 1), (4, 4, 4, 4, 4, 4), 0.9616, 0.9535),
        ((1, 1, 1, 1, 3, 10), (4, 4, 4, 4, 4, 4), 0.9462, 0.9021),
        ((1, 1, 1, 1, 3, 10), (6, 6, 6, 6, 4, 3), 0.9331, 0.6989),
    ],
    ids=["equal", "unequal", "unequal and unbalanced"],
)
def test_one_variance_for_all_cells_holds_the_truth_too_rarely(
    deviations: tuple[int, ...], counts: tuple[int, ...], own_variances: float, one_variance: float
) -> None:
    """Intervals of 95 % in 10,000 simulated studies without a difference; the same numbers each time."""
    chance, sizes = np.random.default_rng(1), np.array(counts)
    cells = [chance.normal(0, deviation, (10_000, count)) for deviation, count in zip(deviations, counts, strict=True)]
    factors = np.array([1, 1, 1, -1, -1, -1]) / 3
    differences = factors @ np.array([cell.mean(axis=1) for cell in cells])
    variances = np.array([cell.var(axis=1, ddof=1) for cell in cells])
    parts = variances * (factors**2 / sizes)[:, None]
    degrees = parts.sum(axis=0) ** 2 / (parts**2 / (sizes - 1)[:, None]).sum(axis=0)
    own = scipy.stats.t.ppf(0.975, degrees) * np.sqrt(parts.sum(axis=0))
    pooled = ((sizes - 1) @ variances) / (sizes - 1).sum()
    one = scipy.stats.t.ppf(0.975, (sizes - 1).sum()) * np.sqrt(pooled * (factors**2 / sizes).sum())
    assert np.mean(np.abs(differences) <= own) == pytest.approx(own_variances, abs=0.0005)
    assert np.mean(np.abs(differences) <= one) == pytest.approx(one_variance, abs=0.0005)
