"""Intervals of means of skewed values reach further than Student's, and those of near normal ones do not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from twinnet.stats import t_interval, welch_interval, welch_t_test
from twinnet.study.machine_blocks import difference_in_blocks, mean_of_repetitions
from twinnet.study.skew import (
    NORMAL,
    Sample,
    Stretch,
    difference_with_test,
    interval_of_sum,
    lognormal_bounds,
    mean_interval,
    stretch_of,
)

SKEWED = (0.1, 0.2, 0.3, 0.2, 3.0, 0.1, 0.5, 0.2)
NEAR_NORMAL = (10.1, 9.8, 10.4, 10.0, 10.9, 9.2)


def test_the_bounds_of_a_lognormal_mean_are_those_of_its_generalised_pivot_when_drawn() -> None:
    """Krishnamoorthy and Mathew 2003 draw the pivot; here it is integrated."""
    logs = np.log(np.array(SKEWED))
    random = np.random.default_rng(1)
    normal, squares = random.standard_normal(400_000), random.chisquare(len(SKEWED) - 1, 400_000)
    variances = squares / (len(SKEWED) - 1)
    deviation = float(logs.std(ddof=1))
    pivot = logs.mean() - normal * deviation / math.sqrt(len(SKEWED)) / np.sqrt(variances)
    pivot += deviation**2 / (2 * variances)
    wanted = np.exp(np.quantile(pivot, [0.025, 0.975]))
    assert lognormal_bounds(SKEWED, 0.95) == pytest.approx(tuple(wanted), rel=0.03)


@pytest.mark.parametrize(
    "samples",
    [NEAR_NORMAL, tuple(-one for one in NEAR_NORMAL), (9.1, 10.9), (5.0, 5.0, 5.0), (-1.0, 2.0, 30.0, 0.5), (7.0,)],
    ids=["near normal", "negative", "two that are near", "equal", "of both signs", "one"],
)
def test_these_are_not_called_skewed(samples: Sequence[float]) -> None:
    assert stretch_of(samples, 0.95) == NORMAL


def test_positive_skewed_values_reach_further_up_and_negative_ones_further_down() -> None:
    up = stretch_of(SKEWED, 0.95)
    assert up.above > 2 and up.below == 1
    assert stretch_of([-one for one in SKEWED], 0.95) == Stretch(up.above, up.below)
    plain, seen = t_interval(SKEWED, 0.95), mean_interval(SKEWED, 0.95)
    assert (seen.estimate, seen.low) == (plain.estimate, pytest.approx(plain.low)) and seen.method == "t, skewed"
    assert seen.high - seen.estimate == pytest.approx(up.above * (plain.high - plain.estimate))
    # It ends where the interval of the lognormal mean does.
    assert seen.high == pytest.approx(lognormal_bounds(SKEWED, 0.95)[1], rel=1e-6)


def test_two_values_that_are_not_near_reach_as_far_as_a_lognormal_law_with_a_sigma_of_two() -> None:
    two = (8.9, 11.1)
    assert mean_interval(two, 0.95).high == pytest.approx(lognormal_bounds(two, 0.95, largest=2.0)[1], rel=1e-6)
    assert mean_interval(two, 0.95).high > 5 * t_interval(two, 0.95).high
    # Of several samples of one kind, not all are near by chance.
    assert stretch_of(two, 0.95, alone=False) == NORMAL
    # Without a bound on sigma, two values bound the mean in no useful way.
    assert lognormal_bounds(two, 0.95)[1] > 1000 * lognormal_bounds(two, 0.95, largest=2.0)[1]


def test_two_values_beside_many_leave_no_more_degrees_of_freedom_than_equal_variances_have() -> None:
    near, many = (1.0, 1.001), tuple(1 + 0.1 * math.sin(place) for place in range(20))
    samples = [Sample(float(np.var(side, ddof=1)), len(side)) for side in (near, many)]
    plain, seen = welch_interval(near, many), interval_of_sum(0.0, samples, 0.95, "Welch")
    # 1.21 degrees of freedom instead of 19: 8.7 standard errors instead of 2.1.
    assert seen.high / (plain.high - plain.estimate) == pytest.approx(8.7 / 2.09, rel=0.05)
    same = [Sample(4.0, 5), Sample(9.0, 5)]
    five = interval_of_sum(0.0, same, 0.95, "Welch").high
    # Samples of three or more keep Welch's: 6.97 degrees of freedom.
    assert five == pytest.approx(2.367 * math.sqrt(13 / 5), rel=1e-3)


def test_zeros_are_moved_by_a_step_where_one_is_known() -> None:
    lost = (0.0, 0.0, 0.01, 0.0, 0.08)
    assert stretch_of(lost, 0.95) == NORMAL
    assert stretch_of(lost, 0.95, grain=0.001).above > 2


def test_a_share_near_one_is_skewed_downward() -> None:
    late = (0.001, 0.002, 0.001, 0.09, 0.003)
    in_time = [1 - one for one in late]
    assert stretch_of(in_time, 0.95) == NORMAL
    assert stretch_of(in_time, 0.95, top=1.0) == stretch_of(late, 0.95).turned
    assert stretch_of([-one for one in in_time], 0.95, top=-1.0) == stretch_of(late, 0.95)


def test_a_sample_that_bounds_no_mean_has_a_bound_far_away_and_not_none() -> None:
    seen = mean_interval((0.001, 10.0, 0.1), 0.95)
    assert math.isfinite(seen.high) and seen.high > 100


def test_near_normal_values_keep_student_and_welch_to_the_last_digit() -> None:
    other = (8.0, 8.4, 7.9)
    assert mean_of_repetitions(NEAR_NORMAL, 0.95) == t_interval(NEAR_NORMAL, 0.95)
    found = difference_in_blocks(NEAR_NORMAL, [""] * 6, other, [""] * 3, 0.95)
    assert found == (welch_interval(NEAR_NORMAL, other, 0.95), welch_t_test(NEAR_NORMAL, other))


def test_the_p_value_of_a_difference_with_a_skewed_side_is_that_of_its_interval() -> None:
    interval, test = difference_with_test(SKEWED, NEAR_NORMAL, 0.95)
    plain = welch_interval(SKEWED, NEAR_NORMAL, 0.95)
    assert test.name == "wider Welch's t" and interval.method == "Welch, wider"
    assert interval.low == pytest.approx(plain.low) and interval.high > plain.high
    turned, same = difference_with_test(NEAR_NORMAL, SKEWED, 0.95)
    assert (turned.low, turned.high) == pytest.approx((-interval.high, -interval.low))
    assert same.p_value == pytest.approx(test.p_value, rel=1e-3)
    # The interval at 1 - p ends at zero.
    at_p, _ = difference_with_test(SKEWED, NEAR_NORMAL, 1 - test.p_value)
    assert min(abs(at_p.low), abs(at_p.high)) < 0.01 * abs(at_p.estimate)


def test_a_p_value_below_five_percent_and_an_interval_over_zero_are_never_told_together() -> None:
    seen = {True: 0, False: 0}
    for place in range(150):
        random = np.random.default_rng([5, place])
        first, second = np.exp(1.2 * random.standard_normal(5)), 4 * np.exp(0.3 * random.standard_normal(5))
        interval, test = difference_with_test(first, second, 0.95)
        holds_zero = interval.low <= 0 <= interval.high
        assert (test.p_value >= 0.05) == holds_zero, place
        seen[holds_zero] += 1
    assert min(seen.values()) > 10
