"""Tests of measurements on the wall clock: what they measure counts when the run itself says that it can be trusted.

A test that is marked ``judged`` and fails is made again, at most twice, when the run that it judged was invalid: the
last lab that it stopped, or the runs of its study. A lab that it used for something else before, or a doubtful run,
gives no second chance. A failure that comes three times counts whatever the verdicts were. How often a test was made
again is kept (`judged_runs.py`).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import twinnet as tn
from twinnet.errors import TwinnetError

ATTEMPTS = 3
"""How often a test is made at most."""


def invalid_runs(results: Path) -> list[str]:
    """What the invalid runs of studies below `results` say against themselves."""
    told: list[str] = []
    for path in sorted(results.glob("**/run.json")):
        fidelity = json.loads(path.read_text()).get("fidelity", {})
        if fidelity.get("verdict", "valid") == "invalid":
            told.append(f"{path.parent.name} is invalid: {'; '.join(fidelity['reasons'])}")
    return told


@contextlib.contextmanager
def last_lab_watched() -> Iterator[list[str]]:
    """Yield a list that holds what the lab that was stopped last says of itself, while that is that it is invalid."""
    told: list[str] = []
    stop = tn.Lab.stop

    def judge_and_stop(lab: tn.Lab) -> None:
        with contextlib.suppress(TwinnetError, OSError, AssertionError):
            verdict = lab.fidelity().verdict()
            told[:] = [f"the lab was invalid: {'; '.join(verdict.reasons)}"] if verdict.state == "invalid" else []
        stop(lab)

    tn.Lab.stop = judge_and_stop
    try:
        yield told
    finally:
        tn.Lab.stop = stop
