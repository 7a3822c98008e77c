"""How long a study takes: by runs that are tried for a moment."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
from fluid_lab import FluidLab
from twinnet.cli import run as command_line
from twinnet.report import trial_runs
from twinnet.report.trial_runs import try_study
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import Progress
from twinnet.study.store import Measured


class Clock:
    """The processor's time, which passes when it is told to."""

    now_s = 0.0

    def process_time(self) -> float:
        return self.now_s


class SteadyLab(LabExecutor):
    """Each run takes a second to be built, two for each of its ten seconds of traffic, and 0.3 for each to be kept."""

    clock = Clock()

    def expected_s(self, run: PlannedRun, until_s: float = math.inf) -> float:
        return 0.5 + min(until_s, 10.0)

    def __call__(self, run: PlannedRun, progress: Progress) -> Measured:
        self.clock.now_s += 1
        passed = 0
        while not progress.passed(float(passed)) and passed < 10:
            self.clock.now_s += 2
            passed += 1
        self.clock.now_s += 0.3 * passed
        return FluidLab()(run, progress)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(SteadyLab, "clock", Clock())
    monkeypatch.setattr(trial_runs, "LabExecutor", SteadyLab)
    monkeypatch.setattr(trial_runs, "time", SteadyLab.clock)
    return SteadyLab.clock


def test_what_a_moment_took_is_carried_on_to_the_end_of_a_run(clock: Clock) -> None:
    study = load_study("tcp-udp-queues", {"clock": "virtual"}, "tiny")
    expected = try_study(study, plan_study(study), lambda _: None)
    # Of ten seconds each run was tried for two: 1 s to build, 20 s of traffic, 3 s to keep what was collected.
    assert list(expected.by_levels.values()) == pytest.approx([24.0, 24.0])
    assert expected.tried == 2 and clock.now_s < 2 * 24


def test_runs_that_end_are_expected_to_take_as_long_again(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runs, "_LEAST_S", 60.0)
    monkeypatch.setattr(trial_runs, "expected_report_s", lambda analysis, runs: len(analysis.stored) * 100.0 + runs)
    study = load_study("tcp-udp-queues", {"clock": "virtual", "repetitions": "3"}, "tiny")
    expected = try_study(study, plan_study(study), lambda _: None)
    # One was tried: the budget was over. The other level takes as much longer.
    assert expected.tried == 1 and list(expected.by_levels.values()) == pytest.approx([24.0, 24.0])
    assert expected.report_s == 106.0


def test_a_combination_that_was_not_tried_takes_as_long_as_the_most_similar_ones() -> None:
    counted = {("a", "x"): 1.0, ("a", "y"): 2.0, ("b", "x"): 1.0, ("b", "y"): 2.0}
    taken = {("a", "x"): 3.0, ("b", "x"): 5.0}
    assert trial_runs._scaled(("a", "x"), counted, taken) == 3.0
    assert trial_runs._scaled(("b", "y"), counted, taken) == 10.0
    assert trial_runs._scaled(("b", "y"), counted, {}) == 2.0


OWN = """\
from pathlib import Path

Path("ran").write_text("ran")

def longest(flows):
    return 1.0
"""


def test_nothing_is_tried_of_a_study_that_brings_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command_line(["new", "one"])
    study = tmp_path / "one" / "study.yaml"
    (tmp_path / "one" / "mine.py").write_text(OWN)
    study.write_text(
        study.read_text().replace("measurements:\n", 'measurements:\n  own: {of: "mine:longest", unit: s}\n')
    )
    capsys.readouterr()
    assert command_line(["run", str(study), "--clock", "virtual", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tried"] == 0
    assert not (tmp_path / "ran").exists()


def test_a_dry_run_keeps_none_of_the_runs_that_it_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["run", "multimedia-delivery", "--set", "duration=1 s", "--set", "claims=none", "--set", "repetitions=1"]
    assert command_line([*asked, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "6 runs tried for a moment, none kept." in told and "of it for the report" in told
    assert not (tmp_path / "results").exists()
    assert command_line([*asked, "--dry-run", "--json", "--no-report"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["tried"] == 6 and record["report_s"] == 0
    assert record["expected_s"] == pytest.approx(sum(run["expected_s"] for run in record["runs"]), abs=2)


@pytest.mark.quiet
@pytest.mark.long
@pytest.mark.parametrize(
    "asked",
    [
        ["tcp-udp-queues", "--preset", "demo", "--clock", "virtual", "--repeat", "2"],
        ["qos-class-profiles", "--preset", "tiny", "--repeat", "2"],
    ],
    ids=lambda asked: asked[0],
)
def test_a_study_takes_about_as_long_as_a_dry_run_says(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Within a factor of two, in processor time; the figures of the page are nearer."""
    monkeypatch.chdir(tmp_path)
    assert command_line(["run", *asked, "--dry-run", "--json"]) == 0
    expected_s = json.loads(capsys.readouterr().out)["expected_s"]
    begin_s = time.process_time()
    assert command_line(["run", *asked, "--yes"]) == 0
    # This process has begun already.
    assert expected_s / 2 < time.process_time() - begin_s + 1 < expected_s * 2
