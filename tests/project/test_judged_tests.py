"""Tests that are marked ``judged``: made again on runs that were not valid, and on those alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from twinnet.results.fidelity_verdict import Verdict
from untrusted import labs_watched

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
        (["doubtful", "valid"], 2, 2, {"passed": 2}),
        (["valid", "valid"], 2, 1, {"passed": 1, "failed": 1}),
        (["doubtful", "valid", "valid"], 3, 2, {"passed": 1, "failed": 1}),
        (["invalid"] * 4, 4, 3, {"passed": 1, "failed": 1}),
        (["doubtful"], 1, 1, {"passed": 2}),
    ],
)
def test_a_test_is_made_again_where_its_run_was_not_valid(
    pytester: pytest.Pytester, verdicts: list[str], right: int, times: int, outcome: dict[str, int]
) -> None:
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(TEST.format(verdicts=verdicts, right=right, times=times))
    pytester.makeini("[pytest]\nmarkers = judged: as here\n")
    result = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(**outcome)
    if times > 1:
        result.stdout.fnmatch_lines(["*made again, for a run was not valid*", "*run-1 is *late*"])


def test_what_a_lab_says_against_itself_is_heard_when_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = tn.Lab.stop
    verdicts = iter([Verdict("doubtful", ("late",)), Verdict("valid")])

    class Judged:
        def verdict(self) -> Verdict:
            return next(verdicts)

    monkeypatch.setattr(tn.Lab, "fidelity", lambda lab: Judged())
    with labs_watched() as told:
        for _ in range(2):
            with tn.templates.single(2, rate="1 Gbit").simulate():
                pass
    assert told == ["a lab was doubtful: late"]
    assert tn.Lab.stop is stop
