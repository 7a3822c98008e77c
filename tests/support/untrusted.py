"""Tests of measurements on the wall clock: what they measure counts when the run itself says that it can be trusted.

A test that is marked ``judged`` and fails is made again, at most twice, when the run that it judged was invalid: the
last lab that it stopped, or the runs of its study. A lab that it used for something else before, or a doubtful run,
gives no second chance. A failure that comes three times counts whatever the verdicts were. How often a test was made
again is kept (`judged_runs.py`).

A test that is marked ``quiet`` watches the wall clock of a machine that it has to itself. When it fails and the host of
this virtual machine took more than `MOST_STOLEN` of the processors meanwhile, it had not, and is made again likewise.
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
MOST_STOLEN = 0.03
"""Of the time of all processors, over the whole of a test."""
_STAT = Path("/proc/stat")


def invalid_runs(results: Path) -> list[str]:
    """What the invalid runs of studies below `results` say against themselves."""
    told: list[str] = []
    for path in sorted(results.glob("**/run.json")):
        fidelity = json.loads(path.read_text()).get("fidelity", {})
        if fidelity.get("verdict", "valid") == "invalid":
            told.append(f"{path.parent.name} is invalid: {'; '.join(fidelity['reasons'])}")
    return told


class Host:
    """What the host of this virtual machine takes of its processors, from when this is made.

    Parameters
    ----------
    stat
        Linux's ``/proc/stat``.
    """

    def __init__(self, stat: Path = _STAT) -> None:
        self._stat = stat
        self._began = self._ticks()

    def _ticks(self) -> tuple[int, int]:
        """Stolen, and all. The guests' times, behind `steal`, are in those before it."""
        ticks = [int(one) for one in self._stat.read_text().split("\n", 1)[0].split()[1:9]]
        return ticks[7], sum(ticks)

    def took(self) -> list[str]:
        """Say that it took too much, if it did."""
        stolen, every = (now - then for now, then in zip(self._ticks(), self._began, strict=True))
        share = stolen / every if every else 0.0
        return [f"the host took {share:.1%} of the processors"] if share > MOST_STOLEN else []


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
