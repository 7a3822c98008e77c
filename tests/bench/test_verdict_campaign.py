"""The campaign that shows whether verdicts can be trusted: its arithmetic, and a small form of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from labs_here import can_run_labs

from bench.disturbances import DISTURBANCES, STRENGTHS
from bench.verdict import QUIET_RUNS, Run, clopper_pearson, figures_of, one_run, plan
from bench.verdict_run import Measured, case, differences, run_on

GOOD = Measured([5e6, 5e6], 0.0, 2e-3, 2.5e-3, 3e-3, 6e-3, 1.0)


@pytest.mark.parametrize(
    ("found", "of", "low", "high"),
    # The ends where nothing or all was found are 1 - 0.025 ** (1 / n); the middle is from Clopper and Pearson's table.
    [(0, 300, 0.0, 0.012221), (300, 300, 0.987779, 1.0), (1, 10, 0.002529, 0.445016), (0, 0, 0.0, 1.0)],
)
def test_shares_have_exact_intervals(found: int, of: int, low: float, high: float) -> None:
    assert clopper_pearson(found, of) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"rates_bps": [5e6, 4.7e6]}, "rate in second 2"),
        ({"rates_bps": [5.2e6, 4.8e6]}, None),
        ({"loss": 0.006}, "loss: 0.60 for 0.00 %"),
        ({"delay_mean_s": 3.2e-3}, "mean delay"),
        ({"delay_p99_s": 3.4e-3}, None),
        ({"delay_p99_s": 4e-3}, "99 % of delays"),
        ({"round_trip_max_s": 30e-3}, "greatest round trip"),
        ({"answered": 0.9}, "pings answered"),
    ],
)
def test_what_is_beyond_tolerance_is_named(changed: dict[str, object], said: str | None) -> None:
    wrong = differences(replace(GOOD, **changed), GOOD, full=False)
    assert bool(wrong) == (said is not None)
    assert said is None or said in wrong[0]


def test_pings_on_a_full_line_are_not_compared() -> None:
    assert differences(replace(GOOD, answered=0.5, round_trip_max_s=1.0), GOOD, full=True) == []


def test_a_campaign_has_300_runs_and_every_disturbance_at_every_strength() -> None:
    runs = plan(quick=False)
    assert len(runs) >= 300
    assert len({seed for seed, _, _ in runs}) == len(runs)
    assert sum(not disturbance for _, disturbance, _ in runs) == QUIET_RUNS
    assert {(name, strength) for _, name, strength in runs if name} == {
        (name, strength) for name in DISTURBANCES for strength in STRENGTHS
    }


def test_wrong_runs_called_valid_and_good_runs_called_invalid_are_counted() -> None:
    def run(verdict: str, *wrong: str) -> Run:
        return Run(1, "", 0, verdict, (), wrong)

    runs = [run("valid"), run("valid", "loss"), run("invalid"), run("invalid", "loss"), run("doubtful")]
    called_valid, called_invalid, *_ = figures_of(runs)
    assert called_valid.value == pytest.approx(20)
    assert called_valid.met is False
    assert called_invalid.value == pytest.approx(100 / 3)
    assert "1 of 3" in called_invalid.note


def test_the_twin_of_a_case_is_the_same_each_time() -> None:
    wanted = case(7, seconds=1)
    assert run_on(wanted, "virtual") == run_on(wanted, "virtual")


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
@pytest.mark.parametrize(("seed", "disturbance", "strength"), [(1, "", 0), (2, "the lab is stopped", 9)])
def test_a_run_that_is_wrong_is_not_called_valid(seed: int, disturbance: str, strength: int) -> None:
    run = one_run(seed, disturbance, strength, seconds=2)
    assert not (run.wrong and run.verdict == "valid"), run
    if disturbance:
        assert run.verdict == "invalid", run
