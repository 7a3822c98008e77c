"""Tests that judge time: skipped with the figure where the machine is busy, made again where they fail, and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import quiet_machine
from quiet_machine import Look, look, too_busy

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"
INI = """[pytest]
markers =
    quiet: as here
    judged: as here
    wall: as here
    long: as here
"""
TEST = """
import pytest

made = []

@pytest.mark.{mark}
def test_something():
    made.append(len(made))
    assert len(made) >= {right}, f"time {{len(made)}}"

def test_how_often():
    assert len(made) == {times}
"""


def run_here(pytester: pytest.Pytester, source: str) -> tuple[pytest.RunResult, dict[str, object]]:
    """Run a file of tests under this project's conftest, and return what it kept."""
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(test_here=source)
    pytester.makeini(INI)
    result = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    return result, json.loads((pytester.path / "kept.json").read_text())


@pytest.fixture
def quiet(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine that is quiet, whatever this one is; what is kept goes to ``kept.json``."""
    monkeypatch.setenv("TWINNET_TEST_RESULT", str(pytester.path / "kept.json"))
    monkeypatch.setattr(quiet_machine, "too_busy", lambda processors: None)
    return monkeypatch


@pytest.mark.parametrize(
    ("mark", "right", "times", "outcome"),
    [
        ("quiet", 1, 1, {"passed": 2}),
        ("judged", 2, 2, {"passed": 2}),
        ("quiet", 3, 3, {"passed": 2}),
        ("quiet", 4, 3, {"passed": 1, "failed": 1}),
        ("long", 2, 1, {"passed": 1, "failed": 1}),
    ],
)
def test_only_a_test_that_judges_time_is_made_again_and_at_most_twice(
    pytester: pytest.Pytester,
    quiet: pytest.MonkeyPatch,
    mark: str,
    right: int,
    times: int,
    outcome: dict[str, int],
) -> None:
    result, kept = run_here(pytester, TEST.format(mark=mark, right=right, times=times))
    result.assert_outcomes(**outcome)
    failures = [f"AssertionError: time {time}" for time in range(1, times)]
    assert kept["repeated"] == ({"test_here.py::test_something": failures} if failures else {})
    if failures:
        result.stdout.fnmatch_lines(["*failed and made again*", *[f"*test_something: {said}" for said in failures]])
    assert kept["passed"] == outcome["passed"]
    assert list(kept["failed"]) == ["test_here.py::test_something"] * outcome.get("failed", 0)


def test_a_busy_machine_has_it_skipped_with_the_figure_and_with_a_right_to(
    pytester: pytest.Pytester, quiet: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def busy(processors: float) -> str | None:
        asked.append(processors)
        return Look(0.2, 0.0, 0.1).against(processors)

    quiet.setattr(quiet_machine, "too_busy", busy)
    result, kept = run_here(pytester, TEST.format(mark="quiet(processors=1.8)", right=1, times=0))
    result.assert_outcomes(passed=1, skipped=1)
    assert asked == [1.8]
    reason = "this machine is not quiet enough: 0.2 processors are free, 1.8 are needed"
    assert kept["skipped"] == {"test_here.py::test_something": reason}
    assert kept["wrongly_skipped"] == {}
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Look(1.5, 0.03, 5.0), None),
        (Look(1.4, 0.0, 0.1), "1.4 processors are free"),
        (Look(2.0, 0.04, 0.1), "the host takes 4%"),
        (Look(2.0, 0.0, 5.1), "a sleep ended 5.1 ms late"),
    ],
)
def test_each_figure_has_its_bound(seen: Look, said: str | None) -> None:
    reason = seen.against(1.5)
    assert reason is None if said is None else said in (reason or "")


def test_a_look_reads_what_others_left_and_what_the_host_took(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu 100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n")

    def a_tenth_passes(seconds: float) -> None:
        # Of 100 ticks 40 were idle, 10 waited for disks, 5 were stolen.
        stat.write_text("cpu 135 0 110 740 110 0 0 5 0 0\ncpu0 1 2 3\n")

    monkeypatch.setattr(quiet_machine.time, "sleep", a_tenth_passes)
    monkeypatch.setattr(quiet_machine.os, "sched_getaffinity", lambda process: {0, 1})
    seen = look(stat)
    assert (seen.free, seen.stolen) == (pytest.approx(1.0), pytest.approx(0.05))


def test_it_looks_again_until_the_machine_is_quiet_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Look] = []

    def seen(stat: Path) -> Look:
        looks.append(Look(2.0 if len(looks) == 3 else 0.5, 0.0, 0.0))
        return looks[-1]

    monkeypatch.setattr(quiet_machine, "look", seen)
    assert too_busy(1.5) is None and len(looks) == 4
    assert too_busy(2.5) is not None and len(looks) == 34
