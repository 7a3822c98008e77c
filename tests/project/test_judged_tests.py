"""Tests that are marked ``judged`` or ``quiet``: made again where the run that they judged was invalid, or where the
machine was not quiet, and not too often."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from judged_runs import JudgedRun, counts, keep, read, too_often
from twinnet.results.fidelity_verdict import Verdict
from untrusted import Host, last_lab_watched

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TEST = """
import json
import pytest

VERDICTS = {verdicts!r}
made = []

@pytest.mark.judged
def test_something(tmp_path):
    run = tmp_path / "results" / "run-1"
    run.mkdir(parents=True)
    verdict = VERDICTS[len(made)]
    made.append(verdict)
    (run / "run.json").write_text(json.dumps({{"fidelity": {{"verdict": verdict, "reasons": ["late"]}}}}))
    assert len(made) >= {right}

def test_how_often():
    assert len(made) == {times}
"""


@pytest.mark.parametrize(
    ("verdicts", "right", "times", "outcome"),
    [
        (["invalid", "valid"], 2, 2, {"passed": 2}),
        (["valid", "valid"], 2, 1, {"passed": 1, "failed": 1}),
        (["doubtful", "valid"], 2, 1, {"passed": 1, "failed": 1}),
        (["invalid", "valid", "valid"], 3, 2, {"passed": 1, "failed": 1}),
        (["invalid"] * 4, 4, 3, {"passed": 1, "failed": 1}),
        (["invalid"], 1, 1, {"passed": 2}),
    ],
)
def test_a_test_is_made_again_where_its_run_was_invalid(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    verdicts: list[str],
    right: int,
    times: int,
    outcome: dict[str, int],
) -> None:
    kept = pytester.path / "kept.jsonl"
    monkeypatch.setenv("TWINNET_JUDGED_RUNS", str(kept))
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(TEST.format(verdicts=verdicts, right=right, times=times))
    pytester.makeini("[pytest]\nmarkers = judged: as here\n")
    result = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(**outcome)
    if times > 1:
        result.stdout.fnmatch_lines(["*made again, for the run that was judged was invalid*", "*run-1 is *late*"])
    (run,) = read(kept)
    assert list(run.again.values()) == [times - 1]


UNQUIET = """
import os
from pathlib import Path
import pytest

made = []

@pytest.mark.quiet
def test_something():
    stat = Path(os.environ["STAT"])
    made.append(stat.read_text())
    stat.write_text("cpu 100 0 0 880 0 0 0 {stolen} 0 0\\ncpu0 1 2 3\\n")
    assert len(made) >= 2

def test_how_often():
    assert len(made) == {times}
"""


@pytest.mark.parametrize(("stolen", "times"), [(20, 1), (60, 2)])
def test_a_quiet_test_is_made_again_where_the_host_took_the_processors(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, stolen: int, times: int
) -> None:
    stat = pytester.path / "stat"
    stat.write_text("cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 1 2 3\n")
    monkeypatch.setenv("STAT", str(stat))
    monkeypatch.setenv("TWINNET_JUDGED_RUNS", str(pytester.path / "kept.jsonl"))
    monkeypatch.setattr(Host.__init__, "__defaults__", (stat,))
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(UNQUIET.format(stolen=stolen, times=times))
    pytester.makeini("[pytest]\nmarkers = quiet: as here\n")
    result = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=times, failed=2 - times)
    if times > 1:
        result.stdout.fnmatch_lines(["*test_something: the host took 5.8% of the processors*"])


def test_a_test_that_was_made_again_in_too_many_of_the_last_runs_fails_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = pytester.path / "kept.jsonl"
    monkeypatch.setenv("TWINNET_JUDGED_RUNS", str(kept))
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(TEST.format(verdicts=["invalid", "valid"], right=2, times=2))
    pytester.makeini("[pytest]\nmarkers = judged: as here\n")
    first = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    assert first.ret == pytest.ExitCode.OK
    second = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    second.assert_outcomes(passed=2)
    assert second.ret == pytest.ExitCode.TESTS_FAILED
    second.stdout.fnmatch_lines(["*made again too often*", "*test_something: made again in 2 of the last 2 runs*"])


def run(**again: int) -> JudgedRun:
    return JudgedRun("2026-01-01 00:00", again)


@pytest.mark.parametrize(
    ("needed", "of", "wrong"),
    [(1, 1, False), (1, 5, False), (2, 5, True), (2, 10, False), (3, 10, True), (4, 20, False)],
)
def test_more_than_one_of_five_of_the_runs_in_which_a_test_ran_is_too_often(needed: int, of: int, wrong: bool) -> None:
    runs = [run(a=2 if number < needed else 0, other=0) for number in range(of)]
    # Runs in which it did not run say nothing of it.
    runs += [run(other=0)] * 10
    assert (list(too_often(runs)) == ["a"]) == wrong
    assert counts(runs) == {"a": (needed, of)}


def test_the_last_twenty_runs_are_kept(tmp_path: Path) -> None:
    for number in range(25):
        kept = keep(tmp_path / "new" / "runs.jsonl", {"a": number})
    assert [run.again["a"] for run in kept] == list(range(5, 25))
    assert kept == read(tmp_path / "new" / "runs.jsonl")


def test_of_the_labs_of_a_test_the_last_that_stopped_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = tn.Lab.stop
    verdicts = iter([Verdict("valid"), Verdict("invalid", ("late",)), Verdict("doubtful", ("late",))])

    class Judged:
        def verdict(self) -> Verdict:
            return next(verdicts)

    monkeypatch.setattr(tn.Lab, "fidelity", lambda lab: Judged())
    heard: list[list[str]] = []
    with last_lab_watched() as told:
        for _ in range(3):
            with tn.templates.single(2, rate="1 Gbit").simulate():
                pass
            heard.append(list(told))
    assert heard == [[], ["the lab was invalid: late"], []]
    assert tn.Lab.stop is stop
