"""The benchmark of the forecast: its studies are studies, and it counts what runs have stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study

from bench.forecast import LOADS, REPETITIONS, Load, expectations, study_of


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_each_load_is_a_study_with_a_flow_for_each_pair(tmp_path: Path, load: Load) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(study_of(load, 3.0))
    study = load_study(file)
    assert len(plan_study(study)) == REPETITIONS
    assert len(study.specification.traffic) == load.pairs


def test_runs_are_counted_with_what_was_expected_and_those_without_a_forecast_are_not(tmp_path: Path) -> None:
    for name, forecast in (("one", {"exceeds": True}), ("two", {"exceeds": False}), ("three", None)):
        (tmp_path / name).mkdir()
        record = {"forecast": forecast, "fidelity": {"verdict": "doubtful"}}
        (tmp_path / name / "run.json").write_text(json.dumps(record))
    assert sorted(expectations(tmp_path)) == [(False, "doubtful"), (True, "doubtful")]
