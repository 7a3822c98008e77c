"""What a campaign tells other processes while its runs are made: a small file beside its results, new each second.

It is no result: a disk that refuses it stops no run, and it is gone when the campaign has ended.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twinnet.given_files import given_json, read_given_text

if TYPE_CHECKING:
    from twinnet.study.plan import PlannedRun
    from twinnet.study.runner import Observer, Progress
    from twinnet.study.store import StoredRun

__all__ = ["SILENT_AFTER_S", "RunGoingOn", "RunsGoingOn", "read_progress", "told_in"]

SILENT_AFTER_S = 15.0
"""A campaign that has told nothing for so long may have been ended."""
_NAME = ".progress.json"
_EVERY_S = 1.0
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class RunGoingOn:
    """What a run does that is being made.

    Attributes
    ----------
    fraction
        How much of it is done, 0 to 1.
    doing
        What it is doing, in a few words.
    begun_s
        When it began, in seconds since the epoch; ``None`` where a twinnet from before did not tell.
    """

    fraction: float
    doing: str
    begun_s: float | None = None


@dataclass(frozen=True)
class RunsGoingOn:
    """What a campaign told last.

    Attributes
    ----------
    age_s
        How long ago, in seconds.
    left_s
        How long it expects to go on from then, in seconds.
    going
        What each run does that is being made, by its name.
    """

    age_s: float
    left_s: float
    going: Mapping[str, RunGoingOn] = field(default_factory=dict[str, RunGoingOn])


def read_progress(folder: Path) -> RunsGoingOn | None:
    """Return what the campaign whose results are in `folder` told last; ``None`` if none goes on there."""
    try:
        told = given_json(read_given_text(folder / _NAME, _MOST_BYTES))
        going = {str(one["run"]): _going(one) for one in told["going"]}
        return RunsGoingOn(max(0.0, time.time() - float(told["at_s"])), float(told["left_s"]), going)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _going(told: Mapping[str, Any]) -> RunGoingOn:
    begun_s = told.get("begun_s")
    return RunGoingOn(float(told["fraction"]), str(told["doing"]), None if begun_s is None else float(begun_s))


@contextlib.contextmanager
def told_in(folder: Path, observer: Observer) -> Generator[Observer]:
    """Give an observer that tells `observer` all, and the file in `folder` what goes on; at the end the file goes."""
    telling = _Telling(folder, observer)
    try:
        yield cast("Observer", telling)
    finally:
        with contextlib.suppress(OSError):
            (folder / _NAME).unlink()


class _Telling:
    """An observer (:class:`~twinnet.study.runner.Observer`) that writes the file, too."""

    def __init__(self, folder: Path, observer: Observer) -> None:
        self._path = folder / _NAME
        self._observer = observer
        self._going: dict[str, tuple[Progress, float]] = {}
        self._written_s = -_EVERY_S

    def begin(self, todo: Sequence[PlannedRun], skipped: int, expected_s: float) -> None:
        self._observer.begin(todo, skipped, expected_s)
        self._write(expected_s)

    def started(self, run: PlannedRun, progress: Progress) -> None:
        self._going[run.id] = progress, time.time()
        self._observer.started(run, progress)

    def tick(self, left_s: float) -> None:
        self._observer.tick(left_s)
        self._write(left_s)

    def ended(self, run: PlannedRun, stored: StoredRun, left_s: float) -> None:
        self._going.pop(run.id, None)
        self._observer.ended(run, stored, left_s)

    def stopping(self) -> None:
        self._observer.stopping()

    def _write(self, left_s: float) -> None:
        now_s = time.monotonic()
        if now_s < self._written_s + _EVERY_S:
            return
        self._written_s = now_s
        going: list[dict[str, Any]] = [
            {"run": name, "fraction": round(progress.fraction, 3), "doing": progress.doing, "begun_s": begun_s}
            for name, (progress, begun_s) in self._going.items()
        ]
        aside = self._path.with_name(f"{_NAME}.new")
        with contextlib.suppress(OSError):
            aside.write_text(json.dumps({"at_s": time.time(), "left_s": left_s, "going": going}), encoding="utf-8")
            aside.replace(self._path)
