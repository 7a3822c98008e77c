"""The answer to one request of the lab protocol, when it comes."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar, cast

from twinnet.errors import LabClosed, LabError, TwinnetError

__all__ = ["Json", "JsonObject", "PendingReply", "refusal"]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value of JSON."""
JsonObject: TypeAlias = "Mapping[str, Json]"
"""An object of JSON that other pages of the reference describe, such as a network, an app or a queue."""
_Answer = TypeVar("_Answer")


class PendingReply(Generic[_Answer]):
    """The answer to one request, when it comes."""

    def __init__(self) -> None:
        self._come = threading.Event()
        self._reply: JsonObject | None = None
        self._notify: int | None = None
        self._lock = threading.Lock()

    @classmethod
    def come(cls, ok: _Answer) -> PendingReply[_Answer]:
        """Return the answer whose value is `ok`, which is here already."""
        pending = cls()
        pending.settle({"ok": cast(Json, ok)})
        return pending

    @classmethod
    def refused(cls, error: TwinnetError) -> PendingReply[_Answer]:
        """Return the answer that raises `error` by its name, which is here already."""
        pending = cls()
        pending.refuse(error)
        return pending

    def result(self, timeout_s: float | None = None) -> _Answer:
        """Wait for the answer and return its value.

        Raises
        ------
        LabError
            When the lab refused.
        LabClosed
            When the lab ended before it answered.
        TimeoutError
            When `timeout_s` seconds have passed without an answer.
        """
        if not self._come.wait(timeout_s):
            raise TimeoutError(f"no answer from the lab within {timeout_s} s")
        reply = self._reply
        if reply is None:
            raise LabClosed("the lab has ended", "its last messages are on its standard error")
        if "error" in reply:
            raise refusal(reply)
        return cast(_Answer, reply.get("ok"))

    def done(self) -> bool:
        """Return whether the answer is here."""
        return self._come.is_set()

    def notify(self, eventfd: int) -> None:
        """Add 1 to `eventfd` when the answer comes (at once when it is here)."""
        with self._lock:
            self._notify = eventfd
            if self._come.is_set():
                os.eventfd_write(eventfd, 1)

    def forget(self) -> None:
        """Undo :meth:`notify`; afterwards its descriptor may be closed."""
        with self._lock:
            self._notify = None

    def settle(self, reply: JsonObject | None) -> None:
        """Hand the message `reply` to whoever waits; ``None``: there will be none."""
        with self._lock:
            self._reply = reply
            self._come.set()
            if self._notify is not None:
                os.eventfd_write(self._notify, 1)

    def refuse(self, error: TwinnetError) -> None:
        """Have whoever waits raise `error` by its name."""
        self.settle({"error": {"name": error.name, "message": error.message, "remedy": error.remedy}})


def refusal(reply: JsonObject) -> LabError:
    """Return the error that the message `reply` of a lab is."""
    error = cast(JsonObject, reply["error"])
    return LabError(str(error.get("message", "")), str(error.get("remedy", "")), str(error.get("name", "LabError")))
