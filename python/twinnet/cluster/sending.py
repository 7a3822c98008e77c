"""What is asked of one slot: runs that wait for it go there together, as one task of the engine.

A task costs the scheduler, the client and the slot about 15 ms of processor time, more than a short run. Runs that were
asked for while the slot was busy are therefore sent together. Each has its own answer.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from twinnet.study.runner import Interrupted, Progress

__all__ = ["MOST_TOGETHER", "Request", "SlotSender"]

MOST_TOGETHER = 16
_LOOK_S = 0.25


@dataclass(frozen=True)
class Request:
    """A run that is asked of a slot.

    Attributes
    ----------
    run_id
        The run.
    content
        The request as the slot reads it.
    with_study
        Whether the slot has to be sent the study.
    alone
        Whether it is sent alone: it may be what ended a worker.
    progress
        Says when it is to stop.
    answer
        What the slot returns for it.
    """

    run_id: str
    content: bytes
    with_study: bool
    alone: bool
    progress: Progress
    answer: Future[bytes] = field(default_factory=Future[bytes])


class SlotSender:
    """Sends requests to one slot from a thread of its own, one task after the other.

    Parameters
    ----------
    send
        Has the slot answer some requests at once; what it raises is raised for each of them.
    """

    def __init__(self, send: Callable[[Sequence[Request]], Sequence[bytes]]) -> None:
        self._send = send
        self._waiting: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._next: Request | None = None
        threading.Thread(target=self._run, name="send", daemon=True).start()

    def ask(self, request: Request) -> bytes:
        """Return the slot's answer; raises `Interrupted` when the run is to stop."""
        self._waiting.put(request)
        while True:
            try:
                return request.answer.result(timeout=_LOOK_S)
            except TimeoutError:
                if request.progress.stop.is_set():
                    raise Interrupted from None

    def close(self) -> None:
        """Send nothing more."""
        self._waiting.put(None)

    def _run(self) -> None:
        while (first := self._next or self._waiting.get()) is not None:
            self._next = None
            together = self._together(first)
            if first.progress.stop.is_set():
                _refuse(together, Interrupted())
                continue
            try:
                answers = self._send(together)
            except BaseException as error:
                _refuse(together, error)
            else:
                for request, answer in zip(together, answers, strict=True):
                    request.answer.set_result(answer)

    def _together(self, first: Request) -> list[Request]:
        """`first` and those after it that may be sent with it."""
        together = [first]
        while not first.alone and len(together) < MOST_TOGETHER:
            try:
                more = self._waiting.get_nowait()
            except queue.Empty:
                break
            if more is None or more.alone or more.with_study != first.with_study:
                self._next = more
                if more is None:
                    self._waiting.put(None)
                break
            together.append(more)
        return together


def _refuse(requests: Sequence[Request], error: BaseException) -> None:
    for request in requests:
        request.answer.set_exception(error)
