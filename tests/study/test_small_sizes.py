"""The smallest size of every built-in study takes seconds, and what cannot judge claims nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from twinnet import studies
from twinnet.study.estimates import of_answers
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import plan_study
from twinnet.study.quantities import QUANTITIES
from twinnet.study.resolution import load_study

MOST_RUNS = 12
"""A run takes half a second with what surrounds it, and its part of the report a second."""
MOST_EXPECTED_S = 2.0
"""By frames alone, which is a seventh of the time at worst (docs/how-to/write-a-study.md)."""


@pytest.mark.parametrize("name", studies.names())
def test_the_smallest_size_is_small_and_claims_nothing(name: str) -> None:
    study = load_study(name, {"clock": "virtual"}, "tiny")
    plan = plan_study(study)
    assert len(plan) <= MOST_RUNS
    executor = LabExecutor()
    assert sum(executor.expected_s(run) for run in plan) < MOST_EXPECTED_S
    assert study.specification.claims == "none"


@pytest.mark.parametrize("name", studies.names())
def test_a_size_of_one_repetition_claims_nothing_but_where_it_says_so(name: str) -> None:
    """One repetition judges nothing where chance has a part; the sizes below say that they have one."""
    one = {
        preset
        for preset in load_study(name).specification.presets
        if (made := load_study(name, {}, preset).specification).repetitions == 1 and made.claims == "all"
    }
    assert one <= {"demo", "original", "original-assolo"}


def test_the_smallest_size_of_the_estimators_cuts_none_off(tmp_path: Path) -> None:
    """At 60 s five of the methods were cut off, and claims were judged by what they had by then."""
    results = studies.run("available-bandwidth", preset="tiny", out=tmp_path, progress=False)
    assert results.statements.is_empty()
    told = results.flows.filter(pl.col("probe_window_s").is_not_null())
    assert told.height == MOST_RUNS
    assert told["probe_gave_up"].null_count() == MOST_RUNS
    assert results.means.filter(measurement="error")["missing"].to_list() == [0] * MOST_RUNS


def rows(*estimators: tuple[float | None, str | None]) -> pl.DataFrame:
    table: list[dict[str, Any]] = [
        {
            "available_bandwidth_bps": bps,
            "available_bandwidth_true_bps": 5e6,
            "probe_window_s": 2.0,
            "probe_gave_up": why,
        }
        for bps, why in estimators
    ]
    kinds = {"available_bandwidth_bps": pl.Float64, "probe_gave_up": pl.String}
    return pl.DataFrame(table, schema_overrides=kinds)


CUT = "the time that was allowed is over"


@pytest.mark.parametrize(
    ("estimators", "said"),
    [
        ([(6e6, CUT)], "1 of 1 estimates were cut off: the time that was allowed is over"),
        ([(6e6, None), (6e6, CUT)], "1 of 2 estimates were cut off"),
        ([(None, "spacings had not settled")], "no estimator of available bandwidth had an answer"),
        ([(6e6, None), (None, "nothing came"), (4e6, None)], "1 of 3 estimators of available bandwidth had no answer"),
    ],
)
def test_an_estimate_that_was_cut_off_is_no_answer(
    estimators: list[tuple[float | None, str | None]], said: str
) -> None:
    for name in ("available_bandwidth", "available_bandwidth_error"):
        with pytest.raises(LookupError, match=said):
            QUANTITIES[name].value(rows(*estimators), "mean")


def test_answers_are_counted_and_the_time_of_a_method_without_one_too() -> None:
    assert QUANTITIES["available_bandwidth_error"].value(rows((6e6, None), (4e6, None)), "max") == pytest.approx(0.2)
    assert QUANTITIES["probe_time"].value(rows((None, "spacings had not settled")), "mean") == 2.0
    with pytest.raises(LookupError, match="cut off"):
        QUANTITIES["probe_time"].value(rows((6e6, CUT)), "mean")
    with pytest.raises(LookupError, match="was not estimated when this run was made"):
        of_answers(lambda rows: rows["end_s"].to_numpy())(pl.DataFrame({"end_s": [1.0]}))
