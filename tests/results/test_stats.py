"""Statistics against values from the literature, R and scipy."""

import math
import warnings

import numpy as np
import pytest
from twinnet import stats

# Student's sleep data (Student 1908), as in R's `sleep`.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_student_and_welch_give_what_r_gives_for_the_sleep_data():
    student, welch = (stats.student_t_test(SLEEP_1, SLEEP_2), stats.welch_t_test(SLEEP_1, SLEEP_2))
    assert student.statistic == pytest.approx(-1.8608, abs=5e-5)
    assert (student.degrees_of_freedom, student.p_value) == (18, pytest.approx(0.07919, abs=5e-6))
    assert welch.degrees_of_freedom == pytest.approx(17.776, abs=5e-4)
    assert welch.p_value == pytest.approx(0.07939, abs=5e-6)


def test_the_welch_interval_is_what_r_gives_for_the_sleep_data():
    interval = stats.welch_interval(SLEEP_1, SLEEP_2)
    assert (interval.low, interval.high) == (pytest.approx(-3.3654832, abs=1e-6), pytest.approx(0.2054832, abs=1e-6))


def test_the_t_interval_is_what_r_gives():
    interval = stats.t_interval(SLEEP_1)
    assert (interval.low, interval.high) == (pytest.approx(-0.5297804, abs=1e-6), pytest.approx(2.0297804, abs=1e-6))


def test_one_sample_has_a_mean_but_no_interval():
    interval = stats.t_interval([3.0])
    assert interval.estimate == 3.0
    assert math.isnan(interval.low) and math.isnan(interval.high)


def test_shapiro_wilk_gives_the_value_of_the_original_paper():
    # Weights of eleven men, Shapiro and Wilk 1965, table on page 606.
    weights = [148, 154, 158, 160, 161, 162, 166, 170, 182, 195, 236]
    result = stats.shapiro_wilk(weights)
    assert result.statistic == pytest.approx(0.79, abs=0.005)
    assert result.p_value < 0.01


def test_anderson_darling_agrees_with_scipys_statistic_and_tells_normal_from_exponential():
    from scipy import stats as scipy_stats

    generator = np.random.default_rng(3)
    normal, exponential = generator.normal(10, 2, 200), generator.exponential(1, 200)
    n = 200
    plain = stats.anderson_darling(normal).statistic / (1 + 0.75 / n + 2.25 / n**2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = scipy_stats.anderson(normal, "norm").statistic
    assert plain == pytest.approx(theirs, rel=1e-9)
    assert stats.anderson_darling(normal).p_value > 0.05
    assert stats.anderson_darling(exponential).p_value < 1e-6


def test_mann_whitney_gives_the_exact_value_of_the_tortoise_and_hare_example():
    # Complete separation of 3 and 4 samples: U = 0, two-sided p = 2 / C(7, 3).
    result = stats.mann_whitney_u([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0])
    assert (result.statistic, result.p_value) == (0.0, pytest.approx(2 / 35))


def test_hedges_g_is_cohens_d_with_the_exact_correction():
    effect = stats.hedges_g(SLEEP_1, SLEEP_2)
    d = -1.8608 * math.sqrt(1 / 10 + 1 / 10)
    assert effect.value == pytest.approx(d * (1 - 3 / (4 * 18 - 1)), rel=1e-3)
    assert effect.magnitude == "medium"


def test_cliffs_delta_counts_pairs():
    assert stats.cliffs_delta([1, 2, 3], [1, 2, 3]).value == 0
    assert stats.cliffs_delta([4, 5], [1, 2, 3]).value == 1
    assert stats.cliffs_delta([1, 1], [1, 2]).value == pytest.approx(-0.5)


def test_holm_gives_what_r_gives():
    assert stats.holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([0.03, 0.04, 0.04, 0.02])


def test_the_bootstrap_repeats_by_its_seed_and_agrees_with_scipys_bca():
    from scipy import stats as reference

    samples = np.random.default_rng(5).exponential(1.0, 40)
    first, again = (stats.bootstrap_interval(samples, seed=1), stats.bootstrap_interval(samples, seed=1))
    assert first == again
    theirs = reference.bootstrap((samples,), np.mean, rng=np.random.default_rng(2)).confidence_interval
    # Two Monte Carlo runs of 9999 resamples differ by a few per cent of the interval's width.
    tolerance = 0.05 * (theirs.high - theirs.low)
    assert first.low == pytest.approx(theirs.low, abs=tolerance)
    assert first.high == pytest.approx(theirs.high, abs=tolerance)


@pytest.mark.parametrize(
    ("samples", "statistic"),
    [
        # Skewed enough for the acceleration to move the interval, and tied enough for ties to.
        (np.exp(1.5 * np.random.default_rng(5).standard_normal(12)), np.mean),
        (np.array([1, 1, 1, 2, 2, 6], dtype=float), np.mean),
    ],
    ids=["skewed", "tied"],
)
def test_the_bootstrap_of_skewed_and_of_tied_samples_is_scipys(samples, statistic):
    from scipy import stats as reference

    ours = stats.bootstrap_interval(samples, statistic=lambda values: float(statistic(values)), seed=3)
    rng = np.random.default_rng(4)
    theirs = reference.bootstrap((samples,), statistic, n_resamples=20_000, rng=rng).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.04 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.04 * width)


def test_a_bootstrap_whose_draws_all_lie_below_the_estimate_has_an_interval():
    # A draw with replacement never has as many different values as twenty that all differ.
    different = stats.bootstrap_interval(range(20), lambda values: float(len(np.unique(values))), resamples=500)
    assert 10 < different.low <= different.high < 20 == different.estimate


def test_the_t_interval_covers_the_mean_as_often_as_it_says():
    generator = np.random.default_rng(11)
    intervals = [stats.t_interval(generator.normal(5, 1, 6), 0.9) for _ in range(1000)]
    covered = sum(interval.low <= 5 <= interval.high for interval in intervals)
    # 1000 draws at 0.9: standard deviation 9.5, four of them.
    assert abs(covered - 900) < 38


def test_equal_samples_are_no_trap():
    assert stats.welch_t_test([1, 1], [1, 1]).p_value == 1
    assert stats.welch_t_test([1, 1], [2, 2]).p_value == 0
    assert stats.bootstrap_interval([2, 2, 2]).high == 2


@pytest.mark.parametrize("samples", [[], [math.nan], [[1.0], [2.0]]])
def test_what_is_no_sample_is_refused(samples):
    with pytest.raises(ValueError):
        stats.t_interval(samples)


def test_anderson_darling_rejects_what_is_far_from_normal_however_far():
    # The published fit of the p-value rises again above a statistic of 153; this sample has one of some hundreds.
    spikes = [0.0] * 5000 + [1.0] * 50
    found = stats.anderson_darling(spikes)
    assert found.statistic > 300
    assert found.p_value == 0.0
