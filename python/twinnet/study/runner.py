"""Makes the runs of a plan, one at a time or several side by side; keeps what is finished whatever happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from twinnet.errors import TwinnetError
from twinnet.study.forecast import Forecast
from twinnet.study.machine import describe_machine, describe_place, describe_versions
from twinnet.study.plan import PlannedRun
from twinnet.study.store import Measured, ResultStore, StoredRun, StoreError

__all__ = [
    "Executor",
    "Interrupted",
    "LocalPlaces",
    "Made",
    "Observer",
    "Outcome",
    "PlaceLost",
    "Places",
    "Progress",
    "make_run",
    "run_plan",
]


_LOOK_S = 0.2
_WRITERS = 4
"""Results that are written at once, where places go on meanwhile: the disk makes several durable in one go."""
_MOST_UNWRITTEN = 64
"""Results that may wait for that; then no run begins, so that memory stays bounded."""


class Interrupted(Exception):
    """An executor gave up because it was asked to stop."""


class PlaceLost(Exception):
    """The place where a run was made has gone; the run is made again at another."""


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

    def passed(self, traffic_s: float) -> bool:
        """Hear, several times a second, for how long there has been traffic on the virtual clock; true ends it now."""
        return False


class Executor(Protocol):
    """Makes one run."""

    def __call__(self, run: PlannedRun, progress: Progress) -> Measured:
        """Make `run`; called from a thread of its own when runs are made side by side."""
        ...

    def expected_s(self, run: PlannedRun) -> float:
        """About how long `run` takes, in seconds."""
        ...


@dataclass(frozen=True)
class Made:
    """A run that was made, and what is recorded of where and when.

    Attributes
    ----------
    record
        `versions`, `started`, `elapsed_s` and `machine`.
    result
        What was measured; of a run that failed, the `name` of the error and its `message`.
    """

    record: Mapping[str, Any]
    result: Measured | Mapping[str, str]


class Places(Protocol):
    """The places where runs are made: slots of this machine, or of others."""

    @property
    def count(self) -> int:
        """The number of runs that can be made side by side now."""
        ...

    @property
    def most(self) -> int:
        """The largest number of runs that can ever be made side by side."""
        ...

    @property
    def elsewhere(self) -> bool:
        """Whether runs are made by other processes, so that a place makes the next one while a result is written."""
        ...

    def take(self, waiting: Sequence[PlannedRun]) -> tuple[int, Any] | None:
        """Take a free place for one of the runs that wait, the next of which is the last in `waiting`.

        Returns the index of the run and the place; `None` when no place is free for any of them now.
        """
        ...

    def make(self, run: PlannedRun, place: Any, progress: Progress) -> Made:
        """Make `run` at `place`, from a thread of its own; raises `Interrupted`, or `PlaceLost` when it is gone."""
        ...

    def free(self, place: Any) -> None:
        """The run at `place` has ended, however it did."""
        ...


class LocalPlaces:
    """`jobs` places in this process; a place is the number of the slot, counted from 1."""

    def __init__(self, execute: Executor, jobs: int) -> None:
        self.execute = execute
        self._free: list[int] = list(range(1, jobs + 1))
        self._jobs = jobs

    @property
    def count(self) -> int:
        """The number of runs that are made side by side."""
        return self._jobs

    @property
    def most(self) -> int:
        """The same."""
        return self._jobs

    @property
    def elsewhere(self) -> bool:
        """No: writing a result would disturb a run on the wall clock."""
        return False

    def take(self, waiting: Sequence[PlannedRun]) -> tuple[int, int] | None:
        """The next run and the lowest slot that is free."""
        return (len(waiting) - 1, self._free.pop(0)) if self._free else None

    def make(self, run: PlannedRun, place: int, progress: Progress) -> Made:
        """Make `run` here."""
        return make_run(run, self.execute, progress, place)

    def free(self, place: int) -> None:
        """Give the slot back."""
        self._free.append(place)
        self._free.sort()


def make_run(run: PlannedRun, execute: Executor, progress: Progress, slot: int) -> Made:
    """Make `run` in this process by `execute`, as the one in `slot` of this machine; a failure is a result too.

    Raises
    ------
    Interrupted
        `progress` said that it is to stop.
    """
    record: dict[str, Any] = {
        "versions": describe_versions(),
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    machine: dict[str, Any] = {**describe_place(slot), "before": describe_machine()}
    begin = time.monotonic()
    result: Measured | Mapping[str, str]
    try:
        result = execute(run, progress)
    except Interrupted:
        raise
    except Exception as error:
        if progress.stop.is_set():
            raise Interrupted from error
        result = {
            "name": error.name if isinstance(error, TwinnetError) else type(error).__name__,
            "message": str(error) or type(error).__name__,
        }
    elapsed_s = time.monotonic() - begin
    machine["after"] = describe_machine()
    return Made({**record, "elapsed_s": elapsed_s, "machine": machine}, result)


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
    """The outcome of the plan.

    Attributes
    ----------
    finished, skipped, failed
        Runs that were made now, that the store held before, and that failed.
    interrupted
        Whether Ctrl-C ended it.
    made_again
        How many runs were made a second time elsewhere, with the same traces.
    """

    finished: list[StoredRun] = field(default_factory=list[StoredRun])
    skipped: list[StoredRun] = field(default_factory=list[StoredRun])
    failed: list[StoredRun] = field(default_factory=list[StoredRun])
    interrupted: bool = False
    made_again: int = 0


def run_plan(
    plan: Sequence[PlannedRun],
    store: ResultStore,
    execute: Executor,
    observer: Observer,
    jobs: int = 1,
    forecast: Forecast | None = None,
    places: Places | None = None,
) -> Outcome:
    """Make the runs of `plan` that `store` does not hold yet; what `forecast` says of a run is stored with it.

    They are made at `places`; without it in this process by `execute`, `jobs` side by side.

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
    places = places if places is not None else LocalPlaces(execute, jobs)
    remaining = _Remaining(todo, execute, places)
    observer.begin(todo, len(outcome.skipped), remaining.left_s({}))
    if todo:
        _Loop(store, places, observer, remaining, outcome, forecast).run(todo)
    return outcome


class _Remaining:
    """Estimates the time that is left: what runs are expected to take, corrected by what they took."""

    def __init__(self, todo: Sequence[PlannedRun], execute: Executor, places: Places) -> None:
        self.expected = {run.id: max(0.001, execute.expected_s(run)) for run in todo}
        self.left = dict(self.expected)
        self.places = places
        self.total_s = sum(self.left.values())
        self.done_expected_s = self.done_actual_s = 0.0

    def done(self, run: PlannedRun, actual_s: float) -> None:
        expected_s = self.left.pop(run.id)
        self.total_s = max(0.0, self.total_s - expected_s)
        self.done_expected_s += expected_s
        self.done_actual_s += actual_s

    def left_s(self, fractions: dict[str, float]) -> float:
        correction = self.done_actual_s / self.done_expected_s if self.done_expected_s else 1.0
        # Only runs that go on have a fraction: a plan of thousands is not summed up again and again.
        if not self.left:
            return 0.0
        begun = sum(self.left.get(run_id, 0.0) * fraction for run_id, fraction in fractions.items())
        return (self.total_s - begun) * correction / max(1, min(self.places.count, len(self.left)))


class _Loop:
    def __init__(
        self,
        store: ResultStore,
        places: Places,
        observer: Observer,
        remaining: _Remaining,
        outcome: Outcome,
        forecast: Forecast | None,
    ) -> None:
        self.store, self.places, self.observer = store, places, observer
        self.remaining, self.outcome, self.forecast = remaining, outcome, forecast
        self.stop = threading.Event()
        self.waiting: list[PlannedRun] = []
        self.going: dict[Future[Made], tuple[PlannedRun, Progress, Any]] = {}
        self.writing: dict[Future[StoredRun], tuple[PlannedRun, Any]] = {}
        self.specifications: dict[tuple[str, ...], dict[str, Any]] = {}
        self.writers: ThreadPoolExecutor

    def run(self, todo: Sequence[PlannedRun]) -> None:
        self.waiting = list(reversed(todo))
        writers = _WRITERS if self.places.elsewhere else self.places.most
        with (
            ThreadPoolExecutor(max_workers=writers, thread_name_prefix="write") as self.writers,
            ThreadPoolExecutor(max_workers=self.places.most, thread_name_prefix="run") as pool,
        ):
            try:
                while self.waiting or self.going or self.writing:
                    while self._may_begin() and (taken := self.places.take(self.waiting)) is not None:
                        index, place = taken
                        run, progress = self.waiting.pop(index), Progress(self.stop)
                        self.observer.started(run, progress)
                        future = pool.submit(self.places.make, run, place, progress)
                        self.going[future] = (run, progress, place)
                    self._collect()
            except KeyboardInterrupt:
                self.outcome.interrupted = True
                self.stop.set()
                self.observer.stopping()
                self._finish_going()
            except BaseException:
                self.stop.set()
                raise

    def _may_begin(self) -> bool:
        return bool(self.waiting) and len(self.writing) < max(_MOST_UNWRITTEN, self.places.count)

    def _collect(self) -> None:
        if self.going or self.writing:
            going: list[Future[Any]] = [*self.going, *self.writing]
            ended, _ = wait(going, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            for future in ended:
                if future in self.going:
                    self._write(future)
                else:
                    self._take(future)
        else:
            self.stop.wait(_LOOK_S)
        self.observer.tick(self._left_s())

    def _write(self, future: Future[Made]) -> None:
        """Have the result of a run written that has ended."""
        run, _, place = self.going.pop(future)
        try:
            made = future.result()
        except Interrupted:
            self.places.free(place)
        except PlaceLost:
            self.places.free(place)
            self.waiting.append(run)
        except BaseException:
            self.places.free(place)
            raise
        else:
            if self.places.elsewhere:
                self.places.free(place)
                place = None
            self.writing[self.writers.submit(self._written, run, made)] = (run, place)

    def _take(self, future: Future[StoredRun]) -> None:
        """Note a run that is written down."""
        run, place = self.writing.pop(future)
        if place is not None:
            self.places.free(place)
        stored = future.result()
        self.remaining.done(run, float(stored.record["elapsed_s"]))
        kept = stored.on_disk()
        (self.outcome.finished if stored.record["status"] == "finished" else self.outcome.failed).append(kept)
        self.observer.ended(run, stored, self._left_s())

    def _finish_going(self) -> None:
        for future in list(self.going):
            self._write(future)
        for future in list(self.writing):
            try:
                self._take(future)
            except StoreError:
                continue

    def _left_s(self) -> float:
        return self.remaining.left_s({run.id: progress.fraction for run, progress, _ in self.going.values()})

    def _written(self, run: PlannedRun, made: Made) -> StoredRun:
        record: dict[str, Any] = {
            "study": run.specification.study,
            "levels": dict(run.levels),
            "repetition": run.repetition,
            "seed": run.seed,
            "digest": run.digest,
            "clock": run.specification.clock,
            "specification": self._specification(run),
            "specification_units": "durations in ps, rates in bit/s, sizes in bytes",
            "versions": made.record["versions"],
            "started": made.record["started"],
        }
        if self.forecast is not None and run.id in self.forecast.needed:
            record["forecast"] = self.forecast.record_of(run.id)
        record |= {"elapsed_s": float(made.record["elapsed_s"]), "machine": made.record["machine"]}
        if isinstance(made.result, Measured):
            return self.store.write_finished(run, record, made.result)
        return self.store.write_failed(run, record, made.result)

    def _specification(self, run: PlannedRun) -> dict[str, Any]:
        """The specification as it is recorded, the same for all repetitions of a combination of levels, unless a mix
        deals them different hosts."""
        levels = tuple(run.levels.values())
        if any(one.part for one in run.specification.traffic):
            levels += (str(run.repetition),)
        if levels not in self.specifications:
            self.specifications[levels] = run.specification.model_dump(
                mode="json", by_alias=True, exclude={"presets", "wall_presets"}
            )
        return self.specifications[levels]
