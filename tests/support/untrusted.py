"""Tests of measurements on the wall clock: what they measure counts when the run itself says that it can be trusted.

A test that is marked ``judged`` and fails is made again when a run of its own was not valid, at most twice. A failure
of valid runs counts at once, and one that comes three times counts whatever the verdicts were.
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


def untrusted_runs(results: Path) -> list[str]:
    """What the runs of studies below `results` say against themselves."""
    told: list[str] = []
    for path in sorted(results.glob("**/run.json")):
        fidelity = json.loads(path.read_text()).get("fidelity", {})
        if fidelity.get("verdict", "valid") != "valid":
            told.append(f"{path.parent.name} is {fidelity['verdict']}: {'; '.join(fidelity['reasons'])}")
    return told


@contextlib.contextmanager
def labs_watched() -> Iterator[list[str]]:
    """Yield a list that gets what each lab on the wall clock says against itself when it is stopped."""
    told: list[str] = []
    stop = tn.Lab.stop

    def judge_and_stop(lab: tn.Lab) -> None:
        with contextlib.suppress(TwinnetError, OSError, AssertionError):
            verdict = lab.fidelity().verdict()
            if verdict.state != "valid":
                told.append(f"a lab was {verdict.state}: {'; '.join(verdict.reasons)}")
        stop(lab)

    tn.Lab.stop = judge_and_stop
    try:
        yield told
    finally:
        tn.Lab.stop = stop
