"""How long a study takes on this machine: some of its runs are tried, each for a moment, and part of their report.

Frames alone do not tell on the virtual clock: connections, timers, many hosts and long tables take their time too. What
is measured is processor time: other programs of the machine do not change it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from twinnet.report.progress import SilentObserver
from twinnet.report.write import expected_report_s
from twinnet.study.analysis import Analysis
from twinnet.study.brought_code import brought_code
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import PlannedRun
from twinnet.study.resolution import Study
from twinnet.study.runner import Progress, run_plan
from twinnet.study.store import Measured, ResultStore

__all__ = ["Expected", "try_study"]

_BUDGET_S = 5.0
"""Of processor time, after which no further run is tried."""
_LEAST_S = 0.3
"""A run is tried for so long at least, after its network is built."""
_REPORT_S = 8.0
"""A guess, where no run could be tried: about ten figures."""

Levels = tuple[str, ...]


@dataclass(frozen=True)
class Expected:
    """The time that a study is expected to take.

    Attributes
    ----------
    by_levels
        Of a run in seconds, by its levels.
    report_s
        To answer, to draw all figures and to write the report, in seconds.
    tried
        How many runs were tried.
    """

    by_levels: Mapping[Levels, float]
    report_s: float
    tried: int

    def of(self, run: PlannedRun) -> float:
        """Of `run`, in seconds."""
        return self.by_levels[tuple(run.levels.values())]


def try_study(study: Study, plan: Sequence[PlannedRun], tell: Callable[[str], None]) -> Expected:
    """Return how long the runs of `plan` and their report take here; nothing of what is tried is kept, and
    `tell` is told that it begins.

    One run of as many combinations of levels as there is time for is begun on the virtual clock. A run that has not
    ended by then ends early, and what it took is carried on to its end, as its frames are expected to be spread. A
    combination that was not tried takes as much longer or shorter than :meth:`LabExecutor.expected_s` says as those do
    that share most of its levels. Nothing is tried on another clock, or of a study that brings Python, programs or
    controllers.
    """
    executor = LabExecutor()
    one_of_each = {tuple(run.levels.values()): run for run in reversed(plan)}
    counted = {levels: executor.expected_s(run) for levels, run in one_of_each.items()}
    if not plan or study.specification.clock != "virtual" or brought_code(study, plan):
        return Expected(counted, _REPORT_S, 0)
    tell("Trying some of the runs, for a few seconds.")
    taken: dict[Levels, float] = {}
    trying = _Trying(executor, max(_LEAST_S, _BUDGET_S / 2 / len(one_of_each)))
    end_s = time.process_time() + _BUDGET_S
    with TemporaryDirectory(prefix="twinnet-") as folder:
        store = ResultStore(Path(folder))
        # The same ones each time, from all over the plan.
        for levels in random.Random(0).sample(list(one_of_each), len(one_of_each)):
            if time.process_time() > end_s:
                break
            run_s = trying.taken_s(one_of_each[levels], store)
            if run_s is not None:
                taken[levels] = run_s
        analysis = Analysis(study, store)
        report_s = expected_report_s(analysis, len(plan)) if analysis.stored else _REPORT_S
    return Expected({levels: _scaled(levels, counted, taken) for levels in one_of_each}, report_s, len(taken))


def _scaled(levels: Levels, counted: Mapping[Levels, float], taken: Mapping[Levels, float]) -> float:
    """The time of a run: as tried, or by those that were tried of the most similar combinations."""
    if levels in taken or not taken:
        return taken.get(levels, counted[levels])
    shared = {other: sum(map(str.__eq__, levels, other)) for other in taken}
    similar = [other for other, count in shared.items() if count == max(shared.values())]
    return counted[levels] * sum(taken[one] for one in similar) / sum(counted[one] for one in similar)


@dataclass
class _Moment(Progress):
    """The progress of a run that is tried for `most_s` seconds: at each look the time of the
    processor and that of its traffic."""

    most_s: float = math.inf
    looks: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    is_cut: bool = False

    def passed(self, traffic_s: float) -> bool:
        self.looks.append((time.process_time(), traffic_s))
        self.is_cut = self.looks[-1][0] - self.looks[0][0] > self.most_s
        return self.is_cut


class _Trying:
    """Makes runs by `executor`, each for `most_s` seconds."""

    def __init__(self, executor: LabExecutor, most_s: float) -> None:
        self.executor, self.most_s = executor, most_s
        self.moment: _Moment | None = None

    def expected_s(self, run: PlannedRun) -> float:
        return self.executor.expected_s(run)

    def __call__(self, run: PlannedRun, progress: Progress) -> Measured:
        self.moment = _Moment(progress.stop, most_s=self.most_s)
        return self.executor(run, self.moment)

    def taken_s(self, run: PlannedRun, store: ResultStore) -> float | None:
        """How long `run` takes until it is written to `store`, in seconds; `None` where it fails."""
        begin_s = time.process_time()
        outcome = run_plan([run], store, self, SilentObserver())
        end_s = time.process_time()
        if outcome.interrupted:
            raise KeyboardInterrupt
        if self.moment is None or outcome.failed:
            return None
        if not self.moment.is_cut:
            return end_s - begin_s
        looks = self.moment.looks
        (first_s, _), (half_s, half), (last_s, last) = looks[0], looks[(len(looks) - 1) // 2], looks[-1]
        until_last, until_half = self.executor.expected_s(run, last), self.executor.expected_s(run, half)
        left = self.executor.expected_s(run) - until_last
        if until_last <= until_half:
            return None
        longer_s = (last_s - half_s) * left / (until_last - until_half)
        # What is collected and written in the end grows with the time, too.
        return end_s - begin_s + longer_s * (1 + (end_s - last_s) / (last_s - first_s))
