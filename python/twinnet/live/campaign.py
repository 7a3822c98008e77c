"""A study whose runs are being made or were made, as its page shows it: what became of each run.

All of it is read from the folder of results, so that a campaign in another terminal can be watched, and nothing is
asked of it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.errors import TwinnetError
from twinnet.study.filled_ports import StudyLoads
from twinnet.study.plan import plan_study
from twinnet.study.progress_file import SILENT_AFTER_S, read_progress
from twinnet.study.queues_in_words import queues_set_in_vain
from twinnet.study.store import ResultStore
from twinnet.study.twin import study_on

if TYPE_CHECKING:
    from twinnet.study.progress_file import RunGoingOn
    from twinnet.study.resolution import Study
    from twinnet.study.store import StoredRun

__all__ = ["STATES", "CampaignWatch"]

STATES: tuple[str, ...] = ("waiting", "running", "valid", "doubtful", "invalid", "failed")
"""What can be said of a run."""
_MOST_READ = 500
"""Records that one look reads at most: the first looks at a large campaign find more and more of it."""


@dataclass
class _Run:
    """A run of the plan, and what is known of it: what its record says, written at which moment in nanoseconds, its
    state, and the number of the last change of that."""

    name: str
    levels: str
    repetition: int
    recorded: str = "waiting"
    written_ns: int = 0
    state: str = "waiting"
    changed: int = 0


class CampaignWatch:
    """Looks at the results in `folder` again and again. One thread at a time uses it.

    Raises
    ------
    BadValue
        It holds no results of a study.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store: ResultStore = ResultStore(folder)
        self.study: Study = self.store.read_study()
        clocks = ["virtual", "wall"] if self.store.holds_twin else []
        parts = [(f"{clock} clock, ", study_on(self.study, clock)) for clock in clocks] or [("", self.study)]
        plans = [(clock, plan_study(part)) for clock, part in parts]
        # The traffic is the same on both clocks.
        self._loads = StudyLoads.of(plans[0][1])
        self._runs = [
            _Run(run.id, clock + (", ".join(run.levels.values()) or "all"), run.repetition)
            for clock, plan in plans
            for run in plan
        ]
        self._by_name = {run.name: run for run in self._runs}
        self._numbers = {run.name: number for number, run in enumerate(self._runs)}
        self._changes = 0
        self._age_s: float | None = None
        self._left_s: float | None = None
        self._going: dict[str, RunGoingOn] = {}

    def record(self) -> dict[str, Any]:
        """Return the plan: ``study``, ``title``, ``folder``, ``states`` (`STATES`), ``loads``, lines that say which
        ports its traffic fills, with warnings of queues elsewhere, and ``runs``, each with ``name``, ``levels`` (of its
        factors, in words) and ``repetition``."""
        runs = [{"name": run.name, "levels": run.levels, "repetition": run.repetition} for run in self._runs]
        specification = self.study.specification
        return {
            "study": self.study.name,
            "title": specification.title,
            "folder": str(self.folder),
            "states": list(STATES),
            "loads": [*self._loads.words(), *queues_set_in_vain(self.study, self._loads)],
            "runs": runs,
        }

    def look(self) -> None:
        """Read what has changed in the folder."""
        told = read_progress(self.folder)
        self._age_s = None if told is None else told.age_s
        self._left_s = None if told is None else max(0.0, told.left_s - told.age_s)
        silent = told is None or told.age_s > SILENT_AFTER_S
        self._going = {} if told is None or silent else dict(told.going)
        left = _MOST_READ
        with os.scandir(self.folder) as entries:
            names = [entry.name for entry in entries if entry.name in self._by_name]
        for name in names:
            run = self._by_name[name]
            try:
                written_ns = (self.folder / name / "run.json").stat().st_mtime_ns
            except OSError:
                continue
            if written_ns != run.written_ns and left > 0:
                left -= 1
                run.written_ns = written_ns
                run.recorded = self._state_of(name)
        for run in self._runs:
            # A run that failed is made again when the campaign is started again.
            again = run.name in self._going and run.recorded in ("waiting", "failed")
            self._become(run, "running" if again else run.recorded)

    def changes(self, since: int) -> dict[str, Any]:
        """Return what has changed after the change number `since`: ``change``, the number of the last one, and
        ``states``, of each run that changed its number in the plan and that of its state. Besides: ``counts`` by state,
        ``going`` (what :meth:`going` tells of each run that is being made), ``left_s`` (``None`` when nothing goes on)
        and ``silent_s`` (how long there has been no news, where there should be)."""
        counts = dict.fromkeys(STATES, 0)
        for run in self._runs:
            counts[run.state] += 1
        states = [[number, STATES.index(run.state)] for number, run in enumerate(self._runs) if run.changed > since]
        silent_s = self._age_s if self._age_s is not None and self._age_s > SILENT_AFTER_S else None
        return {
            "change": self._changes,
            "states": states,
            "counts": counts,
            "going": [self.going(self._numbers[name]) for name in self._going if name in self._numbers],
            "left_s": None if silent_s is not None else self._left_s,
            "silent_s": silent_s,
        }

    def going(self, number: int) -> dict[str, Any] | None:
        """Return what the run with this number in the plan does: ``number``, ``name``, ``levels``, ``repetition``,
        ``state``, ``fraction`` (0 to 1), ``doing`` and ``for_s``, for how long it has been made (``None``: not known);
        ``None`` if there is none."""
        if not 0 <= number < len(self._runs):
            return None
        run = self._runs[number]
        told = self._going.get(run.name)
        begun_s = None if told is None else told.begun_s
        return {
            "number": number,
            "name": run.name,
            "levels": run.levels,
            "repetition": run.repetition,
            "state": run.state,
            "fraction": 0.0 if told is None else told.fraction,
            "doing": "" if told is None else told.doing,
            "for_s": None if begun_s is None else max(0.0, time.time() - begun_s),
        }

    def run(self, number: int) -> StoredRun | None:
        """Return the stored run with this number in the plan; ``None`` if there is none.

        Raises
        ------
        StoreError
            Its record was altered.
        """
        if not 0 <= number < len(self._runs):
            return None
        return self.store.called(self._runs[number].name)

    def _state_of(self, name: str) -> str:
        try:
            stored = self.store.called(name)
        except TwinnetError:
            return "failed"
        if stored is None or stored.record["status"] == "failed":
            return "failed"
        return stored.verdict if stored.verdict in STATES else "invalid"

    def _become(self, run: _Run, state: str) -> None:
        if state != run.state:
            self._changes += 1
            run.state, run.changed = state, self._changes
