"""Makes the runs of a plan, one at a time or several side by side; keeps what is finished whatever happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from twinnet.errors import TwinnetError
from twinnet.study.forecast import Forecast
from twinnet.study.machine import describe_machine, describe_place, describe_versions
from twinnet.study.plan import PlannedRun
from twinnet.study.store import Measured, ResultStore, StoredRun, StoreError

__all__ = ["Executor", "Interrupted", "Observer", "Outcome", "Progress", "run_plan"]


class Interrupted(Exception):
    """An executor gave up because it was asked to stop."""


@dataclass
class Progress:
    """The progress of an executor while it works, and the signal for it to stop.

    Attributes
    ----------
    fraction
        How much of the run is done, 0 to 1; written by the executor, read by who shows it.
    doing
        What it is doing, in a few words.
    stop
        Set when the run is to end without a result; the executor then raises :class:`Interrupted`.
    """

    stop: threading.Event
    fraction: float = 0.0
    doing: str = ""


class Executor(Protocol):
    """Makes one run."""

    def __call__(self, run: PlannedRun, progress: Progress) -> Measured:
        """Make `run`; called from a thread of its own when runs are made side by side."""
        ...

    def expected_s(self, run: PlannedRun) -> float:
        """About how long `run` takes, in seconds."""
        ...


class Observer(Protocol):
    """Sees the study go on; all methods are called from the thread that called :func:`run_plan`."""

    def begin(self, todo: Sequence[PlannedRun], skipped: int, expected_s: float) -> None:
        """Before the first run."""
        ...

    def started(self, run: PlannedRun, progress: Progress) -> None:
        """A run begins."""
        ...

    def tick(self, left_s: float) -> None:
        """Several times a second, with the time that is left."""
        ...

    def ended(self, run: PlannedRun, stored: StoredRun, left_s: float) -> None:
        """A run was written down, finished or failed."""
        ...

    def stopping(self) -> None:
        """An interrupt came; the runs that are going on are being ended."""
        ...


@dataclass
class Outcome:
    """The outcome of the plan."""

    finished: list[StoredRun] = field(default_factory=list[StoredRun])
    skipped: list[StoredRun] = field(default_factory=list[StoredRun])
    failed: list[StoredRun] = field(default_factory=list[StoredRun])
    interrupted: bool = False


def run_plan(
    plan: Sequence[PlannedRun],
    store: ResultStore,
    execute: Executor,
    observer: Observer,
    jobs: int = 1,
    forecast: Forecast | None = None,
) -> Outcome:
    """Make the runs of `plan` that `store` does not hold yet; what `forecast` says of a run is stored with it.

    A run that fails is written down with its error and the rest go on. An interrupt (Ctrl-C) ends the runs that are
    going on and returns; the same call later makes what is left.

    Raises
    ------
    StoreError
        Results cannot be written; finished runs are kept.
    """
    store.remove_leftovers()
    outcome = Outcome()
    todo: list[PlannedRun] = []
    for run in plan:
        stored = store.find(run)
        if stored is None:
            todo.append(run)
        else:
            outcome.skipped.append(stored)
    remaining = _Remaining(todo, execute, jobs)
    observer.begin(todo, len(outcome.skipped), remaining.left_s({}))
    if todo:
        _Loop(store, execute, observer, remaining, outcome, forecast).run(todo, jobs)
    return outcome


class _Remaining:
    """Estimates the time that is left: what runs are expected to take, corrected by what they took."""

    def __init__(self, todo: Sequence[PlannedRun], execute: Executor, jobs: int) -> None:
        self.expected = {run.id: max(0.001, execute.expected_s(run)) for run in todo}
        self.left = dict(self.expected)
        self.jobs = min(jobs, max(1, len(todo)))
        self.done_expected_s = self.done_actual_s = 0.0

    def done(self, run: PlannedRun, actual_s: float) -> None:
        self.done_expected_s += self.left.pop(run.id)
        self.done_actual_s += actual_s

    def left_s(self, fractions: dict[str, float]) -> float:
        correction = self.done_actual_s / self.done_expected_s if self.done_expected_s else 1.0
        total = sum(expected * (1 - fractions.get(run_id, 0.0)) for run_id, expected in self.left.items())
        return total * correction / self.jobs


class _Loop:
    def __init__(
        self,
        store: ResultStore,
        execute: Executor,
        observer: Observer,
        remaining: _Remaining,
        outcome: Outcome,
        forecast: Forecast | None,
    ) -> None:
        self.store, self.execute, self.observer = store, execute, observer
        self.remaining, self.outcome, self.forecast = remaining, outcome, forecast
        self.stop = threading.Event()
        self.going: dict[Future[tuple[StoredRun, float]], tuple[PlannedRun, Progress, int]] = {}

    def run(self, todo: Sequence[PlannedRun], jobs: int) -> None:
        waiting = list(reversed(todo))
        slots = set(range(1, jobs + 1))
        with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="run") as pool:
            try:
                while waiting or self.going:
                    while waiting and len(self.going) < jobs:
                        run, progress = waiting.pop(), Progress(self.stop)
                        slot = min(slots - {taken for _, _, taken in self.going.values()})
                        self.observer.started(run, progress)
                        self.going[pool.submit(self._make, run, progress, slot)] = (run, progress, slot)
                    self._collect()
            except KeyboardInterrupt:
                self.outcome.interrupted = True
                self.stop.set()
                self.observer.stopping()
                self._finish_going()
            except BaseException:
                self.stop.set()
                raise

    def _collect(self) -> None:
        ended, _ = wait(self.going, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in ended:
            run, _, _ = self.going.pop(future)
            self._take(run, future)
        self.observer.tick(self._left_s())

    def _take(self, run: PlannedRun, future: Future[tuple[StoredRun, float]]) -> None:
        try:
            stored, elapsed_s = future.result()
        except Interrupted:
            return
        self.remaining.done(run, elapsed_s)
        (self.outcome.finished if stored.record["status"] == "finished" else self.outcome.failed).append(stored)
        self.observer.ended(run, stored, self._left_s())

    def _finish_going(self) -> None:
        for future, (run, _, _) in list(self.going.items()):
            try:
                self._take(run, future)
            except StoreError:
                continue

    def _left_s(self) -> float:
        return self.remaining.left_s({run.id: progress.fraction for run, progress, _ in self.going.values()})

    def _make(self, run: PlannedRun, progress: Progress, slot: int) -> tuple[StoredRun, float]:
        record: dict[str, Any] = {
            "study": run.specification.study,
            "levels": dict(run.levels),
            "repetition": run.repetition,
            "seed": run.seed,
            "digest": run.digest,
            "clock": run.specification.clock,
            "specification": run.specification.model_dump(
                mode="json", by_alias=True, exclude={"presets", "wall_presets"}
            ),
            "specification_units": "durations in ps, rates in bit/s, sizes in bytes",
            "versions": describe_versions(),
            "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        if self.forecast is not None and run.id in self.forecast.needed:
            record["forecast"] = self.forecast.record_of(run.id)
        machine: dict[str, Any] = {**describe_place(slot), "before": describe_machine()}
        begin = time.monotonic()
        try:
            measured = self.execute(run, progress)
        except Interrupted:
            raise
        except Exception as error:
            if self.stop.is_set():
                raise Interrupted from error
            elapsed_s = time.monotonic() - begin
            machine["after"] = describe_machine()
            told = {
                "name": error.name if isinstance(error, TwinnetError) else type(error).__name__,
                "message": str(error) or type(error).__name__,
            }
            full = {**record, "elapsed_s": elapsed_s, "machine": machine}
            return self.store.write_failed(run, full, told), elapsed_s
        elapsed_s = time.monotonic() - begin
        machine["after"] = describe_machine()
        full = {**record, "elapsed_s": elapsed_s, "machine": machine}
        return self.store.write_finished(run, full, measured), elapsed_s
