"""The worker's side of runs: it makes them in its slot for a client, which names the function and sends no program."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.cluster.messages import Asked, asked, packed_made, packed_together, packed_trouble
from twinnet.errors import TwinnetError
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import PlannedRun, planned_run
from twinnet.study.resolution import Study, read_study
from twinnet.study.runner import Interrupted, Progress, make_run
from twinnet.yaml_source import parse_yaml

__all__ = ["GRACE_S", "SLOT", "SlotState", "make_for_client", "study_digest"]

GRACE_S = 1.2
"""The longest time in seconds that a run that is asked to end may take; then the slot's process ends, and the lab
with it."""
_MOST_STUDIES = 8
_MOST_TOGETHER_BYTES = 64 << 20
"""Results that travel together are at most so large before the last of them; the client asks for the rest again."""


@dataclass
class SlotState:
    """The state of a slot's process, which makes one run at a time."""

    number: int = 1
    takes_wall: bool = False
    why_not: str = ""
    end_process: Callable[[], None] = lambda: os._exit(4)
    tell: Callable[[dict[str, Any]], None] = lambda _: None
    going: dict[str, Progress] = field(default_factory=dict[str, Progress])
    ended: set[str] = field(default_factory=set[str])
    studies: OrderedDict[str, Study] = field(default_factory=OrderedDict[str, Study])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, attempt: str) -> Progress:
        """Note that `attempt` begins; what was cancelled before it began is to stop at once."""
        progress = Progress(threading.Event())
        with self.lock:
            self.going[attempt] = progress
            if attempt in self.ended:
                progress.stop.set()
        return progress

    def finish(self, attempt: str) -> None:
        """Note that `attempt` has ended."""
        with self.lock:
            self.going.pop(attempt, None)
            self.ended.discard(attempt)

    def cancel(self, attempt: str) -> None:
        """End `attempt`: by asking, and when it does not end within `GRACE_S`, by ending this process."""
        with self.lock:
            progress = self.going.get(attempt)
            if progress is None:
                return
            self.ended.add(attempt)
        progress.stop.set()
        timer = threading.Timer(GRACE_S, self._end_if_going, [attempt])
        timer.daemon = True
        timer.start()

    def cancel_all(self) -> None:
        """End whatever is going on."""
        for attempt in list(self.going):
            self.cancel(attempt)

    def _end_if_going(self, attempt: str) -> None:
        if attempt in self.going:
            self.tell({"cancelled": attempt})
            self.end_process()

    def study(self, digest: str, message: bytes | None) -> Study | None:
        """The study with this digest, of `message` or of those that came before."""
        if message is not None:
            if study_digest(message) != digest:
                raise ValueError("the study is not the one that the request names")
            content = json.loads(message)
            changes = {str(key): str(value) for key, value in content["changes"].items()}
            text, beside = str(content["text"]), dict(content["beside"])
            study = read_study(parse_yaml(text, str(content["file"])), changes, text=text, read_beside=_reader(beside))
            self.studies[digest] = study
            while len(self.studies) > _MOST_STUDIES:
                self.studies.popitem(last=False)
        return self.studies.get(digest)


SLOT = SlotState()
"""The slot that this process is."""


def _reader(beside: dict[str, str]) -> Callable[[str], str]:
    def read(name: str) -> str:
        if name not in beside:
            raise ValueError(f"the client has not sent the file {name}")
        return beside[name]

    return read


def study_digest(message: bytes) -> str:
    """Return the digest by which client and worker name a study."""
    return hashlib.sha256(message).hexdigest()


def make_for_client(attempt: str, requests: Sequence[bytes], study: bytes | None) -> bytes:
    """Make the runs of `requests`, one after the other, and return what `messages.apart` takes apart and
    `messages.made_from` reads; whatever happens, bytes come back.

    Parameters
    ----------
    attempt
        The name of this attempt; it is ended by this name.
    requests
        An `Asked` as JSON for each run.
    study
        The study's message; left out when this worker has had it before.
    """
    progress = SLOT.begin(attempt)
    made: list[bytes] = []
    try:
        for request in requests:
            progress.fraction = 0.0
            full = sum(map(len, made)) > _MOST_TOGETHER_BYTES
            made.append(packed_trouble("interrupted") if full else _made(request, study, progress, attempt))
        return packed_together(made)
    finally:
        SLOT.finish(attempt)


def _made(request: bytes, study: bytes | None, progress: Progress, attempt: str) -> bytes:
    """The run of `request`, or the reason why there is none."""
    try:
        if progress.stop.is_set():
            raise Interrupted
        wanted = asked(request)
        loaded = SLOT.study(wanted.study, study)
        if loaded is None:
            return packed_trouble("study wanted")
        run = _planned(loaded, wanted)
        clock = run.specification.clock
        if clock == "wall" and not SLOT.takes_wall:
            return packed_trouble("refused", f"this slot takes no runs on the wall clock: {SLOT.why_not}")
        executor = LabExecutor(wanted.interface, wanted.fabric_threads)
        return packed_made(run, make_run(run, executor, progress, SLOT.number))
    except Interrupted:
        SLOT.tell({"cancelled": attempt})
        return packed_trouble("interrupted")
    except (TwinnetError, ValueError, KeyError, TypeError, OSError) as error:
        return packed_trouble("refused", str(error))


def _planned(study: Study, wanted: Asked) -> PlannedRun:
    run = planned_run(study, dict(wanted.levels), wanted.repetition)
    if (run.id, run.digest) != (wanted.run_id, wanted.digest):
        raise ValueError(
            f"this worker plans the run {wanted.run_id} as {run.id}: client and worker are not of the same build"
        )
    return run
